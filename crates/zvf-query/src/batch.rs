//! Columns and batches of rows: building, gathering and merging them.

pub(crate) mod columns;
pub(crate) mod loaded;
pub(crate) mod merge;
pub(crate) mod split;
pub(crate) mod vertices;
