//! Numbers as floats of 32 and 64 bits.

use zvf::{
    NumericColumn,
    numeric::{Kind, Value},
};

/// Converts numbers to 64-bit floats; `None` for complex numbers.
pub fn to_f64(column: &NumericColumn) -> Option<Vec<f64>> {
    match column.kind {
        Kind::Float64 => column.to_vec::<f64>(),
        Kind::Float32 => Some(column.to_vec::<f32>()?.into_iter().map(f64::from).collect()),
        Kind::Complex64 | Kind::Complex128 => None,
        _ => {
            let view = column.view()?;
            let columns = || 0..column.width;
            let places = (0..view.rows()).flat_map(|row| columns().map(move |at| (row, at)));
            let values = places.map(|(row, at)| view.value(row, at).map(Value::to_f64));
            values.collect()
        }
    }
}

/// Converts numbers to the nearest 32-bit floats, as bytes. Bits of 32-bit floats are kept.
pub fn to_f32_bytes(column: &NumericColumn) -> Option<Vec<u8>> {
    if column.kind == Kind::Float32 {
        return Some(column.bytes.clone());
    }
    let values = to_f64(column)?;
    Some(
        values
            .into_iter()
            .flat_map(|value| narrow(value).to_le_bytes())
            .collect(),
    )
}

/// Returns the nearest 32-bit float.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "std rounds an f64 to an f32 in no other way"
)]
pub fn narrow(value: f64) -> f32 {
    value as f32
}
