//! Values of keyword arguments.

use numpy::PyReadonlyArray1;
use pyo3::{
    exceptions::{PyOverflowError, PyTypeError, PyValueError},
    prelude::*,
    pybacked::PyBackedStr,
    types::{PyDict, PyString},
};

/// The keyword arguments of one call, taken by name. Arguments left at the end are unknown.
pub(crate) struct Keywords<'py> {
    left: Vec<(PyBackedStr, Bound<'py, PyAny>)>,
    known: Vec<&'static str>,
}

impl<'py> Keywords<'py> {
    pub(crate) fn new(keywords: &Bound<'py, PyDict>) -> PyResult<Self> {
        let left = keywords
            .iter()
            .map(|(name, value)| Ok((name.extract()?, value)));
        Ok(Self {
            left: left.collect::<PyResult<_>>()?,
            known: Vec::with_capacity(32),
        })
    }

    /// Takes an argument; `None` counts as absent.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<Bound<'py, PyAny>> {
        self.known.push(name);
        let at = self.left.iter().position(|(given, _)| **given == *name)?;
        let (_, value) = self.left.remove(at);
        (!value.is_none()).then_some(value)
    }

    /// Returns whether an argument is given and not taken yet.
    pub(crate) fn has(&self, name: &str) -> bool {
        let mut left = self.left.iter();
        left.any(|(given, value)| **given == *name && !value.is_none())
    }

    /// Takes an argument of type `T`.
    pub(crate) fn get<T>(&mut self, name: &'static str) -> PyResult<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py>,
    {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        match value.extract() {
            Ok(value) => Ok(Some(value)),
            Err(error) => {
                let error: PyErr = error.into();
                Err(wrong(name, &error))
            }
        }
    }

    /// Takes an argument that is one of these words.
    pub(crate) fn word<T>(
        &mut self,
        name: &'static str,
        parse: impl Fn(&str) -> Option<T>,
        words: &str,
    ) -> PyResult<Option<T>> {
        let Some(text) = self.get::<String>(name)? else {
            return Ok(None);
        };
        let unknown = || PyValueError::new_err(format!("{name} is {text:?}; use {words}"));
        parse(&text).ok_or_else(unknown).map(Some)
    }

    /// Takes numbers.
    pub(crate) fn numbers(&mut self, name: &'static str) -> PyResult<Option<Vec<f64>>> {
        let found: Option<Vec<f64>> = self.get(name)?;
        found.map(|numbers| not_nan(name, numbers)).transpose()
    }

    /// Takes numbers, or two rows of numbers, which are joined.
    pub(crate) fn two_rows(&mut self, name: &'static str) -> PyResult<Option<Vec<f64>>> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        // Exceptions of a failed conversion take longer than the conversion.
        let rows = if value.len().is_ok_and(|length| length == 2) {
            value.extract::<Vec<Vec<f64>>>().ok()
        } else {
            None
        };
        if rows.is_none()
            && let Ok(flat) = value.extract::<Vec<f64>>()
        {
            return not_nan(name, flat).map(Some);
        }
        let rows = match rows {
            Some(rows) => rows,
            None => value.extract().map_err(|error| wrong(name, &error))?,
        };
        match rows.as_slice() {
            [low, high] if low.len() == high.len() => not_nan(name, rows.concat()).map(Some),
            _ => Err(PyValueError::new_err(format!(
                "{name} needs two rows of equal length, the lower and the upper bounds"
            ))),
        }
    }

    /// Takes ids: an integer, or any iterable of integers.
    pub(crate) fn ids(&mut self, name: &'static str) -> PyResult<Option<Vec<i64>>> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        match value.extract::<i64>() {
            Ok(id) => return Ok(Some(vec![id])),
            Err(error) if is_overflow(&value, &error) => return Err(no_id(name)),
            Err(_) => {}
        }
        if let Ok(array) = value.extract::<PyReadonlyArray1<'_, i64>>()
            && let Ok(ids) = array.as_slice()
        {
            return Ok(Some(ids.to_vec()));
        }
        // Also of sets, which are no sequences.
        let ids = value.try_iter().and_then(|ids| {
            let ids = ids.map(|id| id?.extract::<i64>());
            ids.collect::<PyResult<Vec<i64>>>()
        });
        let refused = |error: PyErr| {
            if is_overflow(&value, &error) {
                no_id(name)
            } else {
                wrong(name, &error)
            }
        };
        ids.map_err(refused).map(Some)
    }

    /// Checks that no argument is left.
    pub(crate) fn finish(self) -> PyResult<()> {
        let Some((name, _)) = self.left.first() else {
            return Ok(());
        };
        let known = self.known.join(", ");
        Err(PyTypeError::new_err(format!(
            "there is no argument '{name}'; there are {known}"
        )))
    }
}

/// Returns whether an integer was too large for its type.
fn is_overflow(value: &Bound<'_, PyAny>, error: &PyErr) -> bool {
    error.is_instance_of::<PyOverflowError>(value.py())
}

/// Refuses integers that cannot be ids.
fn no_id(name: &str) -> PyErr {
    PyValueError::new_err(format!(
        "{name}: ids are integers of 64 bits with a sign, below 2**63; number larger ids anew, and keep \
         them as text in an attribute of objects"
    ))
}

/// Refuses NaN, which would select nothing.
pub(crate) fn not_nan(name: &str, numbers: Vec<f64>) -> PyResult<Vec<f64>> {
    match numbers.iter().position(|number| number.is_nan()) {
        Some(at) => Err(PyValueError::new_err(format!(
            "value {at} of {name}, counted from 0, is not a number"
        ))),
        None => Ok(numbers),
    }
}

/// Adds the name of the argument to an error.
fn wrong(name: &str, error: &PyErr) -> PyErr {
    Python::attach(|py| {
        let text = format!("{name}: {}", error.value(py));
        if error.is_instance_of::<PyTypeError>(py) {
            PyTypeError::new_err(text)
        } else {
            PyValueError::new_err(text)
        }
    })
}

/// Converts a value of Python's `json` to text and back.
pub(crate) fn json(value: &Bound<'_, PyAny>) -> PyResult<serde_json::Value> {
    let text: String = value
        .py()
        .import("json")?
        .call_method1("dumps", (value,))?
        .extract()?;
    serde_json::from_str(&text).map_err(|error| crate::errors::unusable(&error))
}

/// Converts JSON to objects of Python.
pub(crate) fn from_json<'py>(
    py: Python<'py>,
    value: &serde_json::Value,
) -> PyResult<Bound<'py, PyAny>> {
    let text = PyString::new(py, &value.to_string());
    py.import("json")?.call_method1("loads", (text,))
}
