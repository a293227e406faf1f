//! Simplification (Douglas-Peucker) and decimation of lines of vertices with two neighbours each.
//!
//! Paths, trees and graphs are treated alike. A vertex with two neighbours that is not a root, no
//! path end and no end of an outside link lies on exactly one line. So every path or link along
//! that line sees the same result.

use super::{
    NO_VERTEX, Topology, VertexBlock, VertexMerge,
    distance::{farthest, square},
};

/// Longest run that is simplified at once. Cutting at this length keeps one more vertex, and bounds
/// the work for each vertex on any line.
const MAX_RUN: usize = 4096;

/// Drops vertices of paths and limbs while the remaining line stays within `tolerance`.
pub(super) fn simplify(block: &VertexBlock, tolerance: f64) -> VertexMerge {
    // Squared distances are compared; the square root of a float's square is the float.
    let tolerance = tolerance.max(0.0) * tolerance.max(0.0);
    let mut positions = Vec::new();
    let mut runs = Vec::new();
    shortened(block, |line, keep| {
        positions.clear();
        for row in line {
            positions.extend_from_slice(block.position(*row as usize));
        }
        let mut error = 0.0_f64;
        let last = line.len() - 1;
        runs.extend((0..last).step_by(MAX_RUN).map(|start| {
            let end = (start + MAX_RUN).min(last);
            keep[end] = true;
            (start, end)
        }));
        while let Some((start, end)) = runs.pop() {
            let (at, far) = farthest(&positions, block.axes, start, end);
            if far > tolerance {
                keep[at] = true;
                runs.extend([(start, at), (at, end)]);
            } else {
                error = error.max(far);
            }
        }
        error
    })
}

/// Keeps every `step`-th vertex of paths and limbs from their start, and their ends.
pub(super) fn decimate(block: &VertexBlock, step: u32) -> VertexMerge {
    let step = step.max(1) as usize;
    let mut positions = Vec::new();
    shortened(block, |line, keep| {
        positions.clear();
        for row in line {
            positions.extend_from_slice(block.position(*row as usize));
        }
        let last = line.len() - 1;
        let starts = (0..last).step_by(step);
        let far = starts.map(|start| {
            let end = (start + step).min(last);
            keep[end] = true;
            farthest(&positions, block.axes, start, end).1
        });
        far.fold(0.0, f64::max)
    })
}

/// Reduces the lines of a block. `choose` gets the vertices of a line, marks the vertices to keep
/// in addition to both ends, and returns the squared distance of the farthest dropped vertex.
fn shortened(
    block: &VertexBlock,
    mut choose: impl FnMut(&[u32], &mut [bool]) -> f64,
) -> VertexMerge {
    let near = neighbours(block);
    let fixed = near.iter().zip(0..);
    let mut into: Vec<u32> = fixed
        .map(|(near, row)| if near[1] == NO_VERTEX { row } else { NO_VERTEX })
        .collect();
    let mut error = 0.0_f64;
    let (mut line, mut keep, mut along) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..block.len() as u32 {
        if into[row as usize] != NO_VERTEX {
            continue;
        }
        line_of(&near, row, &mut line);
        keep.clear();
        keep.resize(line.len(), false);
        keep[0] = true;
        keep[line.len() - 1] = true;
        error = error.max(choose(&line, &mut keep));
        send(block, &line, &keep, &mut along, &mut into);
    }
    VertexMerge::kept(block, into, Some(error.sqrt()))
}

/// Returns the two neighbours of each vertex on a line, in the direction of the first path or from
/// the root; the second is [`NO_VERTEX`] for all other vertices.
fn neighbours(block: &VertexBlock) -> Vec<[u32; 2]> {
    let mut near = vec![[NO_VERTEX; 2]; block.len()];
    let mut is_fixed = vec![false; block.len()];
    let mut join = |a: u32, b: u32, is_fixed: &mut [bool]| {
        for (row, other) in [(a, b), (b, a)] {
            let [first, second] = &mut near[row as usize];
            is_fixed[row as usize] |= a != b && !put(first, other) && !put(second, other);
        }
    };
    match block.topology {
        Topology::Paths => {
            for rows in block.paths.iter().map(|path| &path.rows) {
                let (mut before, mut last) = (NO_VERTEX, NO_VERTEX);
                for &row in rows {
                    if row == last {
                        continue;
                    }
                    if last != NO_VERTEX {
                        join(last, row, &mut is_fixed);
                        // A path that reverses here ends the line.
                        is_fixed[last as usize] |= before == row;
                    }
                    (before, last) = (last, row);
                }
                for end in rows.first().into_iter().chain(rows.last()) {
                    is_fixed[*end as usize] = true;
                }
            }
        }
        Topology::Trees => {
            for link in block
                .links
                .chunks_exact(2)
                .filter(|link| link[0] != link[1])
            {
                let [child, parent] = [link[0], link[1]];
                is_fixed[child as usize] |= !put(&mut near[child as usize][0], parent);
                is_fixed[parent as usize] |= !put(&mut near[parent as usize][1], child);
            }
        }
        Topology::Graphs => {
            for link in block.links.chunks_exact(2) {
                join(link[0], link[1], &mut is_fixed);
            }
        }
        Topology::Points | Topology::SharedPoints | Topology::Faces => {}
    }
    for (row, near) in near.iter_mut().enumerate() {
        let own = |other: &u32| block.owner(*other as usize) == block.owner(row);
        // Lines do not cross object boundaries.
        if is_fixed[row] || block.is_tied(row) || near.contains(&NO_VERTEX) || !near.iter().all(own)
        {
            *near = [NO_VERTEX; 2];
        }
    }
    near
}

/// Stores a neighbour in an empty slot and returns whether the slot holds it.
fn put(slot: &mut u32, neighbour: u32) -> bool {
    if *slot == NO_VERTEX {
        *slot = neighbour;
    }
    *slot == neighbour
}

/// Collects the line of a vertex from end to end. A ring starts and ends at the vertex.
fn line_of(near: &[[u32; 2]], row: u32, line: &mut Vec<u32>) {
    line.clear();
    line.push(row);
    let go = |line: &mut Vec<u32>, side: usize| {
        let (mut from, mut at) = (row, near[row as usize][side]);
        loop {
            line.push(at);
            let [first, second] = near[at as usize];
            if at == row || second == NO_VERTEX {
                return;
            }
            let next = if first == from { second } else { first };
            (from, at) = (at, next);
        }
    };
    go(line, 0);
    line.reverse();
    if line[0] != row {
        go(line, 1);
    }
}

/// Maps each dropped vertex to the nearer kept vertex along the line.
fn send(block: &VertexBlock, line: &[u32], keep: &[bool], along: &mut Vec<f64>, into: &mut [u32]) {
    along.clear();
    let mut way = 0.0;
    for (at, row) in line.iter().enumerate() {
        if at > 0 {
            let last = block.position(line[at - 1] as usize);
            way += square(last, block.position(*row as usize)).sqrt();
        }
        along.push(way);
    }
    let mut last = 0;
    for next in (1..line.len()).filter(|at| keep[*at]) {
        for at in last + 1..next {
            let is_nearer = along[next] - along[at] < along[at] - along[last];
            into[line[at] as usize] = line[if is_nearer { next } else { last }];
        }
        into[line[next] as usize] = line[next];
        last = next;
    }
}
