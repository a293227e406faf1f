//! Positions of chunks that are encoded with Draco.

use std::sync::Arc;

use bytes::Bytes;
use zvf_model::{
    draco::{DracoCell, DracoError, VertexOrder},
    fetch::Fetched,
};

use super::{PendingChunk, RequestedRows, Responses, RowRequest};
use crate::{
    cores::on_cores,
    error::{Damage, Fault},
    fragments::FragmentTable,
    schema::Schema,
};

/// Replaces the streams among the responses by rows of positions, and returns the fault of each
/// chunk's stream. The streams share the `budget`: each is decoded within an equal part first, and
/// larger ones afterwards within the rest.
pub(super) fn decode(
    schema: &Schema,
    pending: &mut [PendingChunk],
    responses: &mut Responses,
    budget: u64,
) -> Vec<Result<(), Damage>> {
    let count = u64::try_from(pending.len()).unwrap_or(u64::MAX);
    let part = budget.checked_div(count).unwrap_or(0);
    let streams: Vec<Option<&Bytes>> = pending
        .iter()
        .map(|pending| stream(pending, responses))
        .collect();
    let bytes = streams.iter().flatten().map(|stream| stream.len()).sum();
    let cells = on_cores(streams.clone(), bytes, |stream| {
        stream.map(|stream| DracoCell::parse(stream, part))
    });
    let mut left = budget;
    let cells: Vec<Option<Result<DracoCell, DracoError>>> = streams
        .into_iter()
        .zip(cells)
        .map(|(stream, cell)| {
            let cell = match (stream, cell?) {
                (Some(stream), Err(DracoError::TooLarge(_))) => DracoCell::parse(stream, left),
                (_, cell) => cell,
            };
            left = left.saturating_sub(cell.as_ref().map_or(0, size));
            Some(cell)
        })
        .collect();
    let decoded = pending.iter_mut().zip(cells).map(|(pending, cell)| {
        let Some(cell) = cell else {
            return Ok(());
        };
        let damage =
            |fault: Fault| Damage::in_chunk(&schema.vertices.node, &pending.request.chunk, fault);
        let cell = cell.map_err(|error| damage(error.into()))?;
        let rows = u64::try_from(cell.positions.len()).unwrap_or(u64::MAX);
        if cell.order == VertexOrder::Lost {
            if let Some(table) = &pending.table {
                // Encoders that do not keep the order drop vertices without a triangle, and
                // duplicate vertices at which triangles only touch.
                if table.len() != 1 {
                    return Err(damage(Fault::OrderLost));
                }
                pending.table = Some(Arc::new(FragmentTable::whole(rows)));
            }
            pending.order = VertexOrder::Lost;
            if !matches!(pending.request.rows, RequestedRows::Rows(_)) {
                pending.loaded = None;
            }
        }
        put(pending, responses, cell.rows());
        Ok(())
    });
    decoded.collect()
}

/// Returns the stream of a chunk.
fn stream<'r>(pending: &PendingChunk, responses: &'r Responses) -> Option<&'r Bytes> {
    let RowRequest::Whole(slot) = pending.positions else {
        return None;
    };
    match responses.get(slot) {
        Some(Some(Ok(Some(cell)))) => Some(&cell.bytes),
        _ => None,
    }
}

/// Replaces the stream of a chunk.
fn put(pending: &PendingChunk, responses: &mut Responses, rows: Vec<u8>) {
    if let RowRequest::Whole(slot) = pending.positions
        && let Some(response) = responses.get_mut(slot)
    {
        let size = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        let bytes = Bytes::from(rows);
        *response = Some(Ok(Some(Fetched { bytes, size })));
    }
}

/// Returns the size of a cell in memory.
fn size(cell: &DracoCell) -> u64 {
    let positions = size_of_val(cell.positions.as_slice());
    let bytes = positions.saturating_add(size_of_val(cell.triangles.as_slice()));
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
