//! Vertices of pieces of paths, copied on all cores.

use core::ops::Range;
use std::sync::Arc;

use zvf_catalog::{Chunk, Diagnostics, ObjectFragment, RowSelection, Schema, on_cores};
use zvf_format::numeric::Dtype;
use zvf_model::object_ids::Owner;

use super::VertexBuilder;
use crate::{
    batch::{
        columns::{row_size, rows_at, to_little, zeroed},
        loaded::LoadedChunks,
    },
    error::QueryError,
};

/// Consecutive pieces of a result. One core copies them.
#[derive(Debug)]
pub(crate) struct PieceBlock<P> {
    pub(crate) pieces: P,
    /// The vertices of each piece.
    pub(crate) spans: Vec<PieceSpan>,
    /// Number of vertices in the result, which are the first ones of the pieces.
    pub(crate) rows: usize,
}

/// The vertices of a piece in memory.
///
/// The copy reads them in order. Looking them up again would stall it: the processor would wait for
/// the length of each piece before it could load the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PieceSpan {
    start: u32,
    /// Number of rows, or [`LISTED`].
    len: u32,
}

/// The length of a piece whose fragment lists its rows, or whose rows are not all in memory.
const LISTED: u32 = u32::MAX;

impl PieceSpan {
    /// The span of a piece that is not loaded.
    pub(crate) const NONE: Self = Self { start: 0, len: 0 };

    /// Returns the span of consecutive rows, and their number.
    pub(crate) fn range([start, end]: [u32; 2]) -> Option<(Self, usize)> {
        let len = end.checked_sub(start).filter(|len| *len != LISTED)?;
        Some((Self { start, len }, usize::try_from(len).ok()?))
    }

    /// Returns the span of a fragment of any form, and its number of rows in memory.
    pub(crate) fn listed(chunk: &Chunk, fragment: u32) -> (Self, usize) {
        let mut rows = 0_usize;
        chunk.push_fragment(fragment, |run| rows = rows.saturating_add(run.len));
        let span = Self {
            start: 0,
            len: LISTED,
        };
        (span, rows)
    }
}

impl VertexBuilder {
    /// Sets the vertices of an empty builder from pieces of loaded chunks. A piece that is not
    /// loaded has no vertices.
    ///
    /// Columns of numbers that all chunks have are copied on all cores, straight to their destination.
    pub(crate) fn take_pieces<'p, P>(
        &mut self,
        schema: &Schema,
        blocks: Vec<PieceBlock<P>>,
        loaded: &LoadedChunks,
        diagnostics: &Diagnostics,
    ) -> Result<(), QueryError>
    where
        P: Iterator<Item = &'p ObjectFragment> + Send,
    {
        let is_simple = self.fragment.is_empty()
            && self.object_ids.is_none()
            && self.row_ids.is_none()
            && self.rows == 0;
        let mut widths = Vec::with_capacity(self.vertex.len());
        for (at, builder) in &self.vertex {
            let cells = loaded.all().map(|chunk| chunk.vertex.get(*at)?.as_ref());
            widths.extend(builder.width_of(cells));
        }
        if !is_simple || widths.len() < self.vertex.len() {
            for block in blocks {
                self.push_pieces(schema, block, loaded, diagnostics)?;
            }
            return Ok(());
        }
        let rows = blocks
            .iter()
            .map(|block| block.rows)
            .fold(0, usize::saturating_add);
        let width = self.positions.width;
        self.positions.bytes = zeroed(rows, row_size(schema.dtype, width));
        let mut columns = vec![Target {
            to: &mut self.positions.bytes,
            dtype: schema.dtype,
            row: row_size(schema.dtype, width),
            from: loaded.each(|chunk| &chunk.positions),
        }];
        for ((at, builder), width) in self.vertex.iter_mut().zip(widths) {
            let dtype = builder.dtype();
            columns.push(Target {
                to: builder.zeroed(width, rows),
                dtype,
                row: row_size(dtype, width),
                from: loaded.each(|chunk| {
                    let cell = chunk.vertex.get(*at).and_then(Option::as_ref);
                    cell.map_or(&[], |cell| &cell.bytes)
                }),
            });
        }
        let bytes = columns.iter().map(|column| column.to.len()).sum();
        let copies = blocks.into_iter().map(|block| {
            let targets = columns
                .iter_mut()
                .map(|column| column.split_off(block.rows))
                .collect();
            (block, targets)
        });
        on_cores(copies.collect(), bytes, |(block, targets)| {
            copy(block, targets, loaded);
        });
        self.rows = rows;
        Ok(())
    }

    /// Appends the vertices of a block, chunk by chunk.
    fn push_pieces<'p>(
        &mut self,
        schema: &Schema,
        block: PieceBlock<impl Iterator<Item = &'p ObjectFragment>>,
        loaded: &LoadedChunks,
        diagnostics: &Diagnostics,
    ) -> Result<(), QueryError> {
        let mut rows = RowSelection::default();
        for piece in block.pieces {
            if let Some(chunk) = loaded.get(piece.chunk) {
                chunk.push_fragment(piece.fragment, |run| rows.push(run.of_chunk(piece.chunk)));
            }
        }
        rows.truncate(block.rows);
        for same in rows.runs().chunk_by(|a, b| a.chunk == b.chunk) {
            let own: RowSelection = same.iter().copied().collect();
            let chunk = same.first().and_then(|run| loaded.get(run.chunk));
            if let Some(chunk) = chunk {
                self.push(schema, chunk, &own, |_| Owner::None, diagnostics)?;
            }
        }
        Ok(())
    }
}

