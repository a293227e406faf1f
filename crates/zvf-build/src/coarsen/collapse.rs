//! Mesh simplification by edge collapse, least change of shape first.
//!
//! The cost of an edge is the quadric error of Garland and Heckbert, and its vertex moves to the
//! minimum of that error. Meshes of triangles in three axes, or two for flat ones, are supported.
//! Other blocks keep all vertices of faces except those culled: contraction drops a face of four ends that
//! lost one, which would leave holes.
//!
//! # Invariants
//!
//! * Topology: a collapse that joins separate parts or closes a hole is not made. Closed surfaces
//!   stay closed, boundaries stay boundaries. Only loops shorter than a target length may close, by
//!   which tunnels and tubes that are thinner than the faces of the level become edges or double
//!   faces; their ends stay connected. Meshes of segmentations have a hundred such tunnels, each of
//!   which would keep its faces on every level.
//! * Boundary vertices do not move. They merge into the next vertex of the boundary.
//! * Vertices that are tied, or on a boundary that is no manifold, neither move nor vanish. Others
//!   may merge into them.
//! * Where faces form no manifold (three faces at an edge, faces of both orientations, several
//!   fans), collapses preserve pieces, tunnels and cavities instead.
//! * Vertices of different objects do not merge.
//! * Vertices stay inside the extent of the block's vertices, hence inside the bounds of the store.
//! * No face flips. Faces that were far from each other may still intersect.
//!
//! Connected pieces whose diagonal is below a target length are dropped, except for the largest of
//! each object and those with tied vertices.
//!
//! # Termination
//!
//! The goal is a share of the vertices that have a face, are not dropped, and may vanish; it is
//! rounded up. Collapses end at the goal, or when none is legal and within the
//! limits.
//!
//! # Limits
//!
//! A uniform mesh that keeps a share of its vertices has edges longer by the square root of its
//! inverse: the target length. No collapse makes an edge longer than [`MAX_EDGE_RATIO`] target
//! lengths and than the longest edge before. Without a tolerance, the surface moves by at most
//! [`MAX_MOVE_RATIO`] target lengths. Otherwise, where few collapses are legal, long faces span the
//! folds of a surface, and thin branches vanish.
//!
//! # The error
//!
//! [`VertexMerge::error`] covers both directions. The distance of the old surface from the new one
//! is bounded twice, and the smaller bound counts: radii grow with each collapse (see `tolerance`)
//! and decide about the tolerance; at the end, the distances of old vertices are measured. The
//! distance of the new surface from the old one is measured on a grid as fine as the old edges.
//! Boundaries are bounded by their distance from the new boundary. Dropped pieces are not included.

mod mesh;
mod neighbourhood;
mod pieces;
mod quadric;
mod survey;
mod tolerance;
mod vector;

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{
    MergedPositions, NO_VERTEX, VertexBlock, VertexMerge,
    measure::{Simplices, two_sided_bound},
};
use mesh::{BOUNDARY, Mesh};
use neighbourhood::{Collapse, Neighbourhood};
use quadric::Quadric;
use survey::Survey;
use tolerance::View;
use vector::{Vector, add, distance, dot, scale, sub};

/// Maximum length of new edges, in target lengths.
const MAX_EDGE_RATIO: f64 = 2.0;
/// Maximum distance that the surface moves, in target lengths. Target lengths double from level to
/// level, so that the distance from level 0 stays below one.
const MAX_MOVE_RATIO: f64 = 0.5;

