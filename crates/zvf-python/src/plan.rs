//! Plans of tasks for clusters, and parts of queries.

use std::{error::Error as StdError, path::PathBuf, vec};

use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyDict, PyList},
};
use zvf::{
    CreateOptions, Geometry, GeometrySource, LinkNumbering, NumericColumn, OpenOptions, TaskPlan,
    TaskPlanError, TaskPlanOptions, ValidationPlan, numeric::Kind,
};
use zvf_files::FileReadOptions;
use zvf_serve::ExportPlan;

use crate::{
    create::{create_options, design, geometry, geometry_kind, needed_kind},
    dataset::{PyDataset, open_options},
    edit::pyramid_options,
    engine,
    errors::{IntoException, exception, unusable},
    options::{Keywords, from_json},
    progress::ProgressCallback,
    query, sample,
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

    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        found.set_item("job", self.plan.kind().name())?;
        found.set_item("phase", self.plan.phase().name())?;
        found.set_item("store", self.plan.store())?;
        found.set_item("level", self.plan.level())?;
        found.set_item("tasks", self.plan.tasks())?;
        let report = self.plan.report();
        let shown = report.map(|report| from_json(py, report.as_ref()));
        found.set_item("report", shown.transpose()?)?;
        Ok(found)
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
        let batches: Vec<Geometry> = batches
            .into_iter()
            .map(|batch| geometry(&batch))
            .collect::<PyResult<_>>()?;
        let mut source = ShareBatches {
            batches: batches.into_iter(),
            numbering: if numbers_input {
                LinkNumbering::Input
            } else {
                LinkNumbering::Batch
            },
        };
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
        let plan = engine::run(py, async {
            match &shares {
                None => self.plan.advance(&self.open).await,
                Some(shares) => self.plan.advance_with(shares, &self.open).await,
            }
        })?;
        let open = self.open.clone();
        Ok(Self { plan, open })
    }

    /// Publishes the result. A plan with an address is kept there, with the report.
    fn commit(&self, py: Python<'_>, address: Option<&str>) -> PyResult<Self> {
        let open = self.open.clone();
        let work = async {
            match address {
                Some(address) => TaskPlan::commit(address, &open).await,
                None => {
                    let plan = self.plan.commit_in_memory(&open).await?;
                    plan.clean(&open).await?;
                    Ok(plan)
                }
            }
        };
        let plan = engine::run(py, work)?;
        let open = self.open.clone();
        Ok(Self { plan, open })
    }

    fn discard(&self, py: Python<'_>) -> PyResult<()> {
        engine::run(py, self.plan.discard(&self.open))
    }
}

/// Batches of a share.
struct ShareBatches {
    batches: vec::IntoIter<Geometry>,
    numbering: LinkNumbering,
}

impl GeometrySource for ShareBatches {
    fn next(&mut self, _: usize) -> Result<Option<Geometry>, Box<dyn StdError + Send + Sync>> {
        Ok(self.batches.next())
    }

    fn rewind(&mut self) -> Result<(), Box<dyn StdError + Send + Sync>> {
        Err("a share is read once".into())
    }

    fn tables(&self) -> Geometry {
        Geometry::new(NumericColumn::new(Kind::Float32, 1))
    }

    fn link_numbering(&self) -> LinkNumbering {
        self.numbering
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
        Ok(if ValidationPlan::find(address, open).await?.is_some() {
            ("validate", "zvf.ValidationPlan.read")
        } else if let Ok(Some(_)) = ExportPlan::find(address, open).await {
            ("export precomputed", "zvf.ExportPlan.read")
        } else {
            let plan = TaskPlan::read(address, open).await?;
            (plan.kind().name(), "zvf.read_plan")
        })
    };
    match engine::run_with_progress::<_, zvf::Error, _>(py, find, &ProgressCallback::default()) {
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
    let options = planned_options(&mut given)?;
    let tasks = task_options(&mut given)?;
    given.finish()?;
    let planned = zvf::plan_create(address, reader.as_mut(), design, &options, &tasks);
    let plan = engine::run(py, planned)?;
    let open = options.open;
    Ok(PyTaskPlan { plan, open })
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
    let tables = geometry(tables)?;
    let planned = zvf::plan_shares(address, shares, design, &tables, &options, &tasks);
    let plan = engine::run(py, planned)?;
    let open = options.open;
    Ok(PyTaskPlan { plan, open })
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
    let dataset = dataset.get();
    let open = dataset.options().clone();
    options.open = open.clone();
    let plan = engine::run(py, zvf::plan_pyramid(dataset.address(), &options, &tasks))?;
    Ok(PyTaskPlan { plan, open })
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
    let dataset = dataset.get();
    let plan = sample::plan(py, dataset, volume, given, &tasks)?;
    let open = dataset.options().clone();
    Ok(PyTaskPlan { plan, open })
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
    let plan = engine::run(py, zvf::plan_migrate(source, target, &options, &tasks))?;
    let open = options.open;
    Ok(PyTaskPlan { plan, open })
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

/// Divides a query.
#[pyfunction]
pub(crate) fn partitions<'py>(
    py: Python<'py>,
    dataset: &Bound<'py, PyDataset>,
    parts: usize,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyList>> {
    let query = query::query(keywords)?;
    let dataset = dataset.get().current();
    let found = engine::run(py, dataset.partitions(&query, parts))?;
    let list = PyList::empty(py);
    for part in found {
        let row = PyDict::new(py);
        row.set_item("text", part.to_string())?;
        row.set_item("rows", part.rows)?;
        row.set_item("bytes", part.bytes)?;
        let bounds = part.bounds.as_ref();
        row.set_item(
            "bounds",
            bounds.map(|one| (one.lo().to_vec(), one.hi().to_vec())),
        )?;
        list.append(row)?;
    }
    Ok(list)
}
