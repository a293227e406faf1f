//! Geometry to write, as columns.

use std::{borrow::Cow, collections::BTreeMap};

use zvf_model::{
    column::{Column, NumericColumn},
    scope::Scope,
};

/// Geometry to write. Fields that a kind of geometry does not use stay empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    /// Coordinates, one row for each vertex.
    pub positions: NumericColumn,
    /// Offsets of paths in `positions`: one more entry than there are paths. `None` for other
    /// geometry.
    pub part_offsets: Option<Vec<u64>>,
    /// Object id of each path; `None` numbers the paths from 0.
    pub part_objects: Option<Vec<i64>>,
    /// Object id of each vertex, for geometry other than paths.
    pub object_ids: Option<Vec<i64>>,
    /// Number of ends of a link.
    pub link_width: usize,
    /// Links: `link_width` vertex indices each, (child, parent) for skeletons.
    pub links: Vec<i64>,
    /// Vertex attributes.
    pub vertex: Vec<Column>,
    /// Link attributes.
    pub link: Vec<Column>,
    /// Fragment attributes, one row for each entry of `objects`; every fragment of an object gets
    /// its row.
    pub fragment: Vec<Column>,
    /// Fragment attributes, one row for each vertex, which is the same for all vertices of a fragment:
    /// of an object in a chunk, or of a bin.
    pub fragment_rows: Vec<Column>,
    /// Ids of the objects that rows of `object` and `fragment` describe. `None` means all objects,
    /// ascending; for paths, in the order of the paths.
    pub objects: Option<Vec<i64>>,
    /// Object attributes.
    pub object: Vec<Column>,
    /// Members of groups by group number, from 0 to 1,048,575. Numbers without members are empty
    /// groups. Members that are given more than once are stored once.
    pub groups: BTreeMap<u32, Vec<i64>>,
    /// Group attributes, one row for each group number up to the greatest.
    pub group: Vec<Column>,
}

impl<'a> From<&'a Geometry> for Cow<'a, Geometry> {
    fn from(geometry: &'a Geometry) -> Self {
        Self::Borrowed(geometry)
    }
}

impl From<Geometry> for Cow<'_, Geometry> {
    fn from(geometry: Geometry) -> Self {
        Self::Owned(geometry)
    }
}

impl Geometry {
    /// Creates geometry from positions alone.
    pub fn new(positions: NumericColumn) -> Self {
        Self {
            positions,
            part_offsets: None,
            part_objects: None,
            object_ids: None,
            link_width: 2,
            links: Vec::new(),
            vertex: Vec::new(),
            link: Vec::new(),
            fragment: Vec::new(),
            fragment_rows: Vec::new(),
            objects: None,
            object: Vec::new(),
            groups: BTreeMap::new(),
            group: Vec::new(),
        }
    }

    /// Returns the attributes of a scope; of fragments, those with a row for each object.
    pub fn columns_mut(&mut self, scope: Scope) -> &mut Vec<Column> {
        match scope {
            Scope::Vertex => &mut self.vertex,
            Scope::Fragment => &mut self.fragment,
            Scope::Link => &mut self.link,
            Scope::Object => &mut self.object,
            Scope::Group => &mut self.group,
        }
    }

    /// Returns all attributes with their scopes.
    pub fn attributes(&self) -> impl Iterator<Item = (Scope, &Column)> {
        let families = [
            (Scope::Vertex, &self.vertex),
            (Scope::Fragment, &self.fragment),
            (Scope::Fragment, &self.fragment_rows),
            (Scope::Link, &self.link),
            (Scope::Object, &self.object),
            (Scope::Group, &self.group),
        ];
        let families = families.into_iter();
        families.flat_map(|(scope, columns)| columns.iter().map(move |column| (scope, column)))
    }

    /// Returns the number of vertices.
    pub fn vertices(&self) -> usize {
        self.positions.len()
    }

    /// Returns the number of axes.
    pub fn axes(&self) -> usize {
        self.positions.row_len()
    }

    /// Returns the number of links.
    pub fn link_count(&self) -> usize {
        self.links.len() / self.link_width.max(1)
    }
}

/// The origin of the vertex numbers in the links of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LinkNumbering {
    /// The first vertex of the batch. Links connect vertices of the batch.
    #[default]
    Batch,
    /// The first vertex of the input. Links connect any vertices of the input, and a batch may have
    /// links without vertices. The vertices and links of a tree are nevertheless in one batch.
    Input,
}