/// Collapses edges until this fraction of the removable vertices is left, or the surface would move
/// beyond the tolerance. First drops vertices without a face, and pieces of fewer than `cull` faces
/// without a pinned vertex.
pub(super) fn merge(block: &VertexBlock, keep: f64, tolerance: f64, cull: u32) -> VertexMerge {
    let mut removed = pieces::too_few(block, cull);
    if block.width != 3 || !(2..=3).contains(&block.axes) {
        let into = (0..)
            .zip(&removed)
            .map(|(row, removed)| if *removed { NO_VERTEX } else { row });
        let merge = VertexMerge::kept(block, into.collect(), Some(0.0));
        let MergedPositions::Source(rows) = &merge.positions else {
            return merge;
        };
        let positions = rows.iter().flat_map(|row| block.position(*row as usize));
        // Values are aggregated as those of collapsed edges.
        let positions = MergedPositions::Computed(positions.copied().collect());
        return VertexMerge {
            positions,
            dropped_pieces: pieces::count(block, &removed),
            ..merge
        };
    }
    let mut mesh = Mesh::new(block, &removed);
    let mut survey = survey::survey(&mut mesh);
    let keep = keep.clamp(0.0, 1.0);
    let edge_lengths = EdgeLengths::of(&mesh, &survey.edges);
    // Infinite if no share to keep is given: the tolerance alone decides.
    let target = edge_lengths.mean / keep.sqrt();
    let tolerance = match tolerance {
        f64::INFINITY if edge_lengths.mean > 0.0 => target * MAX_MOVE_RATIO,
        tolerance => tolerance,
    };
    let smallest = if target.is_finite() { target } else { 0.0 };
    let dropped = pieces::add_too_small(block, smallest.min(tolerance * 2.0), &mut removed);
    if !dropped.is_empty() {
        mesh = Mesh::new(block, &removed);
        survey = survey::survey(&mut mesh);
    }
    let Survey {
        quadrics,
        edges,
        free,
    } = survey;
    let goal = (f64::from(free) * keep).ceil() as u32;
    let (lower, upper) = extent(&mesh.at, &removed);
    let mut run = Run {
        block,
        is_single: (block.positions.iter())
            .all(|number| f64::from(*number as f32).to_bits() == number.to_bits()),
        lower,
        upper,
        max_edge: edge_lengths.max.max(target * MAX_EDGE_RATIO),
        max_loop: if target.is_finite() { target } else { 0.0 },
        neighbourhood: Neighbourhood::new(mesh.len()),
        into: (0..mesh.len() as u32).collect(),
        versions: vec![0; mesh.len()],
        radii: vec![0.0; mesh.len()],
        boundary_errors: vec![0.0; mesh.len()],
        view: View::default(),
        quadrics,
        mesh,
    };
    run.collapse(&edges, free - goal, tolerance);
    let largest = |all: &[f64]| all.iter().copied().fold(0.0, f64::max);
    let mut error = largest(&run.radii);
    if error > 0.0 {
        let old = Mesh::new(block, &removed);
        error = measured(&old, &run.mesh, block.axes, edge_lengths.mean, error);
    }
    let error = error.max(largest(&run.boundary_errors));
    let positions = run.mesh.at;
    let mut merge = finish(block.axes, &removed, run.into, &positions, error);
    merge.dropped_pieces = pieces::count(block, &removed);
    // All vertices of a piece become one, so that its faces vanish, and every vertex of a face has a
    // coarser vertex.
    for (vertex, into) in dropped {
        let parent = merge.parent.get(into as usize).copied();
        merge.parent[vertex as usize] = parent.unwrap_or(NO_VERTEX);
    }
    merge
}

/// Returns the two-sided distance of two surfaces: the smaller of `bound` and the measured bound
/// for the old one, and the measured distance for the new one.
fn measured(old: &Mesh, new: &Mesh, axes: usize, spacing: f64, bound: f64) -> f64 {
    let positions = [old, new].map(|mesh| {
        let positions = mesh.at.iter().flat_map(|at| &at[..axes]);
        positions.copied().collect::<Vec<f64>>()
    });
    let links = [old, new].map(Mesh::live_faces);
    let shape = |at: usize| Simplices {
        axes,
        positions: &positions[at],
        width: 3,
        links: &links[at],
    };
    two_sided_bound(&shape(0), &shape(1), spacing, bound)
}

