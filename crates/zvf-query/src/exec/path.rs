//! Paths as the scan of paths finds them.

use zvf_catalog::{CatalogError, Chunk, Diagnostics, ObjectFragment, RowSelection, on_cores};
use zvf_model::key::Key;

use crate::{batch::loaded::LoadedChunks, error::QueryError};

/// A path: consecutive pieces of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'o> {
    /// Index of the object.
    pub(crate) index: usize,
    pub(crate) pieces: &'o [ObjectFragment],
    /// True if a loaded segment enters the region.
    pub(crate) is_overlap_confirmed: bool,
}

impl<'o> Path<'o> {
    /// Returns a path of pieces that are not loaded.
    pub(crate) fn new(index: usize, pieces: &'o [ObjectFragment]) -> Self {
        let is_overlap_confirmed = false;
        Self {
            index,
            pieces,
            is_overlap_confirmed,
        }
    }

    /// Calls `push` for each piece with its chunk, and with `None` for one that is unreadable or not
    /// loaded, which ends a segment. A clip leaves out pieces of chunks that it reads in part.
    pub(crate) fn each_piece(
        &self,
        loaded: &LoadedChunks,
        manifests: &Key,
        diagnostics: &Diagnostics,
        mut push: impl FnMut(ObjectFragment, Option<&Chunk>),
    ) -> Result<(), QueryError> {
        for piece in self.pieces {
            let mut chunk = loaded.get(piece.chunk);
            if let Some(found) = chunk
                && piece.fragment >= found.fragments.len()
            {
                loaded.skip_absent(*piece, manifests, diagnostics)?;
            }
            chunk = chunk.filter(|chunk| chunk.holds(piece.fragment));
            push(*piece, chunk);
        }
        Ok(())
    }

    /// Returns the vertices of the path, as one selection for each run of readable pieces.
    pub(crate) fn segments(
        &self,
        loaded: &LoadedChunks,
        manifests: &Key,
        diagnostics: &Diagnostics,
    ) -> Result<Vec<RowSelection>, QueryError> {
        let mut segments = vec![RowSelection::default()];
        self.each_piece(loaded, manifests, diagnostics, |piece, chunk| {
            match (chunk, segments.last_mut()) {
                (Some(chunk), Some(segment)) => push_piece(piece, chunk, segment),
                _ => segments.push(RowSelection::default()),
            }
        })?;
        segments.retain(|segment| !segment.is_empty());
        Ok(segments)
    }

    /// Returns whether all pieces are in memory.
    pub(crate) fn is_loaded(&self, loaded: &LoadedChunks) -> bool {
        self.pieces.iter().all(|piece| {
            let chunk = loaded.get(piece.chunk);
            chunk.is_some_and(|chunk| chunk.holds(piece.fragment))
        })
    }

    /// Returns all vertices of the path; `None` if a piece is missing.
    pub(crate) fn whole(&self, loaded: &LoadedChunks) -> Option<RowSelection> {
        let mut rows = RowSelection::default();
        for piece in self.pieces {
            let chunk = loaded.get(piece.chunk);
            let chunk = chunk.filter(|chunk| chunk.holds(piece.fragment))?;
            push_piece(*piece, chunk, &mut rows);
        }
        Some(rows)
    }
}

/// Bytes of a piece in memory: those of a few vertices.
pub(crate) const BYTES_PER_PIECE: usize = 64;

/// Checks that vertices that several paths share fit into the budget. They are many vertices of few
/// bytes, so the budget of the port does not see them.
pub(crate) fn check_shared(
    paths: &[Path<'_>],
    loaded: &LoadedChunks,
    budget: u64,
) -> Result<(), CatalogError> {
    let pieces = paths.iter().map(|path| path.pieces.len());
    let bytes = pieces.sum::<usize>().saturating_mul(BYTES_PER_PIECE);
    let blocks = paths.chunks(PATHS_PER_BLOCK).collect();
    let rows = on_cores(blocks, bytes, |paths| {
        let rows = paths
            .iter()
            .flat_map(|path| path.pieces)
            .map(|piece| loaded.rows_of(*piece));
        rows.fold(0, u64::saturating_add)
    });
    loaded.check_rows(rows.into_iter().fold(0, u64::saturating_add), budget)
}

/// Paths whose vertices one core counts at a time.
const PATHS_PER_BLOCK: usize = 256;

/// Returns the vertices of a piece that are in memory.
pub(crate) fn rows_of_piece(piece: ObjectFragment, loaded: &LoadedChunks) -> RowSelection {
    let mut rows = RowSelection::default();
    if let Some(chunk) = loaded.get(piece.chunk) {
        push_piece(piece, chunk, &mut rows);
    }
    rows
}

/// Appends the vertices of a piece.
pub(crate) fn push_piece(piece: ObjectFragment, chunk: &Chunk, rows: &mut RowSelection) {
    chunk.push_fragment(piece.fragment, |run| rows.push(run.of_chunk(piece.chunk)));
}
