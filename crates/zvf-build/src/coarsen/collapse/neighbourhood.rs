//! Neighbourhood of an edge, and the test whether it can collapse without a change of topology.

use super::super::NO_VERTEX;
use super::mesh::{BOUNDARY, Mesh, NON_MANIFOLD, PINNED};
use super::vector::{Vector, distance, dot, normal, sub};

/// Upper bound on the valence of a vertex: higher ones make bad surfaces, and work grows with the
/// square.
const MAX_VALENCE: usize = 64;
/// Upper bound on the number of faces at an edge, which are more than vertices where faces coincide.
pub(super) const MAX_FACES: usize = 4 * MAX_VALENCE;
/// Cosine of the largest angle that a face may turn.
const MIN_TURN_COSINE: f64 = 0.2;
/// Lower bound on twice the area of a face over its longest squared edge, unless it was lower
/// before.
const MIN_THICKNESS: f64 = 1e-3;

/// Flags: adjacent to the first vertex, adjacent to the second.
const ADJACENT: [u8; 2] = [1, 2];

/// Candidate edge and its target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Collapse {
    /// Vertex that stays.
    pub(super) kept: u32,
    /// Vertex that is removed.
    pub(super) removed: u32,
    /// New position of the vertex that stays.
    pub(super) position: Vector,
    /// `true` if the vertex that stays moves.
    pub(super) moves: bool,
    pub(super) cost: f64,
}

/// Neighbourhood of an edge.
#[derive(Default)]
pub(super) struct Neighbourhood {
    /// Faces of the vertex that stays, including those of the edge.
    pub(super) kept: Vec<u32>,
    /// Faces of the removed vertex.
    pub(super) removed: Vec<u32>,
    /// Adjacent vertices with their flags.
    pub(super) ring: Vec<(u32, u8)>,
    /// For a boundary edge: the next boundary vertex beyond the removed one, and the vertex at
    /// which the edge between the two starts.
    pub(super) beyond: Option<[u32; 2]>,
    /// `true` if the faces around the edge form no surface, before the collapse or after it.
    pub(super) is_complex: bool,
    /// Generation and ring index of each vertex.
    seen: Vec<u32>,
    slot: Vec<u32>,
    time: u32,
}

impl Neighbourhood {
    pub(super) fn new(vertices: usize) -> Self {
        Self {
            seen: vec![0; vertices],
            slot: vec![0; vertices],
            ..Self::default()
        }
    }

    /// Returns the ring index of a member.
    pub(super) fn slot(&self, vertex: u32) -> usize {
        self.slot[vertex as usize] as usize
    }

