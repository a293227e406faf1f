//! Cross-chunk cell of generation 0.8.

use core::fmt;

use super::{LinkRows, LinkRowsError, LinkWidth, RowForm};
use crate::ragged::{RaggedBlob, RaggedError};

/// The records of one cell of `cross_chunk_links/<delta>` in generation 0.8.
///
/// A [ragged blob](crate::ragged) with one group for each record; `parse` therefore checks that its
/// offsets are `i · 8 · (L + 1)`. Slot `i` of a record is a vertex row in the `i`-th chunk of the
/// [cell key](crate::path::CellKey).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CrossChunkCell<'a> {
    rows: LinkRows<'a>,
}

impl<'a> CrossChunkCell<'a> {
    /// Checks `bytes` and borrows the records in them.
    ///
    /// # Errors
    ///
    /// [`CrossChunkCellError`] if the blob is invalid or its groups are not one valid record each.
    pub fn parse(bytes: &'a [u8], width: LinkWidth) -> Result<Self, CrossChunkCellError> {
        let groups = RaggedBlob::parse(bytes)?;
        let rows = LinkRows::parse(groups.data(), width, RowForm::Permuted)?;
        if rows.len() != groups.len() {
            return Err(CrossChunkCellError::RecordCount {
                declared: groups.len(),
                found: rows.len(),
            });
        }
        let whole = |group: &[u8]| rows.rows_in(group.len()) == Some(1);
        match groups.iter().position(|group| !whole(group)) {
            Some(record) => Err(CrossChunkCellError::Boundary { record }),
            None => Ok(Self { rows }),
        }
    }

    /// Returns the records; every row has a permutation code.
    pub fn records(&self) -> LinkRows<'a> {
        self.rows
    }
}

impl fmt::Debug for CrossChunkCell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows.fmt(f)
    }
}

/// The reason why bytes are not a cross-chunk cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CrossChunkCellError {
    /// The blob itself is invalid.
    #[error(transparent)]
    Blob(#[from] RaggedError),
    /// The records are invalid.
    #[error(transparent)]
    Rows(#[from] LinkRowsError),
    /// The header declares another number of records than the bytes contain.
    #[error("{declared} records are declared, but the bytes hold {found}")]
    RecordCount {
        /// The declared number.
        declared: usize,
        /// The number found.
        found: usize,
    },
    /// A record does not start at its offset.
    #[error("record {record} is not where the offsets say")]
    Boundary {
        /// The record at fault.
        record: usize,
    },
}
