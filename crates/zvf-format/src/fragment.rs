//! Fragment index, version 1: the rows of each fragment of a chunk.
//!
//! `vertex_fragments/<chunk>` and `link_fragments/<chunk>` hold one such blob
//! for each chunk. A fragment is either a contiguous run of rows or an explicit
//! list of row numbers; lists let fragments share rows.
//!
//! | part | size in bytes | content |
//! |---|---|---|
//! | magic | 4 | `47 46 56 5A`: the u32 `0x5A564647`, little-endian. Prose calls it "ZVFG", the file reads `GFVZ` |
//! | version | 2 | u16, 1 |
//! | flags | 2 | u16, 0 |
//! | F | 4 | u32, number of fragments |
//! | R | 4 | u32, number of range fragments |
//! | bitmap | 8 · ⌈F/64⌉ | bit `f` (LSB first in byte `f/8`) is 1 when fragment `f` is a range. Bits from F on are padding: zero on write, ignored on read |
//! | range table | 16 · R | i64 start row, i64 row count. Entry `r` belongs to the `r`-th **set bit**, not to fragment `r` |
//! | list offsets | 4 · (E + 1) | u32, E = F − R. Ascending from 0, counted in elements of the next part. There even when E = 0 |
//! | list rows | 8 · T | i64 row numbers, T = last offset. List `e` is the `e`-th **clear** bit's |
//!
//! All numbers are little-endian; nothing is aligned. With F = 0 the blob is only the 16-byte
//! header.
//!
//! Row numbers count from the first row of the same chunk's `vertices` (for `link_fragments`: of
//! the same chunk's intra-chunk link rows). Starts, counts and rows are not negative, and start +
//! count is below 2^63. Repeated and overlapping rows are legal, an empty range may start anywhere,
//! and so are fragments without rows: an empty range and an empty list are different and both
//! round-trip. [`FragmentIndex::extent`] returns the bound to compare with the number of stored
//! rows, which this blob does not contain.
//!
//! Finding fragment `f` needs the rank of its bit. [`FragmentIndex::rows`] counts bits, at most
//! F/64 words; [`FragmentIndex::ranked`] fills a directory provided by the caller (a sixteenth of
//! the bitmap) that makes it constant. If all fragments are ranges, as written by every bulk
//! writer, rank and number are equal and neither is needed.
//!
//! ```
//! use zvf_format::fragment::{FragmentIndex, Rows};
//! # #[cfg(feature = "alloc")] {
//! use zvf_format::fragment::FragmentIndexBuilder;
//!
//! let mut builder = FragmentIndexBuilder::default();
//! builder.push_range(0..4)?.push_list(&[12, 7, 19])?.push_range(20..28)?;
//! let bytes = builder.finish();
//! assert_eq!(bytes.len(), 88);
//!
//! let index = FragmentIndex::parse(&bytes)?;
//! assert_eq!(index.rows(2), Some(Rows::Range(20..28)));
//! assert!(index.rows(1).is_some_and(|rows| rows.iter().eq([12, 7, 19])));
//! assert_eq!(index.rows(3), None);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use core::{fmt, ops::Range};

use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    little_endian::{I64, U16, U32, U64},
};

use crate::{bits, cursor::Cursor, sign::Sign};

#[cfg(feature = "alloc")]
mod builder;
mod ranked;
mod rows;

#[cfg(feature = "alloc")]
pub use builder::{FragmentIndexBuilder, FragmentIndexLimit};
pub use ranked::{RankedFragmentIndex, SlotsTooFew};
pub use rows::{RowList, Rows, RowsIter};

/// First four bytes of every fragment index, in file order.
pub const MAGIC: [u8; 4] = *b"GFVZ";
/// The only version.
pub const VERSION: u16 = 1;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawHeader {
    magic: [u8; 4],
    version: U16,
    flags: U16,
    fragments: U32,
    ranges: U32,
}

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawRange {
    start: I64,
    count: I64,
}

