//! Constant-time lookup by way of a rank directory.

use core::fmt;

use super::{FragmentIndex, Rows};
use crate::bits;

/// Bits that one directory slot stands for. Four bytes for every 64 bytes of
/// bitmap: a sixteenth.
const BLOCK_BITS: u32 = 512;
const BLOCK_WORDS: usize = 8;

impl<'a> FragmentIndex<'a> {
    /// How many slots [`ranked`](Self::ranked) needs: ⌈F/512⌉, and none when
    /// the fragments are all of one kind.
    pub fn rank_slots(&self) -> usize {
        if self.ranges_only() || self.lists_only() {
            return 0;
        }
        usize::try_from(self.len.div_ceil(BLOCK_BITS)).unwrap_or(usize::MAX)
    }

    /// Fills `slots` with the ranks of every 512th fragment, in one pass over
    /// the bitmap, and gives the index with constant-time lookup.
    ///
    /// `slots` is the caller's memory: a `Vec<u32>`, an array, or a `&mut`
    /// slice to borrow it for a while. It may be longer than needed.
    ///
    /// ```
    /// # use zvf_format::fragment::FragmentIndex;
    /// # let bytes = b"GFVZ\x01\0\0\0\0\0\0\0\0\0\0\0";
    /// let index = FragmentIndex::parse(bytes)?;
    /// let ranked = index.ranked(vec![0; index.rank_slots()])?;
    /// assert_eq!(ranked.rows(0), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`SlotsTooFew`] when `slots` is shorter than [`rank_slots`](Self::rank_slots).
    pub fn ranked<S>(self, mut slots: S) -> Result<RankedFragmentIndex<'a, S>, SlotsTooFew>
    where
        S: AsRef<[u32]> + AsMut<[u32]>,
    {
        let needed = self.rank_slots();
        let found = slots.as_mut().len();
        let directory = slots.as_mut().get_mut(..needed);
        let directory = directory.ok_or(SlotsTooFew { needed, found })?;
        let mut ones = 0u32;
        for (slot, block) in directory.iter_mut().zip(self.bitmap.chunks(BLOCK_WORDS)) {
            *slot = ones;
            let counts = block.iter().map(|word| word.get().count_ones());
            ones = counts.fold(ones, u32::wrapping_add);
        }
        Ok(RankedFragmentIndex { index: self, slots })
    }
}

/// A fragment index with a rank directory: lookup in constant time.
///
/// Made by [`FragmentIndex::ranked`], which ties the directory to the index it
/// was counted from.
#[derive(Clone, Copy)]
pub struct RankedFragmentIndex<'a, S> {
    index: FragmentIndex<'a>,
    slots: S,
}

impl<'a, S: AsRef<[u32]>> RankedFragmentIndex<'a, S> {
    /// The rows of fragment `id`, or `None` past the end. Constant time: one
    /// slot and at most eight bitmap words, which share a cache line or two.
    pub fn rows(&self, id: u32) -> Option<Rows<'a>> {
        let index = &self.index;
        if index.ranges_only() {
            return index.range(id).map(Rows::Range);
        }
        if index.lists_only() {
            return index.list(id).map(Rows::List);
        }
        let is_range = index.is_range(id)?;
        let slot = usize::try_from(id / BLOCK_BITS).ok()?;
        let before = *self.slots.as_ref().get(slot)?;
        let first = slot.checked_mul(BLOCK_WORDS)?;
        let whole = usize::try_from(id / 64).ok()?;
        let words = index.bitmap.get(first..whole)?;
        let words = words.iter().map(|word| word.get().count_ones());
        let ones = words.fold(before, u32::wrapping_add);
        let ones = ones.wrapping_add(bits::tail_ones(index.bitmap, id));
        index.rows_at(id, is_range, ones)
    }

    /// The index itself.
    pub fn index(&self) -> FragmentIndex<'a> {
        self.index
    }

    /// Gives the directory's memory back.
    pub fn into_slots(self) -> S {
        self.slots
    }
}

impl<S> fmt::Debug for RankedFragmentIndex<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.index.fmt(f)
    }
}

/// The memory offered for a rank directory is too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a rank directory needs {needed} slots, {found} were given")]
pub struct SlotsTooFew {
    /// Slots that [`FragmentIndex::rank_slots`] asked for.
    pub needed: usize,
    /// Slots that were given.
    pub found: usize,
}
