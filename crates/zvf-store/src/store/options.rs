//! Options of a store, and opening it.

use core::{error::Error, time::Duration};
use std::{collections::BTreeMap, path::Path as FilePath, sync::Arc};

use bytes::Bytes;
use futures_util::FutureExt;
#[cfg(feature = "local")]
use object_store::local::LocalFileSystem;
use object_store::{ObjectStoreExt, memory::InMemory, path::Path};
use zvf_model::key::Key;

use super::{
    Store,
    file_write::sync_folder,
    machine_memory::default_cache_bytes,
    write_hook::{HookFn, WriteHook},
};
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http"))]
use crate::backend::{NetworkOptions, connect};
use crate::{
    backend::{Address, Backend, BackendProfile, OpenError, Scheme, SimulatedNetwork},
    io::MergeLimits,
};

/// Options for opening a store.
///
/// ```
/// use zvf_store::OpenOptions;
///
/// let options = OpenOptions::new().anonymous(true).budget(256 << 20);
/// let store = options.open("memory:")?;
/// assert_eq!(store.budget(), 256 << 20);
/// # Ok::<(), zvf_store::OpenError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub struct OpenOptions {
    /// Sends no credentials, for public buckets. Default: `false`.
    pub anonymous: bool,
    /// Maximum number of bytes that one call may read and one chunk may decode to. Default: 1 GiB.
    pub budget: u64,
    /// Size of the cache of decoded cells in bytes; 0 turns it off. Default: a sixteenth of the memory
    /// that the process may use, at least 64 MiB and at most 1 GiB; 64 MiB where this memory is
    /// unknown.
    ///
    /// The store itself caches nothing. Readers that query a store pass this to
    /// [`CellReader::with_cache`](crate::CellReader::with_cache).
    pub cache: u64,
    /// Maximum number of concurrent requests. Default: depends on the kind of store.
    pub concurrency: Option<usize>,
    /// Syncs files and folders to the disk before a write to a folder counts as done. Default:
    /// `false`.
    ///
    /// A killed process loses nothing either way. Without this option a power failure may lose the
    /// last transactions and the objects that they replaced. Buckets are always durable.
    pub durable: bool,
    /// Behaviour of an open dataset when others change the store.
    pub follow: Follow,
    /// Limits within which ranges are merged. Default: depends on the kind of store.
    pub merge_limits: Option<MergeLimits>,
    /// Takes the nodes of a store over the network from the copy in its root, if there is one.
    /// Default: `true`. Turn it off for a store that was changed by a program that does not update
    /// the copy.
    pub node_copy: bool,
    /// Options of the network store by their `object_store` names, such as `aws_endpoint` or
    /// `allow_http`. They override the environment. Folders, zip files and memory have no options:
    /// opening them fails with [`OpenError::Option`].
    pub options: BTreeMap<String, String>,
    /// Records read requests for [`Store::take_request_log`]. Default: `false`.
    pub record_requests: bool,
    /// Maximum number of retries of a network request when the server fails, throttles, breaks the
    /// connection or sends a malformed response. Pauses double from 50 ms up to 5 s. Default: 5.
    pub retries: usize,
    /// Time after the start of a request within which it is retried. Together with
    /// [`timeout`](Self::timeout) this bounds the wait for a failing server. Default: one minute.
    pub retry_timeout: Duration,
    /// Checks all reads against the inventory of a sealed store. Default: `true`. Turn it off to
    /// read a store that another program changed after it was sealed.
    pub seal: bool,
    /// Age at which an object over the network cannot belong to a transaction that was committed
    /// after the store was opened. Default: one hour.
    ///
    /// The age is the difference between the clock of this machine and the time of the last change
    /// that the server reports, so it must exceed the error of both clocks.
    pub settled_after: Option<Duration>,
    /// Checks after the reads of a query that the store was not changed meanwhile. Default: `true`.
    ///
    /// In a folder this costs some microseconds. Over the network it takes a request per query as
    /// long as the objects that it read are [recent](Self::settled_after). Turn it off for a store
    /// that never changes.
    pub snapshots: bool,
    /// Timeout of one network request, including its body. A body that takes longer is resumed, as
    /// often as [`retries`](Self::retries) allows. Default: 30 s.
    pub timeout: Option<Duration>,
    pub(super) write_hook: WriteHook,
    pub(super) simulated_network: Option<SimulatedNetwork>,
}

