//! Columns as Arrow data, for the interfaces of `PyCapsule`.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, RecordBatch, StringArray,
    StructArray, UInt8Array, UInt32Array, make_array, types::UInt32Type,
};
use arrow_buffer::NullBuffer;
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Schema};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyCapsule, PyTuple},
};
use pyo3_arrow::{
    buffer::AnyBufferProtocol,
    ffi::{ArrayIterator, to_array_pycapsules, to_schema_pycapsule, to_stream_pycapsule},
};

/// A column of numbers, or of codes of words.
#[derive(FromPyObject)]
struct PyColumn<'py> {
    #[pyo3(item)]
    name: String,
    /// Type of the values, as NumPy names it.
    #[pyo3(item)]
    dtype: String,
    /// Number of values in a row; `None` for columns of one axis.
    #[pyo3(item)]
    width: Option<i32>,
    /// The bytes of the values.
    #[pyo3(item)]
    bytes: Bound<'py, PyAny>,
    #[pyo3(item)]
    rows: usize,
    #[pyo3(item)]
    words: Option<Vec<String>>,
    /// Rows without a value.
    #[pyo3(item)]
    nulls: Option<Vec<bool>>,
}

/// Columns of equal length as one record batch, which shares the memory of the arrays.
#[pyclass(frozen, module = "zvf._zvf", name = "RecordBatch")]
pub(crate) struct PyColumns(RecordBatch);

#[pymethods]
impl PyColumns {
    /// Borrows the memory of contiguous arrays of one or two axes.
    #[new]
    fn new(columns: Vec<PyColumn<'_>>, metadata: HashMap<String, String>) -> PyResult<Self> {
        let mut fields = Vec::with_capacity(columns.len());
        let mut arrays = Vec::with_capacity(columns.len());
        for column in columns {
            let name = column.name.clone();
            let array = array(column)?;
            let is_nullable = array.nulls().is_some();
            fields.push(Field::new(name, array.data_type().clone(), is_nullable));
            arrays.push(array);
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        RecordBatch::try_new(schema, arrays)
            .map(Self)
            .map_err(conversion_error)
    }

    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.0.schema_ref().as_ref())?)
    }

    fn array<'py>(
        &self,
        py: Python<'py>,
        requested: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let rows = StructArray::from(self.0.clone());
        Ok(to_array_pycapsules(py, self.field(), &rows, requested)?)
    }

    fn stream<'py>(
        &self,
        py: Python<'py>,
        requested: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let rows: ArrayRef = Arc::new(StructArray::from(self.0.clone()));
        let rows = ArrayIterator::new(std::iter::once(Ok(rows)), self.field());
        Ok(to_stream_pycapsule(py, Box::new(rows), requested)?)
    }
}

impl PyColumns {
    fn field(&self) -> Arc<Field> {
        let schema = self.0.schema_ref();
        let field = Field::new_struct("", schema.fields().clone(), false);
        Arc::new(field.with_metadata(schema.metadata().clone()))
    }
}

fn array(column: PyColumn<'_>) -> PyResult<ArrayRef> {
    let kind = data_type(&column.dtype)?;
    let width = column.width.unwrap_or(1);
    let values = column
        .rows
        .saturating_mul(usize::try_from(width).unwrap_or(0));
    let nulls = column
        .nulls
        .map(|mask| mask.into_iter().map(|null| !null).collect());
    let nulls: Option<NullBuffer> = nulls;
    let is_list = column.width.is_some();
    let own = nulls.clone().filter(|_| !is_list);
    let buffer = column
        .bytes
        .extract::<AnyBufferProtocol>()?
        .into_arrow_array()?;
    let bytes = buffer
        .as_any()
        .downcast_ref::<UInt8Array>()
        .ok_or_else(|| PyValueError::new_err("columns are bytes"))?;
    let values = if kind == DataType::Boolean {
        let bits = bytes.values().iter().map(|byte| *byte != 0).collect();
        Arc::new(BooleanArray::new(bits, own)) as ArrayRef
    } else {
        let data = ArrayData::builder(kind.clone())
            .len(values)
            .add_buffer(bytes.values().inner().clone())
            .nulls(own)
            .align_buffers(true);
        make_array(data.build().map_err(conversion_error)?)
    };
    if is_list {
        let item = Arc::new(Field::new("item", kind, false));
        let list = FixedSizeListArray::try_new(item, width, values, nulls);
        return Ok(Arc::new(list.map_err(conversion_error)?));
    }
    let Some(words) = column.words else {
        return Ok(values);
    };
    let codes = values
        .as_any()
        .downcast_ref::<UInt32Array>()
        .ok_or_else(|| PyValueError::new_err("codes of words are uint32"))?;
    let words = Arc::new(StringArray::from(words));
    let text = DictionaryArray::<UInt32Type>::try_new(codes.clone(), words);
    Ok(Arc::new(text.map_err(conversion_error)?))
}

fn data_type(name: &str) -> PyResult<DataType> {
    Ok(match name {
        "bool" => DataType::Boolean,
        "int8" => DataType::Int8,
        "int16" => DataType::Int16,
        "int32" => DataType::Int32,
        "int64" => DataType::Int64,
        "uint8" => DataType::UInt8,
        "uint16" => DataType::UInt16,
        "uint32" => DataType::UInt32,
        "uint64" => DataType::UInt64,
        "float16" => DataType::Float16,
        "float32" => DataType::Float32,
        "float64" => DataType::Float64,
        _ => {
            return Err(PyTypeError::new_err(format!(
                "Arrow has no type for {name}"
            )));
        }
    })
}

#[expect(clippy::needless_pass_by_value, reason = "the signature of map_err")]
fn conversion_error(error: arrow_schema::ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
