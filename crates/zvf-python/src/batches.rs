//! Results in batches.

use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError},
    vec,
};

use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_schema::{ArrowError, Field, SchemaRef};
use futures_util::TryStreamExt;
use pyo3::{
    exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError},
    prelude::*,
    types::{PyCapsule, PyDict, PyTuple},
};
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};
use zvf::{BatchOptions, BatchStream, Dataset, Query, QueryReport};
use zvf_files::{FileFault, VertexBatches};

use crate::{
    engine,
    errors::{IntoException, unusable},
    result::{self, FoundResult, damaged, levels, skipped},
};

/// The rest of a result. `zvf.Batches` documents the methods.
#[pyclass(frozen, module = "zvf._zvf", name = "Batches")]
pub(crate) struct PyBatches {
    dataset: Dataset,
    query: Query,
    options: BatchOptions,
    state: Mutex<BatchState>,
    /// The transaction to which addresses of vertices belong.
    transaction: Option<u64>,
    /// The schema of the stream, once it is known.
    schema: OnceLock<SchemaRef>,
    /// The report of the last stream that came to its end.
    streamed: Arc<Mutex<Option<QueryReport>>>,
}

enum BatchState {
    /// No batch has been taken.
    New,
    /// The stream has more, or is at its end and has a report.
    Ready(Box<BatchStream<zvf::Error>>),
    /// A call is reading the next batch.
    Busy,
    /// The query failed or the iterator was closed.
    Closed,
}

impl PyBatches {
    pub(crate) fn new(dataset: Dataset, query: Query, options: BatchOptions) -> Self {
        Self {
            transaction: query.row_ids.then(|| dataset.transaction()),
            dataset,
            query,
            options,
            state: Mutex::new(BatchState::New),
            schema: OnceLock::new(),
            streamed: Arc::default(),
        }
    }

    fn replace(&self, next: BatchState) -> BatchState {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        core::mem::replace(&mut *state, next)
    }

    fn start(&self) -> Box<BatchStream<zvf::Error>> {
        Box::new(self.dataset.stream(&self.query, self.options))
    }

    /// Starts the query anew, and reads its first batch if the schema is not known yet.
    fn reader(&self, py: Python<'_>) -> PyResult<BatchReader> {
        let mut reader = BatchReader {
            stream: Some(self.start()),
            encoder: VertexBatches::new(),
            encoded: Vec::new().into_iter(),
            check: None,
            report: Arc::clone(&self.streamed),
        };
        if self.schema.get().is_none() {
            let is_found = reader.read(py)?;
            let schema = if is_found {
                reader.encoder.known_schema()
            } else {
                let nothing = self.query.clone().limit(0);
                let empty = engine::run(py, self.dataset.query(&nothing))?;
                Some(
                    reader
                        .encoder
                        .schema(&empty)
                        .map_err(|fault| unusable(&fault))?,
                )
            };
            let schema = schema.ok_or_else(|| PyRuntimeError::new_err("a batch has no schema"))?;
            // Another thread may have found it as well.
            let _ = self.schema.set(schema);
        }
        Ok(reader)
    }

    fn field(&self) -> PyResult<Arc<Field>> {
        let schema = self.schema.get();
        let schema = schema.ok_or_else(|| PyRuntimeError::new_err("the schema is not known"))?;
        let field = Field::new_struct("", schema.fields().clone(), false);
        Ok(Arc::new(field.with_metadata(schema.metadata().clone())))
    }
}

