//! Arrays that belong to a whole level or store: a row for each object, group
//! or name.

mod column;
mod fill;
mod groups;
mod items;
mod of_level;
mod rows;
mod table;
#[cfg(test)]
mod tests;
mod text;

pub use column::ScopedColumns;
pub use groups::GroupList;
pub(crate) use items::ItemArray;
pub(crate) use rows::{RowArray, RowRequest};
pub(crate) use table::TableArray;

/// More cells of one such array than any known store has. Those that are not
/// there cost a writer nothing, but who asks for them.
const MOST_CELLS: u64 = 1 << 16;
