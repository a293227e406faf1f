//! Drawing of a scene on a frame.

use rayon::prelude::*;

use crate::{
    band::{Band, Corner, End},
    color::Color,
    frame::Frame,
    paint::Paint,
    scene::{Form, Scene},
    view::{Camera, Spot, Vector, cross, dot, minus, unit},
};

/// Draws a scene; `stroke` is the width of lines and the diameter of points, in samples.
pub(crate) fn draw(frame: &mut Frame, camera: &Camera, paint: &Paint, scene: &Scene, stroke: f32) {
    let bands = frame.bands();
    match scene.form {
        Form::Points => bands.for_each(|band| points(band, camera, paint, scene, stroke)),
        Form::Paths => bands.for_each(|band| paths(band, camera, paint, scene, stroke)),
        Form::Edges => bands.for_each(|band| edges(band, camera, paint, scene, stroke)),
        Form::Faces => {
            let surface = Surface::of(camera, scene);
            bands.for_each(|band| faces(band, camera, paint, scene, &surface));
        }
    }
}

fn points(mut band: Band<'_>, camera: &Camera, paint: &Paint, scene: &Scene, stroke: f32) {
    for (row, at) in scene.positions.iter().enumerate() {
        if let Some(spot) = camera.spot(*at)
            && !band.misses(&[spot], stroke)
        {
            let color = paint.color(scene.color_codes.get(row).copied(), [0.0; 3]);
            band.ball(camera, spot, stroke / 2.0, color);
        }
    }
}

fn paths(mut band: Band<'_>, camera: &Camera, paint: &Paint, scene: &Scene, stroke: f32) {
    for span in scene.starts.windows(2) {
        let [start, end] = *span else { continue };
        let Some(path) = scene.positions.get(start..end) else {
            continue;
        };
        // The direction at a vertex is the one between its neighbours, so that it turns evenly.
        let color_of = |row: usize, at: Vector| -> Color {
            let before = path.get(row.saturating_sub(1)).copied().unwrap_or(at);
            let after = path.get(row + 1).copied().unwrap_or(at);
            let code = scene.color_codes.get(start + row).copied();
            paint.color(code, minus(after, before))
        };
        let mut last: Option<(usize, Vector, Spot)> = None;
        for (row, at) in path.iter().enumerate() {
            let Some(spot) = camera.spot(*at) else {
                last = None;
                continue;
            };
            let Some((from_row, from_at, from)) = last else {
                last = Some((row, *at, spot));
                continue;
            };
            // Vertices closer than a sample add nothing; the last vertex is always drawn. Vertices
            // on one line of sight differ in depth, and the nearest one is visible.
            let gap = (spot.x - from.x)
                .hypot(spot.y - from.y)
                .max(camera.depth_between(from, spot));
            if gap < MIN_DISTANCE && row + 1 < path.len() {
                continue;
            }
            if !band.misses(&[from, spot], stroke) {
                let ends = [(from_row, from_at, from), (row, *at, spot)];
                let [from, to] = ends.map(|(row, at, spot)| End {
                    spot,
                    color: color_of(row, at),
                });
                let along = camera.rotation().apply(minus(*at, from_at));
                band.tube(camera, from, to, stroke / 2.0, along);
            }
            last = Some((row, *at, spot));
        }
        if let (1, Some((row, at, spot))) = (path.len(), last) {
            band.ball(camera, spot, stroke / 2.0, color_of(row, at));
        }
    }
}

/// Distance in samples below which vertices of a path are skipped.
const MIN_DISTANCE: f32 = 0.75;

/// Returns a vertex of a scene by its row.
fn vertex(scene: &Scene, row: u32) -> Option<(usize, Vector)> {
    let row = usize::try_from(row).ok()?;
    scene.positions.get(row).map(|at| (row, *at))
}

