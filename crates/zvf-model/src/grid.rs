//! Chunks and bins of positions and boxes.
//!
//! Space is divided into chunks of one shape, counted from the origin of the axes; coordinates may
//! be negative. A position on a border belongs to the upper chunk. Positions of any type are
//! divided as 64-bit floats:
//!
//! ```text
//! chunk[k] = floor(position[k] / chunk_shape[k])
//! ```
//!
//! An array holds a box of chunks, its [`Grid`]: cell `i` of an axis is chunk
//! `origin + i`. A chunk may be cut into bins, see [`Bins`].
//!
//! A level chunked by an attribute has the number of the attribute's value before the spatial
//! coordinates; boxes ignore it.

use core::fmt;

use zvf_format::path::{ChunkCoords, ChunkKey, SegmentError};

use crate::rank::MAX_RANK;

mod bins;
mod chunks;
mod shape;

pub use bins::{BinPlace, Bins, BinsError};
pub use chunks::{Chunks, ChunksWithin, TooManyChunks};
pub use shape::{ChunkShape, Grid, GridError, ScaleError, ShapeError};

/// Coordinates of a chunk. Ordered as tuples of integers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkCoord(Box<[i64]>);

impl ChunkCoord {
    /// Creates a chunk with these coordinates.
    pub fn new(coords: impl Into<Box<[i64]>>) -> Self {
        Self(coords.into())
    }

    /// Reads a chunk key of `arity` numbers.
    ///
    /// # Errors
    ///
    /// [`SegmentError`] if it is not a chunk key.
    pub fn parse(text: &str, arity: usize) -> Result<Self, SegmentError> {
        ChunkKey::parse(text, arity).map(|key| Self(key.coords().collect()))
    }

    /// Returns the coordinates.
    pub fn coords(&self) -> &[i64] {
        &self.0
    }

    /// Returns the last `axes` coordinates, which are spatial. `None` if there are fewer.
    pub fn spatial(&self, axes: usize) -> Option<&[i64]> {
        let leading = self.0.len().checked_sub(axes)?;
        self.0.get(leading..)
    }
}

/// Allows lookups in maps by coordinates, without creating a chunk.
impl core::borrow::Borrow<[i64]> for ChunkCoord {
    fn borrow(&self) -> &[i64] {
        &self.0
    }
}

impl AsRef<[i64]> for ChunkCoord {
    fn as_ref(&self) -> &[i64] {
        &self.0
    }
}

impl fmt::Display for ChunkCoord {
    /// Formats a chunk key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ChunkCoords(&self.0).fmt(f)
    }
}

/// A box in space, both corners inside it.
///
/// Corners may be infinite. A box with a NaN or an inverted axis is legal and
/// contains nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    lower: Box<[f64]>,
    upper: Box<[f64]>,
}

impl Bounds {
    /// Creates a box between two corners with the same number of axes, at least one.
    ///
    /// # Errors
    ///
    /// [`BoundsError`] if the corners do not match.
    pub fn new(lower: &[f64], upper: &[f64]) -> Result<Self, BoundsError> {
        let (found, expected) = (upper.len(), lower.len());
        if found != expected || found == 0 || found > MAX_RANK {
            return Err(BoundsError {
                lower: expected,
                upper: found,
            });
        }
        Ok(Self {
            lower: lower.into(),
            upper: upper.into(),
        })
    }

    /// Returns the least of each axis.
    pub fn lower(&self) -> &[f64] {
        &self.lower
    }

    /// Returns the greatest of each axis.
    pub fn upper(&self) -> &[f64] {
        &self.upper
    }

    /// Returns the number of axes.
    pub fn axes(&self) -> usize {
        self.lower.len()
    }

    /// Returns whether the box contains nothing.
    pub fn is_empty(&self) -> bool {
        // Written so that a box with NaN is empty.
        !self.lower.iter().zip(&self.upper).all(|(lo, hi)| lo <= hi)
    }

    /// Returns whether `position` is inside; `false` if the number of axes differs.
    pub fn contains(&self, position: &[f64]) -> bool {
        let mut axes = position.iter().zip(self.lower.iter().zip(&self.upper));
        position.len() == self.axes() && axes.all(|(x, (lo, hi))| lo <= x && x <= hi)
    }
}

/// Corners of a box that do not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the corners of a box have {lower} and {upper} axes")]
pub struct BoundsError {
    /// Axes of the lower corner.
    pub lower: usize,
    /// Axes of the upper corner.
    pub upper: usize,
}

/// Rounds `value` down; `None` if it is NaN or does not fit 64 bits.
fn floor(value: f64) -> Option<i64> {
    let floor = value.floor();
    within_i64(floor).then(|| truncate(floor))
}

/// Rounds `value` down, saturating at 64 bits. The caller must handle NaN.
fn floor_saturating(value: f64) -> i64 {
    truncate(value.floor())
}

fn within_i64(value: f64) -> bool {
    // 2^63 is representable as a float, 2^63 − 1 is not.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (-LIMIT..LIMIT).contains(&value)
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "the only conversion there is; it saturates"
)]
fn truncate(value: f64) -> i64 {
    value as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_at_the_ends_of_the_numbers() {
        assert_eq!(floor(-0.125), Some(-1));
        assert_eq!(floor(1.0), Some(1));
        assert_eq!(floor(-9_223_372_036_854_775_808.0), Some(i64::MIN));
        assert_eq!(floor(9_223_372_036_854_775_808.0), None);
        assert_eq!(floor(f64::NAN), None);
        assert_eq!(floor_saturating(f64::INFINITY), i64::MAX);
        assert_eq!(floor_saturating(f64::NEG_INFINITY), i64::MIN);
    }
}
