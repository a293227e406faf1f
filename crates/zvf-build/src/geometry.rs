//! Geometry to write, as columns.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
};

use zvf_model::{
    column::{Column, NumericColumn},
    layout::FRAGMENT_OWNERS,
    scope::Scope,
};

use crate::{GeometryKind, column_check, error::BuildError};

/// Geometry to write, whose columns agree with each other: [`GeometryBuilder::build`] has checked
/// them. [`WritePlan::new`](crate::WritePlan::new) checks that a design has a place for them, and,
/// because links of a batch may end in other batches, the vertices in which links end.
///
/// ```
/// use zvf_build::{BuildError, Geometry, NumericColumn};
///
/// let positions = NumericColumn::float32(2, [0.0, 0.0, 9.0, 1.0, 12.0, 5.0]);
/// let paths = Geometry::builder(positions).paths(vec![0, 2, 3], vec![7, 8]).build()?;
/// assert_eq!((paths.vertices(), paths.owners().paths()), (3, 2));
///
/// let refused = paths.into_builder().paths(vec![0, 2], None).build();
/// assert!(matches!(refused, Err(BuildError::PartOffsets { vertices: 3, found: 2, .. })));
/// # Ok::<(), BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry(GeometryBuilder);

/// Columns of geometry that is made or changed. Columns that a kind of geometry does not use stay
/// empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GeometryBuilder {
    /// Coordinates, one row for each vertex.
    pub positions: NumericColumn,
    /// The objects that vertices belong to.
    pub owners: VertexOwners,
    /// Links, (child, parent) for skeletons.
    pub links: LinkEnds,
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

/// The objects that the vertices of a geometry belong to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum VertexOwners {
    /// No ids. Linked geometry is one object; points are one object each where objects are described,
    /// and have none otherwise.
    #[default]
    Unnamed,
    /// Object id of each vertex, for geometry other than paths.
    Vertices(Vec<i64>),
    /// Paths, which are an object each.
    Paths {
        /// Offsets of the paths in the vertices: one more entry than there are paths.
        offsets: Vec<u64>,
        /// Object id of each path; `None` numbers the paths from 0.
        objects: Option<Vec<i64>>,
    },
}

/// Links with a fixed number of ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkEnds {
    /// Number of ends of a link.
    pub width: usize,
    /// `width` vertex indices for each link.
    pub ends: Vec<i64>,
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
        Self(Self::builder(positions))
    }

    /// Starts geometry with its positions.
    pub fn builder(positions: NumericColumn) -> GeometryBuilder {
        GeometryBuilder {
            positions,
            ..GeometryBuilder::default()
        }
    }

    /// Returns the columns, to change them. They are moved, not copied.
    pub fn into_builder(self) -> GeometryBuilder {
        self.0
    }

    pub(crate) fn as_builder(&self) -> &GeometryBuilder {
        &self.0
    }

    /// Returns the coordinates, one row for each vertex.
    pub fn positions(&self) -> &NumericColumn {
        &self.0.positions
    }

    /// Returns the objects that vertices belong to.
    pub fn owners(&self) -> &VertexOwners {
        &self.0.owners
    }

    /// Returns the links.
    pub fn links(&self) -> &LinkEnds {
        &self.0.links
    }

    /// Returns the attributes of a scope; of fragments, those with a row for each object.
    pub fn columns(&self, scope: Scope) -> &[Column] {
        self.0.columns(scope)
    }

    /// Returns the attributes of fragments with a row for each vertex.
    pub fn fragment_rows(&self) -> &[Column] {
        &self.0.fragment_rows
    }

    /// Returns all attributes with their scopes.
    pub fn attributes(&self) -> impl Iterator<Item = (Scope, &Column)> {
        let families = Scope::ALL.map(|scope| (scope, self.columns(scope)));
        let by_vertex = [(Scope::Fragment, self.fragment_rows())];
        let families = families.into_iter().chain(by_vertex);
        families.flat_map(|(scope, columns)| columns.iter().map(move |column| (scope, column)))
    }

    /// Returns the ids of the objects that attributes of objects and fragments describe; `None` for
    /// all objects.
    pub fn objects(&self) -> Option<&[i64]> {
        self.0.objects.as_deref()
    }

    /// Returns the members of groups by group number.
    pub fn groups(&self) -> &BTreeMap<u32, Vec<i64>> {
        &self.0.groups
    }

    /// Returns the number of vertices.
    pub fn vertices(&self) -> usize {
        self.0.vertices()
    }

    /// Returns the number of axes.
    pub fn axes(&self) -> usize {
        self.0.axes()
    }
}

impl GeometryBuilder {
    zvf_model::setters! {
        positions: NumericColumn,
        vertex: Vec<Column>,
        link: Vec<Column>,
        fragment: Vec<Column>,
        fragment_rows: Vec<Column>,
        objects: Vec<i64>,
        object: Vec<Column>,
        groups: BTreeMap<u32, Vec<i64>>,
        group: Vec<Column>,
    }

