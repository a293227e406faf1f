//! Plans of validations for schedulers of clusters.
//!
//! A validation writes nothing into the store. What the processes share is in the folder of the plan,
//! as the files of a [`Job`]: the survey of the store, which the plan takes once, and the outcomes of
//! each task.

mod survey;

use bytes::Bytes;
use serde_json::{Value, json};
use zvf_dataset::{Error, Failure, Location, TaskPlanError, boxed};
use zvf_model::{
    fetch::Port,
    json::{Json, member},
};
use zvf_store::{OpenOptions, Store, absolute_address, path_in_folder};
use zvf_validate::{
    Depth, ShareReport, ValidateOptions, ValidationReport, ValidationShare, validate_joined,
    validate_share,
};
use zvf_write::job::Job;

use self::survey::{StoreSurvey, SurveyedCells, decoded, encoded};
use crate::{
    plan::{Plan, TaskPlanOptions, Work},
    plan_file::PlanFile,
    validate::{add_seal_differences, committed_state, read_root},
};

/// The name of the job in the file of a plan.
const JOB: &str = "validate";
/// Prefix of the names of the outcomes of tasks.
const RESULT: &str = "result";
/// Number of findings listed per rule if neither the plan nor the commit asks for fewer.
const MAX_FINDINGS: usize = 1000;

/// A plan of the tasks that validate a store.
///
/// Each task checks the cells of a share of the chunks. The [commit](Plan::commit) does the checks that
/// are not divided and joins the outcomes of all tasks into the report of
/// [`validate`](crate::validate()). It lists at most the given number of findings of a rule, or as many
/// as the plan says. Nothing is written into the store: until the commit, the outcomes are in the
/// folder `.zvf` beside the plan.
///
/// ```
/// use zvf::{Design, Geometry, GeometryKind, NumericColumn, OpenOptions};
/// use zvf::{TaskPlanOptions, ValidationPlan, ValidationWork, plan_validation};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = folder.path().join("points.zv").display().to_string();
/// # let plan = folder.path().join("plan.json").display().to_string();
/// # let points = Geometry::new(NumericColumn::float32(3, (0..3000).map(|at| at as f32)));
/// # zvf::create(&address, &points, Design::new(GeometryKind::Points), &Default::default()).await?;
/// let (open, tasks) = (OpenOptions::default(), TaskPlanOptions::new().tasks(4));
/// let planned = plan_validation(&address, &plan, ValidationWork::default(), &tasks, &open).await?;
/// for index in 0..planned.tasks() {
///     planned.run(index, &open).await?;
/// }
/// let committed = ValidationPlan::commit(&plan, &open).await?;
/// assert!(committed.report().is_some_and(|report| report.is_ok()));
/// # Ok(()) }
/// ```
pub type ValidationPlan = Plan<ValidationWork>;

/// A validation, the work of a [`ValidationPlan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValidationWork {
    /// Deepest level of checks that runs. Default: [`Depth::Semantics`].
    pub depth: Depth,
    /// Maximum number of findings listed per rule. Default: chosen by the commit.
    pub limit: Option<usize>,
    /// The store is read with unsigned requests, for public buckets. The plan is not.
    pub anonymous: bool,
}

impl Default for ValidationWork {
    fn default() -> Self {
        Self {
            depth: Depth::Semantics,
            limit: None,
            anonymous: false,
        }
    }
}

impl ValidationWork {
    zvf_model::setters! {
        depth: Depth,
        limit: usize,
        anonymous: bool,
    }
}