#[pymethods]
impl PyBatches {
    /// Returns the next batch, or `None` at the end.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let mut stream = match self.replace(BatchState::Busy) {
            BatchState::New => self.start(),
            BatchState::Ready(stream) => stream,
            BatchState::Busy => {
                return Err(PyValueError::new_err(
                    "another thread is reading the next batch",
                ));
            }
            BatchState::Closed => {
                self.replace(BatchState::Closed);
                return Ok(None);
            }
        };
        let next = engine::run(py, stream.try_next());
        // After Ctrl-C the stream continues where it was.
        self.replace(BatchState::Ready(stream));
        let tuple = |result| {
            let transaction = self.transaction;
            result::tuple(
                py,
                FoundResult {
                    result,
                    transaction,
                    empty_box: None,
                },
            )
        };
        next?.map(tuple).transpose()
    }

    /// Returns the schema of the vertices.
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        if self.schema.get().is_none() {
            drop(self.reader(py)?);
        }
        let field = self.field()?;
        Ok(to_schema_pycapsule(py, field.as_ref())?)
    }

    /// Returns the vertices of the whole result, which a query of its own finds while they are taken.
    /// `check` is called after each batch of it.
    fn stream<'py>(
        &self,
        py: Python<'py>,
        requested: Option<Bound<'py, PyCapsule>>,
        check: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if !matches!(*state, BatchState::New) {
                return Err(PyValueError::new_err(
                    "batches have been taken or closed, and a stream has all of them; call batches \
                     again",
                ));
            }
        }
        let mut reader = self.reader(py)?;
        reader.check = check;
        reader.check(py)?;
        let rows = Box::new(ArrayIterator::new(reader, self.field()?));
        Ok(to_stream_pycapsule(py, rows, requested)?)
    }

    /// Returns the levels, skipped parts and notes of the result, once it has ended.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let streamed = self.streamed.lock().unwrap_or_else(PoisonError::into_inner);
        let report = match &*state {
            BatchState::Ready(stream) => stream.report(),
            _ => streamed.as_ref(),
        };
        let Some(report) = report else {
            return Ok(None);
        };
        let found = PyDict::new(py);
        found.set_item("levels", levels(&report.levels))?;
        found.set_item("skipped", skipped(&report.skipped))?;
        found.set_item("damaged", damaged(&report.skipped))?;
        found.set_item("notes", report.notes.clone())?;
        Ok(Some(found))
    }

    /// Ends the query.
    fn close(&self) {
        drop(self.replace(BatchState::Closed));
    }
}

/// The vertices of a result, for a stream of Arrow.
struct BatchReader {
    /// The query; `None` after its end.
    stream: Option<Box<BatchStream<zvf::Error>>>,
    encoder: VertexBatches,
    encoded: vec::IntoIter<RecordBatch>,
    check: Option<Py<PyAny>>,
    report: Arc<Mutex<Option<QueryReport>>>,
}

impl BatchReader {
    /// Reads the next batch. Returns whether there is one.
    fn read(&mut self, py: Python<'_>) -> PyResult<bool> {
        let Some(mut stream) = self.stream.take() else {
            return Ok(false);
        };
        let encoder = &mut self.encoder;
        let next = engine::run(py, async {
            let batch = stream.try_next().await.map_err(ReadError::Query)?;
            let encoded = batch.map(|batch| encoder.encode(&batch));
            encoded.transpose().map_err(ReadError::Encode)
        })?;
        match next {
            Some(encoded) => {
                self.encoded = encoded.into_iter();
                self.stream = Some(stream);
                Ok(true)
            }
            None => {
                let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
                *report = stream.report().cloned();
                Ok(false)
            }
        }
    }

    fn check(&self, py: Python<'_>) -> PyResult<()> {
        match &self.check {
            Some(check) => check.call0(py).map(drop),
            None => Ok(()),
        }
    }

    fn next_batch(&mut self) -> PyResult<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.encoded.next() {
                return Ok(Some(batch));
            }
            let read: Option<PyResult<bool>> = Python::try_attach(|py| {
                let is_found = self.read(py)?;
                self.check(py)?;
                Ok(is_found)
            });
            match read {
                Some(Ok(true)) => {}
                Some(Ok(false)) => return Ok(None),
                Some(Err(error)) => return Err(error),
                None => return Err(PyRuntimeError::new_err("Python is shutting down")),
            }
        }
    }
}

impl Iterator for BatchReader {
    type Item = Result<ArrayRef, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_batch() {
            Ok(batch) => {
                let rows = |batch| Ok(Arc::new(StructArray::from(batch)) as ArrayRef);
                batch.map(rows)
            }
            Err(error) => {
                self.stream = None;
                Some(Err(stream_error(&error)))
            }
        }
    }
}

/// Returns the error of a stream, which only has text. Python sees an interrupt again.
fn stream_error(error: &PyErr) -> ArrowError {
    let text = Python::try_attach(|py| {
        if error.is_instance_of::<PyKeyboardInterrupt>(py) {
            let interrupted = py.import("_thread");
            let _ = interrupted.and_then(|thread| thread.call_method0("interrupt_main"));
        }
        error.to_string()
    });
    // The text of a C string ends at NUL.
    let text = text.unwrap_or_default().replace('\0', "\u{fffd}");
    ArrowError::ExternalError(text.into())
}

/// The reason why a batch of a stream is missing.
enum ReadError {
    Query(zvf::Error),
    Encode(FileFault),
}

impl IntoException for ReadError {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Query(error) => error.into_exception(py),
            Self::Encode(fault) => unusable(&fault),
        }
    }
}
