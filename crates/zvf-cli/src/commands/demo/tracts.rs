//! Streamlines of brain bundles, as tractography finds them, in millimetres.

use std::collections::BTreeMap;

use zvf::{Column, ColumnValues, Geometry, GeometryBuilder, NumericColumn};

use super::random::Random;

type Position = [f64; 3];

/// A bundle of streamlines.
struct Bundle {
    name: &'static str,
    middle: &'static [Position],
    /// Distance of streamlines from the centre line at its start, middle and end.
    spread: [f64; 3],
    /// Number of streamlines on each side.
    streamlines: u32,
    is_on_both_sides: bool,
}

/// Bundles by points of their centre lines. Right, front and up are positive; the origin is midway
/// between the commissures.
const BUNDLES: &[Bundle] = &[
    Bundle {
        name: "corticospinal",
        middle: &[
            [6.0, -30.0, -62.0],
            [9.0, -25.0, -38.0],
            [15.0, -20.0, -12.0],
            [24.0, -18.0, 12.0],
            [28.0, -20.0, 36.0],
            [30.0, -24.0, 66.0],
        ],
        spread: [2.2, 4.0, 13.0],
        streamlines: 240,
        is_on_both_sides: true,
    },
    Bundle {
        name: "arcuate",
        middle: &[
            [46.0, 28.0, 10.0],
            [42.0, 10.0, 24.0],
            [38.0, -18.0, 32.0],
            [42.0, -42.0, 24.0],
            [48.0, -46.0, 4.0],
            [54.0, -22.0, -12.0],
        ],
        spread: [7.0, 3.6, 7.0],
        streamlines: 170,
        is_on_both_sides: true,
    },
    Bundle {
        name: "cingulum",
        middle: &[
            [8.0, 32.0, -4.0],
            [8.0, 42.0, 14.0],
            [9.0, 26.0, 32.0],
            [9.0, -6.0, 38.0],
            [10.0, -38.0, 32.0],
            [15.0, -46.0, 10.0],
            [25.0, -32.0, -12.0],
            [27.0, -12.0, -22.0],
        ],
        spread: [3.4, 2.2, 3.4],
        streamlines: 120,
        is_on_both_sides: true,
    },
    Bundle {
        name: "fronto-occipital",
        middle: &[
            [24.0, 56.0, 4.0],
            [27.0, 28.0, -4.0],
            [34.0, 2.0, -8.0],
            [38.0, -30.0, -2.0],
            [30.0, -62.0, 4.0],
            [16.0, -90.0, 6.0],
        ],
        spread: [9.0, 3.2, 8.0],
        streamlines: 160,
        is_on_both_sides: true,
    },
    Bundle {
        name: "uncinate",
        middle: &[
            [20.0, 50.0, -6.0],
            [28.0, 26.0, -12.0],
            [36.0, 6.0, -16.0],
            [38.0, 0.0, -26.0],
            [36.0, 10.0, -38.0],
        ],
        spread: [6.0, 2.8, 5.0],
        streamlines: 100,
        is_on_both_sides: true,
    },
    Bundle {
        name: "longitudinal",
        middle: &[
            [36.0, 2.0, -38.0],
            [44.0, -18.0, -26.0],
            [43.0, -44.0, -12.0],
            [30.0, -72.0, -2.0],
            [16.0, -92.0, -2.0],
        ],
        spread: [6.0, 3.6, 7.0],
        streamlines: 130,
        is_on_both_sides: true,
    },
    Bundle {
        name: "forceps minor",
        middle: &[
            [24.0, 60.0, 12.0],
            [13.0, 44.0, 8.0],
            [0.0, 32.0, 6.0],
            [-13.0, 44.0, 8.0],
            [-24.0, 60.0, 12.0],
        ],
        spread: [10.0, 2.6, 10.0],
        streamlines: 240,
        is_on_both_sides: false,
    },
    Bundle {
        name: "forceps major",
        middle: &[
            [18.0, -92.0, 8.0],
            [22.0, -66.0, 14.0],
            [10.0, -46.0, 16.0],
            [0.0, -40.0, 15.0],
            [-10.0, -46.0, 16.0],
            [-22.0, -66.0, 14.0],
            [-18.0, -92.0, 8.0],
        ],
        spread: [8.0, 2.6, 8.0],
        streamlines: 220,
        is_on_both_sides: false,
    },
    Bundle {
        name: "cerebellar peduncle",
        middle: &[
            [34.0, -68.0, -42.0],
            [25.0, -48.0, -38.0],
            [13.0, -30.0, -34.0],
            [0.0, -22.0, -32.0],
            [-13.0, -30.0, -34.0],
            [-25.0, -48.0, -38.0],
            [-34.0, -68.0, -42.0],
        ],
        spread: [8.0, 3.0, 8.0],
        streamlines: 200,
        is_on_both_sides: false,
    },
];

