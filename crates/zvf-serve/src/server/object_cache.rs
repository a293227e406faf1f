//! Encoded objects, which are computed once for the requests that wait for them.

use bytes::Bytes;
use tokio::sync::{Mutex, MutexGuard};

use super::cache::{AnswerCache, KnownAnswer};
use crate::layers::LayerError;

/// Bytes of encoded objects that are kept.
const KEPT: usize = 96 << 20;
/// Largest encoded object: one that is not kept would be encoded for each request.
const MOST_BYTES: usize = 60 << 20;
/// Objects that are encoded at once.
const AT_ONCE: usize = 2;

/// Encoded objects of a layer.
#[derive(Debug)]
pub(super) struct ObjectCache {
    encoded: AnswerCache,
    /// Held while an object is encoded.
    encoding: [Mutex<()>; AT_ONCE],
    /// Stands for the locks if there are none.
    any: Mutex<()>,
}

impl ObjectCache {
    pub(super) fn new() -> Self {
        Self {
            encoded: AnswerCache::new(KEPT, MOST_BYTES),
            encoding: Default::default(),
            any: Mutex::default(),
        }
    }

    /// Returns a file that is kept; `None` if it is not known whether there is one.
    pub(super) fn known(&self, name: &str) -> Option<KnownAnswer> {
        self.encoded.get(name)
    }

    /// Waits until no other request encodes this object.
    pub(super) async fn lock(&self, id: u64) -> MutexGuard<'_, ()> {
        let place = usize::try_from(id).unwrap_or(0).checked_rem(AT_ONCE);
        let lock = self.encoding.get(place.unwrap_or(0));
        lock.unwrap_or(&self.any).lock().await
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
        if bytes.as_ref().is_some_and(|bytes| bytes.len() > MOST_BYTES) {
            return Err(LayerError::TooLarge(what, MOST_BYTES));
        }
        self.encoded.put(name, bytes.map(Bytes::from).into());
        Ok(())
    }
}
