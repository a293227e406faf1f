//! The container: fixed header, metalayers, chunks, trailer.

use core::{fmt, ops::Range};

use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    big_endian::{I16, I32, I64, U64},
};

use super::{Marked, marker};
use crate::{cursor::Cursor, sign::Sign};

#[cfg(feature = "alloc")]
mod builder;
mod section;
mod trailer;

#[cfg(feature = "alloc")]
pub use builder::{FrameLimit, FrameSpec, MetalayerLimit, MetalayersBuilder};
pub use section::{Metalayer, Metalayers, MetalayersError, MetalayersIter};
pub use trailer::{TRAILER_TAIL_LEN, Trailer, TrailerError, TrailerTail};

/// Magic of every frame, after its first two bytes.
pub const MAGIC: [u8; 8] = *b"b2frame\0";
/// Bytes of the header before its metalayers.
pub const HEADER_LEN: u64 = 87;

/// A header without metalayers.
const MIN_HEADER_LEN: u64 = 97;
/// A trailer without metalayers.
const MIN_TRAILER_LEN: u64 = 35;
/// Length of the header of an index chunk, its minimum length.
const MIN_CHUNK_LEN: usize = 32;

const ARRAY: u8 = marker::FIXARRAY | 0x0e;
const FILTER_SLOTS: usize = 6;
/// The only width of index entries, 64 bits, as encoded in the first flag byte.
const OFFSET_WIDTH: u8 = 0x10;
const VARIABLE_CHUNKS: u8 = 0x40;
const VARIABLE_BLOCKS: u8 = 0x80;
const DICTIONARY: u8 = 0x01;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawHeader {
    array: u8,
    magic: Marked<[u8; 8]>,
    header_len: Marked<I32>,
    frame_len: Marked<U64>,
    flags: Marked<RawFlags>,
    nbytes: Marked<I64>,
    cbytes: Marked<I64>,
    typesize: Marked<I32>,
    blocksize: Marked<I32>,
    chunksize: Marked<I32>,
    compression_threads: Marked<I16>,
    decompression_threads: Marked<I16>,
    has_vlmetalayers: u8,
    slots: Marked<u8>,
    filters: [u8; FILTER_SLOTS],
    user_codec: u8,
    codec_meta: u8,
    filter_metas: [u8; FILTER_SLOTS],
    more_flags: u8,
    reserved: u8,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawFlags {
    version: u8,
    frame_type: u8,
    codec: u8,
    split_mode: u8,
}

const _: () = assert!(size_of::<RawHeader>() == 87);

/// Location of a frame's chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameType {
    /// Number 0: in the frame.
    Contiguous,
    /// Number 1: in files of their own, beside the frame.
    Sparse,
}

impl FrameType {
    /// Returns the number in the header.
    pub fn number(self) -> u8 {
        match self {
            Self::Contiguous => 0,
            Self::Sparse => 1,
        }
    }
}

/// The fixed 87 bytes that a frame starts with.
///
/// Contains all that a remote reader needs to fetch the rest: the positions of metalayers, index
/// and trailer. Validated by [`parse`](Self::parse).
#[derive(Clone, Copy)]
pub struct FrameHeader<'a>(&'a RawHeader);

