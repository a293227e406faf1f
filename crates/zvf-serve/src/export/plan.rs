//! Exports that are divided into tasks for the scheduler of a cluster.

use std::sync::Arc;

use serde_json::{Value, json};
use zvf::{Dataset, Json, Plan, TaskPlanError, TaskPlanOptions, Work};
use zvf_model::json::member;
use zvf_store::{Follow, OpenOptions, absolute_address};

use super::{
    Export, ExportError, ExportOptions, ExportReport, ExportTarget, check_outside, chosen_layers,
    complete_export::CompleteExport,
    is_unchanged,
    output::{ExportJob, ExportOutput},
    planned_export::PlannedExport,
    source,
};
use crate::layers::{LayerInput, Report, space::ViewerSpace};

/// The work in the member `job` of the file.
const JOB: &str = "export precomputed";
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
    let planned = PlannedExport::plan(
        &dataset,
        &job,
        source.clone(),
        kinds,
        options,
        tasks,
        report,
    )
    .await;
    match unless_changed(&dataset, &source, &job, planned).await {
        Ok(planned) => planned.write(&job).await?,
        Err(error) => {
            // This error says more than that of a place which cannot be cleaned.
            let _ = job.discard().await;
            return Err(error);
        }
    }
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
    async fn open(plan: &ExportPlan) -> Result<(ExportJob, Place), ExportError> {
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

    fn job(&self) -> &'static str {
        JOB
    }

    fn to_json(&self) -> Json {
        json!({
            "target": self.target,
            "anonymous": self.anonymous,
            "url": self.url,
        })
        .into()
    }

    fn from_json(json: &Json) -> Option<Self> {
        let json = json.as_ref();
        // The identifier is a part of paths.
        let id: &str = member(json, "id")?;
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        ((1..=64).contains(&id.len()) && id.bytes().all(is_hex)).then_some(())?;
        Some(Self {
            target: member(json, "target")?,
            anonymous: member(json, "anonymous")?,
            url: member(json, "url")?,
        })
    }

    fn report(json: &Json) -> Option<ExportReport> {
        ExportReport::from_json(json.as_ref())
    }

    fn place(plan: &ExportPlan) -> &str {
        &plan.work().target
    }

    async fn missing(plan: &ExportPlan, _: &OpenOptions) -> Result<Vec<usize>, ExportError> {
        let (job, _) = Self::open(plan).await?;
        PlannedExport::read(&job).await?.missing_tasks(&job).await
    }

    async fn run(
        plan: &ExportPlan,
        index: usize,
        report: Self::Input,
        open: &OpenOptions,
    ) -> Result<bool, ExportError> {
        let (job, place) = Self::open(plan).await?;
        if place == Place::Published {
            // A commit that has published the export died before it wrote the plan.
            return Ok(false);
        }
        let planned = PlannedExport::read(&job).await?;
        let mut missing = planned.missing(&job).await?;
        missing.retain(|planned| planned.share.task == index);
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
        for missing in missing {
            let written = missing.layer.write(missing.share, &work, &job).await;
            let result = unless_changed(&dataset, &planned.source, &job, written).await?;
            job.check_reserved().await?;
            let name = format!("results/{}", missing.name);
            job.put(&name, result.to_json().to_string().into()).await?;
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
        let (job, place) = Self::open(plan).await?;
        let parse = |json: &Value| ExportReport::from_json(json).map(|_| json.clone());
        let checked = job.find_parsed(REPORT, parse).await?;
        if let (Place::Published, Some(report)) = (place, &checked) {
            return Ok(report.clone().into());
        }
        let planned = PlannedExport::read(&job).await?;
        let missing = planned.missing_tasks(&job).await?;
        if !missing.is_empty() {
            let tasks = plan.tasks();
            return Err(job.problem(TaskPlanError::Missing { missing, tasks }));
        }
        let source = planned.source.clone();
        let complete = CompleteExport::read(planned, &job).await?;
        let documents = complete.documents(&job).await?;
        let report = match checked {
            // A commit that was killed has checked everything.
            Some(report) => report,
            None => {
                let dataset = Self::dataset(plan, open).await?;
                unless_changed(&dataset, &source, &job, Ok(())).await?;
                complete.check(&job).await?;
                let report = complete.report(&dataset, &documents).to_json();
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
