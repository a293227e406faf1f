//! Plot of the sizes of chunks and fragments, with a row per level.

use crate::{
    color::{Background, Color},
    palette,
    picture::Picture,
    scale::grouped,
    sheet::{Anchor, Sheet},
    statistics::{LevelStatistics, SizeHistogram},
};

const WIDTH: f32 = 1080.0;
const TOP: f32 = 118.0;
/// Height of a level's row.
const ROW: f32 = 112.0;
const BOTTOM: f32 = 56.0;
/// Left edge and width of each column.
const BARS: [f32; 2] = [112.0, 228.0];
const CHUNKS: [f32; 2] = [404.0, 300.0];
const FRAGMENTS: [f32; 2] = [744.0, 300.0];
/// Maximum number of levels drawn.
const MAX_LEVELS: usize = 16;
/// Pixels per unit of text in raster pictures.
const ZOOM: f32 = 2.0;

/// A plot of a store's levels, chunks and fragments.
#[derive(Clone, Debug)]
pub struct Plot {
    sheet: Sheet,
    size: [f32; 2],
}

impl Plot {
    /// Creates a plot of these levels, finest first.
    pub fn new(title: &str, levels: &[LevelStatistics]) -> Self {
        let shown = levels.len().min(MAX_LEVELS);
        let levels = levels.get(..shown).unwrap_or_default();
        let mut plot = Self {
            sheet: Sheet::default(),
            size: [WIDTH, TOP + ROW * shown as f32 + BOTTOM],
        };
        let (text_color, faint) = (PAPER.text_color(), PAPER.faint_text_color());
        plot.sheet
            .text([28.0, 42.0], 21.0, Anchor::Start, title, text_color);
        for (left, text) in [
            (BARS[0], "vertices and bytes"),
            (CHUNKS[0], "chunks by vertices in them"),
            (FRAGMENTS[0], "fragments by vertices in them"),
        ] {
            plot.sheet
                .text([left, 82.0], 14.0, Anchor::Start, text, faint);
        }
        let max_vertices = levels.iter().filter_map(|level| level.vertices).max();
        let max_bytes = levels.iter().map(|level| level.bytes).max();
        let chunks = span(levels.iter().map(|level| &level.chunks));
        let fragments = span(levels.iter().map(|level| &level.fragments));
        for (at, level) in levels.iter().enumerate() {
            let foot = TOP + ROW * (at + 1) as f32 - 26.0;
            let name = format!("level {}", level.level);
            plot.sheet
                .text([28.0, foot - 34.0], 15.0, Anchor::Start, &name, text_color);
            let vertices = level.vertices;
            plot.bar(foot - 58.0, vertices, max_vertices, "vertices", VERTICES);
            plot.bar(foot - 18.0, Some(level.bytes), max_bytes, "bytes", BYTES);
            plot.histogram(CHUNKS, foot, &level.chunks, chunks, VERTICES);
            plot.histogram(FRAGMENTS, foot, &level.fragments, fragments, PIECES);
        }
        let foot = TOP + ROW * shown as f32 - 8.0;
        plot.classes(CHUNKS, foot, chunks);
        plot.classes(FRAGMENTS, foot, fragments);
        plot
    }

    /// Writes the plot as an SVG file.
    pub fn svg(&self) -> String {
        self.sheet.svg(self.size, GROUND)
    }

    /// Draws the plot as a raster picture.
    pub fn picture(&self) -> Picture {
        let [width, height] = self.size.map(|side| (side * ZOOM) as usize);
        let mut picture = Picture::filled(width, height, GROUND);
        picture.draw(&self.sheet, ZOOM);
        picture
    }

    /// Draws the size of a level relative to the largest.
    fn bar(&mut self, y: f32, value: Option<u64>, max: Option<u64>, unit: &str, color: Color) {
        let [left, width] = BARS;
        let text = value.map_or(format!("– {unit}"), |value| {
            format!("{} {unit}", grouped(value))
        });
        self.sheet.text(
            [left, y - 5.0],
            12.5,
            Anchor::Start,
            &text,
            PAPER.text_color(),
        );
        self.sheet.fill([left, y], [width, 9.0], RAIL);
        let share = value.unwrap_or(0) as f64 / max.unwrap_or(0).max(1) as f64;
        self.sheet
            .fill([left, y], [(width * share as f32).max(1.0), 9.0], color);
    }

