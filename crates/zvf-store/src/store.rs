//! An open store.

use core::fmt;
use std::{
    path::{Path as FilePath, PathBuf},
    sync::{Arc, OnceLock, atomic::AtomicBool},
};

use object_store::{ObjectStore, path::Path};
use zvf_model::{
    key::Key,
    node_copy::{Known, NodeCopy},
};

use crate::{
    activity::{Activity, Recorder},
    address::{Address, Scheme},
    coalesce::MergeLimits,
    distance::SimulatedNetwork,
    open::OpenOptions,
    overlay::Overlay,
    range::{ByteRange, Read},
    tries::Tries,
    worth::Worth,
    write::Hook,
};

/// A store: a folder, a bucket, memory; or, to read from only, a web server or a
/// zip file.
///
/// Cloning is cheap; clones share connections, counters and the log.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
    /// What is read elsewhere while a transaction is being applied.
    overlay: Option<Arc<Overlay>>,
    /// Nodes that need not be read.
    copy: Option<Arc<NodeCopy>>,
    uses_copy: bool,
}

struct Inner {
    name: String,
    backend: Backend,
    root: Path,
    /// Where it is on disk, when it is a folder there.
    folder: Option<PathBuf>,
    /// Whether what is written waits for the disk.
    durable: bool,
    tuning: Tuning,
    budget: u64,
    tries: Tries,
    recorder: Recorder,
    lacks: Lacks,
    hook: Hook,
    distance: Option<SimulatedNetwork>,
}

/// What the bytes come from.
pub(crate) enum Backend {
    Objects(Arc<dyn ObjectStore>),
    #[cfg(feature = "zip")]
    Zip(Arc<crate::archive::Archive>),
}

/// What a store turned out to do or not.
#[derive(Debug, Default)]
pub(crate) struct Lacks {
    pub(crate) suffixes: AtomicBool,
    pub(crate) ranges: AtomicBool,
    /// Whether it was seen to compare tags.
    pub(crate) compares: AtomicBool,
    /// Whether a web server lists, once that had to be found out.
    pub(crate) listing: OnceLock<bool>,
}

/// How a kind of store is best asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuning {
    pub(crate) merge: MergeLimits,
    /// Which gaps within these limits are read over; all when not said.
    pub(crate) worth: Option<Worth>,
    /// Requests on their way at the same time.
    pub(crate) concurrency: usize,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

impl Tuning {
    /// A request is a lookup.
    pub(crate) const MEMORY: Self = Self {
        merge: MergeLimits {
            gap: 8 * KIB,
            size: 4 * MIB,
        },
        worth: None,
        concurrency: 1,
    };
    /// A request is opening a file and reading it: some 5 µs.
    pub(crate) const FILES: Self = Self {
        merge: MergeLimits {
            gap: 16 * KIB,
            size: 4 * MIB,
        },
        worth: None,
        concurrency: 16,
    };
    /// A request is 20 to 100 ms, in which a connection moves 1 to 10 MB. So it would be worth
    /// a gap of a megabyte, if it did not go beside others: half of what can be on its way is
    /// taken before gaps are read over that cost more than a millisecond.
    pub(crate) const NETWORK: Self = Self {
        merge: MergeLimits {
            gap: MIB,
            size: 16 * MIB,
        },
        worth: Some(Worth {
            always: 64 * KIB,
            requests: 32,
        }),
        concurrency: 64,
    };
}

impl Store {
    pub(crate) fn new(
        name: String,
        backend: Backend,
        root: Path,
        folder: Option<PathBuf>,
        tuning: Tuning,
        options: &OpenOptions,
    ) -> Self {
        let is_far =
            options.distance.is_some() || matches!(Address::parse(&name), Ok(Address::Network(..)));
        // What is far away is asked like a bucket, and nothing of it is known to be here.
        let (folder, tuning) = match options.distance {
            Some(_) => (None, Tuning::NETWORK),
            None => (folder, tuning),
        };
        let inner = Inner {
            name,
            backend,
            root,
            folder,
            durable: options.durable,
            tuning: Tuning {
                merge: options.merge.unwrap_or(tuning.merge),
                // Limits that somebody gives are meant.
                worth: tuning.worth.filter(|_| options.merge.is_none()),
                concurrency: options.concurrency.unwrap_or(tuning.concurrency).max(1),
            },
            budget: options.budget,
            tries: Tries {
                again: options.retries,
                within: options.retry_timeout,
            },
            recorder: Recorder::new(options.recording),
            lacks: Lacks::default(),
            hook: options.hook.clone(),
            distance: options.distance,
        };
        Self {
            inner: Arc::new(inner),
            overlay: None,
            copy: None,
            uses_copy: is_far && options.node_copy,
        }
    }

