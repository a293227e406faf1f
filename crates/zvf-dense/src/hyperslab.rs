//! Selections of array elements: a box with a step along each axis.

use core::ops::Range;

/// A range of elements along one axis: `count` elements from `start`, `step` apart.
///
/// The last element is below 2^64 by construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AxisRange {
    start: u64,
    count: u64,
    step: u64,
}

impl AxisRange {
    /// Selects every `step`-th element from `start` up to, but not including, `stop`; no element if
    /// `stop` is not above `start`.
    ///
    /// # Errors
    ///
    /// [`HyperslabError::Step`] if the step is 0.
    pub fn new(start: u64, stop: u64, step: u64) -> Result<Self, HyperslabError> {
        let length = stop.saturating_sub(start);
        let count = length.checked_sub(1).map_or(Some(0), |last| {
            // At most the length, so the addition does not wrap.
            last.checked_div(step).map(|whole| whole.saturating_add(1))
        });
        // A step of 0 is an error even for an empty range.
        match count.filter(|_| step > 0) {
            Some(count) => Ok(Self { start, count, step }),
            None => Err(HyperslabError::Step),
        }
    }

    /// Selects all elements of an axis.
    pub fn whole(extent: u64) -> Self {
        Self {
            start: 0,
            count: extent,
            step: 1,
        }
    }

    /// Returns the first element.
    pub fn start(self) -> u64 {
        self.start
    }

    /// Returns the number of elements.
    pub fn count(self) -> u64 {
        self.count
    }

    /// Returns the distance between elements, at least 1.
    pub fn step(self) -> u64 {
        self.step
    }

    /// Returns the position of the element `at` on the axis.
    pub fn position(self, at: u64) -> u64 {
        // Does not saturate for `at < count`: `new` has counted the elements below `stop`.
        self.start.saturating_add(at.saturating_mul(self.step))
    }

    /// Returns the last element, if there is one.
    pub fn last(self) -> Option<u64> {
        let at = self.count.checked_sub(1)?;
        Some(self.position(at))
    }

    /// Returns `count` elements of this range, starting at its element `at`.
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
/// use zvf_dense::Hyperslab;
///
/// let every_other_row = Hyperslab::new(&[0, 2], &[10, 5], Some(&[2, 1]))?;
/// assert_eq!(every_other_row.shape(), [5, 3]);
/// assert!(every_other_row.check(&[10, 4]).is_err());
/// # Ok::<(), zvf_dense::HyperslabError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Hyperslab {
    axes: Vec<AxisRange>,
}

impl Hyperslab {
    /// Selects from `starts` up to, but not including, `stops`, every `steps`-th element.
    ///
    /// # Errors
    ///
    /// [`HyperslabError`] if the lengths differ or a step is 0.
    pub fn new(
        starts: &[u64],
        stops: &[u64],
        steps: Option<&[u64]>,
    ) -> Result<Self, HyperslabError> {
        let rank = starts.len();
        for other in [stops.len(), steps.map_or(rank, <[u64]>::len)] {
            if other != rank {
                return Err(HyperslabError::Rank {
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

    /// Selects all elements of an array.
    pub fn whole(shape: &[u64]) -> Self {
        shape.iter().copied().map(AxisRange::whole).collect()
    }

    /// Returns the range along each axis.
    pub fn axes(&self) -> &[AxisRange] {
        &self.axes
    }

    /// Returns the shape of the selection.
    pub fn shape(&self) -> Vec<u64> {
        self.axes.iter().map(|axis| axis.count).collect()
    }

    /// Returns the number of elements; `None` if it exceeds 64 bits.
    pub fn element_count(&self) -> Option<u64> {
        product(self.axes.iter().map(|axis| axis.count))
    }

    /// Returns the size in bytes for elements of `size` bytes; `None` if it exceeds 64 bits.
    pub fn byte_len(&self, size: u64) -> Option<u64> {
        product(self.axes.iter().map(|axis| axis.count).chain([size]))
    }

    /// Checks that the selection lies inside an array of this shape.
    ///
    /// # Errors
    ///
    /// [`HyperslabError`] with the first axis along which it does not.
    pub fn check(&self, shape: &[u64]) -> Result<(), HyperslabError> {
        if self.axes.len() != shape.len() {
            return Err(HyperslabError::Rank {
                array: shape.len(),
                selection: self.axes.len(),
            });
        }
        for (axis, (range, &extent)) in self.axes.iter().zip(shape).enumerate() {
            if range.last().is_some_and(|last| last >= extent) || range.start > extent {
                return Err(HyperslabError::Outside {
                    axis,
                    last: range.last().unwrap_or(range.start),
                    extent,
                });
            }
        }
        Ok(())
    }
}

impl FromIterator<AxisRange> for Hyperslab {
    fn from_iter<T: IntoIterator<Item = AxisRange>>(axes: T) -> Self {
        Self {
            axes: axes.into_iter().collect(),
        }
    }
}

/// Multiplies extents. A zero gives zero even if the other factors overflow.
pub(crate) fn product(extents: impl Iterator<Item = u64> + Clone) -> Option<u64> {
    if extents.clone().any(|extent| extent == 0) {
        return Some(0);
    }
    let mut extents = extents;
    extents.try_fold(1, u64::checked_mul)
}

/// An error in a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HyperslabError {
    /// The number of axes differs from that of the array.
    #[error("the selection has {selection} axes, but the array has {array}")]
    Rank {
        /// Axes of the array.
        array: usize,
        /// Axes of the selection.
        selection: usize,
    },
    /// A step of 0.
    #[error("a step must be at least 1")]
    Step,
    /// The selection reaches past the end of an axis.
    #[error("the selection reaches element {last} of axis {axis}, which has {extent} elements")]
    Outside {
        /// The first axis with this fault.
        axis: usize,
        /// The last element selected.
        last: u64,
        /// Extent of the axis.
        extent: u64,
    },
}
