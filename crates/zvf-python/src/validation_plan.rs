//! Validations that are divided into tasks.

use pyo3::{prelude::*, types::PyDict};
use zvf::{OpenOptions, ValidationPlan, ValidationPlanOptions};

use crate::{
    dataset::open_options,
    engine,
    options::Keywords,
    plan::{other_work, tasks},
    progress::ProgressCallback,
    store::{validate_options, validation},
};

/// A plan at an address. `zvf.ValidationPlan` documents the methods.
#[pyclass(frozen, module = "zvf._zvf", name = "ValidationPlan")]
pub(crate) struct PyValidationPlan {
    address: String,
    plan: ValidationPlan,
    open: OpenOptions,
}

#[pymethods]
impl PyValidationPlan {
    /// Reads the plan at an address.
    #[new]
    fn new(py: Python<'_>, address: String, keywords: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut given = Keywords::new(keywords)?;
        let open = open_options(&mut given)?;
        given.finish()?;
        match engine::run(py, ValidationPlan::find(&address, &open))? {
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
        found.set_item("level", self.plan.depth().number())?;
        found.set_item("tasks", self.plan.tasks())?;
        let report = self.plan.report();
        let report = report.map(|report| validation(py, report)).transpose()?;
        found.set_item("report", report)?;
        Ok(found)
    }

    fn run(&self, py: Python<'_>, index: usize) -> PyResult<bool> {
        let (plan, open) = (self.plan.clone(), self.open.clone());
        engine::run_on_own_thread(py, &ProgressCallback::default(), async move {
            plan.run(index, &open).await
        })
    }

    fn missing(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        Ok(engine::run(py, self.plan.status(&self.open))?.missing)
    }

    fn commit(&self, py: Python<'_>) -> PyResult<Self> {
        let (address, open) = (self.address.clone(), self.open.clone());
        let plan = engine::run_on_own_thread(py, &ProgressCallback::default(), async move {
            ValidationPlan::commit(&address, usize::MAX, &open).await
        })?;
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
) -> PyResult<PyValidationPlan> {
    let mut given = Keywords::new(keywords)?;
    let checks = validate_options(&mut given)?;
    let mut options = ValidationPlanOptions::new().depth(checks.depth);
    if keywords.contains("limit")? {
        options = options.limit(checks.max_findings_per_rule);
    }
    if let Some(tasks) = tasks(&mut given)? {
        options = options.tasks(tasks);
    }
    // The plan itself is written with signed requests.
    options.anonymous = given.get("anonymous")?.unwrap_or(false);
    let open = open_options(&mut given)?;
    given.finish()?;
    let plan = engine::run(py, zvf::plan_validation(store, &address, &options, &open))?;
    Ok(PyValidationPlan {
        address,
        plan,
        open,
    })
}
