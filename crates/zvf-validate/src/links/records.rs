//! Decodes payloads of cells into link records.

use core::num::NonZeroU32;
use std::{borrow::Cow, collections::HashMap};

use zvf_format::{
    links::{
        CrossChunkCell, CrossChunkCellError, CrossChunkTable, CrossChunkTableError, LinkRow,
        LinkRows, LinkRowsError, LinkWidth, RaggedLinks, RaggedLinksError, RowForm,
    },
    numeric::{ByteOrder, Dtype, Kind, NumericRows, Value},
    path::Delta,
    ragged::RaggedBlob,
};
use zvf_model::{array::VertexNumbering, grid::ChunkCoord};

use super::{EndChunks, LinkEncoding, LinkPart};
use crate::{rule::Rule, rules::consistency as rules};

/// A payload that cannot be decoded, and the rule that it violates.
#[derive(Debug)]
pub(crate) struct RecordFault {
    pub(crate) rule: &'static Rule,
    pub(crate) message: String,
}

/// A link.
#[derive(Debug)]
pub(crate) struct LinkRecord<'r, T> {
    /// Position in the cell.
    pub(crate) at: u64,
    /// The resolved chunk and the row of each end, in their original order.
    pub(crate) ends: &'r [(T, u64)],
    /// The row as stored; `None` for tables.
    pub(crate) stored: Option<LinkRow<'r>>,
}

