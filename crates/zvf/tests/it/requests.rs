//! The cost of queries: requests, bytes, and dependent round trips.

mod batches;
mod cases;
mod concurrency;
mod cost;
mod explained;
mod kept;
mod kinds;
mod logs;
mod recorded;
mod rounds;
mod sealed;
pub(crate) mod snapshot;
mod unlisted;
mod wide;

use std::collections::BTreeMap;

use zvf::{Dataset, OpenOptions};
use zvf_store::Read;

use crate::block_on;

/// Files of a store by key.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Opens a store in memory that records requests. Returns the requests of opening.
fn opened(files: &Files, options: &OpenOptions) -> (Dataset, Vec<Read>) {
    let files = files
        .iter()
        .map(|(key, bytes)| (key.clone(), bytes.clone()));
    let store = options
        .clone()
        .record_requests(true)
        .from_memory(files)
        .unwrap();
    let dataset = block_on(Dataset::open(store)).unwrap();
    let log = dataset.store().take_request_log();
    (dataset, log)
}
