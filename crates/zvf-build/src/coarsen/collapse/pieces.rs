//! Removal of small connected pieces.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
};

use super::super::{NO_VERTEX, VertexBlock, nearest::Nearest};
use super::vector::Vector;

/// Returns the vertices of connected pieces with fewer than `cull` faces and without pinned
/// vertices. A vertex without a face is not part of the surface and is always such a piece.
pub(super) fn too_few(block: &VertexBlock, cull: u32) -> Vec<bool> {
    let cull = cull.max(1);
    let mut pieces = Pieces::of(block);
    // Number of faces of each piece; a pinned vertex counts as enough.
    let mut counts = vec![0u32; block.len()];
    for face in faces(block) {
        let count = &mut counts[pieces.find(face[0]) as usize];
        *count = count.saturating_add(1);
    }
    for vertex in 0..block.len() {
        if block.is_tied(vertex) {
            counts[pieces.find(vertex as u32) as usize] = NO_VERTEX;
        }
    }
    (0..block.len() as u32)
        .map(|vertex| counts[pieces.find(vertex) as usize] < cull)
        .collect()
}

/// Adds the vertices of pieces whose diagonal is below `extent` to `removed`. Pieces with pinned
/// vertices stay, and so does the largest piece of each object, so that no object vanishes. Returns
/// these vertices, each with a vertex of its object that stays: one for a piece, the nearest.
pub(super) fn add_too_small(
    block: &VertexBlock,
    extent: f64,
    removed: &mut [bool],
) -> Vec<(u32, u32)> {
    let mut pieces = Pieces::of(block);
    let mut boxes: HashMap<u32, Option<[Vector; 2]>> = HashMap::new();
    for vertex in (0..block.len()).filter(|vertex| !removed[*vertex]) {
        let of_piece = boxes.entry(pieces.find(vertex as u32));
        let corners = of_piece.or_insert(Some([[f64::INFINITY; 3], [f64::NEG_INFINITY; 3]]));
        if block.is_tied(vertex) {
            *corners = None;
        }
        if let Some([lower, upper]) = corners {
            for (axis, number) in block.position(vertex).iter().enumerate() {
                lower[axis] = lower[axis].min(*number);
                upper[axis] = upper[axis].max(*number);
            }
        }
    }
    let diagonal = |[lower, upper]: [Vector; 2]| {
        let sides = (0..block.axes).map(|axis| (upper[axis] - lower[axis]).powi(2));
        sides.sum::<f64>().sqrt()
    };
    let diagonals: HashMap<u32, f64> = (boxes.into_iter())
        .map(|(piece, corners)| (piece, corners.map_or(f64::INFINITY, diagonal)))
        .collect();
    // Largest piece of each object; of equal ones the first.
    let mut largest: HashMap<u32, (f64, Reverse<u32>)> = HashMap::new();
    for (piece, diagonal) in &diagonals {
        let own = (*diagonal, Reverse(*piece));
        let other = largest.entry(block.owner(*piece as usize)).or_insert(own);
        if own.0.total_cmp(&other.0).then(own.1.cmp(&other.1)).is_gt() {
            *other = own;
        }
    }
    let mut dropped: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (vertex, removed) in (0..).zip(removed.iter_mut()) {
        let piece = pieces.find(vertex);
        let is_largest = (largest.get(&block.owner(piece as usize)))
            .is_some_and(|(_, Reverse(largest))| *largest == piece);
        if !is_largest && diagonals.get(&piece).is_some_and(|own| *own < extent) {
            *removed = true;
            dropped.entry(piece).or_default().push(vertex);
        }
    }
    let mut staying: HashMap<u32, Vec<u32>> = HashMap::new();
    for piece in dropped.keys() {
        staying.entry(block.owner(*piece as usize)).or_default();
    }
    for vertex in (0..block.len()).filter(|vertex| !removed[*vertex]) {
        if let Some(rows) = staying.get_mut(&block.owner(vertex)) {
            rows.push(vertex as u32);
        }
    }
    let nearest: HashMap<u32, Nearest<'_>> = (staying.into_iter())
        .map(|(owner, rows)| (owner, Nearest::new(block, rows)))
        .collect();
    let pairs = dropped.into_iter().flat_map(|(piece, vertices)| {
        let of_object = nearest.get(&block.owner(piece as usize));
        let found = of_object.and_then(|rows| rows.find(block.position(piece as usize)));
        let into = found.map_or(NO_VERTEX, |(_, row)| row);
        vertices.into_iter().map(move |vertex| (vertex, into))
    });
    pairs.collect()
}

/// Counts the pieces with faces whose vertices are removed.
pub(super) fn count(block: &VertexBlock, removed: &[bool]) -> u64 {
    let mut pieces = Pieces::of(block);
    let of_face = |face: &[u32]| removed[face[0] as usize].then(|| pieces.find(face[0]));
    faces(block)
        .filter_map(of_face)
        .collect::<HashSet<u32>>()
        .len() as u64
}

/// Returns the faces with an area.
fn faces(block: &VertexBlock) -> impl Iterator<Item = &[u32]> {
    let faces = block.links.chunks_exact(block.width.max(1));
    faces.filter(|face| has_area(face))
}

/// Returns whether all corners of a face differ; contraction drops other faces.
pub(super) fn has_area(face: &[u32]) -> bool {
    (1..face.len()).all(|at| !face[..at].contains(&face[at]))
}

/// Connected components of vertices.
struct Pieces(Vec<u32>);

impl Pieces {
    /// Joins the corners of each face of a block.
    fn of(block: &VertexBlock) -> Self {
        let mut pieces = Self((0..block.len() as u32).collect());
        for face in faces(block) {
            for end in &face[1..] {
                pieces.join(face[0], *end);
            }
        }
        pieces
    }

    fn find(&mut self, mut vertex: u32) -> u32 {
        while self.0[vertex as usize] != vertex {
            let up = self.0[self.0[vertex as usize] as usize];
            self.0[vertex as usize] = up;
            vertex = up;
        }
        vertex
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b) as usize] = a.min(b);
    }
}
