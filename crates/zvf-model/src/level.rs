//! Attributes of a level.
//!
//! Levels are the children of the root whose names are plain decimal numbers; 0 is the finest.
//! Reading a level requires none of its attributes, so only a block that is not an object, or an
//! unusable chunk shape, is an error; other faults become notes.
//!
//! The bins of a level come from its entry in `multiscales`: bin ratio is `scale`, bin shape twice
//! `translation`. Level attributes (`bin_shape`, `bin_ratio`, in old stores also `bin_size`) count only
//! if the entry has neither, as in 0.10.

use core::num::NonZeroU32;

use serde_json::Value;
use zvf_format::links::AxisScales;

use crate::{
    generation::Generation,
    grid::{Bins, BinsError, ChunkShape, ScaleError},
    key::Key,
    metadata::{
        Assumed, Attributes, Fields, JsonField, JsonKind, JsonMembers, MetadataError,
        MetadataFault, MetadataNote, Noter,
    },
    root::{MultiscaleDataset, RootMetadata, read_shape},
};

pub use crate::level_id::LevelId;

/// Chunking of a level by an attribute: chunk keys have a leading number, the index of the value.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeChunking {
    /// Name of the attribute.
    pub name: Option<String>,
    /// The value of each index.
    pub values: Vec<Value>,
    /// Names of all dimensions of chunk keys, the attribute's first.
    pub dims: Vec<String>,
}

impl AttributeChunking {
    /// Returns the leading coordinate of chunks with this value.
    pub fn index_of(&self, value: &Value) -> Option<usize> {
        let same = |other: &Value| match (other.as_f64(), value.as_f64()) {
            // 5 and 5.0 are one value; beyond 2^53 only the exact one counts.
            (Some(a), Some(b)) if other.is_f64() || value.is_f64() => a.to_bits() == b.to_bits(),
            _ => other == value,
        };
        self.values.iter().position(same)
    }
}

/// Relation of a level to the next coarser one, a draft of the format after 0.9.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refinement {
    /// The level holds its whole content.
    #[default]
    Replace,
    /// The level holds a part of its content, and the next coarser level holds the rest.
    Add,
}

/// Metadata of a level.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the format, independent of the others"
)]
pub struct LevelMetadata {
    /// Its number, from its name.
    pub level: LevelId,
    /// Share of the parent's objects that are kept; 1 if absent.
    pub object_sparsity: Option<f64>,
    /// Vertices of the last write. Unreliable.
    pub vertex_count: Option<u64>,
    /// Method by which it was built; `none` if absent.
    pub coarsening_method: Option<String>,
    /// The level from which it was built.
    pub parent_level: Option<LevelId>,
    /// Parts that exist. Unreliable.
    pub arrays_present: Vec<String>,
    /// Extent of a chunk; that of the root if `None`.
    pub chunk_shape: Option<ChunkShape>,
    /// Chunks by attribute.
    pub attribute_chunking: Option<AttributeChunking>,
    /// `true` if objects have the ids of the parent.
    pub preserves_object_ids: bool,
    /// Objects of the parent.
    pub inherited_num_objects: Option<u64>,
    /// `true` if objects share fragments.
    pub shared_fragments: bool,
    /// `true` if the fragments of every chunk are its rows in order, each once.
    pub fragments_tile: bool,
    /// Relation to the next coarser level.
    pub refinement: Refinement,
    /// `true` while the level is being built: its arrays do not list their chunks yet.
    pub is_unfinished: bool,
    /// `true` if the groups of links of every chunk are those of its fragments.
    pub fragment_link_groups: bool,
    /// Extent of a bin; `None` at level 0, where the root declares it.
    pub bin_shape: Option<ChunkShape>,
    /// Bin shape over that of level 0; `None` at level 0.
    pub bin_ratio: Option<Vec<f64>>,
    /// Fields of `zarr_vectors_level` unknown to this crate.
    pub unknown: Attributes,
    /// Attributes of the level other than `zarr_vectors_level`.
    pub other: Attributes,
    /// Tolerated faults.
    pub notes: Vec<MetadataNote>,
}

