//! The division of an array into tiles, the units of reading.

use super::{MAX_AXES, kernel::Kernel, kernel::Spot};
use crate::{
    DenseArray, DenseError, Hyperslab,
    hyperslab::{AxisRange, product},
};

/// Minimum tile length in bytes. Small blocks of a chunk are read together, because for them the
/// call takes longer than the read.
const MIN_BYTES: u64 = 32 << 10;

/// The division of an array into tiles along the axes of positions. A tile is a block, several
/// small blocks, or a chunk if chunks have no blocks. Tiles are smaller than a block or chunk only
/// if the tiles around one point would exceed the memory.
#[derive(Debug)]
pub(super) struct Tiling {
    /// Number of voxels along each axis, of the array and of a tile.
    shape: Vec<u64>,
    extents: Vec<u64>,
    /// Distance in tile numbers between neighbours along each axis.
    strides: Vec<u64>,
    /// The axes of the array beyond the axes of positions.
    channels: Vec<u64>,
    /// Memory of a voxel in bytes.
    bytes: u64,
    is_fine: bool,
}

/// The box of voxels of a tile, from `start` to before `end`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    pub(super) start: [u64; MAX_AXES],
    pub(super) end: [u64; MAX_AXES],
}

impl Span {
    /// Returns whether the box contains all voxels with weight of a location.
    pub(super) fn has(&self, spot: &Spot, axes: usize) -> bool {
        let span = self.start.iter().zip(&self.end);
        let mut steps = span.zip(spot).take(axes);
        steps.all(|((start, end), step)| step.first >= *start && step.last < *end)
    }

    /// Returns the distance between neighbouring voxels along each axis; `unit` along the last one.
    pub(super) fn strides(&self, axes: usize, unit: usize) -> [usize; MAX_AXES] {
        let mut strides = [0; MAX_AXES];
        let mut stride = unit;
        let span = self.start.iter().zip(&self.end);
        for (into, (start, end)) in strides.iter_mut().zip(span).take(axes).rev() {
            *into = stride;
            let count = usize::try_from(end.saturating_sub(*start));
            stride = stride.saturating_mul(count.unwrap_or(usize::MAX));
        }
        strides
    }
}

