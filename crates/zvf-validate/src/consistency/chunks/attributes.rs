//! Attributes of vertices and fragments, chunk by chunk.

use serde_json::{Value as Json, json};
use zvf_format::{
    dictionary::{DictionaryCodes, DictionaryCodesError},
    numeric::{NumericRows, Value, columns_of},
};
use zvf_model::{array::CellAttribute, grid::ChunkCoord, key::Key};

use super::padding;
use crate::{
    batch::CellPayload,
    chunked_part::{CellStorage, ChunkedPart},
    context::Context,
    finding::Fix,
    rule::Rule,
    rules::consistency as rules,
};

/// The checks of one attribute.
#[derive(Debug)]
pub(super) struct Attribute {
    metadata: CellAttribute,
    /// The rule that requires one row per vertex or fragment.
    rule: &'static Rule,
    /// Values per row in the first chunk.
    width: Option<u64>,
    /// The attribute splits the chunks of the level.
    splits: bool,
}

impl Attribute {
    /// Prepares an open part. Returns `None` after reporting unusable metadata.
    pub(super) fn new(
        context: &Context<'_>,
        cells: &ChunkedPart,
        rule: &'static Rule,
        splits: bool,
    ) -> Option<Self> {
        match CellAttribute::parse(&cells.key, &cells.attributes) {
            Ok(metadata) => Some(Self {
                metadata: metadata.value,
                rule,
                width: None,
                splits,
            }),
            Err(error) => {
                let rule = &rules::PART_NOT_CHECKED;
                context.report_at(rule, &cells.key, &error.path, &error.fault);
                None
            }
        }
    }

    /// Checks the cell of a chunk with `rows` rows. Returns the number of values per row, if there are
    /// rows with values.
    pub(super) fn check(
        &self,
        context: &Context<'_>,
        cells: &ChunkedPart,
        (chunk, cell): (&ChunkCoord, &CellPayload),
        rows: u64,
        value: Option<&Json>,
    ) -> Option<u64> {
        let key = &cells.key;
        let bytes = match cell {
            CellPayload::Bytes(bytes) => bytes,
            CellPayload::Unreadable => return None,
            CellPayload::Absent => {
                if rows > 0 {
                    let message = format!("no values for {rows} rows");
                    context.report_in_chunk(self.rule, key, chunk, message);
                }
                return None;
            }
        };
        let dtype = self.metadata.dtype;
        let (bytes, width) = if let CellStorage::Padded { padded, array: _ } = &cells.form {
            let row = usize::try_from(padded.columns)
                .ok()
                .and_then(|columns| columns.checked_mul(dtype.size()));
            let used = usize::try_from(rows)
                .ok()
                .zip(row)
                .and_then(|(rows, row)| rows.checked_mul(row));
            let Some((own, rest)) = used.and_then(|used| bytes.split_at_checked(used)) else {
                let message = format!(
                    "room for {} rows, but there are {rows} vertices",
                    padded.rows
                );
                context.report_in_chunk(self.rule, key, chunk, message);
                return None;
            };
            padding::check(context, cells, chunk, rest);
            (own, padded.columns)
        } else {
            let width = columns_of(bytes.len(), dtype, rows);
            let Some(width) = width else {
                if bytes.is_empty() && rows == 0 {
                    return None;
                }
                let message = format!("{} bytes of {dtype} for {rows} rows", bytes.len());
                context.report_in_chunk(self.rule, key, chunk, message);
                return None;
            };
            (&**bytes, u64::from(width.get()))
        };
        if rows == 0 {
            return None;
        }
        if let Some(message) = wrong_code(&self.metadata, bytes) {
            context.report_in_chunk(&rules::UNKNOWN_CODE, key, chunk, message);
        }
        let value = value.filter(|_| self.splits && width == 1);
        if let Some(message) = value.and_then(|value| self.other_value(bytes, value)) {
            context.report_in_chunk(&rules::WRONG_CHUNK_VALUE, key, chunk, message);
        }
        Some(width)
    }

