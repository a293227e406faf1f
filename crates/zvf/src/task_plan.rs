//! Plans of tasks for schedulers of clusters.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use serde_json::{Map, Value, json};
use zvf_build::{Design, Geometry};
use zvf_model::{fetch::BoxFuture, key::Key};
use zvf_store::{CreateError, OpenError, OpenOptions, Read, Store, absolute_address};

#[cfg(feature = "migrate")]
use crate::migrate::{MigrateOptions, tasks as migration};
use crate::{
    attribute::{AttributeSpec, ObjectReduction, VertexFn, tasks as attribute},
    error::{Error, boxed},
    failure::Failure,
    job::{Job, PlannedJob},
    location::Location,
    pyramid::{self, PyramidOptions, tasks as level_tasks},
    task_plan_error::TaskPlanError,
    writer::{CreateOptions, GeometrySource, job as creation, shares as input},
};

/// Version of the file, in its member `zvf_task_plan`.
pub(crate) const VERSION: u64 = 3;
/// Default number of tasks.
pub(crate) const TASKS: usize = 16;

/// The work that a plan distributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TaskKind {
    /// Creation of a store.
    Create,
    /// One coarser level of a store.
    Pyramid,
    /// An attribute of vertices or objects, computed from positions.
    Sample,
    /// A store in another generation.
    #[cfg(feature = "migrate")]
    Migrate,
}

impl TaskKind {
    /// All kinds.
    pub const ALL: &'static [Self] = &[
        Self::Create,
        Self::Pyramid,
        Self::Sample,
        #[cfg(feature = "migrate")]
        Self::Migrate,
    ];

    /// Returns the name in the file and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Pyramid => "pyramid",
            Self::Sample => "sample",
            #[cfg(feature = "migrate")]
            Self::Migrate => "migrate",
        }
    }

    /// Returns whether the work creates a store.
    fn is_creation(self) -> bool {
        match self {
            Self::Create => true,
            Self::Pyramid | Self::Sample => false,
            #[cfg(feature = "migrate")]
            Self::Migrate => true,
        }
    }
}

/// A step of a plan, whose tasks are independent of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TaskPhase {
    /// Each task reads a [share](plan_shares) of the input.
    Fill,
    /// Each task divides a share among the parts of the store.
    Divide,
    /// Each task finds the ends of the links of a share, and divides the links. Only plans of
    /// skeletons, graphs and meshes have this phase.
    Link,
    /// Each task writes parts of the result. Plans of input that one process reads begin here.
    Write,
}

impl TaskPhase {
    /// All phases, in their order.
    pub const ALL: [Self; 4] = [Self::Fill, Self::Divide, Self::Link, Self::Write];

    /// Returns the name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fill => "fill",
            Self::Divide => "divide",
            Self::Link => "link",
            Self::Write => "write",
        }
    }

    /// Returns the prefix of the files that say that a part is done.
    fn done(self) -> &'static str {
        match self {
            Self::Fill => "filled",
            Self::Divide => "divided",
            Self::Link => "linked",
            Self::Write => "result",
        }
    }

    /// Returns what a plan in this phase needs next.
    fn advice(self) -> &'static str {
        match self {
            Self::Fill => "fill all shares, then advance it",
            Self::Divide | Self::Link => "run its tasks, then advance it",
            Self::Write => "run its tasks, then commit it",
        }
    }
}

/// Options of [`plan_create`], [`plan_pyramid`] and the other plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskPlanOptions {
    /// Number of tasks. A task may have nothing to do. Default: 16.
    pub tasks: Option<usize>,
    /// Replaces an unfinished creation of the same store, such as that of an earlier plan.
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
}

