//! Splits a borrowed blob into parts.

use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// The rest of a blob during parsing.
///
/// Every method either consumes exactly what it returns or, if there are too few bytes, consumes
/// nothing and returns `None`. The caller knows the missing part of the format and names it in the
/// error.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// A cursor at the end of a blob.
    pub(crate) const EMPTY: Self = Self { rest: &[] };

    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns the remaining bytes.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Takes one fixed-size record.
    pub(crate) fn take<T>(&mut self) -> Option<&'a T>
    where
        T: FromBytes + Immutable + KnownLayout + Unaligned,
    {
        let (record, rest) = T::ref_from_prefix(self.rest).ok()?;
        self.rest = rest;
        Some(record)
    }

    /// Takes `count` records. The product with the record size cannot overflow, because zerocopy
    /// checks it against the available bytes.
    pub(crate) fn take_slice<T>(&mut self, count: usize) -> Option<&'a [T]>
    where
        T: FromBytes + Immutable + KnownLayout + Unaligned,
    {
        let (records, rest) = <[T]>::ref_from_prefix_with_elems(self.rest, count).ok()?;
        self.rest = rest;
        Some(records)
    }

    /// Takes `count` raw bytes.
    pub(crate) fn take_bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(head)
    }
}
