//! Plans of the tasks that write a store: creation, levels, attributes, migration.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::json;
use zvf_build::{Design, Geometry};
use zvf_dataset::{Error, Failure, Location, TaskPlanError, boxed};
#[cfg(feature = "migrate")]
use zvf_migrate::{MigrateOptions, tasks as migration};
use zvf_model::json::{Json, member};
use zvf_pyramid::{PyramidOptions, tasks as level_tasks};
use zvf_store::{CreateError, OpenOptions, Store, absolute_address};
use zvf_write::{
    attribute::{AttributeSpec, ObjectReduction, VertexFn, tasks as attribute},
    job::{Job, PlannedJob},
    writer::{CreateOptions, GeometrySource, job as creation, shares as input},
};

use crate::plan::{Plan, TaskPlanOptions, Work};

/// A plan of the tasks that write a store.
pub type TaskPlan = Plan<StoreWork>;

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
        !matches!(self, Self::Pyramid | Self::Sample)
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

/// A change or creation of a store, the work of a [`TaskPlan`].
#[derive(Clone, Debug, PartialEq)]
pub struct StoreWork {
    kind: TaskKind,
    phase: TaskPhase,
    /// Level that is built.
    level: Option<u32>,
    /// Description of the function of an attribute, for the program that runs the tasks.
    recipe: Json,
    /// Number of parts of the phase.
    parts: usize,
    /// Number of tasks of the last phase.
    writers: usize,
}

/// Plans the creation of a store. Reads the geometry twice, partitions it into the reserved folder
/// of the store, and reserves its address. Geometry with links is read once and divided as a single
/// [share](plan_shares).
///
/// The options `overwrite`, `runner` and `progress` are not used.
///
/// # Errors
///
/// See [`create_from_source`](zvf_write::writer::create_from_source).
pub async fn plan_create(
    address: &str,
    source: &mut dyn GeometrySource,
    design: Design,
    options: &CreateOptions,
    tasks: &TaskPlanOptions,
) -> Result<TaskPlan, Error> {
    boxed(async move {
        let address = absolute_address(address);
        let store = Location::from(&address).create(&options.open)?;
        let (name, count) = (Some(address.as_str()), tasks.count());
        let replaces = tasks.replaces_unfinished;
        let planned = if design.kind.is_linked() {
            input::plan_linked(&store, name, source, design, options, count, replaces).await?
        } else {
            creation::plan(&store, &address, source, design, options, count, replaces).await?
        };
        Ok(planned_work(TaskKind::Create, address, planned, count))
    })
    .await
}

/// Plans the creation of a store from `shares` shares of input, which tasks read: files, or batches
/// that other programs make.
///
/// 1. [`fill`](Plan::fill) reads a share, once for each share.
/// 2. [`advance`](Plan::advance) joins what was found and chooses the shapes.
/// 3. [`run`](Plan::run) divides a share among the parts of the store.
/// 4. `advance` joins the divisions.
/// 5. For skeletons, graphs and meshes, `run` divides the links of a share, and `advance` joins
///    them.
/// 6. `run` writes parts, and [`commit`](Plan::commit) publishes the store.
///
/// The store equals that of [`create_from_source`](zvf_write::writer::create_from_source) for the shares in
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
/// use zvf::{Design, Geometry, GeometryBatches, GeometryKind, LinkNumbering, NumericColumn};
/// use zvf::{OpenOptions, plan_shares};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = folder.path().join("points.zv").display().to_string();
/// # let address = address.as_str();
/// let (open, tables) = (OpenOptions::default(), Geometry::new(NumericColumn::float32(3, [])));
/// let design = Design::new(GeometryKind::Points);
/// let plan =
///     plan_shares(address, 4, design, &tables, &Default::default(), &Default::default()).await?;
/// for share in 0..4_u8 {
///     let positions = (0..300).map(|at| f32::from(share) * 9.0 + at as f32);
///     let points = Geometry::new(NumericColumn::float32(3, positions));
///     let mut source = GeometryBatches::new(vec![points], LinkNumbering::Batch);
///     plan.fill(usize::from(share), &mut source, &open).await?;
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
/// assert_eq!(plan.report().and_then(|report| report.as_ref()["vertices"].as_u64()), Some(400));
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// See [`create_from_source`](zvf_write::writer::create_from_source).
pub async fn plan_shares(
    address: &str,
    shares: usize,
    design: Design,
    tables: &Geometry,
    options: &CreateOptions,
    tasks: &TaskPlanOptions,
) -> Result<TaskPlan, Error> {
    boxed(async move {
        let address = absolute_address(address);
        let store = Location::from(&address).create(&options.open)?;
        let (name, count) = (Some(address.as_str()), tasks.count());
        let replaces = tasks.replaces_unfinished;
        let reserved =
            input::reserve(&store, name, design, tables, options, count, replaces).await?;
        let plan = planned_work(TaskKind::Create, address, reserved, count);
        Ok(plan.in_phase(TaskPhase::Fill, shares))
    })
    .await
}

