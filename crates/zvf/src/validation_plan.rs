//! Plans of validations for schedulers of clusters.
//!
//! A validation writes nothing into the store. What the processes share is in the folder of the plan,
//! as the files of a [`Job`]: the survey of the store, which the plan takes once, and the outcomes of
//! each task.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use serde_json::{Value, json};
use zvf_dataset::{Error, Failure, Location, TaskPlanError, boxed, nodes};
use zvf_model::{
    base64,
    fetch::{AnyArray, CellOptions, CellRequest, Fetch, FetchError, FetchProblem, Fetched, Port},
    json::Json,
    key::Key,
    zarr::{Array, Node},
};
use zvf_store::{
    CellReader, ListedFile, OpenOptions, Read, Store, absolute_address, path_in_folder,
};
use zvf_validate::{
    Depth, ShareReport, ValidateOptions, ValidationReport, ValidationShare, validate_joined,
    validate_share,
};
use zvf_write::job::Job;

use crate::{
    plan::{Plan, TaskPlanOptions, Work},
    plan_file::PlanFile,
    validate::{add_seal_differences, committed_state, read_root},
};

/// The name of the job in the file of a plan.
const JOB: &str = "validate";

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
        let (store, id) = (absolute_address(address), Store::new_job_id());
        let planned = Plan::new(store, id, tasks.count(), work).at(plan);
        if path_in_folder(plan, &planned.store).is_some() {
            return Err(planned.problem(TaskPlanError::InStore).into());
        }
        let survey = planned.survey(open).await?;
        // A file that is not such a plan is overwritten.
        if let Ok(Some(earlier)) = ValidationPlan::find(plan, open).await {
            earlier.job(open)?.delete().await?;
        }
        planned.job(open)?.describe(&survey.to_json()).await?;
        PlanFile::parse(plan)?
            .write(&planned.to_json(), open)
            .await?;
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

    fn to_json(&self) -> Json {
        json!({
            "job": JOB,
            "depth": self.depth.number(),
            "limit": self.limit,
            "anonymous": self.anonymous,
        })
        .into()
    }

    fn from_json(json: &Json) -> Option<Self> {
        let json: &Value = json.as_ref();
        let depth = json.get("depth")?.as_u64()?;
        let mut depths = Depth::ALL.into_iter();
        (json.get("tasks")?.as_u64()? > 0).then_some(())?;
        Some(Self {
            depth: depths.find(|known| u64::from(known.number()) == depth)?,
            limit: match json.get("limit")? {
                Value::Null => None,
                limit => Some(usize::try_from(limit.as_u64()?).ok()?),
            },
            anonymous: json.get("anonymous")?.as_bool()?,
        })
    }

    fn report(json: &Json) -> Option<ValidationReport> {
        ValidationReport::from_json(json)
    }

    fn place(plan: &ValidationPlan) -> &str {
        plan.address.as_deref().unwrap_or(&plan.store)
    }

    async fn missing(plan: &ValidationPlan, open: &OpenOptions) -> Result<Vec<usize>, Error> {
        let done = plan.job(open)?.done(RESULT).await?;
        let tasks = 0..plan.tasks;
        Ok(tasks.filter(|task| !done.contains(task)).collect())
    }

    async fn run(
        plan: &ValidationPlan,
        index: usize,
        _: Self::Input,
        open: &OpenOptions,
    ) -> Result<bool, Error> {
        Ok(plan.check_share(index, open).await?)
    }

    async fn publish(
        plan: &ValidationPlan,
        limit: Self::Input,
        open: &OpenOptions,
    ) -> Result<Json, Error> {
        plan.check_missing(Self::missing(plan, open).await?, plan.tasks)?;
        Ok(plan.join(limit, open).await?.to_json())
    }

    async fn clean(plan: &ValidationPlan, open: &OpenOptions) -> Result<(), Error> {
        Ok(plan.job(open)?.delete().await?)
    }
}

