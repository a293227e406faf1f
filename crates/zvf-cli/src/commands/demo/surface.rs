//! A folded surface that resembles a brain, in millimetres.

use std::collections::HashMap;

use zvf::{Column, ColumnValues, Geometry, GeometryBuilder, NumericColumn};

use super::random::noise;

type Position = [f64; 3];

/// Number of times that each face of the icosahedron is divided into four.
const SUBDIVISIONS: u32 = 6;

/// Generates the surface, with the height above the bottom of the furrows as an attribute.
pub(super) fn geometry(seed: u64, fewer: u32) -> GeometryBuilder {
    let (places, faces) = icosphere(if fewer > 1 {
        SUBDIVISIONS - 2
    } else {
        SUBDIVISIONS
    });
    let (mut positions, mut heights) = (Vec::new(), Vec::new());
    for place in places {
        let (at, height) = fold(place, seed);
        positions.extend(at.map(|part| part as f32));
        heights.push(height as f32);
    }
    let corners = faces.into_iter().flatten().map(|row| row as i64);
    let values = ColumnValues::Numeric(NumericColumn::float32(1, heights));
    Geometry::builder(NumericColumn::float32(3, positions))
        .links(3, corners.collect())
        .vertex(vec![Column::new("height", values)])
}

/// Maps a position on the unit sphere to the folded surface, and returns it with its height.
fn fold([x, y, z]: Position, seed: u64) -> (Position, f64) {
    // Furrows follow the thin, winding lines on which noise changes its sign. More noise displaces
    // the lines, which would be too regular otherwise.
    let side = if x < 0.0 { 11.0 } else { 0.0 };
    let warp = |at: f64| 0.28 * noise([x * 2.3 + at, y * 2.3, z * 2.3 + side], seed + 1);
    let at = [
        x * 3.1 + warp(0.0) + side,
        y * 3.1 + warp(5.0),
        z * 3.1 + warp(9.0),
    ];
    let coarse = noise(at, seed);
    let fine = noise(at.map(|part| part * 1.9), seed + 2);
    let furrow = |value: f64, width: f64| (-(value / width) * (value / width)).exp();
    let depth = (furrow(coarse, 0.17) + 0.5 * furrow(fine, 0.2)).min(1.2);
    // The gap between the hemispheres.
    let gap = (-(x / 0.055) * (x / 0.055)).exp() * (0.5 + 0.5 * (z + 0.25).clamp(-0.5, 0.5) * 2.0);
    let radius = 1.0 - 0.105 * depth - 0.30 * gap + 0.02 * fine;
    let below = if z < 0.0 { 0.80 + 0.2 * (1.0 + z) } else { 1.0 };
    let narrow = 1.0 - 0.12 * y.max(0.0);
    let place = [
        66.0 * x * radius * narrow,
        86.0 * y * radius,
        60.0 * z * radius * below,
    ];
    (place, 12.0 * (1.2 - depth).max(0.0) * (1.0 - gap))
}

/// Generates a unit sphere of triangles that face outward.
fn icosphere(cuts: u32) -> (Vec<Position>, Vec<[usize; 3]>) {
    let golden = f64::midpoint(1.0, 5.0_f64.sqrt());
    let mut places: Vec<Position> = Vec::new();
    for (a, b) in [
        (1.0, golden),
        (-1.0, golden),
        (1.0, -golden),
        (-1.0, -golden),
    ] {
        places.extend([[a, b, 0.0], [0.0, a, b], [b, 0.0, a]].map(unit));
    }
    // Of the twelve corners of an icosahedron, three nearest neighbours form a face.
    let near = |a: usize, b: usize| {
        let of = |at: usize| places.get(at).copied().unwrap_or_default();
        let (a, b) = (of(a), of(b));
        a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() > 0.4
    };
    let mut faces = Vec::new();
    for a in 0..12_usize {
        for b in a + 1..12 {
            for c in b + 1..12 {
                if near(a, b) && near(b, c) && near(a, c) {
                    faces.push(outward(&places, [a, b, c]));
                }
            }
        }
    }
    for _ in 0..cuts {
        let mut halves = HashMap::new();
        let mut cut = Vec::with_capacity(faces.len() * 4);
        for [a, b, c] in faces {
            let mut half = |a: usize, b: usize| {
                *halves.entry((a.min(b), a.max(b))).or_insert_with(|| {
                    let of = |at: usize| places.get(at).copied().unwrap_or_default();
                    let (one, other) = (of(a), of(b));
                    places.push(unit([
                        one[0] + other[0],
                        one[1] + other[1],
                        one[2] + other[2],
                    ]));
                    places.len() - 1
                })
            };
            let (ab, bc, ca) = (half(a, b), half(b, c), half(c, a));
            cut.extend([[a, ab, ca], [b, bc, ab], [c, ca, bc], [ab, bc, ca]]);
        }
        faces = cut;
    }
    (places, faces)
}

/// Orders the corners of a face so that it faces outward.
fn outward(places: &[Position], [a, b, c]: [usize; 3]) -> [usize; 3] {
    let of = |at: usize| places.get(at).copied().unwrap_or_default();
    let ([ax, ay, az], [bx, by, bz], [cx, cy, cz]) = (of(a), of(b), of(c));
    let turn = ax * (by * cz - bz * cy) - ay * (bx * cz - bz * cx) + az * (bx * cy - by * cx);
    if turn > 0.0 { [a, b, c] } else { [a, c, b] }
}

fn unit(place: Position) -> Position {
    let length = place.iter().map(|part| part * part).sum::<f64>().sqrt();
    place.map(|part| part / length)
}
