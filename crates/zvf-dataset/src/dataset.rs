//! An open store: its metadata, queries and counts.

mod attribute_info;
mod evidence;
mod following;
mod groups;
mod info;
mod level_info;
mod link_info;
mod nearest_objects;
mod node_copy_check;
mod object_count;
pub mod opening;
mod query;

use core::fmt;
use std::sync::Arc;

use zvf_catalog::{Catalog, CatalogError, LevelCache};
use zvf_model::level::Refinement;
use zvf_model::{
    detection::{Detection, Evidence},
    key::Key,
    layout::Layout,
    level::{LevelId, LevelMetadata},
    metadata::Attributes,
    root::RootMetadata,
    zarr::Node,
};
use zvf_query::Session;
use zvf_store::{CellReader, OpenOptions, SnapshotError, Store};

use self::{following::Following, node_copy_check::NodeCopyCheck, opening::Opened};
use crate::{
    error::{Error, boxed},
    failure::Failure,
    location::Location,
    nodes,
    state_error::StateError,
};

pub use attribute_info::{AttributeInfo, ValueRange};
pub use info::StoreInfo;
pub use level_info::LevelInfo;
pub(crate) use level_info::count_level;
pub use link_info::LinkInfo;
pub use nearest_objects::NearestObject;

/// Maximum number of attempts to open a store that others change.
const MAX_OPEN_ATTEMPTS: usize = 16;

/// An open store: its metadata, queries and counts.
///
/// Queries cache what they read for later queries: metadata, object manifests and fragment indexes
/// always; cells of vertices, attributes and links up to the limit of [`OpenOptions::cache`].
///
/// # Changes of the store
///
/// Every result is of one transaction of the store, whatever other processes, or an
/// `Editor` of this one, commit meanwhile. A dataset reads from the transaction at
/// which it was opened as long as its caches or the store have it. Once a query finds that gone, it
/// is repeated at the present state, and later queries continue there; if the store changes again
/// meanwhile, the query fails with [`StateError::Changed`]. [`OpenOptions::follow`] selects to fail
/// at once, or to begin every query at the present state. Metadata, such as [`root`](Self::root)
/// and [`levels`](Self::levels), stay those of the opened state until [`reload`](Self::reload).
///
/// Programs that change a store without transactions are not noticed unless they replace the root.
///
/// Cloning is cheap; clones share the cache.
#[derive(Clone)]
pub struct Dataset {
    state: Arc<State>,
    /// `None` for the datasets of writers, whose transactions detect changes.
    following: Option<Arc<Following>>,
}

/// The metadata and caches of one transaction of a store.
#[derive(Clone, Debug)]
struct State {
    address: String,
    transaction: u64,
    cells: CellReader,
    copy: Option<Arc<NodeCopyCheck>>,
    claim: Evidence,
    root: Arc<RootMetadata>,
    detection: Detection,
    ids: Vec<LevelId>,
    is_surveyed: bool,
    levels: Arc<LevelCache>,
}

impl Dataset {
    /// Opens the store at `address`: a path to a folder or a `.zip` file, or a URL with the scheme
    /// `file:` or `memory:`, or, with their features, `http:`, `https:`, `s3:`, `gs:` or `az:`.
    ///
    /// A store of generation 0.9 takes three requests in two round trips and no listing, however
    /// large it is: the root, then the first level and its vertices, which queries need anyway.
    /// Over the network, one request suffices if the root has a
    /// [copy of the nodes](zvf_model::node_copy). Older stores, and stores that contradict their
    /// declared version, take listings and one small read for each node that distinguishes
    /// generations: five round trips.
    ///
    /// ```
    /// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
    /// use zvf::Dataset;
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
    /// let points = Dataset::open(address).await?;
    /// assert_eq!(points.levels().len(), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error`] if there is no store at the address, its generation is not supported, or its
    /// metadata is invalid; [`ErrorKind::Unsupported`](zvf_model::error_kind::ErrorKind::Unsupported) for a store
    /// older than 0.9 on a backend that cannot list.
    pub async fn open(location: impl Into<Location>) -> Result<Self, Error> {
        Self::open_with(location, &OpenOptions::default()).await
    }

