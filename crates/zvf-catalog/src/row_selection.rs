//! Selections of rows: some rows of one chunk, or of several, in an order.

use core::ops::Range;

/// Consecutive rows of a chunk that belong to one fragment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowRun {
    /// First row in the buffer of the chunk.
    pub row: u64,
    /// Index of the first row among the rows of the chunk that are in memory.
    pub index: usize,
    /// Number of rows.
    pub len: usize,
    /// Fragment that names the rows.
    pub fragment: u32,
    /// Number of the chunk among loaded chunks; 0 if all rows are of one chunk.
    pub chunk: u32,
}

impl RowRun {
    /// Returns the run as part of the chunk with this number.
    #[inline]
    #[must_use]
    pub fn of_chunk(self, chunk: u32) -> Self {
        Self { chunk, ..self }
    }

    /// Returns the rows as runs of one row.
    #[inline]
    pub(crate) fn iter(self) -> impl Iterator<Item = Self> {
        let rows = (self.row..).zip(self.indices());
        rows.map(move |(row, index)| Self {
            row,
            index,
            len: 1,
            ..self
        })
    }

    /// Returns the rows in the buffer of the chunk.
    #[inline]
    pub(crate) fn rows(self) -> Range<u64> {
        self.row..self.row.saturating_add(count(self.len))
    }

    /// Returns the indices of the rows in memory.
    #[inline]
    pub fn indices(self) -> Range<usize> {
        self.index..self.index.saturating_add(self.len)
    }

    /// Returns the part of the run that these of its rows make.
    #[inline]
    fn part(self, start: usize, len: usize) -> Self {
        Self {
            row: self.row.saturating_add(count(start)),
            index: self.index.saturating_add(start),
            len,
            ..self
        }
    }

    /// Returns whether `next` continues the run.
    #[inline]
    fn is_continued_by(&self, next: &Self) -> bool {
        self.fragment == next.fragment
            && self.chunk == next.chunk
            && self.row.checked_add(count(self.len)) == Some(next.row)
            && self.index.checked_add(self.len) == Some(next.index)
    }
}

#[inline]
fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// Rows in an order, as runs.
///
/// Scans produce selections, filters and limits shrink them, and gathers copy them. The rows of a
/// chunk that are in memory are a selection in ascending order, see
/// [`ascending`](Self::ascending).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowSelection {
    runs: Vec<RowRun>,
    len: usize,
}

impl RowSelection {
    /// Selects all of `rows` rows.
    pub fn all(rows: u64) -> Self {
        Self::ascending(core::iter::once(0..rows))
    }

    /// Selects the union of ranges of rows of one chunk in ascending order, stored one after the
    /// other.
    pub fn ascending(ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut ranges: Vec<Range<u64>> = ranges
            .into_iter()
            .filter(|range| range.start < range.end)
            .collect();
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        let mut selection = Self::default();
        let mut end = 0_u64;
        for range in ranges {
            let start = range.start.max(end);
            end = end.max(range.end);
            selection.push(RowRun {
                row: start,
                index: selection.len,
                len: usize::try_from(range.end.saturating_sub(start)).unwrap_or(usize::MAX),
                ..RowRun::default()
            });
        }
        selection
    }

    /// Returns the number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the runs in order.
    #[inline]
    pub fn runs(&self) -> &[RowRun] {
        &self.runs
    }

