//! Numbers of results in the types of files.

use std::borrow::Cow;

use zvf::{Column, ColumnValues, NumericColumn, QueryResult, numeric::Kind};

use crate::FileFault;

pub use crate::floats::{narrow, to_f32_bytes, to_f64};

/// Integers up to here are exact as 64-bit floats.
pub const EXACT_INTEGERS: u64 = 1 << 53;

/// Returns integers of any type.
pub fn integers_of(column: &NumericColumn) -> Vec<i128> {
    let size = column.kind.size();
    let is_signed = column.kind.name().starts_with('i');
    let number = |bytes: &[u8]| {
        let is_negative = is_signed && bytes.last().is_some_and(|last| *last >= 0x80);
        let mut wide = [if is_negative { 0xff } else { 0 }; 16];
        for (to, from) in wide.iter_mut().zip(bytes) {
            *to = *from;
        }
        i128::from_le_bytes(wide)
    };
    column.bytes.chunks_exact(size.max(1)).map(number).collect()
}

/// Returns whether float64 may round an integer of a row that has a value.
pub fn has_rounded_integers(numbers: &NumericColumn, is_missing: &[bool]) -> bool {
    if !numbers.kind.name().contains("int") {
        return false;
    }
    let all = integers_of(numbers);
    let rows = all.chunks(numbers.row_len().max(1)).zip(is_missing);
    let mut present = rows.filter(|(_, none)| !**none).flat_map(|(row, _)| row);
    present.any(|number| number.unsigned_abs() > EXACT_INTEGERS.into())
}

/// Returns the first number that is not finite.
pub fn not_finite(column: &NumericColumn) -> Option<f64> {
    let bytes = column.bytes.as_slice();
    match column.kind {
        Kind::Float32 => {
            let (words, _) = bytes.as_chunks::<4>();
            let numbers = words.iter().map(|word| f32::from_le_bytes(*word));
            // A pass without exits is several times as fast, and files without faults need no other.
            let are_finite = numbers.clone().fold(true, |all, it| all & it.is_finite());
            let mut numbers = numbers.filter(|_| !are_finite);
            numbers.find(|number| !number.is_finite()).map(f64::from)
        }
        Kind::Float64 => {
            let (words, _) = bytes.as_chunks::<8>();
            let numbers = words.iter().map(|word| f64::from_le_bytes(*word));
            let are_finite = numbers.clone().fold(true, |all, it| all & it.is_finite());
            let mut numbers = numbers.filter(|_| !are_finite);
            numbers.find(|number| !number.is_finite())
        }
        _ => to_f64(column)?.into_iter().find(|value| !value.is_finite()),
    }
}

/// Rounds to the nearest 32-bit integer; `None` outside their range.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "the number is in the range of an i32"
)]
pub fn whole(value: f64) -> Option<i32> {
    let value = value.round();
    let is_inside = value >= f64::from(i32::MIN) && value <= f64::from(i32::MAX);
    is_inside.then_some(value as i32)
}

/// Returns the 32-bit float nearest to a coordinate.
///
/// # Errors
///
/// [`FileFault::CoordinateRange`] if that is infinite.
pub fn narrow_coordinate(value: f64, format: &'static str) -> Result<f32, FileFault> {
    let near = narrow(value);
    if near.is_finite() {
        return Ok(near);
    }
    Err(FileFault::CoordinateRange { format, value })
}

/// Returns the number of coordinates that 32-bit floats do not hold exactly.
pub fn rounded_coordinates<'a>(coordinates: impl IntoIterator<Item = &'a f64>) -> usize {
    let is_rounded = |value: &&f64| (f64::from(narrow(**value)) - **value).abs() > 0.0;
    coordinates.into_iter().filter(is_rounded).count()
}

/// Returns the line about rounded coordinates, if there are any.
pub fn rounded_left_out(count: usize) -> Option<String> {
    (count > 0).then(|| format!("{count} coordinates are rounded to float32"))
}

/// Returns whether 32-bit floats hold all values of a kind.
pub fn fits_f32(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Bool
            | Kind::Int8
            | Kind::UInt8
            | Kind::Int16
            | Kind::UInt16
            | Kind::Float16
            | Kind::Float32
    )
}

/// Returns the numbers of a column with NaN where it has no value; `None` for text.
pub fn numbers(column: &Column) -> Option<Cow<'_, NumericColumn>> {
    let ColumnValues::Numeric(values) = &column.values else {
        return None;
    };
    let Some(nulls) = column.nulls.as_ref().filter(|nulls| nulls.contains(&true)) else {
        return Some(Cow::Borrowed(values));
    };
    let mut floats = to_f64(values)?;
    for (row, is_null) in floats.chunks_mut(values.row_len()).zip(nulls) {
        if *is_null {
            row.fill(f64::NAN);
        }
    }
    Some(Cow::Owned(NumericColumn::float64(values.width, floats)))
}

/// Order in which coordinates of a result are written: axes named x, y and z first.
#[derive(Clone, Debug)]
pub struct AxisOrder {
    /// Channels of x, y and z; `None` for a z that the store lacks.
    channels: [Option<usize>; 3],
}

