//! Asking again where `object_store` does not.

use core::{future::Future, time::Duration};
use std::time::Instant;

/// How often, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tries {
    pub(crate) again: usize,
    pub(crate) within: Duration,
}

impl Tries {
    /// Asks until the answer is whole.
    ///
    /// Without a pause: the server does answer. To one that fails or asks to slow
    /// down, `object_store` has come back by then as often as it may.
    pub(crate) async fn until_whole<T, E, F: Future<Output = Result<T, E>>>(
        self,
        mut ask: impl FnMut() -> F,
        is_broken: impl Fn(&E) -> bool,
    ) -> Result<T, E> {
        let start = Instant::now();
        for _ in 0..self.again {
            match ask().await {
                Err(error) if is_broken(&error) && start.elapsed() < self.within => {}
                done => return done,
            }
        }
        ask().await
    }
}
