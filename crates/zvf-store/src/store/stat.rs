//! Size and version of an object, without its bytes.

use object_store::{Error as Failure, ObjectStoreExt, path::Path};
use zvf_model::key::Key;

use super::Store;
use crate::{
    backend::{gave_up_early, is_below_file},
    io::{Read, ReadError},
};

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
    /// # Errors
    ///
    /// [`ReadError`] if the request fails.
    pub async fn stat(&self, key: &Key) -> Result<Option<ObjectStat>, ReadError> {
        let Some(objects) = self.objects() else {
            let bytes = self.read_one(Read::full(key.clone())).await?;
            return Ok(bytes.map(|bytes| ObjectStat {
                size: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
                e_tag: None,
            }));
        };
        let read = &Read::bounded(key.clone(), 0..0);
        self.recorder().request(read);
        let path =
            Path::parse(key).map_err(|source| super::fetch::read_error(read, source.into()))?;
        let path: Path = self.root().parts().chain(path.parts()).collect();
        let head = || objects.head(&path);
        match self.retry_policy().run(head, gave_up_early).await {
            Ok(meta) => Ok(Some(ObjectStat {
                size: meta.size,
                e_tag: meta.e_tag,
            })),
            Err(Failure::NotFound { .. }) => Ok(None),
            Err(failure) if is_below_file(&failure) => Ok(None),
            Err(failure) => Err(super::fetch::read_error(read, failure)),
        }
    }
}
