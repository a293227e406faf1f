//! The budget rule, implemented by exhaustive search.

use std::collections::{BTreeMap, BTreeSet};

use zvf_testkit::stores::{ExpectedStore, Layers};

/// Chunks of each level with their vertex counts, coarsest level first.
pub(super) type Drawn = Vec<(u32, BTreeMap<Vec<i64>, u64>)>;

pub(super) fn level(made: &Layers, number: u32) -> &ExpectedStore {
    match number {
        0 => &made.fine.truth,
        above => &made.coarse[above as usize - 1],
    }
}

/// Returns the levels that are drawn together.
pub(super) fn drawn_with(made: &Layers, number: u32, additive: bool) -> Vec<u32> {
    let top = u32::try_from(made.coarse.len()).unwrap();
    if additive && number > 0 {
        (number..=top).rev().collect()
    } else {
        vec![number]
    }
}

fn chunks(truth: &ExpectedStore) -> BTreeMap<Vec<i64>, u64> {
    let mut chunks = BTreeMap::new();
    for vertex in &truth.vertices {
        *chunks.entry(vertex.chunk.clone()).or_default() += 1;
    }
    chunks
}

/// Returns the side of a chunk in chunks of level 0.
#[expect(clippy::cast_possible_truncation, reason = "they are 1 to 4 times")]
fn scale(made: &Layers, number: u32) -> i64 {
    let ratio = level(made, number).chunk_shape[0] / made.fine.truth.chunk_shape[0];
    ratio.round() as i64
}

/// Applies the rule to a whole store.
pub(super) fn drawn(made: &Layers, additive: bool, max: u64, focus: Option<&[f64]>) -> Drawn {
    let top = u32::try_from(made.coarse.len()).unwrap();
    let of = |number: u32| drawn_with(made, number, additive);
    let size = |levels: &[u32]| -> u64 {
        let sizes = levels
            .iter()
            .map(|number| level(made, *number).vertices.len() as u64);
        sizes.sum()
    };
    let fits: Vec<u32> = (0..=top)
        .rev()
        .take_while(|n| size(&of(*n)) <= max)
        .collect();
    let Some(coarse) = fits.last().copied() else {
        return Drawn::new();
    };
    let (coarse, fine) = match coarse {
        0 => (of(0), Vec::new()),
        above => (of(above), of(above - 1)),
    };
    let both: BTreeSet<u32> = coarse.iter().chain(&fine).copied().collect();
    let mut side = 1;
    while both.iter().any(|number| side % scale(made, *number) != 0) {
        side += 1;
    }
    let region = |number: u32, chunk: &[i64]| -> Vec<i64> {
        let chunks = side / scale(made, number);
        chunk.iter().map(|coord| coord.div_euclid(chunks)).collect()
    };
    let mut sums: BTreeMap<Vec<i64>, [i64; 2]> = BTreeMap::new();
    for number in &both {
        for (chunk, count) in chunks(level(made, *number)) {
            let sum = sums.entry(region(*number, &chunk)).or_default();
            let count = i64::try_from(count).unwrap();
            for (sum, levels) in sum.iter_mut().zip([&coarse, &fine]) {
                *sum += if levels.contains(number) { count } else { 0 };
            }
        }
    }
    // Refines the first chunk that fits, until none does.
    let mut refined: BTreeSet<Vec<i64>> = BTreeSet::new();
    let mut total = i64::try_from(size(&coarse)).unwrap();
    while !fine.is_empty() {
        let fits = sums.iter().filter(|(cell, [coarse, fine])| {
            let with = total + fine - coarse;
            !refined.contains(*cell) && fine > coarse && with <= i64::try_from(max).unwrap()
        });
        let first = fits.min_by(|(a, of_a), (b, of_b)| {
            let more = |[coarse, fine]: &[i64; 2]| fine - coarse;
            let far = |cell: &[i64]| focus.map_or(0.0, |focus| distance(made, cell, side, focus));
            (far(a).total_cmp(&far(b)))
                .then(more(of_a).cmp(&more(of_b)))
                .then(a.cmp(b))
        });
        let Some((cell, [coarse, fine])) = first else {
            break;
        };
        total += fine - coarse;
        refined.insert(cell.clone());
    }
    let mut drawn = Drawn::new();
    for number in both.iter().rev() {
        let mut own = chunks(level(made, *number));
        own.retain(|chunk, _| {
            if refined.contains(&region(*number, chunk)) {
                fine.contains(number)
            } else {
                coarse.contains(number)
            }
        });
        if !own.is_empty() {
            drawn.push((*number, own));
        }
    }
    drawn
}

#[expect(clippy::cast_precision_loss, reason = "they are small")]
fn distance(made: &Layers, cell: &[i64], side: i64, focus: &[f64]) -> f64 {
    let extents = made.fine.truth.chunk_shape.iter();
    let axes = cell
        .iter()
        .zip(extents)
        .zip(focus)
        .map(|((cell, extent), focus)| {
            let side = side as f64 * extent;
            let (lo, hi) = (*cell as f64 * side, *cell as f64 * side + side);
            let away = (lo - focus).max(focus - hi).max(0.0);
            away * away
        });
    axes.sum()
}
