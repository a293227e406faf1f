//! Attributes of vertices, fragments and links.

use serde_json::Value;
use zvf_format::{numeric::Dtype, path::Delta};

use super::{check_tag, vertices::dtype_or_float32};
use crate::{
    attribute_name,
    key::Key,
    metadata::{Attributes, Fields, JsonField, JsonMembers, MetadataError, Noted, Noter},
    zarr::MAX_RANK,
};

/// Rows that an attribute has values of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CellAttributeRole {
    /// Vertices.
    #[default]
    Vertex,
    /// Fragments.
    Fragment,
    /// Links.
    Link,
    /// Links between chunks, up to 0.8.1.
    CrossChunkLink,
}

/// Metadata of an attribute whose values are stored in cells.
#[derive(Clone, Debug, PartialEq)]
pub struct CellAttribute {
    /// Rows that have the values; vertices if undeclared.
    pub role: CellAttributeRole,
    /// Its stored name, which is that of the node, or its label, which is stored as one.
    pub name: Option<String>,
    /// Type of a value or of dictionary codes; float32 if absent.
    pub dtype: Dtype,
    /// Shape of a row: `[]` is one value. Absent up to 0.8.1, and unreliable: cells of polylines,
    /// graphs and meshes may have more values. The width of a cell is its number of values divided
    /// by its rows.
    pub row_shape: Option<Vec<u64>>,
    /// Names of a row's columns.
    pub channel_names: Option<Vec<String>>,
    /// The dictionary, if values are codes.
    pub dictionary: Option<Dictionary>,
    /// Offsets of the links of an array of 0.9.
    pub offsets: Option<Vec<Vec<i64>>>,
    /// Level of the other ends of links minus their own level.
    pub level_delta: Option<i64>,
    /// Shape of all values, declared by attributes of cross-chunk links up to 0.7.
    pub shape: Option<Vec<u64>>,
    /// Number of links, declared by families.
    pub num_links: Option<u64>,
}

/// Metadata of an attribute of all links of a delta in 0.9: the group of its arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkAttributeFamily {
    /// Name of the attribute.
    pub name: String,
    /// Level of the other ends of links minus their own level.
    pub delta: Delta,
    /// Number of links.
    pub num_links: u64,
}

impl LinkAttributeFamily {
    /// Returns the attributes of the node.
    pub fn to_attributes(&self) -> Attributes {
        attribute_name::write(JsonMembers::tagged(FAMILY), Some(&self.name))
            .with("level_delta", self.delta.levels())
            .with("num_links", self.num_links)
            .finish()
    }
}

/// The categories of codes.
#[derive(Clone, Debug, PartialEq)]
pub struct Dictionary {
    /// Code i is category i: text, or numbers.
    pub categories: Vec<Value>,
    /// `true` if the order of categories has a meaning.
    pub ordered: bool,
    /// The code of a missing value.
    pub fill: Option<i64>,
}

const VERTEX: &str = "attribute";
const FRAGMENT: &str = "fragment_attribute";
const LINK: &str = "link_attribute";
const CROSS_CHUNK_LINK: &str = "cross_chunk_link_attribute";
const FAMILY: &str = "link_attribute_family";
const TAGS: &[&str] = &[VERTEX, FRAGMENT, LINK, FAMILY, CROSS_CHUNK_LINK];

impl CellAttributeRole {
    /// Returns the value of `zv_array`.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::Vertex => VERTEX,
            Self::Fragment => FRAGMENT,
            Self::Link => LINK,
            Self::CrossChunkLink => CROSS_CHUNK_LINK,
        }
    }
}

impl CellAttribute {
    /// Creates the metadata of one value to a row.
    pub fn new(role: CellAttributeRole, name: impl Into<String>, dtype: Dtype) -> Self {
        Self {
            role,
            name: Some(name.into()),
            dtype,
            row_shape: None,
            channel_names: None,
            dictionary: None,
            offsets: None,
            level_delta: None,
            shape: None,
            num_links: None,
        }
    }

    /// Reads the attributes of `key`.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if the dtype is not numeric, or a dictionary has no categories.
    pub fn parse(key: &Key, attributes: &Attributes) -> Result<Noted<Self>, MetadataError> {
        let fields = Fields::attributes(key, attributes);
        let mut notes = Noter::default();
        let role = match check_tag(&fields, TAGS, &mut notes) {
            Some(FRAGMENT) => CellAttributeRole::Fragment,
            Some(LINK | FAMILY) => CellAttributeRole::Link,
            Some(CROSS_CHUNK_LINK) => CellAttributeRole::CrossChunkLink,
            _ => CellAttributeRole::Vertex,
        };
        let offsets = |at: &JsonField<'_>| at.each(|offset| offset.each(JsonField::i64));
        let texts = |at: &JsonField<'_>| at.each(|item| item.text().map(str::to_owned));
        let value = Self {
            role,
            name: notes.field(&fields, "name", |at| at.text().map(str::to_owned)),
            dtype: dtype_or_float32(&fields)?,
            row_shape: notes.field(&fields, "row_shape", read_extents),
            channel_names: notes.field(&fields, "channel_names", texts),
            dictionary: Dictionary::read(&fields, &mut notes)?,
            offsets: fields.get("offsets").and_then(|at| offsets(&at).ok()),
            level_delta: fields.get("level_delta").and_then(|at| at.i64().ok()),
            shape: notes.field(&fields, "shape", read_extents),
            num_links: notes.field(&fields, "num_links", JsonField::u64),
        };
        let notes = notes.finish();
        Ok(Noted { value, notes })
    }

