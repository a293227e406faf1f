//! Chunks, bins and bounds of a level, and the assignment of vertices to them.

use core::ops::Range;
use std::collections::HashMap;

use rayon::prelude::*;
use zvf_model::grid::{Bins, BinsError, ChunkShape};

use crate::{
    coordinates::{self, BLOCK},
    design::Design,
    error::BuildError,
    sizing::{self, FragmentKind},
};
use zvf_model::column::NumericColumn;

/// Chunks, bins and bounds of a level.
#[derive(Clone, Debug, PartialEq)]
pub struct SpatialLayout {
    /// Extent of a chunk.
    pub chunk: ChunkShape,
    /// Bins of a chunk, if points are sorted into bins.
    pub bins: Option<Bins>,
    /// Lower bound of each axis.
    pub lower: Vec<f64>,
    /// Upper bound of each axis.
    pub upper: Vec<f64>,
    /// Reasons for shapes that were chosen automatically.
    pub why: Vec<String>,
}

impl SpatialLayout {
    /// Takes the shapes of the design, or chooses them for `vertices` vertices of which `positions`
    /// is all or a sample.
    pub(crate) fn of(
        design: &Design,
        positions: &NumericColumn,
        lower: Vec<f64>,
        upper: Vec<f64>,
        fragments: FragmentKind,
        vertices: u64,
    ) -> Result<Self, BuildError> {
        let axes = positions.row_len();
        let same = |what, found: usize| {
            if found == axes {
                Ok(())
            } else {
                Err(BuildError::AxisCount {
                    what,
                    expected: axes,
                    found,
                })
            }
        };
        let mut why = Vec::new();
        let (chunk, bins) = match (&design.chunk_shape, &design.bin_shape) {
            (Some(chunk), bins) => {
                same("the chunk shape", chunk.len())?;
                (chunk.clone(), bins.clone())
            }
            (None, Some(bin)) => {
                same("the bin shape", bin.len())?;
                ChunkShape::new(bin)?;
                // A chunk gets the whole number of bins nearest to the chosen extent.
                let chosen = sizing::choose(positions, vertices, &lower, &upper, design, fragments);
                let edges = chosen.chunk.iter().zip(bin);
                let chunk = edges.map(|(edge, bin)| (edge / bin).round().max(1.0) * bin);
                why.push(chosen.why);
                (chunk.collect(), Some(bin.clone()))
            }
            (None, None) => {
                let chosen = sizing::choose(positions, vertices, &lower, &upper, design, fragments);
                let bins = (chosen.bins > 1).then(|| {
                    let edges = chosen.chunk.iter();
                    edges.map(|edge| edge / f64::from(chosen.bins)).collect()
                });
                why.push(chosen.why);
                (chosen.chunk, bins)
            }
        };
        if let Some(bins) = &bins {
            same("the bin shape", bins.len())?;
        }
        let chunk = ChunkShape::new(&chunk)?;
        let bins = bins
            .map(|bins| Bins::new(&chunk, ChunkShape::new(&bins)?).map_err(BuildError::from))
            .transpose()?;
        Ok(Self {
            chunk,
            bins,
            lower,
            upper,
            why,
        })
    }

    /// Returns the number of axes.
    pub fn axes(&self) -> usize {
        self.chunk.axes()
    }

    /// Returns the bins of a chunk if fragments are bins.
    fn bins_for(&self, fragments: FragmentKind) -> Option<&Bins> {
        let bins = self.bins.as_ref();
        bins.filter(|_| fragments == FragmentKind::Bins)
    }

    /// Returns the number of bins of a chunk.
    pub(crate) fn bin_count(&self) -> Result<u32, BuildError> {
        let count = self.bins.as_ref().map_or(1, Bins::count);
        // Each bin has 16 bytes in every chunk's fragment index.
        match u32::try_from(count) {
            Ok(count) if count <= 1 << 24 => Ok(count),
            _ => Err(BuildError::BinShape(BinsError::Count)),
        }
    }