impl ValidationPlan {
    /// Checks the cells of a share, unless that is done.
    async fn check_share(&self, index: usize, open: &OpenOptions) -> Result<bool, Failure> {
        let job = self.job(open)?;
        let Some(share) = ValidationShare::new(index, self.tasks) else {
            return Ok(false);
        };
        if job.done(RESULT).await?.contains(&index) {
            return Ok(false);
        }
        let survey = self.read_survey(&job).await?;
        let (store, root) = self.open(open).await?;
        self.check_root(&survey, root.as_ref())?;
        let shards = survey.shards();
        let options = self.options(MAX_FINDINGS);
        let cells = SurveyedCells::new(&store, survey);
        let report = validate_share(Port::new(&cells), &options, share).await;
        let checks_cells = self.work.depth >= Depth::Consistency;
        if root.is_some_and(|root| Store::is_sealed_by(&root)) && checks_cells {
            // Cells of shards are read in parts, which does not check the shards.
            let own = shards
                .into_iter()
                .enumerate()
                .filter(|(at, _)| share.has(*at))
                .map(|(_, file)| file);
            // The commit reads and reports what cannot be read here.
            drop(store.keep_entries_of(own.collect()).await);
        }
        let entries = store.kept_entries();
        let kept = entries.iter().map(|entries| base64::encode(entries));
        let result = json!({
            "outcomes": report.to_json(),
            "inventory": kept.collect::<Vec<String>>(),
        });
        self.check_unchanged(&cells, open).await?;
        job.put_result(index, result.to_string().into()).await?;
        Ok(true)
    }

    /// Does the checks that are not divided, and joins the outcomes of all tasks.
    async fn join(
        &self,
        limit: Option<usize>,
        open: &OpenOptions,
    ) -> Result<ValidationReport, Failure> {
        let job = self.job(open)?;
        let survey = self.read_survey(&job).await?;
        let (store, root) = self.open(open).await?;
        self.check_root(&survey, root.as_ref())?;
        let mut shares = ShareReport::default();
        let mut kept = survey.kept.clone();
        for task in 0..self.tasks {
            let result = TaskResult::parse(&job.result(task).await?)
                .ok_or_else(|| self.problem(TaskPlanError::Damaged { task }))?;
            shares.extend(result.outcomes);
            kept.extend(result.kept);
        }
        for entries in &kept {
            let added = store.add_kept_entries(entries);
            added.map_err(|_| self.problem(TaskPlanError::Outdated))?;
        }
        let options = self.options(limit.unwrap_or(MAX_FINDINGS).min(MAX_FINDINGS));
        let cells = SurveyedCells::new(&store, survey);
        let mut report = validate_joined(Port::new(&cells), &options, &shares).await;
        add_seal_differences(&store, root.as_ref(), &options, &mut report).await;
        self.check_unchanged(&cells, open).await?;
        Ok(report)
    }

    fn options(&self, limit: usize) -> ValidateOptions {
        let limit = self.work.limit.unwrap_or(limit);
        ValidateOptions::default()
            .depth(self.work.depth)
            .max_findings_per_rule(limit)
    }

    /// Lists the store and reads its nodes.
    async fn survey(&self, open: &OpenOptions) -> Result<StoreSurvey, Failure> {
        let (store, root) = self.open(open).await?;
        let survey = StoreSurvey {
            root: root.as_deref().map(text_of),
            ..StoreSurvey::default()
        };
        let cells = SurveyedCells::new(&store, survey);
        let options = ValidateOptions::default().depth(Depth::Structure);
        // The findings are reported by the commit, which reads the same nodes.
        drop(zvf_validate::validate(Port::new(&cells), &options).await);
        let mut survey = cells.into_survey();
        survey.kept = store.kept_entries();
        Ok(survey)
    }

    async fn read_survey(&self, job: &Job) -> Result<StoreSurvey, Failure> {
        let survey = StoreSurvey::from_json(&job.description().await?);
        Ok(survey.ok_or_else(|| self.problem(TaskPlanError::Invalid))?)
    }

