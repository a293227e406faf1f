//! Encoding of chunks.
//!
//! Blosc 1 has no special chunks and no streams of one repeated byte. Its blocks are never split
//! here: the flag that says so is read by every version of C-Blosc since 1.11.

use rayon::prelude::*;
use zerocopy::{IntoBytes, little_endian::I32};

use super::{
    BloscCodec, BloscFilter, HEADER_LEN, SpecialKind,
    codec::StreamEncoder,
    filter::{self, Pipeline},
    header::{
        BITSHUFFLE, CODEC_VERSION, DELTA, EXTENDED, NOT_SPLIT, RAW, RawExtension, RawShort,
        SHORT_LEN, SHORT_VERSION, SHUFFLE, VERSION,
    },
    memory_len,
};

/// Maximum length of a chunk: it fits in 31 bits.
const MAX_LEN: usize = 0x7fff_ffff;
/// Minimum length of a split stream; below it, the length field outweighs the gain.
const MIN_STREAM: usize = 32;
/// Maximum item length that [`Split::Auto`] splits.
const MAX_AUTO_SPLIT: u32 = 16;
/// Minimum data length for encoding blocks in parallel.
const PARALLEL: usize = 1 << 18;

/// Length of a block of Blosc 1 where the settings name none: it fits in the cache of a core.
const AUTO_BLOCK: u32 = 1 << 18;
/// Minimum length of a block of Blosc 1, as in C-Blosc.
const MIN_BLOCK: u32 = 128;
/// Maximum length of a block of Blosc 1, below the maximum of C-Blosc.
const MAX_BLOCK: u32 = 1 << 28;

/// The chunk format that an encoder writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Blosc1,
    Blosc2,
}

/// The policy for splitting a block into one stream per byte of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Split {
    /// Split whenever streams have at least 32 bytes.
    Always,
    /// Never split.
    Never,
    /// Split shuffled items of up to 16 bytes with LZ4 or zstd at levels up to 5, where splitting
    /// usually reduces size.
    #[default]
    Auto,
}

/// An encoder for chunks with one set of parameters. Equal input gives equal bytes on any number of
/// threads.
#[derive(Clone, Debug)]
pub struct ChunkEncoder {
    format: Format,
    codec: BloscCodec,
    level: u8,
    typesize: u32,
    blocksize: u32,
    filters: Vec<BloscFilter>,
    split: Split,
}

impl ChunkEncoder {
    /// Creates an encoder for items of `typesize` bytes in blocks of `blocksize` bytes, at level 5
    /// and without filters.
    pub fn new(codec: BloscCodec, typesize: u32, blocksize: u32) -> Self {
        Self {
            format: Format::Blosc2,
            codec,
            level: 5,
            typesize,
            blocksize,
            filters: Vec::new(),
            split: Split::default(),
        }
    }

    /// Creates an encoder for chunks of Blosc 1 with `len` bytes of data, at level 5. A `blocksize`
    /// of 0 chooses one. Blocks end at multiples of 8 items, where they have as many.
    ///
    /// # Errors
    ///
    /// [`BloscEncodeError::Filters`] for a filter that Blosc 1 does not have, and
    /// [`BloscEncodeError::Zero`] for items of no bytes.
    pub fn blosc1(
        codec: BloscCodec,
        filter: Option<BloscFilter>,
        typesize: u8,
        blocksize: u32,
        len: usize,
    ) -> Result<Self, BloscEncodeError> {
        use BloscFilter::{BitShuffle, Shuffle};
        if !matches!(filter, None | Some(Shuffle | BitShuffle)) {
            return Err(BloscEncodeError::Filters);
        }
        if typesize == 0 {
            return Err(BloscEncodeError::Zero);
        }
        let typesize = u32::from(typesize);
        let wanted = match blocksize {
            0 => AUTO_BLOCK,
            size => size.clamp(MIN_BLOCK, MAX_BLOCK),
        };
        let wanted = u32::try_from(len).map_or(wanted, |len| wanted.min(len));
        let fits = |unit: &u32| *unit <= wanted;
        let unit = [8 * typesize, typesize].into_iter().find(fits);
        let blocksize = unit.map_or(wanted, |unit| wanted - wanted % unit);
        Ok(Self {
            format: Format::Blosc1,
            codec,
            level: 5,
            typesize,
            blocksize: blocksize.max(1),
            filters: filter.into_iter().collect(),
            split: Split::Never,
        })
    }

