//! Selections of rows: the rows of a chunk that are in memory, and the vertices that a query
//! selects among them.

use core::ops::Range;

/// A vertex of a chunk, as one of its fragments names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowRef {
    /// Row of the chunk's buffer.
    pub(crate) row: u64,
    /// Where in the chunk's memory it is.
    pub(crate) place: usize,
    pub(crate) fragment: u32,
}

/// Vertices of a chunk that follow each other: its rows from `row` on, which are in
/// memory from `place` on, as one of its fragments names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowRun {
    pub(crate) row: u64,
    pub(crate) place: usize,
    pub(crate) len: usize,
    pub(crate) fragment: u32,
}

impl RowRun {
    /// Its vertices, one by one.
    pub(crate) fn entries(self) -> impl Iterator<Item = RowRef> {
        let rows = (self.row..).zip(self.places());
        rows.map(move |(row, place)| RowRef {
            row,
            place,
            fragment: self.fragment,
        })
    }

    /// Where they are in memory.
    pub(crate) fn places(self) -> Range<usize> {
        self.place..self.place.saturating_add(self.len)
    }
}

impl From<RowRef> for RowRun {
    fn from(entry: RowRef) -> Self {
        Self {
            row: entry.row,
            place: entry.place,
            len: 1,
            fragment: entry.fragment,
        }
    }
}

/// Vertices of a chunk in an order, as runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowSelection {
    runs: Vec<RowRun>,
    len: usize,
}

impl RowSelection {
    /// Number of vertices.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn runs(&self) -> &[RowRun] {
        &self.runs
    }

    /// Where in memory they are, those that follow each other there as one.
    pub(crate) fn spans(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut runs = self.runs.iter().map(|run| run.places()).peekable();
        core::iter::from_fn(move || {
            let mut span = runs.next()?;
            while let Some(next) = runs.next_if(|next| next.start == span.end) {
                span.end = next.end;
            }
            Some(span)
        })
    }

    /// The vertices one by one.
    pub(crate) fn entries(&self) -> impl Iterator<Item = RowRef> + '_ {
        self.runs.iter().flat_map(|run| run.entries())
    }

    /// Appends a run, as part of the last one where it goes on.
    pub(crate) fn push(&mut self, run: RowRun) {
        if run.len == 0 {
            return;
        }
        self.len = self.len.saturating_add(run.len);
        if let Some(last) = self.runs.last_mut() {
            let length = u64::try_from(last.len).unwrap_or(u64::MAX);
            let goes_on = last.fragment == run.fragment
                && last.row.checked_add(length) == Some(run.row)
                && last.place.checked_add(last.len) == Some(run.place);
            if goes_on {
                last.len = last.len.saturating_add(run.len);
                return;
            }
        }
        self.runs.push(run);
    }

    /// Keeps the first so many vertices.
    pub(crate) fn truncate(&mut self, most: usize) {
        if self.len <= most {
            return;
        }
        let mut left = most;
        self.runs.retain_mut(|run| {
            run.len = run.len.min(left);
            left = left.saturating_sub(run.len);
            run.len > 0
        });
        self.len = most;
    }

    /// Keeps the vertices at places in memory that `inside` has.
    pub(crate) fn keep_places(&mut self, inside: &[bool]) {
        self.keep(|run, _| inside.get(run.places()).unwrap_or_default());
    }

    /// Keeps the vertices for which `holds` is true, in the order they are in.
    pub(crate) fn keep_those(&mut self, holds: &[bool]) {
        self.keep(|run, before| {
            let own = holds.get(before..before.saturating_add(run.len));
            own.unwrap_or_default()
        });
    }

    /// Keeps what is true; of each run are given the flags that are its own, by how
    /// many vertices are before it.
    fn keep<'f>(&mut self, flags: impl Fn(&RowRun, usize) -> &'f [bool]) {
        let mut kept = Self::default();
        let mut before = 0_usize;
        for run in &self.runs {
            let (mut row, mut place) = (run.row, run.place);
            for same in flags(run, before).chunk_by(|a, b| a == b) {
                if same.first() == Some(&true) {
                    let (len, fragment) = (same.len(), run.fragment);
                    kept.push(RowRun {
                        row,
                        place,
                        len,
                        fragment,
                    });
                }
                row = row.saturating_add(u64::try_from(same.len()).unwrap_or(u64::MAX));
                place = place.saturating_add(same.len());
            }
            before = before.saturating_add(run.len);
        }
        *self = kept;
    }
}