/// Lengths of the edges of a mesh.
struct EdgeLengths {
    /// Root mean square.
    mean: f64,
    max: f64,
}

impl EdgeLengths {
    fn of(mesh: &Mesh, edges: &[[u32; 2]]) -> Self {
        let square = |[a, b]: &[u32; 2]| {
            let way = sub(mesh.at[*b as usize], mesh.at[*a as usize]);
            dot(way, way)
        };
        let squares = edges.iter().map(square).filter(|square| square.is_finite());
        let (mut sum, mut count, mut max) = (0.0, 0.0, 0.0f64);
        for square in squares {
            (sum, count, max) = (sum + square, count + 1.0, max.max(square));
        }
        Self {
            mean: (sum / f64::max(count, 1.0)).sqrt(),
            max: max.sqrt(),
        }
    }
}

/// Returns the lower and upper corner of the remaining vertices.
fn extent(positions: &[Vector], removed: &[bool]) -> (Vector, Vector) {
    let positions = positions
        .iter()
        .zip(removed)
        .filter(|(_, removed)| !**removed);
    let mut corners = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for (position, _) in positions {
        for (axis, number) in position.iter().enumerate() {
            corners.0[axis] = corners.0[axis].min(*number);
            corners.1[axis] = corners.1[axis].max(*number);
        }
    }
    corners
}

/// Numbers the remaining vertices.
fn finish(
    axes: usize,
    removed: &[bool],
    mut into: Vec<u32>,
    vertices: &[Vector],
    error: f64,
) -> VertexMerge {
    let mut positions = Vec::new();
    let mut numbers = vec![NO_VERTEX; into.len()];
    let mut count = 0;
    for vertex in 0..into.len() {
        if into[vertex] != vertex as u32 || removed[vertex] {
            continue;
        }
        numbers[vertex] = count;
        count += 1;
        positions.extend_from_slice(&vertices[vertex][..axes]);
    }
    let parent = (0..into.len())
        .map(|vertex| {
            let mut root = vertex;
            while into[root] != root as u32 {
                let up = into[into[root] as usize];
                into[root] = up;
                root = up as usize;
            }
            numbers[root]
        })
        .collect();
    VertexMerge {
        parent,
        positions: MergedPositions::Computed(positions),
        error: Some(error),
        dropped_pieces: 0,
    }
}

/// Mesh during simplification.
struct Run<'a> {
    block: &'a VertexBlock,
    /// `true` if all coordinates are 32-bit floats: new ones are too then, so that nothing is rounded
    /// after the error bound was computed.
    is_single: bool,
    /// Extent of the vertices, both corners inclusive.
    lower: Vector,
    upper: Vector,
    /// Maximum length of new edges.
    max_edge: f64,
    /// Length below which loops may close.
    max_loop: f64,
    mesh: Mesh,
    quadrics: Vec<Quadric>,
    /// Vertex that each vertex was merged into.
    into: Vec<u32>,
    /// Number of changes around each vertex.
    versions: Vec<u32>,
    /// Radius of the tolerance volume at each vertex: see `tolerance`.
    radii: Vec<f64>,
    /// Radius for the boundary, by the vertex at which a boundary edge starts.
    boundary_errors: Vec<f64>,
    neighbourhood: Neighbourhood,
    view: View,
}

