//! Open rows: concatenated byte strings with the position of each.
//!
//! `groups` up to 0.8.0, `object_index` in 0.6 and the first 0.7 stores (those without the
//! attribute `layout`), and `parametric/groups` up to 0.8.0 have this form, two files that are read
//! together; later stores use [`vlen`](crate::vlen) items.
//!
//! | file | part | size in bytes | content |
//! |---|---|---|---|
//! | `data` | rows | d | the rows one after the other, nothing between them |
//! | `offsets` | starts | 8 · n | i64 each, little-endian: the **byte** of `data` where row `i` starts |
//!
//! Row `i` ends where row `i + 1` starts; the last row is open and runs to the
//! end of `data`, hence the name. Starts ascend from 0, none is past the end
//! of `data`, and equal neighbours make an empty row. The row count is the
//! length of `offsets` divided by eight; without any row `data` is empty.
//!
//! The content of a row depends on its array: a manifest for `object_index`, packed object ids for
//! `groups` ([`GroupMembers`](crate::groups::GroupMembers)).
//!
//! Because the last row is open, `data` truncated after the last start still parses, and so does
//! `offsets` truncated between starts, where the last row then includes the rest. A manifest
//! detects both. Ids of a group do not: `num_groups` reveals missing starts, but nothing reveals
//! missing ids.
//!
//! ```
//! use zvf_format::open_rows::OpenRows;
//!
//! let offsets = b"\0\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0";
//! let rows = OpenRows::parse(b"abcde", offsets)?;
//! assert!(rows.iter().eq([&b"abc"[..], b"", b"de"]));
//! # Ok::<(), zvf_format::open_rows::OpenRowsError>(())
//! ```

#[cfg(feature = "alloc")]
use alloc::vec::Vec;
use core::fmt;

use crate::int64s::{Int64s, Int64sError};

/// Rows of bytes, borrowed from a `data` and an `offsets` file.
///
/// [`parse`](Self::parse) validates all data, so that no accessor fails or panics. Two are equal if
/// they have the same rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OpenRows<'a> {
    data: &'a [u8],
    starts: Int64s<'a>,
}

impl<'a> OpenRows<'a> {
    /// Checks both files against each other and borrows the rows in them. One
    /// pass over `offsets`, none over `data`, no allocation.
    ///
    /// # Errors
    ///
    /// [`OpenRowsError`] describes the first fault.
    pub fn parse(data: &'a [u8], offsets: &'a [u8]) -> Result<Self, OpenRowsError> {
        use OpenRowsError as E;
        let starts = Int64s::parse(offsets).map_err(|Int64sError::Length(len)| E::Offsets(len))?;
        let mut last = 0;
        for (row, start) in starts.iter().enumerate() {
            if row == 0 && start != 0 {
                return Err(E::First(start));
            }
            if start < last {
                return Err(E::Descending(row));
            }
            last = start;
        }
        if starts.is_empty() && !data.is_empty() {
            return Err(E::Unowned(data.len()));
        }
        if usize::try_from(last).map_or(true, |last| last > data.len()) {
            return Err(E::PastEnd(last));
        }
        Ok(Self { data, starts })
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Returns the bytes of row `row`, or `None` past the end, in constant time.
    pub fn get(&self, row: usize) -> Option<&'a [u8]> {
        let start = usize::try_from(self.starts.get(row)?).ok()?;
        let end = match self.starts.get(row.checked_add(1)?) {
            Some(next) => usize::try_from(next).ok()?,
            None => self.data.len(),
        };
        self.data.get(start..end)
    }

    /// Returns the rows in order. Each step takes constant time.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let rows = *self;
        // `parse` has verified that each of them is there.
        (0..rows.len()).map(move |row| rows.get(row).unwrap_or_default())
    }
}

impl fmt::Debug for OpenRows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The reason why two files are not open rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenRowsError {
    /// `offsets` has this many bytes, which are not a whole number of integers.
    #[error("offsets of {0} bytes are not a whole number of i64")]
    Offsets(usize),
    /// The first row starts here instead of at 0.
    #[error("the first row starts at {0}, not at 0")]
    First(i64),
    /// This row starts before its predecessor.
    #[error("row {0} starts before the previous row")]
    Descending(usize),
    /// The last row starts here, past the end of `data`.
    #[error("the last row starts at {0}, past the end of the data")]
    PastEnd(i64),
    /// There is no row, but `data` has this many bytes.
    #[error("{0} bytes of data belong to no row")]
    Unowned(usize),
}

/// The two files that hold open rows, created by [`encode`].
#[cfg(feature = "alloc")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenRowsFiles {
    /// The rows.
    pub data: Vec<u8>,
    /// Start of each row.
    pub offsets: Vec<u8>,
}

/// Encodes rows. The encoding is unique.
///
/// ```
/// use zvf_format::open_rows::{OpenRows, encode};
///
/// let files = encode(&["abc", "", "de"]);
/// let rows = OpenRows::parse(&files.data, &files.offsets)?;
/// assert_eq!(rows.get(2), Some(&b"de"[..]));
/// # Ok::<(), zvf_format::open_rows::OpenRowsError>(())
/// ```
#[cfg(feature = "alloc")]
pub fn encode<T: AsRef<[u8]>>(rows: &[T]) -> OpenRowsFiles {
    let mut files = OpenRowsFiles::default();
    for row in rows {
        // The length of a Vec fits an i64.
        let start = i64::try_from(files.data.len()).unwrap_or(i64::MAX);
        files.offsets.extend_from_slice(&start.to_le_bytes());
        files.data.extend_from_slice(row.as_ref());
    }
    files
}
