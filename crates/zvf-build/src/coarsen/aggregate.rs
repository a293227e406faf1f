//! Aggregation of merged attribute values.

use core::{num::NonZeroU32, ops::Range};

use zvf_format::numeric::{
    ByteOrder, Dtype, Elements, Kind, NumericRows, NumericRowsError, encode,
};

use super::{aggregation::Aggregation, by_parent, number::Number};
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
    let columns = NonZeroU32::new(numbers.width).ok_or(AggregateError::Columns(0))?;
    let dtype = Dtype::new(numbers.kind, ByteOrder::Little);
    let rows = NumericRows::parse(&numbers.bytes, dtype, columns)?;
    macro_rules! dispatch {
        ($($kind:ident $number:ty,)*) => {
            match numbers.kind {
                $(Kind::$kind => rows.elements::<$number>().map(|values| {
                    let table = Table::new(values, numbers.row_len(), parent, count, missing);
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

/// Rows and their parents.
struct Table<'a, T> {
    columns: usize,
    values: Vec<T>,
    parent: &'a [u32],
    count: usize,
    missing: Option<T>,
}

impl<'a, T: Number> Table<'a, T> {
    fn new(
        values: Elements<'_, T>,
        columns: usize,
        parent: &'a [u32],
        count: usize,
        missing: Option<i64>,
    ) -> Self {
        Self {
            columns,
            values: values.iter().collect(),
            parent,
            count,
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

    /// Returns the rows that have a parent, with the parent.
    fn rows(&self) -> impl Iterator<Item = (usize, &[T])> {
        let rows = self
            .parent
            .iter()
            .zip(self.values.chunks_exact(self.columns));
        let rows = rows.map(|(parent, row)| (*parent as usize, row));
        rows.filter(|(parent, _)| *parent < self.count)
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
        let mut values = vec![self.null(); self.count * self.columns];
        let mut slots = values.chunks_exact_mut(self.columns);
        if let Some(own) = own {
            for (slot, row) in slots.zip(own) {
                let start = *row as usize * self.columns;
                if let Some(row) = self.values.get(start..start + self.columns) {
                    slot.copy_from_slice(row);
                }
            }
            return values;
        }
        let mut firsts = vec![None; self.count];
        self.rows().for_each(|(parent, row)| {
            firsts[parent].get_or_insert(row);
        });
        for first in firsts {
            if let (Some(slot), Some(row)) = (slots.next(), first) {
                slot.copy_from_slice(row);
            }
        }
        values
    }

    fn summed(&self, result: fn(T::Sum, u32) -> T) -> Vec<T> {
        self.by_parent(|range| {
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
        self.by_parent(|range| {
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
        self.by_parent(|range| self.counted_in(&range))
    }

    fn counted_in(&self, range: &Range<usize>) -> Vec<u32> {
        let mut counts = vec![0_u32; range.len()];
        for (parent, row) in self.rows_of(range) {
            counts[parent] = counts[parent].saturating_add(u32::from(self.is_whole(row)));
        }
        counts
    }

    fn mode(&self) -> Vec<T> {
        self.by_parent(|range| self.mode_in(&range))
    }

    fn mode_in(&self, range: &Range<usize>) -> Vec<T> {
        let columns = self.columns;
        // Rows grouped by parent: offsets first, then rows.
        let mut ends = self.counted_in(range);
        let mut end = 0;
        for count in &mut ends {
            end += *count;
            *count = end - *count;
        }
        let mut rows = vec![self.null(); end as usize * columns];
        for (parent, row) in self.rows_of(range).filter(|(_, row)| self.is_whole(row)) {
            let start = ends[parent] as usize * columns;
            rows[start..start + columns].copy_from_slice(row);
            ends[parent] += 1;
        }
        let mut values = vec![self.null(); range.len() * columns];
        let mut start = 0;
        for (slot, end) in values.chunks_exact_mut(columns).zip(ends) {
            let rows = &mut rows[start * columns..end as usize * columns];
            start = end as usize;
            if columns == 1 {
                rows.sort_unstable_by(|a, b| a.order(*b));
                let same = |a: &T, b: &T| a.is_same(*b);
                if let Some(value) = longest(rows.chunk_by(same)).first() {
                    slot.fill(*value);
                }
                continue;
            }
            let mut rows: Vec<&[T]> = rows.chunks_exact(columns).collect();
            rows.sort_unstable_by(|a, b| {
                let pairs = a.iter().zip(*b);
                let mut orders = pairs.map(|(a, b)| a.order(*b));
                orders
                    .find(|order| order.is_ne())
                    .unwrap_or(core::cmp::Ordering::Equal)
            });
            let same = |a: &&[T], b: &&[T]| a.iter().zip(*b).all(|(a, b)| a.is_same(*b));
            if let Some(row) = longest(rows.chunk_by(same)).first() {
                slot.copy_from_slice(row);
            }
        }
        values
    }

    /// Computes the values of all parents on all cores.
    fn by_parent<V: Send>(&self, make: impl Fn(Range<usize>) -> Vec<V> + Sync) -> Vec<V> {
        by_parent(self.parent.len(), self.count, &make)
    }

    /// Returns the rows whose parents are in a range, each with the index of its parent in the
    /// range.
    fn rows_of(&self, range: &Range<usize>) -> impl Iterator<Item = (usize, &[T])> {
        let (start, len) = (range.start, range.len());
        let rows = self.rows();
        let rows = rows.map(move |(parent, row)| (parent.wrapping_sub(start), row));
        rows.filter(move |(parent, _)| *parent < len)
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
