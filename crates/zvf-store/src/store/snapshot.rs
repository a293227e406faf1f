//! The head that a store is read at, and the detection of another one.
//!
//! A commit replaces the head before it changes any other object. If the head is the same after a
//! read as before, the object that was read is therefore of the transaction in the head. A reader
//! checks the head once after all of its reads, in the cheapest way:
//!
//! | store | check |
//! |---|---|
//! | folder | the status of the opened file; its contents are compared only while it is recent |
//! | memory | the version |
//! | network | a conditional request, unless every object was last modified long before the head was seen |
//! | zip file | none: an open archive does not change |

use std::{
    fs::{File, Metadata},
    path::{Path as FilePath, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use zvf_model::key::Key;

use super::{
    Store,
    file_read::{read_error, read_range},
    regular_file,
};
use crate::{
    backend::Backend,
    io::{ObjectVersion, Read, ReadError},
};

/// Age at which the times of a file distinguish two contents. Times are kept in ticks of up to
/// 10 ms, and of 2 s on FAT.
const RECENT: Duration = Duration::from_secs(3);

/// The head of a store as last seen, and the reads since.
#[derive(Debug)]
pub(crate) struct Snapshot {
    head: Mutex<SeenHead>,
    /// Reads that may have returned objects newer than the head.
    reads: AtomicU64,
    /// The value of `reads` at the start of the last successful check.
    confirmed: AtomicU64,
    /// `true` once another head was found in its place.
    is_replaced: AtomicBool,
    /// Objects last modified before this time, in milliseconds since 1970, are not newer than the
    /// head; `i64::MIN` if times are not reliable.
    settled_before: AtomicI64,
}

/// A head that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeenHead {
    pub(crate) document: Bytes,
    version: HeadVersion,
    /// Time of the last change, in milliseconds since 1970; 0 if unknown.
    modified: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HeadVersion {
    File {
        identity: FileIdentity,
        /// The file was old when it was read, so that a later change has another identity.
        is_settled: bool,
    },
    Object(ObjectVersion),
}

/// The status of a file that changes when the file is replaced or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileIdentity {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Device, inode and time of the last change of the inode.
    inode: [i128; 4],
}

/// The head compared with the one seen before.
#[derive(Debug)]
pub(crate) enum HeadComparison {
    /// The head is the same; what was seen of it now, if it can replace what was seen before.
    Same(Option<SeenHead>),
    /// The head has another version, or is absent.
    Other(Option<SeenHead>),
}

impl Snapshot {
    pub(crate) fn new(head: SeenHead, settled_after: Option<Duration>) -> Self {
        let snapshot = Self {
            head: Mutex::new(head),
            reads: AtomicU64::new(0),
            confirmed: AtomicU64::new(0),
            is_replaced: AtomicBool::new(false),
            settled_before: AtomicI64::new(i64::MIN),
        };
        snapshot.record_seen_now(settled_after);
        snapshot
    }

    /// Returns the head as last seen.
    pub(crate) fn head(&self) -> SeenHead {
        let head = self.head.lock().unwrap_or_else(PoisonError::into_inner);
        head.clone()
    }

    /// Records that the head was seen now.
    fn record_seen_now(&self, settled_after: Option<Duration>) {
        let Some(age) = settled_after else {
            return;
        };
        let limit = now()
            .checked_sub(age)
            .map_or(0, millis)
            .min(self.head().modified.saturating_add(1));
        self.settled_before.fetch_max(limit, Ordering::Relaxed);
    }

    /// Records the read of an object with its time of the last change, if known.
    pub(super) fn read(&self, modified: Option<i64>) {
        let limit = self.settled_before.load(Ordering::Relaxed);
        if modified.is_some_and(|modified| modified > 0 && modified < limit) {
            return;
        }
        self.reads.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the number of reads to confirm, if some are unconfirmed.
    pub(crate) fn unconfirmed(&self) -> Option<u64> {
        let reads = self.reads.load(Ordering::Acquire);
        (self.confirmed.load(Ordering::Acquire) < reads).then_some(reads)
    }

    /// Records that the head, seen after `reads` reads, is still that of the snapshot.
    pub(crate) fn confirm(&self, reads: u64, seen: Option<SeenHead>, settled: Option<Duration>) {
        if let Some(seen) = seen {
            *self.head.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        }
        self.confirmed.fetch_max(reads, Ordering::AcqRel);
        self.record_seen_now(settled);
    }

    /// Returns whether another head was found in its place.
    pub(crate) fn is_replaced(&self) -> bool {
        self.is_replaced.load(Ordering::Acquire)
    }

    pub(crate) fn set_replaced(&self) {
        self.is_replaced.store(true, Ordering::Release);
    }
}

impl Store {
    /// Reads the head; `None` if it is absent.
    pub(crate) async fn read_head(&self, key: Key) -> Result<Option<SeenHead>, ReadError> {
        let read = Read::full(key);
        if let Some(folder) = self.folder() {
            self.recorder().request(&read);
            let seen = HeadFile::new(folder, &read.key, self.budget()).read()?;
            if let Some(seen) = &seen {
                self.recorder().bytes(seen.document.len());
            }
            return Ok(seen);
        }
        let found = self.fetch_unless(&read.key, None).await?;
        Ok(found.flatten())
    }

    /// Compares the head with one seen before, if that takes no request.
    pub(crate) fn compare_head_now(
        &self,
        key: &Key,
        seen: &SeenHead,
    ) -> Option<Result<HeadComparison, ReadError>> {
        let file = HeadFile::new(self.folder()?, key, self.budget());
        Some(file.compare(seen))
    }

    /// Compares the head with one seen before. Takes one request over the network.
    pub(crate) async fn compare_head(
        &self,
        key: &Key,
        seen: &SeenHead,
    ) -> Result<HeadComparison, ReadError> {
        if let Some(compared) = self.compare_head_now(key, seen) {
            return compared;
        }
        let version = match &seen.version {
            HeadVersion::Object(version) => Some(version),
            HeadVersion::File { .. } => None,
        };
        Ok(match self.fetch_unless(key, version).await? {
            None => HeadComparison::Same(None),
            Some(Some(found)) if found == *seen => HeadComparison::Same(None),
            Some(found) => HeadComparison::Other(found),
        })
    }

    /// Returns whether the objects of this store may change while it is open.
    pub(crate) fn may_change(&self) -> bool {
        match self.backend() {
            Backend::Objects(_) => self.checks_head(),
            #[cfg(feature = "zip")]
            Backend::Zip(_) => false,
        }
    }

    /// Records the read of an object with its time of the last change, if known.
    pub(super) fn note_read(&self, modified: Option<i64>) {
        if let Some(snapshot) = self.snapshot_state() {
            snapshot.read(modified);
        }
    }
}

impl SeenHead {
    pub(super) fn of_object(document: Bytes, version: ObjectVersion, modified: i64) -> Self {
        Self {
            document,
            version: HeadVersion::Object(version),
            modified,
        }
    }
}

/// The file of the head.
struct HeadFile<'h> {
    path: PathBuf,
    key: &'h Key,
    budget: u64,
}

impl<'h> HeadFile<'h> {
    fn new(folder: &FilePath, key: &'h Key, budget: u64) -> Self {
        Self {
            path: folder.join(key.as_str()),
            key,
            budget,
        }
    }

    /// Reads the file; `None` if it is absent.
    fn read(&self) -> Result<Option<SeenHead>, ReadError> {
        // Before the file is opened, so that a change after it was read is recent.
        let now = SystemTime::now();
        let Some((file, identity)) = self.open()? else {
            return Ok(None);
        };
        self.seen(&file, identity, now).map(Some)
    }

    /// Compares the file with the head seen before.
    ///
    /// The file is opened rather than looked up, because network file systems then query the
    /// server instead of a cache.
    fn compare(&self, seen: &SeenHead) -> Result<HeadComparison, ReadError> {
        let now = SystemTime::now();
        let Some((file, identity)) = self.open()? else {
            return Ok(HeadComparison::Other(None));
        };
        let unchanged = HeadVersion::File {
            identity,
            is_settled: true,
        };
        if seen.version == unchanged {
            return Ok(HeadComparison::Same(None));
        }
        let found = self.seen(&file, identity, now)?;
        let is_same_file = matches!(&seen.version, HeadVersion::File { identity: before, .. } if *before == identity);
        if is_same_file && found.document == seen.document {
            return Ok(HeadComparison::Same(Some(found)));
        }
        Ok(HeadComparison::Other(Some(found)))
    }

    fn open(&self) -> Result<Option<(File, FileIdentity)>, ReadError> {
        let opened = regular_file::open(&self.path).map_err(|error| read_error(self.key, error))?;
        Ok(opened.map(|(file, status)| (file, FileIdentity::of(&status))))
    }

    /// Reads the contents of the opened file.
    fn seen(
        &self,
        file: &File,
        identity: FileIdentity,
        now: SystemTime,
    ) -> Result<SeenHead, ReadError> {
        if identity.bytes > self.budget {
            return Err(ReadError::OverBudget {
                key: self.key.clone(),
                size: identity.bytes,
                budget: self.budget,
            });
        }
        let document = read_range(file, 0, identity.bytes);
        Ok(SeenHead {
            document: document
                .map_err(|error| read_error(self.key, error))?
                .into(),
            version: HeadVersion::File {
                identity,
                is_settled: identity.is_settled(now),
            },
            modified: identity.modified.map_or(0, millis),
        })
    }
}

impl FileIdentity {
    #[cfg(unix)]
    fn of(status: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self {
            bytes: status.len(),
            modified: status.modified().ok(),
            inode: [
                status.dev().into(),
                status.ino().into(),
                status.ctime().into(),
                status.ctime_nsec().into(),
            ],
        }
    }

    #[cfg(not(unix))]
    fn of(status: &Metadata) -> Self {
        let created = status.created().ok().map_or(0, millis);
        Self {
            bytes: status.len(),
            modified: status.modified().ok(),
            inode: [created.into(), 0, 0, 0],
        }
    }

    /// Returns whether the file was last changed well before `now`.
    fn is_settled(&self, now: SystemTime) -> bool {
        let [_, _, seconds, _] = self.inode;
        let changed = i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX);
        let modified = self.modified.map_or(i64::MAX, millis);
        let limit = now.checked_sub(RECENT).map_or(0, millis);
        modified.max(changed) < limit
    }
}

/// Returns the time.
#[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
fn now() -> SystemTime {
    SystemTime::now()
}

/// Returns the time. The clock of the standard library panics in browsers.
#[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
fn now() -> SystemTime {
    let age = web_time::SystemTime::now().duration_since(web_time::SystemTime::UNIX_EPOCH);
    UNIX_EPOCH
        .checked_add(age.unwrap_or_default())
        .unwrap_or(UNIX_EPOCH)
}

/// Returns a time in milliseconds since 1970.
fn millis(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
