//! Why a frame cannot be read or written.

use zvf_format::b2nd::{FrameError, FrameLimit, MetalayerLimit, NdError, NdLimit};

use crate::blosc::{ChunkError, EncodeError};

/// Why a frame cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum B2ndError {
    /// A part of the frame does not hold.
    #[error("not a frame of Blosc2")]
    Frame(#[from] FrameError),
    /// The frame holds bytes, but no array.
    #[error("the frame holds no array: it has neither of the metalayers b2nd and caterva")]
    NoArray,
    /// The array's metalayer does not hold.
    #[error("not an array of Blosc2")]
    Nd(#[from] NdError),
    /// The item type is written in a dialect that is not known.
    #[error("item type in the unknown dialect {0}")]
    DtypeFormat(u8),
    /// Items are not as long as their type.
    #[error("items take {typesize} bytes, those of their type {dtype}")]
    Typesize {
        /// Bytes of an item, as the frame has them.
        typesize: u32,
        /// Bytes of an item of the type.
        dtype: u64,
    },
    /// The frame is of a sparse directory, and was opened as a file.
    #[error("the frame's chunks are files of their own: open its directory")]
    Sparse,
    /// The directory's frame has its chunks in it.
    #[error("the frame in the directory is not of a sparse one")]
    Contiguous,
    /// The index chunk does not hold.
    #[error("index of chunks")]
    Index(#[source] ChunkError),
    /// The index is not as long as there are chunks.
    #[error("index of {found} bytes for {chunks} chunks")]
    IndexLen {
        /// Bytes of the index.
        found: u32,
        /// Chunks of the array.
        chunks: u64,
    },
    /// The index says of a chunk what cannot be.
    #[error("chunk {chunk} is at {entry:#018x}, which is no place")]
    Entry {
        /// The chunk's number.
        chunk: u64,
        /// What the index says.
        entry: u64,
    },
    /// A chunk does not hold.
    #[error("chunk {chunk}")]
    Chunk {
        /// Its number.
        chunk: u64,
        /// What is wrong with it.
        #[source]
        source: ChunkError,
    },
    /// A chunk has other lengths than the array's, or is one of Blosc 1.
    #[error("chunk {chunk} is not one of this array")]
    Geometry {
        /// Its number.
        chunk: u64,
    },
    /// Shapes or items are larger than the format has numbers for.
    #[error("shape, chunks, blocks or items are larger than the format has numbers for")]
    Large,
    /// The array's metalayer cannot say it.
    #[error("the shape cannot be written")]
    NdLimit(#[from] NdLimit),
    /// A frame cannot have such a metalayer.
    #[error("a metalayer cannot be written")]
    MetalayerLimit(#[from] MetalayerLimit),
    /// A frame cannot have such a header.
    #[error("the header cannot be written")]
    FrameLimit(#[from] FrameLimit),
    /// A chunk cannot be encoded so.
    #[error("chunks cannot be encoded")]
    Encode(#[from] EncodeError),
    /// Chunks are written in their order, and this one is next.
    #[error("chunk {chunk} is next")]
    Order {
        /// The chunk's number.
        chunk: u64,
    },
    /// The frame has a header that is read, but not written again.
    #[error("the frame's header is of a kind that cannot be changed")]
    Fixed,
    /// A metalayer of the trailer does not hold.
    #[error("metalayer {name:?} of the trailer")]
    Layer {
        /// Its name.
        name: String,
        /// What is wrong with its chunk.
        #[source]
        source: ChunkError,
    },
}