/// Attribute of levels: the recipe by which the level was built, an extension of this library.
pub const RECIPE: &str = "zvf_pyramid";
/// Attribute of levels that hold each point once.
const ADDITIVE: &str = "zvf_additive";

/// Capability that the root of a store with levels of [`Refinement::Add`] lists.
pub const ADDITIVE_LEVELS: &str = "additive_levels";

const FIELDS: &[&str] = &[
    "level",
    "object_sparsity",
    VERTEX_COUNT,
    "coarsening_method",
    "parent_level",
    ARRAYS_PRESENT,
    "chunk_shape",
    "chunk_dims",
    "chunk_attribute_name",
    "chunk_attribute_values",
    "preserves_object_ids",
    INHERITED,
    SHARED_FRAGMENTS,
    FRAGMENTS_TILE,
    REFINEMENT,
    PRESENCE,
    FRAGMENT_LINK_GROUPS,
    BIN_SHAPE,
    "bin_size",
    BIN_RATIO,
];

/// The attribute of the level.
const BLOCK: &str = "zarr_vectors_level";
const VERTEX_COUNT: &str = "vertex_count";
const INHERITED: &str = "inherited_num_objects";
const ARRAYS_PRESENT: &str = "arrays_present";
const FRAGMENTS_TILE: &str = "fragments_tile";
const SHARED_FRAGMENTS: &str = "shared_fragments";
const FRAGMENT_LINK_GROUPS: &str = "fragment_link_groups";
const REFINEMENT: &str = "refinement";
const PRESENCE: &str = "zarr_vectors_presence";
const DEFERRED: &str = "deferred";
const ADD: &str = "add";
/// Member of levels of 0.10 whose chunks are leaves of octrees, at the keys of their first cells.
const OCTREE_CHUNKS: &str = "octree_chunks";
const BIN_SHAPE: &str = "bin_shape";
const BIN_RATIO: &str = "bin_ratio";

/// Coarsening method of a level that was not built from another one.
pub const NO_METHOD: &str = "none";

impl LevelMetadata {
    /// Creates the metadata of an empty level that was not built from another one.
    pub fn new(level: LevelId) -> Self {
        Self {
            level,
            object_sparsity: Some(1.0),
            vertex_count: Some(0),
            coarsening_method: Some(NO_METHOD.to_owned()),
            parent_level: None,
            arrays_present: Vec::new(),
            chunk_shape: None,
            attribute_chunking: None,
            preserves_object_ids: false,
            inherited_num_objects: None,
            shared_fragments: false,
            fragments_tile: false,
            refinement: Refinement::Replace,
            is_unfinished: false,
            fragment_link_groups: false,
            bin_shape: None,
            bin_ratio: None,
            unknown: Attributes::new(),
            other: Attributes::new(),
            notes: Vec::new(),
        }
    }

    /// Returns the attributes of the level. Its bins are in the root.
    pub fn to_attributes(&self) -> Attributes {
        let parent = self.parent_level.map(LevelId::number);
        let parent = match parent {
            None if self.level == LevelId::FULL => Some(Value::Null),
            parent => parent.map(Value::from),
        };
        let chunking = self.attribute_chunking.as_ref();
        let dims = chunking.map(|chunking| chunking.dims.clone());
        let values = chunking.map(|chunking| chunking.values.clone());
        let presence = self.is_unfinished.then_some(DEFERRED);
        let refinement = (self.refinement == Refinement::Add).then_some(ADD);
        let chunk_shape = self.chunk_shape.as_ref();
        let block = JsonMembers::default()
            .with("level", self.level.number())
            .with_some("object_sparsity", self.object_sparsity)
            .with_some(VERTEX_COUNT, self.vertex_count)
            .with_some("coarsening_method", self.coarsening_method.as_deref())
            .with_some("parent_level", parent)
            .with(ARRAYS_PRESENT, self.arrays_present.clone())
            .with_some("chunk_shape", chunk_shape.map(ChunkShape::extents))
            .with_some("chunk_dims", dims)
            .with_some(
                "chunk_attribute_name",
                chunking.and_then(|chunking| chunking.name.as_deref()),
            )
            .with_some("chunk_attribute_values", values)
            .with_flag("preserves_object_ids", self.preserves_object_ids)
            .with_some(INHERITED, self.inherited_num_objects)
            .with_flag(SHARED_FRAGMENTS, self.shared_fragments)
            .with_flag(FRAGMENTS_TILE, self.fragments_tile)
            .with_flag(FRAGMENT_LINK_GROUPS, self.fragment_link_groups)
            .with_some(REFINEMENT, refinement)
            .with_some(PRESENCE, presence)
            .with_all(&self.unknown);
        JsonMembers::default()
            .with(BLOCK, block)
            .with_all(&self.other)
            .finish()
    }

