//! `EXPLAIN`: the operators of a query with the requests they would make, or made.

mod analysis;
mod dry_run;

use core::fmt;
use std::collections::BTreeMap;

use zvf_catalog::Diagnostics;
use zvf_model::{
    fetch::{BoxFuture, FetchProblem},
    key::Key,
    level::LevelId,
};

use crate::{
    error::QueryError,
    exec::operator::OperatorText,
    query::{LevelChoice, Query},
    result::LevelUse,
    session::Session,
};

use dry_run::{DryRun, RecordedRead};

/// The plan of a query: its operators and the data that they would read.
///
/// Making a plan reads metadata and lists the sizes of objects; with a budget, it also reads
/// fragment indexes to count vertices. The requests of the first round trip are exact; later
/// requests depend on its data and are only described.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// Contribution of each level, as in [`QueryResult::levels`](crate::QueryResult::levels); empty
    /// for queries without a budget. The requests that count vertices for a budget are not included
    /// in this plan.
    pub levels: Vec<LevelUse>,
    /// `true` if the counts of `levels` are exact except for filters and limits, `false` if they
    /// are estimates.
    pub is_exact: bool,
    /// Requests of the first round trip in all levels, by array.
    pub first: Vec<Reads>,
    /// Descriptions of the later round trips, in order.
    pub then: Vec<&'static str>,
    /// The operators of the plan, each before its inputs.
    pub operators: Vec<OperatorReport>,
    /// Total size in bytes of the cells that the first round trip reads from: an upper bound on its
    /// bytes, which are fewer where parts of cells are read. `None` if the store cannot list.
    pub at_most: Option<u64>,
    /// Remarks, such as levels skipped because they are out of date.
    pub notes: Vec<String>,
}

/// An operator of a plan and what it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperatorReport {
    /// The level that the operator reads.
    pub level: LevelId,
    /// Distance from the root of the plan.
    pub depth: usize,
    /// The name of the operator.
    pub name: &'static str,
    /// Its parameters, as `key=value, key=value`.
    pub details: String,
    /// Number of requests: those of the first round trip if the plan is explained, all of them if
    /// it is analyzed. An analysis counts cells before adjacent reads are merged.
    pub requests: u64,
    /// Size of these requests in bytes; `None` if the store cannot list.
    pub bytes: Option<u64>,
    /// Number of dependent round trips, without those for metadata.
    pub round_trips: u64,
}

/// The operator and its parameters on one line, indented by its depth, with what it reads.
impl fmt::Display for OperatorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indent = self.depth.saturating_mul(2);
        write!(f, "{:indent$}{}", "", self.name)?;
        if !self.details.is_empty() {
            write!(f, ": {}", self.details)?;
        }
        if self.requests == 0 {
            return Ok(());
        }
        write!(f, " [requests={}", self.requests)?;
        match self.bytes {
            Some(bytes) => write!(f, ", bytes={bytes}")?,
            None => f.write_str(", bytes=?")?,
        }
        write!(f, ", round_trips={}]", self.round_trips)
    }
}

/// Requests for one array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reads {
    /// The array, or its parent where each chunk has an array of its own.
    pub array: Key,
    /// Number of requested objects.
    pub requests: u64,
    /// Size in bytes; `None` if the store cannot list.
    pub bytes: Option<u64>,
}

impl OperatorReport {
    /// Creates the report of an operator before its reads are known.
    fn new(level: LevelId, text: &OperatorText) -> Self {
        Self {
            level,
            depth: text.depth,
            name: text.name,
            details: text.details.clone(),
            ..Self::default()
        }
    }
}

impl Explanation {
    /// Returns the number of requests of the first round trip.
    pub fn requests(&self) -> u64 {
        self.first.iter().map(|reads| reads.requests).sum()
    }

    /// Returns the size of the first round trip in bytes; `None` if the store cannot list.
    pub fn bytes(&self) -> Option<u64> {
        self.first.iter().map(|reads| reads.bytes).sum()
    }
}

