//! Lines keep what they need to stay near where they were (Douglas-Peucker).

use super::{VertexBlock, VertexMerge, distance::farthest, limbs::shortened};

/// Vertices of a line that are looked at together. What is cut keeps one more, and
/// no line, however it winds, takes more than this many steps for each vertex.
const LONGEST: usize = 4096;

/// Drops vertices of paths and limbs where the line that is left stays within
/// `tolerance` of the old one everywhere.
pub(super) fn merge(block: &VertexBlock, tolerance: f64) -> VertexMerge {
    // A distance is compared by its square; the root of the square of a float is the float.
    let tolerance = tolerance.max(0.0) * tolerance.max(0.0);
    let mut places = Vec::new();
    let mut stretches = Vec::new();
    shortened(block, |line, keep| {
        places.clear();
        for row in line {
            places.extend_from_slice(block.position(*row as usize));
        }
        let mut error = 0.0_f64;
        let last = line.len() - 1;
        stretches.extend((0..last).step_by(LONGEST).map(|start| {
            let end = (start + LONGEST).min(last);
            keep[end] = true;
            (start, end)
        }));
        while let Some((start, end)) = stretches.pop() {
            let (at, far) = farthest(&places, block.axes, start, end);
            if far > tolerance {
                keep[at] = true;
                stretches.extend([(start, at), (at, end)]);
            } else {
                error = error.max(far);
            }
        }
        error
    })
}
