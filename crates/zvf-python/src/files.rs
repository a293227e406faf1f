//! Results as files, conversions of files, and stores as sources of Neuroglancer.

use std::{ffi::OsString, path::PathBuf};

use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use zvf::TaskPlanError;
use zvf_cli::{
    CommandFailure, StopFlag,
    arguments::reference_grid,
    commands::query::{SaveError, save},
};
use zvf_files::{
    Cancellation, FileError, FileFault, FileHeader, LengthUnit, OutputFile, OutputFileError,
    grid_header,
};
use zvf_model::error_chain::error_chain;
use zvf_serve::{
    ExportError, ExportOptions, ExportReport, ExportTarget, LayerError, LayerKind, MeshFormat,
    export,
};

use crate::{
    dataset::PyDataset,
    engine,
    errors::{IntoException, exception, unusable},
    options::{Keywords, from_json},
    progress::ProgressCallback,
    query,
    result::EmptyBox,
};

impl IntoException for SaveError {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        let class = match self {
            Self::Query(error) => return error.into_exception(py),
            Self::Changed => "ConflictError",
            Self::Write(FileError {
                path,
                fault: FileFault::Lossy(left_out),
                ..
            }) => {
                let text = format!(
                    "{} is not written, because it would lack: {}; select other attributes, choose \
                     another format, or pass strict=False",
                    path.display(),
                    left_out.join("; ")
                );
                return exception(py, "InputError", &text, None, None);
            }
            Self::Write(error) => return error.into_exception(py),
            _ => "InputError",
        };
        exception(py, class, &error_chain(&self), None, None)
    }
}

impl IntoException for ExportError {
    fn into_exception(self, py: Python<'_>) -> PyErr {
        let class = match self {
            Self::Layer(LayerError::Store(error)) => return error.into_exception(py),
            Self::Exists(_) | Self::NotEmpty(_) | Self::Unfinished(_) | Self::Planned(_) => {
                "ExistsError"
            }
            Self::Plan {
                source: TaskPlanError::Missing { .. } | TaskPlanError::Replaced,
                ..
            } => "ConflictError",
            Self::Folder { .. } | Self::File { .. } | Self::Bucket { .. } => "AccessError",
            _ => "InputError",
        };
        // The option of the command has another form here.
        let text = error_chain(&self).replace("`--restart`", "`restart=True`");
        exception(py, class, &text, None, None)
    }
}

/// Ends the writing of a file that nothing waits for.
struct CancelOnDrop(Cancellation);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Runs a query and writes its result to a file.
#[pyfunction]
#[pyo3(signature = (dataset, file, strict, keywords, unit=None, reference=None))]
pub(crate) fn save_result<'py>(
    py: Python<'py>,
    dataset: &Bound<'py, PyDataset>,
    file: PathBuf,
    strict: bool,
    keywords: &Bound<'py, PyDict>,
    unit: Option<&str>,
    reference: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let wrong = |unit| format!("unit is {unit:?}; use a metric unit of length, such as nanometer");
    let found =
        unit.map(|unit| LengthUnit::of(unit).ok_or_else(|| PyValueError::new_err(wrong(unit))));
    let unit = found.transpose()?;
    let query = query::query(keywords)?;
    let target = OutputFile::new(file)
        .map_err(|error| match error {
            OutputFileError::NoFolder(_) => {
                exception(py, "NotFoundError", &error_chain(&error), None, None)
            }
            error => unusable(&error),
        })?
        .in_unit(unit)
        .in_grid(reference.map(grid_of).transpose()?)
        .map_err(|error| unusable(&error))?;
    let dataset = dataset.get().current();
    let cancelled = CancelOnDrop(target.cancellation().clone());
    let empty_box = EmptyBox::of(&dataset, &query);
    let work = async move { save(&dataset, &query, &target, strict).await };
    let mut saved = engine::run_on_own_thread(py, &ProgressCallback::default(), work)?;
    drop(cancelled);
    if let Some(found) = empty_box.filter(|_| saved.is_empty()) {
        saved.note(found.tell(py)?);
    }
    from_json(py, &saved.object())
}

