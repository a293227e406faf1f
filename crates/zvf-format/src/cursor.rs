//! The one place that cuts a borrowed blob into parts.

use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// What is left of a blob while it is parsed.
///
/// Every method either consumes exactly what it returns or, when the bytes
/// are not there, consumes nothing and returns `None`; the caller knows which
/// part of the format that was and says so in its error.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes nobody has taken yet.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// One fixed-size record.
    pub(crate) fn take<T>(&mut self) -> Option<&'a T>
    where
        T: FromBytes + Immutable + KnownLayout + Unaligned,
    {
        let (record, rest) = T::ref_from_prefix(self.rest).ok()?;
        self.rest = rest;
        Some(record)
    }

    /// `count` records. The product with the record size cannot overflow:
    /// zerocopy checks it against the bytes that are there.
    pub(crate) fn take_slice<T>(&mut self, count: usize) -> Option<&'a [T]>
    where
        T: FromBytes + Immutable + KnownLayout + Unaligned,
    {
        let (records, rest) = <[T]>::ref_from_prefix_with_elems(self.rest, count).ok()?;
        self.rest = rest;
        Some(records)
    }

    /// `count` raw bytes.
    pub(crate) fn take_bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(head)
    }
}
