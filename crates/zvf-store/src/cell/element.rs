//! One cell of an array: planning its reads and decoding them.

use core::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use zvf_codecs::{BlocksPrefix, DecodeError, DecodedSize, ShardLayout};
use zvf_format::vlen::{VlenFrame, VlenFrameError};
use zvf_model::{fetch::Fetched, key::Key, payload_cache::PayloadKey};

use super::{
    CellResult, Part,
    array::{CellContents, Description},
    error::CellError,
    shard_indexes::KnownIndexes,
};
use crate::io::{ByteBudget, ByteRange, Read, ReadError};

mod blocks;

pub(super) use blocks::{BlockIndexes, KnownBlocks};
use blocks::{CellBlocks, LocatedBlocks};

/// The result of one read.
pub(super) type ReadResult = Result<Option<Bytes>, ReadError>;

/// Size of the count and the length before the payload of a frame of one item.
const FRAME_HEADER: u64 = 8;

/// The key of a cached cell: its object, and its number in a shard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CacheKey {
    object: Key,
    /// `u64::MAX` outside shards.
    number: u64,
}

impl PayloadKey for CacheKey {
    fn heap_bytes(&self) -> usize {
        self.object.as_str().len()
    }
}

impl CacheKey {
    /// Returns the memory of the key in bytes.
    pub(super) fn memory(&self) -> usize {
        self.heap_bytes().saturating_add(size_of::<Self>())
    }
}

/// A cell.
#[derive(Clone, Debug)]
pub(super) struct Element {
    array: Arc<Description>,
    /// Parts of the compressed cell are read by block.
    is_in_blocks: bool,
    /// The object of the cell and its number in a shard.
    cache_key: CacheKey,
    location: Location,
}

/// The location of a cell in its object.
#[derive(Clone, Copy, Debug)]
enum Location {
    /// None: the array has no elements.
    EmptyArray,
    /// The whole object.
    Object,
    /// The cell with this number of a shard.
    InShard(u64),
}

/// The bytes of its object that a cell consists of.
enum Extent {
    Object,
    Within(Range<u64>),
}

/// The reads of a cell.
pub(super) enum ElementPlan {
    /// None: the cell is absent or has failed.
    Known(Result<(), CellError>),
    /// One read of the whole cell.
    Whole,
    /// One read for each part.
    Parts(PartsPlan),
    /// One read for each run of blocks.
    Blocks(BlocksPlan),
}

/// The reads of the blocks that contain the parts of a cell.
pub(super) struct BlocksPlan {
    located: Arc<LocatedBlocks>,
    /// Size of the payload.
    size: u64,
    /// Position of the payload in the decoded cell.
    payload: u64,
    /// Ascending numbers of blocks, without common blocks.
    runs: Vec<Range<u64>>,
}

/// The reads of the parts of a cell.
#[derive(Clone, Copy)]
pub(super) struct PartsPlan {
    /// The first read is of the frame header, or of a byte that tells whether the cell exists.
    has_head: bool,
    /// Size of the payload, as far as the extent of the cell bounds it.
    max_size: Option<u64>,
    /// The bytes of a sealed object that are not its payload: the inventory has the size of the
    /// object, so that the frame header is not read.
    frame: Option<u64>,
}

impl Element {
    pub(super) fn new(array: &Arc<Description>, index: &[u64]) -> Result<Self, CellError> {
        let (key, location) = if array.is_empty() && index.len() == array.rank() {
            (array.node.clone(), Location::EmptyArray)
        } else {
            let located = array.locate(index);
            let (key, in_shard) = located.map_err(|source| CellError::Index {
                node: array.node.clone(),
                source,
            })?;
            (key, in_shard.map_or(Location::Object, Location::InShard))
        };
        let number = match location {
            Location::InShard(number) => number,
            Location::EmptyArray | Location::Object => u64::MAX,
        };
        Ok(Self {
            array: Arc::clone(array),
            is_in_blocks: false,
            cache_key: CacheKey {
                object: key,
                number,
            },
            location,
        })
    }

