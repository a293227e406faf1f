//! Reductions into groups and windows of positions, over the values that a filter keeps.

use core::ops::Range;

use super::{Cell, Number, Reduction, Scalar, Statistics, Task, cell_count, with_numbers};
use crate::{DenseArray, DenseError, hyperslab::AxisRange};

/// The results that the positions along an axis belong to.
#[derive(Clone, Debug)]
pub(crate) enum AxisSlots {
    /// The axis is reduced.
    Reduced,
    /// Each position has its own result; the number of positions.
    Kept(u64),
    /// Each position has the result of its group.
    Groups { of: Vec<u64>, count: u64 },
    /// A position has the results of all windows that contain it. At most one axis has windows.
    Windows(Windows),
}

/// Windows of `size` positions, `step` apart. The first one begins `before` positions before the axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    pub(crate) extent: u64,
    pub(crate) size: u64,
    pub(crate) step: u64,
    pub(crate) before: u64,
    pub(crate) count: u64,
}

impl Windows {
    /// Returns the windows that contain a position.
    fn containing(&self, at: u64) -> Range<u64> {
        let at = at.saturating_add(self.before);
        let step = self.step.max(1);
        let first = at
            .saturating_add(1)
            .saturating_sub(self.size)
            .div_ceil(step);
        let end = (at / step).saturating_add(1).min(self.count);
        first.min(end)..end
    }

    /// Returns the number of positions of a window that are outside the axis.
    fn outside(&self, window: u64) -> u64 {
        let start = window.saturating_mul(self.step);
        let end = start.saturating_add(self.size);
        let axis_end = self.before.saturating_add(self.extent);
        let inside = end.min(axis_end).saturating_sub(start.max(self.before));
        self.size.saturating_sub(inside)
    }
}

impl AxisSlots {
    /// Returns the number of results along the axis; `None` if it is reduced.
    fn count(&self) -> Option<u64> {
        match self {
            Self::Reduced => None,
            Self::Kept(count) | Self::Groups { count, .. } => Some(*count),
            Self::Windows(windows) => Some(windows.count),
        }
    }
}

/// Which values are reduced, and what windows with few of them have.
#[derive(Clone, Copy)]
pub(crate) struct SlotOptions<'a> {
    /// Returns whether a value is reduced.
    pub(crate) keeps: Option<&'a dyn Fn(f64) -> bool>,
    /// The value of positions of windows that are outside the axis, if these are reduced as well.
    pub(crate) padding: Option<Scalar>,
    /// Windows with fewer values have NaN.
    pub(crate) min_count: u64,
}

/// Results over slots, in row-major order.
#[derive(Clone, Debug)]
pub(crate) struct SlotResults {
    pub(crate) shape: Vec<u64>,
    pub(crate) values: Vec<Scalar>,
    /// Number of values of the array that were reduced.
    pub(crate) reduced: u64,
}

/// Reduces `array` over slots: one for each axis.
///
/// # Errors
///
/// Returns the errors of [`reduce`](super::reduce).
pub(crate) fn reduce_slots(
    array: &dyn DenseArray,
    reduction: Reduction,
    axes: &[AxisSlots],
    options: SlotOptions<'_>,
) -> Result<SlotResults, DenseError> {
    let fold = SlotFold {
        reduction,
        axes,
        options,
    };
    with_numbers(array, fold)
}

struct SlotFold<'a> {
    reduction: Reduction,
    axes: &'a [AxisSlots],
    options: SlotOptions<'a>,
}

/// An axis of a chunk, with the distance of its slots in the results.
struct ChunkAxis<'a> {
    range: AxisRange,
    slots: &'a AxisSlots,
    stride: usize,
}

