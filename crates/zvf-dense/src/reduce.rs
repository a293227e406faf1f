//! Sums, means, extremes, deviations, histograms and quantiles, chunk by chunk.
//!
//! Sums and extremes of integers are exact (128 bits) for every type. Sums of floats use 64 bits with
//! compensated addition. Chunks are processed in order, so results do not depend on the number of
//! threads.
//!
//! ```
//! use zvf_dense::{MemoryArray, reduce::{Reduction, Scalar, reduce}};
//!
//! let values: Vec<u8> = [1_u32, 2, 3, u32::MAX].into_iter().flat_map(u32::to_le_bytes).collect();
//! let array = MemoryArray::new("a", "uint32".parse()?, vec![2, 2], values)?;
//! let rows = reduce(&array, Reduction::Sum, &[1])?;
//! assert_eq!(rows.shape, [2]);
//! assert_eq!(rows.values, [Scalar::Int(3), Scalar::Int((1 << 32) + 2)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cell;
mod histogram;
mod number;
mod quantile;
mod slots;

pub use histogram::{Histogram, histogram};
pub use quantile::quantiles;
pub(crate) use slots::{AxisSlots, SlotOptions, SlotResults, Windows, reduce_slots};

use zvf_format::numeric::{ByteOrder, Kind};

use crate::{ArrayView, DenseArray, DenseError, Hyperslab, hyperslab::product};
use cell::{Cell, Statistics};
use number::Number;

/// A reduction of the values along some axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The number of values.
    Count,
    /// The number of NaN values.
    NanCount,
    /// The sum; NaN if any value is.
    Sum,
    /// The mean; NaN if any value is.
    Mean,
    /// The minimum; NaN if any value is.
    Min,
    /// The maximum; NaN if any value is.
    Max,
    /// The population variance.
    Var,
    /// The population standard deviation.
    Std,
    /// The sum without NaN.
    NanSum,
    /// The mean without NaN.
    NanMean,
    /// The minimum without NaN.
    NanMin,
    /// The maximum without NaN.
    NanMax,
    /// The population variance without NaN.
    NanVar,
    /// The population standard deviation without NaN.
    NanStd,
}

/// A result value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// An exact integer.
    Int(i128),
    /// A 64-bit float.
    Float(f64),
}

impl Scalar {
    /// Converts to a float, with rounding.
    #[expect(
        clippy::as_conversions,
        clippy::cast_precision_loss,
        reason = "rounding is documented"
    )]
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

/// The results over the remaining axes, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduced {
    /// The shape; empty if all axes are reduced.
    pub shape: Vec<u64>,
    /// The values.
    pub values: Vec<Scalar>,
}

/// Reduces `array` over `axes`, or over all axes if the list is empty.
///
/// # Errors
///
/// If elements are not real numbers, an axis does not exist or occurs twice, the results exceed the
/// budget, or the array cannot be read.
pub fn reduce(
    array: &dyn DenseArray,
    reduction: Reduction,
    axes: &[usize],
) -> Result<Reduced, DenseError> {
    let cells = with_numbers(array, Fold { axes, reduction })?;
    let kept = kept(array, axes)?;
    let shape = array.shape().iter().zip(kept);
    Ok(Reduced {
        shape: shape
            .filter(|(_, kept)| *kept)
            .map(|(extent, _)| *extent)
            .collect(),
        values: cells,
    })
}

/// Marks the axes that remain.
fn kept(array: &dyn DenseArray, axes: &[usize]) -> Result<Vec<bool>, DenseError> {
    let mut kept = vec![!axes.is_empty(); array.shape().len()];
    for axis in axes {
        match kept.get_mut(*axis) {
            Some(kept) if *kept => *kept = false,
            _ => {
                return Err(DenseError::Reduction {
                    name: array.name().to_owned(),
                    fault: "an axis does not exist, or is given twice",
                });
            }
        }
    }
    Ok(kept)
}

/// A computation that is generic over the type of the numbers.
trait Task {
    type Output;

    fn run<T: Number>(self, array: &dyn DenseArray) -> Result<Self::Output, DenseError>;
}

/// Runs a task with the element type of the array, in little-endian byte order.
fn with_numbers<T: Task>(array: &dyn DenseArray, task: T) -> Result<T::Output, DenseError> {
    let fault = || DenseError::Reduction {
        name: array.name().to_owned(),
        fault: "elements are not real numbers",
    };
    let number = array.dtype().number().ok_or_else(fault)?;
    let view;
    let array: &dyn DenseArray = if number.order() == ByteOrder::Big {
        view = ArrayView::new(array, Hyperslab::whole(array.shape()))?;
        &view
    } else {
        array
    };
    match number.kind() {
        Kind::Bool => task.run::<bool>(array),
        Kind::Int8 => task.run::<i8>(array),
        Kind::Int16 => task.run::<i16>(array),
        Kind::Int32 => task.run::<i32>(array),
        Kind::Int64 => task.run::<i64>(array),
        Kind::UInt8 => task.run::<u8>(array),
        Kind::UInt16 => task.run::<u16>(array),
        Kind::UInt32 => task.run::<u32>(array),
        Kind::UInt64 => task.run::<u64>(array),
        Kind::Float16 => task.run::<half::f16>(array),
        Kind::Float32 => task.run::<f32>(array),
        Kind::Float64 => task.run::<f64>(array),
        Kind::Complex64 | Kind::Complex128 => Err(fault()),
    }
}

