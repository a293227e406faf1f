//! Lengths of the fragments of a chunk whose rows follow one another.
//!
//! The inventory of a sealed store has one such blob for each fragment index with contiguous
//! fragments, as bulk writers store them: ranges that each start at the end of the one before. The
//! blob is equivalent to the index, and takes about a sixteenth of its bytes.
//!
//! | part | size in bytes | content |
//! |---|---|---|
//! | lengths | 1 to 9 each | row count of each fragment: seven bits a byte, low bits first, the high bit set in all bytes but the last |
//!
//! The number of fragments is not stored: lengths follow one another to the end. A length has no more
//! bytes than it needs, and the sum of all is below 2^63.
//!
//! ```
//! use zvf_format::fragment_lengths::FragmentLengths;
//! # #[cfg(feature = "alloc")] {
//! use zvf_format::{fragment::{FragmentIndex, FragmentIndexBuilder}, fragment_lengths};
//!
//! let mut builder = FragmentIndexBuilder::default();
//! builder.push_range(0..4)?.push_range(4..204)?;
//! let index = builder.finish();
//! let bytes = fragment_lengths::encode(&FragmentIndex::parse(&index)?).unwrap_or_default();
//! assert_eq!(bytes, [4, 0xc8, 1]);
//! # }
//!
//! let lengths = FragmentLengths::parse(&[4, 0xc8, 1])?;
//! assert!(lengths.ranges().eq([0..4, 4..204]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use core::ops::Range;

/// Maximum number of bytes of a length: 63 bits.
const MAX_BYTES: usize = 9;

/// Maximum number of rows of all fragments.
const MAX_EXTENT: u64 = (1 << 63) - 1;

/// The lengths of the fragments of a chunk, borrowed from their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FragmentLengths<'a> {
    bytes: &'a [u8],
    extent: u64,
}

impl<'a> FragmentLengths<'a> {
    /// Checks `bytes` and borrows the lengths in them.
    ///
    /// # Errors
    ///
    /// [`FragmentLengthsError`] if the bytes are not lengths.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FragmentLengthsError> {
        let (mut rest, mut extent) = (bytes, 0_u64);
        while !rest.is_empty() {
            let (length, after) = split_length(rest)?;
            // Both are below 2^63.
            extent = extent.wrapping_add(length);
            if extent > MAX_EXTENT {
                return Err(FragmentLengthsError::Extent);
            }
            rest = after;
        }
        Ok(Self { bytes, extent })
    }

    /// Returns the rows of each fragment.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + Clone + use<'a> {
        let (mut rest, mut start) = (self.bytes, 0_u64);
        core::iter::from_fn(move || {
            let (length, after) = split_length(rest).ok()?;
            rest = after;
            let range = start..start.wrapping_add(length);
            start = range.end;
            Some(range)
        })
    }

    /// Returns the number of rows of all fragments.
    pub fn extent(&self) -> u64 {
        self.extent
    }
}

/// Returns the first length and the bytes after it.
fn split_length(bytes: &[u8]) -> Result<(u64, &[u8]), FragmentLengthsError> {
    let mut length = 0_u64;
    let mut rest = bytes;
    for at in 0..MAX_BYTES {
        let Some((byte, after)) = rest.split_first() else {
            return Err(FragmentLengthsError::Truncated);
        };
        rest = after;
        let shift = u32::try_from(at.wrapping_mul(7)).unwrap_or(0);
        length |= u64::from(byte & 0x7f).wrapping_shl(shift);
        if *byte < 0x80 {
            return if at > 0 && *byte == 0 {
                Err(FragmentLengthsError::Padded)
            } else {
                Ok((length, rest))
            };
        }
    }
    Err(FragmentLengthsError::Extent)
}

/// Encodes the lengths of the fragments of an index; `None` if a fragment is a list, or does not start
/// where the one before ends.
#[cfg(feature = "alloc")]
pub fn encode(index: &crate::fragment::FragmentIndex<'_>) -> Option<alloc::vec::Vec<u8>> {
    use crate::fragment::Rows;

    let mut bytes = alloc::vec::Vec::new();
    let mut end = 0_u64;
    for rows in index {
        let Rows::Range(range) = rows else {
            return None;
        };
        if range.start != end {
            return None;
        }
        let mut length = range.end.checked_sub(range.start)?;
        end = range.end;
        while length >= 0x80 {
            bytes.push(u8::try_from(length & 0x7f).ok()? | 0x80);
            length >>= 7;
        }
        bytes.push(u8::try_from(length).ok()?);
    }
    Some(bytes)
}

/// An error of bytes that are not lengths of fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FragmentLengthsError {
    /// The bytes end inside a length.
    #[error("the bytes end inside a length")]
    Truncated,
    /// A length has more bytes than it needs.
    #[error("a length has more bytes than it needs")]
    Padded,
    /// The fragments have 2^63 rows or more.
    #[error("the fragments have 2^63 rows or more")]
    Extent,
}
