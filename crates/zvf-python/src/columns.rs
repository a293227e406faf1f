//! Columns of results as NumPy arrays that own the memory of the engine.

use numpy::{Element, PyArray1};
use pyo3::{prelude::*, types::PyTuple};
use zvf::{Column, ColumnValues, NumericColumn};

/// Moves values into a read-only array of one axis.
pub(crate) fn array<T: Element>(py: Python<'_>, values: Vec<T>) -> PyResult<Bound<'_, PyAny>> {
    let array = PyArray1::from_vec(py, values);
    array.call_method1("setflags", (false,))?;
    Ok(array.into_any())
}

/// Moves unsigned values below 2^63 into a read-only array of `int64`.
pub(crate) fn indices(py: Python<'_>, values: Vec<u64>) -> PyResult<Bound<'_, PyAny>> {
    array(py, values)?.call_method1("view", ("int64",))
}

/// Moves numbers into a read-only array with one row per row of the column, and an axis for the
/// values in a row unless there is one.
pub(crate) fn numbers(py: Python<'_>, column: NumericColumn) -> PyResult<Bound<'_, PyAny>> {
    match column.width {
        1 => elements(py, column),
        _ => matrix(py, column),
    }
}

/// Moves numbers into a read-only array of two axes.
pub(crate) fn matrix(py: Python<'_>, column: NumericColumn) -> PyResult<Bound<'_, PyAny>> {
    let shape = (column.bytes.len() / column.row_size().max(1), column.width);
    elements(py, column)?.call_method1("reshape", shape)
}

fn elements(py: Python<'_>, column: NumericColumn) -> PyResult<Bound<'_, PyAny>> {
    let name = column.kind.name();
    array(py, column.bytes)?.call_method1("view", (name,))
}

/// Converts attributes to a list of `(name, values, words, nulls)`. Text is a column of codes with
/// a list of words.
pub(crate) fn attributes(
    py: Python<'_>,
    columns: Vec<Column>,
) -> PyResult<Vec<Bound<'_, PyTuple>>> {
    columns
        .into_iter()
        .map(|column| attribute(py, column))
        .collect()
}

/// Converts an attribute to `(name, values, words, nulls)`.
pub(crate) fn attribute(py: Python<'_>, column: Column) -> PyResult<Bound<'_, PyTuple>> {
    let nulls = column.nulls.map(|nulls| array(py, nulls)).transpose()?;
    let (values, words) = match column.values {
        ColumnValues::Numeric(values) => (numbers(py, values)?, None),
        ColumnValues::Dictionary { codes, words } => (array(py, codes)?, Some(words.to_vec())),
    };
    (column.name, values, words, nulls).into_pyobject(py)
}
