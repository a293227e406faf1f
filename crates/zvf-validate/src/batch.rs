//! Reads cells of several parts chunk by chunk, in batches of bounded size.

use bytes::Bytes;
use futures_util::future::join;
use zvf_model::{
    error_chain::error_chain,
    fetch::{CellRequest, FetchError, FetchProblem, Fetched},
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
/// Divisor of the batch size that the port recommends, so that reads and checks overlap.
const SHARE: u64 = 8;

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
/// in the order of `parts`. Reports unreadable cells. One round trip per batch; the next batch is
/// read while `each` checks the last.
pub(crate) async fn each_chunk(
    context: &Context<'_>,
    parts: &[&ChunkedPart],
    chunks: &[ChunkCoord],
    mut each: impl FnMut(&ChunkCoord, &[CellPayload]) + Send,
) {
    let mut next = ChunkBatch::first_of(context, parts, chunks);
    let mut read: Option<(ChunkBatch<'_>, Vec<FetchedCell>)> = None;
    loop {
        let reading = async {
            let batch = next.take()?;
            let results = context.fetch.cells(&batch.wanted).await;
            Some((batch, results))
        };
        let checking = async {
            if let Some((batch, results)) = read.take() {
                batch.check(context, parts, results, &mut each);
            }
        };
        // The reads come first: they run on other threads while this one checks.
        (read, ()) = join(reading, checking).await;
        let Some((batch, _)) = &read else {
            return;
        };
        next = ChunkBatch::first_of(context, parts, batch.rest);
    }
}

/// The result of reading a cell.
pub(crate) type FetchedCell = Result<Option<Fetched>, FetchError>;

/// Chunks whose cells are read at once.
struct ChunkBatch<'c> {
    chunks: &'c [ChunkCoord],
    /// The chunks after this batch.
    rest: &'c [ChunkCoord],
    wanted: Vec<CellRequest>,
    /// Whether each part has a cell for each chunk.
    requested: Vec<bool>,
}

impl<'c> ChunkBatch<'c> {
    /// Returns the first batch of `chunks`, or `None` if there are none.
    fn first_of(
        context: &Context<'_>,
        parts: &[&ChunkedPart],
        chunks: &'c [ChunkCoord],
    ) -> Option<Self> {
        let (chunks, rest) = chunks.split_at(batch_len(context, parts, chunks));
        let mut wanted = Vec::new();
        let mut requested = Vec::new();
        for chunk in chunks {
            for part in parts {
                let want = part.cell_request(chunk);
                requested.push(want.is_some());
                wanted.extend(want);
            }
        }
        (!chunks.is_empty()).then_some(Self {
            chunks,
            rest,
            wanted,
            requested,
        })
    }

    /// Calls `each` for every chunk.
    fn check(
        self,
        context: &Context<'_>,
        parts: &[&ChunkedPart],
        results: Vec<FetchedCell>,
        each: &mut impl FnMut(&ChunkCoord, &[CellPayload]),
    ) {
        let mut results = results.into_iter();
        let mut requested = self.requested.into_iter();
        for chunk in self.chunks {
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
    result: FetchedCell,
) -> CellPayload {
    match result {
        Ok(Some(found)) => {
            context.checked(found.bytes.len());
            CellPayload::Bytes(found.bytes)
        }
        // A padded array does not list its cells, so absent links are legal.
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

/// Returns the number of chunks in the next batch, at least 1 if there are any.
fn batch_len(context: &Context<'_>, parts: &[&ChunkedPart], chunks: &[ChunkCoord]) -> usize {
    let mut max = context.options.batch_bytes;
    // Cells of a shard are read together, and the listing does not show their sizes.
    if parts.iter().all(|part| part.is_sized()) {
        max = max.min(context.fetch.at_once() / SHARE);
    }
    let mut bytes = 0_u64;
    let mut len = 0_usize;
    for chunk in chunks.iter().take(MAX_CHUNKS) {
        let sizes = parts
            .iter()
            .filter(|part| part.has(chunk))
            .map(|part| part.stored_size(chunk).unwrap_or(UNKNOWN));
        bytes = bytes.saturating_add(sizes.fold(0, u64::saturating_add));
        if len > 0 && bytes > max {
            break;
        }
        len = len.saturating_add(1);
    }
    len.max(1).min(chunks.len())
}