    /// Returns the grid of chunks within the bounds. With bins, a position's chunk follows from its bin.
    pub(crate) fn grid(&self, fragments: FragmentKind) -> Result<ArrayGrid, BuildError> {
        let corner = |position: &[f64]| -> Option<(Vec<i64>, Vec<i64>)> {
            let plain = self.chunk.chunk_of(position)?.coords().to_vec();
            let bins = self.bins_for(fragments);
            let through = match bins {
                Some(bins) => bins.place_of(position)?.chunk.coords().to_vec(),
                None => plain.clone(),
            };
            Some((plain, through))
        };
        // Both ways are monotonic, so corners suffice.
        let lower = corner(&self.lower).ok_or(BuildError::TooManyChunks)?;
        let upper = corner(&self.upper).ok_or(BuildError::TooManyChunks)?;
        let mut origin = Vec::with_capacity(self.axes());
        let mut shape = Vec::with_capacity(self.axes());
        for axis in 0..self.axes() {
            let min = lower.0[axis].min(lower.1[axis]);
            let max = upper.0[axis].max(upper.1[axis]);
            let extent = max.checked_sub(min).and_then(|n| u64::try_from(n).ok());
            shape.push(
                extent
                    .and_then(|n| n.checked_add(1))
                    .ok_or(BuildError::TooManyChunks)?,
            );
            origin.push(min);
        }
        let cells = shape
            .iter()
            .try_fold(1u64, |n, extent| n.checked_mul(*extent));
        cells.ok_or(BuildError::TooManyChunks)?;
        Ok(ArrayGrid { origin, shape })
    }
}

/// The grid of an array with one element for each chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ArrayGrid {
    /// The chunk of the first element.
    pub(crate) origin: Vec<i64>,
    pub(crate) shape: Vec<u64>,
}

/// Chunk and bin of each vertex.
#[derive(Debug)]
pub(crate) struct Assignment {
    /// Chunks with vertices, ascending.
    pub(crate) chunks: Vec<Vec<i64>>,
    /// Index in `chunks` for each vertex.
    pub(crate) chunk_of: Vec<u32>,
    /// Bin of each vertex; empty without bins.
    pub(crate) bin_of: Vec<u32>,
}

/// Assigns each vertex to a chunk and, with bins, to a bin. `within` is the extent of the positions,
/// if known.
pub(crate) fn assign(
    positions: &NumericColumn,
    space: &SpatialLayout,
    fragments: FragmentKind,
    within: Option<(&[f64], &[f64])>,
) -> Result<Assignment, BuildError> {
    let axes = space.axes();
    let bins = space.bins_for(fragments);
    let rule = Rule::of(space, fragments);
    let rows = positions.len();
    // The box of chunks around all positions.
    let (min, max) = match within {
        Some((lower, upper)) => (rule.corner(lower), rule.corner(upper)),
        None => {
            let (lower, upper) = coordinates::extent(positions)?;
            (rule.corner(&lower), rule.corner(&upper))
        }
    };
    let (Some(min), Some(max)) = (min, max) else {
        return Err(BuildError::TooManyChunks);
    };
    let mut extents = Vec::with_capacity(axes);
    let mut cells = 1u64;
    for axis in 0..axes {
        let extent = max[axis]
            .checked_sub(min[axis])
            .and_then(|n| u64::try_from(n).ok()?.checked_add(1))
            .ok_or(BuildError::TooManyChunks)?;
        cells = cells.checked_mul(extent).ok_or(BuildError::TooManyChunks)?;
        extents.push(extent);
    }
    let table = Steps::new(&rule, &min, &extents);
    let mut bin_of = vec![0; if bins.is_some() { rows } else { 0 }];
    let (numbers, chunk_of) = match small(cells, rows) {
        Some(cells) => {
            // Grid cells first, replaced by chunk numbers in place.
            let mut chunk_of = vec![0u32; rows];
            let blocks = coordinates::blocks(rows).zip(chunk_of.par_chunks_mut(BLOCK));
            table.each(blocks, &mut bin_of, positions, |slot, cell| {
                *slot = narrow(cell);
            });
            (number_small(&mut chunk_of, cells), chunk_of)
        }
        None => {
            let mut found = vec![0u64; rows];
            let blocks = coordinates::blocks(rows).zip(found.par_chunks_mut(BLOCK));
            table.each(blocks, &mut bin_of, positions, |slot, cell| *slot = cell);
            number(&found)
        }
    };
    let chunks = numbers
        .into_iter()
        .map(|mut number| {
            let mut coords = vec![0; axes];
            for axis in (0..axes).rev() {
                let at = number % extents[axis];
                number /= extents[axis];
                coords[axis] = min[axis].wrapping_add_unsigned(at);
            }
            coords
        })
        .collect();
    Ok(Assignment {
        chunks,
        chunk_of,
        bin_of,
    })
}

