//! Selections that are one range of the file.
//!
//! That payloads follow each other proves that a range covers the selection. It
//! does not prove that the range is the selection in row-major order: tiles of
//! several rows and columns lie one after the other as well. The order of tiles
//! is that of rows when on some axis tiles follow each other, on each axis
//! before it a tile has one element of the selection, and on each after it one
//! tile has all.

use core::ops::Range;

use rayon::prelude::*;

use super::{TetArray, narrowed, shifted};
use crate::{CellPart, DenseArray, DenseError, Hyperslab};

/// Below so many bytes another thread costs more than it brings.
const ALONE: usize = 1 << 20;

/// Payloads that are one range of the file and cover a selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contiguous {
    /// Where they are in the file.
    pub span: Range<u64>,
    /// Whether the bytes are the selection in row-major order. Otherwise they
    /// are its elements in another order, of use where the order does not matter.
    pub is_row_major: bool,
}

impl TetArray {
    /// The range of the file that a selection is, when its tiles are raw, each
    /// in one piece and each where the one before it ends.
    ///
    /// That alone does not make the range the selection in row-major order: see
    /// [`Contiguous::is_row_major`].
    ///
    /// # Errors
    ///
    /// When the selection is not of this array.
    pub fn contiguous(&self, selection: &Hyperslab) -> Result<Option<Contiguous>, DenseError> {
        selection.check(self.shape())?;
        let is_row_major = self.chunks_follow_rows(selection);
        let mut cells = self.info.grid.chunks(selection);
        let mut span: Option<Range<u64>> = None;
        while let Some(parts) = cells.next() {
            let Some((_, tile, extents)) = self.tile(parts) else {
                return Ok(None);
            };
            if tile.is_zstd || !is_one_piece(parts, &extents, selection) {
                return Ok(None);
            }
            let range = narrowed(parts, &extents, selection, self.size());
            let Some(range) = range.and_then(|(range, ..)| shifted(&range, tile.offset)) else {
                return Ok(None);
            };
            match &mut span {
                Some(span) if span.end == range.start => span.end = range.end,
                Some(_) => return Ok(None),
                None => span = Some(range),
            }
        }
        Ok(span.map(|span| Contiguous { span, is_row_major }))
    }

    /// Whether elements chunk by chunk are in the order of rows: on some axis
    /// chunks follow each other, before it each has one element, and after it
    /// one has all.
    fn chunks_follow_rows(&self, selection: &Hyperslab) -> bool {
        let chunks = self.info.grid.chunk_shape();
        let axes = selection.axes().iter().zip(chunks);
        let mut rest = axes.skip_while(|(axis, chunk)| axis.parts(**chunk).all(|p| p.count == 1));
        rest.next();
        rest.all(|(axis, chunk)| axis.parts(*chunk).nth(1).is_none())
    }

    /// The selection itself, borrowed, when it is in memory or mapped and its
    /// bytes are in order there. Not aligned to anything.
    ///
    /// # Errors
    ///
    /// When the selection is not of this array.
    pub fn borrow(&self, selection: &Hyperslab) -> Result<Option<&[u8]>, DenseError> {
        let Some(bytes) = self.file.source.bytes() else {
            return Ok(None);
        };
        let found = self.contiguous(selection)?;
        let span = found.filter(|found| found.is_row_major);
        Ok(span.and_then(|found| {
            let start = usize::try_from(found.span.start).ok()?;
            bytes.get(start..usize::try_from(found.span.end).ok()?)
        }))
    }

    /// Reads it in one go when its bytes are in order in the file.
    pub(super) fn read_contiguous(
        &self,
        selection: &Hyperslab,
        into: &mut [u8],
    ) -> Result<bool, DenseError> {
        if !self.chunks_follow_rows(selection) {
            return Ok(false);
        }
        if let Some(bytes) = self.borrow(selection)? {
            let bytes = bytes.get(..into.len()).unwrap_or_default();
            let threads = rayon::current_num_threads();
            if into.len() < ALONE || threads < 2 {
                into.copy_from_slice(bytes);
            } else {
                let len = into.len().div_ceil(threads);
                let windows = into.par_chunks_mut(len).zip(bytes.par_chunks(len));
                windows.for_each(|(into, bytes)| into.copy_from_slice(bytes));
            }
            return Ok(true);
        }
        let Some(found) = self.contiguous(selection)? else {
            return Ok(false);
        };
        let source = &self.file.source;
        let read = source.read_into(found.span.start, into);
        read.map_err(|error| DenseError::io(source.name(), error))?;
        Ok(true)
    }
}

/// Whether what is selected of a tile lies in one piece in it.
fn is_one_piece(parts: &[CellPart], extents: &[u64], selection: &Hyperslab) -> bool {
    let axes = parts.iter().zip(extents).zip(selection.axes());
    let mut rest = axes.skip_while(|((part, _), _)| part.count == 1);
    let is_run = rest.next().is_none_or(|(_, axis)| axis.step() == 1);
    // Whole axes are of step 1, as all their elements are there.
    is_run && rest.all(|((part, extent), _)| part.count == *extent)
}