    /// Collects the neighbourhood of an edge and returns whether a collapse keeps the topology. On a
    /// surface it does if only vertices of the faces at the edge are adjacent to both ends (the link
    /// condition), with the boundary treated as one vertex adjacent to all of it. Elsewhere, and to
    /// close loops shorter than `max_loop`, see [`keeps_connectivity`](Self::keeps_connectivity).
    pub(super) fn collect(&mut self, mesh: &mut Mesh, edge: &Collapse, max_loop: f64) -> bool {
        let mut kept = std::mem::take(&mut self.kept);
        let mut removed = std::mem::take(&mut self.removed);
        mesh.star(edge.kept, &mut kept);
        mesh.star(edge.removed, &mut removed);
        (self.kept, self.removed) = (kept, removed);
        self.time += 1;
        self.ring.clear();
        for (ends, adjacency) in [[edge.kept, edge.removed], [edge.removed, edge.kept]]
            .iter()
            .zip(ADJACENT)
        {
            let count = [self.kept.len(), self.removed.len()][usize::from(adjacency) - 1];
            for at in 0..count {
                let face = [&self.kept, &self.removed][usize::from(adjacency) - 1][at];
                for corner in mesh.face(face) {
                    if !ends.contains(&corner) {
                        self.put(corner, adjacency);
                    }
                }
            }
        }
        let between = (self.removed.iter())
            .filter(|face| mesh.face(**face).contains(&edge.kept))
            .count();
        let common = self
            .ring
            .iter()
            .filter(|(_, adjacency)| *adjacency == 3)
            .count();
        let has_end = |flag| {
            [edge.kept, edge.removed]
                .iter()
                .any(|end| mesh.has(*end, flag))
        };
        let is_linked = common == between && (1..=2).contains(&between);
        let is_boundary = mesh.has(edge.removed, BOUNDARY);
        // A boundary may end at a vertex that is on no manifold.
        self.is_complex = !is_linked || !is_boundary && has_end(NON_MANIFOLD);
        let faces = self.kept.len() + self.removed.len();
        if self.ring.len() > MAX_VALENCE || faces > MAX_FACES {
            return false;
        }
        if self.is_complex {
            if is_boundary {
                return false;
            }
            let max_loop = if has_end(BOUNDARY | PINNED) {
                0.0
            } else {
                max_loop
            };
            if !self.keeps_connectivity(mesh, edge, max_loop) {
                return false;
            }
        }
        // Faces outside the block may connect any two pinned vertices.
        let is_pinned = mesh.has(edge.kept, PINNED);
        let is_pinned_neighbour =
            |(vertex, adjacency): &(u32, u8)| *adjacency == 2 && mesh.has(*vertex, PINNED);
        if is_pinned && self.ring.iter().any(is_pinned_neighbour) {
            return false;
        }
        self.beyond = None;
        if self.is_complex {
            return true;
        }
        // Removing an interior vertex keeps all its faces but two, removing a boundary vertex all
        // but one.
        if is_boundary != (between == 1) {
            return false;
        }
        if is_boundary {
            self.beyond = Some(self.next_on_boundary(mesh, edge));
        }
        // The last remaining face must not be the reverse of another, and a piece must not vanish
        // entirely.
        match self.removed.len() - between {
            0 => self.faces_at_common(mesh) >= 2,
            1 if between == 2 => self.faces_at_common(mesh) == 0,
            _ => true,
        }
    }

    /// Returns whether a collapse preserves the pieces, tunnels and cavities of faces that may form no
    /// surface, except for loops of three edges shorter than `max_loop`, which become an edge or a
    /// double face. It does if the vertices and edges opposite to both ends are those opposite to the
    /// edge (the link condition for complexes of any form), which has no edge opposite to it. Pieces stay
    /// connected in any case.
    fn keeps_connectivity(&self, mesh: &Mesh, edge: &Collapse, max_loop: f64) -> bool {
        let is_short = |[a, b]: [u32; 2]| {
            let [a, b, c] = [a, b, edge.kept].map(|corner| mesh.at[corner as usize]);
            distance(a, b) + distance(b, c) + distance(c, a) < max_loop
        };
        let is_common = |vertex: &u32| {
            let ends = [edge.kept, edge.removed];
            !ends.contains(vertex) && self.ring[self.slot(*vertex)].1 == 3
        };
        let is_at_edge = |face: &u32| mesh.face(*face).contains(&edge.kept);
        let at_edge = || self.removed.iter().filter(|face| is_at_edge(face));
        let is_opposite = |vertex| at_edge().any(|face| mesh.face(*face).contains(&vertex));
        let mut common = self.ring.iter().filter(|(_, adjacency)| *adjacency == 3);
        let across = |face: &u32| {
            let mut corners = mesh.face(*face).into_iter().filter(is_common);
            let (a, b) = (corners.next()?, corners.next()?);
            Some([a.min(b), a.max(b)])
        };
        let opposite: Vec<[u32; 2]> = self.kept.iter().filter_map(across).collect();
        let mut both = self.removed.iter().filter_map(across);
        at_edge().count() < self.kept.len()
            && at_edge().next().is_some()
            && common.all(|(vertex, _)| is_opposite(*vertex) || is_short([*vertex, edge.removed]))
            && both.all(|edge| !opposite.contains(&edge) || is_short(edge))
    }

