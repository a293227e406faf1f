//! Values and attributes as JSON and text.

use serde_json::{Map, Value, json};
use zvf::numeric::Value as Number;
use zvf_dense::NumpyDtype;
use zvf_format::numeric::NumericRows;

/// Returns the values of an array as JSON, if they are numbers.
pub(super) fn numbers(dtype: &NumpyDtype, bytes: &[u8]) -> Option<Vec<Value>> {
    let rows = NumericRows::parse(bytes, dtype.number()?, 1.try_into().ok()?).ok()?;
    let size = usize::try_from(dtype.size()).ok()?;
    let count = bytes.len().checked_div(size)?;
    // JSON has neither NaN nor infinity.
    let float = |value: f64| {
        if value.is_finite() {
            json!(value)
        } else {
            json!(value.to_string())
        }
    };
    let value = |row| {
        Some(match rows.value(row, 0)? {
            Number::Bool(value) => json!(value),
            Number::Int(value) => json!(value),
            Number::UInt(value) => json!(value),
            Number::Float(value) => float(value),
            Number::Complex { re, im } => json!([float(re), float(im)]),
        })
    };
    (0..count).map(value).collect()
}

/// Converts attributes to text, within the limits of `.tet`, and returns the names of the
/// attributes that do not fit.
pub(super) fn attributes_as_text(
    attributes: &Map<String, Value>,
) -> (Map<String, Value>, Vec<String>) {
    let (mut kept, mut lost) = (Map::new(), Vec::new());
    for (key, value) in attributes {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let is_kept = [key, &text]
            .iter()
            .all(|text| (1..=1024).contains(&text.len()));
        if is_kept && kept.len() < 64 {
            kept.insert(key.clone(), Value::String(text));
        } else {
            lost.push(key.clone());
        }
    }
    (kept, lost)
}
