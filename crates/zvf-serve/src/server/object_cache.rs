//! Encoded objects, which are computed once for the requests that wait for them. All stores share one
//! cache, and one limit on the objects that are encoded at once.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};

use super::cache::{AnswerCache, KnownAnswer};
use crate::layers::LayerError;

/// Locks of objects. Two objects may have the same lock.
const LOCKS: usize = 16;
/// Vertices of a permit.
const STEP: u64 = 1 << 10;

/// Encoded objects of all stores, by name.
#[derive(Debug)]
pub(super) struct ObjectCache {
    encoded: AnswerCache,
    /// Held while an object is encoded.
    encoding: [Mutex<()>; LOCKS],
    /// Stands for the locks if there are none.
    any: Mutex<()>,
    /// The largest encoded object: one that is not kept would be encoded for each request.
    most_bytes: usize,
    /// Vertices of the objects that are encoded at once.
    most_vertices: u64,
    permits: Semaphore,
}

impl ObjectCache {
    /// Creates a cache of this many bytes, and a limit on the vertices of the objects that are encoded
    /// at once.
    pub(super) fn new(bytes: usize, vertices: u64) -> Self {
        let most_bytes = bytes.saturating_mul(5) / 8;
        let most_vertices = vertices.clamp(STEP, 1 << 32);
        let permits = usize::try_from(most_vertices.div_ceil(STEP)).unwrap_or(usize::MAX);
        Self {
            encoded: AnswerCache::new(bytes, most_bytes),
            encoding: Default::default(),
            any: Mutex::default(),
            most_bytes,
            most_vertices,
            permits: Semaphore::new(permits.min(Semaphore::MAX_PERMITS)),
        }
    }

    /// Returns a file that is kept; `None` if it is not known whether there is one.
    pub(super) fn known(&self, name: &str) -> Option<KnownAnswer> {
        self.encoded.get(name)
    }

    /// Returns the most vertices of an object that is encoded.
    pub(super) fn most_vertices(&self) -> u64 {
        self.most_vertices
    }

    /// Waits until no other request encodes this object.
    pub(super) async fn lock(&self, name: &str) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let locks = u64::try_from(LOCKS).unwrap_or(1);
        let place = usize::try_from(hasher.finish().checked_rem(locks).unwrap_or(0));
        let lock = self.encoding.get(place.unwrap_or(0));
        lock.unwrap_or(&self.any).lock().await
    }

    /// Waits until there is memory for an object of this many vertices.
    pub(super) async fn turn(&self, vertices: u64) -> Option<SemaphorePermit<'_>> {
        let permits = vertices.min(self.most_vertices).div_ceil(STEP);
        let permits = u32::try_from(permits).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        self.permits.acquire_many(permits).await.ok()
    }

    /// Keeps a file, or that there is none.
    ///
    /// # Errors
    ///
    /// [`LayerError::TooLarge`] with the name of what is encoded.
    pub(super) fn put(
        &self,
        name: String,
        bytes: Option<Vec<u8>>,
        what: &'static str,
    ) -> Result<(), LayerError> {
        let most = self.most_bytes;
        if bytes.as_ref().is_some_and(|bytes| bytes.len() > most) {
            return Err(LayerError::TooLarge(what, most));
        }
        self.encoded.put(name, bytes.map(Bytes::from).into());
        Ok(())
    }
}