    /// Opens the store as [`open`](Self::open) does, with `options`.
    ///
    /// ```
    /// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
    /// use zvf::{Dataset, OpenOptions};
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
    /// let options = OpenOptions::default().budget(64 << 20).record_requests(true);
    /// let points = Dataset::open_with(address, &options).await?;
    /// for read in points.store().take_request_log() {
    ///     println!("{read:?}");
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// See [`open`](Self::open).
    pub async fn open_with(
        location: impl Into<Location>,
        options: &OpenOptions,
    ) -> Result<Self, Error> {
        let location = location.into();
        // A store that is passed may be one that this program is writing to.
        let cache_bytes = match location.address() {
            Some(_) => options.cache,
            None => 0,
        };
        let store = location.open(options)?;
        Ok(Self::open_following(store, options, cache_bytes).await?)
    }

    /// Opens the dataset in `store`, to which this program does not write, with the cell cache of
    /// `options`.
    ///
    /// # Errors
    ///
    /// See [`open`](Self::open).
    pub async fn open_caching(store: Store, options: &OpenOptions) -> Result<Self, Error> {
        Ok(Self::open_following(store, options, options.cache).await?)
    }

    /// Opens the dataset in `store` for a writer: without a cell cache and without checks of the
    /// head, because a transaction detects changes by others.
    pub(crate) fn open_store(
        store: Store,
    ) -> zvf_model::fetch::BoxFuture<'static, Result<Self, Failure>> {
        Box::pin(async move {
            let address = store.to_string();
            for _ in 0..MAX_OPEN_ATTEMPTS {
                let found = opening::committed(&store, &address).await?;
                let before = found.clone();
                let error = match Self::open_committed(found, address.clone()).await {
                    Ok(dataset) => return Ok(dataset),
                    Err(error) => error,
                };
                // Data of another transaction may look damaged.
                if opening::committed(&store, &address).await?.is_same(&before) {
                    return Err(error);
                }
            }
            Err(Failure::State(StateError::Changed { address }))
        })
    }

    async fn open_committed(found: opening::Root, address: String) -> Result<Self, Failure> {
        let state = State::open(found, address).await?;
        let dataset = Self {
            state: Arc::new(state),
            following: None,
        };
        dataset.check_whole_store().await?;
        Ok(dataset)
    }

    /// Checks that level 0 holds its whole content, so that it can be changed and other levels can be
    /// built from it. Opening has read it.
    async fn check_whole_store(&self) -> Result<(), Failure> {
        if self.state.ids.contains(&LevelId::FULL) {
            check_whole_level(&self.level_metadata(LevelId::FULL).await?)
        } else {
            Ok(())
        }
    }

    /// Returns the address the store was opened at.
    pub fn address(&self) -> &str {
        &self.state.address
    }

    /// Returns the metadata of the root.
    pub fn root(&self) -> &RootMetadata {
        &self.state.root
    }

    /// Returns the detected generation and the evidence that contradicts it.
    pub fn detection(&self) -> &Detection {
        &self.state.detection
    }

    /// Returns the layout of the arrays in the store.
    pub fn layout(&self) -> &Layout {
        &self.state.detection.layout
    }

    /// Returns the levels of the store, finest first: the levels that the root names or, if opening
    /// the store took a listing, the levels found.
    pub fn levels(&self) -> &[LevelId] {
        &self.state.ids
    }

    /// Reads the metadata of a level. The first call for a level makes one request.
    ///
    /// # Errors
    ///
    /// [`StateError::AbsentLevel`] if the level does not exist; [`Error`] if it cannot be read.
    pub async fn level(&self, id: LevelId) -> Result<LevelMetadata, Error> {
        boxed(
            self.at_one_state(move |dataset| {
                Box::pin(async move { dataset.level_metadata(id).await })
            }),
        )
        .await
    }

    /// Reads the metadata of a level, as [`level`](Self::level) does.
    pub(crate) async fn level_metadata(&self, id: LevelId) -> Result<LevelMetadata, Failure> {
        self.verify().await?;
        if let Some(known) = self.reading().1.get(id) {
            return Ok(known);
        }
        let read = self.read_levels(&[id]).await?;
        read.into_iter().next().ok_or_else(|| self.absent(id))
    }

    /// Returns a session that runs queries on the [`catalog`](Self::catalog).
    pub fn session(&self) -> Session<'_> {
        Session::new(self.catalog())
    }

    /// Returns the catalog, which reads parts of levels and shares the metadata cache of this dataset.
    ///
    /// Over the network, the catalog may use the copy of the nodes in the root.
    /// [`verify_node_copy`](Self::verify_node_copy) compares that copy with the nodes; the queries
    /// of `Dataset` call it themselves.
    pub fn catalog(&self) -> Catalog<'_> {
        let (cells, levels) = self.reading();
        Catalog {
            fetch: cells.port(),
            layout: self.layout(),
            root: &self.state.root,
            levels,
        }
    }

    /// Returns the cell reader and the level cache to use: those without the node copy if it is
    /// stale.
    fn reading(&self) -> (&CellReader, &LevelCache) {
        match self.state.copy.as_deref() {
            Some(copy) if copy.is_stale() => (&copy.cells, &copy.levels),
            _ => (&self.state.cells, &self.state.levels),
        }
    }

    /// Verifies the copy of the nodes in the root, if it is in use, against the nodes of the first
    /// level and its vertices. The first call takes one round trip. A stale copy is not used again.
    ///
    /// Queries call this concurrently with their first requests, queries in batches before them. A
    /// program that changed the store without updating the copy is detected, unless it left both
    /// nodes unchanged.
    ///
    /// # Errors
    ///
    /// [`Error`] if the nodes cannot be read.
    pub async fn verify_node_copy(&self) -> Result<(), Error> {
        Ok(self.verify().await?)
    }

    /// Verifies the node copy, as [`verify_node_copy`](Self::verify_node_copy).
    async fn verify(&self) -> Result<(), Failure> {
        match self.state.copy.as_deref() {
            Some(copy) => copy.verify(self.state.cells.store()).await,
            None => Ok(()),
        }
    }

    /// Returns whether a node copy is in use that has not been verified.
    fn is_copy_unverified(&self) -> bool {
        self.state
            .copy
            .as_deref()
            .is_some_and(NodeCopyCheck::is_unverified)
    }

    /// Returns whether the verified node copy differs from the nodes.
    fn is_copy_stale(&self) -> bool {
        self.state
            .copy
            .as_deref()
            .is_some_and(NodeCopyCheck::is_stale)
    }

    /// Returns the reader of array cells.
    pub fn cells(&self) -> &CellReader {
        self.reading().0
    }

    /// Returns the underlying store.
    pub fn store(&self) -> &Store {
        self.cells().store()
    }

    /// Returns a copy of this dataset that trusts neither the root nor the node copy: it lists the
    /// levels and detects the generation from every node that distinguishes generations.
    pub(crate) async fn surveyed(&self) -> Result<Self, Failure> {
        let mut state = self.state.without_node_copy();
        if !state.is_surveyed {
            let guess = state.ids.first().copied().unwrap_or(LevelId::FULL);
            let store = state.cells.store().clone();
            let survey = opening::survey(&store, &state.address, &state.claim, guess).await?;
            state.detection = survey.detection;
            state.ids = survey.ids;
            state.is_surveyed = true;
        }
        Ok(Self {
            state: Arc::new(state),
            following: self.following.clone(),
        })
    }

    /// Reads the metadata of all levels in one round trip.
    pub(crate) async fn all_levels(&self) -> Result<Vec<LevelMetadata>, Failure> {
        let ids = self.state.ids.iter().copied();
        let unread: Vec<LevelId> = ids
            .filter(|id| self.reading().1.get(*id).is_none())
            .collect();
        self.read_levels(&unread).await?;
        let ids = self.state.ids.iter();
        let levels = ids.map(|id| self.reading().1.get(*id).ok_or_else(|| self.absent(*id)));
        levels.collect()
    }

    async fn read_levels(&self, ids: &[LevelId]) -> Result<Vec<LevelMetadata>, Failure> {
        let keys = ids
            .iter()
            .map(|id| nodes::child(&Key::root(), &id.to_string()))
            .collect::<Result<Vec<_>, _>>()?;
        let found = nodes::read(self.store(), &keys).await?;
        let mut levels = Vec::with_capacity(ids.len());
        for ((id, key), node) in ids.iter().zip(&keys).zip(found) {
            let attributes = match &node {
                Some(node) => node.attributes().clone(),
                // A level that the survey listed may be a group without a `zarr.json`.
                None if self.state.is_surveyed && self.state.ids.contains(id) => {
                    Attributes::default()
                }
                None => return Err(self.absent(*id)),
            };
            let mut level = LevelMetadata::parse(key, *id, &attributes, &self.state.root)?;
            level.notes.extend(node.iter().flat_map(Node::repeated));
            self.reading().1.insert(level.clone());
            levels.push(level);
        }
        Ok(levels)
    }

    fn absent(&self, level: LevelId) -> Failure {
        let address = self.state.address.clone();
        Failure::State(StateError::AbsentLevel { address, level })
    }
}