impl Session<'_> {
    /// Plans a query and returns the operators and requests without reading data.
    ///
    /// # Errors
    ///
    /// [`QueryError`] when the query is invalid for the store.
    pub fn explain<'f>(
        &'f self,
        query: &'f Query,
    ) -> BoxFuture<'f, Result<Explanation, QueryError>> {
        Box::pin(async move {
            let outcome = self.explain_unconfirmed(query).await;
            self.confirmed(outcome).await
        })
    }

    async fn explain_unconfirmed(&self, query: &Query) -> Result<Explanation, QueryError> {
        let diagnostics = Diagnostics::new(query.keep_going);
        let chosen = self.choose(query, &diagnostics).await?;
        let parts = chosen.alternatives.first().map_or(&[][..], Vec::as_slice);
        let mut runs = Vec::with_capacity(parts.len());
        for part in parts {
            let query = part.query(query);
            runs.push(ExplainedLevel {
                level: part.level,
                run: self.dry_run(&query, false).await?,
                whole: self.dry_run(&query, true).await?.requested,
            });
        }
        let levels = parts.iter().map(|part| {
            let counts = part.counted.iter().map(|(_, count)| *count);
            LevelUse {
                level: part.level,
                vertices: counts.fold(0, u64::saturating_add),
                chunks: part.counted.clone(),
            }
        });
        let has_budget = matches!(query.level, LevelChoice::Budget(_));
        let requested = || runs.iter().flat_map(|level| &level.run.requested);
        let whole = || runs.iter().flat_map(|level| &level.whole);
        let sizes = Sizes::of(self, requested().chain(whole())).await?;
        let mut first: BTreeMap<Key, Reads> = BTreeMap::new();
        for (object, parts) in by_object(requested()) {
            let array = array_of(object);
            let reads = first.entry(array.clone()).or_insert(Reads {
                array,
                requests: 0,
                bytes: Some(0),
            });
            reads.requests = reads.requests.saturating_add(1);
            let bytes = parts.or_else(|| sizes.of_object(object));
            reads.bytes = reads.bytes.zip(bytes).map(|(a, b)| a.saturating_add(b));
        }
        let at_most = by_object(whole())
            .into_keys()
            .map(|object| sizes.of_object(object))
            .sum();
        let reports = runs.iter().flat_map(|level| level.reports(&sizes));
        let mut then = Vec::new();
        for what in runs.iter().flat_map(ExplainedLevel::later_reads) {
            if !then.contains(&what) {
                then.push(what);
            }
        }
        Ok(Explanation {
            levels: levels.filter(|_| has_budget).collect(),
            is_exact: chosen.is_exact,
            notes: diagnostics.finish().1,
            then,
            operators: reports.collect(),
            first: first.into_values().collect(),
            at_most,
        })
    }
}

/// The plan of a query on one level, and the requests of its first round trip.
struct ExplainedLevel {
    level: LevelId,
    run: DryRun,
    /// The requests of a run that reads no cell in part.
    whole: Vec<RecordedRead>,
}

impl ExplainedLevel {
    /// Returns the later round trips, those of the inputs of an operator before its own.
    fn later_reads(&self) -> impl Iterator<Item = &'static str> {
        let in_part = self.run.requested.len() < self.whole.len();
        let operators = self.run.operators.iter().rev();
        let later = operators
            .flat_map(|operator| &operator.later)
            .filter(move |read| in_part || read.is_always);
        later.map(|read| read.what)
    }

    /// Returns the operators with the requests of each.
    fn reports(&self, sizes: &Sizes) -> impl Iterator<Item = OperatorReport> {
        self.run.operators.iter().map(|operator| {
            let requested = self.run.requested.iter();
            let own = requested.filter(|read| read.operator == Some(operator.name));
            let own = by_object(own);
            let requests = u64::try_from(own.len()).unwrap_or(u64::MAX);
            let round_trips = u64::from(!own.is_empty());
            let bytes = own
                .into_iter()
                .map(|(key, part)| part.or_else(|| sizes.of_object(key)));
            OperatorReport {
                requests,
                bytes: bytes.sum(),
                round_trips,
                ..OperatorReport::new(self.level, operator)
            }
        })
    }
}

/// Groups requests by object and sums the sizes of their parts; `None` for a whole object.
fn by_object<'a>(
    requested: impl IntoIterator<Item = &'a RecordedRead>,
) -> BTreeMap<&'a Key, Option<u64>> {
    let mut objects: BTreeMap<&Key, Option<u64>> = BTreeMap::new();
    for read in requested {
        let part = read.bytes;
        objects
            .entry(&read.object)
            .and_modify(|parts| *parts = parts.zip(part).map(|(a, b)| a.saturating_add(b)))
            .or_insert(part);
    }
    objects
}

/// Returns the array of an object, or the parent of the array where each chunk has an array of
/// its own.
fn array_of(object: &Key) -> Key {
    let path = object.as_str();
    let path = path.split_once("/c/").map_or(path, |(array, _)| array);
    let path = path.strip_suffix("/zarr.json").unwrap_or(path);
    let is_chunk = |name: &str| {
        name.split('.').all(|number| number.parse::<i64>().is_ok()) && path.contains('/')
    };
    let path = match path.rsplit_once('/') {
        Some((parent, name)) if is_chunk(name) && parent.contains('/') => parent,
        _ => path,
    };
    Key::parse(path).unwrap_or_else(|_| object.clone())
}

/// Sizes of objects; empty if the store cannot list.
struct Sizes(BTreeMap<Key, u64>);

impl Sizes {
    async fn of<'k>(
        session: &Session<'_>,
        requested: impl Iterator<Item = &'k RecordedRead>,
    ) -> Result<Self, QueryError> {
        let mut keys: Vec<Key> = requested.map(|read| read.object.clone()).collect();
        keys.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        keys.dedup();
        match session.catalog.fetch.sizes(&keys).await {
            Ok(sizes) => {
                let sizes = keys
                    .into_iter()
                    .zip(sizes)
                    .map(|(key, size)| (key, size.unwrap_or(0)));
                Ok(Self(sizes.collect()))
            }
            Err(error) if error.problem == FetchProblem::Unlistable => Ok(Self(BTreeMap::new())),
            Err(error) => Err(error.into()),
        }
    }

    fn of_object(&self, key: &Key) -> Option<u64> {
        self.0.get(key).copied()
    }
}