    /// Sets the filters, in the order of their application.
    ///
    /// # Errors
    ///
    /// [`BloscEncodeError::Filters`] for more than 6 filters, for delta after another filter, for
    /// delta with truncation, and for truncation of items that are not floats or would keep no
    /// mantissa bits.
    pub fn with_filters(mut self, filters: &[BloscFilter]) -> Result<Self, BloscEncodeError> {
        let late_delta = filters.iter().skip(1).any(|f| *f == BloscFilter::Delta);
        let delta = filters.contains(&BloscFilter::Delta);
        let truncates = |filter: &BloscFilter| matches!(filter, BloscFilter::TruncPrec(_));
        let bad_floats = filters.iter().any(|filter| match filter {
            BloscFilter::TruncPrec(bits) => !filter::can_truncate(self.typesize, *bits),
            _ => false,
        });
        let lossy_delta = delta && filters.iter().any(truncates);
        if filters.len() > filter::SLOTS || late_delta || lossy_delta || bad_floats {
            return Err(BloscEncodeError::Filters);
        }
        self.filters = filters.to_vec();
        Ok(self)
    }

    /// Sets the compression level, 0 (raw) to 9. LZ4 has one level only.
    #[must_use]
    pub fn with_level(mut self, level: u8) -> Self {
        self.level = level.min(9);
        self
    }

    /// Sets the policy for splitting blocks into streams.
    #[must_use]
    pub fn with_split(mut self, split: Split) -> Self {
        self.split = split;
        self
    }

    /// Returns the codec.
    pub fn codec(&self) -> BloscCodec {
        self.codec
    }

    /// Returns the compression level, 0 to 9.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Returns the filters in the order of their application.
    pub fn filters(&self) -> &[BloscFilter] {
        &self.filters
    }

    /// Encodes `data` as a chunk. Data that repeats one item is stored as that item.
    ///
    /// # Errors
    ///
    /// [`BloscEncodeError`] if the codec only decodes, item or block size is zero, or `data` is too
    /// long.
    pub fn encode(&self, data: &[u8]) -> Result<Vec<u8>, BloscEncodeError> {
        self.check(data.len())?;
        let typesize = memory_len(self.typesize);
        if self.format == Format::Blosc2
            && let Some((value, rest)) = data.split_at_checked(typesize)
        {
            let (before, _) = data.split_at(rest.len());
            let whole = data.len().is_multiple_of(typesize);
            if whole && rest == before && data.len() > typesize {
                return Ok(self.repeated(value, data.len()));
            }
        }
        if self.level > 0 && !data.is_empty() {
            let chunk = self.encode_blocks(data);
            if chunk.len() < data.len() + self.header_len() {
                return Ok(chunk);
            }
        }
        let len = data.len() + self.header_len();
        let mut chunk = self.header(RAW, None, data.len(), len);
        chunk.extend_from_slice(data);
        Ok(chunk)
    }

    /// Encodes a chunk of `len` bytes that repeats one item.
    ///
    /// # Errors
    ///
    /// [`BloscEncodeError`] if `value` is not one item, or `len` is not a multiple of its length.
    pub fn encode_repeated(&self, value: &[u8], len: usize) -> Result<Vec<u8>, BloscEncodeError> {
        self.check(len)?;
        if value.len() != memory_len(self.typesize) || !len.is_multiple_of(value.len()) {
            return Err(BloscEncodeError::Value);
        }
        Ok(self.repeated(value, len))
    }

    fn repeated(&self, value: &[u8], len: usize) -> Vec<u8> {
        let stored = HEADER_LEN + value.len();
        let mut chunk = self.header(0, Some(SpecialKind::Repeated), len, stored);
        chunk.extend_from_slice(value);
        chunk
    }

    fn header_len(&self) -> usize {
        match self.format {
            Format::Blosc1 => SHORT_LEN,
            Format::Blosc2 => HEADER_LEN,
        }
    }