    /// Sets the object id of each vertex, for geometry other than paths.
    #[must_use]
    pub fn object_ids(self, ids: Vec<i64>) -> Self {
        let owners = VertexOwners::Vertices(ids);
        Self { owners, ..self }
    }

    /// Divides the vertices into paths. `offsets` has one more entry than there are paths; `objects`
    /// has the id of each path, and `None` numbers them from 0.
    #[must_use]
    pub fn paths(self, offsets: Vec<u64>, objects: impl Into<Option<Vec<i64>>>) -> Self {
        let objects = objects.into();
        let owners = VertexOwners::Paths { offsets, objects };
        Self { owners, ..self }
    }

    /// Sets links of `width` ends each, (child, parent) for skeletons.
    #[must_use]
    pub fn links(self, width: usize, ends: Vec<i64>) -> Self {
        let links = LinkEnds { width, ends };
        Self { links, ..self }
    }

    /// Returns the attributes of a scope; of fragments, those with a row for each object.
    pub fn columns(&self, scope: Scope) -> &[Column] {
        match scope {
            Scope::Vertex => &self.vertex,
            Scope::Fragment => &self.fragment,
            Scope::Link => &self.link,
            Scope::Object => &self.object,
            Scope::Group => &self.group,
        }
    }

    /// Returns the attributes of a scope, to change them.
    pub fn columns_mut(&mut self, scope: Scope) -> &mut Vec<Column> {
        match scope {
            Scope::Vertex => &mut self.vertex,
            Scope::Fragment => &mut self.fragment,
            Scope::Link => &mut self.link,
            Scope::Object => &mut self.object,
            Scope::Group => &mut self.group,
        }
    }

    /// Returns the number of vertices.
    pub fn vertices(&self) -> usize {
        self.positions.len()
    }

    /// Returns the number of axes.
    pub fn axes(&self) -> usize {
        self.positions.row_len()
    }

    /// Moves the objects and groups with their attributes into geometry without vertices.
    #[must_use]
    pub fn take_tables(&mut self) -> Self {
        let positions = NumericColumn::new(self.positions.kind, self.positions.width);
        Self {
            objects: self.objects.take(),
            object: std::mem::take(&mut self.object),
            groups: std::mem::take(&mut self.groups),
            group: std::mem::take(&mut self.group),
            ..Geometry::builder(positions)
        }
    }

    /// Checks the columns. Coordinates are not read.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when offsets do not divide the vertices, link ends stop inside a link, ids of
    /// paths or described objects repeat, or an attribute has an invalid or repeated name or another
    /// number of rows than what it describes. Where `objects` is `None`, the number of objects depends
    /// on the kind of geometry and on other batches, and is compared later.
    pub fn build(self) -> Result<Geometry, BuildError> {
        let vertices = self.vertices();
        self.owners.check(vertices)?;
        let LinkEnds { width, ends } = &self.links;
        if !ends.is_empty() && !ends.len().is_multiple_of(*width) {
            let (ends, width) = (ends.len(), *width);
            return Err(BuildError::PartialLink { ends, width });
        }
        column_check::attributes(Scope::Vertex, &self.vertex, vertices)?;
        column_check::attributes(Scope::Link, &self.link, self.links.len())?;
        column_check::attributes(Scope::Fragment, &self.fragment_rows, vertices)?;
        for scope in [Scope::Object, Scope::Fragment] {
            column_check::names(scope, self.columns(scope))?;
        }
        if let Some(objects) = &self.objects {
            check_distinct(objects)?;
            self.check_described(objects.len())?;
        }
        let what = column_check::role(Scope::Fragment);
        let is_by_vertex = |name: &str| self.fragment_rows.iter().any(|other| other.name == name);
        if let Some(column) = self.fragment.iter().find(|it| is_by_vertex(&it.name)) {
            let name = column.name.clone();
            return Err(BuildError::DuplicateName { what, name });
        }
        let mut of_fragments = self.fragment.iter().chain(&self.fragment_rows);
        if of_fragments.any(|column| column.name == FRAGMENT_OWNERS) {
            let name = FRAGMENT_OWNERS.to_owned();
            return Err(BuildError::ReservedName { what, name });
        }
        self.check_groups()?;
        Ok(Geometry(self))
    }

    /// Checks that attributes of objects and fragments have a row for each of the objects that they
    /// describe.
    pub(crate) fn check_described(&self, objects: usize) -> Result<(), BuildError> {
        column_check::rows(Scope::Object, &self.object, objects)?;
        column_check::rows(Scope::Fragment, &self.fragment, objects)
    }

    /// Checks the numbers and attributes of groups. A group may have attributes and no members.
    fn check_groups(&self) -> Result<(), BuildError> {
        let last = self.groups.keys().next_back();
        if let Some(&number) = last.filter(|number| **number >= MAX_GROUPS) {
            return Err(BuildError::GroupNumber(number));
        }
        let groups = last.map_or(0, |last| *last as usize + 1);
        let rows = self.group.iter().map(|column| column.values.len());
        column_check::attributes(Scope::Group, &self.group, rows.fold(groups, usize::max))
    }
}

