//! Design of a new store: geometry kind, profile, chunks, compression and metadata.

use zvf_format::numeric::Kind;
use zvf_model::{
    draco::PositionBits,
    generation::Generation,
    json::{Headers, Json},
    layout::{Layout, LevelKeys},
    level::LevelId,
    root::{AttributeDeclarations, WindingOrder},
    version::Version,
    zarr::CellCompression,
};

use crate::{GeometryKind, parametric::FormulaSet};

/// Generation and form of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Profile {
    /// Generation 0.9, as `zarr-vectors` 0.9 reads and writes it.
    #[default]
    V09,
    /// Generation 0.10, a preview: cells and paths of 0.9, and attributes as a convention of Zarr. No
    /// other program reads it yet, and details may change until `zarr-vectors` writes it.
    V10,
    /// Generation 0.8: one byte array for each chunk; links between chunks have cells of their own.
    V08,
    /// Generation 0.8 with vertices, vertex attributes and links as dense, padded numeric arrays.
    Padded,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 4] = [Self::V09, Self::V10, Self::V08, Self::Padded];

    /// Returns the name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::V09 => "0.9",
            Self::V10 => "0.10",
            Self::V08 => "0.8",
            Self::Padded => "0.8-padded",
        }
    }

    /// Returns the format version that stores of the profile declare.
    pub(crate) fn version(self) -> Version {
        match self {
            Self::V09 => Version::new(0, 9, 2),
            Self::V10 => Version::new(0, 10, 0),
            _ => Version::new(0, 8, 0),
        }
    }

    /// Returns the layout of stores of the profile.
    pub fn layout(self) -> Layout {
        match self {
            Self::V09 => Layout::of(Generation::V0_9),
            Self::V10 => Layout::of(Generation::V0_10),
            Self::V08 => Layout::of(Generation::V0_8_0),
            Self::Padded => Layout::PADDED,
        }
    }

    /// Returns the profile of stores of a generation, if there is one.
    pub fn of_layout(layout: &Layout) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.name() == layout.profile())
    }

    /// Returns whether cells and paths are those of 0.9.
    pub fn is_current(self) -> bool {
        self.layout().generation.is_current()
    }

    /// Returns whether the generation is a [preview](Generation::is_preview).
    pub fn is_preview(self) -> bool {
        self.layout().generation.is_preview()
    }

    /// Returns the nodes of a level of a store of the profile.
    pub fn keys(self, level: LevelId) -> LevelKeys {
        let layout = self.layout();
        LevelKeys { layout, level }
    }
}

/// Checksums of cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CellChecksums {
    /// On in stores from 0.9 on, off in older ones.
    #[default]
    Auto,
    /// Every cell carries a checksum.
    On,
    /// No cell carries a checksum.
    Off,
}

/// Form of the object index, which lists the fragments of each object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ManifestForm {
    /// A byte string for each object, as all readers know it.
    #[default]
    Manifests,
    /// Rows of numbers, a draft for 0.9.4: readers of other programs may not know it. Such stores
    /// cannot be changed, except by migration, which writes the other form.
    Dense,
}

/// Steps of paths that are stored as links, although the order of vertices implies them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StepLinks {
    /// None under the profile 0.9, and [`Between`](Self::Between) before 0.9.
    #[default]
    None,
    /// The steps between chunks.
    Between,
    /// All steps: those inside chunks too, in the order of the path. Each fragment of vertices has a
    /// fragment of links.
    All,
}

impl StepLinks {
    /// The words of [`parse`](Self::parse).
    pub const WORDS: &'static str = "between or all";

    /// Returns the steps that a word names.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "between" => Some(Self::Between),
            "all" => Some(Self::All),
            _ => None,
        }
    }

    /// Returns the word that names these steps; `None` for no steps.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Between => Some("between"),
            Self::All => Some("all"),
        }
    }
}

/// Number of cells in one object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ShardingPolicy {
    /// One object for each cell.
    #[default]
    None,
    /// Shards of about 16 MiB.
    Auto,
    /// Shards of this many chunks along each axis.
    Shape(Vec<u64>),
}

