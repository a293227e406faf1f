//! The interchange arrays: the content of a file in any format, and the geometry it forms.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use zvf::{
    AxisSpec, BuildError, Column, Design, Geometry, GeometryBuilder, GeometryKind, LinkEnds,
    NumericColumn, ObjectIds, QueryResult, Scope, VertexOwners, numeric::Kind,
};
use zvf_model::layout::FRAGMENT_OWNERS;

use super::{
    ColumnError, GeometryInput, GeometryReadOptions, RowIdPolicy, StoreDescription,
    column::{FileColumn, NamedColumn, attribute},
};
use crate::display::{count_noun, len_u64};
use crate::{FileError, FileFault};

/// Arrays by meaning. Geometry checks later that their lengths agree.
#[derive(Debug)]
pub(crate) struct InterchangeArrays {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) axes: Option<Vec<String>>,
    pub(crate) crs: Option<serde_json::Value>,
    pub(crate) positions: NumericColumn,
    /// Addresses of the vertices in the original store.
    pub(crate) row_ids: Option<FileColumn>,
    pub(crate) object_ids: Option<Vec<i64>>,
    pub(crate) part_offsets: Option<Vec<u64>>,
    pub(crate) part_objects: Option<Vec<i64>>,
    pub(crate) links: Option<LinkEnds>,
    pub(crate) objects: Option<Vec<i64>>,
    pub(crate) vertex: Vec<NamedColumn>,
    pub(crate) link: Vec<NamedColumn>,
    pub(crate) object: Vec<NamedColumn>,
    /// One row per vertex or one row per object.
    pub(crate) fragment: Vec<NamedColumn>,
    pub(crate) groups: Vec<InputGroup>,
    pub(crate) group: Vec<NamedColumn>,
    pub(crate) description: StoreDescription,
}

/// Members of a group, which the file identifies by number or by name.
#[derive(Debug)]
pub(crate) struct InputGroup {
    pub(crate) name: String,
    pub(crate) members: Vec<i64>,
    /// Column that names the group.
    pub(crate) column: Arc<FileColumn>,
}

impl InterchangeArrays {
    /// Returns the attributes of a scope.
    pub(crate) fn columns(&self, scope: Scope) -> &[NamedColumn] {
        match scope {
            Scope::Vertex => &self.vertex,
            Scope::Fragment => &self.fragment,
            Scope::Link => &self.link,
            Scope::Object => &self.object,
            Scope::Group => &self.group,
        }
    }

    pub(crate) fn columns_mut(&mut self, scope: Scope) -> &mut Vec<NamedColumn> {
        match scope {
            Scope::Vertex => &mut self.vertex,
            Scope::Fragment => &mut self.fragment,
            Scope::Link => &mut self.link,
            Scope::Object => &mut self.object,
            Scope::Group => &mut self.group,
        }
    }

    pub(crate) fn new(positions: NumericColumn) -> Self {
        Self {
            files: Vec::new(),
            axes: None,
            crs: None,
            positions,
            row_ids: None,
            object_ids: None,
            part_offsets: None,
            part_objects: None,
            links: None,
            objects: None,
            vertex: Vec::new(),
            link: Vec::new(),
            object: Vec::new(),
            fragment: Vec::new(),
            groups: Vec::new(),
            group: Vec::new(),
            description: StoreDescription::default(),
        }
    }
}

/// Takes one link from each row of `column`.
pub(crate) fn links_of_column(column: &FileColumn) -> Result<LinkEnds, FileError> {
    Ok(LinkEnds {
        width: column.numbers()?.row_len(),
        ends: column.integers()?,
    })
}

/// Exclusive upper bound on the numbers given to named groups: group attributes have one row per
/// number.
const MAX_NAMED_GROUPS: u32 = 1 << 20;

