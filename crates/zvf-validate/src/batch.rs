//! Reads cells of several parts chunk by chunk, in batches of bounded size.

use bytes::Bytes;
use zvf_model::{
    error_chain::error_chain,
    fetch::{FetchError, FetchProblem},
    grid::ChunkCoord,
};

use crate::{
    chunked_part::{CellStorage, ChunkedPart},
    context::Context,
    rule::Rule,
    rules::consistency as rules,
};

/// Maximum number of chunks in a batch.
const MAX_CHUNKS: usize = 512;
/// Assumed size in bytes of a cell whose size no listing shows.
const UNKNOWN: u64 = 64 << 10;

/// The result of reading a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CellPayload {
    /// The part lists no cell for this chunk.
    Absent,
    /// The cell cannot be read, which is reported already.
    Unreadable,
    /// The decoded payload.
    Bytes(Bytes),
}

impl CellPayload {
    /// Returns the payload.
    pub(crate) fn bytes(&self) -> Option<&Bytes> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// Reads the cells of all `parts` for each of `chunks`, and calls `each` per chunk with the cells
/// in the order of `parts`. Reports unreadable cells. One round trip per batch.
pub(crate) async fn each_chunk(
    context: &Context<'_>,
    parts: &[&ChunkedPart],
    chunks: &[ChunkCoord],
    mut each: impl FnMut(&ChunkCoord, &[CellPayload]) + Send,
) {
    let mut rest = chunks;
    while !rest.is_empty() {
        let (batch, after) = rest.split_at(batch_len(context, parts, rest));
        rest = after;
        let mut wanted = Vec::new();
        let mut requested = Vec::new();
        for chunk in batch {
            for part in parts {
                let want = part.wanted(chunk);
                requested.push(want.is_some());
                wanted.extend(want);
            }
        }
        let mut results = context.fetch.cells(&wanted).await.into_iter();
        let mut requested = requested.into_iter();
        for chunk in batch {
            let mut cells = Vec::with_capacity(parts.len());
            for part in parts {
                let cell = match requested.next() {
                    Some(true) => results.next().map_or(CellPayload::Unreadable, |result| {
                        take(context, part, chunk, result)
                    }),
                    _ => CellPayload::Absent,
                };
                cells.push(cell);
            }
            each(chunk, &cells);
        }
    }
}

fn take(
    context: &Context<'_>,
    part: &ChunkedPart,
    chunk: &ChunkCoord,
    result: Result<Option<zvf_model::fetch::Fetched>, FetchError>,
) -> CellPayload {
    match result {
        Ok(Some(found)) => {
            context.checked(found.bytes.len());
            CellPayload::Bytes(found.bytes)
        }
        // A padded array does not list its cells, so an absent one is legal.
        Ok(None) if matches!(part.form, CellStorage::Padded { .. }) => CellPayload::Absent,
        Ok(None) => {
            let message = "the cell is listed, but the store has no such object";
            context.report_in_chunk(&rules::CELL_MISSING, &part.key, chunk, message);
            CellPayload::Unreadable
        }
        Err(error) => {
            let rule = rule_of(&error);
            let message = error_chain(&*error.source);
            context.report_in_chunk(rule, &part.key, chunk, message);
            CellPayload::Unreadable
        }
    }
}

/// Returns the rule that an unreadable cell violates.
pub(crate) fn rule_of(error: &FetchError) -> &'static Rule {
    match error.problem {
        FetchProblem::Damaged | FetchProblem::Unsupported => &rules::CELL_UNREADABLE,
        _ => &rules::CELL_NOT_CHECKED,
    }
}

/// Returns the number of chunks in the next batch, at least 1.
fn batch_len(context: &Context<'_>, parts: &[&ChunkedPart], chunks: &[ChunkCoord]) -> usize {
    let max = context.options.batch_bytes;
    let mut bytes = 0_u64;
    let mut len = 0_usize;
    for chunk in chunks.iter().take(MAX_CHUNKS) {
        let sizes = parts.iter().filter(|part| part.has(chunk));
        let sizes = sizes.map(|part| part.stored_size(chunk).unwrap_or(UNKNOWN));
        bytes = bytes.saturating_add(sizes.fold(0, u64::saturating_add));
        if len > 0 && bytes > max {
            break;
        }
        len = len.saturating_add(1);
    }
    len.max(1).min(chunks.len())
}
