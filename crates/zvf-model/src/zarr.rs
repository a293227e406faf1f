//! Zarr v3 nodes: the content of a `zarr.json`, typed and validated.
//!
//! A node is a [`GroupNode`] or an [`Array`]. Both have attributes, which are kept unchanged. For
//! arrays, everything needed to locate and decode a chunk is validated; codecs are parsed but not
//! run.
//!
//! | field of an array | accepted |
//! |---|---|
//! | `shape` | up to [`MAX_RANK`] extents, also 0; their product fits 64 bits |
//! | `data_type` | [`DataType`]: numbers, byte strings of any length, text; others are kept by name |
//! | `chunk_grid` | `regular` alone, extents of at least 1 |
//! | `chunk_key_encoding` | `default` and `v2`, with `/` or `.` |
//! | `fill_value` | raw |
//! | `codecs` | [`Codecs`]; the configuration of `sharding_indexed` is typed |
//! | `storage_transformers` | must be empty |
//! | `dimension_names` | raw |
//!
//! A member that is unknown to this crate is refused, unless it says of itself that it need not be
//! understood; then it is kept. Old Zarr versions have no `zarr.json` and are not read.
//!
//! [`Node::to_json`] writes what [`Node::parse`] reads. Of equal spellings it writes the longer one:
//! `{"name": "crc32c"}` for `"crc32c"`, and a separator of chunk keys in any case.
//!
//! Attributes of 0.10, which are the members of one object `zarr_vectors` of some `kind`, become those of 0.9
//! when a node is read, and their former form when it is written. [`Node::in_generation`] gives a new node
//! the form of a generation.
//!
//! The elements of an array are counted from 0 in each dimension. To find the file of an element,
//! call [`Array::chunk_of`] and then [`Array::chunk_key`]; in a sharded array,
//! [`Sharding::inner_of`] returns the part of the file.

use serde_json::Value;
use zvf_format::numeric::ByteOrder;

use crate::{
    generation::Generation,
    key::{Key, KeyError},
    metadata::{
        Attributes, Document, Fields, JsonField, JsonKind, JsonMembers, MetadataError,
        MetadataFault, MetadataNote, dialect,
    },
};

mod codec;
mod compression;
mod data_type;
mod fill_value;
mod key_encoding;

pub use crate::rank::MAX_RANK;
pub use codec::{Codec, Codecs, IndexLocation, PlainCodec, Sharding};
pub use compression::CellCompression;
pub use data_type::DataType;
pub use key_encoding::{ChunkKeyEncoding, KeyStyle};

/// Maximum length of a `zarr.json` in bytes for [`Node::parse`]; a presence list of some million
/// chunks fits.
pub const MAX_NODE_BYTES: usize = 64 << 20;

/// Maximum number of elements that [`Array::elements_of`] returns.
pub const MAX_ELEMENTS: usize = 1 << 22;

/// One `zarr.json`.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A group.
    Group(GroupNode),
    /// An array.
    Array(Array),
}

/// A group node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupNode {
    /// Its attributes. Those of 0.10 have the names of 0.9.
    pub attributes: Attributes,
    /// All other members of its JSON, unchanged.
    pub other: Attributes,
    /// Paths of members of its JSON that occur twice in their object. The last one counts.
    pub repeated: Vec<String>,
}

/// An array node.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Array {
    /// Extent of each dimension.
    pub shape: Vec<u64>,
    /// Type of an element.
    pub data_type: DataType,
    /// Extent of a chunk (of a shard, in a sharded array) in each dimension; at
    /// least 1, as many as `shape` has.
    pub chunk_shape: Vec<u64>,
    /// Names of chunks.
    pub key_encoding: ChunkKeyEncoding,
    /// Value of absent elements, as written.
    pub fill_value: Value,
    /// Encoding of a chunk.
    pub codecs: Codecs,
    /// Its attributes. Those of 0.10 have the names of 0.9.
    pub attributes: Attributes,
    /// All other members of its JSON, unchanged: names of dimensions, storage transformers, which
    /// are empty, and members that need not be understood.
    pub other: Attributes,
    /// Paths of members of its JSON that occur twice in their object. The last one counts.
    pub repeated: Vec<String>,
}

