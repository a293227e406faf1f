//! Constant-time lookup with a rank directory.

use core::fmt;

use zerocopy::little_endian::U64;

use super::{FragmentIndex, Rows};

/// Number of bits per directory entry: two slots of four bytes for every 128 bytes of bitmap, a
/// sixteenth.
///
/// The first slot is the rank of the entry's first bit. The second holds three
/// counts of ten bits: the ones before each further quarter of the entry, so
/// that a lookup counts within four words, a number the compiler can unroll.
const ENTRY_BITS: u32 = 1024;
const ENTRY_WORDS: usize = 16;
const QUARTER_BITS: u32 = 256;
const QUARTER_WORDS: usize = 4;
const COUNT_BITS: u32 = 10;

impl<'a> FragmentIndex<'a> {
    /// Returns the number of slots that [`ranked`](Self::ranked) needs: 2 · ⌈F/1024⌉, or none if
    /// all fragments are of one kind.
    pub fn rank_slots(&self) -> usize {
        if self.ranges_only() || self.lists_only() {
            return 0;
        }
        let entries = self.len.div_ceil(ENTRY_BITS).saturating_mul(2);
        usize::try_from(entries).unwrap_or(usize::MAX)
    }

    /// Fills `slots` with ranks along the bitmap, in one pass over it, and returns the index with
    /// constant-time lookup.
    ///
    /// `slots` is memory of the caller: a `Vec<u32>`, an array, or a borrowed `&mut` slice. It may
    /// be longer than needed.
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
    /// [`SlotsTooFew`] if `slots` is shorter than [`rank_slots`](Self::rank_slots).
    pub fn ranked<S>(self, mut slots: S) -> Result<RankedFragmentIndex<'a, S>, SlotsTooFew>
    where
        S: AsRef<[u32]> + AsMut<[u32]>,
    {
        let needed = self.rank_slots();
        let found = slots.as_mut().len();
        let directory = slots
            .as_mut()
            .get_mut(..needed)
            .ok_or(SlotsTooFew { needed, found })?;
        let entries = directory.chunks_exact_mut(2);
        let mut rank = 0u32;
        for (entry, words) in entries.zip(self.bitmap.chunks(ENTRY_WORDS)) {
            let [before, quarters] = entry else { break };
            *before = rank;
            let mut counts = 0u64;
            let mut ones = 0u32;
            for (at, quarter) in (0..).zip(words.chunks(QUARTER_WORDS)) {
                // The count before quarter 0 is zero and not stored; quarter 1 is lowest.
                counts |= u64::from(ones).wrapping_shl(COUNT_BITS.wrapping_mul(at));
                let words = quarter.iter().map(|word| word.get().count_ones());
                ones = words.fold(ones, u32::wrapping_add);
            }
            *quarters = u32::try_from(counts.wrapping_shr(COUNT_BITS)).unwrap_or(0);
            rank = rank.wrapping_add(ones);
        }
        Ok(RankedFragmentIndex { index: self, slots })
    }
}

/// A fragment index with a rank directory: lookup in constant time.
///
/// Created by [`FragmentIndex::ranked`], which ties the directory to its index.
#[derive(Clone, Copy)]
pub struct RankedFragmentIndex<'a, S> {
    index: FragmentIndex<'a>,
    slots: S,
}

impl<'a, S: AsRef<[u32]>> RankedFragmentIndex<'a, S> {
    /// Returns the rows of fragment `id`, or `None` past the end. Takes constant time: one
    /// directory entry and four bitmap words, each in one or two cache lines.
    pub fn rows(&self, id: u32) -> Option<Rows<'a>> {
        let index = &self.index;
        if index.ranges_only() {
            return index.range(id).map(Rows::Range);
        }
        if index.lists_only() {
            return index.list(id).map(Rows::List);
        }
        let is_range = index.is_range(id)?;
        index.rows_at(id, is_range, self.ones_before(id)?)
    }

    /// Returns the rank of bit `id`, which is below F.
    fn ones_before(&self, id: u32) -> Option<u32> {
        let entry = usize::try_from(id / ENTRY_BITS).ok()?.checked_mul(2)?;
        let [before, quarters] = *self.slots.as_ref().get(entry..)?.first_chunk()?;
        let quarter = id / QUARTER_BITS;
        let counts = u64::from(quarters).wrapping_shl(COUNT_BITS);
        let shift = COUNT_BITS.wrapping_mul(quarter % 4);
        let counted = u32::try_from(counts.wrapping_shr(shift) & 0x3ff).ok()?;
        let word = usize::try_from(quarter).ok()?.checked_mul(QUARTER_WORDS)?;
        let words = self.index.bitmap.get(word..)?;
        let ones = match words.first_chunk() {
            Some(words) => ones_in_quarter(words, id),
            None => ones_in_last(words, id),
        };
        Some(before.wrapping_add(counted).wrapping_add(ones))
    }

    /// Returns the index itself.
    pub fn index(&self) -> FragmentIndex<'a> {
        self.index
    }

    /// Returns the memory of the directory.
    pub fn into_slots(self) -> S {
        self.slots
    }
}

/// Counts the set bits of a quarter before bit `id` of the bitmap.
fn ones_in_quarter(words: &[U64; QUARTER_WORDS], id: u32) -> u32 {
    let own = id / 64 % 4;
    let low = 1u64.wrapping_shl(id % 64).wrapping_sub(1);
    let Some((whole, part)) = usize::try_from(own).ok().and_then(|own| MASKS.get(own)) else {
        return 0;
    };
    let masks = whole
        .iter()
        .zip(part)
        .map(|(whole, part)| whole | (part & low));
    let words = words.iter().zip(masks);
    words.fold(0, |ones, (word, mask)| {
        ones.wrapping_add((word.get() & mask).count_ones())
    })
}

/// Counts the same in a last quarter with fewer words.
#[cold]
fn ones_in_last(words: &[U64], id: u32) -> u32 {
    let mut padded = [U64::ZERO; QUARTER_WORDS];
    for (padded, word) in padded.iter_mut().zip(words) {
        *padded = *word;
    }
    ones_in_quarter(&padded, id)
}

/// Masks for a bit in each word of a quarter: the words entirely before it, and its own. A table,
/// because the compiler would turn comparisons into branches or a chain of moves.
static MASKS: [([u64; 4], [u64; 4]); 4] = [
    ([0, 0, 0, 0], [u64::MAX, 0, 0, 0]),
    ([u64::MAX, 0, 0, 0], [0, u64::MAX, 0, 0]),
    ([u64::MAX, u64::MAX, 0, 0], [0, 0, u64::MAX, 0]),
    ([u64::MAX, u64::MAX, u64::MAX, 0], [0, 0, 0, u64::MAX]),
];

impl<S> fmt::Debug for RankedFragmentIndex<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.index.fmt(f)
    }
}

/// The memory passed for a rank directory is too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a rank directory needs {needed} slots, {found} were given")]
pub struct SlotsTooFew {
    /// Slots that [`FragmentIndex::rank_slots`] requires.
    pub needed: usize,
    /// Slots that were given.
    pub found: usize,
}