/// The corpus callosum, a sheet of arcs that lie side by side from front to back.
const CALLOSUM: &str = "callosum";
const ARCS: u32 = 1100;
/// Approximate distance between vertices.
const STEP: f64 = 1.6;

/// Generates the bundles, one group each.
pub(super) fn geometry(seed: u64, fewer: u32) -> GeometryBuilder {
    let mut random = Random::new(seed);
    let mut made = Tracts::default();
    for bundle in BUNDLES {
        let sides: &[f64] = if bundle.is_on_both_sides {
            &[1.0, -1.0]
        } else {
            &[1.0]
        };
        for side in sides {
            for _ in 0..bundle.streamlines / fewer {
                let middle: Vec<Position> = bundle
                    .middle
                    .iter()
                    .map(|[x, y, z]| [x * side, *y, *z])
                    .collect();
                made.add(bundle.name, &middle, bundle.spread, &mut random);
            }
        }
    }
    for _ in 0..ARCS / fewer {
        let along = random.between(-1.0, 1.0);
        let y = -4.0 + 33.0 * along;
        // The end of an arc on the cortex lies between the side and the top of the hemisphere.
        let lift = random.between(0.12, 1.0);
        let (up, out) = (lift * 1.45).sin_cos();
        let top = 13.0 + 7.0 * (1.0 - along * along);
        let end = |sign: f64| {
            [
                sign * (16.0 + 40.0 * out),
                y * 1.22 + 3.0 * along,
                16.0 + 50.0 * up,
            ]
        };
        let shoulder = |sign: f64| [sign * (13.0 + 12.0 * out), y * 1.05, top + 8.0 + 12.0 * up];
        let middle = [
            end(1.0),
            shoulder(1.0),
            [0.0, y, top],
            shoulder(-1.0),
            end(-1.0),
        ];
        made.add(CALLOSUM, &middle, [4.0, 0.9, 4.0], &mut random);
    }
    made.finish()
}

#[derive(Default)]
struct Tracts {
    positions: Vec<f32>,
    fa: Vec<f32>,
    offsets: Vec<u64>,
    lengths: Vec<f32>,
    bundles: Vec<Option<String>>,
    groups: BTreeMap<u32, Vec<i64>>,
    names: Vec<&'static str>,
}