/// Work on a store, divided into independent tasks that other processes run.
///
/// A plan is one JSON file, on disk or in any store. [`run`](Self::run) does one task, on any
/// machine that reaches the store. A task may be killed, and may run again or twice at once. After
/// all tasks, [`commit`](Self::commit) publishes the result, which equals that of one process, such
/// as [`create_from_source`](crate::create_from_source) or [`build_pyramid`](crate::build_pyramid),
/// byte for byte. Until then readers see no change.
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
pub struct TaskPlan {
    kind: TaskKind,
    phase: TaskPhase,
    store: String,
    /// Identifier of the creation or transaction.
    id: String,
    /// Level that is built.
    level: Option<u32>,
    /// Description of the function of an attribute, for the program that runs the tasks.
    recipe: Value,
    /// Number of parts of the phase.
    parts: usize,
    /// Number of tasks of the phase.
    tasks: usize,
    /// Number of tasks of the last phase.
    writers: usize,
    /// Report of the commit.
    committed: Option<Map<String, Value>>,
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

/// Plans the creation of a store. Reads the geometry twice, partitions it into the reserved folder
/// of the store, and reserves its address. Geometry with links is read once and divided as a single
/// [share](plan_shares).
///
/// The options `overwrite`, `runner` and `progress` are not used.
///
/// # Errors
///
/// See [`create_from_source`](crate::create_from_source).
pub fn plan_create<'a>(
    address: &'a str,
    source: &'a mut dyn GeometrySource,
    design: Design,
    options: &'a CreateOptions,
    tasks: &'a TaskPlanOptions,
) -> BoxFuture<'a, Result<TaskPlan, Error>> {
    boxed(async move {
        let address = absolute_address(address);
        let store = Location::from(&address).create(&options.open)?;
        let count = tasks.tasks.unwrap_or(TASKS).max(1);
        let replaces = tasks.replaces_unfinished;
        let name = Some(address.as_str());
        let planned = match design.kind.is_linked() {
            true => {
                let planned =
                    input::plan_linked(&store, name, source, design, options, count, replaces);
                planned.await?
            }
            false => {
                creation::plan(&store, &address, source, design, options, count, replaces).await?
            }
        };
        Ok(TaskPlan::new(TaskKind::Create, address, planned, count))
    })
}

/// Plans the creation of a store from `shares` shares of input, which tasks read: files, or batches
/// that other programs make.
///
/// 1. [`fill`](TaskPlan::fill) reads a share, once for each share.
/// 2. [`advance`](TaskPlan::advance) joins what was found and chooses the shapes.
/// 3. [`run`](TaskPlan::run) divides a share among the parts of the store.
/// 4. `advance` joins the divisions.
/// 5. For skeletons, graphs and meshes, `run` divides the links of a share, and `advance` joins
///    them.
/// 6. `run` writes parts, and [`commit`](TaskPlan::commit) publishes the store.
///
/// The store equals that of [`create_from_source`](crate::create_from_source) for the shares in
/// their order, with the same chunk shape and shards. Until the commit, the reserved folder of the
/// store holds the geometry twice.
///
/// The links of a batch connect vertices of this batch, or any vertices of the input, depending on
/// [`GeometrySource::link_numbering`]. The vertices and
/// links of a tree are in one batch.
///
/// `tables` has objects, groups and their attributes, and no vertices. The options `overwrite`,
/// `runner`, `progress` and `check` are not used.
///
/// ```
/// use std::error::Error;
/// use zvf::{Design, Geometry, GeometryKind, NumericColumn, OpenOptions, TaskPlan, plan_shares};
///
/// /// A share of points that another program hands in.
/// struct Share(Option<Geometry>);
///
/// impl zvf::GeometrySource for Share {
///     fn next(&mut self, _: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
///         Ok(self.0.take())
///     }
///
///     fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
///         Err("a share is read once".into())
///     }
///
///     fn tables(&self) -> Geometry {
///         Geometry::new(NumericColumn::float32(3, []))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = folder.path().join("points.zv").display().to_string();
/// # let address = address.as_str();
/// let (open, tables) = (OpenOptions::default(), Geometry::new(NumericColumn::float32(3, [])));
/// let design = Design::new(GeometryKind::Points);
/// let plan =
///     plan_shares(address, 4, design, &tables, &Default::default(), &Default::default()).await?;
/// for share in 0..4_u8 {
///     let positions = (0..300).map(|at| f32::from(share) * 9.0 + at as f32);
///     let mut points = Share(Some(Geometry::new(NumericColumn::float32(3, positions))));
///     plan.fill(usize::from(share), &mut points, &open).await?;
/// }
/// let mut plan = plan.advance(&open).await?;
/// for _ in 0..2 {
///     for index in 0..plan.tasks() {
///         plan.run(index, &open).await?;
///     }
///     plan = match plan.phase() {
///         zvf::TaskPhase::Write => plan.commit_in_memory(&open).await?,
///         _ => plan.advance(&open).await?,
///     };
/// }
/// plan.clean(&open).await?;
/// assert_eq!(plan.report().and_then(|report| report["vertices"].as_u64()), Some(400));
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// See [`create_from_source`](crate::create_from_source).
pub fn plan_shares<'a>(
    address: &'a str,
    shares: usize,
    design: Design,
    tables: &'a Geometry,
    options: &'a CreateOptions,
    tasks: &'a TaskPlanOptions,
) -> BoxFuture<'a, Result<TaskPlan, Error>> {
    boxed(async move {
        let address = absolute_address(address);
        let store = Location::from(&address).create(&options.open)?;
        let count = tasks.tasks.unwrap_or(TASKS).max(1);
        let replaces = tasks.replaces_unfinished;
        let name = Some(address.as_str());
        let reserved = input::reserve(&store, name, design, tables, options, count, replaces);
        let reserved = PlannedJob {
            parts: shares,
            ..reserved.await?
        };
        Ok(TaskPlan {
            phase: TaskPhase::Fill,
            tasks: shares,
            ..TaskPlan::new(TaskKind::Create, address, reserved, count)
        })
    })
}

