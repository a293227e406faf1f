//! The builder of the vertices of a batch.

mod bulk;
mod pieces;

pub(crate) use bulk::VertexPart;
pub(crate) use pieces::{PieceBlock, PieceSpan};

use std::sync::Arc;

use zvf_catalog::{
    Chunk, ChunkAttribute, Damage, Diagnostics, Names, ObjectSet, RowSelection, Schema,
};
use zvf_model::{
    column::NumericColumn,
    grid::ChunkCoord,
    object_ids::{ObjectIds, Owner},
    row_id::RowId,
};

use crate::{
    batch::columns::{ColumnBuilder, bytes_of, heaviest, push_runs},
    error::QueryError,
    result::QueryResult,
};

/// The objects of the fragments of a chunk, as rows of the object index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owners {
    by_fragment: Vec<OwnerRow>,
    /// The fragments of several objects with each of these, ascending.
    shared: Vec<(u32, usize)>,
}

/// The owner of a fragment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OwnerRow {
    #[default]
    None,
    /// The row of the only object.
    One(usize),
    Several,
}

impl Owners {
    pub(crate) fn new(pairs: impl IntoIterator<Item = (u32, usize)>) -> Self {
        let mut by_fragment: Vec<OwnerRow> = Vec::new();
        let mut shared = Vec::new();
        for (fragment, row) in pairs {
            let Ok(at) = usize::try_from(fragment) else {
                continue;
            };
            if by_fragment.len() <= at {
                by_fragment.resize(at.saturating_add(1), OwnerRow::None);
            }
            if let Some(owner) = by_fragment.get_mut(at) {
                *owner = match *owner {
                    OwnerRow::None => OwnerRow::One(row),
                    OwnerRow::One(same) if same == row => OwnerRow::One(row),
                    OwnerRow::One(first) => {
                        shared.extend([(fragment, first), (fragment, row)]);
                        OwnerRow::Several
                    }
                    OwnerRow::Several => {
                        shared.push((fragment, row));
                        OwnerRow::Several
                    }
                };
            }
        }
        shared.sort_unstable();
        shared.dedup();
        Self {
            by_fragment,
            shared,
        }
    }

    /// Returns the row of an object of a fragment, counted from 0; `None` past the last.
    pub(crate) fn nth(&self, fragment: u32, n: usize) -> Option<usize> {
        match self.of(fragment) {
            OwnerRow::None => None,
            OwnerRow::One(row) => (n == 0).then_some(row),
            OwnerRow::Several => {
                let first = self.shared.partition_point(|(other, _)| *other < fragment);
                let (found, row) = self.shared.get(first.checked_add(n)?)?;
                (*found == fragment).then_some(*row)
            }
        }
    }

    /// Returns the largest number of objects that share a fragment; 1 if none is shared.
    pub(crate) fn most(&self) -> usize {
        let fragments = self.shared.chunk_by(|(a, _), (b, _)| a == b);
        fragments.map(<[_]>::len).max().unwrap_or(1)
    }

    pub(crate) fn of(&self, fragment: u32) -> OwnerRow {
        let fragment = usize::try_from(fragment).ok();
        let owner = fragment.and_then(|fragment| self.by_fragment.get(fragment));
        owner.copied().unwrap_or_default()
    }

    /// Returns the object of a fragment; none if objects are not read.
    pub(crate) fn object(&self, fragment: u32, objects: Option<&ObjectSet>) -> Owner {
        match self.of(fragment) {
            OwnerRow::None => Owner::None,
            OwnerRow::One(index) => objects
                .and_then(|objects| objects.id(index))
                .map_or(Owner::None, Owner::Object),
            OwnerRow::Several => Owner::Several,
        }
    }
}

/// The vertices of a batch under construction.
#[derive(Debug)]
pub(crate) struct VertexBuilder {
    positions: NumericColumn,
    vertex: Vec<(usize, ColumnBuilder)>,
    fragment: Vec<(usize, ColumnBuilder)>,
    /// The numbers of [`ObjectIds`].
    pub(crate) object_ids: Option<Vec<i64>>,
    row_ids: Option<RowIdBuilder>,
    rows: usize,
    /// True if columns have reserved rows at their end.
    has_room: bool,
}

