//! The root's attributes: what holds for the whole store.
//!
//! | attribute of the root | what is read |
//! |---|---|
//! | `zarr_vectors` | version, capabilities, chunk shape, bounds, kinds, conventions, bins |
//! | `multiscales[0].axes` | the axes; nothing else says how many there are |
//! | `multiscales[0].datasets` | the bins of each level: `scale` is the ratio to level 0, `translation` half a bin |
//! | `shard_layout`, `shard_size` | shards up to 0.8.0 |
//! | anything else, `ome` and `user_metadata` for two | kept |
//!
//! Reading needs axes and chunk shape, and the format demands `bounds` and
//! `geometry_types`: without one of them, or when axes and chunk shape do not
//! match, there is an error. Any other field that is wrong becomes a note.
//! Capabilities are names without consequences; the format has readers ignore
//! those they do not know.

use serde_json::Value;

use crate::{
    grid::{Bins, Bounds, ChunkShape},
    key::Key,
    level_id::LevelId,
    metadata::{
        Assumed, Attributes, Excerpt, Fields, JsonField, JsonKind, MetadataError, MetadataFault,
        MetadataNote, Noter,
    },
    name::words,
    version::Version,
    zarr::MAX_RANK,
};

words! {
    /// A kind of geometry.
    pub enum GeometryType as "a kind of geometry" {
        /// Points.
        PointCloud = "point_cloud",
        /// Lines of two ends.
        Line = "line",
        /// Lines of many vertices.
        Polyline = "polyline",
        /// Polylines along a flow.
        Streamline = "streamline",
        /// Trees.
        Skeleton = "skeleton",
        /// Nodes and edges.
        Graph = "graph",
        /// Faces.
        Mesh = "mesh",
    }
}

words! {
    /// How vertices are connected.
    pub enum LinksConvention as "a convention of links" {
        /// The links hold every connection.
        Explicit = "explicit",
        /// Rows that follow each other are connected.
        ImplicitSequential = "implicit_sequential",
        /// The same, and the links hold branches.
        ImplicitWithBranches = "implicit_sequential_with_branches",
    }
}

words! {
    /// How objects are found.
    pub enum ObjectIndexConvention as "a convention of the object index" {
        /// By manifests.
        Standard = "standard",
        /// Object i is fragment i. No writer known uses it.
        Identity = "identity",
    }
}

words! {
    /// How connections between chunks are kept.
    pub enum CrossChunkStrategy as "a strategy for links between chunks" {
        /// As links.
        ExplicitLinks = "explicit_links",
        /// As vertices that stand in both chunks.
        BoundaryDeduplication = "boundary_deduplication",
        /// Both.
        Both = "both",
    }
}

words! {
    /// Which links between levels are stored.
    pub enum CrossLevelStorage as "a storage of links between levels" {
        /// None.
        None = "none",
        /// From fine to coarse.
        Implicit = "implicit",
        /// Both ways.
        Explicit = "explicit",
    }
}

impl Default for LinksConvention {
    /// What absence means.
    fn default() -> Self {
        Self::ImplicitSequential
    }
}

impl Default for ObjectIndexConvention {
    /// What absence means.
    fn default() -> Self {
        Self::Standard
    }
}

impl Default for CrossChunkStrategy {
    /// What absence means.
    fn default() -> Self {
        Self::ExplicitLinks
    }
}

impl Default for CrossLevelStorage {
    /// What absence means.
    fn default() -> Self {
        Self::Explicit
    }
}

/// How many levels links between levels span when the root does not say.
pub const DEFAULT_CROSS_LEVEL_DEPTH: i32 = 1;
/// The reduction factor when the root does not say.
pub const DEFAULT_REDUCTION_FACTOR: u64 = 8;

/// An axis of space or time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// `space`, `time`, `channel`, …; absent when the root does not say.
    pub kind: Option<String>,
    /// Its unit, when known.
    pub unit: Option<String>,
}

/// The entry of one level in `multiscales`.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiscaleDataset {
    /// The level.
    pub level: LevelId,
    /// Bin shape of the level over that of level 0.
    pub scale: Option<Vec<f64>>,
    /// Half the bin shape of the level. At level 0 of streamed skeletons it is
    /// the coordinate offset instead.
    pub translation: Option<Vec<f64>>,
}

