//! The requests that serve the reads of one object.

use core::ops::Range;

use bytes::Bytes;

use super::{
    coalesce::{MergeLimits, coalesce},
    range::ByteRange,
};

/// The requests for one object.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectPlan {
    pub(crate) requests: Vec<ByteRange>,
    /// For each read, the index of the request that contains it; `None` for an empty range.
    pub(crate) request_of: Vec<Option<usize>>,
}

impl ObjectPlan {
    /// Plans `reads` of one object.
    ///
    /// A read of the whole object serves every other read too. Otherwise one open range, one
    /// suffix and the merged bounded ranges are requested side by side: they cannot be compared,
    /// because the size of the object is not known.
    pub(crate) fn new<'a>(
        reads: impl Iterator<Item = &'a ByteRange> + Clone,
        limits: MergeLimits,
    ) -> Self {
        let full = reads
            .clone()
            .any(|read| matches!(read, ByteRange::Full | ByteRange::From(0)));
        if full {
            return Self::whole(reads);
        }
        let mut plan = Self::default();
        let from = reads
            .clone()
            .filter_map(|read| match read {
                ByteRange::From(start) => Some(*start),
                _ => None,
            })
            .min();
        let suffix = reads
            .clone()
            .filter_map(|read| match read {
                ByteRange::Suffix(bytes) if *bytes > 0 => Some(*bytes),
                _ => None,
            })
            .max();
        let starts_before_open_range =
            |range: &Range<u64>| from.is_none_or(|from| range.start < from);
        let bounded: Vec<Range<u64>> = reads
            .clone()
            .filter_map(|read| match read {
                ByteRange::Bounded(range) if range.start < range.end => Some(range.clone()),
                _ => None,
            })
            .filter(starts_before_open_range)
            .collect();
        let merged = coalesce(&bounded, limits);
        let mut fetch_of = merged.fetch_of.into_iter();
        plan.requests = merged.fetches.into_iter().map(ByteRange::Bounded).collect();
        let from = from.map(|start| plan.push(ByteRange::From(start)));
        let suffix = suffix.map(|bytes| plan.push(ByteRange::Suffix(bytes)));
        plan.request_of = reads
            .map(|read| match read {
                read if read.is_empty() => None,
                ByteRange::Bounded(range) if starts_before_open_range(range) => fetch_of.next(),
                ByteRange::Bounded(_) | ByteRange::From(_) => from,
                ByteRange::Suffix(_) => suffix,
                ByteRange::Full => None,
            })
            .collect();
        plan
    }

    /// Plans `reads` of one object as one request of the whole object.
    pub(crate) fn whole<'a>(reads: impl Iterator<Item = &'a ByteRange>) -> Self {
        let request_of: Vec<Option<usize>> =
            reads.map(|read| (!read.is_empty()).then_some(0)).collect();
        let request = request_of.iter().flatten().next();
        Self {
            requests: request.map(|_| ByteRange::Full).into_iter().collect(),
            request_of,
        }
    }

    fn push(&mut self, request: ByteRange) -> usize {
        self.requests.push(request);
        self.requests.len().saturating_sub(1)
    }
}

/// The response to one request: bytes of an object from `start`, and the size of the object.
#[derive(Clone, Debug)]
pub(crate) struct FetchedRange {
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) bytes: Bytes,
}

impl FetchedRange {
    /// Returns the bytes of `range` without copying them, or `None` when the object or the
    /// fetched range ends before it does.
    pub(crate) fn slice(&self, range: &ByteRange) -> Option<Bytes> {
        let wanted = match range {
            ByteRange::Full => 0..self.size,
            ByteRange::Bounded(range) => range.clone(),
            // A read from offset 0 is a read of the whole object, which may be empty.
            ByteRange::From(start) if *start < self.size || *start == 0 => *start..self.size,
            ByteRange::From(_) => return None,
            ByteRange::Suffix(bytes) => self.size.checked_sub(*bytes)?..self.size,
        };
        let start = usize::try_from(wanted.start.checked_sub(self.start)?).ok()?;
        let end = usize::try_from(wanted.end.checked_sub(self.start)?).ok()?;
        (start <= end && end <= self.bytes.len()).then(|| self.bytes.slice(start..end))
    }
}