    fn check(&self, len: usize) -> Result<(), BloscEncodeError> {
        use BloscEncodeError as E;
        if matches!(self.codec, BloscCodec::BloscLz | BloscCodec::Snappy) {
            return Err(E::Codec);
        }
        if self.typesize == 0 || self.blocksize == 0 && len > 0 {
            return Err(E::Zero);
        }
        // A repeated value may be as long as the chunk.
        let max = MAX_LEN - self.header_len();
        if len > max || memory_len(self.typesize) > max {
            return Err(E::Length(len));
        }
        Ok(())
    }

    fn encode_blocks(&self, data: &[u8]) -> Vec<u8> {
        let blocksize = memory_len(self.blocksize);
        let pipeline =
            Pipeline::encoding(&self.filters, self.typesize, self.format == Format::Blosc1);
        let runs = self.format == Format::Blosc2;
        let first = data.get(..blocksize).unwrap_or(data);
        let is_split = self.is_split();
        let task = |task: &mut Task, (number, block): (usize, &[u8])| {
            let split = is_split && block.len() == blocksize;
            let streams = if split { memory_len(self.typesize) } else { 1 };
            let first = (number > 0).then_some(first);
            task.block(&pipeline, block, first, streams)
        };
        let new = || Task::new(self.codec, self.level, runs);
        let blocks: Vec<Vec<u8>> = if data.len() < PARALLEL {
            let mut state = new();
            let blocks = data.chunks(blocksize).enumerate();
            blocks.map(|block| task(&mut state, block)).collect()
        } else {
            let blocks = data.par_chunks(blocksize).enumerate();
            blocks.map_init(new, task).collect()
        };
        let head = self.header_len() + 4 * blocks.len();
        let total = blocks.iter().fold(head, |len, block| len + block.len());
        let flags = if is_split { 0 } else { NOT_SPLIT };
        // If the total exceeds 31 bits, the caller discards this chunk and stores the data raw.
        let mut chunk = self.header(flags, None, data.len(), total);
        chunk.reserve_exact(total - self.header_len());
        let mut start = head;
        for block in &blocks {
            chunk.extend_from_slice(I32::new(signed(start)).as_bytes());
            start += block.len();
        }
        for block in blocks {
            chunk.extend(block);
        }
        chunk
    }

    fn is_split(&self) -> bool {
        let width = self.typesize;
        let fits = width <= 255
            && self.blocksize.is_multiple_of(width)
            && memory_len(self.blocksize / width) >= MIN_STREAM;
        let pays = match self.codec {
            BloscCodec::Lz4 => true,
            BloscCodec::Zstd => self.level <= 5,
            BloscCodec::Zlib | BloscCodec::BloscLz | BloscCodec::Snappy => false,
        };
        fits && match self.split {
            Split::Always => true,
            Split::Never => false,
            Split::Auto => {
                pays && width <= MAX_AUTO_SPLIT && self.filters.contains(&BloscFilter::Shuffle)
            }
        }
    }

    fn header(
        &self,
        flags: u8,
        special: Option<SpecialKind>,
        nbytes: usize,
        cbytes: usize,
    ) -> Vec<u8> {
        let delta = if self.filters.contains(&BloscFilter::Delta) {
            DELTA
        } else {
            0
        };
        let (version, format) = match self.format {
            Format::Blosc1 => {
                let filter = match self.filters.first() {
                    Some(BloscFilter::Shuffle) => SHUFFLE,
                    Some(BloscFilter::BitShuffle) => BITSHUFFLE,
                    _ => 0,
                };
                (SHORT_VERSION, filter)
            }
            Format::Blosc2 => (VERSION, EXTENDED),
        };
        let short = RawShort {
            version,
            codec_version: CODEC_VERSION,
            flags: format | delta | flags | self.codec.format() << 5,
            typesize: u8::try_from(self.typesize).unwrap_or(1),
            nbytes: I32::new(signed(nbytes)),
            blocksize: I32::new(self.blocksize.cast_signed()),
            cbytes: I32::new(signed(cbytes)),
        };
        if self.format == Format::Blosc1 {
            return short.as_bytes().to_vec();
        }
        let (filters, filter_metas) = slots(&self.filters);
        let extension = RawExtension {
            filters,
            codec: self.codec.number(),
            filter_metas,
            blosc2_flags: special.map_or(0, |kind| kind.number() << 4),
            ..RawExtension::default()
        };
        [short.as_bytes(), extension.as_bytes()].concat()
    }
}

