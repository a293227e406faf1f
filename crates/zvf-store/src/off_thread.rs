//! Work that would hold up the threads that wait for the network.

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use tokio::{runtime::Handle, task::JoinError};

/// Runs `work` on a thread of its own when it is `heavy` and there is a
/// runtime to spare one, here otherwise.
///
/// # Errors
///
/// When the runtime is shutting down or the work panicked.
pub(crate) async fn off_thread<T: Send + 'static>(
    heavy: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    match Handle::try_current() {
        Ok(runtime) if heavy => runtime.spawn_blocking(work).await,
        _ => Ok(work()),
    }
}

/// Does `work` on each of `items`, in order: on all cores, and beside what waits
/// for the network, when it is `heavy`; here, one after the other, otherwise.
///
/// # Errors
///
/// As for [`off_thread`].
pub(crate) async fn spread<T: Send + 'static, R: Send + 'static>(
    heavy: bool,
    items: Vec<T>,
    work: impl Fn(T) -> R + Send + Sync + 'static,
) -> Result<Vec<R>, JoinError> {
    if !heavy {
        return Ok(items.into_iter().map(work).collect());
    }
    off_thread(true, move || items.into_par_iter().map(work).collect()).await
}

/// Runs `work` beside what waits for the store: on a thread of its own where there
/// is a runtime, here otherwise. `None` when the runtime is shutting down or the
/// work panicked.
pub async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    off_thread(true, work).await.ok()
}
