//! Bands of rows of a frame, and the drawing of balls, tubes and faces on them.

use core::ops::Range;

use crate::{
    color::Color,
    view::{Camera, Spot, Vector, cross, dot, unit},
};

/// Direction to the light: over the left shoulder of the viewer.
const LIGHT: Vector = [-0.36, 0.52, 0.775];
const AMBIENT: f32 = 0.52;
const DIFFUSE: f32 = 0.58;
/// Length in samples below which a tube is a disc if its depth is at least `STEEP` times as long.
const MIN_LENGTH: f32 = 0.75;
const STEEP: f32 = 5.0;

/// Returns the brightness of a surface by the cosine of its angle to the light.
fn brightness(facing: f32) -> f32 {
    (AMBIENT + DIFFUSE * facing.max(0.0)).min(1.08)
}

/// A band of rows of a frame. Each band draws the whole scene, clipped to its rows, so that bands
/// can be drawn in parallel and the picture does not depend on their number.
#[derive(Debug)]
pub(crate) struct Band<'a> {
    width: usize,
    rows: Range<usize>,
    near: &'a mut [f32],
    color: &'a mut [Color],
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
    /// Normal of the surface in the axes of the picture, on the side from which the corners of the
    /// face are counterclockwise.
    pub(crate) normal: Vector,
    pub(crate) color: Color,
}

impl<'a> Band<'a> {
    /// Creates a band of these rows, of `width` samples each.
    pub(crate) fn new(
        width: usize,
        rows: Range<usize>,
        near: &'a mut [f32],
        color: &'a mut [Color],
    ) -> Self {
        Self {
            width,
            rows,
            near,
            color,
        }
    }

    /// Draws a sample if it is nearer than the present one. Only then is its colour computed: in
    /// large scenes, most samples are hidden.
    fn put(&mut self, x: usize, y: usize, near: f32, color: impl FnOnce() -> Color) {
        if let Some((own, there)) = self.nearer(x, y, near) {
            *own = near;
            *there = color();
        }
    }

    /// Returns the sample at a position if `near` is nearer than it.
    fn nearer(&mut self, x: usize, y: usize, near: f32) -> Option<(&mut f32, &mut Color)> {
        let at = y.checked_sub(self.rows.start)? * self.width + x;
        let own = self.near.get_mut(at).filter(|own| near > **own)?;
        Some((own, self.color.get_mut(at)?))
    }

    /// Returns the rows of the band whose centre is between two coordinates.
    fn rows(&self, from: f32, to: f32) -> Range<usize> {
        let rows = samples(from, to, self.rows.end);
        rows.start.max(self.rows.start)..rows.end.max(self.rows.start)
    }

    /// Returns whether a shape between these points, of this width, misses the band. Cheaper than
    /// computing its colours.
    pub(crate) fn misses(&self, spots: &[Spot], width: f32) -> bool {
        let (mut low, mut high) = (f32::INFINITY, f32::NEG_INFINITY);
        for spot in spots {
            // Ends of tubes are slanted, and the thinnest shape is one sample wide.
            let reach = width * spot.zoom + 2.0;
            (low, high) = (low.min(spot.y - reach), high.max(spot.y + reach));
        }
        self.rows(low, high).is_empty()
    }

    /// Draws a ball.
    pub(crate) fn ball(&mut self, camera: &Camera, spot: Spot, radius: f32, color: Color) {
        let radius = (radius * spot.zoom).max(0.6);
        let bulge = radius / (camera.scale * spot.zoom);
        for y in self.rows(spot.y - radius, spot.y + radius) {
            let dy = (y as f32 + 0.5 - spot.y) / radius;
            for x in samples(spot.x - radius, spot.x + radius, self.width) {
                let dx = (x as f32 + 0.5 - spot.x) / radius;
                let rest = 1.0 - dx * dx - dy * dy;
                if rest < 0.0 {
                    continue;
                }
                let front = rest.sqrt();
                self.put(x, y, spot.near + front * bulge, || {
                    color.scaled(brightness(dot([dx, -dy, front], LIGHT)))
                });
            }
        }
    }