    /// The same store, read through an overlay.
    pub(crate) fn under(&self, overlay: Overlay) -> Self {
        Self {
            overlay: Some(Arc::new(overlay)),
            ..self.bare()
        }
    }

    /// The same store as it lies there.
    pub(crate) fn bare(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            overlay: None,
            copy: None,
            uses_copy: self.uses_copy,
        }
    }

    /// Whether nodes are best taken from the copy in the root: of a store that is far
    /// away, unless [`OpenOptions::node_copy`] says otherwise. Where reading one costs
    /// next to nothing, the nodes themselves are read.
    pub fn uses_node_copy(&self) -> bool {
        self.uses_copy
    }

    /// The same store, of which every node is read: for who changes it.
    #[must_use]
    pub fn without_node_copy(&self) -> Self {
        Self {
            copy: None,
            uses_copy: false,
            ..self.clone()
        }
    }

    /// The same store, with nodes that plans take from `copy` instead of reading them.
    #[must_use]
    pub fn with_node_copy(&self, copy: NodeCopy) -> Self {
        Self {
            copy: Some(Arc::new(copy)),
            ..self.clone()
        }
    }

    /// What is known of a node without reading it; `None` when it has to be read.
    pub fn copied_node(&self, key: &Key) -> Option<Known> {
        let copy = self.copy.as_ref().filter(|_| !key.is_root())?;
        match copy.get(key) {
            Known::Apart => None,
            known => Some(known),
        }
    }

    /// Names of the children of a node that are nodes or have some in them, where
    /// that is known; `None` when they have to be listed.
    pub fn copied_children(&self, key: &Key) -> Option<Vec<String>> {
        let copy = self.copy.as_ref()?;
        (!copy.may_be_array(key)).then(|| copy.children(key))
    }

    pub(crate) fn overlay(&self) -> Option<&Overlay> {
        self.overlay.as_deref()
    }

    pub(crate) fn folder(&self) -> Option<&FilePath> {
        self.inner.folder.as_deref()
    }

    pub(crate) fn is_durable(&self) -> bool {
        self.inner.durable
    }

    /// What the store did since it was opened.
    pub fn activity(&self) -> Activity {
        self.inner.recorder.activity()
    }

    /// The requests since the last call, in the order they were made, as keys
    /// and ranges. Empty unless [`OpenOptions::record_requests`] switched it on.
    pub fn take_request_log(&self) -> Vec<Read> {
        self.inner.recorder.take_log()
    }

    /// The most bytes one call may read.
    pub fn budget(&self) -> u64 {
        self.inner.budget
    }

    /// When ranges are merged.
    pub fn merge_limits(&self) -> MergeLimits {
        self.inner.tuning.merge
    }

    /// When ranges are merged of reads that go out together, given by object.
    pub(crate) fn merge_limits_of<'a, R>(&self, objects: impl Iterator<Item = R>) -> MergeLimits
    where
        R: Iterator<Item = &'a ByteRange>,
    {
        match self.inner.tuning.worth {
            Some(worth) => worth.limits(self.merge_limits(), objects),
            None => self.merge_limits(),
        }
    }

    /// Waits as long as an answer of so many bytes takes, when the store is made to be far
    /// away.
    pub(crate) async fn wait(&self, bytes: u64) {
        if let Some(distance) = self.inner.distance {
            distance.wait(bytes).await;
        }
    }

    pub(crate) fn concurrency(&self) -> usize {
        self.inner.tuning.concurrency
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.inner.backend
    }

    /// What objects come from, unless it is a zip file.
    #[cfg_attr(
        not(feature = "zip"),
        expect(clippy::unnecessary_wraps, reason = "as with the feature")
    )]
    pub(crate) fn objects(&self) -> Option<&Arc<dyn ObjectStore>> {
        match self.backend() {
            Backend::Objects(objects) => Some(objects),
            #[cfg(feature = "zip")]
            Backend::Zip(_) => None,
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.inner.root
    }

    pub(crate) fn tries(&self) -> Tries {
        self.inner.tries
    }

    /// Whether it is behind a plain web server.
    pub(crate) fn is_web(&self) -> bool {
        let address = Address::parse(&self.inner.name);
        matches!(address, Ok(Address::Network(Scheme::Http, _)))
    }

    pub(crate) fn recorder(&self) -> &Recorder {
        &self.inner.recorder
    }

    pub(crate) fn hook(&self) -> &Hook {
        &self.inner.hook
    }

    pub(crate) fn lacks(&self) -> &Lacks {
        &self.inner.lacks
    }
}

/// The address the store was opened with.
impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.name)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.inner.name).finish()
    }
}
