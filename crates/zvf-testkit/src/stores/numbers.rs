//! Conversions between whole numbers and floats.

/// A whole number as a float.
#[expect(clippy::cast_precision_loss, reason = "numbers here are small")]
pub(super) fn whole(number: i64) -> f64 {
    number as f64
}

/// The whole number below.
#[expect(clippy::cast_possible_truncation, reason = "numbers here are small")]
pub(super) fn floor(value: f64) -> i64 {
    value.floor() as i64
}
