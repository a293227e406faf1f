//! The result of a query.

use std::collections::BTreeSet;

use zvf_catalog::{ObjectGroup, Skipped};
use zvf_model::{
    column::{Column, ColumnValues, NumericColumn},
    grid::ChunkCoord,
    level::LevelId,
    object_ids::ObjectIds,
    scope::Scope,
};

/// The result of a query, as columns. The order of rows does not depend on the order of reads:
///
/// * vertices of paths by path, and paths in the order of the object index or of the ids in the
///   query;
/// * points selected by objects, groups or a predicate on these only, like paths: by object, then in
///   the order of the object;
/// * other vertices by chunk, in ascending order of its coordinates, then by fragment, then in the
///   order of the fragment;
/// * links by array, cell and row as stored; links of skeletons, some of which are implied by
///   fragments, by child;
/// * the nearest to a position by distance, except for the vertices of links;
/// * rows of several levels by level, the coarsest first; the finest first where coarser levels
///   complete it, with the links of each level after its vertices.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct QueryResult {
    /// The level; the finest where there are several.
    pub level: LevelId,
    /// The rows of each level, in the order of rows, if the query has a budget or the content is
    /// stored on several levels. Empty otherwise, and in batches.
    pub levels: Vec<LevelUse>,
    /// Number of vertices in earlier batches; 0 for a whole result. Row numbers in `parts` and
    /// `links` count from the start of the whole result.
    pub first_row: u64,
    /// Names of the axes.
    pub axes: Vec<String>,
    /// Coordinates, one row per vertex.
    pub positions: NumericColumn,
    /// The object of each vertex; if the query selects objects, the object that selected it. `None`
    /// if the store has no objects, if the query does not request owners, and for paths,
    /// which have [`parts`](Self::parts).
    pub object_ids: Option<ObjectIds>,
    /// The [address](zvf_model::row_id::RowId) of each vertex, as a number; `None` if the query does
    /// not request [addresses](crate::Query::row_ids). Addresses are valid until the next change of
    /// the store.
    pub row_ids: Option<Vec<u64>>,
    /// Paths as ranges of vertices; `None` for other geometry.
    pub parts: Option<Parts>,
    /// Links between vertices; `None` for points and paths.
    pub links: Option<Links>,
    /// Attributes of vertices, one row per vertex.
    pub vertex: Vec<Column>,
    /// Attributes of the fragment of each vertex, one row per vertex.
    pub fragment: Vec<Column>,
    /// Attributes of links, one row per link.
    pub link: Vec<Column>,
    /// Objects with a part in the result, each once, with the attributes of the coarsest level that
    /// has them. They are in the order of the rows if vertices are ordered by object, and ascending
    /// otherwise. Objects with shared vertices only are not listed.
    pub objects: Vec<i64>,
    /// Attributes of objects, one row for each of `objects`.
    pub object: Vec<Column>,
    /// Distances of a query for the nearest, in the order of the items: of each vertex of points, of
    /// each part of paths, of each link. `None` for other queries.
    pub distances: Option<Vec<f64>>,
    /// The groups that the query names.
    pub groups: Vec<ObjectGroup>,
    /// Parts that could not be read. Empty unless the query skips damage.
    pub skipped: Vec<Skipped>,
    /// Known defects of the store that were worked around, and stale levels.
    pub notes: Vec<String>,
}

impl QueryResult {
    /// Returns the attributes of a scope. A result has no attributes of groups.
    pub fn columns(&self, scope: Scope) -> &[Column] {
        match scope {
            Scope::Vertex => &self.vertex,
            Scope::Fragment => &self.fragment,
            Scope::Link => &self.link,
            Scope::Object => &self.object,
            Scope::Group => &[],
        }
    }

    /// Removes the attributes of a scope, and returns them.
    pub fn take_columns(&mut self, scope: Scope) -> Vec<Column> {
        let columns = match scope {
            Scope::Vertex => &mut self.vertex,
            Scope::Fragment => &mut self.fragment,
            Scope::Link => &mut self.link,
            Scope::Object => &mut self.object,
            Scope::Group => return Vec::new(),
        };
        core::mem::take(columns)
    }