    /// Returns the cell, whose parts are read by block if it is compressed in blocks and the store is
    /// sealed.
    pub(super) fn in_blocks(self, is_in_blocks: bool) -> Self {
        Self {
            is_in_blocks,
            ..self
        }
    }

    pub(super) fn is_in_blocks(&self) -> bool {
        self.is_in_blocks
    }

    /// Returns the key and the layout of the shard that holds the cell.
    pub(super) fn shard(&self) -> Option<(&Key, &ShardLayout)> {
        let sharding = self.array.sharding.as_ref()?;
        matches!(self.location, Location::InShard(_)).then_some((self.key(), sharding))
    }

    /// Returns the key of the cell in the cache, or `None` in an array without elements.
    pub(super) fn cache_key(&self) -> Option<&CacheKey> {
        (!matches!(self.location, Location::EmptyArray)).then_some(&self.cache_key)
    }

    /// Copies a payload that is a slice of a larger read, so that caching it does not keep the whole
    /// read in memory.
    pub(super) fn detach(&self, payload: Bytes) -> Bytes {
        match self.location {
            Location::InShard(_) if self.array.codecs.is_plain() => {
                Bytes::copy_from_slice(&payload)
            }
            _ => payload,
        }
    }

    /// Returns the key of the object that holds the cell.
    pub(super) fn key(&self) -> &Key {
        &self.cache_key.object
    }

    /// Returns the results of `parts` of the payload.
    pub(super) fn slice_parts(
        &self,
        payload: &Result<Option<Bytes>, CellError>,
        parts: &[Part],
    ) -> Vec<CellResult> {
        slice_parts(self.key(), payload, parts)
    }

    /// Adds the reads for `parts` to `reads`. In a sealed store, the inventory has checksums of parts,
    /// so that the checksum of the cell is not needed.
    pub(super) fn plan(
        &self,
        parts: &[Part],
        indexes: &KnownIndexes,
        blocks: &KnownBlocks,
        is_sealed: bool,
        reads: &mut Vec<Read>,
    ) -> ElementPlan {
        match blocks.get(&self.cache_key) {
            Some(Ok(CellBlocks::Blocks(located))) => {
                return match self.plan_blocks(parts, located, reads) {
                    Ok(plan) => ElementPlan::Blocks(plan),
                    Err(error) => ElementPlan::Known(Err(error)),
                };
            }
            Some(Ok(CellBlocks::Absent)) => return ElementPlan::Known(Ok(())),
            Some(Err(error)) => return ElementPlan::Known(Err(error.clone())),
            Some(Ok(CellBlocks::Whole)) | None => {}
        }
        let extent = match self.extent(indexes) {
            Ok(Some(extent)) => extent,
            Ok(None) => return ElementPlan::Known(Ok(())),
            Err(error) => return ElementPlan::Known(Err(error)),
        };
        let mut push = |range| reads.push(Read::new(self.key().clone(), range));
        let is_sliceable = |trailer: &u64| {
            (is_sealed || *trailer == 0) && self.array.items != CellContents::Frames
        };
        let trailer = self.array.codecs.trailer().filter(is_sliceable);
        let parts: Option<Vec<&Range<u64>>> = parts.iter().map(Option::as_ref).collect();
        let (Some(trailer), Some(parts)) = (trailer, parts) else {
            push(match extent {
                Extent::Object => ByteRange::Full,
                Extent::Within(range) => ByteRange::Bounded(range),
            });
            return ElementPlan::Whole;
        };
        let (start, stored) = match extent {
            Extent::Object => (0, None),
            Extent::Within(range) => (range.start, Some(range.end.saturating_sub(range.start))),
        };
        let (header, max_size) = match self.array.items {
            CellContents::Fixed(size) => {
                let expected = size.saturating_add(trailer);
                if let Some(found) = stored.filter(|found| *found != expected) {
                    let source = DecodeError::Size { expected, found };
                    return ElementPlan::Known(Err(self.decode_error(source)));
                }
                (0, Some(size))
            }
            CellContents::Framed | CellContents::Frames => {
                let frame = FRAME_HEADER.saturating_add(trailer);
                let max_size = stored.map(|stored| stored.saturating_sub(frame));
                (FRAME_HEADER, max_size)
            }
        };
        let payload = start.saturating_add(header);
        let is_framed = header > 0 && !is_sealed;
        // An empty read sends no request, so it would not tell whether the cell is absent.
        let has_head = is_framed || parts.iter().any(|part| part.is_empty());
        if has_head {
            let end = if is_framed {
                payload
            } else {
                start.saturating_add(1)
            };
            push(ByteRange::Bounded(start..end));
        }
        for part in parts {
            // A part past the end is not read; it fails when the size is known.
            let fits = max_size.is_none_or(|size| part.end <= size);
            let part = if fits { part.clone() } else { 0..0 };
            push(ByteRange::Bounded(
                payload.saturating_add(part.start)..payload.saturating_add(part.end),
            ));
        }
        ElementPlan::Parts(PartsPlan {
            has_head,
            max_size,
            frame: is_sealed.then(|| header.saturating_add(trailer)),
        })
    }