impl Array {
    /// Creates an array without attributes, with chunks at keys such as `c/1/0/0`.
    pub fn new(
        shape: Vec<u64>,
        data_type: DataType,
        chunk_shape: Vec<u64>,
        fill_value: impl Into<Value>,
        codecs: Codecs,
    ) -> Self {
        Self {
            shape,
            data_type,
            chunk_shape,
            key_encoding: ChunkKeyEncoding::DEFAULT,
            fill_value: fill_value.into(),
            codecs,
            attributes: Attributes::new(),
            other: JsonMembers::default()
                .with("storage_transformers", Vec::<Value>::new())
                .finish(),
            repeated: Vec::new(),
        }
    }

    /// Returns the array with other attributes.
    #[must_use]
    pub fn with_attributes(mut self, attributes: Attributes) -> Self {
        self.attributes = attributes;
        self
    }

    /// Returns the contents of the array's `zarr.json`.
    pub fn to_json(&self) -> Value {
        let chunk_shape = JsonMembers::default().with("chunk_shape", self.chunk_shape.clone());
        let chunk_grid = JsonMembers::default()
            .with("name", REGULAR)
            .with("configuration", chunk_shape);
        JsonMembers::default()
            .with("shape", self.shape.clone())
            .with("data_type", self.data_type.to_json())
            .with("chunk_grid", chunk_grid)
            .with("chunk_key_encoding", self.key_encoding.to_json())
            .with("fill_value", self.fill_value.clone())
            .with("codecs", self.codecs.to_json())
            .with("attributes", dialect::stored(&self.attributes))
            .with("zarr_format", ZARR_FORMAT)
            .with("node_type", ARRAY)
            .with_all(&self.other)
            .into()
    }

    /// Encodes the fill value as one little-endian element: a number, or text of fixed length. `None`
    /// if the fill value is of another type than the array, or if elements have any length.
    pub fn fill_element(&self) -> Option<Vec<u8>> {
        match &self.data_type {
            DataType::Number(kind) => fill_value::number(&self.fill_value, *kind),
            DataType::FixedText { bytes } => fill_value::text(&self.fill_value, *bytes),
            _ => None,
        }
    }
}

impl GroupNode {
    /// Creates a group with these attributes.
    pub fn new(attributes: Attributes) -> Self {
        Self {
            attributes,
            ..Self::default()
        }
    }

    /// Returns the contents of the group's `zarr.json`.
    pub fn to_json(&self) -> Value {
        JsonMembers::default()
            .with("attributes", dialect::stored(&self.attributes))
            .with("zarr_format", ZARR_FORMAT)
            .with("node_type", GROUP)
            .with_all(&self.other)
            .into()
    }
}

impl From<GroupNode> for Node {
    fn from(group: GroupNode) -> Self {
        Self::Group(group)
    }
}

impl From<Array> for Node {
    fn from(array: Array) -> Self {
        Self::Array(array)
    }
}

impl Node {
    /// Creates a group with these attributes.
    pub fn group(attributes: Attributes) -> Self {
        Self::Group(GroupNode::new(attributes))
    }

    /// Returns the node as a store of this generation has it at `key`. Attributes are the same in all
    /// generations until they are written: 0.10 writes them as a convention.
    #[must_use]
    pub fn in_generation(mut self, key: &Key, generation: Generation) -> Self {
        dialect::adapt(key, self.attributes_mut(), generation);
        self
    }

