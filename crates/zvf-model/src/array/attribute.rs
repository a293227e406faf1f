//! Attributes of vertices, fragments and links.

use serde_json::Value;
use zvf_format::numeric::Dtype;

use super::{check_tag, vertices::dtype_or_float32};
use crate::{
    key::Key,
    metadata::{Attributes, Fields, JsonField, MetadataError, Noted, Noter},
    zarr::MAX_RANK,
};

/// Metadata of an attribute whose values are stored in cells.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CellAttribute {
    /// Its name, which equals that of the node.
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
    /// Shape of all values, declared by attributes of cross-chunk links up to 0.7.
    pub shape: Option<Vec<u64>>,
    /// Number of links, declared by families.
    pub num_links: Option<u64>,
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

const TAGS: &[&str] = &[
    "attribute",
    "fragment_attribute",
    "link_attribute",
    "link_attribute_family",
    "cross_chunk_link_attribute",
];

impl CellAttribute {
    /// Reads the attributes of `key`.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if the dtype is not numeric, or a dictionary has no categories.
    pub fn parse(key: &Key, attributes: &Attributes) -> Result<Noted<Self>, MetadataError> {
        let fields = Fields::attributes(key, attributes);
        let mut notes = Noter::default();
        check_tag(&fields, TAGS, &mut notes);
        let texts = |at: &JsonField<'_>| at.each(|item| item.text().map(str::to_owned));
        let value = Self {
            name: notes.field(&fields, "name", |at| at.text().map(str::to_owned)),
            dtype: dtype_or_float32(&fields)?,
            row_shape: notes.field(&fields, "row_shape", read_extents),
            channel_names: notes.field(&fields, "channel_names", texts),
            dictionary: Dictionary::read(&fields, &mut notes)?,
            shape: notes.field(&fields, "shape", read_extents),
            num_links: notes.field(&fields, "num_links", JsonField::u64),
        };
        let notes = notes.finish();
        Ok(Noted { value, notes })
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

/// Reads a short list of extents.
pub(super) fn read_extents(at: &JsonField<'_>) -> Result<Vec<u64>, MetadataError> {
    let (found, limit) = (at.list()?.len(), MAX_RANK);
    if found > limit {
        return Err(at.error(crate::metadata::MetadataFault::Rank { found, limit }));
    }
    at.each(JsonField::u64)
}

impl Dictionary {
    fn read(fields: &Fields<'_>, notes: &mut Noter) -> Result<Option<Self>, MetadataError> {
        let Some(encoding) = fields.get("encoding") else {
            return Ok(None);
        };
        match encoding.text()? {
            "dictionary" => {}
            "raw" => return Ok(None),
            other => return Err(encoding.unknown_word(other, "\"dictionary\"")),
        }
        let categories = fields.require("categories")?.list()?.to_vec();
        let ordered = notes.field(fields, "ordered", JsonField::boolean);
        Ok(Some(Self {
            categories,
            ordered: ordered.unwrap_or_default(),
            fill: fields.get("_FillValue").map(|at| at.i64()).transpose()?,
        }))
    }
}
