//! The shape of chunks, and the grid of chunks in an array.

use core::{
    num::NonZeroU32,
    ops::{Range, RangeInclusive},
};

use super::{Bounds, ChunkCoord, Chunks, floor, floor_saturating, truncate};
use crate::rank::MAX_RANK;

/// Extent of a chunk (or bin) along each axis: finite and above 0, with at least one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkShape(Box<[f64]>);

impl ChunkShape {
    /// Checks extents.
    ///
    /// # Errors
    ///
    /// [`ShapeError`] if there are none, too many, or one is not finite and above 0.
    pub fn new(extents: &[f64]) -> Result<Self, ShapeError> {
        if extents.is_empty() || extents.len() > MAX_RANK {
            return Err(ShapeError::Axes(extents.len()));
        }
        let bad = |extent: &&f64| !(extent.is_finite() && **extent > 0.0);
        match extents.iter().find(bad) {
            Some(&extent) => Err(ShapeError::Extent(extent)),
            None => Ok(Self(extents.into())),
        }
    }

    /// Returns the extents.
    pub fn extents(&self) -> &[f64] {
        &self.0
    }

    /// Returns the number of axes.
    pub fn axes(&self) -> usize {
        self.0.len()
    }

    /// Returns the chunk that contains `position`. `None` if the number of axes differs, a
    /// coordinate is not finite, or the chunk does not fit 64 bits.
    pub fn chunk_of(&self, position: &[f64]) -> Option<ChunkCoord> {
        if position.len() != self.axes() {
            return None;
        }
        let axes = position.iter().zip(&self.0);
        let coords: Option<Box<[i64]>> = axes.map(|(x, extent)| floor(x / extent)).collect();
        coords.map(ChunkCoord)
    }

    /// Returns the chunks that `bbox` intersects; none if it is empty, inverted or NaN, or the
    /// number of axes differs.
    pub fn chunks_touching(&self, bbox: &Bounds) -> Chunks {
        if bbox.axes() != self.axes() || bbox.is_empty() {
            return Chunks::none(self.axes());
        }
        let axis = |((lo, hi), extent): ((&f64, &f64), &f64)| {
            floor_saturating(lo / extent)..=floor_saturating(hi / extent)
        };
        let corners = bbox.lower().iter().zip(bbox.upper());
        Chunks::new(corners.zip(&self.0).map(axis).collect())
    }

    /// Returns the number of chunks of shape `root` in one chunk of this shape, along each axis.
    ///
    /// # Errors
    ///
    /// [`ScaleError`] if it is not an integer of at least 1.
    pub fn scale_over(&self, root: &Self) -> Result<Vec<NonZeroU32>, ScaleError> {
        if self.axes() != root.axes() {
            return Err(ScaleError::Axes {
                level: self.axes(),
                root: root.axes(),
            });
        }
        let axes = self.0.iter().zip(&root.0).enumerate();
        axes.map(|(axis, (&level, &root))| {
            let error = ScaleError::Axis { axis, level, root };
            whole(level / root).ok_or(error)
        })
        .collect()
    }
}

/// Rounds a ratio that is an integer except for rounding errors.
pub(super) fn whole(ratio: f64) -> Option<NonZeroU32> {
    let rounded = ratio.round();
    let near = (ratio - rounded).abs() <= TOLERANCE * rounded.max(1.0);
    let number = u32::try_from(truncate(rounded)).ok()?;
    NonZeroU32::new(number).filter(|_| near)
}

/// Tolerance of the format for integer ratios of two shapes.
const TOLERANCE: f64 = 1e-9;

/// Reason that numbers are not a chunk shape.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// No axis, or too many.
    #[error("{0} axes, not 1 to {MAX_RANK}")]
    Axes(usize),
    /// An extent that is not finite and above 0.
    #[error("an extent is {0}, but must be finite and above 0")]
    Extent(f64),
}

/// Reason that a level's chunks are not a multiple of the root's.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleError {
    /// Another number of axes.
    #[error("the chunk shape of the level has {level} axes, but that of the root has {root}")]
    Axes {
        /// Axes of the level's chunk shape.
        level: usize,
        /// Axes of the root's.
        root: usize,
    },
    /// An extent that is not an integer multiple, or a ratio beyond 32 bits.
    #[error("chunk extent {level} of axis {axis} is not a whole multiple of the root's {root}")]
    Axis {
        /// The axis.
        axis: usize,
        /// Extent of the level's chunks.
        level: f64,
        /// Extent of the root's.
        root: f64,
    },
}

/// The box of chunks in an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    origin: Box<[i64]>,
    shape: Box<[u64]>,
}

impl Grid {
    /// Creates a grid of `shape` chunks that starts at chunk `origin`; the default origin is all
    /// zeros.
    ///
    /// # Errors
    ///
    /// [`GridError`] if the number of axes differs or a coordinate does not fit 64 bits.
    pub fn new(origin: Option<&[i64]>, shape: &[u64]) -> Result<Self, GridError> {
        let zeros = vec![0; shape.len()];
        let origin = origin.unwrap_or(&zeros);
        if origin.len() != shape.len() {
            return Err(GridError::Axes {
                expected: shape.len(),
                found: origin.len(),
            });
        }
        let mut axes = origin.iter().zip(shape);
        if axes.any(|(from, &extent)| from.checked_add_unsigned(extent).is_none()) {
            return Err(GridError::Range);
        }
        Ok(Self {
            origin: origin.into(),
            shape: shape.into(),
        })
    }

