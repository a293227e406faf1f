//! Simplification of lines (Douglas-Peucker).

use super::{VertexBlock, VertexMerge, distance::farthest, limbs::shortened};

/// Longest run that is simplified at once. Cutting at this length keeps one more vertex, and bounds
/// the work for each vertex on any line.
const LONGEST: usize = 4096;

/// Drops vertices of paths and limbs while the remaining line stays within `tolerance`.
pub(super) fn merge(block: &VertexBlock, tolerance: f64) -> VertexMerge {
    // Squared distances are compared; the square root of a float's square is the float.
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
