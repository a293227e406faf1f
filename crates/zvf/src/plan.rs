//! Work that is divided into tasks for the scheduler of a cluster.

use serde_json::{Value, json};
use zvf_dataset::TaskPlanError;
use zvf_model::json::{Json, member};
use zvf_store::OpenOptions;

use crate::plan_file::{PlanError, PlanFile};

/// Work, divided into independent tasks that other processes run.
///
/// A plan is one JSON file, on disk or in any store. [`run`](Self::run) does one task, on any machine
/// that reaches the store. A task may be killed, and may run again or twice at once. After all tasks,
/// [`commit`](Self::commit) publishes the result, which equals that of one process, such as
/// [`create_from_source`](zvf_write::writer::create_from_source), [`build_pyramid`](zvf_pyramid::build_pyramid) or
/// [`validate`](crate::validate()), byte for byte. Until then readers see no change.
///
/// [`TaskPlan`](crate::TaskPlan) and [`ValidationPlan`](crate::ValidationPlan) are plans of a kind of
/// [`Work`].
///
/// ```
/// use zvf::{AutoLevels, Design, Geometry, GeometryKind, NumericColumn, OpenOptions};
/// use zvf::{PyramidOptions, TaskPlan, plan_pyramid};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = folder.path().join("points.zv").display().to_string();
/// # let address = address.as_str();
/// # let plan = folder.path().join("plan.json").display().to_string();
/// let positions = (0..3000).map(|at| at as f32);
/// let points = Geometry::new(NumericColumn::float32(3, positions));
/// zvf::create(address, &points, Design::new(GeometryKind::Points), &Default::default()).await?;
///
/// let open = OpenOptions::default();
/// let options = PyramidOptions::new().levels(AutoLevels::new().levels(1));
/// let planned = plan_pyramid(address, &options, &Default::default()).await?;
/// planned.write(&plan, &open).await?;
///
/// let planned = TaskPlan::read(&plan, &open).await?;
/// for index in 0..planned.tasks() {
///     planned.run(index, &open).await?;
/// }
/// assert!(TaskPlan::commit(&plan, &open).await?.is_committed());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<W> {
    /// Address from which the plan was read.
    pub(crate) address: Option<String>,
    pub(crate) store: String,
    pub(crate) id: String,
    pub(crate) tasks: usize,
    pub(crate) committed: Option<Json>,
    pub(crate) work: W,
}

/// Work that a [`Plan`] divides into tasks.
///
/// Errors of each function are those of the method of [`Plan`] with its name.
pub trait Work: Clone + 'static {
    /// The error of the work, and of the file of its plan.
    type Error: From<PlanError>;
    /// The input of a task or a commit beside the plan.
    type Input: Default;
    /// The report of a commit.
    type Report;
    /// Version of the file, in its member `zvf_task_plan`.
    const VERSION: u64;

    /// Returns whether the member `job` of a file names such work.
    fn has_job(job: &str) -> bool;

    /// Returns the name of the work, the member `job` of the file.
    fn job(&self) -> &'static str;

    /// Returns the members of the file of a plan beside those of [`Plan`].
    fn to_json(&self) -> Json;

    /// Parses the file of a plan.
    fn from_json(json: &Json) -> Option<Self>;

    /// Parses the report of a commit.
    fn report(json: &Json) -> Option<Self::Report>;

    /// Returns the address that errors of the plan name.
    fn place(plan: &Plan<Self>) -> &str {
        plan.store()
    }

    /// Returns the tasks that are not done, ascending.
    fn missing(
        plan: &Plan<Self>,
        open: &OpenOptions,
    ) -> impl Future<Output = Result<Vec<usize>, Self::Error>>;

    /// Runs a task that exists, of a plan that is not committed. Returns whether there was something
    /// to do.
    fn run(
        plan: &Plan<Self>,
        index: usize,
        input: Self::Input,
        open: &OpenOptions,
    ) -> impl Future<Output = Result<bool, Self::Error>>;

    /// Publishes the result of a plan that is not committed, and returns the report. It may be
    /// repeated until [`clean`](Self::clean).
    fn publish(
        plan: &Plan<Self>,
        input: Self::Input,
        open: &OpenOptions,
    ) -> impl Future<Output = Result<Json, Self::Error>>;

    /// Deletes what the tasks of a committed plan shared.
    fn clean(
        plan: &Plan<Self>,
        open: &OpenOptions,
    ) -> impl Future<Output = Result<(), Self::Error>>;
}

/// The progress of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskStatus {
    /// Number of tasks.
    pub tasks: usize,
    /// Tasks that are not done, ascending.
    pub missing: Vec<usize>,
    /// True if the result is published.
    pub is_committed: bool,
}

