//! The command `zvf`: inspects, queries, validates, creates and edits Zarr Vectors stores.
//!
//! This is a library so that tests reach its parts. Programs use the crate [`zvf`] instead.
//!
//! | module | content |
//! |---|---|
//! | [`commands`] | one module per verb: arguments, work, text and JSON output |
//! | [`arguments`] | arguments that several commands share |
//! | `editing` | the session that `append`, `edit`, `delete` and `compact` share |
//! | `dense` | dense arrays (`.tet`, `.b2nd`, `.npy`, Zarr) for `tet`, `b2nd` and `sample` |
//! | `allocator` | settings of glibc for commands with a bound on memory |
//! | `cli` | the command line: dispatch, printing, exit codes |
//! | `hint` | what to do next after an error |
//! | `interrupt`, `stop` | SIGINT and SIGTERM; commands that another program stops |

mod allocator;
mod cli;
mod dense;
mod display;
mod editing;
mod hint;
mod interrupt;
mod many_files;
mod outcome;
mod progress;
mod stop;
mod text_table;
mod worker_pool;

pub mod arguments;
pub mod commands;

pub use cli::{CommandFailure, CommandReport, command, report, run, run_in_program};
pub use stop::StopFlag;
