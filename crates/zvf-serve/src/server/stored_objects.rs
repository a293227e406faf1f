//! The objects of a store, at its present state.

use std::sync::Arc;

use tokio::sync::Mutex;
use zvf_model::{error_chain::error_chain, key::Key};
use zvf_store::{SnapshotError, Store, TransactionError};

use super::{
    object_cache::ObjectCache,
    open_object::{ObjectError, OpenObject},
    reply::Reply,
    request::Request,
};

/// A store whose objects are served as they are stored.
#[derive(Debug)]
pub(super) struct StoredObjects {
    /// The store at the state in which its objects were last served.
    present: Mutex<Store>,
    objects: Arc<ObjectCache>,
}

impl StoredObjects {
    pub(super) fn new(store: Store, objects: Arc<ObjectCache>) -> Self {
        Self {
            present: Mutex::new(store),
            objects,
        }
    }

    /// Returns the response to a request for the object at `path`.
    pub(super) async fn reply(&self, path: &[&str], request: &Request) -> Reply {
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
