//! Sums, means, extremes, deviations, histograms and quantiles, chunk by chunk.
//!
//! Sums, least and greatest values of integers are exact (128 bits), whatever
//! their type; those of floats are of 64 bits, with the rounding of each
//! addition carried along. Chunks are taken in order, so that results are
//! the same on any number of threads.
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

pub use histogram::{Histogram, histogram};
pub use quantile::quantiles;

use zvf_format::numeric::{ByteOrder, Kind};

use crate::{DenseArray, DenseError, Selection, View, selection::product};
use cell::{Cell, Wanted};
use number::Number;

/// What is made of the values along the axes that go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// How many values there are.
    Count,
    /// How many values are NaN.
    NanCount,
    /// Their sum; NaN when one is.
    Sum,
    /// Their mean; NaN when one is.
    Mean,
    /// The least; NaN when one is.
    Min,
    /// The greatest; NaN when one is.
    Max,
    /// The variance of the values themselves (divided by their number).
    Var,
    /// Its root.
    Std,
    /// The sum of those that are not NaN.
    NanSum,
    /// The mean of those that are not NaN.
    NanMean,
    /// The least of those that are not NaN.
    NanMin,
    /// The greatest of those that are not NaN.
    NanMax,
    /// The variance of those that are not NaN.
    NanVar,
    /// Its root.
    NanStd,
}

/// One result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// Exact.
    Int(i128),
    /// Rounded to 64 bits.
    Float(f64),
}

impl Scalar {
    /// As a float, rounded.
    #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "rounds")]
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

/// Results of the axes that stay, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduced {
    /// Their shape; empty when all axes went.
    pub shape: Vec<u64>,
    /// As many as the shape has.
    pub values: Vec<Scalar>,
}

/// Reduces `array` over `axes`, all of them when none are given.
///
/// # Errors
///
/// When elements are no real numbers, an axis is not there or given twice, the
/// results take more than the budget, or the array cannot be read.
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

/// Which axes stay.
fn kept(array: &dyn DenseArray, axes: &[usize]) -> Result<Vec<bool>, DenseError> {
    let mut kept = vec![!axes.is_empty(); array.shape().len()];
    for axis in axes {
        match kept.get_mut(*axis) {
            Some(kept) if *kept => *kept = false,
            _ => {
                return Err(DenseError::Reduction {
                    name: array.name().to_owned(),
                    fault: "an axis is not there, or given twice",
                });
            }
        }
    }
    Ok(kept)
}

/// What is done with an array of numbers of a type known at compile time.
trait Task {
    type Output;

    fn run<T: Number>(self, array: &dyn DenseArray) -> Result<Self::Output, DenseError>;
}

/// Runs a task with the type that elements are, in little-endian byte order.
fn with_numbers<T: Task>(array: &dyn DenseArray, task: T) -> Result<T::Output, DenseError> {
    let fault = || DenseError::Reduction {
        name: array.name().to_owned(),
        fault: "elements are no real numbers",
    };
    let number = array.dtype().number().ok_or_else(fault)?;
    let view;
    let array: &dyn DenseArray = if number.order() == ByteOrder::Big {
        view = View::new(array, Selection::whole(array.shape()))?;
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

struct Fold<'a> {
    axes: &'a [usize],
    reduction: Reduction,
}

/// An axis of a chunk: how many elements, and how many results apart they go;
/// 0 for an axis that is reduced.
#[derive(Clone, Copy)]
struct Axis {
    count: usize,
    stride: usize,
}

impl Task for Fold<'_> {
    type Output = Vec<Scalar>;

    fn run<T: Number>(self, array: &dyn DenseArray) -> Result<Vec<Scalar>, DenseError> {
        let kept = kept(array, self.axes)?;
        let budget = array.scratch();
        let extents = array.shape().iter().zip(&kept);
        let extents = extents
            .filter(|(_, kept)| **kept)
            .map(|(extent, _)| *extent);
        let count = product(extents);
        let size = u64::try_from(size_of::<Cell>()).unwrap_or(u64::MAX);
        let needed = count.and_then(|count| count.checked_mul(size));
        let needed = needed.unwrap_or(u64::MAX);
        let count = count.and_then(|count| usize::try_from(count).ok());
        let count = count.filter(|_| needed <= budget);
        let count = count.ok_or(DenseError::Budget { needed, budget })?;
        let mut cells = vec![Cell::default(); count];
        let wanted = Wanted::of(self.reduction);
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
                // Two that are reduced, or follow each other in the results, are one.
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

/// How many results apart neighbours on each axis are; 0 on those that go.
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

/// Takes the elements of a box from `left` to the results they belong to.
fn fold<T: Number>(
    axes: &[Axis],
    first: usize,
    left: &mut &[u8],
    cells: &mut [Cell],
    wanted: Wanted,
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
