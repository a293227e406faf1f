//! Why a cell cannot be read.

use core::{error::Error, ops::Range};
use std::sync::Arc;

use zvf_format::vlen::VlenFrameError;
use zvf_model::{key::Key, metadata::MetadataError, zarr::IndexError};

use crate::{array::CellArrayError, codec::DecodeError, read::ReadError, shard::ShardEntryError};

/// Why a cell cannot be read. That it is absent is not among the reasons.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CellError {
    /// The array has no such cell.
    #[error("{node}: no such cell")]
    Index {
        /// The array.
        node: Key,
        /// What is wrong with the index.
        source: IndexError,
    },
    /// The store did not give the bytes.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The bytes cannot be decoded.
    #[error("{key}: cannot be decoded")]
    Decode {
        /// The object.
        key: Key,
        /// What is wrong with its bytes.
        source: DecodeError,
    },
    /// The cell decodes to more than is left of the budget. No more than that
    /// was allocated.
    #[error("{key}: decodes to more than the {left} bytes left of the memory budget")]
    OverBudget {
        /// The object.
        key: Key,
        /// What was left.
        left: u64,
    },
    /// The decoded bytes are no frame.
    #[error("{key}: is no frame of items")]
    Frame {
        /// The object.
        key: Key,
        /// What is wrong with them.
        source: VlenFrameError,
    },
    /// A frame holds another number of items than the chunk has elements.
    #[error("{key}: a frame of {found} items where the chunk has one element")]
    ItemCount {
        /// The object.
        key: Key,
        /// Items the frame announces.
        found: u32,
    },
    /// The wanted part does not lie in the payload.
    #[error("{key}: bytes {}..{} of a payload of {size}", part.start, part.end)]
    PartOutOfBounds {
        /// The object.
        key: Key,
        /// What was asked for.
        part: Range<u64>,
        /// The payload's size.
        size: u64,
    },
    /// The index of a shard is damaged.
    #[error("{key}: the index of the shard is damaged")]
    ShardIndex {
        /// The shard.
        key: Key,
        /// What is wrong with its bytes.
        source: DecodeError,
    },
    /// The index of a shard has an entry that is no range.
    #[error("{key}: the index of the shard is damaged")]
    ShardEntry {
        /// The shard.
        key: Key,
        /// Which.
        source: ShardEntryError,
    },
    /// The runtime stopped before the cell was decoded.
    #[error("{key}: decoding was cut off")]
    Interrupted {
        /// The object.
        key: Key,
        /// How.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The metadata of a child cannot be read.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// A child is no array whose payload is one chunk of bytes.
    #[error("{node}: not {expected}")]
    NotABlob {
        /// The child.
        node: Key,
        /// What it should be.
        expected: &'static str,
    },
    /// The chunk of a child cannot be read as its metadata describe it.
    #[error("{node}: cells cannot be read")]
    Array {
        /// The child.
        node: Key,
        /// Why.
        source: CellArrayError,
    },
    /// One of the two objects of a child is absent while the other says that it
    /// should be there.
    #[error("{key}: absent, where {other} says it is there")]
    CounterpartMissing {
        /// The absent object.
        key: Key,
        /// The other one.
        other: Key,
    },
}

impl CellError {
    /// Whether what there is is damaged, or does not fit the rest of the store:
    /// asking again gives the same.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Read(read) => read.is_damage(),
            Self::Interrupted { .. } => false,
            _ => !self.is_over_budget(),
        }
    }

    /// Whether the budget is too small for it.
    pub fn is_over_budget(&self) -> bool {
        matches!(
            self,
            Self::Read(ReadError::OverBudget { .. }) | Self::OverBudget { .. }
        )
    }
}
