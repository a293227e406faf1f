//! Encoded objects that exceed the memory, in unnamed temporary files.

use std::{
    fs::File,
    hash::{DefaultHasher, Hasher},
    io::{self, BufWriter, Write},
};

use zvf_dense::{ByteSource, FileSource};

use crate::layers::LayerError;

pub(super) const TEMPORARY: &str = "temporary file";

/// An encoded object in a temporary file, which is deleted after its last use.
#[derive(Debug)]
pub(super) struct StoredObject {
    file: FileSource,
    e_tag: String,
}

impl StoredObject {
    /// Returns the size of the object.
    pub(super) fn len(&self) -> u64 {
        self.file.len()
    }

    /// Returns the entity tag, a hash of the bytes.
    pub(super) fn e_tag(&self) -> &str {
        &self.e_tag
    }

    /// Reads `size` bytes from `start`.
    ///
    /// # Errors
    ///
    /// [`LayerError::Temporary`] if the file cannot be read.
    pub(super) fn read(&self, start: u64, size: u64) -> Result<Vec<u8>, LayerError> {
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        let read = self.file.read_into(start, &mut bytes);
        read.map(|()| bytes).map_err(LayerError::Temporary)
    }
}

/// Writes an object to a file.
pub(super) struct ObjectWriter {
    file: BufWriter<File>,
    hasher: DefaultHasher,
    len: u64,
}

impl ObjectWriter {
    /// Creates a file.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            file: BufWriter::with_capacity(1 << 20, tempfile::tempfile()?),
            hasher: DefaultHasher::new(),
            len: 0,
        })
    }

    /// Returns the object.
    pub(super) fn finish(self) -> io::Result<StoredObject> {
        let file = self.file.into_inner()?;
        Ok(StoredObject {
            file: FileSource::of_file(TEMPORARY, file, self.len),
            e_tag: format!("\"{:016x}-{:x}\"", self.hasher.finish(), self.len),
        })
    }
}

impl Write for ObjectWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all(bytes)?;
        self.hasher.write(bytes);
        let written = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.len = self.len.saturating_add(written);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
