//! Reads of boxes of an array, divided between threads.

use core::ops::Range;

use rayon::prelude::*;

use super::B2nd;
use super::B2ndError;
use crate::{
    AxisRange, CellPart, DenseArray, DenseError, Hyperslab, ReadCost, array::checked_len,
    blosc::ChunkError, strided::strides,
};

mod chunk;
mod output;

use chunk::Worker;
use output::Output;

/// Minimum decoded length in bytes for decoding on several threads.
const PARALLEL: u64 = 1 << 18;
/// Number of windows per thread, for load balance.
const WINDOWS_PER_THREAD: usize = 4;

/// A part of a read: a smaller selection with contiguous output.
struct Window<'a> {
    selection: Hyperslab,
    into: &'a mut [u8],
}

impl B2nd {
    /// Computes the cost of reading `selection`. Reads the block starts of each touched chunk, but
    /// no blocks.
    pub(super) fn plan(&self, selection: &Hyperslab) -> Result<ReadCost, DenseError> {
        let bytes = self.byte_len(selection)?;
        let mut worker = Worker::new(self);
        self.walk(selection, |chunk, parts| {
            worker.plan(chunk, parts, selection)
        })?;
        let mut plan = worker.taken();
        plan.bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        Ok(plan)
    }

    pub(super) fn read(
        &self,
        selection: &Hyperslab,
        into: &mut [u8],
    ) -> Result<ReadCost, DenseError> {
        let bytes = checked_len(self, selection, into)?;
        let needed = u64::try_from(bytes).unwrap_or(u64::MAX);
        if bytes == 0 {
            return Ok(ReadCost::default());
        }
        let windows = self.windows(selection, into)?;
        let mut plan = if windows.len() < 2 {
            let mut windows = windows.into_iter();
            windows.try_fold(ReadCost::default(), |plan, window| {
                Ok::<_, DenseError>(sum(plan, self.read_window(window)?))
            })?
        } else {
            let windows = windows.into_par_iter();
            let done = windows.map(|window| self.read_window(window));
            done.try_reduce(ReadCost::default, |a, b| Ok(sum(a, b)))?
        };
        // Windows may share chunks, so chunks are counted over the whole selection.
        plan.chunks = self.grid.chunks_touched(selection);
        plan.bytes = needed;
        Ok(plan)
    }

    /// Decodes one block of a chunk, including padding beyond the chunk and the array. Reads no
    /// other block, except the first one if the delta filter needs it.
    ///
    /// # Errors
    ///
    /// If the block does not exist, or cannot be read or decoded.
    pub fn block(&self, chunk: u64, block: u32) -> Result<Vec<u8>, DenseError> {
        let is_there = self.grid.chunk_count().is_some_and(|count| chunk < count)
            && self.facts.chunksize.checked_div(self.facts.blocksize) > Some(block);
        if !is_there {
            return Err(self.broken(chunk, ChunkError::Block(block)));
        }
        Worker::new(self).block(chunk, block)
    }

    fn read_window(&self, window: Window<'_>) -> Result<ReadCost, DenseError> {
        let Window { selection, into } = window;
        let mut worker = Worker::new(self);
        let shape = selection.shape();
        let size = self.item_size();
        let strides = strides(&shape, size).unwrap_or_default();
        let mut output = Output {
            bytes: into,
            strides: &strides,
            size,
        };
        self.walk(&selection, |chunk, parts| {
            worker.read(chunk, parts, &selection, &mut output)
        })?;
        Ok(worker.taken())
    }

    /// Calls `visit` with the number and the selected part of each touched chunk.
    fn walk(
        &self,
        selection: &Hyperslab,
        mut visit: impl FnMut(u64, &[CellPart]) -> Result<(), DenseError>,
    ) -> Result<(), DenseError> {
        let mut cells = self.grid.chunks(selection);
        while let Some(parts) = cells.next() {
            let axes = parts.iter().zip(self.grid.chunk_counts());
            // Cannot overflow: the header limits the number of chunks.
            let chunk = axes.fold(0_u64, |number, (part, count)| {
                number.wrapping_mul(count).wrapping_add(part.cell)
            });
            visit(chunk, parts)?;
        }
        Ok(())
    }

