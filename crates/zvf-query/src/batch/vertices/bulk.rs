//! Vertices of many chunks, copied on all cores.

use zvf_format::numeric::Dtype;

use super::VertexBuilder;
use crate::{
    batch::columns::{copy_runs, row_size},
    catalog::chunk::Chunk,
    catalog::schema::Schema,
    cores::{WORTH, on_cores},
    selection::RowSelection,
};

/// Rows on their way to their place in a column.
pub(crate) struct Copying<'a> {
    to: &'a mut [u8],
    from: &'a [u8],
    runs: &'a RowSelection,
    dtype: Dtype,
    columns: u32,
}

impl<'a> Copying<'a> {
    /// The rows of chunks that go into a column one after the other, from row `start` on.
    pub(crate) fn of(
        bytes: &'a mut [u8],
        start: usize,
        (dtype, columns): (Dtype, u32),
        parts: impl Iterator<Item = (&'a [u8], &'a RowSelection)>,
    ) -> Vec<Self> {
        let row = row_size(dtype, columns);
        let rest = bytes.get_mut(start.saturating_mul(row)..);
        let mut rest = rest.unwrap_or_default();
        let mut all = Vec::new();
        for (from, runs) in parts {
            let size = runs.len().saturating_mul(row).min(rest.len());
            let (to, after) = rest.split_at_mut(size);
            rest = after;
            all.push(Self {
                to,
                from,
                runs,
                dtype,
                columns,
            });
        }
        all
    }

    fn run(self) {
        copy_runs(self.to, self.runs, self.dtype, self.columns, self.from);
    }
}

/// How many rows a column has, will have, and is expected to have in the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) before: usize,
    pub(crate) rows: usize,
    pub(crate) expected: usize,
}

impl Room {
    /// Makes it. Fresh memory is zero, and not touched here: that takes longer than
    /// copying, and each core is to do it for what it copies.
    pub(crate) fn make(self, bytes: &mut Vec<u8>, row: usize) {
        let there = self.before.saturating_mul(row);
        let needed = self.rows.saturating_mul(row);
        if bytes.len() >= needed {
            return;
        }
        let expected = self.expected.saturating_mul(row);
        let size = needed.saturating_add(there / 2).max(expected);
        let mut new = vec![0; size];
        zvf_pages::prefer_large(&mut new);
        let kept = bytes.get(..there).unwrap_or_default();
        if let Some(start) = new.get_mut(..kept.len()) {
            start.copy_from_slice(kept);
        }
        *bytes = new;
    }
}

impl VertexBuilder {
    /// Appends all vertices of chunks on all cores, if there are only numbers, and
    /// enough; says whether it did. When it has to make room, it does so for `expected` vertices.
    pub(crate) fn push_chunks(
        &mut self,
        schema: &Schema,
        chunks: &[Option<Chunk>],
        expected: usize,
    ) -> bool {
        let is_simple =
            self.fragment.is_empty() && self.object_ids.is_none() && self.origins.is_none();
        if !is_simple {
            return false;
        }
        let chunks = chunks.iter().flatten();
        let chunks: Vec<(&Chunk, RowSelection)> =
            chunks.map(|chunk| (chunk, chunk.runs())).collect();
        let bytes = chunks.iter().map(|(chunk, _)| chunk.positions.len());
        let is_small = bytes.sum::<usize>() < WORTH;
        // Memory that was used before is made zero, which is for nothing.
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
        let room = Room {
            before: self.rows,
            rows: new.fold(self.rows, usize::saturating_add),
            expected,
        };
        let row = self.positions.row_size();
        room.make(&mut self.positions.bytes, row);
        let parts = chunks.iter().map(|(chunk, runs)| (&*chunk.positions, runs));
        let form = (schema.dtype, self.positions.width);
        let mut all = Copying::of(&mut self.positions.bytes, room.before, form, parts);
        for ((at, builder), width) in self.vertex.iter_mut().zip(widths) {
            let parts = chunks.iter().map(|(chunk, runs)| {
                let cell = chunk.vertex.get(*at).and_then(Option::as_ref);
                (cell.map_or(&[][..], |cell| &cell.bytes), runs)
            });
            all.extend(builder.push_all(width, room, parts));
        }
        let bytes = all.iter().map(|copying| copying.to.len()).sum();
        on_cores(all, bytes, Copying::run);
        self.rows = room.rows;
        self.has_room = true;
        true
    }

    /// Gives back the room that was made and is not used.
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
