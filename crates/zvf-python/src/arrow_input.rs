//! Arrow data of other packages as columns, through the interfaces of `PyCapsule`.

use std::{path::PathBuf, sync::Arc};

use arrow_array::{Array as _, ArrayRef, RecordBatch, RecordBatchReader as _, StringArray};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::{
    exceptions::{PyOSError, PyTypeError, PyValueError},
    prelude::*,
    types::PyTuple,
};
use pyo3_arrow::{
    PyTable,
    input::{AnyArray, AnyRecordBatch},
};
use tempfile::TempPath;
use zvf::{Column, ColumnValues};
use zvf_arrow::{ConversionError, array_of, column_of, empty_column_of};

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

/// Rows that are encoded at a time.
const SPOOLED_ROWS: usize = 1 << 16;

/// A table in a temporary file, which ends with this value.
#[pyclass(frozen, module = "zvf._zvf", name = "SpooledTable")]
pub(crate) struct PySpooledTable(TempPath);

#[pymethods]
impl PySpooledTable {
    #[getter]
    fn path(&self) -> PathBuf {
        self.0.to_path_buf()
    }
}

/// Takes the batches of a table. Returns a table in memory, or, if the batches take more than `max`
/// bytes, one in a temporary file of `folder`, without having held more.
#[pyfunction]
pub(crate) fn taken_table(
    py: Python<'_>,
    table: AnyRecordBatch,
    max: usize,
    folder: PathBuf,
) -> PyResult<Bound<'_, PyAny>> {
    let mut batches = table.into_reader()?;
    let schema = batches.schema();
    let (mut held, mut size) = (Vec::new(), 0_usize);
    while size <= max {
        let Some(batch) = batches.next() else {
            return Ok(PyTable::try_new(held, schema)?
                .into_pyobject(py)?
                .into_any());
        };
        let batch = batch.map_err(unusable_stream)?;
        size = size.saturating_add(size_of_rows(&batch));
        held.push(batch);
    }
    let file = tempfile::Builder::new()
        .prefix(".zvf-")
        .suffix(".arrow")
        .tempfile_in(folder);
    let (file, path) = file.map_err(PyErr::from)?.into_parts();
    let fields = schema
        .fields()
        .iter()
        .map(|field| {
            let empty = empty_column_of(field.name(), field.data_type()).map_err(unusable)?;
            let of = spooled(empty)?.data_type().clone();
            Ok(Field::new(field.name(), of, true))
        })
        .collect::<PyResult<Vec<_>>>()?;
    // A table in memory has no other description either.
    let types = Arc::new(Schema::new(fields));
    let mut writer = FileWriter::try_new_buffered(file, &types).map_err(not_written)?;
    for batch in held.into_iter().map(Ok).chain(batches) {
        let batch = batch.map_err(unusable_stream)?;
        for start in (0..batch.num_rows()).step_by(SPOOLED_ROWS) {
            let rows = batch.slice(
                start,
                SPOOLED_ROWS.min(batch.num_rows().saturating_sub(start)),
            );
            let columns = rows
                .columns()
                .iter()
                .zip(types.fields())
                .map(|(array, field)| spooled(column_of(field.name(), array).map_err(unusable)?))
                .collect::<PyResult<Vec<_>>>()?;
            let encoded = RecordBatch::try_new(Arc::clone(&types), columns);
            let written = encoded.and_then(|encoded| writer.write(&encoded));
            written.map_err(not_written)?;
        }
    }
    writer.finish().map_err(not_written)?;
    Ok(Bound::new(py, PySpooledTable(path))?.into_any())
}

/// Returns the size of the rows of a batch, which may be a small part of its buffers.
fn size_of_rows(batch: &RecordBatch) -> usize {
    let sizes = batch.columns().iter().map(|column| {
        let rows = column.to_data().get_slice_memory_size();
        rows.unwrap_or_else(|_| column.get_array_memory_size())
    });
    sizes.fold(0, usize::saturating_add)
}

/// Returns a column as a file holds it: missing floats as NaN, and text without a dictionary, because
/// a file has one dictionary for all batches.
fn spooled(mut column: Column) -> PyResult<ArrayRef> {
    match &mut column.values {
        ColumnValues::Dictionary { codes, words } => {
            let nulls = column.nulls.as_deref().unwrap_or_default();
            let rows = codes.iter().enumerate().map(|(row, code)| {
                let is_null = nulls.get(row).copied().unwrap_or(false);
                let word = usize::try_from(*code).ok().and_then(|at| words.get(at));
                word.filter(|_| !is_null)
            });
            Ok(Arc::new(rows.collect::<StringArray>()))
        }
        ColumnValues::Numeric(numbers) => {
            if let Some(nulls) = column.nulls.take() {
                let kind = numbers.kind;
                let nan = kind.nan().ok_or_else(|| {
                    PyValueError::new_err(format!(
                        "{} has missing values, which {} cannot express; fill them, or convert the \
                         column to floats",
                        column.name,
                        kind.name()
                    ))
                })?;
                let size = numbers.row_size().max(1);
                let rows = numbers.bytes.chunks_exact_mut(size).zip(nulls);
                for (row, _) in rows.filter(|(_, is_null)| *is_null) {
                    for value in row.chunks_exact_mut(nan.len()) {
                        value.copy_from_slice(nan);
                    }
                }
            }
            array_of(column).map_err(unusable)
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the signature of map_err")]
fn unusable_stream(error: ArrowError) -> PyErr {
    PyValueError::new_err(format!("the stream of Arrow cannot be read: {error}"))
}

#[expect(clippy::needless_pass_by_value, reason = "the signature of map_err")]
fn not_written(error: ArrowError) -> PyErr {
    PyOSError::new_err(format!(
        "the rows cannot be written to a temporary file: {error}"
    ))
}