    /// Divides a read into windows that share no block, along the first axis with more than one
    /// element, so that the output of a window is contiguous. Windows end at chunk borders if there
    /// are at least as many chunks as threads, else at block borders.
    fn windows<'a>(
        &self,
        selection: &Hyperslab,
        into: &'a mut [u8],
    ) -> Result<Vec<Window<'a>>, DenseError> {
        let axes = selection.axes();
        let split = axes.iter().position(|axis| axis.count() != 1);
        let threads = rayon::current_num_threads();
        let alone = threads < 2 || self.decoded_bytes(selection) < PARALLEL;
        let (Some(split), false) = (split, alone) else {
            let selection = selection.clone();
            return Ok(vec![Window { selection, into }]);
        };
        let cuts = self.cuts(selection, split, threads);
        let shape = selection.shape();
        let row = strides(&shape, self.item_size())
            .and_then(|strides| strides.get(split).copied())
            .unwrap_or(1);
        let mut rest = into;
        let mut windows = Vec::with_capacity(cuts.len());
        for cut in cuts {
            let rows = usize::try_from(cut.end.saturating_sub(cut.start));
            let len = rows.ok().and_then(|rows| rows.checked_mul(row));
            // The cuts cover the selection.
            let part = len.and_then(|len| rest.split_off_mut(..len));
            let into = part.ok_or(DenseError::Budget {
                needed: u64::MAX,
                budget: self.budget,
            })?;
            let axes = axes.iter().enumerate();
            let selection = axes.map(|(axis, range)| match axis {
                _ if axis == split => range.portion(cut.clone()),
                _ => *range,
            });
            windows.push(Window {
                selection: selection.collect(),
                into,
            });
        }
        Ok(windows)
    }

    /// Returns the ranges of a selection between cuts along an axis.
    fn cuts(&self, selection: &Hyperslab, axis: usize, threads: usize) -> Vec<Range<u64>> {
        let none = AxisRange::whole(0);
        let range = *selection.axes().get(axis).unwrap_or(&none);
        let extent = |shape: &[u64]| shape.get(axis).copied().unwrap_or(1);
        let chunk = extent(self.grid.chunk_shape());
        let block = extent(self.block_shape());
        let of_chunks = || range.parts(chunk);
        let max = threads.saturating_mul(WINDOWS_PER_THREAD);
        if of_chunks().take(threads).count() >= threads {
            joined(of_chunks(), range.count(), max)
        } else {
            let of_blocks = of_chunks().flat_map(|part| part.parts(range.step(), block));
            joined(of_blocks, range.count(), max)
        }
    }

    /// Returns the decoded length of the touched blocks in bytes.
    fn decoded_bytes(&self, selection: &Hyperslab) -> u64 {
        let axes = selection.axes().iter().zip(self.block_shape());
        let blocks = axes
            .map(|(axis, &block)| {
                let span = axis
                    .last()
                    .map_or(0, |last| last.saturating_sub(axis.start()));
                let spanned = (span / block.max(1)).saturating_add(1);
                spanned.min(axis.count())
            })
            .fold(1, u64::saturating_mul);
        blocks.saturating_mul(u64::from(self.facts.blocksize))
    }

    pub(super) fn item_size(&self) -> usize {
        usize::try_from(self.facts.typesize).unwrap_or(usize::MAX)
    }

    /// Iterates over the number of blocks of a chunk along each axis.
    fn block_counts(&self) -> impl ExactSizeIterator<Item = u64> {
        let axes = self.grid.chunk_shape().iter().zip(self.block_shape());
        axes.map(|(chunk, &block)| chunk.div_ceil(block.max(1)))
    }

    /// Creates an error in a chunk.
    pub(super) fn broken(&self, chunk: u64, source: ChunkError) -> DenseError {
        DenseError::b2nd(&self.name, B2ndError::Chunk { chunk, source })
    }

    pub(super) fn block_shape(&self) -> &[u64] {
        self.grid.block_shape().unwrap_or_default()
    }
}

/// Joins adjacent parts into at most `max` ranges with similar numbers of elements.
fn joined(parts: impl Iterator<Item = CellPart>, count: u64, max: usize) -> Vec<Range<u64>> {
    let max = u64::try_from(max).unwrap_or(u64::MAX).max(1);
    let min = count.div_ceil(max);
    let mut cuts: Vec<Range<u64>> = Vec::new();
    for part in parts {
        let end = part.at.saturating_add(part.count);
        match cuts.last_mut() {
            Some(last) if last.end.saturating_sub(last.start) < min => last.end = end,
            _ => cuts.push(part.at..end),
        }
    }
    cuts
}

/// Adds the costs of two windows.
fn sum(a: ReadCost, b: ReadCost) -> ReadCost {
    ReadCost {
        blocks: a.blocks.saturating_add(b.blocks),
        bytes_read: a.bytes_read.saturating_add(b.bytes_read),
        ..a
    }
}
