//! Encodes link rows, cells and tables.

use alloc::vec::Vec;

use super::{LinkWidth, Permutation, RowForm};
use crate::ragged;

/// Collects link rows and encodes them in any stored form.
///
/// ```
/// use zvf_format::links::{LinkRowsBuilder, LinkWidth, Permutation, RowForm};
///
/// let mut rows = LinkRowsBuilder::new(LinkWidth::EDGE, RowForm::Permuted);
/// let swapped = Permutation::from_code(LinkWidth::EDGE, 1)?;
/// rows.push(swapped, &[4, 2])?;
/// assert_eq!(rows.finish_rows().len(), 24);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LinkRowsBuilder {
    width: LinkWidth,
    form: RowForm,
    bytes: Vec<u8>,
    group_ends: Vec<usize>,
}

impl LinkRowsBuilder {
    /// Creates a builder without rows.
    pub fn new(width: LinkWidth, form: RowForm) -> Self {
        Self {
            width,
            form,
            bytes: Vec::new(),
            group_ends: Vec::new(),
        }
    }

    /// Reserves memory for more rows.
    pub fn reserve(&mut self, rows: usize) {
        let columns = self.width.get().saturating_add(1);
        let row = columns.saturating_mul(size_of::<i64>());
        self.bytes.reserve(rows.saturating_mul(row));
    }

    /// Appends a row: its vertex rows in **stored** order, and the permutation from the input
    /// order.
    ///
    /// # Errors
    ///
    /// [`LinkRowLimit`] if the widths differ, a vertex row is not below 2^63, or the form cannot
    /// store an order other than the identity. The builder is left unchanged.
    #[inline]
    pub fn push(&mut self, order: Permutation, stored: &[u64]) -> Result<&mut Self, LinkRowLimit> {
        if order.width() != self.width || stored.len() != self.width.get() {
            return Err(LinkRowLimit::Width {
                expected: self.width,
                found: stored.len(),
            });
        }
        if let Some(&vertex) = stored
            .iter()
            .find(|&&vertex| i64::try_from(vertex).is_err())
        {
            return Err(LinkRowLimit::Vertex(vertex));
        }
        match self.form {
            RowForm::Plain if !order.is_identity() => return Err(LinkRowLimit::Order(order)),
            RowForm::Plain => {}
            RowForm::Permuted => self.bytes.extend_from_slice(&order.code().to_le_bytes()),
        }
        for vertex in stored {
            self.bytes.extend_from_slice(&vertex.to_le_bytes());
        }
        Ok(self)
    }

    /// Ends a group of a ragged blob; it may be empty.
    pub fn end_group(&mut self) -> &mut Self {
        self.group_ends.push(self.bytes.len());
        self
    }

    /// Encodes only the rows, in the form of the intra-chunk array.
    pub fn finish_rows(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    /// Encodes a [ragged blob](crate::ragged) of the groups ended so far; rows after the last
    /// [`end_group`](Self::end_group) form another group.
    pub fn finish_ragged(&self) -> Vec<u8> {
        let mut start = 0;
        let mut groups: Vec<&[u8]> = Vec::new();
        let open = self.group_ends.last().copied().unwrap_or(0) < self.bytes.len();
        let last = open.then_some(self.bytes.len());
        for end in self.group_ends.iter().copied().chain(last) {
            groups.extend(self.bytes.get(start..end));
            start = end;
        }
        ragged::encode(&groups)
    }

    /// Encodes a cross-chunk cell of generation 0.8: a ragged blob with one group for each row. The
    /// rows must be [`RowForm::Permuted`].
    pub fn finish_cell(&self) -> Vec<u8> {
        let columns = match self.form {
            RowForm::Plain => self.width.get(),
            RowForm::Permuted => self.width.get().saturating_add(1),
        };
        let row = columns.saturating_mul(size_of::<i64>());
        let groups: Vec<&[u8]> = self.bytes.chunks(row.max(1)).collect();
        ragged::encode(&groups)
    }
}

/// A link that the chosen form cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkRowLimit {
    /// The number of endpoints differs from the family's.
    #[error("{found} endpoints in a family of width {expected}")]
    Width {
        /// The family's width.
        expected: LinkWidth,
        /// Endpoints given.
        found: usize,
    },
    /// A vertex row is not below 2^63.
    #[error("vertex row {0} is past the format's 63 bits")]
    Vertex(u64),
    /// Plain rows hold the input order only.
    #[error("plain rows cannot store the order {0:?}")]
    Order(Permutation),
}

/// Encodes a cross-chunk record table of generations 0.6 and 0.7.
#[derive(Clone, Debug)]
pub struct CrossChunkTableBuilder {
    width: LinkWidth,
    sid_ndim: usize,
    bytes: Vec<u8>,
}

impl CrossChunkTableBuilder {
    /// Creates a builder without records.
    pub fn new(width: LinkWidth, sid_ndim: usize) -> Self {
        Self {
            width,
            sid_ndim,
            bytes: Vec::new(),
        }
    }

    /// Appends a record: chunk coordinates and vertex row of each endpoint, in
    /// input order.
    ///
    /// # Errors
    ///
    /// [`TableLimit`] if the number of endpoints is not L, the number of coordinates of a chunk is
    /// not `sid_ndim`, or a vertex row is not below 2^63. The builder is left unchanged.
    pub fn push<C: AsRef<[i64]>>(
        &mut self,
        endpoints: &[(C, u64)],
    ) -> Result<&mut Self, TableLimit> {
        if endpoints.len() != self.width.get() {
            return Err(TableLimit::Width {
                expected: self.width,
                found: endpoints.len(),
            });
        }
        for (chunk, vertex) in endpoints {
            if chunk.as_ref().len() != self.sid_ndim {
                return Err(TableLimit::Coordinates {
                    expected: self.sid_ndim,
                    found: chunk.as_ref().len(),
                });
            }
            i64::try_from(*vertex).map_err(|_| TableLimit::Vertex(*vertex))?;
        }
        for (chunk, vertex) in endpoints {
            for coordinate in chunk.as_ref() {
                self.bytes.extend_from_slice(&coordinate.to_le_bytes());
            }
            self.bytes.extend_from_slice(&vertex.to_le_bytes());
        }
        Ok(self)
    }

    /// Encodes the records pushed so far.
    pub fn finish(&self) -> Vec<u8> {
        self.bytes.clone()
    }
}

/// A record that the table cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableLimit {
    /// The number of endpoints differs from the family's.
    #[error("{found} endpoints in a family of width {expected}")]
    Width {
        /// The family's width.
        expected: LinkWidth,
        /// Endpoints given.
        found: usize,
    },
    /// The number of coordinates of a chunk differs from the table's.
    #[error("a chunk of {found} coordinates in a table of {expected}")]
    Coordinates {
        /// The table's `sid_ndim`.
        expected: usize,
        /// Coordinates given.
        found: usize,
    },
    /// A vertex row is not below 2^63.
    #[error("vertex row {0} is past the format's 63 bits")]
    Vertex(u64),
}
