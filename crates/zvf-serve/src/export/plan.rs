//! Exports that are divided into tasks for the scheduler of a cluster.

mod file;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde_json::{Value, json};
use zvf::Dataset;
use zvf_model::key::Key;
use zvf_store::{Follow, OpenOptions, absolute_address};

use super::{
    Export, ExportError, ExportOptions, ExportPlanError, ExportReport, ExportTarget, LayerReceiver,
    add_layers, annotations, check_layers, check_outside, chosen_layers, is_unchanged,
    output::{ExportJob, ExportOutput},
    planned_layer::{LayerPlanner, LayerShare, PlannedLayer, ShareResult, sizes, with_limits},
    report::numbers,
    source,
};
use crate::{
    layers::{LayerInput, LayerKind, Report, space::ViewerSpace, survey},
    view::StoreView,
};
use file::PlanAddress;

/// Version of the file, in its member `zvf_task_plan`.
const VERSION: u64 = 1;
/// The work in the member `job` of the file.
const JOB: &str = "export precomputed";
/// Default number of tasks.
const TASKS: usize = 16;
/// The object of the job that describes the layers.
const LAYERS: &str = "plan.json";
/// The object of the job with the summary.
const REPORT: &str = "report.json";

/// Options of [`plan_export`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportPlanOptions {
    /// Number of tasks. A task may have nothing to do. Default: 16.
    pub tasks: Option<usize>,
    /// Replaces an unfinished plan for the same target.
    pub replaces_unfinished: bool,
    /// Address at which the export will be served, for [`ExportPlan::viewer_link`].
    pub url: Option<String>,
}

impl ExportPlanOptions {
    /// Creates the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of tasks.
    #[must_use]
    pub fn tasks(mut self, tasks: usize) -> Self {
        self.tasks = Some(tasks);
        self
    }

    /// Sets whether an unfinished plan for the same target is replaced.
    #[must_use]
    pub fn replaces_unfinished(mut self, replaces_unfinished: bool) -> Self {
        self.replaces_unfinished = replaces_unfinished;
        self
    }

    /// Sets the address at which the export will be served.
    #[must_use]
    pub fn url(mut self, url: Option<String>) -> Self {
        self.url = url;
        self
    }
}

/// An export, divided into independent tasks that other processes run.
///
/// A plan is one JSON file, on disk or in any store. [`run`](Self::run) does one task, on any machine
/// that reaches the store and the target. A task may be killed, and may run again or twice at once.
/// After all tasks, [`commit`](Self::commit) publishes the export, whose files equal those of
/// [`export`](crate::export). Until then no program opens a layer of it.
///
/// ```
/// use zvf::{Design, Geometry, GeometryKind, NumericColumn, OpenOptions};
/// use zvf_serve::{ExportOptions, ExportPlan, ExportPlanOptions, ExportTarget, plan_export};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = |name: &str| folder.path().join(name).display().to_string();
/// # let (store, plan) = (address("points.zv"), address("plan.json"));
/// let points = Geometry::new(NumericColumn::float32(3, (0..3000).map(|at| at as f32)));
/// let design = Design::new(GeometryKind::Points);
/// zvf::create(store.as_str(), &points, design, &Default::default()).await?;
///
/// let open = OpenOptions::default();
/// let target = ExportTarget::parse(&address("points.precomputed"));
/// let options = ExportOptions::new();
/// let tasks = ExportPlanOptions::default();
/// let planned = plan_export(&store, target, &options, &tasks, &open, &|_, _| {}).await?;
/// planned.write(&plan, &open).await?;
///
/// if let Some(planned) = ExportPlan::read(&plan, &open).await? {
///     for index in 0..planned.tasks() {
///         planned.run(index, &open, &|_, _| {}).await?;
///     }
/// }
/// let report = ExportPlan::commit(&plan, &open).await?.report();
/// assert_eq!(report.map(|report| report.view.layers()[0].items), Some(1000));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ExportPlan {
    store: String,
    target: String,
    id: String,
    tasks: usize,
    /// Sends unsigned requests to the store.
    anonymous: bool,
    url: Option<String>,
    /// Summary of the commit.
    committed: Option<Value>,
}