/// Plans the validation of a store: lists it, reads its nodes, and writes the plan to the address
/// `plan`. Replaces an earlier plan there.
///
/// # Errors
///
/// [`Error`] if the store cannot be opened or the plan cannot be written. Faults of the store are in
/// the report.
pub async fn plan_validation(
    address: &str,
    plan: &str,
    work: ValidationWork,
    tasks: &TaskPlanOptions,
    open: &OpenOptions,
) -> Result<ValidationPlan, Error> {
    boxed(async move {
        let (address, id) = (absolute_address(address), Store::new_job_id());
        let planned = Plan::new(address, id, tasks.count(), work).at(plan);
        if path_in_folder(plan, &planned.store).is_some() {
            return Err(planned.problem(TaskPlanError::InStore).into());
        }
        let (store, root) = planned.open(open).await?;
        let survey = StoreSurvey::of(&store, root.as_ref()).await;
        // A file that is not such a plan is overwritten.
        if let Ok(Some(earlier)) = ValidationPlan::find(plan, open).await {
            earlier.files(open)?.delete().await?;
        }
        planned.files(open)?.describe(&survey.to_json()).await?;
        let file = PlanFile::parse(plan)?;
        file.write(&planned.to_json(), open).await?;
        Ok(planned)
    })
    .await
}

impl Work for ValidationWork {
    type Error = Error;
    /// Number of findings of a rule that the commit lists, at most and by default 1000.
    type Input = Option<usize>;
    type Report = ValidationReport;
    const VERSION: u64 = 3;

    fn has_job(job: &str) -> bool {
        job == JOB
    }

    fn job(&self) -> &'static str {
        JOB
    }

    fn to_json(&self) -> Json {
        json!({
            "depth": self.depth.number(),
            "limit": self.limit,
            "anonymous": self.anonymous,
        })
        .into()
    }

    fn from_json(json: &Json) -> Option<Self> {
        let json = json.as_ref();
        let (depth, tasks): (u8, usize) = (member(json, "depth")?, member(json, "tasks")?);
        let mut depths = Depth::ALL.into_iter();
        (tasks > 0).then_some(())?;
        Some(Self {
            depth: depths.find(|known| known.number() == depth)?,
            limit: member(json, "limit")?,
            anonymous: member(json, "anonymous")?,
        })
    }

    fn report(json: &Json) -> Option<ValidationReport> {
        ValidationReport::from_json(json)
    }

    fn place(plan: &ValidationPlan) -> &str {
        plan.address.as_deref().unwrap_or(&plan.store)
    }

    async fn missing(plan: &ValidationPlan, open: &OpenOptions) -> Result<Vec<usize>, Error> {
        let done = plan.files(open)?.done(RESULT).await?;
        let tasks = 0..plan.tasks;
        Ok(tasks.filter(|task| !done.contains(task)).collect())
    }

    /// Checks the cells of a share.
    async fn run(
        plan: &ValidationPlan,
        index: usize,
        _: Self::Input,
        open: &OpenOptions,
    ) -> Result<bool, Error> {
        let job = plan.files(open)?;
        let Some(share) = ValidationShare::new(index, plan.tasks) else {
            return Ok(false);
        };
        if job.done(RESULT).await?.contains(&index) {
            return Ok(false);
        }
        let (store, root, survey) = plan.open_surveyed(&job, open).await?;
        let shards = survey.shards();
        let cells = SurveyedCells::new(&store, survey);
        let options = plan.options(MAX_FINDINGS);
        let report = validate_share(Port::new(&cells), &options, share).await;
        let checks_cells = plan.work.depth >= Depth::Consistency;
        if root.is_some_and(|root| Store::is_sealed_by(&root)) && checks_cells {
            // Cells of shards are read in parts, which does not check the shards.
            let all = shards.into_iter().enumerate();
            let own = all.filter(|(at, _)| share.has(*at)).map(|(_, file)| file);
            // The commit reads and reports what cannot be read here.
            drop(store.keep_entries_of(own.collect()).await);
        }
        let result = json!({
            "outcomes": report.to_json(),
            "inventory": encoded(&store.kept_entries()),
        });
        plan.check_unchanged(&cells, open).await?;
        job.put_result(index, result.to_string().into()).await?;
        Ok(true)
    }

    /// Does the checks that are not divided, and joins the outcomes of all tasks.
    async fn publish(
        plan: &ValidationPlan,
        limit: Self::Input,
        open: &OpenOptions,
    ) -> Result<Json, Error> {
        plan.check_missing(Self::missing(plan, open).await?, plan.tasks)?;
        let job = plan.files(open)?;
        let (store, root, survey) = plan.open_surveyed(&job, open).await?;
        let mut shares = ShareReport::default();
        let mut kept = survey.kept.clone();
        for task in 0..plan.tasks {
            let bytes = job.result(task).await?;
            let result: Option<Value> = serde_json::from_slice(&bytes).ok();
            let parsed = result.as_ref().and_then(|result| {
                let outcomes = ShareReport::from_json(result.get("outcomes")?)?;
                Some((outcomes, decoded(result)?))
            });
            let damaged = || plan.problem(TaskPlanError::Damaged { task });
            let (outcomes, entries) = parsed.ok_or_else(damaged)?;
            shares.extend(outcomes);
            kept.extend(entries);
        }
        for entries in &kept {
            let added = store.add_kept_entries(entries);
            added.map_err(|_| plan.problem(TaskPlanError::Outdated))?;
        }
        let options = plan.options(limit.unwrap_or(MAX_FINDINGS).min(MAX_FINDINGS));
        let cells = SurveyedCells::new(&store, survey);
        let mut report = validate_joined(Port::new(&cells), &options, &shares).await;
        add_seal_differences(&store, root.as_ref(), &options, &mut report).await;
        plan.check_unchanged(&cells, open).await?;
        Ok(report.to_json())
    }

    async fn clean(plan: &ValidationPlan, open: &OpenOptions) -> Result<(), Error> {
        Ok(plan.files(open)?.delete().await?)
    }
}