    /// Reads the attributes of level `level`; `key` is its `zarr.json`.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if the block is not an object, its chunk shape is unusable, its refinement
    /// is unknown or contradictory, its presence is unknown, or its chunks are leaves of octrees.
    pub fn parse(
        key: &Key,
        level: LevelId,
        attributes: &Attributes,
        root: &RootMetadata,
    ) -> Result<Self, MetadataError> {
        let outer = Fields::attributes(key, attributes);
        let mut collected = Noter::default();
        let notes = &mut collected;
        let rank = root.axes.len();
        let none = Value::Object(Attributes::new());
        let given = outer.get(BLOCK);
        let block = match &given {
            Some(block) => block.fields()?,
            None => JsonField::document(key, &none).fields()?,
        };
        if given.is_some() {
            check_number(&block, level, notes);
        } else {
            let missing = outer.fault(BLOCK, MetadataFault::Missing);
            notes.note(missing, Assumed::Default);
        }

        if let Some(at) = block.get(OCTREE_CHUNKS) {
            return Err(at.error(MetadataFault::OctreeChunks));
        }
        let chunk_shape = block
            .get("chunk_shape")
            .map(|at| read_shape(&at, rank))
            .transpose()?;
        let scale = chunk_shape
            .as_ref()
            .map(|shape| shape.scale_over(&root.chunk_shape));
        if let Some(Err(error)) = scale {
            notes.note(block.fault("chunk_shape", error.into()), Assumed::AsFound);
        }
        let mut required = |name: &str| {
            if given.is_some() && block.get(name).is_none() {
                notes.note(block.fault(name, MetadataFault::Missing), Assumed::Nothing);
            }
        };
        required(VERTEX_COUNT);
        required(ARRAYS_PRESENT);
        let texts = |at: &JsonField<'_>| at.each(|item| item.text().map(str::to_owned));
        let text = |at: &JsonField<'_>| at.text().map(str::to_owned);
        let sparsity = |at: &JsonField<'_>| match at.number()? {
            share if share > 0.0 && share <= 1.0 => Ok(share),
            found => Err(at.error(MetadataFault::Range {
                found,
                expected: "above 0 and at most 1",
            })),
        };
        let mut flag = |name| {
            let flag = notes.field(&block, name, JsonField::boolean);
            flag.unwrap_or_default()
        };
        let preserves_object_ids = flag("preserves_object_ids");
        let shared_fragments = flag(SHARED_FRAGMENTS);
        let fragments_tile = flag(FRAGMENTS_TILE);
        let fragment_link_groups = flag(FRAGMENT_LINK_GROUPS);
        let refinement = read_refinement(&outer, &block)?;
        let is_unfinished = read_presence(&block)? || read_presence(&outer)?;
        let (bin_shape, bin_ratio) = read_bins(&block, level, root, notes);
        Ok(Self {
            level,
            object_sparsity: notes.field(&block, "object_sparsity", sparsity),
            vertex_count: notes.field(&block, VERTEX_COUNT, JsonField::u64),
            coarsening_method: notes.field(&block, "coarsening_method", text),
            parent_level: notes
                .field(&block, "parent_level", JsonField::u32)
                .map(LevelId::new),
            arrays_present: notes
                .field(&block, ARRAYS_PRESENT, texts)
                .unwrap_or_default(),
            attribute_chunking: read_attribute_chunking(&block, rank)?,
            chunk_shape,
            preserves_object_ids,
            inherited_num_objects: notes.field(&block, INHERITED, JsonField::u64),
            shared_fragments,
            fragments_tile,
            refinement,
            is_unfinished,
            fragment_link_groups,
            bin_shape,
            bin_ratio,
            unknown: block.without(FIELDS),
            other: outer.without(&[BLOCK, PRESENCE]),
            notes: collected.finish(),
        })
    }

    /// Returns whether its points are on no coarser level, so that it is drawn together with the
    /// coarser levels. Level 0 is always complete. An extension of this library, like stale levels;
    /// other readers ignore it.
    pub fn is_additive(&self) -> bool {
        self.level != LevelId::FULL && (is_additive(&self.other) || is_additive(&self.unknown))
    }

    /// Declares whether the points of the level are on no coarser level.
    pub fn set_additive(&mut self, is_additive: bool) {
        remove_additive(&mut self.other);
        if is_additive {
            self.other.insert(ADDITIVE.to_owned(), true.into());
        }
    }

    /// Returns the extent of a chunk of the level.
    pub fn effective_chunk_shape<'a>(&'a self, root: &'a RootMetadata) -> &'a ChunkShape {
        self.chunk_shape.as_ref().unwrap_or(&root.chunk_shape)
    }

    /// Returns the level's chunk shape over the root's, along each axis in space.
    ///
    /// # Errors
    ///
    /// [`ScaleError`] if the ratio is not an integer.
    pub fn scale(&self, root: &RootMetadata) -> Result<Vec<NonZeroU32>, ScaleError> {
        self.effective_chunk_shape(root)
            .scale_over(&root.chunk_shape)
    }

    /// Returns the scales between the chunk keys of this level and those of `target`, for links to
    /// `target`: one pair for each number of a key.
    ///
    /// # Errors
    ///
    /// [`ScaleError`] if a level's chunks are not an integer multiple of the root's.
    pub fn link_scales(
        &self,
        target: &Self,
        root: &RootMetadata,
    ) -> Result<Vec<AxisScales>, ScaleError> {
        let leading = self
            .attribute_chunking
            .is_some()
            .then_some(AxisScales::EQUAL);
        let axes = self
            .scale(root)?
            .into_iter()
            .zip(target.scale(root)?)
            .map(|(source, target)| AxisScales { source, target });
        Ok(leading.into_iter().chain(axes).collect())
    }

    /// Returns the number of coordinates in chunk keys of the level.
    pub fn arity(&self, root: &RootMetadata) -> usize {
        let leading = usize::from(self.attribute_chunking.is_some());
        root.axes.len().saturating_add(leading)
    }

    /// Returns the extent of a bin of the level: its own, or the root's at level 0; the chunk shape
    /// if undeclared.
    pub fn effective_bin_shape<'a>(&'a self, root: &'a RootMetadata) -> &'a ChunkShape {
        match (&self.bin_shape, &root.base_bin_shape) {
            (Some(shape), _) => shape,
            (None, Some(shape)) if self.level == LevelId::FULL => shape,
            _ => self.effective_chunk_shape(root),
        }
    }

    /// Returns the entry of the level in `multiscales`, with its bins.
    pub fn dataset(&self, root: &RootMetadata) -> MultiscaleDataset {
        let bin = self.effective_bin_shape(root).extents();
        let dataset = MultiscaleDataset::of_bins(self.level, bin, root.bin_shape().extents());
        MultiscaleDataset {
            scale: self.bin_ratio.clone().or(dataset.scale),
            ..dataset
        }
    }

    /// Returns the bins of the level's chunks.
    ///
    /// # Errors
    ///
    /// [`BinsError`] if the bins do not fill a chunk, for example at coarse levels whose bins are
    /// larger than chunks.
    pub fn bins(&self, root: &RootMetadata) -> Result<Bins, BinsError> {
        let chunk = self.effective_chunk_shape(root);
        Bins::new(chunk, self.effective_bin_shape(root).clone())
    }
}

