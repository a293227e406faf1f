//! Sampling of points.

use zvf_model::random::hash;

use super::{
    MergedPositions, NO_OBJECT, NO_VERTEX, Topology, VertexBlock, VertexMerge, cells::Cells,
    nearest::Nearest,
};

/// Keeps the `keep` points (at least one) with the smallest hashes for each cell and owner, so that
/// no owner disappears. Dropped points map to the nearest kept point of their cell and owner.
///
/// Points that objects share have no owner: they are sampled together, and an object has the kept
/// points that its own map to. Those of dropped objects alone have no parent.
pub(super) fn merge(block: &VertexBlock, cell: &[f64], keep: u32, seed: u64) -> VertexMerge {
    let cells = Cells::new(block, cell, true);
    let keep = keep.max(1) as usize;
    let drawn = |vertex: u32| {
        // Adding 0.0 turns -0.0 into 0.0.
        let position = block
            .position(vertex as usize)
            .iter()
            .map(|at| (at + 0.0).to_bits());
        // The row of the owner changes when objects before it are removed, so it is left out. Levels
        // of points without objects were built with this last number.
        hash(seed, position.chain([NO_OBJECT.into()]))
    };
    let listed = (block.topology == Topology::SharedPoints).then(|| block.listed());
    let is_kept = |vertex: u32| {
        let listed = listed.as_ref();
        listed.is_none_or(|is_listed| is_listed[vertex as usize])
    };
    let numbered = cells.of.iter().zip(0..);
    let mut order: Vec<(u32, u64, u32)> = numbered
        .filter(|(_, vertex)| is_kept(*vertex))
        .map(|(cell, vertex)| (*cell, drawn(vertex), vertex))
        .collect();
    order.sort_unstable();
    let mut into = vec![NO_VERTEX; block.len()];
    let mut square = 0.0_f64;
    for members in order.chunk_by(|a, b| a.0 == b.0) {
        let (stay, dropped) = members.split_at(keep.min(members.len()));
        for (.., row) in stay {
            into[*row as usize] = *row;
        }
        if dropped.is_empty() {
            continue;
        }
        let nearest = Nearest::new(block, stay.iter().map(|(.., row)| *row).collect());
        for (.., row) in dropped {
            if let Some((found, kept)) = nearest.find(block.position(*row as usize)) {
                into[*row as usize] = kept;
                square = square.max(found);
            }
        }
    }
    VertexMerge::kept(block, into, Some(square.sqrt()))
}

/// Keeps the points sampled with the cell extent `cell` but not with `next`. Dropped points have
/// no parent.
pub(super) fn merge_without(
    block: &VertexBlock,
    cell: &[f64],
    next: &[f64],
    keep: u32,
    seed: u64,
) -> VertexMerge {
    let stay = |cell: &[f64]| merge(block, cell, keep, seed);
    let (own, next) = (stay(cell), stay(next));
    let mut into = vec![NO_VERTEX; block.len()];
    if let MergedPositions::Source(rows) = &own.positions {
        for row in rows {
            into[*row as usize] = *row;
        }
    }
    if let MergedPositions::Source(rows) = &next.positions {
        for row in rows {
            into[*row as usize] = NO_VERTEX;
        }
    }
    VertexMerge::kept(block, into, None)
}
