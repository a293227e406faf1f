//! Attributes of composite stores, which contain further geometries in a level.

use std::collections::BTreeMap;

use zvf_format::links::LinkWidth;

use crate::{
    key::{Key, KeyError},
    metadata::{Attributes, Fields, JsonField, MetadataError, Noted, Noter},
};

/// One further geometry of a level.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GeometryEntry {
    /// The node of its vertices, a child of the level.
    pub vertices: String,
    /// Their number.
    pub vertex_count: Option<u64>,
    /// The node of its links, a child of the level.
    pub links: Option<String>,
    /// Number of edges, faces or polylines.
    pub part_count: Option<u64>,
}

/// Metadata of `geometry_index`: further geometries by kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GeometryIndex {
    /// The geometries.
    pub geometries: BTreeMap<String, GeometryEntry>,
}

impl GeometryIndex {
    /// Reads the attributes of `key`.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if an entry is malformed, or names a node that is not a child of the
    /// level.
    pub fn parse(key: &Key, attributes: &Attributes) -> Result<Noted<Self>, MetadataError> {
        let fields = Fields::attributes(key, attributes);
        let mut notes = Noter::default();
        let mut geometries = BTreeMap::new();
        let tags = ["zv_array", "zvf_array"];
        for (kind, at) in fields.iter().filter(|(name, _)| !tags.contains(name)) {
            let fields = at.fields()?;
            let counts = ["edge_count", "face_count", "polyline_count"];
            let count = counts.into_iter().find(|name| fields.get(name).is_some());
            let links = fields.get("links_array").map(|at| child(&at)).transpose()?;
            let geometry = GeometryEntry {
                vertices: child(&fields.require("array")?)?,
                vertex_count: notes.field(&fields, "vertex_count", JsonField::u64),
                links,
                part_count: count.and_then(|name| notes.field(&fields, name, JsonField::u64)),
            };
            geometries.insert(kind.to_owned(), geometry);
        }
        let value = Self { geometries };
        let notes = notes.finish();
        Ok(Noted { value, notes })
    }
}

/// Reads a name that becomes part of a key.
fn child(at: &JsonField<'_>) -> Result<String, MetadataError> {
    let name = at.text()?;
    let checked = Key::root().join(name);
    checked.map_err(|error: KeyError| at.error(error.into()))?;
    Ok(name.to_owned())
}

/// Metadata of `links_<kind>`. Its numbers refer to vertices in input order, which is not
/// preserved.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompositeLinks {
    /// Links.
    pub link_count: u64,
    /// Endpoints of a link.
    pub width: LinkWidth,
}

impl CompositeLinks {
    /// Reads the attributes of `key`.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if one of the two is missing or out of range.
    pub fn parse(key: &Key, attributes: &Attributes) -> Result<Noted<Self>, MetadataError> {
        let fields = Fields::attributes(key, attributes);
        let width = fields.require("link_width")?;
        let value = Self {
            link_count: fields.require("link_count")?.u64()?,
            width: LinkWidth::new(width.u64()?).map_err(|error| width.error(error.into()))?,
        };
        let notes = Vec::new();
        Ok(Noted { value, notes })
    }
}
