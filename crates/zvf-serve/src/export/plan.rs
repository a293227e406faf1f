//! Exports that are divided into tasks for the scheduler of a cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use serde_json::{Value, json};
use zvf::{Dataset, Json, Plan, TaskPlanError, TaskPlanOptions, Work};
use zvf_model::key::Key;
use zvf_store::{Follow, OpenOptions, absolute_address};

use super::{
    Export, ExportError, ExportOptions, ExportReport, ExportTarget, LayerReceiver, add_layers,
    annotations, check_layers, check_outside, chosen_layers, is_unchanged,
    output::{ExportJob, ExportOutput},
    planned_layer::{LayerPlanner, LayerShare, PlannedLayer, ShareResult, sizes, with_limits},
    report::numbers,
    source,
};
use crate::{
    layers::{LayerInput, LayerKind, Report, space::ViewerSpace, survey},
    view::StoreView,
};

/// The work in the member `job` of the file.
const JOB: &str = "export precomputed";
/// The object of the job that describes the layers.
const LAYERS: &str = "plan.json";
/// The object of the job with the summary.
const REPORT: &str = "report.json";

/// A plan of the tasks that export a store. Their files equal those of [`export`](crate::export).
/// Until the [commit](Plan::commit) no program opens a layer.
///
/// ```
/// use zvf::{Design, Geometry, GeometryKind, NumericColumn, OpenOptions};
/// use zvf_serve::{ExportOptions, ExportPlan, ExportTarget, plan_export};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = |name: &str| folder.path().join(name).display().to_string();
/// # let (store, plan) = (address("points.zv"), address("plan.json"));
/// # let points = Geometry::new(NumericColumn::float32(3, (0..3000).map(|at| at as f32)));
/// # let design = Design::new(GeometryKind::Points);
/// # zvf::create(store.as_str(), &points, design, &Default::default()).await?;
/// let (open, options) = (OpenOptions::default(), ExportOptions::new());
/// let target = ExportTarget::parse(&address("points.precomputed"));
/// let planned =
///     plan_export(&store, target, &options, &Default::default(), &open, &|_, _| {}).await?;
/// planned.write(&plan, &open).await?;
/// for index in 0..planned.tasks() {
///     planned.run(index, &open).await?;
/// }
/// let report = ExportPlan::commit(&plan, &open).await?.report();
/// assert_eq!(report.map(|report| report.view.layers()[0].items), Some(1000));
/// # Ok(()) }
/// ```
pub type ExportPlan = Plan<ExportWork>;

/// An export, the work of an [`ExportPlan`].
#[derive(Clone, Debug, PartialEq)]
pub struct ExportWork {
    target: String,
    /// Sends unsigned requests to the store.
    anonymous: bool,
    url: Option<String>,
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
    tasks: &TaskPlanOptions,
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
    let replaces = tasks.replaces_unfinished;
    let job = ExportJob::reserve(&target, &source, replaces).await?;
    let tasks = tasks.count();
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
    let work = ExportWork {
        target: match &target {
            ExportTarget::Folder(folder) => folder.display().to_string(),
            ExportTarget::Bucket(address) => address.clone(),
        },
        anonymous: open.anonymous,
        url: options.url.clone(),
    };
    Ok(Plan::new(store, job.id().to_owned(), tasks, work))
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
    if is_unchanged(dataset, source).await? {
        read
    } else {
        Err(job.problem(TaskPlanError::Replaced))
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
        let notes = export
            .get("notes")?
            .as_array()?
            .iter()
            .map(|note| note.as_str().map(str::to_owned));
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
        let names = self
            .source
            .get("properties")?
            .as_array()?
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned);
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

impl ExportWork {
    /// Returns the target: a folder, or an address.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns the link to Neuroglancer that shows the export; `None` before the commit, or without
    /// the address at which it is served.
    pub fn viewer_link(plan: &ExportPlan) -> Option<String> {
        let url = plan.work().url.as_deref()?;
        Some(plan.report()?.viewer_link(plan.store(), url))
    }

    /// Opens the job of a plan.
    async fn job(plan: &ExportPlan) -> Result<(ExportJob, Place), ExportError> {
        let target = ExportTarget::parse(&plan.work().target);
        if let Some(job) = ExportJob::open(&target, plan.id()).await? {
            return Ok((job, Place::Reserved));
        }
        match ExportJob::open_published(&target, plan.id()).await? {
            Some(job) => Ok((job, Place::Published)),
            None => Err(plan.problem(TaskPlanError::Replaced).into()),
        }
    }

    async fn dataset(plan: &ExportPlan, open: &OpenOptions) -> Result<Dataset, ExportError> {
        let anonymous = plan.work().anonymous || open.anonymous;
        opened(plan.store(), &open.clone().anonymous(anonymous)).await
    }
}

impl Work for ExportWork {
    type Error = ExportError;
    /// A callback for progress: the number of finished parts of a layer, and of all its parts.
    type Input = Option<Arc<Report<'static>>>;
    type Report = ExportReport;
    const VERSION: u64 = 1;

