//! Query results in the notation of the expectations.

use serde_json::{Value as Json, json};
use zvf_format::numeric::Value;
use zvf_query::{Column, ColumnValues, NumericColumn};

fn number(value: Value) -> Json {
    match value {
        Value::Bool(value) => json!(value),
        Value::Int(value) => json!(value),
        Value::UInt(value) => json!(value),
        Value::Float(value) if value.is_nan() => json!("NaN"),
        Value::Float(value) => json!(value),
        Value::Complex { .. } => panic!("no store has them"),
    }
}

/// Returns rows of numbers as lists.
pub(super) fn rows(rows: &NumericColumn) -> Vec<Vec<Json>> {
    let view = rows.view().unwrap();
    let row = |row| {
        let values = (0..rows.width).map(|column| number(view.value(row, column).unwrap()));
        values.collect()
    };
    (0..view.rows()).map(row).collect()
}

/// Returns rows of an attribute as lists; a null row is `null`.
pub(super) fn column(column: &Column) -> Vec<Vec<Json>> {
    let mut found = match &column.values {
        ColumnValues::Numeric(numbers) => rows(numbers),
        ColumnValues::Dictionary { codes, words } => {
            let word = |code: &u32| {
                let word = words.get(usize::try_from(*code).unwrap());
                vec![word.map_or(Json::Null, |word| json!(word))]
            };
            codes.iter().map(word).collect()
        }
    };
    for (at, row) in found.iter_mut().enumerate() {
        if column.is_null(at) {
            *row = vec![Json::Null];
        }
    }
    found
}

/// Returns the numeric type of an attribute.
pub(super) fn dtype(column: &Column) -> Option<&'static str> {
    match &column.values {
        ColumnValues::Numeric(rows) => Some(rows.kind.name()),
        ColumnValues::Dictionary { .. } => None,
    }
}

pub(super) fn named<'a>(columns: &'a [Column], name: &str) -> Option<&'a Column> {
    columns.iter().find(|column| column.name == name)
}

/// Returns the array, recorded with or without its type and shape.
pub(super) fn data(json: &Json) -> &Json {
    json.get("data").unwrap_or(json)
}

/// Flattens a nested list, because some readers recorded attributes of several channels as flat
/// lists.
pub(super) fn flat(json: &Json) -> Vec<Json> {
    match data(json) {
        Json::Array(list) => list.iter().flat_map(flat).collect(),
        number => vec![number.clone()],
    }
}
