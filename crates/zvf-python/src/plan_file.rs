//! Plans that are files from the start: validations and exports.

use std::path::PathBuf;

use pyo3::{prelude::*, types::PyDict};
use zvf::{OpenOptions, TaskPlanOptions, ValidationPlan, ValidationWork};
use zvf_serve::{ExportError, ExportPlan, ExportWork};

use crate::{
    dataset::{PyDataset, open_options},
    engine,
    files::{export_options, export_report, export_target},
    options::Keywords,
    plan::{other_work, task_options, tasks},
    progress::ProgressCallback,
    store::{validate_options, validation},
};

/// A plan at an address. `zvf.ValidationPlan` and `zvf.ExportPlan` document the methods.
#[pyclass(frozen, module = "zvf._zvf", name = "PlanFile")]
pub(crate) struct PyPlanFile {
    address: String,
    plan: FilePlan,
    open: OpenOptions,
}

enum FilePlan {
    Validation(ValidationPlan),
    Export(ExportPlan),
}

#[pymethods]
impl PyPlanFile {
    /// Reads the plan of a validation or an export at an address.
    #[new]
    fn new(
        py: Python<'_>,
        is_export: bool,
        address: String,
        keywords: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let mut given = Keywords::new(keywords)?;
        let open = open_options(&mut given)?;
        given.finish()?;
        let plan = if is_export {
            run_export(py, || ExportPlan::find(&address, &open))?.map(FilePlan::Export)
        } else {
            engine::run(py, ValidationPlan::find(&address, &open))?.map(FilePlan::Validation)
        };
        match plan {
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
        let (store, tasks, report) = match &self.plan {
            FilePlan::Validation(plan) => {
                found.set_item("level", plan.work().depth.number())?;
                let report = plan.report().map(|report| validation(py, &report));
                (plan.store(), plan.tasks(), report.transpose()?)
            }
            FilePlan::Export(plan) => {
                found.set_item("target", plan.work().target())?;
                let link = ExportWork::viewer_link(plan);
                let report = plan.report().map(|report| export_report(py, &report, link));
                (plan.store(), plan.tasks(), report.transpose()?)
            }
        };
        found.set_item("store", store)?;
        found.set_item("tasks", tasks)?;
        found.set_item("report", report)?;
        Ok(found)
    }

    fn run(&self, py: Python<'_>, index: usize) -> PyResult<bool> {
        match &self.plan {
            FilePlan::Export(plan) => run_export(py, || plan.run(index, &self.open)),
            FilePlan::Validation(plan) => {
                let (plan, open) = (plan.clone(), self.open.clone());
                engine::run_on_own_thread(py, &ProgressCallback::default(), async move {
                    plan.run(index, &open).await
                })
            }
        }
    }

    fn missing(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        let status = match &self.plan {
            FilePlan::Export(plan) => run_export(py, || plan.status(&self.open))?,
            FilePlan::Validation(plan) => engine::run(py, plan.status(&self.open))?,
        };
        Ok(status.missing)
    }

    fn commit(&self, py: Python<'_>) -> PyResult<Self> {
        let (address, open) = (self.address.clone(), self.open.clone());
        let plan = match &self.plan {
            FilePlan::Export(_) => {
                FilePlan::Export(run_export(py, || ExportPlan::commit(&address, &open))?)
            }
            FilePlan::Validation(_) => {
                let committed = async move { ValidationPlan::commit(&address, &open).await };
                let progress = ProgressCallback::default();
                FilePlan::Validation(engine::run_on_own_thread(py, &progress, committed)?)
            }
        };
        Ok(Self {
            address: self.address.clone(),
            plan,
            open: self.open.clone(),
        })
    }
}

/// Plans the validation of a store, and writes the plan.
#[pyfunction]
pub(crate) fn plan_validation(
    py: Python<'_>,
    store: &str,
    address: String,
    keywords: &Bound<'_, PyDict>,
) -> PyResult<PyPlanFile> {
    let mut given = Keywords::new(keywords)?;
    let checks = validate_options(&mut given)?;
    let mut work = ValidationWork::default().depth(checks.depth);
    if keywords.contains("limit")? {
        work = work.limit(checks.max_findings_per_rule);
    }
    let mut options = TaskPlanOptions::default();
    options.tasks = tasks(&mut given)?;
    // The plan itself is written with signed requests.
    work.anonymous = given.get("anonymous")?.unwrap_or(false);
    let open = open_options(&mut given)?;
    given.finish()?;
    let planned = zvf::plan_validation(store, &address, work, &options, &open);
    let plan = FilePlan::Validation(engine::run(py, planned)?);
    Ok(PyPlanFile {
        address,
        plan,
        open,
    })
}

/// Plans the export of a store, and writes the plan.
#[pyfunction]
pub(crate) fn plan_export(
    py: Python<'_>,
    dataset: &Bound<'_, PyDataset>,
    target: PathBuf,
    address: String,
    keywords: &Bound<'_, PyDict>,
) -> PyResult<PyPlanFile> {
    let mut given = Keywords::new(keywords)?;
    let tasks = task_options(&mut given)?;
    let url = given.get("url")?;
    let export = export_options(&mut given)?.url(url);
    given.finish()?;
    let (dataset, target) = (dataset.get(), export_target(target));
    // The plan itself is written with signed requests, and tells its tasks how the store is read.
    let open = dataset.options().clone().anonymous(false);
    let plan = run_export(py, || async {
        let (reading, store) = (dataset.options(), dataset.address());
        let planned =
            zvf_serve::plan_export(store, target, &export, &tasks, reading, &|_, _| {}).await?;
        planned.write(&address, &open).await?;
        Ok(planned)
    })?;
    Ok(PyPlanFile {
        address,
        plan: FilePlan::Export(plan),
        open,
    })
}

/// Runs a future of an export, which need not be `Send`.
fn run_export<T: Send, F>(py: Python<'_>, work: impl FnOnce() -> F + Send) -> PyResult<T>
where
    F: Future<Output = Result<T, ExportError>>,
{
    engine::run_with_progress(py, work, &ProgressCallback::default())
}
