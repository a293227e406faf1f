//! The delta and bytedelta filters: differences of blocks, items and bytes.

/// Returns the step in bytes for differences inside the first block.
pub(super) fn width(item: usize) -> usize {
    match item {
        1 | 2 | 4 | 8 => item,
        _ if item.is_multiple_of(8) => 8,
        _ => 1,
    }
}

/// XORs the block with `first`. Without `first`, as in the first block, XORs each item with the
/// item before it.
pub(super) fn undo(width: usize, block: &mut [u8], first: Option<&[u8]>) {
    let Some(first) = first else {
        let mut items = block.chunks_exact_mut(width);
        let Some(mut before) = items.next() else {
            return;
        };
        for item in items {
            mix(item, before);
            before = item;
        }
        return;
    };
    mix(whole(width, block), first);
}

pub(super) fn apply(width: usize, block: &mut [u8], first: Option<&[u8]>) {
    let Some(first) = first else {
        let mut items = block.chunks_exact_mut(width).rev();
        let Some(mut item) = items.next() else {
            return;
        };
        for before in items {
            mix(item, before);
            item = before;
        }
        return;
    };
    mix(whole(width, block), first);
}

/// Returns the whole items of a block. Trailing bytes are not filtered.
fn whole(width: usize, block: &mut [u8]) -> &mut [u8] {
    let end = block.len() - block.len() % width;
    block.split_at_mut(end).0
}

fn mix(bytes: &mut [u8], others: &[u8]) {
    for (byte, other) in bytes.iter_mut().zip(others) {
        *byte ^= other;
    }
}

/// Replaces each of the `width` streams by its running sum.
pub(super) fn undo_bytes(width: usize, block: &mut [u8]) {
    let len = block.len() / width.max(1);
    for stream in block.chunks_exact_mut(len.max(1)).take(width) {
        let mut sum = 0_u8;
        for byte in stream {
            sum = sum.wrapping_add(*byte);
            *byte = sum;
        }
    }
}

pub(super) fn apply_bytes(width: usize, block: &mut [u8]) {
    let len = block.len() / width.max(1);
    for stream in block.chunks_exact_mut(len.max(1)).take(width) {
        let mut before = 0_u8;
        for byte in stream {
            let value = *byte;
            *byte = value.wrapping_sub(before);
            before = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_round_trip() {
        let first: Vec<u8> = (0..53).map(|i| i * 3).collect();
        for item in 1..20 {
            let width = width(item);
            let block: Vec<u8> = (0..53_u8).map(|i| i.wrapping_mul(77)).collect();
            for first in [None, Some(&first[..])] {
                let mut mixed = block.clone();
                apply(width, &mut mixed, first);
                assert_ne!(mixed, block);
                undo(width, &mut mixed, first);
                assert_eq!(mixed, block);
            }
            let mut summed = block.clone();
            apply_bytes(item, &mut summed);
            undo_bytes(item, &mut summed);
            assert_eq!(summed, block);
        }
    }

    #[test]
    fn differences_match_the_format_definition() {
        let mut block = [1, 2, 3, 4, 5];
        undo(2, &mut block, None);
        assert_eq!(block, [1, 2, 2, 6, 5]);
        undo(2, &mut block, Some(&[1, 1, 1, 1, 1]));
        assert_eq!(block, [0, 3, 3, 7, 5]);
        let mut block = [1, 2, 3, 4, 5];
        undo_bytes(2, &mut block);
        assert_eq!(block, [1, 3, 3, 7, 5]);
    }
}
