//! Attributes of the root, which apply to the whole store.
//!
//! | attribute of the root | content |
//! |---|---|
//! | `zarr_vectors` | version, capabilities, chunk shape, bounds, kinds, conventions, bins |
//! | `multiscales[0].axes` | the axes; the only declaration of their number |
//! | `multiscales[0].datasets` | the bins of each level: `scale` is the ratio to level 0, `translation` half a bin |
//! | `shard_layout`, `shard_size` | shards up to 0.8.0 |
//! | anything else, for example `ome` and `user_metadata` | kept |
//!
//! Reading requires axes and chunk shape, and the format requires `bounds` and `geometry_types`: it
//! is an error if one of them is missing, or if axes and chunk shape do not match. Any other
//! invalid field becomes a note. The names in `format_capabilities` are informational; readers ignore
//! unknown ones, as the format requires. Those in `required_capabilities` are conditions: reading a
//! root that requires an unknown capability is an error, because results would be incomplete.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    generation::Generation,
    geometry_kind::GeometryKind,
    grid::{Bins, Bounds, ChunkShape},
    key::Key,
    level_id::LevelId,
    metadata::{
        Assumed, Attributes, Excerpt, Fields, JsonField, JsonKind, JsonMembers, MetadataError,
        MetadataFault, MetadataNote, Noter,
    },
    node_copy::HEAD,
    stale_levels,
    version::Version,
    word::{Word, words},
    zarr::MAX_RANK,
};

words! {
    /// Connection of vertices.
    pub enum LinksConvention as "a convention of links" {
        /// The links contain every connection.
        Explicit = "explicit",
        /// Consecutive rows are connected.
        ImplicitSequential = "implicit_sequential",
        /// Consecutive rows are connected, and the links contain branches.
        ImplicitWithBranches = "implicit_sequential_with_branches",
    }
}

words! {
    /// Lookup of objects.
    pub enum ObjectIndexConvention as "a convention of the object index" {
        /// By manifests.
        Standard = "standard",
        /// Object i is fragment i. No known writer uses it.
        Identity = "identity",
    }
}

words! {
    /// Storage of connections between chunks.
    pub enum CrossChunkStrategy as "a strategy for links between chunks" {
        /// Links between chunks.
        ExplicitLinks = "explicit_links",
        /// Vertices on the border are stored in both chunks.
        BoundaryDeduplication = "boundary_deduplication",
        /// Both.
        Both = "both",
    }
}

words! {
    /// Order of the corners of faces, seen from outside of the surface.
    pub enum WindingOrder as "an order of the corners of faces" {
        /// Normals by the right-hand rule point outward.
        CounterClockwise = "ccw",
        /// Normals by the right-hand rule point inward.
        Clockwise = "cw",
    }
}

words! {
    /// Links between levels that are stored. An absent field stands for both directions.
    pub enum CrossLevel as "a storage of links between levels" {
        /// No links.
        None = "none",
        /// A link from each vertex to its vertex in the coarser level.
        Implicit = "implicit",
        /// Links in both directions.
        Explicit = "explicit",
    }
}

impl LinksConvention {
    /// Returns the convention that stores of a kind of geometry are written with.
    pub fn of(kind: GeometryKind) -> Self {
        match kind {
            GeometryKind::Graphs | GeometryKind::Mesh => Self::Explicit,
            GeometryKind::Skeletons => Self::ImplicitWithBranches,
            _ => Self::ImplicitSequential,
        }
    }
}

impl Default for LinksConvention {
    /// Returns the value that an absent field stands for.
    fn default() -> Self {
        Self::ImplicitSequential
    }
}

impl Default for ObjectIndexConvention {
    /// Returns the value that an absent field stands for.
    fn default() -> Self {
        Self::Standard
    }
}

impl Default for CrossChunkStrategy {
    /// Returns the value that an absent field stands for.
    fn default() -> Self {
        Self::ExplicitLinks
    }
}

impl Default for WindingOrder {
    /// Returns the value that an absent field stands for.
    fn default() -> Self {
        Self::CounterClockwise
    }
}

/// Capabilities that a root may require, because this workspace implements them.
pub const UNDERSTOOD_CAPABILITIES: &[&str] = &[
    "additive_levels",
    "dense_manifests",
    "fragment_index",
    "fragment_link_groups",
    "multiscale_links",
    "preserved_object_ids",
    "shared_fragments",
];

/// Default reduction factor.
pub const DEFAULT_REDUCTION_FACTOR: u64 = 8;

