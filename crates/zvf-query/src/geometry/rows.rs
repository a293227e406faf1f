//! Selection of the rows of a cell inside a box, in bulk.
//!
//! Rows are tested in blocks without branches, so that the compiler vectorizes the inner loop.

use zvf_format::numeric::{Element, Elements, Kind, KindVisitor, NumericRows, Value};

use super::{Bbox, MAX_AXES};

/// Rows tested before the result is read: few enough for the L1 cache, enough to amortize the
/// outer loop.
const BLOCK: usize = 256;

/// An element type of positions: f32 or f64. The trait is sealed.
pub trait Coordinate: Element + PartialOrd + Default + sealed::Sealed {}

impl Coordinate for f32 {}
impl Coordinate for f64 {}

mod sealed {
    pub trait Sealed: Sized {
        /// Returns the least value that is not below `bound`.
        fn at_least(bound: f64) -> Self;
        /// Returns the greatest value that is not above `bound`.
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

/// Compares f32 values with bounds rounded inwards to f32, which is equivalent to comparing with
/// the f64 bounds; twice as many f32 as f64 fit into a vector register.
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
    reason = "a cast is the only conversion in std that rounds an f64 to an f32"
)]
fn nearest(value: f64) -> f32 {
    value as f32
}

impl Bbox {
    /// Appends the indices of the rows inside the box to `selected`, in ascending order.
    /// `values` holds the rows one after the other.
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
    /// Returns [`SelectRowsError::Values`] if the last row is incomplete; `selected` is unchanged
    /// then.
    pub fn select_values<T: Coordinate>(
        &self,
        values: &[T],
        selected: &mut Vec<usize>,
    ) -> Result<(), SelectRowsError> {
        self.check_whole(values.len())?;
        self.scan(values, 0, selected);
        Ok(())
    }

    /// Like [`select_values`](Self::select_values), for values in their encoded bytes.
    ///
    /// # Errors
    ///
    /// Returns [`SelectRowsError::Values`] if the last row is incomplete; `selected` is unchanged
    /// then.
    pub fn select_elements<T: Coordinate>(
        &self,
        elements: Elements<'_, T>,
        selected: &mut Vec<usize>,
    ) -> Result<(), SelectRowsError> {
        self.check_whole(elements.len())?;
        self.scan_blocks(elements.iter(), selected);
        Ok(())
    }

    /// Like [`select_values`](Self::select_values), for a cell of positions. Types other than
    /// float32 and float64 are promoted to float64 first, which rounds integers beyond 2⁵³.
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
    /// Returns [`SelectRowsError`] if the rows are not positions with the box's number of axes;
    /// `selected` is unchanged then.
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

    /// Copies one block at a time into an array and tests it there.
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
        // The compiler vectorizes the inner loop only if it knows the number of axes.
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

/// Tests a row without branches, so that several rows are tested in one vector.
#[expect(
    clippy::needless_bitwise_bool,
    reason = "a lazy operator would be a branch"
)]
fn is_between<T: Coordinate, const D: usize>(row: &[T; D], lo: &[T; D], hi: &[T; D]) -> bool {
    let axes = row.iter().zip(lo.iter().zip(hi));
    axes.fold(true, |inside, (value, (lo, hi))| {
        inside & (lo <= value) & (value <= hi)
    })
}

/// Tests rows of any numeric type after promotion to f64.
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
    reason = "a cast is the only conversion in std that rounds an integer to an f64"
)]
fn promoted(value: Value) -> f64 {
    match value {
        Value::Int(value) => value as f64,
        Value::UInt(value) => value as f64,
        Value::Float(value) => value,
        Value::Bool(_) | Value::Complex { .. } => f64::NAN,
    }
}

/// Error of rows that cannot be tested against a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectRowsError {
    /// The number of values is not a multiple of the number of axes.
    #[error("{values} values do not divide into rows of {axes} axes")]
    Values {
        /// Number of values.
        values: usize,
        /// Number of axes of the box.
        axes: usize,
    },
    /// The number of columns differs from the box's number of axes.
    #[error("rows have {columns} columns, but the box has {axes} axes")]
    Columns {
        /// Number of values per row.
        columns: u32,
        /// Number of axes of the box.
        axes: usize,
    },
    /// Values of this kind cannot be coordinates.
    #[error("values of kind {} cannot be coordinates", .0.name())]
    Kind(Kind),
}
