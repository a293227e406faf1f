//! Comparison of column values with the known ones.

use zvf_format::numeric::{Kind, Value};
use zvf_query::{Column, ColumnValues};
use zvf_testkit::stores::{ExpectedAttribute, ExpectedValues as Known};

use super::filter::value;

/// Success, or a description of the difference.
pub(super) type Verdict = Result<(), String>;

macro_rules! ensure {
    ($holds:expr, $($message:tt)*) => {
        let holds: bool = $holds;
        if !holds {
            return Err(format!($($message)*));
        }
    };
}

pub(super) use ensure;

/// Compares a value of the result with a known one.
pub(super) fn same(
    column: &Column,
    row: usize,
    attribute: &ExpectedAttribute,
    at: usize,
) -> Verdict {
    let name = &attribute.name;
    let missing = attribute.missing[at];
    ensure!(
        column.is_null(row) == missing,
        "row {row} of {name} is missing: {}",
        !missing
    );
    if missing {
        return Ok(());
    }
    match (&column.values, &attribute.values) {
        (
            ColumnValues::Dictionary { codes, words },
            Known::Words {
                codes: known,
                words: all,
            },
        ) => {
            let found = words.get(usize::try_from(codes[row]).unwrap());
            let word = &all[usize::try_from(known[at]).unwrap()];
            ensure!(
                found == Some(word),
                "row {row} of {name} is {found:?}, expected {word}"
            );
        }
        (ColumnValues::Numeric(rows), Known::Numbers { kind, columns, .. }) => {
            let form = (rows.kind, rows.width);
            ensure!(form == (*kind, *columns), "{name} is of {form:?}");
            let size = rows.row_size();
            let found = &rows.bytes[row * size..(row + 1) * size];
            let known = attribute.row(at);
            ensure!(
                found == known,
                "row {row} of {name} is {found:?}, expected {known:?}"
            );
        }
        (found, _) => return Err(format!("{name} is {found:?}")),
    }
    Ok(())
}

/// Compares a value at a new vertex: interpolated between the ends for floats, otherwise taken from
/// the nearer end.
pub(super) fn between(
    column: &Column,
    row: usize,
    attribute: &ExpectedAttribute,
    (ends, t): ([usize; 2], f64),
) -> Verdict {
    let (ColumnValues::Numeric(rows), Known::Numbers { columns, .. }) =
        (&column.values, &attribute.values)
    else {
        return nearer(column, row, attribute, (ends, t));
    };
    if !matches!(rows.kind, Kind::Float16 | Kind::Float32 | Kind::Float64) {
        return nearer(column, row, attribute, (ends, t));
    }
    for channel in 0..*columns {
        let known = ends.map(|end| match value(attribute, end, channel) {
            Value::Float(value) => value,
            other => panic!("{other:?}"),
        });
        let expected = known[0] * (1.0 - t) + known[1] * t;
        let Some(Value::Float(found)) = rows.view().unwrap().value(row, channel) else {
            return Err(format!("row {row} of {}", attribute.name));
        };
        let slack = 1e-4 * (1.0 + known[0].abs() + known[1].abs());
        let close = (found - expected).abs() <= slack;
        ensure!(
            close,
            "row {row} of {} is {found}, expected {expected}",
            attribute.name
        );
    }
    Ok(())
}

fn nearer(
    column: &Column,
    row: usize,
    attribute: &ExpectedAttribute,
    (ends, t): ([usize; 2], f64),
) -> Verdict {
    let nearer = same(column, row, attribute, ends[usize::from(t > 0.5)]);
    // In the middle, either end is correct.
    if nearer.is_err() && (t - 0.5).abs() < 1e-9 {
        return same(column, row, attribute, ends[usize::from(t <= 0.5)]);
    }
    nearer
}
