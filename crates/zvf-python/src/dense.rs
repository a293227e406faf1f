//! Dense arrays.

use std::{path::Path, sync::Arc};

use numpy::{PyArray1, PyArrayMethods};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use zvf_dense::{
    ByteSource, DenseArray, DenseError, FileSource, Hyperslab, MappedFile, MemorySource,
    b2nd::{B2nd, DEFAULT_BUDGET, DIRECTORY_FRAME},
    nifti::NiftiArray,
    npy::NpyArray,
    tet::{DatasetInfo, MemoryBudget, TetFile, TetOptions},
};

use crate::{
    engine,
    errors::{IntoException, exception},
    options::from_json,
};

/// Bytes that are read between two looks for signals.
const STEP: u64 = 64 << 20;

/// An open dense array. `zvf.dense.Array` documents the methods.
#[pyclass(frozen, module = "zvf._zvf", name = "DenseArray")]
pub(crate) struct PyDenseArray(Box<dyn DenseArray>);

/// Opens an array: the dataset of a `.tet`, a `.b2nd`, `.npy` or NIfTI file, or a Zarr array.
#[pyfunction]
#[pyo3(signature = (path, dataset, memory))]
pub(crate) fn open_dense(
    py: Python<'_>,
    path: String,
    dataset: Option<String>,
    memory: Option<u64>,
) -> PyResult<PyDenseArray> {
    let open = move || open_array(&path, dataset.as_deref(), memory);
    let opened = engine::run(py, engine::blocking(open))?;
    opened
        .map(PyDenseArray)
        .map_err(|error| error.into_exception(py))
}

/// An array that cannot be opened.
#[derive(Debug)]
pub(crate) enum OpenArrayError {
    Dense(DenseError),
    Input(String),
    NotFound(String),
}

impl From<DenseError> for OpenArrayError {
    fn from(error: DenseError) -> Self {
        Self::Dense(error)
    }
}

impl IntoException for OpenArrayError {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Dense(error) => error.into_exception(py),
            Self::Input(text) => exception(py, "InputError", &text, None, None),
            Self::NotFound(text) => exception(py, "NotFoundError", &text, None, None),
        }
    }
}

/// Opens a file or a folder; in a `.tet`, the named dataset or the only one.
pub(crate) fn open_array(
    path: &str,
    dataset: Option<&str>,
    memory: Option<u64>,
) -> Result<Box<dyn DenseArray>, OpenArrayError> {
    let file = Path::new(path);
    if !file.exists() {
        return Err(OpenArrayError::NotFound(format!("{path} does not exist")));
    }
    let name = path.to_lowercase();
    let ends = |end: &str| name.ends_with(end);
    if dataset.is_some() && !ends(".tet") {
        return Err(OpenArrayError::Input(format!(
            "{path} has no named datasets; leave out dataset"
        )));
    }
    Ok(if file.join(DIRECTORY_FRAME).is_file() {
        Box::new(B2nd::open_with_budget(
            file,
            memory.unwrap_or(DEFAULT_BUDGET),
        )?)
    } else if ["zarr.json", ".zarray"]
        .iter()
        .any(|node| file.join(node).is_file())
    {
        zarr(file, memory)?
    } else if ends(".b2nd") || ends(".b2frame") || ends(".cat") {
        Box::new(B2nd::from_source(
            source(file)?,
            0,
            memory.unwrap_or(DEFAULT_BUDGET),
        )?)
    } else if ends(".npy") {
        Box::new(NpyArray::open(source(file)?, memory)?)
    } else if is_nifti(path) {
        Box::new(NiftiArray::open(source(file)?, memory)?)
    } else if ends(".tet") {
        let budget = MemoryBudget {
            bytes: memory,
            bps: None,
        };
        // Only the spans of the payloads that a read touches are loaded.
        let tet = TetFile::open(Arc::new(MappedFile::open(file)?), TetOptions { budget })?;
        Box::new(match (dataset, tet.datasets()) {
            (Some(name), _) => tet.dataset(name)?,
            (None, [_]) => tet
                .dataset_at(0)
                .ok_or_else(|| OpenArrayError::Input(format!("{path} has no dataset")))?,
            (None, datasets) => {
                let names: Vec<&str> = datasets.iter().map(DatasetInfo::name).collect();
                return Err(OpenArrayError::Input(format!(
                    "{path} has several datasets; name one of {} with dataset=",
                    names.join(", ")
                )));
            }
        })
    } else {
        return Err(OpenArrayError::Input(format!(
            "{path} is not a dense array; use .tet, .b2nd, .npy, .nii or .nii.gz, or the folder of a \
             Zarr array"
        )));
    })
}

#[cfg(feature = "zarr")]
fn zarr(folder: &Path, memory: Option<u64>) -> Result<Box<dyn DenseArray>, OpenArrayError> {
    Ok(Box::new(zvf_dense::zarr::ZarrArray::open(folder, memory)?))
}

