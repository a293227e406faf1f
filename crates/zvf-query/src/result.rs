//! What a query found.

use std::collections::BTreeSet;

use zvf_model::{
    column::{Column, ColumnValues, NumericColumn},
    grid::ChunkCoord,
    key::Key,
    level::LevelId,
};

/// No object: in [`QueryResult::object_ids`], of a vertex that none has.
pub const NO_OBJECT: i64 = -1;
/// Of a vertex that several objects have.
pub const SEVERAL_OBJECTS: i64 = -2;

/// What a query found, as columns. Rows are in a stated order that does not
/// depend on how things were read:
///
/// * vertices of paths in the order of the paths, and those in the order of the
///   object index, or as asked for by object;
/// * points that are selected by objects, groups or a filter on these alone, like
///   paths: by object, then as the object has them;
/// * other vertices by chunk, in ascending order of its coordinates, then by
///   fragment, then as the fragment has them;
/// * links by array, cell and row as stored; those of skeletons, some of which
///   only fragments imply, by child;
/// * the nearest to a place by distance, but vertices of links as always;
/// * of several levels, all of one after all of the coarser before it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct QueryResult {
    /// The level; the finest where there are several.
    pub level: LevelId,
    /// What each level gave, in the order of rows, the coarsest first: with a budget,
    /// and where points are on several levels. Empty otherwise, and of a piece.
    pub levels: Vec<LevelUse>,
    /// Vertices of the answer before this piece of it; 0 of a whole answer.
    /// Numbers of rows in `parts` and `links` count from the start of the answer.
    pub first_row: u64,
    /// Names of the axes.
    pub axes: Vec<String>,
    /// Vertices: a row of coordinates each.
    pub positions: NumericColumn,
    /// The object of each vertex, that which it was selected by where objects are
    /// selected; `None` when the store has no objects or they
    /// were not asked for, and for paths, which have [`parts`](Self::parts).
    pub object_ids: Option<Vec<i64>>,
    /// How vertices make paths; `None` for other geometry.
    pub parts: Option<Parts>,
    /// How vertices are linked; `None` for points and paths.
    pub links: Option<Links>,
    /// Attributes of vertices: as many rows as there are vertices.
    pub vertex: Vec<Column>,
    /// Attributes of the fragment of each vertex: likewise.
    pub fragment: Vec<Column>,
    /// Attributes of links: as many rows as there are links.
    pub link: Vec<Column>,
    /// Objects that have something in the answer, each once, and of several levels with
    /// the attributes of the first that has it: in the order they come in where vertices are in the order of objects, otherwise in ascending order,
    /// without those that have only vertices in it that several objects have.
    pub objects: Vec<i64>,
    /// Attributes of objects: as many rows as there are `objects`.
    pub object: Vec<Column>,
    /// The groups that were asked for.
    pub groups: Vec<ObjectGroup>,
    /// What could not be read. Empty unless the query keeps going.
    pub skipped: Vec<Skipped>,
    /// Known defects of the store that the answer got around, and levels that are
    /// behind.
    pub notes: Vec<String>,
    /// Chunk and row of each vertex, for who follows links from there.
    pub(crate) origins: Vec<(ChunkCoord, u64)>,
}

impl QueryResult {
    /// Objects of the vertices; of those that follow each other each once, as all
    /// vertices of an object often do.
    pub(crate) fn objects_met(&self) -> impl Iterator<Item = i64> + '_ {
        let ids = self.object_ids.as_deref().unwrap_or_default();
        ids.chunk_by(|a, b| a == b)
            .filter_map(|same| same.first().copied())
    }

    /// Keeps these vertices, in this order.
    pub(crate) fn keep_vertices(&mut self, rows: &[usize]) {
        self.positions = self.positions.take(rows.iter().copied());
        for column in self.vertex.iter_mut().chain(&mut self.fragment) {
            *column = column.take(rows.iter().copied());
        }
        if let Some(ids) = &mut self.object_ids {
            *ids = gathered(ids, rows);
        }
        if !self.origins.is_empty() {
            self.origins = gathered(&self.origins, rows);
        }
    }

    /// Keeps those objects that no piece before had.
    pub(crate) fn keep_new_objects(&mut self, known: &mut BTreeSet<i64>) {
        let is_new = |id: &i64| known.insert(*id);
        let new: Vec<bool> = self.objects.iter().map(is_new).collect();
        if new.contains(&false) {
            let rows = new.iter().enumerate();
            let rows: Vec<usize> = rows.filter_map(|(row, new)| new.then_some(row)).collect();
            self.keep_objects(&rows);
        }
    }

    /// Keeps these objects, in this order.
    pub(crate) fn keep_objects(&mut self, rows: &[usize]) {
        self.objects = gathered(&self.objects, rows);
        self.object
            .iter_mut()
            .for_each(|column| *column = column.take(rows.iter().copied()));
    }

    /// Bytes of its columns.
    pub(crate) fn size(&self) -> u64 {
        let columns = [&self.vertex, &self.fragment, &self.link, &self.object];
        let columns = columns
            .into_iter()
            .flatten()
            .map(|column| match &column.values {
                ColumnValues::Numeric(rows) => rows.bytes.len(),
                ColumnValues::Dictionary { codes, .. } => codes.len().saturating_mul(4),
            });
        let ids = self.object_ids.as_ref().map_or(0, Vec::len);
        let links = self.links.as_ref().map_or(0, |links| links.ends.len());
        let words = ids.saturating_add(links).saturating_mul(8);
        let size = columns.fold(self.positions.bytes.len(), usize::saturating_add);
        u64::try_from(size.saturating_add(words)).unwrap_or(u64::MAX)
    }
}

fn gathered<T: Clone>(values: &[T], rows: &[usize]) -> Vec<T> {
    rows.iter()
        .filter_map(|row| values.get(*row).cloned())
        .collect()
}

/// Paths: runs of rows of [`QueryResult::positions`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Part p is rows `offsets[p]..offsets[p + 1]`; one more than there are
    /// parts.
    pub offsets: Vec<u64>,
    /// The object of each part.
    pub objects: Vec<i64>,
}

/// Edges or faces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// Ends of each.
    pub width: u32,
    /// Rows of [`QueryResult::positions`], in the order the ends were given when
    /// they were written: of skeletons child and parent, of faces the winding.
    pub ends: Vec<u64>,
}

impl Links {
    /// Number of links.
    pub fn len(&self) -> usize {
        let width = usize::try_from(self.width).unwrap_or(usize::MAX);
        self.ends.len().checked_div(width).unwrap_or(0)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// A group of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectGroup {
    /// Its number.
    pub id: u64,
    /// Its members, as stored.
    pub members: Vec<i64>,
}

/// What a level gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelUse {
    /// The level.
    pub level: LevelId,
    /// Vertices: rows that follow those of the levels before it. Of an explanation,
    /// about how many.
    pub vertices: u64,
    /// With a budget the chunks of it that are given, and about how many vertices
    /// each gives: its share in a region; of paths, what is in it of those that are
    /// selected. Empty where all of a level is given that was not counted.
    pub chunks: Vec<(ChunkCoord, u64)>,
}

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Where it is.
    pub key: Key,
    /// What is wrong with it.
    pub reason: String,
}
