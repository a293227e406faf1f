//! Chunks of paths in memory.

use std::collections::{BTreeSet, HashMap};

use super::{Path, PathVertex};
use crate::{chunk::Chunk, coordinates::Coordinates, error::QueryError, schema::Schema};

/// Chunks that were read, by their number among those of the objects.
pub(crate) struct Loaded {
    chunks: HashMap<u32, Option<(Chunk, Coordinates)>>,
    bytes: u64,
}

impl Loaded {
    pub(crate) fn new() -> Self {
        Self {
            chunks: HashMap::new(),
            bytes: 0,
        }
    }

    pub(crate) fn get(&self, chunk: u32) -> Option<&(Chunk, Coordinates)> {
        self.chunks.get(&chunk)?.as_ref()
    }

    pub(crate) fn knows(&self, chunk: u32) -> bool {
        self.chunks.contains_key(&chunk)
    }

    pub(crate) fn add<A>(&mut self, number: u32, chunk: Option<Chunk>, schema: &Schema<A>) {
        let chunk = chunk.map(|chunk| {
            let coordinates = schema.coordinates(&chunk);
            (chunk, coordinates)
        });
        let size = chunk.as_ref().map_or(0, |(chunk, _)| chunk.size());
        self.bytes = self.bytes.saturating_add(size);
        self.chunks.insert(number, chunk);
    }
}

impl Loaded {
    /// Pieces that many paths share, or one path has many times, are many vertices
    /// of few bytes.
    pub(super) fn check_shared(&self, paths: &[Path], budget: u64) -> Result<(), QueryError> {
        let pieces = paths.iter().flat_map(|path| &path.pieces);
        let rows = pieces.filter_map(|piece| {
            let (chunk, _) = self.get(piece.chunk)?;
            chunk.fragments.rows(piece.fragment).map(|rows| rows.len())
        });
        let rows = rows.fold(0, u64::saturating_add);
        let read = self.chunks.values().flatten();
        let read = read.fold(0_u64, |sum, (chunk, _)| sum.saturating_add(chunk.rows));
        let vertex = u64::try_from(size_of::<PathVertex>()).unwrap_or(u64::MAX);
        let bytes = rows.saturating_mul(vertex);
        if rows <= read.saturating_mul(2) || bytes <= budget {
            return Ok(());
        }
        let what = "vertices that paths share";
        Err(QueryError::OverBudget {
            what,
            bytes,
            budget,
        })
    }

    /// Forgets chunks that are not needed now, when there are too many.
    pub(super) fn keep(&mut self, needed: &BTreeSet<u32>, most: usize) {
        let new = needed.iter().filter(|chunk| !self.knows(**chunk)).count();
        if self.chunks.len().saturating_add(new) > most {
            self.chunks.retain(|chunk, _| needed.contains(chunk));
        }
    }
}
