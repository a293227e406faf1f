//! Map from rows of chunks to rows of the result.

use core::ops::Range;
use std::collections::HashMap;

use zvf_catalog::{Chunk, Fault, LinkRecords, RowSelection};
use zvf_model::{draco::VertexOrder, grid::ChunkCoord};

/// Map from rows of chunks to rows of the result.
#[derive(Default)]
pub(super) struct RowMap {
    chunks: HashMap<ChunkCoord, ChunkRows>,
    rows: u64,
    /// Rows of the result that start a fragment.
    starts: Vec<u64>,
}

pub(super) struct ChunkRows {
    /// Range of rows of the result.
    first: u64,
    end: u64,
    /// Rows of the chunk.
    rows: u64,
    order: VertexOrder,
    /// The result row of each row, if rows are not in order; [`NO_ROW`] for rows not in the result.
    result_rows: Option<Vec<u64>>,
}

const NO_ROW: u64 = u64::MAX;

pub(super) enum MappedRow {
    Row(u64),
    /// The row is not part of the query.
    Excluded,
    Absent(Fault),
}

impl RowMap {
    pub(super) fn add(&mut self, chunk: &Chunk, vertices: &RowSelection, with_starts: bool) {
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let mut next = 0_u64;
        let in_order = vertices.runs().iter().all(|run| {
            let goes_on = run.row == next;
            next = next.saturating_add(count(run.len));
            goes_on
        });
        let in_order = in_order && count(vertices.len()) == chunk.rows;
        let result_rows = (!in_order).then(|| {
            let rows = usize::try_from(chunk.rows).unwrap_or(0);
            let mut result_rows = vec![NO_ROW; rows];
            for (to, run) in (self.rows..).zip(vertices.iter()) {
                let row = usize::try_from(run.row).unwrap_or(usize::MAX);
                if let Some(index) = result_rows.get_mut(row).filter(|index| **index == NO_ROW) {
                    *index = to;
                }
            }
            result_rows
        });
        if with_starts {
            let (mut last, mut row) = (None, self.rows);
            for run in vertices.runs() {
                if last != Some(run.fragment) {
                    self.starts.push(row);
                }
                last = Some(run.fragment);
                row = row.saturating_add(count(run.len));
            }
        }
        let end = self.rows.saturating_add(count(vertices.len()));
        let rows = ChunkRows {
            first: self.rows,
            end,
            rows: chunk.rows,
            order: chunk.order,
            result_rows,
        };
        self.chunks.insert(chunk.chunk.clone(), rows);
        self.rows = end;
    }

    pub(super) fn has(&self, chunk: &ChunkCoord) -> bool {
        self.chunks.contains_key(chunk)
    }

    /// Returns the rows of the chunks of a cell, by their numbers in the cell.
    pub(super) fn chunks_of(&self, records: &LinkRecords) -> Vec<Option<&ChunkRows>> {
        let chunks = records.chunks.iter();
        chunks.map(|chunk| self.chunks.get(chunk)).collect()
    }

    /// Returns the row of the result that an end of a link went to.
    pub(super) fn find(
        chunks: &[Option<&ChunkRows>],
        records: &LinkRecords,
        end: (u32, u64),
    ) -> MappedRow {
        let (number, row) = end;
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(Some(rows)) = chunks.get(number) else {
            return MappedRow::Absent(match records.chunk_of(end) {
                Some(chunk) => Fault::NoChunk(chunk.clone()),
                None => Fault::Range,
            });
        };
        if rows.order == VertexOrder::Lost && !records.is_with_vertices {
            return MappedRow::Absent(Fault::OrderLost);
        }
        if row >= rows.rows {
            let rows = rows.rows;
            return MappedRow::Absent(Fault::NoRow { row, rows });
        }
        let Some(result_rows) = &rows.result_rows else {
            return MappedRow::Row(rows.first.saturating_add(row));
        };
        let index = usize::try_from(row)
            .ok()
            .and_then(|row| result_rows.get(row));
        match index.copied() {
            None | Some(NO_ROW) => MappedRow::Excluded,
            Some(row) => MappedRow::Row(row),
        }
    }

    /// Returns the rows of the result that the rows of a chunk went to.
    pub(super) fn of_chunk(&self, chunk: &ChunkCoord) -> Option<Range<u64>> {
        let rows = self.chunks.get(chunk)?;
        Some(rows.first..rows.end)
    }

    /// Returns the number of rows, and the rows that start a fragment, ascending.
    pub(super) fn starts(&self) -> (u64, &[u64]) {
        (self.rows, &self.starts)
    }
}

impl ChunkRows {
    /// Returns the row of the result for a row of the chunk; `None` if [`RowMap::find`] must
    /// determine the reason for its absence.
    pub(super) fn row(&self, row: u64, records: &LinkRecords) -> Option<u64> {
        let is_order_lost = self.order == VertexOrder::Lost && !records.is_with_vertices;
        if is_order_lost || row >= self.rows {
            return None;
        }
        match &self.result_rows {
            None => Some(self.first.saturating_add(row)),
            Some(result_rows) => {
                let row = result_rows.get(usize::try_from(row).ok()?).copied()?;
                (row != NO_ROW).then_some(row)
            }
        }
    }
}
