//! The trailer of a frame.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, big_endian::U32};

use super::{Marked, Metalayers, MetalayersError, marker, section::MAX_IN_TRAILER};
use crate::cursor::Cursor;

/// Length of the end of a frame that locates its trailer.
pub const TRAILER_TAIL_LEN: u64 = 23;

pub(super) const ARRAY: u8 = marker::FIXARRAY | 4;
/// The only version.
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

/// The last 23 bytes of a frame, which contain the length of its trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrailerTail {
    len: u32,
}

impl TrailerTail {
    /// Reads the last 23 bytes of `bytes`; the rest is ignored.
    ///
    /// # Errors
    ///
    /// [`TrailerError`] describes the first invalid field.
    pub fn parse(bytes: &[u8]) -> Result<Self, TrailerError> {
        use TrailerError as E;
        let (_, raw) = RawTail::ref_from_suffix(bytes).map_err(|_| E::Truncated)?;
        if raw.len.marker != marker::U32 {
            return Err(E::Marker(raw.len.marker));
        }
        if raw.fingerprint.marker != marker::FIXEXT16 {
            return Err(E::Marker(raw.fingerprint.marker));
        }
        // Other kinds are reserved for checksums that no writer uses yet. Ignoring one would be
        // worse than rejecting it.
        if raw.fingerprint.value != 0 {
            return Err(E::Fingerprint(raw.fingerprint.value));
        }
        Ok(Self {
            len: raw.len.value.get(),
        })
    }

    /// Returns the number of bytes of the trailer, these 23 included.
    pub fn trailer_len(&self) -> u32 {
        self.len
    }
}

/// The trailer of a frame, with metalayers that can grow because nothing follows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer<'a> {
    metalayers: Metalayers<'a>,
}

impl<'a> Trailer<'a> {
    /// Checks `bytes`, the last [`TrailerTail::trailer_len`] of a frame.
    ///
    /// # Errors
    ///
    /// [`TrailerError`] describes the first invalid part.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, TrailerError> {
        use TrailerError as E;
        let tail = TrailerTail::parse(bytes)?;
        if usize::try_from(tail.len).ok() != Some(bytes.len()) {
            return Err(E::Len(tail.len));
        }
        let mut cursor = Cursor::new(bytes);
        let front = bytes
            .len()
            .checked_sub(size_of::<RawTail>())
            .and_then(|len| cursor.take_bytes(len))
            .ok_or(E::Truncated)?;
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

    /// Returns the metalayers; their bodies are Blosc2 chunks.
    pub fn metalayers(&self) -> Metalayers<'a> {
        self.metalayers
    }
}

/// The reason why bytes do not end with a trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrailerError {
    /// The bytes end inside the trailer.
    #[error("bytes end inside the trailer")]
    Truncated,
    /// A value has an unexpected marker.
    #[error("marker {0:#04x} does not belong in the trailer")]
    Marker(u8),
    /// A trailer version this crate does not read.
    #[error("trailer version {0} is not supported, only 1 is")]
    Version(u8),
    /// A fingerprint this crate cannot verify.
    #[error("fingerprint of kind {0} is not supported")]
    Fingerprint(u8),
    /// The length is not that of the bytes.
    #[error("trailer declares {0} bytes, but has another length")]
    Len(u32),
    /// The metalayers are invalid.
    #[error("trailer metalayers")]
    Metalayers(#[from] MetalayersError),
}