/// Returns the number of grid cells if a table of them is no larger than the data.
fn small(cells: u64, rows: usize) -> Option<usize> {
    let cells = usize::try_from(cells).ok()?;
    (cells <= rows.saturating_mul(2).max(1 << 16)).then_some(cells)
}

/// Numbers occurring cells in ascending order with a table of all cells.
fn number_small(chunk_of: &mut [u32], cells: usize) -> Vec<u64> {
    let mut table = vec![u32::MAX; cells];
    for &cell in &*chunk_of {
        table[cell as usize] = 0;
    }
    let mut numbers = Vec::new();
    for (cell, slot) in (0u64..).zip(&mut table) {
        if *slot == 0 {
            *slot = narrow(numbers.len() as u64);
            numbers.push(cell);
        }
    }
    chunk_of
        .par_iter_mut()
        .with_min_len(BLOCK)
        .for_each(|cell| *cell = table[*cell as usize]);
    numbers
}

/// Numbers occurring cells by sorting, for grids too large for a table.
fn number(found: &[u64]) -> (Vec<u64>, Vec<u32>) {
    let mut numbers: Vec<u64> = Vec::new();
    for cells in found.chunks(BLOCK) {
        let mut cells = cells.to_vec();
        cells.sort_unstable();
        cells.dedup();
        numbers.extend(cells);
        if numbers.len() > 1 << 22 {
            numbers.sort_unstable();
            numbers.dedup();
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    let table: HashMap<u64, u32> = numbers.iter().copied().zip(0..).collect();
    let chunk_of = found
        .par_iter()
        .with_min_len(BLOCK)
        .map(|cell| table.get(cell).copied().unwrap_or_default())
        .collect();
    (numbers, chunk_of)
}

/// Rule from coordinates to chunks: directly, or through bins.
struct Rule<'a> {
    extents: &'a [f64],
    /// Bins of a chunk along each axis; 1 without bins.
    per_chunk: Vec<i64>,
}

impl<'a> Rule<'a> {
    fn of(space: &'a SpatialLayout, fragments: FragmentKind) -> Self {
        match space.bins_for(fragments) {
            Some(bins) => Self {
                extents: bins.shape().extents(),
                per_chunk: bins
                    .per_chunk()
                    .iter()
                    .map(|n| i64::from(n.get()))
                    .collect(),
            },
            None => Self {
                extents: space.chunk.extents(),
                per_chunk: vec![1; space.axes()],
            },
        }
    }

    /// Returns the bin (or chunk) of a coordinate along an axis.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "checked by `corner`; a whole number comes back as it was"
    )]
    fn step(&self, axis: usize, value: f64) -> i64 {
        // Inline floor: without SSE 4.1, `floor` is a function call.
        let step = value / self.extents[axis];
        let near = step as i64;
        near.wrapping_sub(i64::from(near as f64 > step))
    }

    /// Returns the chunk of a position; `None` beyond the range of chunk numbers.
    fn corner(&self, position: &[f64]) -> Option<Vec<i64>> {
        let limit = 2f64.powi(62);
        let chunk = |(axis, value): (usize, &f64)| {
            let fits = (value / self.extents[axis]).abs() < limit;
            fits.then(|| self.step(axis, *value).div_euclid(self.per_chunk[axis]))
        };
        position.iter().enumerate().map(chunk).collect()
    }
}

