//! Mesh under simplification: faces, and a list of faces around each vertex.

use super::super::{NO_VERTEX, VertexBlock};
use super::pieces::has_area;
use super::vector::Vector;

/// A link that leaves the block ends at the vertex.
pub(super) const PINNED: u8 = 1;
/// The surface is not a manifold at the vertex: more than two faces at an edge, inconsistent
/// orientations, or several fans.
pub(super) const NON_MANIFOLD: u8 = 2;
/// The vertex has an edge of one face.
pub(super) const BOUNDARY: u8 = 4;

pub(super) struct Mesh {
    /// Positions; the third coordinate of a flat mesh is 0.
    pub(super) at: Vec<Vector>,
    pub(super) flags: Vec<u8>,
    faces: Vec<[u32; 3]>,
    /// Linked lists of corners (three for each face) by vertex. Merging two vertices concatenates
    /// their lists; dead corners are unlinked during traversal.
    first: Vec<u32>,
    last: Vec<u32>,
    next: Vec<u32>,
}

impl Mesh {
    /// Collects the triangles of a block, without degenerate ones and those of `removed` vertices.
    pub(super) fn new(block: &VertexBlock, removed: &[bool]) -> Self {
        let at = block
            .positions
            .chunks_exact(block.axes)
            .map(|position| std::array::from_fn(|axis| position.get(axis).copied().unwrap_or(0.0)))
            .collect();
        let faces: Vec<[u32; 3]> = (block.links.as_chunks().0.iter())
            .filter(|face| has_area(*face) && !removed[face[0] as usize])
            .copied()
            .collect();
        let mut first = vec![NO_VERTEX; block.len()];
        let mut last = first.clone();
        let mut next = vec![NO_VERTEX; faces.len() * 3];
        for (corner, vertex) in faces.as_flattened().iter().enumerate().rev() {
            let vertex = *vertex as usize;
            next[corner] = first[vertex];
            first[vertex] = corner as u32;
            if last[vertex] == NO_VERTEX {
                last[vertex] = corner as u32;
            }
        }
        let flags = (0..block.len())
            .map(|vertex| if block.is_tied(vertex) { PINNED } else { 0 })
            .collect();
        Self {
            at,
            flags,
            faces,
            first,
            last,
            next,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.at.len()
    }

    /// Returns the corners of a face.
    pub(super) fn face(&self, face: u32) -> [u32; 3] {
        self.faces[face as usize]
    }

    /// Returns the corners of all faces that are left.
    pub(super) fn live_faces(&self) -> Vec<u32> {
        let faces = self.faces.iter().filter(|face| face[0] != NO_VERTEX);
        faces.flatten().copied().collect()
    }

    /// Returns the positions of the corners.
    pub(super) fn corners(&self, face: u32) -> [Vector; 3] {
        self.face(face).map(|vertex| self.at[vertex as usize])
    }

    pub(super) fn has(&self, vertex: u32, flag: u8) -> bool {
        self.flags[vertex as usize] & flag != 0
    }

    /// Returns whether a vertex neither moves nor vanishes: it is pinned, or the boundary of a surface
    /// that is not a manifold ends at it.
    pub(super) fn stays(&self, vertex: u32) -> bool {
        let flags = self.flags[vertex as usize];
        flags & PINNED != 0 || flags & (NON_MANIFOLD | BOUNDARY) == NON_MANIFOLD | BOUNDARY
    }

    /// Returns the faces around a vertex, in order of insertion.
    pub(super) fn star(&mut self, vertex: u32, into: &mut Vec<u32>) {
        into.clear();
        let vertex = vertex as usize;
        let (mut before, mut corner) = (NO_VERTEX, self.first[vertex]);
        while corner != NO_VERTEX {
            let after = self.next[corner as usize];
            if self.faces[corner as usize / 3][0] == NO_VERTEX {
                match before {
                    NO_VERTEX => self.first[vertex] = after,
                    _ => self.next[before as usize] = after,
                }
                if after == NO_VERTEX {
                    self.last[vertex] = before;
                }
            } else {
                into.push(corner / 3);
                before = corner;
            }
            corner = after;
        }
    }

    /// Replaces a vertex by another in these faces.
    pub(super) fn collapse(&mut self, vertex: u32, into: u32, faces: &[u32]) {
        for face in faces {
            let face = &mut self.faces[*face as usize];
            if face.contains(&into) {
                *face = [NO_VERTEX; 3];
            } else {
                *face = face.map(|corner| if corner == vertex { into } else { corner });
            }
        }
        let (vertex, into) = (vertex as usize, into as usize);
        if self.first[vertex] == NO_VERTEX {
            return;
        }
        match self.last[into] {
            NO_VERTEX => self.first[into] = self.first[vertex],
            last => self.next[last as usize] = self.first[vertex],
        }
        self.last[into] = self.last[vertex];
        self.first[vertex] = NO_VERTEX;
        self.last[vertex] = NO_VERTEX;
    }
}