/// The rows of a column that a block is copied to.
struct Target<'t, 'c> {
    to: &'t mut [u8],
    dtype: Dtype,
    /// Bytes of a row.
    row: usize,
    /// The column of each chunk, by its number.
    from: Arc<[&'c [u8]]>,
}

impl Target<'_, '_> {
    /// Splits off the first rows.
    fn split_off(&mut self, rows: usize) -> Self {
        let size = rows.saturating_mul(self.row);
        let all = core::mem::take(&mut self.to);
        let (to, rest) = all.split_at_mut(size.min(all.len()));
        self.to = rest;
        Self {
            to,
            dtype: self.dtype,
            row: self.row,
            from: Arc::clone(&self.from),
        }
    }

    /// Copies rows of a chunk to the rows from `next` on, as far as there are any.
    fn copy(&mut self, chunk: u32, indices: Range<usize>, next: usize) {
        let number = usize::try_from(chunk).unwrap_or(usize::MAX);
        let from = self.from.get(number).copied().unwrap_or_default();
        let from = rows_at(from, self.row, indices);
        let rest = self
            .to
            .get_mut(next.saturating_mul(self.row)..)
            .unwrap_or_default();
        let size = from.len().min(rest.len());
        if let (Some(to), Some(from)) = (rest.get_mut(..size), from.get(..size)) {
            to.copy_from_slice(from);
        }
    }
}

/// Copies pieces as far as the targets have rows for them.
fn copy<'p>(
    block: PieceBlock<impl Iterator<Item = &'p ObjectFragment>>,
    mut targets: Vec<Target<'_, '_>>,
    loaded: &LoadedChunks,
) {
    let mut next = 0_usize;
    for (piece, span) in block.pieces.zip(block.spans) {
        let mut push = |indices: Range<usize>| {
            let len = indices.len();
            for target in &mut targets {
                target.copy(piece.chunk, indices.clone(), next);
            }
            next = next.saturating_add(len);
        };
        if span.len != LISTED {
            let rows = [span.start, span.len];
            let [start, len] = rows.map(|row| usize::try_from(row).unwrap_or(usize::MAX));
            push(start..start.saturating_add(len));
        } else if let Some(chunk) = loaded.get(piece.chunk) {
            chunk.push_fragment(piece.fragment, |run| push(run.indices()));
        }
    }
    for target in targets {
        to_little(target.to, 0, target.dtype);
    }
}
