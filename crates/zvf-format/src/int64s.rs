//! Packed 64-bit numbers: ids, offsets and indices with one value per row.
//!
//! | part | size in bytes | content |
//! |---|---|---|
//! | numbers | 8 · n | i64 each, little-endian, nothing before, between or after them |
//!
//! The count is not stored: it is the length divided by eight. A length that is not a multiple of
//! eight is rejected; bytes truncated between two numbers are a valid shorter list. `object_ids`
//! exists only with the index layout `vlen_manifests_v2`; without it object `i` has the id `i`.
//! Nothing is aligned. The meaning and the valid range of the numbers depend on the codec that
//! provides the view.
//!
//! ```
//! use zvf_format::int64s::Int64s;
//!
//! let numbers = Int64s::parse(b"\x07\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff")?;
//! assert!(numbers.iter().eq([7, -1]));
//! assert_eq!(numbers.get(2), None);
//! # Ok::<(), zvf_format::int64s::Int64sError>(())
//! ```

use core::fmt;

use zerocopy::{FromBytes, IntoBytes, little_endian::I64};

/// Packed little-endian i64 numbers, borrowed from their bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Int64s<'a> {
    numbers: &'a [I64],
}

impl<'a> Int64s<'a> {
    /// Checks that `bytes` hold whole numbers and borrows them. Takes constant time.
    ///
    /// # Errors
    ///
    /// [`Int64sError::Length`] if the length is not a multiple of eight.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Int64sError> {
        // I64 takes any bit pattern at any alignment: only the length can be wrong.
        let numbers =
            <[I64]>::ref_from_bytes(bytes).map_err(|_| Int64sError::Length(bytes.len()))?;
        Ok(Self::new(numbers))
    }

    /// Wraps numbers that a codec has already extracted from its blob.
    pub(crate) fn new(numbers: &'a [I64]) -> Self {
        Self { numbers }
    }

    pub(crate) fn numbers(self) -> &'a [I64] {
        self.numbers
    }

    /// Returns the number of numbers.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns whether there is no number.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Returns number `at`, or `None` past the end.
    pub fn get(&self, at: usize) -> Option<i64> {
        self.numbers.get(at).map(|number| number.get())
    }

    /// Returns the numbers in stored order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = i64> + Clone + use<'a> {
        self.numbers.iter().map(|number| number.get())
    }

    /// Returns the stored bytes.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.numbers.as_bytes()
    }
}

impl fmt::Debug for Int64s<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The reason why bytes are not packed i64 numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Int64sError {
    /// This number of bytes is not a whole number of integers.
    #[error("{0} bytes are not a whole number of i64")]
    Length(usize),
}
