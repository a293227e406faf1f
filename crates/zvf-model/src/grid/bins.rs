//! Bins: the sub-boxes of a chunk.

use core::num::NonZeroU32;

use super::{Bounds, ChunkCoord, ChunkShape, floor, floor_saturating, shape::whole};

/// Division of chunks into bins.
///
/// The bins of a chunk are numbered with the last axis fastest; in a level of
/// binned points the number of a bin is the number of its fragment:
///
/// ```text
/// bin[k]   = floor(position[k] / bin_shape[k])
/// chunk[k] = floor(bin[k] / bins_per_chunk[k])
/// local[k] = bin[k] − chunk[k] · bins_per_chunk[k]
/// ```
///
/// The chunk is derived from the bin, not from the position: if a shape has no exact binary form,
/// the two can differ by rounding.
#[derive(Clone, Debug, PartialEq)]
pub struct Bins {
    shape: ChunkShape,
    per_chunk: Box<[NonZeroU32]>,
    count: u64,
}

/// The bin of a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinPlace {
    /// The chunk of the bin.
    pub chunk: ChunkCoord,
    /// The number of the bin in it.
    pub bin: u64,
}

impl Bins {
    /// Creates bins of shape `bin` in chunks of shape `chunk`.
    ///
    /// # Errors
    ///
    /// [`BinsError`] if the bins do not fill a chunk exactly.
    pub fn new(chunk: &ChunkShape, bin: ChunkShape) -> Result<Self, BinsError> {
        if bin.axes() != chunk.axes() {
            return Err(BinsError::Axes {
                bin: bin.axes(),
                chunk: chunk.axes(),
            });
        }
        let axes = chunk.extents().iter().zip(bin.extents()).enumerate();
        let per_chunk: Box<[_]> = axes
            .map(|(axis, (&chunk, &bin))| {
                let error = BinsError::Axis { axis, bin, chunk };
                whole(chunk / bin).ok_or(error)
            })
            .collect::<Result<_, _>>()?;
        let count = per_chunk
            .iter()
            .try_fold(1u64, |n, axis| n.checked_mul(u64::from(axis.get())));
        Ok(Self {
            shape: bin,
            per_chunk,
            count: count.ok_or(BinsError::Count)?,
        })
    }

    /// Returns the extent of a bin.
    pub fn shape(&self) -> &ChunkShape {
        &self.shape
    }

    /// Returns the number of bins of a chunk along each axis.
    pub fn per_chunk(&self) -> &[NonZeroU32] {
        &self.per_chunk
    }

    /// Returns the number of bins of a chunk.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the bin that contains `position`. `None` if the number of axes differs, a coordinate
    /// is not finite, or the bin does not fit 64 bits.
    pub fn place_of(&self, position: &[f64]) -> Option<BinPlace> {
        if position.len() != self.per_chunk.len() {
            return None;
        }
        let mut chunk = Vec::with_capacity(position.len());
        let mut number = 0u64;
        let axes = position.iter().zip(self.shape.extents());
        for ((x, extent), count) in axes.zip(&self.per_chunk) {
            let bin = floor(x / extent)?;
            let count = i64::from(count.get());
            // The divisor is positive, so Euclidean division rounds down.
            chunk.push(bin.div_euclid(count));
            let local = u64::try_from(bin.rem_euclid(count)).ok()?;
            number = number.checked_mul(count.unsigned_abs())?;
            number = number.checked_add(local)?;
        }
        let chunk = ChunkCoord::new(chunk);
        Some(BinPlace { chunk, bin: number })
    }

    /// Returns the number of the bin at `local` in its chunk; `None` if there is none.
    pub fn number_of(&self, local: &[u32]) -> Option<u64> {
        if local.len() != self.per_chunk.len() {
            return None;
        }
        let mut axes = local.iter().zip(&self.per_chunk);
        axes.try_fold(0u64, |number, (&local, count)| {
            let inside = local < count.get();
            let number = number.checked_mul(u64::from(count.get()))?;
            inside.then(|| number.checked_add(u64::from(local)))?
        })
    }

