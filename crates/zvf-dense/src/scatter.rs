//! Copies the selected part of each cell into the result, on all threads.

use core::ops::Range;

use rayon::prelude::*;

use crate::{
    grid::CellPart,
    hyperslab::Hyperslab,
    strided::{BoxCopy, copy_row_by_row, strides},
};

/// Size in bytes below which another thread does not pay off.
const MIN_PARALLEL_BYTES: usize = 1 << 20;
/// Number of pieces that are read in parallel streams; hardware prefetchers track about as many.
const MAX_STREAMS: usize = 16;

/// A decoded cell and its selected parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScatterPiece<'a> {
    /// The elements of the cell, in row-major order.
    pub(crate) bytes: &'a [u8],
    /// Number of elements in `bytes` along each axis.
    pub(crate) extents: &'a [u64],
    /// The selected parts, with offsets relative to the first element of the cell.
    pub(crate) parts: &'a [CellPart],
}

/// Copies the selected part of each piece into `into`, a row-major array in the shape of the
/// selection. Returns `None` if a piece has fewer bytes than its extents, or reaches past `into`.
pub(crate) fn scatter(
    pieces: &[ScatterPiece<'_>],
    selection: &Hyperslab,
    size: usize,
    into: &mut [u8],
) -> Option<()> {
    let shape = selection.shape();
    let strides = strides(&shape, size)?;
    // The output is contiguous along its first axis with more than one element, so split there.
    let split = shape.iter().position(|&extent| extent != 1);
    let extent = split.and_then(|axis| shape.get(axis)).copied();
    let stride = split.and_then(|axis| strides.get(axis)).copied();
    let target = ScatterTarget {
        selection,
        strides: &strides,
        size,
        split,
    };
    let threads = u64::try_from(rayon::current_num_threads()).unwrap_or(1);
    let (Some(extent), Some(stride)) = (extent, stride) else {
        return target.put(pieces, 0..1, into);
    };
    if into.len() < MIN_PARALLEL_BYTES || threads < 2 {
        return target.put(pieces, 0..extent, into);
    }
    // Only rows that pieces cover, which may be a small share of all.
    let ends = pieces.iter().filter_map(|piece| {
        let part = piece.parts.get(split?)?;
        Some((part.at, part.at.saturating_add(part.count)))
    });
    let rows = ends.reduce(|rows, piece| (rows.0.min(piece.0), rows.1.max(piece.1)));
    let Some((first, end)) = rows else {
        return Some(());
    };
    let end = end.min(extent);
    let bytes = |rows: u64| usize::try_from(rows).ok()?.checked_mul(stride);
    let into = into.get_mut(bytes(first)?..bytes(end)?)?;
    // More parts than threads balance the load.
    let rows = end
        .checked_sub(first)?
        .div_ceil(threads.saturating_mul(4))
        .max(1);
    let windows = into.par_chunks_mut(bytes(rows)?.max(1)).enumerate();
    let done = windows.map(|(at, window)| {
        let start = u64::try_from(at)
            .ok()?
            .checked_mul(rows)?
            .checked_add(first)?;
        target.put(pieces, start..start.checked_add(rows)?.min(end), window)
    });
    done.collect::<Option<()>>()
}

fn put_row(row: &mut Vec<(BoxCopy, &[u8])>, into: &mut [u8]) -> Option<()> {
    let copies: Vec<(&BoxCopy, &[u8])> = row.iter().map(|(copy, from)| (copy, *from)).collect();
    copy_row_by_row(&copies, into)?;
    row.clear();
    Some(())
}

struct ScatterTarget<'a> {
    selection: &'a Hyperslab,
    strides: &'a [usize],
    size: usize,
    split: Option<usize>,
}

