//! The limit on dimensions, which grids and arrays share.

/// Maximum number of dimensions of an array.
pub const MAX_RANK: usize = 32;
