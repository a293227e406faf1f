//! The frame: samples with a depth buffer, and their conversion to pixels.

use rayon::prelude::*;

use crate::{
    band::Band,
    color::{Background, Color},
    picture::Picture,
    view::Camera,
};

/// Samples, one or more per pixel of the picture.
#[derive(Debug)]
pub(crate) struct Frame {
    width: usize,
    height: usize,
    /// Samples per pixel along each side.
    fine: usize,
    near: Vec<f32>,
    color: Vec<Color>,
}

impl Frame {
    /// Creates an empty frame of `width` × `height` pixels with `fine` × `fine` samples each.
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

    /// Divides the rows into one band per thread.
    pub(crate) fn bands(&mut self) -> impl IndexedParallelIterator<Item = Band<'_>> {
        let (width, height) = (self.width, self.height);
        let rows = height.div_ceil(rayon::current_num_threads().max(1)).max(1);
        let samples = (rows * width).max(1);
        let near = self.near.par_chunks_mut(samples);
        let color = self.color.par_chunks_mut(samples);
        near.zip(color)
            .enumerate()
            .map(move |(band, (near, color))| {
                let first = band * rows;
                let rows = first..(first + rows).min(height);
                Band::new(width, rows, near, color)
            })
    }

    /// Returns the pixels: the mean of their samples as light. Samples beside nearer geometry are
    /// darker, as are distant ones with `depth_cue`.
    pub(crate) fn picture(
        &self,
        camera: &Camera,
        background: Background,
        depth_cue: bool,
    ) -> Picture {
        let (width, height) = (self.width / self.fine, self.height / self.fine);
        let fade = if depth_cue { MAX_FADE } else { 0.0 };
        let mut pixels = vec![[0; 3]; width * height];
        let light = light_of_bytes();
        let share = 1.0 / (self.fine * self.fine) as f32;
        pixels
            .par_chunks_mut(width.max(1))
            .enumerate()
            .for_each(|(row, pixels)| {
                let behind = backdrop(background, row, height);
                for (column, pixel) in pixels.iter_mut().enumerate() {
                    let mut sum = [0.0_f32; 3];
                    for y in row * self.fine..(row + 1) * self.fine {
                        for x in column * self.fine..(column + 1) * self.fine {
                            let color = self.shaded(camera, x, y, behind, fade);
                            for (sum, part) in sum.iter_mut().zip(color.0) {
                                *sum += light.get(usize::from(part)).copied().unwrap_or(0.0);
                            }
                        }
                    }
                    *pixel = sum.map(|sum| byte_of_light(sum * share));
                }
            });
        Picture::of(width, height, pixels)
    }

    fn near_at(&self, x: usize, y: usize) -> f32 {
        let at = y * self.width + x;
        self.near.get(at).copied().unwrap_or(f32::NEG_INFINITY)
    }

    /// Returns the colour of a sample with shadow and fading.
    fn shaded(&self, camera: &Camera, x: usize, y: usize, behind: Color, fade: f32) -> Color {
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
            for (dx, dy) in NEIGHBOURS {
                let (x, y) = (
                    moved(x, dx * ring.cast_signed()),
                    moved(y, dy * ring.cast_signed()),
                );
                let (Some(x), Some(y)) = (x, y) else { continue };
                if x < self.width {
                    // Geometry far in front darkens no more than geometry a little in front.
                    let over = (self.near_at(x, y) - near) / camera.depth;
                    sum += (over * 4.0).clamp(0.0, 1.0);
                }
            }
            hidden += weight * sum / NEIGHBOURS.len() as f32;
        }
        let far = (0.5 - near / camera.depth / 2.0).clamp(0.0, 1.0);
        // Only the lightness changes: a mix with the background would give another colour of the
        // legend.
        color.scaled((1.0 - SHADE * hidden.min(1.0)) * (1.0 - fade * far * far))
    }
}

/// Share of brightness that the farthest geometry loses.
const MAX_FADE: f32 = 0.45;
/// Share of brightness that geometry loses if nearer geometry surrounds it.
const SHADE: f32 = 0.62;

/// Offsets of the neighbours of a sample.
const NEIGHBOURS: [(isize, isize); 8] = [
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

/// Returns the colour of an empty row.
fn backdrop(background: Background, row: usize, height: usize) -> Color {
    let [top, bottom] = background.colors();
    top.mix(bottom, row as f32 / height.max(1) as f32)
}

fn light_of_bytes() -> [f32; 256] {
    core::array::from_fn(|byte| {
        let [light, ..] = Color([byte as u8; 3]).linear();
        light
    })
}

fn byte_of_light(light: f32) -> u8 {
    let part = if light <= 0.003_130_8 {
        light * 12.92
    } else {
        1.055 * light.powf(1.0 / 2.4) - 0.055
    };
    (part * 255.0).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{Extent, Viewpoint, Window};

    /// Distance may not turn a colour of the legend into another one.
    #[test]
    fn distance_changes_lightness_only() {
        let mut extent = Extent::EMPTY;
        extent.add([0.0; 3]);
        extent.add([100.0; 3]);
        let window = Window {
            from: [0.0; 2],
            size: [8.0; 2],
        };
        let camera = Camera::fit(Viewpoint::AXIAL, &extent, &window);
        let (width, height) = (9, 1);
        let mut frame = Frame::new(width, height, 1);
        // The samples lie so far apart that none shades another.
        for (at, near) in [(0, camera.depth), (8, -camera.depth)] {
            frame.near[at] = near;
            frame.color[at] = Color([240, 120, 60]);
        }
        for background in [Background::Dark, Background::Light] {
            let picture = frame.picture(&camera, background, true);
            let (near, far) = (picture.pixels()[0], picture.pixels()[8]);
            assert_eq!(near, [240, 120, 60]);
            let [red, green, blue] = far.map(i32::from);
            assert!(red < 150 && red > 100, "{far:?}");
            assert!((red - 2 * green).abs() <= 2 && (red - 4 * blue).abs() <= 4);
            let picture = frame.picture(&camera, background, false);
            assert_eq!(picture.pixels()[8], [240, 120, 60]);
        }
    }
}
