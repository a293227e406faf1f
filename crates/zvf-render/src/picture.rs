//! Raster pictures.

use crate::{
    color::Color,
    font::{self, Place},
    png,
    sheet::{Mark, Sheet},
};

/// A raster picture: rows of pixels from the top, each red, green, blue.
#[derive(Clone, PartialEq, Eq)]
pub struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<[u8; 3]>,
}

impl core::fmt::Debug for Picture {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Picture({} × {})", self.width, self.height)
    }
}

impl Picture {
    /// Creates a picture of one colour.
    pub(crate) fn filled(width: usize, height: usize, color: Color) -> Self {
        Self::of(width, height, vec![color.0; width.saturating_mul(height)])
    }

    /// Creates a picture from pixels; missing pixels are black.
    pub(crate) fn of(width: usize, height: usize, mut pixels: Vec<[u8; 3]>) -> Self {
        pixels.resize(width.saturating_mul(height), [0; 3]);
        Self {
            width,
            height,
            pixels,
        }
    }

    /// Returns the number of pixels per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the number of rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Returns the pixels, row by row.
    pub fn pixels(&self) -> &[[u8; 3]] {
        &self.pixels
    }

    /// Encodes the picture as a PNG file.
    pub fn png(&self) -> Vec<u8> {
        png::encode(self.width, &self.pixels)
    }

    /// Draws a sheet over the picture; `zoom` is the number of pixels per unit of the sheet.
    pub(crate) fn draw(&mut self, sheet: &Sheet, zoom: f32) {
        for mark in &sheet.marks {
            match mark {
                Mark::Box { from, size, color } => {
                    self.fill(
                        from.map(|at| at * zoom),
                        size.map(|side| side * zoom),
                        *color,
                    );
                }
                Mark::Line {
                    places,
                    width,
                    color,
                } => {
                    let places: Vec<Place> = places
                        .iter()
                        .map(|place| place.map(|at| at * zoom))
                        .collect();
                    self.stroke(&[places], width * zoom, *color);
                }
                Mark::Text {
                    at,
                    size,
                    anchor,
                    text,
                    color,
                } => {
                    let [x, y] = at.map(|at| at * zoom);
                    let size = size * zoom;
                    let left = x - anchor.shift(text, size);
                    let mut strokes = font::strokes(text, size);
                    for place in strokes.iter_mut().flatten() {
                        *place = [place[0] + left, place[1] + y];
                    }
                    self.stroke(&strokes, font::stroke_width(size), *color);
                }
            }
        }
    }

    fn fill(&mut self, [x, y]: Place, [width, height]: Place, color: Color) {
        let covers = |at: usize, from: f32, size: f32| {
            let at = at as f32;
            ((at + 1.0).min(from + size) - at.max(from)).clamp(0.0, 1.0)
        };
        for row in span(y, y + height, self.height) {
            for column in span(x, x + width, self.width) {
                let share = covers(row, y, height) * covers(column, x, width);
                self.blend(column, row, color, share);
            }
        }
    }

    /// Draws lines with a round pen. Crossings are blended once.
    fn stroke(&mut self, strokes: &[Vec<Place>], width: f32, color: Color) {
        // Lines thinner than a pixel become fainter, not thinner.
        let half = (width / 2.0).max(0.5);
        let strength = (width / 2.0 / half).clamp(0.0, 1.0);
        let reach = half + 1.0;
        let mut lines = Vec::new();
        for stroke in strokes {
            lines.extend(
                stroke
                    .windows(2)
                    .filter_map(|pair| Some((*pair.first()?, *pair.last()?))),
            );
            if let [only] = stroke.as_slice() {
                lines.push((*only, *only));
            }
        }
        let mut covered: Vec<(usize, usize, f32)> = Vec::new();
        for (from, to) in lines {
            let (low, high) = (
                [from[0].min(to[0]) - reach, from[1].min(to[1]) - reach],
                [from[0].max(to[0]) + reach, from[1].max(to[1]) + reach],
            );
            for row in span(low[1], high[1], self.height) {
                for column in span(low[0], high[0], self.width) {
                    let at = [column as f32 + 0.5, row as f32 + 0.5];
                    let share = (half + 0.5 - distance(at, from, to)).clamp(0.0, 1.0);
                    if share > 0.0 {
                        covered.push((row, column, share));
                    }
                }
            }
        }
        covered.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(b.2.total_cmp(&a.2)));
        covered.dedup_by_key(|(row, column, _)| (*row, *column));
        for (row, column, share) in covered {
            self.blend(column, row, color, share * strength);
        }
    }

    fn blend(&mut self, column: usize, row: usize, color: Color, share: f32) {
        let at = row * self.width + column;
        if let Some(pixel) = self.pixels.get_mut(at).filter(|_| column < self.width) {
            *pixel = Color(*pixel).mix(color, share).0;
        }
    }
}

/// Returns the pixels between two coordinates.
fn span(from: f32, to: f32, max: usize) -> core::ops::Range<usize> {
    let start = (from.floor().max(0.0) as usize).min(max);
    let end = (to.ceil().max(0.0) as usize).min(max);
    start..end.max(start)
}

fn distance(at: Place, from: Place, to: Place) -> f32 {
    let along = [to[0] - from[0], to[1] - from[1]];
    let off = [at[0] - from[0], at[1] - from[1]];
    let length = along[0] * along[0] + along[1] * along[1];
    let share = if length > 0.0 {
        ((off[0] * along[0] + off[1] * along[1]) / length).clamp(0.0, 1.0)
    } else {
        0.0
    };
    (off[0] - share * along[0]).hypot(off[1] - share * along[1])
}