/// The progress of an [`ExportPlan`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportStatus {
    /// Number of tasks.
    pub tasks: usize,
    /// Tasks that are not done, ascending.
    pub missing: Vec<usize>,
    /// True if the export is published.
    pub is_committed: bool,
}

/// Plans the export of a store, and reserves the target.
///
/// Reads the store once, and writes the index by id of annotations. If the export has annotations,
/// reads the store twice more: the positions alone, and with the attributes, to divide the annotations
/// among the cells of the spatial index. The divided annotations are kept in a folder for temporary
/// files, and then beside the export, until the commit. `report` is called as by
/// [`export`](crate::export).
///
/// # Errors
///
/// [`ExportError`]; [`ExportError::Planned`] if an unfinished plan has reserved the target.
pub async fn plan_export(
    store: &str,
    target: impl Into<ExportTarget>,
    options: &ExportOptions,
    plan: &ExportPlanOptions,
    open: &OpenOptions,
    report: &(dyn Fn(u64, u64) + Send + Sync),
) -> Result<ExportPlan, ExportError> {
    let store = absolute_address(store);
    let target = match target.into() {
        ExportTarget::Folder(folder) => match std::path::absolute(&folder) {
            Ok(folder) => ExportTarget::Folder(folder),
            Err(source) => return Err(ExportError::Folder { folder, source }),
        },
        ExportTarget::Bucket(address) => ExportTarget::Bucket(address),
    };
    check_outside(&store, &target)?;
    let dataset = opened(&store, open).await?;
    let kinds = chosen_layers(&dataset, options)?;
    let source = source(&dataset, options).await?;
    let replaces = plan.replaces_unfinished;
    let job = ExportJob::reserve(&target, &source, replaces).await?;
    let tasks = plan.tasks.unwrap_or(TASKS).max(1);
    let planned = plan_layers(&dataset, &job, kinds, options, tasks, report).await;
    let planned = match unless_changed(&dataset, &source, &job, planned).await {
        Ok(planned) => planned,
        Err(error) => {
            // This error says more than that of a place which cannot be cleaned.
            let _ = job.discard().await;
            return Err(error);
        }
    };
    let description = json!({ "source": source, "export": planned });
    job.put(LAYERS, description.to_string().into()).await?;
    Ok(ExportPlan {
        target: match &target {
            ExportTarget::Folder(folder) => folder.display().to_string(),
            ExportTarget::Bucket(address) => address.clone(),
        },
        store,
        id: job.id().to_owned(),
        tasks,
        anonymous: open.anonymous,
        url: plan.url.clone(),
        committed: None,
    })
}

/// Plans the layers, and returns their description.
async fn plan_layers(
    dataset: &Dataset,
    job: &ExportJob,
    kinds: Vec<LayerKind>,
    options: &ExportOptions,
    tasks: usize,
    report: &Report<'_>,
) -> Result<Value, ExportError> {
    let output = ExportOutput::reserved(job.address())?;
    let space = ViewerSpace::of(dataset);
    let work = Export {
        reading: LayerInput::new(dataset, options.properties.as_deref(), &space, report),
        options,
        output: &output,
    };
    let mut notes = space.notes.clone();
    let survey = survey::survey(&work.reading, &mut notes).await?;
    let layers = Vec::new();
    let mut planner = LayerPlanner { job, tasks, layers };
    let mut receiver = LayerReceiver::Planned(&mut planner);
    add_layers(&work, kinds, &survey, &mut notes, &mut receiver).await?;
    let found: Vec<LayerKind> = planner.layers.iter().map(PlannedLayer::kind).collect();
    check_layers(dataset, options, &found, &mut notes)?;
    let layers = planner.layers.iter().map(PlannedLayer::to_json);
    let mut files = output.take_written()?;
    files.retain(|name, _| !ExportJob::is_own(name));
    for (key, bytes) in output.take_documents() {
        job.put_document(key.as_str(), bytes).await?;
    }
    Ok(json!({
        "layers": layers.collect::<Value>(),
        "notes": notes,
        "files": files,
        "lower": survey.lower,
        "upper": survey.upper,
    }))
}

/// Opens a store at its present state, which reads do not leave.
async fn opened(store: &str, open: &OpenOptions) -> Result<Dataset, ExportError> {
    let open = open.clone().follow(Follow::Never);
    Ok(Dataset::open_with(store, &open).await?)
}