    /// Returns the objects of the vertices, once for each run of the same.
    pub(crate) fn objects_of_rows(&self) -> impl Iterator<Item = i64> + '_ {
        let runs = self.object_ids.iter().flat_map(ObjectIds::runs);
        runs.filter_map(|(owner, _)| owner.object())
    }

    /// Keeps these rows of vertices, in this order.
    pub(crate) fn keep_vertices(&mut self, rows: &[usize]) {
        self.positions = self.positions.take_existing(rows.iter().copied());
        for column in self.vertex.iter_mut().chain(&mut self.fragment) {
            *column = column.take(rows.iter().copied());
        }
        if let Some(ids) = &mut self.object_ids {
            *ids = ids.take(rows);
        }
        if let Some(ids) = &mut self.row_ids {
            *ids = gathered(ids, rows);
        }
    }

    /// Counts the rows of this batch from `first_row` on.
    pub(crate) fn start_at(&mut self, first_row: u64) {
        self.first_row = first_row;
        if let Some(parts) = &mut self.parts {
            let offsets = parts.offsets.iter_mut();
            offsets.for_each(|at| *at = at.saturating_add(first_row));
        }
    }

    /// Drops objects that an earlier batch listed.
    pub(crate) fn keep_new_objects(&mut self, known: &mut BTreeSet<i64>) {
        let is_new = |id: &i64| known.insert(*id);
        let new: Vec<bool> = self.objects.iter().map(is_new).collect();
        if new.contains(&false) {
            let rows: Vec<usize> = new
                .iter()
                .enumerate()
                .filter_map(|(row, new)| new.then_some(row))
                .collect();
            self.keep_objects(&rows);
        }
    }

    /// Keeps these rows of objects, in this order.
    pub(crate) fn keep_objects(&mut self, rows: &[usize]) {
        self.objects = gathered(&self.objects, rows);
        self.object
            .iter_mut()
            .for_each(|column| *column = column.take(rows.iter().copied()));
    }

    /// Returns the size of the columns in bytes.
    pub(crate) fn size(&self) -> u64 {
        let columns = Scope::ALL
            .into_iter()
            .flat_map(|scope| self.columns(scope))
            .map(|column| match &column.values {
                ColumnValues::Numeric(rows) => rows.bytes.len(),
                ColumnValues::Dictionary { codes, .. } => codes.len().saturating_mul(4),
            });
        let ids = self
            .object_ids
            .as_ref()
            .map_or(0, ObjectIds::len)
            .saturating_add(self.row_ids.as_ref().map_or(0, Vec::len));
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
    /// Part p is rows `offsets[p]..offsets[p + 1]`; there is one more offset than parts.
    pub offsets: Vec<u64>,
    /// The object of each part.
    pub objects: Vec<i64>,
}

/// Edges or faces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// Number of ends of each link.
    pub width: u32,
    /// Rows of [`QueryResult::positions`], in the order in which the writer received the ends: child
    /// and parent for skeletons, winding for faces.
    pub ends: Vec<u64>,
}

impl Links {
    /// Returns the number of links.
    pub fn len(&self) -> usize {
        let width = usize::try_from(self.width).unwrap_or(usize::MAX);
        self.ends.len().checked_div(width).unwrap_or(0)
    }

    /// Returns whether there are no links.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Reverses the order of the corners of faces, except for the first. Edges stay as they are.
    pub(crate) fn turn_faces(&mut self) {
        let width = usize::try_from(self.width).unwrap_or(usize::MAX);
        if width < 3 {
            return;
        }
        for face in self.ends.chunks_exact_mut(width) {
            if let Some(others) = face.get_mut(1..) {
                others.reverse();
            }
        }
    }
}

/// The contribution of a level to a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelUse {
    /// The level.
    pub level: LevelId,
    /// Number of vertices, whose rows follow those of the levels before; an estimate in an
    /// explanation.
    pub vertices: u64,
    /// The chunks that a query with a budget reads, with the estimated number of vertices that each
    /// contributes. Empty if the level was read as a whole without counting.
    pub chunks: Vec<(ChunkCoord, u64)>,
}
