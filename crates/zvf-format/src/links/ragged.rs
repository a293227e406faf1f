//! Link rows in groups after an offset table.

use core::fmt;

use super::{LinkRows, LinkRowsError, LinkWidth, RowForm};
use crate::ragged::{RaggedBlob, RaggedError};

/// The rows of one cell of a cross-level or chunk-crossing link array: a
/// [ragged blob](crate::ragged) whose groups are link rows.
///
/// Group boundaries separate rows of different writes; reads of the whole family ignore them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RaggedLinks<'a> {
    groups: RaggedBlob<'a>,
    rows: LinkRows<'a>,
}

impl<'a> RaggedLinks<'a> {
    /// Checks `bytes` and borrows the groups of rows in them.
    ///
    /// # Errors
    ///
    /// [`RaggedLinksError`] if the blob is invalid or a group is not a whole number of valid rows.
    pub fn parse(
        bytes: &'a [u8],
        width: LinkWidth,
        form: RowForm,
    ) -> Result<Self, RaggedLinksError> {
        let groups = RaggedBlob::parse(bytes)?;
        let rows = LinkRows::parse(groups.data(), width, form)?;
        for (at, group) in groups.iter().enumerate() {
            if rows.rows_in(group.len()).is_none() {
                return Err(RaggedLinksError::Boundary { group: at });
            }
        }
        Ok(Self { groups, rows })
    }

    /// Returns the number of groups.
    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// Returns the rows of group `at`, or `None` past the end.
    pub fn group(&self, at: usize) -> Option<LinkRows<'a>> {
        self.groups.get(at).and_then(|group| self.rows.slice(group))
    }

    /// Returns the groups in stored order.
    pub fn groups(&self) -> impl Iterator<Item = LinkRows<'a>> + Clone + use<'a> {
        let links = *self;
        (0..self.group_count()).filter_map(move |at| links.group(at))
    }

    /// Returns all rows, independent of groups.
    pub fn rows(&self) -> LinkRows<'a> {
        self.rows
    }
}

impl<'a> LinkRows<'a> {
    /// Checks `bytes`, which are plain rows or a ragged blob of plain rows, and borrows the rows.
    ///
    /// For `links/0/<chunk>` without `link_fragments`, whose groups are declared by the cell itself or
    /// not at all. Bytes that are valid as both are a ragged blob: of two ends, these are rows that
    /// start with (1, 0), or with offsets of groups that fit.
    ///
    /// # Errors
    ///
    /// [`LinkRowsError`] if the bytes are neither.
    pub fn parse_maybe_grouped(bytes: &'a [u8], width: LinkWidth) -> Result<Self, LinkRowsError> {
        match RaggedLinks::parse(bytes, width, RowForm::Plain) {
            Ok(links) => Ok(links.rows()),
            Err(_) => Self::parse(bytes, width, RowForm::Plain),
        }
    }
}

impl fmt::Debug for RaggedLinks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.groups()).finish()
    }
}

/// The reason why bytes are not a ragged blob of link rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RaggedLinksError {
    /// The blob itself is invalid.
    #[error(transparent)]
    Blob(#[from] RaggedError),
    /// The rows are invalid.
    #[error(transparent)]
    Rows(#[from] LinkRowsError),
    /// A group ends inside a row.
    #[error("group {group} is not a whole number of link rows")]
    Boundary {
        /// The group at fault.
        group: usize,
    },
}
