//! Chunk keys, and the cell keys that concatenate them.

use core::fmt;

use super::{
    SegmentError,
    number::{self, Sign},
};
use crate::links::LinkWidth;

/// Coordinates of a chunk as text, absolute and possibly negative: `-1.0.2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChunkKey<'a> {
    text: &'a str,
}

impl<'a> ChunkKey<'a> {
    /// Reads a key of `sid_ndim` coordinates.
    ///
    /// # Errors
    ///
    /// [`SegmentError`] describes the invalid number or the wrong count.
    pub fn parse(text: &'a str, sid_ndim: usize) -> Result<Self, SegmentError> {
        check(text.as_bytes(), Sign::Plain, sid_ndim)?;
        Ok(Self { text })
    }

    /// Returns the coordinates.
    pub fn coords(&self) -> impl Iterator<Item = i64> + Clone + use<'a> {
        number::dotted(self.text.as_bytes(), Sign::Plain)
    }

    /// Returns the key as it was read.
    pub fn as_str(&self) -> &'a str {
        self.text
    }
}

/// Displays coordinates as a chunk key.
///
/// Concatenated chunks form a cell key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChunkCoords<'a>(pub &'a [i64]);

impl fmt::Display for ChunkCoords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        number::write_dotted(self.0.iter().copied(), Sign::Plain, f)
    }
}

/// The chunks of a cross-chunk cell of generation 0.8, as text: L chunk keys
/// in stored order with dots between all numbers, `0.0.0.1.0.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CellKey<'a> {
    text: &'a str,
    width: LinkWidth,
    sid_ndim: usize,
}

impl<'a> CellKey<'a> {
    /// Reads a key of `width` chunks of `sid_ndim` coordinates each.
    ///
    /// # Errors
    ///
    /// [`SegmentError`] describes the invalid number or the wrong count.
    pub fn parse(text: &'a str, width: LinkWidth, sid_ndim: usize) -> Result<Self, SegmentError> {
        check(
            text.as_bytes(),
            Sign::Plain,
            sid_ndim.saturating_mul(width.get()),
        )?;
        Ok(Self {
            text,
            width,
            sid_ndim,
        })
    }

    /// Returns the coordinates of the chunk in `slot`, or `None` past the last.
    pub fn chunk(&self, slot: usize) -> Option<impl Iterator<Item = i64> + Clone + use<'a>> {
        let start = slot.checked_mul(self.sid_ndim)?;
        let coords = number::dotted(self.text.as_bytes(), Sign::Plain);
        (slot < self.width.get()).then(|| coords.skip(start).take(self.sid_ndim))
    }

    /// Returns the number of chunks.
    pub fn width(&self) -> LinkWidth {
        self.width
    }

    /// Returns whether the chunks do not descend, which is required if links are undirected and
    /// stored once.
    pub fn is_canonical(&self) -> bool {
        let chunks = (0..self.width.get()).filter_map(|slot| self.chunk(slot));
        let mut pairs = chunks.clone().zip(chunks.skip(1));
        pairs.all(|(left, right)| left.le(right))
    }

    /// Returns the key as it was read.
    pub fn as_str(&self) -> &'a str {
        self.text
    }
}

/// Checks the spelling and the count of numbers.
pub(super) fn check(text: &[u8], sign: Sign, expected: usize) -> Result<(), SegmentError> {
    let mut found = 0usize;
    for (at, text) in number::parts(text, b'.').enumerate() {
        number::parse(text, sign).map_err(|fault| SegmentError::Number { at, fault })?;
        found = at.saturating_add(1);
    }
    if found != expected {
        return Err(SegmentError::Numbers { expected, found });
    }
    Ok(())
}