    /// Adds the reads of the blocks that contain `parts`.
    fn plan_blocks(
        &self,
        parts: &[Part],
        located: &Arc<LocatedBlocks>,
        reads: &mut Vec<Read>,
    ) -> Result<BlocksPlan, CellError> {
        let blocks = &located.blocks;
        let found = blocks.size();
        let (payload, size) = match self.array.items {
            CellContents::Fixed(expected) if expected == found => (0, found),
            CellContents::Fixed(expected) => {
                return Err(self.decode_error(DecodeError::Size { expected, found }));
            }
            CellContents::Framed | CellContents::Frames => {
                let size = found
                    .checked_sub(FRAME_HEADER)
                    .ok_or_else(|| self.frame_error(VlenFrameError::Header))?;
                (FRAME_HEADER, size)
            }
        };
        let mut wanted: Vec<Range<u64>> = parts
            .iter()
            .flatten()
            // A part past the end is not read; it fails when the results are taken.
            .filter(|part| part.start < part.end && part.end <= size)
            .map(|part| blocks.covering(&shifted(part, payload)))
            .collect();
        wanted.sort_unstable_by_key(|run| run.start);
        let mut runs: Vec<Range<u64>> = Vec::new();
        for run in wanted {
            match runs.last_mut() {
                Some(last) if run.start <= last.end => last.end = last.end.max(run.end),
                _ => runs.push(run),
            }
        }
        if located.bytes.is_none() {
            let range = |run| shifted(&stored_run(located, run), located.start);
            let run_reads = runs.iter().map(range);
            reads.extend(run_reads.map(|range| Read::bounded(self.key().clone(), range)));
        }
        Ok(BlocksPlan {
            located: Arc::clone(located),
            size,
            payload,
            runs,
        })
    }

    /// Returns the results of parts whose blocks were read.
    pub(super) fn take_blocks(
        &self,
        parts: &[Part],
        mut results: impl Iterator<Item = ReadResult>,
        plan: &BlocksPlan,
        budget: &ByteBudget,
    ) -> Vec<CellResult> {
        let located = &plan.located;
        let decode = |run: &Range<u64>| {
            let stored = match &located.bytes {
                None => results.next().unwrap_or(Ok(None))?,
                Some(bytes) => {
                    let range = offsets(&stored_run(located, run));
                    bytes.get(range).map(|stored| bytes.slice_ref(stored))
                }
            };
            stored
                .map(|stored| self.decode_run(located, run, &stored, budget))
                .transpose()
        };
        let decoded: Vec<Result<Option<Bytes>, CellError>> = plan.runs.iter().map(decode).collect();
        let result = |part: &Part| {
            let part = part.clone().unwrap_or_default();
            check_part(self.key(), &part, plan.size)?;
            let fetched = |bytes| Fetched {
                bytes,
                size: plan.size,
            };
            if part.is_empty() {
                return Ok(Some(fetched(Bytes::new())));
            }
            let wanted = shifted(&part, plan.payload);
            let first = located.blocks.covering(&wanted).start;
            let number = plan.runs.partition_point(|run| run.end <= first);
            let (Some(run), Some(bytes)) = (plan.runs.get(number), decoded.get(number)) else {
                return Ok(None);
            };
            let start = located.blocks.decoded(run.start).start;
            let range = wanted.start.saturating_sub(start)..wanted.end.saturating_sub(start);
            let slice = |bytes: Bytes| {
                let part = bytes.get(offsets(&range)).unwrap_or_default();
                fetched(bytes.slice_ref(part))
            };
            Ok(bytes.clone()?.map(slice))
        };
        parts.iter().map(result).collect()
    }

