//! Paths whose chunks do not fit into memory together.
//!
//! In a tractogram without a spatial order, a few paths together go through all chunks of a level.
//! Groups of paths whose chunks fit into memory would be small, and each group would read the same
//! chunks again. A sweep reads the chunks of many paths in turns and keeps only the rows of these
//! paths.

use zvf_catalog::{CatalogError, RequestedRows, Schema};

use super::{EmitProgress, PathGroups, load::of_fragments};
use crate::{
    batch::loaded::LoadedChunks,
    error::QueryError,
    exec::path::Path,
    resolve::query::{Emit, LevelQuery},
};

/// Vertices of the paths of a sweep.
struct SweptPaths {
    loaded: LoadedChunks,
    /// Their size in bytes.
    bytes: u64,
}

impl PathGroups<'_> {
    /// Emits all paths. Each pass keeps as many paths as a quarter of the budget holds, and reads
    /// their chunks in turns of `max_chunks`.
    pub(super) async fn sweep(
        &self,
        max_chunks: usize,
        mut emitted: EmitProgress,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let (query, work) = (self.work.context.query, self.work);
        let share = query.catalog.fetch.budget() / 4;
        let mut piece = query.bytes_per_piece(work.schema, pieces_of(self.paths));
        let (mut first, mut max_paths) = (0_usize, usize::MAX);
        loop {
            let rest = self.paths.get(first..).unwrap_or_default();
            let now = first_paths(rest, share / piece, max_paths);
            let Some(swept) = self.read(now, max_chunks, share).await? else {
                max_paths = now.len().div_ceil(2);
                continue;
            };
            max_paths = usize::MAX;
            piece = (swept.bytes / pieces_of(now).max(1)).max(1);
            first = first.saturating_add(now.len());
            let emitting = work.emit_batches(now, &swept.loaded, &mut emitted, emit);
            if emitting.await?.is_break() || emitted.limit.is_reached() {
                return Ok(());
            }
            if first >= self.paths.len() {
                return Ok(());
            }
        }
    }

    /// Reads the vertices of paths. Returns `None` if several paths take more than twice `share`.
    async fn read(
        &self,
        paths: &[Path<'_>],
        max_chunks: usize,
        share: u64,
    ) -> Result<Option<SweptPaths>, QueryError> {
        let mut wanted = of_fragments(paths.iter().flat_map(|path| path.pieces));
        for (_, rows) in &mut wanted {
            if let RequestedRows::Covering(fragments) = rows {
                *rows = RequestedRows::Present(std::mem::take(fragments));
            }
        }
        let mut swept = SweptPaths {
            loaded: LoadedChunks::default(),
            bytes: 0,
        };
        let (mut left, mut count) = (wanted.as_slice(), max_chunks.max(1));
        while !left.is_empty() {
            let (now, later) = left.split_at(count.min(left.len()));
            let read = self.work.load(now.iter().cloned(), &mut swept.loaded);
            match read.await {
                Err(QueryError::Catalog(error)) if now.len() > 1 && error.is_over_budget() => {
                    count = now.len().div_ceil(2);
                    continue;
                }
                result => result?,
            }
            left = later;
            for (chunk, _) in now {
                let size = swept.loaded.detach(*chunk);
                let size = u64::try_from(size).unwrap_or(u64::MAX);
                swept.bytes = swept.bytes.saturating_add(size);
            }
            let (bytes, budget) = (swept.bytes, share.saturating_mul(4));
            if bytes > share.saturating_mul(2) && paths.len() > 1 {
                return Ok(None);
            }
            if bytes > budget {
                let what = "the vertices of a path";
                return Err(CatalogError::OverBudget {
                    what,
                    bytes,
                    budget,
                }
                .into());
            }
        }
        Ok(Some(swept))
    }
}

impl LevelQuery<'_> {
    /// Estimates the size in bytes of the vertices of a piece, as if `pieces` were all pieces of
    /// the level. The estimate is too large if the level has more.
    fn bytes_per_piece(&self, schema: &Schema, pieces: u64) -> u64 {
        let vertices = self.level.metadata.vertex_count.unwrap_or(pieces);
        let bytes = vertices.saturating_mul(schema.row_with_attributes());
        (bytes / pieces.max(1)).max(1)
    }
}

fn pieces_of(paths: &[Path<'_>]) -> u64 {
    let pieces = paths.iter().map(|path| path.pieces.len());
    u64::try_from(pieces.fold(0, usize::saturating_add)).unwrap_or(u64::MAX)
}

/// Returns the first paths that together have at most `pieces` pieces: at most `max_paths` paths,
/// and at least one.
fn first_paths<'p, 'o>(paths: &'p [Path<'o>], pieces: u64, max_paths: usize) -> &'p [Path<'o>] {
    let mut sum = 0_u64;
    let fitting = paths.iter().take(max_paths).take_while(|path| {
        let more = u64::try_from(path.pieces.len()).unwrap_or(u64::MAX);
        sum = sum.saturating_add(more);
        sum <= pieces
    });
    let count = fitting.count().max(1);
    paths.get(..count).unwrap_or(paths)
}
