//! The accumulator of one result.

use rayon::prelude::*;

use super::{Reduction, Scalar, number::Number};

/// Number of values per partial sum. Partial sums bound the rounding error and make the result
/// independent of the number of threads.
const VALUES_PER_SUM: usize = 1 << 12;
/// Size in bytes from which threads share the runs.
const SHARED: usize = 1 << 19;

/// The statistics that a reduction needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Statistics {
    sum: bool,
    ends: bool,
    spread: bool,
}

impl Statistics {
    pub(super) fn of(reduction: Reduction) -> Self {
        use Reduction as R;
        Self {
            sum: matches!(reduction, R::Sum | R::NanSum | R::Mean | R::NanMean),
            ends: matches!(reduction, R::Min | R::NanMin | R::Max | R::NanMax),
            spread: matches!(reduction, R::Var | R::NanVar | R::Std | R::NanStd),
        }
    }
}

/// Counts, sums and extremes of the values that are not NaN.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cell {
    count: u64,
    nans: u64,
    /// Sum of integers.
    sum: i128,
    /// Sum of floats, and its rounding error.
    float_sum: f64,
    lost: f64,
    /// Extremes of integers.
    ends: Option<(i128, i128)>,
    /// Extremes of floats.
    float_ends: Option<(f64, f64)>,
    mean: f64,
    /// Sum of squared deviations from the mean.
    squares: f64,
}

/// Converts a count to a float.
#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "exact, because counting more than 2^53 values is not feasible"
)]
fn float(count: u64) -> f64 {
    count as f64
}

impl Cell {
    /// Adds one value.
    #[inline]
    pub(super) fn add<T: Number>(&mut self, value: T, wanted: Statistics) {
        let float_value = value.float();
        if T::IS_FLOAT && float_value.is_nan() {
            self.nans = self.nans.wrapping_add(1);
            return;
        }
        self.count = self.count.wrapping_add(1);
        if wanted.sum {
            if T::IS_FLOAT {
                self.add_float(float_value);
            } else {
                self.sum = self.sum.wrapping_add(value.int());
            }
        }
        if wanted.ends {
            if T::IS_FLOAT {
                self.add_float_ends((float_value, float_value));
            } else {
                self.add_ends((value.int(), value.int()));
            }
        }
        if wanted.spread {
            let from_mean = float_value - self.mean;
            self.mean += from_mean / float(self.count);
            self.squares += from_mean * (float_value - self.mean);
        }
    }

    /// Adds with Neumaier's compensation; infinities are preserved.
    fn add_float(&mut self, value: f64) {
        let sum = self.float_sum + value;
        if sum.is_finite() {
            self.lost += if self.float_sum.abs() >= value.abs() {
                (self.float_sum - sum) + value
            } else {
                (value - sum) + self.float_sum
            };
        }
        self.float_sum = sum;
    }

    fn add_ends(&mut self, (low, high): (i128, i128)) {
        let ends = self.ends.unwrap_or((low, high));
        self.ends = Some((ends.0.min(low), ends.1.max(high)));
    }

    fn add_float_ends(&mut self, (low, high): (f64, f64)) {
        let ends = self.float_ends.unwrap_or((low, high));
        self.float_ends = Some((ends.0.min(low), ends.1.max(high)));
    }

    /// Returns the number of values, with NaN.
    pub(super) fn values(&self) -> u64 {
        self.count.saturating_add(self.nans)
    }

    /// Adds one value a number of times.
    pub(super) fn add_repeated<T: Number>(
        &mut self,
        value: Scalar,
        times: u64,
        wanted: Statistics,
    ) {
        let of_float = value.to_f64();
        if times == 0 {
            return;
        }
        if T::IS_FLOAT && of_float.is_nan() {
            self.nans = self.nans.wrapping_add(times);
            return;
        }
        let mut other = Self {
            count: times,
            mean: of_float,
            ..Self::default()
        };
        match value {
            Scalar::Int(value) if !T::IS_FLOAT => {
                other.sum = value.saturating_mul(times.into());
                other.ends = wanted.ends.then_some((value, value));
            }
            _ => {
                other.float_sum = of_float * float(times);
                other.float_ends = wanted.ends.then_some((of_float, of_float));
            }
        }
        self.merge(&other);
    }

    /// Adds contiguous values, on several threads if there are many.
    pub(super) fn add_run<T: Number>(&mut self, bytes: &[u8], wanted: Statistics) {
        let len = VALUES_PER_SUM.saturating_mul(T::SIZE);
        if bytes.len() < SHARED {
            for run in bytes.chunks(len) {
                self.merge(&Self::of_run::<T>(run, wanted));
            }
            return;
        }
        for run in Self::of_runs(bytes, len, &|run| Self::of_run::<T>(run, wanted)) {
            self.merge(&run);
        }
    }

    /// Accumulates runs of `len` bytes on several threads.
    fn of_runs(bytes: &[u8], len: usize, of_run: &(dyn Fn(&[u8]) -> Self + Sync)) -> Vec<Self> {
        bytes.par_chunks(len).map(of_run).collect()
    }

