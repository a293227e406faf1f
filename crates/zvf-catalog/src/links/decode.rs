//! Decodes payloads of cells into records.

use core::num::NonZeroU32;
use std::{borrow::Cow, collections::HashMap};

use zvf_format::{
    links::{
        CrossChunkCell, CrossChunkTable, LinkRows, LinkWidth, RaggedLinks, RaggedLinksError,
        RowForm,
    },
    numeric::{ByteOrder, Dtype, Kind, NumericRows, Value},
    ragged::RaggedBlob,
};
use zvf_model::{
    array::{VertexNumbering, VertexPairs},
    draco::DracoCell,
    grid::ChunkCoord,
    key::Key,
};

use super::{LinkCellForm, LinkCellSource, LinkRecords, LinkSource};
use crate::error::Fault;

/// Decodes the records of a cell. `used` is the number of rows in use, if another array tells it.
pub(super) fn records(
    source: &LinkSource,
    cell: &LinkCellSource,
    payload: &[u8],
    used: Option<u64>,
) -> Result<LinkRecords, Fault> {
    let width = source.width;
    let chunks = cell.chunks.as_deref().unwrap_or_default();
    match &source.form {
        LinkCellForm::Flat(dtype) => {
            let rows = int64s(payload, *dtype)?;
            let rows = LinkRows::parse(&rows, width, RowForm::Plain)?;
            Ok(keyed(source, chunks, rows))
        }
        LinkCellForm::MaybeGroups => {
            let rows = LinkRows::parse_maybe_grouped(payload, width)?;
            Ok(keyed(source, chunks, rows))
        }
        LinkCellForm::Groups(dtype, form) => groups(source, chunks, payload, *dtype, *form),
        LinkCellForm::Records => {
            if payload.is_empty() {
                return Ok(empty(width));
            }
            let rows = CrossChunkCell::parse(payload, width)?.records();
            Ok(keyed(source, chunks, rows))
        }
        LinkCellForm::Table(arity) => table(payload, width, *arity),
        LinkCellForm::Padded(kind) => {
            let rows = int64s(payload, Dtype::new(*kind, ByteOrder::Little))?;
            let rows = in_use(&rows, width, used)?;
            let rows = LinkRows::parse(rows, width, RowForm::Plain)?;
            Ok(keyed(source, chunks, rows))
        }
        LinkCellForm::Pairs(pairs, numbering) => numbered(width, cell, *pairs, numbering, payload),
        LinkCellForm::Draco(budget) => {
            let cell = DracoCell::parse(payload, *budget)?;
            let mut records = empty(width);
            records.is_with_vertices = true;
            records.chunks.extend(chunks.first().cloned());
            let corners = cell.triangles.as_flattened().iter();
            records.ends = corners.map(|row| (0, u64::from(*row))).collect();
            Ok(records)
        }
    }
}

pub(super) fn empty(width: LinkWidth) -> LinkRecords {
    LinkRecords {
        node: Key::root(),
        width: width.get(),
        chunks: Vec::new(),
        ends: Vec::new(),
        attributes: Vec::new(),
        is_with_vertices: false,
        is_unreadable: false,
        groups: None,
    }
}

fn groups(
    source: &LinkSource,
    chunks: &[ChunkCoord],
    payload: &[u8],
    dtype: Dtype,
    form: RowForm,
) -> Result<LinkRecords, Fault> {
    let width = source.width;
    if payload.is_empty() {
        return Ok(empty(width));
    }
    if dtype == Dtype::new(Kind::Int64, ByteOrder::Little) {
        let rows = RaggedLinks::parse(payload, width, form)?.rows();
        return Ok(keyed(source, chunks, rows));
    }
    // Offsets of groups count bytes of rows in their stored type.
    let blob = RaggedBlob::parse(payload).map_err(RaggedLinksError::from)?;
    let row = row_columns(width, form).saturating_mul(dtype.size());
    let whole = |group: &[u8]| group.len().checked_rem(row) == Some(0);
    if let Some(group) = blob.iter().position(|group| !whole(group)) {
        return Err(RaggedLinksError::Boundary { group }.into());
    }
    let rows = int64s(blob.data(), dtype)?;
    let rows = LinkRows::parse(&rows, width, form)?;
    Ok(keyed(source, chunks, rows))
}

/// Returns the number of values per row.
pub(super) fn row_columns(width: LinkWidth, form: RowForm) -> usize {
    match form {
        RowForm::Plain => width.get(),
        RowForm::Permuted => width.get().saturating_add(1),
    }
}

