//! The header of a chunk.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, little_endian::I32};

use super::{BloscCodec, ChunkError, filter_id, memory_len};

/// Length of a Blosc 2 header in bytes.
pub const HEADER_LEN: usize = 32;
/// Length of a Blosc 1 header in bytes.
pub(super) const SHORT_LEN: usize = 16;

/// The supported version of the Blosc 2 chunk format.
pub(super) const VERSION: u8 = 5;
/// The supported version of the Blosc 1 chunk format.
pub(super) const SHORT_VERSION: u8 = 2;
pub(super) const CODEC_VERSION: u8 = 1;

/// Both bits set mark a Blosc 2 header. In Blosc 1, each bit is the filter of its name.
pub(super) const EXTENDED: u8 = SHUFFLE | BITSHUFFLE;
pub(super) const SHUFFLE: u8 = 0x01;
pub(super) const BITSHUFFLE: u8 = 0x04;
pub(super) const RAW: u8 = 0x02;
pub(super) const DELTA: u8 = 0x08;
pub(super) const NOT_SPLIT: u8 = 0x10;

/// Maximum number of streams of a block of Blosc 1.
const MAX_SPLITS: u32 = 16;
/// Minimum number of items of a split block of Blosc 1.
const MIN_SPLIT_ITEMS: u32 = 128;

const VARIABLE_BLOCKS: u8 = 0x01;
const DICTIONARY: u8 = 0x01;
/// Flags of big-endian, lazy and instrumented chunks.
const UNSUPPORTED: u8 = 0x02 | 0x08 | 0x80;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawShort {
    pub(super) version: u8,
    pub(super) codec_version: u8,
    pub(super) flags: u8,
    pub(super) typesize: u8,
    pub(super) nbytes: I32,
    pub(super) blocksize: I32,
    pub(super) cbytes: I32,
}

#[derive(Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawExtension {
    pub(super) filters: [u8; 6],
    pub(super) codec: u8,
    pub(super) codec_meta: u8,
    pub(super) filter_metas: [u8; 6],
    pub(super) more_flags: u8,
    pub(super) blosc2_flags: u8,
}

const _: () = assert!(size_of::<RawShort>() == SHORT_LEN);
const _: () = assert!(size_of::<RawShort>() + size_of::<RawExtension>() == HEADER_LEN);

/// The kind of a special chunk, a chunk that stores no blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialKind {
    /// Number 1: zeros.
    Zeros,
    /// Number 2: quiet NaN of 4 or 8 bytes, depending on the item length.
    Nan,
    /// Number 3: one value, stored after the header.
    Repeated,
    /// Number 4: uninitialized items, read as zeros.
    Uninit,
}

impl SpecialKind {
    /// Returns the number of the kind in the header of a chunk.
    pub fn number(self) -> u8 {
        match self {
            Self::Zeros => 1,
            Self::Nan => 2,
            Self::Repeated => 3,
            Self::Uninit => 4,
        }
    }

    fn from_number(number: u8) -> Result<Option<Self>, ChunkError> {
        Ok(Some(match number {
            0 => return Ok(None),
            1 => Self::Zeros,
            2 => Self::Nan,
            3 => Self::Repeated,
            4 => Self::Uninit,
            other => return Err(ChunkError::Special(other)),
        }))
    }
}

/// The header of a chunk, checked by [`parse`](Self::parse).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHeader {
    len: usize,
    flags: u8,
    typesize: u8,
    nbytes: u32,
    blocksize: u32,
    cbytes: u32,
    special: Option<SpecialKind>,
    dictionary: bool,
    filters: [u8; 6],
    filter_metas: [u8; 6],
}

impl ChunkHeader {
    /// Parses the header at the start of `bytes` and ignores the bytes after it.
    ///
    /// # Errors
    ///
    /// [`ChunkError`] for the first invalid field.
    pub fn parse(bytes: &[u8]) -> Result<Self, ChunkError> {
        use ChunkError as E;
        let (raw, rest) = RawShort::ref_from_prefix(bytes).map_err(|_| E::Truncated)?;
        let extended = raw.flags & EXTENDED == EXTENDED;
        let version = if extended { VERSION } else { SHORT_VERSION };
        if raw.version != version {
            return Err(E::Version(raw.version));
        }
        if raw.typesize == 0 {
            return Err(E::Typesize);
        }
        let length = |field: I32| u32::try_from(field.get()).map_err(|_| E::Negative);
        let mut header = Self {
            len: SHORT_LEN,
            flags: raw.flags,
            typesize: raw.typesize,
            nbytes: length(raw.nbytes)?,
            blocksize: length(raw.blocksize)?,
            cbytes: length(raw.cbytes)?,
            special: None,
            dictionary: false,
            filters: [0; 6],
            filter_metas: [0; 6],
        };
        if extended {
            let (more, _) = RawExtension::ref_from_prefix(rest).map_err(|_| E::Truncated)?;
            header.extend(more)?;
        }
        header.validate()?;
        Ok(header)
    }

