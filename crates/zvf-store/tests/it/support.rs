//! Test stores, keys, request logs and simulated crashes.

use core::{future::Future, ops::Range};
use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use serde_json::Value as Json;
use zvf_model::{
    key::Key,
    zarr::{Array, Node},
};
use zvf_store::{ByteRange, OpenOptions, Read, Store};

/// Runs a future to completion.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}

/// Returns bytes that count from 0 modulo 251. The period is not a power of two, so that ranges at the
/// wrong offset are noticed.
pub(crate) fn numbered(len: usize) -> Vec<u8> {
    (0..=250).cycle().take(len).collect()
}

/// Returns a store in memory that records its requests.
pub(crate) fn recorded(objects: &[(&str, Vec<u8>)]) -> Store {
    let options = OpenOptions::default().record_requests(true);
    options.from_memory(objects.iter().cloned()).unwrap()
}

/// Takes the request log, as one line of text per request.
pub(crate) fn log(store: &Store) -> Vec<String> {
    let line = |read: Read| format!("{} {}", read.key, read.range);
    store.take_request_log().into_iter().map(line).collect()
}

/// Parses a key; the empty text is the root.
#[track_caller]
pub(crate) fn key(text: &str) -> Key {
    match text {
        "" => Key::root(),
        _ => Key::parse(text).unwrap(),
    }
}

pub(crate) fn full(text: &str) -> Read {
    Read::full(key(text))
}

pub(crate) fn bounded(text: &str, range: Range<u64>) -> Read {
    Read::bounded(key(text), range)
}

pub(crate) fn part(text: &str, range: ByteRange) -> Read {
    Read::new(key(text), range)
}

/// Parses the array described by a `zarr.json`.
#[track_caller]
pub(crate) fn array(metadata: Json) -> Array {
    match Node::from_json(&key("zarr.json"), metadata).unwrap() {
        Node::Array(array) => array,
        Node::Group(_) => panic!("a group"),
    }
}

/// A location of a store that survives the death of its writers.
pub(crate) enum Place {
    Memory(Store),
    Folder(tempfile::TempDir),
}

/// Kills a writer at the operation with a given number, counted from 1.
#[derive(Clone, Debug, Default)]
pub(crate) struct Killer {
    at: Arc<AtomicUsize>,
    seen: Arc<AtomicUsize>,
}

impl Killer {
    /// Runs `work` and kills it at operation `at`. Returns its output, or `None` if it was killed.
    pub(crate) fn survives<T>(&self, at: usize, work: impl Future<Output = T>) -> Option<T> {
        self.seen.store(0, SeqCst);
        self.at.store(at, SeqCst);
        let outcome = catch_unwind(AssertUnwindSafe(|| block_on(work)));
        self.at.store(0, SeqCst);
        match outcome {
            Ok(done) => Some(done),
            Err(cause) if cause.is::<Killed>() => None,
            Err(cause) => resume_unwind(cause),
        }
    }
}

struct Killed;

impl Place {
    /// Runs `check` on an empty place of each kind, with a killer for its writers.
    pub(crate) fn each(check: impl Fn(&Self, &Killer)) {
        let killer = Killer::default();
        check(
            &Self::Memory(killer.options().create("memory:").unwrap()),
            &killer,
        );
        check(&Self::folder(), &killer);
    }

    pub(crate) fn memory(killer: &Killer) -> Self {
        Self::Memory(killer.options().create("memory:").unwrap())
    }

    pub(crate) fn folder() -> Self {
        Self::Folder(tempfile::tempdir().unwrap())
    }

    /// Opens the store as another process would.
    pub(crate) fn open(&self, killer: &Killer) -> Store {
        match self {
            Self::Memory(store) => store.clone(),
            Self::Folder(folder) => {
                let path = folder.path().join("store");
                killer.options().create(path.to_str().unwrap()).unwrap()
            }
        }
    }

    /// Returns an empty place of the same kind.
    pub(crate) fn another(&self, killer: &Killer) -> Self {
        match self {
            Self::Memory(_) => Self::memory(killer),
            Self::Folder(_) => Self::folder(),
        }
    }

    /// Returns the folder of a store on disk.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Memory(_) => None,
            Self::Folder(folder) => Some(folder.path().join("store")),
        }
    }
}

impl Killer {
    fn options(&self) -> OpenOptions {
        let killer = self.clone();
        // Operations run in sequence, so that their numbers are deterministic.
        OpenOptions::default()
            .concurrency(1)
            .write_hook(Arc::new(move |_, _| {
                let seen = killer.seen.fetch_add(1, SeqCst) + 1;
                if seen == killer.at.load(SeqCst) {
                    resume_unwind(Box::new(Killed));
                }
            }))
    }
}