/// An axis of space or time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// `space`, `time`, `channel`, …; absent if undeclared.
    pub kind: Option<String>,
    /// Its unit, if known.
    pub unit: Option<String>,
}

impl Axis {
    /// Returns the axis as `multiscales` and collections have it.
    pub fn to_json(&self) -> Value {
        JsonMembers::default()
            .with("name", self.name.as_str())
            .with_some("type", self.kind.as_deref())
            .with_some("unit", self.unit.as_deref())
            .into()
    }
}

/// The entry of one level in `multiscales`.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiscaleDataset {
    /// The level.
    pub level: LevelId,
    /// Bin shape of the level over that of level 0.
    pub scale: Option<Vec<f64>>,
    /// Half the bin shape of the level. At level 0 of streamed skeletons it is the coordinate
    /// offset.
    pub translation: Option<Vec<f64>>,
}

impl MultiscaleDataset {
    /// Creates the entry of a level with bins of this extent, given that of level 0.
    pub fn of_bins(level: LevelId, bin: &[f64], base: &[f64]) -> Self {
        let ratio = bin.iter().zip(base).map(|(bin, base)| bin / base);
        Self {
            level,
            scale: Some(ratio.collect()),
            translation: Some(bin.iter().map(|extent| extent / 2.0).collect()),
        }
    }

    /// Returns the entry.
    pub fn to_json(&self) -> Value {
        let transformation = |name: &str, numbers: &Option<Vec<f64>>| {
            let numbers = numbers.clone()?;
            let members = JsonMembers::default()
                .with("type", name)
                .with(name, numbers);
            Some(Value::from(members))
        };
        let scale = transformation("scale", &self.scale);
        let translation = transformation("translation", &self.translation);
        let all: Vec<Value> = scale.into_iter().chain(translation).collect();
        JsonMembers::default()
            .with("path", self.level.to_string())
            .with_some(TRANSFORMATIONS, (!all.is_empty()).then_some(all))
            .into()
    }
}

/// The inventory of a sealed store.
const INVENTORY: &str = "zvf_seal";
/// The attribute of the collection, for readers of OME-Zarr.
const COLLECTION: &str = "ome";

/// The collection of the levels of a store from 0.9 on.
#[derive(Clone, Debug, PartialEq)]
pub struct Collection {
    /// Its name.
    pub name: String,
    /// The axes, as `multiscales` has them.
    pub axes: Value,
    /// The levels.
    pub levels: Vec<LevelId>,
}

impl Collection {
    /// Returns the attribute.
    pub fn to_json(&self) -> Value {
        let system = JsonMembers::default()
            .with("name", "world")
            .with("axes", self.axes.clone());
        let scene = JsonMembers::default()
            .with("coordinateSystems", [system])
            .with("coordinateTransformations", Vec::<Value>::new());
        let nodes: Value = self.levels.iter().copied().map(Self::node).collect();
        JsonMembers::default()
            .with("version", "0.6")
            .with("type", "collection")
            .with("name", self.name.as_str())
            .with("attributes", JsonMembers::default().with("scene", scene))
            .with("nodes", nodes)
            .into()
    }

    /// Returns the entry of a level.
    fn node(level: LevelId) -> Value {
        JsonMembers::default()
            .with("type", "zv:level")
            .with("name", level.to_string())
            .into()
    }
}

/// The attributes of the root of a store that changes.
///
/// Members that do not change keep their place and value, even if they are invalid.
#[derive(Debug)]
pub struct RootChange<'a>(&'a mut Attributes);

impl<'a> RootChange<'a> {
    /// Begins to change the attributes of a root.
    pub fn of(attributes: &'a mut Attributes) -> Self {
        Self(attributes)
    }

    fn block(&mut self) -> Option<&mut Attributes> {
        self.0.get_mut(BLOCK).and_then(Value::as_object_mut)
    }

    fn put(&mut self, member: &str, value: impl Into<Value>) {
        if let Some(block) = self.block() {
            block.insert(member.to_owned(), value.into());
        }
    }

    /// Sets the version.
    pub fn set_version(&mut self, version: Version) {
        self.put(VERSION, version.to_string());
    }

    /// Sets the lower and the upper bound of each axis.
    pub fn set_bounds(&mut self, lower: &[f64], upper: &[f64]) {
        self.put(BOUNDS, [lower, upper].map(<[f64]>::to_vec));
    }

