//! Named bodies of header or trailer.

use core::fmt;

use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    big_endian::{I32, U16, U32},
};

use super::{HEADER_LEN, Marked, marker};
use crate::cursor::Cursor;

/// Maximum number of metalayers in a header.
pub(super) const MAX_IN_HEADER: u16 = 16;
/// Maximum number of metalayers in a trailer that a reader accepts.
pub(super) const MAX_IN_TRAILER: u16 = 8192;
pub(super) const ARRAY: u8 = marker::FIXARRAY | 3;
/// Maximum length of a name.
pub(super) const MAX_NAME_LEN: u8 = 31;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawSection {
    pub(super) array: u8,
    /// Readers ignore it, and it overflows with 8192 names.
    pub(super) index_len: Marked<U16>,
    pub(super) names: Marked<U16>,
}

const _: () = assert!(size_of::<RawSection>() == 7);

/// The metalayers of a header or trailer, borrowed from its bytes.
///
/// Validated by [`parse`](Self::parse). Names are not checked for duplicates; lookup returns the
/// first.
#[derive(Clone, Copy)]
pub struct Metalayers<'a> {
    len: u16,
    names: Cursor<'a>,
    bodies: Cursor<'a>,
}

impl<'a> Metalayers<'a> {
    /// Checks the metalayers of a frame header. `header` is the whole header:
    /// [`FrameHeader::header_len`] bytes from the frame's first.
    ///
    /// [`FrameHeader::header_len`]: super::FrameHeader::header_len
    ///
    /// # Errors
    ///
    /// [`MetalayersError`] describes the first invalid part.
    pub fn parse(header: &'a [u8]) -> Result<Self, MetalayersError> {
        let mut cursor = Cursor::new(header);
        let fixed = usize::try_from(HEADER_LEN)
            .ok()
            .and_then(|len| cursor.take_bytes(len));
        fixed.ok_or(MetalayersError::Truncated)?;
        Self::take(header.len(), cursor, MAX_IN_HEADER)
    }

    /// Checks metalayers that fill `cursor`, the end of a part of `len` bytes. Offsets are relative
    /// to the start of that part.
    pub(super) fn take(
        len: usize,
        mut cursor: Cursor<'a>,
        max: u16,
    ) -> Result<Self, MetalayersError> {
        use MetalayersError as E;
        let head: &RawSection = cursor.take().ok_or(E::Truncated)?;
        let markers = [
            (head.array, ARRAY),
            (head.index_len.marker, marker::U16),
            (head.names.marker, marker::MAP16),
        ];
        if let Some((found, _)) = markers.into_iter().find(|(found, want)| found != want) {
            return Err(E::Marker(found));
        }
        let count = head.names.value.get();
        if count > max {
            return Err(E::Count(count));
        }
        let names = cursor;
        for _ in 0..count {
            take_name(&mut cursor)?;
        }
        let again: &Marked<U16> = cursor.take().ok_or(E::Truncated)?;
        if again.marker != marker::ARRAY16 {
            return Err(E::Marker(again.marker));
        }
        if again.value.get() != count {
            return Err(E::Bodies {
                names: count,
                bodies: again.value.get(),
            });
        }
        let bodies = cursor;
        let mut offsets = names;
        for metalayer in 0..count {
            let at = len.checked_sub(cursor.rest().len());
            let (_, offset) = take_name(&mut offsets)?;
            if at.is_none() || usize::try_from(offset).ok() != at {
                return Err(E::Offset { metalayer, offset });
            }
            take_body(&mut cursor)?;
        }
        match cursor.rest().len() {
            0 => Ok(Self {
                len: count,
                names,
                bodies,
            }),
            trailing => Err(E::TrailingBytes(trailing)),
        }
    }

    /// Returns the number of metalayers.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Returns whether there is no metalayer.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns every metalayer, in stored order.
    pub fn iter(&self) -> MetalayersIter<'a> {
        MetalayersIter {
            left: self.len,
            names: self.names,
            bodies: self.bodies,
        }
    }

    /// Returns the body of the first metalayer of this name, by linear search.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        let mut found = self.iter().filter(|metalayer| metalayer.name == name);
        found.next().map(|metalayer| metalayer.body)
    }
}

