//! vlen-bytes frame: the serialized form of a Zarr chunk of byte strings.
//!
//! | part | size in bytes | content |
//! |---|---|---|
//! | n | 4 | u32, number of items |
//! | items | Σ (4 + length) | n times: u32 length, then that many bytes |
//!
//! All numbers are little-endian; nothing is aligned or padded, and nothing follows the last item.
//! This is the form of a chunk after decompression.
//!
//! n is the number of cells in the Zarr chunk, not the number of meaningful items: a chunk at the
//! edge of an array is stored at full size and padded with empty items. Arrays with one cell for
//! each spatial chunk have chunks of one item, which [`VlenFrame::only`] returns. An empty item is
//! the array's fill value, like a missing chunk; writers omit a chunk instead of writing one empty
//! item.
//!
//! Each item follows its length and there is no directory, so finding item `i` takes linear time.
//!
//! ```
//! use zvf_format::vlen::VlenFrame;
//!
//! let frame = VlenFrame::parse(b"\x02\0\0\0\x03\0\0\0abc\0\0\0\0")?;
//! assert!(frame.iter().eq([&b"abc"[..], b""]));
//! assert_eq!(frame.only(), None);
//! # #[cfg(feature = "alloc")] {
//!
//! let bytes = zvf_format::vlen::encode(&["abc"])?;
//! assert_eq!(VlenFrame::parse(&bytes)?.only(), Some(&b"abc"[..]));
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "alloc")]
use alloc::vec::Vec;
use core::fmt;

use zerocopy::little_endian::U32;

use crate::cursor::Cursor;

/// The items of one vlen-bytes frame, borrowed from its bytes.
///
/// [`parse`](Self::parse) validates all data, so that no accessor fails or panics. Two frames are
/// equal if they have the same items.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct VlenFrame<'a> {
    len: u32,
    /// All items with their lengths.
    items: &'a [u8],
}

impl<'a> VlenFrame<'a> {
    /// Checks `bytes` and borrows the items in them. One step for each item,
    /// no allocation.
    ///
    /// # Errors
    ///
    /// [`VlenFrameError`] describes the first invalid part.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, VlenFrameError> {
        use VlenFrameError as E;
        let mut cursor = Cursor::new(bytes);
        let len = cursor.take::<U32>().ok_or(E::Header)?.get();
        let items = cursor.rest();
        // Every item needs four bytes for its length: a larger count is rejected without iteration.
        let room = items.len().div_euclid(size_of::<U32>());
        if usize::try_from(len).map_or(true, |len| len > room) {
            return Err(E::Count(len));
        }
        for at in 0..len {
            item(&mut cursor).ok_or(E::Item(at))?;
        }
        match cursor.rest().len() {
            0 => Ok(Self { len, items }),
            trailing => Err(E::TrailingBytes(trailing)),
        }
    }

    /// Returns the number of items, n.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns whether the frame has no item.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns item `at`, or `None` past the end, in O(at). To visit all items, use
    /// [`iter`](Self::iter).
    pub fn get(&self, at: u32) -> Option<&'a [u8]> {
        self.iter().nth(usize::try_from(at).ok()?)
    }

    /// Returns the single item of an array's cell, or `None` if the frame has none or several.
    /// Takes constant time.
    pub fn only(&self) -> Option<&'a [u8]> {
        if self.len == 1 {
            self.iter().next()
        } else {
            None
        }
    }

    /// Returns the items in stored order. Each step takes constant time.
    pub fn iter(&self) -> Items<'a> {
        Items {
            left: self.len,
            cursor: Cursor::new(self.items),
        }
    }
}

/// Returns the next item, or `None` if the bytes end inside it.
fn item<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let len = cursor.take::<U32>()?.get();
    cursor.take_bytes(usize::try_from(len).ok()?)
}

