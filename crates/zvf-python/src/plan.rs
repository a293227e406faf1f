//! Plans of tasks for clusters.

use std::path::PathBuf;

use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use zvf::{
    CreateOptions, Error, GeometryBatches, GeometryKind, LinkNumbering, OpenOptions, TaskPlan,
    TaskPlanError, TaskPlanOptions, ValidationPlan,
};
use zvf_files::FileReadOptions;
use zvf_serve::ExportPlan;

use crate::{
    create::{create_options, design, geometry, geometry_kind, needed_kind, settle_file_units},
    dataset::{PyDataset, open_options},
    edit::pyramid_options,
    engine,
    errors::{IntoException, exception, unusable},
    options::{Keywords, from_json},
    progress::ProgressCallback,
    sample,
    store::migrate_options,
};

/// A plan and the options of the store. `zvf.TaskPlan` documents the methods.
#[pyclass(frozen, module = "zvf._zvf", name = "TaskPlan")]
pub(crate) struct PyTaskPlan {
    plan: TaskPlan,
    open: OpenOptions,
}

#[pymethods]
impl PyTaskPlan {
    /// Parses the JSON of a plan.
    #[new]
    fn new(text: &str, keywords: &Bound<'_, PyDict>) -> PyResult<Self> {
        let json = serde_json::from_str(text).map_err(|error| unusable(&error))?;
        let plan = TaskPlan::from_json(&json).map_err(|error| unusable(&error))?;
        let mut given = Keywords::new(keywords)?;
        let open = open_options(&mut given)?;
        given.finish()?;
        Ok(Self { plan, open })
    }

    fn json(&self) -> String {
        self.plan.to_json().to_string()
    }

    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, self.plan.to_json().as_ref())
    }

    fn write(&self, py: Python<'_>, address: &str) -> PyResult<()> {
        engine::run(py, self.plan.write(address, &self.open))
    }

    /// Reads a share of the input from batches.
    fn fill(
        &self,
        py: Python<'_>,
        share: usize,
        batches: Vec<Bound<'_, PyDict>>,
        numbers_input: bool,
    ) -> PyResult<bool> {
        let made = batches
            .into_iter()
            .map(|batch| geometry(&batch, GeometryKind::Polylines));
        let numbering = if numbers_input {
            LinkNumbering::Input
        } else {
            LinkNumbering::Batch
        };
        let mut source = GeometryBatches::new(made.collect::<PyResult<_>>()?, numbering);
        engine::run(py, self.plan.fill(share, &mut source, &self.open))
    }

    /// Reads a share of the input from a file.
    fn fill_from_file(
        &self,
        py: Python<'_>,
        share: usize,
        file: PathBuf,
        keywords: &Bound<'_, PyDict>,
    ) -> PyResult<bool> {
        let mut given = Keywords::new(keywords)?;
        let mut reader = reader(py, file, &mut given)?;
        given.finish()?;
        engine::run(py, self.plan.fill(share, reader.as_mut(), &self.open))
    }

    fn run(&self, py: Python<'_>, index: usize) -> PyResult<bool> {
        let ran = async {
            match self.plan.run(index, &self.open).await {
                Err(error) if error.cause() == Some(&TaskPlanError::NoValues) => Ok(None),
                ran => ran.map(Some),
            }
        };
        match engine::run(py, ran)? {
            Some(is_new) => Ok(is_new),
            None => sample::run_task(py, &self.plan, index, &self.open),
        }
    }

    fn missing(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        Ok(engine::run(py, self.plan.status(&self.open))?.missing)
    }

    #[expect(clippy::needless_pass_by_value, reason = "extracted from a list")]
    fn advance(&self, py: Python<'_>, shares: Option<Vec<usize>>) -> PyResult<Self> {
        let next = async {
            match &shares {
                None => self.plan.advance(&self.open).await,
                Some(shares) => self.plan.advance_with(shares, &self.open).await,
            }
        };
        Self::planned(py, &self.open, next)
    }

    /// Publishes the result. A plan with an address is kept there, with the report.
    fn commit(&self, py: Python<'_>, address: Option<&str>) -> PyResult<Self> {
        let open = &self.open;
        let committed = async {
            let Some(address) = address else {
                let plan = self.plan.commit_in_memory(open).await?;
                plan.clean(open).await?;
                return Ok(plan);
            };
            TaskPlan::commit(address, open).await
        };
        Self::planned(py, open, committed)
    }

    fn discard(&self, py: Python<'_>) -> PyResult<()> {
        engine::run(py, self.plan.discard(&self.open))
    }
}