    fn extend(&mut self, raw: &RawExtension) -> Result<(), ChunkError> {
        if raw.more_flags & VARIABLE_BLOCKS != 0 || raw.blosc2_flags & UNSUPPORTED != 0 {
            return Err(ChunkError::Flags(raw.more_flags, raw.blosc2_flags));
        }
        self.len = HEADER_LEN;
        self.special = SpecialKind::from_number(raw.blosc2_flags >> 4 & 7)?;
        self.dictionary = raw.blosc2_flags & DICTIONARY != 0 && self.is_coded();
        self.filters = raw.filters;
        self.filter_metas = raw.filter_metas;
        Ok(())
    }

    fn validate(&self) -> Result<(), ChunkError> {
        use ChunkError as E;
        if self.blocksize == 0 && self.nbytes > 0 {
            return Err(E::Blocksize);
        }
        let head = self.prefix_len();
        let stored = memory_len(self.cbytes);
        let fits = match (self.special, self.is_raw()) {
            (Some(SpecialKind::Repeated), _) => stored > head,
            (None, true) => stored == head.saturating_add(memory_len(self.nbytes)),
            _ => stored >= head,
        };
        if !fits {
            return Err(E::Cbytes(self.cbytes));
        }
        Ok(())
    }

    /// Returns the length of the header: 32, or 16 in Blosc 1.
    pub fn header_len(&self) -> usize {
        self.len
    }

    /// Returns whether the chunk has the Blosc 2 format.
    pub fn is_blosc2(&self) -> bool {
        self.len == HEADER_LEN
    }

    /// Returns the length of an item in bytes; 1 if items exceed 255 bytes.
    pub fn typesize(&self) -> u8 {
        self.typesize
    }

    /// Returns the decoded length of the chunk in bytes.
    pub fn nbytes(&self) -> u32 {
        self.nbytes
    }

    /// Returns the decoded length of a block in bytes. The last block may be shorter.
    pub fn blocksize(&self) -> u32 {
        self.blocksize
    }

    /// Returns the stored length of the chunk in bytes.
    pub fn cbytes(&self) -> u32 {
        self.cbytes
    }

    /// Returns the kind of a special chunk; `None` if blocks are stored.
    pub fn special(&self) -> Option<SpecialKind> {
        self.special
    }

    /// Returns whether blocks are stored uncompressed and unfiltered.
    pub fn is_raw(&self) -> bool {
        self.special.is_none() && self.flags & RAW != 0
    }

    /// Returns whether blocks consist of codec streams.
    fn is_coded(&self) -> bool {
        self.special.is_none() && self.flags & RAW == 0
    }

    /// Returns whether a dictionary precedes the blocks.
    pub fn has_dictionary(&self) -> bool {
        self.dictionary
    }

    /// Returns whether all other blocks need the first block for decoding.
    pub fn needs_first_block(&self) -> bool {
        self.is_coded() && self.filters.contains(&filter_id::DELTA)
    }

    /// Returns the codec of the streams.
    ///
    /// # Errors
    ///
    /// [`ChunkError::Codec`] if the codec is not supported.
    pub fn codec(&self) -> Result<BloscCodec, ChunkError> {
        let format = self.flags >> 5;
        BloscCodec::from_format(format).ok_or(ChunkError::Codec(format))
    }

    /// Iterates over the numbers and parameters of the filters, in the order of their application.
    pub(super) fn filters(&self) -> impl DoubleEndedIterator<Item = (u8, u8)> {
        let short = match self.flags {
            flags if flags & SHUFFLE != 0 => filter_id::SHUFFLE,
            flags if flags & BITSHUFFLE != 0 => filter_id::BITSHUFFLE,
            _ => 0,
        };
        let filters = if self.is_blosc2() {
            self.filters
        } else {
            [0, 0, 0, 0, 0, short]
        };
        let slots = filters.into_iter().zip(self.filter_metas);
        slots.filter(|(filter, _)| *filter != 0)
    }

    /// Returns the number of blocks.
    pub fn block_count(&self) -> u32 {
        match self.blocksize {
            0 => 0,
            blocksize => self.nbytes.div_ceil(blocksize),
        }
    }

    /// Returns the decoded length of a block in bytes; 0 past the last block.
    pub fn block_len(&self, block: u32) -> usize {
        let start = u64::from(block) * u64::from(self.blocksize);
        let left = u64::from(self.nbytes)
            .saturating_sub(start)
            .min(u64::from(self.blocksize));
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    /// Returns the number of streams of a block with `len` bytes: one per byte of an item if blocks
    /// are split, else one. A short last block is never split. Blosc 1, whose oldest chunks lack the
    /// flag, splits neither long items nor blocks of few items.
    pub(super) fn streams(&self, len: usize) -> usize {
        let whole = len == memory_len(self.blocksize);
        let typesize = u32::from(self.typesize);
        let can_split = self.is_blosc2()
            || typesize <= MAX_SPLITS && self.blocksize / typesize >= MIN_SPLIT_ITEMS;
        if whole && can_split && self.flags & NOT_SPLIT == 0 {
            usize::from(self.typesize)
        } else {
            1
        }
    }

    /// Returns the length of the header and the block starts: the prefix of the chunk that locates
    /// its blocks. The dictionary or the first block can start right after it.
    pub fn prefix_len(&self) -> usize {
        if self.is_coded() {
            let starts = memory_len(self.block_count()).saturating_mul(4);
            self.len.saturating_add(starts)
        } else {
            self.len
        }
    }
}