    /// Returns the rows as runs of one row.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = RowRun> + '_ {
        self.runs.iter().flat_map(|run| run.iter())
    }

    /// Returns the ranges of memory that hold the rows of one chunk.
    #[inline]
    pub fn spans(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut runs = self.runs.iter().map(|run| run.indices()).peekable();
        core::iter::from_fn(move || {
            let mut span = runs.next()?;
            while let Some(next) = runs.next_if(|next| next.start == span.end) {
                span.end = next.end;
            }
            Some(span)
        })
    }

    /// Returns the runs of the rows at these indices of the selection.
    #[inline]
    pub fn part(&self, range: Range<usize>) -> impl Iterator<Item = RowRun> + '_ {
        let mut before = 0_usize;
        self.runs.iter().filter_map(move |run| {
            let start = range.start.max(before);
            let skip = start.saturating_sub(before);
            before = before.saturating_add(run.len);
            let len = range.end.min(before).checked_sub(start);
            len.filter(|len| *len > 0).map(|len| run.part(skip, len))
        })
    }

    /// Returns the selection in blocks of at most `max` rows.
    pub fn blocks(&self, max: usize) -> impl Iterator<Item = Self> + '_ {
        let max = max.max(1);
        let mut runs = self.runs.iter().copied();
        let mut rest: Option<RowRun> = None;
        core::iter::from_fn(move || {
            let mut block = Self::default();
            while block.len < max
                && let Some(run) = rest.take().or_else(|| runs.next())
            {
                let len = run.len.min(max.saturating_sub(block.len));
                block.push(run.part(0, len));
                let left = run.part(len, run.len.saturating_sub(len));
                rest = (left.len > 0).then_some(left);
            }
            (block.len > 0).then_some(block)
        })
    }

    /// Appends a run, merged with the last one if it continues that.
    #[inline]
    pub fn push(&mut self, run: RowRun) {
        if run.len == 0 {
            return;
        }
        self.len = self.len.saturating_add(run.len);
        match self.runs.last_mut() {
            Some(last) if last.is_continued_by(&run) => {
                last.len = last.len.saturating_add(run.len);
            }
            _ => self.runs.push(run),
        }
    }

    /// Keeps the first `max` rows.
    pub fn truncate(&mut self, max: usize) {
        if self.len <= max {
            return;
        }
        let mut left = max;
        self.runs.retain_mut(|run| {
            run.len = run.len.min(left);
            left = left.saturating_sub(run.len);
            run.len > 0
        });
        self.len = max;
    }

    /// Keeps the rows whose index in memory is flagged.
    pub fn keep_indices(&mut self, flags: &[bool]) {
        self.keep(|run, _| flags.get(run.indices()).unwrap_or_default());
    }

    /// Keeps the rows whose index in the selection is flagged.
    pub fn keep_flagged(&mut self, flags: &[bool]) {
        self.keep(|run, before| {
            let own = flags.get(before..before.saturating_add(run.len));
            own.unwrap_or_default()
        });
    }

    /// Keeps flagged rows. `flags_of` returns the flags of a run, given the number of rows before
    /// it.
    fn keep<'f>(&mut self, flags_of: impl Fn(&RowRun, usize) -> &'f [bool]) {
        let mut kept = Self::default();
        let mut before = 0_usize;
        for run in &self.runs {
            let mut start = 0_usize;
            for same in flags_of(run, before).chunk_by(|a, b| a == b) {
                if same.first() == Some(&true) {
                    kept.push(run.part(start, same.len()));
                }
                start = start.saturating_add(same.len());
            }
            before = before.saturating_add(run.len);
        }
        *self = kept;
    }

    /// Returns the index in memory of a row of an [ascending](Self::ascending) selection.
    #[inline]
    pub fn index_of(&self, row: u64) -> Option<usize> {
        let after = self.runs.partition_point(|run| run.row <= row);
        let run = self.runs.get(after.checked_sub(1)?)?;
        let at = usize::try_from(row.checked_sub(run.row)?).ok()?;
        (at < run.len).then(|| run.index.checked_add(at))?
    }

    /// Returns the runs of an [ascending](Self::ascending) selection inside a range of rows.
    #[inline]
    pub(crate) fn within(&self, rows: Range<u64>) -> impl Iterator<Item = RowRun> + '_ {
        let first = self
            .runs
            .partition_point(|run| run.rows().end <= rows.start);
        let runs = self
            .runs
            .get(first..)
            .unwrap_or_default()
            .iter()
            .take_while(move |run| run.row < rows.end);
        runs.filter_map(move |run| {
            let start = rows.start.max(run.row);
            let end = rows.end.min(run.rows().end);
            let skip = usize::try_from(start.checked_sub(run.row)?).ok()?;
            let len = usize::try_from(end.checked_sub(start)?).ok()?;
            (len > 0).then(|| run.part(skip, len))
        })
    }

    /// Returns the last row of an [ascending](Self::ascending) selection plus one.
    pub(crate) fn end(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.rows().end)
    }
}

impl FromIterator<RowRun> for RowSelection {
    fn from_iter<T: IntoIterator<Item = RowRun>>(runs: T) -> Self {
        let mut selection = Self::default();
        runs.into_iter().for_each(|run| selection.push(run));
        selection
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(row: u64, index: usize, len: usize, fragment: u32) -> RowRun {
        RowRun {
            row,
            index,
            len,
            fragment,
            chunk: 0,
        }
    }

    #[test]
    fn ascending_selections_find_rows_in_memory() {
        let loaded = RowSelection::ascending([7..9, 0..2, 1..3, 3..4, 5..5]);
        assert_eq!((loaded.len(), loaded.end()), (6, 9));
        let indices: Vec<_> = (0..10).map(|row| loaded.index_of(row)).collect();
        let expected = [Some(0), Some(1), Some(2), Some(3), None, None, None];
        assert_eq!(indices.get(..7), Some(&expected[..]));
        assert_eq!(indices.get(7..), Some(&[Some(4), Some(5), None][..]));
        assert_eq!(RowSelection::all(0).len(), 0);
        let within = |rows| {
            let runs = loaded.within(rows);
            runs.map(|run| (run.rows(), run.index)).collect::<Vec<_>>()
        };
        assert_eq!(within(2..8), [(2..4, 2), (7..8, 4)]);
        assert_eq!(within(4..7), []);
        assert_eq!(within(8..u64::MAX), [(8..9, 5)]);
        assert_eq!(within(3..3), []);
    }

    #[test]
    fn runs_merge_only_within_a_fragment_and_a_chunk() {
        let one = run(0, 0, 2, 0);
        let runs = [one, run(2, 2, 3, 0), run(5, 5, 1, 1)];
        let merged: RowSelection = runs.into_iter().collect();
        assert_eq!(merged.runs(), [run(0, 0, 5, 0), run(5, 5, 1, 1)]);
        let other = run(2, 2, 1, 0).of_chunk(1);
        let apart: RowSelection = [one, other].into_iter().collect();
        assert_eq!(apart.runs(), [one, other]);
    }

    #[test]
    fn flags_blocks_and_parts_keep_the_order() {
        let rows: RowSelection = [run(4, 0, 3, 0), run(0, 3, 2, 1)].into_iter().collect();
        let numbers = |rows: &RowSelection| rows.iter().map(|run| run.row).collect::<Vec<_>>();
        let mut kept = rows.clone();
        kept.keep_flagged(&[true, false, true, true, false]);
        assert_eq!(numbers(&kept), [4, 6, 0]);
        let mut kept = rows.clone();
        kept.keep_indices(&[false, true, true, false, true]);
        assert_eq!(numbers(&kept), [5, 6, 1]);
        kept.truncate(2);
        assert_eq!(numbers(&kept), [5, 6]);
        let blocks: Vec<_> = rows.blocks(2).map(|block| numbers(&block)).collect();
        assert_eq!(blocks, [vec![4, 5], vec![6, 0], vec![1]]);
        assert_eq!(numbers(&rows.part(2..4).collect()), [6, 0]);
    }
}
