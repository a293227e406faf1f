//! Reading cells: whole or in part, plain, compressed or in shards.

use core::ops::Range;
use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use zvf_model::{fetch::Fetched, key::Key};

use crate::{
    array::CellArray,
    off_thread::{CutOff, spread, spread_rest},
    range::Read,
    read::Budget,
    store::Store,
};

mod child;
mod element;
mod error;
mod indexes;
mod job;
mod kept;

use child::Child;
use element::{Delivered, Element, Part};
use indexes::Indexes;
use job::{Done, Job, Outcome};
use kept::Kept;

pub use error::CellError;

/// A cell to read.
#[derive(Clone, Debug)]
pub struct CellRead<'a> {
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
///
/// Cloning is cheap; clones share what is kept.
#[derive(Clone, Debug)]
pub struct CellReader {
    store: Store,
    indexes: Arc<Indexes>,
    kept: Option<Arc<Kept>>,
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
/// Work that is worth waking other threads, in bytes of a compression.
const WORTH_WAKING: usize = 192 << 10;
/// What opening and closing a file is beside that, and reading so many bytes.
const OF_A_FILE: usize = 8 << 10;

/// How much work it was to read a file, in bytes of a compression; none where nothing was read.
fn to_read(delivered: &[Delivered]) -> usize {
    if delivered.is_empty() {
        return 0;
    }
    let bytes = delivered.iter().flatten().flatten().map(Bytes::len);
    bytes.fold(OF_A_FILE, |sum, bytes| sum.saturating_add(bytes / 4))
}

impl CellReader {
    /// A reader of cells of `store`.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            indexes: Arc::default(),
            kept: None,
        }
    }

    /// The same, which also keeps cells that it reads whole, decoded, in so many bytes of
    /// memory: those that nobody asks for again make way. For who only reads: what is written
    /// to a cell after it was read is not seen.
    ///
    /// ```
    /// use zvf_store::{CellReader, OpenOptions};
    ///
    /// let reader = CellReader::new(OpenOptions::default().open("memory:")?).with_cache(64 << 20);
    /// # let _ = reader;
    /// # Ok::<(), zvf_store::OpenError>(())
    /// ```
    #[must_use]
    pub fn with_cache(self, bytes: u64) -> Self {
        Self {
            kept: (bytes > 0).then(|| Arc::new(Kept::new(bytes))),
            ..self
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
    pub async fn read(&self, cells: &[CellRead<'_>]) -> Result<Vec<Option<Bytes>>, CellError> {
        let wanted: Vec<_> = cells
            .iter()
            .map(|cell| (Target::Element(cell.array, cell.index), cell.part.clone()))
            .collect();
        let answers = self.fetch_each(&wanted, true).await.into_iter();
        answers
            .map(|answer| answer.map(|fetched| fetched.map(|fetched| fetched.bytes)))
            .collect()
    }

    /// Reads one cell.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    pub async fn read_one(&self, cell: CellRead<'_>) -> Result<Option<Bytes>, CellError> {
        let mut cells = self.read(&[cell]).await?;
        Ok(cells.pop().flatten())
    }

    /// As [`read`](Self::read), also of children, and each fails alone. Nothing more is
    /// kept unless `keeps`.
    ///
    /// One round trip more when the chunk of a child has an unusual name.
    pub(crate) async fn fetch_each(
        &self,
        wanted: &[(Target<'_>, Part)],
        keeps: bool,
    ) -> Vec<Answer> {
        let (subjects, places) = group(wanted);
        let at_hand = self.at_hand(&subjects);
        let elements = subjects.iter().zip(&at_hand);
        let elements = elements.filter_map(|((subject, _), at_hand)| match subject {
            Ok(Subject::Element(element)) if at_hand.is_none() => Some(element),
            _ => None,
        });
        let known = self.indexes.of(elements, &self.store).await;
        let jobs = subjects.into_iter().zip(at_hand);
        let jobs = jobs.map(|((subject, parts), at_hand)| match (subject, at_hand) {
            (Ok(Subject::Element(element)), Some(payload)) => Job::kept(element, parts, payload),
            (subject, _) => Job::plan(subject, parts, &known),
        });
        let budget = Arc::new(Budget::new(self.store.budget()));
        let kept = self.kept.as_deref().filter(|_| keeps);
        let done = self.work(jobs.collect(), &budget, kept.is_some()).await;
        let answers = match done {
            Ok(done) => {
                let (outcomes, payloads): (Vec<_>, Vec<_>) = done.into_iter().unzip();
                if let Some(kept) = kept {
                    kept.put(payloads.into_iter().flatten());
                }
                self.look_elsewhere(outcomes, budget).await
            }
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

    /// The payloads of cells that were kept.
    fn at_hand(&self, subjects: &[(Result<Subject, CellError>, Vec<Part>)]) -> Vec<Option<Bytes>> {
        let Some(kept) = &self.kept else {
            return vec![None; subjects.len()];
        };
        let places = subjects.iter().map(|(subject, _)| match subject {
            Ok(Subject::Element(element)) => element.place(),
            _ => None,
        });
        kept.get(places)
    }

    /// Reads what jobs need, and does them.
    async fn work(
        &self,
        mut jobs: Vec<Job>,
        budget: &Arc<Budget>,
        keeps: bool,
    ) -> Result<Vec<Done>, CutOff> {
        let budget = Arc::clone(budget);
        if let Some(folder) = self.store.folder()
            && jobs.iter().all(Job::is_apart)
        {
            let (store, folder) = (self.store.clone(), folder.to_owned());
            let bytes = Budget::new(store.budget());
            let work = move |mut job: Job| {
                let reads = job.take_reads();
                let delivered = store.read_here(&folder, &reads, &bytes);
                let work = job.work(&delivered).saturating_add(to_read(&delivered));
                (job.finish(delivered, &budget, keeps), work)
            };
            return spread_rest(jobs, WORTH_WAKING, work).await;
        }
        let counts: Vec<usize> = jobs.iter().map(Job::reads).collect();
        let reads = jobs.iter_mut().flat_map(Job::take_reads);
        let reads: Vec<Read> = reads.collect();
        let mut delivered = self.store.read_each(&reads).await.into_iter();
        let mut work = 0_usize;
        let jobs = jobs.into_iter().zip(counts).map(|(job, reads)| {
            let delivered: Vec<Delivered> = delivered.by_ref().take(reads).collect();
            work = work.saturating_add(job.work(&delivered));
            (job, delivered)
        });
        let jobs: Vec<_> = jobs.collect();
        let finish = move |(job, delivered): (Job, _)| job.finish(delivered, &budget, keeps);
        spread(work >= HEAVY, jobs, finish).await
    }

    /// Reads the chunks that turned out to have another name.
    async fn look_elsewhere(
        &self,
        outcomes: Vec<Outcome>,
        budget: Arc<Budget>,
    ) -> Result<Vec<Vec<Answer>>, CutOff> {
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
fn interrupted(wanted: &[(Target<'_>, Part)], source: CutOff) -> Vec<Answer> {
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
