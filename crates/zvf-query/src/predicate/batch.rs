//! Vectorized evaluation of predicates.
//!
//! Comparisons of a column with a number run over the whole column if all values are exact as
//! f64. Every other test is evaluated row by row.

use super::{
    BoundPredicate, ColumnSource, Comparison, Number, Truth,
    bind::{Node, Slot, Term},
};

/// All integers up to this magnitude are exact as f64.
const MAX_EXACT_INTEGER: u64 = 1 << f64::MANTISSA_DIGITS;

impl BoundPredicate {
    /// Evaluates the predicate for rows `0..rows`.
    pub fn evaluate_all(&self, columns: &impl ColumnSource, rows: usize) -> Vec<Truth> {
        self.root.evaluate_all(columns, rows)
    }
}

impl Node {
    fn evaluate_all(&self, columns: &impl ColumnSource, rows: usize) -> Vec<Truth> {
        let combine = |parts: &[Self], start: Truth, with: fn(Truth, Truth) -> Truth| {
            let mut all = vec![start; rows];
            for part in parts {
                let part = part.evaluate_all(columns, rows);
                all.iter_mut()
                    .zip(part)
                    .for_each(|(truth, part)| *truth = with(*truth, part));
            }
            all
        };
        let all = match self {
            Self::Compare(Term::Slot(slot), comparison, Term::Number(number)) => {
                compare(columns, *slot, *comparison, *number, rows)
            }
            Self::And(parts) => Some(combine(parts, Truth::True, |a, b| a & b)),
            Self::Or(parts) => Some(combine(parts, Truth::False, |a, b| a | b)),
            _ => None,
        };
        all.unwrap_or_else(|| (0..rows).map(|row| self.evaluate(columns, row)).collect())
    }
}

/// Compares a column with a number. Returns `None` if a value may not be exact as f64.
#[expect(
    clippy::float_cmp,
    reason = "`=` of the predicate language is exact equality"
)]
fn compare(
    columns: &impl ColumnSource,
    slot: Slot,
    comparison: Comparison,
    number: Number,
    rows: usize,
) -> Option<Vec<Truth>> {
    let number = exact(number)?;
    let values = columns.exact_floats(slot.id, slot.channel, rows)?;
    if number.is_nan() {
        return Some(vec![Truth::Unknown; rows]);
    }
    // One loop per operator, so that the compiler vectorizes each.
    Some(match comparison {
        Comparison::Equal => each(&values, |value| value == number),
        Comparison::NotEqual => each(&values, |value| value != number),
        Comparison::Less => each(&values, |value| value < number),
        Comparison::LessEqual => each(&values, |value| value <= number),
        Comparison::Greater => each(&values, |value| value > number),
        Comparison::GreaterEqual => each(&values, |value| value >= number),
    })
}

/// Tests each value. The result of NaN is [`Truth::Unknown`].
fn each(values: &[f64], holds: impl Fn(f64) -> bool) -> Vec<Truth> {
    let truth = |value: &f64| {
        if value.is_nan() {
            Truth::Unknown
        } else {
            holds(*value).into()
        }
    };
    values.iter().map(truth).collect()
}

/// Converts a number to f64, if the conversion is exact.
#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "only integers that are exact as f64 are converted"
)]
fn exact(number: Number) -> Option<f64> {
    match number {
        Number::Float(value) => Some(value),
        Number::Int(value) => (value.unsigned_abs() <= MAX_EXACT_INTEGER).then_some(value as f64),
        Number::UInt(value) => (value <= MAX_EXACT_INTEGER).then_some(value as f64),
    }
}

#[cfg(test)]
mod tests {
    use zvf_format::numeric::{ByteOrder, Dtype, NumericRows, encode};

    use super::*;
    use crate::predicate::{
        CellTable, ColumnRef, Datum, FindError, Predicate, ResolvedColumn, Scope,
    };

    /// A table whose float32 column supports bulk access.
    struct BulkTable<'a>(CellTable<'a>, &'a [f32]);

