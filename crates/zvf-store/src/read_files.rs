//! Objects that are files of a folder, read at once.
//!
//! `object_store` hands opening a file and reading it to other threads, which is
//! right for files that are far away; of one that is in memory already each takes
//! ten times as long as what is done there.

use std::{
    fs::File,
    io::{self, ErrorKind, Read as _, Seek as _, SeekFrom},
    path::Path,
    sync::Arc,
};

use bytes::Bytes;
use zvf_model::key::Key;

use crate::{
    fetch::truncated,
    off_thread::spread,
    plan::Fetched,
    range::{ByteRange, Read},
    read::{Budget, Objects, Outcome, ReadError, Slot, put},
    store::Store,
};

/// Files of a batch that are read on the calling thread. More are shared among all
/// threads, beside whoever waits for something else.
const FEW: usize = 16;

/// The file that was read last: the next read is often of it too.
#[derive(Default)]
pub(crate) struct Last(Option<(Key, File, u64)>);

impl Last {
    /// The file at this key with its size; `None` when there is none.
    fn open(&mut self, folder: &Path, key: &Key) -> io::Result<Option<(&mut File, u64)>> {
        if self.0.as_ref().is_none_or(|(last, ..)| last != key) {
            // One that is not needed any more is closed first.
            self.0 = None;
            let opened = open(&folder.join(key.as_str()))?;
            self.0 = opened.map(|(file, size)| (key.clone(), file, size));
        }
        Ok(self.0.as_mut().map(|(_, file, size)| (file, *size)))
    }
}

impl Store {
    /// The answers to requests; to none of them when nobody waits any more.
    pub(crate) async fn fetch_files(
        &self,
        folder: &Path,
        requests: Vec<(Read, Slot)>,
        budget: Arc<Budget>,
    ) -> Vec<(Slot, Outcome)> {
        let (store, folder) = (self.clone(), folder.to_owned());
        let fetch = move |(read, slot): (Read, Slot)| {
            let answer = store.fetch_at(&folder, &read, &mut Last::default(), &budget);
            (slot, answer)
        };
        let is_heavy = requests.len() > FEW;
        spread(is_heavy, requests, fetch).await.unwrap_or_default()
    }

    /// As [`read_each`](Self::read_each), on this thread and within a budget of others too.
    /// Who reads many objects calls it for each, so that what was read is still at hand when
    /// it is decoded.
    pub(crate) fn read_here(
        &self,
        folder: &Path,
        reads: &[Read],
        budget: &Budget,
    ) -> Vec<Outcome<Bytes>> {
        let objects = Objects::of(reads, self);
        let (requests, mut fetched) = objects.admit(budget);
        let mut last = Last::default();
        for (read, slot) in requests {
            put(
                &mut fetched,
                slot,
                self.fetch_at(folder, &read, &mut last, budget),
            );
        }
        objects.answers(reads, &fetched).collect()
    }

    /// A part of an object, wherever it is.
    fn fetch_at(&self, folder: &Path, read: &Read, last: &mut Last, budget: &Budget) -> Outcome {
        for place in self.places(read).into_iter().flatten() {
            match self.fetch_file(folder, &place, last, budget) {
                Ok(None) => {}
                answer => return answer,
            }
        }
        Ok(None)
    }

    /// A part of the object at this very key; `None` when it is absent.
    pub(crate) fn fetch_file(
        &self,
        folder: &Path,
        read: &Read,
        last: &mut Last,
        budget: &Budget,
    ) -> Outcome {
        self.recorder().request(read);
        let opened = last.open(folder, &read.key);
        let Some((file, size)) = opened.map_err(|error| sort(read, error))? else {
            return Ok(None);
        };
        let range = match &read.range {
            ByteRange::Full => 0..size,
            ByteRange::Bounded(range) if range.start < size => range.start..range.end.min(size),
            ByteRange::From(start) if *start < size => *start..size,
            ByteRange::Suffix(bytes) => size.saturating_sub(*bytes)..size,
            ByteRange::Bounded(_) | ByteRange::From(_) => return Err(truncated(read, Some(size))),
        };
        let length = range.end.saturating_sub(range.start);
        let is_bounded = matches!(read.range, ByteRange::Bounded(_));
        if !is_bounded {
            budget.reserve(&read.key, length)?;
        }
        let bytes = part(file, range.start, length);
        let found = bytes.map(|bytes| (u64::try_from(bytes.len()) == Ok(length)).then_some(bytes));
        let failure = match found {
            Ok(Some(bytes)) => {
                self.recorder().bytes(bytes.len());
                return Ok(Some(Fetched {
                    start: range.start,
                    size,
                    bytes: bytes.into(),
                }));
            }
            // It became shorter meanwhile.
            Ok(None) => truncated(read, None),
            Err(error) => sort(read, error),
        };
        if !is_bounded {
            budget.release(length);
        }
        Err(failure)
    }
}

/// A file and its size; `None` when there is none.
fn open(path: &Path) -> io::Result<Option<(File, u64)>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => {
            let absent = matches!(
                error.kind(),
                // Below what is a file there can be no object either.
                ErrorKind::NotFound | ErrorKind::NotADirectory
            );
            return if absent { Ok(None) } else { Err(error) };
        }
    };
    let metadata = file.metadata()?;
    Ok((!metadata.is_dir()).then_some((file, metadata.len())))
}

fn part(file: &mut File, start: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let room = usize::try_from(length).map_err(|_| ErrorKind::OutOfMemory)?;
    bytes
        .try_reserve_exact(room)
        .map_err(|_| ErrorKind::OutOfMemory)?;
    file.seek(SeekFrom::Start(start))?;
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn sort(read: &Read, error: io::Error) -> ReadError {
    let key = read.key.clone();
    match error.kind() {
        ErrorKind::PermissionDenied => ReadError::Forbidden {
            key,
            source: Arc::new(error),
        },
        _ => ReadError::Io {
            key,
            source: Arc::new(error),
        },
    }
}