    /// Decodes consecutive blocks from their stored bytes.
    fn decode_run(
        &self,
        located: &LocatedBlocks,
        run: &Range<u64>,
        stored: &[u8],
        budget: &ByteBudget,
    ) -> Result<Bytes, CellError> {
        let blocks = &located.blocks;
        let first = blocks.decoded(run.start).start;
        let size = blocks.decoded(run.end).start.saturating_sub(first);
        budget.reserve(self.key(), size)?;
        let stored_start = stored_run(located, run).start;
        let mut decoded = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
        let mut rest = &mut decoded[..];
        for block in run.clone() {
            let bounds = blocks.decoded(block);
            let length = bounds.end.saturating_sub(bounds.start);
            let out = rest.split_off_mut(..usize::try_from(length).unwrap_or(usize::MAX));
            let Range { start, end } = blocks.stored(block);
            let range = start.saturating_sub(stored_start)..end.saturating_sub(stored_start);
            let bytes = stored.get(offsets(&range)).unwrap_or_default();
            let done = blocks.decode(block, bytes, out.unwrap_or_default());
            done.map_err(|source| self.decode_error(source))?;
        }
        Ok(decoded.into())
    }

    /// Returns the position of the cell in its object, and its stored size if it does not fill the
    /// object; `None` for an absent cell.
    pub(super) fn place(
        &self,
        indexes: &KnownIndexes,
    ) -> Result<Option<(u64, Option<u64>)>, CellError> {
        Ok(self.extent(indexes)?.map(|extent| match extent {
            Extent::Object => (0, None),
            Extent::Within(range) => {
                let size = range.end.saturating_sub(range.start);
                (range.start, Some(size))
            }
        }))
    }

    /// Reads the blocks of the cell of `size` stored bytes from the first of them. Returns the size of
    /// the checksum after the blocks, too; `None` if the cell has no blocks.
    pub(super) fn blocks(
        &self,
        prefix: &[u8],
        size: u64,
    ) -> Result<Option<(u64, BlocksPrefix)>, CellError> {
        let codecs = &self.array.codecs;
        let Some(trailer) = codecs.block_trailer() else {
            return Ok(None);
        };
        let found = codecs
            .blocks(prefix, size.saturating_sub(trailer))
            .map_err(|source| self.decode_error(source))?;
        Ok(Some((trailer, found)))
    }

    /// Returns the bytes of its object that the cell consists of; `None` for an absent cell.
    fn extent(&self, indexes: &KnownIndexes) -> Result<Option<Extent>, CellError> {
        let number = match self.location {
            Location::EmptyArray => return Ok(None),
            Location::Object => return Ok(Some(Extent::Object)),
            Location::InShard(number) => number,
        };
        let index = indexes.get(self.key()).cloned().transpose()?.flatten();
        let range = index
            .map_or(Ok(None), |index| index.chunk(number))
            .map_err(|source| CellError::ShardEntry {
                key: self.key().clone(),
                source,
            })?;
        let Some(range) = range else {
            return Ok(None);
        };
        let found = range.end.saturating_sub(range.start);
        match self.array.items {
            CellContents::Fixed(expected) if self.array.codecs.is_plain() && found != expected => {
                Err(self.decode_error(DecodeError::Size { expected, found }))
            }
            _ => Ok(Some(Extent::Within(range))),
        }
    }