impl PyTaskPlan {
    /// Runs a future that returns a plan for a store with these options.
    fn planned(
        py: Python<'_>,
        open: &OpenOptions,
        planned: impl Future<Output = Result<TaskPlan, Error>> + Send,
    ) -> PyResult<Self> {
        Ok(Self {
            plan: engine::run(py, planned)?,
            open: open.clone(),
        })
    }
}

fn reader(
    py: Python<'_>,
    file: PathBuf,
    given: &mut Keywords<'_>,
) -> PyResult<Box<dyn zvf_files::GeometryReader>> {
    let mut reading = FileReadOptions::default();
    reading.kind = geometry_kind(given)?;
    reading.with = given.get("companions")?.unwrap_or_default();
    let open = move || zvf_files::open(&file, &reading);
    let opened = engine::run(py, engine::blocking(open))?;
    opened.map_err(|error| error.into_exception(py))
}

fn planned_options(given: &mut Keywords<'_>) -> PyResult<CreateOptions> {
    let options = create_options(given)?;
    check_overwrite(options.overwrite)?;
    Ok(options)
}

fn check_overwrite(overwrite: bool) -> PyResult<()> {
    if overwrite {
        Err(PyValueError::new_err(
            "tasks cannot overwrite a store: delete it first, or choose another address",
        ))
    } else {
        Ok(())
    }
}

/// Takes the options of the tasks of a plan.
pub(crate) fn task_options(given: &mut Keywords<'_>) -> PyResult<TaskPlanOptions> {
    let mut options = TaskPlanOptions::default();
    options.tasks = tasks(given)?;
    options.replaces_unfinished = given.get("restart")?.unwrap_or(false);
    Ok(options)
}

/// Takes the number of tasks.
pub(crate) fn tasks(given: &mut Keywords<'_>) -> PyResult<Option<usize>> {
    match given.get("tasks")? {
        Some(0) => Err(PyValueError::new_err("tasks is 0; use 1 or more")),
        tasks => Ok(tasks),
    }
}

/// Returns the exception for an address without a plan of the expected work.
pub(crate) fn other_work(py: Python<'_>, address: &str, open: &OpenOptions) -> PyErr {
    let find = || async {
        Ok(
            if let Some(plan) = ValidationPlan::find(address, open).await? {
                (plan.job(), "zvf.ValidationPlan.read")
            } else if let Ok(Some(plan)) = ExportPlan::find(address, open).await {
                (plan.job(), "zvf.ExportPlan.read")
            } else {
                (TaskPlan::read(address, open).await?.job(), "zvf.read_plan")
            },
        )
    };
    match engine::run_with_progress::<_, Error, _>(py, find, &ProgressCallback::default()) {
        Ok((job, reader)) => {
            let text = format!("{address} is a plan of the job `{job}`; read it with `{reader}`");
            exception(py, "InputError", &text, None, None)
        }
        Err(error) => error,
    }
}

