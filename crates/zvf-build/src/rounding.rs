//! Rounding of coordinates that are stored as another type.

use zvf_format::numeric::Kind;
use zvf_model::column::NumericColumn;

use crate::{coordinates, error::BuildError};

/// Rows measured at a time.
const BLOCK: usize = 1 << 16;

/// Measures the error that storing coordinates as another type makes.
///
/// ```
/// use zvf_build::{NumericColumn, Rounding};
/// use zvf_format::numeric::Kind;
///
/// let mut rounding = Rounding::new(Kind::Float32);
/// rounding.add(&NumericColumn::float64(2, [5_700_000.25, 0.0, 5_700_100.0, 1.0]))?;
/// let worst = rounding.worst().ok_or("no error")?;
/// assert_eq!((worst.axis, worst.error, worst.extent), (0, 0.25, 99.75));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rounding {
    kind: Kind,
    errors: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
}

/// Rounding of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RoundingError {
    /// Number of the axis.
    pub axis: usize,
    /// Largest distance between a coordinate and its stored value.
    pub error: f64,
    /// Distance between the smallest and the largest coordinate.
    pub extent: f64,
}

impl Rounding {
    /// Starts a measurement for coordinates stored as `kind`.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            errors: Vec::new(),
            lower: Vec::new(),
            upper: Vec::new(),
        }
    }

    /// Adds positions, with the same number of axes each time.
    ///
    /// # Errors
    ///
    /// Returns [`BuildError`] if a coordinate has no value of the type.
    pub fn add(&mut self, positions: &NumericColumn) -> Result<(), BuildError> {
        let axes = positions.row_len();
        self.errors.resize(axes, 0.0);
        self.lower.resize(axes, f64::INFINITY);
        self.upper.resize(axes, f64::NEG_INFINITY);
        let (mut exact, mut stored) = (Vec::new(), Vec::new());
        let rows = positions.len();
        for start in (0..rows).step_by(BLOCK) {
            let count = BLOCK.min(rows - start);
            let part = positions.take_existing(start..start + count);
            let rounded = coordinates::converted(&part, self.kind)?;
            coordinates::block(&part, 0..count, &mut exact);
            coordinates::block(&rounded, 0..count, &mut stored);
            for (at, (exact, stored)) in exact.iter().zip(&stored).enumerate() {
                let axis = at % axes;
                self.errors[axis] = self.errors[axis].max((exact - stored).abs());
                self.lower[axis] = self.lower[axis].min(*exact);
                self.upper[axis] = self.upper[axis].max(*exact);
            }
        }
        Ok(())
    }

    /// Returns the axis with the largest error relative to its extent; `None` if all coordinates
    /// are exact.
    pub fn worst(&self) -> Option<RoundingError> {
        let axes = (0..self.errors.len()).map(|axis| RoundingError {
            axis,
            error: self.errors[axis],
            extent: self.upper[axis] - self.lower[axis],
        });
        let inexact = axes.filter(|found| found.error > 0.0);
        inexact.max_by(|a, b| {
            let of = |found: &RoundingError| found.error / found.extent.max(f64::MIN_POSITIVE);
            of(a).total_cmp(&of(b))
        })
    }
}