    /// Estimates the cost of decoding `bytes` bytes, in bytes of decompression.
    pub(super) fn decode_cost(&self, bytes: usize) -> usize {
        self.array.codecs.decode_cost(bytes)
    }

    /// Returns the results of parts that were read one by one.
    pub(super) fn take_parts(
        &self,
        parts: &[Part],
        mut results: impl Iterator<Item = ReadResult>,
        plan: PartsPlan,
        object_size: Option<u64>,
    ) -> Vec<CellResult> {
        let max_size = plan.max_size;
        let head = plan.has_head.then(|| results.next().unwrap_or(Ok(None)));
        let size = match plan.frame {
            Some(frame) => self.sealed_size(head, max_size, frame, object_size),
            None => self.size(head, max_size),
        };
        let result = |(part, read): (&Part, ReadResult)| {
            let part = part.clone().unwrap_or_default();
            if let Some(max_size) = max_size {
                check_part(self.key(), &part, max_size)?;
            }
            let Some(size) = size.clone()? else {
                // The object is absent, or could not be read.
                return read.map(|_| None).map_err(CellError::from);
            };
            check_part(self.key(), &part, size)?;
            Ok(read?.map(|bytes| Fetched { bytes, size }))
        };
        parts.iter().zip(results).map(result).collect()
    }

    /// Returns the size of a payload that is read in parts; `None` for an absent cell.
    fn size(
        &self,
        head: Option<ReadResult>,
        max_size: Option<u64>,
    ) -> Result<Option<u64>, CellError> {
        let Some(head) = head else {
            return Ok(max_size);
        };
        let Some(head) = head? else {
            return Ok(None);
        };
        match self.array.items {
            CellContents::Fixed(size) => Ok(Some(size)),
            CellContents::Framed | CellContents::Frames => {
                self.framed_size(&head, max_size).map(Some)
            }
        }
    }

    /// Returns the size of a payload in a sealed object that is read in parts; `None` for an absent cell.
    fn sealed_size(
        &self,
        head: Option<ReadResult>,
        max_size: Option<u64>,
        frame: u64,
        object_size: Option<u64>,
    ) -> Result<Option<u64>, CellError> {
        if let Some(head) = head
            && head?.is_none()
        {
            return Ok(None);
        }
        if max_size.is_some() {
            return Ok(max_size);
        }
        let size = object_size.map(|size| size.checked_sub(frame));
        let size = size.map(|size| size.ok_or_else(|| self.frame_error(VlenFrameError::Header)));
        size.transpose()
    }

    /// Decodes a cell that was read whole.
    pub(super) fn payload(
        &self,
        stored: ReadResult,
        budget: &ByteBudget,
    ) -> Result<Option<Bytes>, CellError> {
        stored?
            .map(|stored| self.decode(stored, budget))
            .transpose()
    }

    fn decode(&self, stored: Bytes, budget: &ByteBudget) -> Result<Bytes, CellError> {
        let size = match self.array.items {
            // The declared size is reserved before decoding.
            CellContents::Fixed(bytes) => {
                budget.reserve(self.key(), bytes)?;
                DecodedSize::Exactly(bytes)
            }
            CellContents::Framed | CellContents::Frames => DecodedSize::AtMost(budget.left()),
        };
        let decoded =
            self.array
                .codecs
                .decode(stored, size)
                .map_err(|source| match (size, source) {
                    (DecodedSize::AtMost(left), DecodeError::OverLimit { .. }) => {
                        CellError::OverBudget {
                            key: self.key().clone(),
                            left,
                        }
                    }
                    (_, source) => self.decode_error(source),
                })?;
        if let DecodedSize::AtMost(_) = size {
            budget.reserve(self.key(), byte_count(&decoded))?;
        }
        self.unframe(decoded)
    }

