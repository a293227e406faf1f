//! Access to the numbers of query results.

use zvf::{Column, ColumnValues, NumericColumn, numeric::Kind};

/// Returns all numbers as f64, row by row; `None` if the last row is incomplete.
pub(crate) fn numbers(rows: &NumericColumn) -> Option<Vec<f64>> {
    let view = rows.view()?;
    // Fast paths for the usual types.
    Some(match rows.kind {
        Kind::Float32 => view.elements::<f32>()?.iter().map(f64::from).collect(),
        Kind::Float64 => view.elements::<f64>()?.iter().collect(),
        _ => {
            let columns = view.columns().get();
            let rows = 0..view.rows();
            let values = rows.flat_map(|row| {
                (0..columns).map(move |column| view.value(row, column).map_or(f64::NAN, widened))
            });
            values.collect()
        }
    })
}

/// Returns the first channel of each row of integers, exactly; `None` if the last row is incomplete.
pub(crate) fn integers(rows: &NumericColumn) -> Option<impl Iterator<Item = i128> + '_> {
    use zvf::numeric::Value;
    let view = rows.view()?;
    Some((0..view.rows()).map(move |row| match view.value(row, 0) {
        Some(Value::Bool(value)) => value.into(),
        Some(Value::Int(value)) => value.into(),
        Some(Value::UInt(value)) => value.into(),
        Some(Value::Float(_) | Value::Complex { .. }) | None => 0,
    }))
}

/// Finds a column by name.
pub(crate) fn column<'a>(columns: &'a [Column], name: &str) -> Option<&'a Column> {
    columns.iter().find(|column| column.name == name)
}

/// Returns the number of channels of a column.
pub(crate) fn channels(column: &Column) -> u32 {
    match &column.values {
        ColumnValues::Numeric(rows) => rows.width,
        ColumnValues::Dictionary { .. } => 1,
    }
}

/// Converts a number to f64; a complex number to its magnitude.
fn widened(value: zvf::numeric::Value) -> f64 {
    use zvf::numeric::Value;
    match value {
        Value::Complex { re, im } => re.hypot(im),
        real => real.to_f64(),
    }
}
