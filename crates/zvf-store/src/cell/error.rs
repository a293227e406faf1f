//! Errors of reading cells.

use core::{error::Error, ops::Range};
use std::sync::Arc;

use zvf_codecs::{DecodeError, ShardEntryError};
use zvf_format::vlen::VlenFrameError;
use zvf_model::{error_kind::ErrorKind, key::Key, metadata::MetadataError, zarr::IndexError};

use super::array::CellArrayError;
use crate::io::ReadError;

/// An error of reading a cell. An absent cell is not an error.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CellError {
    /// The array has no such cell.
    #[error("{node}: no such cell")]
    Index {
        /// The array.
        node: Key,
        /// The cause.
        source: IndexError,
    },
    /// The object cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The bytes cannot be decoded.
    #[error("{key}: cannot be decoded")]
    Decode {
        /// The object.
        key: Key,
        /// The cause.
        source: DecodeError,
    },
    /// The cell decodes to more than the rest of the memory budget. No more than that was allocated.
    #[error("{key}: decodes to more than the {left} bytes left of the memory budget")]
    OverBudget {
        /// The object.
        key: Key,
        /// The rest of the budget in bytes.
        left: u64,
    },
    /// The decoded bytes are not a frame.
    #[error("{key}: is not a frame of items")]
    Frame {
        /// The object.
        key: Key,
        /// The cause.
        source: VlenFrameError,
    },
    /// A frame does not hold one item, as a chunk of one element requires.
    #[error("{key}: is a frame of {found} items, but the chunk has one element")]
    ItemCount {
        /// The object.
        key: Key,
        /// The number of items that the frame declares.
        found: u32,
    },
    /// The requested part lies outside the payload.
    #[error("{key}: bytes {}..{} of a payload of {size}", part.start, part.end)]
    PartOutOfBounds {
        /// The object.
        key: Key,
        /// The requested part.
        part: Range<u64>,
        /// The size of the payload.
        size: u64,
    },
    /// The index of a shard is damaged.
    #[error("{key}: the index of the shard is damaged")]
    ShardIndex {
        /// The shard.
        key: Key,
        /// The cause.
        source: DecodeError,
    },
    /// An entry of the index of a shard is not a range.
    #[error("{key}: the index of the shard is damaged")]
    ShardEntry {
        /// The shard.
        key: Key,
        /// The entry.
        source: ShardEntryError,
    },
    /// Decoding panicked or its runtime shut down.
    #[error("{key}: decoding was interrupted")]
    Interrupted {
        /// The object.
        key: Key,
        /// The cause.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The metadata of a child cannot be read.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// A child is not an array of bytes with one chunk.
    #[error("{node}: is not {expected}")]
    NotABlob {
        /// The child.
        node: Key,
        /// The required kind of array.
        expected: &'static str,
    },
    /// The metadata of a child describe cells that cannot be read.
    #[error("{node}: cells cannot be read")]
    Array {
        /// The child.
        node: Key,
        /// The cause.
        source: CellArrayError,
    },
    /// The array was opened by another kind of port.
    #[error("{0} was opened by another kind of port")]
    ForeignArray(Key),
    /// One of the two objects of a child is absent although the other exists.
    #[error("{key}: is missing although {other} exists")]
    CounterpartMissing {
        /// The absent object.
        key: Key,
        /// The object that exists.
        other: Key,
    },
}

impl CellError {
    /// Returns the class of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Read(error) => error.kind(),
            Self::OverBudget { .. } => ErrorKind::OverBudget,
            Self::Array { source, .. } => source.kind(),
            Self::Interrupted { .. } => ErrorKind::Interrupted,
            Self::ForeignArray(_) => ErrorKind::Unavailable,
            Self::Index { .. }
            | Self::Decode { .. }
            | Self::Frame { .. }
            | Self::ItemCount { .. }
            | Self::PartOutOfBounds { .. }
            | Self::ShardIndex { .. }
            | Self::ShardEntry { .. }
            | Self::Metadata(_)
            | Self::NotABlob { .. }
            | Self::CounterpartMissing { .. } => ErrorKind::Damaged,
        }
    }

    /// Returns the array or object of the cell.
    pub fn key(&self) -> &Key {
        match self {
            Self::Index { node, .. }
            | Self::NotABlob { node, .. }
            | Self::Array { node, .. }
            | Self::ForeignArray(node) => node,
            Self::Read(error) => error.key(),
            Self::Metadata(error) => &error.key,
            Self::Decode { key, .. }
            | Self::OverBudget { key, .. }
            | Self::Frame { key, .. }
            | Self::ItemCount { key, .. }
            | Self::PartOutOfBounds { key, .. }
            | Self::ShardIndex { key, .. }
            | Self::ShardEntry { key, .. }
            | Self::Interrupted { key, .. }
            | Self::CounterpartMissing { key, .. } => key,
        }
    }

    /// Returns whether the cell is damaged or inconsistent with its metadata, so that a retry fails
    /// again.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Read(read) => read.is_damage(),
            Self::Interrupted { .. } | Self::ForeignArray(_) => false,
            _ => !self.is_over_budget() && !self.is_unsupported(),
        }
    }

    /// Returns whether the cell uses a type or codec that this build does not decode.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::Array { source, .. } if source.is_unsupported())
    }

    /// Returns whether the cell exceeds the memory budget.
    pub fn is_over_budget(&self) -> bool {
        matches!(
            self,
            Self::Read(ReadError::OverBudget { .. }) | Self::OverBudget { .. }
        )
    }
}