    fn histogram(
        &mut self,
        [left, width]: [f32; 2],
        foot: f32,
        histogram: &SizeHistogram,
        classes: Classes,
        color: Color,
    ) {
        let max = histogram.buckets.iter().copied().max().unwrap_or(0).max(1);
        let step = width / classes.count().max(1) as f32;
        let height = ROW - 48.0;
        for class in classes.first..=classes.last {
            let count = histogram.buckets.get(class).copied().unwrap_or(0);
            let share = (count as f64 / max as f64) as f32;
            let tall = if count > 0 {
                (share * height).max(1.5)
            } else {
                0.0
            };
            let x = left + step * (class - classes.first) as f32;
            self.sheet
                .fill([x + 1.0, foot - tall], [(step - 2.0).max(0.5), tall], color);
        }
        self.sheet.line(
            [[left, foot + 0.5], [left + width, foot + 0.5]],
            1.0,
            PAPER.faint_text_color(),
        );
        let text = match histogram.mean() {
            None => "none readable".to_owned(),
            Some(mean) => format!(
                "{} · mean {} · max {}",
                grouped(histogram.count),
                grouped(mean.round() as u64),
                grouped(histogram.max)
            ),
        };
        self.sheet.text(
            [left, foot - height - 7.0],
            12.5,
            Anchor::Start,
            &text,
            PAPER.text_color(),
        );
    }

    /// Labels the classes of a column below its last row.
    fn classes(&mut self, [left, width]: [f32; 2], foot: f32, classes: Classes) {
        let step = width / classes.count().max(1) as f32;
        let every = classes.count().div_ceil(7).max(1);
        for class in (classes.first..=classes.last).step_by(every) {
            let x = left + step * (class - classes.first) as f32;
            let text = short(
                class
                    .checked_sub(1)
                    .map_or(0, |power| 1_u64 << power.min(63)),
            );
            self.sheet.text(
                [x + step / 2.0, foot + 2.0],
                12.0,
                Anchor::Middle,
                &text,
                PAPER.faint_text_color(),
            );
        }
        let middle = left + width / 2.0;
        let text = "vertices (each class doubles the previous)";
        self.sheet.text(
            [middle, foot + 24.0],
            12.0,
            Anchor::Middle,
            text,
            PAPER.faint_text_color(),
        );
    }
}

const PAPER: Background = Background::Light;
const GROUND: Color = Color::hex(0xff_ff_ff);
const RAIL: Color = Color::hex(0xe9_ed_f1);
const VERTICES: Color = Color::hex(0x2a_78_8e);
const BYTES: Color = Color::hex(0xb8_c4_cf);
const PIECES: Color = palette::CORAL;

/// Range of size classes of a column.
#[derive(Clone, Copy, Debug)]
struct Classes {
    first: usize,
    last: usize,
}

impl Classes {
    fn count(self) -> usize {
        self.last - self.first + 1
    }
}

/// Returns the classes that any histogram fills, at least six.
fn span<'a>(histograms: impl Iterator<Item = &'a SizeHistogram>) -> Classes {
    let mut classes: Option<Classes> = None;
    for histogram in histograms {
        let filled = histogram
            .buckets
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0);
        for (class, _) in filled {
            let known = classes.unwrap_or(Classes {
                first: class,
                last: class,
            });
            let (first, last) = (known.first.min(class), known.last.max(class));
            classes = Some(Classes { first, last });
        }
    }
    let found = classes.unwrap_or(Classes { first: 0, last: 0 });
    Classes {
        first: found.first,
        last: found.last.max(found.first + 5),
    }
}

/// Writes a power of two with a binary prefix.
fn short(number: u64) -> String {
    match number {
        0..1024 => number.to_string(),
        1024..1_048_576 => format!("{}Ki", number >> 10),
        1_048_576..1_073_741_824 => format!("{}Mi", number >> 20),
        _ => format!("{}Gi", number >> 30),
    }
}