/// Returns what was read of a store, unless the store is in another state than the source of the plan:
/// errors and results then have this cause.
async fn unless_changed<T>(
    dataset: &Dataset,
    source: &Value,
    job: &ExportJob,
    read: Result<T, ExportError>,
) -> Result<T, ExportError> {
    match is_unchanged(dataset, source).await? {
        true => read,
        false => Err(job.problem(ExportPlanError::Outdated)),
    }
}

/// The description of a planned export.
struct PlannedExport {
    source: Value,
    layers: Vec<PlannedLayer>,
    /// Notes after the last layer.
    notes: Vec<String>,
    /// Sizes of the files that the plan has written.
    files: BTreeMap<String, u64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
}

impl PlannedExport {
    async fn read(job: &ExportJob) -> Result<Self, ExportError> {
        let bytes = job.get(LAYERS).await?;
        let json: Option<Value> = serde_json::from_slice(&bytes).ok();
        let planned = json.as_ref().and_then(Self::from_json);
        planned.ok_or_else(|| job.damaged(LAYERS))
    }

    fn from_json(json: &Value) -> Option<Self> {
        let export = json.get("export")?;
        let layers = export.get("layers")?.as_array()?.iter();
        let notes = export.get("notes")?.as_array()?.iter();
        let notes = notes.map(|note| note.as_str().map(str::to_owned));
        Some(Self {
            source: json.get("source")?.clone(),
            layers: layers.map(PlannedLayer::from_json).collect::<Option<_>>()?,
            notes: notes.collect::<Option<_>>()?,
            files: sizes(export.get("files")?)?,
            lower: numbers(export.get("lower")?)?,
            upper: numbers(export.get("upper")?)?,
        })
    }

    /// Returns the names of the attributes that are exported; all if `None`.
    fn properties(&self) -> Option<Vec<String>> {
        let names = self.source.get("properties")?.as_array()?.iter();
        let names = names.filter_map(Value::as_str).map(str::to_owned);
        Some(names.collect())
    }

    /// Returns the shares of all layers.
    fn shares(&self) -> impl Iterator<Item = PlannedShare<'_>> {
        self.layers.iter().enumerate().flat_map(|(number, layer)| {
            let shares = layer.shares().iter();
            shares.map(move |share| PlannedShare {
                layer,
                share,
                name: result_name(number, share),
            })
        })
    }
}

/// Returns the name of the result of a share of a layer.
fn result_name(layer: usize, share: &LayerShare) -> String {
    format!("{layer}-{}.json", share.task)
}

/// A share of a layer, with the name of its result.
struct PlannedShare<'a> {
    layer: &'a PlannedLayer,
    share: &'a LayerShare,
    name: String,
}

impl ExportPlan {
    /// Returns the address of the store.
    pub fn store(&self) -> &str {
        &self.store
    }

    /// Returns the target: a folder, or an address.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns the number of tasks.
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    /// Returns whether the export is published.
    pub fn is_committed(&self) -> bool {
        self.committed.is_some()
    }

    /// Returns the summary of the export; `None` before the commit.
    pub fn report(&self) -> Option<ExportReport> {
        self.committed.as_ref().and_then(ExportReport::from_json)
    }

    /// Returns the link to Neuroglancer that shows the export; `None` before the commit, or without
    /// the address at which it is served.
    pub fn viewer_link(&self) -> Option<String> {
        let url = self.url.as_deref()?;
        Some(self.report()?.viewer_link(&self.store, url))
    }

