//! Every recorded store opened and counted, and stores that cannot be opened.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic is how a test fails"
)]

mod budget;
mod convention;
mod damage;
mod documented;
mod draco;
mod drafts;
mod extras;
mod fetch;
mod fetch_dataset;
mod futures;
mod golden;
mod golden_reads;
mod hostile;
#[cfg(unix)]
mod killed;
mod links;
mod meaning;
mod migrated;
mod node_copies;
mod objects;
mod open;
mod opening;
mod oracle;
mod padded;
mod predicates;
mod pyramids;
mod requests;
#[cfg(all(feature = "aws", feature = "azure", feature = "gcp", feature = "http"))]
mod servers;
mod snapshots;
mod stores;
mod sweeps;
mod tables;
mod tasks;
mod validated;
#[cfg(feature = "http")]
mod web;
mod winding;
mod written;

/// Runs a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}
