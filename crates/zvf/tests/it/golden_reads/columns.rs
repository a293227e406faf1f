//! Answers as the expectations spell them.

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

/// Rows of numbers, each a list.
pub(super) fn rows(rows: &NumericColumn) -> Vec<Vec<Json>> {
    let view = rows.view().unwrap();
    let row = |row| {
        let values = (0..rows.width).map(|column| number(view.value(row, column).unwrap()));
        values.collect()
    };
    (0..view.rows()).map(row).collect()
}

/// Rows of an attribute, each a list; one without a value is null.
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

/// The type of numbers of an attribute.
pub(super) fn dtype(column: &Column) -> Option<&'static str> {
    match &column.values {
        ColumnValues::Numeric(rows) => Some(rows.kind.name()),
        ColumnValues::Dictionary { .. } => None,
    }
}

pub(super) fn named<'a>(columns: &'a [Column], name: &str) -> Option<&'a Column> {
    columns.iter().find(|column| column.name == name)
}

/// An array, whether or not its type and shape are recorded with it.
pub(super) fn data(json: &Json) -> &Json {
    json.get("data").unwrap_or(json)
}

/// All numbers of a nested list, as attributes of several numbers a row are
/// recorded flat by some readers.
pub(super) fn flat(json: &Json) -> Vec<Json> {
    match data(json) {
        Json::Array(list) => list.iter().flat_map(flat).collect(),
        number => vec![number.clone()],
    }
}
