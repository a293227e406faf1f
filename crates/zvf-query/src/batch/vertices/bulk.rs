//! Vertices of many chunks, copied on all cores.

use zvf_catalog::{Chunk, MIN_PARALLEL_BYTES, ObjectSet, RowSelection, Schema, on_cores};
use zvf_model::object_ids::Owner;

use super::{Owners, VertexBuilder};
use crate::batch::columns::{Capacity, Copying};

/// Vertices of a chunk to append.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VertexPart<'p> {
    pub(crate) chunk: &'p Chunk,
    pub(crate) rows: &'p RowSelection,
    /// The objects of the fragments of the chunk.
    pub(crate) owners: &'p Owners,
}

/// A copy that one core makes.
enum BulkCopy<'b> {
    Column(Copying<'b>),
    /// The ids of the objects of a part.
    Ids(&'b mut [i64], VertexPart<'b>),
}

impl BulkCopy<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Column(column) => column.len(),
            Self::Ids(ids, _) => size_of_val(*ids),
        }
    }

    fn run(self, objects: Option<&ObjectSet>) {
        match self {
            Self::Column(column) => column.run(),
            Self::Ids(mut ids, part) => {
                for run in part.rows.runs() {
                    let (own, rest) = ids.split_at_mut(run.len.min(ids.len()));
                    own.fill(part.owners.object(run.fragment, objects).number());
                    ids = rest;
                }
            }
        }
    }
}

impl VertexBuilder {
    /// Appends all vertices of chunks, as [`push_parts`](Self::push_parts) does.
    pub(crate) fn push_chunks(
        &mut self,
        schema: &Schema,
        chunks: &[Option<Chunk>],
        expected: usize,
    ) -> bool {
        if self.object_ids.is_some() {
            return false;
        }
        let owners = Owners::default();
        let chunks: Vec<(&Chunk, RowSelection)> = chunks
            .iter()
            .flatten()
            .map(|chunk| (chunk, chunk.runs()))
            .collect();
        let parts = chunks.iter().map(|(chunk, rows)| VertexPart {
            chunk,
            rows,
            owners: &owners,
        });
        self.push_parts(schema, &parts.collect::<Vec<_>>(), expected, None)
    }

    /// Appends vertices of chunks on all cores, if all columns are numeric and there are enough
    /// vertices. Returns whether it did. Memory is reserved for `expected` vertices.
    pub(crate) fn push_parts(
        &mut self,
        schema: &Schema,
        parts: &[VertexPart<'_>],
        expected: usize,
        objects: Option<&ObjectSet>,
    ) -> bool {
        if !self.fragment.is_empty() || self.row_ids.is_some() {
            return false;
        }
        let row = self.positions.row_size();
        let new = parts
            .iter()
            .map(|part| part.rows.len())
            .fold(0, usize::saturating_add);
        let is_small = new.saturating_mul(row) < MIN_PARALLEL_BYTES;
        // Reused memory would be zeroed first.
        if is_small && !self.has_room {
            return false;
        }
        let mut widths = Vec::with_capacity(self.vertex.len());
        for (at, builder) in &self.vertex {
            let cells = parts
                .iter()
                .map(|part| part.chunk.vertex.get(*at)?.as_ref());
            let Some(width) = builder.width_with(cells) else {
                return false;
            };
            widths.push(width);
        }
        let capacity = Capacity {
            before: self.rows,
            rows: self.rows.saturating_add(new),
            expected,
        };
        capacity.make(&mut self.positions.bytes, row);
        let columns = parts.iter().map(|part| (&*part.chunk.positions, part.rows));
        let form = (schema.dtype, self.positions.width);
        let mut all = Copying::of(&mut self.positions.bytes, capacity.before, form, columns);
        for ((at, builder), width) in self.vertex.iter_mut().zip(widths) {
            let columns = parts.iter().map(|part| {
                let cell = part.chunk.vertex.get(*at).and_then(Option::as_ref);
                (cell.map_or(&[][..], |cell| &cell.bytes), part.rows)
            });
            all.extend(builder.push_all(width, capacity, columns));
        }
        let mut all: Vec<BulkCopy<'_>> = all.into_iter().map(BulkCopy::Column).collect();
        if let Some(ids) = &mut self.object_ids {
            if ids.is_empty() {
                *ids = vec![Owner::NONE; capacity.rows];
            } else {
                ids.resize(capacity.rows, Owner::NONE);
            }
            let mut rest = ids.get_mut(capacity.before..).unwrap_or_default();
            for part in parts {
                let (own, after) = rest.split_at_mut(part.rows.len().min(rest.len()));
                rest = after;
                all.push(BulkCopy::Ids(own, *part));
            }
        }
        let bytes = all.iter().map(BulkCopy::len).sum();
        on_cores(all, bytes, |copy| copy.run(objects));
        self.rows = capacity.rows;
        self.has_room = true;
        true
    }

    /// Releases memory that was reserved and not used.
    pub(super) fn release_unused(&mut self) {
        if core::mem::take(&mut self.has_room) {
            let bytes = self.rows.saturating_mul(self.positions.row_size());
            self.positions.bytes.truncate(bytes);
            for (_, builder) in &mut self.vertex {
                builder.release_unused();
            }
        }
    }
}