    /// Returns the position of bin `number` in its chunk; `None` past the last.
    pub fn local_of(&self, number: u64) -> Option<Vec<u32>> {
        if number >= self.count {
            return None;
        }
        let mut left = number;
        let mut local = Vec::with_capacity(self.per_chunk.len());
        for count in self.per_chunk.iter().rev() {
            let count = u64::from(count.get());
            local.push(u32::try_from(left.checked_rem(count)?).ok()?);
            left = left.checked_div(count)?;
        }
        local.reverse();
        Some(local)
    }

    /// Returns the numbers of the bins of `chunk` that `bbox` touches, ascending.
    ///
    /// `chunk` has spatial coordinates only. Returns no bins if the number of axes differs or the
    /// box is empty. Visits only the bins that it returns.
    pub fn touching(&self, chunk: &[i64], bbox: &Bounds) -> impl Iterator<Item = u64> + use<> {
        let ranges = self.local_ranges(chunk, bbox).unwrap_or_default();
        let empty = ranges.is_empty();
        let mut local: Vec<u64> = ranges.iter().map(|range| range.first).collect();
        let mut done = empty;
        core::iter::from_fn(move || {
            if done {
                return None;
            }
            let number = ranges
                .iter()
                .zip(&local)
                .try_fold(0u64, |number, (axis, local)| {
                    number.checked_mul(axis.count)?.checked_add(*local)
                });
            done = true;
            for (coord, axis) in local.iter_mut().zip(&ranges).rev() {
                if *coord < axis.last {
                    *coord = coord.saturating_add(1);
                    done = false;
                    break;
                }
                *coord = axis.first;
            }
            number
        })
    }

    fn local_ranges(&self, chunk: &[i64], bbox: &Bounds) -> Option<Vec<LocalRange>> {
        let axes = self.per_chunk.len();
        if chunk.len() != axes || bbox.axes() != axes || bbox.is_empty() {
            return None;
        }
        let corners = bbox.lower().iter().zip(bbox.upper());
        let shapes = self.shape.extents().iter().zip(&self.per_chunk);
        let axes = corners.zip(shapes).zip(chunk);
        axes.map(|(((lo, hi), (extent, count)), chunk)| {
            let count = i64::from(count.get());
            let start = chunk.checked_mul(count)?;
            let end = start.checked_add(count)?.checked_sub(1)?;
            let first = floor_saturating(lo / extent)
                .max(start)
                .checked_sub(start)?;
            let last = floor_saturating(hi / extent).min(end).checked_sub(start)?;
            Some(LocalRange {
                first: u64::try_from(first).ok()?,
                // The box ends before the chunk.
                last: u64::try_from(last).ok()?,
                count: count.unsigned_abs(),
            })
            .filter(|range| range.first <= range.last)
        })
        .collect()
    }
}

/// Bins along one axis of a chunk, the last one included.
struct LocalRange {
    first: u64,
    last: u64,
    count: u64,
}

/// Reason that bins do not fill a chunk.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BinsError {
    /// Another number of axes.
    #[error("a bin has {bin} axes, but the chunk has {chunk}")]
    Axes {
        /// Axes of the bin.
        bin: usize,
        /// Axes of the chunk.
        chunk: usize,
    },
    /// An extent that does not divide the chunk's, or is too small.
    #[error("bin extent {bin} of axis {axis} does not divide the chunk's {chunk}")]
    Axis {
        /// The axis.
        axis: usize,
        /// Extent of the bin.
        bin: f64,
        /// Extent of the chunk.
        chunk: f64,
    },
    /// The number of bins exceeds 64 bits.
    #[error("a chunk has more bins than 64-bit numbers can count")]
    Count,
}