    /// Counts faces of the vertex that stays whose corners are adjacent to both.
    fn faces_at_common(&self, mesh: &Mesh) -> usize {
        let is_at = |face: &&u32| {
            let corners = mesh.face(**face);
            let mut common = self.ring.iter().filter(|(_, adjacency)| *adjacency == 3);
            common.all(|(vertex, _)| corners.contains(vertex))
        };
        self.kept.iter().filter(is_at).count()
    }

    fn put(&mut self, vertex: u32, adjacency: u8) {
        let at = vertex as usize;
        if self.seen[at] == self.time {
            self.ring[self.slot[at] as usize].1 |= adjacency;
        } else {
            self.seen[at] = self.time;
            self.slot[at] = self.ring.len() as u32;
            self.ring.push((vertex, adjacency));
        }
    }

    /// Returns the next boundary vertex beyond the removed one, and the start of the edge between
    /// them.
    fn next_on_boundary(&self, mesh: &Mesh, edge: &Collapse) -> [u32; 2] {
        // Interior edges occur twice and cancel out.
        let mut beyond = edge.kept;
        for corner in self.removed.iter().flat_map(|face| mesh.face(*face)) {
            if corner != edge.removed {
                beyond ^= corner;
            }
        }
        let mut starts = self.removed.iter().filter_map(|face| {
            let corners = mesh.face(*face);
            let at = corners.iter().position(|corner| *corner == beyond)?;
            let is_start = corners[(at + 1) % 3] == edge.removed;
            Some(if is_start { beyond } else { edge.removed })
        });
        let start = starts.next().unwrap_or(NO_VERTEX);
        [beyond, start]
    }

    /// Returns the faces that change or vanish: those of the removed vertex and, if the other
    /// moves, its own.
    pub(super) fn touched(&self, mesh: &Mesh, edge: &Collapse) -> impl Iterator<Item = u32> {
        let is_other = |face: &&u32| !mesh.face(**face).contains(&edge.removed);
        let kept = if edge.moves { &self.kept[..] } else { &[] };
        (kept.iter().filter(is_other)).chain(&self.removed).copied()
    }

    /// Returns the current corners of changing faces, and the index of the moving corner.
    pub(super) fn changed(
        &self,
        mesh: &Mesh,
        edge: &Collapse,
    ) -> impl Iterator<Item = ([u32; 3], usize)> {
        self.touched(mesh, edge).filter_map(|face| {
            let corners = mesh.face(face);
            let mut ends = (0..3).filter(|at| [edge.kept, edge.removed].contains(&corners[*at]));
            let end = ends.next()?;
            ends.next().is_none().then_some((corners, end))
        })
    }

    /// Returns whether no face flips or becomes a needle.
    pub(super) fn keeps_faces(&self, mesh: &Mesh, edge: &Collapse) -> bool {
        self.changed(mesh, edge).all(|(corners, at)| {
            let before = corners.map(|corner| mesh.at[corner as usize]);
            let mut after = before;
            after[at] = edge.position;
            let (old, new) = (normal(before), normal(after));
            let (old_square, new_square) = (dot(old, old), dot(new, new));
            let thickness = thickness(after, new_square);
            let is_thin = thickness < MIN_THICKNESS * MIN_THICKNESS
                && thickness < super::neighbourhood::thickness(before, old_square);
            let turn = dot(old, new);
            // A degenerate face has no orientation.
            let is_turned = !(turn > 0.0
                && turn * turn >= MIN_TURN_COSINE * MIN_TURN_COSINE * old_square * new_square);
            new_square > 0.0 && !is_thin && (!is_turned || old_square == 0.0)
        })
    }
}

fn thickness(corners: [Vector; 3], square: f64) -> f64 {
    let longest = (0..3)
        .map(|at| sub(corners[at], corners[(at + 1) % 3]))
        .map(|edge| dot(edge, edge))
        .fold(0.0, f64::max);
    square / (longest * longest).max(f64::MIN_POSITIVE)
}
