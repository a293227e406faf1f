//! Queries that read one transaction while others commit.
//!
//! A dataset reads a [`State`] of its store: metadata, indexes and cells of one transaction.
//! [`Store::snapshot`] remembers the root. While the root has the mark `pending`, objects of the
//! transaction are read where they are staged ([`Store::committed_view`]).
//!
//! After the reads of an operation the head of the store is checked; over the network, only if an
//! object that was read may be newer than the root ([`OpenOptions::settled_after`]). If the head was
//! replaced, the state is gone, and the operation is repeated once at the present state, which all
//! clones then use, unless [`OpenOptions::follow`] forbids this or the query has already passed on a
//! batch.

use std::sync::{Arc, Mutex, PoisonError};

use zvf_model::fetch::BoxFuture;
use zvf_query::{BatchOptions, Query, QueryReport};
use zvf_store::{Follow, OpenOptions, SnapshotError, Store};

use super::{Dataset, State, query::Each};
use crate::{
    error::{Error, boxed},
    failure::Failure,
    state_error::StateError,
};

/// The state with which a dataset follows its store, shared by its clones.
#[derive(Debug)]
pub(super) struct Following {
    store: Store,
    cache_bytes: u64,
    follow: Follow,
    /// The state after the one that was opened, if that is gone.
    latest: Mutex<Option<Arc<State>>>,
}

impl Following {
    fn latest(&self) -> Option<Arc<State>> {
        let latest = self.latest.lock();
        latest.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Dataset {
    /// Opens the dataset in `store` at its present transaction, and follows its changes.
    pub(crate) async fn open_following(
        store: Store,
        options: &OpenOptions,
        cache_bytes: u64,
    ) -> Result<Self, Failure> {
        let state = State::open_snapshot(&store, cache_bytes).await?;
        let following = Following {
            store,
            cache_bytes,
            follow: options.follow,
            latest: Mutex::default(),
        };
        Ok(Self {
            state: Arc::new(state),
            following: Some(Arc::new(following)),
        })
    }

    /// Opens the present state of the store, which [metadata](Self::root) and queries then show.
    /// Clones keep their state.
    ///
    /// # Errors
    ///
    /// See [`open`](Self::open). The dataset keeps its state.
    pub async fn reload(&mut self) -> Result<(), Error> {
        boxed(async move {
            let Some(following) = &self.following else {
                return Ok(());
            };
            let store = following.store.clone();
            let state = State::open_snapshot(&store, following.cache_bytes).await?;
            let following = Following {
                store,
                cache_bytes: following.cache_bytes,
                follow: following.follow,
                latest: Mutex::default(),
            };
            self.state = Arc::new(state);
            self.following = Some(Arc::new(following));
            Ok(())
        })
        .await
    }

    /// Returns whether queries show the present state of the store. Takes one request over the
    /// network.
    ///
    /// ```
    /// # use zvf::{Design, Geometry, GeometryKind, NumericColumn, OutOfBounds};
    /// use zvf::{Dataset, Editor};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let address = folder.path().join("points.zv").display().to_string();
    /// # let address = address.as_str();
    /// # let positions = NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]);
    /// # let points = Geometry::new(positions);
    /// # let mut design = Design::new(GeometryKind::Points);
    /// # design.chunk_shape = Some(vec![10.0; 3]);
    /// # zvf::create(address, &points, design, &Default::default()).await?;
    /// let mut dataset = Dataset::open(address).await?;
    /// Editor::open(address).await?.append(&points, OutOfBounds::Expand).await?;
    /// assert!(!dataset.is_current().await?);
    /// dataset.reload().await?;
    /// assert!(dataset.is_current().await?);
    /// assert_eq!(dataset.transaction(), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ReadError`](zvf_store::ReadError) if the root cannot be read.
    pub async fn is_current(&self) -> Result<bool, Error> {
        boxed(async move {
            let store = self.now().state.cells.store().clone();
            Ok(store.is_snapshot_current().await?)
        })
        .await
    }

    /// Returns the number of the transaction that the next query shows: that of the store when it
    /// was opened or [reloaded](Self::reload), or of the state that queries [followed](Follow) to. It
    /// is 0 for a store that was never changed in a transaction.
    pub fn transaction(&self) -> u64 {
        self.now().state.transaction
    }

    /// Returns this dataset at the state that queries show.
    fn now(&self) -> Self {
        let latest = self.following.as_ref().and_then(|shared| shared.latest());
        Self {
            state: latest.unwrap_or_else(|| Arc::clone(&self.state)),
            following: self.following.clone(),
        }
    }

    fn follow(&self) -> Follow {
        let following = self.following.as_ref();
        following.map_or(Follow::Never, |following| following.follow)
    }

    /// Returns this dataset at the state that an operation begins with.
    async fn begin(&self) -> Result<Self, Failure> {
        let now = self.now();
        if self.follow() == Follow::Always && !now.store().is_snapshot_current().await? {
            return now.advance().await;
        }
        Ok(now)
    }

    /// Returns this dataset at the present state, because its own is gone.
    async fn advance(&self) -> Result<Self, Failure> {
        let Some(following) = &self.following else {
            return Err(self.changed());
        };
        // Another query may have advanced already.
        let latest = following.latest();
        if let Some(latest) = latest.filter(|latest| !Arc::ptr_eq(latest, &self.state)) {
            return Ok(Self {
                state: latest,
                following: self.following.clone(),
            });
        }
        // Rare, and large: every query would move its future.
        let opening = State::open_snapshot(&following.store, following.cache_bytes);
        let opened = Arc::new(Box::pin(opening).await?);
        let latest = following.latest.lock();
        *latest.unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&opened));
        Ok(Self {
            state: opened,
            following: self.following.clone(),
        })
    }