    impl ColumnSource for BulkTable<'_> {
        fn find(&self, column: &ColumnRef) -> Result<ResolvedColumn<'_>, FindError> {
            self.0.find(column)
        }

        fn cell(&self, id: usize, channel: u32, row: usize) -> Datum {
            self.0.cell(id, channel, row)
        }

        fn exact_floats(&self, id: usize, _: u32, rows: usize) -> Option<Vec<f64>> {
            let values = self.1.get(..rows).filter(|_| id == 0)?;
            Some(values.iter().copied().map(f64::from).collect())
        }
    }

    /// `fa = 0.1` found nothing, because 0.1 is no 32-bit float.
    #[test]
    fn floats_of_32_bits_equal_the_decimals_that_they_were_written_as()
    -> Result<(), Box<dyn core::error::Error>> {
        let values = [0.1, 0.2, f32::MAX, f32::INFINITY];
        let cell = encode(&values, ByteOrder::Little);
        let mut table = CellTable::default();
        let floats = NumericRows::parse(&cell, Dtype::parse("float32")?, 1.try_into()?)?;
        table.add_numbers(Scope::Vertex, "a", floats)?;
        let columns = BulkTable(table, &values);
        for (form, expected) in [
            ("a = 0.1", &[0][..]),
            ("0.1 = a", &[0]),
            ("a in (0.2, 5)", &[1]),
            ("a > 0.1", &[1, 2, 3]),
            ("a <= 0.1", &[0]),
            ("a between 0.1 and 0.2", &[0, 1]),
            // A number beyond 32-bit floats is no infinity.
            ("a > 1e300", &[3]),
            ("a = 1e300", &[]),
        ] {
            let bound = Predicate::parse(form)?.bind(&columns)?;
            let mut selected = Vec::new();
            bound.select(&columns, 0..values.len(), &mut selected);
            assert_eq!(selected, expected, "{form}");
            let all = bound.evaluate_all(&columns, values.len());
            let truths = all.iter().zip(0..).filter(|(truth, _)| truth.is_true());
            assert!(truths.map(|(_, row)| row).eq(selected), "{form}");
        }
        Ok(())
    }

    #[test]
    fn evaluate_all_equals_evaluate_of_each_row() -> Result<(), Box<dyn core::error::Error>> {
        let values = [0.5, 16_777_216.0, -0.0, f32::NAN, f32::INFINITY, -3.0, 2.5];
        let others: Vec<i64> = vec![i64::MAX, 1, 0, -1, i64::MIN, 3, 1 << 53];
        let (a, b) = (
            encode(&values, ByteOrder::Little),
            encode(&others, ByteOrder::Little),
        );
        let one = 1.try_into()?;
        let mut table = CellTable::default();
        let floats = NumericRows::parse(&a, Dtype::parse("float32")?, one)?;
        let integers = NumericRows::parse(&b, Dtype::parse("int64")?, one)?;
        table.add_numbers(Scope::Vertex, "a", floats)?;
        table.add_numbers(Scope::Vertex, "b", integers)?;
        let columns = BulkTable(table, &values);
        let numbers = [
            "0",
            "2.5",
            "16777216",
            "16777217",
            "9007199254740993",
            "18446744073709551615",
        ];
        let mut found = 0_usize;
        for number in numbers {
            for comparison in ["<", "<=", "=", "!=", ">=", ">"] {
                for form in [
                    format!("a {comparison} {number}"),
                    format!("a {comparison} {number} and b > 0"),
                    format!("a {comparison} {number} or b {comparison} {number}"),
                    format!("not (a {comparison} {number})"),
                ] {
                    let bound = Predicate::parse(&form)?.bind(&columns)?;
                    let alone: Vec<Truth> =
                        (0..7).map(|row| bound.evaluate(&columns, row)).collect();
                    assert_eq!(bound.evaluate_all(&columns, 7), alone, "{form}");
                    found += alone.iter().filter(|truth| truth.is_true()).count();
                }
            }
        }
        assert!(found > 100, "{found}");
        Ok(())
    }
}
