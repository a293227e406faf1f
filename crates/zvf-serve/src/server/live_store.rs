//! A store that is served, at its present state.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use hyper::StatusCode;
use tokio::sync::Mutex as AsyncMutex;
use zvf::{Dataset, ErrorKind, StateError};
use zvf_model::{error_chain::error_chain, key::Key};
use zvf_store::{SnapshotError, Store, TransactionError};

use super::{
    cache::{CachedResponse, ResponseCache},
    live::{LiveContext, LiveLayers, to_its_end},
    object_cache::ObjectCache,
    open_object::{ObjectError, OpenObject},
    reply::{BINARY, JSON, Reply},
    request::Request,
};
use crate::layers::{LayerError, Report};

/// Time between two looks whether the store has changed.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Bytes of a list that counts while it is sent.
const LARGE: usize = 64 << 10;

/// A store and its layers.
#[derive(Debug)]
pub(super) struct LiveStore {
    pub(super) name: String,
    /// Bytes of the coarse cells of annotations that are kept.
    coarse_cells: usize,
    objects: Arc<ObjectCache>,
    current: Mutex<Current>,
    /// The store at the state in which its objects were last served.
    present: AsyncMutex<Store>,
    /// Held while the layers of a new state are planned.
    refreshing: Arc<AsyncMutex<()>>,
}

#[derive(Debug)]
struct Current {
    layers: Arc<LiveLayers>,
    /// Counts the states, so that responses of an earlier one are not taken from the cache.
    state: u64,
    checked: Instant,
}

impl LiveStore {
    pub(super) async fn open(
        name: String,
        dataset: Dataset,
        coarse_cells: usize,
        objects: Arc<ObjectCache>,
        report: &Report<'_>,
    ) -> Result<Self, LayerError> {
        let context = LiveContext {
            prefix: prefix(&name, 0),
            coarse_cells,
            objects: Arc::clone(&objects),
        };
        let present = AsyncMutex::new(dataset.store().clone());
        let layers = LiveLayers::new(dataset, context, report).await?;
        Ok(Self {
            name,
            coarse_cells,
            objects,
            current: Mutex::new(Current {
                layers: Arc::new(layers),
                state: 0,
                checked: Instant::now(),
            }),
            present,
            refreshing: Arc::default(),
        })
    }

