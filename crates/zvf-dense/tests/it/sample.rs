//! Samples compared with plain loops over the whole array.
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "volumes are small"
)]

mod formats;
mod once;
mod recipe;

use std::{collections::BTreeMap, sync::Mutex};

use serde_json::{Map, Value};
use zvf_dense::{
    ChunkGrid, DenseArray, DenseError, Hyperslab, MemoryArray, NumpyDtype, ReadCost,
    sample::{Affine, Interpolation, Outside, SampleOptions, Sampler},
};
use zvf_model::random::SplitMix64;

/// A deterministic random number generator.
struct Draw(SplitMix64);

impl Draw {
    fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Returns a number from `low` to below `high`.
    fn float(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.below(1 << 30) as f64 / f64::from(1 << 30))
    }
}

/// An array of chunks that counts the reads of each chunk.
#[derive(Debug)]
struct Counted {
    inner: MemoryArray,
    grid: ChunkGrid,
    reads: Mutex<BTreeMap<Vec<u64>, u64>>,
}

impl Counted {
    fn new(inner: MemoryArray, chunk: &[u64]) -> Self {
        let grid = ChunkGrid::new(inner.shape().to_vec(), chunk.to_vec(), None).unwrap();
        Self {
            inner,
            grid,
            reads: Mutex::default(),
        }
    }
}

impl DenseArray for Counted {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn dtype(&self) -> &NumpyDtype {
        self.inner.dtype()
    }

    fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    fn attributes(&self) -> &Map<String, Value> {
        self.inner.attributes()
    }

    fn budget(&self) -> u64 {
        self.inner.budget()
    }

    fn read_plan(&self, selection: &Hyperslab) -> Result<ReadCost, DenseError> {
        self.inner.read_plan(selection)
    }

    fn slice_into(&self, selection: &Hyperslab, into: &mut [u8]) -> Result<ReadCost, DenseError> {
        let mut cells = self.grid.chunks(selection);
        while let Some(parts) = cells.next() {
            let cell = parts.iter().map(|part| part.cell).collect();
            *self.reads.lock().unwrap().entry(cell).or_default() += 1;
        }
        self.inner.slice_into(selection, into)
    }
}

/// Creates a volume of floats; one in `nans` is NaN on average.
fn volume(draw: &mut Draw, shape: &[u64], nans: u64) -> (MemoryArray, Vec<f64>) {
    let count = shape.iter().product::<u64>();
    let values: Vec<f64> = (0..count)
        .map(|_| {
            if nans > 0 && draw.below(nans) == 0 {
                f64::NAN
            } else {
                draw.float(-5.0, 5.0)
            }
        })
        .collect();
    let bytes = values
        .iter()
        .flat_map(|value| value.to_be_bytes())
        .collect();
    let dtype = NumpyDtype::parse(">f8").unwrap();
    let array = MemoryArray::new("volume", dtype, shape.to_vec(), bytes).unwrap();
    (array, values)
}

/// Returns the weight of a voxel at a signed distance, before its index is clamped.
fn weight(interpolation: Interpolation, distance: f64) -> f64 {
    let d = distance.abs();
    match interpolation {
        Interpolation::Nearest => f64::from(u8::from((-0.5..0.5).contains(&distance))),
        Interpolation::Linear => (1.0 - d).max(0.0),
        // Keys' kernel with a = -1/2.
        Interpolation::Cubic if d < 1.0 => 1.5 * d.powi(3) - 2.5 * d.powi(2) + 1.0,
        Interpolation::Cubic if d < 2.0 => -0.5 * d.powi(3) + 2.5 * d.powi(2) - 4.0 * d + 2.0,
        Interpolation::Cubic => 0.0,
    }
}

/// Weighs all voxels of the volume, and three beyond each edge.
fn plain(
    values: &[f64],
    shape: &[u64],
    columns: u64,
    at: &[f64],
    (interpolation, is_edge): (Interpolation, bool),
) -> Vec<f64> {
    let beyond = at.iter().zip(shape);
    let is_outside = beyond
        .clone()
        .any(|(at, extent)| !(-0.5..=*extent as f64 - 0.5).contains(at));
    if is_outside && !is_edge {
        return vec![f64::NAN; columns as usize];
    }
    let at: Vec<f64> = beyond
        .map(|(at, extent)| at.clamp(0.0, *extent as f64 - 1.0))
        .collect();
    let all: Vec<i64> = shape.iter().map(|extent| *extent as i64 + 6).collect();
    let result = (0..columns).map(|column| {
        let (mut sum, mut total, mut has_nan) = (0.0, 0.0, false);
        for number in 0..all.iter().product::<i64>() {
            let (mut rest, mut place, mut stride, mut product) = (number, 0, 1, 1.0);
            for axis in (0..shape.len()).rev() {
                let voxel = rest % all[axis] - 3;
                rest /= all[axis];
                product *= weight(interpolation, voxel as f64 - at[axis]);
                place += voxel.clamp(0, shape[axis] as i64 - 1) * stride;
                stride *= shape[axis] as i64;
            }
            if product == 0.0 {
                continue;
            }
            let value = values[(place as u64 * columns + column) as usize];
            if value.is_nan() {
                has_nan = true;
            } else {
                (sum, total) = (sum + product * value, total + product);
            }
        }
        match has_nan {
            false => sum,
            true if interpolation == Interpolation::Cubic => {
                let linear = (Interpolation::Linear, is_edge);
                plain(values, shape, columns, &at, linear)[column as usize]
            }
            true if total >= 0.5 => sum / total,
            true => f64::NAN,
        }
    });
    result.collect()
}