impl AxisOrder {
    /// Finds the channels of x, y and z in a result.
    ///
    /// # Errors
    ///
    /// [`FileFault::Result`] for other numbers of axes than 2 and 3.
    pub fn of(result: &QueryResult, format: &'static str) -> Result<Self, FileFault> {
        let names: Vec<&str> = result.axes.iter().map(String::as_str).collect();
        Self::of_names(&names).ok_or(FileFault::Result {
            format,
            holds: "2 or 3 axes",
            remedy: "write csv or npz",
        })
    }

    /// Finds the channels of x, y and z among axes; `None` for other numbers of axes than 2 and 3.
    pub fn of_names(axes: &[&str]) -> Option<Self> {
        let count = axes.len();
        if !matches!(count, 2 | 3) {
            return None;
        }
        let place = |name: &str| {
            let mut axes = axes.iter();
            axes.position(|axis| axis.eq_ignore_ascii_case(name))
        };
        let named = ["x", "y", "z"].map(place);
        let channels = if named.iter().flatten().count() == count {
            named
        } else {
            [Some(0), Some(1), Some(2).filter(|at| *at < count)]
        };
        Some(Self { channels })
    }

    /// Returns x, y and z of a vertex.
    pub fn point(&self, row: &[f64]) -> [f64; 3] {
        let at = |channel: usize| row.get(channel).copied().unwrap_or(0.0);
        self.channels.map(|channel| channel.map_or(0.0, at))
    }

    /// Returns x, y and z of each vertex.
    ///
    /// # Errors
    ///
    /// [`FileFault::Coordinates`] for complex numbers.
    pub fn rows(&self, positions: &NumericColumn) -> Result<Vec<[f64; 3]>, FileFault> {
        if self.are_in_order() && positions.width == 3 {
            let bytes = &positions.bytes;
            match positions.kind {
                Kind::Float64 => {
                    let (rows, _) = bytes.as_chunks::<8>().0.as_chunks::<3>();
                    return Ok(rows.iter().map(|row| row.map(f64::from_le_bytes)).collect());
                }
                Kind::Float32 => {
                    let number = |bytes| f64::from(f32::from_le_bytes(bytes));
                    let (rows, _) = bytes.as_chunks::<4>().0.as_chunks::<3>();
                    return Ok(rows.iter().map(|row| row.map(number)).collect());
                }
                _ => {}
            }
        }
        let values = to_f64(positions).ok_or(FileFault::Coordinates(positions.kind))?;
        let rows = values.chunks_exact(positions.row_len());
        Ok(rows.map(|row| self.point(row)).collect())
    }

    /// Returns a note for readers of files with three axes, if the store has two.
    pub fn note(&self) -> Option<String> {
        let lacks_z = self.channels.contains(&None);
        lacks_z.then(|| "the store has two axes; z is 0 in the file".to_owned())
    }

    /// Returns whether the coordinates are written as they are stored.
    pub fn are_in_order(&self) -> bool {
        self.channels == [Some(0), Some(1), Some(2)]
    }
}

/// Returns whether the shortest text of the nearest float32 is this number.
pub fn is_float32(text: &str, number: f64) -> bool {
    let near = narrow(number);
    near.is_finite() && (is_alone(text, near.abs()) || near.to_string().parse() == Ok(number))
}

/// Returns whether a text is the only one of its number of decimals, and so the shortest, for which
/// this float32 is the nearest one: then the last decimal is worth more than the distance to the next
/// float32.
fn is_alone(text: &str, near: f32) -> bool {
    let decimals = match text.split_once('.') {
        Some((_, decimals)) => decimals.trim_end_matches('0'),
        None => "",
    };
    if text.contains(['e', 'E']) {
        return false;
    }
    let last = POWERS.get(decimals.len()).copied();
    last.is_some_and(|last| last > f64::from(near.next_up()) - f64::from(near))
}

/// Values of the last of 0, 1, … decimals. A float32 has no more that are its own.
const POWERS: [f64; 11] = [
    1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_float32_if_its_text_is_equal() {
        for (text, expected) in [
            ("1.5", true),
            ("123456", true),
            ("0.1234567", true),
            ("12345678.9", false),
            ("16777217", false),
            ("1e40", false),
            ("1023.9375", true),
            ("8191.1234", false),
            ("9.0999999", false),
            ("-0.12340000", true),
            ("0.0", true),
        ] {
            assert_eq!(is_float32(text, text.parse().unwrap()), expected, "{text}");
        }
    }

    /// The fast test agrees with a comparison of texts.
    #[test]
    fn texts_that_are_alone_are_the_shortest() {
        let mut bits = 1_u32;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let number = f32::from_bits(bits);
            if !(1e-6..1e8).contains(&number.abs()) {
                continue;
            }
            for decimals in [0, 2, 4, 6, 8] {
                let text = format!("{number:.decimals$}");
                let parsed: f64 = text.parse().unwrap();
                if is_alone(&text, narrow(parsed).abs()) {
                    assert_eq!(narrow(parsed).to_string().parse(), Ok(parsed), "{text}");
                }
            }
        }
    }
}
