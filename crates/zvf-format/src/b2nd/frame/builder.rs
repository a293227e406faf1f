//! Collects metalayers and encodes header or trailer around them.

use alloc::{string::String, vec::Vec};

use zerocopy::{
    IntoBytes,
    big_endian::{I16, I32, I64, U16, U32, U64},
};

use super::{
    ARRAY, DICTIONARY, FILTER_SLOTS, FrameHeader, FrameHeaderError, FrameType, HEADER_LEN, MAGIC,
    Marked, OFFSET_WIDTH, RawFlags, RawHeader, VARIABLE_CHUNKS, marker,
    section::{self, MAX_IN_HEADER, MAX_NAME_LEN, RawSection},
    trailer::{self, RawHead, RawTail},
};
use crate::sign::Sign;

/// Bytes reserved for the fixed parts of header or trailer and for all names, so that every offset
/// fits into 31 bits.
const RESERVED_BYTES: usize = 1024;

/// Collects metalayers and encodes a frame's header or its trailer.
///
/// A frame is header, chunks, index chunk and trailer, one after the other.
#[derive(Clone, Debug, Default)]
pub struct MetalayersBuilder {
    metalayers: Vec<(String, Vec<u8>)>,
}

/// A metalayer that a frame cannot represent. The builder is left unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetalayerLimit {
    /// There are already 16. A trailer could have more, but the upstream writer has the same limit.
    #[error("a frame has at most 16 metalayers")]
    Count,
    /// The name takes more than 31 bytes.
    #[error("the name takes {0} bytes, more than 31")]
    LongName(usize),
    /// A metalayer of this name is already there.
    #[error("the name is already taken")]
    DuplicateName,
    /// The metalayers take 2^31 bytes or more.
    #[error("metalayers take at most 2147483647 bytes")]
    LongBody,
}

/// A header that the format cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameLimit {
    /// The codec number is past 15; a plugin's goes into `user_codec`.
    #[error("codec {0} is past 15")]
    Codec(u8),
    /// The level is past 15.
    #[error("compression level {0} is past 15")]
    Level(u8),
    /// The split mode is not 1 to 4.
    #[error("split mode {0} is not 1 to 4")]
    SplitMode(u8),
    /// The frame is longer than 2^64 bytes.
    #[error("the frame is longer than 2^64 bytes")]
    FrameLen,
    /// The parser would reject it.
    #[error("frame header")]
    Header(#[from] FrameHeaderError),
}

/// Fields of a frame header except its metalayers. Version, flags and lengths of header and frame
/// are derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameSpec {
    /// Location of the chunks.
    pub frame_type: FrameType,
    /// Default codec's number, 0 to 15.
    pub codec: u8,
    /// Default codec's number again, plugins included.
    pub user_codec: u8,
    /// The default codec's parameter.
    pub codec_meta: u8,
    /// Default compression level, 0 to 15.
    pub level: u8,
    /// Mode of splitting blocks into streams, 1 to 4.
    pub split_mode: u8,
    /// Default filters, in the order they are applied when encoding.
    pub filters: [u8; 6],
    /// Their parameters.
    pub filter_metas: [u8; 6],
    /// `true` if chunks have dictionaries.
    pub uses_dictionary: bool,
    /// Bytes of an item.
    pub typesize: u32,
    /// Bytes of a block decoded.
    pub blocksize: u32,
    /// Length of a decoded chunk; 0 means that chunks vary in size, as in an array without items.
    pub chunksize: u32,
    /// Bytes of all chunks decoded.
    pub nbytes: u64,
    /// Bytes of all chunks as stored.
    pub cbytes: u64,
    /// Bytes of index chunk and trailer.
    pub tail_len: u64,
    /// Number of threads for compression, as a hint.
    pub compression_threads: i16,
    /// Number of threads for decompression, as a hint.
    pub decompression_threads: i16,
    /// `true` if the trailer has metalayers.
    pub has_vlmetalayers: bool,
}

