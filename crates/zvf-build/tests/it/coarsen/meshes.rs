//! Test meshes, and mesh properties computed by brute force.

use std::collections::BTreeMap;

use zvf_build::coarsen::{
    MergedPositions, NO_VERTEX, Topology, VertexBlock, VertexMerge, contract_links,
};
use zvf_testkit::stores::Random;

/// Triangle mesh.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mesh {
    pub(crate) at: Vec<[f64; 3]>,
    pub(crate) faces: Vec<[u32; 3]>,
}

/// Returns a number from -1 to 1.
pub(crate) fn sign(random: &mut Random) -> f64 {
    (random.any() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Returns a grid of squares of two triangles each over the unit square, at `height`.
pub(crate) fn sheet(n: u32, height: impl Fn(f64, f64) -> f64) -> Mesh {
    let mut mesh = Mesh::default();
    for y in 0..=n {
        for x in 0..=n {
            let (x, y) = (f64::from(x) / f64::from(n), f64::from(y) / f64::from(n));
            mesh.at.push([x, y, height(x, y)]);
        }
    }
    for y in 0..n {
        for x in 0..n {
            let at = y * (n + 1) + x;
            mesh.faces.push([at, at + 1, at + n + 2]);
            mesh.faces.push([at, at + n + 2, at + n + 1]);
        }
    }
    mesh
}

/// Removes the faces with their centre in one of these circles.
pub(crate) fn with_holes(mut mesh: Mesh, holes: &[[f64; 3]]) -> Mesh {
    let at = mesh.at.clone();
    mesh.faces.retain(|face| {
        let middle = |axis: usize| face.iter().map(|end| at[*end as usize][axis] / 3.0).sum();
        let (x, y): (f64, f64) = (middle(0), middle(1));
        (holes.iter()).all(|[u, v, radius]| (x - u).hypot(y - v) > *radius)
    });
    // Vertices without a face are no part of the surface.
    let mut rows = BTreeMap::new();
    for corner in mesh.faces.as_flattened_mut() {
        let next = rows.len() as u32;
        *corner = *rows.entry(*corner).or_insert(next);
    }
    let mut kept = vec![[0.0; 3]; rows.len()];
    for (row, new) in rows {
        kept[new as usize] = at[row as usize];
    }
    mesh.at = kept;
    mesh
}

/// Returns a torus around the z axis.
pub(crate) fn torus(around: u32, across: u32, thick: f64) -> Mesh {
    let mut mesh = Mesh::default();
    let turn = |at: u32, of: u32| f64::from(at) / f64::from(of) * std::f64::consts::TAU;
    for u in 0..around {
        for v in 0..across {
            let (u, v) = (turn(u, around), turn(v, across));
            let out = 1.0 + thick * v.cos();
            mesh.at
                .push([out * u.cos(), out * u.sin(), thick * v.sin()]);
        }
    }
    for u in 0..around {
        for v in 0..across {
            let at = |u: u32, v: u32| (u % around) * across + v % across;
            let [a, b, c, d] = [at(u, v), at(u + 1, v), at(u + 1, v + 1), at(u, v + 1)];
            mesh.faces.extend([[a, b, c], [a, c, d]]);
        }
    }
    mesh
}

/// Returns a unit sphere: an octahedron with repeatedly subdivided faces.
pub(crate) fn sphere(cuts: u32) -> Mesh {
    let mut mesh = Mesh::default();
    for axis in 0..3 {
        for sign in [1.0, -1.0] {
            let mut at = [0.0; 3];
            at[axis] = sign;
            mesh.at.push(at);
        }
    }
    for [x, y, z] in [[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4]] {
        mesh.faces.extend([[x, y, z], [y, x, 5]]);
    }
    for _ in 0..cuts {
        let mut middles = BTreeMap::new();
        let mut faces = Vec::new();
        for [a, b, c] in std::mem::take(&mut mesh.faces) {
            let mut middle = |a: u32, b: u32| {
                *middles.entry([a.min(b), a.max(b)]).or_insert_with(|| {
                    let [p, q] = [a, b].map(|end| mesh.at[end as usize]);
                    let sum: [f64; 3] = std::array::from_fn(|axis| p[axis] + q[axis]);
                    let length = dot(sum, sum).sqrt();
                    mesh.at.push(sum.map(|number| number / length));
                    mesh.at.len() as u32 - 1
                })
            };
            let [ab, bc, ca] = [middle(a, b), middle(b, c), middle(c, a)];
            faces.extend([[a, ab, ca], [ab, b, bc], [ca, bc, c], [ab, bc, ca]]);
        }
        mesh.faces = faces;
    }
    mesh
}

/// Moves vertices at random, and flips edges where the result is a surface.
pub(crate) fn shaken(mut mesh: Mesh, by: f64, turns: usize, seed: u64) -> Mesh {
    let mut random = Random::new(seed);
    for number in mesh.at.as_flattened_mut() {
        *number += sign(&mut random) * by;
    }
    for _ in 0..turns {
        let first = random.below(mesh.faces.len());
        let mut face = mesh.faces[first];
        face.rotate_left(random.below(3));
        let [a, b, c] = face;
        let other = (mesh.faces.iter()).position(|face| has_edge(*face, b, a));
        let Some(second) = other else { continue };
        let mut apex = mesh.faces[second].into_iter();
        let Some(d) = apex.find(|end| *end != a && *end != b) else {
            continue;
        };
        let is_there = |face: &[u32; 3]| has_edge(*face, c, d) || has_edge(*face, d, c);
        if c == d || mesh.faces.iter().any(is_there) {
            continue;
        }
        mesh.faces[first] = [a, d, c];
        mesh.faces[second] = [d, b, c];
    }
    mesh
}

fn has_edge(face: [u32; 3], from: u32, to: u32) -> bool {
    (0..3).any(|at| face[at] == from && face[(at + 1) % 3] == to)
}

impl Mesh {
    pub(crate) fn block(&self) -> VertexBlock {
        VertexBlock {
            topology: Topology::Faces,
            axes: 3,
            positions: self.at.as_flattened().to_vec(),
            lower: vec![-10.0; 3],
            upper: vec![10.0; 3],
            width: 3,
            links: self.faces.as_flattened().to_vec(),
            ..VertexBlock::default()
        }
    }

    /// Combines two meshes.
    pub(crate) fn beside(mut self, other: &Self) -> Self {
        let start = self.at.len() as u32;
        self.at.extend(&other.at);
        let faces = other.faces.iter().map(|face| face.map(|end| end + start));
        self.faces.extend(faces);
        self
    }

    /// Applies a merge.
    pub(crate) fn merged(&self, merge: &VertexMerge) -> Self {
        let MergedPositions::Computed(positions) = &merge.positions else {
            panic!("meshes move");
        };
        let at = positions.as_chunks().0.to_vec();
        let parent = |end: &u32| match merge.parent[*end as usize] {
            NO_VERTEX => u64::MAX,
            parent => u64::from(parent),
        };
        let links: Vec<u64> = self.faces.as_flattened().iter().map(parent).collect();
        let (kept, _) = contract_links(&links, 3, false);
        let kept: Vec<u32> = kept.into_iter().map(|end| end as u32).collect();
        Self {
            at,
            faces: kept.as_chunks().0.to_vec(),
        }
    }

    pub(crate) fn triangles(&self) -> Vec<[[f64; 3]; 3]> {
        let at = |end: u32| self.at[end as usize];
        self.faces.iter().map(|face| face.map(at)).collect()
    }

    /// Returns the edges of exactly one face.
    pub(crate) fn boundary(&self) -> Vec<[u32; 2]> {
        let mut edges: BTreeMap<[u32; 2], u32> = BTreeMap::new();
        for [a, b] in self.faces.iter().flat_map(edges_of) {
            *edges.entry([a.min(b), a.max(b)]).or_default() += 1;
        }
        let once = edges.into_iter().filter(|(_, count)| *count == 1);
        once.map(|(edge, _)| edge).collect()
    }

    pub(crate) fn topology(&self) -> SurfaceInvariants {
        let mut edges: BTreeMap<[u32; 2], [u32; 2]> = BTreeMap::new();
        for [a, b] in self.faces.iter().flat_map(edges_of) {
            edges.entry([a.min(b), a.max(b)]).or_default()[usize::from(a > b)] += 1;
        }
        let mut fans: BTreeMap<u32, Vec<[u32; 2]>> = BTreeMap::new();
        for [a, b, c] in &self.faces {
            for (vertex, opposite) in [(a, [*b, *c]), (b, [*c, *a]), (c, [*a, *b])] {
                fans.entry(*vertex).or_default().push(opposite);
            }
        }
        let is_fan = |fan: &Vec<[u32; 2]>| pieces(fan.iter().map(|edge| &edge[..])) == 1;
        let is_surface =
            edges.values().all(|[out, back]| *out < 2 && *back < 2) && fans.values().all(is_fan);
        let loops = pieces(self.boundary().iter().map(|edge| &edge[..]));
        SurfaceInvariants {
            euler: fans.len() as i64 - edges.len() as i64 + self.faces.len() as i64,
            pieces: pieces(self.faces.iter().map(|face| &face[..])),
            loops,
            is_surface,
        }
    }
}

/// Properties that a collapse must preserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SurfaceInvariants {
    pub(crate) euler: i64,
    pub(crate) pieces: usize,
    /// Number of boundaries.
    pub(crate) loops: usize,
    /// True if the mesh is a consistently oriented manifold.
    pub(crate) is_surface: bool,
}

pub(crate) fn edges_of(face: &[u32; 3]) -> [[u32; 2]; 3] {
    let [a, b, c] = *face;
    [[a, b], [b, c], [c, a]]
}

fn pieces<'a>(parts: impl Iterator<Item = &'a [u32]>) -> usize {
    fn find(up: &mut BTreeMap<u32, u32>, mut at: u32) -> u32 {
        while let Some(next) = up.get(&at).filter(|next| **next != at) {
            at = *next;
        }
        up.insert(at, at);
        at
    }
    let mut up = BTreeMap::new();
    for part in parts {
        for end in part {
            let [a, b] = [part[0], *end].map(|end| find(&mut up, end));
            up.insert(a.max(b), a.min(b));
        }
    }
    up.iter().filter(|(at, next)| at == next).count()
}

