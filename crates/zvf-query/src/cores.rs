//! Parallel work on all cores.

#[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use zvf_model::fetch::{MaybeSend, MaybeSync};

/// Minimum number of bytes for which parallel work pays off.
pub(crate) const MIN_PARALLEL_BYTES: usize = 256 << 10;

/// Runs `work` on each of `items`, in order; on all cores if `bytes` exceeds the threshold for
/// parallel work, except in browsers, where the port stays on its thread.
pub(crate) fn on_cores<T: MaybeSend, R: MaybeSend>(
    items: Vec<T>,
    bytes: usize,
    work: impl Fn(T) -> R + MaybeSend + MaybeSync,
) -> Vec<R> {
    #[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
    if items.len() > 1 && bytes >= MIN_PARALLEL_BYTES {
        return items.into_par_iter().map(work).collect();
    }
    #[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
    let _ = bytes;
    items.into_iter().map(work).collect()
}

/// Returns the number of threads that [`on_cores`] uses.
pub(crate) fn cores() -> usize {
    rayon::current_num_threads()
}