/// Upper bound on the numbers of groups. A number takes memory for all smaller ones: groups are rows of
/// one chunk, in which missing groups have empty rows. `zvf query` lists as many groups.
const MAX_GROUPS: u32 = 1 << 20;

impl VertexOwners {
    /// Returns what optional columns of a file or of a caller say of geometry of a kind.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when there are ids of paths without offsets, or ids of vertices beside offsets.
    pub fn of_columns(
        kind: GeometryKind,
        part_offsets: Option<Vec<u64>>,
        part_objects: Option<Vec<i64>>,
        object_ids: Option<Vec<i64>>,
    ) -> Result<Self, BuildError> {
        let is_path = kind.is_paths();
        let kind = kind.plural();
        let no_place = |what| Err(BuildError::Unsupported { kind, what });
        match (part_offsets, part_objects, object_ids) {
            (Some(offsets), objects, None) => Ok(Self::Paths { offsets, objects }),
            (Some(_), _, Some(_)) if is_path => {
                no_place("object_ids: the object of a path is in part_objects")
            }
            (Some(_), _, Some(_)) => no_place("part_offsets"),
            (None, Some(_), _) if is_path => {
                let what = "part_offsets";
                Err(BuildError::MissingInput { kind, what })
            }
            (None, Some(_), _) => no_place("part_objects"),
            (None, None, Some(ids)) => Ok(Self::Vertices(ids)),
            (None, None, None) => Ok(Self::Unnamed),
        }
    }

    /// Returns the offsets of the paths; `None` for other geometry.
    pub fn offsets(&self) -> Option<&[u64]> {
        match self {
            Self::Paths { offsets, .. } => Some(offsets),
            Self::Unnamed | Self::Vertices(_) => None,
        }
    }

    /// Returns the number of paths.
    pub fn paths(&self) -> usize {
        self.offsets()
            .map_or(0, |offsets| offsets.len().saturating_sub(1))
    }

    /// Returns the object id of each vertex or path, if ids are given.
    pub fn ids(&self) -> Option<&[i64]> {
        match self {
            Self::Unnamed => None,
            Self::Vertices(ids) => Some(ids),
            Self::Paths { objects, .. } => objects.as_deref(),
        }
    }

    /// Returns the object id of each vertex or path, to change them.
    pub fn ids_mut(&mut self) -> Option<&mut Vec<i64>> {
        match self {
            Self::Unnamed => None,
            Self::Vertices(ids) => Some(ids),
            Self::Paths { objects, .. } => objects.as_mut(),
        }
    }

    /// Numbers paths without ids from `first`.
    pub fn number_paths(&mut self, first: i64) {
        let paths = self.paths();
        if let Self::Paths { objects, .. } = self {
            objects.get_or_insert_with(|| (first..i64::MAX).take(paths).collect());
        }
    }

    fn check(&self, vertices: usize) -> Result<(), BuildError> {
        match self {
            Self::Unnamed => Ok(()),
            Self::Vertices(ids) => {
                column_check::length("column", "object_ids", vertices, ids.len())
            }
            Self::Paths { offsets, objects } => {
                check_offsets(offsets, vertices)?;
                let Some(ids) = objects else {
                    return Ok(());
                };
                column_check::length("column", "part_objects", self.paths(), ids.len())?;
                check_distinct(ids)
            }
        }
    }
}

/// Checks that offsets ascend from 0 to the number of vertices.
fn check_offsets(offsets: &[u64], vertices: usize) -> Result<(), BuildError> {
    let refused = |at: usize, found: u64| {
        Err(BuildError::PartOffsets {
            vertices,
            at,
            found,
        })
    };
    let end = vertices as u64;
    match (offsets.first(), offsets.last()) {
        (Some(0), Some(last)) if *last == end => {}
        (Some(0), Some(&last)) => return refused(offsets.len() - 1, last),
        (first, _) => return refused(0, first.copied().unwrap_or(end)),
    }
    match offsets.windows(2).position(|pair| pair[1] < pair[0]) {
        None => Ok(()),
        Some(at) => refused(at + 1, offsets[at + 1]),
    }
}

fn check_distinct(ids: &[i64]) -> Result<(), BuildError> {
    if ids.is_sorted_by(|a, b| a < b) {
        return Ok(());
    }
    let mut seen = HashSet::with_capacity(ids.len());
    match ids.iter().find(|id| !seen.insert(**id)) {
        None => Ok(()),
        Some(&id) => Err(BuildError::DuplicateObject(id)),
    }
}

impl Default for LinkEnds {
    fn default() -> Self {
        Self {
            width: 2,
            ends: Vec::new(),
        }
    }
}

impl LinkEnds {
    /// Returns the number of links.
    pub fn len(&self) -> usize {
        self.ends.len() / self.width.max(1)
    }

    /// Returns whether there are no links.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
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
