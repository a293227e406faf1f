//! Aggregation of merged attribute values.

use core::{num::NonZeroU32, ops::Range};

use zvf_format::numeric::{
    ByteOrder, Dtype, Elements, Kind, NumericRows, NumericRowsError, encode,
};

use super::{aggregation::Aggregation, members::Members, number::Number};
use zvf_model::column::NumericColumn;

/// Values that cannot be aggregated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AggregateError {
    /// The bytes end inside a row.
    #[error("the values end inside a row")]
    Rows(#[from] NumericRowsError),
    /// The number of values in a row is 0 or too large.
    #[error("a row cannot have {0} values")]
    Columns(usize),
    /// The values do not match their declared type.
    #[error("values are not of type {}", .0.name())]
    Kind(Kind),
}

/// Aggregates rows into `count` rows: row `i` of the input belongs to row `parent[i]` of the
/// result.
///
/// `own` lists the kept input row of each result row, which [`Aggregation::Own`] copies; without
/// it, the first member is copied. NaN and the code of a `missing` word are not values. A result
/// without values is `missing`, or NaN, or zero. Sums and means are computed in 64-bit floats or
/// exact integers and saturate at the limits of the type, which is equal on all levels. Integers
/// round half away from zero. Complex numbers compare as in numpy: by real part, then by imaginary
/// part. [`Aggregation::Mode`] compares whole rows, takes the smallest of the most frequent, and
/// skips rows with a missing value. [`Aggregation::Count`] counts rows with a value in every column
/// and returns one `uint32` column.
///
/// # Errors
///
/// [`AggregateError`] when the bytes end inside a row.
pub fn aggregate(
    numbers: &NumericColumn,
    rule: Aggregation,
    parent: &[u32],
    count: usize,
    own: Option<&[u32]>,
    missing: Option<i64>,
) -> Result<NumericColumn, AggregateError> {
    aggregate_members(numbers, rule, &Members::new(parent, count), own, missing)
}

/// Aggregates rows that are grouped by their result, as [`aggregate`].
pub(super) fn aggregate_members(
    numbers: &NumericColumn,
    rule: Aggregation,
    members: &Members,
    own: Option<&[u32]>,
    missing: Option<i64>,
) -> Result<NumericColumn, AggregateError> {
    let columns = NonZeroU32::new(numbers.width).ok_or(AggregateError::Columns(0))?;
    let dtype = Dtype::new(numbers.kind, ByteOrder::Little);
    let rows = NumericRows::parse(&numbers.bytes, dtype, columns)?;
    macro_rules! dispatch {
        ($($kind:ident $number:ty,)*) => {
            match numbers.kind {
                $(Kind::$kind => rows.elements::<$number>().map(|values| {
                    let table = Table::new(values, numbers.row_len(), members, missing);
                    table.apply(rule, own, numbers)
                }),)*
            }
        };
    }
    let made = dispatch!(
        Bool bool, Int8 i8, Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16, UInt32 u32,
        UInt64 u64, Float16 half::f16, Float32 f32, Float64 f64, Complex64 [f32; 2],
        Complex128 [f64; 2],
    );
    made.ok_or(AggregateError::Kind(numbers.kind))
}

/// Rows grouped by their parents.
struct Table<'a, T> {
    columns: usize,
    values: Vec<T>,
    members: &'a Members,
    missing: Option<T>,
}

impl<'a, T: Number> Table<'a, T> {
    fn new(
        values: Elements<'_, T>,
        columns: usize,
        members: &'a Members,
        missing: Option<i64>,
    ) -> Self {
        Self {
            columns,
            values: values.iter().collect(),
            members,
            missing: missing.and_then(T::of_code),
        }
    }

    /// Applies a rule to all rows.
    fn apply(
        &self,
        rule: Aggregation,
        own: Option<&[u32]>,
        numbers: &NumericColumn,
    ) -> NumericColumn {
        let values = match rule {
            Aggregation::Own => self.own(own),
            Aggregation::Mean => self.summed(T::mean),
            Aggregation::Sum => self.summed(|sum, _| T::total(sum)),
            Aggregation::Min => self.least(T::is_below),
            Aggregation::Max => self.least(|a, b| b.is_below(a)),
            Aggregation::Mode => self.mode(),
            Aggregation::Count => {
                return NumericColumn {
                    bytes: encode(&self.counted(), ByteOrder::Little),
                    ..NumericColumn::new(Kind::UInt32, 1)
                };
            }
        };
        NumericColumn {
            bytes: encode(&values, ByteOrder::Little),
            ..NumericColumn::new(numbers.kind, numbers.width)
        }
    }

    fn is_value(&self, value: T) -> bool {
        !value.is_nan() && self.missing.is_none_or(|missing| !value.is_same(missing))
    }

    fn is_whole(&self, row: &[T]) -> bool {
        row.iter().all(|value| self.is_value(*value))
    }

