//! Work that would hold up the threads that wait for the network.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use tokio::{runtime::Handle, sync::oneshot, task::JoinError};

/// Nobody finished the work: it panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the work was cut off")]
pub(crate) struct CutOff;

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
/// [`CutOff`].
pub(crate) async fn spread<T: Send + 'static, R: Send + 'static>(
    heavy: bool,
    items: Vec<T>,
    work: impl Fn(T) -> R + Send + Sync + 'static,
) -> Result<Vec<R>, CutOff> {
    match heavy {
        true => on_all_cores(items, work).await,
        false => Ok(items.into_iter().map(work).collect()),
    }
}

/// Does `work` on each of `items`, in order, and adds up what each says it took: here, one
/// after the other, while what is left would take less than `enough`, and that on all cores
/// otherwise. To wake another thread takes as long as to read and decode some small files.
///
/// # Errors
///
/// [`CutOff`].
pub(crate) async fn spread_rest<T: Send + 'static, R: Send + 'static>(
    items: Vec<T>,
    enough: usize,
    work: impl Fn(T) -> (R, usize) + Send + Sync + 'static,
) -> Result<Vec<R>, CutOff> {
    let mut done = Vec::with_capacity(items.len());
    let mut items = items.into_iter();
    let mut took = 0_usize;
    loop {
        let left = items.len();
        let each = took.checked_div(done.len()).unwrap_or(0);
        if left > 1 && each.saturating_mul(left) >= enough {
            break;
        }
        let Some(item) = items.next() else {
            return Ok(done);
        };
        let (result, effort) = work(item);
        took = took.saturating_add(effort);
        done.push(result);
    }
    done.extend(on_all_cores(items.collect(), move |item| work(item).0).await?);
    Ok(done)
}

/// Does `work` on each of `items`, in order, on all cores.
async fn on_all_cores<T: Send + 'static, R: Send + 'static>(
    items: Vec<T>,
    work: impl Fn(T) -> R + Send + Sync + 'static,
) -> Result<Vec<R>, CutOff> {
    let all = move || items.into_par_iter().map(work).collect();
    // Who waits on a thread of rayon is one of those that do the work.
    if rayon::current_thread_index().is_some() {
        return Ok(all());
    }
    let (sender, receiver) = oneshot::channel();
    rayon::spawn(move || {
        // A panic that leaves a task of rayon ends the program.
        if let Ok(all) = catch_unwind(AssertUnwindSafe(all)) {
            // An error is that nobody waits any more.
            let _ = sender.send(all);
        }
    });
    receiver.await.map_err(|_| CutOff)
}

/// Runs `work` beside what waits for the store: on a thread of its own where there
/// is a runtime, here otherwise. `None` when the runtime is shutting down or the
/// work panicked.
pub async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    off_thread(true, work).await.ok()
}
