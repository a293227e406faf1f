//! A store as static files for Neuroglancer, in a folder or a bucket.

mod annotations;
mod complete_export;
mod meshes;
mod objects;
mod output;
mod plan;
mod planned_export;
mod planned_layer;
mod progress;
mod report;
mod skeletons;

use std::{
    io,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use zvf::{Dataset, PlanCause, PlanError, StateError, TaskPlanError};
use zvf_model::{key::Key, level::LevelId};
use zvf_precomputed::{PrecomputedError, ShardError};

use crate::{
    layers::{
        Layer, LayerError, LayerInput, LayerKind, Report,
        skeletons::coarser,
        space::ViewerSpace,
        survey::{self, StoreSurvey},
    },
    spill::SpillError,
    view::{ServedView, StoreView, store_name, viewer_link, viewer_state},
};
use output::ExportOutput;
use planned_layer::{LayerPlanner, PlannedLayer};

pub use plan::{ExportPlan, ExportWork, plan_export};

/// Bytes of entries that are grouped in memory.
const BUFFERED: usize = 128 << 20;

/// Bytes of a shard of [`ShardingSpec`](zvf_precomputed::ShardingSpec).
const SHARD_BYTES: u64 = 64 << 20;

/// The target of an export.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExportTarget {
    /// A folder, which must not exist. An interrupted export of the same store with the same options is
    /// continued; its files are in a hidden folder beside the target, `.NAME.zvf-export`.
    Folder(PathBuf),
    /// A prefix of a bucket, by its address, such as `s3://bucket/tracts`. It must be empty, or hold an
    /// interrupted export of the same store with the same options, which is then continued.
    Bucket(String),
}

impl ExportTarget {
    /// Parses an address: a text that contains `://` names a bucket, and any other a folder.
    pub fn parse(text: &str) -> Self {
        if text.contains("://") {
            Self::Bucket(text.to_owned())
        } else {
            Self::Folder(PathBuf::from(text))
        }
    }
}

impl From<PathBuf> for ExportTarget {
    fn from(folder: PathBuf) -> Self {
        Self::Folder(folder)
    }
}

impl From<&Path> for ExportTarget {
    fn from(folder: &Path) -> Self {
        Self::Folder(folder.to_path_buf())
    }
}

/// Choices of an export.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ExportOptions {
    /// The layers; all that the kind of geometry has if empty.
    pub layers: Vec<LayerKind>,
    /// Names of the attributes to write; all if `None`.
    pub properties: Option<Vec<String>>,
    /// Writes small indexes as shards, too.
    pub sharded: bool,
    /// The form of meshes.
    pub mesh_format: MeshFormat,
    /// Address at which the export of a plan will be served, for [`ExportWork::viewer_link`].
    pub url: Option<String>,
    /// About the bytes of a shard, if not those of [`ShardingSpec`](zvf_precomputed::ShardingSpec).
    shard_bytes: Option<u64>,
}

/// The form of meshes in an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MeshFormat {
    /// An octree of Draco fragments for each object, with the levels of the store as levels of
    /// detail.
    #[default]
    Draco,
    /// A file of level 0 for each object, without compression: for programs that read no other form.
    Legacy,
}

impl ExportOptions {
    /// Creates the default choices: all layers with all attributes.
    pub fn new() -> Self {
        Self::default()
    }

    zvf_model::setters! {
        layers: into Vec<LayerKind>,
        mesh_format: MeshFormat,
        properties: Option<Vec<String>>,
        /// Sets about how many bytes a shard has, so that tests write many shards of a small store.
        #[doc(hidden)]
        shard_bytes: u64,
        sharded: bool,
        url: Option<String>,
    }

    /// Returns the size of values from which the number of shards is chosen.
    fn sharded_bytes(&self, bytes: u64) -> u64 {
        match self.shard_bytes {
            Some(shard) => bytes.div_ceil(shard.max(1)).saturating_mul(SHARD_BYTES),
            None => bytes,
        }
    }
}

/// Summary of an export.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExportReport {
    /// The layers, their bounds and units.
    pub view: StoreView,
    /// Files written.
    pub files: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Files of an interrupted export that were kept.
    pub kept: u64,
    /// Things that a user should know, such as rounded values.
    pub notes: Vec<String>,
}

impl ExportReport {
    /// Returns a link to Neuroglancer that shows the folder, served at `url`. Layers are named after
    /// the address of the store.
    pub fn viewer_link(&self, store: &str, url: &str) -> String {
        let name = store_name(store);
        let served = ServedView {
            name: &name,
            url,
            view: &self.view,
        };
        viewer_link(None, &viewer_state(&[served]))
    }
}