fn to_usize(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

impl Task for SlotFold<'_> {
    type Output = SlotResults;

    fn run<T: Number>(self, array: &dyn DenseArray) -> Result<SlotResults, DenseError> {
        let shape: Vec<u64> = self.axes.iter().filter_map(AxisSlots::count).collect();
        let mut cells = vec![Cell::default(); cell_count(array, shape.iter().copied())?];
        let wanted = Statistics::of(self.reduction);
        let mut stride = 1_usize;
        let mut strides = vec![0; self.axes.len()];
        for (of_axis, slots) in strides.iter_mut().zip(self.axes).rev() {
            if let Some(count) = slots.count() {
                *of_axis = stride;
                stride = stride.saturating_mul(to_usize(count));
            }
        }
        let mut reduced = 0_u64;
        array.visit_chunks(&mut |selection, bytes| {
            let parts = selection.axes().iter().zip(self.axes).zip(&strides);
            let axes: Vec<ChunkAxis<'_>> = parts
                .map(|((range, slots), stride)| ChunkAxis {
                    range: *range,
                    slots,
                    stride: *stride,
                })
                .collect();
            let mut add = |cell: usize, value: T| {
                if let Some(cell) = cells.get_mut(cell) {
                    cell.add(value, wanted);
                }
            };
            let mut visit = |first: usize, windows: Option<(&Range<u64>, usize)>, value: T| {
                if self
                    .options
                    .keeps
                    .is_some_and(|keeps| !keeps(value.float()))
                {
                    return;
                }
                reduced = reduced.saturating_add(1);
                match windows {
                    None => add(first, value),
                    Some((windows, stride)) => {
                        for window in windows.clone() {
                            add(
                                first.saturating_add(to_usize(window).saturating_mul(stride)),
                                value,
                            );
                        }
                    }
                }
            };
            scatter(&axes, 0, None, &mut T::all(bytes), &mut visit);
            Ok(())
        })?;
        let windows = self.axes.iter().zip(&strides).find_map(windows_of);
        let lines = self
            .axes
            .iter()
            .zip(array.shape())
            .filter(|(slots, _)| slots.count().is_none())
            .fold(1, |count: u64, (_, extent)| count.saturating_mul(*extent));
        let results = cells.iter().enumerate().map(|(at, cell)| {
            if cell.values() < self.options.min_count {
                return Scalar::Float(f64::NAN);
            }
            let mut cell = *cell;
            if let (Some((windows, stride)), Some(padding)) = (windows, self.options.padding) {
                let slot = u64::try_from(at / stride.max(1)).unwrap_or(u64::MAX);
                let outside = windows.outside(slot % windows.count.max(1));
                cell.add_repeated::<T>(padding, outside.saturating_mul(lines), wanted);
            }
            cell.result::<T>(self.reduction)
        });
        Ok(SlotResults {
            values: results.collect(),
            shape,
            reduced,
        })
    }
}

fn windows_of((slots, stride): (&AxisSlots, &usize)) -> Option<(Windows, usize)> {
    match slots {
        AxisSlots::Windows(windows) => Some((*windows, *stride)),
        _ => None,
    }
}

/// Visits the values of a box with their results: the first one, and windows at a distance.
fn scatter<T: Number>(
    axes: &[ChunkAxis<'_>],
    first: usize,
    windows: Option<(&Range<u64>, usize)>,
    values: &mut impl Iterator<Item = T>,
    visit: &mut impl FnMut(usize, Option<(&Range<u64>, usize)>, T),
) {
    let Some((axis, inner)) = axes.split_first() else {
        if let Some(value) = values.next() {
            visit(first, windows, value);
        }
        return;
    };
    for at in 0..axis.range.count() {
        let at = axis.range.position(at);
        let slot = match axis.slots {
            AxisSlots::Windows(all) => {
                let containing = all.containing(at);
                scatter(
                    inner,
                    first,
                    Some((&containing, axis.stride)),
                    values,
                    visit,
                );
                continue;
            }
            AxisSlots::Reduced => 0,
            AxisSlots::Kept(_) => at,
            // A group for each position was checked by the caller.
            AxisSlots::Groups { of, .. } => of.get(to_usize(at)).copied().unwrap_or(0),
        };
        let first = first.saturating_add(to_usize(slot).saturating_mul(axis.stride));
        scatter(inner, first, windows, values, visit);
    }
}
