//! Size and version of an object, without its bytes.

use zvf_model::key::Key;

use super::Store;
use crate::io::{Read, ReadError};

/// Size and version of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectStat {
    /// Size in bytes.
    pub size: u64,
    /// The tag that the store gives to this version of the object, if it has such tags.
    pub e_tag: Option<String>,
}

impl Store {
    /// Returns the size and the version of an object in one request; `None` if it is absent. An
    /// object of a zip file is read.
    ///
    /// While a transaction is being applied, this is the object that reads return. In a sealed
    /// store, the size is compared with the inventory.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the request fails; [`ReadError::Sealed`] if the inventory has another size,
    /// or either of them lacks the object.
    pub async fn stat(&self, key: &Key) -> Result<Option<ObjectStat>, ReadError> {
        if self.objects().is_none() {
            let bytes = self.read_one(Read::full(key.clone())).await?;
            return Ok(bytes.map(|bytes| ObjectStat {
                size: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
                e_tag: None,
            }));
        }
        let read = Read::bounded(key.clone(), 0..0);
        let mut found = None;
        for candidate in self.candidates(&read).into_iter().flatten() {
            found = self.fetch_meta(&candidate.key).await?;
            // A staged object disappears once it is applied; then the object is at its own key.
            if found.is_some() {
                break;
            }
        }
        let size = found.as_ref().map(|meta| meta.size);
        Box::pin(self.check_size(key, size)).await?;
        Ok(found.map(|meta| ObjectStat {
            size: meta.size,
            e_tag: meta.e_tag,
        }))
    }
}