/// An error of [`export`], of [`plan_export`] or of an [`ExportPlan`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The folder exists.
    #[error("{} exists; name another folder, or remove it", .0.display())]
    Exists(PathBuf),
    /// The hidden folder of an interrupted export has the name of a folder with other files.
    #[error("{} exists, but is not an interrupted export; move or remove it", .0.display())]
    NoExport(PathBuf),
    /// Another process writes the same export.
    #[error("another process is exporting to {}; wait until it has finished", .0.display())]
    Running(PathBuf),
    /// The folder cannot be created or moved to its place.
    #[error("the folder {} cannot be written", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("{} cannot be written", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A bucket cannot be read or written.
    #[error("{address} cannot be read or written")]
    Bucket {
        /// The address of the target.
        address: String,
        /// The cause.
        source: Box<dyn core::error::Error + Send + Sync>,
    },
    /// The bucket has objects below the address.
    #[error("{0} is not empty; name another address, or delete its objects")]
    NotEmpty(String),
    /// The bucket has a part of another export.
    #[error(
        "{0} holds an unfinished export of another state of the store, or with other options; \
         delete its objects, or name another address"
    )]
    Unfinished(String),
    /// An unfinished plan has reserved the target.
    #[error(
        "{0} is reserved by an unfinished plan; run its tasks and commit it, or plan again with \
         `--restart`"
    )]
    Planned(String),
    /// A plan of an export cannot be used.
    #[error("{address}")]
    Plan {
        /// The plan, or the place that it has reserved.
        address: String,
        /// The problem.
        source: TaskPlanError,
    },
    /// The store cannot be converted.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// A shard cannot be written.
    #[error("a shard cannot be written")]
    Shard(#[from] ShardError),
    /// A record is too large.
    #[error("an annotation or object has more than 4 GiB")]
    Record,
    /// The target is in the store.
    #[error("{0} is in the folder of the store; name a target outside of it")]
    InStore(String),
    /// The store has no layer.
    #[error("the store has nothing to show as {0}, so there is nothing to export")]
    Nothing(String),
    /// The store has none of the wanted layers.
    #[error("the store has no layer of the kinds {0}; it can be exported as {1}")]
    NoLayer(String, String),
    /// A grid has too many cells.
    #[error("a cell of the spatial index has no code")]
    Cell(#[from] zvf_precomputed::MortonError),
}

impl ExportError {
    fn bucket(address: &str, source: impl core::error::Error + Send + Sync + 'static) -> Self {
        Self::Bucket {
            address: address.to_owned(),
            source: Box::new(source),
        }
    }
}

impl From<PlanError> for ExportError {
    fn from(PlanError { address, cause }: PlanError) -> Self {
        match cause {
            PlanCause::Problem(source) => Self::Plan { address, source },
            PlanCause::Open(error) => Self::bucket(&address, error),
            PlanCause::Read(error) => Self::bucket(&address, error),
            PlanCause::Write(error) => Self::bucket(&address, error),
        }
    }
}

impl From<SpillError> for ExportError {
    fn from(error: SpillError) -> Self {
        match error {
            SpillError::Record => Self::Record,
            SpillError::File { file, source } => Self::File { file, source },
        }
    }
}

impl From<zvf::Error> for ExportError {
    fn from(error: zvf::Error) -> Self {
        Self::Layer(error.into())
    }
}

impl From<PrecomputedError> for ExportError {
    fn from(error: PrecomputedError) -> Self {
        Self::Layer(error.into())
    }
}

/// An export in progress.
#[derive(Clone, Copy)]
struct Export<'a> {
    reading: LayerInput<'a>,
    options: &'a ExportOptions,
    output: &'a ExportOutput,
}

