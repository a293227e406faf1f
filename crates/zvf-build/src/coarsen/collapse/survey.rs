//! Initial edges, boundaries and quadrics of a mesh.

use super::super::NO_VERTEX;
use super::mesh::{BOUNDARY, Mesh, NON_MANIFOLD, PINNED};
use super::neighbourhood::MAX_FACES;
use super::quadric::Quadric;
use super::vector::{cross, dot, length, normal, sub, unit};

/// Weight of boundaries relative to the surface.
const BOUNDARY_WEIGHT: f64 = 100.0;

pub(super) struct Survey {
    pub(super) quadrics: Vec<Quadric>,
    /// Ends of each edge, the smaller first.
    pub(super) edges: Vec<[u32; 2]>,
    /// Number of removable vertices with a face.
    pub(super) free: u32,
}

/// Neighbour of a vertex.
struct Neighbour {
    vertex: u32,
    /// One face of the edge.
    face: u32,
    /// Number of faces with the edge in each direction.
    out: u32,
    back: u32,
    /// Next neighbour in the face with the edge towards this one.
    next: u32,
}

/// Examines each vertex and flags boundary and non-manifold ones.
pub(super) fn survey(mesh: &mut Mesh) -> Survey {
    let mut survey = Survey {
        quadrics: vec![Quadric::default(); mesh.len()],
        edges: Vec::new(),
        free: 0,
    };
    let mut faces = Vec::new();
    let mut around: Vec<Neighbour> = Vec::new();
    for vertex in 0..mesh.len() as u32 {
        mesh.star(vertex, &mut faces);
        if faces.is_empty() {
            continue;
        }
        neighbours(mesh, vertex, &faces, &mut around);
        let later = around.iter().filter(|other| other.vertex > vertex);
        survey
            .edges
            .extend(later.map(|other| [vertex, other.vertex]));
        set_flags(mesh, vertex, &faces, &around);
        survey.free += u32::from(!mesh.stays(vertex));
        let quadric = &mut survey.quadrics[vertex as usize];
        for face in &faces {
            let across = normal(mesh.corners(*face));
            let weight = length(across) / 2.0;
            if let Some(across) = unit(across) {
                quadric.add_plane(across, weight);
                quadric.add_position_weight(weight);
            }
        }
        for other in around.iter().filter(|other| other.out + other.back == 1) {
            // An apparent boundary between pinned vertices may continue outside the block.
            if mesh.has(vertex, PINNED) && mesh.has(other.vertex, PINNED) {
                continue;
            }
            let edge = sub(mesh.at[other.vertex as usize], mesh.at[vertex as usize]);
            if let Some(wall) = unit(cross(edge, normal(mesh.corners(other.face)))) {
                quadric.add_plane(wall, dot(edge, edge) * BOUNDARY_WEIGHT);
            }
        }
    }
    survey
}

/// Examines a vertex again after its faces have changed.
pub(super) fn update(mesh: &mut Mesh, vertex: u32) {
    let (mut faces, mut around) = (Vec::new(), Vec::new());
    mesh.star(vertex, &mut faces);
    if faces.len() > MAX_FACES {
        // It does not vanish, and its faces are many.
        return;
    }
    neighbours(mesh, vertex, &faces, &mut around);
    set_flags(mesh, vertex, &faces, &around);
}

/// Flags a vertex by its faces and neighbours, unless it is pinned.
fn set_flags(mesh: &mut Mesh, vertex: u32, faces: &[u32], around: &[Neighbour]) {
    if mesh.has(vertex, PINNED) {
        return;
    }
    let is_open = around.iter().any(|other| other.out + other.back == 1);
    let flags = match shape(faces, around) {
        None => NON_MANIFOLD | (u8::from(is_open) * BOUNDARY),
        Some(is_boundary) => u8::from(is_boundary) * BOUNDARY,
    };
    mesh.flags[vertex as usize] = flags;
}

/// Collects the neighbours of a vertex. Linear search is faster than a table for typical valences,
/// and bounded by the square of large ones.
fn neighbours(mesh: &Mesh, vertex: u32, faces: &[u32], around: &mut Vec<Neighbour>) {
    around.clear();
    let mut find = |vertex: u32, face: u32| -> usize {
        around
            .iter()
            .position(|other| other.vertex == vertex)
            .unwrap_or_else(|| {
                around.push(Neighbour {
                    vertex,
                    face,
                    out: 0,
                    back: 0,
                    next: NO_VERTEX,
                });
                around.len() - 1
            })
    };
    let mut steps = Vec::with_capacity(faces.len());
    for face in faces {
        let corners = mesh.face(*face);
        let at = (corners.iter().position(|corner| *corner == vertex)).unwrap_or(0);
        let to = find(corners[(at + 1) % 3], *face);
        let from = find(corners[(at + 2) % 3], *face);
        steps.push([to, from]);
    }
    for [to, from] in steps {
        around[to].out += 1;
        around[to].next = from as u32;
        around[from].back += 1;
    }
}

/// Returns whether a vertex is on the boundary; `None` if its faces are not a single fan.
fn shape(faces: &[u32], around: &[Neighbour]) -> Option<bool> {
    if around.iter().any(|other| other.out > 1 || other.back > 1) {
        return None;
    }
    let start = around.iter().position(|other| other.back == 0);
    let first = start.unwrap_or(0) as u32;
    let (mut at, mut steps) = (first, 0);
    while at != NO_VERTEX && steps < faces.len() {
        at = around[at as usize].next;
        steps += usize::from(at != NO_VERTEX);
        if at == first {
            break;
        }
    }
    (steps == faces.len()).then_some(start.is_some())
}
