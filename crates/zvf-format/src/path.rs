//! Path segments: deltas, chunk keys, cell keys and link offsets.
//!
//! Parsing borrows the text and formatting writes into any [`core::fmt::Write`];
//! neither allocates. Parsing takes exactly the text that formatting writes, so
//! a segment and its numbers are two forms of one thing:
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
//! K is the number of axes, one more in a level chunked by an attribute; L is
//! the link width. A delta fits an i32, any other number an i64. Every other
//! spelling is refused, and so is any other count of numbers.
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

/// Why a path segment is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// A number is malformed.
    #[error("number {at}: {fault}")]
    Number {
        /// Which number of the segment, counted from 0.
        at: usize,
        /// What is wrong with it.
        fault: NumberFault,
    },
    /// Another count of numbers than the dimensions ask for.
    #[error("{found} numbers, not {expected}")]
    Numbers {
        /// How many the key should have.
        expected: usize,
        /// How many it has.
        found: usize,
    },
    /// Another count of offsets than the link width asks for.
    #[error("{found} offsets, not {expected}")]
    Offsets {
        /// How many the segment should have.
        expected: usize,
        /// How many it has.
        found: usize,
    },
}
