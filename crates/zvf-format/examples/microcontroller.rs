//! Finds the rows of a fragment on a machine without an operating system: no std, no allocation, no
//! panic. It is a library, so that it can also be built for a microcontroller and the browser:
//!
//! ```text
//! cargo build --package zvf-format --no-default-features --example microcontroller --target thumbv7em-none-eabihf
//! ```
#![no_std]

use zvf_format::fragment::{FragmentIndex, Rows};

/// A run of rows in a chunk.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The first.
    pub first: u64,
    /// Number of rows; 0 for a missing fragment.
    pub count: u64,
}

/// Returns the rows of a fragment if they are a run, as written by bulk writers. `None` if the
/// bytes are not an index, or if the fragment is a list, whose rows can be iterated.
pub fn run_of(cell: &[u8], fragment: u32) -> Option<Run> {
    let index = FragmentIndex::parse(cell).ok()?;
    match index.rows(fragment) {
        None => Some(Run::default()),
        Some(Rows::Range(rows)) => Some(Run {
            first: rows.start,
            count: rows.end.checked_sub(rows.start)?,
        }),
        Some(_) => None,
    }
}
