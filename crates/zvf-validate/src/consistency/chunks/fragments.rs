//! Fragment indexes of vertices.

use zvf_format::fragment::{FragmentIndex, Rows};

/// A growable bit set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// Creates a set of `len` clear bits.
    pub(crate) fn new(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)])
    }

    /// Returns the words of the set, the least significant byte first.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Reads the output of [`to_bytes`](Self::to_bytes).
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        Self(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    /// Sets a bit, and returns its previous value. Returns `None` after the last bit.
    pub(crate) fn set(&mut self, at: usize) -> Option<bool> {
        let word = self.0.get_mut(at.div_euclid(64))?;
        let bit = bit(at);
        let before = *word & bit != 0;
        *word |= bit;
        Some(before)
    }

    /// Returns whether a bit is set.
    pub(crate) fn get(&self, at: usize) -> bool {
        let word = self.0.get(at.div_euclid(64));
        word.is_some_and(|word| word & bit(at) != 0)
    }
}

fn bit(at: usize) -> u64 {
    let shift = u32::try_from(at.rem_euclid(64)).unwrap_or(0);
    1_u64.checked_shl(shift).unwrap_or(0)
}

/// Returns the first row outside all fragments, and the number of such rows. Fragments must name
/// existing rows only. O(n log n), because each of many ranges may span the whole chunk.
pub(super) fn unused(index: &FragmentIndex<'_>, rows: u64) -> Option<(u64, u64)> {
    if index.tiles(rows) {
        return None;
    }
    let mut used = Bits::new(usize::try_from(rows).ok()?);
    let mut ranges = Vec::new();
    for fragment in index {
        match fragment {
            Rows::Range(rows) => ranges.push((rows.start, rows.end)),
            Rows::List(list) => {
                for row in list.iter() {
                    used.set(usize::try_from(row).ok()?);
                }
            }
        }
    }
    ranges.sort_unstable();
    ranges.push((rows, rows));
    let (mut end, mut first, mut count) = (0, None, 0_u64);
    for (start, next) in ranges {
        for row in end..start.min(rows) {
            if !used.get(usize::try_from(row).ok()?) {
                first.get_or_insert(row);
                count = count.saturating_add(1);
            }
        }
        end = end.max(next);
    }
    Some((first?, count))
}

/// Returns the fragments with at least one row.
pub(super) fn filled(index: &FragmentIndex<'_>) -> Bits {
    let mut bits = Bits::new(usize::try_from(index.len()).unwrap_or(0));
    for (number, rows) in index.iter().enumerate() {
        let some = match rows {
            Rows::Range(rows) => !rows.is_empty(),
            Rows::List(list) => !list.is_empty(),
        };
        if some {
            bits.set(number);
        }
    }
    bits
}

/// Returns whether all bits after the last fragment are clear. The bytes must have been parsed.
pub(super) fn is_padded_with_zeros(bytes: &[u8], index: &FragmentIndex<'_>) -> bool {
    const HEADER: usize = 16;
    let len = usize::try_from(index.len()).unwrap_or(0);
    if len.is_multiple_of(64) {
        return true;
    }
    let last = len.div_euclid(64).saturating_mul(8).saturating_add(HEADER);
    let word = bytes.get(last..).and_then(<[u8]>::first_chunk::<8>);
    let used = bit(len).wrapping_sub(1);
    word.is_none_or(|word| u64::from_le_bytes(*word) & !used == 0)
}

#[cfg(test)]
mod tests {
    use zvf_format::fragment::FragmentIndexBuilder;

    use super::*;

    #[test]
    fn rows_of_no_fragment_are_counted() -> Result<(), Box<dyn core::error::Error>> {
        let mut builder = FragmentIndexBuilder::default();
        builder
            .push_range(2..5)?
            .push_range(0..3)?
            .push_list(&[9, 6, 6])?;
        let bytes = builder.push_range(100..100)?.finish();
        let index = FragmentIndex::parse(&bytes)?;
        assert_eq!(unused(&index, 10), Some((5, 3)));
        assert_eq!(unused(&index, 200), Some((5, 193)));
        let mut builder = FragmentIndexBuilder::default();
        let bytes = builder.push_range(3..5)?.push_list(&[2, 1, 0])?.finish();
        assert_eq!(unused(&FragmentIndex::parse(&bytes)?, 5), None);
        Ok(())
    }

    #[test]
    fn every_bit_behind_the_last_fragment_counts() -> Result<(), Box<dyn core::error::Error>> {
        for len in [1_u32, 7, 8, 63, 64, 65] {
            let mut builder = FragmentIndexBuilder::default();
            for _ in 0..len {
                builder.push_range(0..0)?;
            }
            let bytes = builder.finish();
            let words = len.div_ceil(64) * 64;
            assert!(is_padded_with_zeros(&bytes, &FragmentIndex::parse(&bytes)?));
            for at in len..words {
                let mut bytes = bytes.clone();
                let byte = usize::try_from(at / 8)? + 16;
                if let Some(byte) = bytes.get_mut(byte) {
                    *byte |= 1 << (at % 8);
                }
                let index = FragmentIndex::parse(&bytes)?;
                assert!(!is_padded_with_zeros(&bytes, &index), "{len} {at}");
            }
        }
        Ok(())
    }
}