    /// Compares the number of values per row of a chunk with that of the chunks before.
    pub(super) fn add(&mut self, context: &Context<'_>, key: &Key, chunk: &ChunkCoord, width: u64) {
        let first = *self.width.get_or_insert(width);
        if first != width {
            let message = format!("{width} values per row, but {first} in other chunks");
            context.report_in_chunk(&rules::ATTRIBUTE_WIDTH, key, chunk, message);
        }
    }

    /// Returns the fault of a cell whose values differ from the attribute value of its chunk.
    fn other_value(&self, bytes: &[u8], value: &Json) -> Option<String> {
        let dtype = self.metadata.dtype;
        let mut rows = bytes.chunks_exact(dtype.size().max(1));
        let first = rows.next()?;
        let other = rows.position(|row| row != first);
        let found = NumericRows::parse(first, dtype, core::num::NonZeroU32::MIN)
            .ok()
            .and_then(|rows| rows.value(0, 0));
        let same = match (&self.metadata.dictionary, found) {
            (Some(dictionary), Some(code)) => {
                let code = match code {
                    Value::Int(code) => usize::try_from(code).ok(),
                    Value::UInt(code) => usize::try_from(code).ok(),
                    _ => None,
                };
                code.and_then(|code| dictionary.categories.get(code)) == Some(value)
            }
            (None, Some(Value::Bool(found))) => {
                value.as_bool() == Some(found) || value.as_u64() == Some(u64::from(found))
            }
            (None, Some(Value::Int(found))) => is_whole(value, &found.to_string()),
            (None, Some(Value::UInt(found))) => is_whole(value, &found.to_string()),
            (None, Some(Value::Float(found))) => {
                let value = value.as_f64().unwrap_or(f64::NAN);
                found.is_nan() || (found - value).abs() <= value.abs() * 1e-6
            }
            _ => true,
        };
        match other {
            Some(row) => {
                let row = row.saturating_add(1);
                Some(format!("the value of row {row} differs from row 0"))
            }
            None if same => None,
            None => Some(format!("the value of vertices differs from {value}")),
        }
    }

    /// Reports faults that depend on all chunks.
    pub(super) fn finish(&self, context: &Context<'_>, key: &Key) {
        let Some(width) = self.width else {
            return;
        };
        let metadata = &self.metadata;
        let names = metadata.channel_names.as_ref();
        let names = names.map(|names| u64::try_from(names.len()).unwrap_or(u64::MAX));
        let shape = metadata.row_shape.as_ref();
        let shape = shape.map(|shape| shape.iter().fold(1_u64, |n, axis| n.saturating_mul(*axis)));
        let (place, declared) = match (shape, names) {
            (Some(shape), _) if shape != width => ("row_shape", shape),
            (_, Some(names)) if names != width => ("channel_names", names),
            _ => return,
        };
        let message = format!("{declared} values per row are declared, but cells have {width}");
        let fix = (place == "row_shape").then(|| Fix::Attribute {
            node: key.clone(),
            path: vec![place.to_owned()],
            value: Some(match width {
                1 => json!([]),
                width => json!([width]),
            }),
        });
        let place = Some(format!("attributes.{place}"));
        context.add(&rules::ATTRIBUTE_SHAPE, key, place, message, fix);
    }
}

/// Returns the fault of the first invalid code in a cell, if its values are codes.
pub(in crate::consistency) fn wrong_code(metadata: &CellAttribute, bytes: &[u8]) -> Option<String> {
    let dictionary = metadata.dictionary.as_ref()?;
    let categories = u32::try_from(dictionary.categories.len()).unwrap_or(u32::MAX);
    let codes = DictionaryCodes::parse(bytes, metadata.dtype, categories, dictionary.fill);
    match codes {
        Ok(_) => None,
        Err(DictionaryCodesError::Code { row, code }) => Some(format!(
            "row {row} has code {code}, but there are {categories} categories"
        )),
        Err(error) => Some(error.to_string()),
    }
}

/// Returns whether a JSON number equals an integer, written as `5` or `5.0`.
fn is_whole(value: &Json, number: &str) -> bool {
    let text = value.to_string();
    text == number || text.strip_suffix(".0") == Some(number)
}
