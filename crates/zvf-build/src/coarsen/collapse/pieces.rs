//! Removal of small connected pieces.

use super::super::{NO_VERTEX, VertexBlock};

/// Returns the vertices of connected pieces with fewer than `cull` faces and without pinned
/// vertices. A vertex without a face is not part of the surface and is always such a piece.
pub(super) fn too_small(block: &VertexBlock, cull: u32) -> Vec<bool> {
    let cull = cull.max(1);
    let mut pieces = Pieces::new(block.len());
    let faces = || block.links.chunks_exact(block.width.max(1));
    for face in faces().filter(|face| has_area(face)) {
        for end in &face[1..] {
            pieces.join(face[0], *end);
        }
    }
    // Number of faces of each piece; a pinned vertex counts as enough.
    let mut counts = vec![0u32; block.len()];
    for face in faces().filter(|face| has_area(face)) {
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

/// Returns whether all corners of a face differ; contraction drops other faces.
pub(super) fn has_area(face: &[u32]) -> bool {
    (1..face.len()).all(|at| !face[..at].contains(&face[at]))
}

/// Connected components of vertices.
struct Pieces(Vec<u32>);

impl Pieces {
    fn new(vertices: usize) -> Self {
        Self((0..vertices as u32).collect())
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