    /// Sets the links between levels: how many levels they span, and which are stored.
    pub fn set_cross_level(&mut self, depth: CrossLevelDepth, storage: &str) {
        self.put(CROSS_LEVEL_DEPTH, depth.number());
        self.put(CROSS_LEVEL_STORAGE, storage);
    }

    /// Lists a capability that the store uses, once.
    pub fn use_capability(&mut self, name: &str) {
        self.list(CAPABILITIES, name);
    }

    /// Lists a capability that readers have to implement, once.
    pub fn require_capability(&mut self, name: &str) {
        self.list(REQUIRED, name);
    }

    fn list(&mut self, list: &str, name: &str) {
        let Some(block) = self.block() else { return };
        let tokens = block
            .entry(list)
            .or_insert_with(|| Value::Array(Vec::new()));
        let Some(tokens) = tokens.as_array_mut() else {
            return;
        };
        if !tokens.iter().any(|token| token == name) {
            tokens.push(name.into());
        }
    }

    /// Keeps the used capabilities that satisfy `is_kept`. The list exists afterwards.
    pub fn retain_capabilities(&mut self, is_kept: impl Fn(&str) -> bool) {
        let Some(block) = self.block() else { return };
        let mut tokens = match block.get(CAPABILITIES) {
            Some(Value::Array(tokens)) => tokens.clone(),
            _ => Vec::new(),
        };
        tokens.retain(|token| token.as_str().is_none_or(&is_kept));
        block.insert(CAPABILITIES.to_owned(), Value::Array(tokens));
    }

    /// Keeps the used and the required capabilities that satisfy `is_kept`.
    pub fn retain_all_capabilities(&mut self, is_kept: impl Fn(&str) -> bool) {
        let Some(block) = self.block() else { return };
        for list in [CAPABILITIES, REQUIRED] {
            if let Some(tokens) = block.get_mut(list).and_then(Value::as_array_mut) {
                tokens.retain(|token| token.as_str().is_none_or(&is_kept));
            }
        }
        // An empty list of requirements is left out.
        let required = block.get(REQUIRED).and_then(Value::as_array);
        if required.is_some_and(Vec::is_empty) {
            block.remove(REQUIRED);
        }
    }

    /// Sets the entry of a level, in the order of levels.
    pub fn put_dataset(&mut self, dataset: &MultiscaleDataset) {
        let path = dataset.level.to_string();
        let Some(datasets) = self.datasets() else {
            return;
        };
        let path_of = |entry: &Value| entry.get("path").and_then(Value::as_str).map(str::to_owned);
        datasets.retain(|entry| path_of(entry).as_ref() != Some(&path));
        datasets.push(dataset.to_json());
        datasets.sort_by_key(|entry| path_of(entry).and_then(|path| path.parse::<u64>().ok()));
    }

    /// Adds the bins of a level to its entry, if it has one without them: a root of 0.10 names the levels
    /// only.
    pub fn add_bins(&mut self, dataset: &MultiscaleDataset) {
        let path = dataset.level.to_string();
        let entries = self.datasets().into_iter().flatten();
        for entry in entries.filter_map(Value::as_object_mut) {
            if entry.get("path").and_then(Value::as_str) == Some(&path) {
                if let (false, Value::Object(bins)) =
                    (entry.contains_key(TRANSFORMATIONS), dataset.to_json())
                {
                    entry.extend(bins);
                }
            }
        }
    }

    /// Removes the entries of levels that satisfy `is_gone` from `multiscales` and the collection.
    pub fn remove_levels(&mut self, is_gone: impl Fn(LevelId) -> bool) {
        let stays = |entry: &Value, member: &str| {
            let name = entry.get(member).and_then(Value::as_str);
            !name.and_then(LevelId::parse).is_some_and(&is_gone)
        };
        if let Some(datasets) = self.datasets() {
            datasets.retain(|entry| stays(entry, "path"));
        }
        if let Some(nodes) = self.nodes() {
            nodes.retain(|entry| stays(entry, "name"));
        }
    }

    fn datasets(&mut self) -> Option<&mut Vec<Value>> {
        let multiscale = self.0.get_mut(MULTISCALES)?.get_mut(0)?;
        multiscale.get_mut("datasets")?.as_array_mut()
    }

    fn nodes(&mut self) -> Option<&mut Vec<Value>> {
        let collection = self.0.get_mut(COLLECTION)?;
        collection.get_mut("nodes")?.as_array_mut()
    }