    /// Returns the contents of the node's `zarr.json`.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Group(group) => group.to_json(),
            Self::Array(array) => array.to_json(),
        }
    }

    /// Returns the bytes of the node's `zarr.json`: indented JSON, as other writers have it.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Serialization cannot fail: the keys of a `Value` are text.
        serde_json::to_vec_pretty(&self.to_json()).unwrap_or_default()
    }

    /// Parses the bytes of `key`, the path of a `zarr.json`.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if they are not a node of Zarr v3, use an unsupported feature, or exceed
    /// [`MAX_NODE_BYTES`].
    pub fn parse(key: &Key, bytes: &[u8]) -> Result<Self, MetadataError> {
        Self::parse_within(key, bytes, MAX_NODE_BYTES)
    }

    /// Like [`parse`](Self::parse), with another limit.
    ///
    /// # Errors
    ///
    /// Errors of [`parse`](Self::parse).
    pub fn parse_within(key: &Key, bytes: &[u8], limit: usize) -> Result<Self, MetadataError> {
        let whole = |fault| JsonField::document(key, &Value::Null).error(fault);
        if bytes.len() > limit {
            let bytes = bytes.len();
            return Err(whole(MetadataFault::Size { bytes, limit }));
        }
        let document = Document::parse(bytes).map_err(|error| {
            whole(MetadataFault::Syntax {
                line: error.line(),
                column: error.column(),
            })
        })?;
        let mut node = Self::from_json(key, document.value)?;
        match &mut node {
            Self::Group(group) => group.repeated = document.repeated,
            Self::Array(array) => array.repeated = document.repeated,
        }
        Ok(node)
    }

    /// Reads a node from parsed JSON.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if it is not a node of Zarr v3 or uses an unsupported feature.
    pub fn from_json(key: &Key, mut value: Value) -> Result<Self, MetadataError> {
        let mut attributes = take_attributes(key, &mut value)?;
        dialect::read(key, &mut attributes)?;
        let fields = JsonField::document(key, &value).fields()?;
        fields
            .require("zarr_format")?
            .unsigned(ZARR_FORMAT, ZARR_FORMAT)?;
        let node_type = fields.require("node_type")?;
        match node_type.text()? {
            GROUP => {
                refuse_unknown(&fields, GROUP_MEMBERS)?;
                Ok(Self::Group(GroupNode {
                    attributes,
                    other: fields.without(TYPED_OF_GROUP),
                    repeated: Vec::new(),
                }))
            }
            ARRAY => {
                refuse_unknown(&fields, ARRAY_MEMBERS)?;
                Array::read(&fields, attributes).map(Self::Array)
            }
            found => Err(node_type.unknown_word(found, "\"group\" or \"array\"")),
        }
    }

    /// Returns the attributes of either.
    pub fn attributes(&self) -> &Attributes {
        match self {
            Self::Group(group) => &group.attributes,
            Self::Array(array) => &array.attributes,
        }
    }

    /// Returns the attributes of either, for a change.
    pub fn attributes_mut(&mut self) -> &mut Attributes {
        match self {
            Self::Group(group) => &mut group.attributes,
            Self::Array(array) => &mut array.attributes,
        }
    }

    /// Returns the list of conventions that the node at `key` should declare, if it is a node of 0.10 and
    /// its own list lacks one.
    pub fn missing_conventions(&self, key: &Key) -> Option<Value> {
        dialect::missing_conventions(key, self.attributes())
    }

    /// Returns the place in the stored JSON of a place in the JSON as 0.9 has it, such as
    /// `attributes.zarr_vectors_level.level`.
    pub fn stored_place(&self, place: &str) -> String {
        dialect::place(self.attributes(), place)
    }

    /// Returns a fault for each member of the JSON that occurs twice in its object.
    pub fn repeated(&self) -> Vec<MetadataNote> {
        let repeated = match self {
            Self::Group(group) => &group.repeated,
            Self::Array(array) => &array.repeated,
        };
        repeated
            .iter()
            .map(|path| MetadataNote::repeated(path))
            .collect()
    }

    /// Returns the array, if it is one.
    pub fn as_array(&self) -> Option<&Array> {
        match self {
            Self::Array(array) => Some(array),
            Self::Group(_) => None,
        }
    }
}

