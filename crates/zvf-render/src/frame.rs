//! Where things are drawn that hide each other.

use rayon::prelude::*;

use crate::{
    band::Band,
    color::{Background, Color},
    picture::Picture,
    view::Camera,
};

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

    /// Its rows, shared among as many as can draw at once.
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