/// Writes a store as static files. A folder appears when it is complete; in a bucket, the `info`
/// documents of the layers do. `report` is called with the number of finished parts, and of all
/// parts, which may grow.
///
/// # Errors
///
/// [`ExportError`]. A folder does not exist then. What was written is kept for the same export to
/// continue. If the store was changed during the export, the error is that of
/// [`StateError::Changed`], and nothing is published.
pub async fn export(
    dataset: &Dataset,
    target: impl Into<ExportTarget>,
    options: &ExportOptions,
    report: &(dyn Fn(u64, u64) + Send + Sync),
) -> Result<ExportReport, ExportError> {
    let target = target.into();
    check_outside(dataset.address(), &target)?;
    let kinds = chosen_layers(dataset, options)?;
    let source = source(dataset, options).await?;
    let output = ExportOutput::create(&target, &source).await?;
    let mut layers = Vec::new();
    let mut receiver = LayerReceiver::Written(&mut layers);
    let added = add_layers(dataset, kinds, options, &output, report, &mut receiver);
    let (survey, mut notes) = added.await?;
    notes.dedup();
    // Queries may have followed the store to another state.
    if !is_unchanged(dataset, &source).await? {
        let address = dataset.address().to_owned();
        return Err(zvf::Error::from(StateError::Changed { address }).into());
    }
    let files = output.publish().await?;
    Ok(ExportReport {
        view: StoreView {
            layers,
            lower: survey.lower,
            upper: survey.upper,
            space: ViewerSpace::of(dataset),
        },
        files: files.files,
        bytes: files.bytes,
        kept: files.kept,
        notes,
    })
}

/// Fails if the target is the store or in it, where its files would be damage.
fn check_outside(store: &str, target: &ExportTarget) -> Result<(), ExportError> {
    let text = match target {
        ExportTarget::Folder(folder) => folder.display().to_string(),
        ExportTarget::Bucket(address) => address.clone(),
    };
    if zvf_store::path_in_folder(&text, store).is_some() {
        Err(ExportError::InStore(text))
    } else {
        Ok(())
    }
}

/// Notes requested layers for which the store has no content, and fails if there is no layer.
fn check_layers(
    dataset: &Dataset,
    options: &ExportOptions,
    found: &[LayerKind],
    notes: &mut Vec<String>,
) -> Result<(), ExportError> {
    let wanted = options.layers.iter();
    let missing = wanted.filter(|kind| !found.contains(kind));
    notes.extend(missing.map(|kind| format!("the store has no layer {}", kind.folder())));
    if !found.is_empty() {
        return Ok(());
    }
    let mut possible = LayerKind::of(dataset);
    if options.layers.is_empty() {
        return Err(ExportError::Nothing(names(&possible)));
    }
    possible.retain(|kind| !options.layers.contains(kind));
    let wanted = names(&options.layers);
    Err(if possible.is_empty() {
        ExportError::Nothing(wanted)
    } else {
        ExportError::NoLayer(wanted, names(&possible))
    })
}

/// Returns the names of layers as a list.
fn names(kinds: &[LayerKind]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.folder()).collect();
    names.join(", ")
}

/// Returns the layers that an export writes.
fn chosen_layers(
    dataset: &Dataset,
    options: &ExportOptions,
) -> Result<Vec<LayerKind>, ExportError> {
    let possible = LayerKind::of(dataset);
    let kinds: Vec<LayerKind> = match options.layers.as_slice() {
        [] => possible.clone(),
        chosen => possible
            .iter()
            .copied()
            .filter(|kind| chosen.contains(kind))
            .collect(),
    };
    if kinds.is_empty() {
        return Err(ExportError::NoLayer(
            names(&options.layers),
            names(&possible),
        ));
    }
    Ok(kinds)
}

/// A receiver of the layers of an export.
enum LayerReceiver<'a, 'p> {
    /// Writes each layer.
    Written(&'a mut Vec<Layer>),
    /// Plans the tasks that write each layer.
    Planned(&'a mut LayerPlanner<'p>),
}

impl LayerReceiver<'_, '_> {
    async fn add(
        &mut self,
        work: &Export<'_>,
        kind: LayerKind,
        survey: &StoreSurvey,
        notes: &mut Vec<String>,
    ) -> Result<(), ExportError> {
        match self {
            Self::Written(layers) => layers.extend(written(work, kind, survey, notes).await?),
            Self::Planned(planner) => planner.add(work, kind, survey, notes).await?,
        }
        Ok(())
    }

