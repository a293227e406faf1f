//! The cost of a read, known before it is done.

/// The cost of reading a selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCost {
    /// Number of chunks that contain a part of the selection.
    pub chunks: u64,
    /// Number of decoded blocks; equals `chunks` if chunks have no blocks.
    pub blocks: u64,
    /// Stored bytes that are read.
    pub bytes_read: u64,
    /// Size of the selection in bytes.
    pub bytes: u64,
}
