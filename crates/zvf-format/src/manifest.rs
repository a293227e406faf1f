//! Object manifest: the fragments of an object, by chunk.
//!
//! | part | size in bytes | content |
//! |---|---|---|
//! | B | 4 | u32, number of blocks |
//! | then B times: chunk | 8 · K | i64 chunk coordinates. K is the `sid_ndim` of the object index; the blob does not say it |
//! | mode | 1 | u8: 0 single, 1 range, 2 list |
//! | mode 0 | 8 | i64 fragment number |
//! | mode 1 | 16 | i64 first fragment, i64 count of consecutive fragments |
//! | mode 2 | 4 + 8 · n | u32 n, then n times i64 fragment number |
//!
//! All numbers are little-endian; nothing is aligned or padded, and nothing follows the last block.
//! Fragment numbers count inside the block's chunk; they and the end of a range, first + count, are
//! at most 2^32 − 1, the limit of a [fragment index](crate::fragment). Negative numbers and counts,
//! other modes, truncated bytes and bytes after the last block are rejected. The order of blocks,
//! and of the numbers in a list, is the order of the object's pieces: a path may return to a chunk.
//! Modes may be mixed.
//!
//! An object without fragments is four zero bytes; deleted objects have the same form, and the
//! reference counts them as not present. An empty item is not a manifest and is rejected: it is the
//! padding after the last row of an array.
//!
//! ```
//! use zvf_format::manifest::{FragmentRef, ObjectManifest};
//!
//! let bytes = b"\x01\0\0\0\x02\0\0\0\0\0\0\0\x01\x04\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0";
//! let manifest = ObjectManifest::parse(bytes, 1)?;
//! let block = manifest.iter().next().ok_or("one block")?;
//! assert!(block.chunk.iter().eq([2]));
//! assert_eq!(block.fragments, FragmentRef::Range(4..7));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use core::{fmt, ops::Range};

use zerocopy::little_endian::{I64, U32};

use crate::{cursor::Cursor, int64s::Int64s, run};

#[cfg(feature = "alloc")]
mod builder;

#[cfg(feature = "alloc")]
pub use builder::{ManifestLimit, ObjectManifestBuilder};

const SINGLE: u8 = 0;
const RANGE: u8 = 1;
const LIST: u8 = 2;

/// One object's manifest, borrowed from its encoded bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ObjectManifest<'a> {
    blocks: u32,
    sid_ndim: usize,
    body: &'a [u8],
}

impl<'a> ObjectManifest<'a> {
    /// Checks `bytes` against chunk keys of `sid_ndim` numbers and borrows the
    /// manifest in them.
    ///
    /// # Errors
    ///
    /// [`ManifestError`] names the block at fault.
    pub fn parse(bytes: &'a [u8], sid_ndim: usize) -> Result<Self, ManifestError> {
        let mut cursor = Cursor::new(bytes);
        let blocks: &U32 = cursor.take().ok_or(ManifestError::TruncatedHeader)?;
        let blocks = blocks.get();
        let body = cursor.rest();
        // A block takes nine bytes or more, so a huge B fails at the first missing block.
        for block in 0..blocks {
            take_block(&mut cursor, sid_ndim)
                .map_err(|fault| ManifestError::Block { block, fault })?;
        }
        match cursor.rest().len() {
            0 => Ok(Self {
                blocks,
                sid_ndim,
                body,
            }),
            trailing => Err(ManifestError::TrailingBytes(trailing)),
        }
    }

