//! The chunks a box touches.

use core::ops::RangeInclusive;

use super::ChunkCoord;

/// A box of chunks in space. Holds two numbers an axis however many there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunks {
    /// Empty as a whole when one axis is.
    axes: Box<[RangeInclusive<i64>]>,
}

impl Chunks {
    pub(super) fn new(axes: Vec<RangeInclusive<i64>>) -> Self {
        Self { axes: axes.into() }
    }

    /// No chunk of so many axes.
    #[expect(
        clippy::reversed_empty_ranges,
        reason = "an empty range is what is meant"
    )]
    pub(super) fn none(axes: usize) -> Self {
        Self::new(vec![0..=-1; axes])
    }

    /// The coordinates along each axis.
    pub fn axes(&self) -> &[RangeInclusive<i64>] {
        &self.axes
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.axes.iter().any(RangeInclusive::is_empty)
    }

    /// How many there are; `None` beyond 64 bits.
    pub fn count(&self) -> Option<u64> {
        if self.is_empty() {
            return Some(0);
        }
        let extents = self.axes.iter().map(extent);
        extents
            .into_iter()
            .try_fold(1u64, |n, extent| n.checked_mul(extent?))
    }

    /// Whether `chunk` is one of them. Coordinates before the spatial ones,
    /// as chunking by attribute adds, are not looked at.
    pub fn contains(&self, chunk: &ChunkCoord) -> bool {
        let spatial = chunk.spatial(self.axes.len());
        spatial.is_some_and(|coords| {
            let mut pairs = self.axes.iter().zip(coords);
            pairs.all(|(axis, coord)| axis.contains(coord))
        })
    }

    /// Those of `present` that are in the box, in the order given. O(present).
    pub fn select<'a>(
        &'a self,
        present: &'a [ChunkCoord],
    ) -> impl Iterator<Item = &'a ChunkCoord> + 'a {
        present.iter().filter(|chunk| self.contains(chunk))
    }

    /// All of them in ascending order, if they are no more than `limit`.
    ///
    /// # Errors
    ///
    /// [`TooManyChunks`] when there are more: a box may be as large as space.
    pub fn within(&self, limit: u64) -> Result<ChunksWithin, TooManyChunks> {
        let count = self.count();
        let left = count.filter(|&count| count <= limit);
        let left = left.ok_or(TooManyChunks { count, limit })?;
        Ok(ChunksWithin {
            axes: self.axes.clone(),
            next: self.axes.iter().map(|axis| *axis.start()).collect(),
            left,
        })
    }
}

/// Number of coordinates along an axis that is not empty.
fn extent(axis: &RangeInclusive<i64>) -> Option<u64> {
    axis.end().abs_diff(*axis.start()).checked_add(1)
}

/// Walks the chunks of a box in ascending order, last axis fastest.
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

/// A box of more chunks than are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the box touches more than {limit} chunks")]
pub struct TooManyChunks {
    /// How many it touches; `None` beyond 64 bits.
    pub count: Option<u64>,
    /// How many were allowed.
    pub limit: u64,
}