fn take_name<'a>(cursor: &mut Cursor<'a>) -> Result<(&'a str, i32), MetalayersError> {
    use MetalayersError as E;
    let head: &u8 = cursor.take().ok_or(E::Truncated)?;
    if head & !MAX_NAME_LEN != marker::FIXSTR {
        return Err(E::Marker(*head));
    }
    let name = cursor.take_bytes(usize::from(head & MAX_NAME_LEN));
    let name = core::str::from_utf8(name.ok_or(E::Truncated)?).map_err(|_| E::Name)?;
    let offset: &Marked<I32> = cursor.take().ok_or(E::Truncated)?;
    if offset.marker != marker::I32 {
        return Err(E::Marker(offset.marker));
    }
    Ok((name, offset.value.get()))
}

fn take_body<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], MetalayersError> {
    use MetalayersError as E;
    let head: &Marked<U32> = cursor.take().ok_or(E::Truncated)?;
    if head.marker != marker::BIN32 {
        return Err(E::Marker(head.marker));
    }
    let len = usize::try_from(head.value.get()).ok();
    len.and_then(|len| cursor.take_bytes(len))
        .ok_or(E::Truncated)
}

impl fmt::Debug for Metalayers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Compares names and bodies, in order.
impl PartialEq for Metalayers<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Metalayers<'_> {}

impl<'a> IntoIterator for Metalayers<'a> {
    type Item = Metalayer<'a>;
    type IntoIter = MetalayersIter<'a>;

    fn into_iter(self) -> MetalayersIter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &Metalayers<'a> {
    type Item = Metalayer<'a>;
    type IntoIter = MetalayersIter<'a>;

    fn into_iter(self) -> MetalayersIter<'a> {
        self.iter()
    }
}

/// Iterator over the metalayers of a header or trailer, created by [`Metalayers::iter`].
#[derive(Clone)]
pub struct MetalayersIter<'a> {
    left: u16,
    names: Cursor<'a>,
    bodies: Cursor<'a>,
}

impl<'a> Iterator for MetalayersIter<'a> {
    type Item = Metalayer<'a>;

    fn next(&mut self) -> Option<Metalayer<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (name, _) = take_name(&mut self.names).ok()?;
        let body = take_body(&mut self.bodies).ok()?;
        Some(Metalayer { name, body })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::from(self.left);
        (left, Some(left))
    }
}

impl ExactSizeIterator for MetalayersIter<'_> {}
impl core::iter::FusedIterator for MetalayersIter<'_> {}

impl fmt::Debug for MetalayersIter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// A named body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metalayer<'a> {
    /// Its name, at most 31 bytes.
    pub name: &'a str,
    /// Its body: any bytes in a header, a Blosc2 chunk in a trailer.
    pub body: &'a [u8],
}

/// The reason why bytes are not the metalayers of a header or trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetalayersError {
    /// The bytes end inside the metalayers.
    #[error("bytes end inside the metalayers")]
    Truncated,
    /// A value has an unexpected marker.
    #[error("marker {0:#04x} does not belong in the metalayers")]
    Marker(u8),
    /// More than a frame can have.
    #[error("{0} metalayers are too many")]
    Count(u16),
    /// There are not as many bodies as names.
    #[error("{names} metalayers have names, {bodies} have bodies")]
    Bodies {
        /// Names counted.
        names: u16,
        /// Bodies counted.
        bodies: u16,
    },
    /// A name is not UTF-8.
    #[error("the name of a metalayer is not UTF-8")]
    Name,
    /// An offset is not the position of its body.
    #[error("metalayer {metalayer} is not at {offset}")]
    Offset {
        /// Its position.
        metalayer: u16,
        /// The offset stored.
        offset: i32,
    },
    /// Bytes are left after the last body.
    #[error("{0} bytes left after the last metalayer")]
    TrailingBytes(usize),
}