/// The attributes of a level that changes.
///
/// Members that do not change keep their place and value, even if they are invalid.
#[derive(Debug)]
pub struct LevelMetadataChange<'a>(&'a mut Attributes);

impl<'a> LevelMetadataChange<'a> {
    /// Begins to change the attributes of a level; `None` if they are not those of a level, and no
    /// others can be added.
    pub fn of(attributes: &'a mut Attributes, level: LevelId) -> Option<Self> {
        let block = attributes.entry(BLOCK).or_insert_with(|| {
            let number = JsonMembers::default().with("level", level.number());
            number.into()
        });
        block.as_object_mut().map(Self)
    }

    /// Begins to change the attributes of a level; `None` if they are not those of a level.
    pub fn of_existing(attributes: &'a mut Attributes) -> Option<Self> {
        attributes.get_mut(BLOCK)?.as_object_mut().map(Self)
    }

    /// Sets a member. Returns whether it had another value.
    fn put(&mut self, member: &str, value: impl Into<Value>) -> bool {
        let value = value.into();
        let known = self.0.insert(member.to_owned(), value.clone());
        known.is_some_and(|known| known != value)
    }

    /// Sets a flag, which is absent if it is not set.
    fn put_flag(&mut self, member: &str, is_set: bool) {
        if is_set {
            self.put(member, true);
        } else {
            self.0.remove(member);
        }
    }

