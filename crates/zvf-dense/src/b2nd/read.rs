//! Boxes of an array: which blocks, and on how many threads.

use core::ops::Range;

use rayon::prelude::*;

use super::B2nd;
use super::B2ndError;
use crate::{
    AxisRange, CellPart, DenseArray, DenseError, Hyperslab, ReadPlan, blosc::ChunkError,
    strided::strides,
};

mod chunk;
mod output;

use chunk::Worker;
use output::Output;

/// From how many decoded bytes on blocks are decoded side by side.
const PARALLEL: u64 = 1 << 18;
/// Windows for each thread, so that none waits long for another.
const WINDOWS: usize = 4;

/// Part of a read: a smaller selection, whose bytes follow each other.
struct Window<'a> {
    selection: Hyperslab,
    into: &'a mut [u8],
}

impl B2nd {
    /// What reading `selection` takes: reads the block starts of each chunk it
    /// touches, but no block.
    pub(super) fn plan(&self, selection: &Hyperslab) -> Result<ReadPlan, DenseError> {
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
    ) -> Result<ReadPlan, DenseError> {
        let bytes = self.byte_len(selection)?;
        let needed = u64::try_from(bytes).unwrap_or(u64::MAX);
        if bytes != into.len() {
            return Err(DenseError::room(bytes, into.len()));
        }
        if bytes == 0 {
            return Ok(ReadPlan::default());
        }
        let windows = self.windows(selection, into)?;
        let mut plan = if windows.len() < 2 {
            let mut windows = windows.into_iter();
            windows.try_fold(ReadPlan::default(), |plan, window| {
                Ok::<_, DenseError>(sum(plan, self.read_window(window)?))
            })?
        } else {
            let windows = windows.into_par_iter();
            let done = windows.map(|window| self.read_window(window));
            done.try_reduce(ReadPlan::default, |a, b| Ok(sum(a, b)))?
        };
        // Windows may have parts of one chunk.
        plan.chunks = self.grid.chunks_touched(selection);
        plan.bytes = needed;
        Ok(plan)
    }

    /// One block of a chunk, decoded, with what it has beyond chunk and array.
    /// Neither is read for another block but the first, where the filter delta
    /// needs it.
    ///
    /// # Errors
    ///
    /// When there is no such block, or it cannot be read or decoded.
    pub fn block(&self, chunk: u64, block: u32) -> Result<Vec<u8>, DenseError> {
        let is_there = self.grid.chunk_count().is_some_and(|count| chunk < count)
            && self.facts.chunksize.checked_div(self.facts.blocksize) > Some(block);
        if !is_there {
            return Err(self.broken(chunk, ChunkError::Block(block)));
        }
        Worker::new(self).block(chunk, block)
    }

    fn read_window(&self, window: Window<'_>) -> Result<ReadPlan, DenseError> {
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

    /// Calls `visit` with the number of each chunk that is touched, and what is
    /// selected of it.
    fn walk(
        &self,
        selection: &Hyperslab,
        mut visit: impl FnMut(u64, &[CellPart]) -> Result<(), DenseError>,
    ) -> Result<(), DenseError> {
        let mut cells = self.grid.chunks(selection);
        while let Some(parts) = cells.next() {
            let axes = parts.iter().zip(self.grid.chunk_counts());
            // Below the number of chunks, which the header has been checked for.
            let chunk = axes.fold(0_u64, |number, (part, count)| {
                number.wrapping_mul(count).wrapping_add(part.cell)
            });
            visit(chunk, parts)?;
        }
        Ok(())
    }

    /// Cuts a read where windows share no block, along the first axis that has
    /// more than one element: their bytes then follow each other. At the borders
    /// of chunks if there are as many as threads, else of blocks.
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
        let row = strides(&shape, self.item_size());
        let row = row.and_then(|strides| strides.get(split).copied());
        let row = row.unwrap_or(1);
        let mut rest = into;
        let mut windows = Vec::with_capacity(cuts.len());
        for cut in cuts {
            let rows = usize::try_from(cut.end.saturating_sub(cut.start));
            let len = rows.ok().and_then(|rows| rows.checked_mul(row));
            // The cuts together have the rows of the selection.
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

    /// Where a selection is cut along an axis, in its own elements.
    fn cuts(&self, selection: &Hyperslab, axis: usize, threads: usize) -> Vec<Range<u64>> {
        let none = AxisRange::whole(0);
        let range = *selection.axes().get(axis).unwrap_or(&none);
        let extent = |shape: &[u64]| shape.get(axis).copied().unwrap_or(1);
        let chunk = extent(self.grid.chunk_shape());
        let block = extent(self.block_shape());
        let of_chunks = || range.parts(chunk);
        let most = threads.saturating_mul(WINDOWS);
        if of_chunks().take(threads).count() >= threads {
            joined(of_chunks(), range.count(), most)
        } else {
            let of_blocks = of_chunks().flat_map(|part| part.parts(range.step(), block));
            joined(of_blocks, range.count(), most)
        }
    }

    /// Bytes of the blocks a selection touches; of the items it has where these
    /// are more.
    fn decoded_bytes(&self, selection: &Hyperslab) -> u64 {
        let axes = selection.axes().iter().zip(self.block_shape());
        let blocks = axes.map(|(axis, &block)| {
            let span = axis
                .last()
                .map_or(0, |last| last.saturating_sub(axis.start()));
            let spanned = (span / block.max(1)).saturating_add(1);
            spanned.min(axis.count())
        });
        let blocks = blocks.fold(1, u64::saturating_mul);
        blocks.saturating_mul(u64::from(self.facts.blocksize))
    }

    pub(super) fn item_size(&self) -> usize {
        usize::try_from(self.facts.typesize).unwrap_or(usize::MAX)
    }

    /// Blocks of a chunk along each axis.
    fn block_counts(&self) -> impl ExactSizeIterator<Item = u64> {
        let axes = self.grid.chunk_shape().iter().zip(self.block_shape());
        axes.map(|(chunk, &block)| chunk.div_ceil(block.max(1)))
    }

    /// An error in a chunk.
    pub(super) fn broken(&self, chunk: u64, source: ChunkError) -> DenseError {
        DenseError::b2nd(&self.name, B2ndError::Chunk { chunk, source })
    }

    pub(super) fn block_shape(&self) -> &[u64] {
        self.grid.block_shape().unwrap_or_default()
    }
}

/// Joins parts that follow each other so that there are at most `most`, of
/// about as many elements each.
fn joined(parts: impl Iterator<Item = CellPart>, count: u64, most: usize) -> Vec<Range<u64>> {
    let most = u64::try_from(most).unwrap_or(u64::MAX).max(1);
    let least = count.div_ceil(most);
    let mut cuts: Vec<Range<u64>> = Vec::new();
    for part in parts {
        let end = part.at.saturating_add(part.count);
        match cuts.last_mut() {
            Some(last) if last.end.saturating_sub(last.start) < least => last.end = end,
            _ => cuts.push(part.at..end),
        }
    }
    cuts
}

/// What two windows take together.
fn sum(a: ReadPlan, b: ReadPlan) -> ReadPlan {
    ReadPlan {
        blocks: a.blocks.saturating_add(b.blocks),
        bytes_read: a.bytes_read.saturating_add(b.bytes_read),
        ..a
    }
}