    /// Draws a tube; `along` is its direction in the axes of the picture. A tube along the line of
    /// sight or without length is a ball at the end nearer to the viewer.
    pub(crate) fn tube(&mut self, camera: &Camera, from: End, to: End, radius: f32, along: Vector) {
        let (a, b) = (from.spot, to.spot);
        let (dx, dy) = (b.x - a.x, b.y - a.y);
        let length = dx.hypot(dy);
        let is_steep = length < MIN_LENGTH && camera.depth_between(a, b) >= STEEP * length;
        let Some(along) = unit(along).filter(|_| !is_steep) else {
            let end = if b.near > a.near { to } else { from };
            self.ball(camera, end.spot, radius, end.color);
            return;
        };
        let radius = (radius * f32::midpoint(a.zoom, b.zoom)).max(0.5);
        let bulge = radius / (camera.scale * f32::midpoint(a.zoom, b.zoom));
        // Directions across the tube, and out of it toward the viewer.
        let side = unit([along[1], -along[0], 0.0]).unwrap_or([1.0, 0.0, 0.0]);
        let front = cross(side, along);
        let front = if front[2] < 0.0 {
            front.map(|part| -part)
        } else {
            front
        };
        let (by_side, by_front) = (dot(side, LIGHT), dot(front, LIGHT));
        let is_flat = dx.abs() >= dy.abs();
        let reach = radius * length / dx.abs().max(dy.abs());
        let sign = if is_flat {
            -side[1].signum()
        } else {
            side[0].signum()
        };
        let round = 0.35 * radius;
        // Steps along the longer side; each step draws the samples across the tube.
        let steps = if is_flat {
            samples(a.x.min(b.x) - round, a.x.max(b.x) + round, self.width)
        } else {
            self.rows(a.y.min(b.y) - round, a.y.max(b.y) + round)
        };
        for step in steps {
            let at = step as f32 + 0.5;
            let share = if is_flat {
                (at - a.x) / dx
            } else {
                (at - a.y) / dy
            };
            let share = share.clamp(0.0, 1.0);
            let near = a.near + (b.near - a.near) * share;
            let middle = if is_flat {
                a.y + dy * share
            } else {
                a.x + dx * share
            };
            let across = if is_flat {
                self.rows(middle - reach, middle + reach)
            } else {
                samples(middle - reach, middle + reach, self.width)
            };
            for other in across {
                let (x, y) = if is_flat {
                    (step, other)
                } else {
                    (other, step)
                };
                // The middle of the tube is its nearest part.
                if self.nearer(x, y, near + bulge).is_none() {
                    continue;
                }
                // y points down on a picture and up in directions.
                let off = ((other as f32 + 0.5 - middle) / reach).clamp(-1.0, 1.0) * sign;
                let out = (1.0 - off * off).sqrt();
                self.put(x, y, near + out * bulge, || {
                    let color = from.color.mix(to.color, share);
                    color.scaled(brightness(off * by_side + out * by_front))
                });
            }
        }
    }

    /// Draws a face, lit from both sides.
    pub(crate) fn face(&mut self, camera: &Camera, corners: &[Corner; 3]) {
        let [a, b, c] = corners;
        let area = edge(a.spot, b.spot, c.spot.x, c.spot.y);
        if area.abs() < 1e-6 || !area.is_finite() {
            return;
        }
        let low = |f: fn(Spot) -> f32| f(a.spot).min(f(b.spot)).min(f(c.spot));
        let high = |f: fn(Spot) -> f32| f(a.spot).max(f(b.spot)).max(f(c.spot));
        for y in self.rows(low(|spot| spot.y), high(|spot| spot.y)) {
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
                self.put(x, y, near, || {
                    let normal = [
                        mixed(|at| at.normal[0]),
                        mixed(|at| at.normal[1]),
                        mixed(|at| at.normal[2]),
                    ];
                    let normal = unit(normal).unwrap_or([0.0, 0.0, 1.0]);
                    // Lit on the side that the viewer sees.
                    let normal = if area > 0.0 {
                        normal.map(|part| -part)
                    } else {
                        normal
                    };
                    let part = |at: usize| {
                        let of = |corner: &Corner| {
                            f32::from(corner.color.0.get(at).copied().unwrap_or(0))
                        };
                        (shares[0] * of(a) + shares[1] * of(b) + shares[2] * of(c)) as u8
                    };
                    surface(Color([part(0), part(1), part(2)]), normal)
                });
            }
        }
    }
}

