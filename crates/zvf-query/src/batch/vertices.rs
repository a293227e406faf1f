//! The builder of the vertices of a batch.

mod bulk;

use zvf_model::grid::ChunkCoord;

use zvf_model::column::NumericColumn;

use crate::{
    batch::columns::{ColumnBuilder, bytes_of, gather, push_runs},
    batch::loaded::LoadedChunks,
    catalog::chunk::Chunk,
    catalog::objects::ObjectSet,
    catalog::schema::{Names, Schema},
    diagnostics::Diagnostics,
    error::{Damage, QueryError},
    result::{NO_OBJECT, QueryResult, SEVERAL_OBJECTS},
    selection::{RowRun, RowSelection},
};

/// The objects of the fragments of a chunk, as rows of the object index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owners {
    by_fragment: Vec<Owner>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Owner {
    #[default]
    None,
    /// The row of the only object.
    One(usize),
    Several,
}

impl Owners {
    pub(crate) fn new(pairs: impl IntoIterator<Item = (u32, usize)>) -> Self {
        let mut by_fragment: Vec<Owner> = Vec::new();
        for (fragment, row) in pairs {
            let Ok(fragment) = usize::try_from(fragment) else {
                continue;
            };
            if by_fragment.len() <= fragment {
                by_fragment.resize(fragment.saturating_add(1), Owner::None);
            }
            if let Some(owner) = by_fragment.get_mut(fragment) {
                *owner = match *owner {
                    Owner::None => Owner::One(row),
                    Owner::One(same) if same == row => Owner::One(row),
                    _ => Owner::Several,
                };
            }
        }
        Self { by_fragment }
    }

    pub(crate) fn of(&self, fragment: u32) -> Owner {
        let fragment = usize::try_from(fragment).ok();
        let owner = fragment.and_then(|fragment| self.by_fragment.get(fragment));
        owner.copied().unwrap_or_default()
    }

    /// Returns the id of the object of a fragment; [`NO_OBJECT`] if objects are not read.
    pub(crate) fn id(&self, fragment: u32, objects: Option<&ObjectSet>) -> i64 {
        match self.of(fragment) {
            Owner::None => NO_OBJECT,
            Owner::One(place) => objects
                .and_then(|objects| objects.id(place))
                .unwrap_or(NO_OBJECT),
            Owner::Several => SEVERAL_OBJECTS,
        }
    }
}

/// The vertices of a batch under construction.
#[derive(Debug)]
pub(crate) struct VertexBuilder {
    positions: NumericColumn,
    vertex: Vec<(usize, ColumnBuilder)>,
    fragment: Vec<(usize, ColumnBuilder)>,
    pub(crate) object_ids: Option<Vec<i64>>,
    /// Chunk and row of each vertex, for level jumps.
    origins: Option<Vec<(ChunkCoord, u64)>>,
    rows: usize,
    /// Whether columns have reserved rows at their end.
    has_room: bool,
}