impl fmt::Debug for VlenFrame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for VlenFrame<'a> {
    type Item = &'a [u8];
    type IntoIter = Items<'a>;

    fn into_iter(self) -> Items<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &VlenFrame<'a> {
    type Item = &'a [u8];
    type IntoIter = Items<'a>;

    fn into_iter(self) -> Items<'a> {
        self.iter()
    }
}

/// Iterator over the items of a frame, created by [`VlenFrame::iter`].
#[derive(Clone)]
pub struct Items<'a> {
    left: u32,
    cursor: Cursor<'a>,
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        item(&mut self.cursor)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // `parse` has counted them in memory, at least four bytes each.
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Items<'_> {}
impl core::iter::FusedIterator for Items<'_> {}

impl fmt::Debug for Items<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// The reason why bytes are not a vlen-bytes frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VlenFrameError {
    /// The bytes end inside the item count.
    #[error("bytes end inside the item count")]
    Header,
    /// The bytes are too few even for the lengths of this many items.
    #[error("bytes are too few for {0} items")]
    Count(u32),
    /// The bytes end inside this item or its length.
    #[error("bytes end inside item {0}")]
    Item(u32),
    /// Bytes are left after the last item.
    #[error("{0} bytes left after the last item")]
    TrailingBytes(usize),
}

/// Encodes items. The encoding is unique.
///
/// # Errors
///
/// [`VlenFrameLimit`] if a length or the count does not fit its 32 bits.
#[cfg(feature = "alloc")]
pub fn encode<T: AsRef<[u8]>>(items: &[T]) -> Result<Vec<u8>, VlenFrameLimit> {
    let count = count(items.len())?;
    // Checked before anything is copied; only a hint if the sum overflows.
    let mut size = size_of::<U32>();
    for (at, item) in items.iter().enumerate() {
        length(at, item.as_ref().len())?;
        let added = item.as_ref().len().saturating_add(size_of::<U32>());
        size = size.saturating_add(added);
    }
    // Room for the checksum that most frames get.
    let mut bytes = Vec::with_capacity(size.saturating_add(size_of::<U32>()));
    bytes.extend_from_slice(&count.to_le_bytes());
    for (at, item) in items.iter().enumerate() {
        bytes.extend_from_slice(&length(at, item.as_ref().len())?.to_le_bytes());
        bytes.extend_from_slice(item.as_ref());
    }
    Ok(bytes)
}

#[cfg(feature = "alloc")]
fn count(items: usize) -> Result<u32, VlenFrameLimit> {
    u32::try_from(items).map_err(|_| VlenFrameLimit::Items(items))
}

#[cfg(feature = "alloc")]
fn length(item: usize, len: usize) -> Result<u32, VlenFrameLimit> {
    u32::try_from(len).map_err(|_| VlenFrameLimit::Item { item, len })
}

/// Items that a vlen-bytes frame cannot represent.
#[cfg(feature = "alloc")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VlenFrameLimit {
    /// 2^32 items or more.
    #[error("a frame holds at most 4294967295 items, not {0}")]
    Items(usize),
    /// An item of 4 GiB or more.
    #[error("item {item} has {len} bytes, a frame holds at most 4294967295 in one")]
    Item {
        /// Its number.
        item: usize,
        /// Its length in bytes.
        len: usize,
    },
}

#[cfg(all(test, feature = "alloc", target_pointer_width = "64"))]
mod tests {
    use super::{VlenFrameLimit as L, count, length};

    const MAX_LEN: usize = 0xffff_ffff;

    /// Tested here because no test can allocate 4 GiB.
    #[test]
    fn lengths_are_never_truncated() {
        assert_eq!(count(MAX_LEN), Ok(u32::MAX));
        assert_eq!(count(MAX_LEN + 1), Err(L::Items(MAX_LEN + 1)));
        assert_eq!(length(7, MAX_LEN), Ok(u32::MAX));
        let len = MAX_LEN + 13;
        assert_eq!(length(7, len), Err(L::Item { item: 7, len }));
    }
}
