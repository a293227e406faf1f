//! The rows of one cell of an attribute.

use bytes::{Bytes, BytesMut};
use zvf_format::{
    dictionary::DictionaryCodes,
    numeric::{NumericRows, columns_of},
};
use zvf_model::{array::CellAttribute, grid::ChunkCoord, key::Key};

use crate::{
    error::{Damage, Fault},
    row_selection::RowSelection,
};

/// Rows of an attribute in memory, encoded as in the store.
#[derive(Clone, Debug)]
pub struct CellRows {
    /// The encoded values, row by row.
    pub bytes: Bytes,
    /// Number of values per row; 0 for a cell without values.
    pub columns: u32,
}

/// Splits the payload of an attribute's cell into `rows` rows. The number of columns follows from
/// the payload's size, because declared widths are often wrong.
///
/// # Errors
///
/// Returns [`Fault::Uneven`] if the payload does not divide into `rows` rows.
pub(crate) fn value_rows(
    metadata: &CellAttribute,
    key: &Key,
    chunk: &ChunkCoord,
    bytes: Bytes,
    rows: u64,
) -> Result<CellRows, Damage> {
    let dtype = metadata.dtype;
    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if rows == 0 && size == 0 {
        let columns = metadata.declared_columns().unwrap_or(1);
        let columns = u32::try_from(columns).unwrap_or(1);
        return Ok(CellRows { bytes, columns });
    }
    let columns = columns_of(bytes.len(), dtype, rows).ok_or_else(|| {
        let fault = Fault::Uneven { bytes: size, rows };
        Damage::in_chunk(key, chunk, fault)
    })?;
    // Checked once here; later accesses rely on it.
    NumericRows::parse(&bytes, dtype, columns).map_err(|_| {
        let fault = Fault::Uneven { bytes: size, rows };
        Damage::in_chunk(key, chunk, fault)
    })?;
    let columns = columns.get();
    Ok(CellRows { bytes, columns })
}

/// Checks the payload of an attribute's cell, for tools that copy cells: it divides into `rows` rows,
/// and codes are words of the dictionary.
///
/// # Errors
///
/// Returns the [`Damage`] that a query of the values reports.
pub fn check_attribute_cell(
    metadata: &CellAttribute,
    key: &Key,
    chunk: &ChunkCoord,
    bytes: &Bytes,
    rows: u64,
) -> Result<(), Damage> {
    value_rows(metadata, key, chunk, bytes.clone(), rows)?;
    check_codes(metadata, key, chunk, bytes)
}

/// Checks that the codes of a cell are words of the dictionary.
pub(crate) fn check_codes(
    metadata: &CellAttribute,
    key: &Key,
    chunk: &ChunkCoord,
    bytes: &[u8],
) -> Result<(), Damage> {
    let Some(dictionary) = &metadata.dictionary else {
        return Ok(());
    };
    let words = u32::try_from(dictionary.categories.len()).unwrap_or(u32::MAX);
    let codes = DictionaryCodes::parse(bytes, metadata.dtype, words, dictionary.fill);
    match codes {
        Ok(_) => Ok(()),
        Err(_) => Err(Damage::in_chunk(key, chunk, Fault::Range)),
    }
}

/// Concatenates buffers.
pub(crate) fn join(mut parts: Vec<Bytes>) -> Bytes {
    if parts.len() == 1 {
        return parts.pop().unwrap_or_default();
    }
    let size = parts.iter().map(Bytes::len).sum();
    let mut all = BytesMut::with_capacity(size);
    for part in parts {
        all.extend_from_slice(&part);
    }
    all.freeze()
}

/// Returns the loaded rows of a whole cell.
pub(crate) fn loaded_rows(bytes: &Bytes, loaded: &RowSelection, row: u64) -> Bytes {
    let index = |at: u64| usize::try_from(at.saturating_mul(row)).unwrap_or(usize::MAX);
    let parts = loaded.runs().iter().map(|run| {
        let rows = run.rows();
        let (start, end) = (index(rows.start), index(rows.end).min(bytes.len()));
        bytes.slice(start.min(end)..end)
    });
    join(parts.collect())
}
