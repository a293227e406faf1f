//! Errors of the engine as exceptions of the package.

use std::{ffi::CString, io, iter::successors};

use pyo3::{exceptions::PyValueError, prelude::*, types::PyString};
use zvf::{Error, ErrorKind, StateError};
use zvf_catalog::CatalogError;
use zvf_dense::DenseError;
use zvf_files::FileError;
use zvf_model::error_chain::error_chain;
use zvf_query::QueryError;
use zvf_render::RenderError;
use zvf_store::{CreateError, ListError};

use crate::phrases::in_python;

/// An error that Python code sees as an exception.
pub(crate) trait IntoException {
    /// Returns the exception.
    fn into_exception(self, py: Python<'_>) -> PyErr;
}

impl IntoException for PyErr {
    fn into_exception(self, _py: Python<'_>) -> PyErr {
        self
    }
}

impl IntoException for Error {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        let key = self.key().map(ToString::to_string);
        let chunk = match self.cause() {
            Some(CatalogError::Damaged(damage)) => damage.chunk.as_ref(),
            _ => None,
        };
        let chunk = chunk.map(ToString::to_string);
        exception(py, class(&self), &error_chain(&self), key, chunk)
    }
}

/// Returns an exception for an error of a query with a predicate, in which text without quotes is the
/// name of an attribute.
pub(crate) fn filter_exception(py: Python<'_>, error: Error) -> PyErr {
    match error.cause() {
        Some(
            absent @ CatalogError::NoAttribute {
                scope: None, name, ..
            },
        ) if !absent.has_suggestion() => {
            let why = error_chain(&error);
            let text = format!("{why}; put text to compare with in single quotes, as '{name}'");
            exception(py, class(&error), &text, None, None)
        }
        _ => error.into_exception(py),
    }
}

impl IntoException for RenderError {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Store(error) => error.into_exception(py),
            error => exception(py, "InputError", &error_chain(&error), None, None),
        }
    }
}

impl IntoException for DenseError {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        let class = match &self {
            Self::Budget { .. } => "MemoryLimitError",
            Self::Io { .. } | Self::BufferSize { .. } => "AccessError",
            Self::B2nd { .. }
            | Self::Tet { .. }
            | Self::Npy { .. }
            | Self::Nifti { .. }
            | Self::Zarr { .. } => "DamagedError",
            _ => "InputError",
        };
        exception(py, class, &error_chain(&self), None, None)
    }
}

impl IntoException for FileError {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        exception(py, class_of_file(&self), &error_chain(&self), None, None)
    }
}

/// Returns an exception for an error of a reader of files.
pub(crate) fn unreadable(py: Python<'_>, error: Box<dyn std::error::Error + Send + Sync>) -> PyErr {
    match error.downcast::<FileError>() {
        Ok(error) => error.into_exception(py),
        Err(error) => exception(py, "InputError", &error_chain(error.as_ref()), None, None),
    }
}

/// Returns an exception for an argument that cannot be used.
pub(crate) fn unusable(error: &dyn std::error::Error) -> PyErr {
    PyValueError::new_err(in_python(&error_chain(error)))
}

/// Returns the name of the class in `zvf._errors`.
fn class(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound if error.cause::<ListError>().is_some() => "NotFoundError",
        ErrorKind::NotFound => match (error.cause(), error.cause()) {
            (Some(StateError::NoStore { .. }), _) => "NotFoundError",
            (
                _,
                Some(
                    QueryError::NoObject { .. }
                    | QueryError::NoGroup { .. }
                    | QueryError::NoGroupName { .. },
                ),
            ) => "NoSuchObjectError",
            _ => "InputError",
        },
        ErrorKind::Conflict => match error.cause() {
            Some(StateError::AttributeExists { .. }) => "ExistsError",
            Some(StateError::Unfinished { .. }) => "DamagedError",
            _ if error.cause::<CreateError>().is_some() => "ExistsError",
            _ => "ConflictError",
        },
        ErrorKind::Damaged => "DamagedError",
        ErrorKind::Unsupported => "UnsupportedError",
        ErrorKind::OverBudget => "MemoryLimitError",
        ErrorKind::Unavailable => "AccessError",
        ErrorKind::InvalidInput => "InputError",
        // The input of the caller failed.
        ErrorKind::Interrupted if error.is_from_caller() => "InputError",
        _ => "Error",
    }
}

/// Returns the name of the class for an error of a file. A file is input of the caller: damage and
/// content that is not supported are faults of the input, not of a store.
fn class_of_file(error: &FileError) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound if is_of_system(error) => "NotFoundError",
        ErrorKind::Conflict => "ConflictError",
        ErrorKind::OverBudget => "MemoryLimitError",
        ErrorKind::Unavailable => "AccessError",
        _ => "InputError",
    }
}

/// Returns whether the operating system reports the error. Otherwise, a file exists and lacks an
/// attribute or a column.
fn is_of_system(error: &FileError) -> bool {
    let first: &(dyn std::error::Error + 'static) = error;
    let mut sources = successors(Some(first), |&error| error.source());
    sources.any(<dyn std::error::Error>::is::<io::Error>)
}

/// Creates an exception of a class in `zvf._errors`.
pub(crate) fn exception(
    py: Python<'_>,
    class: &str,
    message: &str,
    key: Option<String>,
    chunk: Option<String>,
) -> PyErr {
    let build = || -> PyResult<PyErr> {
        let class = py
            .import("zvf._errors")?
            .getattr(PyString::intern(py, class))?;
        let exception = class.call1((in_python(message),))?;
        if let Some(key) = key {
            exception.setattr("key", key)?;
        }
        if let Some(chunk) = chunk {
            exception.setattr("chunk", chunk)?;
        }
        Ok(PyErr::from_value(exception))
    };
    build().unwrap_or_else(|broken| broken)
}

/// Warns with a class in `zvf._errors`.
pub(crate) fn warn(py: Python<'_>, class: &str, message: &str) -> PyResult<()> {
    let class = py
        .import("zvf._errors")?
        .getattr(PyString::intern(py, class))?;
    PyErr::warn(py, &class, &CString::new(message)?, 3)
}
