//! Damaged stores: a query returns an error that names the key, or the correct result; never a
//! silently different one.

mod any;
mod bombs;
pub(crate) mod expected;
mod files;
mod flips;
mod recorded;
pub(crate) mod sealed;
mod subset;

use zvf::{Dataset, Error, OpenOptions, Query, QueryResult};
use zvf_model::error_chain::error_chain;
use zvf_testkit::golden::Golden;

/// Keys and bytes of a store.
pub(crate) type Files = Vec<(String, Vec<u8>)>;

/// Returns the files of a recorded store.
fn files(golden: &Golden, store: &str) -> Files {
    let prefix = format!("{store}/");
    let files = golden.files();
    let below = files.filter_map(|(path, bytes)| {
        let key = path.strip_prefix(&prefix)?;
        Some((key.to_owned(), bytes.to_vec()))
    });
    let files: Files = below.collect();
    assert!(!files.is_empty(), "{store}");
    files
}

pub(crate) async fn open(files: &Files) -> Result<Dataset, Error> {
    let files = files.iter().cloned();
    let store = OpenOptions::default().from_memory(files).unwrap();
    Dataset::open(store).await
}

/// A query result, or the text of its error.
pub(crate) type QueryOutcome = Result<QueryResult, String>;

pub(crate) async fn run(dataset: &Dataset, query: &Query) -> QueryOutcome {
    let result = dataset.query(query).await;
    result.map_err(|error| error_chain(&error))
}

/// Returns whether two results are equal except for notes about known defects.
pub(crate) fn is_same(one: &QueryResult, other: &QueryResult) -> bool {
    let plain = |result: &QueryResult| {
        let mut result = result.clone();
        result.notes.clear();
        result
    };
    plain(one) == plain(other)
}
