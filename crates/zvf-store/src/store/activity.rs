//! Request counters and the optional request log.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use crate::io::Read;

/// Counters of the requests to a store since it was opened.
///
/// Retries of a request are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Requests that read an object or a part of one.
    pub requests: u64,
    /// Bytes that these requests returned.
    pub bytes_read: u64,
    /// Requests that listed a prefix.
    pub lists: u64,
    /// Requests that put or renamed an object.
    pub writes: u64,
    /// Bytes that these requests sent, including those of refused puts.
    pub bytes_written: u64,
    /// Requests that deleted an object.
    pub deletes: u64,
}

#[derive(Debug, Default)]
pub(super) struct Recorder {
    requests: AtomicU64,
    bytes_read: AtomicU64,
    lists: AtomicU64,
    writes: AtomicU64,
    bytes_written: AtomicU64,
    deletes: AtomicU64,
    log: Option<Mutex<Vec<Read>>>,
}

impl Recorder {
    pub(crate) fn new(recording: bool) -> Self {
        Self {
            log: recording.then(Mutex::default),
            ..Self::default()
        }
    }

    pub(crate) fn request(&self, read: &Read) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if let Some(log) = &self.log {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.push(read.clone());
        }
    }

    pub(crate) fn bytes(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn list(&self) {
        self.lists.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn write(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.bytes_written.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn delete(&self) {
        self.deletes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn activity(&self) -> Activity {
        Activity {
            requests: self.requests.load(Ordering::Relaxed),
            bytes_read: self.bytes_read.load(Ordering::Relaxed),
            lists: self.lists.load(Ordering::Relaxed),
            writes: self.writes.load(Ordering::Relaxed),
            bytes_written: self.bytes_written.load(Ordering::Relaxed),
            deletes: self.deletes.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn take_log(&self) -> Vec<Read> {
        let log = self.log.as_ref().map(|log| {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            core::mem::take(&mut *log)
        });
        log.unwrap_or_default()
    }
}
