//! Chunks and their parts: block starts, dictionary, special values.

use core::ops::Range;

use zerocopy::{FromBytes, little_endian::I32};

use super::{BlockContext, ChunkError, ChunkHeader, Decoder, SpecialKind, memory_len};

/// Maximum length of a dictionary.
const MAX_DICTIONARY: i32 = 32768;

const NAN_4: [u8; 4] = 0x7fc0_0000_u32.to_le_bytes();
const NAN_8: [u8; 8] = 0x7ff8_0000_0000_0000_u64.to_le_bytes();

/// The byte ranges of the blocks of a chunk, read from the start of the chunk alone.
#[derive(Clone, Debug, Default)]
pub struct BlockStarts {
    starts: Vec<u32>,
    /// The starts in ascending order; empty if `starts` already ascends.
    sorted: Vec<u32>,
    end: u32,
    /// Header length and block size of a raw chunk.
    raw: Option<(usize, usize)>,
}

impl BlockStarts {
    /// Parses the block starts. `prefix` holds at least the first [`ChunkHeader::prefix_len`] bytes
    /// of the chunk.
    ///
    /// # Errors
    ///
    /// [`ChunkError`] if `prefix` is too short, or a block starts outside the block area.
    pub fn parse(header: &ChunkHeader, prefix: &[u8]) -> Result<Self, ChunkError> {
        let mut blocks = Self::default();
        blocks.read(header, prefix)?;
        Ok(blocks)
    }

    /// Parses the block starts and reuses the memory of `self`; see [`parse`](Self::parse).
    ///
    /// # Errors
    ///
    /// See [`parse`](Self::parse). The content of `self` is unspecified afterwards.
    pub fn read(&mut self, header: &ChunkHeader, prefix: &[u8]) -> Result<(), ChunkError> {
        self.starts.clear();
        self.sorted.clear();
        self.end = header.cbytes();
        self.raw = None;
        if header.is_raw() {
            self.raw = Some((header.header_len(), memory_len(header.blocksize())));
            return Ok(());
        }
        if header.special().is_some() {
            return Ok(());
        }
        let head = header.prefix_len();
        let starts = prefix
            .get(header.header_len()..head)
            .ok_or(ChunkError::Truncated)?;
        let starts = <[I32]>::ref_from_bytes(starts).map_err(|_| ChunkError::Truncated)?;
        self.starts.reserve_exact(starts.len());
        let mut ascending = true;
        let mut before = 0;
        for (block, start) in (0..).zip(starts) {
            let start = start.get();
            let valid = u32::try_from(start)
                .ok()
                .filter(|at| memory_len(*at) >= head && *at < self.end)
                .ok_or(ChunkError::BlockStart { block, start })?;
            ascending &= before < valid;
            before = valid;
            self.starts.push(valid);
        }
        if !ascending {
            self.sorted.extend_from_slice(&self.starts);
            self.sorted.sort_unstable();
        }
        Ok(())
    }

    /// Returns the byte range of a block, relative to the first byte of the chunk. The stored block
    /// may end before the range does. Returns `None` past the last block and in a special chunk.
    pub fn span(&self, header: &ChunkHeader, block: u32) -> Option<Range<usize>> {
        if let Some((head, blocksize)) = self.raw {
            let len = header.block_len(block);
            let start = blocksize
                .checked_mul(memory_len(block))?
                .checked_add(head)?;
            return (len > 0).then(|| start..start + len);
        }
        let start = *self.starts.get(memory_len(block))?;
        let next = if self.sorted.is_empty() {
            self.starts.get(memory_len(block) + 1)
        } else {
            let after = self.sorted.partition_point(|other| *other <= start);
            self.sorted.get(after)
        };
        Some(memory_len(start)..memory_len(*next.unwrap_or(&self.end)))
    }
}

impl ChunkHeader {
    /// Returns the byte range of the dictionary, relative to the first byte of the chunk. The chunk
    /// must [have one](Self::has_dictionary), and `length` must start with the 4 bytes after
    /// [`prefix_len`](Self::prefix_len).
    ///
    /// # Errors
    ///
    /// [`ChunkError`] if the dictionary is not inside the chunk.
    pub fn dictionary(&self, length: &[u8]) -> Result<Range<usize>, ChunkError> {
        let (len, _) = I32::read_from_prefix(length).map_err(|_| ChunkError::Truncated)?;
        let len = len.get();
        let valid = usize::try_from(len)
            .ok()
            .filter(|_| (1..=MAX_DICTIONARY).contains(&len))
            .ok_or(ChunkError::Dictionary(len))?;
        let start = self.prefix_len().saturating_add(4);
        let span = start..start.saturating_add(valid);
        if span.end > memory_len(self.cbytes()) {
            return Err(ChunkError::Dictionary(len));
        }
        Ok(span)
    }
}

/// The content of a chunk that stores no blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special<'a> {
    /// Zeros, also for an uninitialized chunk.
    Zeros,
    /// One value, repeated.
    Repeated(&'a [u8]),
}

impl<'a> Special<'a> {
    /// Returns the content of a special chunk of this `kind` with items of `typesize` bytes.
    /// `value` holds the bytes after the header.
    ///
    /// # Errors
    ///
    /// [`ChunkError::Value`] for NaN if items have neither 4 nor 8 bytes, and for a repeated value
    /// that is not one item.
    pub fn new(kind: SpecialKind, value: &'a [u8], typesize: u32) -> Result<Self, ChunkError> {
        let typesize = memory_len(typesize);
        match kind {
            SpecialKind::Zeros | SpecialKind::Uninit => Ok(Self::Zeros),
            SpecialKind::Nan if typesize == 4 => Ok(Self::Repeated(&NAN_4)),
            SpecialKind::Nan if typesize == 8 => Ok(Self::Repeated(&NAN_8)),
            SpecialKind::Repeated if typesize == value.len() && typesize > 0 => {
                Ok(Self::Repeated(value))
            }
            SpecialKind::Nan | SpecialKind::Repeated => Err(ChunkError::Value(typesize)),
        }
    }