/// Plans the first coarser level of a store that does not exist. A plan without tasks that is
/// [committed](Plan::is_committed) means that all levels exist.
///
/// The options `runner` and `progress` are not used.
///
/// # Errors
///
/// See [`build_pyramid`](zvf_pyramid::build_pyramid).
pub async fn plan_pyramid(
    address: &str,
    options: &PyramidOptions,
    tasks: &TaskPlanOptions,
) -> Result<TaskPlan, Error> {
    boxed(async move {
        let address = absolute_address(address);
        let store = Location::from(&address).open(&options.open)?;
        let count = tasks.count();
        let planned = zvf_pyramid::plan_level(&store, options, count).await?;
        let Some((level, planned)) = planned else {
            let nothing = PlannedJob {
                id: String::new(),
                parts: 0,
            };
            let plan = planned_work(TaskKind::Pyramid, address, nothing, 0);
            let committed = Some(json!({}).into());
            return Ok(Plan { committed, ..plan });
        };
        let mut plan = planned_work(TaskKind::Pyramid, address, planned, count);
        plan.work.level = Some(level.number());
        Ok(plan)
    })
    .await
}

/// Plans an attribute of the vertices of level 0, as
/// [`write_vertex_attribute`](zvf_write::attribute::write_vertex_attribute) writes it. Tasks compute values with a
/// function that is passed to [`run_with`](Plan::run_with); the plan keeps `recipe`, from which
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
/// let recipe = serde_json::json!({"axis": 1}).into();
/// let plan = plan_vertex_attribute(address, &height, recipe, &open, &Default::default()).await?;
///
/// let recipe: &serde_json::Value = plan.recipe().as_ref();
/// let axis = recipe["axis"].as_u64().map_or(0, |axis| axis as usize);
/// let of_each = Arc::new(move |positions: &[f64]| {
///     let rows = positions.chunks_exact(3);
///     Ok(rows.flat_map(|row| row[axis].to_le_bytes()).collect())
/// });
/// for index in 0..plan.tasks() {
///     plan.run_with(index, Some(of_each.clone()), &open).await?;
/// }
/// let plan = plan.commit_in_memory(&open).await?;
/// plan.clean(&open).await?;
/// let report = plan.report().map(serde_json::Value::from).unwrap_or_default();
/// assert_eq!(report["vertices"], 1000);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// See [`write_vertex_attribute`](zvf_write::attribute::write_vertex_attribute).
pub async fn plan_vertex_attribute(
    address: &str,
    spec: &AttributeSpec,
    recipe: Json,
    open: &OpenOptions,
    tasks: &TaskPlanOptions,
) -> Result<TaskPlan, Error> {
    boxed(plan_attribute(address, spec, None, recipe, open, tasks)).await
}

/// Plans an attribute of objects, as [`write_object_attribute`](zvf_write::attribute::write_object_attribute)
/// writes it; see [`plan_vertex_attribute`]. Tasks reduce the values of fragments, and the commit
/// reduces those of objects.
///
/// # Errors
///
/// See [`write_object_attribute`](zvf_write::attribute::write_object_attribute).
pub async fn plan_object_attribute(
    address: &str,
    spec: &AttributeSpec,
    reduction: ObjectReduction,
    recipe: Json,
    open: &OpenOptions,
    tasks: &TaskPlanOptions,
) -> Result<TaskPlan, Error> {
    let planned = plan_attribute(address, spec, Some(reduction), recipe, open, tasks);
    boxed(planned).await
}

async fn plan_attribute(
    address: &str,
    spec: &AttributeSpec,
    reduction: Option<ObjectReduction>,
    recipe: Json,
    open: &OpenOptions,
    tasks: &TaskPlanOptions,
) -> Result<TaskPlan, Failure> {
    let address = absolute_address(address);
    let store = Location::from(&address).open(open)?;
    let count = tasks.count();
    let planned = attribute::plan(&store, spec, reduction, count).await?;
    let mut plan = planned_work(TaskKind::Sample, address, planned, count);
    plan.work.recipe = recipe;
    Ok(plan)
}

