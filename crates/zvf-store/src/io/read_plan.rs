//! The requests that serve a batch of reads.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use zvf_model::key::Key;

use super::{
    budget::ByteBudget,
    error::ReadError,
    merge_policy::MergePolicy,
    object_plan::{FetchedRange, ObjectPlan},
    range::{ByteRange, Read},
};

/// The result of one request; `Ok(None)` is an absent object.
pub(crate) type FetchResult<T = FetchedRange> = Result<Option<T>, ReadError>;

/// A batch of reads, grouped by object and merged into requests.
///
/// Requests are numbered through all objects. [`admit`](Self::admit) returns the requests to send,
/// and [`results`](Self::results) cuts the responses back into one result for each read.
pub(crate) struct ReadPlan<'a> {
    objects: Vec<PlannedObject<'a>>,
    reads: Vec<PlannedRead>,
}

struct PlannedObject<'a> {
    key: &'a Key,
    plan: ObjectPlan,
    first_request: usize,
}

/// The position of a read: its object, and its index among the reads of the object.
struct PlannedRead {
    object: usize,
    index: usize,
}

impl<'a> ReadPlan<'a> {
    /// Plans the requests. All reads of an object that `is_read_whole` accepts are served by one
    /// request of the whole object.
    pub(crate) fn new(
        reads: &'a [Read],
        policy: MergePolicy,
        is_read_whole: impl Fn(&Key) -> bool,
    ) -> Self {
        let mut object_of: HashMap<&Key, usize> = HashMap::new();
        let mut objects: Vec<(&Key, Vec<&ByteRange>)> = Vec::new();
        let mut planned = Vec::with_capacity(reads.len());
        for read in reads {
            let object = *object_of.entry(&read.key).or_insert(objects.len());
            if object == objects.len() {
                objects.push((&read.key, Vec::new()));
            }
            if let Some((_, ranges)) = objects.get_mut(object) {
                let index = ranges.len();
                planned.push(PlannedRead { object, index });
                ranges.push(&read.range);
            }
        }
        let ranges = objects.iter().map(|(_, ranges)| ranges.iter().copied());
        let limits = policy.limits_for(ranges);
        let mut next = 0_usize;
        let plan = |(key, ranges): (&'a Key, Vec<&ByteRange>)| {
            let plan = if is_read_whole(key) {
                ObjectPlan::whole(ranges.iter().copied())
            } else {
                ObjectPlan::new(ranges.iter().copied(), limits)
            };
            let first_request = next;
            next = next.saturating_add(plan.requests.len());
            PlannedObject {
                key,
                plan,
                first_request,
            }
        };
        Self {
            objects: objects.into_iter().map(plan).collect(),
            reads: planned,
        }
    }

    fn requests(&self) -> impl Iterator<Item = Read> {
        self.objects.iter().flat_map(|object| {
            let ranges = object.plan.requests.iter();
            ranges.map(move |range| Read::new(object.key.clone(), range.clone()))
        })
    }

    /// Returns the requests that fit `budget`, with bounded ranges reserved, and the responses to
    /// fill in.
    ///
    /// A request that does not fit has its error in the responses. The size of other requests is
    /// known, and reserved, when their response arrives.
    pub(crate) fn admit(&self, budget: &ByteBudget) -> (Vec<(usize, Read)>, Responses) {
        let (mut admitted, mut responses) = (Vec::new(), Vec::new());
        for (number, read) in self.requests().enumerate() {
            let reserved = match &read.range {
                ByteRange::Bounded(range) => {
                    budget.reserve(&read.key, range.end.saturating_sub(range.start))
                }
                ByteRange::Full | ByteRange::From(_) | ByteRange::Suffix(_) => Ok(()),
            };
            match reserved {
                Ok(()) => {
                    admitted.push((number, read));
                    responses.push(None);
                }
                Err(error) => responses.push(Some(Err(error))),
            }
        }
        (admitted, Responses(responses))
    }

    /// Returns the response that contains each read, in their order; `None` for an empty range, which
    /// needs no request.
    fn responses<'r>(
        &'r self,
        reads: &'r [Read],
        responses: &'r Responses,
    ) -> impl Iterator<Item = (&'r Read, Option<FetchResult<&'r FetchedRange>>)> {
        let response = move |(read, planned): (&'r Read, &PlannedRead)| {
            let request = self.objects.get(planned.object).and_then(|object| {
                let request = object.plan.request_of.get(planned.index);
                object
                    .first_request
                    .checked_add(request.copied().flatten()?)
            });
            let response =
                request.map(
                    |request| match responses.0.get(request).and_then(Option::as_ref) {
                        Some(Ok(fetched)) => Ok(fetched.as_ref()),
                        Some(Err(error)) => Err(error.for_read(read)),
                        None => Err(ReadError::Io {
                            key: read.key.clone(),
                            source: Arc::new(NoResponse),
                        }),
                    },
                );
            (read, response)
        };
        reads.iter().zip(&self.reads).map(response)
    }

    /// Returns the whole response that contains each read, in their order.
    pub(crate) fn around<'r>(
        &'r self,
        reads: &'r [Read],
        responses: &'r Responses,
    ) -> impl Iterator<Item = FetchResult> {
        let responses = self.responses(reads, responses);
        responses.map(|(_, response)| Ok(response.unwrap_or(Ok(None))?.cloned()))
    }

    /// Returns the result of each read, in their order.
    pub(crate) fn results<'r>(
        &'r self,
        reads: &'r [Read],
        responses: &'r Responses,
    ) -> impl Iterator<Item = FetchResult<Bytes>> {
        let result = |(read, response): (&Read, Option<FetchResult<&FetchedRange>>)| {
            let Some(response) = response else {
                return Ok(Some(Bytes::new()));
            };
            let Some(fetched) = response? else {
                return Ok(None);
            };
            let bytes = fetched
                .slice(&read.range)
                .ok_or_else(|| ReadError::truncated(read, Some(fetched.size)))?;
            Ok(Some(bytes))
        };
        self.responses(reads, responses).map(result)
    }
}

/// The responses to the requests of a [`ReadPlan`], by request number.
pub(crate) struct Responses(Vec<Option<FetchResult>>);

impl Responses {
    pub(crate) fn set(&mut self, request: usize, result: FetchResult) {
        if let Some(response) = self.0.get_mut(request) {
            *response = Some(result);
        }
    }

    /// Returns the first error among the responses so far.
    pub(crate) fn first_error(&self) -> Option<&ReadError> {
        let mut errors = self.0.iter().flatten();
        errors.find_map(|result| result.as_ref().err())
    }
}

/// The cause of a read whose request never got a response.
#[derive(Debug, thiserror::Error)]
#[error("the request was interrupted before its response arrived")]
struct NoResponse;
