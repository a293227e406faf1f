//! Results of queries as dictionaries of arrays.

use pyo3::{prelude::*, types::PyDict};
use zvf::{Dataset, LevelUse, Query, QueryResult, Skipped};

use crate::{
    columns::{array, attributes, indices, matrix},
    errors::{IntoException, exception},
};

/// A result.
pub(crate) struct FoundResult {
    pub(crate) result: QueryResult,
    /// The transaction to which addresses of vertices belong, if there are any.
    pub(crate) transaction: Option<u64>,
}

/// The reason for the absence of a result.
pub(crate) enum QueryFailure {
    Engine(zvf::Error),
    /// A commit during the query makes its addresses of vertices useless.
    Changed,
}

impl IntoException for QueryFailure {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        let changed = "the store changed during the query, so its row ids are outdated; \
                       run the query again";
        match self {
            Self::Engine(error) => error.into_exception(py),
            Self::Changed => exception(py, "ConflictError", changed, None, None),
        }
    }
}

/// Runs a query.
pub(crate) async fn found(dataset: &Dataset, query: &Query) -> Result<FoundResult, QueryFailure> {
    let before = dataset.transaction();
    let result = dataset.query(query).await.map_err(QueryFailure::Engine)?;
    if query.row_ids && dataset.transaction() != before {
        return Err(QueryFailure::Changed);
    }
    Ok(FoundResult {
        result,
        transaction: query.row_ids.then_some(before),
    })
}

/// Moves a result into a dictionary. Its keys are fields of `zvf._zvf.RawResult`.
pub(crate) fn dictionary(py: Python<'_>, found: FoundResult) -> PyResult<Bound<'_, PyDict>> {
    let FoundResult {
        result,
        transaction,
    } = found;
    let raw = PyDict::new(py);
    if let Some(transaction) = transaction {
        raw.set_item("transaction", transaction)?;
    }
    raw.set_item("level", result.level.number())?;
    raw.set_item("levels", levels(&result.levels))?;
    raw.set_item("first_row", result.first_row)?;
    raw.set_item("axes", result.axes)?;
    raw.set_item("positions", matrix(py, result.positions)?)?;
    if let Some(ids) = result.row_ids {
        raw.set_item("row_ids", array(py, ids)?)?;
    }
    if let Some(ids) = result.object_ids {
        raw.set_item("object_ids", array(py, ids)?)?;
    }
    if let Some(parts) = result.parts {
        raw.set_item("part_offsets", indices(py, parts.offsets)?)?;
        raw.set_item("part_objects", array(py, parts.objects)?)?;
    }
    if let Some(links) = result.links {
        let width = usize::try_from(links.width.max(1)).unwrap_or(1);
        let shape = (links.ends.len() / width, width);
        let links = indices(py, links.ends)?.call_method1("reshape", shape)?;
        raw.set_item("links", links)?;
    }
    raw.set_item("objects", array(py, result.objects)?)?;
    for (name, columns) in [
        ("vertex", result.vertex),
        ("fragment", result.fragment),
        ("link", result.link),
        ("object", result.object),
    ] {
        if !columns.is_empty() {
            raw.set_item(name, attributes(py, columns)?)?;
        }
    }
    if let Some(distances) = result.distances {
        raw.set_item("distances", array(py, distances)?)?;
    }
    if !result.groups.is_empty() {
        let groups = PyDict::new(py);
        for group in result.groups {
            groups.set_item(group.id, array(py, group.members)?)?;
        }
        raw.set_item("groups", groups)?;
    }
    if !result.skipped.is_empty() {
        set_skipped(&raw, &result.skipped)?;
    }
    raw.set_item("notes", result.notes)?;
    Ok(raw)
}

/// Returns the level and the number of vertices of each use.
pub(crate) fn levels(levels: &[LevelUse]) -> Vec<(u32, u64)> {
    let levels = levels.iter();
    levels
        .map(|level| (level.level.number(), level.vertices))
        .collect()
}

/// Sets the key and the reason of each skipped part, and of each that is damaged.
pub(crate) fn set_skipped(raw: &Bound<'_, PyDict>, parts: &[Skipped]) -> PyResult<()> {
    let described = |part: &Skipped| (part.key.to_string(), part.reason.clone());
    let damaged = parts.iter().filter(|part| !part.is_absent);
    raw.set_item("damaged", damaged.map(described).collect::<Vec<_>>())?;
    raw.set_item("skipped", parts.iter().map(described).collect::<Vec<_>>())
}
