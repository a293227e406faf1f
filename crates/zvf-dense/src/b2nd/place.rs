//! The files chunks are in.

use core::ops::Range;
use std::{path::PathBuf, sync::Arc};

use super::B2ndError;
use crate::{ByteSource, DenseError, FileSource};

/// Where an array's chunks are.
#[derive(Debug)]
pub(super) enum Place {
    /// In the frame: this part of its source.
    Frame {
        source: Arc<dyn ByteSource>,
        chunks: Range<u64>,
    },
    /// Each in a file of this directory.
    Directory(PathBuf),
}

/// One stored chunk: a part of a source, to the end of what can be its.
#[derive(Debug)]
pub(super) struct Stored<'a> {
    source: SourceOf<'a>,
    start: u64,
    /// Bytes from the start on that there are.
    pub(super) space: u64,
}

#[derive(Debug)]
enum SourceOf<'a> {
    Shared(&'a dyn ByteSource),
    Own(FileSource),
}

impl Place {
    /// The chunk that the index says is `at`.
    ///
    /// # Errors
    ///
    /// When there is nothing, or its file cannot be opened.
    pub(super) fn stored(&self, name: &str, chunk: u64, at: u64) -> Result<Stored<'_>, DenseError> {
        let nowhere = || DenseError::b2nd(name, B2ndError::Entry { chunk, entry: at });
        match self {
            Self::Frame { source, chunks } => {
                let start = chunks.start.checked_add(at);
                let start = start.filter(|start| *start < chunks.end);
                let start = start.ok_or_else(nowhere)?;
                Ok(Stored {
                    source: SourceOf::Shared(&**source),
                    start,
                    space: chunks.end.saturating_sub(start),
                })
            }
            Self::Directory(folder) => {
                let number = u32::try_from(at).map_err(|_| nowhere())?;
                let file = FileSource::open(&folder.join(file_name(number)))?;
                Ok(Stored {
                    start: 0,
                    space: file.len(),
                    source: SourceOf::Own(file),
                })
            }
        }
    }
}

/// The name of the file with this number.
pub(super) fn file_name(number: u32) -> String {
    format!("{number:08X}.chunk")
}

impl Stored<'_> {
    /// How many bytes are best read together.
    pub(super) fn run(&self) -> u64 {
        match &self.source {
            SourceOf::Shared(source) => source.run(),
            SourceOf::Own(file) => file.run(),
        }
    }

    /// Bytes of the chunk: borrowed where they are in memory, else read into
    /// `buffer`. More than [`space`](Self::space) is an error before memory is
    /// reserved.
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
        let len = range.end.checked_sub(range.start);
        let len = len.filter(|_| range.end <= self.space);
        let len = len.and_then(|len| usize::try_from(len).ok());
        let len = len.ok_or_else(ends)?;
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
