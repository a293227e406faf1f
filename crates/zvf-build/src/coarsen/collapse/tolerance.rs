//! Upper bound on the distance of the original surface from the simplified one (tolerance volume).
//!
//! Each vertex has a radius, interpolated linearly over faces. Every point of the original surface
//! lies within the radius of some point of the present one. A collapse keeps this invariant: every
//! point `p` of the old faces needs a point `q` of the new ones with `radius(p) + |p - q| <=
//! radius(q)`.
//!
//! In projection, old and new faces divide each other into cells. With `q` above or below `p`, the
//! left side minus the right is convex in a cell and largest at a corner, so vertices and edge
//! crossings suffice. The new vertex takes the smallest sufficient radius; where its weight is
//! small, nearby ring vertices grow instead. Where faces overlap in projection, `q` is where `p`
//! moves when both ends go to their new position, which is valid but less tight.

use super::mesh::Mesh;
use super::neighbourhood::{Collapse, Neighbourhood};
use super::vector::{Vector, add, cross, distance, dot, normal, scale, sub, unit};

/// Slope threshold: twice the area over squared edges below which a face overlaps others in
/// projection.
const MIN_SLOPE: f64 = 1e-6;
/// Cosine above which the view is not turned towards a face.
const FRONT_COSINE: f64 = 0.5;
/// Upper bound on turns of the view.
const MAX_TURNS: usize = 16;
/// Tolerance of the point-in-face test.
const INSIDE_TOLERANCE: f64 = 1e-9;
/// Minimum weight at which the new vertex itself covers the deficit of a point.
const MIN_WEIGHT: f64 = 0.3;

/// Vertex projected around the new one: two coordinates, height and radius.
#[derive(Clone, Copy)]
struct ProjectedVertex {
    at: Vector,
    radius: f64,
}

/// Projected neighbourhood of an edge.
#[derive(Default)]
pub(super) struct View {
    normals: Vec<Vector>,
    points: Vec<ProjectedVertex>,
    old: Vec<[usize; 3]>,
    new: Vec<[usize; 3]>,
    /// Ends of new edges.
    spokes: Vec<usize>,
    remote: Vec<Remote>,
    /// Raised radii of ring vertices.
    pub(super) raised: Vec<(u32, f64)>,
}

/// Point with a small weight of the new vertex and a deficit.
struct Remote {
    radius: f64,
    share: f64,
    others: [(usize, f64); 2],
}

impl View {
    /// Returns the radius of the new vertex, and stores raised ring radii in `raised`.
    pub(super) fn radius(
        &mut self,
        mesh: &Mesh,
        neighbourhood: &Neighbourhood,
        edge: &Collapse,
        radii: &[f64],
    ) -> f64 {
        let moved = moved(mesh, edge, radii);
        self.raised.clear();
        if moved == 0.0 {
            return 0.0;
        }
        let seen = self.project(mesh, neighbourhood, edge, radii);
        let radius = seen.and_then(|()| self.required_radius(neighbourhood, edge));
        match radius.filter(|radius| *radius < moved) {
            Some(radius) => {
                self.raise(neighbourhood, radius);
                radius
            }
            None => moved,
        }
    }