    /// Returns the plan as JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "zvf_task_plan": VERSION,
            "job": JOB,
            "store": self.store,
            "target": self.target,
            "id": self.id,
            "tasks": self.tasks,
            "anonymous": self.anonymous,
            "url": self.url,
            "committed": self.committed,
        })
    }

    /// Parses the output of [`to_json`](Self::to_json). Returns `None` for the plan of other work.
    ///
    /// # Errors
    ///
    /// [`ExportPlanError::Invalid`].
    pub fn from_json(json: &Value) -> Result<Option<Self>, ExportPlanError> {
        match json.get("job").and_then(Value::as_str) {
            Some(JOB) => parse(json).map(Some).ok_or(ExportPlanError::Invalid),
            Some(_) => Ok(None),
            None => Err(ExportPlanError::Invalid),
        }
    }

    /// Reads a plan: the path of a file, or the address of an object. Returns `None` for the plan of
    /// other work, which `zvf::TaskPlan` reads.
    ///
    /// # Errors
    ///
    /// [`ExportError::Plan`] if there is no plan at the address.
    pub async fn read(address: &str, open: &OpenOptions) -> Result<Option<Self>, ExportError> {
        let json = PlanAddress::parse(address)?.read(open).await?;
        let plan = Self::from_json(&json);
        plan.map_err(|source| problem(address, source))
    }

    /// Writes the plan to a file or an object, which appears whole.
    ///
    /// # Errors
    ///
    /// [`ExportError`] if the address cannot be written.
    pub async fn write(&self, address: &str, open: &OpenOptions) -> Result<(), ExportError> {
        let text = format!("{:#}\n", self.to_json());
        PlanAddress::parse(address)?
            .write(Bytes::from(text), open)
            .await
    }

    /// Runs one task, counted from 0. Returns whether there was something to do: what is done already
    /// is not repeated. `report` is called with the number of finished parts of a layer, and of all its
    /// parts.
    ///
    /// # Errors
    ///
    /// [`ExportError::Plan`] if there is no such task, or the store was changed, or the plan replaced,
    /// since the plan was made; [`ExportError`] if the store cannot be read, or the target not written.
    pub async fn run(
        &self,
        index: usize,
        open: &OpenOptions,
        report: &(dyn Fn(u64, u64) + Send + Sync),
    ) -> Result<bool, ExportError> {
        if index >= self.tasks {
            let tasks = self.tasks;
            return Err(self.problem(ExportPlanError::NoTask { index, tasks }));
        }
        if self.is_committed() {
            return Ok(false);
        }
        let target = ExportTarget::parse(&self.target);
        let Some(job) = ExportJob::open(&target, &self.id).await? else {
            // A commit that has published the export may have died before it wrote the plan.
            return match ExportJob::open_published(&target, &self.id).await? {
                Some(_) => Ok(false),
                None => Err(self.problem(ExportPlanError::Outdated)),
            };
        };
        let planned = PlannedExport::read(&job).await?;
        let done = job.results().await?;
        let missing = planned.shares().filter(|planned| {
            let is_own = planned.share.task == index;
            is_own && !done.contains(&planned.name)
        });
        let missing: Vec<PlannedShare<'_>> = missing.collect();
        if missing.is_empty() {
            return Ok(false);
        }
        let dataset = self.opened(open).await?;
        unless_changed(&dataset, &planned.source, &job, Ok(())).await?;
        let (properties, options) = (planned.properties(), ExportOptions::default());
        let space = ViewerSpace::of(&dataset);
        let output = ExportOutput::reserved(job.address())?;
        let work = Export {
            reading: LayerInput::new(&dataset, properties.as_deref(), &space, report),
            options: &options,
            output: &output,
        };
        for PlannedShare { layer, share, name } in missing {
            let written = layer.write(share, &work, &job).await;
            let result = unless_changed(&dataset, &planned.source, &job, written).await?;
            job.check_reserved().await?;
            let result = result.to_json().to_string();
            job.put(&format!("results/{name}"), result.into()).await?;
        }
        Ok(true)
    }

    /// Returns the tasks that are done and missing.
    ///
    /// # Errors
    ///
    /// [`ExportError::Plan`] if the plan was replaced; [`ExportError`] if the target cannot be read.
    pub async fn status(&self) -> Result<ExportStatus, ExportError> {
        let mut missing = Vec::new();
        if !self.is_committed() {
            let (job, _) = self.job().await?;
            missing = missing_tasks(&PlannedExport::read(&job).await?, &job).await?;
        }
        Ok(ExportStatus {
            tasks: self.tasks,
            missing,
            is_committed: self.is_committed(),
        })
    }

    /// Publishes the export of the plan at an address, and records that in the plan. Checks that each
    /// file is there, and that exactly one task has written it. Writes the `info` documents, without
    /// which no program opens a layer, last. Returns the plan with its [report](Self::report).
    /// Repeating a commit has no effect.
    ///
    /// # Errors
    ///
    /// [`ExportError::Plan`] if a task is not done, a file is missing, or the store was changed since
    /// the plan was made; [`ExportError`] if the target or the plan cannot be written. The commit may
    /// then be repeated.
    pub async fn commit(address: &str, open: &OpenOptions) -> Result<Self, ExportError> {
        let plan = Self::read(address, open).await?;
        let mut plan = plan.ok_or_else(|| problem(address, ExportPlanError::Invalid))?;
        if !plan.is_committed() {
            plan.committed = Some(plan.publish(open).await?);
            plan.write(address, open).await?;
        }
        // They tell a repeated commit that this one has published the export, so they are deleted
        // after the plan is written.
        let target = ExportTarget::parse(&plan.target);
        if let Some(job) = ExportJob::open_published(&target, &plan.id).await? {
            job.clean().await?;
        }
        Ok(plan)
    }

    /// Publishes the export, and returns its summary.
    async fn publish(&self, open: &OpenOptions) -> Result<Value, ExportError> {
        let (job, place) = self.job().await?;
        let report = job.find(REPORT).await?;
        let report = report.map(|bytes| {
            let report: Option<Value> = serde_json::from_slice(&bytes).ok();
            let report = report.filter(|report| ExportReport::from_json(report).is_some());
            report.ok_or_else(|| job.damaged(REPORT))
        });
        let report = report.transpose()?;
        if let (Place::Published, Some(report)) = (place, &report) {
            return Ok(report.clone());
        }
        let planned = PlannedExport::read(&job).await?;
        let missing = missing_tasks(&planned, &job).await?;
        if !missing.is_empty() {
            let tasks = self.tasks;
            return Err(job.problem(ExportPlanError::Missing { missing, tasks }));
        }
        let complete = CompleteExport::read(&planned, &job).await?;
        let documents = complete.documents(&planned, &job).await?;
        let report = match report {
            // A commit that was killed has checked everything.
            Some(report) => report,
            None => {
                let dataset = self.opened(open).await?;
                unless_changed(&dataset, &planned.source, &job, Ok(())).await?;
                complete.check(&job).await?;
                let sizes = documents.iter().map(|(_, bytes)| bytes.len());
                let sizes: Vec<u64> = sizes.filter_map(|size| u64::try_from(size).ok()).collect();
                let report = complete.report(planned, &dataset, &sizes).to_json();
                job.put(REPORT, report.to_string().into()).await?;
                report
            }
        };
        job.publish(documents, &complete.files).await?;
        Ok(report)
    }

    /// Opens the job of the plan.
    async fn job(&self) -> Result<(ExportJob, Place), ExportError> {
        let target = ExportTarget::parse(&self.target);
        if let Some(job) = ExportJob::open(&target, &self.id).await? {
            return Ok((job, Place::Reserved));
        }
        match ExportJob::open_published(&target, &self.id).await? {
            Some(job) => Ok((job, Place::Published)),
            None => Err(self.problem(ExportPlanError::Outdated)),
        }
    }

    async fn opened(&self, open: &OpenOptions) -> Result<Dataset, ExportError> {
        let open = open.clone().anonymous(self.anonymous || open.anonymous);
        opened(&self.store, &open).await
    }

    fn problem(&self, source: ExportPlanError) -> ExportError {
        problem(&self.target, source)
    }
}