impl MetalayersBuilder {
    /// Appends a metalayer.
    ///
    /// # Errors
    ///
    /// [`MetalayerLimit`] if a limit of the format is exceeded.
    pub fn push(&mut self, name: &str, body: &[u8]) -> Result<&mut Self, MetalayerLimit> {
        use MetalayerLimit as E;
        if name.len() > usize::from(MAX_NAME_LEN) {
            return Err(E::LongName(name.len()));
        }
        if self.metalayers.len() >= usize::from(MAX_IN_HEADER) {
            return Err(E::Count);
        }
        if self.metalayers.iter().any(|(taken, _)| taken == name) {
            return Err(E::DuplicateName);
        }
        let bodies = self.metalayers.iter().map(|(_, body)| body.len());
        let total = bodies.fold(body.len(), usize::saturating_add);
        if i32::try_from(total.saturating_add(RESERVED_BYTES)).is_err() {
            return Err(E::LongBody);
        }
        self.metalayers.push((name.into(), body.into()));
        Ok(self)
    }

    /// Encodes the header of a frame with these metalayers.
    ///
    /// # Errors
    ///
    /// [`FrameLimit`] if a limit of the format is exceeded.
    pub fn finish_header(&self, spec: &FrameSpec) -> Result<Vec<u8>, FrameLimit> {
        let fixed = usize::try_from(HEADER_LEN).unwrap_or(usize::MAX);
        let section = self.section(fixed, 0);
        let header_len = u64::try_from(section.len())
            .unwrap_or(u64::MAX)
            .saturating_add(HEADER_LEN);
        let raw = spec.raw(header_len)?;
        let bytes = [raw.as_bytes(), &section].concat();
        FrameHeader::parse(&bytes)?;
        Ok(bytes)
    }

    /// Encodes the trailer of a frame with these metalayers, whose bodies are
    /// Blosc2 chunks.
    pub fn finish_trailer(&self) -> Vec<u8> {
        let head = RawHead {
            array: trailer::ARRAY,
            version: trailer::VERSION,
        };
        let section = self.section(size_of::<RawHead>(), 1);
        let fixed = size_of::<RawHead>().saturating_add(size_of::<RawTail>());
        // `push` keeps the sum below 2^31.
        let len = u32::try_from(section.len().saturating_add(fixed)).unwrap_or(u32::MAX);
        let tail = RawTail {
            len: Marked {
                marker: marker::U32,
                value: U32::new(len),
            },
            fingerprint: Marked {
                marker: marker::FIXEXT16,
                value: 0,
            },
            digest: [0; 16],
        };
        [head.as_bytes(), &section, tail.as_bytes()].concat()
    }

    /// Encodes the metalayers after `before` bytes of header or trailer. The index length excludes
    /// the first `uncounted` bytes.
    fn section(&self, before: usize, uncounted: usize) -> Vec<u8> {
        let name_lens = self
            .metalayers
            .iter()
            .map(|(name, _)| name.len())
            .map(|len| len.saturating_add(6));
        let index_len = name_lens.fold(size_of::<RawSection>(), usize::saturating_add);
        let counted = index_len.saturating_sub(uncounted);
        // At most 16 of them: all these fit.
        let count = U16::new(u16::try_from(self.metalayers.len()).unwrap_or(u16::MAX));
        let head = RawSection {
            array: section::ARRAY,
            index_len: Marked {
                marker: marker::U16,
                value: U16::new(u16::try_from(counted).unwrap_or(u16::MAX)),
            },
            names: Marked {
                marker: marker::MAP16,
                value: count,
            },
        };
        let bodies = Marked {
            marker: marker::ARRAY16,
            value: count,
        };
        let mut names = head.as_bytes().to_vec();
        let mut contents = bodies.as_bytes().to_vec();
        let start = before.saturating_add(index_len);
        for (name, body) in &self.metalayers {
            let offset = start.saturating_add(contents.len());
            let name_len = u8::try_from(name.len()).unwrap_or(MAX_NAME_LEN);
            let offset = Marked {
                marker: marker::I32,
                value: I32::new(i32::try_from(offset).unwrap_or(i32::MAX)),
            };
            names.push(marker::FIXSTR | name_len);
            names.extend_from_slice(name.as_bytes());
            names.extend_from_slice(offset.as_bytes());
            let head = Marked {
                marker: marker::BIN32,
                value: U32::new(u32::try_from(body.len()).unwrap_or(u32::MAX)),
            };
            contents.extend_from_slice(head.as_bytes());
            contents.extend_from_slice(body);
        }
        names.extend(contents);
        names
    }
}

