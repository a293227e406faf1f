//! What is in a scene, drawn on a frame.

use crate::{
    frame::{Corner, End, Frame},
    paint::Paint,
    scene::{Form, Scene},
    view::{Camera, Spot, Vector, cross, minus, unit},
};

/// Draws a scene; `stroke` is how many samples lines are wide and points across.
pub(crate) fn draw(frame: &mut Frame, camera: &Camera, paint: &Paint, scene: &Scene, stroke: f32) {
    match scene.form {
        Form::Points => points(frame, camera, paint, scene, stroke),
        Form::Paths => paths(frame, camera, paint, scene, stroke),
        Form::Edges => edges(frame, camera, paint, scene, stroke),
        Form::Faces => faces(frame, camera, paint, scene),
    }
}

fn points(frame: &mut Frame, camera: &Camera, paint: &Paint, scene: &Scene, stroke: f32) {
    for (row, at) in scene.positions.iter().enumerate() {
        if let Some(spot) = camera.spot(*at) {
            let color = paint.color(scene.tints.get(row).copied(), [0.0; 3]);
            frame.ball(camera, spot, stroke / 2.0, color);
        }
    }
}

fn paths(frame: &mut Frame, camera: &Camera, paint: &Paint, scene: &Scene, stroke: f32) {
    for span in scene.starts.windows(2) {
        let [start, end] = *span else { continue };
        let Some(path) = scene.positions.get(start..end) else {
            continue;
        };
        let end_of = |row: usize, at: &Vector| {
            // The direction of a vertex is that of its neighbours, so that it turns evenly.
            let before = path.get(row.saturating_sub(1)).unwrap_or(at);
            let after = path.get(row + 1).unwrap_or(at);
            let color = paint.color(
                scene.tints.get(start + row).copied(),
                minus(*after, *before),
            );
            camera.spot(*at).map(|spot| End { spot, color })
        };
        let mut last: Option<(End, Vector)> = None;
        for (row, at) in path.iter().enumerate() {
            let Some(end) = end_of(row, at) else {
                last = None;
                continue;
            };
            let Some((from, from_at)) = last else {
                last = Some((end, *at));
                continue;
            };
            // What is closer than samples are adds nothing; the last of a path always counts.
            let gap = (end.spot.x - from.spot.x).hypot(end.spot.y - from.spot.y);
            if gap < CLOSE && row + 1 < path.len() {
                continue;
            }
            let along = camera.turn().apply(minus(*at, from_at));
            frame.tube(camera, from, end, stroke / 2.0, along);
            last = Some((end, *at));
        }
        if let (1, Some((only, _))) = (path.len(), last) {
            frame.ball(camera, only.spot, stroke / 2.0, only.color);
        }
    }
}

/// Samples between vertices of a path below which some are left out.
const CLOSE: f32 = 0.75;

/// A vertex of a scene by its row.
fn vertex(scene: &Scene, row: u32) -> Option<(usize, Vector)> {
    let row = usize::try_from(row).ok()?;
    scene.positions.get(row).map(|at| (row, *at))
}

fn edges(frame: &mut Frame, camera: &Camera, paint: &Paint, scene: &Scene, stroke: f32) {
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
        let along = minus(at_b, at_a);
        let color = |row: usize| match paint.of_links {
            true => paint.color(scene.link_tints.get(number).copied(), along),
            false => paint.color(scene.tints.get(row).copied(), along),
        };
        let ends = [(from, a), (to, b)].map(|(spot, row)| End {
            spot,
            color: color(row),
        });
        let [from, to] = ends;
        frame.tube(camera, from, to, stroke / 2.0, camera.turn().apply(along));
    }
    // What nothing is linked to would not be seen.
    for (row, _) in is_linked.iter().enumerate().filter(|(_, linked)| !**linked) {
        if let Some(spot) = scene.positions.get(row).and_then(|at| camera.spot(*at)) {
            let color = paint.color(scene.tints.get(row).copied(), [0.0; 3]);
            frame.ball(camera, spot, stroke * 0.8, color);
        }
    }
}

fn faces(frame: &mut Frame, camera: &Camera, paint: &Paint, scene: &Scene) {
    let turned: Vec<Vector> = scene
        .positions
        .iter()
        .map(|at| camera.turn().apply(*at))
        .collect();
    let spots: Vec<Option<Spot>> = scene.positions.iter().map(|at| camera.spot(*at)).collect();
    let mut normals = vec![[0.0_f32; 3]; turned.len()];
    for (_, rows) in triangles(scene) {
        let places = rows.map(|row| turned.get(row).copied().unwrap_or([f32::NAN; 3]));
        // As long as the face is large: small ones turn the surface less.
        let normal = cross(minus(places[1], places[0]), minus(places[2], places[0]));
        if normal.iter().all(|part| part.is_finite()) {
            for row in rows {
                if let Some(sum) = normals.get_mut(row) {
                    for (sum, part) in sum.iter_mut().zip(normal) {
                        *sum += part;
                    }
                }
            }
        }
    }
    for (face, rows) in triangles(scene) {
        let corner = |row: usize| {
            let spot = spots.get(row).copied().flatten()?;
            let normal = normals
                .get(row)
                .copied()
                .and_then(unit)
                .unwrap_or([0.0, 0.0, 1.0]);
            let color = match paint.of_links {
                true => paint.color(scene.link_tints.get(face).copied(), normal),
                false => paint.color(scene.tints.get(row).copied(), normal),
            };
            Some(Corner {
                spot,
                normal,
                color,
            })
        };
        if let (Some(a), Some(b), Some(c)) = (corner(rows[0]), corner(rows[1]), corner(rows[2])) {
            frame.face(camera, &[a, b, c]);
        }
    }
}

/// Faces cut into triangles: rows of vertices, and the face that it is of.
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