/// The state of the place of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Files are written to it.
    Reserved,
    /// A commit has moved it to the target, and was killed before it wrote the plan.
    Published,
}

fn problem(address: &str, source: ExportPlanError) -> ExportError {
    ExportError::Plan {
        address: address.to_owned(),
        source,
    }
}

fn parse(json: &Value) -> Option<ExportPlan> {
    if json.get("zvf_task_plan")?.as_u64()? != VERSION {
        return None;
    }
    let text = |name: &str| json.get(name)?.as_str().map(str::to_owned);
    let id = text("id")?;
    // The identifier is a part of paths.
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_id = (1..=64).contains(&id.len()) && id.bytes().all(is_hex);
    Some(ExportPlan {
        store: text("store")?,
        target: text("target")?,
        id: is_id.then_some(id)?,
        tasks: usize::try_from(json.get("tasks")?.as_u64()?).ok()?,
        anonymous: json.get("anonymous")?.as_bool()?,
        url: match json.get("url")? {
            Value::Null => None,
            url => Some(url.as_str()?.to_owned()),
        },
        committed: match json.get("committed")? {
            Value::Null => None,
            report => Some(ExportReport::from_json(report).map(|_| report.clone())?),
        },
    })
}

async fn missing_tasks(
    planned: &PlannedExport,
    job: &ExportJob,
) -> Result<Vec<usize>, ExportError> {
    let done = job.results().await?;
    let missing = planned.shares().filter(|share| !done.contains(&share.name));
    let tasks: BTreeSet<usize> = missing.map(|planned| planned.share.task).collect();
    Ok(tasks.into_iter().collect())
}