const _: () = assert!(size_of::<RawHeader>() == 16 && size_of::<RawRange>() == 16);

impl RawRange {
    /// `parse` has verified that both are non-negative and that the sum fits.
    fn rows(self) -> Range<u64> {
        let start = self.start.get().unsigned();
        start..start.wrapping_add(self.count.get().unsigned())
    }

    /// Negative exactly if start, count or their sum is not a row number.
    fn sign(self) -> i64 {
        let (start, count) = (self.start.get(), self.count.get());
        start | count | start.wrapping_add(count)
    }
}

/// A chunk's fragment index, borrowed from its encoded bytes.
///
/// [`parse`](Self::parse) validates all data, so that no accessor fails or panics.
#[derive(Clone, Copy)]
pub struct FragmentIndex<'a> {
    len: u32,
    bitmap: &'a [U64],
    ranges: &'a [RawRange],
    offsets: &'a [U32],
    rows: &'a [I64],
}

impl<'a> FragmentIndex<'a> {
    /// Checks `bytes` and borrows the index in them. One pass, no allocation.
    ///
    /// # Errors
    ///
    /// [`FragmentIndexError`] describes the first invalid part.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FragmentIndexError> {
        use FragmentIndexError as E;
        let mut cursor = Cursor::new(bytes);
        let header: &RawHeader = cursor.take().ok_or(E::Truncated(Section::Header))?;
        if header.magic != MAGIC {
            return Err(E::Magic(header.magic));
        }
        if header.version.get() != VERSION {
            return Err(E::Version(header.version.get()));
        }
        if header.flags.get() != 0 {
            return Err(E::Flags(header.flags.get()));
        }
        let (len, range_count) = (header.fragments.get(), header.ranges.get());
        let lists = len.checked_sub(range_count).ok_or(E::RangeCount)?;
        if len == 0 {
            return match cursor.rest().len() {
                0 => Ok(Self::EMPTY),
                trailing => Err(E::TrailingBytes(trailing)),
            };
        }
        let count = |count: u32| usize::try_from(count).ok();
        let bitmap: &[U64] = take(&mut cursor, count(len.div_ceil(64)), Section::Bitmap)?;
        let ranges: &[RawRange] = take(&mut cursor, count(range_count), Section::Ranges)?;
        if bits::ones_before(bitmap, len) != range_count {
            return Err(E::RangeCount);
        }
        let slots = count(lists).and_then(|lists| lists.checked_add(1));
        let offsets: &[U32] = take(&mut cursor, slots, Section::Offsets)?;
        let sorted = offsets.is_sorted_by_key(|offset| offset.get());
        if !sorted || offsets.first().is_some_and(|offset| offset.get() != 0) {
            return Err(E::Offsets);
        }
        let total = offsets.last().map_or(0, |offset| offset.get());
        let rows: &[I64] = take(&mut cursor, count(total), Section::Rows)?;
        if !cursor.rest().is_empty() {
            return Err(E::TrailingBytes(cursor.rest().len()));
        }
        // Signs are or-ed rather than tested one by one: the loops then have no branch and vectorise.
        let signs = ranges.iter().fold(0, |signs, range| signs | range.sign());
        if rows.iter().fold(signs, |signs, row| signs | row.get()) < 0 {
            return Err(E::Row);
        }
        Ok(Self {
            len,
            bitmap,
            ranges,
            offsets,
            rows,
        })
    }

    const EMPTY: Self = Self {
        len: 0,
        bitmap: &[],
        ranges: &[],
        offsets: &[],
        rows: &[],
    };

    /// Returns the number of fragments, F.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns whether the chunk has no fragment.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of range fragments, R.
    pub fn range_count(&self) -> u32 {
        // R came out of a u32.
        u32::try_from(self.ranges.len()).unwrap_or(u32::MAX)
    }

    /// Returns whether fragment `id` is a range; `None` past the end.
    pub fn is_range(&self, id: u32) -> Option<bool> {
        (id < self.len).then(|| bits::test(self.bitmap, id))
    }

    /// Returns the rows of fragment `id`, or `None` past the end.
    ///
    /// Takes constant time if all fragments are of one kind; otherwise counts the bits before `id`,
    /// O(id/64). Use [`ranked`](Self::ranked) for many lookups and [`iter`](Self::iter) for all
    /// fragments.
    #[inline]
    pub fn rows(&self, id: u32) -> Option<Rows<'a>> {
        if self.ranges_only() {
            return self.range(id).map(Rows::Range);
        }
        self.rows_of_any(id)
    }

    /// Separate from [`rows`](Self::rows), so that the lookup in indexes of bulk writers is small
    /// enough to be inlined.
    fn rows_of_any(&self, id: u32) -> Option<Rows<'a>> {
        if self.lists_only() {
            return self.list(id).map(Rows::List);
        }
        let is_range = self.is_range(id)?;
        self.rows_at(id, is_range, bits::ones_before(self.bitmap, id))
    }

    /// Returns the rows of every fragment, in fragment order. Each step takes constant time.
    pub fn iter(&self) -> Fragments<'a> {
        Fragments {
            index: *self,
            next: 0,
            word: 0,
            ranges: self.ranges.iter(),
            lists: self.offsets.windows(2),
        }
    }

    /// Returns one more than the highest row of any fragment; 0 without rows. An empty range has no
    /// row, wherever it starts.
    ///
    /// An index fits a chunk of `n` rows exactly when its extent is at most `n`. Attribute cells
    /// have `extent` rows; a cell that does not divide into this many rows is invalid. One pass
    /// over the index.
    pub fn extent(&self) -> u64 {
        let ends = self.ranges.iter().map(|range| match range.count.get() {
            0 => 0,
            _ => range.rows().end,
        });
        let rows = self.rows.iter();
        let lists = rows.map(|row| row.get().unsigned().saturating_add(1));
        ends.chain(lists).max().unwrap_or(0)
    }

    /// Returns whether the fragments are ranges that cover rows `0..rows` once, in order: then the
    /// chunk's buffer is the concatenation of its fragments.
    pub fn tiles(&self, rows: u64) -> bool {
        let mut end = 0;
        self.ranges_only()
            && self.ranges.iter().all(|range| {
                let next = range.rows();
                core::mem::replace(&mut end, next.end) == next.start
            })
            && end == rows
    }

    /// Returns whether an encoder would write the same bytes for these fragments: no list is a
    /// non-empty ascending run, which would be a range.
    ///
    /// Such a list is valid but takes more space than necessary.
    pub fn is_canonical(&self) -> bool {
        self.offsets.windows(2).all(|pair| match pair {
            [lo, hi] => self
                .list_between(*lo, *hi)
                .is_none_or(|list| list.as_run().is_none()),
            _ => true,
        })
    }

    #[inline]
    fn ranges_only(&self) -> bool {
        self.offsets.len() <= 1
    }

    fn lists_only(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns fragment `id`, given that `ones` fragments before it are ranges.
    fn rows_at(&self, id: u32, is_range: bool, ones: u32) -> Option<Rows<'a>> {
        if is_range {
            self.range(ones).map(Rows::Range)
        } else {
            self.list(id.wrapping_sub(ones)).map(Rows::List)
        }
    }

    #[inline]
    fn range(&self, ordinal: u32) -> Option<Range<u64>> {
        let range = self.ranges.get(usize::try_from(ordinal).ok()?)?;
        Some(range.rows())
    }

    fn list(&self, ordinal: u32) -> Option<RowList<'a>> {
        let at = usize::try_from(ordinal).ok()?;
        let lo = self.offsets.get(at)?;
        let hi = self.offsets.get(at.checked_add(1)?)?;
        self.list_between(*lo, *hi)
    }

    fn list_between(&self, lo: U32, hi: U32) -> Option<RowList<'a>> {
        let lo = usize::try_from(lo.get()).ok()?;
        let hi = usize::try_from(hi.get()).ok()?;
        self.rows.get(lo..hi).map(RowList::new)
    }
}

