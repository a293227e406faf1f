//! Padding after the last row of a padded array.

use core::num::NonZeroU32;

use serde_json::Value as Json;
use zvf_format::numeric::{Dtype, NumericRows, Value};
use zvf_model::grid::ChunkCoord;

use crate::{
    chunked_part::{CellStorage, ChunkedPart},
    context::Context,
    rules::consistency as rules,
};

/// Checks that only the fill value follows the last row.
pub(super) fn check(context: &Context<'_>, cells: &ChunkedPart, chunk: &ChunkCoord, rest: &[u8]) {
    let CellStorage::Padded { array, padded } = &cells.form else {
        return;
    };
    let metadata = array.metadata();
    let fill = &metadata.fill_value;
    if is_zero(fill) && rest.iter().all(|byte| *byte == 0) {
        return;
    }
    let order = metadata.byte_order();
    let dtype = Dtype::new(padded.kind, order);
    let Ok(values) = NumericRows::parse(rest, dtype, NonZeroU32::MIN) else {
        return;
    };
    let mut numbers = (0..values.rows()).map_while(|row| values.value(row, 0));
    if let Some(at) = numbers.position(|number| !is_fill(number, fill)) {
        let message = format!("value {at} after the last row is not {fill}");
        context.report_in_chunk(&rules::PADDING, &cells.key, chunk, message);
    }
}

fn is_zero(fill: &Json) -> bool {
    match fill {
        Json::Array(parts) => parts.iter().all(is_zero),
        Json::Bool(value) => !value,
        value => value.as_f64().is_some_and(|value| value.to_bits() == 0),
    }
}

fn is_fill(number: Value, fill: &Json) -> bool {
    let is = |number: f64, fill: &Json| match fill.as_str() {
        Some("Infinity") => number == f64::INFINITY,
        Some("-Infinity") => number == f64::NEG_INFINITY,
        // All NaN payloads count as equal.
        Some(_) => number.is_nan(),
        None => fill
            .as_f64()
            .is_some_and(|fill| (number - fill).abs() <= fill.abs() * 1e-6),
    };
    match number {
        Value::Bool(value) => fill.as_bool() == Some(value),
        Value::Int(value) => fill.as_i64() == Some(value),
        Value::UInt(value) => fill.as_u64() == Some(value),
        Value::Float(value) => is(value, fill),
        Value::Complex { re, im } => {
            let parts = fill.as_array();
            parts.is_some_and(|parts| match parts.as_slice() {
                [first, second] => is(re, first) && is(im, second),
                _ => false,
            })
        }
    }
}