/// Behaviour of an open dataset when others change the store.
///
/// A query never mixes two states of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Follow {
    /// Queries fail once the state that was opened is gone.
    Never,
    /// Queries continue with the new state once the state that was opened is gone. Until then,
    /// cached cells serve queries of the old one.
    #[default]
    WhenGone,
    /// Every query begins at the present state.
    Always,
}

impl Default for OpenOptions {
    /// Returns options with a budget of 1 GiB for each call, a cell cache of a sixteenth of the
    /// memory, five retries within a minute, and the node copy in use.
    fn default() -> Self {
        Self {
            anonymous: false,
            budget: 1 << 30,
            cache: default_cache_bytes(),
            concurrency: None,
            durable: false,
            follow: Follow::default(),
            merge_limits: None,
            node_copy: true,
            options: BTreeMap::new(),
            record_requests: false,
            retries: 5,
            retry_timeout: Duration::from_mins(1),
            seal: true,
            settled_after: None,
            snapshots: true,
            timeout: None,
            write_hook: WriteHook::default(),
            simulated_network: None,
        }
    }
}

impl OpenOptions {
    /// Returns the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    zvf_model::setters! {
        anonymous: bool,
        budget: u64,
        cache: u64,
        concurrency: usize,
        durable: bool,
        follow: Follow,
        merge_limits: MergeLimits,
        node_copy: bool,
        record_requests: bool,
        retries: usize,
        retry_timeout: Duration,
        seal: bool,
        settled_after: Duration,
        snapshots: bool,
        timeout: Duration,
    }

    /// Adds one of the [`options`](Self#structfield.options) of the network store.
    #[must_use]
    pub fn option(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.insert(name.into(), value.into());
        self
    }

    /// Sets a callback for crash tests, called before and after each operation that changes the
    /// store, with the name of the operation and the key.
    ///
    /// Ending the process or panicking in the callback simulates a crash. Operations are `put`,
    /// `put-new`, `put-over`, `rename` and `delete`.
    #[doc(hidden)]
    #[must_use]
    pub fn write_hook(mut self, hook: Arc<HookFn>) -> Self {
        self.write_hook = WriteHook::new(hook);
        self
    }

    /// Reads a folder or memory as if it were a bucket behind a network, for tests and
    /// measurements.
    #[doc(hidden)]
    #[must_use]
    pub fn simulate_network(mut self, network: SimulatedNetwork) -> Self {
        self.simulated_network = Some(network);
        self
    }

    /// Opens the store at `address` for writing, as [`open`](Self::open) does. A folder is created
    /// if it does not exist, with its parents.
    ///
    /// # Errors
    ///
    /// [`OpenError`]; [`OpenError::ReadOnly`] for web servers and zip files.
    pub fn create(&self, address: &str) -> Result<Store, OpenError> {
        let read_only = || OpenError::ReadOnly(address.to_owned());
        match Address::parse(address)? {
            Address::Network(Scheme::Http, _) => Err(read_only()),
            Address::Memory | Address::Network(..) => self.open(address),
            Address::Path(path) => {
                self.check_local()?;
                if is_zip(&path) && !path.is_dir() {
                    return Err(read_only());
                }
                if path.is_file() {
                    return Err(OpenError::NotAFolder(address.to_owned()));
                }
                let made = self.make_folder(&path);
                made.map_err(|source| OpenError::Io {
                    path: address.to_owned(),
                    source,
                })?;
                self.open_path(address, &path)
            }
        }
    }

    /// Makes a folder and those above it, and syncs what was made if writes are durable.
    fn make_folder(&self, path: &FilePath) -> std::io::Result<()> {
        let new: Vec<&FilePath> = path
            .ancestors()
            .take_while(|folder| !folder.exists())
            .collect();
        std::fs::create_dir_all(path)?;
        let parents = new.into_iter().filter_map(FilePath::parent);
        for parent in parents.filter(|_| self.durable) {
            sync_folder(parent)?;
        }
        Ok(())
    }

    /// Opens the store at `address`: a path, or a URL with the scheme `file`, `memory`, `http`,
    /// `https`, `s3`, `gs` or `az`. A path to a `.zip` file is a store of its entries.
    ///
    /// Credentials, regions and endpoints of buckets come from the environment, under the names of
    /// `object_store` (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, `AZURE_STORAGE_ACCOUNT_NAME`,
    /// `GOOGLE_SERVICE_ACCOUNT`, …), and otherwise from the metadata service of a cloud machine.
    /// Profiles in `~/.aws` are not read. Opening makes no network request.
    ///
    /// # Errors
    ///
    /// [`OpenError`]; [`OpenError::NotFound`] for a path that does not exist.
    pub fn open(&self, address: &str) -> Result<Store, OpenError> {
        let address_kind = Address::parse(address)?;
        if !matches!(address_kind, Address::Network(..)) {
            self.check_local()?;
        }
        match address_kind {
            Address::Memory => self.from_memory(core::iter::empty::<(String, Bytes)>()),
            Address::Path(path) => self.open_path(address, &path),
            Address::Network(scheme, url) => {
                let (objects, root) = self.connect(scheme, &url)?;
                let backend = Backend::Objects(objects);
                let name = address.to_owned();
                let profile = BackendProfile::NETWORK;
                Ok(Store::new(name, backend, root, None, profile, self))
            }
        }
    }

    /// Creates a store in memory with the given objects.
    ///
    /// # Errors
    ///
    /// [`OpenError::Configuration`] for an invalid key.
    pub fn from_memory<K, V>(
        &self,
        objects: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Store, OpenError>
    where
        K: AsRef<str>,
        V: Into<Bytes>,
    {
        let memory = InMemory::new();
        for (key, bytes) in objects {
            let bad = |source: Box<dyn Error + Send + Sync>| OpenError::Configuration {
                address: format!("memory:{}", key.as_ref()),
                source,
            };
            let checked = Key::parse(key.as_ref()).map_err(|e| bad(Box::new(e)))?;
            let path = Path::parse(&checked).map_err(|e| bad(Box::new(e)))?;
            put(&memory, &path, bytes.into());
        }
        let backend = Backend::Objects(Arc::new(memory));
        let name = "memory:".to_owned();
        Ok(Store::new(
            name,
            backend,
            Path::default(),
            None,
            BackendProfile::MEMORY,
            self,
        ))
    }

    #[cfg(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http"))]
    fn connect(
        &self,
        scheme: Scheme,
        url: &url::Url,
    ) -> Result<(Arc<dyn object_store::ObjectStore>, Path), OpenError> {
        let options = NetworkOptions {
            anonymous: self.anonymous,
            retries: self.retries,
            retry_timeout: self.retry_timeout,
            timeout: self.timeout,
            named: self.options.clone(),
        };
        connect(&options, scheme, url)
    }

    #[cfg(not(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http")))]
    #[expect(
        clippy::unused_self,
        reason = "the signature does not depend on features"
    )]
    fn connect(
        &self,
        scheme: Scheme,
        url: &url::Url,
    ) -> Result<(Arc<dyn object_store::ObjectStore>, Path), OpenError> {
        Err(OpenError::Feature {
            address: url.to_string(),
            feature: scheme.feature(),
        })
    }

    /// Checks that no option of a network store is set.
    fn check_local(&self) -> Result<(), OpenError> {
        match self.options.keys().next() {
            Some(name) => Err(OpenError::Option(name.clone())),
            None => Ok(()),
        }
    }

    fn open_path(&self, address: &str, path: &FilePath) -> Result<Store, OpenError> {
        let io = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::NotFound => OpenError::NotFound(address.to_owned()),
            _ => OpenError::Io {
                path: address.to_owned(),
                source,
            },
        };
        let found = std::fs::metadata(path).map_err(io)?;
        if found.is_file() && is_zip(path) {
            return self.open_zip(address, path);
        }
        if !found.is_dir() {
            return Err(OpenError::NotAFolder(address.to_owned()));
        }
        self.open_folder(address, path)
    }

    #[cfg(feature = "local")]
    fn open_folder(&self, address: &str, path: &FilePath) -> Result<Store, OpenError> {
        // Absolute, so that a later change of the working folder does not matter.
        let folder = std::fs::canonicalize(path).map_err(|source| OpenError::Io {
            path: address.to_owned(),
            source,
        })?;
        let files =
            LocalFileSystem::new_with_prefix(path).map_err(|source| OpenError::Configuration {
                address: address.to_owned(),
                source: Box::new(source),
            })?;
        // Empty folders are removed, so that a folder without objects does not exist, as in a bucket.
        let files = files.with_automatic_cleanup(true).with_fsync(self.durable);
        let backend = Backend::Objects(Arc::new(files));
        let name = address.to_owned();
        Ok(Store::new(
            name,
            backend,
            Path::default(),
            Some(folder),
            BackendProfile::FILES,
            self,
        ))
    }

    #[cfg(not(feature = "local"))]
    #[expect(
        clippy::unused_self,
        reason = "the signature does not depend on features"
    )]
    fn open_folder(&self, address: &str, _: &FilePath) -> Result<Store, OpenError> {
        Err(OpenError::Feature {
            address: address.to_owned(),
            feature: "local",
        })
    }

    #[cfg(feature = "zip")]
    fn open_zip(&self, address: &str, path: &FilePath) -> Result<Store, OpenError> {
        let archive = crate::backend::ZipArchive::open(path)?;
        let backend = Backend::Zip(Arc::new(archive));
        let name = address.to_owned();
        Ok(Store::new(
            name,
            backend,
            Path::default(),
            None,
            BackendProfile::FILES,
            self,
        ))
    }

    #[cfg(not(feature = "zip"))]
    #[expect(
        clippy::unused_self,
        reason = "the signature does not depend on features"
    )]
    fn open_zip(&self, address: &str, _: &FilePath) -> Result<Store, OpenError> {
        Err(OpenError::Feature {
            address: address.to_owned(),
            feature: "zip",
        })
    }
}

