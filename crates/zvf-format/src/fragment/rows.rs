//! The rows of one fragment.

use core::{fmt, ops::Range};

use zerocopy::little_endian::I64;

use crate::sign::Sign;

/// The rows that one fragment owns, in fragment order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows<'a> {
    /// A contiguous run; may be empty.
    Range(Range<u64>),
    /// An explicit list; an empty one differs from an empty range.
    List(RowList<'a>),
}

impl<'a> Rows<'a> {
    /// Returns the number of rows.
    pub fn len(&self) -> u64 {
        match self {
            Self::Range(rows) => rows.end.saturating_sub(rows.start),
            Self::List(rows) => u64::try_from(rows.len()).unwrap_or(u64::MAX),
        }
    }

    /// Returns whether the fragment has no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the row numbers, in fragment order.
    pub fn iter(&self) -> RowsIter<'a> {
        match self {
            Self::Range(rows) => RowsIter(Remaining::Range(rows.clone())),
            Self::List(rows) => RowsIter(Remaining::List(rows.rows.iter())),
        }
    }
}

impl<'a> IntoIterator for Rows<'a> {
    type Item = u64;
    type IntoIter = RowsIter<'a>;

    fn into_iter(self) -> RowsIter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &Rows<'a> {
    type Item = u64;
    type IntoIter = RowsIter<'a>;

    fn into_iter(self) -> RowsIter<'a> {
        self.iter()
    }
}

/// Row numbers one by one, created by [`Rows::iter`].
#[derive(Clone, Debug)]
pub struct RowsIter<'a>(Remaining<'a>);

#[derive(Clone, Debug)]
enum Remaining<'a> {
    Range(Range<u64>),
    List(core::slice::Iter<'a, I64>),
}

impl Iterator for RowsIter<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        match &mut self.0 {
            Remaining::Range(rows) => rows.next(),
            Remaining::List(rows) => rows.next().map(|row| row.get().unsigned()),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Remaining::Range(rows) => rows.size_hint(),
            Remaining::List(rows) => rows.size_hint(),
        }
    }
}

/// An explicit fragment's row numbers, borrowed from the blob.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RowList<'a> {
    rows: &'a [I64],
}

impl<'a> RowList<'a> {
    /// `rows` must hold no negative number; the parser has checked.
    pub(crate) fn new(rows: &'a [I64]) -> Self {
        Self { rows }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether the list has no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns row number `at` of the list.
    pub fn get(&self, at: usize) -> Option<u64> {
        self.rows.get(at).map(|row| row.get().unsigned())
    }

    /// Returns the row numbers, in stored order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u64> + Clone + use<'a> {
        self.rows.iter().map(|row| row.get().unsigned())
    }

    /// Returns the rows as a run, if they ascend one by one and are not empty.
    pub fn as_run(&self) -> Option<Range<u64>> {
        crate::run::ascending(self.iter())
    }
}

impl fmt::Debug for RowList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
