//! The shape of chunks, and the box of chunks an array holds.

use core::num::NonZeroU32;

use super::{Bounds, ChunkCoord, Chunks, floor, floor_saturating, truncate};
use crate::rank::MAX_RANK;

/// Extent of a chunk (or bin) along each axis: finite and above 0, one axis at
/// least.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkShape(Box<[f64]>);

impl ChunkShape {
    /// Checks extents.
    ///
    /// # Errors
    ///
    /// [`ShapeError`] when there are none, too many, or one is not above 0.
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

    /// The extents.
    pub fn extents(&self) -> &[f64] {
        &self.0
    }

    /// Number of axes.
    pub fn axes(&self) -> usize {
        self.0.len()
    }

    /// The chunk that `position` is in. `None` when the axes do not match, a
    /// coordinate is not finite, or the chunk's does not fit 64 bits.
    pub fn chunk_of(&self, position: &[f64]) -> Option<ChunkCoord> {
        if position.len() != self.axes() {
            return None;
        }
        let axes = position.iter().zip(&self.0);
        let coords: Option<Box<[i64]>> = axes.map(|(x, extent)| floor(x / extent)).collect();
        coords.map(ChunkCoord)
    }

    /// The chunks that `bbox` touches; none when it is empty, inverted or NaN,
    /// or of another number of axes.
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

    /// How many of the chunks `root` has go into one of this shape, along each
    /// axis.
    ///
    /// # Errors
    ///
    /// [`ScaleError`] when that is no whole number of at least 1.
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

/// A ratio that is a whole number but for rounding, as the number.
pub(super) fn whole(ratio: f64) -> Option<NonZeroU32> {
    let rounded = ratio.round();
    let near = (ratio - rounded).abs() <= TOLERANCE * rounded.max(1.0);
    let number = u32::try_from(truncate(rounded)).ok()?;
    NonZeroU32::new(number).filter(|_| near)
}

/// How far from whole a ratio of two shapes may be, as the format has it.
const TOLERANCE: f64 = 1e-9;

/// Why numbers are no chunk shape.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// No axis, or more than any store has.
    #[error("{0} axes, not 1 to {MAX_RANK}")]
    Axes(usize),
    /// An extent that is not finite and above 0.
    #[error("an extent of {0}, not finite and above 0")]
    Extent(f64),
}

/// Why a level's chunks are no multiple of the root's.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleError {
    /// Another number of axes.
    #[error("a chunk of {level} axes over one of {root}")]
    Axes {
        /// Axes of the level's chunk shape.
        level: usize,
        /// Axes of the root's.
        root: usize,
    },
    /// An extent that is no whole multiple, or one beyond 32 bits.
    #[error("chunk extent {level} of axis {axis} is no whole multiple of the root's {root}")]
    Axis {
        /// The axis.
        axis: usize,
        /// Extent of the level's chunks.
        level: f64,
        /// Extent of the root's.
        root: f64,
    },
}

/// The box of chunks an array holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    origin: Box<[i64]>,
    shape: Box<[u64]>,
}

impl Grid {
    /// `shape` chunks from chunk `origin` on; no origin means all zeros.
    ///
    /// # Errors
    ///
    /// [`GridError`] when the axes do not match or a coordinate does not fit.
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

    /// The grid that holds every chunk `bounds` touch.
    ///
    /// # Errors
    ///
    /// [`GridError`] when the axes do not match, the bounds are empty or not
    /// finite, or a coordinate does not fit.
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
        // Inverted bounds still make a grid of one, as the format has it.
        let extents =
            axes.map(|(lo, hi)| hi.checked_sub(*lo)?.max(0).unsigned_abs().checked_add(1));
        let shape: Option<Vec<u64>> = extents.collect();
        Self::new(Some(lower.coords()), &shape.ok_or(GridError::Range)?)
    }

    /// The chunk of the first cell.
    pub fn origin(&self) -> &[i64] {
        &self.origin
    }

    /// Number of cells along each axis.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The cell of `chunk`.
    ///
    /// # Errors
    ///
    /// [`GridError`] when the chunk is outside or has another arity.
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

    /// The chunk of `cell`; `None` when there is no such cell.
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

/// Why a chunk has no cell in a grid, or numbers are no grid.
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
    /// A chunk the grid does not hold.
    #[error("chunk coordinate {chunk} of axis {axis} is outside the array's grid")]
    Outside {
        /// The axis.
        axis: usize,
        /// The coordinate.
        chunk: i64,
    },
}