    /// Sets the number of the level.
    pub fn set_level(&mut self, level: LevelId) {
        self.put("level", level.number());
    }

    /// Returns the number of vertices; 0 if it is not declared.
    pub fn vertex_count(&self) -> u64 {
        let count = self.0.get(VERTEX_COUNT).and_then(Value::as_u64);
        count.unwrap_or(0)
    }

    /// Sets the number of vertices. Returns whether another number was declared.
    pub fn set_vertex_count(&mut self, vertices: u64) -> bool {
        self.put(VERTEX_COUNT, vertices)
    }

    /// Sets the number of objects of the parent, if one is declared.
    pub fn replace_inherited_objects(&mut self, objects: u64) {
        if self.0.contains_key(INHERITED) {
            self.put(INHERITED, objects);
        }
    }

    /// Returns the names of the parts that are listed as present.
    pub fn arrays_present(&self) -> Vec<String> {
        let names = self
            .0
            .get(ARRAYS_PRESENT)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        names.map(str::to_owned).collect()
    }

    /// Sets the list of parts.
    pub fn set_arrays_present(&mut self, names: Vec<String>) {
        self.put(ARRAYS_PRESENT, names);
    }

    /// Lists a part as present, if there is a list.
    pub fn add_array_present(&mut self, name: &str) {
        let names = self.0.get_mut(ARRAYS_PRESENT).and_then(Value::as_array_mut);
        if let Some(names) = names.filter(|names| !names.iter().any(|known| known == name)) {
            names.push(name.into());
        }
    }

    /// Declares whether the fragments of every chunk are its rows in order.
    pub fn set_fragments_tile(&mut self, tile: bool) {
        self.put_flag(FRAGMENTS_TILE, tile);
    }

    /// Declares that objects share fragments.
    pub fn set_shared_fragments(&mut self) {
        self.put_flag(SHARED_FRAGMENTS, true);
    }

    /// Removes the declaration that groups of links are those of fragments.
    pub fn remove_fragment_link_groups(&mut self) {
        self.put_flag(FRAGMENT_LINK_GROUPS, false);
    }

    /// Sets the bins of the level, in a generation whose levels declare them rather than the root.
    pub fn set_bins(&mut self, generation: Generation, bins: &MultiscaleDataset) {
        if generation < Generation::V0_10 || bins.level == LevelId::FULL {
            return;
        }
        if let Some(half) = &bins.translation {
            let bin: Vec<f64> = half.iter().map(|half| half * 2.0).collect();
            self.put(BIN_SHAPE, bin);
        }
        if let Some(ratio) = &bins.scale {
            self.put(BIN_RATIO, ratio.clone());
        }
    }

    /// Sets the relation to the next coarser level.
    pub fn set_refinement(&mut self, refinement: Refinement) {
        match refinement {
            Refinement::Replace => drop(self.0.remove(REFINEMENT)),
            Refinement::Add => drop(self.put(REFINEMENT, ADD)),
        }
    }
}

/// Removes the declaration that the points of a level are on no coarser level.
pub fn remove_additive(attributes: &mut Attributes) {
    attributes.remove(ADDITIVE);
}

