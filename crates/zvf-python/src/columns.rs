//! Columns of results as NumPy arrays that own the memory of the engine.

use numpy::{Element, PyArray1, PyArrayDescr, dtype};
use pyo3::{intern, prelude::*, types::PyTuple};
use zvf::{Column, ColumnValues, NumericColumn, numeric::Kind};

/// Moves values into a read-only array of one axis.
pub(crate) fn array<T: Element>(py: Python<'_>, values: Vec<T>) -> PyResult<Bound<'_, PyAny>> {
    let array = PyArray1::from_vec(py, values);
    array.call_method1(intern!(py, "setflags"), (false,))?;
    Ok(array.into_any())
}

/// Moves unsigned values below 2^63 into a read-only array of `int64`.
pub(crate) fn indices(py: Python<'_>, values: Vec<u64>) -> PyResult<Bound<'_, PyAny>> {
    array(py, values)?.call_method1(intern!(py, "view"), (dtype::<i64>(py),))
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
    elements(py, column)?.call_method1(intern!(py, "reshape"), shape)
}

fn elements(py: Python<'_>, column: NumericColumn) -> PyResult<Bound<'_, PyAny>> {
    let kind = dtype_of(py, column.kind)?;
    array(py, column.bytes)?.call_method1(intern!(py, "view"), (kind,))
}

/// Returns the type of NumPy. NumPy takes about as long to look up the name of a type as to make a
/// view.
fn dtype_of(py: Python<'_>, kind: Kind) -> PyResult<Bound<'_, PyArrayDescr>> {
    Ok(match kind {
        Kind::UInt8 => dtype::<u8>(py),
        Kind::Int32 => dtype::<i32>(py),
        Kind::Int64 => dtype::<i64>(py),
        Kind::Float32 => dtype::<f32>(py),
        Kind::Float64 => dtype::<f64>(py),
        kind => PyArrayDescr::new(py, kind.name())?,
    })
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
