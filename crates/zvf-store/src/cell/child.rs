//! Children: arrays with one chunk of bytes, known only by their keys.
//!
//! Stores of format 0.8 and older have such an array for every cell.

use bytes::Bytes;
use zvf_format::numeric::Kind;
use zvf_model::{
    key::{Key, KeyError},
    zarr::{DataType, IndexError, Node},
};

use super::{
    CellResult, Part,
    array::CellArray,
    element::{Element, ReadResult, slice_parts},
    error::CellError,
};
use crate::io::{ByteBudget, Read};

/// A child and its two objects under their usual names.
#[derive(Clone, Debug)]
pub(super) struct Child {
    node: Key,
    metadata: Key,
    chunk: Key,
}

/// The state of a child after its metadata and its usual chunk were read.
pub(super) enum ChildState {
    /// The payload, an absence or an error.
    Known(Result<Option<Bytes>, CellError>),
    /// The chunk to decode.
    Chunk(Blob, Bytes),
    /// The metadata name another chunk, which has to be read.
    ChunkRenamed(Blob),
}

/// The only chunk of a child, as its metadata describe it.
pub(super) struct Blob {
    element: Element,
    chunk: Key,
    metadata: Key,
    /// Size of the array, which may be less than that of the chunk.
    size: u64,
}

impl Child {
    pub(super) fn new(node: &Key) -> Result<Self, CellError> {
        let name = |key: Result<Key, KeyError>| {
            key.map_err(|source| CellError::Index {
                node: node.clone(),
                source: IndexError::Key(source),
            })
        };
        Ok(Self {
            node: node.clone(),
            metadata: name(node.metadata())?,
            chunk: name(node.join_path("c/0"))?,
        })
    }

    /// Adds the reads of the metadata and of the chunk.
    pub(super) fn plan(&self, reads: &mut Vec<Read>) {
        reads.push(Read::full(self.metadata.clone()));
        reads.push(Read::full(self.chunk.clone()));
    }

    /// Interprets the results of the planned reads.
    pub(super) fn resolve(&self, metadata: ReadResult, chunk: ReadResult) -> ChildState {
        let metadata = match metadata {
            Ok(Some(metadata)) => metadata,
            Ok(None) => return ChildState::Known(self.without_metadata(chunk)),
            Err(error) => return ChildState::Known(Err(error.into())),
        };
        let blob = match self.blob(&metadata) {
            Ok(Some(blob)) => blob,
            Ok(None) => return ChildState::Known(Ok(Some(Bytes::new()))),
            Err(error) => return ChildState::Known(Err(error)),
        };
        if blob.chunk != self.chunk {
            return ChildState::ChunkRenamed(blob);
        }
        match chunk {
            Ok(Some(chunk)) => ChildState::Chunk(blob, chunk),
            Ok(None) => ChildState::Known(Err(blob.absent())),
            Err(error) => ChildState::Known(Err(error.into())),
        }
    }

    fn without_metadata(&self, chunk: ReadResult) -> Result<Option<Bytes>, CellError> {
        match chunk? {
            None => Ok(None),
            Some(_) => Err(CellError::CounterpartMissing {
                key: self.metadata.clone(),
                other: self.chunk.clone(),
            }),
        }
    }

    /// Parses the metadata; `None` for an array without elements.
    fn blob(&self, metadata: &[u8]) -> Result<Option<Blob>, CellError> {
        let node = || self.node.clone();
        let unexpected = |expected| CellError::NotABlob {
            node: node(),
            expected,
        };
        let array = match Node::parse(&self.metadata, metadata)? {
            Node::Array(array) if array.data_type == DataType::Number(Kind::UInt8) => array,
            _ => return Err(unexpected("an array of uint8")),
        };
        let (&[size], &[chunk_size]) = (&array.shape[..], &array.chunk_shape[..]) else {
            return Err(unexpected("an array of one dimension"));
        };
        if size > chunk_size || array.sharding().is_some() {
            return Err(unexpected("an array of one chunk"));
        }
        if size == 0 {
            return Ok(None);
        }
        let chunk = array
            .chunk_key(&self.node, &[0])
            .map_err(|source| CellError::Index {
                node: node(),
                source,
            })?;
        let array = CellArray::new(node(), array).map_err(|source| CellError::Array {
            node: node(),
            source,
        })?;
        Ok(Some(Blob {
            element: Element::new(array.description(), &[0])?,
            chunk,
            metadata: self.metadata.clone(),
            size,
        }))
    }

    /// Returns the results of `parts` of the payload.
    pub(super) fn slice_parts(
        &self,
        payload: &Result<Option<Bytes>, CellError>,
        parts: &[Part],
    ) -> Vec<CellResult> {
        slice_parts(&self.chunk, payload, parts)
    }
}

impl Blob {
    /// Returns the read of the chunk.
    pub(super) fn read(&self) -> Read {
        Read::full(self.chunk.clone())
    }

    /// Decodes the chunk into the payload.
    pub(super) fn payload(
        &self,
        chunk: ReadResult,
        budget: &ByteBudget,
    ) -> Result<Option<Bytes>, CellError> {
        let payload = self
            .element
            .payload(chunk, budget)?
            .ok_or_else(|| self.absent())?;
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        Ok(Some(payload.slice(..size.min(payload.len()))))
    }

    /// Returns the error of an absent chunk. In Zarr an absent chunk holds fill values, but no writer
    /// omits the chunk of a child.
    fn absent(&self) -> CellError {
        CellError::CounterpartMissing {
            key: self.chunk.clone(),
            other: self.metadata.clone(),
        }
    }
}