/// Builds the geometry of the arrays.
pub(crate) fn assemble(
    arrays: InterchangeArrays,
    options: &GeometryReadOptions,
) -> Result<GeometryInput, FileError> {
    let mut notes = text_notes(&arrays);
    let row_ids = match (&arrays.row_ids, options.row_ids) {
        (Some(column), RowIdPolicy::Read) => {
            let ids = column.ids()?;
            column.check_distinct(&ids)?;
            Some(column.offsets()?)
        }
        (Some(_), RowIdPolicy::LeaveOut) => {
            let note = "row ids left out: they belong to the store that the file comes from";
            notes.push(note.to_owned());
            None
        }
        (None, _) => None,
    };
    let mut geometry = Geometry::builder(arrays.positions);
    let kind = options.kind;
    geometry.owners = match (arrays.part_offsets, arrays.part_objects, arrays.object_ids) {
        (None, None, Some(ids)) if kind.is_paths() => {
            let (paths, note) = paths_of_object_runs(&ids);
            notes.extend(note);
            paths
        }
        (offsets, objects, ids) => VertexOwners::of_columns(kind, offsets, objects, ids)
            .map_err(|error| FileFault::Geometry(Box::new(error)).of(first_file(&arrays.files)))?,
    };
    geometry.links = arrays.links.unwrap_or_default();
    geometry.objects = arrays.objects;
    geometry.vertex = attributes(arrays.vertex);
    geometry.link = attributes(arrays.link);
    geometry.object = attributes(arrays.object);
    geometry.group = attributes(arrays.group);
    let mut description = arrays.description;
    let mut of_fragments = arrays.fragment;
    let has_objects = geometry.owners.ids().is_some();
    let count = of_fragments.len();
    of_fragments.retain(|(name, _)| !has_objects || name != FRAGMENT_OWNERS);
    if of_fragments.len() < count {
        let note = "fragment.object_id left out: it repeats the object ids, and a store that has it \
                    fills it by itself";
        notes.push(note.to_owned());
    }
    let fragment_names: Vec<String> = of_fragments.iter().map(|(name, _)| name.clone()).collect();
    notes.extend(fragments(
        of_fragments,
        options.fragment_rows,
        &mut geometry,
    )?);
    for name in fragment_names {
        if geometry.vertex.iter().any(|column| column.name == name) {
            description.move_attribute("fragment", "vertex", &name);
        }
    }
    let group_names = groups(arrays.groups, &mut geometry)?;
    Ok(GeometryInput {
        geometry,
        group_names,
        axes: arrays.axes,
        crs: arrays.crs,
        row_ids,
        numbers_objects: false,
        description,
        files: arrays.files,
        notes,
    })
}

/// Names the attributes that are text because of a field below numbers, which may be a mistake.
fn text_notes(arrays: &InterchangeArrays) -> Vec<String> {
    let mut notes = Vec::new();
    for scope in Scope::ALL {
        for (name, column) in arrays.columns(scope) {
            let scope = scope.name();
            if let Some(first) = column.first_text.as_ref().filter(|it| it.follows_numbers) {
                notes.push(format!(
                    "{scope}.{name} is stored as text, because line {} of {} has {:?} below numbers",
                    first.line,
                    column.file.display(),
                    first.text,
                ));
            }
        }
    }
    notes
}

fn attributes(columns: Vec<NamedColumn>) -> Vec<Column> {
    columns.into_iter().map(attribute).collect()
}

/// Makes a path of each run of vertices that belong to one object. Also returns a note if an object
/// has several runs, which may be a mistake.
fn paths_of_object_runs(ids: &[i64]) -> (VertexOwners, Option<String>) {
    let mut seen = HashSet::new();
    let mut again = None;
    let mut offsets = vec![0];
    let mut objects = Vec::new();
    let mut end = 0;
    for run in ids.chunk_by(|one, next| one == next) {
        objects.extend(run.first());
        again = again.or(run.first().filter(|id| !seen.insert(**id)).copied());
        end += len_u64(run.len());
        offsets.push(end);
    }
    let objects = Some(objects);
    let note = again.map(|id| {
        format!(
            "the rows of object {id}, and perhaps of others, are not consecutive, so each run of rows is a path; sort the rows by object_id if an object is one path"
        )
    });
    (VertexOwners::Paths { offsets, objects }, note)
}

