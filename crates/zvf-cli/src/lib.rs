//! The command `zvf`: what it takes, and how it shows what the library finds.
//!
//! This is a library so that its parts can be tested one by one; programs use
//! the crate [`zvf`] instead.
//!
//! | module | does |
//! |---|---|
//! | [`query`] | `zvf query`: arguments to a query, an answer to JSON or text |
//! | [`output`] | an answer to a file: csv, npz, arrow, parquet, ply, obj |
//! | [`input`] | a file to geometry: csv, npz, arrow, parquet |
//! | [`create`] | `zvf create`: arguments to a design, and what was written |
//! | [`migrate`] | `zvf migrate`: a store written anew as one of another generation, and what was repaired and lost |
//! | [`validate`] | `zvf validate`: what was found, as text, JSON or SARIF |
//! | `append`, `edit`, `delete`, `compact` | the verbs that change a store; `change` is what they share |
//! | `demo` | `zvf demo`: sample stores, and what can be done with them |
//! | `render` | `zvf render`: a store as a picture |
//! | `sample` | `zvf sample`: volumes at vertices, as an attribute |
//! | `doctor`, `completions`, `man` | what this build can do; scripts for shells, manual pages |
//! | `tet` | `zvf tet`: Tetration files; `b2nd`: `zvf b2nd`, arrays of Blosc2 and Caterva; `dense` is what all dense arrays share |
//! | `advice` | the way out of what the library refuses |

mod advice;
mod append;
mod b2nd;
mod beyond;
mod change;
mod command;
mod compact;
mod completions;
mod delete;
#[cfg(feature = "render")]
mod demo;
mod dense;
mod doctor;
mod edit;
mod grid;
mod info;
mod man;
mod named;
mod number;
mod processes;
mod progress;
#[cfg(feature = "render")]
mod render;
mod sample;
mod tet;

pub mod create;
pub mod input;
pub mod migrate;
pub mod output;
pub mod pyramid;
pub mod query;
pub mod validate;

pub use command::{command, run};
