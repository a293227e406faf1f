//! Answers: JSON, and the columns that it refers to by number.

use js_sys::{Array, Object, Reflect, Uint8Array};
use serde_json::{Value, json};
use wasm_bindgen::JsValue;
use zvf::{
    Column, ColumnValues, LevelUse, NumericColumn, ObjectIds, QueryResult, Skipped, numeric::Kind,
};

/// An answer.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    json: Value,
    buffers: Array,
}

impl From<Value> for Answer {
    fn from(json: Value) -> Self {
        Self {
            json,
            buffers: Array::new(),
        }
    }
}

impl Answer {
    /// Converts a result. Columns are copied once, out of the memory of the module.
    ///
    /// # Errors
    ///
    /// A sentence if a row number exceeds 32 bits.
    pub(crate) fn of_result(result: QueryResult) -> Result<Self, String> {
        let mut answer = Self::default();
        let first_row = result.first_row;
        let mut json = json!({
            "level": result.level.number(),
            "levels": levels(&result.levels),
            "firstRow": first_row,
            "axes": result.axes,
            "length": result.positions.len(),
            "linkWidth": 0,
            "skipped": skipped(&result.skipped),
            "notes": result.notes,
        });
        let mut set = |name: &str, value: Value| json[name] = value;
        set("positions", answer.numbers(&result.positions));
        set("objects", answer.int64(&result.objects));
        if let Some(parts) = result.parts {
            set("partOffsets", answer.rows(&parts.offsets, first_row)?);
            set("partObjects", answer.int64(&parts.objects));
        }
        if let Some(ids) = result.object_ids {
            set("objectIds", answer.int64(&ObjectIds::into_numbers(ids)));
        }
        if let Some(ids) = result.row_ids {
            let column = NumericColumn::from_values(1, ids);
            set("rowIds", answer.numbers(&column));
        }
        if let Some(links) = result.links {
            set("linkWidth", links.width.into());
            set("links", answer.rows(&links.ends, 0)?);
        }
        if let Some(distances) = result.distances {
            let column = NumericColumn::float64(1, distances);
            set("distances", answer.numbers(&column));
        }
        let families = [
            ("vertex", result.vertex),
            ("fragment", result.fragment),
            ("link", result.link),
            ("object", result.object),
        ];
        for (family, columns) in families {
            let columns = columns.into_iter().map(|column| answer.column(column));
            set(family, columns.collect());
        }
        let members = result.groups.iter();
        let groups =
            members.map(|group| json!({"id": group.id, "members": answer.int64(&group.members)}));
        set("groups", groups.collect());
        answer.json = json;
        Ok(answer)
    }

    fn column(&mut self, column: Column) -> Value {
        let nulls = column.nulls.map(|nulls| {
            let nulls: Vec<u8> = nulls.into_iter().map(u8::from).collect();
            self.buffer("uint8", 1, &nulls)
        });
        let mut found = match column.values {
            ColumnValues::Numeric(values) => json!({
                "dtype": values.kind.name(),
                "width": values.width,
                "values": self.numbers(&values),
            }),
            ColumnValues::Dictionary { codes, words } => json!({
                "dtype": "text",
                "width": 1,
                "values": self.numbers(&NumericColumn::from_values(1, codes)),
                "words": words.to_vec(),
            }),
        };
        found["name"] = column.name.into();
        if let Some(nulls) = nulls {
            found["nulls"] = nulls;
        }
        found
    }

    fn int64(&mut self, values: &[i64]) -> Value {
        self.numbers(&NumericColumn::int64(1, values.iter().copied()))
    }

    /// Adds rows, less the first row of the batch.
    fn rows(&mut self, rows: &[u64], first: u64) -> Result<Value, String> {
        let narrow = |row: &u64| {
            row.checked_sub(first)
                .and_then(|row| u32::try_from(row).ok())
        };
        let narrow: Option<Vec<u32>> = rows.iter().map(narrow).collect();
        let narrow = narrow
            .ok_or("the result has more than 4,294,967,295 rows; select less, or read batches")?;
        Ok(self.numbers(&NumericColumn::from_values(1, narrow)))
    }

    /// Adds a column. Numbers that JavaScript has no arrays for become wider.
    fn numbers(&mut self, column: &NumericColumn) -> Value {
        let wider = || {
            let view = column.view();
            let values = view.iter().flat_map(|rows| {
                let cells = (0..rows.rows())
                    .flat_map(move |row| (0..column.width).map(move |at| (row, at)));
                cells.map(move |(row, at)| {
                    rows.value(row, at).map_or(f64::NAN, |value| value.to_f64())
                })
            });
            NumericColumn::float64(column.width, values)
        };
        match column.kind {
            Kind::Bool => self.buffer("uint8", column.width, &column.bytes),
            Kind::Int8
            | Kind::UInt8
            | Kind::Int16
            | Kind::UInt16
            | Kind::Int32
            | Kind::UInt32
            | Kind::Int64
            | Kind::UInt64
            | Kind::Float32
            | Kind::Float64 => self.buffer(column.kind.name(), column.width, &column.bytes),
            _ => self.buffer("float64", column.width, &wider().bytes),
        }
    }

    fn buffer(&mut self, kind: &str, width: u32, bytes: &[u8]) -> Value {
        let number = self.buffers.push(&Uint8Array::from(bytes));
        json!({"buffer": number.saturating_sub(1), "kind": kind, "width": width})
    }

    pub(crate) fn into_js(self) -> JsValue {
        let answer = Object::new();
        // Setting a member of a plain object does not fail.
        let _ = Reflect::set(&answer, &"json".into(), &self.json.to_string().into());
        let _ = Reflect::set(&answer, &"buffers".into(), &self.buffers);
        answer.into()
    }
}

/// Returns the level and the number of vertices of each use.
pub(crate) fn levels(levels: &[LevelUse]) -> Vec<(u32, u64)> {
    let levels = levels.iter();
    levels
        .map(|level| (level.level.number(), level.vertices))
        .collect()
}

/// Returns the key and the reason of each skipped part.
pub(crate) fn skipped(parts: &[Skipped]) -> Vec<Value> {
    let parts = parts.iter();
    parts
        .map(|part| json!({"key": part.key.to_string(), "reason": part.reason}))
        .collect()
}