/// The results of all tasks.
struct CompleteExport {
    /// Results of each layer.
    results: Vec<Vec<ShareResult>>,
    /// Sizes of all files.
    files: BTreeMap<String, u64>,
}

impl CompleteExport {
    /// Reads the results, and checks that no two tasks have written one file.
    async fn read(planned: &PlannedExport, job: &ExportJob) -> Result<Self, ExportError> {
        let mut files = planned.files.clone();
        let mut results = Vec::new();
        for (number, layer) in planned.layers.iter().enumerate() {
            let mut shares = Vec::new();
            for share in layer.shares() {
                let name = format!("results/{}", result_name(number, share));
                let bytes = job.get(&name).await?;
                let json: Option<Value> = serde_json::from_slice(&bytes).ok();
                let result = json.as_ref().and_then(ShareResult::from_json);
                let mut result = result.ok_or_else(|| job.damaged(&name))?;
                for (file, size) in core::mem::take(&mut result.files) {
                    if files.insert(file.clone(), size).is_some() {
                        return Err(job.problem(ExportPlanError::Twice(file)));
                    }
                }
                shares.push(result);
            }
            results.push(shares);
        }
        Ok(Self { results, files })
    }

    /// Checks that the target has these files, and no others.
    async fn check(&self, job: &ExportJob) -> Result<(), ExportError> {
        let found = job.files().await?;
        for (file, size) in &self.files {
            if found.get(file) != Some(size) {
                return Err(job.problem(ExportPlanError::File(file.clone())));
            }
        }
        match found
            .into_keys()
            .find(|file| !self.files.contains_key(file))
        {
            Some(file) => Err(job.problem(ExportPlanError::Foreign(file))),
            None => Ok(()),
        }
    }

    /// Returns the documents to publish.
    async fn documents(
        &self,
        planned: &PlannedExport,
        job: &ExportJob,
    ) -> Result<Vec<(Key, Bytes)>, ExportError> {
        let mut documents = job.documents().await?;
        for (layer, results) in planned.layers.iter().zip(&self.results) {
            let path = annotations::document();
            let found = documents.iter_mut().find(|(key, _)| key.as_str() == path);
            if let Some((_, document)) = found.filter(|_| layer.needs_limits()) {
                let limited = with_limits(document, results);
                *document = limited.ok_or_else(|| job.damaged_document(&path))?.into();
            }
        }
        Ok(documents)
    }

    /// Returns the summary. `documents` are the sizes of the documents.
    fn report(&self, planned: PlannedExport, dataset: &Dataset, documents: &[u64]) -> ExportReport {
        let (mut layers, mut notes) = (Vec::new(), Vec::new());
        for (layer, results) in planned.layers.iter().zip(&self.results) {
            let finished = layer.finished(results);
            layers.push(finished.layer);
            notes.extend(finished.notes);
        }
        notes.extend(planned.notes);
        notes.dedup();
        let count = self.files.len().saturating_add(documents.len());
        let sizes = self.files.values().chain(documents).copied();
        ExportReport {
            view: StoreView {
                layers,
                lower: planned.lower,
                upper: planned.upper,
                space: ViewerSpace::of(dataset),
            },
            files: u64::try_from(count).unwrap_or(u64::MAX),
            bytes: sizes.fold(0, u64::saturating_add),
            kept: 0,
            notes,
        }
    }
}