/// Returns the number of results, which must fit in the budget.
fn cell_count(
    array: &dyn DenseArray,
    extents: impl Iterator<Item = u64> + Clone,
) -> Result<usize, DenseError> {
    let budget = array.scratch();
    let count = product(extents);
    let size = u64::try_from(size_of::<Cell>()).unwrap_or(u64::MAX);
    let needed = count
        .and_then(|count| count.checked_mul(size))
        .unwrap_or(u64::MAX);
    count
        .and_then(|count| usize::try_from(count).ok())
        .filter(|_| needed <= budget)
        .ok_or(DenseError::Budget { needed, budget })
}

struct Fold<'a> {
    axes: &'a [usize],
    reduction: Reduction,
}

/// An axis of a chunk: its extent and its stride in the results, 0 for a reduced axis.
#[derive(Clone, Copy)]
struct Axis {
    count: usize,
    stride: usize,
}

impl Task for Fold<'_> {
    type Output = Vec<Scalar>;

    fn run<T: Number>(self, array: &dyn DenseArray) -> Result<Vec<Scalar>, DenseError> {
        let kept = kept(array, self.axes)?;
        let extents = array
            .shape()
            .iter()
            .zip(&kept)
            .filter(|(_, kept)| **kept)
            .map(|(extent, _)| *extent);
        let count = cell_count(array, extents)?;
        let mut cells = vec![Cell::default(); count];
        let wanted = Statistics::of(self.reduction);
        let strides = strides(array.shape(), &kept);
        array.visit_chunks(&mut |selection, bytes| {
            let mut first = 0_usize;
            let mut axes: Vec<Axis> = Vec::with_capacity(strides.len());
            for (range, stride) in selection.axes().iter().zip(&strides) {
                let start = usize::try_from(range.start()).unwrap_or(usize::MAX);
                first = first.saturating_add(start.saturating_mul(*stride));
                let axis = Axis {
                    count: usize::try_from(range.count()).unwrap_or(usize::MAX),
                    stride: *stride,
                };
                // Merge axes that are both reduced or contiguous in the results.
                match axes.last_mut() {
                    Some(last) if last.stride == axis.stride.saturating_mul(axis.count) => {
                        last.count = last.count.saturating_mul(axis.count);
                        last.stride = axis.stride;
                    }
                    _ => axes.push(axis),
                }
            }
            let mut left = bytes;
            fold::<T>(&axes, first, &mut left, &mut cells, wanted);
            Ok(())
        })?;
        let results = cells.iter().map(|cell| cell.result::<T>(self.reduction));
        Ok(results.collect())
    }
}

/// Returns the stride of each axis in the results; 0 for reduced axes.
fn strides(shape: &[u64], kept: &[bool]) -> Vec<usize> {
    let mut stride = 1_usize;
    let mut strides = vec![0; shape.len()];
    for ((of_axis, extent), kept) in strides.iter_mut().zip(shape).zip(kept).rev() {
        if *kept {
            *of_axis = stride;
            stride = stride.saturating_mul(usize::try_from(*extent).unwrap_or(usize::MAX));
        }
    }
    strides
}

/// Adds the elements of a box to the results they belong to.
fn fold<T: Number>(
    axes: &[Axis],
    first: usize,
    left: &mut &[u8],
    cells: &mut [Cell],
    wanted: Statistics,
) {
    let (axis, inner) = match axes {
        [] => (
            Axis {
                count: 1,
                stride: 0,
            },
            [].as_slice(),
        ),
        [axis, inner @ ..] => (*axis, inner),
    };
    if inner.is_empty() {
        let len = axis.count.saturating_mul(T::SIZE).min(left.len());
        let (run, rest) = left.split_at(len);
        *left = rest;
        if axis.stride == 0 {
            if let Some(cell) = cells.get_mut(first) {
                cell.add_run::<T>(run, wanted);
            }
        } else {
            let cells = cells.get_mut(first..).unwrap_or_default();
            for (cell, value) in cells.iter_mut().step_by(axis.stride).zip(T::all(run)) {
                cell.add(value, wanted);
            }
        }
        return;
    }
    for at in 0..axis.count {
        let first = first.saturating_add(at.saturating_mul(axis.stride));
        fold::<T>(inner, first, left, cells, wanted);
    }
}
