//! Bits of items, sorted by their place in the item.
//!
//! Row p = 8 · byte + bit, with bit 0 the lowest, has that bit of every item:
//! that of item i in bit i mod 8 of byte ⌊i / 8⌋. Only as many items as are a
//! multiple of 8 take part; the others, and what is no item, stay in place.

/// Bytes that take part.
fn shuffled(width: usize, whole: bool, len: usize) -> usize {
    let items = len / width;
    match items % 8 {
        // Blosc 1 leaves a block alone whose items are no multiple of 8.
        rest if whole && rest != 0 => 0,
        rest => (items - rest) * width,
    }
}

pub(super) fn undo(width: usize, whole: bool, rows: &[u8], items: &mut [u8]) {
    let end = shuffled(width, whole, items.len());
    let (rows, rest) = rows.split_at(end);
    let (items, tail) = items.split_at_mut(end);
    tail.copy_from_slice(rest);
    let groups = end / width / 8;
    if groups == 0 {
        return;
    }
    for (byte, rows) in rows.chunks_exact(groups * 8).enumerate() {
        for (group, items) in items.chunks_exact_mut(width * 8).enumerate() {
            let mut bits = rows.iter().skip(group).step_by(groups).copied();
            let square = std::array::from_fn(|_| bits.next().unwrap_or_default());
            let places = items.iter_mut().skip(byte).step_by(width);
            for (place, value) in places.zip(transposed(square)) {
                *place = value;
            }
        }
    }
}

pub(super) fn apply(width: usize, items: &[u8], rows: &mut [u8]) {
    let end = shuffled(width, false, items.len());
    let (items, rest) = items.split_at(end);
    let (rows, tail) = rows.split_at_mut(end);
    tail.copy_from_slice(rest);
    let groups = end / width / 8;
    if groups == 0 {
        return;
    }
    for (byte, rows) in rows.chunks_exact_mut(groups * 8).enumerate() {
        for (group, items) in items.chunks_exact(width * 8).enumerate() {
            let mut bytes = items.iter().skip(byte).step_by(width).copied();
            let square = std::array::from_fn(|_| bytes.next().unwrap_or_default());
            let places = rows.iter_mut().skip(group).step_by(groups);
            for (place, value) in places.zip(transposed(square)) {
                *place = value;
            }
        }
    }
}

/// Bit j of byte i as bit i of byte j.
fn transposed(square: [u8; 8]) -> [u8; 8] {
    let mut bits = u64::from_le_bytes(square);
    // Squares of 1 bit in such of 2, of 2 in such of 4, of 4 in the whole.
    for (shift, mask) in [
        (7, 0x00aa_00aa_00aa_00aa),
        (14, 0x0000_cccc_0000_cccc),
        (28, 0x0000_0000_f0f0_f0f0),
    ] {
        let swapped = (bits ^ bits >> shift) & mask;
        bits ^= swapped ^ swapped << shift;
    }
    bits.to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_definition() {
        for width in [1, 2, 3, 4, 8, 12, 16] {
            for count in [0, 1, 7, 8, 9, 36, 64] {
                let len = count * width + (width - 1);
                let items: Vec<u8> = (0..len)
                    .map(|i| (i * 37 + i / 5_usize).to_le_bytes()[0])
                    .collect();
                let part = count - count % 8;
                let mut want = items.clone();
                want[..part * width].fill(0);
                for i in 0..part {
                    for j in 0..width {
                        for bit in 0..8 {
                            let row = (8 * j + bit) * (part / 8);
                            let value = items[i * width + j] >> bit & 1;
                            want[row + i / 8] |= value << (i % 8);
                        }
                    }
                }
                let mut rows = vec![0; len];
                apply(width, &items, &mut rows);
                assert_eq!(rows, want, "{width} {count}");
                let mut back = vec![0; len];
                undo(width, false, &rows, &mut back);
                assert_eq!(back, items, "{width} {count}");
            }
        }
    }

    #[test]
    fn blosc_1_shuffles_all_or_nothing() {
        let rows: Vec<u8> = (0..36).collect();
        let mut items = vec![0; 36];
        undo(4, true, &rows, &mut items);
        assert_eq!(items, rows);
        undo(4, false, &rows, &mut items);
        assert_ne!(items, rows);
    }
}
