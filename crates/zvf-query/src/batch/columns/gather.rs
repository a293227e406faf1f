//! Rows from many places, put one after the other on all cores.

use zvf_format::numeric::Dtype;

use super::{row_size, rows_at, to_little};
use crate::selection::RowRun;

/// Runs that one core copies at least: fewer take less time than waking another.
const EACH: usize = 1 << 12;

/// The rows of runs, little-endian; `bytes` are those of a chunk's number. What a chunk
/// does not have stays 0.
pub(crate) fn gather<'c>(
    runs: &[(u32, RowRun)],
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

fn size(runs: &[(u32, RowRun)], row: usize) -> usize {
    let rows = runs.iter().map(|(_, run)| run.len);
    rows.fold(0, usize::saturating_add).saturating_mul(row)
}

fn copy<'c>(
    out: &mut [u8],
    runs: &[(u32, RowRun)],
    row: usize,
    bytes: &(impl Fn(u32) -> Option<&'c [u8]> + Sync),
) {
    if runs.len() > EACH {
        let (first, second) = runs.split_at(runs.len() / 2);
        let (to_first, to_second) = out.split_at_mut(size(first, row).min(out.len()));
        rayon::join(
            || copy(to_first, first, row, bytes),
            || copy(to_second, second, row, bytes),
        );
        return;
    }
    let mut rest = out;
    for (chunk, run) in runs {
        let from = rows_at(bytes(*chunk).unwrap_or_default(), row, run.places());
        let (to, after) = rest.split_at_mut(run.len.saturating_mul(row).min(rest.len()));
        if to.len() == from.len() {
            to.copy_from_slice(from);
        }
        rest = after;
    }
}