    /// Fills `out` with the bytes of the chunk from `offset` on.
    pub fn fill(&self, offset: usize, out: &mut [u8]) {
        match *self {
            Self::Repeated(&[value]) => out.fill(value),
            Self::Repeated(value) if !value.is_empty() => {
                let start = (offset % value.len()).min(out.len());
                let (head, whole) = out.split_at_mut(match start {
                    0 => 0,
                    start => (value.len() - start).min(out.len()),
                });
                if let Some(rest) = value.get(start..start + head.len()) {
                    head.copy_from_slice(rest);
                }
                for item in whole.chunks_mut(value.len()) {
                    let (part, _) = value.split_at(item.len());
                    item.copy_from_slice(part);
                }
            }
            Self::Repeated(_) | Self::Zeros => out.fill(0),
        }
    }
}

/// A complete chunk in memory.
#[derive(Clone, Debug)]
pub struct BloscChunk<'a> {
    header: ChunkHeader,
    bytes: &'a [u8],
    blocks: BlockStarts,
    dictionary: &'a [u8],
}

impl<'a> BloscChunk<'a> {
    /// Parses the chunk at the start of `bytes`. Streams are checked only when they are decoded.
    ///
    /// # Errors
    ///
    /// [`ChunkError`] for the first invalid part.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ChunkError> {
        let header = ChunkHeader::parse(bytes)?;
        let bytes = bytes
            .get(..memory_len(header.cbytes()))
            .ok_or(ChunkError::Truncated)?;
        let dictionary = if header.has_dictionary() {
            let length = bytes.get(header.prefix_len()..);
            let span = header.dictionary(length.unwrap_or_default())?;
            bytes.get(span).ok_or(ChunkError::Truncated)?
        } else {
            &[]
        };
        Ok(Self {
            header,
            bytes,
            blocks: BlockStarts::parse(&header, bytes)?,
            dictionary,
        })
    }

    /// Returns the header.
    pub fn header(&self) -> &ChunkHeader {
        &self.header
    }

    /// Fills `out`, a prefix of the chunk or more, with the value of a special chunk.
    ///
    /// # Errors
    ///
    /// [`ChunkError`] if the chunk is not special, or its value is not one item.
    pub fn fill(&self, typesize: u32, out: &mut [u8]) -> Result<(), ChunkError> {
        let kind = self.header.special().ok_or(ChunkError::Context)?;
        let value = self.bytes.get(self.header.header_len()..);
        let special = Special::new(kind, value.unwrap_or_default(), typesize)?;
        special.fill(0, out);
        Ok(())
    }

    /// Decodes one block into `out`, which must have the length of the block. `typesize` is the
    /// length of an item; a chunk header alone cannot express more than 255.
    ///
    /// # Errors
    ///
    /// [`ChunkError`] if the block does not exist, has another length, or is damaged.
    pub fn decode_block(
        &self,
        block: u32,
        typesize: u32,
        decoder: &mut Decoder,
        out: &mut [u8],
    ) -> Result<(), ChunkError> {
        let mut first = Vec::new();
        if self.header.needs_first_block() && block > 0 {
            first.resize(self.header.block_len(0), 0);
            self.decode_one(0, typesize, None, decoder, &mut first)?;
        }
        let first = (!first.is_empty()).then_some(&first[..]);
        self.decode_one(block, typesize, first, decoder, out)
    }

    /// Decodes all blocks into `out`, which must have the length of the chunk.
    ///
    /// # Errors
    ///
    /// [`ChunkError`] if `out` has another length, or a block is damaged.
    pub fn decode(
        &self,
        typesize: u32,
        decoder: &mut Decoder,
        out: &mut [u8],
    ) -> Result<(), ChunkError> {
        let nbytes = self.header.nbytes();
        if out.len() != memory_len(nbytes) {
            return Err(ChunkError::Length(nbytes));
        }
        let (head, rest) = out.split_at_mut(self.header.block_len(0));
        if !head.is_empty() {
            self.decode_one(0, typesize, None, decoder, head)?;
        }
        // The block size may be 0 only if no bytes are left.
        let parts = rest.chunks_mut(memory_len(self.header.blocksize()).max(1));
        for (block, part) in (1..).zip(parts) {
            self.decode_one(block, typesize, Some(head), decoder, part)?;
        }
        Ok(())
    }

    fn decode_one(
        &self,
        block: u32,
        typesize: u32,
        first: Option<&[u8]>,
        decoder: &mut Decoder,
        out: &mut [u8],
    ) -> Result<(), ChunkError> {
        let header = &self.header;
        if let Some(kind) = header.special() {
            if out.is_empty() || out.len() != header.block_len(block) {
                return Err(ChunkError::Block(block));
            }
            let value = self.bytes.get(header.header_len()..).unwrap_or_default();
            let special = Special::new(kind, value, typesize)?;
            let offset = memory_len(block).saturating_mul(memory_len(header.blocksize()));
            special.fill(offset, out);
            return Ok(());
        }
        let span = self.blocks.span(header, block);
        let stored = span
            .and_then(|span| self.bytes.get(span))
            .ok_or(ChunkError::Block(block))?;
        let context = BlockContext {
            typesize,
            dictionary: self.dictionary,
            first,
        };
        decoder.block(header, block, stored, &context, out)
    }
}