/// Plans the creation of a store from a file.
#[pyfunction]
pub(crate) fn plan_create(
    py: Python<'_>,
    address: &str,
    file: PathBuf,
    keywords: &Bound<'_, PyDict>,
) -> PyResult<PyTaskPlan> {
    let mut given = Keywords::new(keywords)?;
    let kind = geometry_kind(&mut Keywords::new(keywords)?)?;
    let mut reader = reader(py, file, &mut given)?;
    let description = reader.description().clone();
    let mut design = design(&mut given, kind.unwrap_or(description.kind), address)?;
    description.complete(&mut design);
    settle_file_units(&mut given, &mut design, &description)?;
    let options = planned_options(&mut given)?;
    let tasks = task_options(&mut given)?;
    given.finish()?;
    let planned = zvf::plan_create(address, reader.as_mut(), design, &options, &tasks);
    PyTaskPlan::planned(py, &options.open, planned)
}

/// Plans the creation of a store from shares of input.
#[pyfunction]
pub(crate) fn plan_shares(
    py: Python<'_>,
    address: &str,
    shares: usize,
    tables: &Bound<'_, PyDict>,
    keywords: &Bound<'_, PyDict>,
) -> PyResult<PyTaskPlan> {
    let mut given = Keywords::new(keywords)?;
    let kind = needed_kind(&mut given)?;
    let design = design(&mut given, kind, address)?;
    let options = planned_options(&mut given)?;
    let tasks = task_options(&mut given)?;
    given.finish()?;
    let tables = geometry(tables, kind)?;
    let planned = zvf::plan_shares(address, shares, design, &tables, &options, &tasks);
    PyTaskPlan::planned(py, &options.open, planned)
}

/// Plans the first level that does not exist.
#[pyfunction]
pub(crate) fn plan_pyramid(
    py: Python<'_>,
    dataset: &Bound<'_, PyDataset>,
    keywords: &Bound<'_, PyDict>,
) -> PyResult<PyTaskPlan> {
    let mut given = Keywords::new(keywords)?;
    let mut options = pyramid_options(&mut given)?;
    let tasks = task_options(&mut given)?;
    given.finish()?;
    options.open = dataset.get().options().clone();
    let planned = zvf::plan_pyramid(dataset.get().address(), &options, &tasks);
    PyTaskPlan::planned(py, &options.open, planned)
}

/// Plans an attribute that is sampled from the file of a volume.
#[pyfunction]
pub(crate) fn plan_sample(
    py: Python<'_>,
    dataset: &Bound<'_, PyDataset>,
    volume: &Bound<'_, PyAny>,
    keywords: &Bound<'_, PyDict>,
) -> PyResult<PyTaskPlan> {
    let mut given = Keywords::new(keywords)?;
    let tasks = task_options(&mut given)?;
    Ok(PyTaskPlan {
        plan: sample::plan(py, dataset.get(), volume, given, &tasks)?,
        open: dataset.get().options().clone(),
    })
}

/// Plans the migration of a store.
#[pyfunction]
pub(crate) fn plan_migrate(
    py: Python<'_>,
    source: &str,
    target: &str,
    keywords: &Bound<'_, PyDict>,
) -> PyResult<PyTaskPlan> {
    let mut given = Keywords::new(keywords)?;
    let options = migrate_options(&mut given)?;
    let tasks = task_options(&mut given)?;
    given.finish()?;
    check_overwrite(options.overwrite)?;
    let planned = zvf::plan_migrate(source, target, &options, &tasks);
    PyTaskPlan::planned(py, &options.open, planned)
}

/// Reads a plan from a file or an object.
#[pyfunction]
pub(crate) fn read_plan(
    py: Python<'_>,
    address: &str,
    keywords: &Bound<'_, PyDict>,
) -> PyResult<PyTaskPlan> {
    let mut given = Keywords::new(keywords)?;
    let open = open_options(&mut given)?;
    given.finish()?;
    let read = async {
        match TaskPlan::read(address, &open).await {
            Err(error) if error.cause() == Some(&TaskPlanError::Invalid) => Ok(None),
            read => read.map(Some),
        }
    };
    match engine::run(py, read)? {
        Some(plan) => Ok(PyTaskPlan { plan, open }),
        None => Err(other_work(py, address, &open)),
    }
}
