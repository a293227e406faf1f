//! Arrays as a source of cells: their keys, codecs and sharding.

use std::sync::Arc;

use zvf_model::{
    error_kind::ErrorKind,
    key::Key,
    zarr::{Array, DataType, IndexError},
};

use zvf_codecs::{ChunkCodecs, CodecsError, DecodedForm, ShardLayout};

/// An array prepared for reading and writing its cells.
///
/// A cell is the smallest unit of a read: a chunk, or an inner chunk of a sharded array.
///
/// Cloning is cheap.
#[derive(Clone, Debug, PartialEq)]
pub struct CellArray {
    description: Arc<Description>,
    /// Checksums of cells are not needed to read parts of them.
    is_sealed: bool,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Description {
    pub(crate) node: Key,
    array: Arc<Array>,
    pub(crate) codecs: ChunkCodecs,
    pub(crate) sharding: Option<ShardLayout>,
    pub(crate) items: CellContents,
}

/// The contents of a decoded cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellContents {
    /// Elements of a fixed size; the number of bytes.
    Fixed(u64),
    /// A frame of one byte string, which is the payload.
    Framed,
    /// A frame of several byte strings, which is the payload.
    Frames,
}

/// An error of an array whose cells cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CellArrayError {
    /// The elements are not numbers, text or byte strings.
    #[error("data type {0:?} is not supported")]
    DataType(String),
    /// The size of a chunk overflows.
    #[error("a chunk is too large")]
    ChunkSize,
    /// The first codec cannot serialise the data type.
    #[error("the codec does not support the data type")]
    Serialiser,
    /// The codecs are not supported.
    #[error("the codecs are not supported")]
    Codecs(#[from] CodecsError),
}

impl CellArrayError {
    /// Returns whether the array uses a type or codec that this build does not decode. Other
    /// errors are damage.
    pub fn is_unsupported(&self) -> bool {
        match self {
            Self::DataType(_) => true,
            Self::Codecs(codecs) => !matches!(codecs, CodecsError::NoSerialiser),
            Self::ChunkSize | Self::Serialiser => false,
        }
    }

    /// Returns the class of the error.
    pub fn kind(&self) -> ErrorKind {
        if self.is_unsupported() {
            ErrorKind::Unsupported
        } else {
            ErrorKind::Damaged
        }
    }
}

impl CellArray {
    /// Prepares the array at `node` with the given metadata.
    ///
    /// # Errors
    ///
    /// [`CellArrayError`] when its cells cannot be read.
    pub fn new(node: Key, array: impl Into<Arc<Array>>) -> Result<Self, CellArrayError> {
        let array = array.into();
        let sharding = ShardLayout::new(&array)?;
        let codecs = match &sharding {
            Some(sharding) => sharding.codecs().clone(),
            None => ChunkCodecs::new(&array.codecs)?,
        };
        let items = CellContents::of(&array)?;
        let framed = codecs.form() == DecodedForm::VlenFrame;
        if framed == matches!(items, CellContents::Fixed(_)) {
            return Err(CellArrayError::Serialiser);
        }
        Ok(Self {
            description: Arc::new(Description {
                node,
                array,
                codecs,
                sharding,
                items,
            }),
            is_sealed: false,
        })
    }

    /// Returns the key of the array.
    pub fn node(&self) -> &Key {
        &self.description.node
    }

    /// Returns the metadata of the array.
    pub fn metadata(&self) -> &Arc<Array> {
        &self.description.array
    }

    /// Returns whether a part of a cell can be read without the rest.
    pub fn is_plain(&self) -> bool {
        self.description.codecs.is_plain()
    }

    /// Returns this array in a store whose inventory has checksums of parts of cells.
    pub(super) fn sealed(self) -> Self {
        Self {
            is_sealed: true,
            ..self
        }
    }

    /// Returns whether a reader of the store reads a part of a cell without the rest.
    pub(super) fn is_read_in_parts(&self) -> bool {
        let trailer = self.description.codecs.trailer();
        trailer.is_some_and(|bytes| bytes == 0 || self.is_sealed)
    }

