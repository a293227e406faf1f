//! The points of a cell that are in a box, in bulk.

use zvf_format::numeric::{Element, Elements, Kind, KindVisitor, NumericRows, Value};

use super::{Bbox, MAX_AXES};

/// Rows that are tested between two looks at the result: little enough for the
/// nearest cache, enough for the inner loop to be all that counts.
const BLOCK: usize = 256;

/// A type that positions are stored as: f32 or f64. No other crate can add
/// one.
pub trait Coordinate: Element + PartialOrd + Default + sealed::Sealed {}

impl Coordinate for f32 {}
impl Coordinate for f64 {}

mod sealed {
    pub trait Sealed: Sized {
        /// The least value that is not below `bound`.
        fn at_least(bound: f64) -> Self;
        /// The greatest value that is not above `bound`.
        fn at_most(bound: f64) -> Self;
    }
}

impl sealed::Sealed for f64 {
    fn at_least(bound: f64) -> Self {
        bound
    }

    fn at_most(bound: f64) -> Self {
        bound
    }
}

/// Comparing with the bounds rounded inwards is comparing with the bounds, and
/// twice as many f32 as f64 fit into a vector.
impl sealed::Sealed for f32 {
    fn at_least(bound: f64) -> Self {
        let near = nearest(bound);
        if f64::from(near) < bound {
            near.next_up()
        } else {
            near
        }
    }

    fn at_most(bound: f64) -> Self {
        let near = nearest(bound);
        if f64::from(near) > bound {
            near.next_down()
        } else {
            near
        }
    }
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "std rounds an f64 to an f32 in no other way"
)]
fn nearest(value: f64) -> f32 {
    value as f32
}

impl Bbox {
    /// Appends the numbers of those rows that are in the box, in order.
    /// `values` are the axes of one row beside each other.
    ///
    /// ```
    /// use zvf_query::geometry::Bbox;
    ///
    /// let bbox = Bbox::parse("0,0,1,1")?;
    /// let mut selected = Vec::new();
    /// bbox.select_values(&[0.5_f32, 0.5, 2.0, 0.5, 1.0, 0.0], &mut selected)?;
    /// assert_eq!(selected, [0, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`SelectRowsError::Values`] when the last row is incomplete; `selected`
    /// is left alone then.
    pub fn select_values<T: Coordinate>(
        &self,
        values: &[T],
        selected: &mut Vec<usize>,
    ) -> Result<(), SelectRowsError> {
        self.check_whole(values.len())?;
        self.scan(values, 0, selected);
        Ok(())
    }

    /// As [`select_values`](Self::select_values), of values in their bytes.
    ///
    /// # Errors
    ///
    /// [`SelectRowsError::Values`] when the last row is incomplete; `selected`
    /// is left alone then.
    pub fn select_elements<T: Coordinate>(
        &self,
        elements: Elements<'_, T>,
        selected: &mut Vec<usize>,
    ) -> Result<(), SelectRowsError> {
        self.check_whole(elements.len())?;
        self.scan_blocks(elements.iter(), selected);
        Ok(())
    }

    /// As [`select_values`](Self::select_values), of a cell of positions. Those
    /// of types other than float32 and float64 are promoted to float64 first,
    /// which rounds integers beyond 2⁵³.
    ///
    /// ```
    /// use zvf_format::numeric::{ByteOrder, Dtype, NumericRows, encode};
    /// use zvf_query::geometry::Bbox;
    ///
    /// let cell = encode(&[0.5_f32, 0.5, 2.0, 0.5], ByteOrder::Little);
    /// let rows = NumericRows::parse(&cell, Dtype::parse("float32")?, 2.try_into()?)?;
    /// let mut selected = Vec::new();
    /// Bbox::parse("0,0,1,1")?.select_rows(rows, &mut selected)?;
    /// assert_eq!(selected, [0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`SelectRowsError`] when the rows are no positions of the box's axes;
    /// `selected` is left alone then.
    pub fn select_rows(
        &self,
        rows: NumericRows<'_>,
        selected: &mut Vec<usize>,
    ) -> Result<(), SelectRowsError> {
        let columns = rows.columns().get();
        if usize::try_from(columns) != Ok(self.axes()) {
            let axes = self.axes();
            return Err(SelectRowsError::Columns { columns, axes });
        }
        match rows.dtype().kind() {
            kind @ (Kind::Bool | Kind::Complex64 | Kind::Complex128) => {
                return Err(SelectRowsError::Kind(kind));
            }
            Kind::Float32 => self.scan_elements::<f32>(rows, selected),
            Kind::Float64 => self.scan_elements::<f64>(rows, selected),
            kind => kind.visit(Promote {
                bbox: self,
                rows,
                selected,
            }),
        }
        Ok(())
    }