impl Run<'_> {
    fn collapse(&mut self, edges: &[[u32; 2]], mut excess: u32, tolerance: f64) {
        let first: Vec<_> = (edges.iter())
            .filter_map(|[a, b]| Some(Reverse(self.entry(*a, *b)?)))
            .collect();
        let mut queue = BinaryHeap::from(first);
        let mut changed = Vec::new();
        while excess > 0 {
            let Some(Reverse(entry)) = queue.pop() else {
                return;
            };
            let [a, b, version] = [64, 32, 0].map(|shift| (entry >> shift) as u32);
            if version != self.version(a, b) {
                continue;
            }
            let Some(edge) = self.propose(a, b) else {
                continue;
            };
            if !self.apply(&edge, tolerance) {
                continue;
            }
            excess -= 1;
            changed.clear();
            changed.extend(self.neighbourhood.ring.iter().map(|(vertex, _)| *vertex));
            for other in &changed {
                queue.extend(self.entry(edge.kept, *other).map(Reverse));
            }
        }
    }

    /// Edge in the queue: its cost, its ends and their versions. Costs are compared by their upper
    /// half, to one part in a million.
    fn entry(&self, a: u32, b: u32) -> Option<u128> {
        let edge = self.propose(a, b)?;
        let cost = edge.cost.to_bits() >> 32;
        let (a, b) = (a.min(b), a.max(b));
        Some(
            u128::from(cost) << 96
                | u128::from(a) << 64
                | u128::from(b) << 32
                | u128::from(self.version(a, b)),
        )
    }

    fn version(&self, a: u32, b: u32) -> u32 {
        self.versions[a as usize].wrapping_add(self.versions[b as usize])
    }

    /// Proposed collapse of an edge, before its neighbourhood is examined.
    fn propose(&self, a: u32, b: u32) -> Option<Collapse> {
        let [at_a, at_b] = [a, b].map(|end| self.mesh.at[end as usize]);
        if self.block.owner(a as usize) != self.block.owner(b as usize) {
            return None;
        }
        let [of_a, of_b] = [a, b].map(|end| &self.quadrics[end as usize]);
        let cost = |position| of_a.cost(sub(position, at_a)) + of_b.cost(sub(position, at_b));
        let stays = |vertex| self.mesh.stays(vertex);
        let is_boundary = |vertex| self.mesh.has(vertex, BOUNDARY);
        let (kept, removed, position) = match (stays(a), stays(b)) {
            (true, true) => return None,
            (true, false) => (a, b, at_a),
            (false, true) => (b, a, at_b),
            (false, false) => match (is_boundary(a), is_boundary(b)) {
                (true, true) if cost(at_b) < cost(at_a) => (b, a, at_b),
                (true, _) => (a, b, at_a),
                (false, true) => (b, a, at_b),
                (false, false) => (a.min(b), a.max(b), self.best(at_a, at_b, [of_a, of_b])),
            },
        };
        Some(Collapse {
            kept,
            removed,
            position,
            moves: distance(position, self.mesh.at[kept as usize]) > 0.0,
            cost: cost(position),
        })
        .filter(|edge| edge.cost.is_finite())
    }

    /// Returns the position of least cost: anywhere near in the chunk and the extent of the vertices,
    /// else an end or the midpoint.
    fn best(&self, at_a: Vector, at_b: Vector, [of_a, of_b]: [&Quadric; 2]) -> Vector {
        let way = sub(at_b, at_a);
        let sum = of_a.sum(&of_b.translated(scale(way, -1.0)));
        let middle = scale(way, 0.5);
        let near = |min: &Vector| {
            let off = sub(*min, middle);
            dot(off, off) <= dot(way, way) * 4.0
        };
        let min = sum.least().filter(near);
        let min = min.map(|min| self.round(add(at_a, min)));
        let moved_in = min.map(|position| self.moved_in(position));
        let is_inside = |position: &Vector| self.is_inside(*position);
        match (min, moved_in.filter(is_inside)) {
            (Some(min), Some(position)) if distance(min, position) == 0.0 => return position,
            _ => {}
        }
        let middle = self.round(add(at_a, middle));
        let others = [moved_in, Some(middle)].into_iter().flatten();
        [at_a, at_b]
            .into_iter()
            .chain(others.filter(is_inside))
            .min_by(|a, b| {
                let [a, b] = [a, b].map(|position| sum.cost(sub(*position, at_a)));
                a.total_cmp(&b)
            })
            .unwrap_or(at_a)
    }

    /// Moves a position to the nearest one in the extent of the vertices.
    fn moved_in(&self, position: Vector) -> Vector {
        std::array::from_fn(|axis| {
            let number = position[axis].max(self.lower[axis]);
            number.min(self.upper[axis])
        })
    }

    fn round(&self, position: Vector) -> Vector {
        if self.is_single {
            position.map(|number| f64::from(number as f32))
        } else {
            position
        }
    }

    /// Returns whether a position is in the chunk, also as 32-bit floats.
    fn is_inside(&self, position: Vector) -> bool {
        let bounds = self.block.lower.iter().zip(&self.block.upper);
        position.iter().zip(bounds).all(|(number, (lower, upper))| {
            [*number, f64::from(*number as f32)]
                .iter()
                .all(|number| lower <= number && number < upper)
        })
    }

    /// Performs a collapse if it is legal and within the tolerance.
    fn apply(&mut self, edge: &Collapse, tolerance: f64) -> bool {
        let (mesh, neighbourhood) = (&mut self.mesh, &mut self.neighbourhood);
        if !neighbourhood.collect(mesh, edge, self.max_loop)
            || !neighbourhood.keeps_faces(mesh, edge)
        {
            return false;
        }
        let is_long = |(vertex, _): &(u32, u8)| {
            distance(mesh.at[*vertex as usize], edge.position) > self.max_edge
        };
        if neighbourhood.ring.iter().any(is_long) {
            return false;
        }
        let [kept, removed] = [edge.kept, edge.removed].map(|end| end as usize);
        let boundary = neighbourhood.beyond.map(|[beyond, start]| {
            // The boundary edges that start at the removed vertex and at its predecessor merge into
            // one that starts at the predecessor.
            let start = if start == beyond {
                beyond as usize
            } else {
                kept
            };
            let ends = [beyond as usize, kept].map(|end| mesh.at[end]);
            let before = self.boundary_errors[start].max(self.boundary_errors[removed]);
            (start, before + from_segment(mesh.at[removed], ends))
        });
        let is_within = |length: f64| length <= tolerance;
        if boundary.is_some_and(|(_, error)| !is_within(error)) {
            return false;
        }
        let radius = if neighbourhood.is_complex {
            self.view.raised.clear();
            tolerance::moved(mesh, edge, &self.radii)
        } else {
            self.view.radius(mesh, neighbourhood, edge, &self.radii)
        };
        let raised = self.view.raised.iter().map(|(_, radius)| *radius);
        if !is_within(raised.fold(radius, f64::max)) {
            return false;
        }
        for (vertex, radius) in &self.view.raised {
            self.radii[*vertex as usize] = *radius;
        }
        if let Some((start, error)) = boundary {
            self.boundary_errors[start] = error;
        }
        let quadrics = [kept, removed].map(|end| {
            let way = sub(edge.position, mesh.at[end]);
            self.quadrics[end].translated(way)
        });
        mesh.collapse(edge.removed, edge.kept, &neighbourhood.removed);
        mesh.at[kept] = edge.position;
        if neighbourhood.is_complex {
            survey::update(mesh, edge.kept);
            for (vertex, _) in &neighbourhood.ring {
                survey::update(mesh, *vertex);
            }
        }
        self.quadrics[kept] = quadrics[0].sum(&quadrics[1]);
        self.radii[kept] = radius;
        self.radii[removed] = 0.0;
        self.boundary_errors[removed] = 0.0;
        self.into[removed] = edge.kept;
        for end in [kept, removed] {
            self.versions[end] = self.versions[end].wrapping_add(1);
        }
        true
    }
}

/// Returns the distance of a point from a segment.
fn from_segment(position: Vector, [from, to]: [Vector; 2]) -> f64 {
    let (way, off) = (sub(to, from), sub(position, from));
    let along = (dot(off, way) / dot(way, way).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
    distance(off, scale(way, along))
}
