//! Opening a store.

use core::{error::Error, time::Duration};
use std::{path::Path as FilePath, sync::Arc};

use bytes::Bytes;
use futures_util::FutureExt;
use object_store::{
    ObjectStore, ObjectStoreExt, local::LocalFileSystem, memory::InMemory, path::Path,
};
use url::Url;
use zvf_model::key::Key;

use crate::{
    address::{Address, Scheme},
    coalesce::MergeLimits,
    distance::SimulatedNetwork,
    store::{Backend, Store, Tuning},
    write::{Called, Hook},
};

/// Why a store cannot be opened. No request was made: what the network says
/// is seen by the first read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The text is no address of a store.
    #[error("{0:?} is not the address of a store")]
    Address(String),
    /// A scheme nobody reads.
    #[error(
        "addresses with {0:?} are not supported; paths, file, memory, http, https, s3, gs and az are"
    )]
    Scheme(String),
    /// This build leaves out what it takes.
    #[error("{address} needs the feature {feature:?} of zvf-store")]
    Feature {
        /// What was to be opened.
        address: String,
        /// The cargo feature that reads it.
        feature: &'static str,
    },
    /// There is nothing at this path.
    #[error("{0} does not exist")]
    NotFound(String),
    /// The path is a file, and not a zip archive by name.
    #[error("{0} is neither a folder nor a zip file")]
    NotAFolder(String),
    /// The path exists but cannot be opened.
    #[error("{path} cannot be opened")]
    Io {
        /// The path.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The zip file's directory is damaged.
    #[error("{path} is a damaged zip file")]
    Zip {
        /// The path.
        path: String,
        /// What is wrong with it.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A kind of store that nothing can be written to.
    #[error("{0} can only be read: writing needs a folder, a bucket or memory")]
    ReadOnly(String),
    /// An option that this kind of store does not know.
    #[error("option {0:?} is not known")]
    Option(String),
    /// The address, the options and the environment together do not make a store.
    #[error("{address} cannot be configured")]
    Configuration {
        /// What was to be opened.
        address: String,
        /// What is missing or contradicts.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// How to open a store.
///
/// ```
/// use zvf_store::OpenOptions;
///
/// let options = OpenOptions::default().anonymous(true).budget(256 << 20);
/// let store = options.open("memory:")?;
/// assert_eq!(store.budget(), 256 << 20);
/// # Ok::<(), zvf_store::OpenError>(())
/// ```
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct OpenOptions {
    pub(crate) anonymous: bool,
    pub(crate) budget: u64,
    pub(crate) concurrency: Option<usize>,
    pub(crate) merge: Option<MergeLimits>,
    pub(crate) recording: bool,
    pub(crate) retries: usize,
    pub(crate) retry_timeout: Duration,
    pub(crate) timeout: Option<Duration>,
    pub(crate) options: Vec<(String, String)>,
    pub(crate) durable: bool,
    pub(crate) hook: Hook,
    pub(crate) distance: Option<SimulatedNetwork>,
    pub(crate) node_copy: bool,
    pub(crate) cache: u64,
}

impl Default for OpenOptions {
    /// A budget of 1 GiB for each call, five retries within a minute, 64 MiB for cells that are
    /// kept, no log.
    fn default() -> Self {
        Self {
            anonymous: false,
            budget: 1 << 30,
            concurrency: None,
            merge: None,
            recording: false,
            retries: 5,
            retry_timeout: Duration::from_mins(1),
            timeout: None,
            options: Vec::new(),
            durable: false,
            hook: Hook::default(),
            distance: None,
            node_copy: true,
            cache: 64 << 20,
        }
    }
}

impl OpenOptions {
    /// Returns the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends no credentials: for public buckets.
    #[must_use]
    pub fn anonymous(mut self, anonymous: bool) -> Self {
        self.anonymous = anonymous;
        self
    }

    /// The most bytes one call may read, and one chunk may decode to.
    #[must_use]
    pub fn budget(mut self, bytes: u64) -> Self {
        self.budget = bytes;
        self
    }

    /// How many requests may be on their way at once, instead of what suits
    /// the kind of store.
    #[must_use]
    pub fn concurrency(mut self, requests: usize) -> Self {
        self.concurrency = Some(requests);
        self
    }

    /// When ranges are merged, instead of what suits the kind of store.
    #[must_use]
    pub fn merge_limits(mut self, limits: MergeLimits) -> Self {
        self.merge = Some(limits);
        self
    }

    /// How much memory cells may take that were read, for whoever asks again; none with 0.
    /// Those who open a store to query it keep them.
    #[must_use]
    pub fn cache(mut self, bytes: u64) -> Self {
        self.cache = bytes;
        self
    }

    /// What [`cache`](Self::cache) says.
    pub fn cache_bytes(&self) -> u64 {
        self.cache
    }

    /// Keeps a log of requests for [`Store::take_request_log`].
    #[must_use]
    pub fn record_requests(mut self, recording: bool) -> Self {
        self.recording = recording;
        self
    }

    /// How often a request over the network is repeated when the server fails,
    /// asks to slow down, breaks the connection, or answers something else. The
    /// pauses double from 50 ms up to 5 s.
    #[must_use]
    pub fn retries(mut self, retries: usize) -> Self {
        self.retries = retries;
        self
    }

    /// How long after its start a request is still repeated. With
    /// [`timeout`](Self::timeout) this bounds how long a failing server is waited
    /// for.
    #[must_use]
    pub fn retry_timeout(mut self, timeout: Duration) -> Self {
        self.retry_timeout = timeout;
        self
    }

    /// How long one request over the network may take, body included; 30 s when
    /// nothing else is said. A body that takes longer goes on where it was, as
    /// often as [`retries`](Self::retries) allows.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// An option of the network store by the name its users know, such as
    /// `aws_endpoint` or `allow_http`; it goes before the environment.
    #[must_use]
    pub fn option(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.push((name.into(), value.into()));
        self
    }

    /// Whether what is written to a folder is on the disk before it counts as
    /// written, files and folders both. Off at first: a killed process loses
    /// nothing either way, but without this a power cut may lose the last
    /// transactions, and then also what they replaced. Buckets always are.
    #[must_use]
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }

    /// Whether nodes of a store over the network are taken from the copy of them in the
    /// root, where there is one. Without, each is read: for stores that were changed by a
    /// program which does not keep the copy up.
    #[must_use]
    pub fn node_copy(mut self, uses: bool) -> Self {
        self.node_copy = uses;
        self
    }

    /// For tests of crashes: called with the name of the operation and the key
    /// before each one that changes the store, and again after it. A process
    /// that ends itself in there, or a panic, is a crash at that place.
    ///
    /// Operations are `put`, `put-new`, `put-over`, `rename` and `delete`.
    #[doc(hidden)]
    #[must_use]
    pub fn write_hook(mut self, hook: Arc<Called>) -> Self {
        self.hook = Hook::new(hook);
        self
    }

    /// For tests and measurements: a folder or memory, read as if it were a bucket so far
    /// away.
    #[doc(hidden)]
    #[must_use]
    pub fn simulate_network(mut self, distance: SimulatedNetwork) -> Self {
        self.distance = Some(distance);
        self
    }

    /// Opens the store at `address` to write to it, as [`open`](Self::open);
    /// a folder that is not there is made, with those around it.
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
                if is_zip(&path) && !path.is_dir() {
                    return Err(read_only());
                }
                if path.is_file() {
                    return Err(OpenError::NotAFolder(address.to_owned()));
                }
                let made = std::fs::create_dir_all(&path);
                made.map_err(|source| OpenError::Io {
                    path: address.to_owned(),
                    source,
                })?;
                self.open_path(address, &path)
            }
        }
    }

    /// Opens the store at `address`: a path, or a URL with `file`, `memory`,
    /// `http`, `https`, `s3`, `gs` or `az`. A path to a `.zip` file is a store
    /// of its entries.
    ///
    /// Credentials, regions and endpoints of buckets come from the environment,
    /// with the names `object_store` gives them (`AWS_ACCESS_KEY_ID`,
    /// `AWS_ENDPOINT_URL`, `AZURE_STORAGE_ACCOUNT_NAME`, `GOOGLE_SERVICE_ACCOUNT`,
    /// …), then from the machine where it is one of a cloud. Profiles in
    /// `~/.aws` are not read. Nothing is asked of the network yet.
    ///
    /// # Errors
    ///
    /// [`OpenError`], for a path also when nothing is there.
    pub fn open(&self, address: &str) -> Result<Store, OpenError> {
        match Address::parse(address)? {
            Address::Memory => self.from_memory(core::iter::empty::<(String, Bytes)>()),
            Address::Path(path) => self.open_path(address, &path),
            Address::Network(scheme, url) => {
                let (objects, root) = self.connect(scheme, &url)?;
                let backend = Backend::Objects(objects);
                let name = address.to_owned();
                let tuning = Tuning::NETWORK;
                Ok(Store::new(name, backend, root, None, tuning, self))
            }
        }
    }

    /// A store of objects at hand.
    ///
    /// # Errors
    ///
    /// [`OpenError::Configuration`] when a key is none.
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
            Tuning::MEMORY,
            self,
        ))
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
        // Whatever the working folder becomes.
        let folder = std::fs::canonicalize(path).map_err(io)?;
        let files = LocalFileSystem::new_with_prefix(path);
        let files = files.map_err(|source| OpenError::Configuration {
            address: address.to_owned(),
            source: Box::new(source),
        })?;
        // A folder without objects is none in a bucket either.
        let files = files.with_automatic_cleanup(true).with_fsync(self.durable);
        let backend = Backend::Objects(Arc::new(files));
        let name = address.to_owned();
        Ok(Store::new(
            name,
            backend,
            Path::default(),
            Some(folder),
            Tuning::FILES,
            self,
        ))
    }

    #[cfg(feature = "zip")]
    fn open_zip(&self, address: &str, path: &FilePath) -> Result<Store, OpenError> {
        let archive = crate::archive::Archive::open(path)?;
        let backend = Backend::Zip(Arc::new(archive));
        let name = address.to_owned();
        Ok(Store::new(
            name,
            backend,
            Path::default(),
            None,
            Tuning::FILES,
            self,
        ))
    }

    #[cfg(not(feature = "zip"))]
    #[expect(clippy::unused_self, reason = "as with the feature")]
    fn open_zip(&self, address: &str, _: &FilePath) -> Result<Store, OpenError> {
        Err(OpenError::Feature {
            address: address.to_owned(),
            feature: "zip",
        })
    }

    /// The network store a URL names, and the place in it.
    #[cfg(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http"))]
    fn connect(
        &self,
        scheme: Scheme,
        url: &Url,
    ) -> Result<(Arc<dyn ObjectStore>, Path), OpenError> {
        let objects = self.build(scheme, url)?;
        let parsed = object_store::ObjectStoreScheme::parse(url);
        let (_, root) = parsed.map_err(|source| OpenError::Configuration {
            address: url.to_string(),
            source: Box::new(source),
        })?;
        Ok((objects, root))
    }

    #[cfg(not(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http")))]
    #[expect(clippy::unused_self, reason = "as with a network store compiled in")]
    fn connect(
        &self,
        scheme: Scheme,
        url: &Url,
    ) -> Result<(Arc<dyn ObjectStore>, Path), OpenError> {
        Err(OpenError::Feature {
            address: url.to_string(),
            feature: scheme.feature(),
        })
    }
}

fn is_zip(path: &FilePath) -> bool {
    path.extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("zip"))
}

/// What is in memory is there at once.
fn put(memory: &InMemory, path: &Path, bytes: Bytes) {
    let done = memory.put(path, bytes.into()).now_or_never();
    debug_assert!(done.is_some_and(|done| done.is_ok()), "a put that waits");
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
        OpenOptions::default().open(address)
    }

    /// Opens a store to write to it, with the default [`OpenOptions`].
    ///
    /// # Errors
    ///
    /// [`OpenError`], as [`OpenOptions::create`].
    pub fn create(address: &str) -> Result<Self, OpenError> {
        OpenOptions::default().create(address)
    }

    /// A store of objects at hand, with the default [`OpenOptions`].
    ///
    /// # Errors
    ///
    /// [`OpenError::Configuration`] when a key is none.
    pub fn from_memory<K, V>(objects: impl IntoIterator<Item = (K, V)>) -> Result<Self, OpenError>
    where
        K: AsRef<str>,
        V: Into<Bytes>,
    {
        OpenOptions::default().from_memory(objects)
    }
}
