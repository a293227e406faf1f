//! Direct reads of files, for stores in a folder.
//!
//! `object_store` opens and reads each file on other threads. For a file in the page cache, each of
//! these handovers takes ten times as long as the read itself.

use std::{
    fs::File,
    io::{self, ErrorKind},
    path::Path,
    sync::Arc,
};

use bytes::Bytes;
use zvf_model::key::Key;

use super::{Store, regular_file};
use crate::{
    io::{ByteBudget, ByteRange, FetchResult, FetchedRange, Read, ReadError, ReadPlan},
    threads::par_map,
};

/// Maximum number of requests of a batch that run on the calling thread. Larger batches run on all
/// cores.
const MAX_INLINE_REQUESTS: usize = 16;

/// The last opened file, kept open because the next read is often of the same file.
#[derive(Default)]
pub(super) struct OpenFile(Option<(Key, File, u64)>);

impl OpenFile {
    /// Returns the file at `key` and its size, or `None` when it does not exist.
    fn open(&mut self, folder: &Path, key: &Key) -> io::Result<Option<(&File, u64)>> {
        if self.0.as_ref().is_none_or(|(last, ..)| last != key) {
            // Close the previous file before opening the next.
            self.0 = None;
            let opened = regular_file::open(&folder.join(key.as_str()))?;
            self.0 = opened.map(|(file, metadata)| (key.clone(), file, metadata.len()));
        }
        Ok(self.0.as_ref().map(|(_, file, size)| (file, *size)))
    }
}

impl Store {
    /// Reads files for numbered requests. Returns nothing when a read panicked.
    pub(super) async fn fetch_files(
        &self,
        folder: &Path,
        requests: Vec<(usize, Read)>,
        budget: Arc<ByteBudget>,
    ) -> Vec<(usize, FetchResult)> {
        let (store, folder) = (self.clone(), folder.to_owned());
        let fetch = move |(number, read): (usize, Read)| {
            let result = store.fetch_at(&folder, &read, &mut OpenFile::default(), &budget);
            (number, result)
        };
        if requests.len() <= MAX_INLINE_REQUESTS {
            return requests.into_iter().map(fetch).collect();
        }
        par_map(requests, fetch).await.unwrap_or_default()
    }

    /// Reads ranges as [`read_each`](Self::read_each) does, on the calling thread and within a
    /// shared budget.
    ///
    /// Cell readers call it for each object, so that the bytes are still in the processor cache
    /// when they are decoded.
    pub(crate) fn read_each_blocking(
        &self,
        folder: &Path,
        reads: &[Read],
        budget: &ByteBudget,
    ) -> Vec<FetchResult<Bytes>> {
        let plan = ReadPlan::new(reads, self.merge_policy(), |_| false);
        let (requests, mut responses) = plan.admit(budget);
        let mut open_file = OpenFile::default();
        for (request, read) in requests {
            responses.set(
                request,
                self.fetch_at(folder, &read, &mut open_file, budget),
            );
        }
        plan.results(reads, &responses).collect()
    }

    /// Reads a range of an object, from its staged key if a transaction is being applied.
    pub(super) fn fetch_at_unchecked(
        &self,
        folder: &Path,
        read: &Read,
        open_file: &mut OpenFile,
        budget: &ByteBudget,
    ) -> FetchResult {
        let mut result = Ok(None);
        for candidate in self.candidates(read).into_iter().flatten() {
            result = self.fetch_file(folder, &candidate, open_file, budget);
            if !matches!(result, Ok(None)) {
                break;
            }
        }
        self.note_read(None);
        if let Ok(Some(fetched)) = &result {
            self.keep_entry(read, fetched);
        }
        result
    }

    /// Reads a range of the file at the key of `read`; `Ok(None)` is an absent file.
    pub(super) fn fetch_file(
        &self,
        folder: &Path,
        read: &Read,
        open_file: &mut OpenFile,
        budget: &ByteBudget,
    ) -> FetchResult {
        self.recorder().request(read);
        let opened = open_file.open(folder, &read.key);
        let Some((file, size)) = opened.map_err(|error| read_error(&read.key, error))? else {
            return Ok(None);
        };
        let range = match &read.range {
            ByteRange::Full => 0..size,
            ByteRange::Bounded(range) if range.start < size => range.start..range.end.min(size),
            ByteRange::From(start) if *start < size => *start..size,
            ByteRange::Suffix(bytes) => size.saturating_sub(*bytes)..size,
            ByteRange::Bounded(_) | ByteRange::From(_) => {
                return Err(ReadError::truncated(read, Some(size)));
            }
        };
        let length = range.end.saturating_sub(range.start);
        let is_bounded = matches!(read.range, ByteRange::Bounded(_));
        if !is_bounded {
            budget.reserve(&read.key, length)?;
        }
        let bytes = read_range(file, range.start, length);
        let complete =
            bytes.map(|bytes| (u64::try_from(bytes.len()) == Ok(length)).then_some(bytes));
        let failure = match complete {
            Ok(Some(bytes)) => {
                self.recorder().bytes(bytes.len());
                return Ok(Some(FetchedRange {
                    start: range.start,
                    size,
                    bytes: bytes.into(),
                }));
            }
            // The file was truncated after it was opened.
            Ok(None) => ReadError::truncated(read, None),
            Err(error) => read_error(&read.key, error),
        };
        if !is_bounded {
            budget.release(length);
        }
        Err(failure)
    }
}

/// Reads up to `length` bytes from `start` on; fewer if the file ends before.
///
/// This takes one system call, and clears no memory. `Read::read_to_end` of a part of a file starts
/// with 8 KiB and doubles the size of each read.
#[cfg(unix)]
pub(super) fn read_range(file: &File, start: u64, length: u64) -> io::Result<Vec<u8>> {
    use rustix::{buffer::spare_capacity, io::Errno};

    let (mut bytes, length) = buffer(length)?;
    while bytes.len() < length {
        let offset = start.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        match rustix::io::pread(file, spare_capacity(&mut bytes), offset) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// Reads up to `length` bytes from `start` on; fewer if the file ends before.
#[cfg(not(unix))]
pub(super) fn read_range(mut file: &File, start: u64, length: u64) -> io::Result<Vec<u8>> {
    use std::io::{Read as _, Seek as _, SeekFrom};

    let (mut bytes, _) = buffer(length)?;
    file.seek(SeekFrom::Start(start))?;
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns an empty buffer with room for `length` bytes, and this length.
fn buffer(length: u64) -> io::Result<(Vec<u8>, usize)> {
    let mut bytes = Vec::new();
    let length = usize::try_from(length).map_err(|_| ErrorKind::OutOfMemory)?;
    let reserved = bytes.try_reserve_exact(length);
    reserved.map_err(|_| ErrorKind::OutOfMemory)?;
    Ok((bytes, length))
}

/// Returns the error of an object that is a file.
pub(super) fn read_error(key: &Key, error: io::Error) -> ReadError {
    let key = key.clone();
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
