//! Where things are drawn that hide each other.

use rayon::prelude::*;

use crate::{
    color::{Background, Color},
    picture::Picture,
    view::{Camera, Spot, Vector, cross, dot, unit},
};

/// Where light comes from: over the left shoulder of who looks.
const LIGHT: Vector = [-0.36, 0.52, 0.775];
const AMBIENT: f32 = 0.52;
const DIFFUSE: f32 = 0.58;

/// How bright something is whose surface faces so much of the light.
fn brightness(facing: f32) -> f32 {
    AMBIENT + DIFFUSE * facing.max(0.0)
}

/// Samples, several for each dot of the picture.
#[derive(Debug)]
pub(crate) struct Frame {
    width: usize,
    height: usize,
    /// Samples of a dot along each side.
    fine: usize,
    near: Vec<f32>,
    color: Vec<Color>,
}

/// An end of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) spot: Spot,
    pub(crate) color: Color,
}

/// A corner of a face.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Corner {
    pub(crate) spot: Spot,
    /// What the surface faces, in the directions of the picture.
    pub(crate) normal: Vector,
    pub(crate) color: Color,
}

impl Frame {
    /// Of so many dots, with `fine` times as many samples along each side.
    pub(crate) fn new(width: usize, height: usize, fine: usize) -> Self {
        let (width, height) = (width * fine, height * fine);
        Self {
            width,
            height,
            fine,
            near: vec![f32::NEG_INFINITY; width * height],
            color: vec![Color::default(); width * height],
        }
    }

    fn put(&mut self, x: usize, y: usize, near: f32, color: Color) {
        let at = y * self.width + x;
        if let (Some(own), Some(there)) = (self.near.get_mut(at), self.color.get_mut(at))
            && near > *own
        {
            *own = near;
            *there = color;
        }
    }

    /// A ball.
    pub(crate) fn ball(&mut self, camera: &Camera, spot: Spot, radius: f32, color: Color) {
        let radius = (radius * spot.zoom).max(0.6);
        let bulge = radius / (camera.scale * spot.zoom);
        for y in samples(spot.y - radius, spot.y + radius, self.height) {
            let dy = (y as f32 + 0.5 - spot.y) / radius;
            for x in samples(spot.x - radius, spot.x + radius, self.width) {
                let dx = (x as f32 + 0.5 - spot.x) / radius;
                let rest = 1.0 - dx * dx - dy * dy;
                if rest < 0.0 {
                    continue;
                }
                let front = rest.sqrt();
                let lit = brightness(dot([dx, -dy, front], LIGHT));
                self.put(x, y, spot.near + front * bulge, color.lit(lit.min(1.08)));
            }
        }
    }

    /// A tube; `along` is its direction in those of the picture.
    pub(crate) fn tube(&mut self, camera: &Camera, from: End, to: End, radius: f32, along: Vector) {
        let (a, b) = (from.spot, to.spot);
        let (dx, dy) = (b.x - a.x, b.y - a.y);
        let length = dx.hypot(dy);
        let radius = (radius * f32::midpoint(a.zoom, b.zoom)).max(0.5);
        let Some(along) = unit(along) else { return };
        let bulge = radius / (camera.scale * f32::midpoint(a.zoom, b.zoom));
        // Across the tube, and out of it toward who looks.
        let side = unit([along[1], -along[0], 0.0]).unwrap_or([1.0, 0.0, 0.0]);
        let front = cross(side, along);
        let front = if front[2] < 0.0 {
            front.map(|part| -part)
        } else {
            front
        };
        let (by_side, by_front) = (dot(side, LIGHT), dot(front, LIGHT));
        let is_flat = dx.abs() >= dy.abs();
        let reach = match length > 0.0 {
            true => radius * length / dx.abs().max(dy.abs()),
            false => radius,
        };
        // Along the longer side step by step, across it all that the tube covers.
        let (start, end, most, across) = match is_flat {
            true => (a.x.min(b.x), a.x.max(b.x), self.width, self.height),
            false => (a.y.min(b.y), a.y.max(b.y), self.height, self.width),
        };
        let sign = match is_flat {
            true => side[1],
            false => side[0],
        };
        let round = 0.35 * radius;
        for step in samples(start - round, end + round, most) {
            let at = step as f32 + 0.5;
            let share = match (is_flat, length > 0.0) {
                (_, false) => 0.0,
                (true, _) => (at - a.x) / dx,
                (false, _) => (at - a.y) / dy,
            };
            let share = share.clamp(0.0, 1.0);
            let near = a.near + (b.near - a.near) * share;
            let middle = match is_flat {
                true => a.y + dy * share,
                false => a.x + dx * share,
            };
            let color = from.color.mix(to.color, share);
            for other in samples(middle - reach, middle + reach, across) {
                let off = ((other as f32 + 0.5 - middle) / reach).clamp(-1.0, 1.0);
                // y of a picture is down, that of directions up.
                let off = if is_flat { -off } else { off } * sign.signum();
                let out = (1.0 - off * off).sqrt();
                let lit = brightness(off * by_side + out * by_front);
                let (x, y) = if is_flat {
                    (step, other)
                } else {
                    (other, step)
                };
                self.put(x, y, near + out * bulge, color.lit(lit.min(1.08)));
            }
        }
    }

