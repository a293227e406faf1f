//! Files that are read from start to end, within the bytes that they have.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use flate2::read::MultiGzDecoder;

use crate::{FileError, FileFault, FilePlace};

/// Upper bound on the length of a line.
const LONGEST_LINE: u64 = 64 << 20;
/// Size of the read buffer.
const BUFFER: usize = 1 << 18;

/// Opens a regular file for reading. Opening a pipe would wait for a writer.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() {
        File::open(path)
    } else {
        Err(io::Error::other(
            "it is not a regular file; replace it by one",
        ))
    }
}

/// A shared file handle with its own position. All readers of the parts of a file share one handle,
/// because the number of open files of a process is limited.
#[derive(Debug)]
struct SharedFile {
    file: Arc<File>,
    at: u64,
}

impl Read for SharedFile {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(self.at))?;
        let read = file.read(bytes)?;
        self.at = self
            .at
            .saturating_add(length_of(bytes.get(..read).unwrap_or_default()));
        Ok(read)
    }
}

impl Seek for SharedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(step) => self.at.checked_add_signed(step),
            SeekFrom::End(step) => self.file.metadata()?.len().checked_add_signed(step),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// A file with the position of the next byte.
#[derive(Debug)]
pub(crate) struct ByteReader {
    path: PathBuf,
    file: BufReader<SharedFile>,
    at: u64,
    length: u64,
}

impl ByteReader {
    /// Opens a file. A file whose name ends in `.gz` is unpacked to a temporary file of at most
    /// `limit` bytes.
    pub(crate) fn open(path: &Path, limit: u64) -> Result<Self, FileError> {
        let in_file = |source| FileFault::Io(source).of(path);
        let mut file = open_regular(path).map_err(in_file)?;
        if path
            .extension()
            .is_some_and(|end| end.eq_ignore_ascii_case("gz"))
        {
            file = unpacked(file, limit).map_err(|fault| fault.of(path))?;
        }
        let length = file.metadata().map_err(in_file)?.len();
        Ok(Self::part(path, Arc::new(file), 0, length))
    }

    /// Reads `length` bytes from `start` on in a file that is open. Other parts of it may be read at
    /// the same time, but not on other threads.
    pub(crate) fn part(path: &Path, file: Arc<File>, start: u64, length: u64) -> Self {
        let file = SharedFile { file, at: start };
        Self {
            path: path.to_path_buf(),
            file: BufReader::with_capacity(BUFFER, file),
            at: start,
            length: start.saturating_add(length),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Returns a handle on the file, at its start. Parts of the file do not depend on its position.
    pub(crate) fn handle(&self) -> Result<File, FileError> {
        let handle = self.file.get_ref().file.try_clone();
        let at_start = handle.and_then(|mut handle| handle.rewind().map(|()| handle));
        at_start.map_err(|source| self.error(source.into()))
    }

    /// Returns the number of bytes left.
    pub(crate) fn left(&self) -> u64 {
        self.length.saturating_sub(self.at)
    }

    /// Adds the path and the position to a fault.
    pub(crate) fn error(&self, fault: FileFault) -> FileError {
        fault.at(&self.path, FilePlace::Byte(self.at))
    }

    /// Moves to a position.
    pub(crate) fn seek(&mut self, at: u64) -> Result<(), FileError> {
        let moved = match i64::try_from(at).ok().zip(i64::try_from(self.at).ok()) {
            // Keeps the buffer for steps inside it.
            Some((to, from)) => self.file.seek_relative(to.saturating_sub(from)),
            None => self.file.seek(SeekFrom::Start(at)).map(|_| ()),
        };
        moved.map_err(|source| self.error(source.into()))?;
        self.at = at;
        Ok(())
    }

    /// Checks that `needed` bytes are left for `what`.
    pub(crate) fn check(&self, needed: u64, what: &'static str) -> Result<(), FileError> {
        let left = self.left();
        if needed > left {
            return Err(self.error(FileFault::Truncated { what, needed, left }));
        }
        Ok(())
    }

    /// Fills `bytes`, which are those of `what`.
    pub(crate) fn fill(&mut self, bytes: &mut [u8], what: &'static str) -> Result<(), FileError> {
        let needed = length_of(bytes);
        self.check(needed, what)?;
        self.file
            .read_exact(bytes)
            .map_err(|source| self.error(source.into()))?;
        self.at = self.at.saturating_add(needed);
        Ok(())
    }

    /// Replaces the content of `bytes` by the next `length` bytes. Nothing is reserved for a length
    /// that the file does not have.
    pub(crate) fn take(
        &mut self,
        bytes: &mut Vec<u8>,
        length: u64,
        what: &'static str,
    ) -> Result<(), FileError> {
        self.check(length, what)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if bytes.capacity() < length {
            // Fresh pages are zero already, so they are not written before the file is read.
            *bytes = vec![0; length];
        } else {
            bytes.resize(length, 0);
        }
        self.fill(bytes, what)
    }

    /// Replaces the content of `bytes` by the next line with its end; empty at the end of the file.
    /// Lines are limited, because a damaged file may have none.
    pub(crate) fn line(&mut self, bytes: &mut Vec<u8>) -> Result<(), FileError> {
        bytes.clear();
        let limit = LONGEST_LINE.min(self.left());
        let read = (&mut self.file).take(limit).read_until(b'\n', bytes);
        read.map_err(|source| self.error(source.into()))?;
        let length = length_of(bytes);
        if length == LONGEST_LINE {
            let fault = FileFault::Unsupported("a line is longer than 64 MiB; the file is damaged");
            return Err(self.error(fault));
        }
        self.at = self.at.saturating_add(length);
        Ok(())
    }

    /// Reads a field of `N` bytes.
    pub(crate) fn array<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<[u8; N], FileError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, what)?;
        Ok(bytes)
    }
}

/// Unpacks a gzip stream to a temporary file, whose position is its start.
fn unpacked(packed: File, limit: u64) -> Result<File, FileFault> {
    let mut decoder = MultiGzDecoder::new(BufReader::with_capacity(BUFFER, packed));
    let mut file = tempfile::tempfile()?;
    copy_within(&mut decoder, &mut file, limit)?;
    file.rewind()?;
    Ok(file)
}

/// Copies a stream of at most `limit` bytes.
pub(crate) fn copy_within(
    from: &mut impl Read,
    to: &mut impl Write,
    limit: u64,
) -> Result<u64, FileFault> {
    let copied = io::copy(&mut from.take(limit.saturating_add(1)), to)?;
    if copied > limit {
        return Err(FileFault::Unpacked { limit });
    }
    Ok(copied)
}

/// Returns the length of a slice.
pub(crate) fn length_of<T>(items: &[T]) -> u64 {
    u64::try_from(items.len()).unwrap_or(u64::MAX)
}
