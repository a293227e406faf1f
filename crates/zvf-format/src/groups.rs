//! Group members: the objects of a group.
//!
//! A group has a number and lists object ids, in one of two forms:
//!
//! | form | where | size in bytes | content |
//! |---|---|---|---|
//! | list | item (or open row) `g` of `groups` | 8 · m | m object ids, i64 each, little-endian, in the order they were given |
//! | range | attribute `group_ranges` of `groups` | – | `"g": [start, stop]`: the ids `start`, `start + 1`, … `stop - 1` |
//!
//! A group in range form has an empty item, so the attribute takes precedence. An empty item
//! without an entry is an empty group; unused group numbers are stored in the same way. The range
//! form exists since late 0.8.1 stores. Writers use it for groups given as ranges and never convert
//! a list to a range.
//!
//! Any i64 is a valid id here, and ids may repeat: only the object index determines whether an
//! object exists.
//!
//! ```
//! use zvf_format::groups::GroupMembers;
//!
//! let listed = GroupMembers::parse_list(b"\x03\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0")?;
//! assert!(listed.iter().eq([3, 1]));
//! let ranged = GroupMembers::from_range(0, 50)?;
//! assert!(ranged.contains(49) && !ranged.contains(50));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "alloc")]
use alloc::vec::Vec;
use core::{fmt, ops::Range};

use zerocopy::little_endian::I64;

use crate::int64s::{Int64s, Int64sError};

/// The members of one group, borrowed from a list or spanned by a range.
///
/// Two are equal if they have the same members in the same order, independent of the form.
#[derive(Clone, Copy)]
pub struct GroupMembers<'a>(Form<'a>);

#[derive(Clone, Copy)]
enum Form<'a> {
    List(Int64s<'a>),
    /// `start <= stop`.
    Range {
        start: i64,
        stop: i64,
    },
}

impl<'a> GroupMembers<'a> {
    /// Borrows the ids that an item of `groups` lists. Takes constant time.
    ///
    /// # Errors
    ///
    /// [`Int64sError`] if the bytes do not hold whole ids.
    pub fn parse_list(bytes: &'a [u8]) -> Result<Self, Int64sError> {
        Int64s::parse(bytes).map(Form::List).map(Self)
    }

    /// Returns the ids from `start` up to, but not including, `stop`; none if they are equal.
    ///
    /// # Errors
    ///
    /// [`GroupRangeInverted`] if `stop` is below `start`.
    pub fn from_range(start: i64, stop: i64) -> Result<Self, GroupRangeInverted> {
        if stop < start {
            return Err(GroupRangeInverted { start, stop });
        }
        Ok(Self(Form::Range { start, stop }))
    }

    /// Returns the number of members, repeated ones counted.
    pub fn len(&self) -> u64 {
        match self.0 {
            Form::List(ids) => u64::try_from(ids.len()).unwrap_or(u64::MAX),
            Form::Range { start, stop } => stop.abs_diff(start),
        }
    }

    /// Returns whether the group has no member.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns member `at`, or `None` past the end, in constant time.
    pub fn get(&self, at: u64) -> Option<i64> {
        match self.0 {
            Form::List(ids) => ids.get(usize::try_from(at).ok()?),
            Form::Range { start, stop } => {
                let id = start.checked_add_unsigned(at)?;
                (id < stop).then_some(id)
            }
        }
    }

    /// Returns whether object `id` is a member. Constant for a range, O(len) for a list.
    pub fn contains(&self, id: i64) -> bool {
        match self.0 {
            Form::List(ids) => ids.iter().any(|member| member == id),
            Form::Range { start, stop } => (start..stop).contains(&id),
        }
    }

    /// Returns the members in order. A range may span up to 2^64 − 1 of them.
    pub fn iter(&self) -> Members<'a> {
        match self.0 {
            Form::List(ids) => Members(Remaining::List(ids.numbers().iter())),
            Form::Range { start, stop } => Members(Remaining::Range(start..stop)),
        }
    }

    /// Returns the stored ids, if they are listed.
    pub fn as_list(&self) -> Option<Int64s<'a>> {
        match self.0 {
            Form::List(ids) => Some(ids),
            Form::Range { .. } => None,
        }
    }

    /// Returns the range, if it is one; never inverted.
    pub fn as_range(&self) -> Option<Range<i64>> {
        match self.0 {
            Form::List(_) => None,
            Form::Range { start, stop } => Some(start..stop),
        }
    }
}

impl fmt::Debug for GroupMembers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Form::List(ids) => ids.fmt(f),
            Form::Range { start, stop } => (start..stop).fmt(f),
        }
    }
}

impl PartialEq for GroupMembers<'_> {
    fn eq(&self, other: &Self) -> bool {
        // Two ranges are not iterated, because they may be too long.
        match (self.0, other.0) {
            (Form::Range { start, .. }, Form::Range { start: first, .. }) => {
                self.len() == other.len() && (self.is_empty() || start == first)
            }
            _ => self.len() == other.len() && self.iter().eq(other.iter()),
        }
    }
}

impl Eq for GroupMembers<'_> {}

impl<'a> IntoIterator for GroupMembers<'a> {
    type Item = i64;
    type IntoIter = Members<'a>;

    fn into_iter(self) -> Members<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &GroupMembers<'a> {
    type Item = i64;
    type IntoIter = Members<'a>;

    fn into_iter(self) -> Members<'a> {
        self.iter()
    }
}

/// Object ids one by one, created by [`GroupMembers::iter`].
#[derive(Clone, Debug)]
pub struct Members<'a>(Remaining<'a>);

#[derive(Clone, Debug)]
enum Remaining<'a> {
    List(core::slice::Iter<'a, I64>),
    Range(Range<i64>),
}

impl Iterator for Members<'_> {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        match &mut self.0 {
            Remaining::List(ids) => ids.next().map(|id| id.get()),
            Remaining::Range(ids) => ids.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Remaining::List(ids) => ids.size_hint(),
            Remaining::Range(ids) => ids.size_hint(),
        }
    }
}

impl core::iter::FusedIterator for Members<'_> {}

/// A group range ends before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("group range [{start}, {stop}) ends before it starts")]
pub struct GroupRangeInverted {
    /// First id.
    pub start: i64,
    /// One past the last id.
    pub stop: i64,
}

/// Encodes the list form: the ids in the order given.
///
/// The range form has no bytes: its numbers are stored in the attribute, and its item is the
/// encoding of an empty list.
///
/// ```
/// use zvf_format::groups::{GroupMembers, encode_list};
///
/// let bytes = encode_list(&[3, 1, 2]);
/// assert!(GroupMembers::parse_list(&bytes)?.iter().eq([3, 1, 2]));
/// # Ok::<(), zvf_format::int64s::Int64sError>(())
/// ```
#[cfg(feature = "alloc")]
pub fn encode_list(ids: &[i64]) -> Vec<u8> {
    crate::numeric::encode(ids, crate::numeric::ByteOrder::Little)
}
