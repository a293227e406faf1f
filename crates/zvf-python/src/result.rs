//! Results of queries as dictionaries of arrays.

use pyo3::{prelude::*, types::PyDict};
use zvf::{LevelUse, QueryResult, Skipped};

use crate::columns::{array, attributes, indices, matrix};

/// Moves a result into a dictionary. Its keys are fields of `zvf._zvf.RawResult`.
pub(crate) fn dictionary(py: Python<'_>, result: QueryResult) -> PyResult<Bound<'_, PyDict>> {
    let raw = PyDict::new(py);
    raw.set_item("level", result.level.number())?;
    raw.set_item("levels", levels(&result.levels))?;
    raw.set_item("first_row", result.first_row)?;
    raw.set_item("axes", result.axes)?;
    raw.set_item("positions", matrix(py, result.positions)?)?;
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
        raw.set_item("skipped", skipped(result.skipped))?;
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

/// Returns the key and the reason of each skipped part.
pub(crate) fn skipped(parts: Vec<Skipped>) -> Vec<(String, String)> {
    let parts = parts.into_iter();
    parts
        .map(|part| (part.key.to_string(), part.reason))
        .collect()
}
