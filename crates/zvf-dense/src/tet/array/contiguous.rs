//! Selections that are one contiguous byte range of the file.
//!
//! Contiguous payloads show that a range covers the selection, but not that its bytes are in
//! row-major order: tiles over several rows and columns are contiguous as well. Tiles are in
//! row-major order if there is an axis such that each tile has one selected element along every
//! axis before it, and a single tile covers every axis after it.

use core::ops::Range;

use rayon::prelude::*;

use super::{TetArray, narrowed, shifted};
use crate::{CellPart, DenseArray, DenseError, Hyperslab};

/// Minimum length in bytes for copying on several threads.
const MIN_PARALLEL_BYTES: usize = 1 << 20;

/// Contiguous payloads that cover a selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contiguous {
    /// Byte range in the file.
    pub span: Range<u64>,
    /// The bytes are the selection in row-major order. Otherwise they are its elements in another
    /// order, which suffices if order is irrelevant.
    pub is_row_major: bool,
}

impl TetArray {
    /// Returns the byte range of a selection, if its tiles are raw and the selected bytes are
    /// contiguous within and across tiles.
    ///
    /// The range is not necessarily the selection in row-major order; see
    /// [`Contiguous::is_row_major`].
    ///
    /// # Errors
    ///
    /// If the selection is not inside the array.
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

    /// Returns whether the elements, chunk by chunk, are in row-major order. This holds if there is
    /// an axis such that each chunk has one element along every axis before it, and a single chunk
    /// covers every axis after it.
    fn chunks_follow_rows(&self, selection: &Hyperslab) -> bool {
        let chunks = self.info.grid.chunk_shape();
        let axes = selection.axes().iter().zip(chunks);
        let mut rest = axes.skip_while(|(axis, chunk)| axis.parts(**chunk).all(|p| p.count == 1));
        rest.next();
        rest.all(|(axis, chunk)| axis.parts(*chunk).nth(1).is_none())
    }

    /// Borrows the selection, if the source is in memory or mapped and the bytes are contiguous in
    /// row-major order. The bytes have no alignment guarantee.
    ///
    /// # Errors
    ///
    /// If the selection is not inside the array.
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

    /// Reads the selection with one copy or request, if its bytes are contiguous in row-major
    /// order. Returns whether it did.
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
            if into.len() < MIN_PARALLEL_BYTES || threads < 2 {
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

/// Returns whether the selected elements are contiguous in their tile.
fn is_one_piece(parts: &[CellPart], extents: &[u64], selection: &Hyperslab) -> bool {
    let axes = parts.iter().zip(extents).zip(selection.axes());
    let mut rest = axes.skip_while(|((part, _), _)| part.count == 1);
    let is_run = rest.next().is_none_or(|(_, axis)| axis.step() == 1);
    // An axis with all elements selected has step 1.
    is_run && rest.all(|((part, extent), _)| part.count == *extent)
}
