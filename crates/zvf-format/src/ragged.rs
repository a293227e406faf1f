//! Self-describing ragged blob: byte groups after a table of their offsets.
//!
//! All link cells use it except the flat ones: the intra-chunk array, the cross-chunk table of 0.6
//! and 0.7, and `links_<kind>` of composite stores. See [`links`](crate::links).
//!
//! | part | size in bytes | content |
//! |---|---|---|
//! | K | 8 | i64, number of groups |
//! | offsets | 8 · K | i64 each: where the group starts, in bytes **from the end of this table**. Ascending from 0; an empty group repeats its neighbour's |
//! | data | rest | the groups, back to back; the last one runs to the end of the blob |
//!
//! All numbers are little-endian. With K = 0 there is no data. The length of the last group is not
//! stored: a blob truncated inside it has a shorter last group, which the codec of its rows or the
//! count of records must detect.
//!
//! ```
//! use zvf_format::ragged::RaggedBlob;
//!
//! let bytes = b"\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0abcde";
//! let blob = RaggedBlob::parse(bytes)?;
//! assert_eq!(blob.get(1), Some(&b"de"[..]));
//! # Ok::<(), zvf_format::ragged::RaggedError>(())
//! ```

use core::fmt;

use zerocopy::little_endian::I64;
#[cfg(feature = "alloc")]
use {alloc::vec::Vec, zerocopy::IntoBytes};

use crate::cursor::Cursor;

/// Byte groups, borrowed from a self-describing blob.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RaggedBlob<'a> {
    offsets: &'a [I64],
    data: &'a [u8],
}

impl<'a> RaggedBlob<'a> {
    /// Checks the header of `bytes` and borrows the groups.
    ///
    /// # Errors
    ///
    /// [`RaggedError`] describes the invalid part.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, RaggedError> {
        use RaggedError as E;
        let mut cursor = Cursor::new(bytes);
        let count: &I64 = cursor.take().ok_or(E::TruncatedCount)?;
        let count = count.get();
        let groups = usize::try_from(count).map_err(|_| match count {
            ..0 => E::NegativeCount(count),
            _ => E::TruncatedOffsets,
        })?;
        let offsets: &[I64] = cursor.take_slice(groups).ok_or(E::TruncatedOffsets)?;
        let data = cursor.rest();
        let sorted = offsets.is_sorted_by_key(|offset| offset.get());
        if !sorted || offsets.first().is_some_and(|first| first.get() != 0) {
            return Err(E::Offsets);
        }
        match offsets.last() {
            None if !data.is_empty() => Err(E::TrailingBytes(data.len())),
            Some(last) if u64::try_from(last.get()).map_or(true, |last| past(last, data)) => {
                Err(E::TruncatedData)
            }
            _ => Ok(Self { offsets, data }),
        }
    }

    /// Returns the number of groups.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Returns whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Returns the bytes of group `at`, or `None` past the end.
    pub fn get(&self, at: usize) -> Option<&'a [u8]> {
        let start = self.offset(at)?;
        let end = self.offset(at.checked_add(1)?);
        self.data.get(start..end.unwrap_or(self.data.len()))
    }

    /// Returns the groups in stored order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let blob = *self;
        (0..self.len()).map(move |at| blob.get(at).unwrap_or_default())
    }

    /// Returns all groups' bytes, back to back.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    fn offset(&self, at: usize) -> Option<usize> {
        usize::try_from(self.offsets.get(at)?.get()).ok()
    }
}

fn past(offset: u64, data: &[u8]) -> bool {
    usize::try_from(offset).map_or(true, |offset| offset > data.len())
}

impl fmt::Debug for RaggedBlob<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Encodes groups of bytes as one ragged blob.
#[cfg(feature = "alloc")]
pub fn encode<G: AsRef<[u8]>>(groups: &[G]) -> Vec<u8> {
    let mut offsets = Vec::with_capacity(groups.len());
    let mut at = 0i64;
    for group in groups {
        offsets.push(I64::new(at));
        // Data in memory is shorter than 2^63 bytes.
        at = at.saturating_add_unsigned(u64::try_from(group.as_ref().len()).unwrap_or(u64::MAX));
    }
    let count = i64::try_from(groups.len()).unwrap_or(i64::MAX);
    let mut bytes = Vec::from(count.to_le_bytes());
    bytes.extend_from_slice(offsets.as_bytes());
    for group in groups {
        bytes.extend_from_slice(group.as_ref());
    }
    bytes
}

/// The reason why bytes are not a ragged blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RaggedError {
    /// The bytes end inside the group count.
    #[error("bytes end inside the group count")]
    TruncatedCount,
    /// The group count is negative.
    #[error("group count is {0}")]
    NegativeCount(i64),
    /// The bytes end inside the offset table.
    #[error("bytes end inside the group offsets")]
    TruncatedOffsets,
    /// The offsets do not start at zero or are not ascending.
    #[error("group offsets are not ascending from zero")]
    Offsets,
    /// The last group starts past the end of the bytes.
    #[error("bytes end before the last group")]
    TruncatedData,
    /// There are bytes but no group.
    #[error("{0} bytes but no group")]
    TrailingBytes(usize),
}
