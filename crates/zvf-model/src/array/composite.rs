//! Attributes of composite stores, which contain further geometries in a level.

use std::collections::BTreeMap;

use zvf_format::links::LinkWidth;

use crate::{
    key::{Key, KeyError},
    metadata::{Attributes, Fields, JsonField, JsonMembers, MetadataError, Noted, Noter},
};

/// Parts that the links of a further geometry connect vertices to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// Edges of a graph.
    Edges,
    /// Faces of a mesh.
    Faces,
    /// Polylines.
    Polylines,
}

impl PartKind {
    const ALL: [Self; 3] = [Self::Edges, Self::Faces, Self::Polylines];

    /// Returns the member that counts the parts.
    fn member(self) -> &'static str {
        match self {
            Self::Edges => "edge_count",
            Self::Faces => "face_count",
            Self::Polylines => "polyline_count",
        }
    }
}

/// One further geometry of a level.
#[derive(Clone, Debug, PartialEq)]
pub struct GeometryEntry {
    /// The node of its vertices, a child of the level.
    pub vertices: String,
    /// Their number.
    pub vertex_count: Option<u64>,
    /// The node of its links, a child of the level.
    pub links: Option<String>,
    /// Number of edges, faces or polylines.
    pub part_count: Option<u64>,
    /// Parts that are counted; absent without a count.
    pub parts: Option<PartKind>,
    /// Members unknown to this crate.
    pub unknown: Attributes,
}

/// Metadata of `geometry_index`: further geometries by kind.
#[derive(Clone, Debug, PartialEq)]
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
            let is_counted = |parts: &PartKind| fields.get(parts.member()).is_some();
            let parts = PartKind::ALL.into_iter().find(is_counted);
            let counts = PartKind::ALL.map(PartKind::member);
            let known = [&["array", "vertex_count", "links_array"][..], &counts].concat();
            let links = fields.get("links_array").map(|at| child(&at)).transpose()?;
            let geometry = GeometryEntry {
                vertices: child(&fields.require("array")?)?,
                vertex_count: notes.field(&fields, "vertex_count", JsonField::u64),
                links,
                part_count: parts
                    .and_then(|parts| notes.field(&fields, parts.member(), JsonField::u64)),
                parts,
                unknown: fields.without(&known),
            };
            geometries.insert(kind.to_owned(), geometry);
        }
        let value = Self { geometries };
        let notes = notes.finish();
        Ok(Noted { value, notes })
    }

    /// Returns the attributes of the node.
    pub fn to_attributes(&self) -> Attributes {
        let geometries = self.geometries.iter();
        let members = geometries.map(|(kind, geometry)| {
            let count = geometry.parts.zip(geometry.part_count);
            let entry = JsonMembers::default()
                .with("array", geometry.vertices.as_str())
                .with_some("vertex_count", geometry.vertex_count)
                .with_some("links_array", geometry.links.as_deref());
            let entry = match count {
                Some((parts, count)) => entry.with(parts.member(), count),
                None => entry,
            };
            (kind.clone(), entry.with_all(&geometry.unknown).into())
        });
        members.collect()
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

    /// Returns the attributes of the node.
    pub fn to_attributes(&self) -> Attributes {
        JsonMembers::default()
            .with("link_count", self.link_count)
            .with("link_width", self.width.get())
            .finish()
    }
}
