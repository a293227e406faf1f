//! The shuffle filter: bytes grouped by their position in the item.

use core::array;

use zerocopy::transmute;

use super::interleave::{self, LANES, Lanes};

/// Undoes the shuffle. `planes` holds the first bytes of all items, then the second bytes, and so
/// on; `items` receives the items. Bytes after the last whole item stay in place.
pub(super) fn undo(width: usize, planes: &[u8], items: &mut [u8]) {
    let count = items.len() / width;
    let (planes, rest) = planes.split_at(count * width);
    let (items, tail) = items.split_at_mut(count * width);
    tail.copy_from_slice(rest);
    let mut each = planes.chunks_exact(count.max(1));
    match width {
        2 => join_planes(&next_planes::<2>(&mut each), items),
        4 => join_planes(&next_planes::<4>(&mut each), items),
        8 => join_planes(&next_planes::<8>(&mut each), items),
        _ => undo_any(width, planes, items),
    }
}

/// Joins 2, 4 or 8 planes into items. Does nothing for other numbers of planes.
pub(in super::super) fn join_planes(planes: &[&[u8]], items: &mut [u8]) {
    let (twos, fours, eights) = (planes.try_into(), planes.try_into(), planes.try_into());
    if let Ok(planes) = twos {
        join(planes, items, join_2);
    }
    if let Ok(planes) = fours {
        join(planes, items, join_4);
    }
    if let Ok(planes) = eights {
        join(planes, items, join_8);
    }
}

fn next_planes<'a, const W: usize>(planes: &mut impl Iterator<Item = &'a [u8]>) -> [&'a [u8]; W] {
    array::from_fn(|_| planes.next().unwrap_or_default())
}

/// Joins items of `W` bytes: [`LANES`] items at a time with `join`, and the remainder one by one.
fn join<const W: usize>(
    planes: [&[u8]; W],
    items: &mut [u8],
    join: impl Fn([&Lanes; W], &mut [[u8; W]; LANES]),
) {
    let (items, _) = items.as_chunks_mut::<W>();
    let planes = planes.map(|plane| plane.as_chunks::<LANES>());
    let (lanes, last) = items.as_chunks_mut::<LANES>();
    for (at, items) in lanes.iter_mut().enumerate() {
        let parts = planes.map(|(lanes, _)| lanes.get(at).unwrap_or(&[0; LANES]));
        join(parts, items);
    }
    for (at, item) in last.iter_mut().enumerate() {
        *item = planes.map(|(_, last)| last.get(at).copied().unwrap_or_default());
    }
}

// Adjacent bytes are joined to pairs, pairs to groups of four, and so on. Each step is one vector
// instruction.

fn join_2(planes: [&Lanes; 2], items: &mut [[u8; 2]; LANES]) {
    let [a, b] = planes.map(|plane| *plane);
    *items = transmute!(interleave::bytes(a, b));
}

fn join_4(planes: [&Lanes; 4], items: &mut [[u8; 4]; LANES]) {
    *items = transmute!(fours(planes));
}

pub(super) fn join_8(planes: [&Lanes; 8], items: &mut [[u8; 8]; LANES]) {
    let ([low, high], _) = planes.as_chunks::<4>() else {
        return;
    };
    let mut pairs = fours(*low).into_iter().zip(fours(*high));
    let eights: [[Lanes; 2]; 4] = array::from_fn(|_| {
        let (low, high) = pairs.next().unwrap_or_default();
        interleave::fours(low, high)
    });
    *items = transmute!(eights);
}

fn fours(planes: [&Lanes; 4]) -> [Lanes; 4] {
    let [a, b, c, d] = planes.map(|plane| *plane);
    let [low, more] = interleave::bytes(a, b);
    let [high, max] = interleave::bytes(c, d);
    let [first, second] = interleave::pairs(low, high);
    let [third, fourth] = interleave::pairs(more, max);
    [first, second, third, fourth]
}

fn undo_any(width: usize, planes: &[u8], items: &mut [u8]) {
    let count = items.len() / width;
    for (byte, plane) in planes.chunks_exact(count.max(1)).enumerate() {
        let places = items.iter_mut().skip(byte).step_by(width);
        for (place, value) in places.zip(plane) {
            *place = *value;
        }
    }
}

/// Applies the shuffle; the inverse of [`undo`].
pub(super) fn apply(width: usize, items: &[u8], planes: &mut [u8]) {
    let count = items.len() / width;
    let (items, rest) = items.split_at(count * width);
    let (planes, tail) = planes.split_at_mut(count * width);
    tail.copy_from_slice(rest);
    let done = match width {
        2 => apply_lanes::<2>(items, planes),
        4 => apply_lanes::<4>(items, planes),
        8 => apply_lanes::<8>(items, planes),
        _ => 0,
    };
    for (byte, plane) in planes.chunks_exact_mut(count.max(1)).enumerate() {
        let values = items.iter().skip(byte).step_by(width).skip(done);
        for (place, value) in plane.iter_mut().skip(done).zip(values) {
            *place = *value;
        }
    }
}

/// Splits [`LANES`] items at a time, and returns the number of split items.
fn apply_lanes<const W: usize>(items: &[u8], planes: &mut [u8]) -> usize {
    let count = items.len() / W;
    let (lanes, _) = items.as_chunks::<W>().0.as_chunks::<LANES>();
    for (at, items) in lanes.iter().enumerate() {
        let planes = planes.chunks_exact_mut(count.max(1));
        for (plane, lanes) in planes.zip(split(items)) {
            if let Some(place) = plane.as_chunks_mut().0.get_mut(at) {
                *place = lanes;
            }
        }
    }
    lanes.len() * LANES
}

/// Splits items of 1, 2, 4 or 8 bytes into planes.
pub(super) fn split<const W: usize>(items: &[[u8; W]; LANES]) -> [Lanes; W] {
    let mut planes = [[0; LANES]; W];
    for (place, lanes) in planes.iter_mut().zip(items.as_flattened().as_chunks().0) {
        *place = *lanes;
    }
    if W == 1 {
        return planes;
    }
    // The position of a byte is the number of its item, 4 bits, and of the byte in the item.
    // Interleaving both halves rotates the position by one bit, so that the number of the byte comes
    // first after four times.
    for _ in 0..4 {
        let (low, high) = planes.split_at(W / 2);
        let mut rotated = [[0; LANES]; W];
        let pairs = rotated.as_chunks_mut::<2>().0.iter_mut();
        for ((pair, low), high) in pairs.zip(low).zip(high) {
            *pair = interleave::bytes(*low, *high);
        }
        planes = rotated;
    }
    planes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_widths_match_the_bytewise_definition() {
        for width in (1..=17).chain([200, 255]) {
            for count in [0, 1, 7, 8, 16, 37, 160] {
                let len = count * width + width / 2;
                let planes: Vec<u8> = (0..len)
                    .map(|i| (i * 7 + i / 256_usize).to_le_bytes()[0])
                    .collect();
                let mut want = planes.clone();
                for i in 0..count {
                    for j in 0..width {
                        want[i * width + j] = planes[j * count + i];
                    }
                }
                let mut items = vec![0; len];
                undo(width, &planes, &mut items);
                assert_eq!(items, want, "{width} {len}");
                let mut back = vec![0; len];
                apply(width, &items, &mut back);
                assert_eq!(back, planes, "{width} {len}");
            }
        }
    }
}