/// Returns the JSON of the `zarr.json` of node `key` with attributes as 0.9 names them, for a change of a
/// document that need not be a valid node.
///
/// # Errors
///
/// [`MetadataError`] if attributes of 0.10 have no known kind.
pub fn with_common_names(key: &Key, mut json: Value) -> Result<Value, MetadataError> {
    if let Some(Value::Object(attributes)) = json.get_mut("attributes") {
        dialect::read(key, attributes)?;
    }
    Ok(json)
}

/// Returns the JSON with the names that the store has, after
/// [`with_common_names`].
#[must_use]
pub fn with_stored_names(key: &Key, mut json: Value) -> Value {
    if let Some(Value::Object(attributes)) = json.get_mut("attributes") {
        if dialect::is_marked(attributes) {
            dialect::adapt(key, attributes, Generation::V0_10);
        }
        *attributes = dialect::stored(attributes);
    }
    json
}

impl Array {
    fn read(fields: &Fields<'_>, attributes: Attributes) -> Result<Self, MetadataError> {
        let shape_at = fields.require("shape")?;
        let shape = extents(&shape_at, 0)?;
        let grid = fields.require("chunk_grid")?.fields()?;
        let grid_name = grid.require("name")?;
        match grid_name.text()? {
            REGULAR => {}
            other => return Err(grid_name.unknown_word(other, "the chunk grid \"regular\"")),
        }
        let chunk_shape = grid
            .require("configuration")?
            .fields()?
            .require("chunk_shape")?;
        let chunk_shape = extents_like(&chunk_shape, shape.len())?;
        let key_encoding = ChunkKeyEncoding::read(&fields.require("chunk_key_encoding")?)?;
        let data_type = DataType::read(&fields.require("data_type")?)?;
        let fill_value = fields.require("fill_value")?.value().clone();
        let codecs = Codecs::read(&fields.require("codecs")?, &chunk_shape)?;
        let transformers = fields.get("storage_transformers");
        let first = transformers.map(|at| at.items()).transpose()?;
        if let Some(first) = first.and_then(|mut items| items.next()) {
            let fault = MetadataFault::Extension(codec::name_of(&first)?);
            return Err(first.error(fault));
        }
        Ok(Self {
            shape,
            data_type,
            chunk_shape,
            key_encoding,
            fill_value,
            codecs,
            attributes,
            other: fields.without(TYPED_OF_ARRAY),
            repeated: Vec::new(),
        })
    }

    /// Returns the number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Returns the number of elements.
    pub fn elements(&self) -> u64 {
        // `read` has verified the product; the fold saturates for values constructed by hand.
        self.shape
            .iter()
            .fold(1, |n, &extent| n.saturating_mul(extent))
    }

    /// Returns the sharding of the array, if it is sharded.
    pub fn sharding(&self) -> Option<&Sharding> {
        self.codecs.sharding()
    }

    /// Returns the byte order of numbers after decompression.
    pub fn byte_order(&self) -> ByteOrder {
        let codecs = self
            .sharding()
            .map_or(&self.codecs, |sharding| &sharding.codecs);
        let order = codecs.iter().find_map(Codec::byte_order);
        order.unwrap_or(ByteOrder::Little)
    }

    /// Returns the shape of the smallest decodable unit: the inner chunk of a shard, otherwise the
    /// chunk.
    pub fn decoded_shape(&self) -> &[u64] {
        match self.sharding() {
            Some(sharding) => &sharding.chunk_shape,
            None => &self.chunk_shape,
        }
    }

    /// Returns the number of chunks (shards) in each dimension.
    pub fn grid_shape(&self) -> Vec<u64> {
        let extents = self.shape.iter().zip(&self.chunk_shape);
        extents
            .map(|(&n, &chunk)| n.div_ceil(chunk.max(1)))
            .collect()
    }

