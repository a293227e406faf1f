//! Checks of single chunks, which tasks may do.
//!
//! A check of a chunk has two steps. [`ChunkCheck::check`] reads the cells of one chunk and depends
//! on no other chunk; [`ChunkCheck::add`] joins its outcome with those of the chunks before it. One
//! process does both, chunk by chunk. A task does the first step for its chunks and records the
//! outcomes. The process that joins the shares does the second step for all chunks in order, and
//! everything else that a validation does, so its report equals that of one process. It reads the
//! cells of a chunk only if there is no outcome, or an outcome that depends on other chunks.

use zvf_model::grid::ChunkCoord;

use crate::{
    batch::{self, CellPayload},
    chunked_part::ChunkedPart,
    context::Context,
    share::{ChunkOutcome, ValidationShare},
};

/// Checks of the chunks of some parts.
pub(crate) trait ChunkCheck {
    type Outcome: ChunkOutcome;

    /// Checks the cells of a chunk, in the order of the parts, and reports faults that do not depend
    /// on other chunks to `context`. In a [share](Context::is_share), nothing is known of other
    /// chunks.
    fn check(
        &self,
        context: &Context<'_>,
        chunk: &ChunkCoord,
        cells: &[CellPayload],
    ) -> Self::Outcome;

    /// Joins an outcome with those of the chunks before, and reports faults that depend on them.
    fn add(&mut self, chunk: &ChunkCoord, outcome: Self::Outcome);

    /// Returns whether a recorded outcome is what [`check`](Self::check) would return with the
    /// knowledge of other chunks.
    fn holds(&self, _: &ChunkCoord, _: &Self::Outcome) -> bool {
        true
    }
}

/// A pass over chunks.
pub(crate) struct ChunkPass<'a> {
    /// Unique name in the store.
    pub(crate) name: String,
    /// Passes of one seed divide equal chunks equally.
    pub(crate) seed: &'a str,
    pub(crate) parts: &'a [&'a ChunkedPart],
    pub(crate) chunks: &'a [ChunkCoord],
}

impl ChunkPass<'_> {
    /// Checks the chunks of this process, and adds the outcomes of all chunks in order. In a share,
    /// outcomes are recorded and not added.
    pub(crate) async fn run<C: ChunkCheck + Send + Sync>(
        &self,
        context: &Context<'_>,
        checks: &mut C,
    ) {
        if let Some(share) = context.share() {
            let own = own_chunks(share, self.seed, self.parts, self.chunks);
            let recorder = context.silent();
            batch::each_chunk(&recorder, self.parts, &own, |chunk, cells| {
                let outcome = checks.check(&recorder, chunk, cells);
                context.record(&self.name, chunk, &outcome, recorder.take());
            })
            .await;
            return;
        }
        let mut rest = self.chunks;
        while let Some((first, after)) = rest.split_first() {
            let holds = |outcome: &C::Outcome| checks.holds(first, outcome);
            if let Some(outcome) = context.recorded(&self.name, first, holds) {
                checks.add(first, outcome);
                rest = after;
                continue;
            }
            let is_open = |chunk: &&ChunkCoord| {
                let holds = |outcome: &C::Outcome| checks.holds(chunk, outcome);
                !context.has_recorded(&self.name, chunk, holds)
            };
            let open = after.iter().take_while(is_open).count();
            let (open, after) = rest.split_at(open.saturating_add(1));
            batch::each_chunk(context, self.parts, open, |chunk, cells| {
                let outcome = checks.check(context, chunk, cells);
                checks.add(chunk, outcome);
            })
            .await;
            rest = after;
        }
    }
}

/// Returns the chunks of a share. Chunks of a shard stay together.
fn own_chunks(
    share: ValidationShare,
    seed: &str,
    parts: &[&ChunkedPart],
    chunks: &[ChunkCoord],
) -> Vec<ChunkCoord> {
    let group = |chunk: &ChunkCoord| {
        let shard = parts.iter().find_map(|part| part.shard_of(chunk));
        shard.unwrap_or_else(|| chunk.coords().to_vec())
    };
    let picked = share.picked(seed, chunks.iter().map(group).collect());
    let own = chunks.iter().filter(|chunk| picked.contains(&group(chunk)));
    own.cloned().collect()
}