    /// Returns whether a reader of the store reads a part of a compressed cell by block.
    pub(super) fn is_read_in_blocks(&self) -> bool {
        let Description { codecs, items, .. } = &*self.description;
        self.is_sealed && *items != CellContents::Frames && codecs.block_trailer().is_some()
    }

    /// Returns whether cells share objects.
    pub fn is_sharded(&self) -> bool {
        self.description.sharding.is_some()
    }

    /// Returns the codecs of a cell.
    pub fn codecs(&self) -> &ChunkCodecs {
        &self.description.codecs
    }

    /// Returns the number of shards, stored or not.
    pub(super) fn shard_count(&self) -> usize {
        let Description {
            array, sharding, ..
        } = &*self.description;
        if sharding.is_none() {
            return 0;
        }
        let grid = array.grid_shape();
        let count = grid
            .iter()
            .fold(1, |n: u64, extent| n.saturating_mul(*extent));
        usize::try_from(count).unwrap_or(usize::MAX)
    }

    /// Returns the size of the indexes of all shards in bytes.
    pub(super) fn shard_index_bytes(&self) -> u64 {
        let count = u64::try_from(self.shard_count()).unwrap_or(u64::MAX);
        let size = self
            .description
            .sharding
            .as_ref()
            .map_or(0, ShardLayout::index_size);
        count.saturating_mul(size)
    }

    /// Returns the keys of all shards, stored or not, with their layout.
    pub(super) fn shards(&self) -> Vec<(Key, &ShardLayout)> {
        let Description {
            node,
            array,
            sharding: Some(sharding),
            ..
        } = &*self.description
        else {
            return Vec::new();
        };
        let grid = array.grid_shape();
        let mut shard = vec![0_u64; grid.len()];
        let mut shards = Vec::new();
        for _ in 0..self.shard_count() {
            let key = array.chunk_key(node, &shard);
            shards.extend(key.ok().map(|key| (key, sharding)));
            for (number, extent) in shard.iter_mut().zip(&grid).rev() {
                *number = number.saturating_add(1);
                if *number < *extent {
                    break;
                }
                *number = 0;
            }
        }
        shards
    }

    pub(crate) fn description(&self) -> &Arc<Description> {
        &self.description
    }
}

impl Description {
    pub(crate) fn rank(&self) -> usize {
        self.array.rank()
    }

    /// Returns whether the array has no elements, and so no objects.
    pub(crate) fn is_empty(&self) -> bool {
        self.array.shape.contains(&0)
    }

    /// Returns the object of a cell and, if it is a shard, the number of the cell in it.
    pub(crate) fn locate(&self, index: &[u64]) -> Result<(Key, Option<u64>), IndexError> {
        let Some(sharding) = &self.sharding else {
            return Ok((self.array.chunk_key(&self.node, index)?, None));
        };
        let rank = IndexError::Rank {
            expected: self.array.rank(),
            found: index.len(),
        };
        if index.len() != self.array.rank() {
            return Err(rank);
        }
        let (shard, number) = sharding.locate(index).ok_or(rank)?;
        Ok((self.array.chunk_key(&self.node, &shard)?, Some(number)))
    }
}

impl CellContents {
    fn of(array: &Array) -> Result<Self, CellArrayError> {
        let size = |width: u64| {
            let mut extents = array.decoded_shape().iter().copied();
            let size = extents.try_fold(width, u64::checked_mul);
            size.ok_or(CellArrayError::ChunkSize)
        };
        match &array.data_type {
            DataType::Number(kind) => {
                let width = u64::try_from(kind.size()).map_err(|_| CellArrayError::ChunkSize)?;
                size(width).map(Self::Fixed)
            }
            DataType::FixedText { bytes } => size(*bytes).map(Self::Fixed),
            DataType::VariableBytes | DataType::VariableText => match size(1)? {
                1 => Ok(Self::Framed),
                _ => Ok(Self::Frames),
            },
            DataType::Other { name, .. } => Err(CellArrayError::DataType(name.clone())),
            _ => Err(CellArrayError::DataType("unknown".to_owned())),
        }
    }
}