    /// Adds a level to the collection, if there is one.
    pub fn put_in_collection(&mut self, level: LevelId) {
        let node = Collection::node(level);
        if let Some(nodes) = self.nodes().filter(|nodes| !nodes.contains(&node)) {
            nodes.push(node);
        }
    }

    /// Adds a collection with the axes of `multiscales`, unless there is one.
    pub fn add_collection(&mut self, name: &str, levels: Vec<LevelId>) {
        if self.0.contains_key(COLLECTION) {
            return;
        }
        let scales = self.0.get(MULTISCALES).and_then(|scales| scales.get(0));
        let axes = scales.and_then(|scales| scales.get("axes")).cloned();
        let collection = Collection {
            name: name.to_owned(),
            axes: axes.unwrap_or_else(|| Value::Array(Vec::new())),
            levels,
        };
        self.0.insert(COLLECTION.to_owned(), collection.to_json());
    }

    /// Removes the state of transactions and the inventory of files, which belong to one store only.
    pub fn remove_transactions(&mut self) {
        self.0.remove(HEAD);
        self.0.remove(INVENTORY);
    }

    /// Removes the declaration of shards of stores up to 0.8.0.
    pub fn remove_legacy_sharding(&mut self) {
        self.0.remove(SHARD_LAYOUT);
        self.0.remove(SHARD_SIZE);
    }
}

/// Declaration of shards in stores up to 0.8.0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegacySharding {
    /// `octree`, `snake` or `index_table`. Readers need not know.
    pub layout: Option<String>,
    /// Chunks a shard.
    pub size: Option<u64>,
}

/// Declarations of attributes, by scope and name.
///
/// Stores keep all members. `unit` and `description` are texts; `channel_names`, a list of texts,
/// names the channels of the attribute.
pub type AttributeDeclarations = BTreeMap<String, BTreeMap<String, Attributes>>;

/// Maximum number of levels that links between levels span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrossLevelDepth {
    /// Every number, stored as −1.
    All,
    /// This number, at most 2³¹ − 1; 0 for no links. [`of_number`](Self::of_number) checks it.
    Levels(u32),
}

impl CrossLevelDepth {
    /// Returns the depth that a number means; `None` if it is below −1 or above 2³¹ − 1.
    pub fn of_number(number: i64) -> Option<Self> {
        match u32::try_from(i32::try_from(number).ok()?) {
            Ok(levels) => Some(Self::Levels(levels)),
            Err(_) => (number == -1).then_some(Self::All),
        }
    }

    /// Returns the number as stored.
    pub fn number(self) -> i64 {
        match self {
            Self::All => -1,
            Self::Levels(levels) => levels.into(),
        }
    }
}

/// Metadata of the root of a store.
///
/// Optional fields of the format are `None` if absent, so that writers can distinguish them;
/// `unwrap_or_default` returns their default.
#[derive(Clone, Debug, PartialEq)]
pub struct RootMetadata {
    /// The version; `None` if missing or malformed, with a note.
    pub version: Option<Version>,
    /// Names of features that the store uses.
    pub capabilities: Vec<String>,
    /// Names of features that a reader has to implement; all of them are
    /// [understood](UNDERSTOOD_CAPABILITIES).
    pub required_capabilities: Vec<String>,
    /// The axes of vertices; at least one.
    pub axes: Vec<Axis>,
    /// Extent of a chunk, with the same number of axes.
    pub chunk_shape: ChunkShape,
    /// Bounds of the vertices; `None` if malformed, with a note.
    pub bounds: Option<Bounds>,
    /// Kinds of geometry in the store, in order of first write; may be empty.
    pub geometry_kinds: Vec<Word<GeometryKind>>,
    /// A coordinate reference system, opaque.
    pub crs: Option<Value>,
    /// Connection of vertices.
    pub links_convention: Option<Word<LinksConvention>>,
    /// Lookup of objects.
    pub object_index_convention: Option<Word<ObjectIndexConvention>>,
    /// Storage of connections between chunks.
    pub cross_chunk_strategy: Option<Word<CrossChunkStrategy>>,
    /// Order of the corners of faces. Read from the block, or from the attributes of the root beside it.
    pub winding_order: Option<Word<WindingOrder>>,
    /// Maximum number of levels that links span.
    pub cross_level_depth: Option<CrossLevelDepth>,
    /// Stored links between levels.
    pub cross_level_storage: Option<Word<CrossLevel>>,
    /// Informational.
    pub reduction_factor: Option<u64>,
    /// Extent of a bin of level 0, with the same number of axes; the chunk shape if `None`.
    pub base_bin_shape: Option<ChunkShape>,
    /// Declarations of attributes, by scope and name.
    pub attribute_specs: Option<Attributes>,
    /// Offset added to stored coordinates, with the same number of axes; zeros if absent.
    pub coordinate_offset: Option<Vec<f64>>,
    /// The entries of levels, in file order.
    pub datasets: Vec<MultiscaleDataset>,
    /// Layout of the manifests of object indexes that are added later, a draft after 0.9.2. Each
    /// index declares its own.
    pub manifest_layout: Option<String>,
    /// Chunks per shard along each axis, for arrays that are added later; a draft after 0.9.2.
    /// The metadata of each array decides about that array.
    pub shard_shape: Option<Vec<u64>>,
    /// Shards of stores up to 0.8.0.
    pub legacy_sharding: Option<LegacySharding>,
    /// Fields of `zarr_vectors` unknown to this crate.
    pub unknown: Attributes,
    /// Members of the entry in `multiscales` other than axes and levels.
    pub multiscale: Attributes,
    /// Attributes of the root other than `zarr_vectors` and `multiscales`.
    pub other: Attributes,
    /// Tolerated faults.
    pub notes: Vec<MetadataNote>,
}