impl ShardingPolicy {
    /// Returns the policy that suits a store at an address: [`Auto`](Self::Auto) in a bucket, where
    /// each object costs a request, and [`None`](Self::None) in a folder, where a change rewrites
    /// less without shards.
    pub fn for_address(address: &str) -> Self {
        if address.contains("://") {
            Self::Auto
        } else {
            Self::None
        }
    }
}

/// Policy for vertices outside the bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutOfBounds {
    /// Fail before anything is written.
    #[default]
    Reject,
    /// Drop them, together with the paths and links that use them.
    Drop,
    /// Extend the bounds to include them.
    Expand,
}

/// Expected access pattern, which decides the size of cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Purpose {
    /// Objects, boxes and whole reads: cells of about 512 KiB if there are objects. `Lookup` for
    /// meshes, and `Scan` for other geometry without objects.
    #[default]
    Auto,
    /// Reads of single objects and boxes: cells of about 128 KiB.
    Lookup,
    /// Scans of the whole store: cells of about 1 MiB.
    Scan,
}

/// Axis of the coordinate system.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AxisSpec {
    /// Name.
    pub name: String,
    /// Type, usually `space`.
    pub kind: String,
    /// Full name of the unit.
    pub unit: Option<String>,
}

impl AxisSpec {
    /// Creates an axis of space without a unit.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: "space".to_owned(),
            unit: None,
        }
    }

    zvf_model::setters! {
        kind: into String,
        unit: into String,
    }
}

/// Design of a new store: geometry kind, profile, chunks, compression and metadata.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "independent options")]
pub struct Design {
    /// Kind of geometry.
    pub kind: GeometryKind,
    /// Generation and form.
    pub profile: Profile,
    /// Extent of a chunk along each axis.
    pub chunk_shape: Option<Vec<f64>>,
    /// Extent of a bin along each axis. Bins sort points without objects inside a chunk.
    pub bin_shape: Option<Vec<f64>>,
    /// Type that coordinates are stored as; `None` keeps the type of the input.
    pub dtype: Option<Kind>,
    /// Compression of cells.
    pub compression: CellCompression,
    /// Compression of tables: object manifests, groups, and attributes of both. `None` compresses
    /// them as cells, or with Zstandard if cells are not compressed: they are small and compress
    /// well.
    pub table_compression: Option<CellCompression>,
    /// Checksums of cells.
    pub checksums: CellChecksums,
    /// Bits of a coordinate of vertices that are encoded with Draco; `None` stores them as they are.
    /// Draco rounds positions to steps of the extent of a chunk's vertices. Triangles inside chunks
    /// without attributes become part of the streams.
    pub draco: Option<PositionBits>,
    /// Number of cells in one object.
    pub sharding: ShardingPolicy,
    /// `true` if the order of link ends is significant. Undirected links are stored in canonical
    /// order. Links of skeletons always name the child first, then the parent.
    pub directed: bool,
    /// `true` if every chunk that a link touches stores a copy of it.
    pub duplicate: bool,
    /// Steps of paths that are stored as links too. Readers take the steps from the object manifests;
    /// with small chunks the links are most of the files.
    pub step_links: StepLinks,
    /// `true` if the attributes of links between chunks are one array each, with a row for each link,
    /// instead of a cell for each cell of links. Only stores before 0.9 have this form.
    pub flat_link_attributes: bool,
    /// `true` if the fragment attribute `object_id` stores the object of each fragment. Edits and coarser
    /// levels keep it.
    pub fragment_owners: bool,
    /// Order of the corners of the faces of a mesh, seen from outside; counter-clockwise if `None`. Faces
    /// are stored as they are.
    pub winding: Option<WindingOrder>,
    /// Form of the object index.
    pub object_index: ManifestForm,
    /// Lower and upper bound of each axis; `None` takes the extent of the vertices.
    pub bounds: Option<(Vec<f64>, Vec<f64>)>,
    /// Policy for vertices outside the bounds.
    pub out_of_bounds: OutOfBounds,
    /// Expected access pattern.
    pub purpose: Purpose,
    /// Axes; `None` gives spatial axes x, y, z, w and so on.
    pub axes: Option<Vec<AxisSpec>>,
    /// Coordinate reference system, stored without changes.
    pub crs: Option<Json>,
    /// Name of the collection.
    pub name: Option<String>,
    /// Units, descriptions and channel names of attributes.
    pub attribute_specs: AttributeDeclarations,
    /// Parametric objects.
    pub parametric: Option<FormulaSet>,
    /// Headers of source files, by format.
    pub headers: Headers,
}

