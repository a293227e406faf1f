//! Decimation of lines by a fixed stride.

use super::{VertexBlock, VertexMerge, distance::farthest, limbs::shortened};

/// Keeps every `step`-th vertex of paths and limbs from their start, and their ends.
pub(super) fn merge(block: &VertexBlock, step: u32) -> VertexMerge {
    let step = step.max(1) as usize;
    let mut places = Vec::new();
    shortened(block, |line, keep| {
        places.clear();
        for row in line {
            places.extend_from_slice(block.position(*row as usize));
        }
        let last = line.len() - 1;
        let starts = (0..last).step_by(step);
        let far = starts.map(|start| {
            let end = (start + step).min(last);
            keep[end] = true;
            farthest(&places, block.axes, start, end).1
        });
        far.fold(0.0, f64::max)
    })
}