/// Plans the first coarser level of a store that does not exist. A plan without tasks that is
/// [committed](TaskPlan::is_committed) means that all levels exist.
///
/// The options `runner` and `progress` are not used.
///
/// # Errors
///
/// See [`build_pyramid`](crate::build_pyramid).
pub fn plan_pyramid<'a>(
    address: &'a str,
    options: &'a PyramidOptions,
    tasks: &'a TaskPlanOptions,
) -> BoxFuture<'a, Result<TaskPlan, Error>> {
    boxed(async move {
        let address = absolute_address(address);
        let store = Location::from(&address).open(&options.open)?;
        let count = tasks.tasks.unwrap_or(TASKS).max(1);
        let planned = pyramid::plan_level(&store, options, count).await?;
        Ok(match planned {
            Some((level, planned)) => TaskPlan {
                level: Some(level.number()),
                ..TaskPlan::new(TaskKind::Pyramid, address, planned, count)
            },
            None => {
                let (id, parts) = (String::new(), 0);
                let nothing = PlannedJob { id, parts };
                TaskPlan {
                    committed: Some(Map::new()),
                    ..TaskPlan::new(TaskKind::Pyramid, address, nothing, 0)
                }
            }
        })
    })
}

/// Plans an attribute of the vertices of level 0, as
/// [`write_vertex_attribute`](crate::write_vertex_attribute) writes it. Tasks compute values with a
/// function that is passed to [`run_with`](TaskPlan::run_with); the plan keeps `recipe`, from which
/// the program that runs them can make it.
///
/// ```
/// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
/// use std::sync::Arc;
/// use zvf::{AttributeSpec, OpenOptions, numeric::Kind, plan_vertex_attribute};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = folder.path().join("points.zv").display().to_string();
/// # let address = address.as_str();
/// # let points = Geometry::new(NumericColumn::float32(3, (0..3000).map(|at| at as f32)));
/// # zvf::create(address, &points, Design::new(GeometryKind::Points), &Default::default()).await?;
/// let height = AttributeSpec::new("height", Kind::Float64);
/// let open = OpenOptions::default();
/// let recipe = serde_json::json!({"axis": 1});
/// let plan = plan_vertex_attribute(address, &height, recipe, &open, &Default::default()).await?;
///
/// let axis = plan.recipe()["axis"].as_u64().map_or(0, |axis| axis as usize);
/// let of_each = Arc::new(move |positions: &[f64]| {
///     let rows = positions.chunks_exact(3);
///     Ok(rows.flat_map(|row| row[axis].to_le_bytes()).collect())
/// });
/// for index in 0..plan.tasks() {
///     plan.run_with(index, of_each.clone(), &open).await?;
/// }
/// let plan = plan.commit_in_memory(&open).await?;
/// plan.clean(&open).await?;
/// assert_eq!(plan.report().and_then(|report| report["vertices"].as_u64()), Some(1000));
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// See [`write_vertex_attribute`](crate::write_vertex_attribute).
pub fn plan_vertex_attribute<'a>(
    address: &'a str,
    spec: &'a AttributeSpec,
    recipe: Value,
    open: &'a OpenOptions,
    tasks: &'a TaskPlanOptions,
) -> BoxFuture<'a, Result<TaskPlan, Error>> {
    boxed(plan_attribute(address, spec, None, recipe, open, tasks))
}

/// Plans an attribute of objects, as [`write_object_attribute`](crate::write_object_attribute)
/// writes it; see [`plan_vertex_attribute`]. Tasks reduce the values of fragments, and the commit
/// reduces those of objects.
///
/// # Errors
///
/// See [`write_object_attribute`](crate::write_object_attribute).
pub fn plan_object_attribute<'a>(
    address: &'a str,
    spec: &'a AttributeSpec,
    reduction: ObjectReduction,
    recipe: Value,
    open: &'a OpenOptions,
    tasks: &'a TaskPlanOptions,
) -> BoxFuture<'a, Result<TaskPlan, Error>> {
    let reduction = Some(reduction);
    boxed(plan_attribute(
        address, spec, reduction, recipe, open, tasks,
    ))
}

