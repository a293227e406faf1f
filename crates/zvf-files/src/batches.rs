//! Files as query results, for writers that take results.

use std::{
    collections::{BTreeMap, HashSet},
    error::Error,
    fmt,
};

use zvf::{
    GeometryBuilder, GeometryKind, LinkNumbering, Links, ObjectGroup, ObjectIds, Parts,
    QueryResult, VertexOwners,
};

use crate::{FileDescription, FileFault, GeometryReader, GroupTables};

/// Batches of a file as query results. Objects, parts and links are those of the file.
pub struct FileResults<'a> {
    reader: &'a mut dyn GeometryReader,
    state: ResultState,
}

impl fmt::Debug for FileResults<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("FileResults");
        debug.field("state", &self.state).finish_non_exhaustive()
    }
}

impl<'a> FileResults<'a> {
    /// Starts with the next batch of a reader.
    ///
    /// # Errors
    ///
    /// The error of the reader's tables.
    pub fn new(reader: &'a mut dyn GeometryReader) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let description = reader.description();
        let axes = description.axes.iter().map(|axis| axis.name.clone());
        let tables = reader.tables()?.into_builder();
        let mut state = ResultState::new(tables, description.kind, axes.collect());
        state.numbering = reader.link_numbering();
        Ok(Self { reader, state })
    }

    /// Returns the next batch of the reader, of about `vertices` vertices; `None` at the end.
    ///
    /// # Errors
    ///
    /// The error of the reader, or [`FileFault::Broken`] for links that end in no vertex.
    pub fn next(
        &mut self,
        vertices: usize,
    ) -> Result<Option<QueryResult>, Box<dyn Error + Send + Sync>> {
        let Some(batch) = self.reader.next(vertices)? else {
            return Ok(None);
        };
        Ok(Some(self.state.result(batch.into_builder())?))
    }

    /// Returns whether each object of linked geometry is in one batch, with all of its links.
    pub fn has_whole_objects(&self) -> bool {
        self.state.kind.is_linked() && self.state.numbering == LinkNumbering::Batch
    }

    /// Returns the description of the file, with notes about all batches up to now.
    pub fn description(&self) -> &FileDescription {
        self.reader.description()
    }

    /// Returns the groups of the file.
    pub fn groups(&self) -> GroupTables {
        GroupTables {
            groups: groups(&self.state.tables),
            columns: self.state.tables.group.clone(),
        }
    }
}

/// Returns the whole of a geometry as a query result.
///
/// # Errors
///
/// [`FileFault::Broken`] for links that end in no vertex.
pub fn whole_result(
    mut geometry: GeometryBuilder,
    kind: GeometryKind,
    axes: Vec<String>,
) -> Result<QueryResult, FileFault> {
    let tables = geometry.take_tables();
    let groups = groups(&tables);
    let mut result = ResultState::new(tables, kind, axes).result(geometry)?;
    result.groups = groups;
    Ok(result)
}

fn groups(tables: &GeometryBuilder) -> Vec<ObjectGroup> {
    let groups = tables.groups.iter().map(|(id, members)| ObjectGroup {
        id: u64::from(*id),
        members: members.clone(),
    });
    groups.collect()
}

/// State that the batches of a result share.
#[derive(Debug)]
struct ResultState {
    tables: GeometryBuilder,
    kind: GeometryKind,
    axes: Vec<String>,
    /// Rows of `tables` by object id; empty if ids are rows.
    rows: BTreeMap<i64, usize>,
    numbering: LinkNumbering,
    first_row: u64,
    /// The greatest object of earlier batches of paths.
    last: Option<i64>,
    /// Objects of vertices in earlier batches, if objects have attributes.
    seen: HashSet<i64>,
}

impl ResultState {
    fn new(tables: GeometryBuilder, kind: GeometryKind, axes: Vec<String>) -> Self {
        let ids = tables.objects.as_deref().unwrap_or_default();
        let is_numbered = (0..).zip(ids).all(|(row, id)| row == *id);
        let rows = ids
            .iter()
            .enumerate()
            .map(|(row, id)| (*id, row))
            .filter(|_| !is_numbered)
            .collect();
        Self {
            tables,
            kind,
            axes,
            rows,
            numbering: LinkNumbering::Batch,
            first_row: 0,
            last: None,
            seen: HashSet::new(),
        }
    }

