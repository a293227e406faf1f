//! Binning compared with brute force.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use zvf_build::coarsen::{
    CoarsenMethod, MergedPositions, NO_VERTEX, Placement, Topology, VertexBlock, VertexMerge,
    contract_links,
};

use super::blocks::{block, distance, holds, place};

fn bins(cell: &[f64], placement: Placement, share: bool) -> CoarsenMethod {
    CoarsenMethod::Bins {
        cell: cell.to_vec(),
        placement,
        share,
    }
}

/// Returns the groups in order with their members, repeated as often as they count.
fn groups(block: &VertexBlock, cell: &[f64], share: bool) -> Vec<Vec<usize>> {
    let key = |vertex: usize| {
        let place = block.position(vertex).iter().zip(cell);
        let cell: Vec<i64> = place.map(|(at, cell)| (at / cell).floor() as i64).collect();
        let is_shared = share && block.topology != Topology::Trees;
        (if is_shared { 0 } else { block.owner(vertex) }, cell)
    };
    let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    match block.topology {
        Topology::Paths | Topology::SharedPoints => {
            let mut order = Vec::new();
            for row in block.paths.iter().flat_map(|path| &path.rows) {
                let key = key(*row as usize);
                if !order.contains(&key) {
                    order.push(key.clone());
                }
                groups.entry(key).or_default().push(*row as usize);
            }
            order.iter().map(|key| groups[key].clone()).collect()
        }
        Topology::Trees => {
            // Linked vertices of a cell join one piece, repeated until nothing changes.
            let mut piece: Vec<usize> = (0..block.len()).collect();
            for _ in 0..block.len() {
                for link in block.links.chunks_exact(2) {
                    let [a, b] = [link[0] as usize, link[1] as usize];
                    if key(a) == key(b) {
                        let min = piece[a].min(piece[b]);
                        (piece[a], piece[b]) = (min, min);
                    }
                }
            }
            let mut pieces: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
            (0..block.len()).for_each(|row| pieces.entry(piece[row]).or_default().push(row));
            pieces.into_values().collect()
        }
        _ => {
            (0..block.len()).for_each(|row| groups.entry(key(row)).or_default().push(row));
            groups.into_values().collect()
        }
    }
}

fn check(block: &VertexBlock, cell: f64, placement: Placement, share: bool) {
    let cell = vec![cell; block.axes];
    let merge = bins(&cell, placement, share).merge(block);
    holds(block, &merge);
    let groups = groups(block, &cell, share);
    assert_eq!(merge.len(block.axes), groups.len());
    let mut error = 0.0_f64;
    for (number, members) in groups.iter().enumerate() {
        for row in members {
            assert_eq!(merge.parent[*row] as usize, number, "vertex {row}");
        }
        let mean: Vec<f64> = (0..block.axes)
            .map(|axis| {
                let all = members.iter().map(|row| block.position(*row)[axis]);
                all.sum::<f64>() / members.len() as f64
            })
            .collect();
        let found = place(block, &merge, number as u32);
        match &merge.positions {
            MergedPositions::Computed(_) => {
                assert!(distance(found, &mean) < 1e-5, "{found:?} {mean:?}");
            }
            MergedPositions::Source(rows) => {
                assert!(members.contains(&(rows[number] as usize)));
                let far = members
                    .iter()
                    .map(|row| distance(block.position(*row), &mean));
                let min = far.fold(f64::INFINITY, f64::min);
                assert!(distance(found, &mean) <= min + 1e-5);
            }
        }
    }
    for (row, parent) in merge.parent.iter().enumerate() {
        // Unreferenced vertices do not contribute.
        let is_named = groups.iter().flatten().any(|member| *member == row);
        let is_listed = matches!(block.topology, Topology::Paths | Topology::SharedPoints);
        let is_lost = is_listed && !is_named;
        assert_eq!(*parent == NO_VERTEX, is_lost, "vertex {row}");
        if *parent != NO_VERTEX {
            error = error.max(distance(block.position(row), place(block, &merge, *parent)));
        }
    }
    assert!((merge.error.unwrap() - error).abs() < 1e-9);
    if block.topology == Topology::Trees {
        stays_a_forest(block, &merge);
    }
}