async fn plan_attribute(
    address: &str,
    spec: &AttributeSpec,
    reduction: Option<ObjectReduction>,
    recipe: Value,
    open: &OpenOptions,
    tasks: &TaskPlanOptions,
) -> Result<TaskPlan, Failure> {
    let address = absolute_address(address);
    let store = Location::from(&address).open(open)?;
    let count = tasks.tasks.unwrap_or(TASKS).max(1);
    let planned = attribute::plan(&store, spec, reduction, count).await?;
    Ok(TaskPlan {
        recipe,
        ..TaskPlan::new(TaskKind::Sample, address, planned, count)
    })
}

/// Plans a migration of the store at `source` to a new store at `target`, whose address is reserved.
/// Tasks write cells; the commit writes objects, groups and metadata, and the links that cannot be
/// divided, such as those of stores before 0.8. It holds the number of rows of every chunk in
/// memory.
///
/// The source must not change until the commit. The options `overwrite` and `progress` are not used.
///
/// ```
/// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
/// use zvf::{Dataset, MigrateOptions, OpenOptions, Profile, plan_migrate};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = |name: &str| folder.path().join(name).display().to_string();
/// # let (source, target) = (path("points.zv"), path("older.zv"));
/// # let points = Geometry::new(NumericColumn::float32(3, (0..3000).map(|at| at as f32)));
/// # zvf::create(&source, &points, Design::new(GeometryKind::Points), &Default::default()).await?;
/// let (open, options) = (OpenOptions::default(), MigrateOptions::new(Profile::V08));
/// let plan = plan_migrate(&source, &target, &options, &Default::default()).await?;
/// for index in 0..plan.tasks() {
///     plan.run(index, &open).await?;
/// }
/// plan.commit_in_memory(&open).await?.clean(&open).await?;
/// assert_eq!(Dataset::open(&target).await?.levels().len(), 1);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// See [`migrate`].
#[cfg(feature = "migrate")]
pub fn plan_migrate<'a>(
    source: &'a str,
    target: &'a str,
    options: &'a MigrateOptions,
    tasks: &'a TaskPlanOptions,
) -> BoxFuture<'a, Result<TaskPlan, Error>> {
    boxed(async move {
        let (source, target) = (absolute_address(source), absolute_address(target));
        let count = tasks.tasks.unwrap_or(TASKS).max(1);
        let replaces = tasks.replaces_unfinished;
        let planned = migration::plan(&source, &target, options, count, replaces);
        let planned = planned.await?;
        Ok(TaskPlan::new(TaskKind::Migrate, target, planned, count))
    })
}

impl TaskPlan {
    fn new(kind: TaskKind, store: String, planned: PlannedJob, tasks: usize) -> Self {
        Self {
            kind,
            phase: TaskPhase::Write,
            store,
            id: planned.id,
            level: None,
            recipe: Value::Null,
            parts: planned.parts,
            tasks,
            writers: tasks,
            committed: None,
        }
    }

    /// Returns the work that the plan distributes.
    pub fn kind(&self) -> TaskKind {
        self.kind
    }

    /// Returns the address of the store.
    pub fn store(&self) -> &str {
        &self.store
    }

    /// Returns the level that is built; `None` unless the plan is of a pyramid.
    pub fn level(&self) -> Option<u32> {
        self.level
    }

    /// Returns the description that [`plan_vertex_attribute`] or [`plan_object_attribute`] was
    /// given; null for other plans.
    pub fn recipe(&self) -> &Value {
        &self.recipe
    }

    /// Returns the phase, to which tasks and status belong.
    pub fn phase(&self) -> TaskPhase {
        self.phase
    }

    /// Returns the number of tasks.
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    /// Returns whether the result is published.
    pub fn is_committed(&self) -> bool {
        self.committed.is_some()
    }

    /// Returns the counts that [`commit`](Self::commit) reported; `None` before it.
    pub fn report(&self) -> Option<&Map<String, Value>> {
        self.committed.as_ref()
    }