impl VertexBuilder {
    /// Creates a builder for the attributes in `shown`.
    pub(crate) fn new(schema: &Schema, shown: &Names, objects: bool) -> Self {
        let axes = u32::try_from(schema.axes).unwrap_or(1);
        let builders = |attributes: &[crate::catalog::schema::ChunkAttribute], names: &[String]| {
            let attributes = attributes.iter().enumerate();
            let shown = attributes.filter(|(_, attribute)| names.contains(&attribute.name));
            let builder = |(at, attribute): (usize, &crate::catalog::schema::ChunkAttribute)| {
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
            origins: None,
            rows: 0,
            has_room: false,
        }
    }

    /// Records the chunk and row of each vertex.
    pub(crate) fn with_origins(mut self) -> Self {
        self.origins = Some(Vec::new());
        self
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the approximate size in bytes.
    pub(crate) fn size(&self) -> u64 {
        let columns = self.vertex.iter().chain(&self.fragment);
        let columns = columns.map(|(_, column)| column.size());
        let ids = self.object_ids.as_ref().map_or(0, Vec::len);
        let ids = ids.saturating_mul(size_of::<i64>());
        let positions = self.rows.saturating_mul(self.positions.row_size());
        let rows = positions.saturating_add(ids);
        u64::try_from(columns.fold(rows, usize::saturating_add)).unwrap_or(u64::MAX)
    }

    /// Returns the declared size of a vertex in all columns.
    pub(crate) fn row_size(&self) -> u64 {
        let columns = self.vertex.iter().chain(&self.fragment);
        let columns = columns.map(|(_, column)| column.declared_size());
        let id = self.object_ids.as_ref().map_or(0, |_| size_of::<i64>());
        let row = self.positions.row_size().saturating_add(id);
        u64::try_from(columns.fold(row, usize::saturating_add)).unwrap_or(u64::MAX)
    }

    /// Reserves memory for this many vertices in all.
    pub(crate) fn reserve(&mut self, vertices: usize) {
        self.settle();
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
        object: impl Fn(u32) -> i64,
        diagnostics: &Diagnostics,
    ) -> Result<(), QueryError> {
        self.settle();
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
            let places = vertices.runs().iter().flat_map(|run| {
                let place = usize::try_from(run.fragment).ok();
                core::iter::repeat_n(place, run.len)
            });
            let places: Vec<_> = places.collect();
            for (at, builder) in &mut self.fragment {
                let cell = chunk.fragment.get(*at).and_then(Option::as_ref);
                if let Some(attribute) = schema.fragment.get(*at)
                    && let Err(fault) = builder.push_places(cell, &places)
                {
                    let key = &attribute.array.node;
                    diagnostics.skip(Damage::in_chunk(key, &chunk.chunk, fault))?;
                    builder.skip_to(rows);
                }
            }
        }
        if let Some(origins) = &mut self.origins {
            let entries = vertices.iter();
            origins.extend(entries.map(|run| (chunk.chunk.clone(), run.row)));
        }
        if let Some(ids) = &mut self.object_ids {
            for run in vertices.runs() {
                ids.extend(core::iter::repeat_n(object(run.fragment), run.len));
            }
        }
        self.rows = rows;
        Ok(())
    }

    /// Sets the vertices of an empty builder from runs of loaded chunks. Numbers are copied on all
    /// cores.
    pub(crate) fn take(
        &mut self,
        schema: &Schema,
        runs: &[RowRun],
        loaded: &LoadedChunks,
        diagnostics: &Diagnostics,
    ) -> Result<(), QueryError> {
        let rows = runs
            .iter()
            .fold(0, |rows: usize, run| rows.saturating_add(run.len));
        let is_simple = self.fragment.is_empty()
            && self.object_ids.is_none()
            && self.origins.is_none()
            && self.rows == 0;
        let mut widths = Vec::with_capacity(self.vertex.len());
        for (at, builder) in &self.vertex {
            let cells = loaded.all().map(|chunk| chunk.vertex.get(*at)?.as_ref());
            widths.push(builder.width_of(cells));
        }
        if !is_simple || widths.contains(&None) {
            for same in runs.chunk_by(|a, b| a.chunk == b.chunk) {
                let own: RowSelection = same.iter().copied().collect();
                let chunk = same.first().and_then(|run| loaded.get(run.chunk));
                if let Some(chunk) = chunk {
                    self.push(schema, chunk, &own, |_| NO_OBJECT, diagnostics)?;
                }
            }
            return Ok(());
        }
        let positions = |chunk| loaded.get(chunk).map(|chunk| &*chunk.positions);
        let columns = self.positions.width;
        self.positions.bytes = gather(runs, schema.dtype, columns, &positions);
        for ((at, builder), width) in self.vertex.iter_mut().zip(widths) {
            let cells = |chunk| Some(&*loaded.get(chunk)?.vertex.get(*at)?.as_ref()?.bytes);
            builder.take(runs, width.unwrap_or(1), rows, &cells);
        }
        self.rows = rows;
        Ok(())
    }

    /// Appends a vertex blended from earlier rows with these weights.
    pub(crate) fn blend(&mut self, position: &[f64], rows: &[(usize, f64)]) {
        self.settle();
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
        let heaviest = rows
            .iter()
            .copied()
            .reduce(|best, row| match row.1 > best.1 {
                true => row,
                false => best,
            });
        if let (Some(ids), Some((row, _))) = (&mut self.object_ids, heaviest) {
            ids.push(ids.get(row).copied().unwrap_or(NO_OBJECT));
        }
        if let (Some(origins), Some((row, _))) = (&mut self.origins, heaviest)
            && let Some(origin) = origins.get(row).cloned()
        {
            origins.push(origin);
        }
        self.rows = self.rows.saturating_add(1);
    }

    /// Keeps these rows, in this order.
    pub(crate) fn gather(&mut self, rows: &[usize]) {
        self.settle();
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
        if let Some(origins) = &mut self.origins {
            *origins = rows
                .iter()
                .filter_map(|row| origins.get(*row).cloned())
                .collect();
        }
        self.rows = rows.len();
    }

    /// Puts the columns into a batch.
    pub(crate) fn finish(mut self, answer: &mut QueryResult) {
        self.settle();
        answer.positions = self.positions;
        answer.vertex = self.vertex.into_iter().map(|(_, b)| b.finish()).collect();
        answer.fragment = self.fragment.into_iter().map(|(_, b)| b.finish()).collect();
        answer.object_ids = self.object_ids;
        answer.origins = self.origins.unwrap_or_default();
    }
}