/// The attribute of the store.
const BLOCK: &str = "zarr_vectors";
const VERSION: &str = "zv_version";
const CAPABILITIES: &str = "format_capabilities";
const REQUIRED: &str = "required_capabilities";
const BOUNDS: &str = "bounds";
const WINDING_ORDER: &str = "winding_order";
const CROSS_LEVEL_DEPTH: &str = "cross_level_depth";
const CROSS_LEVEL_STORAGE: &str = "cross_level_storage";
const SHARD_LAYOUT: &str = "shard_layout";
const SHARD_SIZE: &str = "shard_size";
/// The attribute of axes and levels.
const MULTISCALES: &str = "multiscales";
const TRANSFORMATIONS: &str = "coordinateTransformations";

const MEMBERS: &[&str] = &[
    VERSION,
    CAPABILITIES,
    REQUIRED,
    "chunk_shape",
    BOUNDS,
    "geometry_types",
    "crs",
    "links_convention",
    "object_index_convention",
    "cross_chunk_strategy",
    WINDING_ORDER,
    CROSS_LEVEL_DEPTH,
    CROSS_LEVEL_STORAGE,
    "reduction_factor",
    "base_bin_shape",
    "attribute_specs",
    "coordinate_offset",
    "shard_shape",
    "manifest_layout",
];
const BESIDE: &[&str] = &[BLOCK, MULTISCALES, WINDING_ORDER, SHARD_LAYOUT, SHARD_SIZE];

/// Capability of stores whose objects keep their ids in coarser levels.
pub const PRESERVED_OBJECT_IDS: &str = "preserved_object_ids";
/// Capability of stores in which several objects share a fragment.
pub const SHARED_FRAGMENTS: &str = "shared_fragments";
/// Capability of stores with links between levels.
pub const MULTISCALE_LINKS: &str = "multiscale_links";
/// Capability of stores with a [dense](crate::array::ObjectIndexLayout::Dense) object index.
pub const DENSE_MANIFESTS: &str = "dense_manifests";

/// Value of [`RootMetadata::manifest_layout`] for a dense object index.
pub const DENSE_LAYOUT: &str = "dense";

impl RootMetadata {
    /// Creates the metadata of a store with these axes, chunks and bounds.
    pub fn new(
        version: Version,
        axes: Vec<Axis>,
        chunk_shape: ChunkShape,
        bounds: Option<Bounds>,
    ) -> Self {
        let format = JsonMembers::default().with("format", BLOCK);
        let multiscale = JsonMembers::default()
            .with("version", "0.4")
            .with("name", "default")
            .with("metadata", format);
        Self {
            version: Some(version),
            capabilities: Vec::new(),
            required_capabilities: Vec::new(),
            axes,
            chunk_shape,
            bounds,
            geometry_kinds: Vec::new(),
            crs: None,
            links_convention: None,
            object_index_convention: None,
            cross_chunk_strategy: None,
            winding_order: None,
            cross_level_depth: None,
            cross_level_storage: None,
            reduction_factor: None,
            base_bin_shape: None,
            attribute_specs: None,
            coordinate_offset: None,
            datasets: Vec::new(),
            manifest_layout: None,
            shard_shape: None,
            legacy_sharding: None,
            unknown: Attributes::new(),
            multiscale: multiscale.finish(),
            other: Attributes::new(),
            notes: Vec::new(),
        }
    }