    /// Returns the plan as JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "zvf_task_plan": VERSION,
            "job": self.kind.name(),
            "store": self.store,
            "id": self.id,
            "level": self.level,
            "recipe": self.recipe,
            "parts": self.parts,
            "tasks": self.tasks,
            "phase": self.phase.name(),
            "writers": self.writers,
            "committed": self.committed,
        })
    }

    /// Parses the output of [`to_json`](Self::to_json).
    ///
    /// # Errors
    ///
    /// [`TaskPlanError::Invalid`].
    pub fn from_json(json: &Value) -> Result<Self, TaskPlanError> {
        parse(json).ok_or(TaskPlanError::Invalid)
    }

    /// Reads a plan: the path of a file, or the address of an object.
    ///
    /// # Errors
    ///
    /// [`TaskPlanError`] when there is no plan at the address.
    pub fn read<'a>(address: &'a str, open: &'a OpenOptions) -> BoxFuture<'a, Result<Self, Error>> {
        boxed(read(address, open))
    }

    /// Writes the plan to a file or an object, which appears whole.
    ///
    /// # Errors
    ///
    /// [`Error`] when the address cannot be written.
    pub fn write<'a>(
        &'a self,
        address: &'a str,
        open: &'a OpenOptions,
    ) -> BoxFuture<'a, Result<(), Error>> {
        boxed(write(self, address, open))
    }

    /// Reads a share of the input, counted from 0, once and to its end, and keeps it in the job.
    /// Returns whether there was something to do: a share that is filled already is not read. An
    /// empty share is filled too.
    ///
    /// # Errors
    ///
    /// [`TaskPlanError`] when the plan has no shares or is past this phase, or the store was
    /// replaced; [`BuildError`](zvf_build::BuildError) when the geometry does not fit the design;
    /// an error [from the caller](Error::is_from_caller) when it cannot be read.
    pub fn fill<'a>(
        &'a self,
        share: usize,
        source: &'a mut dyn GeometrySource,
        open: &'a OpenOptions,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        boxed(async move {
            self.check_phase(TaskPhase::Fill)?;
            let store = self.open(open)?;
            let done = Job::open(&store, &self.id)?;
            if done.done(self.phase.done()).await?.contains(&share) {
                return Ok(false);
            }
            input::fill(&store, &self.id, share, source).await?;
            Ok(true)
        })
    }

    /// Ends the phase, all of whose tasks are done, and returns the plan of the next one. Repeating
    /// it has no effect: it returns an equal plan.
    ///
    /// # Errors
    ///
    /// [`TaskPlanError`] when a task is not done, the plan is in its last phase, or the store was
    /// replaced; [`BuildError`](zvf_build::BuildError) when the shares do not fit each other or the
    /// design.
    pub fn advance<'a>(&'a self, open: &'a OpenOptions) -> BoxFuture<'a, Result<Self, Error>> {
        boxed(async move {
            let shares: Vec<usize> = (0..self.parts).collect();
            self.next_phase(&shares, open).await
        })
    }

    /// Ends the first phase with these shares in this order. Any number of them may be filled;
    /// see [`advance`](Self::advance).
    ///
    /// # Errors
    ///
    /// See [`advance`](Self::advance).
    pub fn advance_with<'a>(
        &'a self,
        shares: &'a [usize],
        open: &'a OpenOptions,
    ) -> BoxFuture<'a, Result<Self, Error>> {
        boxed(async move {
            self.check_phase(TaskPhase::Fill)?;
            self.next_phase(shares, open).await
        })
    }

    async fn next_phase(&self, shares: &[usize], open: &OpenOptions) -> Result<Self, Failure> {
        let store = self.open(open)?;
        let (phase, parts) = match self.phase {
            TaskPhase::Fill => {
                let done = Job::open(&store, &self.id)?;
                let done = done.done(self.phase.done()).await?;
                let missing = shares.iter().filter(|share| !done.contains(share));
                self.check_missing(missing.copied().collect(), shares.len())?;
                let parts = input::decide_shapes(&store, &self.id, shares, None).await?;
                (TaskPhase::Divide, parts)
            }
            TaskPhase::Divide => {
                self.check_missing(self.missing(&store).await?, self.tasks)?;
                let phase = match input::has_links(&store, &self.id).await? {
                    true => TaskPhase::Link,
                    false => TaskPhase::Write,
                };
                (phase, input::join(&store, &self.id).await?)
            }
            TaskPhase::Link => {
                self.check_missing(self.missing(&store).await?, self.tasks)?;
                (TaskPhase::Write, input::join_links(&store, &self.id).await?)
            }
            TaskPhase::Write => return Err(self.wrong_phase()),
        };
        Ok(Self {
            phase,
            parts,
            tasks: match phase {
                TaskPhase::Write => self.writers,
                _ => parts,
            },
            ..self.clone()
        })
    }

    fn check_phase(&self, phase: TaskPhase) -> Result<(), Failure> {
        match self.phase == phase && !self.is_committed() {
            true => Ok(()),
            false => Err(self.wrong_phase()),
        }
    }

    fn wrong_phase(&self) -> Failure {
        let (phase, advice) = (self.phase.name(), self.phase.advice());
        problem(&self.store, TaskPlanError::Phase { phase, advice })
    }

    fn check_missing(&self, missing: Vec<usize>, tasks: usize) -> Result<(), Failure> {
        match missing.is_empty() {
            true => Ok(()),
            false => Err(problem(
                &self.store,
                TaskPlanError::Missing { missing, tasks },
            )),
        }
    }

    /// Discards the work: deletes everything that tasks have written, and the reservation of a new
    /// store. Tasks that still run then fail. They may leave files in the reserved folder of the
    /// store, which [`Store::sweep`] deletes. A committed plan has nothing to
    /// discard.
    ///
    /// # Errors
    ///
    /// [`Error`] when the store cannot be written.
    pub fn discard<'a>(&'a self, open: &'a OpenOptions) -> BoxFuture<'a, Result<(), Error>> {
        boxed(async move {
            if self.is_committed() || self.id.is_empty() {
                return Ok(());
            }
            let store = self.open(open)?;
            match self.kind {
                kind if kind.is_creation() => creation::abandon(&store, &self.id).await,
                _ => Job::open(&store, &self.id)?.delete().await,
            }
        })
    }

    /// Runs one task of the phase, counted from 0. Returns whether there was something to do: a
    /// task that is done already is not repeated.
    ///
    /// # Errors
    ///
    /// [`TaskPlanError`] when there is no such task, the store was changed or replaced since the
    /// plan was made, or the task needs a [function](Self::run_with); [`Error`] when the store
    /// cannot be written.
    pub fn run<'a>(
        &'a self,
        index: usize,
        open: &'a OpenOptions,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        boxed(self.run_parts(index, None, open))
    }

    /// Runs one task of the plan of an attribute, as [`run`](Self::run), with the function that
    /// computes the values. All tasks must be given the same function: the
    /// [recipe](Self::recipe) describes it. Plans of other kinds do not use it.
    ///
    /// # Errors
    ///
    /// See [`run`](Self::run); an error [from the caller](Error::is_from_caller) with the error of
    /// `values`; [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) when the number of
    /// values is wrong.
    pub fn run_with<'a>(
        &'a self,
        index: usize,
        values: Arc<VertexFn>,
        open: &'a OpenOptions,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        boxed(self.run_parts(index, Some(values), open))
    }

    async fn run_parts(
        &self,
        index: usize,
        values: Option<Arc<VertexFn>>,
        open: &OpenOptions,
    ) -> Result<bool, Failure> {
        if index >= self.tasks {
            let tasks = self.tasks;
            return Err(problem(&self.store, TaskPlanError::NoTask { index, tasks }));
        }
        if self.is_committed() {
            return Ok(false);
        }
        if self.phase == TaskPhase::Fill {
            return Err(self.wrong_phase());
        }
        let store = self.open(open)?;
        let done = Job::open(&store, &self.id)?;
        let done = done.done(self.phase.done()).await?;
        let parts = (index..self.parts).step_by(self.tasks);
        let parts: Vec<usize> = parts.filter(|part| !done.contains(part)).collect();
        if parts.is_empty() {
            return Ok(false);
        }
        match (self.kind, self.phase) {
            (TaskKind::Create, TaskPhase::Divide) => {
                input::divide(&store, &self.id, &parts).await?;
            }
            (TaskKind::Create, TaskPhase::Link) => {
                Box::pin(input::divide_links(&store, &self.id, &parts)).await?;
            }
            (TaskKind::Create, _) => creation::run_parts(&store, &self.id, &parts).await?,
            (TaskKind::Pyramid, _) => level_tasks::run_parts(&store, &self.id, &parts).await?,
            (TaskKind::Sample, _) => {
                let values = values.ok_or_else(|| problem(&self.store, TaskPlanError::NoValues))?;
                Box::pin(attribute::run_parts(&store, &self.id, &parts, &values)).await?;
            }
            #[cfg(feature = "migrate")]
            (TaskKind::Migrate, _) => {
                Box::pin(migration::run_parts(&store, &self.id, &parts, open)).await?;
            }
        }
        Ok(true)
    }

    /// Returns the tasks that are done and missing.
    ///
    /// # Errors
    ///
    /// [`TaskPlanError`] when the store was replaced since the plan was made; [`Error`] when the
    /// store cannot be read.
    pub fn status<'a>(&'a self, open: &'a OpenOptions) -> BoxFuture<'a, Result<TaskStatus, Error>> {
        boxed(async move {
            let missing = match self.is_committed() {
                true => Vec::new(),
                false => self.missing(&self.open(open)?).await?,
            };
            Ok(TaskStatus {
                tasks: self.tasks,
                missing,
                is_committed: self.is_committed(),
            })
        })
    }

    /// Publishes the result of the plan at an address, and records that in the plan. Returns the
    /// plan with its [report](Self::report). Repeating a commit has no effect.
    ///
    /// # Errors
    ///
    /// [`TaskPlanError`] when a task is not done, or the store was changed or replaced since the
    /// plan was made; [`Error`] when the store or the plan cannot be written. The commit may then
    /// be repeated.
    pub fn commit<'a>(
        address: &'a str,
        open: &'a OpenOptions,
    ) -> BoxFuture<'a, Result<Self, Error>> {
        boxed(async move {
            let mut plan = read(address, open).await?;
            if !plan.is_committed() {
                plan.committed = Some(plan.publish(open).await?);
                write(&plan, address, open).await?;
            }
            // The files tell a repeated commit that this one published the result, so they are
            // deleted after the plan is written.
            plan.delete_files(open).await?;
            Ok(plan)
        })
    }

    /// Publishes the result of a plan that is in memory only, and returns the plan with its
    /// [report](Self::report). It may be repeated until [`clean`](Self::clean).
    ///
    /// # Errors
    ///
    /// See [`commit`](Self::commit).
    pub fn commit_in_memory<'a>(
        &'a self,
        open: &'a OpenOptions,
    ) -> BoxFuture<'a, Result<Self, Error>> {
        boxed(async move {
            let mut plan = self.clone();
            if !plan.is_committed() {
                plan.committed = Some(plan.publish(open).await?);
            }
            Ok(plan)
        })
    }

    /// Deletes what the tasks shared, after [`commit_in_memory`](Self::commit_in_memory).
    ///
    /// # Errors
    ///
    /// [`Error`] when the store cannot be written.
    pub fn clean<'a>(&'a self, open: &'a OpenOptions) -> BoxFuture<'a, Result<(), Error>> {
        boxed(self.delete_files(open))
    }

    async fn delete_files(&self, open: &OpenOptions) -> Result<(), Failure> {
        match self.is_committed() && self.parts > 0 {
            true => Job::open(&self.open(open)?, &self.id)?.delete().await,
            false => Ok(()),
        }
    }

    /// Publishes the result and returns the report, which is empty if the process that published it
    /// died before it wrote the plan.
    async fn publish(&self, open: &OpenOptions) -> Result<Map<String, Value>, Failure> {
        if self.phase != TaskPhase::Write {
            return Err(self.wrong_phase());
        }
        let store = &self.open(open)?;
        self.check_missing(self.missing(store).await?, self.tasks)?;
        let is_published = match self.kind.is_creation() {
            true => self.is_published(store).await?,
            false => store.is_last_transaction(&self.id).await?,
        };
        if is_published {
            return Ok(Map::new());
        }
        let report = match self.kind {
            TaskKind::Create => {
                let written = Box::pin(creation::commit(store, &self.id)).await?;
                json!({
                    "vertices": written.summary.vertices,
                    "objects": written.summary.objects,
                    "chunks": written.summary.chunks,
                    "chunk_shape": written.summary.chunk_shape,
                    "bytes_written": written.bytes,
                })
            }
            TaskKind::Pyramid => {
                let level = Box::pin(level_tasks::commit(store, &self.id)).await?;
                json!({
                    "level": level.level.number(),
                    "vertices": level.vertices,
                    "objects": level.objects,
                    "chunks": level.chunks,
                    "bytes_written": level.bytes,
                    "transaction": level.transaction,
                })
            }
            TaskKind::Sample => {
                let written = Box::pin(attribute::commit(store, &self.id)).await?;
                json!({
                    "vertices": written.vertices,
                    "chunks": written.chunks,
                    "batches": written.batches,
                    "bytes_written": written.bytes,
                    "transaction": written.transaction,
                })
            }
            #[cfg(feature = "migrate")]
            TaskKind::Migrate => Box::pin(migration::commit(store, &self.id, open))
                .await?
                .to_json(),
        };
        Ok(report.as_object().cloned().unwrap_or_default())
    }

    /// Returns whether the creation is complete. Its process died before it deleted the files of
    /// the job, which no other creation keeps.
    async fn is_published(&self, store: &Store) -> Result<bool, Failure> {
        match store.check_suspended(&self.id).await {
            Ok(()) => Ok(false),
            Err(CreateError::AlreadyExists) => Ok(true),
            Err(source) => Err(Failure::Create {
                address: self.store.clone(),
                source,
            }),
        }
    }

    async fn missing(&self, store: &Store) -> Result<Vec<usize>, Failure> {
        let done = Job::open(store, &self.id)?;
        let done = done.done(self.phase.done()).await?;
        let parts = (0..self.parts).filter(|part| !done.contains(part));
        let tasks: BTreeSet<usize> = parts.map(|part| part % self.tasks.max(1)).collect();
        Ok(tasks.into_iter().collect())
    }

    fn open(&self, open: &OpenOptions) -> Result<Store, Failure> {
        let location = Location::from(&self.store);
        match self.kind.is_creation() {
            true => location.create(open),
            false => location.open(open),
        }
    }
}