/// Shards of stores up to 0.8.0, as the root declares them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegacySharding {
    /// `octree`, `snake` or `index_table`. Readers need not know.
    pub layout: Option<String>,
    /// Chunks a shard.
    pub size: Option<u64>,
}

/// What the root of a store says.
///
/// Fields that the format leaves optional are `None` when absent, so that a
/// writer can tell; `unwrap_or_default` gives what absence means.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RootMetadata {
    /// The version; `None` when missing or malformed, with a note.
    pub version: Option<Version>,
    /// Tokens of what the store uses.
    pub capabilities: Vec<String>,
    /// The axes of vertices; one at least.
    pub axes: Vec<Axis>,
    /// Extent of a chunk; as many axes.
    pub chunk_shape: ChunkShape,
    /// Where the vertices are; `None` when malformed, with a note.
    pub bounds: Option<Bounds>,
    /// What the store holds, the first written first; may be empty.
    pub geometry_kinds: Vec<GeometryType>,
    /// A coordinate reference system, opaque.
    pub crs: Option<Value>,
    /// How vertices are connected.
    pub links_convention: Option<LinksConvention>,
    /// How objects are found.
    pub object_index_convention: Option<ObjectIndexConvention>,
    /// How connections between chunks are kept.
    pub cross_chunk_strategy: Option<CrossChunkStrategy>,
    /// How many levels links span at most, −1 for all.
    pub cross_level_depth: Option<i32>,
    /// Which links between levels are stored.
    pub cross_level_storage: Option<CrossLevelStorage>,
    /// Informational.
    pub reduction_factor: Option<u64>,
    /// Extent of a bin of level 0, as many axes; `None` is the chunk shape.
    pub base_bin_shape: Option<ChunkShape>,
    /// Declarations of attributes, by scope and name.
    pub attribute_specs: Option<Attributes>,
    /// What to add to stored coordinates, as many axes; zeros when absent.
    pub coordinate_offset: Option<Vec<f64>>,
    /// The entries of levels, in file order.
    pub datasets: Vec<MultiscaleDataset>,
    /// Shards of stores up to 0.8.0.
    pub legacy_sharding: Option<LegacySharding>,
    /// Fields of `zarr_vectors` that nobody here knows.
    pub unknown: Attributes,
    /// Attributes of the root beside `zarr_vectors` and `multiscales`.
    pub other: Attributes,
    /// What was read past.
    pub notes: Vec<MetadataNote>,
}

const BLOCK: &[&str] = &[
    "zv_version",
    "format_capabilities",
    "chunk_shape",
    "bounds",
    "geometry_types",
    "crs",
    "links_convention",
    "object_index_convention",
    "cross_chunk_strategy",
    "cross_level_depth",
    "cross_level_storage",
    "reduction_factor",
    "base_bin_shape",
    "attribute_specs",
    "coordinate_offset",
];
const BESIDE: &[&str] = &["zarr_vectors", "multiscales", "shard_layout", "shard_size"];

