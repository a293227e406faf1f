//! The locations of stored chunks.

use core::ops::Range;
use std::{path::PathBuf, sync::Arc};

use super::B2ndError;
use crate::{ByteSource, DenseError, FileSource};

/// The location of the chunks of an array.
#[derive(Debug)]
pub(super) enum ChunkLocation {
    /// A range of the source of the frame.
    Frame {
        source: Arc<dyn ByteSource>,
        chunks: Range<u64>,
    },
    /// One file per chunk in this directory.
    Directory(PathBuf),
}

/// A stored chunk: a source and the maximum extent of the chunk in it.
#[derive(Debug)]
pub(super) struct StoredChunk<'a> {
    source: SourceOf<'a>,
    start: u64,
    /// Number of available bytes from the start of the chunk.
    pub(super) space: u64,
}

#[derive(Debug)]
enum SourceOf<'a> {
    Shared(&'a dyn ByteSource),
    Own(FileSource),
}

impl ChunkLocation {
    /// Returns the stored chunk with index entry `at`.
    ///
    /// # Errors
    ///
    /// If the entry is out of range, or the chunk file cannot be opened.
    pub(super) fn stored(
        &self,
        name: &str,
        chunk: u64,
        at: u64,
    ) -> Result<StoredChunk<'_>, DenseError> {
        let nowhere = || DenseError::b2nd(name, B2ndError::Entry { chunk, entry: at });
        match self {
            Self::Frame { source, chunks } => {
                let start = chunks.start.checked_add(at);
                let start = start
                    .filter(|start| *start < chunks.end)
                    .ok_or_else(nowhere)?;
                Ok(StoredChunk {
                    source: SourceOf::Shared(&**source),
                    start,
                    space: chunks.end.saturating_sub(start),
                })
            }
            Self::Directory(folder) => {
                let number = u32::try_from(at).map_err(|_| nowhere())?;
                let file = FileSource::open(&folder.join(file_name(number)))?;
                Ok(StoredChunk {
                    start: 0,
                    space: file.len(),
                    source: SourceOf::Own(file),
                })
            }
        }
    }
}

/// Returns the name of the chunk file with this number.
pub(super) fn file_name(number: u32) -> String {
    format!("{number:08X}.chunk")
}

impl StoredChunk<'_> {
    /// Returns the preferred length of a read in bytes.
    pub(super) fn run(&self) -> u64 {
        match &self.source {
            SourceOf::Shared(source) => source.run(),
            SourceOf::Own(file) => file.run(),
        }
    }

    /// Returns bytes of the chunk: borrowed if the source is in memory, else read into `buffer`.
    /// Ranges beyond [`space`](Self::space) are rejected before memory is reserved.
    pub(super) fn read<'b>(
        &'b self,
        range: Range<u64>,
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], DenseError> {
        if range.is_empty() {
            return Ok(&[]);
        }
        let source: &dyn ByteSource = match &self.source {
            SourceOf::Shared(source) => *source,
            SourceOf::Own(file) => file,
        };
        let ends = || DenseError::io(source.name(), std::io::ErrorKind::UnexpectedEof.into());
        let len = range
            .end
            .checked_sub(range.start)
            .filter(|_| range.end <= self.space);
        let len = len
            .and_then(|len| usize::try_from(len).ok())
            .ok_or_else(ends)?;
        let start = self.start.saturating_add(range.start);
        if let Some(bytes) = source.bytes() {
            let start = usize::try_from(start).ok();
            let rest = start.and_then(|start| bytes.get(start..));
            return rest.and_then(|rest| rest.get(..len)).ok_or_else(ends);
        }
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        let (buffer, _) = buffer.split_at_mut(len);
        let read = source.read_into(start, buffer);
        read.map_err(|error| DenseError::io(source.name(), error))?;
        Ok(buffer)
    }
}