fn is_zip(path: &FilePath) -> bool {
    path.extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("zip"))
}

/// Puts an object into memory, which completes at once.
fn put(memory: &InMemory, path: &Path, bytes: Bytes) {
    let done = memory.put(path, bytes.into()).now_or_never();
    debug_assert!(
        done.is_some_and(|done| done.is_ok()),
        "a put into memory must complete at once"
    );
}

impl Store {
    /// Opens a store with the default [`OpenOptions`].
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use zvf_model::key::Key;
    /// use zvf_store::{Read, Store};
    ///
    /// let store = Store::open("path/to/store.zv")?;
    /// let root = Key::root().metadata()?;
    /// if let Some(metadata) = store.read_one(Read::full(root)).await? {
    ///     println!("{} bytes of metadata", metadata.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`OpenError`], as [`OpenOptions::open`].
    pub fn open(address: &str) -> Result<Self, OpenError> {
        OpenOptions::new().open(address)
    }

    /// Opens a store for writing with the default [`OpenOptions`].
    ///
    /// # Errors
    ///
    /// [`OpenError`], as [`OpenOptions::create`].
    pub fn create(address: &str) -> Result<Self, OpenError> {
        OpenOptions::new().create(address)
    }

    /// Creates a store in memory with the given objects and the default [`OpenOptions`].
    ///
    /// # Errors
    ///
    /// [`OpenError::Configuration`] for an invalid key.
    pub fn from_memory<K, V>(objects: impl IntoIterator<Item = (K, V)>) -> Result<Self, OpenError>
    where
        K: AsRef<str>,
        V: Into<Bytes>,
    {
        OpenOptions::new().from_memory(objects)
    }
}
