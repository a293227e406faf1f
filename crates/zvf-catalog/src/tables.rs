//! Tables of a level or store: arrays with one row per object, group or name.

mod attribute;
mod byte_strings;
mod dictionary;
mod groups;
mod item_offsets;
mod level_tables;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use attribute::AttributeTable;
pub(crate) use byte_strings::ByteStringArray;
pub use groups::{GroupList, ObjectGroup};
pub(crate) use rows::{RowArray, RowRequest};

/// Maximum number of cells of a table, far above that of known stores. Absent cells cost a writer
/// nothing, but each would cost a reader a request.
const MAX_CELLS: u64 = 1 << 16;