/// `None` stands for a count beyond the address space, and therefore beyond the blob.
fn take<'a, T>(
    cursor: &mut Cursor<'a>,
    count: Option<usize>,
    section: Section,
) -> Result<&'a [T], FragmentIndexError>
where
    T: FromBytes + Immutable + KnownLayout + Unaligned,
{
    count
        .and_then(|count| cursor.take_slice(count))
        .ok_or(FragmentIndexError::Truncated(section))
}

impl fmt::Debug for FragmentIndex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Compares fragments by kind and rows, ignoring padding bits.
impl PartialEq for FragmentIndex<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl Eq for FragmentIndex<'_> {}

impl<'a> IntoIterator for FragmentIndex<'a> {
    type Item = Rows<'a>;
    type IntoIter = Fragments<'a>;

    fn into_iter(self) -> Fragments<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &FragmentIndex<'a> {
    type Item = Rows<'a>;
    type IntoIter = Fragments<'a>;

    fn into_iter(self) -> Fragments<'a> {
        self.iter()
    }
}

/// Iterator over the fragments of an index, created by [`FragmentIndex::iter`].
#[derive(Clone)]
pub struct Fragments<'a> {
    index: FragmentIndex<'a>,
    next: u32,
    /// The remaining bits of the current bitmap word, the next one lowest.
    word: u64,
    ranges: core::slice::Iter<'a, RawRange>,
    lists: core::slice::Windows<'a, U32>,
}

