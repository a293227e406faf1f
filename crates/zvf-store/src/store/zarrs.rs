//! Stores as storage of zarrs, and storage of zarrs as stores: the only part of the API that names
//! `zarrs_storage`.
#![expect(
    clippy::default_trait_access,
    reason = "types of libraries below object_store"
)]

use core::{error::Error, fmt};
use std::{io, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{
    FutureExt, StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use object_store::{
    CopyOptions, Error as ObjectError, GetOptions, GetRange, GetResult, GetResultPayload,
    ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions,
    PutPayload, PutResult, Result as ObjectResult, path::Path,
};
use zarrs_storage::{
    AsyncListableStorageTraits, AsyncMaybeBytesIterator, AsyncReadableListableStorage,
    AsyncReadableStorageTraits, StorageError, StoreKey, StoreKeys, StoreKeysPrefixes, StorePrefix,
    byte_range::{ByteRange as ZarrsRange, ByteRangeIterator},
};
use zvf_model::key::Key;

use super::{OpenOptions, Store};
use crate::{
    backend::{Backend, BackendProfile},
    io::{ByteRange, ListedFile, Read},
};

/// Most objects that a program of zarrs can list.
const MAX_LISTED: usize = 10_000_000;

/// Sizes of listed objects that are requested at a time.
const CONCURRENT_SIZES: usize = 16;

const NAME: &str = "zarrs";

fn failed(error: impl Error + Send + Sync + 'static) -> StorageError {
    io::Error::other(error).into()
}

fn parse_key(key: &StoreKey) -> Result<Key, StorageError> {
    Key::parse(key.as_str()).map_err(failed)
}

fn parse_prefix(prefix: &StorePrefix) -> Result<Key, StorageError> {
    match prefix.as_str().trim_end_matches('/') {
        "" => Ok(Key::root()),
        path => Key::parse(path).map_err(failed),
    }
}

fn range_of(range: ZarrsRange) -> ByteRange {
    match range {
        ZarrsRange::FromStart(0, None) => ByteRange::Full,
        ZarrsRange::FromStart(start, None) => ByteRange::From(start),
        ZarrsRange::FromStart(start, Some(length)) => {
            ByteRange::Bounded(start..start.saturating_add(length))
        }
        ZarrsRange::Suffix(length) => ByteRange::Suffix(length),
    }
}

/// Reads of zarrs are counted, merged, limited by the budget, and compared with the inventory of a
/// sealed store, as all reads.
///
/// A program without async wraps the store in `zarrs_storage`'s `AsyncToSyncStorageAdapter`.
///
/// ```
/// use zarrs_storage::AsyncReadableStorageTraits;
/// use zvf_store::Store;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = Store::from_memory([("0/cell", b"0123".as_slice())])?;
/// let bytes = AsyncReadableStorageTraits::get(&store, &"0/cell".try_into()?).await?;
/// assert_eq!(bytes.as_deref(), Some(&b"0123"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[async_trait]
impl AsyncReadableStorageTraits for Store {
    async fn get_partial_many<'a>(
        &'a self,
        key: &StoreKey,
        byte_ranges: ByteRangeIterator<'a>,
    ) -> Result<AsyncMaybeBytesIterator<'a>, StorageError> {
        let key = parse_key(key)?;
        let reads: Vec<Read> = byte_ranges
            .map(|range| Read::new(key.clone(), range_of(range)))
            .collect();
        // Empty ranges are read without a request, also those of absent objects.
        if reads.iter().all(|read| read.range.is_empty())
            && self.stat(&key).await.map_err(failed)?.is_none()
        {
            return Ok(None);
        }
        let results = self.read(&reads).await.map_err(failed)?;
        let bytes: Option<Vec<Bytes>> = results.into_iter().collect();
        Ok(bytes.map(|bytes| stream::iter(bytes.into_iter().map(Ok)).boxed()))
    }

    async fn size_key(&self, key: &StoreKey) -> Result<Option<u64>, StorageError> {
        let stat = self.stat(&parse_key(key)?).await.map_err(failed)?;
        Ok(stat.map(|stat| stat.size))
    }

    fn supports_get_partial(&self) -> bool {
        true
    }
}

impl Store {
    async fn listed_below(&self, prefix: &StorePrefix) -> Result<Vec<ListedFile>, StorageError> {
        let prefix = parse_prefix(prefix)?;
        self.list_all(&prefix, MAX_LISTED).await.map_err(failed)
    }
}

/// Files of transactions are not listed.
#[async_trait]
impl AsyncListableStorageTraits for Store {
    async fn list(&self) -> Result<StoreKeys, StorageError> {
        self.list_prefix(&StorePrefix::root()).await
    }

    async fn list_prefix(&self, prefix: &StorePrefix) -> Result<StoreKeys, StorageError> {
        let files = self.listed_below(prefix).await?;
        let keys = files
            .iter()
            .map(|file| StoreKey::new(format!("{prefix}{}", file.name)));
        Ok(keys.collect::<Result<_, _>>()?)
    }

    async fn list_dir(&self, prefix: &StorePrefix) -> Result<StoreKeysPrefixes, StorageError> {
        let folder = parse_prefix(prefix)?;
        let listing = Self::list(self, &folder, MAX_LISTED)
            .await
            .map_err(failed)?;
        let files = listing.files.iter();
        let keys = files.map(|file| StoreKey::new(format!("{prefix}{}", file.name)));
        let folders = listing.folders.iter();
        let prefixes = folders.map(|folder| StorePrefix::new(format!("{prefix}{folder}/")));
        Ok(StoreKeysPrefixes::new(
            keys.collect::<Result<_, _>>()?,
            prefixes.collect::<Result<_, _>>()?,
        ))
    }