/// Plans a migration of the store at `source` to a new store at `target`, whose address is reserved.
/// Tasks write cells; the commit writes objects, groups and metadata, and the links that cannot be
/// divided, such as those of stores before 0.8. It holds the number of rows of every chunk in
/// memory.
///
/// The source must not change until the commit. The options `overwrite` and `progress` are not used.
///
/// # Errors
///
/// See [`migrate`](zvf_migrate::migrate()).
#[cfg(feature = "migrate")]
pub async fn plan_migrate(
    source: &str,
    target: &str,
    options: &MigrateOptions,
    tasks: &TaskPlanOptions,
) -> Result<TaskPlan, Error> {
    boxed(async move {
        let (source, target) = (absolute_address(source), absolute_address(target));
        let (count, replaces) = (tasks.count(), tasks.replaces_unfinished);
        let planned = migration::plan(&source, &target, options, count, replaces).await?;
        Ok(planned_work(TaskKind::Migrate, target, planned, count))
    })
    .await
}

fn planned_work(kind: TaskKind, store: String, planned: PlannedJob, tasks: usize) -> TaskPlan {
    let work = StoreWork {
        kind,
        phase: TaskPhase::Write,
        level: None,
        recipe: Json::default(),
        parts: planned.parts,
        writers: tasks,
    };
    Plan::new(store, planned.id, tasks, work)
}

impl TaskPlan {
    /// Returns the work that the plan distributes.
    pub fn kind(&self) -> TaskKind {
        self.work.kind
    }

    /// Returns the level that is built; `None` unless the plan is of a pyramid.
    pub fn level(&self) -> Option<u32> {
        self.work.level
    }

    /// Returns the description that [`plan_vertex_attribute`] or [`plan_object_attribute`] was
    /// given; null for other plans.
    pub fn recipe(&self) -> &Json {
        &self.work.recipe
    }

