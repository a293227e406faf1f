//! Reading many parts of many objects at once.

use core::error::Error;
use std::collections::HashMap;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};

use zvf_model::key::Key;

use crate::{
    plan::{Fetched, ObjectPlan},
    range::{ByteRange, Read},
    store::Store,
};

/// Why a read failed. That an object is absent is not among the reasons.
#[derive(Debug, thiserror::Error)]
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
        source: Box<dyn Error + Send + Sync>,
    },
    /// Who asks may not read this. Some buckets say so of absent objects too.
    #[error("{key}: not permitted")]
    Forbidden {
        /// The object.
        key: Key,
        /// What the store said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store asked to slow down and still did after the last retry.
    #[error("{key}: the store asks to slow down")]
    Throttled {
        /// The object.
        key: Key,
        /// What the store said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store cannot be reached or does not work, after the last retry.
    #[error("{key}: the store is not available")]
    Unavailable {
        /// The object.
        key: Key,
        /// What happened.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Anything else.
    #[error("{key}: cannot be read")]
    Io {
        /// The object.
        key: Key,
        /// What happened.
        source: Box<dyn Error + Send + Sync>,
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
        let budget = Budget::new(self.budget());
        for (read, _) in objects.requests() {
            if let ByteRange::Bounded(range) = &read.range {
                budget.reserve(&read.key, range.end.saturating_sub(range.start))?;
            }
        }
        let requests: Vec<(Read, Slot)> = objects.requests().collect();
        let fetched = stream::iter(requests)
            .map(|(read, slot)| {
                let budget = &budget;
                async move {
                    let fetched = self.fetch(&read, budget).await?;
                    Ok::<_, ReadError>((slot, fetched))
                }
            })
            .buffer_unordered(self.concurrency());
        let fetched: HashMap<Slot, Option<Fetched>> = fetched.try_collect().await?;
        objects.answers(reads, &fetched)
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

/// Object and request within its plan.
type Slot = (usize, usize);

/// The reads, sorted by object.
struct Objects<'a> {
    objects: Vec<(&'a Key, ObjectPlan)>,
    /// For each read its object and its place among that object's reads.
    places: Vec<Slot>,
}

impl<'a> Objects<'a> {
    fn of(reads: &'a [Read], store: &Store) -> Self {
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
        let plan = |(key, ranges): (&'a Key, Vec<&ByteRange>)| {
            let plan = ObjectPlan::new(ranges.iter().copied(), store.merge_limits());
            (key, plan)
        };
        Self {
            objects: keys.into_iter().map(plan).collect(),
            places,
        }
    }

    fn requests(&self) -> impl Iterator<Item = (Read, Slot)> {
        let objects = self.objects.iter().enumerate();
        objects.flat_map(|(object, (key, plan))| {
            let requests = plan.requests.iter().enumerate();
            requests
                .map(move |(at, range)| (Read::new((*key).clone(), range.clone()), (object, at)))
        })
    }

    fn answers(
        &self,
        reads: &[Read],
        fetched: &HashMap<Slot, Option<Fetched>>,
    ) -> Result<Vec<Option<Bytes>>, ReadError> {
        let answer = |(read, (object, place)): (&Read, &Slot)| {
            let plan = self.objects.get(*object).map(|(_, plan)| plan);
            let request = plan.and_then(|plan| plan.request_of.get(*place).copied().flatten());
            let Some(request) = request else {
                return Ok(Some(Bytes::new()));
            };
            let Some(Some(fetched)) = fetched.get(&(*object, request)) else {
                return Ok(None);
            };
            let cut = fetched.cut(&read.range);
            let cut = cut.ok_or_else(|| ReadError::Truncated {
                key: read.key.clone(),
                wanted: read.range.clone(),
                size: Some(fetched.size),
            })?;
            Ok(Some(cut))
        };
        reads.iter().zip(&self.places).map(answer).collect()
    }
}
