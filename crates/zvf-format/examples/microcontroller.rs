//! Where the rows of a fragment are, on a machine without an operating system: no std, no allocation,
//! no panic. A library, so that it is built for a microcontroller and the browser as well:
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
    /// How many; 0 of a fragment that is not there.
    pub count: u64,
}

/// The rows of a fragment, when they are a run, as those of bulk writers are. `None` when the bytes
/// are no index, or the fragment is a list: its rows are iterated then.
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
