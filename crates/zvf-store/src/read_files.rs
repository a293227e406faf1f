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

use crate::{
    fetch::truncated,
    off_thread::spread,
    plan::Fetched,
    range::{ByteRange, Read},
    read::{Budget, Outcome, ReadError, Slot},
    store::Store,
};

/// Files of a batch that are read on the calling thread. More are shared among all
/// threads, beside whoever waits for something else.
const FEW: usize = 16;

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
            let places = store.places(&read).into_iter().flatten();
            for place in places {
                match store.fetch_file(&folder, &place, &budget) {
                    Ok(None) => {}
                    answer => return (slot, answer),
                }
            }
            (slot, Ok(None))
        };
        let is_heavy = requests.len() > FEW;
        spread(is_heavy, requests, fetch).await.unwrap_or_default()
    }

    /// A part of the object at this very key; `None` when it is absent.
    pub(crate) fn fetch_file(
        &self,
        folder: &Path,
        read: &Read,
        budget: &Budget,
    ) -> Result<Option<Fetched>, ReadError> {
        self.recorder().request(read);
        let opened = open(&folder.join(read.key.as_str()));
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

fn part(mut file: File, start: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let room = usize::try_from(length).map_err(|_| ErrorKind::OutOfMemory)?;
    bytes
        .try_reserve_exact(room)
        .map_err(|_| ErrorKind::OutOfMemory)?;
    if start > 0 {
        file.seek(SeekFrom::Start(start))?;
    }
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
