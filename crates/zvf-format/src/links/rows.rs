//! Flat link rows.

use core::fmt;

use zerocopy::{FromBytes, little_endian::I64};

use super::{LinkWidth, Permutation, PermutationError};
use crate::sign::Sign;

/// Form of a stored link row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowForm {
    /// L vertex rows, in input order.
    Plain,
    /// A permutation code, then L vertex rows in stored order.
    Permuted,
}

impl RowForm {
    /// Numbers in one row.
    fn columns(self, width: LinkWidth) -> usize {
        match self {
            Self::Plain => width.get(),
            Self::Permuted => width.get().saturating_add(1),
        }
    }
}

/// Link rows, borrowed from their bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LinkRows<'a> {
    width: LinkWidth,
    form: RowForm,
    values: &'a [I64],
}

impl<'a> LinkRows<'a> {
    /// Checks `bytes` and borrows the rows in them.
    ///
    /// The count is not stored: bytes truncated between two rows are a valid shorter list, which
    /// only the family's record count reveals.
    ///
    /// # Errors
    ///
    /// [`LinkRowsError`] if the bytes are not a whole number of rows, a vertex row is negative, or
    /// a permutation code is out of range.
    pub fn parse(bytes: &'a [u8], width: LinkWidth, form: RowForm) -> Result<Self, LinkRowsError> {
        let length = LinkRowsError::Length(bytes.len());
        let values = <[I64]>::ref_from_bytes(bytes).map_err(|_| length)?;
        let rows = Self {
            width,
            form,
            values,
        };
        if !rows.chunks().remainder().is_empty() {
            return Err(length);
        }
        // Signs are or-ed first, so that valid plain rows take one loop without a branch.
        let signs = values.iter().fold(0, |signs, value| signs | value.get());
        if signs < 0 || form == RowForm::Permuted {
            rows.check_each()?;
        }
        Ok(rows)
    }

    fn check_each(&self) -> Result<(), LinkRowsError> {
        let width = self.width;
        for (row, values) in self.chunks().enumerate() {
            let (code, vertices) = split(values, self.form);
            let code = code.unwrap_or(0);
            if !(0..width.permutations()).contains(&code) {
                let error = PermutationError::Code { width, code };
                return Err(LinkRowsError::Permutation { row, error });
            }
            if vertices.iter().any(|vertex| vertex.get() < 0) {
                return Err(LinkRowsError::Vertex { row });
            }
        }
        Ok(())
    }

    fn chunks(&self) -> core::slice::ChunksExact<'a, I64> {
        // A row has at least one column; the `max` removes the panic from `chunks_exact`.
        self.values
            .chunks_exact(self.form.columns(self.width).max(1))
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.chunks().len()
    }

    /// Returns whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns row `at`, or `None` past the end.
    pub fn get(&self, at: usize) -> Option<LinkRow<'a>> {
        let columns = self.form.columns(self.width);
        let start = at.checked_mul(columns)?;
        let values = self.values.get(start..start.checked_add(columns)?)?;
        Some(self.row(values))
    }

    /// Returns the rows in stored order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = LinkRow<'a>> + Clone + use<'a> {
        let rows = *self;
        self.chunks().map(move |values| rows.row(values))
    }

    /// Returns the number of endpoints of every row.
    pub fn width(&self) -> LinkWidth {
        self.width
    }

    /// Returns whether the rows have a permutation code.
    pub fn form(&self) -> RowForm {
        self.form
    }

    /// Returns the number of rows in `length` bytes, if they are whole rows.
    pub(crate) fn rows_in(&self, length: usize) -> Option<usize> {
        let row = self
            .form
            .columns(self.width)
            .checked_mul(size_of::<I64>())?;
        let rows = length.checked_div(row)?;
        (rows.checked_mul(row)? == length).then_some(rows)
    }

    /// Returns the rows in `bytes`, a part of these rows' own.
    pub(crate) fn slice(&self, bytes: &'a [u8]) -> Option<Self> {
        let values = <[I64]>::ref_from_bytes(bytes).ok()?;
        Some(Self { values, ..*self })
    }

    fn row(&self, values: &'a [I64]) -> LinkRow<'a> {
        let (code, vertices) = split(values, self.form);
        LinkRow {
            width: self.width,
            code: code.unwrap_or(0),
            vertices,
        }
    }
}

fn split(row: &[I64], form: RowForm) -> (Option<i64>, &[I64]) {
    match (form, row) {
        (RowForm::Permuted, [code, vertices @ ..]) => (Some(code.get()), vertices),
        _ => (None, row),
    }
}

impl fmt::Debug for LinkRows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// One link.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LinkRow<'a> {
    width: LinkWidth,
    code: i64,
    vertices: &'a [I64],
}

impl<'a> LinkRow<'a> {
    /// Returns the permutation from the input order to the stored order; the identity for
    /// [`RowForm::Plain`].
    pub fn order(&self) -> Permutation {
        // `parse` has verified that the code decodes.
        Permutation::from_code(self.width, self.code)
            .unwrap_or_else(|_| Permutation::identity(self.width))
    }

    /// Returns the permutation code as stored.
    pub fn code(&self) -> i64 {
        self.code
    }

    /// Returns the vertex rows in stored order, the order of the cell's chunks.
    pub fn stored(&self) -> impl ExactSizeIterator<Item = u64> + Clone + use<'a> {
        self.vertices.iter().map(|vertex| vertex.get().unsigned())
    }

    /// Returns the vertex row in `slot`.
    pub fn stored_at(&self, slot: usize) -> Option<u64> {
        let vertex = self.vertices.get(slot)?;
        Some(vertex.get().unsigned())
    }

    /// Returns the vertex rows in input order, which preserves the winding of a face and the
    /// direction of an edge.
    pub fn input(&self) -> impl Iterator<Item = u64> + Clone + use<'a> {
        let (row, order) = (*self, self.order());
        (0..self.vertices.len()).filter_map(move |at| row.stored_at(order.slot_of(at)?))
    }
}

impl fmt::Debug for LinkRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.input()).finish()
    }
}

/// The reason why bytes are not link rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkRowsError {
    /// This number of bytes is not a whole number of rows.
    #[error("{0} bytes are not a whole number of link rows")]
    Length(usize),
    /// A vertex row is negative.
    #[error("link row {row} refers to a negative vertex row")]
    Vertex {
        /// The row at fault.
        row: usize,
    },
    /// A permutation code is out of range.
    #[error("link row {row}: {error}")]
    Permutation {
        /// The row at fault.
        row: usize,
        /// The fault of its code.
        error: PermutationError,
    },
}
