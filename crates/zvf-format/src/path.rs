//! Path segments: deltas, chunk keys, cell keys and link offsets.
//!
//! Parsing borrows the text and formatting writes into any [`core::fmt::Write`]; neither allocates.
//! Parsing accepts exactly the text that formatting writes, so segments and numbers correspond one
//! to one:
//!
//! ```text
//! digits   := "1" … "9" ("0" … "9")*                  no leading zero
//! plain    := "0" | ["-"] digits                      no plus sign
//! signed   := "0" | ("+" | "-") digits
//! delta    := signed                                  "0", "+1", "-2"
//! chunk    := plain ("." plain)*                      K numbers: "-1.0.2"
//! cell     := plain ("." plain)*                      K · L numbers, chunk after chunk
//! offsets  := "self"                                  for L = 1
//!           | offset ("_" offset)*                    L − 1 of them, for endpoints 1 .. L − 1
//! offset   := signed ("." signed)*                    K numbers: "+1.0.-2"
//! ```
//!
//! K is the number of axes, one more in a level chunked by an attribute; L is the link width. A
//! delta fits an i32, any other number an i64. Any other spelling and any other count of numbers is
//! rejected.
//!
//! A delta is the level of endpoints 1 to L − 1 minus the level of endpoint 0, in
//! input order, positive towards coarser levels. The cell of chunk `c` in an array
//! of 0.9 has the grid index `c − chunk_grid_origin`, an attribute that is all
//! zeros when absent. An offset is the difference between the chunk
//! of endpoint `k` in stored order and the *anchor* of the chunk of endpoint 0,
//! axis by axis: see [`links`](crate::links).
//!
//! ```
//! use zvf_format::{links::LinkWidth, path::{ChunkCoords, Delta, Offsets}};
//!
//! assert_eq!(Delta::parse("+1")?.levels(), 1);
//! assert!(Delta::parse("1").is_err());
//! assert_eq!(ChunkCoords(&[-1, 0, 2]).to_string(), "-1.0.2");
//! let offsets = Offsets::parse("0.0_+1.0", LinkWidth::TRIANGLE, 2)?;
//! assert!(offsets.get(2).ok_or("endpoint 2")?.eq([1, 0]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod chunk_key;
mod delta;
mod number;
mod offsets;

pub use chunk_key::{CellKey, ChunkCoords, ChunkKey};
pub use delta::Delta;
pub use number::NumberFault;
pub use offsets::{OffsetCoords, Offsets};

/// Reason that a path segment is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// A number is malformed.
    #[error("number {at}: {fault}")]
    Number {
        /// Index of the number in the segment, counted from 0.
        at: usize,
        /// Its fault.
        fault: NumberFault,
    },
    /// The count of numbers does not match the dimensions.
    #[error("{found} numbers, not {expected}")]
    Numbers {
        /// Expected count.
        expected: usize,
        /// Actual count.
        found: usize,
    },
    /// The count of offsets does not match the link width.
    #[error("{found} offsets, not {expected}")]
    Offsets {
        /// Expected count.
        expected: usize,
        /// Actual count.
        found: usize,
    },
}
