//! Reading cells: whole or in part, plain, compressed or in shards.

use core::ops::Range;
use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use tokio::task::JoinError;
use zvf_model::{fetch::Fetched, key::Key};

use crate::{array::CellArray, off_thread::spread, range::Read, read::Budget, store::Store};

mod child;
mod element;
mod error;
mod indexes;

use child::{Blob, Child, Look};
use element::{Delivered, Element, Part, Plan};
use indexes::{Indexes, Known};

pub use error::CellError;

/// A cell to read.
#[derive(Clone, Debug)]
pub struct Cell<'a> {
    /// Its array.
    pub array: &'a CellArray,
    /// Which cell: from 0, one number an axis. In a sharded array this counts
    /// inner chunks.
    pub index: &'a [u64],
    /// The bytes of its payload that are wanted; all when `None`.
    pub part: Option<Range<u64>>,
}

/// Reads cells of any arrays of one store, and keeps the indexes of shards.
///
/// What is written to a shard after its index was read is not seen: take a new
/// reader then. It is the [`Fetch`](zvf_model::fetch::Fetch) of plans.
#[derive(Clone, Debug)]
pub struct CellReader {
    store: Store,
    indexes: Arc<Indexes>,
}

/// Which cell; of a child only the key is known.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    Element(&'a CellArray, &'a [u64]),
    Child(&'a Key),
}

/// The payload of a cell or the wanted part, and the payload's size.
pub(crate) type Answer = Result<Option<Fetched>, CellError>;

/// Bytes from which on decoding is for other threads.
pub(crate) const HEAVY: usize = 64 << 10;

impl CellReader {
    /// A reader of cells of `store`.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            indexes: Arc::default(),
        }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The payloads of cells, in the order asked for; `None` for absent ones
    /// and in arrays without elements.
    ///
    /// The payload is the one byte string of a cell, without its frame, where a
    /// chunk is one element of variable length; the frame where it is several;
    /// and otherwise the elements. One round trip; one more when there are
    /// shards whose index was not read yet. A part of a cell is read alone where
    /// nothing is compressed, together with the frame's header, which is checked
    /// against it. A cell that is asked for twice is read and decoded once.
    ///
    /// # Errors
    ///
    /// The first [`CellError`].
    pub async fn read(&self, cells: &[Cell<'_>]) -> Result<Vec<Option<Bytes>>, CellError> {
        let wanted: Vec<_> = cells
            .iter()
            .map(|cell| (Target::Element(cell.array, cell.index), cell.part.clone()))
            .collect();
        let answers = self.fetch_each(&wanted).await.into_iter();
        answers
            .map(|answer| answer.map(|fetched| fetched.map(|fetched| fetched.bytes)))
            .collect()
    }

    /// Reads one cell.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    pub async fn read_one(&self, cell: Cell<'_>) -> Result<Option<Bytes>, CellError> {
        let mut cells = self.read(&[cell]).await?;
        Ok(cells.pop().flatten())
    }

    /// As [`read`](Self::read), also of children, and each fails alone.
    ///
    /// One round trip more when the chunk of a child has an unusual name.
    pub(crate) async fn fetch_each(&self, wanted: &[(Target<'_>, Part)]) -> Vec<Answer> {
        let (subjects, places) = group(wanted);
        let elements = subjects.iter().filter_map(|(subject, _)| match subject {
            Ok(Subject::Element(element)) => Some(element),
            _ => None,
        });
        let known = self.indexes.of(elements, &self.store).await;
        let mut reads = Vec::new();
        let jobs: Vec<Job> = subjects
            .into_iter()
            .map(|(subject, parts)| Job::plan(subject, parts, &known, &mut reads))
            .collect();
        let mut delivered = self.store.read_each(&reads).await.into_iter();
        let budget = Arc::new(Budget::new(self.store.budget()));
        let mut work = 0_usize;
        let jobs = jobs.into_iter().map(|job| {
            let delivered: Vec<Delivered> = delivered.by_ref().take(job.reads).collect();
            work = work.saturating_add(job.work(&delivered));
            (job, delivered)
        });
        let jobs: Vec<_> = jobs.collect();
        let outcomes = {
            let budget = Arc::clone(&budget);
            let finish = move |(job, delivered): (Job, _)| job.finish(delivered, &budget);
            spread(work >= HEAVY, jobs, finish).await
        };
        let answers = match outcomes {
            Ok(outcomes) => self.look_elsewhere(outcomes, budget).await,
            Err(source) => Err(source),
        };
        let answers = match answers {
            Ok(answers) => answers,
            Err(source) => return interrupted(wanted, source),
        };
        let answer = |(subject, part): (usize, usize)| {
            let answer = answers.get(subject).and_then(|parts| parts.get(part));
            answer.cloned().unwrap_or(Ok(None))
        };
        places.into_iter().map(answer).collect()
    }

    /// Reads the chunks that turned out to have another name.
    async fn look_elsewhere(
        &self,
        outcomes: Vec<Outcome>,
        budget: Arc<Budget>,
    ) -> Result<Vec<Vec<Answer>>, JoinError> {
        let reads = outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Elsewhere(_, _, blob) => Some(blob.read()),
            Outcome::Done(_) => None,
        });
        let reads: Vec<Read> = reads.collect();
        if reads.is_empty() {
            let done = outcomes
                .into_iter()
                .map(|outcome| outcome.finish(None, &budget));
            return Ok(done.collect());
        }
        let mut delivered = self.store.read_each(&reads).await.into_iter();
        let outcomes = outcomes.into_iter().map(|outcome| {
            let chunk = match &outcome {
                Outcome::Done(_) => None,
                Outcome::Elsewhere(..) => delivered.next(),
            };
            (outcome, chunk)
        });
        let finish = move |(outcome, chunk): (Outcome, _)| outcome.finish(chunk, &budget);
        spread(true, outcomes.collect(), finish).await
    }
}

