//! The cost of one query.

use std::collections::{BTreeMap, BTreeSet};

use core::ops::{ControlFlow, Range};
use zvf::{OpenOptions, Query, QueryResult};
use zvf_catalog::{Catalog, LevelCache};
use zvf_model::fetch::Port;
use zvf_query::{Counts, QueryError, Session};
use zvf_store::{ByteRange, Read};

use super::{
    Files, opened,
    rounds::{CallKind, PortCall, Rounds},
};
use crate::block_on;

/// A named query.
#[derive(Clone, Debug)]
pub(super) struct QueryCase {
    pub(super) name: &'static str,
    pub(super) query: Query,
    /// Count instead of query.
    pub(super) counts: bool,
}

/// The result.
#[derive(Debug, PartialEq)]
pub(super) enum Found {
    QueryResult(Box<QueryResult>),
    Counts(Counts),
}

/// The requests of a query.
#[derive(Debug)]
pub(super) struct Cost {
    pub(super) found: Found,
    /// Requests of opening the store.
    pub(super) open: Vec<Read>,
    /// Requests for metadata, after opening only the store.
    pub(super) metadata: Vec<Read>,
    pub(super) lists: Vec<String>,
    /// Requests for cells, by round, with all metadata cached.
    pub(super) data: BTreeMap<usize, Vec<Read>>,
}

impl QueryCase {
    async fn run(&self, session: Session<'_>) -> Result<Found, QueryError> {
        if self.counts {
            return Box::pin(session.count(&self.query))
                .await
                .map(Found::Counts);
        }
        let result = Box::pin(session.query(&self.query)).await?;
        Ok(Found::QueryResult(Box::new(result)))
    }

    /// Runs the query twice: on a newly opened store, and with all metadata cached.
    pub(super) fn cost(&self, files: &Files, options: &OpenOptions) -> Cost {
        let (dataset, open) = opened(files, options);
        let cold = Rounds::of(&dataset, false);
        let catalog = Catalog {
            fetch: Port::new(&cold),
            ..dataset.catalog()
        };
        let found =
            block_on(self.run(Session::new(catalog))).unwrap_or_else(|e| panic!("{self:?}: {e:?}"));
        let (mut metadata, mut lists, mut cold_data) = (Vec::new(), Vec::new(), Vec::new());
        for call in cold.take() {
            match call.what {
                CallKind::Nodes => metadata.extend(call.reads),
                CallKind::List(key) => lists.push(key.to_string()),
                CallKind::Cells => cold_data.extend(call.reads),
                CallKind::Sizes => {}
            }
        }
        let warm = Rounds::of(&dataset, true);
        let levels = LevelCache::default();
        let catalog = Catalog {
            fetch: Port::new(&warm),
            levels: &levels,
            ..catalog
        };
        let again = block_on(self.run(Session::new(catalog)));
        assert_eq!(again.unwrap(), found);
        let mut data: BTreeMap<usize, Vec<Read>> = BTreeMap::new();
        for PortCall { round, what, reads } in warm.take() {
            if what == CallKind::Cells && !reads.is_empty() {
                data.entry(round).or_default().extend(reads);
            }
        }
        metadata.sort_by(order);
        lists.sort();
        cold_data.sort_by(order);
        for reads in data.values_mut() {
            reads.sort_by(order);
        }
        let mut warm_data = data.values().flatten().cloned().collect::<Vec<_>>();
        warm_data.sort_by(order);
        assert_eq!(cold_data, warm_data, "{self:?}");
        Cost {
            found,
            open,
            metadata,
            lists,
            data,
        }
    }

    /// Returns the result batch by batch.
    pub(super) fn batches(&self, dataset: &zvf::Dataset) -> Result<Vec<QueryResult>, zvf::Error> {
        let mut batches = Vec::new();
        let each = |batch| {
            batches.push(batch);
            ControlFlow::Continue(())
        };
        block_on(dataset.batches(&self.query, each))?;
        Ok(batches)
    }
}

/// Orders reads by key and range.
pub(super) fn order(a: &Read, b: &Read) -> core::cmp::Ordering {
    let start = |read: &Read| match &read.range {
        ByteRange::Full => (0, 0),
        ByteRange::Bounded(range) => (range.start, range.end),
        ByteRange::From(start) => (*start, u64::MAX),
        ByteRange::Suffix(_) => (u64::MAX, u64::MAX),
    };
    (a.key.as_str(), start(a)).cmp(&(b.key.as_str(), start(b)))
}

impl Cost {
    pub(super) fn data(&self) -> impl Iterator<Item = &Read> {
        self.data.values().flatten()
    }

    pub(super) fn all(&self) -> Vec<&Read> {
        let metadata = self.open.iter().chain(&self.metadata);
        metadata.chain(self.data()).collect()
    }

    /// Lists the arrays and groups whose metadata was requested, except the root and the level;
    /// separately, those that do not exist.
    pub(super) fn nodes(&self, files: &Files) -> (Vec<String>, Vec<String>) {
        let keys = self
            .open
            .iter()
            .chain(&self.metadata)
            .map(|read| read.key.to_string())
            .filter(|key| key.matches('/').count() > 1);
        keys.partition(|key| files.contains_key(key))
    }
}

/// Returns the byte range of a read.
pub(super) fn bytes(read: &Read, files: &Files) -> Range<u64> {
    let size = files.get(read.key.as_str()).map_or(0, Vec::len);
    let size = u64::try_from(size).unwrap();
    match &read.range {
        ByteRange::Full => 0..size,
        ByteRange::Bounded(range) => range.start..range.end.min(size),
        ByteRange::From(start) => *start..size,
        ByteRange::Suffix(bytes) => size - bytes..size,
    }
}

/// Adds up the bytes of reads.
pub(super) fn sum<'r>(reads: impl IntoIterator<Item = &'r Read>, files: &Files) -> u64 {
    let sizes = reads.into_iter().map(|read| {
        let bytes = bytes(read, files);
        bytes.end - bytes.start
    });
    sizes.sum()
}

/// Lists objects and ranges that are read more than once.
pub(super) fn read_twice<'r>(
    reads: impl IntoIterator<Item = &'r Read>,
    files: &Files,
) -> Vec<String> {
    let mut seen: BTreeMap<&str, Vec<Range<u64>>> = BTreeMap::new();
    let mut requested = BTreeSet::new();
    let mut twice = Vec::new();
    for read in reads {
        let key = read.key.as_str();
        let range = bytes(read, files);
        // A request for a missing object must not be repeated either.
        let is_absent = !files.contains_key(key);
        let overlaps = |other: &Range<u64>| range.start < other.end && other.start < range.end;
        let ranges = seen.entry(key).or_default();
        if ranges.iter().any(overlaps) || is_absent && !requested.insert(key) {
            twice.push(format!("{key} {range:?}"));
        }
        ranges.push(range);
    }
    twice
}
