//! Answers as the protocol spells them.

use serde_json::{Map, Value as Json, json};
use zvf::{Column, ColumnValues, NumericColumn, Owner, QueryResult, numeric::Value};

use crate::Outcome;

pub(crate) fn geometry(result: &QueryResult) -> Outcome<Json> {
    let mut json = json!({
        "positions": rows(&result.positions)?,
        "vertex": columns(&result.vertex)?,
        "fragment": columns(&result.fragment)?,
    });
    if let Some(ids) = &result.object_ids {
        let ids = ids.iter().map(|owner| match owner {
            Owner::None => Json::Null,
            Owner::Several => json!("several"),
            Owner::Object(id) => json!(id),
        });
        json["object_ids"] = ids.collect();
    }
    if let Some(parts) = &result.parts {
        let ends = parts.offsets.windows(2).zip(&parts.objects);
        let parts = ends.map(|(ends, id)| json!([id, ends.first(), ends.last()]));
        json["parts"] = parts.collect();
    }
    if let Some(links) = &result.links {
        let width = usize::try_from(links.width)?.max(1);
        json["links"] = links.ends.chunks(width).map(|ends| json!(ends)).collect();
        json["link"] = columns(&result.link)?;
    }
    if !result.skipped.is_empty() {
        let missing = result
            .skipped
            .iter()
            .map(|one| json!(format!("{}: {}", one.key, one.reason)));
        json["missing"] = missing.collect();
    }
    Ok(json)
}

fn columns(columns: &[Column]) -> Outcome<Json> {
    let mut json = Map::new();
    for one in columns {
        json.insert(one.name.clone(), column(one)?);
    }
    Ok(json.into())
}

/// A value a row: a number or word, a list of several, null for none.
pub(crate) fn column(column: &Column) -> Outcome<Json> {
    let mut found: Vec<Json> = match &column.values {
        ColumnValues::Numeric(numbers) => {
            let alone = |row: Vec<Json>| match <[Json; 1]>::try_from(row) {
                Ok([value]) => value,
                Err(row) => row.into(),
            };
            rows(numbers)?.into_iter().map(alone).collect()
        }
        ColumnValues::Dictionary { codes, words } => {
            let word = |code: &u32| {
                let word = usize::try_from(*code).ok().and_then(|code| words.get(code));
                word.map_or(Json::Null, |word| json!(word))
            };
            codes.iter().map(word).collect()
        }
    };
    for (row, value) in found.iter_mut().enumerate() {
        if column.is_null(row) {
            *value = Json::Null;
        }
    }
    Ok(found.into())
}

fn rows(rows: &NumericColumn) -> Outcome<Vec<Vec<Json>>> {
    let view = rows.view().ok_or("rows that end inside a row")?;
    let row = |row| {
        let values = (0..rows.width).filter_map(|column| view.value(row, column));
        values.map(number).collect()
    };
    Ok((0..view.rows()).map(row).collect())
}

fn number(value: Value) -> Json {
    match value {
        Value::Bool(value) => json!(value),
        Value::Int(value) => json!(value),
        Value::UInt(value) => json!(value),
        Value::Float(value) => float(value),
        Value::Complex { re, im } => json!({ "complex": [float(re), float(im)] }),
    }
}

/// JSON has no words for what is not a finite number.
fn float(value: f64) -> Json {
    if value.is_nan() {
        return json!({ "float": "nan" });
    }
    if value.is_infinite() {
        let name = if value > 0.0 { "inf" } else { "-inf" };
        return json!({ "float": name });
    }
    json!(value)
}