    /// A face, lit from both sides.
    pub(crate) fn face(&mut self, camera: &Camera, corners: &[Corner; 3]) {
        let [a, b, c] = corners;
        let area = edge(a.spot, b.spot, c.spot.x, c.spot.y);
        if area.abs() < 1e-6 || !area.is_finite() {
            return;
        }
        let low = |f: fn(Spot) -> f32| f(a.spot).min(f(b.spot)).min(f(c.spot));
        let high = |f: fn(Spot) -> f32| f(a.spot).max(f(b.spot)).max(f(c.spot));
        for y in samples(low(|spot| spot.y), high(|spot| spot.y), self.height) {
            let at_y = y as f32 + 0.5;
            for x in samples(low(|spot| spot.x), high(|spot| spot.x), self.width) {
                let at_x = x as f32 + 0.5;
                let shares = [
                    edge(b.spot, c.spot, at_x, at_y) / area,
                    edge(c.spot, a.spot, at_x, at_y) / area,
                    edge(a.spot, b.spot, at_x, at_y) / area,
                ];
                if shares.iter().any(|share| *share < 0.0) {
                    continue;
                }
                let mixed =
                    |f: fn(&Corner) -> f32| shares[0] * f(a) + shares[1] * f(b) + shares[2] * f(c);
                let near = camera.near(mixed(|at| at.spot.zoom), mixed(|at| at.spot.near));
                let normal = [
                    mixed(|at| at.normal[0]),
                    mixed(|at| at.normal[1]),
                    mixed(|at| at.normal[2]),
                ];
                let normal = unit(normal).unwrap_or([0.0, 0.0, 1.0]);
                let normal = match normal[2] < 0.0 {
                    true => normal.map(|part| -part),
                    false => normal,
                };
                let part = |at: usize| {
                    let of =
                        |corner: &Corner| f32::from(corner.color.0.get(at).copied().unwrap_or(0));
                    (shares[0] * of(a) + shares[1] * of(b) + shares[2] * of(c)) as u8
                };
                let color = Color([part(0), part(1), part(2)]);
                self.put(x, y, near, surface(color, normal));
            }
        }
    }

    /// The dots: samples averaged as light, what is behind fainter, and darker beside what
    /// stands before it.
    pub(crate) fn picture(&self, camera: &Camera, background: Background) -> Picture {
        let (width, height) = (self.width / self.fine, self.height / self.fine);
        let mut dots = vec![[0; 3]; width * height];
        let light = light_of_bytes();
        let share = 1.0 / (self.fine * self.fine) as f32;
        dots.par_chunks_mut(width.max(1))
            .enumerate()
            .for_each(|(row, dots)| {
                let behind = backdrop(background, row, height);
                for (column, dot) in dots.iter_mut().enumerate() {
                    let mut sum = [0.0_f32; 3];
                    for y in row * self.fine..(row + 1) * self.fine {
                        for x in column * self.fine..(column + 1) * self.fine {
                            let color = self.shaded(camera, x, y, behind);
                            for (sum, part) in sum.iter_mut().zip(color.0) {
                                *sum += light.get(usize::from(part)).copied().unwrap_or(0.0);
                            }
                        }
                    }
                    *dot = sum.map(|sum| byte_of_light(sum * share));
                }
            });
        Picture::of(width, height, dots)
    }

