//! Simplified paths, trees and graphs.

use std::collections::BTreeSet;

use proptest::prelude::*;
use zvf_build::coarsen::{
    CoarsenMethod, MergedPositions, NO_VERTEX, PathRun, Topology, VertexBlock, contract_links,
    contract_path,
};

use super::blocks::{block, distance, holds};

/// Finds the distance of a point from a segment by successive refinement.
fn off(place: &[f64], from: &[f64], to: &[f64]) -> f64 {
    let at = |share: f64| {
        let pairs = from.iter().zip(to);
        let on: Vec<f64> = pairs.map(|(a, b)| a + share * (b - a)).collect();
        distance(place, &on)
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..40 {
        let third = (high - low) / 3.0;
        if at(low + third) < at(high - third) {
            high -= third;
        } else {
            low += third;
        }
    }
    at(low).min(at(0.0)).min(at(1.0))
}

/// Returns the segments of a block as pairs of rows.
fn lines(block: &VertexBlock) -> Vec<[u32; 2]> {
    match block.topology {
        Topology::Paths => {
            let pairs = block.paths.iter().flat_map(|path| path.rows.windows(2));
            pairs.map(|pair| [pair[0], pair[1]]).collect()
        }
        _ => block
            .links
            .chunks_exact(2)
            .map(|link| [link[0], link[1]])
            .collect(),
    }
}

/// Samples the largest distance of points of some lines from the nearest of others.
fn hausdorff(block: &VertexBlock, of: &[[u32; 2]], from: &[[u32; 2]]) -> f64 {
    let mut far = 0.0_f64;
    for [a, b] in of {
        let (a, b) = (block.position(*a as usize), block.position(*b as usize));
        for share in [0.0, 0.5, 1.0] {
            let point: Vec<f64> = a.iter().zip(b).map(|(a, b)| a + share * (b - a)).collect();
            let mut nearest = f64::INFINITY;
            for [c, d] in from {
                let (c, d) = (block.position(*c as usize), block.position(*d as usize));
                // No point of a line is nearer than the distance of its end minus its length.
                if distance(&point, c) - distance(c, d) < nearest {
                    nearest = nearest.min(off(&point, c, d));
                }
            }
            far = far.max(nearest);
        }
    }
    far
}

/// Returns the vertices that must be kept: ends, roots, pinned vertices, junctions and turning
/// points.
fn fixed(block: &VertexBlock) -> BTreeSet<u32> {
    let all = 0..block.len() as u32;
    let mut fixed: BTreeSet<u32> = all
        .clone()
        .filter(|row| block.is_tied(*row as usize))
        .collect();
    for row in all {
        let mut near = BTreeSet::new();
        for [a, b] in lines(block) {
            if a == row && b != row {
                near.insert(b);
            }
            if b == row && a != row {
                near.insert(a);
            }
        }
        let ups = block
            .links
            .chunks_exact(2)
            .filter(|link| link[0] == row)
            .count();
        if near.len() != 2 || (block.topology == Topology::Trees && ups == 0) {
            fixed.insert(row);
        }
    }
    for path in &block.paths {
        fixed.extend(path.rows.first());
        fixed.extend(path.rows.last());
        let mut rows = path.rows.clone();
        rows.dedup();
        let turns = rows.windows(3).filter(|rows| rows[0] == rows[2]);
        fixed.extend(turns.map(|rows| rows[1]));
    }
    if block.topology == Topology::Paths {
        fixed.retain(|row| block.paths.iter().any(|path| path.rows.contains(row)));
    }
    fixed
}

fn check(block: &VertexBlock, method: &CoarsenMethod) {
    let merge = method.merge(block);
    holds(block, &merge);
    let MergedPositions::Source(rows) = &merge.positions else {
        panic!("lines keep vertices")
    };
    let kept: BTreeSet<u32> = rows.iter().copied().collect();
    let fixed = fixed(block);
    assert!(fixed.is_subset(&kept), "{fixed:?} of {kept:?}");
    let error = merge.error.unwrap();
    if let CoarsenMethod::Simplify { tolerance } = method {
        assert!(error <= *tolerance, "{error}");
    }
    let new: Vec<[u32; 2]> = match block.topology {
        Topology::Paths => {
            // Each path depends on its own vertices only, as does its error.
            let mut measured = 0.0_f64;
            let mut new = Vec::new();
            for path in &block.paths {
                let moved: Vec<u32> = contract_path(&path.rows, &merge.parent)
                    .iter()
                    .map(|at| rows[*at as usize])
                    .collect();
                let mut stay = path.rows.clone();
                stay.retain(|row| kept.contains(row));
                stay.dedup();
                assert_eq!(moved, stay, "of {:?}", path.rows);
                for (at, row) in path
                    .rows
                    .iter()
                    .enumerate()
                    .filter(|(_, row)| !kept.contains(row))
                {
                    let find = |row: &&u32| kept.contains(*row);
                    let before = path.rows[..at].iter().rev().find(find).unwrap();
                    let behind = path.rows[at..].iter().find(find).unwrap();
                    let place = |row: u32| block.position(row as usize);
                    measured = measured.max(off(place(*row), place(*before), place(*behind)));
                }
                // A path that shrinks to a point is kept.
                new.extend(moved.first().map(|row| [*row, *row]));
                new.extend(moved.windows(2).map(|pair| [pair[0], pair[1]]));
            }
            assert!((measured - error).abs() < 1e-6, "{measured} is not {error}");
            new
        }
        _ => {
            assert!(merge.parent.iter().all(|parent| *parent != NO_VERTEX));
            let moved = block
                .links
                .iter()
                .map(|row| u64::from(merge.parent[*row as usize]));
            let (links, _) = contract_links(&moved.collect::<Vec<_>>(), 2, false);
            let links = links.chunks_exact(2);
            let mut new: Vec<[u32; 2]> = links
                .map(|link| [rows[link[0] as usize], rows[link[1] as usize]])
                .collect();
            new.extend(kept.iter().map(|row| [*row, *row]));
            if block.topology == Topology::Trees {
                let links = block.links.len() / 2;
                let alone = kept.len() - (new.len() - kept.len());
                assert_eq!(alone, block.len() - links, "as many trees as there were");
            }
            new
        }
    };
    let old = lines(block);
    assert!(
        hausdorff(block, &old, &new) <= error + 1e-6,
        "of the old from the new"
    );
    let all: Vec<[u32; 2]> = old
        .iter()
        .copied()
        .chain(kept.iter().map(|row| [*row, *row]))
        .collect();
    assert!(
        hausdorff(block, &new, &all) <= error + 1e-6,
        "of the new from the old"
    );
}

/// Recursive Douglas-Peucker.
fn douglas_peucker(
    places: &[Vec<f64>],
    start: usize,
    end: usize,
    tolerance: f64,
    kept: &mut BTreeSet<usize>,
) {
    let far = (start + 1..end)
        .map(|at| (at, off(&places[at], &places[start], &places[end])))
        .fold((0, 0.0), |a, b| if b.1 > a.1 { b } else { a });
    if far.1 > tolerance {
        kept.insert(far.0);
        douglas_peucker(places, start, far.0, tolerance, kept);
        douglas_peucker(places, far.0, end, tolerance, kept);
    }
}

fn method() -> impl Strategy<Value = CoarsenMethod> {
    prop_oneof![
        (0.0..4.0).prop_map(|tolerance| CoarsenMethod::Simplify { tolerance }),
        Just(CoarsenMethod::Simplify { tolerance: 0.0 }),
        Just(CoarsenMethod::Simplify {
            tolerance: f64::INFINITY
        }),
        (0_u32..7).prop_map(|step| CoarsenMethod::Stride { step }),
    ]
}

proptest! {
    // Every case samples all lines at many points.
    #![proptest_config(ProptestConfig::with_cases(zvf_testkit::sample::cases(64)))]

    #[test]
    fn paths_stay_within_tolerance(block in block(Topology::Paths), method in method()) {
        check(&block, &method);
    }

    #[test]
    fn trees_stay_within_tolerance(block in block(Topology::Trees), method in method()) {
        check(&block, &method);
    }

    #[test]
    fn graphs_stay_within_tolerance(block in block(Topology::Graphs), method in method()) {
        check(&block, &method);
    }

    #[test]
    fn single_paths_equal_recursive_simplification(
        places in prop::collection::vec(prop::collection::vec(0.0..10.0_f64, 3), 2..60), tolerance in 0.0..5.0,
    ) {
        let vertices = places.len();
        let block = VertexBlock {
            topology: Topology::Paths,
            axes: 3,
            positions: places.concat(),
            paths: vec![PathRun { object: 0, rows: (0..vertices as u32).collect() }],
            ..VertexBlock::default()
        };
        let mut kept = BTreeSet::from([0, vertices - 1]);
        douglas_peucker(&places, 0, vertices - 1, tolerance, &mut kept);
        let kept = kept.into_iter().map(|row| row as u32).collect();
        let merge = CoarsenMethod::Simplify { tolerance }.merge(&block);
        assert_eq!(merge.positions, MergedPositions::Source(kept));
    }
}

fn path(positions: &[f64], paths: &[&[u32]]) -> VertexBlock {
    let paths = paths.iter().zip(0..);
    VertexBlock {
        topology: Topology::Paths,
        axes: 2,
        positions: positions.to_vec(),
        paths: paths
            .map(|(rows, object)| PathRun {
                object,
                rows: rows.to_vec(),
            })
            .collect(),
        ..VertexBlock::default()
    }
}

#[test]
fn dropped_vertices_map_to_the_nearer_neighbour() {
    let block = path(&[0.0, 0.0, 1.0, 0.0, 6.0, 0.0, 9.0, 0.0], &[&[0, 1, 2, 3]]);
    let merge = CoarsenMethod::Simplify { tolerance: 0.5 }.merge(&block);
    assert_eq!(merge.parent, [0, 0, 1, 1]);
    assert_eq!(merge.positions, MergedPositions::Source(vec![0, 3]));
}

#[test]
fn shared_runs_are_simplified_alike_in_both_directions() {
    let positions: Vec<f64> = (0..8)
        .flat_map(|at| [f64::from(at), f64::from(at % 2)])
        .collect();
    let block = path(&positions, &[&[0, 1, 2, 3, 4, 5], &[6, 4, 3, 2, 1, 7]]);
    let merge = CoarsenMethod::Stride { step: 2 }.merge(&block);
    let MergedPositions::Source(rows) = &merge.positions else {
        panic!()
    };
    assert_eq!(
        rows,
        &[0, 1, 3, 4, 5, 6, 7],
        "one and four are where they part"
    );
}

#[test]
fn stride_counts_from_path_starts_and_tree_roots() {
    let positions = vec![0.0; 14];
    let block = path(&positions, &[&[0, 1, 2, 3, 4, 5, 6]]);
    let merge = CoarsenMethod::Stride { step: 4 }.merge(&block);
    assert_eq!(merge.positions, MergedPositions::Source(vec![0, 4, 6]));
    let tree = VertexBlock {
        topology: Topology::Trees,
        axes: 2,
        positions,
        width: 2,
        links: vec![0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6],
        ..VertexBlock::default()
    };
    let merge = CoarsenMethod::Stride { step: 4 }.merge(&tree);
    assert_eq!(merge.positions, MergedPositions::Source(vec![0, 2, 6]));
}

#[test]
fn rings_keep_a_vertex() {
    let ring = |tolerance| {
        let block = VertexBlock {
            topology: Topology::Graphs,
            axes: 2,
            positions: vec![0.0, 0.0, 4.0, 0.0, 4.0, 4.0, 0.0, 4.0],
            width: 2,
            links: vec![0, 1, 1, 2, 2, 3, 3, 0],
            ..VertexBlock::default()
        };
        let merge = CoarsenMethod::Simplify { tolerance }.merge(&block);
        (merge.positions, merge.error.unwrap())
    };
    assert_eq!(ring(0.0), (MergedPositions::Source(vec![0, 1, 2, 3]), 0.0));
    let (places, error) = ring(3.0);
    assert_eq!(places, MergedPositions::Source(vec![0, 2]));
    assert!((error - 8.0_f64.sqrt()).abs() < 1e-12);
    assert_eq!(ring(9.0).0, MergedPositions::Source(vec![0]));
}

/// If the farthest vertex is always the next one, the work is quadratic.
#[test]
fn work_per_vertex_is_bounded_on_long_lines() {
    let positions: Vec<f64> = (0..20_000_u32)
        .flat_map(|at| {
            let far = f64::from(20_000 - at);
            [f64::from(at), if at % 2 == 0 { far } else { -far }]
        })
        .collect();
    let rows: Vec<u32> = (0..20_000).collect();
    let merge = CoarsenMethod::Simplify { tolerance: 0.25 }.merge(&path(&positions, &[&rows]));
    assert_eq!(merge.len(2), 20_000);
    let straight: Vec<f64> = (0..20_000).flat_map(|at| [f64::from(at), 0.0]).collect();
    let merge = CoarsenMethod::Simplify { tolerance: 0.25 }.merge(&path(&straight, &[&rows]));
    assert_eq!(merge.len(2), 6, "one for each 4096 and the last");
}

#[test]
fn faces_are_not_simplified_as_lines() {
    let block = VertexBlock {
        topology: Topology::Faces,
        axes: 1,
        positions: vec![0.0, 1.0, 2.0],
        width: 3,
        links: vec![0, 1, 2],
        ..VertexBlock::default()
    };
    let method = CoarsenMethod::Simplify { tolerance: 9.0 };
    assert!(method.kind().refusal(block.topology).is_some());
    assert_eq!(method.merge(&block).parent, [0, 1, 2]);
}
