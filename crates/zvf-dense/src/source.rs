//! Sources of bytes: memory, files, mapped files and stores.

mod file;
mod map;
#[cfg(feature = "store")]
mod store;

pub use file::FileSource;
pub use map::MappedFile;
#[cfg(feature = "store")]
pub use store::StoreSource;

use core::{fmt, ops::Range};
use std::{borrow::Cow, io};

use crate::DenseError;

/// A sequence of bytes of known length that is read by range.
pub trait ByteSource: Send + Sync + fmt::Debug {
    /// Returns the file or address, for messages.
    fn name(&self) -> &str;

    /// Returns the number of bytes.
    fn len(&self) -> u64;

    /// Fills `into` with the bytes from `offset`.
    ///
    /// # Errors
    ///
    /// If the bytes cannot be read; [`io::ErrorKind::UnexpectedEof`] past the end.
    fn read_into(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Returns all bytes, if they are in memory or mapped.
    fn bytes(&self) -> Option<&[u8]> {
        None
    }

    /// Returns the preferred size of one read: small enough for the processor's cache, large enough to
    /// amortise the call.
    fn run(&self) -> u64 {
        256 << 10
    }

    /// Returns whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads several ranges, which a remote source can fetch together. Bytes in memory are borrowed.
    /// The caller bounds the memory for all ranges.
    ///
    /// # Errors
    ///
    /// The errors of [`read_into`](Self::read_into), with the name of the source.
    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Cow<'_, [u8]>>, DenseError> {
        ranges
            .iter()
            .map(|range| self.read(range.clone()))
            .collect()
    }

    /// Reads one range. A range past the end is an error before memory is reserved.
    ///
    /// # Errors
    ///
    /// The errors of [`read_into`](Self::read_into), with the name of the source.
    fn read(&self, range: Range<u64>) -> Result<Cow<'_, [u8]>, DenseError> {
        let in_file = |error| DenseError::io(self.name(), error);
        let ends = || in_file(io::ErrorKind::UnexpectedEof.into());
        if range.start > range.end || range.end > self.len() {
            return Err(ends());
        }
        if let Some(bytes) = self.bytes() {
            let part = part(bytes, range).ok_or_else(ends)?;
            return Ok(Cow::Borrowed(part));
        }
        let len = range.end.saturating_sub(range.start);
        let len = usize::try_from(len).map_err(|_| ends())?;
        let mut bytes = Vec::new();
        let reserved = bytes.try_reserve_exact(len);
        reserved.map_err(|_| in_file(io::ErrorKind::OutOfMemory.into()))?;
        bytes.resize(len, 0);
        self.read_into(range.start, &mut bytes).map_err(in_file)?;
        Ok(Cow::Owned(bytes))
    }
}

/// Bytes in memory.
#[derive(Clone)]
pub struct MemorySource {
    name: String,
    bytes: Vec<u8>,
}

impl MemorySource {
    /// Creates a source with a name for messages.
    pub fn new(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self {
            name: name.into(),
            bytes,
        }
    }
}

impl fmt::Debug for MemorySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "MemorySource({:?}, {} bytes)",
            self.name,
            self.bytes.len()
        )
    }
}

impl ByteSource for MemorySource {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        u64::try_from(self.bytes.len()).unwrap_or(u64::MAX)
    }

    fn read_into(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        copy(&self.bytes, offset, into)
    }

    fn bytes(&self) -> Option<&[u8]> {
        Some(&self.bytes)
    }
}

fn part(bytes: &[u8], range: Range<u64>) -> Option<&[u8]> {
    let start = usize::try_from(range.start).ok()?;
    let end = usize::try_from(range.end).ok()?;
    bytes.get(start..end)
}

fn copy(bytes: &[u8], offset: u64, into: &mut [u8]) -> io::Result<()> {
    let len = u64::try_from(into.len()).unwrap_or(u64::MAX);
    let end = offset.checked_add(len);
    let part = end.and_then(|end| part(bytes, offset..end));
    into.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
    Ok(())
}