impl RootMetadata {
    /// Reads the attributes of the root; `key` is its `zarr.json`.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] when the block, axes, chunk shape, bounds or kinds are
    /// missing, or axes and chunk shape cannot be used.
    pub fn parse(key: &Key, attributes: &Attributes) -> Result<Self, MetadataError> {
        let fields = Fields::attributes(key, attributes);
        let block = fields.require("zarr_vectors")?.fields()?;
        let mut collected = Noter::default();
        let notes = &mut collected;

        let multiscale = multiscale(&fields, notes)?;
        let axes = multiscale.require("axes")?.each(read_axis)?;
        check_axes(&multiscale, &axes)?;
        let rank = axes.len();
        let chunk_at = block.require("chunk_shape")?;
        let chunk_shape = read_shape(&chunk_at, rank)?;
        let bounds_at = block.require("bounds")?;
        let bounds = notes.take(read_bounds(&bounds_at, rank), Assumed::Nothing);
        if bounds.as_ref().is_some_and(Bounds::is_empty) {
            notes.note(bounds_at.disagrees("its own order"), Assumed::AsFound);
        }
        let geometry_kinds = read_kinds(&block.require("geometry_types")?, notes)?;

        let version = read_version(&block, notes);
        let capabilities = block.get("format_capabilities");
        let capabilities = capabilities.map(|at| at.each(|item| item.text().map(str::to_owned)));
        let capabilities = capabilities.and_then(|read| notes.take(read, Assumed::Default));
        let base_bin_shape = notes.field(&block, "base_bin_shape", |at| read_shape(at, rank));
        if let Some(bin) = base_bin_shape.clone()
            && let Err(error) = Bins::new(&chunk_shape, bin)
        {
            notes.note(
                block.fault("base_bin_shape", error.into()),
                Assumed::AsFound,
            );
        }
        let depth = |at: &JsonField<'_>| {
            let depth = at.i64().ok().and_then(|depth| i32::try_from(depth).ok());
            let depth = depth.filter(|&depth| depth >= -1);
            depth.ok_or_else(|| at.no_integer(-1, i32::MAX.unsigned_abs().into()))
        };
        let reduction = |at: &JsonField<'_>| at.unsigned(2, u64::MAX);
        let offset = |at: &JsonField<'_>| at.exactly(rank, JsonField::number);
        Ok(Self {
            version,
            capabilities: capabilities.unwrap_or_default(),
            chunk_shape,
            bounds,
            geometry_kinds,
            crs: block.get("crs").map(|crs| crs.value().clone()),
            links_convention: notes.word(&block, "links_convention"),
            object_index_convention: notes.word(&block, "object_index_convention"),
            cross_chunk_strategy: notes.word(&block, "cross_chunk_strategy"),
            cross_level_depth: notes.field(&block, "cross_level_depth", depth),
            cross_level_storage: notes.word(&block, "cross_level_storage"),
            reduction_factor: notes.field(&block, "reduction_factor", reduction),
            base_bin_shape,
            attribute_specs: notes.field(&block, "attribute_specs", |at| {
                Ok(at.fields()?.map().clone())
            }),
            coordinate_offset: notes.field(&block, "coordinate_offset", offset),
            datasets: read_datasets(&multiscale, rank, notes),
            legacy_sharding: read_sharding(&fields, notes),
            unknown: block.without(BLOCK),
            other: fields.without(BESIDE),
            axes,
            notes: collected.finish(),
        })
    }

    /// The entry of a level in `multiscales`, the first when there are more.
    pub fn dataset(&self, level: LevelId) -> Option<&MultiscaleDataset> {
        self.datasets.iter().find(|dataset| dataset.level == level)
    }

    /// Levels that are behind: a finer one was changed since they were made of it.
    /// Ours, as edits leave it; what is no number of a level is not looked at.
    pub fn stale_levels(&self) -> impl Iterator<Item = LevelId> + '_ {
        let listed = self.other.get("zvf_stale_levels").and_then(Value::as_array);
        let numbers = listed.into_iter().flatten().filter_map(Value::as_u64);
        let numbers = numbers.filter_map(|number| u32::try_from(number).ok());
        numbers.map(LevelId::new)
    }

    /// Extent of a bin of level 0.
    pub fn bin_shape(&self) -> &ChunkShape {
        self.base_bin_shape.as_ref().unwrap_or(&self.chunk_shape)
    }
}

/// The first entry of `multiscales`, which should be the only one.
fn multiscale<'a>(fields: &Fields<'a>, notes: &mut Noter) -> Result<Fields<'a>, MetadataError> {
    let at = fields.require("multiscales")?;
    let list = at.list()?;
    let (expected, found) = (1, list.len());
    let length = || at.error(MetadataFault::Length { expected, found });
    let Some(first) = list.first() else {
        return Err(length());
    };
    if found > expected {
        notes.note(length(), Assumed::Nothing);
    }
    at.item(0, first).fields()
}

fn read_axis(at: &JsonField<'_>) -> Result<Axis, MetadataError> {
    // Older NGFF has bare names.
    if JsonKind::of(at.value()) == JsonKind::Text {
        return Ok(Axis {
            name: at.text()?.to_owned(),
            kind: None,
            unit: None,
        });
    }
    let fields = at.fields()?;
    let text = |name| {
        let text = fields.get(name).map(|at| at.text().map(str::to_owned));
        text.transpose()
    };
    Ok(Axis {
        name: fields.require("name")?.text()?.to_owned(),
        kind: text("type")?,
        unit: text("unit")?,
    })
}

fn check_axes(multiscale: &Fields<'_>, axes: &[Axis]) -> Result<(), MetadataError> {
    let (found, limit) = (axes.len(), MAX_RANK.saturating_sub(1));
    if found == 0 {
        let expected = 1;
        return Err(multiscale.fault("axes", MetadataFault::Length { expected, found }));
    }
    // One more is for chunks by attribute.
    if found > limit {
        return Err(multiscale.fault("axes", MetadataFault::Rank { found, limit }));
    }
    Ok(())
}