    async fn size_prefix(&self, prefix: &StorePrefix) -> Result<u64, StorageError> {
        let files = self.listed_below(prefix).await?;
        let sizes = files.iter().map(|file| file.size);
        Ok(sizes.fold(0, u64::saturating_add))
    }
}

impl OpenOptions {
    /// Opens the store that any storage of zarrs holds, such as `zarrs_opendal` or
    /// `zarrs_icechunk`, to read it.
    ///
    /// Its requests count as round trips over a network, as those of
    /// [`from_object_store`](Self::from_object_store). Storage without async is wrapped in
    /// `zarrs_storage`'s `SyncToAsyncStorageAdapter`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use zvf_store::OpenOptions;
    ///
    /// let storage = zarrs_storage::store::AsyncMemoryStore::new();
    /// let store = OpenOptions::new().from_zarrs_storage(Arc::new(storage));
    /// assert_eq!(store.to_string(), "zarrs");
    /// ```
    #[must_use]
    pub fn from_zarrs_storage(&self, storage: AsyncReadableListableStorage) -> Store {
        let backend = Backend::Objects(Arc::new(ZarrsObjects(storage)));
        Store::new(
            NAME.to_owned(),
            backend,
            Path::default(),
            None,
            BackendProfile::NETWORK,
            self,
        )
    }
}

/// Storage of zarrs as an object store.
struct ZarrsObjects(AsyncReadableListableStorage);

impl fmt::Debug for ZarrsObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

impl fmt::Display for ZarrsObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

fn generic(error: impl Error + Send + Sync + 'static) -> ObjectError {
    ObjectError::Generic {
        store: NAME,
        source: Box::new(error),
    }
}

fn absent(path: &str) -> ObjectError {
    ObjectError::NotFound {
        path: path.to_owned(),
        source: "the storage does not have this key".into(),
    }
}

fn read_only() -> ObjectError {
    ObjectError::NotSupported {
        source: "storage of zarrs is only read".into(),
    }
}

fn prefix_of(path: Option<&Path>) -> ObjectResult<StorePrefix> {
    match path.map(Path::as_ref).unwrap_or_default() {
        "" => Ok(StorePrefix::root()),
        path => StorePrefix::new(format!("{path}/")).map_err(generic),
    }
}

/// Asks for the size of an object. Storage of zarrs knows no versions and no times.
async fn meta_of(
    storage: &AsyncReadableListableStorage,
    key: &StoreKey,
) -> ObjectResult<ObjectMeta> {
    let size = storage.size_key(key).await.map_err(generic)?;
    Ok(ObjectMeta {
        location: Path::parse(key.as_str())?,
        last_modified: Default::default(),
        size: size.ok_or_else(|| absent(key.as_str()))?,
        e_tag: None,
        version: None,
    })
}

/// Returns the objects of keys that still exist. Names that are not keys cannot be requested.
fn metas(
    storage: AsyncReadableListableStorage,
    keys: Vec<StoreKey>,
) -> BoxStream<'static, ObjectResult<ObjectMeta>> {
    stream::iter(keys)
        .map(move |key| {
            let storage = Arc::clone(&storage);
            async move { meta_of(&storage, &key).await }
        })
        .buffered(CONCURRENT_SIZES)
        .filter(|meta| {
            let is_gone = matches!(
                meta,
                Err(ObjectError::NotFound { .. } | ObjectError::InvalidPath { .. })
            );
            core::future::ready(!is_gone)
        })
        .boxed()
}

async fn list_below(
    storage: AsyncReadableListableStorage,
    prefix: ObjectResult<StorePrefix>,
) -> ObjectResult<BoxStream<'static, ObjectResult<ObjectMeta>>> {
    let keys = storage.list_prefix(&prefix?).await.map_err(generic)?;
    Ok(metas(storage, keys))
}

#[async_trait]
impl ObjectStore for ZarrsObjects {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> ObjectResult<GetResult> {
        let key = StoreKey::new(location.as_ref()).map_err(generic)?;
        let meta = meta_of(&self.0, &key).await?;
        options.check_preconditions(&meta)?;
        let range = match options.range {
            _ if options.head => 0..0,
            None => 0..meta.size,
            Some(range) => GetRange::as_range(&range, meta.size).map_err(generic)?,
        };
        let bytes = if range.is_empty() {
            Bytes::new()
        } else {
            let range = ZarrsRange::new(range.clone());
            let bytes = self.0.get_partial(&key, range).await.map_err(generic)?;
            bytes.ok_or_else(|| absent(location.as_ref()))?
        };
        Ok(GetResult {
            payload: GetResultPayload::Stream(stream::once(async { Ok(bytes) }).boxed()),
            meta,
            range,
            attributes: Default::default(),
            extensions: Default::default(),
        })
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, ObjectResult<ObjectMeta>> {
        let listed = list_below(Arc::clone(&self.0), prefix_of(prefix));
        listed.into_stream().try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> ObjectResult<ListResult> {
        let prefix = prefix_of(prefix)?;
        let listed = self.0.list_dir(&prefix).await.map_err(generic)?;
        let prefixes = listed.prefixes().iter();
        let folders = prefixes.filter_map(|prefix| Path::parse(prefix.as_str()).ok());
        let objects = metas(Arc::clone(&self.0), listed.keys().clone());
        Ok(ListResult {
            common_prefixes: folders.collect(),
            objects: objects.try_collect().await?,
            extensions: Default::default(),
        })
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> ObjectResult<PutResult> {
        Err(read_only())
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> ObjectResult<Box<dyn MultipartUpload>> {
        Err(read_only())
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, ObjectResult<Path>>,
    ) -> BoxStream<'static, ObjectResult<Path>> {
        locations.map(|_| Err(read_only())).boxed()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> ObjectResult<()> {
        Err(read_only())
    }
}
