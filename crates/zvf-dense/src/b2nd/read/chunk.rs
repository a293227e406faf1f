//! Reads of one chunk: locates its blocks, reads adjacent ones together, and copies them to the
//! output.

use core::ops::Range;

use super::Output;
use crate::{
    CellPart, DenseError, Hyperslab, ReadCost,
    b2nd::{B2nd, B2ndError, index::Entry, place::StoredChunk},
    blosc::{BlockContext, BlockStarts, ChunkError, ChunkHeader, Decoder, Special, SpecialKind},
    strided::strides,
};

/// The state of a thread that reads chunks. Buffers are reused between chunks.
pub(super) struct Worker<'a> {
    array: &'a B2nd,
    /// Distance in bytes between neighbouring elements of a block along each axis.
    strides: Vec<usize>,
    decoder: Decoder,
    blocks: BlockStarts,
    /// The selected blocks along each axis.
    axes: Vec<Vec<CellPart>>,
    parts: Vec<CellPart>,
    needed: Vec<NeededBlock>,
    prefix: Vec<u8>,
    dictionary: Vec<u8>,
    run: Vec<u8>,
    /// The first block, if other blocks need it for decoding.
    first: Vec<u8>,
    block: Vec<u8>,
    plan: ReadCost,
}

/// A selected block: its number, its row-major rank among the selected blocks, and its byte range
/// in the chunk.
#[derive(Clone, Copy)]
struct NeededBlock {
    block: u32,
    rank: usize,
    start: u64,
    end: u64,
}

