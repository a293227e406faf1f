//! Every recorded store opened and counted, and stores that cannot be.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic is how a test fails"
)]

mod golden;
mod hostile;
mod open;
mod padded;
#[cfg(all(feature = "aws", feature = "azure", feature = "gcp", feature = "http"))]
mod servers;

/// Runs a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}