    /// Returns the attributes of the root.
    pub fn to_attributes(&self) -> Attributes {
        let required = &self.required_capabilities;
        let required = (!required.is_empty()).then(|| required.clone());
        let bounds = self.bounds.as_ref();
        let bounds = bounds.map(|bounds| [bounds.lower().to_vec(), bounds.upper().to_vec()]);
        let kinds: Value = self.geometry_kinds.iter().map(Word::as_str).collect();
        let links = self.links_convention.as_ref();
        let objects = self.object_index_convention.as_ref();
        let cross_chunk = self.cross_chunk_strategy.as_ref();
        let winding = self.winding_order.as_ref();
        let cross_level = self.cross_level_storage.as_ref();
        let bin = self.base_bin_shape.as_ref();
        let block = JsonMembers::default()
            .with_some(VERSION, self.version.map(|version| version.to_string()))
            .with(CAPABILITIES, self.capabilities.clone())
            .with_some("manifest_layout", self.manifest_layout.as_deref())
            .with("chunk_shape", self.chunk_shape.extents())
            .with_some(BOUNDS, bounds)
            .with("geometry_types", kinds)
            .with_some("crs", self.crs.clone())
            .with_some("links_convention", links.map(Word::as_str))
            .with_some("object_index_convention", objects.map(Word::as_str))
            .with_some("cross_chunk_strategy", cross_chunk.map(Word::as_str))
            .with_some(WINDING_ORDER, winding.map(Word::as_str))
            .with_some("base_bin_shape", bin.map(ChunkShape::extents))
            .with_some("attribute_specs", self.attribute_specs.clone())
            .with_some(
                CROSS_LEVEL_DEPTH,
                self.cross_level_depth.map(CrossLevelDepth::number),
            )
            .with_some(CROSS_LEVEL_STORAGE, cross_level.map(Word::as_str))
            .with_some("reduction_factor", self.reduction_factor)
            .with_some("coordinate_offset", self.coordinate_offset.clone())
            .with_some("shard_shape", self.shard_shape.clone())
            .with_some(REQUIRED, required)
            .with_all(&self.unknown);
        let axes: Value = self.axes.iter().map(Axis::to_json).collect();
        let datasets: Value = self
            .datasets
            .iter()
            .map(MultiscaleDataset::to_json)
            .collect();
        let sharding = self.legacy_sharding.as_ref();
        let layout = sharding.and_then(|sharding| sharding.layout.as_deref());
        // These members come first, as in other writers.
        let rest = self.multiscale.iter();
        let (first, last): (Vec<_>, Vec<_>) =
            rest.partition(|(name, _)| ["version", "name"].contains(&name.as_str()));
        let copied = |members: Vec<(&String, &Value)>| -> Attributes {
            let members = members.into_iter();
            members.map(|(k, v)| (k.clone(), v.clone())).collect()
        };
        let multiscale = JsonMembers::of(copied(first))
            .with("axes", axes)
            .with("datasets", datasets)
            .with_all(&copied(last));
        JsonMembers::default()
            .with(BLOCK, block)
            .with(MULTISCALES, [multiscale])
            .with_some(SHARD_LAYOUT, layout)
            .with_some(SHARD_SIZE, sharding.and_then(|sharding| sharding.size))
            .with_all(&self.other)
            .finish()
    }