/// Returns the voxel grid of an image: of its path, or of its affine and its dimensions.
pub(crate) fn grid_of(given: &Bound<'_, PyAny>) -> PyResult<FileHeader> {
    if let Ok(path) = given.extract::<PathBuf>() {
        let work = || reference_grid(&path).map_err(|error| error.to_string());
        return engine::compute(given.py(), work)?
            .map_err(|why| exception(given.py(), "InputError", &why, None, None));
    }
    let (affine, dimensions): (Vec<f64>, Vec<u64>) = given.extract()?;
    let rows = affine.get(..12).unwrap_or_default();
    grid_header(rows, &dimensions).ok_or_else(|| {
        PyValueError::new_err(
            "reference needs an affine that can be inverted, and the number of voxels along three axes",
        )
    })
}

/// Writes a store as sources of Neuroglancer.
#[pyfunction]
pub(crate) fn export_precomputed<'py>(
    py: Python<'py>,
    dataset: &Bound<'py, PyDataset>,
    folder: PathBuf,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut given = Keywords::new(keywords)?;
    let progress = ProgressCallback::new(given.take("progress"));
    let options = export_options(&mut given)?;
    let url: Option<String> = given.get("url")?;
    given.finish()?;
    let counter = progress.counter();
    let address = dataset.get().address();
    let dataset = dataset.get().current();
    let report = |done, of| {
        if let Some(counter) = &counter {
            counter(done, of);
        }
    };
    let target = export_target(folder);
    let work = || export(&dataset, target, &options, &report);
    let report = engine::run_with_progress(py, work, &progress)?;
    let link = url.map(|url| report.viewer_link(address, &url));
    export_report(py, &report, link)
}

/// Takes the options of an export.
pub(crate) fn export_options(given: &mut Keywords<'_>) -> PyResult<ExportOptions> {
    let mut options = ExportOptions::default();
    for word in given.get::<Vec<String>>("layers")?.into_iter().flatten() {
        let layer = LayerKind::OF_STORES
            .into_iter()
            .find(|one| one.folder() == word);
        let unknown = || {
            let words = LayerKind::OF_STORES.map(LayerKind::folder).join(", ");
            PyValueError::new_err(format!("there is no layer {word:?}; use {words}"))
        };
        options.layers.push(layer.ok_or_else(unknown)?);
    }
    options.properties = given.get("properties")?;
    options.sharded = given.get("sharded")?.unwrap_or(false);
    options.mesh_format = match given.get::<String>("mesh_format")?.as_deref() {
        None | Some("draco") => MeshFormat::Draco,
        Some("legacy") => MeshFormat::Legacy,
        Some(other) => {
            let message = format!("there is no form {other:?} of meshes; use draco or legacy");
            return Err(PyValueError::new_err(message));
        }
    };
    Ok(options)
}

/// Returns the target of an export: a folder, or an address.
pub(crate) fn export_target(folder: PathBuf) -> ExportTarget {
    match folder.to_str() {
        Some(address) => ExportTarget::parse(address),
        None => ExportTarget::from(folder),
    }
}

/// Returns the members of `zvf.PrecomputedReport`. `link` opens the viewer.
pub(crate) fn export_report<'py>(
    py: Python<'py>,
    report: &ExportReport,
    link: Option<String>,
) -> PyResult<Bound<'py, PyDict>> {
    let layers = report
        .view
        .layers()
        .iter()
        .map(|layer| (layer.folder(), layer.items));
    let found = PyDict::new(py);
    found.set_item("layers", layers.collect::<Vec<_>>())?;
    found.set_item("files", report.files)?;
    found.set_item("bytes", report.bytes)?;
    found.set_item("notes", &report.notes)?;
    found.set_item("neuroglancer", link)?;
    Ok(found)
}

/// Runs a command of `zvf` with `--json`, and returns its object and its warnings.
#[pyfunction]
pub(crate) fn command(
    py: Python<'_>,
    words: Vec<OsString>,
) -> PyResult<(Bound<'_, PyAny>, Vec<String>)> {
    let stop = StopOnDrop(StopFlag::default());
    let flag = stop.0.clone();
    let work = async move {
        let done = engine::blocking(move || zvf_cli::report(words, &flag)).await;
        // Ctrl-C drops the future, and with it this.
        drop(stop);
        done
    };
    let report = engine::run(py, work)?.map_err(|error| match error {
        CommandFailure::Usage(text) => PyValueError::new_err(text),
        error => exception(py, "Error", &error.to_string(), None, None),
    })?;
    let object = serde_json::from_str(&report.text).map_err(|error| unusable(&error))?;
    Ok((from_json(py, &object)?, report.warnings))
}

/// Stops a command that nothing waits for.
struct StopOnDrop(StopFlag);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