fn edges(mut band: Band<'_>, camera: &Camera, paint: &Paint, scene: &Scene, stroke: f32) {
    let mut is_linked = vec![false; scene.positions.len()];
    for (number, link) in scene.links.chunks_exact(scene.ends.max(1)).enumerate() {
        let [a, b] = *link else { continue };
        let (Some((a, at_a)), Some((b, at_b))) = (vertex(scene, a), vertex(scene, b)) else {
            continue;
        };
        for row in [a, b] {
            if let Some(own) = is_linked.get_mut(row) {
                *own = true;
            }
        }
        let (Some(from), Some(to)) = (camera.spot(at_a), camera.spot(at_b)) else {
            continue;
        };
        if band.misses(&[from, to], stroke) {
            continue;
        }
        let along = minus(at_b, at_a);
        let color = |row: usize| {
            if paint.of_links {
                paint.color(scene.link_color_codes.get(number).copied(), along)
            } else {
                paint.color(scene.color_codes.get(row).copied(), along)
            }
        };
        let ends = [(from, a), (to, b)].map(|(spot, row)| End {
            spot,
            color: color(row),
        });
        let [from, to] = ends;
        band.tube(
            camera,
            from,
            to,
            stroke / 2.0,
            camera.rotation().apply(along),
        );
    }
    // Vertices without links are drawn as balls.
    for (row, _) in is_linked.iter().enumerate().filter(|(_, linked)| !**linked) {
        if let Some(spot) = scene.positions.get(row).and_then(|at| camera.spot(*at)) {
            let color = paint.color(scene.color_codes.get(row).copied(), [0.0; 3]);
            band.ball(camera, spot, stroke * 0.8, color);
        }
    }
}

/// Projected vertices of faces and their normals.
struct Surface {
    spots: Vec<Option<Spot>>,
    normals: Vec<Vector>,
}

impl Surface {
    fn of(camera: &Camera, scene: &Scene) -> Self {
        let spots = scene.positions.iter().map(|at| camera.spot(*at)).collect();
        let mut normals = vec![[0.0_f32; 3]; scene.positions.len()];
        for (_, rows) in triangles(scene) {
            let normal = face_normal(camera, scene, rows);
            if normal.iter().all(|part| part.is_finite()) {
                for row in rows {
                    if let Some(sum) = normals.get_mut(row) {
                        // Faces with opposite winding would cancel each other.
                        let sign = if is_opposite(*sum, normal) { -1.0 } else { 1.0 };
                        for (sum, part) in sum.iter_mut().zip(normal) {
                            *sum += sign * part;
                        }
                    }
                }
            }
        }
        Self { spots, normals }
    }
}

/// Returns the normal of a face in the axes of the picture. Its length is twice the area of the
/// face, so that small faces count less.
fn face_normal(camera: &Camera, scene: &Scene, rows: [usize; 3]) -> Vector {
    let place = |row: usize| scene.positions.get(row).copied();
    let [a, b, c] = rows.map(|row| place(row).unwrap_or([f32::NAN; 3]));
    camera.rotation().apply(cross(minus(b, a), minus(c, a)))
}

/// Returns whether two normals differ by more than 135 degrees. Faces of one winding differ less,
/// except at very sharp edges.
fn is_opposite(a: Vector, b: Vector) -> bool {
    // Squares of small faces underflow in f32.
    let [a, b] = [a, b].map(|normal| normal.map(f64::from));
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let product = dot(a, b);
    product < 0.0 && product * product > 0.5 * dot(a, a) * dot(b, b)
}

fn faces(mut band: Band<'_>, camera: &Camera, paint: &Paint, scene: &Scene, surface: &Surface) {
    for (face, rows) in triangles(scene) {
        let spots = rows.map(|row| surface.spots.get(row).copied().flatten());
        let [Some(a), Some(b), Some(c)] = spots else {
            continue;
        };
        if band.misses(&[a, b, c], 0.0) {
            continue;
        }
        let of_face = face_normal(camera, scene, rows);
        let corner = |row: usize, spot: Spot| {
            let normal = surface
                .normals
                .get(row)
                .copied()
                .and_then(unit)
                .unwrap_or([0.0, 0.0, 1.0]);
            // The first face of a vertex determines the side of its normal.
            let normal = if dot(normal, of_face) < 0.0 {
                normal.map(|part| -part)
            } else {
                normal
            };
            let color = if paint.of_links {
                paint.color(scene.link_color_codes.get(face).copied(), normal)
            } else {
                paint.color(scene.color_codes.get(row).copied(), normal)
            };
            Corner {
                spot,
                normal,
                color,
            }
        };
        let corners = [corner(rows[0], a), corner(rows[1], b), corner(rows[2], c)];
        band.face(camera, &corners);
    }
}

/// Returns the triangles of all faces: the index of the face and the rows of its vertices.
fn triangles(scene: &Scene) -> impl Iterator<Item = (usize, [usize; 3])> + '_ {
    let faces = scene.links.chunks_exact(scene.ends.max(1)).enumerate();
    faces.flat_map(|(number, face)| {
        let first = face.first().copied();
        let rest = face.windows(2).skip(1);
        rest.filter_map(move |pair| {
            let row = |row: u32| usize::try_from(row).ok();
            let [a, b] = *pair else { return None };
            Some((number, [row(first?)?, row(a)?, row(b)?]))
        })
    })
}
