//! Reading many parts of many objects at once.

use core::{error::Error, pin::pin};
use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};

use zvf_model::key::Key;

use crate::{
    plan::{Fetched, ObjectPlan},
    range::{ByteRange, Read},
    store::Store,
};

/// Why a read failed. That an object is absent is not among the reasons.
///
/// Cloning is cheap: a request that fails may have been for several reads.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The object ends before what was asked for does.
    #[error("{key}: the object ends before {wanted}")]
    Truncated {
        /// The object.
        key: Key,
        /// What was asked for.
        wanted: ByteRange,
        /// The object's size, where the store told it.
        size: Option<u64>,
    },
    /// More bytes than the budget allows. Nothing was reserved for them.
    #[error("{key}: {size} bytes more are over the memory budget of {budget}")]
    OverBudget {
        /// The object that was one too many.
        key: Key,
        /// Bytes it would have added.
        size: u64,
        /// The store's budget for one call.
        budget: u64,
    },
    /// The store wants to know who asks.
    #[error("{key}: not authenticated")]
    Unauthenticated {
        /// The object.
        key: Key,
        /// What the store said.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// Who asks may not read this. Some buckets say so of absent objects too.
    #[error("{key}: not permitted")]
    Forbidden {
        /// The object.
        key: Key,
        /// What the store said.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The store asked to slow down and still did after the last retry.
    #[error("{key}: the store asks to slow down")]
    Throttled {
        /// The object.
        key: Key,
        /// What the store said.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The store cannot be reached or does not work, after the last retry.
    #[error("{key}: the store is not available")]
    Unavailable {
        /// The object.
        key: Key,
        /// What happened.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// Anything else.
    #[error("{key}: cannot be read")]
    Io {
        /// The object.
        key: Key,
        /// What happened.
        source: Arc<dyn Error + Send + Sync>,
    },
}

impl ReadError {
    /// The key of the object.
    pub fn key(&self) -> &Key {
        match self {
            Self::Truncated { key, .. }
            | Self::OverBudget { key, .. }
            | Self::Unauthenticated { key, .. }
            | Self::Forbidden { key, .. }
            | Self::Throttled { key, .. }
            | Self::Unavailable { key, .. }
            | Self::Io { key, .. } => key,
        }
    }

    /// Whether what is there is damaged: asking again gives the same.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Truncated { .. } => true,
            // An entry of a zip file that does not inflate.
            Self::Io { source, .. } => source
                .downcast_ref::<std::io::Error>()
                .is_some_and(|io| io.kind() == std::io::ErrorKind::InvalidData),
            _ => false,
        }
    }

    /// As the error of one of the reads that the request was for.
    fn of(&self, read: &Read) -> Self {
        match self {
            Self::Truncated { size, .. } => Self::Truncated {
                key: read.key.clone(),
                wanted: read.range.clone(),
                size: *size,
            },
            other => other.clone(),
        }
    }

    /// Whether asking again later may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Throttled { .. } | Self::Unavailable { .. })
    }
}

impl Store {
    /// Reads parts of objects: one round trip, however many.
    ///
    /// The answers are in the order of `reads`; `None` is an absent object.
    /// Equal reads are fetched once, near ones of an object in one request, and
    /// no object's size is asked for before. An empty range is answered without
    /// asking, whether or not the object is there.
    ///
    /// # Errors
    ///
    /// The first [`ReadError`]. A range past the end of its object is one:
    /// there are never fewer bytes than asked for.
    pub async fn read(&self, reads: &[Read]) -> Result<Vec<Option<Bytes>>, ReadError> {
        let objects = Objects::of(reads, self);
        let budget = Arc::new(Budget::new(self.budget()));
        let (requests, mut fetched) = objects.admit(&budget);
        if let Some(Err(error)) = fetched.iter().flatten().next() {
            return Err(error.clone());
        }
        let mut answers = pin!(self.fetches(requests, &budget));
        while let Some((at, answer)) = answers.next().await {
            put(&mut fetched, at, Ok(answer?));
        }
        objects.answers(reads, &fetched).collect()
    }

    /// As [`read`](Self::read), but each read fails alone.
    ///
    /// A request that fails does so for all the reads it was to answer. Within
    /// the budget it is first come, first served: what does not fit is not
    /// asked for.
    pub async fn read_each(&self, reads: &[Read]) -> Vec<Result<Option<Bytes>, ReadError>> {
        let objects = Objects::of(reads, self);
        let budget = Arc::new(Budget::new(self.budget()));
        let (requests, mut fetched) = objects.admit(&budget);
        let mut answers = pin!(self.fetches(requests, &budget));
        while let Some((at, answer)) = answers.next().await {
            put(&mut fetched, at, answer);
        }
        objects.answers(reads, &fetched).collect()
    }

    /// Sends requests side by side; their answers as they come.
    fn fetches<'a>(
        &'a self,
        requests: Vec<(Read, Slot)>,
        budget: &'a Arc<Budget>,
    ) -> impl Stream<Item = (Slot, Outcome)> + 'a {
        if let Some(folder) = self.folder() {
            let files = self.fetch_files(folder, requests, Arc::clone(budget));
            return stream::once(files).flat_map(stream::iter).left_stream();
        }
        let requests = stream::iter(requests);
        let answers = requests
            .map(move |(read, slot)| async move { (slot, self.fetch(&read, budget).await) });
        answers.buffer_unordered(self.concurrency()).right_stream()
    }

    /// Reads one part of one object.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    pub async fn read_one(&self, read: Read) -> Result<Option<Bytes>, ReadError> {
        let mut answers = self.read(core::slice::from_ref(&read)).await?;
        Ok(answers.pop().flatten())
    }
}

