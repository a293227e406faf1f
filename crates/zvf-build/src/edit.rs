//! Changes to a level of generation 0.9: the cells that a change reads, and the cells that it
//! writes.
//!
//! A [`LevelSnapshot`] holds the nodes and tables of a level and the cells that a change touches. A
//! [`LevelChange`] lists what to remove and add; applying it gives [`Edits`]. Remaining rows keep
//! their order, so that links stay in canonical order; fragments keep their numbers, so that
//! manifests stay valid.

mod add;
mod add_links;
mod added;
mod apply;
mod change;
mod chunk;
mod columns;
mod compact;
mod error;
mod image;
mod links;
mod put;
mod remove;
mod tables;

pub use change::{Edits, LevelChange};
pub use columns::StoredValues;
pub use error::EditError;
pub use image::{CellId, LevelSnapshot};