impl ScatterTarget<'_> {
    /// Copies the elements in `window` of the split axis.
    fn put(&self, pieces: &[ScatterPiece<'_>], window: Range<u64>, into: &mut [u8]) -> Option<()> {
        // Copy adjacent pieces along the last axis together.
        let mut row: Vec<(BoxCopy, &[u8])> = Vec::new();
        for piece in pieces {
            let part = self.split.and_then(|axis| piece.parts.get(axis));
            let is_outside = |part: &CellPart| {
                part.at >= window.end || part.at.saturating_add(part.count) <= window.start
            };
            if part.is_some_and(is_outside) {
                continue;
            }
            let Some(copy) = self.copy(piece, &window)? else {
                continue;
            };
            let continues = row
                .first()
                .is_none_or(|(first, _)| copy.continues_rows(first));
            if !continues || row.len() >= MAX_STREAMS {
                put_row(&mut row, into)?;
            }
            row.push((copy, piece.bytes));
        }
        put_row(&mut row, into)
    }

    /// Returns the copy of the elements of a piece in a window, or nothing if there are none.
    #[expect(clippy::option_option, reason = "the outer option is an error")]
    fn copy(&self, piece: &ScatterPiece<'_>, window: &Range<u64>) -> Option<Option<BoxCopy>> {
        let from_strides = strides(piece.extents, self.size)?;
        let mut axes = Vec::with_capacity(from_strides.len());
        let (mut from, mut to) = (0_usize, 0_usize);
        let ranges = self.selection.axes().iter().zip(piece.parts);
        let strides = from_strides.iter().zip(self.strides);
        for (axis, ((range, part), (&from_stride, &to_stride))) in ranges.zip(strides).enumerate() {
            let (mut skipped, mut count, mut at) = (0, part.count, part.at);
            if self.split == Some(axis) {
                let end = part.at.checked_add(part.count)?.min(window.end);
                let start = part.at.max(window.start);
                if start >= end {
                    return Some(None);
                }
                skipped = start.checked_sub(part.at)?;
                count = end.checked_sub(start)?;
                at = start.checked_sub(window.start)?;
            }
            let offset = skipped.checked_mul(range.step())?;
            let offset = usize::try_from(part.offset.checked_add(offset)?).ok()?;
            from = from.checked_add(offset.checked_mul(from_stride)?)?;
            to = to.checked_add(usize::try_from(at).ok()?.checked_mul(to_stride)?)?;
            let count = usize::try_from(count).ok()?;
            let step = match count {
                // The step of a single element may exceed the address space.
                0 | 1 => 0,
                _ => usize::try_from(range.step()).ok()?,
            };
            axes.push((count, from_stride.checked_mul(step)?, to_stride));
        }
        Some(Some(BoxCopy::new(self.size, axes.into_iter(), from, to)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{ChunkGrid, GridCells};

    /// Divides an array into clipped cells and scatters them again.
    #[track_caller]
    fn check(shape: &[u64], chunk: &[u64], selection: &Hyperslab, size: usize) {
        let count = |shape: &[u64]| usize::try_from(shape.iter().product::<u64>()).unwrap();
        let all: Vec<u8> = (0..count(shape) * size)
            .map(|at| u8::try_from(at * 7 % 251).unwrap())
            .collect();
        let read = |selection: &Hyperslab| {
            let mut found = Vec::new();
            let mut cells = GridCells::new(selection.axes(), &vec![1; shape.len()]);
            while let Some(parts) = cells.next() {
                let at = parts.iter().zip(shape);
                let at = at.fold(0, |at, (part, extent)| at * extent + part.cell);
                let at = usize::try_from(at).unwrap() * size;
                found.extend_from_slice(&all[at..at + size]);
            }
            found
        };
        let grid = ChunkGrid::new(shape.to_vec(), chunk.to_vec(), None).unwrap();
        let mut cells = grid.chunks(selection);
        let mut held = Vec::new();
        while let Some(parts) = cells.next() {
            let coordinate: Vec<u64> = parts.iter().map(|part| part.cell).collect();
            let of_chunk = grid.chunk_selection(&coordinate);
            held.push((read(&of_chunk), of_chunk.shape(), parts.to_vec()));
        }
        let pieces: Vec<ScatterPiece<'_>> = held
            .iter()
            .map(|(bytes, extents, parts)| ScatterPiece {
                bytes,
                extents,
                parts,
            })
            .collect();
        let expected = read(selection);
        let mut found = vec![0; expected.len()];
        scatter(&pieces, selection, size, &mut found).unwrap();
        assert!(found == expected, "{selection:?} of {shape:?} in {chunk:?}");
    }

    #[test]
    fn boxes_with_steps_come_together() {
        let new = |start: &[u64], stop: &[u64], steps: &[u64]| {
            Hyperslab::new(start, stop, Some(steps)).unwrap()
        };
        for size in [1, 2, 3, 4, 8, 16] {
            check(&[], &[], &Hyperslab::whole(&[]), size);
            check(&[7], &[3], &Hyperslab::whole(&[7]), size);
            check(&[7, 5], &[3, 2], &new(&[1, 0], &[7, 5], &[2, 3]), size);
            check(&[1, 4, 6], &[1, 4, 6], &Hyperslab::whole(&[1, 4, 6]), size);
            let selection = new(&[0, 3, 1], &[1, 4, 6], &[9, 1, 1]);
            check(&[1, 4, 6], &[2, 3, 2], &selection, size);
        }
    }

    #[test]
    fn large_ones_are_split_between_threads() {
        let selection = Hyperslab::new(&[0, 1, 0], &[1, 200, 1500], Some(&[1, 1, 1])).unwrap();
        check(&[1, 200, 1500], &[1, 64, 700], &selection, 4);
    }

    #[test]
    fn short_pieces_are_refused() {
        let parts = [CellPart {
            cell: 0,
            offset: 0,
            at: 0,
            count: 4,
        }];
        let piece = ScatterPiece {
            bytes: &[0; 3],
            extents: &[4],
            parts: &parts,
        };
        let whole = Hyperslab::whole(&[4]);
        assert_eq!(scatter(&[piece], &whole, 1, &mut [0; 4]), None);
    }
}