#[cfg(not(feature = "zarr"))]
fn zarr(folder: &Path, _: Option<u64>) -> Result<Box<dyn DenseArray>, OpenArrayError> {
    Err(OpenArrayError::Input(format!(
        "{} is a Zarr array, which this build of zvf does not read; in a clone, run: pip install . \
         --config-settings=build-args='--features zarr'",
        folder.display()
    )))
}

fn source(path: &Path) -> Result<Arc<dyn ByteSource>, DenseError> {
    Ok(Arc::new(FileSource::open(path)?))
}

/// Returns whether a path names a NIfTI volume.
pub(crate) fn is_nifti(path: &str) -> bool {
    let name = path.to_lowercase();
    [".nii", ".nii.gz"].iter().any(|end| name.ends_with(end))
}

/// Opens a NIfTI volume.
pub(crate) fn open_nifti(path: &str, memory: Option<u64>) -> Result<NiftiArray, OpenArrayError> {
    let file = Path::new(path);
    if !file.exists() {
        return Err(OpenArrayError::NotFound(format!("{path} does not exist")));
    }
    Ok(NiftiArray::open(source(file)?, memory)?)
}

/// Opens the bytes of a `.npy` file.
pub(crate) fn open_bytes(bytes: Vec<u8>) -> Result<NpyArray, DenseError> {
    NpyArray::open(Arc::new(MemorySource::new("the volume", bytes)), None)
}

#[pymethods]
impl PyDenseArray {
    #[getter]
    fn shape(&self) -> Vec<u64> {
        self.0.shape().to_vec()
    }

    #[getter]
    fn chunks(&self) -> Vec<u64> {
        self.0.grid().chunk_shape().to_vec()
    }

    #[getter]
    fn dtype(&self) -> String {
        self.0.dtype().to_string()
    }

    #[getter]
    fn dimension_names(&self) -> Option<Vec<String>> {
        self.0.dimension_names().map(<[String]>::to_vec)
    }

    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, &serde_json::Value::Object(self.0.attributes().clone()))
    }

    /// Returns the cost of a selection.
    #[expect(clippy::needless_pass_by_value, reason = "extracted from a list")]
    fn plan<'py>(
        &self,
        py: Python<'py>,
        starts: Vec<u64>,
        stops: Vec<u64>,
        steps: Vec<u64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let selection = selection(py, &starts, &stops, &steps)?;
        let cost = engine::compute(py, || self.0.read_plan(&selection))?
            .map_err(|error| error.into_exception(py))?;
        let found = PyDict::new(py);
        found.set_item("blocks", cost.blocks)?;
        found.set_item("bytes_read", cost.bytes_read)?;
        Ok(found)
    }

    /// Reads a selection as the bytes of its elements in row-major order.
    #[expect(clippy::needless_pass_by_value, reason = "extracted from a list")]
    fn read<'py>(
        &self,
        py: Python<'py>,
        starts: Vec<u64>,
        stops: Vec<u64>,
        steps: Vec<u64>,
    ) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let raised = |error: DenseError| error.into_exception(py);
        let whole = selection(py, &starts, &stops, &steps)?;
        let len = self.0.byte_len(&whole).map_err(raised)?;
        let needed = u64::try_from(len).unwrap_or(u64::MAX);
        let budget = self.0.budget();
        if needed > budget {
            return Err(raised(DenseError::Budget { needed, budget }));
        }
        let array = PyArray1::<u8>::zeros(py, len, false);
        let mut writable = array.readwrite();
        let mut rest = writable.as_slice_mut()?;
        for part in parts(&whole, needed, self.0.grid().chunk_shape()) {
            let part_len = self.0.byte_len(&part).map_err(raised)?;
            let Some((own, other)) = rest.split_at_mut_checked(part_len) else {
                return Err(PyValueError::new_err(
                    "the parts of the selection are too long",
                ));
            };
            rest = other;
            let read = engine::compute(py, || self.0.slice_into(&part, own))?;
            read.map_err(raised)?;
            py.check_signals()?;
        }
        drop(writable);
        Ok(array)
    }
}

fn selection(py: Python<'_>, starts: &[u64], stops: &[u64], steps: &[u64]) -> PyResult<Hyperslab> {
    let selection = Hyperslab::new(starts, stops, Some(steps));
    selection.map_err(|error| DenseError::from(error).into_exception(py))
}

/// Divides a selection along its first axis into parts of about [`STEP`] bytes that begin at chunks.
fn parts(whole: &Hyperslab, bytes: u64, chunk: &[u64]) -> Vec<Hyperslab> {
    let (Some(first), Some(chunk)) = (whole.axes().first().copied(), chunk.first()) else {
        return vec![whole.clone()];
    };
    let rows = first.count();
    let row = bytes / rows.max(1);
    let cell = (chunk / first.step()).max(1);
    let rows_each = (STEP / row.max(1) / cell).max(1).saturating_mul(cell);
    let mut parts = Vec::new();
    let mut from = 0;
    while from < rows {
        let to = from.saturating_add(rows_each).min(rows);
        let axes = whole.axes().iter().skip(1).copied();
        parts.push(
            std::iter::once(first.portion(from..to))
                .chain(axes)
                .collect(),
        );
        from = to;
    }
    parts
}