fn is_additive(attributes: &Attributes) -> bool {
    attributes.get(ADDITIVE) == Some(&Value::Bool(true))
}

/// Reads the relation of a level to the next coarser one. A wrong value is an error, because the
/// level might be a part of its content.
fn read_refinement(outer: &Fields<'_>, block: &Fields<'_>) -> Result<Refinement, MetadataError> {
    let Some(at) = block.get(REFINEMENT) else {
        return Ok(Refinement::Replace);
    };
    match at.text()? {
        "replace" => Ok(Refinement::Replace),
        // The two forms of additive levels have different unions.
        ADD if is_additive(outer.map()) || is_additive(block.map()) => Err(at.disagrees(ADDITIVE)),
        ADD => Ok(Refinement::Add),
        other => Err(at.unknown_word(other, "\"replace\" or \"add\"")),
    }
}

/// Returns whether the chunks of a level are not listed yet. The draft does not tell whether the
/// field is in the block or beside it.
fn read_presence(fields: &Fields<'_>) -> Result<bool, MetadataError> {
    let Some(at) = fields.get(PRESENCE) else {
        return Ok(false);
    };
    match at.text()? {
        DEFERRED => Ok(true),
        other => Err(at.unknown_word(other, "\"deferred\"")),
    }
}

/// Checks that `level` matches the name.
fn check_number(block: &Fields<'_>, level: LevelId, notes: &mut Noter) {
    let Some(at) = notes.take(block.require("level"), Assumed::FromPath) else {
        return;
    };
    match at.u32() {
        Ok(number) if number == level.number() => {}
        Ok(_) => notes.note(at.disagrees("the name of the level"), Assumed::FromPath),
        Err(error) => notes.note(error, Assumed::FromPath),
    }
}

fn read_attribute_chunking(
    block: &Fields<'_>,
    rank: usize,
) -> Result<Option<AttributeChunking>, MetadataError> {
    let (name, values) = (
        block.get("chunk_attribute_name"),
        block.get("chunk_attribute_values"),
    );
    let dims = block.get("chunk_dims");
    let text = |at: &JsonField<'_>| at.text().map(str::to_owned);
    let plain = name.is_none() && values.is_none();
    let dims = match dims {
        None if plain => return Ok(None),
        None => Vec::new(),
        // Only the axes: chunks are spatial.
        Some(at) if plain && at.list()?.len() == rank => return Ok(None),
        Some(at) => at.exactly(rank.saturating_add(1), text)?,
    };
    Ok(Some(AttributeChunking {
        name: name.map(|at| text(&at)).transpose()?,
        values: values
            .map(|at| at.list().map(<[_]>::to_vec))
            .transpose()?
            .unwrap_or_default(),
        dims,
    }))
}

type BinGeometry = (Option<ChunkShape>, Option<Vec<f64>>);

fn read_bins(
    block: &Fields<'_>,
    level: LevelId,
    root: &RootMetadata,
    notes: &mut Noter,
) -> BinGeometry {
    let rank = root.axes.len();
    if level == LevelId::FULL {
        return (None, None);
    }
    let dataset = root.dataset(level);
    // In 0.10 the level declares its bins.
    let has_bins =
        |dataset: &&MultiscaleDataset| dataset.scale.is_some() || dataset.translation.is_some();
    if let Some(dataset) = dataset.filter(has_bins) {
        let twice = |half: &Vec<f64>| half.iter().map(|half| half * 2.0).collect::<Vec<_>>();
        // The parser of the root has verified that they are above 0.
        let shape = dataset.translation.as_ref().map(twice);
        let shape = shape.and_then(|shape| ChunkShape::new(&shape).ok());
        return (shape, dataset.scale.clone());
    }
    let old = [BIN_SHAPE, "bin_size"]
        .into_iter()
        .find(|name| block.get(name).is_some());
    let shape = old.and_then(|name| notes.field(block, name, |at| read_shape(at, rank)));
    let ratio = |at: &JsonField<'_>| match JsonKind::of(at.value()) {
        JsonKind::List => at.exactly(rank, JsonField::positive),
        _ => Ok(vec![at.positive()?; rank]),
    };
    (shape, notes.field(block, BIN_RATIO, ratio))
}
