//! Vertices of chunks as Draco streams.

use zvf_model::draco::{DracoCell, DracoError, PositionBits};

use crate::{GeometryKind, plan::WritePlan};

/// Returns whether triangles inside chunks are parts of the streams of vertices. Streams have no
/// place for attributes of triangles, nor for other faces.
pub(super) fn has_triangles(plan: &WritePlan) -> bool {
    let width = plan.links.as_ref().map(|links| links.width.get());
    plan.design.draco.is_some()
        && plan.design.kind == GeometryKind::Mesh
        && width == Some(3)
        && plan.link.is_empty()
}

/// Encodes the vertices of a chunk, and the triangles inside it.
pub(super) fn stream(
    plan: &WritePlan,
    chunk: u32,
    bits: PositionBits,
) -> Result<Vec<u8>, DracoError> {
    let rows = plan.positions(chunk);
    let positions = rows.as_chunks::<4>().0.as_chunks::<3>().0;
    let mut cell = DracoCell::default();
    cell.positions = positions
        .iter()
        .map(|row| row.map(f32::from_le_bytes))
        .collect();
    let inside = plan.links.as_ref().filter(|_| has_triangles(plan));
    if let Some(inside) = inside.and_then(|links| links.inside.get(&chunk)) {
        cell.triangles = inside.ends.as_chunks::<3>().0.to_vec();
    }
    // Rounding may move a vertex beyond the upper border of its chunk or of the bounds: then it
    // takes the step before.
    for _ in 0..ROUNDS {
        let bytes = cell.encode(bits)?;
        let stored = DracoCell::parse(&bytes, u64::MAX)?;
        let step = step(&cell, bits);
        let mut is_inside = true;
        for (given, stored) in cell.positions.iter_mut().zip(&stored.positions) {
            for axis in outside(plan, chunk, stored) {
                given[axis] = stored[axis] - step;
                is_inside = false;
            }
        }
        if is_inside {
            return Ok(bytes);
        }
    }
    Err(DracoError::Unencodable(
        "rounding moves vertices to another chunk; use more bits",
    ))
}

/// Attempts to keep vertices inside a chunk.
const ROUNDS: usize = 8;

/// Returns the distance of neighbouring values of a coordinate.
fn step(cell: &DracoCell, bits: PositionBits) -> f32 {
    let extents = [0, 1, 2].map(|axis| {
        let along = cell.positions.iter().map(|row| row[axis]);
        let (low, high) = along.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), x| {
            (low.min(x), high.max(x))
        });
        high - low
    });
    let steps = 2.0_f32.powi(i32::from(bits.get())) - 1.0;
    extents.into_iter().fold(0.0, f32::max) / steps
}

/// Returns the axes along which a position is above its chunk or the bounds.
fn outside(plan: &WritePlan, chunk: u32, position: &[f32; 3]) -> Vec<usize> {
    let position = position.map(f64::from);
    let found = plan.space.chunk.chunk_of(&position);
    let own = &plan.layout.chunks[chunk as usize];
    let found = found.as_ref().map_or(&[][..], |found| found.coords());
    let is_outside = |axis: &usize| {
        position[*axis] > plan.space.upper[*axis] || found.get(*axis) > own.get(*axis)
    };
    (0..3).filter(is_outside).collect()
}
