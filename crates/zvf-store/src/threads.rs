//! CPU-bound and blocking work, kept off the threads that wait for the network.
//!
//! Blocking work runs on the blocking threads of tokio, CPU-bound work on the threads of rayon, of
//! which there is one for each core. Without a tokio runtime, blocking work runs on the caller.

use core::pin::Pin;
use std::{
    io, mem,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use rayon::{
    ThreadPoolBuilder,
    iter::{IntoParallelIterator, ParallelIterator},
};
use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
    task::{JoinError, JoinHandle},
};

/// The error of work that panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the task panicked")]
pub(crate) struct TaskPanicked;

/// Reason that blocking work has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BlockingError {
    /// The runtime is shutting down, or the work panicked.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The task ended without a result.
    #[error("the task ended without a result")]
    NoResult,
}

/// Runs `work` on a blocking thread, or on the calling thread where there is no runtime.
///
/// # Errors
///
/// [`BlockingError`].
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, BlockingError> {
    let Ok(runtime) = Handle::try_current() else {
        return Ok(work());
    };
    let result = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&result);
    let task = spawn_boxed(
        &runtime,
        Box::new(move || {
            compute_here();
            let done = work();
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        }),
    );
    task.await?;
    let mut result = result.lock().unwrap_or_else(PoisonError::into_inner);
    result.take().ok_or(BlockingError::NoResult)
}

/// Runs `work` to its end on a thread of its own, even if the caller stops waiting for it or shuts
/// its runtime down.
///
/// A thread that changes files does not stop when the future that waits for it is dropped. Work that
/// changes files under a lock may therefore not be dropped before its threads have ended: it would
/// release the lock, and the threads would write over the changes of the next holder.
///
/// # Errors
///
/// An error if no thread can be started; then nothing was run.
pub(crate) async fn run_to_end<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> io::Result<T> {
    let work: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(work);
    let (done, waits) = oneshot::channel();
    let run = move || {
        compute_here();
        let ended = match Builder::new_current_thread().enable_time().build() {
            Ok(runtime) => catch_unwind(AssertUnwindSafe(|| Ok(runtime.block_on(work)))),
            Err(error) => Ok(Err(error)),
        };
        // Sending fails when the caller has stopped waiting.
        drop(done.send(ended));
    };
    thread::Builder::new()
        .name("zvf-locked".to_owned())
        .spawn(run)?;
    match waits.await {
        Ok(Ok(ended)) => ended,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => Err(io::Error::other(TaskPanicked)),
    }
}

/// Spawns a blocking task. Its work is boxed, so that the compiler makes one copy of tokio's tasks
/// instead of one for each closure.
fn spawn_boxed(runtime: &Handle, work: Box<dyn FnOnce() + Send>) -> JoinHandle<()> {
    runtime.spawn_blocking(work)
}

/// Maps `items` in order, on all cores once the work that is left is estimated at `threshold` or
/// more.
///
/// `work` returns the cost of each item with its result. Until the average cost of the items so
/// far times the items left reaches `threshold`, items are mapped one by one on the calling
/// thread: waking other threads takes as long as reading and decoding a few small files.
///
/// # Errors
///
/// [`TaskPanicked`].
pub(crate) async fn par_map_above<T: Send + 'static, R: Send + 'static>(
    items: Vec<T>,
    threshold: usize,
    work: impl Fn(T) -> (R, usize) + Send + Sync + 'static,
) -> Result<Vec<R>, TaskPanicked> {
    let mut done = Vec::with_capacity(items.len());
    let mut items = items.into_iter();
    // Items without cost, such as cached ones, do not count towards the average.
    let (mut total_cost, mut costly_items) = (0_usize, 0_usize);
    loop {
        let left = items.len();
        let average = total_cost.checked_div(costly_items).unwrap_or(0);
        if left > 1 && average.saturating_mul(left) >= threshold {
            break;
        }
        let Some(item) = items.next() else {
            return Ok(done);
        };
        let (result, cost) = work(item);
        total_cost = total_cost.saturating_add(cost);
        costly_items = costly_items.saturating_add(usize::from(cost > 0));
        done.push(result);
    }
    done.extend(par_map(items.collect(), move |item| work(item).0).await?);
    Ok(done)
}