impl FromIterator<RowRef> for RowSelection {
    fn from_iter<T: IntoIterator<Item = RowRef>>(entries: T) -> Self {
        let mut runs = Self::default();
        entries
            .into_iter()
            .for_each(|entry| runs.push(entry.into()));
        runs
    }
}

/// Rows of a chunk that are in memory: runs, ascending and apart, stored one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoadedRows {
    /// Each with the number of rows before it.
    runs: Vec<(Range<u64>, u64)>,
    rows: u64,
}

impl LoadedRows {
    pub(crate) fn all(rows: u64) -> Self {
        core::iter::once(0..rows).collect()
    }

    /// How many there are.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    pub(crate) fn runs(&self) -> impl Iterator<Item = &Range<u64>> {
        self.runs.iter().map(|(run, _)| run)
    }

    /// One more than the last row.
    pub(crate) fn end(&self) -> u64 {
        self.runs.last().map_or(0, |(run, _)| run.end)
    }

    /// Where in memory a row is; `None` when it is not there.
    pub(crate) fn place(&self, row: u64) -> Option<usize> {
        let after = self.runs.partition_point(|(run, _)| run.start <= row);
        let (run, before) = self.runs.get(after.checked_sub(1)?)?;
        let place = before.checked_add(row.checked_sub(run.start)?)?;
        (row < run.end).then(|| usize::try_from(place).ok())?
    }

    /// Those of `rows` that are there, in runs with the place of the first.
    pub(crate) fn within(&self, rows: Range<u64>) -> impl Iterator<Item = (Range<u64>, usize)> {
        let first = self.runs.partition_point(|(run, _)| run.end <= rows.start);
        let runs = self.runs.get(first..).unwrap_or_default().iter();
        let runs = runs.take_while(move |(run, _)| run.start < rows.end);
        runs.filter_map(move |(run, before)| {
            let (start, end) = (run.start.max(rows.start), run.end.min(rows.end));
            let place = before.checked_add(start.checked_sub(run.start)?)?;
            (start < end).then_some((start..end, usize::try_from(place).ok()?))
        })
    }
}

/// Any runs, in any order, which may overlap.
impl FromIterator<Range<u64>> for LoadedRows {
    fn from_iter<T: IntoIterator<Item = Range<u64>>>(runs: T) -> Self {
        let runs = runs.into_iter().filter(|run| run.start < run.end);
        let mut runs: Vec<Range<u64>> = runs.collect();
        runs.sort_unstable_by_key(|run| (run.start, run.end));
        let mut held: Vec<(Range<u64>, u64)> = Vec::new();
        let mut rows = 0_u64;
        for run in runs {
            match held.last_mut() {
                Some((last, _)) if run.start <= last.end => {
                    rows = rows.saturating_add(run.end.saturating_sub(last.end));
                    last.end = last.end.max(run.end);
                }
                _ => {
                    let before = rows;
                    rows = rows.saturating_add(run.end.saturating_sub(run.start));
                    held.push((run, before));
                }
            }
        }
        Self { runs: held, rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_where_they_lie() {
        let held: LoadedRows = [7..9, 0..2, 1..3, 3..4, 5..5].into_iter().collect();
        assert_eq!(held.rows(), 6);
        let places: Vec<_> = (0..10).map(|row| held.place(row)).collect();
        let expected = [Some(0), Some(1), Some(2), Some(3), None, None, None];
        assert_eq!(places.get(..7), Some(&expected[..]));
        assert_eq!(places.get(7..), Some(&[Some(4), Some(5), None][..]));
        assert_eq!(LoadedRows::all(0).rows(), 0);
        let within = |rows| held.within(rows).collect::<Vec<_>>();
        assert_eq!(within(2..8), [(2..4, 2), (7..8, 4)]);
        assert_eq!(within(4..7), []);
        assert_eq!(within(8..u64::MAX), [(8..9, 5)]);
        assert_eq!(within(3..3), []);
    }
}