impl<'a> FrameHeader<'a> {
    /// Reads the first 87 bytes of `bytes`; the rest is ignored.
    ///
    /// # Errors
    ///
    /// [`FrameHeaderError`] describes the first invalid field.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameHeaderError> {
        use FrameHeaderError as E;
        let raw: &RawHeader = Cursor::new(bytes).take().ok_or(E::Truncated)?;
        if raw.magic.value != MAGIC {
            return Err(E::Magic(raw.magic.value));
        }
        let mut markers = raw.markers().into_iter();
        if let Some((at, found, _)) = markers.find(|(_, found, want)| found != want) {
            return Err(E::Marker { at, marker: found });
        }
        if !matches!(raw.has_vlmetalayers, marker::FALSE | marker::TRUE) {
            return Err(E::Marker {
                at: 0x44,
                marker: raw.has_vlmetalayers,
            });
        }
        raw.check_flags()?;
        raw.check_sizes()?;
        Ok(Self(raw))
    }

    /// Version of the frame format, 1 to 3.
    pub fn version(&self) -> u8 {
        self.0.flags.value.version & 0x0f
    }

    /// Returns whether the frame declares that its chunks vary in size. Only an array without
    /// items, and therefore without chunks, may declare this.
    pub fn has_variable_chunks(&self) -> bool {
        self.0.flags.value.version & VARIABLE_CHUNKS != 0
    }

    /// Location of the chunks.
    pub fn frame_type(&self) -> FrameType {
        match self.0.flags.value.frame_type {
            0 => FrameType::Contiguous,
            _ => FrameType::Sparse,
        }
    }

    /// Default codec's number; 6 leaves it to [`user_codec`](Self::user_codec).
    pub fn codec(&self) -> u8 {
        self.0.flags.value.codec & 0x0f
    }

    /// Default compression level.
    pub fn level(&self) -> u8 {
        self.0.flags.value.codec >> 4
    }

    /// Mode of splitting blocks into streams, 1 to 4: always, never, automatic, forward-compatible.
    pub fn split_mode(&self) -> u8 {
        (self.0.flags.value.split_mode & 3).saturating_add(1)
    }

    /// Default codec's number again, plugins included.
    pub fn user_codec(&self) -> u8 {
        self.0.user_codec
    }

    /// Returns the default codec's parameter.
    pub fn codec_meta(&self) -> u8 {
        self.0.codec_meta
    }

    /// Default filters, in the order they are applied when encoding.
    pub fn filters(&self) -> &'a [u8] {
        let slots = usize::from(self.0.slots.value);
        self.0.filters.get(..slots).unwrap_or_default()
    }

    /// Returns the default filters' parameters.
    pub fn filter_metas(&self) -> &'a [u8] {
        let slots = usize::from(self.0.slots.value);
        self.0.filter_metas.get(..slots).unwrap_or_default()
    }

    /// Returns whether chunks have dictionaries.
    pub fn uses_dictionary(&self) -> bool {
        self.0.more_flags & DICTIONARY != 0
    }

    /// Returns the number of bytes of the header, metalayers included, H.
    pub fn header_len(&self) -> u32 {
        self.0.header_len.value.get().unsigned()
    }

    /// Returns the number of bytes of the frame, L.
    pub fn frame_len(&self) -> u64 {
        self.0.frame_len.value.get()
    }

    /// Total length of the decoded chunks. Blocks at the edges count in full, so this exceeds the
    /// length of the array's items.
    pub fn nbytes(&self) -> u64 {
        self.0.nbytes.value.get().unsigned()
    }

    /// Returns the number of bytes of all chunks as stored, with any holes between them.
    pub fn cbytes(&self) -> u64 {
        self.0.cbytes.value.get().unsigned()
    }

    /// Returns the number of bytes of an item.
    pub fn typesize(&self) -> u32 {
        self.0.typesize.value.get().unsigned()
    }

    /// Returns the number of bytes of a block decoded.
    pub fn blocksize(&self) -> u32 {
        self.0.blocksize.value.get().unsigned()
    }

    /// Returns the number of bytes of a chunk decoded; 0 only in an array without items.
    pub fn chunksize(&self) -> u32 {
        self.0.chunksize.value.get().unsigned()
    }

    /// Returns the number of chunks. The last may be short in a frame that is not an array.
    pub fn chunk_count(&self) -> u64 {
        let last = self.nbytes().checked_sub(1);
        let last = last.and_then(|last| last.checked_div(u64::from(self.chunksize())));
        last.map_or(0, |last| last.saturating_add(1))
    }

    /// Returns the number of threads for compression that the writer used, as a hint.
    pub fn compression_threads(&self) -> i16 {
        self.0.compression_threads.value.get()
    }

    /// Returns the number of threads for decompression that the writer used, as a hint.
    pub fn decompression_threads(&self) -> i16 {
        self.0.decompression_threads.value.get()
    }

    /// Returns whether the trailer is declared to have metalayers; it may have some regardless.
    pub fn has_vlmetalayers(&self) -> bool {
        self.0.has_vlmetalayers == marker::TRUE
    }

    /// Returns the range of the chunks in the frame; empty in a sparse directory. The index chunk
    /// starts at its end.
    pub fn chunks_span(&self) -> Range<u64> {
        self.0.chunks_span()
    }
}

impl RawHeader {
    /// Returns every marker: its offset, its value and the required value.
    fn markers(&self) -> [(usize, u8, u8); 13] {
        [
            (0x00, self.array, ARRAY),
            (0x01, self.magic.marker, marker::FIXSTR | 8),
            (0x0a, self.header_len.marker, marker::I32),
            (0x0f, self.frame_len.marker, marker::U64),
            (0x18, self.flags.marker, marker::FIXSTR | 4),
            (0x1d, self.nbytes.marker, marker::I64),
            (0x26, self.cbytes.marker, marker::I64),
            (0x2f, self.typesize.marker, marker::I32),
            (0x34, self.blocksize.marker, marker::I32),
            (0x39, self.chunksize.marker, marker::I32),
            (0x3e, self.compression_threads.marker, marker::I16),
            (0x41, self.decompression_threads.marker, marker::I16),
            (0x45, self.slots.marker, marker::FIXEXT16),
        ]
    }

