//! The optional footer of a file: JSON in a frame.

use core::fmt;

use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    little_endian::{U32, U64},
};

use super::FOOTER_TAIL_LEN;
use crate::cursor::Cursor;

/// Last four bytes of a file with a footer.
pub const FOOTER_MAGIC: [u8; 4] = *b"THST";

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawTail {
    json_len: U64,
    version: U32,
    magic: [u8; 4],
}

const _: () = assert!(size_of::<RawTail>() == 16);

/// Version of a footer, which determines its references.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FooterVersion {
    /// Number 1: the JSON may refer to one spill, `metadata_ref`.
    V1,
    /// Number 2: also to `zone_maps_ref` and `secondary_index_ref`.
    V2,
}

impl FooterVersion {
    /// Returns the number in the file.
    pub fn number(self) -> u32 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }
}

/// The last 16 bytes of a file whose superblock announces a footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FooterTail {
    version: FooterVersion,
    json_len: u64,
}

impl FooterTail {
    /// Returns the tail after `json_len` bytes of JSON.
    ///
    /// # Errors
    ///
    /// [`FooterError::JsonLen`] if JSON and tail together are past 2^64.
    pub fn new(version: FooterVersion, json_len: u64) -> Result<Self, FooterError> {
        match json_len.checked_add(FOOTER_TAIL_LEN) {
            Some(_) => Ok(Self { version, json_len }),
            None => Err(FooterError::JsonLen(json_len)),
        }
    }

    /// Reads the last 16 bytes of `bytes`; the rest is ignored.
    ///
    /// # Errors
    ///
    /// [`FooterError`] describes the first invalid field.
    pub fn parse(bytes: &[u8]) -> Result<Self, FooterError> {
        use FooterError as E;
        let (_, raw) = RawTail::ref_from_suffix(bytes).map_err(|_| E::Truncated)?;
        if raw.magic != FOOTER_MAGIC {
            return Err(E::Magic(raw.magic));
        }
        let version = match raw.version.get() {
            1 => FooterVersion::V1,
            2 => FooterVersion::V2,
            other => return Err(E::Version(other)),
        };
        Self::new(version, raw.json_len.get())
    }

    /// Returns the 16 bytes; they follow the JSON.
    pub fn encode(&self) -> [u8; 16] {
        let raw = RawTail {
            json_len: U64::new(self.json_len),
            version: U32::new(self.version.number()),
            magic: FOOTER_MAGIC,
        };
        zerocopy::transmute!(raw)
    }

    /// Returns the footer's version.
    pub fn version(&self) -> FooterVersion {
        self.version
    }

    /// Returns the number of bytes of JSON before the tail.
    pub fn json_len(&self) -> u64 {
        self.json_len
    }

    /// Returns the length of JSON and tail in bytes, which a reader fetches from the end of the
    /// file.
    pub fn footer_len(&self) -> u64 {
        // `new` has verified that the sum fits.
        self.json_len.saturating_add(FOOTER_TAIL_LEN)
    }
}

/// The footer of a file: JSON and tail.
///
/// The JSON is not parsed here, so spills that it refers to are unknown. The start of the JSON is
/// therefore only an upper bound for payloads: a reader that knows the references passes the
/// smallest offset of a spill instead to [`ChunkIndex::check`](super::ChunkIndex::check).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Footer<'a> {
    tail: FooterTail,
    json: &'a [u8],
}

impl<'a> Footer<'a> {
    /// Checks the footer at the end of `bytes`: a file, or the part after its chunk index.
    ///
    /// # Errors
    ///
    /// [`FooterError`] describes the first invalid part.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FooterError> {
        let tail = FooterTail::parse(bytes)?;
        let error = FooterError::JsonLen(tail.json_len);
        let footer_len = usize::try_from(tail.footer_len()).map_err(|_| error)?;
        let json_len = usize::try_from(tail.json_len).map_err(|_| error)?;
        let start = bytes.len().checked_sub(footer_len).ok_or(error)?;
        let footer = bytes.get(start..).ok_or(error)?;
        let json = Cursor::new(footer).take_bytes(json_len).ok_or(error)?;
        Ok(Self { tail, json })
    }

    /// Returns the last 16 bytes.
    pub fn tail(&self) -> FooterTail {
        self.tail
    }

    /// Returns the JSON text, as stored.
    pub fn json(&self) -> &'a [u8] {
        self.json
    }
}

impl fmt::Debug for Footer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tail.fmt(f)
    }
}

/// The reason why bytes do not end with a footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FooterError {
    /// Fewer than 16 bytes.
    #[error("bytes end inside the footer's tail")]
    Truncated,
    /// The bytes do not end with [`FOOTER_MAGIC`].
    #[error("footer magic is {0:02x?}, not \"THST\"")]
    Magic([u8; 4]),
    /// A footer version this crate does not read.
    #[error("footer version {0} is not supported, only 1 and 2 are")]
    Version(u32),
    /// The JSON does not fit between the chunk index and the tail.
    #[error("{0} bytes of footer JSON do not fit in the file")]
    JsonLen(u64),
}
