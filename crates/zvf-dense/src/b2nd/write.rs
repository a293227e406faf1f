//! Writing of frames.

use std::{
    fs,
    io::{self, BufWriter, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use tempfile::{NamedTempFile, TempDir};
use zvf_format::b2nd::FrameType;

use super::{
    B2ndError,
    design::{B2ndDesign, Layout},
    gather,
    index::{self, ZEROS},
    open::DIRECTORY_FRAME,
    place::file_name,
};
use crate::{ChunkGrid, DenseError, DenseSink, Hyperslab, array::check_elements, staged};

/// A writer of arrays, chunk by chunk. The array appears at its path only when it is complete. It
/// replaces an existing file, but not a directory with content.
#[derive(Debug)]
pub struct B2ndWriter {
    name: String,
    grid: ChunkGrid,
    layout: Layout,
    target: Target,
    entries: Vec<u64>,
    /// Total length of the chunks so far.
    cbytes: u64,
    /// Number of chunk files so far. Chunks of zeros have no file and no number, because c-blosc2
    /// compares numbers with the total length of all chunks.
    files: u32,
    chunk: Vec<u8>,
}

#[derive(Debug)]
enum Target {
    File(BufWriter<NamedTempFile>, PathBuf),
    Directory(TempDir, PathBuf),
    Memory(Vec<u8>),
}

impl B2ndWriter {
    /// Creates a file.
    ///
    /// # Errors
    ///
    /// If the format does not allow the design, or the file cannot be created.
    pub fn create(path: &Path, design: &B2ndDesign) -> Result<Self, DenseError> {
        let name = path.display().to_string();
        let file = staged::create(path).map_err(|error| DenseError::io(&name, error))?;
        let target = Target::File(BufWriter::new(file), path.to_owned());
        Self::new(name, design, FrameType::Contiguous, target)
    }

    /// Creates a sparse directory with one file per chunk.
    ///
    /// # Errors
    ///
    /// See [`create`](Self::create).
    pub fn create_directory(path: &Path, design: &B2ndDesign) -> Result<Self, DenseError> {
        let name = path.display().to_string();
        let parent = path
            .parent()
            .filter(|path| !path.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let folder = tempfile::Builder::new()
            .prefix(".zvf-")
            .tempdir_in(parent)
            .map_err(|error| DenseError::io(&name, error))?;
        let target = Target::Directory(folder, path.to_owned());
        Self::new(name, design, FrameType::Sparse, target)
    }

    fn new(
        name: String,
        design: &B2ndDesign,
        frame_type: FrameType,
        mut target: Target,
    ) -> Result<Self, DenseError> {
        let grid = design.grid().map_err(|source| DenseError::Grid {
            name: name.clone(),
            source,
        })?;
        let layout = design
            .layout(frame_type)
            .map_err(|error| DenseError::b2nd(&name, error))?;
        // Reserve space for the header. Its length does not depend on the final values.
        let header = layout
            .header(0, &layout.trailer)
            .map_err(|error| DenseError::b2nd(&name, error))?;
        let capacity = vec![0; header.len()];
        let put = match &mut target {
            Target::File(file, _) => file.write_all(&capacity),
            Target::Directory(..) => Ok(()),
            Target::Memory(frame) => frame.write_all(&capacity),
        };
        put.map_err(|error| DenseError::io(&name, error))?;
        Ok(Self {
            name,
            grid,
            layout,
            target,
            entries: Vec::new(),
            cbytes: 0,
            files: 0,
            chunk: Vec::new(),
        })
    }

    /// Encodes an array, given in row-major order, as a frame in memory.
    ///
    /// # Errors
    ///
    /// If the format does not allow the design, or the length of `bytes` does not match.
    pub fn encode(design: &B2ndDesign, bytes: &[u8]) -> Result<Vec<u8>, DenseError> {
        let target = Target::Memory(Vec::new());
        let mut writer = Self::new("memory".into(), design, FrameType::Contiguous, target)?;
        writer.put_all(bytes)?;
        match writer.complete()? {
            Target::Memory(frame) => Ok(frame),
            _ => Ok(Vec::new()),
        }
    }

    /// Writes all chunks of an array, given in row-major order.
    ///
    /// # Errors
    ///
    /// If the length of `bytes` does not match, or writing fails.
    pub fn put_all(&mut self, bytes: &[u8]) -> Result<(), DenseError> {
        let grid = self.grid.clone();
        let whole = Hyperslab::whole(grid.shape());
        let size = self.item_size();
        check_elements(&whole, u64::from(self.layout.spec.typesize), bytes)?;
        let mut cells = grid.chunks(&whole);
        let mut part = Vec::new();
        while let Some(parts) = cells.next() {
            let coordinate: Vec<u64> = parts.iter().map(|part| part.cell).collect();
            let chunk = grid.chunk_selection(&coordinate);
            let len = chunk.byte_len(u64::from(self.layout.spec.typesize));
            let len = len.and_then(|len| usize::try_from(len).ok());
            part.resize(len.unwrap_or_default(), 0);
            let extracted = gather::extract_chunk(size, bytes, &whole, &chunk, &mut part);
            extracted.ok_or_else(|| DenseError::buffer_size(part.len(), bytes.len()))?;
            self.put_chunk(&chunk, &part)?;
        }
        Ok(())
    }

    fn item_size(&self) -> usize {
        usize::try_from(self.layout.spec.typesize).unwrap_or(usize::MAX)
    }

    fn io(&self, error: io::Error) -> DenseError {
        DenseError::io(&self.name, error)
    }

    fn broken(&self, error: B2ndError) -> DenseError {
        DenseError::b2nd(&self.name, error)
    }

    /// Writes the index, the trailer and the header, and returns the target.
    fn complete(self) -> Result<Target, DenseError> {
        if self.grid.chunk_count() != u64::try_from(self.entries.len()).ok() {
            let chunk = u64::try_from(self.entries.len()).unwrap_or(u64::MAX);
            return Err(self.broken(B2ndError::Order { chunk }));
        }
        let tail = self
            .layout
            .tail(&self.entries)
            .map_err(|error| self.broken(error))?;
        let header = self
            .layout
            .header(self.cbytes, &tail)
            .map_err(|error| self.broken(error))?;
        let Self {
            name, mut target, ..
        } = self;
        let put = match &mut target {
            Target::File(file, _) => file
                .write_all(&tail)
                .and_then(|()| file.seek(SeekFrom::Start(0)))
                .and_then(|_| file.write_all(&header)),
            Target::Directory(folder, _) => {
                let frame = folder.path().join(DIRECTORY_FRAME);
                fs::write(frame, [header, tail].concat())
            }
            Target::Memory(frame) => {
                frame.extend_from_slice(&tail);
                for (byte, value) in frame.iter_mut().zip(&header) {
                    *byte = *value;
                }
                Ok(())
            }
        };
        put.map_err(|error| DenseError::io(&name, error))?;
        Ok(target)
    }
}

impl DenseSink for B2ndWriter {
    fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    fn put_chunk(&mut self, selection: &Hyperslab, bytes: &[u8]) -> Result<(), DenseError> {
        let chunk = u64::try_from(self.entries.len()).unwrap_or(u64::MAX);
        let next = self
            .grid
            .chunk_coordinate(chunk)
            .map(|coordinate| self.grid.chunk_selection(&coordinate));
        if next.as_ref() != Some(selection) {
            return Err(self.broken(B2ndError::Order { chunk }));
        }
        let len = usize::try_from(self.layout.spec.chunksize).unwrap_or(usize::MAX);
        self.chunk.resize(len, 0);
        let shape = selection.shape();
        let size = self.item_size();
        let typesize = u64::from(self.layout.spec.typesize);
        let needed = check_elements(selection, typesize, bytes)?;
        let gathered = gather::blocks(&self.grid, size, &shape, bytes, &mut self.chunk);
        gathered.ok_or_else(|| DenseError::buffer_size(needed, bytes.len()))?;
        if self.chunk.iter().all(|byte| *byte == 0) {
            self.entries.push(ZEROS);
            return Ok(());
        }
        let encoded = self
            .layout
            .encoder
            .encode(&self.chunk)
            .map_err(|error| self.broken(error.into()))?;
        let (entry, put) = match &mut self.target {
            Target::File(file, _) => (self.cbytes, file.write_all(&encoded)),
            Target::Memory(frame) => (self.cbytes, frame.write_all(&encoded)),
            Target::Directory(folder, _) => {
                let number = self.files;
                let next = number.checked_add(1);
                self.files = next.ok_or_else(|| DenseError::b2nd(&self.name, B2ndError::Large))?;
                let path = folder.path().join(file_name(number));
                (u64::from(number), fs::write(path, &encoded))
            }
        };
        put.map_err(|error| self.io(error))?;
        self.entries.push(entry);
        let len = u64::try_from(encoded.len()).unwrap_or(u64::MAX);
        self.cbytes = self.cbytes.saturating_add(len);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), DenseError> {
        let name = self.name.clone();
        let published = match self.complete()? {
            Target::File(file, path) => {
                let file = file.into_inner().map_err(io::IntoInnerError::into_error);
                file.and_then(|file| staged::publish(file, &path))
            }
            Target::Directory(folder, path) => {
                // `rename` does not replace a directory with content.
                fs::rename(folder.path(), path).map(|()| {
                    // The directory has been renamed, so it must not be removed on drop.
                    let _gone = folder.keep();
                })
            }
            Target::Memory(_) => Ok(()),
        };
        published.map_err(|error| DenseError::io(&name, error))
    }
}

impl Layout {
    /// Encodes the header of a frame with chunks of `cbytes` bytes, followed by `tail`.
    pub(super) fn header(&self, cbytes: u64, tail: &[u8]) -> Result<Vec<u8>, B2ndError> {
        let mut spec = self.spec;
        spec.cbytes = cbytes;
        spec.tail_len = u64::try_from(tail.len()).unwrap_or(u64::MAX);
        Ok(self.metalayers.finish_header(&spec)?)
    }

    /// Encodes the bytes after the chunks: the index, if there are chunks, and the trailer.
    pub(super) fn tail(&self, entries: &[u64]) -> Result<Vec<u8>, B2ndError> {
        let mut tail = index::encode(entries)?;
        tail.extend_from_slice(&self.trailer);
        Ok(tail)
    }
}