    /// Runs an operation at one state of the store.
    pub(super) async fn at_one_state<'a, T>(
        &'a self,
        work: impl Fn(Self) -> BoxFuture<'a, Result<T, Failure>> + Send + Sync + 'a,
    ) -> Result<T, Failure> {
        let dataset = self.begin().await?;
        let outcome = work(dataset.clone()).await;
        match dataset.confirmed(outcome).await {
            Err(error) if error.is_changed() && self.follow() != Follow::Never => {
                let dataset = dataset.advance().await?;
                let outcome = work(dataset.clone()).await;
                dataset.confirmed(outcome).await
            }
            outcome => outcome,
        }
    }

    /// Runs a query in batches at one state of the store. Once a batch was passed, the query is not
    /// repeated.
    pub(super) async fn batches_at_one_state(
        &self,
        query: &Query,
        options: Option<BatchOptions>,
        each: &mut Each<'_>,
    ) -> Result<QueryReport, Failure> {
        let dataset = self.begin().await?;
        let mut is_passed = false;
        let mut pass = |batch| {
            is_passed = true;
            each(batch)
        };
        let outcome = dataset.run_batches(query, options, &mut pass).await;
        match dataset.confirmed(outcome).await {
            Err(error) if error.is_changed() && !is_passed && self.follow() != Follow::Never => {
                let dataset = dataset.advance().await?;
                let outcome = dataset.run_batches(query, options, each).await;
                dataset.confirmed(outcome).await
            }
            outcome => outcome,
        }
    }

    async fn run_batches(
        &self,
        query: &Query,
        options: Option<BatchOptions>,
        each: &mut Each<'_>,
    ) -> Result<QueryReport, Failure> {
        self.verify().await?;
        let session = self.session();
        Ok(match options {
            Some(options) => session.batches_within(query, options, each).await?,
            None => session.batches(query, each).await?,
        })
    }

    /// Returns `outcome` if everything read for it is of the state of this dataset.
    pub(crate) async fn confirmed<T>(&self, outcome: Result<T, Failure>) -> Result<T, Failure> {
        if outcome.as_ref().is_err_and(Failure::is_changed) {
            return Err(self.changed());
        }
        match self.store().confirm_snapshot().await {
            Ok(()) => outcome,
            Err(SnapshotError::Read(error)) => outcome.and_then(|_| Err(error.into())),
            Err(_) => Err(self.changed()),
        }
    }

    fn changed(&self) -> Failure {
        let address = self.address().to_owned();
        Failure::State(StateError::Changed { address })
    }
}