    /// Returns the attributes of the node.
    pub fn to_attributes(&self) -> Attributes {
        // Other writers put the shape of attributes of links between chunks last.
        let is_last = self.role == CellAttributeRole::CrossChunkLink;
        let row_shape = |is_here: bool| self.row_shape.clone().filter(|_| is_here);
        let tagged = JsonMembers::tagged(self.role.tag());
        let members = attribute_name::write(tagged, self.name.as_deref())
            .with("dtype", self.dtype.to_string())
            .with_some("channel_names", self.channel_names.clone())
            .with_some("row_shape", row_shape(!is_last));
        let members = match &self.dictionary {
            Some(dictionary) => dictionary.write(members),
            None => members,
        };
        members
            .with_some("offsets", self.offsets.clone())
            .with_some("level_delta", self.level_delta)
            .with_some("num_links", self.num_links)
            .with_some("shape", self.shape.clone())
            .with_some("row_shape", row_shape(is_last))
            .finish()
    }

    /// Replaces the type in attributes by one number to a row.
    pub fn set_scalar(attributes: &mut Attributes, dtype: Dtype) {
        let others = [
            "encoding",
            CATEGORIES,
            "ordered",
            "_FillValue",
            "channel_names",
        ];
        for name in others {
            attributes.remove(name);
        }
        attributes.insert("dtype".to_owned(), dtype.to_string().into());
        if let Some(shape) = attributes.get_mut("row_shape") {
            *shape = Value::Array(Vec::new());
        }
    }

    /// Sets the categories in attributes that have some.
    pub fn set_categories(attributes: &mut Attributes, categories: &[Value]) {
        if let Some(own) = attributes.get_mut(CATEGORIES) {
            *own = categories.into();
        }
    }

    /// Sets the links of an array in attributes.
    pub fn set_offsets(attributes: &mut Attributes, offsets: &[Vec<i64>], delta: Delta) {
        attributes.insert("offsets".to_owned(), offsets.to_vec().into());
        attributes.insert("level_delta".to_owned(), delta.levels().into());
    }

    /// Removes from attributes the ones that depend on the links of an array.
    pub fn remove_links(attributes: &mut Attributes) {
        for name in ["shape", "offsets", "num_links", "level_delta"] {
            attributes.remove(name);
        }
    }

    /// Removes from attributes the ones that depend on the links of an array and on their values.
    pub fn remove_extents(attributes: &mut Attributes) {
        for name in ["shape", "row_shape", "offsets", "num_links"] {
            attributes.remove(name);
        }
    }

    /// Returns the declared number of columns of a row: from the row shape, otherwise from the
    /// channel names, otherwise one. `None` if it exceeds 64 bits.
    pub fn declared_columns(&self) -> Option<u64> {
        match (&self.row_shape, &self.channel_names) {
            (Some(shape), _) => shape
                .iter()
                .try_fold(1u64, |n, &extent| n.checked_mul(extent)),
            (None, Some(names)) => u64::try_from(names.len()).ok(),
            (None, None) => Some(1),
        }
    }
}

const DICTIONARY: &str = "dictionary";
const CATEGORIES: &str = "categories";

/// Reads a short list of extents.
pub(super) fn read_extents(at: &JsonField<'_>) -> Result<Vec<u64>, MetadataError> {
    let (found, limit) = (at.list()?.len(), MAX_RANK);
    if found > limit {
        return Err(at.error(crate::metadata::MetadataFault::Rank { found, limit }));
    }
    at.each(JsonField::u64)
}

impl Dictionary {
    fn write(&self, members: JsonMembers) -> JsonMembers {
        members
            .with("encoding", DICTIONARY)
            .with(CATEGORIES, self.categories.clone())
            .with("ordered", self.ordered)
            .with_some("_FillValue", self.fill)
    }

    fn read(fields: &Fields<'_>, notes: &mut Noter) -> Result<Option<Self>, MetadataError> {
        let Some(encoding) = fields.get("encoding") else {
            return Ok(None);
        };
        match encoding.text()? {
            DICTIONARY => {}
            "raw" => return Ok(None),
            other => return Err(encoding.unknown_word(other, "\"dictionary\"")),
        }
        let categories = fields.require(CATEGORIES)?.list()?.to_vec();
        let ordered = notes.field(fields, "ordered", JsonField::boolean);
        Ok(Some(Self {
            categories,
            ordered: ordered.unwrap_or_default(),
            fill: fields.get("_FillValue").map(|at| at.i64()).transpose()?,
        }))
    }
}
