//! Simulated network latency, for tests and measurements.

use core::time::Duration;

/// The latency and bandwidth of a simulated network.
///
/// Requests wait by [`tokio::time::sleep`]. On a runtime with a paused clock no time passes, and
/// the clock tells how long the requests would have taken.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct SimulatedNetwork {
    /// Time until the first byte of a response.
    pub latency: Duration,
    /// Bytes per second of each response; 0 for unlimited.
    pub bandwidth: u64,
}

impl SimulatedNetwork {
    /// Waits as long as a response of `bytes` bytes takes.
    pub(crate) async fn wait(self, bytes: u64) {
        let nanos = bytes.saturating_mul(1_000_000_000);
        let body = Duration::from_nanos(nanos.checked_div(self.bandwidth).unwrap_or(0));
        tokio::time::sleep(self.latency.saturating_add(body)).await;
    }
}
