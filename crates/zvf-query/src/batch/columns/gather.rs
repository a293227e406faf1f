//! Gather of rows of many chunks into one buffer, on all cores.

use zvf_format::numeric::Dtype;

use super::{row_size, rows_at, to_little};
use crate::selection::RowRun;

/// Runs below which the work is not split: waking another core takes longer than copying them.
const RUNS_PER_CORE: usize = 1 << 12;

/// Returns the rows of runs, little-endian. `bytes` returns the rows of a chunk by its number;
/// rows that a chunk lacks are 0.
pub(crate) fn gather<'c>(
    runs: &[RowRun],
    dtype: Dtype,
    columns: u32,
    bytes: &(impl Fn(u32) -> Option<&'c [u8]> + Sync),
) -> Vec<u8> {
    let row = row_size(dtype, columns);
    let mut out = vec![0; size(runs, row)];
    zvf_pages::prefer_large(&mut out);
    copy(&mut out, runs, row, bytes);
    to_little(&mut out, 0, dtype);
    out
}

fn size(runs: &[RowRun], row: usize) -> usize {
    let rows = runs.iter().map(|run| run.len);
    rows.fold(0, usize::saturating_add).saturating_mul(row)
}

fn copy<'c>(
    out: &mut [u8],
    runs: &[RowRun],
    row: usize,
    bytes: &(impl Fn(u32) -> Option<&'c [u8]> + Sync),
) {
    if runs.len() > RUNS_PER_CORE {
        let (first, second) = runs.split_at(runs.len() / 2);
        let (to_first, to_second) = out.split_at_mut(size(first, row).min(out.len()));
        rayon::join(
            || copy(to_first, first, row, bytes),
            || copy(to_second, second, row, bytes),
        );
        return;
    }
    let mut rest = out;
    for run in runs {
        let from = rows_at(bytes(run.chunk).unwrap_or_default(), row, run.places());
        let (to, after) = rest.split_at_mut(run.len.saturating_mul(row).min(rest.len()));
        if to.len() == from.len() {
            to.copy_from_slice(from);
        }
        rest = after;
    }
}
