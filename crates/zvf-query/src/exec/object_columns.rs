//! Attributes of the objects in a result.

use std::{collections::BTreeSet, sync::Arc};

use zvf_catalog::{Diagnostics, ObjectSet};
use zvf_model::column::{Column, ColumnValues};

use super::{
    context::ExecContext,
    operator::{Details, LaterRead, Operator},
};
use crate::{error::QueryError, resolve::query::LevelQuery, result::QueryResult};

/// Maximum number of objects whose attributes are read before it is known which of them a batch
/// lists.
const MAX_OBJECTS_AHEAD: usize = 1 << 18;
/// The share of the budget that they may take: one in this many bytes.
const BUDGET_SHARE: usize = 16;
/// Estimated size of a value.
const BYTES_PER_VALUE: usize = 16;

/// The operator that appends the attributes of the objects in the result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectColumns {
    /// Reads attributes beside the vertices that decide which objects are in the result, where it
    /// can.
    pub(crate) reads_ahead: bool,
}

impl Operator for ObjectColumns {
    const NAME: &'static str = "ObjectColumns";

    fn details(&self, query: &LevelQuery<'_>, details: &mut Details) {
        details.list("columns", &query.shown.object);
    }

    fn later_reads(&self, query: &LevelQuery<'_>, later: &mut Vec<LaterRead>) {
        if !query.shown.object.is_empty() && !self.reads_ahead {
            later.push(LaterRead::always("attributes of the objects found"));
        }
    }
}

/// Attributes of objects that batches may list, read beside the vertices that decide it.
pub(crate) struct ColumnsAhead {
    /// Rows of the object index, ascending.
    rows: Vec<u64>,
    /// A column for each shown attribute.
    columns: Vec<Column>,
}

impl ColumnsAhead {
    /// Returns the values of these rows; `None` if one of them was not read.
    fn take(&self, rows: &[u64]) -> Option<Vec<Column>> {
        if *rows == *self.rows {
            return Some(self.columns.clone());
        }
        let positions: Vec<usize> = rows
            .iter()
            .map(|row| self.rows.binary_search(row).ok())
            .collect::<Option<_>>()?;
        let columns = self.columns.iter();
        Some(columns.map(|column| take(column, &positions)).collect())
    }
}

/// Copies rows of a column. A dictionary has the words of these rows only, as if no others had
/// been read.
fn take(column: &Column, positions: &[usize]) -> Column {
    let mut taken = column.take(positions.iter().copied());
    if let ColumnValues::Dictionary { .. } = taken.values {
        taken.values = ColumnValues::text(taken.values.texts());
    }
    taken
}

impl ExecContext<'_> {
    /// Reads the attributes of objects that the next batches may list, while their vertices are
    /// read. One round trip.
    ///
    /// Returns `None` if the attributes are better read once the objects are known: they are too
    /// many, no attribute is shown, or something cannot be read, which matters only if a batch
    /// lists the object.
    pub(crate) async fn object_columns_ahead(
        self,
        rows: impl IntoIterator<Item = u64>,
    ) -> Option<ColumnsAhead> {
        let names = &self.query.shown.object;
        if names.is_empty() {
            return None;
        }
        let budget = usize::try_from(self.catalog.fetch.budget()).unwrap_or(usize::MAX);
        let values = budget / BUDGET_SHARE / BYTES_PER_VALUE;
        let max_rows = (values / names.len()).min(MAX_OBJECTS_AHEAD);
        let mut rows: Vec<u64> = rows.into_iter().take(max_rows.saturating_add(1)).collect();
        if rows.is_empty() || rows.len() > max_rows {
            return None;
        }
        rows.sort_unstable();
        rows.dedup();
        let diagnostics = Diagnostics::new(false);
        let columns = self
            .catalog
            .object_columns(&self.query.level, names, Some(&rows), &diagnostics)
            .await
            .ok()
            .filter(|_| diagnostics.is_empty())?;
        Some(ColumnsAhead { rows, columns })
    }

    /// Reads the attributes of all objects, as
    /// [`object_columns_ahead`](Self::object_columns_ahead) does.
    pub(crate) async fn object_columns_of_all(self) -> Option<ColumnsAhead> {
        let table = self.catalog.object_index(&self.query.level).await.ok()??;
        self.object_columns_ahead(0..table.rows()).await
    }

    /// Sets the objects of a batch, by their indices, and their attributes. Takes one round trip,
    /// and none if the attributes are read `ahead`.
    pub(crate) async fn show_objects(
        self,
        result: &mut QueryResult,
        objects: &ObjectSet,
        indices: &[usize],
        ahead: Option<&ColumnsAhead>,
    ) -> Result<(), QueryError> {
        result.objects = indices
            .iter()
            .filter_map(|index| objects.id(*index))
            .collect();
        let rows: Vec<u64> = indices
            .iter()
            .filter_map(|index| objects.row(*index))
            .collect();
        if let Some(columns) = ahead.and_then(|ahead| ahead.take(&rows)) {
            result.object = columns;
            return Ok(());
        }
        let (level, names) = (&self.query.level, &self.query.shown.object);
        let columns = self
            .catalog
            .object_columns(level, names, Some(&rows), self.diagnostics);
        result.object = columns.await?;
        Ok(())
    }

    /// Sets the objects of a batch, by their ids, and reads their attributes. One round trip.
    pub(crate) async fn add_objects(
        self,
        result: &mut QueryResult,
        objects: Option<&Arc<ObjectSet>>,
        ids: &BTreeSet<i64>,
    ) -> Result<(), QueryError> {
        let Some(objects) = objects else {
            return Ok(());
        };
        let indices: Vec<usize> = ids.iter().filter_map(|id| objects.find(*id)).collect();
        self.show_objects(result, objects, &indices, None).await
    }
}

#[cfg(test)]
mod tests {
    use zvf_model::column::NumericColumn;

    use super::*;

    #[test]
    fn taken_columns_equal_columns_of_these_rows() {
        let lanes = |lanes: &[i64]| Column::new("lanes", NumericColumn::int64(1, lanes.to_vec()));
        let names = |names: &[Option<&str>]| Column::text("name", names.iter().copied());
        let ahead = ColumnsAhead {
            rows: vec![3, 5, 9],
            columns: vec![
                lanes(&[30, 50, 90]),
                names(&[Some("west"), Some("east"), None]),
            ],
        };
        let some = ahead.take(&[9, 5]).unwrap();
        assert_eq!(some, [lanes(&[90, 50]), names(&[None, Some("east")])]);
        assert_eq!(ahead.take(&[3, 5, 9]).unwrap(), ahead.columns);
        assert_eq!(ahead.take(&[]).unwrap(), [lanes(&[]), names(&[])]);
        assert_eq!(ahead.take(&[3, 4]), None);
    }
}