    /// Projects the neighbourhood; fails if faces overlap.
    fn project(
        &mut self,
        mesh: &Mesh,
        neighbourhood: &Neighbourhood,
        edge: &Collapse,
        radii: &[f64],
    ) -> Option<()> {
        let faces = || neighbourhood.touched(mesh, edge);
        let up = self.front_direction(faces().map(|face| mesh.corners(face)).chain(
            neighbourhood.changed(mesh, edge).map(|(corners, at)| {
                let mut corners = corners.map(|corner| mesh.at[corner as usize]);
                corners[at] = edge.position;
                corners
            }),
        ))?;
        let min = (0..3).min_by(|a, b| up[*a].abs().total_cmp(&up[*b].abs()))?;
        let mut axis = [0.0; 3];
        axis[min] = 1.0;
        let east = unit(cross(up, axis))?;
        let north = cross(up, east);
        let project = |at: Vector, radius: f64| {
            let way = sub(at, edge.position);
            ProjectedVertex {
                at: [dot(way, east), dot(way, north), dot(way, up)],
                radius,
            }
        };
        self.points.clear();
        self.points.extend(
            neighbourhood
                .ring
                .iter()
                .map(|(vertex, _)| *vertex)
                .chain([edge.kept, edge.removed])
                .map(|vertex| project(mesh.at[vertex as usize], radii[vertex as usize])),
        );
        self.points.push(project(edge.position, 0.0));
        let kept = neighbourhood.ring.len();
        let position = |vertex: u32| match vertex {
            _ if vertex == edge.kept => kept,
            _ if vertex == edge.removed => kept + 1,
            _ => neighbourhood.slot(vertex),
        };
        self.old.clear();
        self.old
            .extend(faces().map(|face| mesh.face(face).map(position)));
        self.spokes.clear();
        let is_spoke = |slot: &usize| edge.moves || neighbourhood.ring[*slot].1 & 2 != 0;
        self.spokes.extend((0..kept).filter(is_spoke));
        self.new.clear();
        self.new
            .extend(neighbourhood.changed(mesh, edge).map(|(corners, at)| {
                let mut corners = corners.map(position);
                corners[at] = kept + 2;
                corners.rotate_left(at);
                corners
            }));
        let is_open = |face: &[usize; 3]| {
            let [a, b, c] = face.map(|point| self.points[point].at);
            let square = |way: Vector| dot(way, way);
            area(a, b, c) > MIN_SLOPE * square(sub(b, a)).max(square(sub(c, a)))
        };
        (self.old.iter().chain(&self.new).all(is_open)).then_some(())
    }

    /// Finds a direction from which every face is seen from its front: the mean normal, turned
    /// towards the steepest faces.
    fn front_direction(&mut self, faces: impl Iterator<Item = [Vector; 3]>) -> Option<Vector> {
        self.normals.clear();
        self.normals.extend(faces.map(normal));
        let mut up = unit(self.normals.iter().copied().fold([0.0; 3], add))?;
        let mut best = (0.0, None);
        for normal in &mut self.normals {
            *normal = unit(*normal)?;
        }
        for _ in 0..MAX_TURNS {
            let heights = self.normals.iter().map(|normal| dot(*normal, up));
            let (min, steepest) = heights
                .zip(&self.normals)
                .min_by(|a, b| a.0.total_cmp(&b.0))?;
            if min > best.0 {
                best = (min, Some(up));
            }
            if min > FRONT_COSINE {
                break;
            }
            up = unit(add(up, scale(*steepest, 0.5)))?;
        }
        best.1
    }

    /// Returns the radius that suffices at all cell corners except those in `remote`; `None` if a
    /// corner lies in no face.
    fn required_radius(&mut self, neighbourhood: &Neighbourhood, edge: &Collapse) -> Option<f64> {
        let [kept, removed] = [0, 1].map(|end| neighbourhood.ring.len() + end);
        self.remote.clear();
        let mut need = self.need_at_new()?;
        need = need.max(match (self.need_below(removed), neighbourhood.beyond) {
            (Some(inside), _) => inside,
            (None, Some([beyond, _])) => self.need_beside(removed, neighbourhood.slot(beyond)),
            (None, None) => return None,
        });
        need = need.max(if edge.moves {
            self.need_below(kept)?
        } else {
            self.points[kept].radius
        });
        for (to, (_, adjacency)) in neighbourhood.ring.iter().enumerate() {
            if edge.moves && adjacency & 1 != 0 {
                need = need.max(self.need_across(kept, to));
            }
            if adjacency & 2 != 0 {
                need = need.max(self.need_across(removed, to));
            }
        }
        Some(need.max(self.need_across(removed, kept)))
    }

    /// Returns the radius that a point needs of the new vertex, given its weight.
    fn radius_needed(&mut self, radius: f64, share: f64, others: [(usize, f64); 2]) -> f64 {
        let has = |(other, share): &(usize, f64)| self.points[*other].radius * share;
        let lacks = radius - others.iter().map(has).sum::<f64>();
        if lacks <= 0.0 {
            return 0.0;
        }
        if share < MIN_WEIGHT {
            self.remote.push(Remote {
                radius,
                share,
                others,
            });
            return 0.0;
        }
        lacks / share
    }

    /// Raises ring radii to cover deficits of nearby points.
    fn raise(&mut self, neighbourhood: &Neighbourhood, radius: f64) {
        for remote in &self.remote {
            let min = (remote.radius - radius * remote.share) / (1.0 - remote.share);
            for (other, share) in remote.others {
                if share > 0.0 && self.points[other].radius < min {
                    self.points[other].radius = min;
                    self.raised.push((neighbourhood.ring[other].0, min));
                }
            }
        }
    }