    fn check_flags(&self) -> Result<(), FrameHeaderError> {
        use FrameHeaderError as E;
        let flags = &self.flags.value;
        if !matches!(flags.version & 0x0f, 1..=3) {
            return Err(E::Version(flags.version & 0x0f));
        }
        if flags.version & 0x30 != OFFSET_WIDTH {
            return Err(E::OffsetWidth((flags.version & 0x30) >> 4));
        }
        if flags.version & VARIABLE_BLOCKS != 0 {
            return Err(E::VariableBlocks);
        }
        if flags.version & VARIABLE_CHUNKS != 0 && self.nbytes.value.get() != 0 {
            return Err(E::VariableChunks);
        }
        if flags.frame_type > 1 {
            return Err(E::FrameType(flags.frame_type));
        }
        if usize::from(self.slots.value) > FILTER_SLOTS {
            return Err(E::FilterSlots(self.slots.value));
        }
        Ok(())
    }

    fn check_sizes(&self) -> Result<(), FrameHeaderError> {
        use FrameHeaderError as E;
        let lengths = [
            (Length::Header, i64::from(self.header_len.value.get())),
            (Length::Nbytes, self.nbytes.value.get()),
            (Length::Cbytes, self.cbytes.value.get()),
            (Length::Typesize, i64::from(self.typesize.value.get())),
            (Length::Blocksize, i64::from(self.blocksize.value.get())),
            (Length::Chunksize, i64::from(self.chunksize.value.get())),
        ];
        if let Some((length, _)) = lengths.into_iter().find(|(_, value)| *value < 0) {
            return Err(E::Negative(length));
        }
        if self.typesize.value.get() == 0 {
            return Err(E::Zero(Length::Typesize));
        }
        if self.nbytes.value.get() > 0 && self.chunksize.value.get() == 0 {
            return Err(E::Zero(Length::Chunksize));
        }
        let header_len = self.header_len.value.get();
        if u64::from(header_len.unsigned()) < MIN_HEADER_LEN {
            return Err(E::HeaderLen(header_len.unsigned()));
        }
        let tail = self.chunks_span().end.checked_add(MIN_TRAILER_LEN);
        if tail.is_none_or(|end| end > self.frame_len.value.get()) {
            return Err(E::FrameLen(self.frame_len.value.get()));
        }
        Ok(())
    }

    fn chunks_span(&self) -> Range<u64> {
        let start = u64::from(self.header_len.value.get().unsigned());
        let stored = match self.flags.value.frame_type {
            0 => self.cbytes.value.get().unsigned(),
            _ => 0,
        };
        // An i32 and an i64, neither negative.
        start..start.saturating_add(stored)
    }
}

impl fmt::Debug for FrameHeader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameHeader")
            .field("frame_type", &self.frame_type())
            .field("header_len", &self.header_len())
            .field("frame_len", &self.frame_len())
            .field("nbytes", &self.nbytes())
            .field("cbytes", &self.cbytes())
            .field("typesize", &self.typesize())
            .field("blocksize", &self.blocksize())
            .field("chunksize", &self.chunksize())
            .finish_non_exhaustive()
    }
}

/// The reason why bytes do not start with a frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameHeaderError {
    /// Fewer than 87 bytes.
    #[error("bytes end inside the frame header")]
    Truncated,
    /// The bytes at offsets 2 to 9 are not [`MAGIC`].
    #[error("magic is {0:02x?}, not \"b2frame\"")]
    Magic([u8; 8]),
    /// A value has an unexpected marker.
    #[error("marker {marker:#04x} does not belong at {at:#04x}")]
    Marker {
        /// Its offset.
        at: usize,
        /// The marker found.
        marker: u8,
    },
    /// A version this crate does not read.
    #[error("frame version {0} is not supported, only 1 to 3 are")]
    Version(u8),
    /// Index entries are not 64 bits wide.
    #[error("width {0} of index entries is not supported, only 1 is")]
    OffsetWidth(u8),
    /// Blocks vary in size, which arrays do not support.
    #[error("blocks of variable size are not supported")]
    VariableBlocks,
    /// Chunks vary in size although there is data.
    #[error("chunks of variable size are not supported")]
    VariableChunks,
    /// Neither contiguous nor sparse.
    #[error("frame type {0} is unknown")]
    FrameType(u8),
    /// More filters than the header has slots.
    #[error("{0} filter slots are more than 6")]
    FilterSlots(u8),
    /// A length is negative.
    #[error("{0} is negative")]
    Negative(Length),
    /// A length is 0 that must not be.
    #[error("{0} is 0")]
    Zero(Length),
    /// The declared header length is too short.
    #[error("header of {0} bytes is shorter than its fixed part")]
    HeaderLen(u32),
    /// The frame is too short for header, chunks and trailer.
    #[error("frame of {0} bytes is shorter than its parts")]
    FrameLen(u64),
}

