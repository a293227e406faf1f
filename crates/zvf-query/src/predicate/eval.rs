//! Row-by-row evaluation of predicates.

use std::ops::Range;

use super::{
    BoundPredicate, ColumnSource, Datum, Truth,
    bind::{Node, Slot, Term},
};

impl BoundPredicate {
    /// Evaluates the predicate for one row.
    pub fn evaluate(&self, columns: &impl ColumnSource, row: usize) -> Truth {
        self.root.evaluate(columns, row)
    }

    /// Appends the rows of `rows` that satisfy the predicate to `selected`, in ascending order.
    ///
    /// ```
    /// use zvf_format::numeric::{ByteOrder, Dtype, NumericRows, encode};
    /// use zvf_query::predicate::{Predicate, Scope, CellTable};
    ///
    /// let cell = encode(&[0.5_f32, 2.5, f32::NAN], ByteOrder::Little);
    /// let radius = NumericRows::parse(&cell, Dtype::parse("float32")?, 1.try_into()?)?;
    /// let mut table = CellTable::default();
    /// table.add_numbers(Scope::Vertex, "radius", radius)?;
    ///
    /// let bound = Predicate::parse("radius > 1")?.bind(&table)?;
    /// let mut selected = Vec::new();
    /// bound.select(&table, 0..3, &mut selected);
    /// assert_eq!(selected, [1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn select(
        &self,
        columns: &impl ColumnSource,
        rows: Range<usize>,
        selected: &mut Vec<usize>,
    ) {
        selected.extend(rows.filter(|row| self.evaluate(columns, *row).is_true()));
    }
}

impl Node {
    pub(super) fn evaluate(&self, columns: &impl ColumnSource, row: usize) -> Truth {
        let cell = |slot: &Slot| columns.cell(slot.id, slot.channel, row).nan_as_missing();
        let category = |slot: &Slot| match cell(slot) {
            Datum::Category(code) => usize::try_from(code).ok(),
            _ => None,
        };
        match self {
            Self::Constant(truth) => *truth,
            Self::IsTrue(slot) => match cell(slot) {
                Datum::Bool(value) => value.into(),
                _ => Truth::Unknown,
            },
            Self::IsNull(slot) => (cell(slot) == Datum::Missing).into(),
            Self::Compare(left, comparison, right) => {
                let value = |term: &Term| match term {
                    Term::Slot(slot) => cell(slot),
                    Term::Number(number) => Datum::Number(*number).nan_as_missing(),
                    Term::Bool(value) => Datum::Bool(*value),
                };
                let order = match (value(left), value(right)) {
                    (Datum::Number(left), Datum::Number(right)) => left.compare(right),
                    (Datum::Bool(left), Datum::Bool(right)) => Some(left.cmp(&right)),
                    _ => return Truth::Unknown,
                };
                order.map_or(Truth::Unknown, |order| comparison.accepts(order).into())
            }
            Self::In(slot, numbers, has_null) => {
                let Datum::Number(value) = cell(slot) else {
                    return Truth::Unknown;
                };
                let index = numbers.partition_point(|other| {
                    other.compare(value).is_some_and(std::cmp::Ordering::is_lt)
                });
                let order = numbers.get(index).and_then(|other| other.compare(value));
                match order {
                    Some(std::cmp::Ordering::Equal) => Truth::True,
                    _ if *has_null => Truth::Unknown,
                    _ => Truth::False,
                }
            }
            Self::Categories(slot, truths) => {
                let truth = category(slot).and_then(|category| truths.get(category));
                truth.copied().unwrap_or(Truth::Unknown)
            }
            Self::Ranks(sides, comparison) => {
                let [left, right] = sides.each_ref().map(|(slot, ranks)| {
                    let rank = category(slot).and_then(|category| ranks.get(category));
                    rank.copied()
                });
                match left.zip(right) {
                    Some((left, right)) => comparison.accepts(left.cmp(&right)).into(),
                    None => Truth::Unknown,
                }
            }
            Self::Not(inner) => !inner.evaluate(columns, row),
            Self::And(parts) => {
                let mut all = Truth::True;
                for part in parts {
                    all = all & part.evaluate(columns, row);
                    if all == Truth::False {
                        break;
                    }
                }
                all
            }
            Self::Or(parts) => {
                let mut any = Truth::False;
                for part in parts {
                    any = any | part.evaluate(columns, row);
                    if any == Truth::True {
                        break;
                    }
                }
                any
            }
        }
    }
}
