//! Bit tests and ranks over little-endian bitmap words, LSB first.

use zerocopy::little_endian::U64;

/// Returns the word that contains bit `at`; 0 past the end.
pub(crate) fn word(words: &[U64], at: u32) -> u64 {
    let word = usize::try_from(at / 64).ok().and_then(|at| words.get(at));
    word.map_or(0, |word| word.get())
}

/// Returns bit `at`; `false` past the end.
pub(crate) fn test(words: &[U64], at: u32) -> bool {
    word(words, at).wrapping_shr(at % 64) & 1 == 1
}

/// Returns the number of set bits in `0..end`.
pub(crate) fn ones_before(words: &[U64], end: u32) -> u32 {
    let whole = usize::try_from(end / 64).unwrap_or(usize::MAX);
    let full = words
        .get(..whole)
        .unwrap_or(words)
        .iter()
        .map(|word| word.get().count_ones());
    // A bitmap has at most 2^32 bits, all of them counted only when `end` is past them.
    full.fold(tail_ones(words, end), u32::wrapping_add)
}

/// Returns the number of set bits below bit `end` in the word that holds it.
pub(crate) fn tail_ones(words: &[U64], end: u32) -> u32 {
    let below = 1u64.wrapping_shl(end % 64).wrapping_sub(1);
    (word(words, end) & below).count_ones()
}
