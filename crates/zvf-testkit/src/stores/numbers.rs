//! Conversions between whole numbers and floats.

/// Converts an integer to a float.
#[expect(clippy::cast_precision_loss, reason = "numbers here are small")]
pub(super) fn whole(number: i64) -> f64 {
    number as f64
}

/// Rounds down to an integer.
#[expect(clippy::cast_possible_truncation, reason = "numbers here are small")]
pub(super) fn floor(value: f64) -> i64 {
    value.floor() as i64
}