    fn check_root(&self, survey: &StoreSurvey, root: Option<&Bytes>) -> Result<(), Failure> {
        if root.map(|root| text_of(root)) == survey.root {
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
    fn job(&self, open: &OpenOptions) -> Result<Job, Failure> {
        let folder = PlanFile::parse(ValidationWork::place(self))?;
        Job::open(&folder.create_folder(open)?, &self.id)
    }
}

/// Prefix of the names of the outcomes of tasks.
const RESULT: &str = "result";
/// Number of findings listed per rule if neither the plan nor the commit asks for fewer.
const MAX_FINDINGS: usize = 1000;

/// The result of a task.
struct TaskResult {
    outcomes: ShareReport,
    /// Entries of the inventory of the objects that were read.
    kept: Vec<Bytes>,
}

impl TaskResult {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let json: Value = serde_json::from_slice(bytes).ok()?;
        Some(Self {
            outcomes: ShareReport::from_json(json.get("outcomes")?)?,
            kept: decoded(json.get("inventory")?)?,
        })
    }
}

/// The survey of a store by the plan, which saves tasks from listing it and reading its nodes.
#[derive(Debug, Default)]
struct StoreSurvey {
    /// The root's `zarr.json`.
    root: Option<String>,
    /// All objects and their sizes. `None` if the store cannot be listed.
    files: Option<BTreeMap<String, u64>>,
    /// The `zarr.json` of nodes by their keys; `None` for a node without one.
    nodes: BTreeMap<String, Option<String>>,
    /// Entries of the inventory of the objects that were read.
    kept: Vec<Bytes>,
}

impl StoreSurvey {
    fn to_json(&self) -> Value {
        let kept = self.kept.iter().map(|entries| base64::encode(entries));
        json!({
            "root": self.root,
            "files": self.files,
            "nodes": self.nodes,
            "inventory": kept.collect::<Vec<String>>(),
        })
    }

    fn from_json(json: &Value) -> Option<Self> {
        let text = |value: &Value| match value {
            Value::Null => Some(None),
            text => Some(Some(text.as_str()?.to_owned())),
        };
        let nodes = json
            .get("nodes")?
            .as_object()?
            .iter()
            .map(|(key, node)| Some((key.clone(), text(node)?)));
        let files = |files: &Value| {
            let files = files
                .as_object()?
                .iter()
                .map(|(file, size)| Some((file.clone(), size.as_u64()?)));
            files.collect::<Option<_>>()
        };
        Some(Self {
            root: text(json.get("root")?)?,
            files: match json.get("files")? {
                Value::Null => None,
                listed => Some(files(listed)?),
            },
            nodes: nodes.collect::<Option<_>>()?,
            kept: decoded(json.get("inventory")?)?,
        })
    }

    /// Returns the files of sharded arrays.
    fn shards(&self) -> Vec<ListedFile> {
        let sharded = self.nodes.iter().filter_map(|(key, node)| {
            let file = Key::parse(key).ok()?;
            let node = Node::parse(&file, node.as_ref()?.as_bytes()).ok()?;
            node.as_array()?.sharding()?;
            Some(format!("{key}/"))
        });
        let mut folders: Vec<String> = sharded.collect();
        folders.sort_unstable();
        let files = self.files.iter().flatten().filter(|(file, _)| {
            let is_in = |folder: &String| file.starts_with(folder.as_str());
            // Folders of arrays do not contain each other.
            let before = folders.partition_point(|folder| folder.as_str() <= file.as_str());
            before
                .checked_sub(1)
                .and_then(|at| folders.get(at))
                .is_some_and(is_in)
                && !file.ends_with("/zarr.json")
        });
        files
            .map(|(name, size)| ListedFile {
                name: name.clone(),
                size: *size,
            })
            .collect()
    }
}

/// Decodes a list of entries of an inventory.
fn decoded(list: &Value) -> Option<Vec<Bytes>> {
    let list = list.as_array()?.iter();
    let decode = |text: &Value| Some(base64::decode(text.as_str()?.as_bytes()).ok()?.into());
    list.map(decode).collect()
}

/// Returns bytes as text. Bytes that are not text are not JSON either, so that what they are does not
/// matter.
fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A port that answers from a survey, and adds to it what it does not have.
struct SurveyedCells {
    cells: CellReader,
    survey: Mutex<StoreSurvey>,
}

impl SurveyedCells {
    fn new(store: &Store, survey: StoreSurvey) -> Self {
        Self {
            cells: CellReader::new(store.clone()),
            survey: Mutex::new(survey),
        }
    }

