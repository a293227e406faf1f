//! Random blocks and invariants of merges.

use proptest::{collection::vec, prelude::*};
use zvf_build::coarsen::{
    MergedPositions, NO_OBJECT, NO_VERTEX, PathRun, Topology, VertexBlock, VertexMerge,
};

/// Extent of a chunk.
pub(super) const CHUNK: f64 = 8.0;

/// Generates a block with up to 40 vertices in one chunk, on few positions, so that many coincide.
pub(super) fn block(topology: Topology) -> impl Strategy<Value = VertexBlock> {
    (1_usize..4, 0_usize..40, -3_i32..3).prop_flat_map(move |(axes, vertices, chunk)| {
        let lower = f64::from(chunk) * CHUNK;
        let place = prop_oneof![
            (0_u32..32).prop_map(move |at| lower + f64::from(at) / 4.0),
            (0_u32..8000).prop_map(move |at| lower + f64::from(at as f32 / 1000.0)),
            Just(f64::from(((lower + CHUNK) as f32).next_down())),
        ];
        // An exact float32, which the sum need not be.
        let place = place.prop_map(move |at| {
            let at = f64::from(at as f32);
            at.clamp(lower, f64::from(((lower + CHUNK) as f32).next_down()))
        });
        let positions = vec(place, vertices * axes);
        let owners = vec(prop_oneof![4 => 0_u32..3, 1 => Just(NO_OBJECT)], vertices);
        let tied = vec(prop::bool::weighted(0.1), vertices);
        let links = vec((any::<u32>(), any::<u32>(), 0_u32..8), vertices * 2);
        let last = vertices.saturating_sub(1) as u32;
        // Runs of consecutive vertices in both directions, so that limbs occur.
        let run = (0..=last, -12_i32..13).prop_map(move |(start, length)| {
            let steps = 0..=length.unsigned_abs();
            let rows = steps.filter_map(move |step| {
                if length < 0 {
                    start.checked_sub(step)
                } else {
                    Some(start + step).filter(|row| *row <= last)
                }
            });
            rows.collect::<Vec<u32>>()
        });
        let runs = vec(run, 0..3).prop_map(|runs| runs.concat());
        let jumps = vec(0..=last, 0..12);
        let paths = vec(prop_oneof![3 => runs, 1 => jumps], 0..4);
        (positions, owners, tied, links, paths).prop_map(
            move |(positions, owners, tied, links, paths)| {
                let mut block = VertexBlock {
                    topology,
                    axes,
                    positions,
                    lower: vec![lower; axes],
                    upper: vec![lower + CHUNK; axes],
                    width: 2,
                    tied,
                    ..VertexBlock::default()
                };
                let count = vertices as u32;
                match topology {
                    Topology::Paths | Topology::SharedPoints => {
                        let stretches = paths.into_iter().filter(|_| vertices > 0).zip(0..);
                        block.paths = stretches
                            .map(|(rows, object)| PathRun { object, rows })
                            .collect();
                    }
                    Topology::Trees => {
                        block.owners = owners;
                        for (child, (parent, _, root)) in (1..count).zip(links) {
                            // Mostly the previous vertex, so that limbs occur.
                            let parent = match root {
                                0..5 => child - 1,
                                _ => parent % child,
                            };
                            let is_owned =
                                block.owners[child as usize] == block.owners[parent as usize];
                            if root != 7 && is_owned {
                                block.links.extend([child, parent]);
                            }
                        }
                    }
                    Topology::Graphs => {
                        for (a, b, next) in links.into_iter().filter(|_| vertices > 0) {
                            match next {
                                0..6 => block.links.extend([a % count, (a % count + 1) % count]),
                                _ => block.links.extend([a % count, b % count]),
                            }
                        }
                        // Dense graphs have no limbs.
                        block.links.truncate((vertices + vertices / 4) * 2);
                    }
                    Topology::Points => block.owners = owners,
                    Topology::Faces => {}
                }
                block
            },
        )
    })
}

/// Returns the position of a coarser vertex.
pub(super) fn place<'a>(block: &'a VertexBlock, merge: &'a VertexMerge, vertex: u32) -> &'a [f64] {
    let vertex = vertex as usize;
    match &merge.positions {
        MergedPositions::Source(rows) => block.position(rows[vertex] as usize),
        MergedPositions::Computed(places) => {
            &places[vertex * block.axes..(vertex + 1) * block.axes]
        }
    }
}

/// Checks the invariants of every method.
#[track_caller]
pub(super) fn holds(block: &VertexBlock, merge: &VertexMerge) {
    assert_eq!(merge.parent.len(), block.len());
    let count = merge.len(block.axes);
    let mut met: Vec<u32> = merge.parent.clone();
    met.retain(|parent| *parent != NO_VERTEX);
    met.sort_unstable();
    met.dedup();
    assert_eq!(met, (0..count as u32).collect::<Vec<_>>(), "all occur");
    if let MergedPositions::Source(rows) = &merge.positions {
        for (number, row) in rows.iter().enumerate() {
            assert_eq!(
                merge.parent[*row as usize] as usize, number,
                "it stays itself"
            );
        }
    }
    if matches!(block.topology, Topology::Paths | Topology::SharedPoints) {
        let visits = block.paths.iter().flat_map(|path| &path.rows);
        let mut next = 0;
        for number in visits.map(|row| merge.parent[*row as usize]) {
            assert!(number <= next, "{number} is visited before {next}");
            next = next.max(number + 1);
        }
    }
    for vertex in 0..count as u32 {
        for at in place(block, merge, vertex) {
            for at in [*at, f64::from(*at as f32)] {
                assert!(
                    block.lower[0] <= at && at < block.upper[0],
                    "{at} is outside"
                );
            }
        }
    }
}

/// Returns the distance of two points.
pub(super) fn distance(a: &[f64], b: &[f64]) -> f64 {
    let squares = a.iter().zip(b).map(|(a, b)| (a - b).powi(2));
    squares.sum::<f64>().sqrt()
}