    /// Reads the attributes of the root; `key` is its `zarr.json`.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if the block, axes, chunk shape, bounds or kinds are missing, axes and
    /// chunk shape are unusable, or the store requires a capability that is not understood.
    pub fn parse(key: &Key, attributes: &Attributes) -> Result<Self, MetadataError> {
        let fields = Fields::attributes(key, attributes);
        let block = fields.require(BLOCK)?.fields()?;
        // Before everything else: what an unknown capability changes is not known.
        let required_capabilities = read_required(&block)?;
        let mut collected = Noter::default();
        let notes = &mut collected;

        let multiscale = multiscale(&fields, notes)?;
        let axes = multiscale.require("axes")?.each(read_axis)?;
        check_axes(&multiscale, &axes)?;
        let rank = axes.len();
        let chunk_at = block.require("chunk_shape")?;
        let chunk_shape = read_shape(&chunk_at, rank)?;
        let bounds_at = block.require(BOUNDS)?;
        let bounds = notes.take(read_bounds(&bounds_at, rank), Assumed::Nothing);
        if bounds.as_ref().is_some_and(Bounds::is_empty) {
            notes.note(bounds_at.disagrees("its own order"), Assumed::AsFound);
        }
        let geometry_kinds = read_kinds(&block.require("geometry_types")?, notes)?;

        let version = read_version(&block, notes);
        let capabilities = block
            .get(CAPABILITIES)
            .map(|at| at.each(|item| item.text().map(str::to_owned)))
            .and_then(|read| notes.take(read, Assumed::Default));
        let base_bin_shape = notes.field(&block, "base_bin_shape", |at| read_shape(at, rank));
        let bins = base_bin_shape
            .clone()
            .map(|bin| Bins::new(&chunk_shape, bin));
        if let Some(Err(error)) = bins {
            notes.note(
                block.fault("base_bin_shape", error.into()),
                Assumed::AsFound,
            );
        }
        let depth = |at: &JsonField<'_>| {
            let depth = at.i64().ok().and_then(CrossLevelDepth::of_number);
            depth.ok_or_else(|| at.no_integer(-1, i32::MAX.unsigned_abs().into()))
        };
        let reduction = |at: &JsonField<'_>| at.unsigned(2, u64::MAX);
        let offset = |at: &JsonField<'_>| at.exactly(rank, JsonField::number);
        let winding = block.get(WINDING_ORDER).map_or(&fields, |_| &block);
        Ok(Self {
            version,
            capabilities: capabilities.unwrap_or_default(),
            required_capabilities,
            chunk_shape,
            bounds,
            geometry_kinds,
            crs: block.get("crs").map(|crs| crs.value().clone()),
            links_convention: notes.word(&block, "links_convention"),
            object_index_convention: notes.word(&block, "object_index_convention"),
            cross_chunk_strategy: notes.word(&block, "cross_chunk_strategy"),
            winding_order: notes.word(winding, WINDING_ORDER),
            cross_level_depth: notes.field(&block, CROSS_LEVEL_DEPTH, depth),
            cross_level_storage: notes.word(&block, CROSS_LEVEL_STORAGE),
            reduction_factor: notes.field(&block, "reduction_factor", reduction),
            base_bin_shape,
            attribute_specs: notes.field(&block, "attribute_specs", |at| {
                Ok(at.fields()?.map().clone())
            }),
            coordinate_offset: notes.field(&block, "coordinate_offset", offset),
            datasets: read_datasets(&multiscale, rank, notes),
            manifest_layout: notes
                .field(&block, "manifest_layout", |at| at.text().map(str::to_owned)),
            shard_shape: notes.field(&block, "shard_shape", |at| read_shard_shape(at, rank)),
            legacy_sharding: read_sharding(&fields, notes),
            unknown: block.without(MEMBERS),
            multiscale: multiscale.without(&["axes", "datasets"]),
            other: fields.without(BESIDE),
            axes,
            notes: collected.finish(),
        })
    }

    /// Returns whether the root lists a capability, as used or as required.
    pub fn has_capability(&self, token: &str) -> bool {
        let mut listed = self.capabilities.iter().chain(&self.required_capabilities);
        listed.any(|listed| listed == token)
    }

    /// Iterates over the declared kinds of geometry that the format defines.
    pub fn kinds(&self) -> impl Iterator<Item = GeometryKind> + '_ {
        self.geometry_kinds.iter().filter_map(Word::known)
    }

    /// Returns the first declared kind of geometry, if the format defines it.
    pub fn first_kind(&self) -> Option<GeometryKind> {
        self.geometry_kinds.first()?.known()
    }

    /// Returns the order of the corners of faces; the default if the declared word is unknown.
    pub fn winding(&self) -> WindingOrder {
        let declared = self.winding_order.as_ref();
        declared.and_then(Word::known).unwrap_or_default()
    }

    /// Returns whether the root declares a kind of geometry.
    pub fn holds(&self, kind: GeometryKind) -> bool {
        self.kinds().any(|declared| declared == kind)
    }

    /// Returns the entry of a level in `multiscales`, the first if there are several.
    pub fn dataset(&self, level: LevelId) -> Option<&MultiscaleDataset> {
        self.datasets.iter().find(|dataset| dataset.level == level)
    }

    /// Iterates over stale levels: a finer level was changed since they were built from it. An
    /// extension of this library, maintained by edits; entries that are not level numbers are
    /// ignored.
    pub fn stale_levels(&self) -> impl Iterator<Item = LevelId> + '_ {
        stale_levels::listed(&self.other)
    }

    /// Adds the collection of a store of 0.9.
    pub fn set_collection(&mut self, name: &str) {
        let axes = self.axes.iter().map(Axis::to_json).collect();
        let levels = self.datasets.iter().map(|dataset| dataset.level);
        let collection = Collection {
            name: name.to_owned(),
            axes,
            levels: levels.collect(),
        };
        self.other
            .insert(COLLECTION.to_owned(), collection.to_json());
    }

    /// Returns whether a level is [stale](Self::stale_levels).
    pub fn is_stale(&self, level: LevelId) -> bool {
        self.stale_levels().any(|stale| stale == level)
    }

    /// Returns whether directed links name the parent first where they lead to another chunk. In 0.9,
    /// only the writer that streams skeletons chunk by chunk makes their links directed, and it names
    /// the child first inside chunks only.
    pub fn names_parents_first(&self, generation: Generation) -> bool {
        generation.is_current()
            && self.links_convention == Some(Word::Known(LinksConvention::ImplicitWithBranches))
    }

    /// Returns the extent of a bin of level 0.
    pub fn bin_shape(&self) -> &ChunkShape {
        self.base_bin_shape.as_ref().unwrap_or(&self.chunk_shape)
    }
}

