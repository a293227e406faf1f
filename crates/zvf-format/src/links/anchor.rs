//! Chunk coordinates of one level in terms of another's.

use core::num::NonZeroU32;

/// Ratio of the chunk sizes of two levels along one axis.
///
/// Each number is the level's chunk shape divided by the root's, a whole
/// number of at least 1. (The leading axis of an attribute-chunked level has 1
/// on both sides.) A link of a cross-level family is stored in the cell of its
/// source chunk, and its other endpoints' chunks as offsets from the source's
/// *anchor*: the target-level chunk that holds the source chunk's lower corner.
///
/// ```
/// use std::num::NonZeroU32;
/// use zvf_format::links::AxisScales;
///
/// let fine = NonZeroU32::MIN;
/// let coarse = NonZeroU32::new(2).unwrap_or(fine);
/// let up = AxisScales { source: fine, target: coarse };
/// assert_eq!(up.anchor(-1), Some(-1)); // floor(-1 / 2), not 0
/// assert_eq!(up.offset(3, 1), Some(0)); // fine chunk 3 lies in coarse chunk 1
/// assert_eq!(up.resolve(3, 0), Some(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisScales {
    /// Scale of the level that owns the family, which contains endpoint 0.
    pub source: NonZeroU32,
    /// Scale of the level `delta` levels away, which contains the other endpoints.
    pub target: NonZeroU32,
}

impl AxisScales {
    /// Both levels have the same chunk shape along the axis.
    pub const EQUAL: Self = Self {
        source: NonZeroU32::MIN,
        target: NonZeroU32::MIN,
    };

    /// Returns the target-level coordinate of source chunk `chunk`: the floor of
    /// `chunk · source / target`. `None` if it does not fit 64 bits.
    pub fn anchor(self, chunk: i64) -> Option<i64> {
        let scaled = chunk.checked_mul(i64::from(self.source.get()))?;
        // The divisor is positive, so Euclidean division rounds down.
        scaled.checked_div_euclid(i64::from(self.target.get()))
    }

    /// Returns the offset to store for an endpoint in target chunk `target`.
    pub fn offset(self, source: i64, target: i64) -> Option<i64> {
        target.checked_sub(self.anchor(source)?)
    }

    /// Returns the target chunk that a stored offset names.
    pub fn resolve(self, source: i64, offset: i64) -> Option<i64> {
        self.anchor(source)?.checked_add(offset)
    }
}
