//! Sampling of points compared with brute force.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use zvf_build::coarsen::{CoarsenMethod, MergedPositions, NO_VERTEX, Topology, VertexBlock};

use super::blocks::{block, distance, holds};

fn subset(axes: usize, cell: f64, keep: u32, seed: u64) -> CoarsenMethod {
    let cell = vec![cell; axes];
    let without = None;
    CoarsenMethod::Subset {
        cell,
        keep,
        seed,
        without,
    }
}

fn kept(block: &VertexBlock, method: &CoarsenMethod) -> Vec<u32> {
    match method.merge(block).positions {
        MergedPositions::Source(rows) => rows,
        MergedPositions::Computed(_) => panic!("points stay where they are"),
    }
}

/// Returns the rows of each cell. Points that objects share are those of listed objects.
fn cells(block: &VertexBlock, cell: f64) -> BTreeMap<(u32, Vec<i64>), Vec<u32>> {
    let mut cells: BTreeMap<(u32, Vec<i64>), Vec<u32>> = BTreeMap::new();
    let listed: BTreeSet<usize> = block
        .paths
        .iter()
        .flat_map(|path| &path.rows)
        .map(|row| *row as usize)
        .collect();
    let is_shared = block.topology == Topology::SharedPoints;
    for row in (0..block.len()).filter(|row| !is_shared || listed.contains(row)) {
        let place = block.position(row).iter();
        let at: Vec<i64> = place.map(|at| (at / cell).floor() as i64).collect();
        cells
            .entry((block.owner(row), at))
            .or_default()
            .push(row as u32);
    }
    cells
}

/// Returns a block with some rows.
fn of(block: &VertexBlock, rows: &[u32]) -> VertexBlock {
    let all = rows.iter().map(|row| *row as usize);
    VertexBlock {
        positions: all
            .clone()
            .flat_map(|row| block.position(row).to_vec())
            .collect(),
        owners: all.map(|row| block.owner(row)).collect(),
        ..block.clone()
    }
}

proptest! {
    #[test]
    fn each_cell_keeps_points_and_maps_others_to_the_nearest(
        block in prop_oneof![block(Topology::Points), block(Topology::SharedPoints)],
        cell in prop_oneof![Just(2.0), Just(8.0)], keep in 0_u32..30, seed: u64,
    ) {
        let merge = subset(block.axes, cell, keep, seed).merge(&block);
        holds(&block, &merge);
        let MergedPositions::Source(rows) = &merge.positions else { panic!() };
        let mut error = Some(0.0_f64);
        for members in cells(&block, cell).values() {
            let stay: Vec<u32> = members.iter().copied().filter(|row| rows.contains(row)).collect();
            assert_eq!(stay.len(), members.len().min(keep.max(1) as usize));
            for row in members.iter().filter(|row| !rows.contains(row)) {
                let owner = |row: u32| block.owner(row as usize);
                let far = |other: u32| distance(block.position(other as usize), block.position(*row as usize));
                let near = stay
                    .iter()
                    .copied()
                    .filter(|other| owner(*other) == owner(*row))
                    .min_by(|a, b| far(*a).total_cmp(&far(*b)).then(a.cmp(b)));
                let parent = merge.parent[*row as usize];
                let found = (parent != NO_VERTEX).then(|| rows[parent as usize]);
                // Square roots tie where the squares do not.
                assert_eq!(found.map(far), near.map(far), "{found:?} {near:?}");
                assert_eq!(found.map(owner), near.map(owner));
                error = error.zip(near).map(|(error, near)| error.max(far(near)));
            }
        }
        assert_eq!(merge.error, error);
        let kept: BTreeSet<u32> = cells(&block, cell).into_values().flatten().collect();
        for (row, parent) in (0..).zip(&merge.parent) {
            assert_eq!(*parent != NO_VERTEX, kept.contains(&row), "{row}");
        }
    }

    #[test]
    fn equal_seeds_are_nested(block in block(Topology::Points), keep in 1_u32..4, seed: u64) {
        let fine = kept(&block, &subset(block.axes, 2.0, keep, seed));
        let coarse = kept(&block, &subset(block.axes, 4.0, keep, seed));
        assert!(coarse.iter().all(|row| fine.contains(row)));
        let again: Vec<u32> = kept(&of(&block, &fine), &subset(block.axes, 4.0, keep, seed))
            .iter()
            .map(|row| fine[*row as usize])
            .collect();
        assert_eq!(again, coarse, "by way of the finer one");
        let more = kept(&block, &subset(block.axes, 2.0, keep + 2, seed));
        assert!(fine.iter().all(|row| more.contains(row)));
    }
}

proptest! {
    #[test]
    fn points_of_the_next_level_are_excluded(block in block(Topology::Points), keep in 1_u32..4, seed: u64) {
        let all = kept(&block, &subset(block.axes, 2.0, keep, seed));
        let next = kept(&block, &subset(block.axes, 4.0, keep, seed));
        let method = CoarsenMethod::Subset {
            cell: vec![2.0; block.axes],
            keep,
            seed,
            without: Some(vec![4.0; block.axes]),
        };
        let merge = method.merge(&block);
        holds(&block, &merge);
        let own = kept(&block, &method);
        let both: BTreeSet<u32> = own.iter().chain(&next).copied().collect();
        assert_eq!(both.len(), own.len() + next.len(), "each once");
        assert_eq!(both.into_iter().collect::<Vec<u32>>(), all);
    }
}

/// Enough points for a tree search, many of them at equal distance.
#[test]
fn nearest_search_finds_kept_points() {
    for axes in [1, 3] {
        let place = |at: u32| [at * 7919 % 211, at * 104_729 % 89, at * 31 % 7];
        let places = (0..1200).map(place);
        let positions = places.flat_map(|place| place.into_iter().take(axes));
        let block = VertexBlock {
            axes,
            positions: positions.map(f64::from).collect(),
            ..VertexBlock::default()
        };
        let merge = subset(axes, 10_000.0, 300, 4).merge(&block);
        let MergedPositions::Source(rows) = &merge.positions else {
            panic!("points stay where they are")
        };
        assert_eq!(rows.len(), 300);
        for (row, parent) in merge.parent.iter().enumerate() {
            if rows.contains(&(row as u32)) {
                continue;
            }
            let far = |other: &u32| distance(block.position(*other as usize), block.position(row));
            // Squares of integers are exact, so the first of equals is known.
            let nearest = *rows
                .iter()
                .min_by(|a, b| far(a).total_cmp(&far(b)))
                .unwrap();
            assert_eq!(rows[*parent as usize], nearest, "of {row}");
        }
    }
}

#[test]
fn hashes_are_uniform() {
    let block = VertexBlock {
        axes: 1,
        positions: (0..100).map(f64::from).collect(),
        ..VertexBlock::default()
    };
    let mut times = [0_u32; 100];
    let mut met = BTreeSet::new();
    for seed in 0..1000 {
        let rows = kept(&block, &subset(1, 1000.0, 10, seed));
        for row in &rows {
            times[*row as usize] += 1;
        }
        met.insert(rows);
    }
    assert!(met.len() > 990, "{} of 1000 are others", met.len());
    // 100 each, within five standard deviations.
    assert!(
        times.iter().all(|times| (53..148).contains(times)),
        "{times:?}"
    );
}
