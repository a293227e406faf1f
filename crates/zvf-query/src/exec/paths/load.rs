//! Reading the chunks that paths go through.

use super::{
    PathWork,
    overlap::{Overlap, may_cross, overlap},
};
use crate::{
    batch::loaded::LoadedChunks,
    catalog::chunk::{ChunkRequest, RequestedRows},
    catalog::objects::ObjectFragment,
    diagnostics::Diagnostics,
    error::{Damage, Fault, QueryError},
    exec::path::Path,
    geometry::Mode,
    resolve::area::Area,
    resolve::query::LevelQuery,
};

impl LevelQuery<'_> {
    /// Reads the pieces of paths that a region needs, and drops paths that it cannot select.
    pub(super) async fn load_region(
        &self,
        work: &PathWork<'_>,
        area: &Area,
        paths: &mut Vec<Path<'_>>,
        loaded: &mut LoadedChunks,
        diagnostics: &Diagnostics,
    ) -> Result<(), QueryError> {
        let mut more = Vec::new();
        let mode = self.area_mode;
        let pieces = paths.iter().flat_map(|path| path.pieces);
        loaded.check_shared(pieces, self.session.fetch.budget())?;
        paths.retain_mut(|path| {
            let overlap = overlap(path, work, loaded, area, mode);
            if overlap == Overlap::None {
                return false;
            }
            path.is_met = overlap == Overlap::Confirmed;
            let clip = mode == Mode::Clip;
            for (at, piece) in path.pieces.iter().enumerate() {
                let wanted = !loaded.knows(piece.chunk)
                    && (!clip || may_cross(path, at, work, loaded, area));
                if wanted {
                    more.push(*piece);
                }
            }
            true
        });
        self.load(work, of_fragments(&more), loaded, diagnostics)
            .await
    }

    /// Reads rows of chunks by the numbers of the chunks.
    pub(super) async fn load(
        &self,
        work: &PathWork<'_>,
        wanted: impl IntoIterator<Item = (u32, RequestedRows)>,
        loaded: &mut LoadedChunks,
        diagnostics: &Diagnostics,
    ) -> Result<(), QueryError> {
        let (mut numbers, mut requests) = (Vec::new(), Vec::new());
        for (number, rows) in wanted {
            let Some(chunk) = work.objects.chunk(number) else {
                continue;
            };
            if !work.schema.vertices.has(chunk) {
                let fault = Fault::NoChunk(chunk.clone());
                diagnostics.skip(Damage::new(&work.manifests, fault))?;
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
        let chunks = self.read_chunks(work.schema, requests, diagnostics).await?;
        for (number, chunk) in numbers.into_iter().zip(chunks) {
            loaded.add(number, chunk);
        }
        Ok(())
    }
}

/// Returns requests for the fragments of pieces, by chunk.
pub(super) fn of_fragments<'p>(
    pieces: impl IntoIterator<Item = &'p ObjectFragment>,
) -> Vec<(u32, RequestedRows)> {
    let mut pieces: Vec<ObjectFragment> = pieces.into_iter().copied().collect();
    pieces.sort_unstable();
    pieces.dedup();
    let chunks = pieces.chunk_by(|a, b| a.chunk == b.chunk);
    let wanted = chunks.filter_map(|pieces| {
        let fragments = pieces.iter().map(|piece| piece.fragment);
        Some((
            pieces.first()?.chunk,
            RequestedRows::Fragments(fragments.collect()),
        ))
    });
    wanted.collect()
}
