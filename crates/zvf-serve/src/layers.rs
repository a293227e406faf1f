//! Stores as layers of Neuroglancer: annotations, skeletons, meshes and properties of segments.

pub(crate) mod annotations;
pub(crate) mod attributes;
pub(crate) mod coarse_first;
pub(crate) mod float_positions;
pub(crate) mod levels;
pub(crate) mod meshes;
pub(crate) mod path_ids;
pub(crate) mod segments;
pub(crate) mod shaders;
pub(crate) mod shapes;
pub(crate) mod skeletons;
pub(crate) mod space;
pub(crate) mod survey;

use zvf::{Dataset, Query};
use zvf_catalog::{CatalogError, Selection, Skipped};
use zvf_model::{geometry_kind::GeometryKind, level::LevelId};
use zvf_precomputed::PrecomputedError;
use zvf_query::LevelChoice;

use crate::spill::SpillError;
use space::ViewerSpace;

/// A kind of layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LayerKind {
    /// Points, lines or polylines with properties and a spatial index.
    Annotations,
    /// A skeleton per object.
    Skeletons,
    /// A mesh per object, with levels of detail.
    Meshes,
    /// Properties of objects without a shape.
    Segments,
    /// A skeleton per group of paths, and properties of groups.
    Groups,
    /// The values of a dense array.
    Volume,
}

impl LayerKind {
    /// The kinds of layers of stores.
    pub const OF_STORES: [Self; 5] = [
        Self::Annotations,
        Self::Skeletons,
        Self::Meshes,
        Self::Segments,
        Self::Groups,
    ];

    /// Returns the name of the folder.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Annotations => "annotations",
            Self::Skeletons => "skeletons",
            Self::Meshes => "meshes",
            Self::Segments => "segments",
            Self::Groups => "groups",
            Self::Volume => "volume",
        }
    }

    /// Returns the name of the folder of a coarser level.
    pub(crate) fn folder_of(self, level: LevelId) -> String {
        match level {
            LevelId::FULL => self.folder().to_owned(),
            level => format!("{}_level{level}", self.folder()),
        }
    }

    /// Returns the layers that the first kind of geometry of a store has.
    pub(crate) fn of(dataset: &Dataset) -> Vec<Self> {
        let is_solid = ViewerSpace::of(dataset).nanometres().is_some();
        let layers: &[Self] = match dataset.root().first_kind() {
            Some(kind) if kind.is_paths() && is_solid => {
                &[Self::Annotations, Self::Skeletons, Self::Groups]
            }
            Some(kind) if kind.is_paths() => &[Self::Annotations, Self::Groups],
            Some(GeometryKind::Graphs) if is_solid => &[Self::Annotations, Self::Skeletons],
            Some(GeometryKind::Graphs) => &[Self::Annotations],
            Some(GeometryKind::Skeletons) => &[Self::Skeletons],
            Some(GeometryKind::Mesh) => &[Self::Meshes],
            _ => &[Self::Annotations, Self::Segments, Self::Groups],
        };
        layers.to_vec()
    }
}

/// A layer of a store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Layer {
    /// The kind.
    pub kind: LayerKind,
    /// The level of the store that the layer shows.
    pub level: LevelId,
    /// Annotations, or segments.
    pub items: u64,
    /// Code that colours the layer.
    pub shader: Option<String>,
    /// The first segments, which a viewer shows.
    pub shown: Vec<u64>,
    /// Annotations name the segments that they belong to.
    pub is_related: bool,
    /// The map that the viewer applies to the coordinates; `None` draws them as they are stored.
    pub(crate) transform: Option<SourceTransform>,
}

impl Layer {
    /// Returns the name of the folder.
    pub fn folder(&self) -> String {
        self.kind.folder_of(self.level)
    }
}

/// An affine map of the coordinates x, y and z of a source.
#[derive(Clone, Debug)]
pub(crate) struct SourceTransform {
    /// Factors of the input coordinates, and a shift, for each output coordinate.
    pub(crate) rows: [[f64; 4]; 3],
    /// Units of the input coordinates, in metres.
    pub(crate) input: [f64; 3],
    /// Unit of the output coordinates, in metres.
    pub(crate) output: f64,
}