/// Calls `each` for every record of a cell, and returns their number. `used` is the number of used
/// rows of a padded array. `resolve` is called once per chunk, with whether the chunk belongs to
/// the level at the other ends.
pub(crate) fn each_record<T: Copy>(
    part: &LinkPart,
    cell: &ChunkCoord,
    payload: &[u8],
    used: Option<u64>,
    resolve: impl FnMut(&[i64], bool) -> T,
    mut each: impl FnMut(LinkRecord<'_, T>),
) -> Result<u64, RecordFault> {
    let width = part.width();
    match part.form {
        LinkEncoding::Table => {
            let EndChunks::Named(arity) = part.ends else {
                return Ok(0);
            };
            let table = CrossChunkTable::parse(payload, width, arity)?;
            named(part, &table, resolve, each);
            Ok(count(table.len()))
        }
        _ if payload.is_empty() => Ok(0),
        LinkEncoding::Pairs(pairs) => {
            let EndChunks::Numbered(numbering) = &part.ends else {
                return Ok(0);
            };
            let chunk = cell.coords().first().copied();
            let chunk = chunk.and_then(|chunk| u64::try_from(chunk).ok());
            let rows = pairs.rows_of(chunk.unwrap_or(0), payload);
            numbered(numbering, rows, resolve, each)
        }
        LinkEncoding::Flat(dtype) => {
            let rows = int64s(payload, dtype)?;
            let rows = LinkRows::parse(&rows, width, RowForm::Plain)?;
            keyed(part, cell, rows, resolve, &mut each)
        }
        LinkEncoding::MaybeGroups => {
            let rows = LinkRows::parse_maybe_grouped(payload, width)?;
            keyed(part, cell, rows, resolve, &mut each)
        }
        LinkEncoding::Groups(dtype, form) if dtype == int64() => {
            let rows = RaggedLinks::parse(payload, width, form)?.rows();
            keyed(part, cell, rows, resolve, &mut each)
        }
        LinkEncoding::Groups(dtype, form) => {
            let rows = grouped(payload, width, dtype, form)?;
            let rows = LinkRows::parse(&rows, width, form)?;
            keyed(part, cell, rows, resolve, &mut each)
        }
        LinkEncoding::Records => {
            let rows = CrossChunkCell::parse(payload, width)?.records();
            keyed(part, cell, rows, resolve, &mut each)
        }
        LinkEncoding::Padded(kind) => {
            let rows = int64s(payload, Dtype::new(kind, ByteOrder::Little))?;
            let rows = LinkRows::parse(in_use(&rows, width, used)?, width, RowForm::Plain)?;
            keyed(part, cell, rows, resolve, &mut each)
        }
    }
}

fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// Decodes rows whose chunks follow from the cell.
fn keyed<T: Copy>(
    part: &LinkPart,
    cell: &ChunkCoord,
    rows: LinkRows<'_>,
    mut resolve: impl FnMut(&[i64], bool) -> T,
    each: &mut impl FnMut(LinkRecord<'_, T>),
) -> Result<u64, RecordFault> {
    let Some(slots) = part.slots(cell) else {
        return Err(RecordFault {
            rule: &rules::LINK_CELL,
            message: "its ends are in chunks beyond 64-bit coordinates".to_owned(),
        });
    };
    // The chunks of both levels are sorted together in the key, so only the order of each row shows
    // which end is in this level.
    let is_mixed = part.form == LinkEncoding::Records && part.delta() != Delta::INTRA;
    let leaves = part.delta() != Delta::INTRA;
    let mut resolved = Vec::with_capacity(slots.len());
    for (slot, chunk) in slots.iter().enumerate() {
        let own = resolve(chunk.coords(), leaves && !is_mixed && slot > 0);
        let other = if is_mixed {
            resolve(chunk.coords(), true)
        } else {
            own
        };
        resolved.push((own, other));
    }
    let mut ends = Vec::with_capacity(slots.len());
    for (at, row) in rows.iter().enumerate() {
        ends.clear();
        if row.code() == 0 {
            let stored = resolved.iter().zip(row.stored()).enumerate();
            ends.extend(stored.map(|(slot, ((own, other), row))| match slot {
                0 => (*own, row),
                _ => (*other, row),
            }));
        } else {
            let order = row.order();
            for input in 0..resolved.len() {
                let slot = order.slot_of(input);
                let end = slot.and_then(|slot| Some((resolved.get(slot)?, row.stored_at(slot)?)));
                // An order is a permutation of all slots.
                if let Some(((own, other), row)) = end {
                    ends.push((if input == 0 { *own } else { *other }, row));
                }
            }
        }
        each(LinkRecord {
            at: count(at),
            ends: &ends,
            stored: Some(row),
        });
    }
    Ok(count(rows.len()))
}

/// Decodes records that name their chunks.
fn named<T: Copy>(
    part: &LinkPart,
    table: &CrossChunkTable<'_>,
    mut resolve: impl FnMut(&[i64], bool) -> T,
    mut each: impl FnMut(LinkRecord<'_, T>),
) {
    let leaves = part.delta() != Delta::INTRA;
    let mut known: HashMap<(Box<[i64]>, bool), T> = HashMap::new();
    let mut ends = Vec::with_capacity(part.width().get());
    for (at, record) in table.iter().enumerate() {
        ends.clear();
        for (number, end) in record.endpoints().enumerate() {
            let coords: Box<[i64]> = end.chunk.iter().collect();
            let is_other = leaves && number > 0;
            let found = known
                .entry((coords, is_other))
                .or_insert_with_key(|(coords, is_other)| resolve(coords, *is_other));
            ends.push((*found, end.vertex));
        }
        each(LinkRecord {
            at: count(at),
            ends: &ends,
            stored: None,
        });
    }
}

/// Decodes pairs of numbers of vertices.
fn numbered<T: Copy>(
    numbering: &VertexNumbering,
    pairs: impl Iterator<Item = [i64; 2]>,
    mut resolve: impl FnMut(&[i64], bool) -> T,
    mut each: impl FnMut(LinkRecord<'_, T>),
) -> Result<u64, RecordFault> {
    let mut known: HashMap<usize, T> = HashMap::new();
    let mut found = 0_u64;
    for pair in pairs {
        let mut ends = Vec::with_capacity(pair.len());
        for vertex in pair {
            let place = numbering.place(vertex).and_then(|(number, row)| {
                let coords = numbering.chunks().get(number)?.coords();
                let chunk = known.entry(number);
                Some((*chunk.or_insert_with(|| resolve(coords, false)), row))
            });
            ends.push(place.ok_or_else(|| RecordFault {
                rule: &rules::LINK_ROW,
                message: format!("link {found} names vertex {vertex}, which does not exist"),
            })?);
        }
        each(LinkRecord {
            at: found,
            ends: &ends,
            stored: None,
        });
        found = found.saturating_add(1);
    }
    Ok(found)
}

fn int64() -> Dtype {
    Dtype::new(Kind::Int64, ByteOrder::Little)
}

/// Converts grouped rows of another type to int64.
fn grouped(
    payload: &[u8],
    width: LinkWidth,
    dtype: Dtype,
    form: RowForm,
) -> Result<Cow<'_, [u8]>, RecordFault> {
    let blob = RaggedBlob::parse(payload).map_err(RaggedLinksError::from)?;
    let code = usize::from(form == RowForm::Permuted);
    let columns = width.get().saturating_add(code);
    let row = columns.saturating_mul(dtype.size());
    let whole = |group: &[u8]| group.len().checked_rem(row) == Some(0);
    match blob.iter().position(|group| !whole(group)) {
        Some(group) => Err(RaggedLinksError::Boundary { group }.into()),
        None => int64s(blob.data(), dtype),
    }
}

/// Converts integers of any type to int64.
fn int64s(bytes: &[u8], dtype: Dtype) -> Result<Cow<'_, [u8]>, RecordFault> {
    if dtype == int64() {
        return Ok(Cow::Borrowed(bytes));
    }
    let no_cell = |message: String| RecordFault {
        rule: &rules::LINK_CELL,
        message,
    };
    let numbers = NumericRows::parse(bytes, dtype, NonZeroU32::MIN)
        .map_err(|error| no_cell(error.to_string()))?;
    let mut wide = Vec::with_capacity(numbers.rows().saturating_mul(size_of::<i64>()));
    for at in 0..numbers.rows() {
        let number = match numbers.value(at, 0) {
            Some(Value::Int(number)) => Some(number),
            Some(Value::UInt(number)) => i64::try_from(number).ok(),
            _ => return Err(no_cell("its numbers are not integers".to_owned())),
        };
        let number = number.ok_or_else(|| RecordFault {
            rule: &rules::LINK_ROW,
            message: "a row exceeds 63 bits".to_owned(),
        })?;
        wide.extend_from_slice(&number.to_le_bytes());
    }
    Ok(Cow::Owned(wide))
}

/// Returns the rows of a padded array without its padding, which is −1, or 0 where link fragments
/// show the number of used rows.
fn in_use(rows: &[u8], width: LinkWidth, used: Option<u64>) -> Result<&[u8], RecordFault> {
    let row = width.get().saturating_mul(size_of::<i64>());
    let is_fill = |row: &[u8], fill: u8| row.iter().all(|byte| *byte == fill);
    let last = rows.chunks(row).rposition(|row| !is_fill(row, u8::MAX));
    let found = last.map_or(0, |last| last.saturating_add(1));
    let used = match used {
        None => found,
        Some(used) => {
            let used = usize::try_from(used).unwrap_or(usize::MAX);
            let mut rest = rows.chunks(row).take(found).skip(used);
            if used > found || !rest.all(|row| is_fill(row, 0)) {
                let message = format!("{found} rows, but link_fragments has {used}");
                let rule = &rules::LINK_GROUPS;
                return Err(RecordFault { rule, message });
            }
            used
        }
    };
    let end = used.saturating_mul(row).min(rows.len());
    Ok(rows.get(..end).unwrap_or(rows))
}

impl From<LinkRowsError> for RecordFault {
    fn from(error: LinkRowsError) -> Self {
        let rule = match error {
            LinkRowsError::Vertex { .. } => &rules::LINK_ROW,
            LinkRowsError::Permutation { .. } => &rules::LINK_ORDER,
            _ => &rules::LINK_CELL,
        };
        Self {
            rule,
            message: error.to_string(),
        }
    }
}

impl From<RaggedLinksError> for RecordFault {
    fn from(error: RaggedLinksError) -> Self {
        match error {
            RaggedLinksError::Rows(error) => error.into(),
            error => Self {
                rule: &rules::LINK_CELL,
                message: error.to_string(),
            },
        }
    }
}

impl From<CrossChunkCellError> for RecordFault {
    fn from(error: CrossChunkCellError) -> Self {
        match error {
            CrossChunkCellError::Rows(error) => error.into(),
            error => Self {
                rule: &rules::LINK_CELL,
                message: error.to_string(),
            },
        }
    }
}

impl From<CrossChunkTableError> for RecordFault {
    fn from(error: CrossChunkTableError) -> Self {
        let rule = match error {
            CrossChunkTableError::Vertex { .. } => &rules::LINK_ROW,
            _ => &rules::LINK_CELL,
        };
        Self {
            rule,
            message: error.to_string(),
        }
    }
}
