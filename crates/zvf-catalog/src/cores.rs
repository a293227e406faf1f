//! Parallel work on all cores.

#[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
use std::sync::{Mutex, PoisonError};

use zvf_model::fetch::{MaybeSend, MaybeSync};

/// Minimum number of bytes for which parallel work pays off.
pub const MIN_PARALLEL_BYTES: usize = 256 << 10;

/// Runs `work` on each of `items`, in order; on all cores if `bytes` exceeds the threshold for
/// parallel work, except in browsers, where the port stays on its thread.
pub fn on_cores<T: MaybeSend, R: MaybeSend>(
    items: Vec<T>,
    bytes: usize,
    work: impl Fn(T) -> R + MaybeSend + MaybeSync,
) -> Vec<R> {
    #[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
    if items.len() > 1 && bytes >= MIN_PARALLEL_BYTES {
        let tasks: Vec<_> = items
            .into_iter()
            .map(|item| Mutex::new(Task::Waiting(item)))
            .collect();
        each(tasks.len(), &|at| {
            let Some(task) = tasks.get(at) else { return };
            // Each number is visited once, so that no thread waits for a lock.
            let mut task = task.lock().unwrap_or_else(PoisonError::into_inner);
            if let Task::Waiting(item) = core::mem::replace(&mut *task, Task::Running) {
                *task = Task::Done(work(item));
            }
        });
        let results = tasks.into_iter().filter_map(|task| {
            match task.into_inner().unwrap_or_else(PoisonError::into_inner) {
                Task::Done(result) => Some(result),
                _ => None,
            }
        });
        return results.collect();
    }
    #[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
    let _ = bytes;
    items.into_iter().map(work).collect()
}

/// The state of an item: waiting, being worked on, or done.
#[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
enum Task<T, R> {
    Waiting(T),
    Running,
    Done(R),
}

/// Runs `work` on each number below `count` on all cores. It is not generic, because rayon's code
/// would be compiled again for each closure.
#[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
fn each(count: usize, work: &(dyn Fn(usize) + Sync)) {
    use rayon::iter::{IntoParallelIterator, ParallelIterator};

    (0..count).into_par_iter().for_each(work);
}

/// Returns the number of threads that [`on_cores`] uses.
pub fn cores() -> usize {
    rayon::current_num_threads()
}