    pub(super) fn layers(&self) -> Arc<LiveLayers> {
        Arc::clone(&self.lock().layers)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the last look is long ago, and notes the present one.
    fn is_due(&self) -> bool {
        let mut current = self.lock();
        let is_due = current.checked.elapsed() >= CHECK_INTERVAL;
        if is_due {
            current.checked = Instant::now();
        }
        is_due
    }

    /// Plans the layers anew if the store has changed, unless the last look was a moment ago.
    pub(super) async fn refresh_if_due(self: &Arc<Self>) -> Result<(), LayerError> {
        if self.is_due() {
            self.refresh().await
        } else {
            Ok(())
        }
    }

    /// Plans the layers anew if the store has changed. This goes on if the client disconnects, so that
    /// a later request finds the new layers.
    async fn refresh(self: &Arc<Self>) -> Result<(), LayerError> {
        let held = Arc::clone(&self.refreshing).lock_owned().await;
        let store = Arc::clone(self);
        let work = async move {
            let _held = held;
            store.plan_anew().await
        };
        to_its_end(work).await
    }

    async fn plan_anew(&self) -> Result<(), LayerError> {
        let layers = self.layers();
        if layers.dataset.is_current().await? {
            return Ok(());
        }
        let mut dataset = layers.dataset.clone();
        dataset.reload().await?;
        let state = self.lock().state.saturating_add(1);
        let context = LiveContext {
            prefix: prefix(&self.name, state),
            coarse_cells: self.coarse_cells,
            objects: Arc::clone(&self.objects),
        };
        let layers = Arc::new(LiveLayers::new(dataset, context, &|_, _| {}).await?);
        let mut current = self.lock();
        (current.layers, current.state) = (layers, state);
        Ok(())
    }

    /// Returns the response to a request for a file of a layer.
    pub(super) async fn layer_file(
        self: &Arc<Self>,
        path: &[&str],
        cache: &ResponseCache,
    ) -> Reply {
        if let Err(error) = self.refresh_if_due().await {
            return failure(&error);
        }
        match self.cached(path, cache).await {
            // The state that was opened is gone, so the present one is opened.
            Err(LayerError::Store(error))
                if matches!(error.cause(), Some(StateError::Changed { .. })) =>
            {
                if let Err(error) = self.refresh().await {
                    return failure(&error);
                }
                self.cached(path, cache).await
            }
            response => response,
        }
        .map_or_else(
            |error| failure(&error),
            |response| match response {
                CachedResponse::Bytes(bytes) if path.last() == Some(&"info") => {
                    Reply::document(JSON, bytes)
                }
                CachedResponse::Bytes(bytes) => Reply::document(BINARY, bytes),
                CachedResponse::File(file) => self.objects.reply_with(&file),
                CachedResponse::Nothing => Reply::not_found(),
            },
        )
    }

    async fn cached(
        &self,
        path: &[&str],
        cache: &ResponseCache,
    ) -> Result<CachedResponse, LayerError> {
        let (layers, state) = {
            let current = self.lock();
            (Arc::clone(&current.layers), current.state)
        };
        let key = format!("{}{}", prefix(&self.name, state), path.join("/"));
        if let Some(known) = cache.get(&key) {
            return Ok(known);
        }
        let response = layers.response(path).await?;
        if layers.is_cached(path) {
            cache.put(key, response.clone());
        }
        match response {
            // Skeletons and meshes have taken their memory, and documents are shared.
            CachedResponse::Bytes(bytes)
                if path.first() == Some(&"annotations") && bytes.len() > LARGE =>
            {
                Ok(CachedResponse::Bytes(self.objects.with_permit(bytes).await))
            }
            response => Ok(response),
        }
    }

    /// Returns the response to a request for an object of the store itself, at its present state.
    /// The layers are not planned anew for it.
    pub(super) async fn object(&self, path: &[&str], request: &Request) -> Reply {
        let Ok(key) = Key::parse(&path.join("/")) else {
            return Reply::not_found();
        };
        let store = self.present.lock().await.clone();
        let mut opened = OpenObject::open(store, &key, request).await;
        if let Err(ObjectError::Snapshot(SnapshotError::Changed)) = opened {
            opened = match self.reopened().await {
                Ok(store) => OpenObject::open(store, &key, request).await,
                Err(error) => Err(error.into()),
            };
        }
        match opened {
            Ok(Some(object)) => object.reply(&self.objects).await,
            Ok(None) | Err(ObjectError::Reopen(TransactionError::NoStore)) => Reply::not_found(),
            Err(error) => Reply::Failed(error.status(), error_chain(&error)),
        }
    }

    /// Returns the store at its present state.
    async fn reopened(&self) -> Result<Store, TransactionError> {
        let mut store = self.present.lock().await;
        // Another request may have opened it.
        if !store.is_snapshot_current().await? {
            let (present, root) = store.snapshot().await?.ok_or(TransactionError::NoStore)?;
            *store = present.with_seal(&root)?;
        }
        Ok(store.clone())
    }
}

/// Returns the prefix of the keys under which responses of a state of a store are cached.
fn prefix(name: &str, state: u64) -> String {
    format!("{name}/{state}/")
}

/// Returns the response to a request that failed.
pub(super) fn failure(error: &LayerError) -> Reply {
    let status = match error {
        LayerError::TooLarge(..) | LayerError::Scattered(_) | LayerError::Dense(_) => {
            StatusCode::PAYLOAD_TOO_LARGE
        }
        LayerError::Store(error) if error.kind() == ErrorKind::OverBudget => {
            StatusCode::PAYLOAD_TOO_LARGE
        }
        LayerError::Store(error) if error.is_retryable() => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    Reply::Failed(status, error_chain(error))
}