/// Extents of chunks or bins, each above 0.
pub(crate) fn read_shape(at: &JsonField<'_>, rank: usize) -> Result<ChunkShape, MetadataError> {
    let extents = at.exactly(rank, JsonField::positive)?;
    ChunkShape::new(&extents).map_err(|_| {
        let limit = MAX_RANK;
        at.error(MetadataFault::Rank { found: rank, limit })
    })
}

fn read_bounds(at: &JsonField<'_>, rank: usize) -> Result<Bounds, MetadataError> {
    let corners = at.exactly(2, |corner| corner.exactly(rank, JsonField::number))?;
    let corner = |at: usize| corners.get(at).map(Vec::as_slice).unwrap_or_default();
    Bounds::new(corner(0), corner(1)).map_err(|_| {
        at.error(MetadataFault::Length {
            expected: rank,
            found: 0,
        })
    })
}

fn read_kinds(at: &JsonField<'_>, notes: &mut Noter) -> Result<Vec<GeometryType>, MetadataError> {
    let mut kinds = Vec::new();
    for item in at.items()? {
        kinds.push(notes.known(&item, item.text()?));
    }
    Ok(kinds)
}

fn read_version(block: &Fields<'_>, notes: &mut Noter) -> Option<Version> {
    let structure = Assumed::FromStructure;
    let at = notes.take(block.require("zv_version"), structure)?;
    let text = notes.take(at.text(), structure)?;
    let malformed = |_| at.unknown_word(text, "a version X.Y or X.Y.Z");
    notes.take(Version::parse(text).map_err(malformed), structure)
}

fn read_datasets(
    multiscale: &Fields<'_>,
    rank: usize,
    notes: &mut Noter,
) -> Vec<MultiscaleDataset> {
    let datasets = notes.take(multiscale.require("datasets"), Assumed::Nothing);
    let items = datasets.and_then(|at| notes.take(at.items(), Assumed::Nothing));
    let mut datasets: Vec<MultiscaleDataset> = Vec::new();
    for item in items.into_iter().flatten() {
        let Some(dataset) = notes.take(read_dataset(&item, rank), Assumed::Nothing) else {
            continue;
        };
        if datasets.iter().any(|other| other.level == dataset.level) {
            let twice = Excerpt::of(&dataset.level.to_string());
            notes.note(item.error(MetadataFault::Twice(twice)), Assumed::Nothing);
            continue;
        }
        datasets.push(dataset);
    }
    datasets
}

fn read_dataset(item: &JsonField<'_>, rank: usize) -> Result<MultiscaleDataset, MetadataError> {
    let fields = item.fields()?;
    let path = fields.require("path")?;
    let level = LevelId::parse(path.text()?);
    let level = level.ok_or_else(|| {
        let found = path.text().unwrap_or_default();
        path.unknown_word(found, "a level number")
    })?;
    let mut dataset = MultiscaleDataset {
        level,
        scale: None,
        translation: None,
    };
    let Some(transformations) = fields.get("coordinateTransformations") else {
        return Ok(dataset);
    };
    for transformation in transformations.items()? {
        let fields = transformation.fields()?;
        match fields.require("type")?.text()? {
            "scale" => {
                let scale = fields.require("scale")?;
                dataset.scale = Some(scale.exactly(rank, JsonField::positive)?);
            }
            "translation" => {
                let translation = fields.require("translation")?;
                // Half a bin, but for the offset that may stand at level 0.
                let number = match level {
                    LevelId::FULL => JsonField::number,
                    _ => JsonField::positive,
                };
                dataset.translation = Some(translation.exactly(rank, number)?);
            }
            other => {
                let at = fields.require("type")?;
                return Err(at.unknown_word(other, "a scale or translation"));
            }
        }
    }
    Ok(dataset)
}

fn read_sharding(fields: &Fields<'_>, notes: &mut Noter) -> Option<LegacySharding> {
    if fields.get("shard_layout").is_none() && fields.get("shard_size").is_none() {
        return None;
    }
    Some(LegacySharding {
        layout: notes.field(fields, "shard_layout", |at| at.text().map(str::to_owned)),
        size: notes.field(fields, "shard_size", JsonField::u64),
    })
}
