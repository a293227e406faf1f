//! Offsets of a link's other chunks relative to its source chunk.

use core::fmt;

use super::{
    SegmentError,
    chunk_key::check,
    number::{self, Sign},
};
use crate::links::LinkWidth;

/// The `<offsets>` segment of a link array of generation 0.9.
///
/// It contains L − 1 offsets, for endpoints 1 to L − 1 in stored order, each the difference between
/// the endpoint's chunk and the [anchor](crate::links::AxisScales) of the source chunk; for L = 1
/// it is `self`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Offsets<'a> {
    text: &'a str,
    width: LinkWidth,
}

const SELF: &str = "self";

impl<'a> Offsets<'a> {
    /// Reads a segment of a family of `width` with chunk keys of `sid_ndim`
    /// numbers.
    ///
    /// # Errors
    ///
    /// [`SegmentError`] describes the invalid offset or the wrong count.
    pub fn parse(text: &'a str, width: LinkWidth, sid_ndim: usize) -> Result<Self, SegmentError> {
        let expected = width.get().saturating_sub(1);
        let found = match text {
            SELF => 0,
            _ => number::parts(text.as_bytes(), b'_').count(),
        };
        if found != expected {
            return Err(SegmentError::Offsets { expected, found });
        }
        let offsets = Self { text, width };
        for offset in offsets.texts() {
            check(offset, Sign::Explicit, sid_ndim)?;
        }
        Ok(offsets)
    }

    fn texts(&self) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        let count = self.width.get().saturating_sub(1);
        number::parts(self.text.as_bytes(), b'_').take(count)
    }

    /// Returns the offset of `endpoint`, a slot from 1 to L − 1.
    pub fn get(&self, endpoint: usize) -> Option<impl Iterator<Item = i64> + Clone + use<'a>> {
        self.iter().nth(endpoint.checked_sub(1)?)
    }

    /// Returns the offsets of endpoints 1 to L − 1.
    pub fn iter(
        &self,
    ) -> impl Iterator<Item = impl Iterator<Item = i64> + Clone + use<'a>> + Clone + use<'a> {
        let offsets = self.texts();
        offsets.map(|text| number::dotted(text, Sign::Explicit))
    }

    /// Returns the number of endpoints of the array's links.
    pub fn width(&self) -> LinkWidth {
        self.width
    }

    /// Returns whether all endpoints are in the source chunk's anchor: within one level, these are
    /// the intra-chunk links.
    pub fn is_zero(&self) -> bool {
        self.iter().flatten().all(|number| number == 0)
    }

    /// Returns whether no offset is lexicographically negative and offsets do not descend, which is
    /// required if links of delta 0 are undirected and stored once.
    pub fn is_canonical(&self) -> bool {
        // A negative first offset would place the source chunk after its neighbour.
        let mut first = self.iter().take(1).flatten();
        let forward = first
            .find(|&number| number != 0)
            .is_none_or(|number| number > 0);
        let mut pairs = self.iter().zip(self.iter().skip(1));
        forward && pairs.all(|(left, right)| left.le(right))
    }

    /// Returns the segment as it was read.
    pub fn as_str(&self) -> &'a str {
        self.text
    }
}

/// Displays offsets as a path segment: one slice for each endpoint from 1 on; `self` without
/// slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OffsetCoords<'a, C>(pub &'a [C]);

impl<C: AsRef<[i64]>> fmt::Display for OffsetCoords<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(SELF);
        }
        for (at, offset) in self.0.iter().enumerate() {
            if at != 0 {
                f.write_str("_")?;
            }
            number::write_dotted(offset.as_ref().iter().copied(), Sign::Explicit, f)?;
        }
        Ok(())
    }
}
