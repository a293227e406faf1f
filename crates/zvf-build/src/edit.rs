//! Changing what is in a level: what has to be read for a change, and what it
//! becomes. Generation 0.9 alone.
//!
//! An [`LevelSnapshot`] is a level as it is: its nodes, its tables, and the cells that a
//! change touches. A [`LevelChange`] says what goes and what comes; applied, it gives
//! [`Edits`]. Rows that stay keep their order, so that links in canonical order
//! stay in it; fragments keep their numbers, so that manifests stay as they are.

mod add;
mod add_links;
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
pub use error::EditError;
pub use image::{CellKey, LevelSnapshot};
