//! Mapped files, the only place in this crate with `unsafe`.

use core::fmt;
use std::{fs::File, io, path::Path};

use memmap2::Mmap;

use super::{ByteSource, copy, file::open_regular};
use crate::DenseError;

/// A file mapped into memory.
///
/// No process may truncate the file while it is mapped: reading past its new end kills the process,
/// which no library can prevent. Changes in place become visible to readers. If other processes write
/// to the file, use [`FileSource`](super::FileSource).
pub struct MappedFile {
    name: String,
    /// `None` for an empty file, which cannot be mapped.
    map: Option<Mmap>,
}

impl MappedFile {
    /// Maps a file for reading.
    ///
    /// # Errors
    ///
    /// If it cannot be opened or mapped.
    pub fn open(path: &Path) -> Result<Self, DenseError> {
        let name = path.display().to_string();
        match open_regular(path).and_then(|file| map(&file)) {
            Ok(map) => Ok(Self { name, map }),
            Err(error) => Err(DenseError::io(&name, error)),
        }
    }
}

#[expect(unsafe_code, reason = "mapping a file is unsafe by nature")]
fn map(file: &File) -> io::Result<Option<Mmap>> {
    if file.metadata()?.len() == 0 {
        return Ok(None);
    }
    // SAFETY: the map is private to this type, read-only, and lent out only as `&[u8]` with its
    // lifetime. The file may change under the map: any byte value is valid, and every use parses
    // the bytes with checks and never relies on an earlier check. The file must not be truncated,
    // which the documentation of the type requires of the caller, as for every mapped reader.
    unsafe { Mmap::map(file) }.map(Some)
}

impl fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MappedFile({:?}, {} bytes)", self.name, self.len())
    }
}

impl ByteSource for MappedFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        let len = self.map.as_ref().map_or(0, |map| map.len());
        u64::try_from(len).unwrap_or(u64::MAX)
    }

    fn read_into(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        copy(self.map.as_deref().unwrap_or_default(), offset, into)
    }

    fn bytes(&self) -> Option<&[u8]> {
        Some(self.map.as_deref().unwrap_or_default())
    }
}