fn floats(bytes: &[u8]) -> Vec<f64> {
    let (values, _) = bytes.as_chunks();
    values
        .iter()
        .map(|value| f64::from_le_bytes(*value))
        .collect()
}

#[test]
fn interpolations_match_plain_loops() {
    let mut draw = Draw::new(0x1234_5678);
    for round in 0..90 {
        let axes = 1 + round % 3;
        let shape: Vec<u64> = (0..axes).map(|_| 1 + draw.below(7)).collect();
        let columns = 1 + draw.below(3);
        let mut full = shape.clone();
        full.extend((columns > 1).then_some(columns));
        let nans = [0, 6][usize::from(draw.below(2) == 0)];
        let (array, values) = volume(&mut draw, &full, nans);
        let chunk: Vec<u64> = full.iter().map(|extent| 1 + draw.below(*extent)).collect();
        let array = Counted::new(array, &chunk);
        // Use a random matrix near the identity.
        let mut matrix: Vec<f64> = Vec::new();
        for row in 0..axes {
            let own = (0..=axes).map(|at| draw.float(-0.4, 0.4) + f64::from(u8::from(at == row)));
            matrix.extend(own);
        }
        matrix.extend((0..=axes).map(|at| f64::from(u8::from(at == axes))));
        let affine = Affine::of(&matrix).unwrap();
        let points = 25;
        let mut positions: Vec<f64> = Vec::new();
        for _ in 0..points {
            positions.extend(
                shape
                    .iter()
                    .map(|extent| draw.float(-1.5, *extent as f64 + 1.0)),
            );
        }
        for interpolation in [
            Interpolation::Nearest,
            Interpolation::Linear,
            Interpolation::Cubic,
        ] {
            let is_edge = draw.below(2) == 0;
            let options = SampleOptions {
                interpolation,
                affine: Some(affine.clone()),
                outside: is_edge.then_some(Outside::Edge),
                // Limit memory to little more than the voxels around one point.
                budget: Some(16 * columns * 4_u64.pow(axes as u32) + draw.below(3000)),
            };
            let sampler = Sampler::new(&array, axes, &options).unwrap();
            let found = floats(&sampler.sample(&positions).unwrap().values);
            assert_eq!(found.len(), points * columns as usize);
            for (point, found) in found.chunks(columns as usize).enumerate() {
                let position = &positions[point * axes..(point + 1) * axes];
                let at: Vec<f64> = matrix
                    .chunks(axes + 1)
                    .take(axes)
                    .map(|row| {
                        row.iter().zip(position).map(|(a, b)| a * b).sum::<f64>() + row[axes]
                    })
                    .collect();
                let expected = plain(&values, &shape, columns, &at, (interpolation, is_edge));
                for (found, expected) in found.iter().zip(expected) {
                    let is_same = found.is_nan() && expected.is_nan();
                    assert!(
                        is_same || (found - expected).abs() < 1e-9,
                        "round {round}, {interpolation:?} at {at:?}: {found}, not {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_chunk_is_read_once() {
    let mut draw = Draw::new(99);
    let (array, _) = volume(&mut draw, &[24, 20, 16], 0);
    let array = Counted::new(array, &[8, 5, 4]);
    let mut positions = Vec::new();
    for _ in 0..3000 {
        positions.extend([24.0, 20.0, 16.0].map(|extent| draw.float(-0.4, extent - 0.6)));
    }
    let chunks = 3 * 4 * 4;
    // Nearest interpolation needs a single tile per point, so it reads each chunk once with any
    // memory.
    let room = [Some(8 * 5 * 4 * 16), Some(3 * 8 * 5 * 4 * 16), None];
    for (interpolation, rooms) in [
        (Interpolation::Nearest, &room[..]),
        (Interpolation::Linear, &room[2..]),
        (Interpolation::Cubic, &room[2..]),
    ] {
        for budget in rooms {
            let options = SampleOptions {
                interpolation,
                budget: *budget,
                ..SampleOptions::default()
            };
            array.reads.lock().unwrap().clear();
            let sampler = Sampler::new(&array, 3, &options).unwrap();
            sampler.sample(&positions).unwrap();
            let reads = array.reads.lock().unwrap();
            assert_eq!(reads.len(), chunks, "{interpolation:?} {budget:?}");
            assert!(reads.values().all(|count| *count == 1), "{reads:?}");
        }
    }
    // A few distant points touch only their own chunks.
    array.reads.lock().unwrap().clear();
    let options = SampleOptions {
        interpolation: Interpolation::Nearest,
        ..SampleOptions::default()
    };
    let sampler = Sampler::new(&array, 3, &options).unwrap();
    sampler.sample(&[0.0, 0.0, 0.0, 23.0, 19.0, 15.0]).unwrap();
    let reads: Vec<Vec<u64>> = array.reads.lock().unwrap().keys().cloned().collect();
    assert_eq!(reads, [vec![0, 0, 0], vec![2, 3, 3]]);
}

#[test]
fn nearest_keeps_integers_exact() {
    let values = [i64::MAX, -3, i64::MIN, 7];
    let bytes = values
        .iter()
        .flat_map(|value| value.to_be_bytes())
        .collect();
    let array = MemoryArray::new("ids", NumpyDtype::parse(">i8").unwrap(), vec![4], bytes).unwrap();
    let mut options = SampleOptions {
        interpolation: Interpolation::Nearest,
        ..SampleOptions::default()
    };
    let positions = [0.4, 2.0, 9.0, 0.5, f64::NAN];
    let sampled = Sampler::new(&array, 1, &options)
        .unwrap()
        .sample(&positions)
        .unwrap();
    let (found, _) = sampled.values.as_chunks();
    let found: Vec<i64> = found
        .iter()
        .map(|value| i64::from_le_bytes(*value))
        .collect();
    assert_eq!(
        (found, sampled.outside),
        (vec![i64::MAX, i64::MIN, 0, -3, 0], 2)
    );
    options.outside = Some(Outside::Fill(0.5));
    assert!(Sampler::new(&array, 1, &options).is_err());
}

#[test]
fn invalid_arrays_and_options_are_rejected() {
    let array = |dtype: &str, shape: &[u64], len| {
        let dtype = NumpyDtype::parse(dtype).unwrap();
        MemoryArray::new("array", dtype, shape.to_vec(), vec![0; len]).unwrap()
    };
    let refused = |array: &MemoryArray, axes, options: &SampleOptions| {
        matches!(
            Sampler::new(array, axes, options),
            Err(DenseError::Sampling { .. })
        )
    };
    let mut options = SampleOptions::default();
    assert!(refused(&array("c8", &[2], 16), 1, &options));
    assert!(refused(&array("S4", &[2], 8), 1, &options));
    assert!(refused(&array("f4", &[2], 8), 2, &options));
    assert!(refused(&array("f4", &[0], 0), 1, &options));
    let bytes = array("f4", &[4, 4], 64);
    assert!(!refused(&bytes, 2, &options));
    options.affine = Some(Affine::identity(3));
    assert!(refused(&bytes, 2, &options));
    let tight = SampleOptions {
        budget: Some(1),
        ..SampleOptions::default()
    };
    let sampled = Sampler::new(&bytes, 2, &tight).unwrap().sample(&[1.5, 1.5]);
    assert!(matches!(sampled, Err(DenseError::Budget { .. })));
}

#[test]
fn affine_maps_are_read_from_text_and_arrays() {
    let expected = Affine::of(&[2.0, 0.0, 1.0, 0.0, 3.0, -1.0, 0.0, 0.0, 1.0]).unwrap();
    for text in [
        "2 0 1\n0 3 -1\n0 0 1\n",
        "2,0,1;0,3,-1;0,0,1",
        "[[2, 0, 1], [0, 3, -1], [0, 0, 1]]",
    ] {
        assert_eq!(Affine::parse(text).unwrap(), expected);
    }
    let bytes = [2_i16, 0, 1, 0, 3, -1, 0, 0, 1]
        .map(i16::to_le_bytes)
        .concat();
    let array =
        MemoryArray::new("map", NumpyDtype::parse("<i2").unwrap(), vec![3, 3], bytes).unwrap();
    assert_eq!(Affine::of_array(&array).unwrap(), expected);
    for text in [
        "",
        "1 2 3",
        "1 0 0 2",
        "1 x 0 1",
        "[1, null, 0, 1]",
        "inf 0 0 1",
        "[[",
    ] {
        assert!(Affine::parse(text).is_err(), "{text}");
    }
}