impl Tiling {
    /// Divides an array with voxels of `bytes` bytes into tiles. The tiles around any point fit in
    /// `share` bytes.
    pub(super) fn new<A: DenseArray + ?Sized>(
        array: &A,
        kernel: &Kernel,
        bytes: u64,
        share: u64,
    ) -> Result<Self, DenseError> {
        let axes = kernel.axes();
        let chunk = array.grid().chunk_shape();
        let block = array.grid().block_shape().unwrap_or(chunk);
        let cells = chunk.iter().zip(block).zip(kernel.shape());
        let mut extents: Vec<u64> = cells
            .map(|((chunk, block), extent)| {
                // Blocks restart at each chunk, so tiles of blocks need chunks of whole blocks.
                let is_even = chunk.checked_rem(*block) == Some(0);
                let cell = if is_even { *block } else { *chunk };
                cell.clamp(1, (*extent).max(1))
            })
            .collect();
        let len = |extents: &[u64]| product(extents.iter().copied().chain([bytes]));
        // Extend the last axis first, so that reads are contiguous.
        'join: while len(&extents).is_some_and(|len| len < MIN_BYTES) {
            let axes = extents.iter_mut().zip(chunk).zip(kernel.shape());
            for ((own, chunk), extent) in axes.rev() {
                let double = own.saturating_mul(2);
                if *own < *extent && chunk.checked_rem(double) == Some(0) {
                    *own = double.min(*extent);
                    continue 'join;
                }
            }
            break;
        }
        let around = |extents: &[u64]| {
            let axes = extents.iter().zip(kernel.shape()).map(|(own, extent)| {
                let touched = match kernel.width().checked_sub(2) {
                    Some(more) => (more / own).saturating_add(2),
                    None => 1,
                };
                own.saturating_mul(touched.min(extent.div_ceil(*own)))
            });
            product(axes.chain([bytes])).unwrap_or(u64::MAX)
        };
        let mut is_fine = false;
        while around(&extents) > share {
            let longest = extents.iter_mut().max_by_key(|extent| **extent);
            let Some(longest) = longest.filter(|extent| **extent > 1) else {
                return Err(DenseError::Budget {
                    needed: around(&extents),
                    budget: share,
                });
            };
            *longest = longest.div_ceil(2);
            is_fine = true;
        }
        let counts = kernel
            .shape()
            .iter()
            .zip(&extents)
            .map(|(extent, own)| extent.div_ceil(*own));
        let mut strides = vec![1; axes];
        let mut stride = Some(1_u64);
        for (into, count) in strides.iter_mut().zip(counts).rev() {
            *into = stride.unwrap_or(0);
            stride = stride.and_then(|stride| stride.checked_mul(count));
        }
        if stride.is_none() {
            let fault = "it has more chunks than 64 bits count";
            return Err(DenseError::sampling(array.name(), fault));
        }
        Ok(Self {
            shape: kernel.shape().to_vec(),
            extents,
            strides,
            channels: array.shape().get(axes..).unwrap_or_default().to_vec(),
            bytes,
            is_fine,
        })
    }

    /// Returns the division of the array into a single tile.
    pub(super) fn whole(&self) -> Self {
        Self {
            extents: self.shape.clone(),
            strides: vec![1; self.shape.len()],
            shape: self.shape.clone(),
            channels: self.channels.clone(),
            ..*self
        }
    }

    /// Returns the number of voxels along each axis.
    pub(super) fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Returns the number of tiles.
    pub(super) fn count(&self) -> u64 {
        let counts = self.shape.iter().zip(&self.extents);
        // `new` checks that tile numbers fit in 64 bits.
        product(counts.map(|(extent, own)| extent.div_ceil(*own))).unwrap_or(u64::MAX)
    }

    /// Returns the number of tiles in one step along the first axis, and the number of voxels of
    /// that step.
    pub(super) fn slab(&self) -> (u64, u64) {
        let tiles = self.strides.first().copied().unwrap_or(1);
        (tiles, self.extents.first().copied().unwrap_or(1))
    }

    /// Returns, for each axis and voxel, the contribution to the number of its tile.
    pub(super) fn tables(&self) -> Vec<Vec<u64>> {
        let axes = self.shape.iter().zip(&self.extents).zip(&self.strides);
        let tables = axes.map(|((extent, own), stride)| {
            let cells = (0..*extent).map(|voxel| voxel / (*own).max(1));
            cells.map(|cell| cell.saturating_mul(*stride)).collect()
        });
        tables.collect()
    }

    /// Returns whether tiles are parts of blocks, so that reading one decodes more than the tile.
    pub(super) fn is_fine(&self) -> bool {
        self.is_fine
    }

    /// Returns the number of the tile that contains a voxel. Indices beyond the axes of positions
    /// are ignored.
    pub(super) fn of(&self, voxel: impl Iterator<Item = u64>) -> u64 {
        let axes = voxel.zip(&self.extents).zip(&self.strides);
        // Cannot overflow: the result is below the number of tiles.
        let cells = axes.map(|((at, extent), stride)| (at / (*extent).max(1)) * *stride);
        cells.fold(0, u64::saturating_add)
    }

    /// Adds the tiles that contain voxels of a location.
    pub(super) fn around(&self, spot: &Spot, into: &mut Vec<u64>) {
        let before = into.len();
        into.push(0);
        let axes = spot.iter().zip(&self.extents).zip(&self.strides);
        for ((step, extent), stride) in axes {
            let extent = (*extent).max(1);
            let (first, last) = (step.first / extent, step.last / extent);
            let until = into.len();
            for cell in first..=last {
                for at in before..until {
                    let Some(so_far) = into.get(at).copied() else {
                        continue;
                    };
                    into.push(so_far.saturating_add(cell.saturating_mul(*stride)));
                }
            }
            into.drain(before..until);
        }
    }

    /// Returns the box of voxels of a tile.
    pub(super) fn span(&self, tile: u64) -> Span {
        let mut span = Span::default();
        let mut rest = tile;
        let ends = span.start.iter_mut().zip(&mut span.end);
        let axes = self.extents.iter().zip(&self.strides).zip(&self.shape);
        for ((start, end), ((own, stride), extent)) in ends.zip(axes) {
            let stride = (*stride).max(1);
            *start = (rest / stride).saturating_mul(*own);
            *end = start.saturating_add(*own).min(*extent);
            rest %= stride;
        }
        span
    }

    /// Returns the memory of a tile in bytes.
    pub(super) fn cost(&self, tile: u64) -> u64 {
        let span = self.span(tile);
        let axes = span.start.iter().zip(&span.end).take(self.extents.len());
        let counts = axes.map(|(start, end)| end.saturating_sub(*start));
        product(counts.chain([self.bytes])).unwrap_or(u64::MAX)
    }

    /// Returns the selection that reads a tile: its voxels with all their values.
    pub(super) fn selection(&self, span: &Span) -> Hyperslab {
        let axes = span.start.iter().zip(&span.end).take(self.extents.len());
        let space = axes.map(|(start, end)| AxisRange::whole(*end).portion(*start..*end));
        let channels = self.channels.iter().copied().map(AxisRange::whole);
        space.chain(channels).collect()
    }
}
