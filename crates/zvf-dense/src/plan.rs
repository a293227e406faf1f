//! What a read costs, told before it is made.

/// What reading a selection touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadPlan {
    /// Chunks that hold some of it.
    pub chunks: u64,
    /// Blocks that are decoded; as many as chunks where these are not of blocks.
    pub blocks: u64,
    /// Bytes that are read of what is stored.
    pub bytes_read: u64,
    /// Bytes of what is selected.
    pub bytes: u64,
}