impl Design {
    /// Creates a design with defaults for a kind of geometry.
    ///
    /// ```
    /// use zvf_build::{CellCompression, Design, GeometryKind};
    ///
    /// let design = Design::new(GeometryKind::Points)
    ///     .chunk_shape([10.0; 3])
    ///     .compression(CellCompression::Zstd(1));
    /// assert_eq!(design.chunk_shape, Some(vec![10.0; 3]));
    /// ```
    pub fn new(kind: GeometryKind) -> Self {
        Self {
            kind,
            profile: Profile::default(),
            chunk_shape: None,
            bin_shape: None,
            dtype: None,
            compression: CellCompression::default(),
            table_compression: None,
            checksums: CellChecksums::default(),
            draco: None,
            sharding: ShardingPolicy::default(),
            directed: false,
            duplicate: false,
            step_links: StepLinks::None,
            flat_link_attributes: false,
            fragment_owners: false,
            winding: None,
            object_index: ManifestForm::default(),
            bounds: None,
            out_of_bounds: OutOfBounds::default(),
            purpose: Purpose::default(),
            axes: None,
            crs: None,
            name: None,
            attribute_specs: AttributeDeclarations::new(),
            parametric: None,
            headers: Headers::default(),
        }
    }

    zvf_model::setters! {
        attribute_specs: AttributeDeclarations,
        axes: Vec<AxisSpec>,
        bin_shape: into Vec<f64>,
        checksums: CellChecksums,
        chunk_shape: into Vec<f64>,
        compression: CellCompression,
        crs: into Json,
        directed: bool,
        draco: PositionBits,
        dtype: Kind,
        duplicate: bool,
        flat_link_attributes: bool,
        fragment_owners: bool,
        headers: Headers,
        name: into String,
        object_index: ManifestForm,
        out_of_bounds: OutOfBounds,
        parametric: FormulaSet,
        profile: Profile,
        purpose: Purpose,
        sharding: ShardingPolicy,
        step_links: StepLinks,
        table_compression: CellCompression,
        winding: WindingOrder,
    }

    /// Sets the lower and the upper bound of each axis.
    #[must_use]
    pub fn bounds(mut self, lower: impl Into<Vec<f64>>, upper: impl Into<Vec<f64>>) -> Self {
        self.bounds = Some((lower.into(), upper.into()));
        self
    }

    /// Returns whether steps of paths between chunks are stored as links.
    pub fn has_step_links(&self) -> bool {
        self.step_links != StepLinks::None || !self.profile.is_current()
    }

    /// Returns whether the level has an array of links inside chunks.
    pub(crate) fn has_links_inside(&self) -> bool {
        self.kind.is_linked() || self.has_steps_inside()
    }

    /// Returns whether steps of paths inside chunks are stored as links.
    pub(crate) fn has_steps_inside(&self) -> bool {
        self.kind.is_paths() && self.step_links == StepLinks::All
    }

    /// Returns whether cells share objects.
    pub(crate) fn is_sharded(&self) -> bool {
        self.sharding != ShardingPolicy::None
    }

    /// Returns whether cells carry checksums.
    pub fn has_checksums(&self) -> bool {
        match self.checksums {
            CellChecksums::Auto => self.profile.is_current(),
            CellChecksums::On => true,
            CellChecksums::Off => false,
        }
    }
}