/// Returns the first entry of `multiscales`, which should be the only one.
fn multiscale<'a>(fields: &Fields<'a>, notes: &mut Noter) -> Result<Fields<'a>, MetadataError> {
    let at = fields.require(MULTISCALES)?;
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
    // The additional axis is for chunking by attribute.
    if found > limit {
        return Err(multiscale.fault("axes", MetadataFault::Rank { found, limit }));
    }
    Ok(())
}

/// Reads extents of chunks or bins, each above 0.
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

fn read_kinds(
    at: &JsonField<'_>,
    notes: &mut Noter,
) -> Result<Vec<Word<GeometryKind>>, MetadataError> {
    let mut kinds = Vec::new();
    for item in at.items()? {
        kinds.push(notes.known(&item, item.text()?));
    }
    Ok(kinds)
}

fn read_version(block: &Fields<'_>, notes: &mut Noter) -> Option<Version> {
    let structure = Assumed::FromStructure;
    let at = notes.take(block.require(VERSION), structure)?;
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
    let level = LevelId::parse(path.text()?).ok_or_else(|| {
        let found = path.text().unwrap_or_default();
        path.unknown_word(found, "a level number")
    })?;
    let mut dataset = MultiscaleDataset {
        level,
        scale: None,
        translation: None,
    };
    let Some(transformations) = fields.get(TRANSFORMATIONS) else {
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
                // Half a bin, except that level 0 may have an offset.
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

/// Reads the capabilities that a reader has to implement.
fn read_required(block: &Fields<'_>) -> Result<Vec<String>, MetadataError> {
    let Some(at) = block.get(REQUIRED) else {
        return Ok(Vec::new());
    };
    let tokens = at.each(|item| item.text().map(str::to_owned))?;
    let is_unknown = |token: &&String| !UNDERSTOOD_CAPABILITIES.contains(&token.as_str());
    let unknown: Vec<&str> = tokens
        .iter()
        .filter(is_unknown)
        .map(String::as_str)
        .collect();
    if unknown.is_empty() {
        Ok(tokens)
    } else {
        Err(at.error(MetadataFault::Capabilities(Excerpt::of(
            &unknown.join(", "),
        ))))
    }
}

/// Reads the chunks per shard along each axis: a list, or one number for all axes.
fn read_shard_shape(at: &JsonField<'_>, rank: usize) -> Result<Vec<u64>, MetadataError> {
    let chunks = |at: &JsonField<'_>| at.unsigned(1, u64::MAX);
    match JsonKind::of(at.value()) {
        JsonKind::List => at.exactly(rank, chunks),
        _ => Ok(vec![chunks(at)?; rank]),
    }
}

fn read_sharding(fields: &Fields<'_>, notes: &mut Noter) -> Option<LegacySharding> {
    if fields.get(SHARD_LAYOUT).is_none() && fields.get(SHARD_SIZE).is_none() {
        return None;
    }
    Some(LegacySharding {
        layout: notes.field(fields, SHARD_LAYOUT, |at| at.text().map(str::to_owned)),
        size: notes.field(fields, SHARD_SIZE, JsonField::u64),
    })
}