    /// Returns the kinds of the layers so far.
    fn kinds(&self) -> Vec<LayerKind> {
        match self {
            Self::Written(layers) => layers.iter().map(|layer| layer.kind).collect(),
            Self::Planned(planner) => planner.layers.iter().map(PlannedLayer::kind).collect(),
        }
    }
}

/// Passes the layers of a store to a receiver, and with skeletons those of the coarser levels. Returns
/// the survey of the store, and notes.
async fn add_layers(
    dataset: &Dataset,
    kinds: Vec<LayerKind>,
    options: &ExportOptions,
    output: &ExportOutput,
    report: &Report<'_>,
    to: &mut LayerReceiver<'_, '_>,
) -> Result<(StoreSurvey, Vec<String>), ExportError> {
    let space = ViewerSpace::of(dataset);
    let work = &Export {
        reading: LayerInput::new(dataset, options.properties.as_deref(), &space, report),
        options,
        output,
    };
    let mut noted = space.notes.clone();
    let notes = &mut noted;
    let survey = survey::survey(&work.reading, notes).await?;
    for kind in kinds {
        match kind {
            LayerKind::Annotations if !survey.has_annotations(notes) => {}
            LayerKind::Skeletons => {
                to.add(work, kind, &survey, notes).await?;
                for (reading, survey) in coarser(&work.reading, &survey, notes).await? {
                    let work = Export { reading, ..*work };
                    to.add(&work, kind, &survey, notes).await?;
                }
            }
            _ => to.add(work, kind, &survey, notes).await?,
        }
    }
    check_layers(dataset, options, &to.kinds(), notes)?;
    Ok((survey, noted))
}

/// Writes a layer, unless an interrupted export has completed it.
async fn written(
    work: &Export<'_>,
    kind: LayerKind,
    survey: &StoreSurvey,
    notes: &mut Vec<String>,
) -> Result<Option<Layer>, ExportError> {
    let name = kind.folder_of(work.reading.level);
    if let Some(known) = work.output.layer(&name) {
        let known_notes = known
            .get("notes")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        notes.extend(known_notes.map(str::to_owned));
        return Ok(Layer::from_json(
            kind,
            work.reading.level,
            known.get("layer"),
        ));
    }
    let (first, before) = (notes.len(), work.output.written());
    let layer = match kind {
        LayerKind::Annotations => Some(annotations::write(work, survey, notes).await?),
        LayerKind::Skeletons => Some(skeletons::write(work, survey, notes).await?),
        LayerKind::Meshes => Some(meshes::write(work, survey, notes).await?),
        LayerKind::Segments => write_segments(work, &survey.segments)?,
        LayerKind::Groups => skeletons::write_groups(work, survey, notes).await?,
        LayerKind::Volume => None,
    };
    let (files, bytes) = work.output.written();
    let result = json!({
        "layer": layer.as_ref().map(Layer::to_json),
        "notes": notes.get(first..),
        "files": files.saturating_sub(before.0),
        "bytes": bytes.saturating_sub(before.1),
    });
    work.output.add_layer(&name, result).await?;
    Ok(layer)
}

/// Describes what is exported: two exports with equal descriptions write equal files.
async fn source(dataset: &Dataset, options: &ExportOptions) -> Result<Value, ExportError> {
    let layers: Vec<&str> = options.layers.iter().map(|kind| kind.folder()).collect();
    Ok(json!({
        "unfinished_export": true,
        "zvf": env!("CARGO_PKG_VERSION"),
        "store": store_state(dataset).await?,
        "layers": layers,
        "properties": options.properties,
        "sharded": options.sharded,
        "mesh_format": format!("{:?}", options.mesh_format),
        "shard_bytes": options.shard_bytes,
    }))
}

/// Returns whether a store is in the state of the source of an export, and its dataset too.
async fn is_unchanged(dataset: &Dataset, source: &Value) -> Result<bool, ExportError> {
    let is_same = Some(&store_state(dataset).await?) == source.get("store");
    Ok(is_same && dataset.is_current().await?)
}

/// Describes the state of a store.
async fn store_state(dataset: &Dataset) -> Result<Value, ExportError> {
    let root = match Key::parse("zarr.json") {
        Ok(key) => {
            let stat = dataset.store().stat(&key).await;
            stat.map_err(|source| ExportError::bucket(dataset.address(), source))?
        }
        Err(_) => None,
    };
    Ok(json!({
        "address": dataset.address(),
        "transaction": dataset.transaction(),
        "root": root.map(|root| json!({"size": root.size, "e_tag": root.e_tag})),
    }))
}

/// Writes the properties of objects as a layer of their own, to which annotations are related.
fn write_segments(
    work: &Export<'_>,
    segments: &crate::layers::segments::SegmentTable,
) -> Result<Option<Layer>, ExportError> {
    let Some(json) = segments.to_json() else {
        return Ok(None);
    };
    let path = format!("{}/info", LayerKind::Segments.folder());
    work.output.write(&path, json.as_bytes())?;
    Ok(Some(Layer {
        kind: LayerKind::Segments,
        level: LevelId::FULL,
        items: u64::try_from(segments.count).unwrap_or(u64::MAX),
        shader: None,
        shown: Vec::new(),
        is_related: false,
        transform: None,
    }))
}
