//! What a frame ends with.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, big_endian::U32};

use super::{Marked, Metalayers, MetalayersError, marker, section::MAX_IN_TRAILER};
use crate::cursor::Cursor;

/// Bytes at the end of a frame that tell its trailer.
pub const TRAILER_TAIL_LEN: u64 = 23;

pub(super) const ARRAY: u8 = marker::FIXARRAY | 4;
/// The one version there is.
pub(super) const VERSION: u8 = 1;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawHead {
    pub(super) array: u8,
    pub(super) version: u8,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawTail {
    pub(super) len: Marked<U32>,
    pub(super) fingerprint: Marked<u8>,
    pub(super) digest: [u8; 16],
}

const _: () = assert!(size_of::<RawTail>() == 23);

/// The last 23 bytes of a frame: how long its trailer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrailerTail {
    len: u32,
}

impl TrailerTail {
    /// Reads the last 23 bytes of `bytes`; what comes before is not looked at.
    ///
    /// # Errors
    ///
    /// [`TrailerError`] names the first field that does not hold.
    pub fn parse(bytes: &[u8]) -> Result<Self, TrailerError> {
        use TrailerError as E;
        let (_, raw) = RawTail::ref_from_suffix(bytes).map_err(|_| E::Truncated)?;
        if raw.len.marker != marker::U32 {
            return Err(E::Marker(raw.len.marker));
        }
        if raw.fingerprint.marker != marker::FIXEXT16 {
            return Err(E::Marker(raw.fingerprint.marker));
        }
        // Other kinds are reserved for checksums that nothing writes yet;
        // passing over one unseen would be worse than refusing it.
        if raw.fingerprint.value != 0 {
            return Err(E::Fingerprint(raw.fingerprint.value));
        }
        Ok(Self {
            len: raw.len.value.get(),
        })
    }

    /// Bytes of the trailer, these 23 included.
    pub fn trailer_len(&self) -> u32 {
        self.len
    }
}

/// What a frame ends with: metalayers that can grow, since nothing follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer<'a> {
    metalayers: Metalayers<'a>,
}

impl<'a> Trailer<'a> {
    /// Checks `bytes`, the last [`TrailerTail::trailer_len`] of a frame.
    ///
    /// # Errors
    ///
    /// [`TrailerError`] names the first part that does not hold.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, TrailerError> {
        use TrailerError as E;
        let tail = TrailerTail::parse(bytes)?;
        if usize::try_from(tail.len).ok() != Some(bytes.len()) {
            return Err(E::Len(tail.len));
        }
        let mut cursor = Cursor::new(bytes);
        let front = bytes.len().checked_sub(size_of::<RawTail>());
        let front = front.and_then(|len| cursor.take_bytes(len));
        let front = front.ok_or(E::Truncated)?;
        let mut cursor = Cursor::new(front);
        let head: &RawHead = cursor.take().ok_or(E::Truncated)?;
        if head.array != ARRAY {
            return Err(E::Marker(head.array));
        }
        if head.version != VERSION {
            return Err(E::Version(head.version));
        }
        let metalayers = Metalayers::take(front.len(), cursor, MAX_IN_TRAILER)?;
        Ok(Self { metalayers })
    }

    /// The metalayers; their bodies are Blosc2 chunks.
    pub fn metalayers(&self) -> Metalayers<'a> {
        self.metalayers
    }
}

/// Why bytes do not end with a trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrailerError {
    /// The bytes end inside the trailer.
    #[error("bytes end inside the trailer")]
    Truncated,
    /// A value has not the marker it always has.
    #[error("marker {0:#04x} does not belong in the trailer")]
    Marker(u8),
    /// A trailer version this crate does not read.
    #[error("trailer version {0} is not supported, only 1 is")]
    Version(u8),
    /// A fingerprint this crate cannot verify.
    #[error("fingerprint of kind {0} is not supported")]
    Fingerprint(u8),
    /// The length is not that of the bytes.
    #[error("trailer declares {0} bytes, others are there")]
    Len(u32),
    /// The metalayers do not hold.
    #[error("trailer metalayers")]
    Metalayers(#[from] MetalayersError),
}