    fn survey(&self) -> MutexGuard<'_, StoreSurvey> {
        self.survey.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn into_survey(self) -> StoreSurvey {
        let survey = self.survey.into_inner();
        survey.unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the nodes that the survey does not have.
    async fn add_nodes(&self, keys: &[Key]) -> Result<(), Failure> {
        let unknown: Vec<Key> = {
            let survey = self.survey();
            let unknown = keys
                .iter()
                .filter(|key| !survey.nodes.contains_key(key.as_str()));
            unknown.cloned().collect()
        };
        if unknown.is_empty() {
            return Ok(());
        }
        let reads: Vec<Read> = unknown
            .iter()
            .map(|key| Ok(Read::full(nodes::metadata(key)?)))
            .collect::<Result<_, Failure>>()?;
        let read = self.cells.store().read(&reads).await?;
        let mut survey = self.survey();
        for (key, bytes) in unknown.iter().zip(read) {
            let text = bytes.map(|bytes| String::from_utf8(bytes.into()));
            // A file that is not text is read again by each process, which reports it.
            if let Ok(text) = text.transpose() {
                survey.nodes.insert(key.as_str().to_owned(), text);
            }
        }
        Ok(())
    }

    /// Parses nodes of the survey; `None` if it does not have them all.
    fn known_nodes(&self, keys: &[Key]) -> Option<Result<Vec<Option<Node>>, FetchError>> {
        let survey = self.survey();
        let texts: Vec<&Option<String>> = keys
            .iter()
            .map(|key| survey.nodes.get(key.as_str()))
            .collect::<Option<_>>()?;
        let parsed = keys.iter().zip(texts).map(|(key, text)| {
            let Some(text) = text else {
                return Ok(None);
            };
            let file = key.metadata().unwrap_or_else(|_| key.clone());
            let node = Node::parse(&file, text.as_bytes()).map_err(|source| FetchError {
                key: file,
                problem: FetchProblem::Damaged,
                source: Box::new(source),
            });
            node.map(Some)
        });
        Some(parsed.collect())
    }
}

impl Fetch for SurveyedCells {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        self.cells.array(node, array)
    }

    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        let known = match self.add_nodes(keys).await {
            Ok(()) => self.known_nodes(keys),
            Err(_) => None,
        };
        match known {
            Some(nodes) => nodes,
            // The reader returns the error.
            None => self.cells.nodes(keys).await,
        }
    }

    async fn cells(
        &self,
        wanted: &[CellRequest],
        options: CellOptions,
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        self.cells.cells(wanted, options).await
    }

    async fn children(&self, key: &Key) -> Result<Vec<String>, FetchError> {
        self.cells.children(key).await
    }

    async fn sizes(&self, keys: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        self.cells.sizes(keys).await
    }

    async fn files(&self, prefix: &Key) -> Result<Vec<(String, u64)>, FetchError> {
        if !prefix.is_root() {
            return self.cells.files(prefix).await;
        }
        let known = self.survey().files.clone();
        if let Some(files) = known {
            return Ok(files.into_iter().collect());
        }
        let files = self.cells.files(prefix).await?;
        self.survey().files = Some(files.iter().cloned().collect());
        Ok(files)
    }

    fn confirm_now(&self) -> Option<Result<(), FetchError>> {
        self.cells.confirm_now()
    }

    async fn confirm(&self) -> Result<(), FetchError> {
        self.cells.confirm().await
    }

    fn budget(&self) -> u64 {
        self.cells.budget()
    }

    fn at_once(&self) -> u64 {
        self.cells.at_once()
    }
}