/// A length in the frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Length {
    /// Length of the header.
    Header,
    /// Total length of the decoded chunks.
    Nbytes,
    /// Total length of the stored chunks.
    Cbytes,
    /// Length of an item.
    Typesize,
    /// Length of a decoded block.
    Blocksize,
    /// Length of a decoded chunk.
    Chunksize,
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "header length",
            Self::Nbytes => "decoded length",
            Self::Cbytes => "stored length",
            Self::Typesize => "item size",
            Self::Blocksize => "block size",
            Self::Chunksize => "chunk size",
        })
    }
}

/// A whole frame in memory, mapped or read. All parts except the chunks are validated.
///
/// Remote readers parse the parts one by one instead: [`FrameHeader`], then
/// [`Metalayers`] and, from the end, [`TrailerTail`] and [`Trailer`].
#[derive(Clone, Copy)]
pub struct Blosc2Frame<'a> {
    header: FrameHeader<'a>,
    metalayers: Metalayers<'a>,
    chunks: &'a [u8],
    index_chunk: &'a [u8],
    trailer: Trailer<'a>,
}

impl<'a> Blosc2Frame<'a> {
    /// Checks the frame at the start of `bytes`. Bytes after its end are ignored, because the
    /// format allows them.
    ///
    /// Also accepts the frame of a sparse directory.
    ///
    /// # Errors
    ///
    /// [`FrameError`] describes the first invalid part.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        use FrameError as E;
        let header = FrameHeader::parse(bytes)?;
        let mut cursor = Cursor::new(bytes);
        let frame_len = usize::try_from(header.frame_len()).ok();
        let frame = frame_len.and_then(|len| cursor.take_bytes(len));
        let mut cursor = Cursor::new(frame.ok_or(E::Truncated)?);
        // `FrameHeader` has verified that the frame is long enough for these two.
        let header_len = usize::try_from(header.header_len()).ok();
        let head = header_len.and_then(|len| cursor.take_bytes(len));
        let metalayers = Metalayers::parse(head.ok_or(E::Truncated)?)?;
        let span = header.chunks_span();
        let chunks_len = usize::try_from(span.end.saturating_sub(span.start)).ok();
        let chunks = chunks_len
            .and_then(|len| cursor.take_bytes(len))
            .ok_or(E::Truncated)?;
        let tail = TrailerTail::parse(cursor.rest())?;
        let trailer_len = usize::try_from(tail.trailer_len()).ok();
        let index_len = trailer_len.and_then(|len| cursor.rest().len().checked_sub(len));
        let index_chunk = index_len
            .and_then(|len| cursor.take_bytes(len))
            .ok_or(E::TrailerLen(tail.trailer_len()))?;
        if header.chunk_count() > 0 && index_chunk.len() < MIN_CHUNK_LEN {
            return Err(E::IndexLen(index_chunk.len()));
        }
        Ok(Self {
            header,
            metalayers,
            chunks,
            index_chunk,
            trailer: Trailer::parse(cursor.rest())?,
        })
    }

    /// Returns the fixed 87 bytes.
    pub fn header(&self) -> FrameHeader<'a> {
        self.header
    }

    /// Returns the header's metalayers.
    pub fn metalayers(&self) -> Metalayers<'a> {
        self.metalayers
    }

    /// Returns the body of the header's metalayer of this name.
    pub fn metalayer(&self, name: &str) -> Option<&'a [u8]> {
        self.metalayers.get(name)
    }

    /// Returns the stored chunks; empty in a sparse directory.
    pub fn chunks(&self) -> &'a [u8] {
        self.chunks
    }

    /// Returns the index chunk, still encoded; empty if there are no chunks.
    pub fn index_chunk(&self) -> &'a [u8] {
        self.index_chunk
    }

    /// Returns the trailer.
    pub fn trailer(&self) -> Trailer<'a> {
        self.trailer
    }
}

impl fmt::Debug for Blosc2Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blosc2Frame")
            .field("header", &self.header)
            .field("metalayers", &self.metalayers)
            .field("trailer", &self.trailer)
            .finish_non_exhaustive()
    }
}

/// The reason why bytes do not start with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The fixed header is invalid.
    #[error("frame header")]
    Header(#[from] FrameHeaderError),
    /// The bytes end inside the frame.
    #[error("bytes end inside the frame")]
    Truncated,
    /// The header's metalayers are invalid.
    #[error("header metalayers")]
    Metalayers(#[from] MetalayersError),
    /// The trailer is invalid.
    #[error("frame trailer")]
    Trailer(#[from] TrailerError),
    /// The trailer is longer than the remaining bytes.
    #[error("trailer of {0} bytes reaches into the chunks")]
    TrailerLen(u32),
    /// There are chunks, but the index is too short.
    #[error("{0} bytes between chunks and trailer are not an index chunk")]
    IndexLen(usize),
}