    fn result(&mut self, batch: GeometryBuilder) -> Result<QueryResult, FileFault> {
        let first = self.first_row;
        let vertices = u64::try_from(batch.vertices()).unwrap_or(u64::MAX);
        self.first_row = first.saturating_add(vertices);
        let mut result = QueryResult::default();
        result.first_row = first;
        result.axes.clone_from(&self.axes);
        if result.axes.is_empty() {
            let names = ["x", "y", "z", "w"].into_iter().take(batch.axes());
            result.axes = names.map(str::to_owned).collect();
        }
        let mut objects: Vec<i64> = Vec::new();
        // Attributes of objects that come with a batch have a row for each path.
        let mut paths: BTreeMap<i64, usize> = BTreeMap::new();
        let is_path = matches!(batch.owners, VertexOwners::Paths { .. });
        let count = batch.owners.paths();
        match batch.owners {
            VertexOwners::Unnamed => {}
            VertexOwners::Vertices(ids) => {
                objects.clone_from(&ids);
                result.object_ids = Some(ObjectIds::from_numbers(ids));
            }
            VertexOwners::Paths {
                offsets,
                objects: owners,
            } => {
                let next = self.last.map_or(0, |last| last.saturating_add(1));
                let owners = owners.unwrap_or_else(|| (next..).take(count).collect());
                objects.clone_from(&owners);
                if !batch.object.is_empty() {
                    paths.extend(owners.iter().copied().zip(0..));
                }
                let offsets = offsets.iter().map(|offset| offset.saturating_add(first));
                result.parts = Some(Parts {
                    offsets: offsets.collect(),
                    objects: owners,
                });
            }
        }
        if self.kind.is_linked() && !is_path {
            let (before, count) = match self.numbering {
                LinkNumbering::Batch => (first, vertices),
                LinkNumbering::Input => (0, self.first_row),
            };
            let end = |end: i64| {
                let end = u64::try_from(end).ok().filter(|end| *end < count);
                end.map(|end| end.saturating_add(before))
            };
            let ends: Option<Vec<u64>> = batch.links.ends.into_iter().map(end).collect();
            result.links = Some(Links {
                width: u32::try_from(batch.links.width).unwrap_or(u32::MAX),
                ends: ends.ok_or(FileFault::Broken(
                    "a link refers to a vertex that does not exist",
                ))?,
            });
        }
        objects.sort_unstable();
        objects.dedup();
        if result.parts.is_some() {
            // Readers number paths in ascending order, so smaller ones came with earlier batches.
            objects.retain(|id| self.last.is_none_or(|last| *id > last));
            self.last = objects.last().copied().or(self.last);
        } else if !self.tables.object.is_empty() {
            objects.retain(|id| self.seen.insert(*id));
        }
        let row = |id: &i64| {
            if self.rows.is_empty() {
                usize::try_from(*id).unwrap_or(usize::MAX)
            } else {
                self.rows.get(id).copied().unwrap_or(usize::MAX)
            }
        };
        let rows: Vec<usize> = objects.iter().map(row).collect();
        let columns = self.tables.object.iter();
        result.object = columns
            .map(|column| column.take(rows.iter().copied()))
            .collect();
        if !batch.fragment.is_empty() {
            // Geometry has a row for each object, results have one for each vertex.
            let rows: Vec<usize> = owners(&result).iter().map(row).collect();
            let columns = batch.fragment.iter();
            result.fragment = columns
                .map(|column| column.take(rows.iter().copied()))
                .collect();
        }
        let rows: Vec<usize> = objects
            .iter()
            .filter_map(|id| paths.get(id).copied())
            .collect();
        let columns = batch
            .object
            .iter()
            .map(|column| column.take(rows.iter().copied()));
        result.object.extend(columns);
        result.objects = objects;
        result.positions = batch.positions;
        result.vertex = batch.vertex;
        result.link = batch.link;
        Ok(result)
    }
}

/// Returns the object of each vertex; empty without objects.
fn owners(result: &QueryResult) -> Vec<i64> {
    let Some(Parts { offsets, objects }) = &result.parts else {
        return result.object_ids.clone().unwrap_or_default().into_numbers();
    };
    let lengths = offsets
        .iter()
        .zip(offsets.iter().skip(1))
        .map(|(start, end)| end.saturating_sub(*start));
    let runs = objects.iter().zip(lengths);
    let owners = runs.flat_map(|(object, length)| {
        std::iter::repeat_n(*object, usize::try_from(length).unwrap_or(usize::MAX))
    });
    owners.collect()
}
