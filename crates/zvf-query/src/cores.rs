//! Parallel work on all cores.

use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Minimum number of bytes for which parallel work pays off.
pub(crate) const WORTH: usize = 256 << 10;

/// Runs `work` on each of `items`, in order; on all cores if `bytes` exceeds the threshold for
/// parallel work.
pub(crate) fn on_cores<T: Send, R: Send>(
    items: Vec<T>,
    bytes: usize,
    work: impl Fn(T) -> R + Send + Sync,
) -> Vec<R> {
    match items.len() > 1 && bytes >= WORTH {
        true => items.into_par_iter().map(work).collect(),
        false => items.into_iter().map(work).collect(),
    }
}