    fn has_job(job: &str) -> bool {
        job == JOB
    }

    fn to_json(&self) -> Json {
        json!({
            "job": JOB,
            "target": self.target,
            "anonymous": self.anonymous,
            "url": self.url,
        })
        .into()
    }

    fn from_json(json: &Json) -> Option<Self> {
        let json: &Value = json.as_ref();
        // The identifier is a part of paths.
        let id = json.get("id")?.as_str()?;
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        ((1..=64).contains(&id.len()) && id.bytes().all(is_hex)).then_some(())?;
        Some(Self {
            target: json.get("target")?.as_str()?.to_owned(),
            anonymous: json.get("anonymous")?.as_bool()?,
            url: match json.get("url")? {
                Value::Null => None,
                url => Some(url.as_str()?.to_owned()),
            },
        })
    }

    fn report(json: &Json) -> Option<ExportReport> {
        ExportReport::from_json(json.as_ref())
    }

    fn place(plan: &ExportPlan) -> &str {
        &plan.work().target
    }

    async fn missing(plan: &ExportPlan, _: &OpenOptions) -> Result<Vec<usize>, ExportError> {
        let (job, _) = Self::job(plan).await?;
        missing_tasks(&PlannedExport::read(&job).await?, &job).await
    }

    async fn run(
        plan: &ExportPlan,
        index: usize,
        report: Self::Input,
        open: &OpenOptions,
    ) -> Result<bool, ExportError> {
        let (job, place) = Self::job(plan).await?;
        if place == Place::Published {
            // A commit that has published the export died before it wrote the plan.
            return Ok(false);
        }
        let planned = PlannedExport::read(&job).await?;
        let done = job.results().await?;
        let missing: Vec<PlannedShare<'_>> = planned
            .shares()
            .filter(|planned| {
                let is_own = planned.share.task == index;
                is_own && !done.contains(&planned.name)
            })
            .collect();
        if missing.is_empty() {
            return Ok(false);
        }
        let dataset = Self::dataset(plan, open).await?;
        unless_changed(&dataset, &planned.source, &job, Ok(())).await?;
        let (properties, options) = (planned.properties(), ExportOptions::default());
        let space = ViewerSpace::of(&dataset);
        let output = ExportOutput::reserved(job.address())?;
        let report = report.as_deref().unwrap_or(&|_, _| {});
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

    /// Checks that each file is there, and that exactly one task has written it. Writes the `info`
    /// documents, without which no program opens a layer, last.
    async fn publish(
        plan: &ExportPlan,
        _: Self::Input,
        open: &OpenOptions,
    ) -> Result<Json, ExportError> {
        let (job, place) = Self::job(plan).await?;
        let report = job.find(REPORT).await?;
        let report = report
            .map(|bytes| {
                let report: Option<Value> = serde_json::from_slice(&bytes).ok();
                let report = report.filter(|report| ExportReport::from_json(report).is_some());
                report.ok_or_else(|| job.damaged(REPORT))
            })
            .transpose()?;
        if let (Place::Published, Some(report)) = (place, &report) {
            return Ok(report.clone().into());
        }
        let planned = PlannedExport::read(&job).await?;
        let missing = missing_tasks(&planned, &job).await?;
        if !missing.is_empty() {
            let tasks = plan.tasks();
            return Err(job.problem(TaskPlanError::Missing { missing, tasks }));
        }
        let complete = CompleteExport::read(&planned, &job).await?;
        let documents = complete.documents(&planned, &job).await?;
        let report = match report {
            // A commit that was killed has checked everything.
            Some(report) => report,
            None => {
                let dataset = Self::dataset(plan, open).await?;
                unless_changed(&dataset, &planned.source, &job, Ok(())).await?;
                complete.check(&job).await?;
                let sizes: Vec<u64> = documents
                    .iter()
                    .map(|(_, bytes)| bytes.len())
                    .filter_map(|size| u64::try_from(size).ok())
                    .collect();
                let report = complete.report(planned, &dataset, &sizes).to_json();
                job.put(REPORT, report.to_string().into()).await?;
                report
            }
        };
        job.publish(documents, &complete.files).await?;
        Ok(report.into())
    }

    async fn clean(plan: &ExportPlan, _: &OpenOptions) -> Result<(), ExportError> {
        let target = ExportTarget::parse(&plan.work().target);
        match ExportJob::open_published(&target, plan.id()).await? {
            Some(job) => job.clean().await,
            None => Ok(()),
        }
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
                let mut result = json
                    .as_ref()
                    .and_then(ShareResult::from_json)
                    .ok_or_else(|| job.damaged(&name))?;
                for (file, size) in core::mem::take(&mut result.files) {
                    if files.insert(file.clone(), size).is_some() {
                        return Err(job.problem(TaskPlanError::Twice(file)));
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
                return Err(job.problem(TaskPlanError::File(file.clone())));
            }
        }
        match found
            .into_keys()
            .find(|file| !self.files.contains_key(file))
        {
            Some(file) => Err(job.problem(TaskPlanError::Foreign(file))),
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
