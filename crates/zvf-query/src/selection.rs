//! Which rows of a chunk's buffer are in memory.

use core::ops::Range;

/// Runs of rows, ascending and apart, that lie one after the other in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Each with the number of rows before it.
    runs: Vec<(Range<u64>, u64)>,
    rows: u64,
}

impl Held {
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
impl FromIterator<Range<u64>> for Held {
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
        let held: Held = [7..9, 0..2, 1..3, 3..4, 5..5].into_iter().collect();
        assert_eq!(held.rows(), 6);
        let places: Vec<_> = (0..10).map(|row| held.place(row)).collect();
        let expected = [Some(0), Some(1), Some(2), Some(3), None, None, None];
        assert_eq!(places.get(..7), Some(&expected[..]));
        assert_eq!(places.get(7..), Some(&[Some(4), Some(5), None][..]));
        assert_eq!(Held::all(0).rows(), 0);
        let within = |rows| held.within(rows).collect::<Vec<_>>();
        assert_eq!(within(2..8), [(2..4, 2), (7..8, 4)]);
        assert_eq!(within(4..7), []);
        assert_eq!(within(8..u64::MAX), [(8..9, 5)]);
        assert_eq!(within(3..3), []);
    }
}
