//! Files with positioned reads.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use super::ByteSource;
use crate::DenseError;

/// Opens a regular file for reading. Opening a pipe would wait for a writer.
pub(super) fn open_regular(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() {
        File::open(path)
    } else {
        Err(io::Error::other(
            "it is not a regular file; replace it by one",
        ))
    }
}

/// A file that any number of threads read at any position.
///
/// Unlike with [`MappedFile`](super::MappedFile), each read is a copy and a system call. In return, a
/// file that another process truncates causes an error instead of a crash.
#[derive(Debug)]
pub struct FileSource {
    name: String,
    len: u64,
    file: File,
}

impl FileSource {
    /// Opens a file and records its length.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, DenseError> {
        let name = path.display().to_string();
        let opened = open_regular(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        match opened {
            Ok((len, file)) => Ok(Self { name, len, file }),
            Err(error) => Err(DenseError::io(&name, error)),
        }
    }
}

impl FileSource {
    /// Takes an open file of known length, with a name for messages.
    pub fn of_file(name: &str, file: File, len: u64) -> Self {
        let name = name.to_owned();
        Self { name, len, file }
    }
}

impl ByteSource for FileSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    #[cfg(unix)]
    fn read_into(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, into, offset)
    }

    #[cfg(windows)]
    fn read_into(&self, mut offset: u64, mut into: &mut [u8]) -> io::Result<()> {
        while !into.is_empty() {
            let read = std::os::windows::fs::FileExt::seek_read(&self.file, into, offset)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            into = into.get_mut(read..).unwrap_or_default();
            offset = offset.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
        }
        Ok(())
    }
}
