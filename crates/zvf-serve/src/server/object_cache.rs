//! Encoded objects, which are computed once for the requests that wait for them. All stores share one
//! cache, one limit on the bytes of encoded objects that are cached or being sent, and one on the
//! memory that encoding takes.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, Write},
    ops::Range,
    sync::Arc,
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::sync::{Mutex, MutexGuard, OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::{
    cache::{CachedResponse, ResponseCache},
    pool::on_pool,
    reply::{BINARY, Pieces, Reply},
    stored_object::{ObjectWriter, StoredObject},
};
use crate::layers::LayerError;

/// Locks of objects. Two objects may have the same lock.
const LOCKS: usize = 16;
/// Bytes of a permit.
const PERMIT_BYTES: u64 = 1 << 10;
/// Bytes of a temporary file that are in memory at once.
const READ_BYTES: u64 = 1 << 20;
/// Bytes of temporary files that are kept.
const MAX_STORED: usize = 16 << 30;

/// Encoded objects of all stores, by name.
#[derive(Debug)]
pub(super) struct ObjectCache {
    encoded: ResponseCache,
    /// Objects that are too large for the memory.
    stored: ResponseCache,
    /// Bytes of encoded objects that are kept, or that responses still hold.
    responses: Arc<Semaphore>,
    max_response_bytes: u64,
    /// Held while an object is encoded.
    encoding: [Mutex<()>; LOCKS],
    /// Stands for the locks if there are none.
    any: Mutex<()>,
    /// Maximum size of an object in memory. A larger one would not be kept, and would be encoded
    /// for each request.
    max_bytes: usize,
    /// Bytes of memory for the objects that are encoded at once.
    max_encoding_bytes: u64,
    permits: Semaphore,
}

/// Bytes, and their part of the memory.
struct ResponseBytes<T> {
    bytes: T,
    _permit: Option<OwnedSemaphorePermit>,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for ResponseBytes<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl ObjectCache {
    /// Returns a response with a stored object or a part of it.
    pub(super) fn reply_with(self: &Arc<Self>, stored: &Arc<StoredObject>) -> Reply {
        let (objects, object) = (Arc::clone(self), Arc::clone(stored));
        let read = move |range: Range<u64>| -> Pieces {
            let (step, end) = (usize::try_from(READ_BYTES).unwrap_or(usize::MAX), range.end);
            let pieces = range.step_by(step).map(move |from| {
                let (objects, object) = (Arc::clone(&objects), Arc::clone(&object));
                let size = READ_BYTES.min(end.saturating_sub(from));
                async move {
                    let read = on_pool(move || object.read(from, size));
                    let bytes = read.await.map_err(io::Error::other)?;
                    Ok::<_, io::Error>(objects.with_permit(bytes).await)
                }
            });
            stream::iter(pieces).buffered(1).boxed()
        };
        Reply::Object {
            content_type: BINARY,
            size: stored.len(),
            e_tag: Some(stored.e_tag().to_owned()),
            read: Box::new(read),
        }
    }

    /// Creates a cache of this many bytes, and a limit on the memory for objects that are encoded at
    /// once.
    pub(super) fn new(bytes: usize, encoding: u64) -> Self {
        let max_encoding_bytes = encoding.clamp(PERMIT_BYTES, 1 << 40);
        let max_response_bytes = u64::try_from(bytes).unwrap_or(u64::MAX).min(1 << 40);
        let semaphore = |bytes| Semaphore::new(steps(bytes).min(Semaphore::MAX_PERMITS));
        Self {
            encoded: ResponseCache::new(bytes, bytes),
            stored: ResponseCache::new(MAX_STORED, MAX_STORED),
            responses: Arc::new(semaphore(max_response_bytes)),
            max_response_bytes,
            encoding: Default::default(),
            any: Mutex::default(),
            max_bytes: bytes.saturating_mul(5) / 8,
            max_encoding_bytes,
            permits: semaphore(max_encoding_bytes),
        }
    }

    /// Returns a file that is kept; `None` if it is not known whether there is one.
    pub(super) fn known(&self, name: &str) -> Option<CachedResponse> {
        self.encoded.get(name).or_else(|| self.stored.get(name))
    }

    /// Returns the bytes of memory for objects that are encoded at once.
    pub(super) fn max_encoding_bytes(&self) -> u64 {
        self.max_encoding_bytes
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

    /// Waits until there are this many bytes of memory to encode an object.
    pub(super) async fn acquire(&self, bytes: u64) -> Option<SemaphorePermit<'_>> {
        let permits = permits(bytes.min(self.max_encoding_bytes));
        // The semaphore is never closed.
        self.permits.acquire_many(permits).await.ok()
    }

    /// Keeps a file, or the fact that it does not exist, and returns it. A large file becomes a
    /// temporary file. Waits until responses have been sent if they hold too many files that are no
    /// longer kept.
    ///
    /// # Errors
    ///
    /// [`LayerError::Temporary`] if a temporary file cannot be written.
    pub(super) async fn put(
        &self,
        name: String,
        bytes: Option<Vec<u8>>,
    ) -> Result<CachedResponse, LayerError> {
        let response = match bytes {
            Some(bytes) if bytes.len() > self.max_bytes => {
                let stored = on_pool(move || {
                    let write = || {
                        let mut file = ObjectWriter::new()?;
                        file.write_all(&bytes)?;
                        file.finish()
                    };
                    write().map_err(LayerError::Temporary)
                });
                return Ok(self.put_stored(name, stored.await?));
            }
            Some(mut bytes) => {
                bytes.shrink_to_fit();
                CachedResponse::Bytes(self.with_permit(bytes).await)
            }
            None => CachedResponse::Nothing,
        };
        self.encoded.put(name, response.clone());
        Ok(response)
    }

    /// Keeps a temporary file and returns it.
    pub(super) fn put_stored(&self, name: String, stored: StoredObject) -> CachedResponse {
        let response = CachedResponse::File(Arc::new(stored));
        self.stored.put(name, response.clone());
        response
    }

    /// Takes the memory of bytes until their last use. Files that are kept make room for them.
    pub(super) async fn with_permit(&self, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        let length = u64::try_from(bytes.as_ref().len()).unwrap_or(u64::MAX);
        // A list of annotations may be larger than all of the memory.
        let permits = permits(length).min(permits(self.max_response_bytes));
        let permit = loop {
            if let Ok(permit) = Arc::clone(&self.responses).try_acquire_many_owned(permits) {
                break Some(permit);
            }
            if !self.encoded.remove_oldest() {
                let responses = Arc::clone(&self.responses);
                // The semaphore is never closed.
                break responses.acquire_many_owned(permits).await.ok();
            }
        };
        Bytes::from_owner(ResponseBytes {
            bytes,
            _permit: permit,
        })
    }
}

fn steps(bytes: u64) -> usize {
    usize::try_from(bytes.div_ceil(PERMIT_BYTES)).unwrap_or(usize::MAX)
}

fn permits(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(PERMIT_BYTES)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    async fn put(cache: &ObjectCache, name: &str, bytes: usize) -> Option<Bytes> {
        let put = cache.put(name.to_owned(), Some(vec![1; bytes]));
        match put.await.unwrap() {
            CachedResponse::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    #[tokio::test]
    async fn responses_hold_the_memory_of_files_that_are_not_kept() {
        let cache = ObjectCache::new(100 << 10, 1 << 20);
        let sent = put(&cache, "a", 60 << 10).await;
        // It is not kept any more, but a response holds it.
        assert!(put(&cache, "b", 60 << 10).now_or_never().is_none());
        assert!(cache.known("a").is_none());
        drop(sent);
        assert!(put(&cache, "b", 60 << 10).await.is_some());
        // Files that no response holds make room.
        assert!(put(&cache, "c", 60 << 10).await.is_some());
        assert!(cache.known("b").is_none() && cache.known("c").is_some());
        // A large one is in a file, which takes no memory.
        let large = cache.put("d".to_owned(), Some(vec![1; 80 << 10])).await;
        assert!(matches!(large, Ok(CachedResponse::File(file)) if file.len() == 80 << 10));
        assert!(cache.known("c").is_some() && cache.known("d").is_some());
    }
}
