//! Why bytes are not a chunk.

/// Why bytes are not a chunk, or not one that is read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChunkError {
    /// The bytes end before the chunk does.
    #[error("bytes end inside the chunk")]
    Truncated,
    /// A version of the format that is not read here.
    #[error("chunk version {0} is not supported, only 5, and 2 of Blosc 1, are")]
    Version(u8),
    /// The header says one of its lengths is negative.
    #[error("a length in the chunk's header is negative")]
    Negative,
    /// Items of no bytes.
    #[error("chunk has items of no bytes")]
    Typesize,
    /// Blocks of no bytes in a chunk that has some.
    #[error("chunk has blocks of no bytes")]
    Blocksize,
    /// The stored length is too short for what must be in it, or, of a raw
    /// chunk, not that of its contents.
    #[error("chunk is stored in {0} bytes, which its contents are not")]
    Cbytes(u32),
    /// Flags that no chunk in a file has, or that are not supported: blocks of
    /// variable length, lazy, instrumented or big-endian chunks.
    #[error("flags {0:#04x} and {1:#04x} of the chunk are not supported")]
    Flags(u8, u8),
    /// A kind of special chunk that does not exist.
    #[error("special chunks of kind {0} do not exist")]
    Special(u8),
    /// A codec that is not known here, by its number in the chunk's flags.
    #[error("codec format {0} is not supported")]
    Codec(u8),
    /// A filter that is not known here.
    #[error("filter {0} is not supported")]
    Filter(u8),
    /// A block starts outside the part of the chunk that blocks are in.
    #[error("block {block} starts at {start}, where no block can be")]
    BlockStart {
        /// Its number.
        block: u32,
        /// Where it would start.
        start: i32,
    },
    /// The dictionary's length is not 1 to 32768.
    #[error("dictionary of {0} bytes")]
    Dictionary(i32),
    /// The chunk has no such block, or the buffer is not as long as it.
    #[error("block {0} is not in the chunk, or not as long as the buffer")]
    Block(u32),
    /// The buffer is not as long as the chunk.
    #[error("chunk decodes to {0} bytes, not to as many as there is room for")]
    Length(u32),
    /// A block needs the first one, or the dictionary, and was not given it.
    #[error("a block was not given what it is decoded with")]
    Context,
    /// The repeated value is not one that fills the chunk.
    #[error("a value of {0} bytes cannot be repeated here")]
    Value(usize),
    /// A stream of a block does not hold.
    #[error("block {block}, stream {stream}")]
    Stream {
        /// The block's number.
        block: u32,
        /// The stream's number in it.
        stream: usize,
        /// What is wrong with it.
        #[source]
        fault: StreamError,
    },
}

/// Why a stream cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The block ends inside the stream.
    #[error("bytes end inside the stream")]
    Truncated,
    /// A length that no stream has.
    #[error("{0} is no length of a stream")]
    Length(i32),
    /// A run without the mark of one.
    #[error("token {0:#04x} does not start a run")]
    Token(u8),
    /// The codec refuses the bytes.
    #[error("not a stream of its codec")]
    Codec,
    /// The codec gives another number of bytes.
    #[error("stream decodes to {found} bytes, not {want}")]
    Decoded {
        /// Bytes it gave.
        found: usize,
        /// Bytes it had to give.
        want: usize,
    },
}
