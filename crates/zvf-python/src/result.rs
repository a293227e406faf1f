//! Results of queries as tuples of arrays.

use pyo3::{
    IntoPyObjectExt, intern,
    prelude::*,
    types::{PyDict, PyTuple},
};
use zvf::{
    Column, Dataset, LevelUse, Links, ObjectGroup, ObjectIds, Query, QueryResult, Region, Skipped,
};

use crate::{
    columns::{array, attributes, indices, matrix},
    errors::{IntoException, exception, filter_exception, warn},
};

/// A result.
pub(crate) struct FoundResult {
    pub(crate) result: QueryResult,
    /// The transaction to which addresses of vertices belong, if there are any.
    pub(crate) transaction: Option<u64>,
    /// The box of the query, if nothing can be in it.
    pub(crate) empty_box: Option<EmptyBox>,
}

/// The reason for the absence of a result.
pub(crate) enum QueryFailure {
    Engine(zvf::Error),
    /// An error of a query with a predicate.
    Filtered(zvf::Error),
    /// A commit during the query makes its addresses of vertices useless.
    Changed,
}

impl QueryFailure {
    /// Returns the failure of a query.
    pub(crate) fn of(query: &Query, error: zvf::Error) -> Self {
        match query.filter {
            Some(_) => Self::Filtered(error),
            None => Self::Engine(error),
        }
    }
}

impl IntoException for QueryFailure {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        let changed = "the store changed during the query, so its row ids are outdated; \
                       run the query again";
        match self {
            Self::Engine(error) => error.into_exception(py),
            Self::Filtered(error) => filter_exception(py, error),
            Self::Changed => exception(py, "ConflictError", changed, None, None),
        }
    }
}

/// Runs a query.
pub(crate) async fn found(dataset: &Dataset, query: &Query) -> Result<FoundResult, QueryFailure> {
    let before = dataset.transaction();
    let failed = |error| QueryFailure::of(query, error);
    let result = dataset.query(query).await.map_err(failed)?;
    if query.row_ids && dataset.transaction() != before {
        return Err(QueryFailure::Changed);
    }
    let is_empty = result.positions.is_empty();
    Ok(FoundResult {
        empty_box: EmptyBox::of(dataset, query).filter(|_| is_empty),
        result,
        transaction: query.row_ids.then_some(before),
    })
}

/// A box that nothing can be in.
pub(crate) struct EmptyBox {
    why: String,
    /// True if a lower bound is above the upper one. A box outside the store may be a tile of many.
    is_mistaken: bool,
}

impl EmptyBox {
    /// Returns the box of a query, if nothing can be in it.
    pub(crate) fn of(dataset: &Dataset, query: &Query) -> Option<Self> {
        let Some(Region::Box(bbox)) = &query.region else {
            return None;
        };
        bbox.why_empty(dataset.root()).map(|why| Self {
            why,
            is_mistaken: bbox.is_empty(),
        })
    }

    /// Warns if the box is mistaken, and returns a note.
    pub(crate) fn tell(self, py: Python<'_>) -> PyResult<String> {
        if self.is_mistaken {
            warn(py, "ZvfWarning", &self.why)?;
        }
        Ok(self.why)
    }
}

/// Moves a result into a tuple with the elements of `zvf._raw.RawResult`.
pub(crate) fn tuple(py: Python<'_>, found: FoundResult) -> PyResult<Bound<'_, PyTuple>> {
    let FoundResult {
        mut result,
        transaction,
        empty_box,
    } = found;
    if let Some(found) = empty_box {
        result.notes.push(found.tell(py)?);
    }
    let (offsets, part_objects) = result
        .parts
        .map(|parts| (parts.offsets, parts.objects))
        .unzip();
    let elements = [
        result.level.number().into_bound_py_any(py)?,
        levels(&result.levels).into_bound_py_any(py)?,
        result.first_row.into_bound_py_any(py)?,
        result.axes.into_bound_py_any(py)?,
        result.notes.into_bound_py_any(py)?,
        matrix(py, result.positions)?,
        array(py, result.objects)?,
        optional(py, offsets, indices)?,
        optional(py, part_objects, array)?,
        optional(py, result.object_ids.map(ObjectIds::into_numbers), array)?,
        optional(py, result.row_ids, array)?,
        transaction.into_bound_py_any(py)?,
        optional(py, result.links, ends)?,
        optional(py, result.distances, array)?,
        family(py, result.vertex)?,
        family(py, result.fragment)?,
        family(py, result.link)?,
        family(py, result.object)?,
        groups(py, result.groups)?.into_any(),
        skipped(&result.skipped).into_bound_py_any(py)?,
        damaged(&result.skipped).into_bound_py_any(py)?,
    ];
    PyTuple::new(py, elements)
}

/// Converts a value, or returns `None` of Python.
fn optional<'py, T>(
    py: Python<'py>,
    value: Option<T>,
    convert: impl FnOnce(Python<'py>, T) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Some(value) => convert(py, value),
        None => Ok(py.None().into_bound(py)),
    }
}

/// Moves the ends of links into an array with a row for each link.
fn ends(py: Python<'_>, links: Links) -> PyResult<Bound<'_, PyAny>> {
    let width = usize::try_from(links.width.max(1)).unwrap_or(1);
    let shape = (links.ends.len() / width, width);
    indices(py, links.ends)?.call_method1(intern!(py, "reshape"), shape)
}

/// Moves attributes into a list, or returns `None` of Python if there are none.
fn family(py: Python<'_>, columns: Vec<Column>) -> PyResult<Bound<'_, PyAny>> {
    let columns = (!columns.is_empty()).then_some(columns);
    optional(py, columns, |py, columns| {
        attributes(py, columns)?.into_bound_py_any(py)
    })
}

fn groups(py: Python<'_>, groups: Vec<ObjectGroup>) -> PyResult<Bound<'_, PyDict>> {
    let members = PyDict::new(py);
    for group in groups {
        members.set_item(group.id, array(py, group.members)?)?;
    }
    Ok(members)
}

/// Returns the level and the number of vertices of each use.
pub(crate) fn levels(levels: &[LevelUse]) -> Vec<(u32, u64)> {
    let levels = levels.iter();
    levels
        .map(|level| (level.level.number(), level.vertices))
        .collect()
}

/// Returns the key and the reason of each skipped part.
pub(crate) fn skipped(parts: &[Skipped]) -> Vec<(String, &str)> {
    parts.iter().map(described).collect()
}

/// Returns the key and the reason of each skipped part that is damaged.
pub(crate) fn damaged(parts: &[Skipped]) -> Vec<(String, &str)> {
    let damaged = parts.iter().filter(|part| !part.is_absent);
    damaged.map(described).collect()
}

fn described(part: &Skipped) -> (String, &str) {
    (part.key.to_string(), &part.reason)
}