/// Returns the filter slots of a header: numbers and parameters. Free slots come first, as C-Blosc
/// writes them.
pub fn slots(filters: &[BloscFilter]) -> ([u8; filter::SLOTS], [u8; filter::SLOTS]) {
    let mut slots = ([0; filter::SLOTS], [0; filter::SLOTS]);
    let places = slots.0.iter_mut().zip(&mut slots.1).rev();
    for ((number, meta), filter) in places.zip(filters.iter().rev()) {
        (*number, *meta) = filter.numbers();
    }
    slots
}

/// The encoder and buffers of one thread.
struct Task {
    encoder: Option<StreamEncoder>,
    here: Vec<u8>,
    other: Vec<u8>,
    capacity: Vec<u8>,
    /// Streams of one repeated byte are stored as that byte.
    runs: bool,
}

impl Task {
    fn new(codec: BloscCodec, level: u8, runs: bool) -> Self {
        Self {
            encoder: StreamEncoder::new(codec, level),
            here: Vec::new(),
            other: Vec::new(),
            capacity: Vec::new(),
            runs,
        }
    }

    fn block(
        &mut self,
        pipeline: &Pipeline,
        block: &[u8],
        first: Option<&[u8]>,
        streams: usize,
    ) -> Vec<u8> {
        self.here.clear();
        self.here.extend_from_slice(block);
        if !pipeline.is_empty() {
            pipeline.apply(&mut self.here, &mut self.other, first);
        }
        let len = block.len() / streams;
        self.capacity
            .resize(lz4_flex::block::get_maximum_output_size(len), 0);
        let mut stored = Vec::new();
        for stream in self.here.chunks_exact(len) {
            if !self.runs || !put_run(stream, &mut stored) {
                put(
                    self.encoder.as_mut(),
                    stream,
                    &mut self.capacity,
                    &mut stored,
                );
            }
        }
        stored
    }
}

/// Appends a stream to `stored` as a run, and returns true, if all its bytes are equal.
fn put_run(stream: &[u8], stored: &mut Vec<u8>) -> bool {
    let Some((&value, rest)) = stream.split_first() else {
        return false;
    };
    if rest.iter().any(|byte| *byte != value) {
        return false;
    }
    stored.extend_from_slice(I32::new(-i32::from(value)).as_bytes());
    if value > 0 {
        stored.push(1);
    }
    true
}

/// Appends a stream to `stored`: compressed if that is shorter, else uncompressed.
fn put(
    encoder: Option<&mut StreamEncoder>,
    stream: &[u8],
    capacity: &mut [u8],
    stored: &mut Vec<u8>,
) {
    let coded = encoder
        .and_then(|encoder| encoder.encode(stream, capacity))
        .and_then(|len| capacity.get(..len));
    let shorter = coded
        .filter(|coded| coded.len() < stream.len())
        .unwrap_or(stream);
    stored.extend_from_slice(I32::new(signed(shorter.len())).as_bytes());
    stored.extend_from_slice(shorter);
}

/// Converts a length to the on-disk type. Stored lengths are below 2^31.
fn signed(len: usize) -> i32 {
    i32::try_from(len).unwrap_or(i32::MAX)
}

/// An error in the parameters or the input of an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BloscEncodeError {
    /// `BloscLZ` only decodes.
    #[error("chunks cannot be written with this codec")]
    Codec,
    /// The filters are incompatible with each other or with the items.
    #[error("the filters cannot be applied to these items in this order")]
    Filters,
    /// Items or blocks have no bytes.
    #[error("items and blocks must have at least one byte")]
    Zero,
    /// The data is longer than a chunk can hold.
    #[error("a chunk cannot hold {0} bytes")]
    Length(usize),
    /// The value is not one item, or the length is not a multiple of it.
    #[error("the value cannot be repeated")]
    Value,
}