    /// Returns the phase, to which tasks and status belong.
    pub fn phase(&self) -> TaskPhase {
        self.work.phase
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
    pub async fn fill(
        &self,
        share: usize,
        source: &mut dyn GeometrySource,
        open: &OpenOptions,
    ) -> Result<bool, Error> {
        boxed(async move {
            self.check_phase(TaskPhase::Fill)?;
            let store = self.open(open)?;
            if self.done(&store).await?.contains(&share) {
                return Ok(false);
            }
            input::fill(&store, &self.id, share, source).await?;
            Ok(true)
        })
        .await
    }

    /// Ends the phase, all of whose tasks are done, and returns the plan of the next one. Repeating
    /// it has no effect: it returns an equal plan.
    ///
    /// # Errors
    ///
    /// [`TaskPlanError`] when a task is not done, the plan is in its last phase, or the store was
    /// replaced; [`BuildError`](zvf_build::BuildError) when the shares do not fit each other or the
    /// design.
    pub async fn advance(&self, open: &OpenOptions) -> Result<Self, Error> {
        let shares: Vec<usize> = (0..self.work.parts).collect();
        boxed(self.next_phase(&shares, open)).await
    }

    /// Ends the first phase with these shares in this order. Any number of them may be filled;
    /// see [`advance`](Self::advance).
    ///
    /// # Errors
    ///
    /// See [`advance`](Self::advance).
    pub async fn advance_with(&self, shares: &[usize], open: &OpenOptions) -> Result<Self, Error> {
        boxed(async move {
            self.check_phase(TaskPhase::Fill)?;
            self.next_phase(shares, open).await
        })
        .await
    }

    async fn next_phase(&self, shares: &[usize], open: &OpenOptions) -> Result<Self, Failure> {
        let (store, id) = (&self.open(open)?, &self.id);
        let (phase, parts) = match self.work.phase {
            TaskPhase::Fill => {
                let done = self.done(store).await?;
                let missing = shares.iter().filter(|share| !done.contains(share));
                self.check_missing(missing.copied().collect(), shares.len())?;
                let parts = input::decide_shapes(store, id, shares, None).await?;
                (TaskPhase::Divide, parts)
            }
            TaskPhase::Divide => {
                self.check_done(store).await?;
                let phase = if input::has_links(store, id).await? {
                    TaskPhase::Link
                } else {
                    TaskPhase::Write
                };
                (phase, input::join(store, id).await?)
            }
            TaskPhase::Link => {
                self.check_done(store).await?;
                (TaskPhase::Write, input::join_links(store, id).await?)
            }
            TaskPhase::Write => return Err(self.wrong_phase()),
        };
        Ok(self.clone().in_phase(phase, parts))
    }

    /// Returns the plan in a phase with this number of parts.
    fn in_phase(self, phase: TaskPhase, parts: usize) -> Self {
        let tasks = if phase == TaskPhase::Write {
            self.work.writers
        } else {
            parts
        };
        let work = StoreWork {
            phase,
            parts,
            ..self.work
        };
        Self {
            tasks,
            work,
            ..self
        }
    }

    fn check_phase(&self, phase: TaskPhase) -> Result<(), Failure> {
        if self.work.phase == phase && !self.is_committed() {
            Ok(())
        } else {
            Err(self.wrong_phase())
        }
    }

    fn wrong_phase(&self) -> Failure {
        let (phase, advice) = (self.work.phase.name(), self.work.phase.advice());
        self.problem(TaskPlanError::Phase { phase, advice }).into()
    }

    /// Discards the work: deletes everything that tasks have written, and the reservation of a new
    /// store. Tasks that still run then fail. They may leave files in the reserved folder of the
    /// store, which [`Store::sweep`] deletes. A committed plan has nothing to
    /// discard.
    ///
    /// # Errors
    ///
    /// [`Error`] when the store cannot be written.
    pub async fn discard(&self, open: &OpenOptions) -> Result<(), Error> {
        boxed(async move {
            if self.is_committed() || self.id.is_empty() {
                return Ok(());
            }
            let store = self.open(open)?;
            if self.work.kind.is_creation() {
                creation::abandon(&store, &self.id).await
            } else {
                Job::open(&store, &self.id)?.delete().await
            }
        })
        .await
    }

    /// Returns the parts of the phase that are done.
    async fn done(&self, store: &Store) -> Result<BTreeSet<usize>, Failure> {
        let job = Job::open(store, &self.id)?;
        job.done(self.work.phase.done()).await
    }

    async fn missing_tasks(&self, store: &Store) -> Result<Vec<usize>, Failure> {
        let done = self.done(store).await?;
        let parts = (0..self.work.parts).filter(|part| !done.contains(part));
        let tasks: BTreeSet<usize> = parts.map(|part| part % self.tasks.max(1)).collect();
        Ok(tasks.into_iter().collect())
    }

    async fn check_done(&self, store: &Store) -> Result<(), Failure> {
        let missing = self.missing_tasks(store).await?;
        Ok(self.check_missing(missing, self.tasks)?)
    }

    /// Returns whether a process published the result and died before it wrote the plan.
    async fn is_published(&self, store: &Store) -> Result<bool, Failure> {
        if !self.work.kind.is_creation() {
            return Ok(store.is_last_transaction(&self.id).await?);
        }
        // It did not delete the files of the job either, which no other creation keeps.
        match store.check_suspended(&self.id).await {
            Ok(()) => Ok(false),
            Err(CreateError::AlreadyExists) => Ok(true),
            Err(source) => Err(Failure::Create {
                address: self.store.clone(),
                source,
            }),
        }
    }

    fn open(&self, open: &OpenOptions) -> Result<Store, Failure> {
        let location = Location::from(&self.store);
        if self.work.kind.is_creation() {
            Ok(location.create(open)?)
        } else {
            Ok(location.open(open)?)
        }
    }
}

impl Work for StoreWork {
    type Error = Error;
    /// The function that computes the values of an attribute. All tasks must be given the same one,
    /// which the [recipe](TaskPlan::recipe) describes.
    type Input = Option<Arc<VertexFn>>;
    /// Counts; empty if the process that published the result died before it wrote the plan.
    type Report = Json;
    const VERSION: u64 = 3;

    fn has_job(job: &str) -> bool {
        TaskKind::ALL.iter().any(|kind| kind.name() == job)
    }

    fn job(&self) -> &'static str {
        self.kind.name()
    }

    fn to_json(&self) -> Json {
        json!({
            "level": self.level,
            "recipe": self.recipe,
            "parts": self.parts,
            "phase": self.phase.name(),
            "writers": self.writers,
        })
        .into()
    }