pub(crate) fn problem(address: &str, source: TaskPlanError) -> Failure {
    Failure::Plan {
        address: address.to_owned(),
        source,
    }
}

async fn read(address: &str, open: &OpenOptions) -> Result<TaskPlan, Failure> {
    let json = read_json(address, open).await?;
    TaskPlan::from_json(&json).map_err(|source| problem(address, source))
}

/// Reads the file of a plan.
pub(crate) async fn read_json(address: &str, open: &OpenOptions) -> Result<Value, Failure> {
    let problem = |source| problem(address, source);
    let (folder, name) = split(address).map_err(problem)?;
    let store = match open.open(&folder) {
        Err(OpenError::NotFound(_)) => return Err(problem(TaskPlanError::Absent)),
        opened => opened?,
    };
    let found = store.read(&[Read::full(name)]).await?;
    let found = found.into_iter().next().flatten();
    let bytes = found.ok_or_else(|| problem(TaskPlanError::Absent))?;
    let json = serde_json::from_slice(&bytes);
    json.map_err(|_| problem(TaskPlanError::Invalid))
}

async fn write(plan: &TaskPlan, address: &str, open: &OpenOptions) -> Result<(), Failure> {
    write_json(&plan.to_json(), address, open).await
}

/// Writes the file of a plan.
pub(crate) async fn write_json(
    json: &Value,
    address: &str,
    open: &OpenOptions,
) -> Result<(), Failure> {
    let parts = split(address).map_err(|source| problem(address, source));
    let (folder, name) = parts?;
    let text = format!("{json:#}\n");
    let store = open.create(&folder)?;
    Ok(store.put_many(vec![(name, Bytes::from(text))]).await?)
}

