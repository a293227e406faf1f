//! Where the rows of chunks went.

use core::ops::Range;
use std::collections::HashMap;

use zvf_model::grid::ChunkCoord;

use crate::{chunk::Chunk, error::Fault, links::LinkRecords, vertices::Entry};

/// Where the rows of chunks went.
#[derive(Default)]
pub(super) struct RowMap {
    chunks: HashMap<ChunkCoord, ChunkRows>,
    rows: u64,
    /// Rows of the answer that start a fragment.
    starts: Vec<u64>,
}

struct ChunkRows {
    /// Rows of the answer.
    first: u64,
    end: u64,
    /// Rows of the chunk.
    rows: u64,
    /// Where each row went when that is not in order.
    moved: Option<HashMap<u64, u64>>,
}

pub(super) enum Found {
    Row(u64),
    /// In a chunk that is not looked at.
    Excluded,
    Absent(Fault),
}

impl RowMap {
    pub(super) fn add(&mut self, chunk: &Chunk, entries: &[Entry], with_starts: bool) {
        let mut numbered = (0_u64..).zip(entries);
        let all = u64::try_from(entries.len()) == Ok(chunk.rows);
        let in_order = all && numbered.all(|(row, entry)| row == entry.row);
        let moved = (!in_order).then(|| {
            let mut moved = HashMap::with_capacity(entries.len());
            for (to, entry) in (self.rows..).zip(entries) {
                moved.entry(entry.row).or_insert(to);
            }
            moved
        });
        if with_starts {
            let mut last = None;
            for (row, entry) in (self.rows..).zip(entries) {
                if last != Some(entry.fragment) {
                    self.starts.push(row);
                }
                last = Some(entry.fragment);
            }
        }
        let added = u64::try_from(entries.len()).unwrap_or(u64::MAX);
        let end = self.rows.saturating_add(added);
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

    pub(super) fn find(&self, records: &LinkRecords, end: (u32, u64)) -> Found {
        let Some(chunk) = records.chunk_of(end) else {
            return Found::Absent(Fault::Range);
        };
        let Some(rows) = self.chunks.get(chunk) else {
            return Found::Absent(Fault::NoChunk(chunk.clone()));
        };
        let (_, row) = end;
        if row >= rows.rows {
            let rows = rows.rows;
            return Found::Absent(Fault::NoRow { row, rows });
        }
        match &rows.moved {
            None => Found::Row(rows.first.saturating_add(row)),
            Some(moved) => moved
                .get(&row)
                .map_or(Found::Excluded, |row| Found::Row(*row)),
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