/// What one call may still read. A part is reserved before memory is.
pub(crate) struct Budget {
    total: u64,
    left: std::sync::atomic::AtomicU64,
}

impl Budget {
    pub(crate) fn new(total: u64) -> Self {
        Self {
            total,
            left: total.into(),
        }
    }

    pub(crate) fn left(&self) -> u64 {
        self.left.load(std::sync::atomic::Ordering::Relaxed)
    }

    pub(crate) fn reserve(&self, key: &Key, size: u64) -> Result<(), ReadError> {
        use std::sync::atomic::Ordering::Relaxed;
        let left = self
            .left
            .try_update(Relaxed, Relaxed, |left| left.checked_sub(size));
        match left {
            Ok(_) => Ok(()),
            Err(_) => Err(ReadError::OverBudget {
                key: key.clone(),
                size,
                budget: self.total,
            }),
        }
    }

    /// Gives back what was reserved for an answer that did not come.
    pub(crate) fn release(&self, size: u64) {
        use std::sync::atomic::Ordering::Relaxed;
        self.left.fetch_add(size, Relaxed);
    }
}

/// The number of a request.
pub(crate) type Slot = usize;

/// What came of a request; `Ok(None)` is an absent object.
pub(crate) type Outcome<T = Fetched> = Result<Option<T>, ReadError>;

pub(crate) fn put(fetched: &mut [Option<Outcome>], at: Slot, answer: Outcome) {
    if let Some(slot) = fetched.get_mut(at) {
        *slot = Some(answer);
    }
}

/// Nobody waited for the answer of a request.
#[derive(Debug, thiserror::Error)]
#[error("reading was interrupted")]
struct Interrupted;

/// The reads, sorted by object.
pub(crate) struct Objects<'a> {
    /// Each with the number of its first request.
    objects: Vec<(&'a Key, ObjectPlan, Slot)>,
    /// For each read its object and its place among that object's reads.
    places: Vec<(usize, usize)>,
}

impl<'a> Objects<'a> {
    pub(crate) fn of(reads: &'a [Read], store: &Store) -> Self {
        let mut numbers: HashMap<&Key, usize> = HashMap::new();
        let mut keys: Vec<(&Key, Vec<&ByteRange>)> = Vec::new();
        let mut places = Vec::with_capacity(reads.len());
        for read in reads {
            let object = *numbers.entry(&read.key).or_insert(keys.len());
            if object == keys.len() {
                keys.push((&read.key, Vec::new()));
            }
            if let Some((_, ranges)) = keys.get_mut(object) {
                places.push((object, ranges.len()));
                ranges.push(&read.range);
            }
        }
        let each = keys.iter().map(|(_, ranges)| ranges.iter().copied());
        let limits = store.merge_limits_of(each);
        let mut next = 0_usize;
        let plan = |(key, ranges): (&'a Key, Vec<&ByteRange>)| {
            let plan = ObjectPlan::new(ranges.iter().copied(), limits);
            let first = next;
            next = next.saturating_add(plan.requests.len());
            (key, plan, first)
        };
        Self {
            objects: keys.into_iter().map(plan).collect(),
            places,
        }
    }

    fn requests(&self) -> impl Iterator<Item = Read> {
        let requests = self.objects.iter();
        requests.flat_map(|(key, plan, _)| {
            let ranges = plan.requests.iter();
            ranges.map(move |range| Read::new((*key).clone(), range.clone()))
        })
    }

    /// The requests that fit the budget, their ranges reserved, and a place for
    /// every answer with the errors of the others.
    pub(crate) fn admit(&self, budget: &Budget) -> (Vec<(Read, Slot)>, Vec<Option<Outcome>>) {
        let (mut admitted, mut fetched) = (Vec::new(), Vec::new());
        for (slot, read) in self.requests().enumerate() {
            let reserved = match &read.range {
                ByteRange::Bounded(range) => {
                    budget.reserve(&read.key, range.end.saturating_sub(range.start))
                }
                // Of these the answer tells the size, and it is reserved then.
                ByteRange::Full | ByteRange::From(_) | ByteRange::Suffix(_) => Ok(()),
            };
            match reserved {
                Ok(()) => {
                    admitted.push((read, slot));
                    fetched.push(None);
                }
                Err(error) => fetched.push(Some(Err(error))),
            }
        }
        (admitted, fetched)
    }

    pub(crate) fn answers(
        &self,
        reads: &[Read],
        fetched: &[Option<Outcome>],
    ) -> impl Iterator<Item = Outcome<Bytes>> {
        let answer = move |(read, (object, place)): (&Read, &(usize, usize))| {
            let request = self.objects.get(*object).and_then(|(_, plan, first)| {
                let request = plan.request_of.get(*place).copied().flatten()?;
                first.checked_add(request)
            });
            let Some(request) = request else {
                return Ok(Some(Bytes::new()));
            };
            let fetched = match fetched.get(request).and_then(Option::as_ref) {
                Some(Ok(Some(fetched))) => fetched,
                Some(Ok(None)) => return Ok(None),
                Some(Err(error)) => return Err(error.of(read)),
                None => {
                    return Err(ReadError::Io {
                        key: read.key.clone(),
                        source: Arc::new(Interrupted),
                    });
                }
            };
            let cut = fetched.cut(&read.range);
            let cut = cut.ok_or_else(|| ReadError::Truncated {
                key: read.key.clone(),
                wanted: read.range.clone(),
                size: Some(fetched.size),
            })?;
            Ok(Some(cut))
        };
        reads.iter().zip(&self.places).map(answer)
    }
}