    /// Reads the blocks of a manifest in one pass, and checks each when it is read. The first fault
    /// ends the blocks, which are then not those of an object.
    ///
    /// ```
    /// use zvf_format::manifest::{ManifestError, ObjectManifest};
    ///
    /// let bytes = b"\x01\0\0\0\x02\0\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0 ";
    /// let mut blocks = ObjectManifest::checked(bytes, 1)?;
    /// assert!(matches!(blocks.next(), Some(Ok(block)) if block.fragments.iter().eq([4])));
    /// assert!(matches!(blocks.next(), Some(Err(ManifestError::TrailingBytes(1)))));
    /// assert!(blocks.next().is_none());
    /// # Ok::<(), ManifestError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ManifestError::TruncatedHeader`]; the iterator returns all other errors.
    pub fn checked(bytes: &'a [u8], sid_ndim: usize) -> Result<CheckedBlocks<'a>, ManifestError> {
        let mut cursor = Cursor::new(bytes);
        let blocks: &U32 = cursor.take().ok_or(ManifestError::TruncatedHeader)?;
        Ok(CheckedBlocks {
            block: 0,
            blocks: blocks.get(),
            sid_ndim,
            cursor,
        })
    }

    /// Returns the number of blocks.
    pub fn len(&self) -> u32 {
        self.blocks
    }

    /// Returns whether the object has no fragment. It has an id and a row, but `num_present` of the
    /// object index does not count it.
    pub fn is_empty(&self) -> bool {
        self.iter().all(|block| block.fragments.is_empty())
    }

    /// Returns the number of coordinates of a chunk key.
    pub fn sid_ndim(&self) -> usize {
        self.sid_ndim
    }

    /// Returns whether an encoder would write the same bytes for these blocks: no list is a
    /// non-empty ascending run, which would be a range.
    ///
    /// Such a list is valid but takes more space than necessary.
    pub fn is_canonical(&self) -> bool {
        self.iter().all(|block| match block.fragments {
            FragmentRef::List(list) => list.as_run().is_none(),
            FragmentRef::Single(_) | FragmentRef::Range(_) => true,
        })
    }

    /// Returns the blocks, in the order of the object's pieces.
    pub fn iter(&self) -> Blocks<'a> {
        Blocks {
            left: self.blocks,
            sid_ndim: self.sid_ndim,
            cursor: Cursor::new(self.body),
        }
    }
}

fn take_block<'a>(cursor: &mut Cursor<'a>, sid_ndim: usize) -> Result<Block<'a>, BlockFault> {
    use BlockFault::Truncated;
    let chunk: &[I64] = cursor.take_slice(sid_ndim).ok_or(Truncated)?;
    let mode: &u8 = cursor.take().ok_or(Truncated)?;
    let fragments = match *mode {
        SINGLE => {
            let fragment: &I64 = cursor.take().ok_or(Truncated)?;
            FragmentRef::Single(fragment_id(fragment.get())?)
        }
        RANGE => {
            let [start, count]: &[I64; 2] = cursor.take().ok_or(Truncated)?;
            if count.get() < 0 {
                return Err(BlockFault::Count(count.get()));
            }
            let end = start.get().saturating_add(count.get());
            FragmentRef::Range(fragment_id(start.get())?..fragment_id(end)?)
        }
        LIST => {
            let count: &U32 = cursor.take().ok_or(Truncated)?;
            let count = usize::try_from(count.get()).map_err(|_| Truncated)?;
            let list: &[I64] = cursor.take_slice(count).ok_or(Truncated)?;
            for fragment in list {
                fragment_id(fragment.get())?;
            }
            FragmentRef::List(FragmentList { fragments: list })
        }
        mode => return Err(BlockFault::Mode(mode)),
    };
    Ok(Block {
        chunk: Int64s::new(chunk),
        fragments,
    })
}

/// Converts a fragment number. A chunk has at most 2^32 − 1 fragments, so one past the last is a
/// u32 too.
fn fragment_id(number: i64) -> Result<u32, BlockFault> {
    u32::try_from(number).map_err(|_| BlockFault::Fragment(number))
}

impl fmt::Debug for ObjectManifest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for ObjectManifest<'a> {
    type Item = Block<'a>;
    type IntoIter = Blocks<'a>;

    fn into_iter(self) -> Blocks<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &ObjectManifest<'a> {
    type Item = Block<'a>;
    type IntoIter = Blocks<'a>;

    fn into_iter(self) -> Blocks<'a> {
        self.iter()
    }
}

/// Some fragments of one chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The chunk's coordinates.
    pub chunk: Int64s<'a>,
    /// Its fragments that belong to the object.
    pub fragments: FragmentRef<'a>,
}

/// The fragments that one block names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FragmentRef<'a> {
    /// One fragment; mode 0.
    Single(u32),
    /// Consecutive fragments; mode 1.
    Range(Range<u32>),
    /// Fragments in the order given; mode 2.
    List(FragmentList<'a>),
}

impl<'a> FragmentRef<'a> {
    /// Returns the number of fragments.
    pub fn len(&self) -> usize {
        match self {
            Self::Single(_) => 1,
            Self::Range(fragments) => fragments.len(),
            Self::List(fragments) => fragments.len(),
        }
    }