fn parse(json: &Value) -> Option<TaskPlan> {
    if json["zvf_task_plan"].as_u64()? != VERSION {
        return None;
    }
    let count = |member: &str| usize::try_from(json[member].as_u64()?).ok();
    let kind = json["job"].as_str()?;
    let mut kinds = TaskKind::ALL.iter().copied();
    let (parts, tasks) = (count("parts")?, count("tasks")?);
    let phase = json["phase"].as_str()?;
    let mut phases = TaskPhase::ALL.into_iter();
    // Task numbers of parts count from 0 to `tasks`.
    (tasks > 0 || parts == 0).then_some(())?;
    Some(TaskPlan {
        kind: kinds.find(|known| known.name() == kind)?,
        phase: phases.find(|known| known.name() == phase)?,
        store: json["store"].as_str()?.to_owned(),
        id: json["id"].as_str()?.to_owned(),
        level: match &json["level"] {
            Value::Null => None,
            level => Some(u32::try_from(level.as_u64()?).ok()?),
        },
        recipe: json["recipe"].clone(),
        parts,
        tasks,
        writers: count("writers")?,
        committed: match &json["committed"] {
            Value::Null => None,
            report => Some(report.as_object()?.clone()),
        },
    })
}

/// Splits an address into those of its folder and the name in it.
pub(crate) fn split(address: &str) -> Result<(String, Key), TaskPlanError> {
    let address = absolute_address(address);
    let (folder, name) = address
        .rsplit_once(['/', std::path::MAIN_SEPARATOR])
        .ok_or(TaskPlanError::Invalid)?;
    let folder = if folder.is_empty() { "/" } else { folder };
    let name = Key::parse(name).ok().filter(|name| !name.is_root());
    Ok((folder.to_owned(), name.ok_or(TaskPlanError::Invalid)?))
}