/// Contribution of each step along each axis to the cell and bin number, so that vertices need no
/// division.
struct Steps<'a> {
    rule: &'a Rule<'a>,
    axes: Vec<Axis>,
}

struct Axis {
    /// First step of the box.
    first: i64,
    /// Bins of a chunk along the axis.
    count: i64,
    /// Weight of a chunk in the cell number.
    cell_weight: u64,
    /// Weight of a bin in the bin number.
    bin_weight: u32,
    /// Contributions by step; empty for too many steps.
    table: Vec<(u64, u32)>,
}

/// Upper bound on steps of a table.
const MAX_STEPS: u64 = 1 << 16;

impl<'a> Steps<'a> {
    fn new(rule: &'a Rule<'a>, min: &[i64], extents: &[u64]) -> Self {
        let (mut cell_weight, mut bin_weight) = (1u64, 1u32);
        let mut axes = Vec::with_capacity(extents.len());
        for axis in (0..extents.len()).rev() {
            let count = rule.per_chunk[axis];
            let mut steps = Axis {
                // `corner` keeps steps far below 2^63.
                first: min[axis].wrapping_mul(count),
                count,
                cell_weight,
                bin_weight,
                table: Vec::new(),
            };
            let range = extents[axis].saturating_mul(count.unsigned_abs());
            if range <= MAX_STEPS {
                steps.table = (0..range).map(|step| steps.weigh(step)).collect();
            }
            axes.push(steps);
            cell_weight = cell_weight.wrapping_mul(extents[axis]);
            bin_weight = bin_weight.wrapping_mul(narrow(count.unsigned_abs()));
        }
        axes.reverse();
        Self { rule, axes }
    }

    /// Calls `put` with the cell of each vertex, and stores its bin if `bin_of` is not empty.
    fn each<'b, T: Send + 'b>(
        &self,
        blocks: impl IndexedParallelIterator<Item = (Range<usize>, &'b mut [T])>,
        bin_of: &mut [u32],
        positions: &NumericColumn,
        put: impl Fn(&mut T, u64) + Sync,
    ) {
        let count = self.axes.len();
        let place =
            |values: &mut Vec<f64>, rows: Range<usize>, cells: &mut [T], bins: &mut [u32]| {
                coordinates::block(positions, rows, values);
                let mut bins = bins.iter_mut();
                for (position, slot) in values.chunks_exact(count).zip(cells) {
                    let (mut cell, mut bin) = (0u64, 0u32);
                    for (axis, value) in position.iter().enumerate() {
                        let step = self.rule.step(axis, *value);
                        let (of_cell, of_bin) = self.axes[axis].at(step);
                        cell = cell.wrapping_add(of_cell);
                        bin = bin.wrapping_add(of_bin);
                    }
                    put(slot, cell);
                    if let Some(slot) = bins.next() {
                        *slot = bin;
                    }
                }
            };
        if bin_of.is_empty() {
            blocks.for_each_init(Vec::new, |values, (rows, cells)| {
                place(values, rows, cells, &mut []);
            });
        } else {
            let bins = bin_of.par_chunks_mut(BLOCK);
            blocks
                .zip(bins)
                .for_each_init(Vec::new, |values, ((rows, cells), bins)| {
                    place(values, rows, cells, bins);
                });
        }
    }
}

impl Axis {
    fn at(&self, step: i64) -> (u64, u32) {
        // The step is inside the box, which the same arithmetic gave.
        let step = step.wrapping_sub(self.first).unsigned_abs();
        match usize::try_from(step).ok().and_then(|at| self.table.get(at)) {
            Some(found) => *found,
            None => self.weigh(step),
        }
    }

    fn weigh(&self, step: u64) -> (u64, u32) {
        let count = self.count.unsigned_abs();
        let (chunk, bin) = (step / count, step % count);
        let bin = narrow(bin).wrapping_mul(self.bin_weight);
        (chunk.wrapping_mul(self.cell_weight), bin)
    }
}

/// Narrows numbers of chunks and table entries, which are below 2^32.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
