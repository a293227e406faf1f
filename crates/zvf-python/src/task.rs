//! Queries that an event loop awaits.

use futures_util::future::AbortHandle;
use pyo3::prelude::*;

use crate::{dataset::PyDataset, engine, errors::IntoException, query, result};

/// A running query.
#[pyclass(frozen, module = "zvf._zvf", name = "Task")]
pub(crate) struct PyTask(AbortHandle);

#[pymethods]
impl PyTask {
    /// Ends the query at its next await. Its callback is not called.
    fn cancel(&self) {
        self.0.abort();
    }
}

/// Starts a query. `done(result, error)` is called from another thread, with one of them `None`.
#[pyfunction]
pub(crate) fn start_query(
    dataset: &Bound<'_, PyDataset>,
    keywords: &Bound<'_, pyo3::types::PyDict>,
    done: Bound<'_, PyAny>,
) -> PyResult<PyTask> {
    let query = query::query(keywords)?;
    let dataset = dataset.get().current();
    let done = done.unbind();
    let work = async move { result::found(&dataset, &query).await };
    let handle = engine::spawn(work, move |found| {
        // Nothing waits for the result of an interpreter that is ending.
        let _ = Python::try_attach(|py| {
            let found = found
                .map_err(|error| error.into_exception(py))
                .and_then(|found| result::tuple(py, found));
            let called = match found {
                Ok(found) => done.call1(py, (found, py.None())),
                Err(error) => done.call1(py, (py.None(), error.into_value(py))),
            };
            if let Err(error) = called {
                error.write_unraisable(py, None);
            }
        });
    })?;
    Ok(PyTask(handle))
}
