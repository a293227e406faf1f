//! The positions of a batch as 32-bit floats.

use std::{borrow::Cow, ops::Range};

use zvf::QueryResult;
use zvf_format::numeric::NumericRows;

use super::attributes::narrow;

/// Positions of a batch, rounded to 32-bit floats.
pub(crate) struct FloatPositions<'a> {
    view: NumericRows<'a>,
    /// The coordinates; `None` if they are of another type.
    floats: Option<&'a [f32]>,
    /// Number of coordinates in a row.
    width: usize,
    /// Number of coordinates of a row that are used.
    rank: usize,
}

impl<'a> FloatPositions<'a> {
    /// Returns the first `rank` coordinates of the positions of a batch; `None` if they have fewer.
    pub(crate) fn of(batch: &'a QueryResult, rank: usize) -> Option<Self> {
        let view = batch.positions.view()?;
        let width = usize::try_from(view.columns().get()).ok()?;
        (rank <= width).then(|| Self {
            view,
            floats: batch.positions.as_slice(),
            width,
            rank,
        })
    }

    /// Returns the number of positions.
    pub(crate) fn len(&self) -> usize {
        self.view.rows()
    }

    /// Returns the coordinates of a position; `None` if one is not finite.
    pub(crate) fn row(&self, row: usize) -> Option<Cow<'a, [f32]>> {
        self.rows(row..row.checked_add(1)?)
    }

    /// Returns the coordinates of consecutive positions; `None` if one is not finite.
    pub(crate) fn rows(&self, rows: Range<usize>) -> Option<Cow<'a, [f32]>> {
        let coordinates = match self.floats.filter(|_| self.rank == self.width) {
            Some(floats) => {
                let start = rows.start.checked_mul(self.width)?;
                Cow::Borrowed(floats.get(start..rows.end.checked_mul(self.width)?)?)
            }
            None => {
                let axes = u32::try_from(self.rank).ok()?;
                let row = |row| (0..axes).map(move |axis| self.view.value(row, axis));
                let coordinates = rows.flat_map(row);
                let rounded = coordinates.map(|along| Some(narrow(along?.to_f64())));
                Cow::Owned(rounded.collect::<Option<Vec<f32>>>()?)
            }
        };
        let is_finite = coordinates.iter().all(|along| along.is_finite());
        is_finite.then_some(coordinates)
    }

    /// Iterates over the positions whose coordinates are finite.
    pub(crate) fn finite(&self) -> impl Iterator<Item = Cow<'a, [f32]>> {
        (0..self.len()).filter_map(|row| self.row(row))
    }
}

#[cfg(test)]
mod tests {
    use zvf::NumericColumn;

    use super::*;

    #[test]
    fn positions_are_rounded_and_checked() {
        let mut batch = QueryResult::default();
        batch.positions = NumericColumn::float32(3, [1.0, 2.0, 3.0, 4.0, f32::NAN, 6.0]);
        let positions = FloatPositions::of(&batch, 3).unwrap();
        assert_eq!(positions.len(), 2);
        assert_eq!(positions.row(0).as_deref(), Some(&[1.0, 2.0, 3.0][..]));
        assert!(positions.row(1).is_none() && positions.row(2).is_none());
        assert_eq!(positions.rows(0..1).as_deref(), Some(&[1.0, 2.0, 3.0][..]));
        assert!(positions.rows(0..2).is_none() && positions.rows(0..3).is_none());
        assert_eq!(positions.finite().count(), 1);
        let flat = FloatPositions::of(&batch, 1).unwrap();
        assert_eq!(flat.rows(0..2).as_deref(), Some(&[1.0, 4.0][..]));
        assert!(FloatPositions::of(&batch, 4).is_none());
        batch.positions = NumericColumn::float64(2, [0.1, 1e300]);
        let wide = FloatPositions::of(&batch, 1).unwrap();
        assert_eq!(wide.row(0).as_deref(), Some(&[0.1_f32][..]));
        assert!(FloatPositions::of(&batch, 2).is_some_and(|both| both.row(0).is_none()));
    }
}
