//! A box: bounds on each axis, both included.

use super::{AxesError, Mode, Position, Primitive, primitive::fan, touch};

/// A box, by its lowest and highest corner; both belong to it.
///
/// Bounds may be infinite. A box whose bounds are NaN or the wrong way round
/// [is empty](Self::is_empty) and selects nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bbox {
    lo: Position,
    hi: Position,
}

impl Bbox {
    /// The box between two corners.
    ///
    /// # Errors
    ///
    /// [`BboxError`] when the corners are no positions or of different axes.
    pub fn new(lo: &[f64], hi: &[f64]) -> Result<Self, BboxError> {
        if lo.len() != hi.len() {
            return Err(BboxError::AxesDiffer {
                lo: lo.len(),
                hi: hi.len(),
            });
        }
        Ok(Self {
            lo: Position::new(lo)?,
            hi: Position::new(hi)?,
        })
    }

    /// Reads the lower bound of each axis and then the upper ones, separated
    /// by commas; `inf` and `-inf` are bounds as well.
    ///
    /// ```
    /// use zvf_query::geometry::{Bbox, BboxError};
    ///
    /// let slab = Bbox::parse("-inf, 0, inf, 2.5")?;
    /// assert_eq!(slab.hi()[1], 2.5);
    /// assert_eq!(Bbox::parse("0,1,2"), Err(BboxError::OddCount(3)));
    /// assert_eq!(Bbox::parse("0,x"), Err(BboxError::NotANumber(1)));
    /// # Ok::<(), BboxError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BboxError`] says what is no box.
    pub fn parse(text: &str) -> Result<Self, BboxError> {
        let numbers = text.split(',').enumerate().map(|(at, number)| {
            let number = number.trim().parse::<f64>();
            number.map_err(|_| BboxError::NotANumber(at))
        });
        let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
        if numbers.len() % 2 == 1 {
            return Err(BboxError::OddCount(numbers.len()));
        }
        let (lo, hi) = numbers.split_at(numbers.len() / 2);
        Self::new(lo, hi)
    }

    /// The lowest corner.
    pub fn lo(&self) -> &[f64] {
        &self.lo
    }

    /// The highest corner.
    pub fn hi(&self) -> &[f64] {
        &self.hi
    }

    /// Number of axes.
    pub fn axes(&self) -> usize {
        self.lo.len()
    }

    /// Whether nothing can be in it: a bound is NaN, or the bounds of an axis
    /// are the wrong way round.
    pub fn is_empty(&self) -> bool {
        let mut bounds = self.lo.iter().zip(self.hi());
        !bounds.all(|(lo, hi)| lo <= hi)
    }

    /// Whether some of the geometry is in the box. Exact; allocates nothing.
    pub fn touches(&self, primitive: Primitive<'_>) -> bool {
        if !self.may_hold(primitive) {
            return false;
        }
        match primitive {
            Primitive::Point(point) => self.has(point),
            Primitive::Segment(ends) => touch::segment(self, ends),
            Primitive::Triangle(corners) => touch::triangle(self, corners),
            Primitive::Polygon(corners) => fan(corners.len()).any(|triangle| {
                let corners = triangle.map(|at| corners.get(at).copied().unwrap_or_default());
                touch::triangle(self, corners)
            }),
        }
    }

    /// Whether all of the geometry is in the box, which is when all corners
    /// are. Exact; allocates nothing.
    pub fn contains(&self, primitive: Primitive<'_>) -> bool {
        self.may_hold(primitive) && primitive.all(|corner| self.has(corner))
    }

    /// Whether this mode selects some of the geometry; clipping leaves
    /// something of whatever touches.
    pub fn selects(&self, mode: Mode, primitive: Primitive<'_>) -> bool {
        match mode {
            Mode::Touch | Mode::Clip => self.touches(primitive),
            Mode::Within => self.contains(primitive),
        }
    }

    /// Whether the boxes have a point in common; those of an index prune so.
    pub fn meets(&self, other: &Self) -> bool {
        let bounds = self.lo.iter().zip(self.hi());
        let others = other.lo.iter().zip(other.hi());
        self.axes() == other.axes()
            && !self.is_empty()
            && !other.is_empty()
            && bounds
                .zip(others)
                .all(|((lo, hi), (other_lo, other_hi))| lo <= other_hi && other_lo <= hi)
    }

    fn may_hold(&self, primitive: Primitive<'_>) -> bool {
        !self.is_empty()
            && primitive.all(|corner| corner.len() == self.axes())
            && primitive.is_spanned()
    }

    /// Whether a position with the box's axes is in it.
    pub(super) fn has(&self, point: &[f64]) -> bool {
        let bounds = self.lo.iter().zip(self.hi());
        let mut axes = bounds.zip(point);
        axes.all(|((lo, hi), value)| lo <= value && value <= hi)
    }
}

/// Why numbers are no box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BboxError {
    /// No or too many axes.
    #[error(transparent)]
    Axes(#[from] AxesError),
    /// The corners have different numbers of axes.
    #[error("a corner of {lo} axes and one of {hi} make no box")]
    AxesDiffer {
        /// Axes of the lowest corner.
        lo: usize,
        /// Axes of the highest corner.
        hi: usize,
    },
    /// An axis lacks its upper bound.
    #[error("a box has two bounds an axis, {0} numbers leave one alone")]
    OddCount(usize),
    /// This value, counted from 0, is no number.
    #[error("value {0} of the box is no number")]
    NotANumber(usize),
}
