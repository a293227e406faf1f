//! Concatenation of batches.
//!
//! Batches of one level have the same columns of the same types, except for columns without rows.
//! Batches of several levels may differ: rows of a level without an attribute are null, numbers of
//! different types become float64, and dictionaries are merged.

use core::ops::ControlFlow;

use zvf_catalog::CatalogError;
use zvf_model::{
    column::Column,
    object_ids::{ObjectIds, Owner},
};

use crate::{
    error::QueryError,
    result::{Links, QueryResult},
};

impl QueryResult {
    /// Appends the next batch.
    ///
    /// # Errors
    ///
    /// [`QueryError::Mixed`] if levels have an attribute in different widths.
    pub(crate) fn append(&mut self, next: Self) -> Result<(), QueryError> {
        let (before, rows) = (self.positions.len(), next.positions.len());
        let mixed = |_| QueryError::Mixed("positions".to_owned());
        self.positions.append(next.positions).map_err(mixed)?;
        if self.object_ids.is_some() || next.object_ids.is_some() {
            let numbers = |ids: Option<ObjectIds>| ids.unwrap_or_default().into_numbers();
            let mut ids = numbers(self.object_ids.take());
            ids.resize(before, Owner::NONE);
            ids.extend(numbers(next.object_ids));
            ids.resize(before.saturating_add(rows), Owner::NONE);
            self.object_ids = Some(ObjectIds::from_numbers(ids));
        }
        match (&mut self.parts, next.parts) {
            (Some(parts), Some(next)) => {
                parts.offsets.extend(next.offsets.into_iter().skip(1));
                parts.objects.extend(next.objects);
            }
            (None, parts) => self.parts = parts,
            _ => {}
        }
        let links = |links: Option<&Links>| links.map_or(0, Links::len);
        let (links_before, more_links) = (links(self.links.as_ref()), links(next.links.as_ref()));
        match (&mut self.links, next.links) {
            (Some(links), Some(next)) if links.ends.is_empty() => *links = next,
            (Some(links), Some(next)) if next.width != links.width && !next.ends.is_empty() => {
                return Err(QueryError::Mixed("links".to_owned()));
            }
            (Some(links), Some(next)) => links.ends.extend(next.ends),
            (None, links) => self.links = links,
            _ => {}
        }
        let (objects, more_objects) = (self.objects.len(), next.objects.len());
        append(&mut self.vertex, next.vertex, before, rows)?;
        append(&mut self.fragment, next.fragment, before, rows)?;
        append(&mut self.link, next.link, links_before, more_links)?;
        append(&mut self.object, next.object, objects, more_objects)?;
        self.objects.extend(next.objects);
        match (&mut self.distances, next.distances) {
            (Some(distances), Some(next)) => distances.extend(next),
            (None, next) => self.distances = next,
            _ => {}
        }
        self.groups.extend(next.groups);
        match (&mut self.row_ids, next.row_ids) {
            (Some(ids), Some(next)) => ids.extend(next),
            (None, ids) => self.row_ids = ids,
            _ => {}
        }
        Ok(())
    }
}

/// Appends columns of `rows` rows to the columns of the same name.
fn append(
    columns: &mut Vec<Column>,
    next: Vec<Column>,
    before: usize,
    rows: usize,
) -> Result<(), QueryError> {
    for next in next {
        match columns.iter_mut().find(|column| column.name == next.name) {
            Some(column) => {
                column.extend_with_nulls(before);
                let appended = column.append(next);
                appended.map_err(|_| QueryError::Mixed(column.name.clone()))?;
            }
            None => {
                let mut column = next;
                column.prepend_nulls(before);
                columns.push(column);
            }
        }
    }
    let after = before.saturating_add(rows);
    for column in columns {
        column.extend_with_nulls(after);
    }
    Ok(())
}

/// Batches of a result, appended to each other.
#[derive(Default)]
pub(crate) struct CollectedResult {
    result: Option<QueryResult>,
    error: Option<QueryError>,
}

impl CollectedResult {
    pub(crate) fn push(&mut self, batch: QueryResult, budget: u64) -> ControlFlow<()> {
        let appended = match &mut self.result {
            None => {
                self.result = Some(batch);
                Ok(())
            }
            Some(whole) => whole.append(batch),
        };
        let bytes = self.result.as_ref().map_or(0, QueryResult::size);
        self.error = match appended {
            Err(error) => Some(error),
            Ok(()) if bytes > budget => Some(over_budget(bytes, budget)),
            Ok(()) => return ControlFlow::Continue(()),
        };
        ControlFlow::Break(())
    }

    pub(crate) fn finish(self) -> Result<Option<QueryResult>, QueryError> {
        self.error.map_or(Ok(self.result), Err)
    }
}

pub(crate) fn over_budget(bytes: u64, budget: u64) -> QueryError {
    let what = "the result would";
    let error = CatalogError::OverBudget {
        what,
        bytes,
        budget,
    };
    error.into()
}

#[cfg(test)]
mod tests;
