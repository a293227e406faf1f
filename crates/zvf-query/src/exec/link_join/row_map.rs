//! Where the rows of chunks went.

use core::ops::Range;
use std::collections::HashMap;

use zvf_model::grid::ChunkCoord;

use crate::{
    catalog::chunk::Chunk, catalog::links::LinkRecords, error::Fault, selection::RowSelection,
};

/// Where the rows of chunks went.
#[derive(Default)]
pub(super) struct RowMap {
    chunks: HashMap<ChunkCoord, ChunkRows>,
    rows: u64,
    /// Rows of the answer that start a fragment.
    starts: Vec<u64>,
}

pub(super) struct ChunkRows {
    /// Rows of the answer.
    first: u64,
    end: u64,
    /// Rows of the chunk.
    rows: u64,
    /// Where each row went, when that is not in order; [`NOWHERE`] for some.
    moved: Option<Vec<u64>>,
}

const NOWHERE: u64 = u64::MAX;

pub(super) enum Found {
    Row(u64),
    /// In a chunk that is not looked at.
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
        let moved = (!in_order).then(|| {
            let rows = usize::try_from(chunk.rows).unwrap_or(0);
            let mut moved = vec![NOWHERE; rows];
            for (to, entry) in (self.rows..).zip(vertices.entries()) {
                let row = usize::try_from(entry.row).unwrap_or(usize::MAX);
                if let Some(place) = moved.get_mut(row).filter(|place| **place == NOWHERE) {
                    *place = to;
                }
            }
            moved
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
            moved,
        };
        self.chunks.insert(chunk.chunk.clone(), rows);
        self.rows = end;
    }

    pub(super) fn has(&self, chunk: &ChunkCoord) -> bool {
        self.chunks.contains_key(chunk)
    }

    /// What is known of the chunks of a cell, by their numbers there.
    pub(super) fn chunks_of(&self, records: &LinkRecords) -> Vec<Option<&ChunkRows>> {
        let chunks = records.chunks.iter();
        chunks.map(|chunk| self.chunks.get(chunk)).collect()
    }

    /// Where an end of a link went, by what is known of the chunks of its cell.
    pub(super) fn find(
        chunks: &[Option<&ChunkRows>],
        records: &LinkRecords,
        end: (u32, u64),
    ) -> Found {
        let (number, row) = end;
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(Some(rows)) = chunks.get(number) else {
            return Found::Absent(match records.chunk_of(end) {
                Some(chunk) => Fault::NoChunk(chunk.clone()),
                None => Fault::Range,
            });
        };
        if row >= rows.rows {
            let rows = rows.rows;
            return Found::Absent(Fault::NoRow { row, rows });
        }
        let Some(moved) = &rows.moved else {
            return Found::Row(rows.first.saturating_add(row));
        };
        let place = usize::try_from(row).ok().and_then(|row| moved.get(row));
        match place.copied() {
            None | Some(NOWHERE) => Found::Excluded,
            Some(row) => Found::Row(row),
        }
    }

    /// Rows of the answer that a chunk's went to.
    pub(super) fn of_chunk(&self, chunk: &ChunkCoord) -> Option<Range<u64>> {
        let rows = self.chunks.get(chunk)?;
        Some(rows.first..rows.end)
    }

    /// Links between rows of a fragment that follow each other: child and parent.
    pub(super) fn implied(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut starts = self.starts.iter().copied().peekable();
        (0..self.rows).filter_map(move |row| {
            if starts.next_if_eq(&row).is_some() {
                return None;
            }
            Some((row, row.checked_sub(1)?))
        })
    }
}