/// Returns the object of each vertex; empty if the geometry has no objects.
fn vertex_owners(geometry: &GeometryBuilder) -> Vec<i64> {
    let (offsets, given) = match &geometry.owners {
        VertexOwners::Unnamed => return Vec::new(),
        VertexOwners::Vertices(ids) => return ids.clone(),
        VertexOwners::Paths { offsets, objects } => (offsets, objects),
    };
    let max = geometry.vertices();
    let mut owners = Vec::with_capacity(max);
    let spans = offsets.iter().zip(offsets.iter().skip(1));
    for (part, (start, end)) in spans.enumerate() {
        let object = match given {
            Some(objects) => objects.get(part).copied(),
            None => i64::try_from(part).ok(),
        };
        // Offsets are not validated yet, so the length may be wrong.
        let length = usize::try_from(end.saturating_sub(*start)).unwrap_or(usize::MAX);
        let left = max.saturating_sub(owners.len());
        owners.extend(std::iter::repeat_n(object.unwrap_or(-1), length.min(left)));
    }
    owners
}

/// Stores attributes of fragments.
///
/// A file has one row per vertex, because fragments exist only in a store. If all vertices of each
/// object agree, the attribute becomes one of fragments. Otherwise it has a value for each fragment if
/// `by_fragment` is set, or else becomes one of vertices.
fn fragments(
    columns: Vec<NamedColumn>,
    by_fragment: bool,
    geometry: &mut GeometryBuilder,
) -> Result<Vec<String>, FileError> {
    let mut notes = Vec::new();
    if columns.is_empty() {
        return Ok(notes);
    }
    let owners = vertex_owners(geometry);
    let objects = match geometry.objects.clone() {
        Some(objects) => objects,
        None if matches!(geometry.owners, VertexOwners::Vertices(_)) => {
            let objects: BTreeSet<i64> = owners.iter().copied().collect();
            objects.into_iter().collect()
        }
        None => {
            let mut seen = BTreeSet::new();
            let objects = owners.iter().copied();
            objects.filter(|object| seen.insert(*object)).collect()
        }
    };
    let mut are_used = false;
    for (name, column) in columns {
        let rows = column.values.len();
        if rows == geometry.vertices() {
            let rows = Column::new(&name, column.values.clone());
            if let Some(column) = rows_per_object(&rows, &owners, &objects) {
                are_used = true;
                geometry.fragment.push(column);
                continue;
            }
            if by_fragment {
                geometry.fragment_rows.push(rows);
                continue;
            }
            if geometry.vertex.iter().any(|other| other.name == name) {
                return Err(column.error(ColumnError::Twice));
            }
            notes.push(format!(
                "{} is stored as vertex.{name}, because its values differ within an object or belong to no object; --fragment-rows keeps a value for each fragment",
                column.label
            ));
            let values = column.values;
            geometry.vertex.push(Column::new(name, values));
        } else if rows == objects.len() {
            are_used = true;
            let values = column.values;
            geometry.fragment.push(Column::new(name, values));
        } else {
            let expected = geometry.vertices();
            let found = rows;
            return Err(column.error(ColumnError::Rows { expected, found }));
        }
    }
    if are_used {
        geometry.objects = Some(objects);
    }
    Ok(notes)
}

