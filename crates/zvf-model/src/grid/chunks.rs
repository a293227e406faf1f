//! The chunks that a box intersects.

use core::ops::RangeInclusive;

use super::ChunkCoord;

/// A box of chunks in space. Stores two numbers per axis, independent of the number of chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunks {
    /// The box is empty if one axis is.
    axes: Box<[RangeInclusive<i64>]>,
}

impl Chunks {
    pub(super) fn new(axes: Vec<RangeInclusive<i64>>) -> Self {
        Self { axes: axes.into() }
    }

    /// Creates an empty box with this number of axes.
    #[expect(
        clippy::reversed_empty_ranges,
        reason = "an empty range is what is meant"
    )]
    pub(super) fn none(axes: usize) -> Self {
        Self::new(vec![0..=-1; axes])
    }

    /// Returns the coordinates along each axis.
    pub fn axes(&self) -> &[RangeInclusive<i64>] {
        &self.axes
    }

    /// Returns whether there are no chunks.
    pub fn is_empty(&self) -> bool {
        self.axes.iter().any(RangeInclusive::is_empty)
    }

    /// Returns the number of chunks; `None` if it exceeds 64 bits.
    pub fn count(&self) -> Option<u64> {
        if self.is_empty() {
            return Some(0);
        }
        let extents = self.axes.iter().map(extent);
        extents
            .into_iter()
            .try_fold(1u64, |n, extent| n.checked_mul(extent?))
    }

    /// Returns whether the box contains `chunk`. Coordinates before the spatial ones, which
    /// chunking by attribute adds, are ignored.
    pub fn contains(&self, chunk: &ChunkCoord) -> bool {
        let spatial = chunk.spatial(self.axes.len());
        spatial.is_some_and(|coords| {
            let mut pairs = self.axes.iter().zip(coords);
            pairs.all(|(axis, coord)| axis.contains(coord))
        })
    }

    /// Selects the chunks of `present` in the box, preserving their order. O(present).
    pub fn select<'a>(
        &'a self,
        present: &'a [ChunkCoord],
    ) -> impl Iterator<Item = &'a ChunkCoord> + 'a {
        present.iter().filter(|chunk| self.contains(chunk))
    }

    /// Iterates over all chunks in ascending order, if there are at most `limit`.
    ///
    /// # Errors
    ///
    /// [`TooManyChunks`] if there are more, because boxes may be arbitrarily large.
    pub fn within(&self, limit: u64) -> Result<ChunksWithin, TooManyChunks> {
        let count = self.count();
        let left = count
            .filter(|&count| count <= limit)
            .ok_or(TooManyChunks { count, limit })?;
        Ok(ChunksWithin {
            axes: self.axes.clone(),
            next: self.axes.iter().map(|axis| *axis.start()).collect(),
            left,
        })
    }
}

/// Returns the number of coordinates along an axis that is not empty.
fn extent(axis: &RangeInclusive<i64>) -> Option<u64> {
    axis.end().abs_diff(*axis.start()).checked_add(1)
}

/// Iterator over the chunks of a box in ascending order, last axis fastest.
#[derive(Clone, Debug)]
pub struct ChunksWithin {
    axes: Box<[RangeInclusive<i64>]>,
    next: Box<[i64]>,
    left: u64,
}

impl Iterator for ChunksWithin {
    type Item = ChunkCoord;

    fn next(&mut self) -> Option<ChunkCoord> {
        self.left = self.left.checked_sub(1)?;
        let chunk = ChunkCoord(self.next.clone());
        for (coord, axis) in self.next.iter_mut().zip(&self.axes).rev() {
            if *coord < *axis.end() {
                *coord = coord.saturating_add(1);
                break;
            }
            *coord = *axis.start();
        }
        Some(chunk)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left);
        (left.unwrap_or(usize::MAX), left.ok())
    }
}

/// A box has more chunks than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the box touches more than {limit} chunks")]
pub struct TooManyChunks {
    /// Number of chunks in the box; `None` if it exceeds 64 bits.
    pub count: Option<u64>,
    /// The limit.
    pub limit: u64,
}