    /// Returns whether the block names no fragment.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the fragment numbers in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + Clone + use<'a> {
        let (range, list) = match self {
            Self::Single(fragment) => (*fragment..fragment.saturating_add(1), None),
            Self::Range(fragments) => (fragments.clone(), None),
            Self::List(fragments) => (0..0, Some(fragments.iter())),
        };
        range.chain(list.into_iter().flatten())
    }
}

/// Fragment numbers, borrowed from a mode-2 block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FragmentList<'a> {
    fragments: &'a [I64],
}

impl<'a> FragmentList<'a> {
    /// Returns the number of fragments.
    pub fn len(&self) -> usize {
        self.fragments.len()
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    /// Returns entry `at` of the list.
    pub fn get(&self, at: usize) -> Option<u32> {
        u32::try_from(self.fragments.get(at)?.get()).ok()
    }

    /// Returns the fragment numbers in stored order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u32> + Clone + use<'a> {
        // `parse` has verified that each is a u32.
        let number = |fragment: &I64| u32::try_from(fragment.get()).unwrap_or(u32::MAX);
        self.fragments.iter().map(number)
    }

    /// Returns the fragments as a run, if they ascend one by one and are not empty. A run up to
    /// `u32::MAX` does not count, because its end is not a fragment number.
    pub fn as_run(&self) -> Option<Range<u32>> {
        fragment_run(self.iter())
    }
}

/// Returns `fragments` as a run if they can be stored as one.
fn fragment_run(fragments: impl Iterator<Item = u32>) -> Option<Range<u32>> {
    let run = run::ascending(fragments.map(u64::from))?;
    Some(u32::try_from(run.start).ok()?..u32::try_from(run.end).ok()?)
}

impl fmt::Debug for FragmentList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Iterator over the blocks of a manifest, created by [`ObjectManifest::iter`].
#[derive(Clone)]
pub struct Blocks<'a> {
    left: u32,
    sid_ndim: usize,
    cursor: Cursor<'a>,
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Block<'a>;

    fn next(&mut self) -> Option<Block<'a>> {
        self.left = self.left.checked_sub(1)?;
        take_block(&mut self.cursor, self.sid_ndim).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Blocks<'_> {}
impl core::iter::FusedIterator for Blocks<'_> {}

impl fmt::Debug for Blocks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// Iterator over the blocks of a manifest that checks them, created by [`ObjectManifest::checked`].
#[derive(Clone)]
pub struct CheckedBlocks<'a> {
    /// Number of the next block.
    block: u32,
    blocks: u32,
    sid_ndim: usize,
    cursor: Cursor<'a>,
}

impl<'a> Iterator for CheckedBlocks<'a> {
    type Item = Result<Block<'a>, ManifestError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.block < self.blocks {
            let block = self.block;
            let taken = take_block(&mut self.cursor, self.sid_ndim);
            self.block = block.saturating_add(1);
            return Some(taken.map_err(|fault| {
                *self = Self::END;
                ManifestError::Block { block, fault }
            }));
        }
        let trailing = self.cursor.rest().len();
        *self = Self::END;
        (trailing > 0).then_some(Err(ManifestError::TrailingBytes(trailing)))
    }
}

impl CheckedBlocks<'_> {
    const END: Self = Self {
        block: 0,
        blocks: 0,
        sid_ndim: 0,
        cursor: Cursor::EMPTY,
    };
}

impl core::iter::FusedIterator for CheckedBlocks<'_> {}

impl fmt::Debug for CheckedBlocks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// The reason why bytes are not an object manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The bytes end inside the block count; no bytes at all mean an absent row.
    #[error("bytes end inside the block count")]
    TruncatedHeader,
    /// A block is invalid.
    #[error("block {block}: {fault}")]
    Block {
        /// The block at fault.
        block: u32,
        /// Its fault.
        fault: BlockFault,
    },
    /// Bytes are left after the last block.
    #[error("{0} bytes left after the last block")]
    TrailingBytes(usize),
}

/// Fault of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlockFault {
    /// The bytes end inside it.
    #[error("bytes end inside the block")]
    Truncated,
    /// The mode is not 0, 1 or 2.
    #[error("mode is {0}, not 0, 1 or 2")]
    Mode(u8),
    /// A fragment number, or the end of a range, is negative or above 2^32 − 1.
    #[error("fragment {0} is not a 32-bit number")]
    Fragment(i64),
    /// A range's count is negative.
    #[error("range count is {0}")]
    Count(i64),
}
