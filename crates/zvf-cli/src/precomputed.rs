//! Stores as sources of Neuroglancer: annotations, skeletons, meshes and properties of segments.

mod annotations;
mod attributes;
mod links;
mod output;
mod segments;
mod skeletons;
mod space;
mod spill;
mod state;
mod survey;

use std::{
    io,
    path::{Path, PathBuf},
};

use zvf::Dataset;
use zvf_model::root::GeometryType;
use zvf_precomputed::{PrecomputedError, ShardError};

use crate::progress::ProgressMeter;
use output::OutputFolder;
use space::ViewerSpace;
use state::{viewer_link, viewer_state};

/// A kind of layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LayerKind {
    /// Points, lines or polylines with properties and a spatial index.
    Annotations,
    /// A skeleton per object.
    Skeletons,
    /// A mesh per object.
    Meshes,
    /// Properties of objects without a shape.
    Segments,
}

impl LayerKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [
        Self::Annotations,
        Self::Skeletons,
        Self::Meshes,
        Self::Segments,
    ];

    /// Returns the name of the folder.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Annotations => "annotations",
            Self::Skeletons => "skeletons",
            Self::Meshes => "meshes",
            Self::Segments => "segments",
        }
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
    /// Whether small indexes are written as shards, too.
    pub sharded: bool,
}

/// A layer that was written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExportedLayer {
    /// Its kind, which names its folder.
    pub kind: LayerKind,
    /// Annotations, or segments.
    pub items: u64,
    /// Code that colours the layer.
    pub(crate) shader: Option<String>,
    /// The first segments, which a viewer shows.
    pub(crate) shown: Vec<u64>,
    /// Whether annotations name the segments that they belong to.
    pub(crate) is_related: bool,
}

/// What an export wrote.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExportReport {
    /// The layers.
    pub layers: Vec<ExportedLayer>,
    /// Number of files.
    pub files: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// What the layers lack.
    pub notes: Vec<String>,
    pub(crate) space: ViewerSpace,
    pub(crate) lower: Vec<f64>,
    pub(crate) upper: Vec<f64>,
}

impl ExportReport {
    /// Returns a link to Neuroglancer that shows the folder, served at `url`.
    pub fn viewer_link(&self, store: &str, url: &str) -> String {
        let name = store.trim_end_matches(['/', '\\']);
        let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
        let name = name.strip_suffix(".zv").unwrap_or(name);
        viewer_link(None, &viewer_state(self, name, url))
    }
}

/// Why a store cannot be exported.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
#[non_exhaustive]
pub enum ExportError {
    #[error("{} exists; name another folder, or remove it", .0.display())]
    Exists(PathBuf),
    #[error("the folder {} cannot be written", folder.display())]
    Folder { folder: PathBuf, source: io::Error },
    #[error("{} cannot be written", file.display())]
    File { file: PathBuf, source: io::Error },
    #[error(transparent)]
    Store(#[from] zvf::Error),
    #[error("a value cannot be encoded")]
    Value(#[from] PrecomputedError),
    #[error("a shard cannot be written")]
    Shard(#[from] ShardError),
    #[error("an annotation has more than 4 GiB")]
    Record,
    #[error("the store has no vertex with finite coordinates, so that there is nothing to show")]
    Empty,
    #[error("the store has no layer of the kinds {0}; it can be exported as {1}")]
    NoLayer(String, String),
    #[error(
        "skeletons and meshes need three axes of space, but the store has {0}; add --layers \
         annotations"
    )]
    Axes(usize),
    #[error("a cell of the spatial index has no code")]
    Cell(#[from] zvf_precomputed::MortonError),
}

/// An export in progress.
pub(crate) struct Export<'a> {
    pub(crate) dataset: &'a Dataset,
    pub(crate) options: &'a ExportOptions,
    pub(crate) output: &'a OutputFolder,
    pub(crate) space: &'a ViewerSpace,
    pub(crate) meter: ProgressMeter,
}

/// Writes a store into a new folder. The folder appears when it is complete.
///
/// # Errors
///
/// [`ExportError`], if the store cannot be read, has no layer of the chosen kinds, or the folder
/// cannot be written.
pub async fn export(
    dataset: &Dataset,
    target: &Path,
    options: &ExportOptions,
    meter: ProgressMeter,
) -> Result<ExportReport, ExportError> {
    let possible = layers_of(dataset);
    let layers: Vec<LayerKind> = match options.layers.as_slice() {
        [] => possible.clone(),
        chosen => possible
            .iter()
            .copied()
            .filter(|kind| chosen.contains(kind))
            .collect(),
    };
    if layers.is_empty() {
        let names = |kinds: &[LayerKind]| -> String {
            let names: Vec<&str> = kinds.iter().map(|kind| kind.folder()).collect();
            names.join(", ")
        };
        return Err(ExportError::NoLayer(
            names(&options.layers),
            names(&possible),
        ));
    }
    let output = OutputFolder::create(target)?;
    let space = ViewerSpace::of(dataset);
    let work = Export {
        dataset,
        options,
        output: &output,
        space: &space,
        meter,
    };
    let mut notes = space.notes.clone();
    let survey = survey::survey(&work, &mut notes).await?;
    let mut written = Vec::new();
    for kind in layers {
        let layer = match kind {
            LayerKind::Annotations => annotations::write(&work, &survey, &mut notes).await?,
            LayerKind::Skeletons if survey.is_path => {
                skeletons::write_paths(&work, &survey, &mut notes).await?
            }
            LayerKind::Skeletons => links::write_skeletons(&work, &survey, &mut notes).await?,
            LayerKind::Meshes => links::write_meshes(&work, &survey, &mut notes).await?,
            LayerKind::Segments => segments::write_layer(&work, &survey.segments)?,
        };
        written.extend(layer);
    }
    notes.dedup();
    let files = output.publish()?;
    Ok(ExportReport {
        layers: written,
        files: files.files,
        bytes: files.bytes,
        notes,
        lower: survey.lower,
        upper: survey.upper,
        space,
    })
}

/// Returns the layers that the first kind of geometry of a store has.
fn layers_of(dataset: &Dataset) -> Vec<LayerKind> {
    let kind = dataset.root().geometry_kinds.first();
    let is_solid = ViewerSpace::of(dataset).nanometres().is_some();
    let layers: &[LayerKind] = match kind {
        Some(GeometryType::Line | GeometryType::Polyline | GeometryType::Streamline)
            if is_solid =>
        {
            &[LayerKind::Annotations, LayerKind::Skeletons]
        }
        Some(GeometryType::Line | GeometryType::Polyline | GeometryType::Streamline) => {
            &[LayerKind::Annotations]
        }
        Some(GeometryType::Skeleton | GeometryType::Graph) => &[LayerKind::Skeletons],
        Some(GeometryType::Mesh) => &[LayerKind::Meshes],
        _ => &[LayerKind::Annotations, LayerKind::Segments],
    };
    layers.to_vec()
}
