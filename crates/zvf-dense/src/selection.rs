//! Which elements of an array are meant: a box, with a step along each axis.

use core::ops::Range;

/// Some elements along one axis: `count` of them, `step` apart, from `start` on.
///
/// The last of them is below 2^64 by construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AxisRange {
    start: u64,
    count: u64,
    step: u64,
}

impl AxisRange {
    /// Every `step`-th element from `start` up to but not including `stop`;
    /// none when `stop` is not above `start`.
    ///
    /// # Errors
    ///
    /// [`SelectionError::Step`] when the step is 0.
    pub fn new(start: u64, stop: u64, step: u64) -> Result<Self, SelectionError> {
        let length = stop.saturating_sub(start);
        let count = length.checked_sub(1).map_or(Some(0), |last| {
            // At most the length, so it does not wrap.
            last.checked_div(step).map(|whole| whole.saturating_add(1))
        });
        // Without a step nothing divides, but of nothing.
        match count.filter(|_| step > 0) {
            Some(count) => Ok(Self { start, count, step }),
            None => Err(SelectionError::Step),
        }
    }

    /// All elements of an axis of this extent.
    pub fn whole(extent: u64) -> Self {
        Self {
            start: 0,
            count: extent,
            step: 1,
        }
    }

    /// The first element.
    pub fn start(self) -> u64 {
        self.start
    }

    /// How many elements there are.
    pub fn count(self) -> u64 {
        self.count
    }

    /// How far apart they are, at least 1.
    pub fn step(self) -> u64 {
        self.step
    }

    /// Where element number `at` of these is on the axis.
    pub fn position(self, at: u64) -> u64 {
        // For those there are it fits: `new` has counted them below `stop`.
        self.start.saturating_add(at.saturating_mul(self.step))
    }

    /// The last element, when there is one.
    pub fn last(self) -> Option<u64> {
        let at = self.count.checked_sub(1)?;
        Some(self.position(at))
    }

    /// `count` elements from `at` on of these, as elements of the same axis.
    #[must_use]
    pub fn portion(self, at: Range<u64>) -> Self {
        let end = at.end.min(self.count);
        Self {
            start: self.position(at.start),
            count: end.saturating_sub(at.start),
            step: self.step,
        }
    }
}

/// A box of an array, with a step along each axis.
///
/// ```
/// use zvf_dense::Selection;
///
/// let every_other_row = Selection::new(&[0, 2], &[10, 5], Some(&[2, 1]))?;
/// assert_eq!(every_other_row.shape(), [5, 3]);
/// assert!(every_other_row.check(&[10, 4]).is_err());
/// # Ok::<(), zvf_dense::SelectionError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selection {
    axes: Vec<AxisRange>,
}

impl Selection {
    /// From `starts` up to but not including `stops`, every `steps`-th.
    ///
    /// # Errors
    ///
    /// [`SelectionError`] when these are of different lengths, or a step is 0.
    pub fn new(
        starts: &[u64],
        stops: &[u64],
        steps: Option<&[u64]>,
    ) -> Result<Self, SelectionError> {
        let rank = starts.len();
        for other in [stops.len(), steps.map_or(rank, <[u64]>::len)] {
            if other != rank {
                return Err(SelectionError::Rank {
                    array: rank,
                    selection: other,
                });
            }
        }
        let mut axes = Vec::with_capacity(rank);
        for (axis, (&start, &stop)) in starts.iter().zip(stops).enumerate() {
            let step = steps.and_then(|steps| steps.get(axis)).copied();
            axes.push(AxisRange::new(start, stop, step.unwrap_or(1))?);
        }
        Ok(Self { axes })
    }

    /// All of an array of this shape.
    pub fn whole(shape: &[u64]) -> Self {
        shape.iter().copied().map(AxisRange::whole).collect()
    }

    /// What is selected along each axis.
    pub fn axes(&self) -> &[AxisRange] {
        &self.axes
    }

    /// The shape of what is selected.
    pub fn shape(&self) -> Vec<u64> {
        self.axes.iter().map(|axis| axis.count).collect()
    }

    /// Elements selected; `None` past 64 bits.
    pub fn element_count(&self) -> Option<u64> {
        product(self.axes.iter().map(|axis| axis.count))
    }

    /// Bytes of what is selected, of elements of `size` bytes; `None` past 64 bits.
    pub fn byte_len(&self, size: u64) -> Option<u64> {
        product(self.axes.iter().map(|axis| axis.count).chain([size]))
    }

    /// Whether it is within an array of this shape.
    ///
    /// # Errors
    ///
    /// [`SelectionError`] names the first axis on which it is not.
    pub fn check(&self, shape: &[u64]) -> Result<(), SelectionError> {
        if self.axes.len() != shape.len() {
            return Err(SelectionError::Rank {
                array: shape.len(),
                selection: self.axes.len(),
            });
        }
        for (axis, (range, &extent)) in self.axes.iter().zip(shape).enumerate() {
            if range.last().is_some_and(|last| last >= extent) || range.start > extent {
                return Err(SelectionError::Outside {
                    axis,
                    last: range.last().unwrap_or(range.start),
                    extent,
                });
            }
        }
        Ok(())
    }
}

impl FromIterator<AxisRange> for Selection {
    fn from_iter<T: IntoIterator<Item = AxisRange>>(axes: T) -> Self {
        Self {
            axes: axes.into_iter().collect(),
        }
    }
}

/// The product, of which a 0 makes 0 whatever the others are.
pub(crate) fn product(extents: impl Iterator<Item = u64> + Clone) -> Option<u64> {
    if extents.clone().any(|extent| extent == 0) {
        return Some(0);
    }
    let mut extents = extents;
    extents.try_fold(1, u64::checked_mul)
}

/// Why a selection selects nothing that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// Another number of axes than the array has.
    #[error("{selection} axes are selected of {array}")]
    Rank {
        /// Axes of the array.
        array: usize,
        /// Axes of the selection.
        selection: usize,
    },
    /// A step of 0.
    #[error("a step is at least 1")]
    Step,
    /// Elements past the end of an axis.
    #[error("element {last} of axis {axis} is selected, which has {extent}")]
    Outside {
        /// The first such axis.
        axis: usize,
        /// The last element selected.
        last: u64,
        /// Elements of the axis.
        extent: u64,
    },
}