    /// Returns the payload of a decoded cell, after checking its frame.
    fn unframe(&self, decoded: Bytes) -> Result<Bytes, CellError> {
        if let CellContents::Fixed(_) = self.array.items {
            return Ok(decoded);
        }
        let frame = VlenFrame::parse(&decoded).map_err(|source| self.frame_error(source))?;
        if self.array.items == CellContents::Frames {
            return Ok(decoded);
        }
        let payload = frame.only().ok_or_else(|| CellError::ItemCount {
            key: self.key().clone(),
            found: frame.len(),
        })?;
        Ok(decoded.slice_ref(payload))
    }

    /// Returns the size of a payload from the header of its frame, which must fill the cell.
    fn framed_size(&self, header: &[u8], max_size: Option<u64>) -> Result<u64, CellError> {
        let numbers = header.split_first_chunk::<4>().and_then(|(items, rest)| {
            let (length, _) = rest.split_first_chunk::<4>()?;
            Some((u32::from_le_bytes(*items), u32::from_le_bytes(*length)))
        });
        let size = match numbers {
            Some((1, length)) => u64::from(length),
            Some((found, _)) => {
                let key = self.key().clone();
                return Err(CellError::ItemCount { key, found });
            }
            None => return Err(self.frame_error(VlenFrameError::Header)),
        };
        match max_size.map_or(Some(0), |max_size| max_size.checked_sub(size)) {
            Some(0) => Ok(size),
            Some(left) => {
                let left = usize::try_from(left).unwrap_or(usize::MAX);
                Err(self.frame_error(VlenFrameError::TrailingBytes(left)))
            }
            None => Err(self.frame_error(VlenFrameError::Item(0))),
        }
    }

    fn decode_error(&self, source: DecodeError) -> CellError {
        CellError::Decode {
            key: self.key().clone(),
            source,
        }
    }

    fn frame_error(&self, source: VlenFrameError) -> CellError {
        CellError::Frame {
            key: self.key().clone(),
            source,
        }
    }
}

/// Returns the bytes of a cell that contain the blocks of a run: those from the first to the last one,
/// since blocks are stored in their order, except by encoders with several threads.
fn stored_run(located: &LocatedBlocks, run: &Range<u64>) -> Range<u64> {
    let stored = run.clone().map(|block| located.blocks.stored(block));
    let hull = stored.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
    hull.unwrap_or_default()
}

/// Returns a range that starts `by` bytes later.
fn shifted(range: &Range<u64>, by: u64) -> Range<u64> {
    range.start.saturating_add(by)..range.end.saturating_add(by)
}

fn offsets(range: &Range<u64>) -> Range<usize> {
    let offset = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    offset(range.start)..offset(range.end)
}

/// Returns the results of `parts` of a payload, without copying it.
pub(super) fn slice_parts(
    key: &Key,
    payload: &Result<Option<Bytes>, CellError>,
    parts: &[Part],
) -> Vec<CellResult> {
    let result = |part: &Part| match payload {
        Ok(None) => Ok(None),
        Ok(Some(payload)) => slice_part(key, payload, part.as_ref()).map(Some),
        Err(error) => Err(error.clone()),
    };
    parts.iter().map(result).collect()
}

fn slice_part(key: &Key, payload: &Bytes, part: Option<&Range<u64>>) -> Result<Fetched, CellError> {
    let size = byte_count(payload);
    let Some(part) = part else {
        let bytes = payload.clone();
        return Ok(Fetched { bytes, size });
    };
    check_part(key, part, size)?;
    let offset = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(payload.len());
    let bytes = payload.slice(offset(part.start)..offset(part.end));
    Ok(Fetched { bytes, size })
}

fn check_part(key: &Key, part: &Range<u64>, size: u64) -> Result<(), CellError> {
    if part.start <= part.end && part.end <= size {
        return Ok(());
    }
    Err(CellError::PartOutOfBounds {
        key: key.clone(),
        part: part.clone(),
        size,
    })
}

pub(super) fn byte_count(bytes: &Bytes) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
