//! Errors of Blosc2 arrays.

use zvf_format::b2nd::{FrameError, FrameLimit, MetalayerLimit, NdError, NdLimit};

use crate::blosc::{BloscEncodeError, ChunkError};

/// An error of reading or writing a Blosc2 array.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum B2ndError {
    /// The frame is invalid.
    #[error("not a valid Blosc2 frame")]
    Frame(#[from] FrameError),
    /// The frame contains bytes, but no array.
    #[error("the frame contains no array: it has neither of the metalayers b2nd and caterva")]
    NoArray,
    /// The array metalayer is invalid.
    #[error("the array metalayer is invalid")]
    Nd(#[from] NdError),
    /// The item type uses an unknown notation.
    #[error("the item type uses the unknown notation {0}")]
    DtypeFormat(u8),
    /// The item size does not match the type.
    #[error("items have {typesize} bytes, but their type has {dtype}")]
    Typesize {
        /// Item size in the frame.
        typesize: u32,
        /// Size of the type.
        dtype: u64,
    },
    /// Elements have another type than the array.
    #[error("items of the array are {array}, not {given}")]
    OtherDtype {
        /// The type of the array.
        array: String,
        /// The other type.
        given: String,
    },
    /// Elements have another shape than the selection that they are written to.
    #[error("the elements have the shape {given:?}, but {expected:?} is selected")]
    OtherShape {
        /// The shape of the selection.
        expected: Vec<u64>,
        /// The shape of the elements.
        given: Vec<u64>,
    },
    /// The array has no such axis.
    #[error("there is no axis {axis} of an array of {axes} axes, which are numbered from 0")]
    NoAxis {
        /// The number of the axis.
        axis: usize,
        /// The number of axes.
        axes: usize,
    },
    /// The header has no such metalayer.
    #[error("the header has no metalayer {0:?}")]
    NoLayer(String),
    /// A metalayer of the header cannot change its length.
    #[error("metalayer {name:?} of the header has {len} bytes, and cannot be set to {given}")]
    LayerLen {
        /// The name of the metalayer.
        name: String,
        /// Its length.
        len: usize,
        /// The length of the new content.
        given: usize,
    },
    /// The frame of a sparse directory was opened as a file.
    #[error("the chunks of this frame are separate files; open its directory")]
    Sparse,
    /// The frame in the directory contains its chunks.
    #[error("the frame in the directory is not sparse")]
    Contiguous,
    /// The variable-length metalayers are too long.
    #[error("the variable-length metalayers unpack to more than {0} bytes")]
    Layers(u64),
    /// The index chunk is invalid.
    #[error("the index of chunks is invalid")]
    Index(#[source] ChunkError),
    /// The length of the index does not match the number of chunks.
    #[error("the index has {found} bytes for {chunks} chunks")]
    IndexLen {
        /// Bytes of the index.
        found: u32,
        /// Chunks of the array.
        chunks: u64,
    },
    /// An index entry is invalid.
    #[error("chunk {chunk} has the invalid index entry {entry:#018x}")]
    Entry {
        /// The chunk's number.
        chunk: u64,
        /// The entry.
        entry: u64,
    },
    /// A chunk is invalid.
    #[error("chunk {chunk}")]
    Chunk {
        /// The number of the chunk.
        chunk: u64,
        /// The cause.
        #[source]
        source: ChunkError,
    },
    /// A chunk has the wrong lengths, or is a Blosc 1 chunk.
    #[error("chunk {chunk} does not belong to this array")]
    Geometry {
        /// The number of the chunk.
        chunk: u64,
    },
    /// The shapes or items exceed the limits of the format.
    #[error("the shape, chunks, blocks or items exceed the limits of the format")]
    Large,
    /// The array metalayer cannot represent the shape.
    #[error("the shape cannot be written")]
    NdLimit(#[from] NdLimit),
    /// A metalayer exceeds the limits of the format.
    #[error("a metalayer cannot be written")]
    MetalayerLimit(#[from] MetalayerLimit),
    /// The header exceeds the limits of the format.
    #[error("the header cannot be written")]
    FrameLimit(#[from] FrameLimit),
    /// A chunk cannot be encoded with these options.
    #[error("chunks cannot be encoded")]
    Encode(#[from] BloscEncodeError),
    /// Chunks must be written in order, and another one is next.
    #[error("chunks must be written in order; chunk {chunk} is next")]
    Order {
        /// The chunk's number.
        chunk: u64,
    },
    /// The frame has a header that can be read, but not rewritten.
    #[error("the header of this frame cannot be changed in place")]
    Fixed,
    /// A metalayer of the trailer is invalid.
    #[error("metalayer {name:?} of the trailer")]
    Layer {
        /// The name of the metalayer.
        name: String,
        /// The cause.
        #[source]
        source: ChunkError,
    },
}