    /// Returns the chunk (shard) that holds element `index`.
    ///
    /// # Errors
    ///
    /// [`IndexError`] if there is no such element.
    pub fn chunk_of(&self, index: &[u64]) -> Result<Vec<u64>, IndexError> {
        check_index(index, &self.shape)?;
        let chunks = index.iter().zip(&self.chunk_shape);
        // Extents are only 0 in values constructed by hand.
        let chunk_at = |(at, chunk): (&u64, &u64)| at.checked_div(*chunk).unwrap_or(0);
        Ok(chunks.map(chunk_at).collect())
    }

    /// Returns the chunk (shard) that object `file` holds, below the array at `node`; `None` for other
    /// objects.
    pub fn chunk_at(&self, node: &Key, file: &str) -> Option<Vec<u64>> {
        let rest = file.strip_prefix(node.as_str())?.strip_prefix('/')?;
        let numbers = rest.split(['/', '.']).filter(|name| *name != "c");
        let chunk: Option<Vec<u64>> = numbers.map(|number| number.parse().ok()).collect();
        let chunk = chunk?;
        // An array has one name for each chunk; others are not opened.
        let named = self.chunk_key(node, &chunk).ok()?;
        (named.as_str() == file).then_some(chunk)
    }

    /// Returns the elements of chunk (shard) `chunk`, in order; `None` if they are more than
    /// [`MAX_ELEMENTS`].
    pub fn elements_of(&self, chunk: &[u64]) -> Option<Vec<Vec<u64>>> {
        let axes = chunk.iter().zip(&self.chunk_shape).zip(&self.shape);
        let mut elements = vec![Vec::new()];
        for ((at, chunk), extent) in axes {
            let first = at.checked_mul(*chunk)?.min(*extent);
            let end = first.saturating_add(*chunk).min(*extent);
            let along = usize::try_from(end.saturating_sub(first)).ok()?;
            if elements.len().checked_mul(along)? > MAX_ELEMENTS {
                return None;
            }
            elements = elements
                .into_iter()
                .flat_map(|element: Vec<u64>| {
                    (first..end).map(move |at| {
                        let mut element = element.clone();
                        element.push(at);
                        element
                    })
                })
                .collect();
        }
        Some(elements)
    }

    /// Returns the key of chunk (shard) `chunk` of the array at `node`.
    ///
    /// # Errors
    ///
    /// [`IndexError`] if the grid has no such chunk or the key becomes too long.
    pub fn chunk_key(&self, node: &Key, chunk: &[u64]) -> Result<Key, IndexError> {
        check_index(chunk, &self.grid_shape())?;
        Ok(self.key_encoding.key(node, chunk)?)
    }
}

/// Reason that an index is not valid for an array.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// Another number of dimensions.
    #[error("an index has {found} numbers, but the array has {expected} dimensions")]
    Rank {
        /// Number of dimensions.
        expected: usize,
        /// Length of the index.
        found: usize,
    },
    /// Past the end of a dimension.
    #[error("index {found} is outside dimension {dimension}, which has an extent of {extent}")]
    Outside {
        /// The dimension.
        dimension: usize,
        /// The number in the index.
        found: u64,
        /// The extent.
        extent: u64,
    },
    /// The chunk's key is too long.
    #[error(transparent)]
    Key(#[from] KeyError),
}

fn check_index(index: &[u64], shape: &[u64]) -> Result<(), IndexError> {
    let (expected, found) = (shape.len(), index.len());
    if expected != found {
        return Err(IndexError::Rank { expected, found });
    }
    let mut pairs = index.iter().zip(shape).enumerate();
    match pairs.find(|(_, (at, extent))| at >= extent) {
        None => Ok(()),
        Some((dimension, (&found, &extent))) => Err(IndexError::Outside {
            dimension,
            found,
            extent,
        }),
    }
}

