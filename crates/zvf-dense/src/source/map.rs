//! A mapped file: the one place of this crate with `unsafe`.

use core::fmt;
use std::{fs::File, io, path::Path};

use memmap2::Mmap;

use super::{Source, copy};
use crate::DenseError;

/// A file mapped into memory, to borrow from.
///
/// While it is mapped nobody may cut the file short: reading what is gone
/// kills the process, and no library can prevent it. Who changes bytes in place
/// changes what is read. Where others write to the file, use
/// [`FileSource`](super::FileSource).
pub struct MappedFile {
    name: String,
    /// Nothing for an empty file, which cannot be mapped.
    map: Option<Mmap>,
}

impl MappedFile {
    /// Maps a file, to read only.
    ///
    /// # Errors
    ///
    /// When it cannot be opened or mapped.
    pub fn open(path: &Path) -> Result<Self, DenseError> {
        let name = path.display().to_string();
        match File::open(path).and_then(|file| map(&file)) {
            Ok(map) => Ok(Self { name, map }),
            Err(error) => Err(DenseError::io(&name, error)),
        }
    }
}

#[expect(unsafe_code, reason = "mapping a file cannot be done without")]
fn map(file: &File) -> io::Result<Option<Mmap>> {
    if file.metadata()?.len() == 0 {
        return Ok(None);
    }
    // SAFETY: the map is private to this type, is only read, and is given out as `&[u8]` that
    // lives no longer. What remains is that the file does not change under the map: bytes are
    // plain data, any value of which is valid, they are parsed with checks at each use and
    // never trusted twice; and that it is not cut short, which the type's documentation asks
    // of the caller, as every mapped reader must.
    unsafe { Mmap::map(file) }.map(Some)
}

impl fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MappedFile({:?}, {} bytes)", self.name, self.len())
    }
}

impl Source for MappedFile {
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
