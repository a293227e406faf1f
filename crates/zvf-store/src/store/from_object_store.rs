//! Stores on object stores of the caller, the only part of the API that names `object_store`.

use std::sync::Arc;

use object_store::{ObjectStore, path::Path};

use crate::backend::{Backend, BackendProfile, OpenError};

use super::{OpenOptions, Store};

impl Store {
    /// Opens the store below `prefix` of an object store, with the default [`OpenOptions`].
    ///
    /// # Errors
    ///
    /// The errors of [`OpenOptions::from_object_store`].
    pub fn from_object_store(
        objects: Arc<dyn ObjectStore>,
        prefix: &str,
    ) -> Result<Self, OpenError> {
        OpenOptions::new().from_object_store(objects, prefix)
    }
}

impl OpenOptions {
    /// Opens the store below `prefix` of an object store: one with other credentials, retries or
    /// limits than [`open`](Self::open) can express, or an implementation of the caller.
    ///
    /// Its requests count as round trips over a network, so reads are merged as those of buckets.
    /// [`merge_limits`](Self::merge_limits) and [`concurrency`](Self::concurrency) change that. The
    /// options for requests ([`option`](Self::option), [`retries`](Self::retries),
    /// [`timeout`](Self::timeout), [`anonymous`](Self::anonymous)) have no effect: they belong to
    /// the object store.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use zvf_store::Store;
    ///
    /// let objects = object_store::memory::InMemory::new();
    /// let store = Store::from_object_store(Arc::new(objects), "tracts/left.zv")?;
    /// assert_eq!(store.to_string(), "InMemory/tracts/left.zv");
    /// # Ok::<(), zvf_store::OpenError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`OpenError::Configuration`] for an invalid prefix.
    pub fn from_object_store(
        &self,
        objects: Arc<dyn ObjectStore>,
        prefix: &str,
    ) -> Result<Store, OpenError> {
        let root = Path::parse(prefix).map_err(|source| OpenError::Configuration {
            address: prefix.to_owned(),
            source: Box::new(source),
        })?;
        let name = match prefix {
            "" => objects.to_string(),
            _ => format!("{objects}/{root}"),
        };
        let backend = Backend::Objects(objects);
        Ok(Store::new(
            name,
            backend,
            root,
            None,
            BackendProfile::NETWORK,
            self,
        ))
    }
}