/// Checks that no cycle appears and that roots remain roots: each vertex keeps at most one parent,
/// the number of roots is unchanged, and every parent chain ends.
fn stays_a_forest(block: &VertexBlock, merge: &VertexMerge) {
    let moved = block
        .links
        .iter()
        .map(|row| u64::from(merge.parent[*row as usize]));
    let (links, _) = contract_links(&moved.collect::<Vec<_>>(), 2, true);
    let mut up = BTreeMap::new();
    for link in links.chunks_exact(2) {
        assert_eq!(up.insert(link[0], link[1]), None, "one parent");
    }
    let roots = block.len() - block.links.len() / 2;
    assert_eq!(merge.len(block.axes) - up.len(), roots);
    for start in up.keys() {
        let (mut at, mut met) = (*start, BTreeSet::new());
        while let Some(next) = up.get(&at) {
            assert!(met.insert(at), "a cycle at {at}");
            at = *next;
        }
    }
    let children: BTreeSet<u32> = block.links.chunks_exact(2).map(|link| link[0]).collect();
    for root in (0..block.len() as u32).filter(|row| !children.contains(row)) {
        let parent = u64::from(merge.parent[root as usize]);
        assert!(!up.contains_key(&parent), "{root} was a root");
    }
}

fn method() -> impl Strategy<Value = (f64, Placement, bool)> {
    let cell = prop_oneof![Just(1.0), Just(2.0), Just(8.0), Just(1.6)];
    let placement = prop_oneof![Just(Placement::Mean), Just(Placement::Medoid)];
    (cell, placement, any::<bool>())
}

proptest! {
    #[test]
    fn points_equal_brute_force(block in block(Topology::Points), (cell, placement, share) in method()) {
        check(&block, cell, placement, share);
    }

    #[test]
    fn paths_equal_brute_force(block in block(Topology::Paths), (cell, placement, share) in method()) {
        check(&block, cell, placement, share);
    }

    #[test]
    fn shared_points_equal_brute_force(
        block in block(Topology::SharedPoints), (cell, placement, share) in method(),
    ) {
        check(&block, cell, placement, share);
    }

    #[test]
    fn trees_remain_trees(block in block(Topology::Trees), (cell, placement, share) in method()) {
        check(&block, cell, placement, share);
    }

    #[test]
    fn graphs_equal_brute_force(block in block(Topology::Graphs), (cell, placement, share) in method()) {
        check(&block, cell, placement, share);
    }
}

/// As in the reference, a vertex counts once for each path that references it.
#[test]
fn shared_vertices_count_once_for_each_path() {
    let path = |object, rows: &[u32]| zvf_build::coarsen::PathRun {
        object,
        rows: rows.to_vec(),
    };
    let block = VertexBlock {
        topology: Topology::Paths,
        axes: 1,
        positions: vec![0.0, 3.0, 1.5, 7.0],
        lower: vec![0.0],
        upper: vec![8.0],
        paths: vec![path(0, &[0, 1]), path(1, &[1])],
        ..VertexBlock::default()
    };
    let merge = bins(&[4.0], Placement::Mean, false).merge(&block);
    assert_eq!(merge.parent, [0, 0, NO_VERTEX, NO_VERTEX]);
    assert_eq!(merge.positions, MergedPositions::Computed(vec![2.0]));
    let merge = bins(&[4.0], Placement::Medoid, false).merge(&block);
    assert_eq!(merge.positions, MergedPositions::Source(vec![1]));
}

#[test]
fn trees_of_two_objects_do_not_merge() {
    let block = VertexBlock {
        topology: Topology::Trees,
        axes: 1,
        positions: vec![0.0, 1.0, 2.0],
        owners: vec![5, 5, 6],
        width: 2,
        links: vec![1, 0, 2, 1],
        ..VertexBlock::default()
    };
    let merge = bins(&[4.0], Placement::Mean, true).merge(&block);
    assert_eq!(merge.parent, [0, 0, 1]);
}

/// A mean of two vertices just below the chunk's upper corner rounds to the corner.
#[test]
fn means_stay_in_their_chunk() {
    let end = 0.7_f64;
    let block = VertexBlock {
        axes: 1,
        positions: vec![end.next_down(), end.next_down().next_down()],
        lower: vec![0.0],
        upper: vec![end],
        ..VertexBlock::default()
    };
    holds(&block, &bins(&[end], Placement::Mean, true).merge(&block));
}