    fn from_json(json: &Json) -> Option<Self> {
        let json = json.as_ref();
        let (kind, phase): (&str, &str) = (member(json, "job")?, member(json, "phase")?);
        let (mut kinds, mut phases) = (TaskKind::ALL.iter().copied(), TaskPhase::ALL.into_iter());
        let (parts, tasks): (usize, usize) = (member(json, "parts")?, member(json, "tasks")?);
        // Task numbers of parts count from 0 to `tasks`.
        (tasks > 0 || parts == 0).then_some(())?;
        Some(Self {
            kind: kinds.find(|known| known.name() == kind)?,
            phase: phases.find(|known| known.name() == phase)?,
            level: member(json, "level")?,
            recipe: member(json, "recipe")?,
            parts,
            writers: member(json, "writers")?,
        })
    }

    fn report(json: &Json) -> Option<Json> {
        json.as_ref().is_object().then(|| json.clone())
    }

    async fn missing(plan: &TaskPlan, open: &OpenOptions) -> Result<Vec<usize>, Error> {
        Ok(plan.missing_tasks(&plan.open(open)?).await?)
    }

    async fn run(
        plan: &TaskPlan,
        index: usize,
        values: Self::Input,
        open: &OpenOptions,
    ) -> Result<bool, Error> {
        let StoreWork { kind, phase, .. } = plan.work;
        if phase == TaskPhase::Fill {
            return Err(plan.wrong_phase().into());
        }
        let (store, id) = (plan.open(open)?, &plan.id);
        let done = plan.done(&store).await?;
        let parts: Vec<usize> = (index..plan.work.parts)
            .step_by(plan.tasks)
            .filter(|part| !done.contains(part))
            .collect();
        if parts.is_empty() {
            return Ok(false);
        }
        match (kind, phase) {
            (TaskKind::Create, TaskPhase::Divide) => {
                Box::pin(input::divide(&store, id, &parts)).await?;
            }
            (TaskKind::Create, TaskPhase::Link) => {
                Box::pin(input::divide_links(&store, id, &parts)).await?;
            }
            (TaskKind::Create, _) => Box::pin(creation::run_parts(&store, id, &parts)).await?,
            (TaskKind::Pyramid, _) => Box::pin(level_tasks::run_parts(&store, id, &parts)).await?,
            (TaskKind::Sample, _) => {
                let values = values.ok_or_else(|| plan.problem(TaskPlanError::NoValues))?;
                Box::pin(attribute::run_parts(&store, id, &parts, &values)).await?;
            }
            #[cfg(feature = "migrate")]
            (TaskKind::Migrate, _) => {
                Box::pin(migration::run_parts(&store, id, &parts, open)).await?;
            }
        }
        Ok(true)
    }

    async fn publish(plan: &TaskPlan, _: Self::Input, open: &OpenOptions) -> Result<Json, Error> {
        if plan.work.phase != TaskPhase::Write {
            return Err(plan.wrong_phase().into());
        }
        let (store, id) = (&plan.open(open)?, &plan.id);
        plan.check_done(store).await?;
        if plan.is_published(store).await? {
            return Ok(json!({}).into());
        }
        let report = match plan.work.kind {
            TaskKind::Create => {
                let written = Box::pin(creation::commit(store, id)).await?;
                json!({
                    "vertices": written.summary.vertices,
                    "objects": written.summary.objects,
                    "chunks": written.summary.chunks,
                    "chunk_shape": written.summary.chunk_shape,
                    "bytes_written": written.bytes,
                })
            }
            TaskKind::Pyramid => {
                let level = Box::pin(level_tasks::commit(store, id)).await?;
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
                let written = Box::pin(attribute::commit(store, id)).await?;
                json!({
                    "vertices": written.vertices,
                    "chunks": written.chunks,
                    "batches": written.batches,
                    "bytes_written": written.bytes,
                    "transaction": written.transaction,
                })
            }
            #[cfg(feature = "migrate")]
            TaskKind::Migrate => {
                let migrated = Box::pin(migration::commit(store, id, open)).await?;
                return Ok(migrated.to_json());
            }
        };
        Ok(report.into())
    }

    async fn clean(plan: &TaskPlan, open: &OpenOptions) -> Result<(), Error> {
        if plan.is_committed() && plan.work.parts > 0 {
            Ok(Job::open(&plan.open(open)?, &plan.id)?.delete().await?)
        } else {
            Ok(())
        }
    }
}
