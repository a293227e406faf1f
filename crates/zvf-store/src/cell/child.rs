//! An array of which only the key is known: a blob of one chunk, as stores up
//! to 0.8 have one for every cell.

use bytes::Bytes;
use zvf_format::numeric::Kind;
use zvf_model::{
    key::{Key, KeyError},
    zarr::{DataType, IndexError, Node},
};

use super::{
    Answer, CellError,
    element::{Delivered, Element, Part, cut_each},
};
use crate::{array::CellArray, range::Read, read::Budget};

/// A child and its two objects, where they usually are.
#[derive(Clone, Debug)]
pub(super) struct Child {
    node: Key,
    metadata: Key,
    chunk: Key,
}

/// What the first look at a child told.
pub(super) enum Look {
    /// All there is to know.
    Known(Result<Option<Bytes>, CellError>),
    /// The chunk as it is stored.
    Chunk(Blob, Bytes),
    /// The chunk has another name than was asked for.
    Elsewhere(Blob),
}

/// The chunk of a child whose metadata were read.
pub(super) struct Blob {
    element: Element,
    chunk: Key,
    metadata: Key,
    /// Elements of the array, of which the chunk may hold more.
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

    /// The two reads: metadata, chunk.
    pub(super) fn plan(&self, reads: &mut Vec<Read>) {
        reads.push(Read::full(self.metadata.clone()));
        reads.push(Read::full(self.chunk.clone()));
    }

    /// Makes of the answers to the planned reads what can be made of them.
    pub(super) fn look(&self, metadata: Delivered, chunk: Delivered) -> Look {
        let metadata = match metadata {
            Ok(Some(metadata)) => metadata,
            Ok(None) => return Look::Known(self.without_metadata(chunk)),
            Err(error) => return Look::Known(Err(error.into())),
        };
        let blob = match self.blob(&metadata) {
            Ok(Some(blob)) => blob,
            Ok(None) => return Look::Known(Ok(Some(Bytes::new()))),
            Err(error) => return Look::Known(Err(error)),
        };
        if blob.chunk != self.chunk {
            return Look::Elsewhere(blob);
        }
        match chunk {
            Ok(Some(chunk)) => Look::Chunk(blob, chunk),
            Ok(None) => Look::Known(Err(blob.absent())),
            Err(error) => Look::Known(Err(error.into())),
        }
    }

    fn without_metadata(&self, chunk: Delivered) -> Result<Option<Bytes>, CellError> {
        match chunk? {
            None => Ok(None),
            Some(_) => Err(CellError::CounterpartMissing {
                key: self.metadata.clone(),
                other: self.chunk.clone(),
            }),
        }
    }

    /// What the metadata describe; `None` when it has no element.
    fn blob(&self, metadata: &[u8]) -> Result<Option<Blob>, CellError> {
        let node = || self.node.clone();
        let not = |expected| CellError::NotABlob {
            node: node(),
            expected,
        };
        let array = match Node::parse(&self.metadata, metadata)? {
            Node::Array(array) if array.data_type == DataType::Number(Kind::UInt8) => array,
            _ => return Err(not("an array of uint8")),
        };
        let (&[size], &[chunk_size]) = (&array.shape[..], &array.chunk_shape[..]) else {
            return Err(not("an array of one dimension"));
        };
        if size > chunk_size || array.sharding().is_some() {
            return Err(not("an array of one chunk"));
        }
        if size == 0 {
            return Ok(None);
        }
        let chunk = array.chunk_key(&self.node, &[0]);
        let chunk = chunk.map_err(|source| CellError::Index {
            node: node(),
            source,
        })?;
        let array = CellArray::new(node(), array);
        let array = array.map_err(|source| CellError::Array {
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

    /// The answers to `parts` of its payload.
    pub(super) fn answers(
        &self,
        payload: &Result<Option<Bytes>, CellError>,
        parts: &[Part],
    ) -> Vec<Answer> {
        cut_each(&self.chunk, payload, parts)
    }
}

impl Blob {
    /// The read of the chunk.
    pub(super) fn read(&self) -> Read {
        Read::full(self.chunk.clone())
    }

    /// The payload, from what was read of the chunk.
    pub(super) fn payload(
        &self,
        chunk: Delivered,
        budget: &Budget,
    ) -> Result<Option<Bytes>, CellError> {
        let payload = self.element.payload(chunk, budget)?;
        let payload = payload.ok_or_else(|| self.absent())?;
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        Ok(Some(payload.slice(..size.min(payload.len()))))
    }

    /// By Zarr's rules an absent chunk is fill values; nobody writes a blob so.
    fn absent(&self) -> CellError {
        CellError::CounterpartMissing {
            key: self.chunk.clone(),
            other: self.metadata.clone(),
        }
    }
}