    fn check_whole(&self, values: usize) -> Result<(), SelectRowsError> {
        let axes = self.axes();
        if values.is_multiple_of(axes) {
            Ok(())
        } else {
            Err(SelectRowsError::Values { values, axes })
        }
    }

    fn scan_elements<T: Coordinate>(&self, rows: NumericRows<'_>, selected: &mut Vec<usize>) {
        if let Some(elements) = rows.elements::<T>() {
            self.scan_blocks(elements.iter(), selected);
        }
    }

    /// Copies a block at a time to where it can be tested.
    fn scan_blocks<T: Coordinate>(
        &self,
        mut values: impl ExactSizeIterator<Item = T>,
        selected: &mut Vec<usize>,
    ) {
        let mut block = [T::default(); BLOCK * MAX_AXES];
        let mut first = 0;
        while values.len() > 0 {
            let len = values.len().min(BLOCK * self.axes());
            let block = block.get_mut(..len).unwrap_or_default();
            for (slot, value) in block.iter_mut().zip(&mut values) {
                *slot = value;
            }
            self.scan(block, first, selected);
            first += BLOCK;
        }
    }

    fn scan<T: Coordinate>(&self, values: &[T], first: usize, selected: &mut Vec<usize>) {
        // A number of axes the compiler knows makes the inner loop one of vectors.
        match self.axes() {
            1 => scan::<T, 1>(self, values, first, selected),
            2 => scan::<T, 2>(self, values, first, selected),
            3 => scan::<T, 3>(self, values, first, selected),
            4 => scan::<T, 4>(self, values, first, selected),
            5 => scan::<T, 5>(self, values, first, selected),
            6 => scan::<T, 6>(self, values, first, selected),
            7 => scan::<T, 7>(self, values, first, selected),
            _ => scan::<T, 8>(self, values, first, selected),
        }
    }
}

fn scan<T: Coordinate, const D: usize>(
    bbox: &Bbox,
    values: &[T],
    first: usize,
    selected: &mut Vec<usize>,
) {
    let (mut lo, mut hi) = ([T::default(); D], [T::default(); D]);
    let bounds = bbox.lo().iter().zip(bbox.hi());
    for ((low, high), (lo, hi)) in lo.iter_mut().zip(&mut hi).zip(bounds) {
        (*low, *high) = (T::at_least(*lo), T::at_most(*hi));
    }
    let (rows, _) = values.as_chunks::<D>();
    let mut inside = [false; BLOCK];
    for (rows, first) in rows.chunks(BLOCK).zip((first..).step_by(BLOCK)) {
        for (row, inside) in rows.iter().zip(&mut inside) {
            *inside = is_between(row, &lo, &hi);
        }
        let found = inside.iter().take(rows.len()).zip(first..);
        selected.extend(found.filter_map(|(inside, row)| inside.then_some(row)));
    }
}

/// Without a branch, so that rows are tested side by side.
#[expect(clippy::needless_bitwise_bool, reason = "a lazy operator is a branch")]
fn is_between<T: Coordinate, const D: usize>(row: &[T; D], lo: &[T; D], hi: &[T; D]) -> bool {
    let axes = row.iter().zip(lo.iter().zip(hi));
    axes.fold(true, |inside, (value, (lo, hi))| {
        inside & (lo <= value) & (value <= hi)
    })
}

/// Tests rows of any number as f64.
struct Promote<'a, 'b> {
    bbox: &'a Bbox,
    rows: NumericRows<'a>,
    selected: &'b mut Vec<usize>,
}

impl KindVisitor for Promote<'_, '_> {
    type Output = ();

    fn visit<T: Element>(self) {
        if let Some(elements) = self.rows.elements::<T>() {
            let values = elements.iter().map(|element| promoted(element.value()));
            self.bbox.scan_blocks(values, self.selected);
        }
    }
}

#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "std rounds an integer to an f64 in no other way"
)]
fn promoted(value: Value) -> f64 {
    match value {
        Value::Int(value) => value as f64,
        Value::UInt(value) => value as f64,
        Value::Float(value) => value,
        Value::Bool(_) | Value::Complex { .. } => f64::NAN,
    }
}

/// Why rows are no positions to test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectRowsError {
    /// Not a whole number of rows.
    #[error("{values} values are no rows of {axes} axes")]
    Values {
        /// Values that were given.
        values: usize,
        /// Axes of the box.
        axes: usize,
    },
    /// The rows have another number of columns than the box has axes.
    #[error("rows of {columns} columns are no positions in a box of {axes} axes")]
    Columns {
        /// Values in a row.
        columns: u32,
        /// Axes of the box.
        axes: usize,
    },
    /// Values of this kind are no coordinates.
    #[error("values of kind {} are no coordinates", .0.name())]
    Kind(Kind),
}