/// Checks that a level holds its whole content and is not being built.
pub fn check_whole_level(level: &LevelMetadata) -> Result<(), Failure> {
    check_finished(level)?;
    match level.refinement {
        Refinement::Replace => Ok(()),
        Refinement::Add => {
            let level = nodes::child(&Key::root(), &level.level.to_string())?;
            Err(Failure::AdditiveLevel { level })
        }
    }
}

/// Checks that the arrays of a level list their chunks.
pub(crate) fn check_finished(level: &LevelMetadata) -> Result<(), Failure> {
    if level.is_unfinished {
        let key = nodes::child(&Key::root(), &level.level.to_string())?;
        Err(CatalogError::Unfinished(key).into())
    } else {
        Ok(())
    }
}

impl State {
    /// Opens the present state of a store, with a cell cache of `cache_bytes` bytes.
    async fn open_snapshot(store: &Store, cache_bytes: u64) -> Result<Self, Failure> {
        let address = store.to_string();
        for _ in 0..MAX_OPEN_ATTEMPTS {
            let found = opening::snapshot(store, &address).await?;
            let view = found.store.clone();
            let opened = Self::open(found, address.clone()).await;
            // Data of another transaction may look damaged. Over the network the first
            // query confirms these reads together with its own.
            let confirmed = match (&opened, view.confirm_snapshot_now()) {
                (_, Some(confirmed)) => confirmed,
                (Ok(_), None) => Ok(()),
                (Err(_), None) => view.confirm_snapshot().await,
            };
            if let Err(SnapshotError::Changed) = confirmed {
                continue;
            }
            let mut opened = opened?;
            opened.cells = opened.cells.with_cache(cache_bytes);
            return Ok(opened);
        }
        Err(Failure::State(StateError::Changed { address }))
    }

    async fn open(found: opening::Root, address: String) -> Result<Self, Failure> {
        let (store, opened) = opening::open(found, &address).await?;
        let Opened {
            claim,
            root,
            transaction,
            detection,
            ids,
            is_surveyed,
            levels,
        } = opened;
        let copy = NodeCopyCheck::of(&store, ids.first().copied())?;
        Ok(Self {
            address,
            transaction,
            cells: CellReader::new(store),
            copy: copy.map(Arc::new),
            claim,
            root: Arc::new(root),
            detection,
            ids,
            is_surveyed,
            levels: Arc::new(levels),
        })
    }

    /// Returns a copy of this state that does not use the node copy.
    fn without_node_copy(&self) -> Self {
        let mut plain = self.clone();
        if plain.copy.take().is_some() {
            plain.cells = CellReader::new(self.cells.store().without_node_copy());
            plain.levels = Arc::default();
        }
        plain
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dataset")
            .field("address", &self.state.address)
            .field("generation", &self.state.detection.generation)
            .finish_non_exhaustive()
    }
}
