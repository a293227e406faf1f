//! Numbers of block reads over several calls, as in a command that samples in batches.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::{Map, Value};
use zvf_dense::{
    ChunkGrid, DenseArray, DenseError, Hyperslab, MemoryArray, NumpyDtype, ReadCost,
    sample::{Interpolation, SampleOptions, Sampler},
};

use super::{Draw, volume};

/// An array of blocks in chunks that counts the reads of each block and the requested bytes.
#[derive(Debug)]
struct Blocks {
    inner: MemoryArray,
    grid: ChunkGrid,
    reads: Mutex<BTreeMap<Vec<u64>, u64>>,
    bytes: AtomicU64,
}

impl Blocks {
    fn new(inner: MemoryArray, chunk: &[u64], block: &[u64]) -> Self {
        let grid = ChunkGrid::new(inner.shape().to_vec(), chunk.to_vec(), Some(block.to_vec()));
        Self {
            inner,
            grid: grid.unwrap(),
            reads: Mutex::default(),
            bytes: AtomicU64::new(0),
        }
    }

    /// Returns the number of blocks read since the last call, and the maximum number of reads of
    /// one block.
    fn take(&self) -> (usize, u64) {
        let reads = std::mem::take(&mut *self.reads.lock().unwrap());
        (reads.len(), reads.into_values().max().unwrap_or(0))
    }
}

impl DenseArray for Blocks {
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
        // Blocks divide chunks evenly here, so they form a grid over the whole array.
        let blocks = self.grid.block_shape().unwrap().to_vec();
        let blocks = ChunkGrid::new(self.shape().to_vec(), blocks, None).unwrap();
        let mut cells = blocks.chunks(selection);
        while let Some(parts) = cells.next() {
            let cell = parts.iter().map(|part| part.cell).collect();
            *self.reads.lock().unwrap().entry(cell).or_default() += 1;
        }
        let len = u64::try_from(into.len()).unwrap();
        self.bytes.fetch_add(len, Ordering::Relaxed);
        self.inner.slice_into(selection, into)
    }
}

const SHAPE: [u64; 3] = [48, 24, 32];
const CHUNK: [u64; 3] = [16, 12, 32];
const BLOCK: [u64; 3] = [4, 12, 16];
const BLOCKS: usize = 12 * 2 * 2;
/// Memory of a voxel in bytes, including its stored form.
const VOXEL: u64 = 16;

/// Creates batches of points in the order of the chunks of a store: layers along the first axis.
fn layers(draw: &mut Draw, layer: u64) -> Vec<Vec<f64>> {
    let count = SHAPE[0].div_ceil(layer);
    let batch = |at: u64| {
        let mut positions = Vec::new();
        for _ in 0..1500 {
            let [low, high] = [at * layer, (at + 1) * layer]
                .map(|at| f64::from(u32::try_from(at.min(SHAPE[0])).unwrap()) - 0.5);
            positions.extend([
                draw.float(low, high),
                draw.float(-0.5, 23.5),
                draw.float(-0.5, 31.5),
            ]);
        }
        positions
    };
    (0..count).map(batch).collect()
}

#[test]
fn each_block_is_read_once_over_all_batches() {
    let mut draw = Draw::new(7);
    let (array, _) = volume(&mut draw, &SHAPE, 0);
    let array = Blocks::new(array, &CHUNK, &BLOCK);
    let layer_of_blocks = 24 * 32 * 4 * VOXEL;
    let whole = SHAPE.iter().product::<u64>() * VOXEL;
    for (interpolation, room) in [
        (Interpolation::Nearest, whole),
        (Interpolation::Linear, whole),
        (Interpolation::Cubic, whole),
        // Much less memory than the whole array: tiles shared by two batches plus tiles of one.
        (Interpolation::Nearest, 3 * layer_of_blocks),
        (Interpolation::Linear, 4 * layer_of_blocks),
        (Interpolation::Cubic, 5 * layer_of_blocks),
    ] {
        // Batches that end inside blocks.
        let batches = layers(&mut draw, 7);
        let options = SampleOptions {
            interpolation,
            budget: Some(room),
            ..SampleOptions::default()
        };
        let sampler = Sampler::new(&array, 3, &options).unwrap();
        for batch in &batches {
            sampler.sample(batch).unwrap();
        }
        assert_eq!(array.take(), (BLOCKS, 1), "{interpolation:?} in {room}");
        // Random batches each need all blocks, which are read once if they fit.
        if room == whole {
            let sampler = Sampler::new(&array, 3, &options).unwrap();
            for _ in 0..5 {
                let batch: Vec<f64> = (0..900)
                    .flat_map(|_| [48.0, 24.0, 32.0].map(|end| draw.float(-0.5, end - 0.5)))
                    .collect();
                sampler.sample(&batch).unwrap();
            }
            assert_eq!(array.take(), (BLOCKS, 1), "{interpolation:?} at random");
        }
    }
}