/// Options of [`plan_create`](crate::plan_create), [`plan_pyramid`](crate::plan_pyramid) and the
/// other plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskPlanOptions {
    /// Number of tasks. A task may have nothing to do. Default: 16.
    pub tasks: Option<usize>,
    /// Replaces an unfinished plan of the same store or target.
    pub replaces_unfinished: bool,
}

impl TaskPlanOptions {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    zvf_model::setters! {
        replaces_unfinished: bool,
        tasks: usize,
    }

    /// Returns the number of tasks, at least 1.
    pub fn count(&self) -> usize {
        self.tasks.unwrap_or(16).max(1)
    }
}

impl<W> Plan<W> {
    /// Creates a plan of work with an identifier.
    pub fn new(store: String, id: String, tasks: usize, work: W) -> Self {
        Self {
            address: None,
            store,
            id,
            tasks,
            committed: None,
            work,
        }
    }

    /// Returns the address of the store.
    pub fn store(&self) -> &str {
        &self.store
    }

    /// Returns the identifier of the work.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the number of tasks.
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    /// Returns the work that is divided.
    pub fn work(&self) -> &W {
        &self.work
    }

    /// Returns whether the result is published.
    pub fn is_committed(&self) -> bool {
        self.committed.is_some()
    }
}

impl<W: Work> Plan<W> {
    /// Returns the name of the work, such as `create` or `validate`.
    pub fn job(&self) -> &'static str {
        self.work.job()
    }

    /// Returns the report of the [commit](Self::commit); `None` before it.
    pub fn report(&self) -> Option<W::Report> {
        self.committed.as_ref().and_then(W::report)
    }

    /// Returns the plan as JSON.
    pub fn to_json(&self) -> Json {
        let mut json = json!({
            "zvf_task_plan": W::VERSION,
            "store": self.store,
            "id": self.id,
            "job": self.job(),
            "tasks": self.tasks,
            "committed": self.committed,
        });
        if let (Value::Object(all), Value::Object(own)) = (&mut json, self.work.to_json().into()) {
            all.extend(own);
        }
        json.into()
    }

    /// Parses the output of [`to_json`](Self::to_json).
    ///
    /// # Errors
    ///
    /// [`TaskPlanError::Invalid`].
    pub fn from_json(json: &Json) -> Result<Self, TaskPlanError> {
        Self::of_work(json)?.ok_or(TaskPlanError::Invalid)
    }

    /// Parses a plan; `None` for the plan of other work.
    fn of_work(json: &Json) -> Result<Option<Self>, TaskPlanError> {
        match member(json.as_ref(), "job") {
            Some(job) if W::has_job(job) => parse(json).map(Some).ok_or(TaskPlanError::Invalid),
            Some(_) => Ok(None),
            None => Err(TaskPlanError::Invalid),
        }
    }

    /// Reads a plan: the path of a file, or the address of an object.
    ///
    /// # Errors
    ///
    /// [`TaskPlanError`] when there is no plan of such work at the address.
    pub async fn read(address: &str, open: &OpenOptions) -> Result<Self, W::Error> {
        let found = Self::find(address, open).await?;
        Ok(found.ok_or_else(|| PlanError::new(address, TaskPlanError::Invalid))?)
    }

    /// Reads a plan as [`read`](Self::read); `None` for the plan of other work.
    ///
    /// # Errors
    ///
    /// [`TaskPlanError`] when there is no plan at the address.
    pub async fn find(address: &str, open: &OpenOptions) -> Result<Option<Self>, W::Error> {
        let json = PlanFile::parse(address)?.read(open).await?;
        let plan = Self::of_work(&json).map_err(|problem| PlanError::new(address, problem))?;
        Ok(plan.map(|plan| plan.at(address)))
    }

    /// Returns the plan with the address at which it is kept.
    #[must_use]
    pub fn at(self, address: &str) -> Self {
        let address = Some(address.to_owned());
        Self { address, ..self }
    }

    /// Writes the plan to a file or an object, which appears whole.
    ///
    /// # Errors
    ///
    /// [`Work::Error`] when the address cannot be written.
    pub async fn write(&self, address: &str, open: &OpenOptions) -> Result<(), W::Error> {
        let json = self.to_json();
        Ok(PlanFile::parse(address)?.write(&json, open).await?)
    }

    /// Runs one task of the phase, counted from 0. Returns whether there was something to do: what is
    /// done already is not repeated.
    ///
    /// # Errors
    ///
    /// [`TaskPlanError`] when there is no such task, the store was changed or replaced since the plan
    /// was made, or the task needs an [input](Self::run_with); [`Work::Error`] when the store cannot
    /// be read or written.
    pub async fn run(&self, index: usize, open: &OpenOptions) -> Result<bool, W::Error> {
        self.run_with(index, W::Input::default(), open).await
    }

    /// Runs one task as [`run`](Self::run), with the input of the work: the function that computes the
    /// values of an attribute, or a callback for progress.
    ///
    /// # Errors
    ///
    /// See [`run`](Self::run); the error of the input.
    pub async fn run_with(
        &self,
        index: usize,
        input: W::Input,
        open: &OpenOptions,
    ) -> Result<bool, W::Error> {
        if index >= self.tasks {
            let tasks = self.tasks;
            return Err(self.problem(TaskPlanError::NoTask { index, tasks }).into());
        }
        if self.is_committed() {
            Ok(false)
        } else {
            W::run(self, index, input, open).await
        }
    }

    /// Returns the tasks that are done and missing.
    ///
    /// # Errors
    ///
    /// [`TaskPlanError`] when the store or the plan was replaced since the plan was made;
    /// [`Work::Error`] when what the tasks share cannot be read.
    pub async fn status(&self, open: &OpenOptions) -> Result<TaskStatus, W::Error> {
        let is_committed = self.is_committed();
        let missing = if is_committed {
            Vec::new()
        } else {
            W::missing(self, open).await?
        };
        Ok(TaskStatus {
            tasks: self.tasks,
            missing,
            is_committed,
        })
    }

    /// Publishes the result of the plan at an address, and records that in the plan. Returns the plan
    /// with its [report](Self::report). Repeating a commit has no effect.
    ///
    /// # Errors
    ///
    /// [`TaskPlanError`] when a task is not done, or the store was changed or replaced since the plan
    /// was made; [`Work::Error`] when the store or the plan cannot be written. The commit may then be
    /// repeated.
    pub async fn commit(address: &str, open: &OpenOptions) -> Result<Self, W::Error> {
        Self::commit_with(address, W::Input::default(), open).await
    }

    /// Publishes the result as [`commit`](Self::commit), with the input of the work: the number of
    /// findings of a rule that a validation lists.
    ///
    /// # Errors
    ///
    /// See [`commit`](Self::commit).
    pub async fn commit_with(
        address: &str,
        input: W::Input,
        open: &OpenOptions,
    ) -> Result<Self, W::Error> {
        let mut plan = Self::read(address, open).await?;
        if !plan.is_committed() {
            plan.committed = Some(W::publish(&plan, input, open).await?);
            plan.write(address, open).await?;
        }
        // The files tell a repeated commit that this one published the result, so they are deleted
        // after the plan is written.
        W::clean(&plan, open).await?;
        Ok(plan)
    }

    /// Publishes the result of a plan that is in memory only, and returns the plan with its
    /// [report](Self::report). It may be repeated until [`clean`](Self::clean).
    ///
    /// # Errors
    ///
    /// See [`commit`](Self::commit).
    pub async fn commit_in_memory(&self, open: &OpenOptions) -> Result<Self, W::Error> {
        let mut plan = self.clone();
        if !plan.is_committed() {
            plan.committed = Some(W::publish(self, W::Input::default(), open).await?);
        }
        Ok(plan)
    }

    /// Deletes what the tasks shared, after [`commit_in_memory`](Self::commit_in_memory).
    ///
    /// # Errors
    ///
    /// [`Work::Error`] when the store cannot be written.
    pub async fn clean(&self, open: &OpenOptions) -> Result<(), W::Error> {
        W::clean(self, open).await
    }

    /// Returns an error if one of the tasks is missing.
    ///
    /// # Errors
    ///
    /// [`TaskPlanError::Missing`].
    pub fn check_missing(&self, missing: Vec<usize>, tasks: usize) -> Result<(), PlanError> {
        if missing.is_empty() {
            Ok(())
        } else {
            Err(self.problem(TaskPlanError::Missing { missing, tasks }))
        }
    }

    /// Returns the error of a problem of the plan.
    pub fn problem(&self, problem: TaskPlanError) -> PlanError {
        PlanError::new(W::place(self), problem)
    }
}

fn parse<W: Work>(document: &Json) -> Option<Plan<W>> {
    let json = document.as_ref();
    (member::<u64>(json, "zvf_task_plan")? == W::VERSION).then_some(())?;
    let committed = member::<Option<Json>>(json, "committed").flatten();
    if let Some(report) = &committed {
        W::report(report)?;
    }
    Some(Plan {
        committed,
        ..Plan::new(
            member(json, "store")?,
            member(json, "id")?,
            member(json, "tasks")?,
            W::from_json(document)?,
        )
    })
}