    /// Accumulates values that fit in a cache, in several passes: loops with a single task are several
    /// times as fast.
    fn of_run<T: Number>(bytes: &[u8], wanted: Statistics) -> Self {
        let all = u64::try_from(bytes.len() / T::SIZE).unwrap_or(u64::MAX);
        let is_nan = |value: T| T::IS_FLOAT && value.float().is_nan();
        let nans = if T::IS_FLOAT {
            T::all(bytes).map(|value| u64::from(is_nan(value))).sum()
        } else {
            0
        };
        let mut cell = Self {
            count: all.saturating_sub(nans),
            nans,
            ..Self::default()
        };
        if cell.count == 0 {
            return cell;
        }
        let or_zero = |value: T| if is_nan(value) { 0.0 } else { value.float() };
        if (wanted.sum || wanted.spread) && T::IS_FLOAT {
            cell.float_sum = lanes(T::all(bytes).map(or_zero));
        } else if wanted.sum || wanted.spread {
            cell.sum = integers::<T>(bytes);
        }
        if wanted.ends {
            cell.find_ends::<T>(bytes);
        }
        if wanted.spread {
            let sum = Scalar::Int(cell.sum).to_f64() + cell.float_sum;
            cell.mean = sum / float(cell.count);
            let mean = cell.mean;
            let square = |value: T| {
                let from_mean = if is_nan(value) {
                    0.0
                } else {
                    value.float() - mean
                };
                from_mean * from_mean
            };
            cell.squares = lanes(T::all(bytes).map(square));
        }
        cell
    }

    fn find_ends<T: Number>(&mut self, bytes: &[u8]) {
        let mut values = T::all(bytes).filter(|value| !(T::IS_FLOAT && value.float().is_nan()));
        let Some(first) = values.next() else {
            return;
        };
        let ends = values.fold((first, first), |(low, high), value| {
            let low = if value < low { value } else { low };
            let high = if value > high { value } else { high };
            (low, high)
        });
        if T::IS_FLOAT {
            self.add_float_ends((ends.0.float(), ends.1.float()));
        } else {
            self.add_ends((ends.0.int(), ends.1.int()));
        }
    }

    /// Merges another accumulator.
    fn merge(&mut self, other: &Self) {
        self.nans = self.nans.wrapping_add(other.nans);
        if other.count == 0 {
            return;
        }
        let count = self.count.wrapping_add(other.count);
        self.sum = self.sum.wrapping_add(other.sum);
        self.add_float(other.float_sum);
        self.lost += other.lost;
        if let Some(ends) = other.ends {
            self.add_ends(ends);
        }
        if let Some(ends) = other.float_ends {
            self.add_float_ends(ends);
        }
        let apart = other.mean - self.mean;
        let share = float(other.count) / float(count);
        self.squares += other.squares + apart * apart * float(self.count) * share;
        self.mean += apart * share;
        self.count = count;
    }

    /// Returns the result.
    pub(super) fn result<T: Number>(&self, reduction: Reduction) -> Scalar {
        use Reduction as R;
        let sees_nan = matches!(
            reduction,
            R::Sum | R::Mean | R::Min | R::Max | R::Var | R::Std
        );
        if sees_nan && self.nans > 0 {
            return Scalar::Float(f64::NAN);
        }
        let sum = match T::IS_FLOAT {
            // An infinite sum has no rounding error, and subtracting infinities gives NaN.
            true if self.float_sum.is_finite() => Scalar::Float(self.float_sum + self.lost),
            true => Scalar::Float(self.float_sum),
            false => Scalar::Int(self.sum),
        };
        let count = float(self.count);
        let none = Scalar::Float(f64::NAN);
        let end = |of: fn((i128, i128)) -> i128, of_float: fn((f64, f64)) -> f64| {
            let float = self.float_ends.map(|ends| Scalar::Float(of_float(ends)));
            let int = self.ends.map(|ends| Scalar::Int(of(ends)));
            float.or(int).unwrap_or(none)
        };
        match reduction {
            R::Count => Scalar::Int(i128::from(self.count).wrapping_add(self.nans.into())),
            R::NanCount => Scalar::Int(self.nans.into()),
            R::Sum | R::NanSum => sum,
            R::Mean | R::NanMean => Scalar::Float(sum.to_f64() / count),
            R::Min | R::NanMin => end(|ends| ends.0, |ends| ends.0),
            R::Max | R::NanMax => end(|ends| ends.1, |ends| ends.1),
            R::Var | R::NanVar => Scalar::Float(self.squares / count),
            R::Std | R::NanStd => Scalar::Float((self.squares / count).sqrt()),
        }
    }
}

/// Sums in eight lanes, which the compiler vectorises.
fn lanes(values: impl Iterator<Item = f64>) -> f64 {
    let mut lanes = [0.0; 8];
    let mut values = values;
    loop {
        for lane in &mut lanes {
            let Some(value) = values.next() else {
                return lanes.iter().sum();
            };
            *lane += value;
        }
    }
}

/// Sums integers; a run of 64-bit values fits in 128 bits.
fn integers<T: Number>(bytes: &[u8]) -> i128 {
    if T::SIZE > 4 {
        return T::all(bytes).map(Number::int).fold(0, i128::wrapping_add);
    }
    // A run of 32-bit values fits in 64 bits.
    let sum = T::all(bytes).map(|value| i64::try_from(value.int()).unwrap_or(0));
    sum.fold(0_i64, i64::wrapping_add).into()
}