/// Blocks cached for a few points are not read again when many points follow, for any dtype and
/// interpolation. Values equal those with little memory.
#[test]
fn many_points_reuse_blocks_of_few() {
    for (dtype, interpolation) in [
        ("<f4", Interpolation::Linear),
        (">f4", Interpolation::Cubic),
        ("<u2", Interpolation::Linear),
        ("<u2", Interpolation::Nearest),
        ("<i4", Interpolation::Cubic),
    ] {
        let mut draw = Draw::new(5);
        // Two values per voxel.
        let shape = [48, 24, 32, 2];
        let dtype = NumpyDtype::parse(dtype).unwrap();
        let len = shape.iter().product::<u64>() * dtype.size();
        let bytes = (0..len).map(|at| match at % 2 {
            0 => draw.next().to_le_bytes()[3],
            // Avoids NaN and infinity.
            _ => 0x3f,
        });
        let array = MemoryArray::new("volume", dtype, shape.to_vec(), bytes.collect()).unwrap();
        let (chunk, block) = ([16, 12, 32, 2], [4, 12, 16, 2]);
        let array = Blocks::new(array, &chunk, &block);
        let few = [1.5, 2.5, 3.5, 46.0, 20.25, 30.0];
        let many: Vec<f64> = (0..700)
            .flat_map(|_| [12.5, 23.0, 31.0].map(|end| draw.float(-0.7, end)))
            .collect();
        let sampled = |budget, positions: &[&[f64]]| {
            let options = SampleOptions {
                interpolation,
                budget,
                ..SampleOptions::default()
            };
            let sampler = Sampler::new(&array, 3, &options).unwrap();
            let all = positions.iter().map(|positions| sampler.sample(positions));
            let all = all.map(|sampled| sampled.map(|all| (all.values, all.outside)));
            all.collect::<Result<Vec<_>, _>>().unwrap()
        };
        let found = sampled(None, &[&few, &many, &few, &many]);
        let (blocks, max) = array.take();
        assert_eq!(max, 1, "{interpolation:?}");
        // The points leave out chunks in the middle of the first axis, and need few at its end.
        assert!((BLOCKS / 3..BLOCKS).contains(&blocks), "{blocks}");
        assert_eq!((&found[0], &found[1]), (&found[2], &found[3]));
        let room = block.iter().product::<u64>() * VOXEL;
        let little = sampled(Some(9 * room), &[&few, &many]);
        assert!(little == found[..2], "{interpolation:?}");
        assert!(found[1].1 > 0);
    }
}

/// Blocks without points nearby are not read, nor are blocks whose voxels have no weight.
#[test]
fn only_blocks_around_points_are_read() {
    let (array, values) = volume(&mut Draw::new(3), &SHAPE, 0);
    let array = Blocks::new(array, &CHUNK, &BLOCK);
    let options = SampleOptions {
        interpolation: Interpolation::Linear,
        ..SampleOptions::default()
    };
    let sampler = Sampler::new(&array, 3, &options).unwrap();
    // On the last voxel of a block, the neighbour in the next block has no weight.
    let found = sampler.sample(&[3.0, 11.0, 15.0]).unwrap();
    assert_eq!(
        super::floats(&found.values),
        [values[3 * 24 * 32 + 11 * 32 + 15]]
    );
    // Small blocks of one chunk are read together.
    assert!(array.take().0 <= 4);
    sampler.sample(&[3.0, 11.0, 15.0]).unwrap();
    assert_eq!(array.take(), (0, 0));
}

/// With memory for less than a layer, blocks may be read again, but never all of them, and values
/// do not change.
#[test]
fn little_memory_rereads_blocks_without_changing_values() {
    let mut draw = Draw::new(11);
    let (array, _) = volume(&mut draw, &SHAPE, 40);
    let array = Blocks::new(array, &CHUNK, &BLOCK);
    let batches = layers(&mut draw, 13);
    let sampled = |budget| {
        let options = SampleOptions {
            interpolation: Interpolation::Cubic,
            budget,
            ..SampleOptions::default()
        };
        let sampler = Sampler::new(&array, 3, &options).unwrap();
        let values = batches
            .iter()
            .map(|batch| sampler.sample(batch).unwrap().values);
        values.collect::<Vec<_>>()
    };
    let plenty = sampled(None);
    array.take();
    let block = BLOCK.iter().product::<u64>() * VOXEL;
    for room in [30 * block, 9 * block, 2 * block] {
        assert!(sampled(Some(room)) == plenty, "{room} bytes");
        assert_eq!(array.take().0, BLOCKS);
    }
}
