//! Errors of chunks and streams.

/// An error in a chunk: damaged or unsupported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChunkError {
    /// The bytes end before the chunk does.
    #[error("bytes end inside the chunk")]
    Truncated,
    /// The version of the chunk format is not supported.
    #[error("chunk version {0} is not supported, only 2 (Blosc 1) and 5 (Blosc 2) are")]
    Version(u8),
    /// A length in the header is negative.
    #[error("a length in the chunk's header is negative")]
    Negative,
    /// Items have no bytes.
    #[error("the items of the chunk have no bytes")]
    Typesize,
    /// Blocks have no bytes, but the chunk does.
    #[error("the blocks of the chunk have no bytes")]
    Blocksize,
    /// The stored length is too short for the content, or does not match the content of a raw
    /// chunk.
    #[error("the chunk declares {0} stored bytes, which does not match its contents")]
    Cbytes(u32),
    /// Flags that are invalid in files or not supported: variable-length blocks, lazy, instrumented
    /// and big-endian chunks.
    #[error("flags {0:#04x} and {1:#04x} of the chunk are not supported")]
    Flags(u8, u8),
    /// The kind of special chunk is not defined.
    #[error("the kind of special chunk {0} is unknown")]
    Special(u8),
    /// The codec number in the flags of the chunk is not supported.
    #[error("codec format {0} is not supported")]
    Codec(u8),
    /// The filter is not supported.
    #[error("filter {0} is not supported")]
    Filter(u8),
    /// A block starts outside the block area of the chunk.
    #[error("block {block} starts at {start}, where no block can start")]
    BlockStart {
        /// The block number.
        block: u32,
        /// The stored block start.
        start: i32,
    },
    /// The length of the dictionary is not 1 to 32768.
    #[error("a dictionary of {0} bytes is not supported")]
    Dictionary(i32),
    /// The block does not exist, or its length differs from the length of the buffer.
    #[error("block {0} is not in the chunk, or differs from the buffer in length")]
    Block(u32),
    /// The length of the buffer differs from the length of the chunk.
    #[error("the chunk decodes to {0} bytes, but the buffer has another length")]
    Length(u32),
    /// The first block or the dictionary is needed and missing.
    #[error("a block cannot be decoded without the first block or the dictionary")]
    Context,
    /// The length of the repeated value does not match the items.
    #[error("a value of {0} bytes cannot be repeated here")]
    Value(usize),
    /// A stream of a block is damaged.
    #[error("block {block}, stream {stream}")]
    Stream {
        /// The block number.
        block: u32,
        /// The number of the stream in the block.
        stream: usize,
        /// The cause.
        #[source]
        fault: StreamError,
    },
}

/// An error in a stream of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The block ends inside the stream.
    #[error("bytes end inside the stream")]
    Truncated,
    /// The length field is out of range.
    #[error("{0} is not a valid stream length")]
    Length(i32),
    /// The token of a run is invalid.
    #[error("token {0:#04x} does not start a run")]
    Token(u8),
    /// The codec rejects the bytes.
    #[error("the stream is not valid for its codec")]
    Codec,
    /// The decoded length is wrong.
    #[error("stream decodes to {found} bytes, not {want}")]
    Decoded {
        /// Decoded bytes.
        found: usize,
        /// Expected bytes.
        want: usize,
    },
}
