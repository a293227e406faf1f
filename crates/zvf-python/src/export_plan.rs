//! Exports that are divided into tasks.

use std::path::PathBuf;

use pyo3::{prelude::*, types::PyDict};
use zvf::OpenOptions;
use zvf_serve::{ExportError, ExportPlan, ExportPlanOptions};

use crate::{
    dataset::{PyDataset, open_options},
    engine,
    files::{export_options, export_report, export_target},
    options::Keywords,
    plan::{other_work, task_options},
    progress::ProgressCallback,
};

/// A plan at an address. `zvf.ExportPlan` documents the methods.
#[pyclass(frozen, module = "zvf._zvf", name = "ExportPlan")]
pub(crate) struct PyExportPlan {
    address: String,
    plan: ExportPlan,
    open: OpenOptions,
}

#[pymethods]
impl PyExportPlan {
    /// Reads the plan at an address.
    #[new]
    fn new(py: Python<'_>, address: String, keywords: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut given = Keywords::new(keywords)?;
        let open = open_options(&mut given)?;
        given.finish()?;
        match run(py, || ExportPlan::read(&address, &open))? {
            Some(plan) => Ok(Self {
                address,
                plan,
                open,
            }),
            None => Err(other_work(py, &address, &open)),
        }
    }

    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        found.set_item("store", self.plan.store())?;
        found.set_item("target", self.plan.target())?;
        found.set_item("tasks", self.plan.tasks())?;
        let report = self.plan.report();
        let report = report.map(|report| export_report(py, &report, self.plan.viewer_link()));
        found.set_item("report", report.transpose()?)?;
        Ok(found)
    }

    fn run(&self, py: Python<'_>, index: usize) -> PyResult<bool> {
        run(py, || self.plan.run(index, &self.open, &|_, _| {}))
    }

    fn missing(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        Ok(run(py, || self.plan.status())?.missing)
    }

    fn commit(&self, py: Python<'_>) -> PyResult<Self> {
        let plan = run(py, || ExportPlan::commit(&self.address, &self.open))?;
        Ok(Self {
            address: self.address.clone(),
            plan,
            open: self.open.clone(),
        })
    }
}

/// Plans the export of a store, and writes the plan.
#[pyfunction]
pub(crate) fn plan_export(
    py: Python<'_>,
    dataset: &Bound<'_, PyDataset>,
    target: PathBuf,
    address: String,
    keywords: &Bound<'_, PyDict>,
) -> PyResult<PyExportPlan> {
    let mut given = Keywords::new(keywords)?;
    let tasks = task_options(&mut given)?;
    let mut options = ExportPlanOptions::new()
        .replaces_unfinished(tasks.replaces_unfinished)
        .url(given.get("url")?);
    options.tasks = tasks.tasks;
    let export = export_options(&mut given)?;
    given.finish()?;
    let (dataset, target) = (dataset.get(), export_target(target));
    // The plan itself is written with signed requests, and tells its tasks how the store is read.
    let open = dataset.options().clone().anonymous(false);
    let plan = run(py, || async {
        let reading = dataset.options();
        let store = dataset.address();
        let planned =
            zvf_serve::plan_export(store, target, &export, &options, reading, &|_, _| {}).await?;
        planned.write(&address, &open).await?;
        Ok(planned)
    })?;
    Ok(PyExportPlan {
        address,
        plan,
        open,
    })
}

/// Runs a future that need not be `Send`.
fn run<T: Send, F>(py: Python<'_>, work: impl FnOnce() -> F + Send) -> PyResult<T>
where
    F: Future<Output = Result<T, ExportError>>,
{
    engine::run_with_progress(py, work, &ProgressCallback::default())
}
