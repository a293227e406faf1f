//! A store as if it were far away: for tests and measurements.

use core::time::Duration;

/// How far away a store is made to be.
///
/// Requests wait by [`tokio::time::sleep`]: on a runtime whose clock is paused no time
/// passes, and the clock tells how long it would have been.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct SimulatedNetwork {
    /// Until the first byte of an answer.
    pub latency: Duration,
    /// Bytes a second of each answer; 0 when they take no time.
    pub bandwidth: u64,
}

impl SimulatedNetwork {
    /// Waits as long as an answer of so many bytes takes.
    pub(crate) async fn wait(self, bytes: u64) {
        let nanos = bytes.saturating_mul(1_000_000_000);
        let body = Duration::from_nanos(nanos.checked_div(self.bandwidth).unwrap_or(0));
        tokio::time::sleep(self.latency.saturating_add(body)).await;
    }
}