/// The answers when nobody waits for what was to be decoded.
fn interrupted(wanted: &[(Target<'_>, Part)], source: JoinError) -> Vec<Answer> {
    let source: Arc<dyn core::error::Error + Send + Sync> = Arc::new(source);
    let answer = |(target, _): &(Target<'_>, Part)| {
        let key = match *target {
            Target::Element(array, _) => array.node(),
            Target::Child(key) => key,
        };
        Err(CellError::Interrupted {
            key: key.clone(),
            source: Arc::clone(&source),
        })
    };
    wanted.iter().map(answer).collect()
}

/// What parts are wanted of.
enum Subject {
    Element(Element),
    Child(Child),
}

/// The parts wanted of each cell, and for each wish its cell and its place
/// among the cell's parts.
type Grouped = (
    Vec<(Result<Subject, CellError>, Vec<Part>)>,
    Vec<(usize, usize)>,
);

/// Brings together what is wanted of the same cell.
fn group(wanted: &[(Target<'_>, Part)]) -> Grouped {
    #[derive(PartialEq, Eq, Hash)]
    enum Same<'a> {
        Element(usize, &'a [u64]),
        Child(&'a Key),
    }
    let mut numbers: HashMap<Same<'_>, usize> = HashMap::new();
    let (mut subjects, mut places) = (Vec::new(), Vec::with_capacity(wanted.len()));
    for (target, part) in wanted {
        let same = match *target {
            // Clones of an array share their description.
            Target::Element(array, index) => {
                Same::Element(Arc::as_ptr(array.description()).addr(), index)
            }
            Target::Child(key) => Same::Child(key),
        };
        let number = *numbers.entry(same).or_insert(subjects.len());
        if number == subjects.len() {
            let subject = match *target {
                Target::Element(array, index) => {
                    Element::new(array.description(), index).map(Subject::Element)
                }
                Target::Child(key) => Child::new(key).map(Subject::Child),
            };
            subjects.push((subject, Vec::new()));
        }
        if let Some((_, parts)) = subjects.get_mut(number) {
            places.push((number, parts.len()));
            parts.push(part.clone());
        }
    }
    (subjects, places)
}

/// A cell whose reads are planned.
struct Job {
    what: Planned,
    parts: Vec<Part>,
    /// How many reads it put down.
    reads: usize,
}

enum Planned {
    Refused(CellError),
    Element(Element, Plan),
    Child(Child),
}

enum Outcome {
    /// An answer to each part.
    Done(Vec<Answer>),
    Elsewhere(Child, Vec<Part>, Blob),
}

impl Job {
    fn plan(
        subject: Result<Subject, CellError>,
        parts: Vec<Part>,
        known: &Known,
        reads: &mut Vec<Read>,
    ) -> Self {
        let before = reads.len();
        let what = match subject {
            Err(error) => Planned::Refused(error),
            Ok(Subject::Element(element)) => {
                let plan = element.plan(&parts, known, reads);
                Planned::Element(element, plan)
            }
            Ok(Subject::Child(child)) => {
                child.plan(reads);
                Planned::Child(child)
            }
        };
        Self {
            what,
            parts,
            reads: reads.len().saturating_sub(before),
        }
    }

    /// How much work it is to decode what was read, in bytes.
    fn work(&self, delivered: &[Delivered]) -> usize {
        let bytes = delivered.iter().flatten().flatten();
        let bytes = bytes.map(Bytes::len).fold(0, usize::saturating_add);
        match &self.what {
            Planned::Element(element, Plan::Whole) => element.work(bytes),
            Planned::Element(..) | Planned::Refused(_) => 0,
            // How it is compressed its metadata say.
            Planned::Child(_) => bytes,
        }
    }

    fn finish(self, delivered: Vec<Delivered>, budget: &Budget) -> Outcome {
        let parts = self.parts;
        let child = match self.what {
            Planned::Refused(error) => {
                return Outcome::Done(parts.iter().map(|_| Err(error.clone())).collect());
            }
            Planned::Element(element, plan) => {
                return Outcome::Done(element.finish(plan, &parts, delivered, budget));
            }
            Planned::Child(child) => child,
        };
        let mut delivered = delivered.into_iter();
        let mut next = || delivered.next().unwrap_or(Ok(None));
        let (metadata, chunk) = (next(), next());
        let payload = match child.look(metadata, chunk) {
            Look::Known(payload) => payload,
            Look::Chunk(blob, chunk) => blob.payload(Ok(Some(chunk)), budget),
            Look::Elsewhere(blob) => return Outcome::Elsewhere(child, parts, blob),
        };
        Outcome::Done(child.answers(&payload, &parts))
    }
}

impl Outcome {
    /// The answers, with the chunk that was read where there is one.
    fn finish(self, chunk: Option<Delivered>, budget: &Budget) -> Vec<Answer> {
        match self {
            Self::Done(answers) => answers,
            Self::Elsewhere(child, parts, blob) => {
                let payload = blob.payload(chunk.unwrap_or(Ok(None)), budget);
                child.answers(&payload, &parts)
            }
        }
    }
}
