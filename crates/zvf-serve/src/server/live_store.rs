//! A store that is served, at its present state.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use hyper::StatusCode;
use tokio::sync::Mutex as AsyncMutex;
use zvf::{Dataset, ErrorKind, StateError};
use zvf_model::error_chain::error_chain;

use super::{
    cache::{CachedResponse, ResponseCache},
    live::{LiveContext, LiveLayers, to_its_end},
    object_cache::ObjectCache,
    reply::{BINARY, JSON, Reply},
    stored_objects::StoredObjects,
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
    /// The objects of the store itself.
    pub(super) stored: StoredObjects,
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
        let stored = StoredObjects::new(dataset.store().clone(), Arc::clone(&objects));
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
            stored,
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
