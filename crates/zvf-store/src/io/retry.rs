//! Retries that `object_store` does not make.

use core::{future::Future, time::Duration};
#[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
use std::time::Instant;

#[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
use web_time::Instant;

/// Limits on the number and the duration of retries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryPolicy {
    pub(crate) max_retries: usize,
    /// No retry starts later than this after the first attempt.
    pub(crate) timeout: Duration,
}

impl RetryPolicy {
    /// Repeats `request` while it fails with an error that `is_retryable` accepts.
    ///
    /// There is no pause between attempts, because these are responses that arrived broken from a
    /// server that works. `object_store` has already backed off and retried as often as it may
    /// when a server fails or throttles.
    pub(crate) async fn run<T, E, F: Future<Output = Result<T, E>>>(
        self,
        mut request: impl FnMut() -> F,
        is_retryable: impl Fn(&E) -> bool,
    ) -> Result<T, E> {
        let start = Instant::now();
        for _ in 0..self.max_retries {
            match request().await {
                Err(error) if is_retryable(&error) && start.elapsed() < self.timeout => {}
                result => return result,
            }
        }
        request().await
    }
}
