//! The bitshuffle filter: bits grouped by their position in the item.
//!
//! Row p = 8 · byte + bit, with bit 0 the lowest, holds that bit of every item; the bit of item i
//! is bit i mod 8 of byte ⌊i / 8⌋ of the row. Only a multiple of 8 items is shuffled. The remaining
//! items and bytes stay in place.

use core::array;

use super::{
    interleave::{LANES, Lanes},
    shuffle,
};

/// Returns the number of bytes that are shuffled.
fn shuffled(width: usize, whole: bool, len: usize) -> usize {
    let items = len / width;
    match items % 8 {
        // Blosc 1 does not shuffle a block whose item count is not a multiple of 8.
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
    let done = match width {
        1 => undo_pieces::<1>(rows, items),
        2 => undo_pieces::<2>(rows, items),
        4 => undo_pieces::<4>(rows, items),
        8 => undo_pieces::<8>(rows, items),
        _ => 0,
    };
    for (byte, rows) in rows.chunks_exact(groups * 8).enumerate() {
        for (group, items) in items.chunks_exact_mut(width * 8).enumerate().skip(done) {
            let mut bits = rows.iter().skip(group).step_by(groups).copied();
            let square = array::from_fn(|_| bits.next().unwrap_or_default());
            let places = items.iter_mut().skip(byte).step_by(width);
            for (place, value) in places.zip(transposed(square)) {
                *place = value;
            }
        }
    }
}

/// Number of items in a piece. A vector has one byte of each of 16 groups of 8 items.
const PIECE: usize = 8 * LANES;

/// Undoes the filter piece by piece, and returns the number of finished groups of 8 items.
fn undo_pieces<const W: usize>(rows: &[u8], items: &mut [u8]) -> usize {
    let groups = items.len() / W / 8;
    let (pieces, _) = items.as_chunks_mut::<W>().0.as_chunks_mut::<PIECE>();
    for (piece, items) in pieces.iter_mut().enumerate() {
        let mut planes = [[[0; 8]; LANES]; W];
        for (plane, rows) in planes.iter_mut().zip(rows.chunks_exact(groups * 8)) {
            let mut rows = rows.chunks_exact(groups).map(|row| row.as_chunks().0);
            let lanes: [&Lanes; 8] = array::from_fn(|_| {
                let row = rows.next().unwrap_or_default();
                row.get(piece).unwrap_or(&[0; LANES])
            });
            shuffle::join_8(lanes, plane);
            for square in plane {
                *square = transposed(*square);
            }
        }
        let items = items.as_flattened_mut();
        let planes = planes.each_ref().map(|plane| plane.as_flattened());
        match planes.as_slice() {
            [plane] => items.copy_from_slice(plane),
            planes => shuffle::join_planes(planes, items),
        }
    }
    pieces.len() * LANES
}

pub(super) fn apply(width: usize, whole: bool, items: &[u8], rows: &mut [u8]) {
    let end = shuffled(width, whole, items.len());
    let (items, rest) = items.split_at(end);
    let (rows, tail) = rows.split_at_mut(end);
    tail.copy_from_slice(rest);
    let groups = end / width / 8;
    if groups == 0 {
        return;
    }
    let done = match width {
        1 => apply_pieces::<1>(items, rows),
        2 => apply_pieces::<2>(items, rows),
        4 => apply_pieces::<4>(items, rows),
        8 => apply_pieces::<8>(items, rows),
        _ => 0,
    };
    for (byte, rows) in rows.chunks_exact_mut(groups * 8).enumerate() {
        for (group, items) in items.chunks_exact(width * 8).enumerate().skip(done) {
            let mut bytes = items.iter().skip(byte).step_by(width).copied();
            let square = array::from_fn(|_| bytes.next().unwrap_or_default());
            let places = rows.iter_mut().skip(group).step_by(groups);
            for (place, value) in places.zip(transposed(square)) {
                *place = value;
            }
        }
    }
}

/// Applies the filter piece by piece, and returns the number of finished groups of 8 items.
fn apply_pieces<const W: usize>(items: &[u8], rows: &mut [u8]) -> usize {
    let groups = items.len() / W / 8;
    let (pieces, _) = items.as_chunks::<W>().0.as_chunks::<PIECE>();
    for (piece, items) in pieces.iter().enumerate() {
        let mut planes = [[[0; 8]; LANES]; W];
        for (at, items) in items.as_chunks::<LANES>().0.iter().enumerate() {
            for (plane, lanes) in planes.iter_mut().zip(shuffle::split(items)) {
                if let Some(place) = plane.as_flattened_mut().as_chunks_mut().0.get_mut(at) {
                    *place = lanes;
                }
            }
        }
        for (plane, rows) in planes.iter_mut().zip(rows.chunks_exact_mut(groups * 8)) {
            for square in &mut *plane {
                *square = transposed(*square);
            }
            for (row, lanes) in rows.chunks_exact_mut(groups).zip(shuffle::split(plane)) {
                if let Some(place) = row.as_chunks_mut().0.get_mut(piece) {
                    *place = lanes;
                }
            }
        }
    }
    pieces.len() * LANES
}

/// Transposes an 8 × 8 bit matrix: bit j of byte i becomes bit i of byte j.
fn transposed(square: [u8; 8]) -> [u8; 8] {
    let mut bits = u64::from_le_bytes(square);
    // Swap off-diagonal 1-bit squares in squares of 2 bits, then 2 in 4, then 4 in 8.
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
    fn matches_the_bitwise_definition() {
        for width in [1, 2, 3, 4, 8, 12, 16] {
            for count in [0, 1, 7, 8, 9, 36, 64, 127, 128, 136, 403] {
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
                apply(width, false, &items, &mut rows);
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
