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
pub(crate) use state::{viewer_link, viewer_state};

/// A kind of layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LayerKind {
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
    /// Returns the name of the folder.
    pub(crate) fn folder(self) -> &'static str {
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
pub(crate) struct ExportOptions {
    /// The layers; all that the kind of geometry has if empty.
    pub(crate) layers: Vec<LayerKind>,
    /// Names of the attributes to write; all if `None`.
    pub(crate) properties: Option<Vec<String>>,
    /// Whether small indexes are written as shards, too.
    pub(crate) sharded: bool,
}

/// A layer that was written.
#[derive(Clone, Debug)]
pub(crate) struct ExportedLayer {
    pub(crate) kind: LayerKind,
    /// Annotations, or segments.
    pub(crate) items: u64,
    /// Code that colours the layer.
    pub(crate) shader: Option<String>,
    /// The first segments, which a viewer shows.
    pub(crate) shown: Vec<u64>,
    /// Whether annotations name the segments that they belong to.
    pub(crate) is_related: bool,
}

/// What an export wrote.
#[derive(Clone, Debug)]
pub(crate) struct ExportReport {
    pub(crate) layers: Vec<ExportedLayer>,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) notes: Vec<String>,
    pub(crate) space: ViewerSpace,
    pub(crate) lower: Vec<f64>,
    pub(crate) upper: Vec<f64>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ExportError {
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
pub(crate) async fn export(
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