/// Maps `items` in order, on all cores.
///
/// # Errors
///
/// [`TaskPanicked`].
pub(crate) async fn par_map<T: Send + 'static, R: Send + 'static>(
    items: Vec<T>,
    work: impl Fn(T) -> R + Send + Sync + 'static,
) -> Result<Vec<R>, TaskPanicked> {
    run_cpu(move || items.into_par_iter().map(work).collect()).await
}

/// Runs `work` on a thread of rayon.
async fn run_cpu<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, TaskPanicked> {
    compute_here();
    // A rayon thread that waited for another could deadlock the pool.
    if rayon::current_thread_index().is_some() {
        return Ok(work());
    }
    let (sender, receiver) = oneshot::channel();
    rayon::spawn(move || {
        // A panic that leaves a rayon task aborts the process.
        if let Ok(done) = catch_unwind(AssertUnwindSafe(work)) {
            // Sending fails when the caller has stopped waiting.
            let _ = sender.send(done);
        }
    });
    receiver.await.map_err(|_| TaskPanicked)
}

/// Parallel work runs on the thread that starts it, instead of on all cores.
static IS_ALONE: AtomicBool = AtomicBool::new(false);

/// Runs parallel work on the thread that starts it from now on, instead of on all cores.
///
/// A forked process needs this: the threads of rayon's pool exist only in its parent, and work that
/// is left to them never ends. The threads of this crate follow it; all others call
/// [`compute_here`] first.
pub fn compute_alone() {
    IS_ALONE.store(true, Ordering::Relaxed);
}

/// Prepares this thread to run its parallel work itself, after [`compute_alone`]. Otherwise, does
/// nothing.
pub fn compute_here() {
    if !IS_ALONE.load(Ordering::Relaxed) || rayon::current_thread_index().is_some() {
        return;
    }
    let pool = ThreadPoolBuilder::new().num_threads(1).use_current_thread();
    // Building cannot fail, because it starts no thread. This thread stays in the pool to its end.
    if let Ok(pool) = pool.build() {
        mem::forget(pool);
    }
}

/// Runs CPU-bound `work` on a pool of one thread for each core. Returns `None` when it panicked.
///
/// Encoders cache their tables for each thread, so CPU-bound work belongs on these few threads
/// rather than on blocking threads.
pub async fn spawn_cpu<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    run_cpu(work).await.ok()
}

/// Runs blocking `work` on a separate thread, or on the calling thread where there is no runtime.
/// Returns `None` when the runtime is shutting down or the work panicked.
pub async fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    run_blocking(work).await.ok()
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    };

    use super::*;

    /// Returns how many items are mapped on the calling thread before others are woken.
    fn mapped_here(items: usize, cost: impl Fn(usize) -> usize + Send + Sync + 'static) -> usize {
        let here = thread::current().id();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let work = move |item| {
            if thread::current().id() == here {
                counted.fetch_add(1, Relaxed);
            }
            (item, cost(item))
        };
        let all = par_map_above((0..items).collect(), 100, work);
        let runtime = Builder::new_current_thread().build();
        let all = runtime.unwrap().block_on(all).unwrap();
        assert!(all.into_iter().eq(0..items), "in order");
        count.load(Relaxed)
    }

    #[test]
    fn other_threads_are_woken_only_above_the_threshold() {
        assert_eq!(mapped_here(1000, |_| 0), 1000, "no cost");
        assert_eq!(mapped_here(10, |_| 10), 10, "below the threshold");
        assert_eq!(mapped_here(1000, |_| 10), 1, "far above the threshold");
        // Cached items come first and do not lower the estimate of the rest.
        assert_eq!(
            mapped_here(1000, |item| if item < 500 { 0 } else { 10 }),
            501
        );
    }
}
