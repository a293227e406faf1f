//! Arrow data of other packages as columns, through the interfaces of `PyCapsule`.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyTuple,
};
use pyo3_arrow::input::{AnyArray, AnyRecordBatch};
use zvf_arrow::{ConversionError, column_of, empty_column_of};

use crate::columns::attribute;

/// The chunks of a column, each as `(name, values, words, nulls)`. There is at least one.
type ColumnChunks<'py> = Vec<Bound<'py, PyTuple>>;

/// Converts the columns of a table or of a stream of record batches.
#[pyfunction]
pub(crate) fn arrow_columns(
    py: Python<'_>,
    table: AnyRecordBatch,
) -> PyResult<Vec<ColumnChunks<'_>>> {
    let (batches, schema) = table.into_table()?.into_inner();
    let fields = schema.fields().iter().enumerate();
    let columns = fields.map(|(at, field)| {
        let chunks = batches.iter().map(|batch| batch.column(at));
        column_chunks(py, field.name(), field.data_type(), chunks)
    });
    columns.collect()
}

/// Converts an array or a stream of arrays.
#[pyfunction]
pub(crate) fn arrow_column<'py>(
    py: Python<'py>,
    name: &str,
    array: AnyArray,
) -> PyResult<ColumnChunks<'py>> {
    let (chunks, field) = array.into_chunked_array()?.into_inner();
    column_chunks(py, name, field.data_type(), chunks.iter())
}

fn column_chunks<'py, 'a>(
    py: Python<'py>,
    name: &str,
    of: &DataType,
    chunks: impl Iterator<Item = &'a ArrayRef>,
) -> PyResult<ColumnChunks<'py>> {
    let converted = chunks.map(|chunk| attribute(py, column_of(name, chunk).map_err(unusable)?));
    let mut found = converted.collect::<PyResult<Vec<_>>>()?;
    if found.is_empty() {
        found.push(attribute(py, empty_column_of(name, of).map_err(unusable)?)?);
    }
    Ok(found)
}

#[expect(clippy::needless_pass_by_value, reason = "the signature of map_err")]
fn unusable(error: ConversionError) -> PyErr {
    match error {
        ConversionError::Type { .. } => PyTypeError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}
