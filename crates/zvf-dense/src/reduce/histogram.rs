//! Histograms with equal bins.

use super::{Number, Task, with_numbers};
use crate::{DenseArray, DenseError};

/// Maximum number of bins.
const MAX_BINS: usize = 1 << 20;

/// A histogram with equal bins.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// The edges of the bins, one more than bins.
    pub edges: Vec<f64>,
    /// Number of values in each bin. A value on an edge belongs to the bin above; the last edge belongs
    /// to the last bin.
    pub counts: Vec<u64>,
    /// Number of values below the first edge.
    pub below: u64,
    /// Number of values above the last edge.
    pub above: u64,
    /// Number of NaN values.
    pub nans: u64,
}

/// Computes a histogram of `array` with `bins` equal bins from `low` to `high`.
///
/// # Errors
///
/// If elements are not real numbers, `bins` is 0 or more than 2^20, the limits are not finite and in
/// order, or the array cannot be read.
pub fn histogram(
    array: &dyn DenseArray,
    low: f64,
    high: f64,
    bins: usize,
) -> Result<Histogram, DenseError> {
    let is_range = low.is_finite() && high.is_finite() && low < high && (high - low).is_finite();
    if !is_range || !(1..=MAX_BINS).contains(&bins) {
        return Err(DenseError::Reduction {
            name: array.name().to_owned(),
            fault: "a histogram has 1 to 1048576 bins between finite ends",
        });
    }
    with_numbers(array, Count { low, high, bins })
}

struct Count {
    low: f64,
    high: f64,
    bins: usize,
}

impl Task for Count {
    type Output = Histogram;

    #[expect(
        clippy::as_conversions,
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the bin is not negative and below 2^20"
    )]
    fn run<T: Number>(self, array: &dyn DenseArray) -> Result<Histogram, DenseError> {
        let Self { low, high, bins } = self;
        let width = (high - low) / bins as f64;
        let edge = |at: usize| {
            if at == bins {
                high
            } else {
                low + width * at as f64
            }
        };
        let mut found = Histogram {
            edges: (0..=bins).map(edge).collect(),
            counts: vec![0; bins],
            below: 0,
            above: 0,
            nans: 0,
        };
        let last = bins.saturating_sub(1);
        array.visit_chunks(&mut |_, bytes| {
            for value in T::all(bytes).map(Number::float) {
                let count = if value.is_nan() {
                    &mut found.nans
                } else if value < low {
                    &mut found.below
                } else if value > high {
                    &mut found.above
                } else {
                    let mut bin = (((value - low) / width) as usize).min(last);
                    // The division rounds, so compare with the edges.
                    let edge = |at: usize| found.edges.get(at).copied().unwrap_or(high);
                    if value < edge(bin) {
                        bin = bin.saturating_sub(1);
                    } else if bin < last && value >= edge(bin.saturating_add(1)) {
                        bin = bin.saturating_add(1);
                    }
                    match found.counts.get_mut(bin) {
                        Some(count) => count,
                        None => &mut found.above,
                    }
                };
                *count = count.saturating_add(1);
            }
            Ok(())
        })?;
        Ok(found)
    }
}