/// A chunk with a parsed header.
struct OpenChunk<'a> {
    number: u64,
    header: ChunkHeader,
    stored: StoredChunk<'a>,
    dictionary: Range<u64>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(array: &'a B2nd) -> Self {
        let strides = strides(array.block_shape(), array.item_size());
        Self {
            array,
            // `open` checks the block size, so strides do not overflow.
            strides: strides.unwrap_or_default(),
            decoder: Decoder::default(),
            blocks: BlockStarts::default(),
            axes: Vec::new(),
            parts: Vec::new(),
            needed: Vec::new(),
            prefix: Vec::new(),
            dictionary: Vec::new(),
            run: Vec::new(),
            first: Vec::new(),
            block: Vec::new(),
            plan: ReadCost::default(),
        }
    }

    /// Returns the cost of everything read or planned so far.
    pub(super) fn taken(&self) -> ReadCost {
        self.plan
    }

    /// Adds the cost of reading parts of a chunk.
    pub(super) fn plan(
        &mut self,
        chunk: u64,
        parts: &[CellPart],
        selection: &Hyperslab,
    ) -> Result<(), DenseError> {
        self.plan.chunks = self.plan.chunks.saturating_add(1);
        if let Entry::At(at) = self.entry(chunk)? {
            let open = self.open(chunk, at)?;
            if open.header.special().is_none() {
                self.find(&open, parts, selection)?;
            }
        }
        Ok(())
    }

    /// Reads parts of a chunk.
    pub(super) fn read(
        &mut self,
        chunk: u64,
        parts: &[CellPart],
        selection: &Hyperslab,
        output: &mut Output<'_>,
    ) -> Result<(), DenseError> {
        self.plan.chunks = self.plan.chunks.saturating_add(1);
        match self.entry(chunk)? {
            Entry::Special(kind) => self.fill(chunk, kind, &[], parts, output),
            Entry::At(at) => {
                let open = self.open(chunk, at)?;
                if let Some(kind) = open.header.special() {
                    let mut buffer = Vec::new();
                    let value = self.value(&open, kind, &mut buffer)?;
                    return self.fill(chunk, kind, value, parts, output);
                }
                self.find(&open, parts, selection)?;
                self.read_blocks(&open, selection, output)
            }
        }
    }

    /// Decodes one block including padding.
    pub(super) fn block(&mut self, chunk: u64, block: u32) -> Result<Vec<u8>, DenseError> {
        let array = self.array;
        let broken = |error| array.broken(chunk, error);
        let budget = array.budget;
        let needed = u64::from(array.facts.blocksize);
        let len = usize::try_from(needed)
            .ok()
            .filter(|_| needed <= budget)
            .ok_or(DenseError::Budget { needed, budget })?;
        let fill = |kind, value| {
            let special = Special::new(kind, value, array.facts.typesize)?;
            let mut bytes = vec![0; len];
            special.fill(0, &mut bytes);
            Ok(bytes)
        };
        let at = match self.entry(chunk)? {
            Entry::Special(kind) => return fill(kind, &[]).map_err(broken),
            Entry::At(at) => at,
        };
        let open = self.open(chunk, at)?;
        if let Some(kind) = open.header.special() {
            let mut buffer = Vec::new();
            let value = self.value(&open, kind, &mut buffer)?;
            return fill(kind, value).map_err(broken);
        }
        let OpenChunk { header, stored, .. } = &open;
        self.allocate_buffers(&open)?;
        let mut context = BlockContext {
            typesize: array.facts.typesize,
            dictionary: stored.read(open.dictionary.clone(), &mut self.dictionary)?,
            first: None,
        };
        if header.needs_first_block() && block > 0 {
            let span = self.blocks.span(header, 0).unwrap_or_default();
            let span = position(span.start)..position(span.end);
            let bytes = stored.read(span, &mut self.run)?;
            let decoded = self
                .decoder
                .block(header, 0, bytes, &context, &mut self.first);
            decoded.map_err(broken)?;
            context.first = Some(&self.first);
        }
        let span = self
            .blocks
            .span(header, block)
            .ok_or_else(|| broken(ChunkError::Block(block)))?;
        let span = position(span.start)..position(span.end);
        let bytes = stored.read(span, &mut self.run)?;
        let mut into = vec![0; len];
        let decoded = self
            .decoder
            .block(header, block, bytes, &context, &mut into);
        decoded.map_err(broken)?;
        Ok(into)
    }

    fn entry(&self, chunk: u64) -> Result<Entry, DenseError> {
        let entry = self.array.index.get(chunk);
        entry.map_err(|error| DenseError::b2nd(&self.array.name, error))
    }

    /// Reads the header and the block starts of a chunk in one request.
    fn open(&mut self, number: u64, at: u64) -> Result<OpenChunk<'a>, DenseError> {
        let array = self.array;
        let facts = &array.facts;
        let broken = |error| array.broken(number, error);
        let stored = array.place.stored(&array.name, number, at)?;
        let blocks = facts.chunksize.checked_div(facts.blocksize).unwrap_or(0);
        let prefix = u64::from(blocks)
            .saturating_mul(4)
            .saturating_add(32)
            .min(stored.space);
        let bytes = stored.read(0..prefix, &mut self.prefix)?;
        self.plan.bytes_read = self.plan.bytes_read.saturating_add(prefix);
        let header = ChunkHeader::parse(bytes).map_err(broken)?;
        let is_ours = header.is_blosc2()
            && header.nbytes() == facts.chunksize
            && (header.special().is_some() || header.blocksize() == facts.blocksize);
        if !is_ours {
            let error = B2ndError::Geometry { chunk: number };
            return Err(DenseError::b2nd(&array.name, error));
        }
        if u64::from(header.cbytes()) > stored.space {
            return Err(broken(ChunkError::Truncated));
        }
        self.blocks.read(&header, bytes).map_err(broken)?;
        if header.special() == Some(SpecialKind::Repeated) {
            let value = u64::from(facts.typesize);
            self.plan.bytes_read = self.plan.bytes_read.saturating_add(value);
        }
        let mut dictionary = 0..0;
        if header.has_dictionary() {
            let start = position(header.prefix_len()).min(stored.space);
            let end = start.saturating_add(4).min(stored.space);
            let length = stored.read(start..end, &mut self.run)?;
            let span = header.dictionary(length).map_err(broken)?;
            self.plan.bytes_read = self.plan.bytes_read.saturating_add(4);
            dictionary = position(span.start)..position(span.end);
        }
        Ok(OpenChunk {
            number,
            header,
            stored,
            dictionary,
        })
    }

    /// Locates and counts the selected blocks, and sorts them by stored position.
    fn find(
        &mut self,
        open: &OpenChunk<'_>,
        parts: &[CellPart],
        selection: &Hyperslab,
    ) -> Result<(), DenseError> {
        let extents = self.array.block_shape();
        self.axes.resize_with(parts.len(), Vec::new);
        let ranges = selection.axes().iter().zip(parts).zip(extents);
        for (list, ((range, part), &extent)) in self.axes.iter_mut().zip(ranges) {
            list.clear();
            list.extend(part.parts(range.step(), extent));
        }
        let lists = self.axes.iter().map(Vec::len);
        let total = lists.fold(1, usize::saturating_mul);
        self.needed.clear();
        for rank in 0..total {
            pick(&self.axes, rank, &mut self.parts);
            let axes = self.parts.iter().zip(self.array.block_counts());
            // Cannot overflow: the header limits the number of blocks.
            let block = axes.fold(0_u64, |block, (part, count)| {
                block.wrapping_mul(count).wrapping_add(part.cell)
            });
            let block = u32::try_from(block).unwrap_or(u32::MAX);
            let span = self.blocks.span(&open.header, block);
            let broken = || self.array.broken(open.number, ChunkError::Block(block));
            let span = span.ok_or_else(broken)?;
            self.needed.push(NeededBlock {
                block,
                rank,
                start: position(span.start),
                end: position(span.end),
            });
        }
        self.count(open);
        self.needed.sort_unstable_by_key(|needed| needed.start);
        Ok(())
    }

    fn count(&mut self, open: &OpenChunk<'_>) {
        let lens = self
            .needed
            .iter()
            .map(|needed| needed.end.saturating_sub(needed.start));
        let mut bytes = lens.fold(0, u64::saturating_add);
        let mut blocks = position(self.needed.len());
        let has_first = self.needed.iter().any(|needed| needed.block == 0);
        if open.header.needs_first_block() && !has_first {
            let span = self.blocks.span(&open.header, 0).unwrap_or_default();
            bytes = bytes.saturating_add(position(span.len()));
            blocks = blocks.saturating_add(1);
        }
        let dictionary = open.dictionary.end.saturating_sub(open.dictionary.start);
        let bytes = bytes.saturating_add(dictionary);
        self.plan.bytes_read = self.plan.bytes_read.saturating_add(bytes);
        self.plan.blocks = self.plan.blocks.saturating_add(blocks);
    }

    fn read_blocks(
        &mut self,
        open: &OpenChunk<'_>,
        selection: &Hyperslab,
        output: &mut Output<'_>,
    ) -> Result<(), DenseError> {
        self.allocate_buffers(open)?;
        let OpenChunk { header, stored, .. } = open;
        let broken = |error| self.array.broken(open.number, error);
        let lost = |needed: &NeededBlock| broken(ChunkError::Block(needed.block));
        let ranges = selection.axes();
        let span = open.dictionary.clone();
        let mut context = BlockContext {
            typesize: self.array.facts.typesize,
            dictionary: stored.read(span, &mut self.dictionary)?,
            first: None,
        };
        if header.needs_first_block() {
            let span = self.blocks.span(header, 0).unwrap_or_default();
            let span = position(span.start)..position(span.end);
            let bytes = stored.read(span, &mut self.run)?;
            let decoded = self
                .decoder
                .block(header, 0, bytes, &context, &mut self.first);
            decoded.map_err(broken)?;
            if let Some(needed) = self.needed.iter().find(|needed| needed.block == 0) {
                pick(&self.axes, needed.rank, &mut self.parts);
                let copy = output.copy(&self.parts, ranges, &self.strides);
                let copied = copy.and_then(|copy| copy.run(&self.first, output.bytes));
                copied.ok_or_else(|| lost(needed))?;
            }
            self.needed.retain(|needed| needed.block != 0);
            context.first = Some(&self.first);
        }
        let mut rest = &self.needed[..];
        while let Some((span, run)) = next_run(&mut rest, stored.run()) {
            let bytes = stored.read(span.clone(), &mut self.run)?;
            for needed in run {
                let within = |at: u64| usize::try_from(at.saturating_sub(span.start)).ok();
                let place = within(needed.start).zip(within(needed.end));
                let bytes = place
                    .and_then(|(start, end)| bytes.get(start..end))
                    .ok_or_else(|| lost(needed))?;
                pick(&self.axes, needed.rank, &mut self.parts);
                let copy = output
                    .copy(&self.parts, ranges, &self.strides)
                    .ok_or_else(|| lost(needed))?;
                if header.is_raw() {
                    copy.run(bytes, output.bytes).ok_or_else(|| lost(needed))?;
                    continue;
                }
                let whole = copy
                    .target_of_whole(self.block.len())
                    .and_then(|place| output.bytes.get_mut(place));
                let is_in_place = whole.is_some();
                let into = whole.unwrap_or(&mut self.block);
                let (block, part) = (needed.block, copy.source());
                let decoded = self
                    .decoder
                    .part(header, block, bytes, &context, &part, into);
                decoded.map_err(broken)?;
                if !is_in_place {
                    let copied = copy.run(&self.block, output.bytes);
                    copied.ok_or_else(|| lost(needed))?;
                }
            }
        }
        Ok(())
    }

    /// Allocates the block buffers within the budget.
    fn allocate_buffers(&mut self, open: &OpenChunk<'_>) -> Result<(), DenseError> {
        if open.header.is_raw() {
            return Ok(());
        }
        let is_delta = open.header.needs_first_block();
        // The block, its streams, and the first block for delta.
        let buffers = if is_delta { 3 } else { 2 };
        let blocksize = open.header.blocksize();
        let needed = u64::from(blocksize).saturating_mul(buffers);
        let budget = self.array.budget;
        let len = usize::try_from(blocksize)
            .ok()
            .filter(|_| needed <= budget)
            .ok_or(DenseError::Budget { needed, budget })?;
        self.block.resize(len, 0);
        self.first.resize(if is_delta { len } else { 0 }, 0);
        Ok(())
    }

    /// Returns the repeated value of a special chunk; empty if the kind implies it.
    fn value<'b>(
        &self,
        open: &'b OpenChunk<'_>,
        kind: SpecialKind,
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], DenseError> {
        if kind != SpecialKind::Repeated {
            return Ok(&[]);
        }
        let start = position(open.header.header_len());
        let end = u64::from(open.header.cbytes());
        let len = end.saturating_sub(start);
        if len != u64::from(self.array.facts.typesize) {
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            return Err(self.array.broken(open.number, ChunkError::Value(len)));
        }
        open.stored.read(start..end, buffer)
    }

    fn fill(
        &self,
        chunk: u64,
        kind: SpecialKind,
        value: &[u8],
        parts: &[CellPart],
        output: &mut Output<'_>,
    ) -> Result<(), DenseError> {
        let special = Special::new(kind, value, self.array.facts.typesize)
            .map_err(|error| self.array.broken(chunk, error))?;
        let filled = output.fill(&special, parts);
        filled.ok_or_else(|| self.array.broken(chunk, ChunkError::Truncated))
    }
}

/// Selects the parts of the block with this rank, one per axis.
fn pick(axes: &[Vec<CellPart>], mut rank: usize, parts: &mut Vec<CellPart>) {
    parts.clear();
    for list in axes.iter().rev() {
        let len = list.len().max(1);
        parts.extend(list.get(rank % len));
        rank /= len;
    }
    parts.reverse();
}

/// Takes adjacent blocks to read together, and returns their range. A range exceeds `max` bytes
/// only if it is a single block.
fn next_run<'a>(rest: &mut &'a [NeededBlock], max: u64) -> Option<(Range<u64>, &'a [NeededBlock])> {
    let first = rest.first()?;
    let mut span = first.start..first.end;
    let mut count = 0;
    for next in *rest {
        let end = span.end.max(next.end);
        let is_long = end.saturating_sub(span.start) > max && count > 0;
        if next.start > span.end || is_long {
            break;
        }
        span.end = end;
        count += 1;
    }
    let run = rest.split_off(..count)?;
    Some((span, run))
}

fn position(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}