/// Returns the colour of a surface lit by a lamp and the sky, with a highlight.
fn surface(color: Color, normal: Vector) -> Color {
    let facing = dot(normal, LIGHT).max(0.0);
    let sky = 0.5 + 0.5 * normal[1];
    let lit = 0.26 + 0.18 * sky + 0.64 * facing;
    // The highlight is centred between the light and the viewer.
    let gleam = dot(normal, [-0.191, 0.276, 0.942]).max(0.0).powi(40) * 0.22;
    color.scaled(lit.min(1.05)).mix(Color([255; 3]), gleam)
}

/// Returns the samples whose centre is between two coordinates.
fn samples(from: f32, to: f32, max: usize) -> Range<usize> {
    // Casts truncate in one instruction; `floor` and `ceil` are function calls on the baseline
    // x86-64 target.
    let from = (from - 0.5).max(0.0);
    let cut = from as usize;
    let start = cut.saturating_add(usize::from((cut as f32) < from));
    let end = match to - 0.5 {
        to if to >= 0.0 => (to as usize).saturating_add(1).min(max),
        _ => 0,
    };
    start.min(end)..end
}

fn edge(from: Spot, to: Spot, x: f32, y: f32) -> f32 {
    (to.x - from.x) * (y - from.y) - (to.y - from.y) * (x - from.x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        color::Background,
        frame::Frame,
        view::{Extent, Viewpoint, Window},
    };

    #[test]
    fn samples_have_their_centre_between_the_ends() {
        let check = |from: f32, to: f32, expected: Range<usize>| {
            assert_eq!(samples(from, to, 10), expected, "{from} to {to}");
        };
        check(0.0, 3.0, 0..3);
        check(0.5, 2.5, 0..3);
        check(0.6, 2.4, 1..2);
        check(1.6, 1.9, 2..2);
        check(-7.0, 2.0, 0..2);
        check(-7.0, -2.0, 0..0);
        check(8.0, 99.0, 8..10);
        check(99.0, 100.0, 10..10);
        check(f32::NEG_INFINITY, f32::INFINITY, 0..10);
        check(f32::INFINITY, f32::INFINITY, 10..10);
        check(f32::NAN, f32::NAN, 0..0);
    }

    /// Draws balls, tubes and faces of many sizes and directions, inside and outside the picture.
    fn drawn(frame: &mut Frame, threads: usize) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let camera = camera();
        pool.build().unwrap().install(|| {
            use rayon::prelude::*;
            frame.bands().for_each(|mut band| {
                for number in 0..60_u8 {
                    let at = f32::from(number);
                    let spot = |x: f32, y: f32, near: f32| camera.spot([x, y, near]).unwrap();
                    let one = spot((at * 17.0) % 130.0 - 15.0, (at * 29.0) % 120.0 - 10.0, at);
                    let two = spot(
                        (at * 53.0) % 130.0 - 15.0,
                        (at * 7.0) % 120.0 - 10.0,
                        60.0 - at,
                    );
                    let three = spot((at * 3.0) % 100.0, (at * 11.0) % 100.0, 30.0);
                    let color = Color([number * 4, 255 - number * 4, 128]);
                    let radius = 0.3 + at / 9.0;
                    let end = |spot| End { spot, color };
                    if !band.misses(&[one, two], radius * 2.0) {
                        let along = [two.x - one.x, one.y - two.y, two.near - one.near];
                        band.tube(&camera, end(one), end(two), radius, along);
                    }
                    band.ball(&camera, three, radius, color);
                    if number % 10 == 0 {
                        let corner = |spot| Corner {
                            spot,
                            normal: [0.0, 0.6, 0.8],
                            color,
                        };
                        band.face(&camera, &[corner(one), corner(two), corner(three)]);
                    }
                }
            });
        });
    }

    fn camera() -> Camera {
        let mut extent = Extent::EMPTY;
        extent.add([0.0; 3]);
        extent.add([100.0, 100.0, 60.0]);
        let window = Window {
            from: [0.0; 2],
            size: [150.0; 2],
        };
        Camera::fit(Viewpoint::AXIAL.perspective(), &extent, &window)
    }

    #[test]
    fn the_picture_is_the_same_on_any_number_of_threads() {
        let picture = |threads: usize| {
            let mut frame = Frame::new(50, 49, 3);
            drawn(&mut frame, threads);
            frame.picture(&camera(), Background::Dark, true)
        };
        let alone = picture(1);
        for threads in [2, 3, 7, 64, 200] {
            assert!(picture(threads) == alone, "{threads} threads");
        }
    }
}