/// An error of the conversion of a store to layers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] zvf::Error),
    /// A value does not fit the format.
    #[error("a value cannot be encoded")]
    Value(#[from] PrecomputedError),
    /// The store has nothing to show.
    #[error("the store has no vertex with finite coordinates, so there is nothing to show")]
    Empty,
    /// Skeletons and meshes of a store whose axes are not three axes of space.
    #[error(
        "skeletons and meshes need three axes of space and no others; see the {0} axes of the store with \
         `zvf info`"
    )]
    Axes(usize),
    /// Points that a level completes with those of coarser levels, which have no row ids.
    #[error(
        "points of level 0 are stored on coarser levels too, where they have no ids to serve them by; export \
         the store with `zvf export precomputed`"
    )]
    Additive,
    /// A response that would take too much memory.
    #[error("{0} has more than {1} bytes; export the store, or build a coarser level of it")]
    TooLarge(&'static str, usize),
    /// A temporary file cannot be written or read.
    #[error("a temporary file cannot be used")]
    Temporary(#[source] std::io::Error),
    /// The process ends during a request.
    #[error("the response was interrupted")]
    Ended,
    /// The vertices of an object are not stored together.
    #[error(
        "the vertices of the object are in more than {0} places among those of other objects; export the store"
    )]
    Scattered(usize),
    /// Triangles that are so close to each other that the octree does not divide them.
    #[error(
        "a part of the mesh has more than {0} triangles, all close to each other; export the store"
    )]
    Dense(usize),
    /// A part of the store is damaged.
    #[error("{key} is damaged: {reason}")]
    Damaged {
        /// The object or array.
        key: String,
        /// The problem.
        reason: String,
    },
    /// The groups cannot be read.
    #[error("the groups cannot be read")]
    Groups(#[from] CatalogError),
}

impl From<SpillError> for LayerError {
    fn from(error: SpillError) -> Self {
        Self::Temporary(match error {
            SpillError::Record => std::io::ErrorKind::FileTooLarge.into(),
            SpillError::File { source, .. } => source,
        })
    }
}

/// Fails if a query that leaves out absent members of groups has left out damaged parts too.
///
/// [`Query::keep_going`] skips both.
pub(crate) fn check_undamaged(skipped: &[Skipped]) -> Result<(), LayerError> {
    match skipped.iter().find(|part| !part.is_absent) {
        Some(Skipped { key, reason, .. }) => Err(LayerError::Damaged {
            key: key.to_string(),
            reason: reason.clone(),
        }),
        None => Ok(()),
    }
}

/// A callback for progress: the number of finished parts, and of all parts, which may grow.
pub(crate) type Report<'a> = dyn Fn(u64, u64) + Send + Sync + 'a;

/// A store that is converted.
#[derive(Clone, Copy)]
pub(crate) struct LayerInput<'a> {
    pub(crate) dataset: &'a Dataset,
    /// Names of the attributes to read; all if `None`.
    pub(crate) properties: Option<&'a [String]>,
    pub(crate) space: &'a ViewerSpace,
    /// The level that is read.
    pub(crate) level: LevelId,
    /// Maximum number of objects whose ids are kept.
    pub(crate) max_ids: usize,
    pub(crate) report: &'a Report<'a>,
}

impl<'a> LayerInput<'a> {
    /// Begins to read level 0.
    pub(crate) fn new(
        dataset: &'a Dataset,
        properties: Option<&'a [String]>,
        space: &'a ViewerSpace,
        report: &'a Report<'a>,
    ) -> Self {
        Self {
            dataset,
            properties,
            space,
            level: LevelId::FULL,
            max_ids: usize::MAX,
            report,
        }
    }

    /// Returns the query for the whole level with the chosen attributes.
    pub(crate) fn query(&self) -> Query {
        let columns = match self.properties {
            None => Selection::All,
            Some(names) => {
                Selection::Named(names.iter().map(|name| (None, name.clone())).collect())
            }
        };
        let level = LevelChoice::Number(self.level);
        Query::new()
            .columns(columns)
            .level(level)
            .counter_clockwise(true)
    }
}