impl Tracts {
    /// Adds a streamline at a random offset from the centre line of its bundle.
    fn add(
        &mut self,
        name: &'static str,
        middle: &[Position],
        spread: [f64; 3],
        random: &mut Random,
    ) {
        let off = [random.normal(), random.normal(), random.normal()]
            .map(|part| part.clamp(-2.2, 2.2) * 0.6);
        // Each streamline winds slowly and has its own start and end.
        let (phase, turn) = (random.between(0.0, 6.0), random.between(0.6, 1.4));
        let (from, to) = (random.between(0.0, 0.06), random.between(0.94, 1.0));
        let core = (-(off[0] * off[0] + off[1] * off[1] + off[2] * off[2]) * 0.8).exp();
        let at = |share: f64| {
            let reach = blend(spread, share);
            let place = curve(middle, share);
            let wave = (phase + turn * 7.0 * share).sin() * 0.16;
            let mut moved = place;
            for (axis, moved) in moved.iter_mut().enumerate() {
                let next = off.get((axis + 1) % 3).copied().unwrap_or(0.0);
                *moved += reach * (off.get(axis).copied().unwrap_or(0.0) + wave * next);
            }
            moved
        };
        let rough: f64 = (0..40_u8)
            .map(|step| distance(at(f64::from(step) / 40.0), at(f64::from(step + 1) / 40.0)))
            .sum();
        let steps = ((rough * (to - from) / STEP).ceil().clamp(8.0, 400.0)) as u32;
        let mut length = 0.0;
        let mut last: Option<Position> = None;
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        for step in 0..=steps {
            let share = from + (to - from) * f64::from(step) / f64::from(steps);
            let place = at(share);
            length += last.map_or(0.0, |last| distance(last, place));
            last = Some(place);
            self.positions.extend(place.map(|part| part as f32));
            let inside = (share * std::f64::consts::PI).sin().max(0.0).sqrt();
            let fa = 0.18 + (0.22 + 0.38 * core) * inside + 0.025 * random.normal();
            self.fa.push(fa.clamp(0.05, 0.95) as f32);
        }
        self.offsets.push(self.fa.len() as u64);
        let object = self.lengths.len() as i64;
        self.lengths.push(length as f32);
        self.bundles.push(Some(name.to_owned()));
        let group = self
            .names
            .iter()
            .position(|known| *known == name)
            .unwrap_or_else(|| {
                self.names.push(name);
                self.names.len() - 1
            });
        self.groups.entry(group as u32).or_default().push(object);
    }

    fn finish(self) -> GeometryBuilder {
        let text = |values: Vec<Option<String>>| ColumnValues::text(values);
        let attribute = |name: &str, values| Column::new(name.to_owned(), values);
        let numbers = |values| ColumnValues::Numeric(NumericColumn::float32(1, values));
        let names = self.names.iter().map(|name| Some((*name).to_owned()));
        Geometry::builder(NumericColumn::float32(3, self.positions))
            .paths(self.offsets, None)
            .vertex(vec![attribute("fa", numbers(self.fa))])
            .object(vec![
                attribute("length", numbers(self.lengths)),
                attribute("bundle", text(self.bundles)),
            ])
            .groups(self.groups)
            .group(vec![attribute("name", text(names.collect()))])
    }
}

/// Evaluates the Catmull–Rom spline through points: 0 is the first, 1 the last.
fn curve(through: &[Position], share: f64) -> Position {
    let last = through.len().saturating_sub(1);
    let scaled = share.clamp(0.0, 1.0) * last as f64;
    let at = (scaled.floor() as usize).min(last.saturating_sub(1));
    let part = scaled - at as f64;
    let place = |at: usize| through.get(at.min(last)).copied().unwrap_or_default();
    let (b, c) = (place(at), place(at + 1));
    let (a, d) = (if at == 0 { b } else { place(at - 1) }, place(at + 2));
    [0, 1, 2].map(|axis: usize| {
        let [a, b, c, d] = [a[axis], b[axis], c[axis], d[axis]];
        let bend = 2.0 * a - 5.0 * b + 4.0 * c - d;
        let twist = 3.0 * b - 3.0 * c + d - a;
        0.5 * (2.0 * b + part * (c - a + part * (bend + part * twist)))
    })
}

/// Interpolates from the first value over the middle one to the last.
fn blend([first, middle, last]: [f64; 3], share: f64) -> f64 {
    let off = (2.0 * share - 1.0).abs().powf(1.6);
    let end = if share < 0.5 { first } else { last };
    middle + (end - middle) * off
}

fn distance(a: Position, b: Position) -> f64 {
    let off = [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
    off.iter().map(|part| part * part).sum::<f64>().sqrt()
}