/// Returns one row per object if all its vertices have equal rows.
fn rows_per_object(column: &Column, owners: &[i64], objects: &[i64]) -> Option<Column> {
    let mut first: HashMap<i64, usize> = HashMap::new();
    let known: BTreeSet<i64> = objects.iter().copied().collect();
    if owners.len() != column.len() {
        return None;
    }
    for (row, owner) in owners.iter().enumerate() {
        let one = *first.entry(*owner).or_insert(row);
        if !known.contains(owner) || !column.rows_are_equal(one, row) {
            return None;
        }
    }
    let rows: Option<Vec<usize>> = objects
        .iter()
        .map(|object| first.get(object).copied())
        .collect();
    Some(column.take(rows?))
}

/// Adds groups to the geometry and returns the names of the named ones.
fn groups(
    groups: Vec<InputGroup>,
    geometry: &mut GeometryBuilder,
) -> Result<BTreeMap<u32, String>, FileError> {
    let mut named = Vec::new();
    for group in groups {
        match group.number()? {
            Some(number) => {
                if geometry.groups.insert(number, group.members).is_some() {
                    return Err(group.column.error(ColumnError::Twice));
                }
            }
            None => named.push(group),
        }
    }
    let mut names = BTreeMap::new();
    let mut next = geometry
        .groups
        .keys()
        .next_back()
        .map_or(0, |last| last.saturating_add(1));
    for group in named {
        if next >= MAX_NAMED_GROUPS {
            return Err(group.column.error(ColumnError::Group(group.name)));
        }
        geometry.groups.insert(next, group.members);
        names.insert(next, group.name);
        next += 1;
    }
    if !names.is_empty() {
        let rows = (0..next).map(|number| names.get(&number).cloned());
        geometry.group.push(Column::text("name", rows));
    }
    Ok(names)
}

/// Attribute of objects that names the object whose part a path was.
const SOURCE_OBJECT: &str = "source_object";

impl GeometryInput {
    /// Creates geometry of the whole result of a query, with the description of its store.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if vertices of this kind of geometry cannot be of such objects.
    pub fn of_result(
        kind: GeometryKind,
        result: QueryResult,
        mut description: StoreDescription,
    ) -> Result<Self, BuildError> {
        let mut geometry = Geometry::builder(result.positions);
        let (offsets, part_objects) = result
            .parts
            .map(|parts| (parts.offsets, parts.objects))
            .unzip();
        let object_ids = result
            .object_ids
            .filter(|_| !result.objects.is_empty())
            .map(ObjectIds::into_numbers);
        geometry.owners = VertexOwners::of_columns(kind, offsets, part_objects, object_ids)?;
        if let Some(links) = result.links {
            let width = usize::try_from(links.width).unwrap_or(usize::MAX);
            // Rows of a result fit into its memory.
            let row = |end| i64::try_from(end).unwrap_or(i64::MAX);
            geometry = geometry.links(width, links.ends.into_iter().map(row).collect());
        }
        geometry.vertex = result.vertex;
        geometry.fragment_rows = result.fragment;
        geometry.link = result.link;
        geometry.object = result.object;
        geometry.objects = Some(result.objects).filter(|objects| !objects.is_empty());
        for group in result.groups {
            if let Ok(number) = u32::try_from(group.id) {
                geometry.groups.insert(number, group.members);
            }
        }
        geometry.group = std::mem::take(&mut description.group);
        let mut input = Self::new(geometry, description);
        input.notes = result.notes;
        Ok(input)
    }

    /// Completes a design: what the design leaves open is taken from the file.
    pub fn complete(&self, design: &mut Design) {
        self.description.complete(design, self.axes.as_deref());
        if let (None, Some(names)) = (&design.axes, &self.axes) {
            design.axes = Some(names.iter().map(AxisSpec::new).collect());
        }
        if design.crs.is_none() {
            design.crs = self.crs.clone().map(Into::into);
        }
    }

