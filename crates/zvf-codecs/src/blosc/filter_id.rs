//! The filter numbers in the header of a chunk.

pub(super) const SHUFFLE: u8 = 1;
pub(super) const BITSHUFFLE: u8 = 2;
/// Blocks with the delta filter need the first block for decoding.
pub(super) const DELTA: u8 = 3;
pub(super) const TRUNC_PREC: u8 = 4;
pub(super) const BYTEDELTA: u8 = 35;
pub(super) const INT_TRUNC: u8 = 36;
