//! The rows of one object in the batches of a level.

use zvf::{Owner, QueryResult};
use zvf_precomputed::PrecomputedError;

use crate::layers::LayerError;

/// Maximum number of runs of rows.
const MAX_RUNS: usize = 1 << 20;

/// Rows of a result that belong to one object, in the order of the result.
#[derive(Debug, Default)]
pub(super) struct ObjectRows {
    /// The object; all rows if `None`.
    object: Option<i64>,
    runs: Vec<RowRun>,
    count: u32,
}

/// Rows that follow each other in the result and in the object.
#[derive(Clone, Copy, Debug)]
struct RowRun {
    /// The first row of the result.
    start: u64,
    /// The end of the rows of the result.
    end: u64,
    /// The first row of the object.
    first: u32,
}

impl ObjectRows {
    /// Begins with no rows, of an object or of all.
    pub(super) fn new(object: Option<i64>) -> Self {
        Self {
            object,
            ..Self::default()
        }
    }

    /// Adds the vertices of a batch. Returns those of the object, as rows of the batch.
    ///
    /// # Errors
    ///
    /// [`LayerError`] if the object has 2^32 vertices or more, or if its vertices are scattered
    /// among those of other objects.
    pub(super) fn add(&mut self, batch: &QueryResult) -> Result<Vec<usize>, LayerError> {
        let is_own = |row: &usize| match (self.object, &batch.object_ids) {
            (None, _) => true,
            (Some(object), Some(ids)) => ids.get(*row) == Some(Owner::Object(object)),
            (Some(_), None) => false,
        };
        let rows: Vec<usize> = (0..batch.positions.len()).filter(is_own).collect();
        for row in &rows {
            let row = u64::try_from(*row).unwrap_or(u64::MAX);
            let row = batch.first_row.saturating_add(row);
            match self.runs.last_mut() {
                Some(run) if run.end == row => run.end = row.saturating_add(1),
                _ => self.runs.push(RowRun {
                    start: row,
                    end: row.saturating_add(1),
                    first: self.count,
                }),
            }
            let count = self.count.checked_add(1);
            self.count = count.ok_or(PrecomputedError::Count("vertices"))?;
        }
        if self.runs.len() <= MAX_RUNS {
            Ok(rows)
        } else {
            Err(LayerError::Scattered(MAX_RUNS))
        }
    }

    /// Passes on the links of a batch whose ends all belong to the object, as rows of the object.
    pub(super) fn links(&self, batch: &QueryResult, mut each: impl FnMut(&[u32])) {
        let Some(links) = &batch.links else { return };
        let width = usize::try_from(links.width).unwrap_or(1).max(1);
        let mut ends = Vec::with_capacity(width);
        for link in links.ends.chunks_exact(width) {
            ends.clear();
            ends.extend(link.iter().map_while(|end| self.row_of(*end)));
            if ends.len() == width {
                each(&ends);
            }
        }
    }

    /// Returns the row of the object that a row of the result is.
    fn row_of(&self, row: u64) -> Option<u32> {
        let after = self.runs.partition_point(|run| run.start <= row);
        let run = self.runs.get(after.checked_sub(1)?)?;
        let offset = u32::try_from(row.checked_sub(run.start)?).ok()?;
        (row < run.end).then(|| run.first.saturating_add(offset))
    }
}

#[cfg(test)]
mod tests {
    use zvf::{Links, NumericColumn, ObjectIds};

    use super::*;

    fn batch(first_row: u64, ids: &[i64], ends: &[u64]) -> QueryResult {
        let mut batch = QueryResult::default();
        batch.first_row = first_row;
        let positions = ids.iter().flat_map(|_| [0.0; 3]);
        batch.positions = NumericColumn::float32(3, positions);
        batch.object_ids = Some(ObjectIds::from_numbers(ids.to_vec()));
        batch.links = Some(Links {
            width: 2,
            ends: ends.to_vec(),
        });
        batch
    }

    #[test]
    fn links_between_batches_keep_their_ends() {
        let mut rows = ObjectRows::new(Some(5));
        let first = rows.add(&batch(0, &[5, 5, 4, 5], &[])).unwrap();
        assert_eq!(first, [0, 1, 3]);
        assert_eq!(rows.add(&batch(4, &[4, 5], &[])).unwrap(), [1]);
        let mut found = Vec::new();
        // Rows 0, 1, 3 and 5 are those of the object; 2 and 4 are not, and 6 does not exist.
        let links = batch(6, &[], &[0, 5, 1, 3, 1, 2, 4, 5, 5, 6]);
        rows.links(&links, |ends| found.push(ends.to_vec()));
        assert_eq!(found, [[0, 3], [1, 2]]);
    }

    #[test]
    fn all_rows_may_be_one_object() {
        let mut rows = ObjectRows::new(None);
        let first = rows.add(&batch(0, &[5, 4], &[])).unwrap();
        assert_eq!(first, [0, 1]);
        let mut found = Vec::new();
        rows.links(&batch(2, &[], &[1, 0]), |ends| found.push(ends.to_vec()));
        assert_eq!(found, [[1, 0]]);
    }
}
