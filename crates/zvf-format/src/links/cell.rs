//! Cross-chunk cell of generation 0.8.

use core::fmt;

use super::{LinkRows, LinkRowsError, LinkWidth, RowForm};
use crate::ragged::{RaggedBlob, RaggedError};

/// The records of one cell of `cross_chunk_links/<delta>` in generation 0.8.
///
/// A [ragged blob](crate::ragged) with one group for each record; its offsets
/// are therefore `i · 8 · (L + 1)`, which is checked. Slot `i` of a record is a
/// vertex row in the `i`-th chunk of the [cell key](crate::path::CellKey).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CrossChunkCell<'a> {
    rows: LinkRows<'a>,
}

impl<'a> CrossChunkCell<'a> {
    /// Checks `bytes` and borrows the records in them.
    ///
    /// # Errors
    ///
    /// [`CrossChunkCellError`] when the blob does not hold or its groups are
    /// not one good record each.
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

    /// The records; every row has a permutation code.
    pub fn records(&self) -> LinkRows<'a> {
        self.rows
    }
}

impl fmt::Debug for CrossChunkCell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows.fmt(f)
    }
}

/// Why bytes are not a cross-chunk cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CrossChunkCellError {
    /// The blob itself does not hold.
    #[error(transparent)]
    Blob(#[from] RaggedError),
    /// The records do not hold.
    #[error(transparent)]
    Rows(#[from] LinkRowsError),
    /// The header counts other records than the bytes hold.
    #[error("{declared} records declared, bytes hold {found}")]
    RecordCount {
        /// What the header says.
        declared: usize,
        /// What the bytes hold.
        found: usize,
    },
    /// A record does not start where its offset says.
    #[error("record {record} is not where the offsets say")]
    Boundary {
        /// The record at fault.
        record: usize,
    },
}