impl VertexBuilder {
    /// Creates a builder for the attributes in `shown`.
    pub(crate) fn new(schema: &Schema, shown: &Names, objects: bool) -> Self {
        let axes = u32::try_from(schema.axes).unwrap_or(1);
        let builders = |attributes: &[ChunkAttribute], names: &[String]| {
            let attributes = attributes.iter().enumerate();
            let shown = attributes.filter(|(_, attribute)| names.contains(&attribute.name));
            let builder = |(at, attribute): (usize, &ChunkAttribute)| {
                let builder = ColumnBuilder::new(&attribute.name, &attribute.metadata);
                (at, builder)
            };
            shown.map(builder).collect()
        };
        Self {
            positions: NumericColumn::new(schema.dtype.kind(), axes),
            vertex: builders(&schema.vertex, &shown.vertex),
            fragment: builders(&schema.fragment, &shown.fragment),
            object_ids: objects.then(Vec::new),
            row_ids: None,
            rows: 0,
            has_room: false,
        }
    }

    /// Records the address of each vertex.
    pub(crate) fn with_row_ids(mut self, schema: &Schema) -> Self {
        self.row_ids = Some(RowIdBuilder {
            chunks: schema.all_chunks(),
            ids: Vec::new(),
        });
        self
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the approximate size in bytes.
    pub(crate) fn size(&self) -> u64 {
        let columns = self
            .vertex
            .iter()
            .chain(&self.fragment)
            .map(|(_, column)| column.size());
        let ids = self
            .object_ids
            .as_ref()
            .map_or(0, Vec::len)
            .saturating_mul(size_of::<i64>());
        let positions = self.rows.saturating_mul(self.positions.row_size());
        let rows = positions.saturating_add(ids);
        u64::try_from(columns.fold(rows, usize::saturating_add)).unwrap_or(u64::MAX)
    }

    /// Returns the declared size of a vertex in all columns.
    pub(crate) fn row_size(&self) -> u64 {
        let columns = self
            .vertex
            .iter()
            .chain(&self.fragment)
            .map(|(_, column)| column.declared_size());
        let id = self.object_ids.as_ref().map_or(0, |_| size_of::<i64>());
        let row = self.positions.row_size().saturating_add(id);
        u64::try_from(columns.fold(row, usize::saturating_add)).unwrap_or(u64::MAX)
    }

    /// Reserves memory for this many vertices in all.
    pub(crate) fn reserve(&mut self, vertices: usize) {
        self.release_unused();
        let more = vertices.saturating_sub(self.rows);
        let row = self.positions.row_size();
        self.positions.bytes.reserve(more.saturating_mul(row));
        zvf_pages::prefer_large(&mut self.positions.bytes);
        for (_, builder) in &mut self.vertex {
            builder.reserve(more.saturating_mul(builder.declared_size()));
        }
    }

    /// Appends selected vertices of a chunk.
    pub(crate) fn push(
        &mut self,
        schema: &Schema,
        chunk: &Chunk,
        vertices: &RowSelection,
        object: impl Fn(u32) -> Owner,
        diagnostics: &Diagnostics,
    ) -> Result<(), QueryError> {
        self.release_unused();
        let rows = self.rows.saturating_add(vertices.len());
        push_runs(
            &mut self.positions.bytes,
            &chunk.positions,
            schema.dtype,
            self.positions.width,
            vertices,
        );
        for (at, builder) in &mut self.vertex {
            let cell = chunk.vertex.get(*at).and_then(Option::as_ref);
            if let Some(attribute) = schema.vertex.get(*at)
                && let Err(fault) = builder.push_runs(cell, vertices)
            {
                let key = &attribute.array.node;
                diagnostics.skip(Damage::in_chunk(key, &chunk.chunk, fault))?;
                builder.skip_to(rows);
            }
        }
        if !self.fragment.is_empty() {
            let indices: Vec<_> = vertices
                .runs()
                .iter()
                .flat_map(|run| {
                    let index = usize::try_from(run.fragment).ok();
                    core::iter::repeat_n(index, run.len)
                })
                .collect();
            for (at, builder) in &mut self.fragment {
                let cell = chunk.fragment.get(*at).and_then(Option::as_ref);
                if let Some(attribute) = schema.fragment.get(*at)
                    && let Err(fault) = builder.push_indices(cell, &indices)
                {
                    let key = &attribute.array.node;
                    diagnostics.skip(Damage::in_chunk(key, &chunk.chunk, fault))?;
                    builder.skip_to(rows);
                }
            }
        }
        if let Some(ids) = &mut self.row_ids {
            ids.push(&chunk.chunk, vertices.iter().map(|run| run.row))?;
        }
        if let Some(ids) = &mut self.object_ids {
            for run in vertices.runs() {
                ids.extend(core::iter::repeat_n(object(run.fragment).number(), run.len));
            }
        }
        self.rows = rows;
        Ok(())
    }

    /// Appends a vertex blended from earlier rows with these weights.
    pub(crate) fn blend(&mut self, position: &[f64], rows: &[(usize, f64)]) {
        self.release_unused();
        let kind = self.positions.kind;
        let bytes = position.iter().flat_map(|value| match kind {
            zvf_format::numeric::Kind::Float32 | zvf_format::numeric::Kind::Float64 => {
                bytes_of(*value, kind)
            }
            _ => vec![0; kind.size()],
        });
        self.positions.bytes.extend(bytes);
        for (_, builder) in self.vertex.iter_mut().chain(&mut self.fragment) {
            builder.blend(rows);
        }
        let heaviest = heaviest(rows);
        if let (Some(ids), Some(row)) = (&mut self.object_ids, heaviest) {
            ids.push(ids.get(row).copied().unwrap_or(Owner::NONE));
        }
        if let (Some(RowIdBuilder { ids, .. }), Some(row)) = (&mut self.row_ids, heaviest)
            && let Some(id) = ids.get(row).copied()
        {
            ids.push(id);
        }
        self.rows = self.rows.saturating_add(1);
    }

    /// Keeps these rows, in this order.
    pub(crate) fn gather(&mut self, rows: &[usize]) {
        self.release_unused();
        let mut bytes = Vec::new();
        let size = self.positions.row_size();
        bytes.reserve(rows.len().saturating_mul(size));
        for row in rows {
            let from = row.saturating_mul(size);
            let row = self.positions.bytes.get(from..from.saturating_add(size));
            bytes.extend_from_slice(row.unwrap_or_default());
        }
        self.positions.bytes = bytes;
        for (_, builder) in self.vertex.iter_mut().chain(&mut self.fragment) {
            builder.gather(rows);
        }
        if let Some(ids) = &mut self.object_ids {
            *ids = rows
                .iter()
                .filter_map(|row| ids.get(*row).copied())
                .collect();
        }
        if let Some(RowIdBuilder { ids, .. }) = &mut self.row_ids {
            *ids = rows
                .iter()
                .filter_map(|row| ids.get(*row).copied())
                .collect();
        }
        self.rows = rows.len();
    }

    /// Puts the columns into a batch.
    pub(crate) fn finish(mut self, result: &mut QueryResult) {
        self.release_unused();
        result.positions = self.positions;
        result.vertex = self.vertex.into_iter().map(|(_, b)| b.finish()).collect();
        result.fragment = self.fragment.into_iter().map(|(_, b)| b.finish()).collect();
        result.object_ids = self.object_ids.map(ObjectIds::from_numbers);
        result.row_ids = self.row_ids.map(|ids| ids.ids);
    }
}

/// Addresses of the vertices of a batch.
#[derive(Debug)]
struct RowIdBuilder {
    /// All chunks of the level, ascending.
    chunks: Arc<[ChunkCoord]>,
    ids: Vec<u64>,
}

impl RowIdBuilder {
    /// Appends the addresses of rows of a chunk.
    fn push(
        &mut self,
        chunk: &ChunkCoord,
        rows: impl Iterator<Item = u64>,
    ) -> Result<(), QueryError> {
        let out_of_range = QueryError::Unsupported(
            "row ids have 31 bits for chunks and 32 bits for rows, which is too few for this store",
        );
        let Ok(rank) = self.chunks.binary_search(chunk) else {
            return Err(out_of_range);
        };
        for row in rows {
            let Some(id) = RowId::new(rank, row) else {
                return Err(out_of_range);
            };
            self.ids.push(id.into());
        }
        Ok(())
    }
}
