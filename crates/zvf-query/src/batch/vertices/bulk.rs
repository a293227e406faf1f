//! Vertices of many chunks, copied on all cores.

use super::VertexBuilder;
use crate::{
    batch::columns::{Copying, Room},
    catalog::chunk::Chunk,
    catalog::schema::Schema,
    cores::{WORTH, on_cores},
    selection::RowSelection,
};

impl VertexBuilder {
    /// Appends all vertices of chunks on all cores, and returns whether it did: all columns must be
    /// numeric, and the chunks large enough. Memory is reserved for `expected` vertices.
    pub(crate) fn push_chunks(
        &mut self,
        schema: &Schema,
        chunks: &[Option<Chunk>],
        expected: usize,
    ) -> bool {
        let is_simple =
            self.fragment.is_empty() && self.object_ids.is_none() && self.row_ids.is_none();
        if !is_simple {
            return false;
        }
        let chunks = chunks.iter().flatten();
        let chunks: Vec<(&Chunk, RowSelection)> =
            chunks.map(|chunk| (chunk, chunk.runs())).collect();
        let bytes = chunks.iter().map(|(chunk, _)| chunk.positions.len());
        let is_small = bytes.sum::<usize>() < WORTH;
        // Reused memory would be zeroed first.
        if is_small && !self.has_room {
            return false;
        }
        let mut widths = Vec::with_capacity(self.vertex.len());
        for (at, builder) in &self.vertex {
            let cells = chunks.iter();
            let cells = cells.map(|(chunk, _)| chunk.vertex.get(*at)?.as_ref());
            let Some(width) = builder.width_with(cells) else {
                return false;
            };
            widths.push(width);
        }
        let new = chunks.iter().map(|(_, runs)| runs.len());
        let capacity = Room {
            before: self.rows,
            rows: new.fold(self.rows, usize::saturating_add),
            expected,
        };
        let row = self.positions.row_size();
        capacity.make(&mut self.positions.bytes, row);
        let parts = chunks.iter().map(|(chunk, runs)| (&*chunk.positions, runs));
        let form = (schema.dtype, self.positions.width);
        let mut all = Copying::of(&mut self.positions.bytes, capacity.before, form, parts);
        for ((at, builder), width) in self.vertex.iter_mut().zip(widths) {
            let parts = chunks.iter().map(|(chunk, runs)| {
                let cell = chunk.vertex.get(*at).and_then(Option::as_ref);
                (cell.map_or(&[][..], |cell| &cell.bytes), runs)
            });
            all.extend(builder.push_all(width, capacity, parts));
        }
        let bytes = all.iter().map(Copying::len).sum();
        on_cores(all, bytes, Copying::run);
        self.rows = capacity.rows;
        self.has_room = true;
        true
    }

    /// Releases memory that was reserved and not used.
    pub(super) fn settle(&mut self) {
        if core::mem::take(&mut self.has_room) {
            let bytes = self.rows.saturating_mul(self.positions.row_size());
            self.positions.bytes.truncate(bytes);
            for (_, builder) in &mut self.vertex {
                builder.settle();
            }
        }
    }
}