    /// Creates the grid of all chunks that `bounds` intersect.
    ///
    /// # Errors
    ///
    /// [`GridError`] if the number of axes differs, the bounds are empty or not finite, or a
    /// coordinate does not fit 64 bits.
    pub fn of_bounds(bounds: &Bounds, chunk: &ChunkShape) -> Result<Self, GridError> {
        if bounds.axes() != chunk.axes() {
            return Err(GridError::Axes {
                expected: chunk.axes(),
                found: bounds.axes(),
            });
        }
        let lower = chunk.chunk_of(bounds.lower()).ok_or(GridError::Range)?;
        let upper = chunk.chunk_of(bounds.upper()).ok_or(GridError::Range)?;
        let axes = lower.coords().iter().zip(upper.coords());
        // The format defines a grid of one chunk for inverted bounds.
        let extents =
            axes.map(|(lo, hi)| hi.checked_sub(*lo)?.max(0).unsigned_abs().checked_add(1));
        let shape: Option<Vec<u64>> = extents.collect();
        Self::new(Some(lower.coords()), &shape.ok_or(GridError::Range)?)
    }

    /// Returns the chunk of the first cell.
    pub fn origin(&self) -> &[i64] {
        &self.origin
    }

    /// Returns the number of cells along each axis.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Returns the cell of `chunk`.
    ///
    /// # Errors
    ///
    /// [`GridError`] if the chunk is outside the grid or has another arity.
    pub fn cell_of(&self, chunk: &[i64]) -> Result<Vec<u64>, GridError> {
        if chunk.len() != self.shape.len() {
            return Err(GridError::Axes {
                expected: self.shape.len(),
                found: chunk.len(),
            });
        }
        let axes = chunk.iter().zip(self.origin.iter().zip(&self.shape));
        let cell = axes.enumerate().map(|(axis, (&chunk, (origin, &extent)))| {
            let cell = chunk.checked_sub(*origin);
            let cell = cell.and_then(|cell| u64::try_from(cell).ok());
            let cell = cell.filter(|&cell| cell < extent);
            cell.ok_or(GridError::Outside { axis, chunk })
        });
        cell.collect()
    }

    /// Returns the number of a chunk among all cells, last axis fastest. Numbers ascend as chunks
    /// do.
    pub(crate) fn number_of(&self, chunk: impl Iterator<Item = i64>) -> Result<u64, GridError> {
        let mut axes = self.origin.iter().zip(&self.shape).enumerate();
        let (mut number, mut found) = (0u64, 0_usize);
        for chunk in chunk {
            found = found.saturating_add(1);
            let Some((axis, (origin, &extent))) = axes.next() else {
                continue;
            };
            let cell = chunk.checked_sub(*origin);
            let cell = cell.and_then(|cell| u64::try_from(cell).ok());
            let cell = cell
                .filter(|&cell| cell < extent)
                .ok_or(GridError::Outside { axis, chunk })?;
            let before = number.checked_mul(extent);
            let at = before.and_then(|before| before.checked_add(cell));
            number = at.ok_or(GridError::Range)?;
        }
        let expected = self.shape.len();
        if found == expected {
            Ok(number)
        } else {
            Err(GridError::Axes { expected, found })
        }
    }

    /// Sets `chunk`, which has the axes of the grid, to the one with a number.
    pub(crate) fn move_to(&self, mut number: u64, chunk: &mut ChunkCoord) {
        let axes = self.origin.iter().zip(&self.shape);
        for (coord, (origin, extent)) in chunk.0.iter_mut().zip(axes).rev() {
            let cell = number.checked_rem(*extent).unwrap_or(0);
            number = number.checked_div(*extent).unwrap_or(0);
            *coord = origin.saturating_add_unsigned(cell);
        }
    }

    /// Returns the numbers of all cells of chunks with a first coordinate in `first`.
    pub(crate) fn numbers_within(&self, first: &RangeInclusive<i64>) -> Range<u64> {
        let (Some(origin), [extent, others @ ..]) = (self.origin.first(), &*self.shape) else {
            return 0..u64::MAX;
        };
        let each = others
            .iter()
            .fold(1u64, |n, &extent| n.saturating_mul(extent));
        // Cells before the grid count as its first one.
        let cell = |coord: i64| u64::try_from(coord.saturating_sub(*origin)).unwrap_or(0);
        let end = if first.end() < origin {
            0
        } else {
            cell(*first.end()).saturating_add(1).min(*extent)
        };
        cell(*first.start()).saturating_mul(each)..end.saturating_mul(each)
    }

    /// Returns the chunk of `cell`; `None` if there is no such cell.
    pub fn chunk_of(&self, cell: &[u64]) -> Option<ChunkCoord> {
        if cell.len() != self.shape.len() {
            return None;
        }
        let axes = cell.iter().zip(self.origin.iter().zip(&self.shape));
        let coords: Option<Box<[i64]>> = axes
            .map(|(&cell, (origin, &extent))| {
                let inside = cell < extent;
                inside.then(|| origin.checked_add_unsigned(cell))?
            })
            .collect();
        coords.map(ChunkCoord)
    }
}

/// Reason that a chunk has no cell in a grid, or that numbers are not a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GridError {
    /// Another number of axes.
    #[error("{found} coordinates in a grid of {expected} axes")]
    Axes {
        /// Axes of the grid.
        expected: usize,
        /// Coordinates given.
        found: usize,
    },
    /// Bounds that are not finite, or coordinates beyond 64 bits.
    #[error("chunk coordinates do not fit 64 bits")]
    Range,
    /// A chunk outside the grid.
    #[error("chunk coordinate {chunk} of axis {axis} is outside the array's grid")]
    Outside {
        /// The axis.
        axis: usize,
        /// The coordinate.
        chunk: i64,
    },
}