    fn near_at(&self, x: usize, y: usize) -> f32 {
        let at = y * self.width + x;
        self.near.get(at).copied().unwrap_or(f32::NEG_INFINITY)
    }

    /// A sample as it is seen.
    fn shaded(&self, camera: &Camera, x: usize, y: usize, behind: Color) -> Color {
        let near = self.near_at(x, y);
        if near == f32::NEG_INFINITY {
            return behind;
        }
        let color = self
            .color
            .get(y * self.width + x)
            .copied()
            .unwrap_or_default();
        let mut hidden = 0.0;
        for (rings, weight) in [(1.0_f32, 0.6_f32), (4.0, 0.4)] {
            let ring = (self.fine as f32 * rings).round() as usize;
            let mut sum = 0.0;
            for (dx, dy) in AROUND {
                let (x, y) = (
                    moved(x, dx * ring.cast_signed()),
                    moved(y, dy * ring.cast_signed()),
                );
                let (Some(x), Some(y)) = (x, y) else { continue };
                if x < self.width {
                    // What is far before it darkens no more than what is a little before it.
                    let over = (self.near_at(x, y) - near) / camera.depth;
                    sum += (over * 4.0).clamp(0.0, 1.0);
                }
            }
            hidden += weight * sum / AROUND.len() as f32;
        }
        let far = (0.5 - near / camera.depth / 2.0).clamp(0.0, 1.0);
        let lit = 1.0 - SHADE * hidden.min(1.0);
        color.lit(lit).mix(behind, FOG * far * far)
    }
}

/// How much of what is farthest is lost in the background.
const FOG: f32 = 0.4;
/// How much darker the deepest place is, between things that stand before it.
const SHADE: f32 = 0.62;

/// Steps to what is around a sample.
const AROUND: [(isize, isize); 8] = [
    (1, 0),
    (1, 1),
    (0, 1),
    (-1, 1),
    (-1, 0),
    (-1, -1),
    (0, -1),
    (1, -1),
];

fn moved(at: usize, by: isize) -> Option<usize> {
    at.checked_add_signed(by)
}

/// The colour of a surface: light from the front, the sky above, and a gleam.
fn surface(color: Color, normal: Vector) -> Color {
    let facing = dot(normal, LIGHT).max(0.0);
    let sky = 0.5 + 0.5 * normal[1];
    let lit = 0.26 + 0.18 * sky + 0.64 * facing;
    // Between the light and who looks.
    let gleam = dot(normal, [-0.191, 0.276, 0.942]).max(0.0).powi(40) * 0.22;
    color.lit(lit.min(1.05)).mix(Color([255; 3]), gleam)
}

/// Samples whose middle is between two places.
fn samples(from: f32, to: f32, most: usize) -> core::ops::Range<usize> {
    let start = (from - 0.5).ceil().max(0.0) as usize;
    let end = ((to - 0.5).floor() + 1.0).max(0.0) as usize;
    let end = end.min(most);
    start.min(end)..end
}

fn edge(from: Spot, to: Spot, x: f32, y: f32) -> f32 {
    (to.x - from.x) * (y - from.y) - (to.y - from.y) * (x - from.x)
}

/// What nothing is drawn on.
fn backdrop(background: Background, row: usize, height: usize) -> Color {
    let [top, bottom] = background.colors();
    top.mix(bottom, row as f32 / height.max(1) as f32)
}

fn light_of_bytes() -> [f32; 256] {
    core::array::from_fn(|byte| {
        let part = byte as f32 / 255.0;
        match part <= 0.04045 {
            true => part / 12.92,
            false => ((part + 0.055) / 1.055).powf(2.4),
        }
    })
}

fn byte_of_light(light: f32) -> u8 {
    let part = match light <= 0.003_130_8 {
        true => light * 12.92,
        false => 1.055 * light.powf(1.0 / 2.4) - 0.055,
    };
    (part * 255.0).round() as u8
}