const ZARR_FORMAT: u64 = 3;
const GROUP: &str = "group";
const ARRAY: &str = "array";
const REGULAR: &str = "regular";

/// Members of a group that have a field of their own.
const TYPED_OF_GROUP: &[&str] = &["zarr_format", "node_type", "attributes"];
const GROUP_MEMBERS: &[&str] = &[
    "zarr_format",
    "node_type",
    "attributes",
    "consolidated_metadata",
];
/// Members of an array that have a field of their own.
const TYPED_OF_ARRAY: &[&str] = &[
    "zarr_format",
    "node_type",
    "attributes",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
];
const ARRAY_MEMBERS: &[&str] = &[
    "zarr_format",
    "node_type",
    "attributes",
    "consolidated_metadata",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "storage_transformers",
    "dimension_names",
];

/// Moves the attributes out, because presence lists are too long to copy.
fn take_attributes(key: &Key, document: &mut Value) -> Result<Attributes, MetadataError> {
    let attributes = document.get_mut("attributes").map(Value::take);
    match attributes {
        None | Some(Value::Null) => Ok(Attributes::new()),
        Some(Value::Object(attributes)) => Ok(attributes),
        Some(other) => {
            let (expected, found) = (JsonKind::Object, JsonKind::of(&other));
            let fault = MetadataFault::Kind { expected, found };
            Err(Fields::beside(key, "attributes", fault))
        }
    }
}

/// Rejects unknown members, except objects with `must_understand` set to false, as Zarr requires.
fn refuse_unknown(fields: &Fields<'_>, known: &[&str]) -> Result<(), MetadataError> {
    for (name, place) in fields.iter().filter(|(name, _)| !known.contains(name)) {
        let optional = place.value().get("must_understand") == Some(&Value::Bool(false));
        if !optional {
            let fault = MetadataFault::Extension(crate::metadata::Excerpt::of(name));
            return Err(place.error(fault));
        }
    }
    Ok(())
}

/// Reads a list of extents of at least `least`, whose product fits 64 bits.
fn extents(place: &JsonField<'_>, min: u64) -> Result<Vec<u64>, MetadataError> {
    let found = place.list()?.len();
    if found > MAX_RANK {
        let limit = MAX_RANK;
        return Err(place.error(MetadataFault::Rank { found, limit }));
    }
    let extents = place.each(|extent| extent.unsigned(min, u64::MAX))?;
    // An extent of 0 must not hide an overflow of the others.
    let product = extents
        .iter()
        .try_fold(1u64, |n, &extent| n.checked_mul(extent.max(1)));
    match product {
        Some(_) => Ok(extents),
        None => Err(place.error(MetadataFault::Product)),
    }
}

/// Reads a chunk shape for an array of `rank` dimensions.
fn extents_like(place: &JsonField<'_>, rank: usize) -> Result<Vec<u64>, MetadataError> {
    let found = place.list()?.len();
    if found != rank {
        let expected = rank;
        return Err(place.error(MetadataFault::Length { expected, found }));
    }
    extents(place, 1)
}

/// An extension point: a name, and its configuration with its place.
type Extension<'a> = (&'a str, Option<(Attributes, JsonField<'a>)>);

/// Reads an extension point: a name, or an object with name and configuration.
fn extension<'a>(place: &JsonField<'a>) -> Result<Extension<'a>, MetadataError> {
    if JsonKind::of(place.value()) == JsonKind::Text {
        return Ok((place.text()?, None));
    }
    let fields = place.fields()?;
    let name = fields.require("name")?.text()?;
    let configuration = fields.get("configuration").map(|at| {
        let members = at.fields()?.map().clone();
        Ok((members, at))
    });
    Ok((name, configuration.transpose()?))
}

/// Writes an extension point with a configuration, or without.
fn named(name: &str, configuration: Option<&Attributes>) -> JsonMembers {
    JsonMembers::default()
        .with("name", name)
        .with_some("configuration", configuration.cloned())
}