    /// Returns the null value.
    fn null(&self) -> T {
        self.missing.unwrap_or(T::NULL)
    }

    fn own(&self, own: Option<&[u32]>) -> Vec<T> {
        let mut values = vec![self.null(); self.members.count() * self.columns];
        let slots = values.chunks_exact_mut(self.columns);
        for (parent, slot) in slots.enumerate() {
            let kept = match own {
                Some(own) => own.get(parent),
                None => self.members.of(parent).first(),
            };
            if let Some(row) = kept.and_then(|kept| self.row(*kept)) {
                slot.copy_from_slice(row);
            }
        }
        values
    }

    fn summed(&self, result: fn(T::Sum, u32) -> T) -> Vec<T> {
        self.members.by_parent(&|range| {
            let mut sums = vec![(T::Sum::default(), 0_u32); range.len() * self.columns];
            for (parent, row) in self.rows_of(&range) {
                let start = parent * self.columns;
                let slots = &mut sums[start..start + self.columns];
                for ((sum, members), value) in slots.iter_mut().zip(row) {
                    if self.is_value(*value) {
                        value.add_to(sum);
                        *members = members.saturating_add(1);
                    }
                }
            }
            let sums = sums.into_iter();
            sums.map(|(sum, members)| match members {
                0 => self.null(),
                _ => result(sum, members),
            })
            .collect()
        })
    }

    fn least(&self, is_before: impl Fn(T, T) -> bool + Sync) -> Vec<T> {
        self.members.by_parent(&|range| {
            let mut min = vec![None; range.len() * self.columns];
            for (parent, row) in self.rows_of(&range) {
                let start = parent * self.columns;
                let slots = &mut min[start..start + self.columns];
                for (slot, value) in slots.iter_mut().zip(row) {
                    if self.is_value(*value) && slot.is_none_or(|min| is_before(*value, min)) {
                        *slot = Some(*value);
                    }
                }
            }
            let min = min.into_iter();
            min.map(|value| value.unwrap_or(self.null())).collect()
        })
    }

    fn counted(&self) -> Vec<u32> {
        self.members.by_parent(&|range| {
            let mut counts = vec![0_u32; range.len()];
            for (parent, row) in self.rows_of(&range) {
                counts[parent] = counts[parent].saturating_add(u32::from(self.is_whole(row)));
            }
            counts
        })
    }

    fn mode(&self) -> Vec<T> {
        self.members.by_parent(&|range| {
            let mut modes = vec![self.null(); range.len() * self.columns];
            let (mut values, mut rows) = (Vec::new(), Vec::new());
            for (mode, parent) in modes.chunks_exact_mut(self.columns).zip(range) {
                let members = self.members.of(parent).iter();
                let own = members
                    .filter_map(|row| self.row(*row))
                    .filter(|row| self.is_whole(row));
                if self.columns == 1 {
                    values.clear();
                    values.extend(own.flatten().copied());
                    values.sort_unstable_by(|a: &T, b| a.order(*b));
                    let same = |a: &T, b: &T| a.is_same(*b);
                    if let Some(value) = longest(values.chunk_by(same)).first() {
                        mode.fill(*value);
                    }
                    continue;
                }
                rows.clear();
                rows.extend(own);
                rows.sort_unstable_by(|a: &&[T], b| {
                    let pairs = a.iter().zip(*b);
                    let mut orders = pairs.map(|(a, b)| a.order(*b));
                    orders
                        .find(|order| order.is_ne())
                        .unwrap_or(core::cmp::Ordering::Equal)
                });
                let same = |a: &&[T], b: &&[T]| a.iter().zip(*b).all(|(a, b)| a.is_same(*b));
                if let Some(row) = longest(rows.chunk_by(same)).first() {
                    mode.copy_from_slice(row);
                }
            }
            modes
        })
    }

    /// Returns a row; `None` past the end, such as for [`NO_VERTEX`](super::NO_VERTEX).
    fn row(&self, row: u32) -> Option<&[T]> {
        let start = row as usize * self.columns;
        self.values.get(start..start + self.columns)
    }

    /// Returns the rows whose parents are in a range, each with the index of its parent in the
    /// range, ascending by parent and row.
    fn rows_of(&self, range: &Range<usize>) -> impl Iterator<Item = (usize, &[T])> {
        range.clone().enumerate().flat_map(move |(at, parent)| {
            let rows = self.members.of(parent).iter();
            rows.filter_map(move |row| Some((at, self.row(*row)?)))
        })
    }
}

/// Returns the longest run, the first of equals.
fn longest<'a, T>(runs: impl Iterator<Item = &'a [T]>) -> &'a [T] {
    let mut max: &[T] = &[];
    for run in runs {
        if run.len() > max.len() {
            max = run;
        }
    }
    max
}