    /// Returns the radius that an old vertex needs, if it lies in a new face.
    fn need_below(&mut self, end: usize) -> Option<f64> {
        let from = self.points[end];
        let mut need = None;
        for at in 0..self.new.len() {
            let face = self.new[at];
            let Some([share, of_a, of_b]) = self.shares(face, from.at) else {
                continue;
            };
            let [a, b] = [face[1], face[2]];
            let height = self.points[a].at[2] * of_a + self.points[b].at[2] * of_b;
            let radius = from.radius + (from.at[2] - height).abs();
            let needed = self.radius_needed(radius, share, [(a, of_a), (b, of_b)]);
            need = Some(needed.max(need.unwrap_or(0.0)));
        }
        need
    }

    /// Returns the radius that a former boundary vertex needs of the new boundary edge.
    fn need_beside(&mut self, end: usize, beyond: usize) -> f64 {
        let (from, to) = (self.points[end], self.points[beyond]);
        let square = dot(to.at, to.at).max(f64::MIN_POSITIVE);
        let along = (dot(from.at, to.at) / square).clamp(0.0, 1.0);
        let way = distance(from.at, scale(to.at, along));
        self.radius_needed(
            from.radius + way,
            1.0 - along,
            [(beyond, along), (beyond, 0.0)],
        )
    }

    /// Returns the radius that the new vertex needs for the old faces below it.
    fn need_at_new(&self) -> Option<f64> {
        let needs = self.old.iter().filter_map(|face| {
            let shares = self.shares(*face, [0.0; 3])?;
            let (mut height, mut radius) = (0.0, 0.0);
            for (point, share) in face.iter().zip(shares) {
                height += self.points[*point].at[2] * share;
                radius += self.points[*point].radius * share;
            }
            Some(radius + height.abs())
        });
        needs.reduce(f64::max)
    }

    /// Returns the radius that an old edge needs at crossings with new edges.
    fn need_across(&mut self, from: usize, to: usize) -> f64 {
        let [a, b] = [from, to].map(|point| self.points[point]);
        let way = sub(b.at, a.at);
        let mut need = 0.0f64;
        for at in 0..self.spokes.len() {
            let other = self.spokes[at];
            if other == to {
                continue;
            }
            let across = self.points[other].at;
            // a + way s = across t.
            let turn = across[0] * way[1] - across[1] * way[0];
            if turn == 0.0 {
                continue;
            }
            let along_new = (a.at[0] * way[1] - a.at[1] * way[0]) / turn;
            let along_old = (a.at[0] * across[1] - a.at[1] * across[0]) / turn;
            let is_on = |along: f64| (-INSIDE_TOLERANCE..=1.0 + INSIDE_TOLERANCE).contains(&along);
            if !is_on(along_new) || !is_on(along_old) {
                continue;
            }
            let along_new = along_new.clamp(0.0, 1.0);
            let height = a.at[2] + way[2] * along_old - across[2] * along_new;
            let radius = a.radius + (b.radius - a.radius) * along_old + height.abs();
            let others = [(other, along_new), (other, 0.0)];
            need = need.max(self.radius_needed(radius, 1.0 - along_new, others));
        }
        need
    }

    /// Returns the barycentric weights of the point of a face above or below another, if any.
    fn shares(&self, face: [usize; 3], of: Vector) -> Option<[f64; 3]> {
        let [a, b, c] = face.map(|point| self.points[point].at);
        let whole = area(a, b, c);
        let shares = [
            area(of, b, c) / whole,
            area(a, of, c) / whole,
            area(a, b, of) / whole,
        ];
        (shares.iter().all(|share| *share >= -INSIDE_TOLERANCE)).then_some(shares)
    }
}

/// Returns the radius of the new vertex that suffices if every point moves as the ends do.
pub(super) fn moved(mesh: &Mesh, edge: &Collapse, radii: &[f64]) -> f64 {
    let ends = [edge.kept, edge.removed].map(|end| end as usize);
    let ends = ends.map(|end| radii[end] + distance(mesh.at[end], edge.position));
    ends.into_iter().fold(0.0, f64::max)
}

/// Returns twice the projected area of a triangle.
fn area(a: Vector, b: Vector, c: Vector) -> f64 {
    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
}
