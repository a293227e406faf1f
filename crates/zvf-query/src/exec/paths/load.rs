//! Reading the chunks that paths go through.

use rayon::slice::ParallelSliceMut;

use zvf_catalog::{ChunkRequest, Damage, Fault, ObjectFragment, RequestedRows, on_cores};

use super::{
    PathWork,
    overlap::{Overlap, may_cross, overlap},
};
use crate::{
    batch::loaded::LoadedChunks,
    error::QueryError,
    exec::path::{BYTES_PER_PIECE, Path, check_shared},
    geometry::Mode,
    resolve::area::Area,
};

impl PathWork<'_> {
    /// Drops paths that a region cannot select, and returns the rows that the others need.
    pub(super) fn near_paths(
        &self,
        area: &Area,
        paths: &mut Vec<Path<'_>>,
        loaded: &LoadedChunks,
    ) -> Result<Vec<(u32, RequestedRows)>, QueryError> {
        let mode = self.context.query.area_mode;
        check_shared(paths, loaded, self.context.catalog.fetch.budget())?;
        let pieces = paths.iter().map(|path| path.pieces.len());
        let bytes = pieces.sum::<usize>().saturating_mul(BYTES_PER_PIECE);
        let near = on_cores(
            paths.chunks_mut(PATHS_PER_BLOCK).collect(),
            bytes,
            |paths| NearPaths::of(paths, self, loaded, area, mode),
        );
        let mut is_near = near.iter().flat_map(|near| near.is_near.iter().copied());
        paths.retain(|_| is_near.next().unwrap_or(false));
        let more: Vec<ObjectFragment> = near.into_iter().flat_map(|near| near.more).collect();
        Ok(of_fragments(&more))
    }

    /// Reads rows of chunks by the numbers of the chunks.
    pub(super) async fn load(
        &self,
        wanted: impl IntoIterator<Item = (u32, RequestedRows)>,
        loaded: &mut LoadedChunks,
    ) -> Result<(), QueryError> {
        let scan = self.context.of(&self.plan.scan);
        let (mut numbers, mut requests) = (Vec::new(), Vec::new());
        for (number, rows) in wanted {
            let Some(chunk) = self.objects.chunk(number) else {
                continue;
            };
            if !self.schema.vertices.has(chunk) {
                let fault = Fault::NoChunk(chunk.clone());
                scan.diagnostics.skip(Damage::new(&self.manifests, fault))?;
                loaded.add(number, None);
                continue;
            }
            numbers.push(number);
            requests.push(ChunkRequest {
                chunk: chunk.clone(),
                fragments: true,
                rows,
            });
        }
        let chunks = scan.read_chunks(self.schema, requests).await?;
        for (number, chunk) in numbers.into_iter().zip(chunks) {
            loaded.add(number, chunk);
        }
        Ok(())
    }
}

/// Paths that one core tests at a time.
pub(super) const PATHS_PER_BLOCK: usize = 64;

/// The result of testing consecutive paths against a region.
#[derive(Default)]
struct NearPaths {
    /// Marks paths that the region may select.
    is_near: Vec<bool>,
    /// Pieces of these paths that have to be read.
    more: Vec<ObjectFragment>,
}

impl NearPaths {
    fn of(
        paths: &mut [Path<'_>],
        work: &PathWork<'_>,
        loaded: &LoadedChunks,
        area: &Area,
        mode: Mode,
    ) -> Self {
        let mut near = Self::default();
        for path in paths {
            let overlap = overlap(path, work, loaded, area, mode);
            near.is_near.push(overlap != Overlap::None);
            if overlap == Overlap::None {
                continue;
            }
            path.is_overlap_confirmed = overlap == Overlap::Confirmed;
            let clip = mode == Mode::Clip;
            for (at, piece) in path.pieces.iter().enumerate() {
                let wanted = !loaded.knows(piece.chunk)
                    && (!clip || may_cross(path, at, work, loaded, area));
                if wanted {
                    near.more.push(*piece);
                }
            }
        }
        near
    }
}

/// Returns requests for the fragments of pieces, by chunk.
pub(super) fn of_fragments<'p>(
    pieces: impl IntoIterator<Item = &'p ObjectFragment>,
) -> Vec<(u32, RequestedRows)> {
    let mut pieces: Vec<ObjectFragment> = pieces.into_iter().copied().collect();
    pieces.par_sort_unstable();
    pieces.dedup();
    let chunks = pieces.chunk_by(|a, b| a.chunk == b.chunk);
    let wanted = chunks.filter_map(|pieces| {
        let fragments = pieces.iter().map(|piece| piece.fragment);
        Some((
            pieces.first()?.chunk,
            RequestedRows::Covering(fragments.collect()),
        ))
    });
    wanted.collect()
}
