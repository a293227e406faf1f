//! Errors of codecs.

use core::error::Error;
use std::sync::Arc;

use zvf_format::vlen::{VlenFrameError, VlenFrameLimit};

/// An error of a codec chain that is not supported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecsError {
    /// A codec is not supported, or not at its position in the chain.
    #[error("codec {0:?} is not supported here")]
    Unsupported(String),
    /// This build lacks the Cargo feature for a codec.
    #[error("codec {codec:?} needs the feature {feature:?}")]
    Feature {
        /// The codec.
        codec: String,
        /// The missing Cargo feature.
        feature: &'static str,
    },
    /// A field of a codec configuration has an unsupported value.
    #[error("the {field:?} of codec {codec:?} is not supported")]
    Configuration {
        /// The codec.
        codec: String,
        /// The field.
        field: &'static str,
    },
    /// The chain has no codec that turns values into bytes.
    #[error("no codec turns values into bytes")]
    NoSerialiser,
}

/// An error of decoding a chunk.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The compressed bytes are damaged.
    #[error("the bytes cannot be decoded by codec {codec:?}")]
    Damaged {
        /// The codec.
        codec: &'static str,
        /// The error of the codec library.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The stored checksum differs from that of the bytes.
    #[error("the stored checksum {stored:#010x} differs from the computed {computed:#010x}")]
    Checksum {
        /// The stored checksum.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// The chunk decodes to more bytes than declared or allowed. No more than the limit was
    /// allocated.
    #[error("chunk decodes to more than {limit} bytes")]
    OverLimit {
        /// The declared size or the rest of the budget.
        limit: u64,
    },
    /// The chunk does not decode to its declared size.
    #[error("chunk decodes to {found} bytes, not {expected}")]
    Size {
        /// The size of its elements.
        expected: u64,
        /// The actual size.
        found: u64,
    },
}

/// An error of encoding the payload of a cell.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The payload does not have the fixed size of the cell.
    #[error("a cell takes {expected} bytes, not {found}")]
    Size {
        /// The size of its elements.
        expected: u64,
        /// The size of the payload.
        found: u64,
    },
    /// The payload is too long for a frame.
    #[error("the payload is too long for a frame")]
    PayloadTooLong(#[from] VlenFrameLimit),
    /// The payload of a cell of several byte strings is not a frame.
    #[error("the payload is not a frame of byte strings")]
    Frame(#[from] VlenFrameError),
    /// The frame does not hold as many byte strings as the cell has elements.
    #[error("a cell takes {expected} byte strings, not {found}")]
    ItemCount {
        /// The number of elements of the cell.
        expected: u64,
        /// The number of byte strings in the frame.
        found: u32,
    },
    /// The encoder does not support a value in the configuration of a codec.
    #[error("the {field:?} of codec {codec:?} is not supported for writing")]
    Configuration {
        /// The codec.
        codec: &'static str,
        /// The field.
        field: &'static str,
    },
    /// This build lacks the Cargo feature for encoding with a codec.
    #[error("writing with codec {codec:?} needs the feature {feature:?}")]
    Feature {
        /// The codec.
        codec: &'static str,
        /// The missing Cargo feature.
        feature: &'static str,
    },
    /// The payload is too long for the codec.
    #[error("codec {codec:?} takes at most {max} bytes, not {found}")]
    TooLong {
        /// The codec.
        codec: &'static str,
        /// The maximum length.
        max: usize,
        /// The length of the payload.
        found: usize,
    },
    /// The codec library failed.
    #[error("codec {codec:?} failed")]
    Codec {
        /// The codec.
        codec: &'static str,
        /// The error of the codec library.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The array is not sharded.
    #[error("the array is not sharded")]
    NotSharded,
    /// The shard has no cell with the given number.
    #[error("cell {number} is outside a shard of {cells} cells")]
    NoSuchCell {
        /// The number of the cell.
        number: u64,
        /// The number of cells of a shard.
        cells: u64,
    },
    /// The shard was given two cells with the same number.
    #[error("cell {0} of the shard is given twice")]
    DuplicateCell(u64),
    /// The shard does not fit in memory.
    #[error("the shard is too large")]
    ShardSize,
}

/// Returns the error of a configuration field that is not supported.
pub(crate) fn unsupported_field(codec: &str, field: &'static str) -> CodecsError {
    CodecsError::Configuration {
        codec: codec.to_owned(),
        field,
    }
}

/// Returns the error of compressed bytes that `codec` cannot decode.
pub(crate) fn damaged(codec: &'static str, source: Box<dyn Error + Send + Sync>) -> DecodeError {
    DecodeError::Damaged {
        codec,
        source: source.into(),
    }
}
