//! Results in batches.

use std::sync::{Mutex, PoisonError};

use futures_util::TryStreamExt;
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyDict, PyTuple},
};
use zvf::BatchStream;

use crate::{
    engine,
    result::{self, FoundResult, damaged, levels, skipped},
};

/// The rest of a result. `zvf.Batches` documents the methods.
#[pyclass(frozen, module = "zvf._zvf", name = "Batches")]
pub(crate) struct PyBatches {
    state: Mutex<BatchState>,
    /// The transaction to which addresses of vertices belong.
    transaction: Option<u64>,
}

enum BatchState {
    /// The stream has more, or is at its end and has a report.
    Ready(Box<BatchStream<zvf::Error>>),
    /// A call is reading the next batch.
    Busy,
    /// The query failed or the iterator was closed.
    Closed,
}

impl PyBatches {
    pub(crate) fn new(stream: BatchStream<zvf::Error>, transaction: Option<u64>) -> Self {
        Self {
            state: Mutex::new(BatchState::Ready(Box::new(stream))),
            transaction,
        }
    }

    fn replace(&self, next: BatchState) -> BatchState {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        core::mem::replace(&mut *state, next)
    }
}

#[pymethods]
impl PyBatches {
    /// Returns the next batch, or `None` at the end.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let mut stream = match self.replace(BatchState::Busy) {
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
                    why_empty: None,
                    is_mistaken: false,
                },
            )
        };
        next?.map(tuple).transpose()
    }

    /// Returns the levels, skipped parts and notes of the result, once it has ended.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let BatchState::Ready(stream) = &*state else {
            return Ok(None);
        };
        let Some(report) = stream.report() else {
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