impl ValidationPlan {
    fn options(&self, limit: usize) -> ValidateOptions {
        let limit = self.work.limit.unwrap_or(limit);
        ValidateOptions::default()
            .depth(self.work.depth)
            .max_findings_per_rule(limit)
    }

    /// Returns the store with its root, which the survey has, and the survey.
    async fn open_surveyed(
        &self,
        job: &Job,
        open: &OpenOptions,
    ) -> Result<(Store, Option<Bytes>, StoreSurvey), Failure> {
        let survey = StoreSurvey::from_json(&job.description().await?)
            .ok_or_else(|| self.problem(TaskPlanError::Invalid))?;
        let (store, root) = self.open(open).await?;
        self.check_root(&survey, root.as_ref())?;
        Ok((store, root, survey))
    }

    fn check_root(&self, survey: &StoreSurvey, root: Option<&Bytes>) -> Result<(), Failure> {
        if survey.has_root(root) {
            Ok(())
        } else {
            Err(self.problem(TaskPlanError::Outdated).into())
        }
    }

    /// Checks that no transaction was committed while the store was read.
    async fn check_unchanged(
        &self,
        cells: &SurveyedCells,
        open: &OpenOptions,
    ) -> Result<(), Failure> {
        let root = read_root(&self.open_store(open)?).await?;
        self.check_root(&cells.survey(), root.as_ref())
    }

    /// Returns the last committed state of the store, and the root's `zarr.json`.
    async fn open(&self, open: &OpenOptions) -> Result<(Store, Option<Bytes>), Failure> {
        committed_state(self.open_store(open)?, self.work.depth).await
    }

    fn open_store(&self, open: &OpenOptions) -> Result<Store, Failure> {
        let anonymous = self.work.anonymous || open.anonymous;
        Ok(Location::from(&self.store).open(&open.clone().anonymous(anonymous))?)
    }

    /// Returns the files that the processes share, beside the plan.
    fn files(&self, open: &OpenOptions) -> Result<Job, Failure> {
        let file = PlanFile::parse(ValidationWork::place(self))?;
        Job::open(&file.create_folder(open)?, &self.id)
    }
}
