//! Rows of a chunk from the responses to its requests.

use bytes::Bytes;
use zvf_model::grid::ChunkCoord;

use super::{PendingChunk, Responses, RowRequest, declared_row, take};
use crate::{
    cell_rows::{CellRows, join, loaded_rows, value_rows},
    error::{Damage, Fault},
    row_selection::RowSelection,
    schema::{ChunkAttribute, Schema},
};

/// Returns the number of rows of the chunk, the loaded rows, and their positions.
pub(super) fn positions(
    schema: &Schema,
    pending: &PendingChunk,
    responses: &mut Responses,
) -> Result<(u64, RowSelection, Bytes), Damage> {
    let (key, chunk) = (&schema.vertices.node, &pending.request.chunk);
    let row = schema.row();
    let extent = pending.table.as_ref().map_or(0, |table| table.extent());
    let count = |size: u64| {
        if let Some(padded) = schema.vertices.padded() {
            // Only the fragments tell how many rows of a padded cell are used.
            return if extent <= padded.rows {
                Ok(extent)
            } else {
                Err(no_row(schema, chunk, extent, padded.rows))
            };
        }
        match size.checked_rem(row) {
            Some(0) => Ok(size.checked_div(row).unwrap_or(0)),
            _ => Err(Damage::in_chunk(
                key,
                chunk,
                Fault::Rows { bytes: size, row },
            )),
        }
    };
    let (rows, loaded, bytes) = match &pending.positions {
        RowRequest::Absent | RowRequest::Deferred => {
            return Err(Damage::in_chunk(key, chunk, Fault::MissingCell));
        }
        RowRequest::Whole(slot) => {
            let cell = take(responses, *slot, key, chunk)?;
            let rows = count(u64::try_from(cell.bytes.len()).unwrap_or(u64::MAX))?;
            let used = rows.saturating_mul(row);
            let used = usize::try_from(used).unwrap_or(usize::MAX);
            let bytes = cell.bytes.slice(..used.min(cell.bytes.len()));
            match &pending.loaded {
                None => (rows, RowSelection::all(rows), bytes),
                Some(loaded) => {
                    let bytes = loaded_rows(&bytes, loaded, row);
                    (rows, loaded.clone(), bytes)
                }
            }
        }
        RowRequest::Runs(slots, _) => {
            let loaded = pending.loaded.clone().unwrap_or_default();
            let mut size = None;
            let mut parts = Vec::with_capacity(slots.len());
            for slot in slots {
                let part = take(responses, *slot, key, chunk)?;
                size = Some(schema.vertices.payload_size(chunk, part.size));
                parts.push(part.bytes);
            }
            // Without requests, the fragments are the only source of the number of rows.
            let rows = size.map_or(Ok(extent), count)?;
            (rows, loaded, join(parts))
        }
    };
    let end = extent.max(loaded.end());
    if end > rows {
        return Err(no_row(schema, chunk, end, rows));
    }
    Ok((rows, loaded, bytes))
}

fn no_row(schema: &Schema, chunk: &ChunkCoord, end: u64, rows: u64) -> Damage {
    let array = schema.fragments.as_ref().unwrap_or(&schema.vertices);
    let row = end.saturating_sub(1);
    Damage::in_chunk(&array.node, chunk, Fault::NoRow { row, rows })
}

pub(super) enum AttributeRows {
    Rows(CellRows),
    /// The cell does not have the declared width and must be read whole.
    Wider,
}

/// Returns the loaded rows of an attribute.
pub(super) fn attribute_rows(
    attribute: &ChunkAttribute,
    chunk: &ChunkCoord,
    row_request: &RowRequest,
    rows: u64,
    loaded: &RowSelection,
    responses: &mut Responses,
) -> Result<AttributeRows, Damage> {
    let key = &attribute.array.node;
    match row_request {
        RowRequest::Absent | RowRequest::Deferred => Ok(AttributeRows::Rows(CellRows {
            bytes: Bytes::new(),
            columns: 0,
        })),
        RowRequest::Whole(slot) => {
            let cell = take(responses, *slot, key, chunk)?;
            let all = whole_rows(attribute, chunk, cell.bytes, rows)?;
            let row = u64::from(all.columns);
            let size = u64::try_from(attribute.metadata.dtype.size()).unwrap_or(1);
            let bytes = if u64::try_from(loaded.len()) == Ok(rows) {
                all.bytes
            } else {
                loaded_rows(&all.bytes, loaded, row.saturating_mul(size))
            };
            let columns = all.columns;
            Ok(AttributeRows::Rows(CellRows { bytes, columns }))
        }
        RowRequest::Runs(slots, row) => {
            let mut parts = Vec::with_capacity(slots.len());
            for slot in slots {
                let response = responses.get_mut(*slot).and_then(Option::take);
                let part = match response {
                    Some(Ok(Some(part))) => part,
                    Some(Ok(None)) | None => {
                        return Err(Damage::in_chunk(key, chunk, Fault::MissingCell));
                    }
                    // A cell that is narrower than declared ends too early.
                    Some(Err(error))
                        if error.problem == zvf_model::fetch::FetchProblem::Damaged =>
                    {
                        return Ok(AttributeRows::Wider);
                    }
                    Some(Err(error)) => {
                        return Err(Damage::in_chunk(key, chunk, Fault::Fetch(error)));
                    }
                };
                let size = attribute.array.payload_size(chunk, part.size);
                let padded = attribute.array.padded().is_some();
                if !padded && size != rows.saturating_mul(*row) {
                    return Ok(AttributeRows::Wider);
                }
                parts.push(part.bytes);
            }
            let size = u64::try_from(attribute.metadata.dtype.size()).unwrap_or(1);
            let columns = u32::try_from(row.checked_div(size).unwrap_or(1)).unwrap_or(1);
            let bytes = join(parts);
            Ok(AttributeRows::Rows(CellRows { bytes, columns }))
        }
    }
}

/// Returns all rows of a cell of an attribute, with the width that follows from the size of the cell:
/// declared widths are often wrong.
pub(super) fn whole_rows(
    attribute: &ChunkAttribute,
    chunk: &ChunkCoord,
    bytes: Bytes,
    rows: u64,
) -> Result<CellRows, Damage> {
    let key = &attribute.array.node;
    if let Some(padded) = attribute.array.padded() {
        let columns = u32::try_from(padded.columns).unwrap_or(1);
        let used = rows.saturating_mul(declared_row(attribute));
        let used = usize::try_from(used).unwrap_or(usize::MAX);
        let bytes = bytes.slice(..used.min(bytes.len()));
        return Ok(CellRows { bytes, columns });
    }
    value_rows(&attribute.metadata, key, chunk, bytes, rows)
}