/// Samples the largest distance of triangles or segments from others.
pub(crate) fn farthest<const N: usize>(
    from: &[[[f64; 3]; N]],
    to: &[[[f64; 3]; N]],
    steps: u32,
) -> f64 {
    let mut max = 0.0f64;
    for corners in from {
        for a in 0..=steps {
            for b in 0..=(if N == 3 { steps - a } else { 0 }) {
                let shares = [a, b, steps - a - b].map(|part| f64::from(part) / f64::from(steps));
                let shares = if N == 3 {
                    shares
                } else {
                    [shares[0], shares[2], 0.0]
                };
                let mut point = [0.0; 3];
                for (corner, share) in corners.iter().zip(shares) {
                    for axis in 0..3 {
                        point[axis] += corner[axis] * share;
                    }
                }
                // Samples within the distance found so far are skipped.
                let mut min = f64::INFINITY;
                for other in to {
                    min = min.min(way(point, other));
                    if min <= max {
                        break;
                    }
                }
                max = max.max(min);
            }
        }
    }
    max
}

/// Returns the distance of a point from a triangle or segment: from the plane if it projects
/// inside, else from the edges.
pub(crate) fn way(point: [f64; 3], corners: &[[f64; 3]]) -> f64 {
    if let [a, b, c] = corners {
        let across = cross(sub(*b, *a), sub(*c, *a));
        let square = dot(across, across);
        let is_left = |from: [f64; 3], to: [f64; 3]| {
            dot(cross(sub(to, from), sub(point, from)), across) >= 0.0
        };
        if square > 0.0 && is_left(*a, *b) && is_left(*b, *c) && is_left(*c, *a) {
            return dot(sub(point, *a), across).abs() / square.sqrt();
        }
        return [[*a, *b], [*b, *c], [*c, *a]]
            .iter()
            .map(|side| way(point, side))
            .fold(f64::INFINITY, f64::min);
    }
    let [a, b] = [corners[0], corners[1]];
    let (whole, part) = (sub(b, a), sub(point, a));
    let along = (dot(whole, part) / dot(whole, whole)).clamp(0.0, 1.0);
    let off = sub(part, whole.map(|number| number * along));
    dot(off, off).sqrt()
}

fn sub(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|axis| a[axis] - b[axis])
}

pub(crate) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    (0..3).map(|axis| a[axis] * b[axis]).sum()
}

pub(crate) fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|axis| {
        let (next, last) = ((axis + 1) % 3, (axis + 2) % 3);
        a[next] * b[last] - a[last] * b[next]
    })
}
