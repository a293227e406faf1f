//! Copies of rows into a column, to be run on all cores.

use zvf_catalog::RowSelection;
use zvf_format::numeric::Dtype;

use super::{copy_runs, row_size};

/// A copy of selected rows of one chunk into a column.
pub(crate) struct Copying<'a> {
    to: &'a mut [u8],
    from: &'a [u8],
    runs: &'a RowSelection,
    dtype: Dtype,
    columns: u32,
}

impl<'a> Copying<'a> {
    /// Returns the copies that append rows of chunks to a column, from row `start` on.
    pub(crate) fn of(
        bytes: &'a mut [u8],
        start: usize,
        (dtype, columns): (Dtype, u32),
        parts: impl Iterator<Item = (&'a [u8], &'a RowSelection)>,
    ) -> Vec<Self> {
        let row = row_size(dtype, columns);
        let mut rest = bytes
            .get_mut(start.saturating_mul(row)..)
            .unwrap_or_default();
        let mut all = Vec::new();
        for (from, runs) in parts {
            let size = runs.len().saturating_mul(row).min(rest.len());
            let (to, after) = rest.split_at_mut(size);
            rest = after;
            all.push(Self {
                to,
                from,
                runs,
                dtype,
                columns,
            });
        }
        all
    }

    /// Returns the number of bytes to copy.
    pub(crate) fn len(&self) -> usize {
        self.to.len()
    }

    /// Copies the rows.
    pub(crate) fn run(self) {
        copy_runs(self.to, self.runs, self.dtype, self.columns, self.from);
    }
}

/// The rows that a column has, will have, and is expected to have in the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    pub(crate) before: usize,
    pub(crate) rows: usize,
    pub(crate) expected: usize,
}

impl Capacity {
    /// Grows a column. Fresh memory is zeroed lazily: each core touches the pages that it copies
    /// to, which takes longer than the copy itself.
    pub(crate) fn make(self, bytes: &mut Vec<u8>, row: usize) {
        let present = self.before.saturating_mul(row);
        let needed = self.rows.saturating_mul(row);
        if bytes.len() >= needed {
            return;
        }
        let expected = self.expected.saturating_mul(row);
        let size = needed.saturating_add(present / 2).max(expected);
        let mut new = vec![0; size];
        zvf_pages::prefer_large(&mut new);
        let kept = bytes.get(..present).unwrap_or_default();
        if let Some(start) = new.get_mut(..kept.len()) {
            start.copy_from_slice(kept);
        }
        *bytes = new;
    }
}