/// Creates records whose chunks follow from the cell's key, with ends in the order in which the
/// writer received them.
fn keyed(source: &LinkSource, slots: &[ChunkCoord], rows: LinkRows<'_>) -> LinkRecords {
    let width = source.width.get();
    let mut records = empty(source.width);
    let mut numbers = Vec::with_capacity(slots.len());
    for chunk in slots {
        let known = records.chunks.iter().position(|other| other == chunk);
        let at = known.unwrap_or(records.chunks.len());
        if known.is_none() {
            records.chunks.push(chunk.clone());
        }
        // The number of chunks is at most the number of ends.
        numbers.push(u32::try_from(at).unwrap_or(u32::MAX));
    }
    records.ends.reserve_exact(rows.len().saturating_mul(width));
    let is_plain = rows.form() == RowForm::Plain;
    for row in rows.iter() {
        let start = records.ends.len();
        let stored = numbers.iter().copied().zip(row.stored());
        if is_plain || row.code() == 0 {
            records.ends.extend(stored);
        } else {
            records.ends.resize(start.saturating_add(width), (0, 0));
            let order = row.order();
            let input = records.ends.get_mut(start..).unwrap_or_default();
            for (slot, end) in order.slots().iter().zip(stored) {
                if let Some(index) = input.get_mut(usize::from(*slot)) {
                    *index = end;
                }
            }
        }
        if source.is_reversed {
            records.ends.get_mut(start..).unwrap_or_default().reverse();
        }
    }
    records
}

/// Decodes records that contain their chunks.
fn table(payload: &[u8], width: LinkWidth, arity: usize) -> Result<LinkRecords, Fault> {
    let table = CrossChunkTable::parse(payload, width, arity)?;
    let mut records = empty(width);
    let ends = table.len().saturating_mul(width.get());
    records.ends.reserve_exact(ends);
    let mut numbers: HashMap<Box<[i64]>, u32> = HashMap::new();
    let mut coords = Vec::with_capacity(arity);
    for record in table.iter() {
        for end in record.endpoints() {
            coords.clear();
            coords.extend(end.chunk.iter());
            let known = numbers.get(coords.as_slice()).copied();
            let number = if let Some(number) = known {
                number
            } else {
                let number = u32::try_from(numbers.len()).map_err(|_| Fault::Range)?;
                numbers.insert(coords.as_slice().into(), number);
                records.chunks.push(ChunkCoord::new(coords.as_slice()));
                number
            };
            records.ends.push((number, end.vertex));
        }
    }
    Ok(records)
}

/// Decodes the pairs in a chunk of their array.
fn numbered(
    width: LinkWidth,
    cell: &LinkCellSource,
    pairs: VertexPairs,
    numbering: &VertexNumbering,
    payload: &[u8],
) -> Result<LinkRecords, Fault> {
    let mut records = empty(width);
    records.chunks = numbering.chunks().to_vec();
    let at = cell.at.coords().first().copied();
    let number = at.and_then(|at| u64::try_from(at).ok()).unwrap_or(0);
    for ends in pairs.rows_of(number, payload) {
        for end in ends {
            let (chunk, row) = numbering.place(end).ok_or(Fault::Range)?;
            let chunk = u32::try_from(chunk).map_err(|_| Fault::Range)?;
            records.ends.push((chunk, row));
        }
    }
    Ok(records)
}

/// Converts integers of any type to int64, the usual type of rows.
fn int64s(bytes: &[u8], dtype: Dtype) -> Result<Cow<'_, [u8]>, Fault> {
    if dtype == Dtype::new(Kind::Int64, ByteOrder::Little) {
        return Ok(Cow::Borrowed(bytes));
    }
    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let row = u64::try_from(dtype.size()).unwrap_or(1);
    let numbers = NumericRows::parse(bytes, dtype, NonZeroU32::MIN)
        .map_err(|_| Fault::Rows { bytes: size, row })?;
    let mut wide = Vec::with_capacity(numbers.rows().saturating_mul(size_of::<i64>()));
    for at in 0..numbers.rows() {
        let number = match numbers.value(at, 0) {
            Some(Value::Int(number)) => number,
            Some(Value::UInt(number)) => i64::try_from(number).map_err(|_| Fault::Range)?,
            _ => return Err(Fault::NoIntegers),
        };
        wide.extend_from_slice(&number.to_le_bytes());
    }
    Ok(Cow::Owned(wide))
}

/// Returns the rows of a padded array before its fill values. If `used` is known, all further rows
/// must be fill values: -1 or 0.
fn in_use(rows: &[u8], width: LinkWidth, used: Option<u64>) -> Result<&[u8], Fault> {
    let row = width.get().saturating_mul(size_of::<i64>());
    let is_fill = |row: &[u8], fill: u8| row.iter().all(|byte| *byte == fill);
    let trimmed = rows
        .chunks(row)
        .rposition(|row| !is_fill(row, u8::MAX))
        .map_or(0, |last| last.saturating_add(1));
    let count = match used {
        None => trimmed,
        Some(used) => {
            let found = u64::try_from(trimmed).unwrap_or(u64::MAX);
            let used_rows = usize::try_from(used).unwrap_or(usize::MAX);
            let rest = rows.chunks(row).take(trimmed).skip(used_rows);
            if used > found || !rest.clone().all(|row| is_fill(row, 0)) {
                return Err(Fault::Count {
                    found,
                    expected: used,
                });
            }
            used_rows
        }
    };
    let end = count.saturating_mul(row).min(rows.len());
    Ok(rows.get(..end).unwrap_or(rows))
}
