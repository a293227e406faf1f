//! An open store.

use core::fmt;
use std::sync::{Arc, OnceLock, atomic::AtomicBool};

use object_store::{ObjectStore, path::Path};

use crate::{
    activity::{Activity, Recorder},
    address::{Address, Scheme},
    coalesce::MergeLimits,
    open::OpenOptions,
    range::Read,
    tries::Tries,
    write::Hook,
};

/// A store: a folder, a bucket, memory; or, to read from only, a web server or a
/// zip file.
///
/// Cloning is cheap; clones share connections, counters and the log.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    name: String,
    backend: Backend,
    root: Path,
    tuning: Tuning,
    budget: u64,
    tries: Tries,
    recorder: Recorder,
    lacks: Lacks,
    hook: Hook,
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
    /// Whether a web server lists, once that had to be found out.
    pub(crate) listing: OnceLock<bool>,
}

/// How a kind of store is best asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuning {
    pub(crate) merge: MergeLimits,
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
        concurrency: 1,
    };
    /// A request is opening a file on another thread: some 50 µs.
    pub(crate) const FILES: Self = Self {
        merge: MergeLimits {
            gap: 64 * KIB,
            size: 4 * MIB,
        },
        concurrency: 16,
    };
    /// A request is 20 to 100 ms, in which a connection moves 1 to 10 MB.
    pub(crate) const NETWORK: Self = Self {
        merge: MergeLimits {
            gap: MIB,
            size: 16 * MIB,
        },
        concurrency: 64,
    };
}

impl Store {
    pub(crate) fn new(
        name: String,
        backend: Backend,
        root: Path,
        tuning: Tuning,
        options: &OpenOptions,
    ) -> Self {
        Self(Arc::new(Inner {
            name,
            backend,
            root,
            tuning: Tuning {
                merge: options.merge.unwrap_or(tuning.merge),
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
        }))
    }

    /// What the store did since it was opened.
    pub fn activity(&self) -> Activity {
        self.0.recorder.activity()
    }

    /// The requests since the last call, in the order they were made, as keys
    /// and ranges. Empty unless [`OpenOptions::record`] switched it on.
    pub fn take_log(&self) -> Vec<Read> {
        self.0.recorder.take_log()
    }

    /// The most bytes one call may read.
    pub fn budget(&self) -> u64 {
        self.0.budget
    }

    /// When ranges are merged.
    pub fn merge_limits(&self) -> MergeLimits {
        self.0.tuning.merge
    }

    pub(crate) fn concurrency(&self) -> usize {
        self.0.tuning.concurrency
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.0.backend
    }

    pub(crate) fn root(&self) -> &Path {
        &self.0.root
    }

    pub(crate) fn tries(&self) -> Tries {
        self.0.tries
    }

    /// Whether it is behind a plain web server.
    pub(crate) fn is_web(&self) -> bool {
        let address = Address::parse(&self.0.name);
        matches!(address, Ok(Address::Network(Scheme::Http, _)))
    }

    pub(crate) fn recorder(&self) -> &Recorder {
        &self.0.recorder
    }

    pub(crate) fn hook(&self) -> &Hook {
        &self.0.hook
    }

    pub(crate) fn lacks(&self) -> &Lacks {
        &self.0.lacks
    }
}

/// The address the store was opened with.
impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.0.name).finish()
    }
}
