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
    // What takes nothing says nothing of what is left.
    let (mut took, mut worked) = (0_usize, 0_usize);
    loop {
        let left = items.len();
        let each = took.checked_div(worked).unwrap_or(0);
        if left > 1 && each.saturating_mul(left) >= enough {
            break;
        }
        let Some(item) = items.next() else {
            return Ok(done);
        };
        let (result, effort) = work(item);
        took = took.saturating_add(effort);
        worked = worked.saturating_add(usize::from(effort > 0));
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
    on_a_core(move || items.into_par_iter().map(work).collect()).await
}

/// Does `work` on a thread of rayon, of which there is one for each core.
async fn on_a_core<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CutOff> {
    // Who waits on a thread of rayon is one of those that do the work.
    if rayon::current_thread_index().is_some() {
        return Ok(work());
    }
    let (sender, receiver) = oneshot::channel();
    rayon::spawn(move || {
        // A panic that leaves a task of rayon ends the program.
        if let Ok(done) = catch_unwind(AssertUnwindSafe(work)) {
            // An error is that nobody waits any more.
            let _ = sender.send(done);
        }
    });
    receiver.await.map_err(|_| CutOff)
}

/// Runs `work`, which keeps a core busy, when one is free. `None` when it panicked.
///
/// Threads keep what encoders need, so it is not for threads of which there are many.
pub async fn spawn_cpu<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    on_a_core(work).await.ok()
}

/// Runs `work` beside what waits for the store: on a thread of its own where there
/// is a runtime, here otherwise. `None` when the runtime is shutting down or the
/// work panicked.
pub async fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    off_thread(true, work).await.ok()
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    };

    use super::*;

    /// How many of so many items that take as much are done before others are woken.
    fn done_here(items: usize, effort: impl Fn(usize) -> usize + Send + Sync + 'static) -> usize {
        let here = std::thread::current().id();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let work = move |item| {
            if std::thread::current().id() == here {
                counted.fetch_add(1, Relaxed);
            }
            (item, effort(item))
        };
        let all = spread_rest((0..items).collect(), 100, work);
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let all = runtime.unwrap().block_on(all).unwrap();
        assert!(all.into_iter().eq(0..items), "in order");
        count.load(Relaxed)
    }

    #[test]
    fn others_are_woken_for_what_is_worth_it_alone() {
        assert_eq!(done_here(1000, |_| 0), 1000, "nothing to do");
        assert_eq!(done_here(10, |_| 10), 10, "soon done");
        assert_eq!(done_here(1000, |_| 10), 1, "much");
        // What was at hand comes first, and does not hide what is left.
        assert_eq!(done_here(1000, |item| if item < 500 { 0 } else { 10 }), 501);
    }
}
