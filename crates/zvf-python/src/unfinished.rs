//! Warnings about changes that are committed but could not be finished.

use std::ffi::CString;

use pyo3::{exceptions::PyRuntimeWarning, prelude::*};

/// Warns if a committed change could not be finished, for a reason such as a full disk.
pub(crate) fn warn_unfinished(py: Python<'_>, why: Option<&String>) -> PyResult<()> {
    let Some(why) = why else {
        return Ok(());
    };
    let text = format!(
        "the change is committed and complete for readers, but files could not be tidied up; the \
         next change does that: {why}"
    );
    let category = py.get_type::<PyRuntimeWarning>();
    PyErr::warn(py, &category, &CString::new(text)?, 2)
}