impl FrameHeader<'_> {
    /// Returns the fields from which the encoder can write this header again, with other lengths.
    /// `None` if the encoder does not support the form: fewer filter slots than 6, or a chunk size
    /// of 0 without the flag for varying chunks.
    pub fn spec(&self) -> Option<FrameSpec> {
        if self.has_variable_chunks() != (self.chunksize() == 0) {
            return None;
        }
        Some(FrameSpec {
            frame_type: self.frame_type(),
            codec: self.codec(),
            user_codec: self.user_codec(),
            codec_meta: self.codec_meta(),
            level: self.level(),
            split_mode: self.split_mode(),
            filters: self.filters().try_into().ok()?,
            filter_metas: self.filter_metas().try_into().ok()?,
            uses_dictionary: self.uses_dictionary(),
            typesize: self.typesize(),
            blocksize: self.blocksize(),
            chunksize: self.chunksize(),
            nbytes: self.nbytes(),
            cbytes: self.cbytes(),
            tail_len: self.frame_len().checked_sub(self.chunks_span().end)?,
            compression_threads: self.compression_threads(),
            decompression_threads: self.decompression_threads(),
            has_vlmetalayers: self.has_vlmetalayers(),
        })
    }
}

impl FrameSpec {
    /// Numbers that exceed a field become negative, which the parser rejects.
    fn raw(&self, header_len: u64) -> Result<RawHeader, FrameLimit> {
        use FrameLimit as E;
        if self.codec > 15 {
            return Err(E::Codec(self.codec));
        }
        if self.level > 15 {
            return Err(E::Level(self.level));
        }
        let split_mode = self.split_mode.checked_sub(1).filter(|mode| *mode < 4);
        let split_mode = split_mode.ok_or(E::SplitMode(self.split_mode))?;
        let i32_of = |value: u32| Marked {
            marker: marker::I32,
            value: I32::new(value.signed()),
        };
        let i64_of = |value: u64| Marked {
            marker: marker::I64,
            value: I64::new(value.signed()),
        };
        let i16_of = |value| Marked {
            marker: marker::I16,
            value: I16::new(value),
        };
        let stored = match self.frame_type {
            FrameType::Contiguous => self.cbytes,
            FrameType::Sparse => 0,
        };
        let frame_len = header_len
            .checked_add(stored)
            .and_then(|len| len.checked_add(self.tail_len));
        let variable = if self.chunksize == 0 {
            VARIABLE_CHUNKS | 3
        } else {
            2
        };
        Ok(RawHeader {
            array: ARRAY,
            magic: Marked {
                marker: marker::FIXSTR | 8,
                value: MAGIC,
            },
            header_len: i32_of(u32::try_from(header_len).unwrap_or(u32::MAX)),
            frame_len: Marked {
                marker: marker::U64,
                value: U64::new(frame_len.ok_or(E::FrameLen)?),
            },
            flags: Marked {
                marker: marker::FIXSTR | 4,
                value: RawFlags {
                    version: OFFSET_WIDTH | variable,
                    frame_type: self.frame_type.number(),
                    codec: self.level << 4 | self.codec,
                    split_mode,
                },
            },
            nbytes: i64_of(self.nbytes),
            cbytes: i64_of(self.cbytes),
            typesize: i32_of(self.typesize),
            blocksize: i32_of(self.blocksize),
            chunksize: i32_of(self.chunksize),
            compression_threads: i16_of(self.compression_threads),
            decompression_threads: i16_of(self.decompression_threads),
            has_vlmetalayers: if self.has_vlmetalayers {
                marker::TRUE
            } else {
                marker::FALSE
            },
            slots: Marked {
                marker: marker::FIXEXT16,
                value: u8::try_from(FILTER_SLOTS).unwrap_or(u8::MAX),
            },
            filters: self.filters,
            user_codec: self.user_codec,
            codec_meta: self.codec_meta,
            filter_metas: self.filter_metas,
            more_flags: if self.uses_dictionary { DICTIONARY } else { 0 },
            reserved: 0,
        })
    }
}