impl<'a> Iterator for Fragments<'a> {
    type Item = Rows<'a>;

    #[inline]
    fn next(&mut self) -> Option<Rows<'a>> {
        if self.next >= self.index.len {
            return None;
        }
        if self.next % 64 == 0 {
            self.word = bits::word(self.index.bitmap, self.next);
        }
        let is_range = self.word & 1 == 1;
        self.word >>= 1;
        self.next = self.next.wrapping_add(1);
        if is_range {
            return self.ranges.next().map(|range| Rows::Range(range.rows()));
        }
        let [lo, hi] = self.lists.next()? else {
            return None;
        };
        self.index.list_between(*lo, *hi).map(Rows::List)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.index.len.saturating_sub(self.next);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Fragments<'_> {}
impl core::iter::FusedIterator for Fragments<'_> {}

impl fmt::Debug for Fragments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// The reason why bytes are not a fragment index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FragmentIndexError {
    /// The bytes end inside this part.
    #[error("bytes end inside the {0}")]
    Truncated(Section),
    /// The bytes do not start with [`MAGIC`].
    #[error("magic is {0:02x?}, not \"GFVZ\"")]
    Magic([u8; 4]),
    /// A version this crate does not read.
    #[error("version {0} is not supported, only 1 is")]
    Version(u16),
    /// Reserved flag bits are set.
    #[error("reserved flags {0:#06x} are set")]
    Flags(u16),
    /// The range count exceeds the fragment count or contradicts the bitmap.
    #[error("range count contradicts the fragment count or the bitmap")]
    RangeCount,
    /// List offsets do not start at zero or are not ascending.
    #[error("list offsets are not ascending from zero")]
    Offsets,
    /// A start, count or row is negative, or a range ends past 2^63 − 1.
    #[error("a row number is negative or past 63 bits")]
    Row,
    /// Bytes are left after the last part.
    #[error("{0} bytes left after the last part")]
    TrailingBytes(usize),
}

/// A part of the encoded index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Section {
    /// The fixed 16 bytes.
    Header,
    /// One bit for each fragment.
    Bitmap,
    /// `(start, count)` pairs.
    Ranges,
    /// Start of each list.
    Offsets,
    /// The lists' row numbers.
    Rows,
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "header",
            Self::Bitmap => "bitmap",
            Self::Ranges => "range table",
            Self::Offsets => "list offsets",
            Self::Rows => "list rows",
        })
    }
}
