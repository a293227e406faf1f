//! Work for all cores.

use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Bytes to look at from which on it is worth to wake other cores.
pub(crate) const WORTH: usize = 256 << 10;

/// Does `work` on each of `items`, in order; on all cores when there are so many
/// `bytes` to look at that it is worth waking them.
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