    /// Makes every path an object of its own. A store joins the parts of one object, so the parts
    /// that a clipped query cuts out of a path would be connected by lines that do not exist.
    ///
    /// The first part keeps the id. Further parts get new ids above the largest one, the
    /// attributes and groups of their object, and its id as the attribute `source_object`.
    ///
    /// # Errors
    ///
    /// Returns [`FileFault::ObjectIds`] if no ids are left.
    pub fn separate_parts(&mut self) -> Result<(), FileError> {
        let geometry = &mut self.geometry;
        let VertexOwners::Paths {
            objects: Some(parts),
            ..
        } = &mut geometry.owners
        else {
            return Ok(());
        };
        let mut seen = BTreeSet::new();
        if parts.iter().all(|id| seen.insert(*id)) {
            return Ok(());
        }
        let originals = parts.clone();
        let known = geometry.objects.iter().flatten();
        let largest = known.chain(parts.iter()).copied().max().unwrap_or(0);
        let mut sources: Vec<(i64, i64)> = Vec::new();
        let mut next = largest.max(0);
        let mut seen = BTreeSet::new();
        for part in parts.iter_mut().filter(|id| !seen.insert(**id)) {
            next = next
                .checked_add(1)
                .ok_or_else(|| FileFault::ObjectIds.of(first_file(&self.files)))?;
            sources.push((next, *part));
            *part = next;
        }
        let (objects, source_ids) = match geometry.objects.take() {
            // Attribute rows follow the paths.
            None => (parts.clone(), originals),
            Some(mut objects) => {
                let rows: HashMap<i64, usize> =
                    (0..).zip(&objects).map(|(row, id)| (*id, row)).collect();
                let further = sources.iter().map(|(_, source)| rows.get(source).copied());
                let missing = objects.len();
                let further = further.map(|row| row.unwrap_or(missing));
                let taken: Vec<usize> = (0..objects.len()).chain(further).collect();
                let columns = geometry.object.iter_mut().chain(&mut geometry.fragment);
                // Another number of rows is refused later.
                for attribute in columns.filter(|attribute| attribute.len() == missing) {
                    attribute.extend_with_nulls(missing + 1);
                    *attribute = attribute.take(taken.iter().copied());
                }
                let mut source_ids = objects.clone();
                source_ids.extend(sources.iter().map(|(_, source)| *source));
                objects.extend(sources.iter().map(|(id, _)| *id));
                (objects, source_ids)
            }
        };
        if geometry
            .object
            .iter()
            .all(|attribute| attribute.name != SOURCE_OBJECT)
        {
            let mut column = NumericColumn::new(Kind::Int64, 1);
            column.bytes = source_ids.into_iter().flat_map(i64::to_le_bytes).collect();
            geometry
                .object
                .push(Column::new(SOURCE_OBJECT.to_owned(), column));
        }
        geometry.objects = Some(objects);
        for members in geometry.groups.values_mut() {
            let own: BTreeSet<i64> = members.iter().copied().collect();
            let parts = sources.iter().filter(|(_, source)| own.contains(source));
            members.extend(parts.map(|(id, _)| *id));
        }
        let paths = count_noun(
            len_u64(sources.len()),
            "path is an additional part",
            "paths are additional parts",
        );
        self.notes.push(format!(
            "{paths} of an object that another path starts; the store keeps each part as a separate object, and object.{SOURCE_OBJECT} holds the id of the original"
        ));
        Ok(())
    }
}

fn first_file(files: &[PathBuf]) -> &Path {
    files.first().map_or(Path::new(""), PathBuf::as_path)
}

impl InputGroup {
    /// Returns the group's number; `None` if the file gives a name.
    fn number(&self) -> Result<Option<u32>, FileError> {
        let is_number =
            !self.name.is_empty() && self.name.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number {
            return Ok(None);
        }
        let number = self.name.parse::<u32>().ok();
        let number = number.filter(|number| number.to_string() == self.name);
        let error = || self.column.error(ColumnError::Group(self.name.clone()));
        number.ok_or_else(error).map(Some)
    }
}

impl FileColumn {
    /// Names the column as an attribute.
    pub(crate) fn named(self, name: &str) -> NamedColumn {
        (name.to_owned(), self)
    }
}
