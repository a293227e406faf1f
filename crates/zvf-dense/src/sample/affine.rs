//! Affine maps from positions to voxel indices.

use serde_json::Value;

use super::AffineError;
use crate::{DenseArray, DenseError, Hyperslab, sample::values::float64};

/// An affine map from world positions to voxel indices: a square matrix with one more row and
/// column than there are axes. The last row is 0 except for a final 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Affine {
    axes: usize,
    /// The rows of the matrix without the last one.
    rows: Vec<f64>,
}

impl Affine {
    /// Returns the map that keeps positions unchanged.
    pub fn identity(axes: usize) -> Self {
        let row = |row| (0..=axes).map(move |column| f64::from(u8::from(row == column)));
        Self {
            axes,
            rows: (0..axes).flat_map(row).collect(),
        }
    }

    /// Creates a map from matrix elements in row-major order.
    ///
    /// # Errors
    ///
    /// [`AffineError`] if the numbers are not an affine matrix.
    pub fn of(numbers: &[f64]) -> Result<Self, AffineError> {
        let axes = (1..=super::MAX_AXES)
            .find(|axes| {
                let side = axes.saturating_add(1);
                side.saturating_mul(side) == numbers.len()
            })
            .ok_or(AffineError::Square(numbers.len()))?;
        let split = numbers.len().saturating_sub(axes.saturating_add(1));
        let (rows, last) = numbers.split_at(split);
        if numbers.iter().any(|number| !number.is_finite()) {
            return Err(AffineError::Number);
        }
        let expected = (0..=axes).map(|column| f64::from(u8::from(column == axes)));
        if expected.zip(last).any(|(a, b)| (a - b).abs() > 0.0) {
            return Err(AffineError::LastRow);
        }
        Ok(Self {
            axes,
            rows: rows.to_vec(),
        })
    }

    /// Parses a matrix from JSON, or from numbers separated by whitespace, commas or semicolons.
    ///
    /// # Errors
    ///
    /// [`AffineError`] if the text is not an affine matrix.
    pub fn parse(text: &str) -> Result<Self, AffineError> {
        let text = text.trim();
        let numbers: Option<Vec<f64>> = if text.starts_with('[') {
            let value: Value = serde_json::from_str(text).map_err(|_| AffineError::Number)?;
            let rows = value.as_array().into_iter().flatten();
            let numbers = rows.flat_map(|row| match row {
                Value::Array(row) => row.iter().collect(),
                other => vec![other],
            });
            numbers.map(Value::as_f64).collect()
        } else {
            let words = text
                .split(|at: char| at.is_whitespace() || at == ',' || at == ';')
                .filter(|word| !word.is_empty());
            words.map(|word| word.parse().ok()).collect()
        };
        Self::of(&numbers.ok_or(AffineError::Number)?)
    }

    /// Reads a matrix from an array.
    ///
    /// # Errors
    ///
    /// [`DenseError::Affine`] if the array is not an affine matrix; [`DenseError`] if it cannot be
    /// read.
    pub fn of_array(array: &dyn DenseArray) -> Result<Self, DenseError> {
        let not = |source| DenseError::Affine {
            name: array.name().to_owned(),
            source,
        };
        let count = crate::hyperslab::product(array.shape().iter().copied());
        let count = count.and_then(|count| usize::try_from(count).ok());
        // Reject a large array before any data is read.
        let max = super::MAX_AXES.saturating_add(1).saturating_pow(2);
        let count = count.unwrap_or(usize::MAX);
        if count > max {
            return Err(not(AffineError::Square(count)));
        }
        let dtype = array
            .dtype()
            .number()
            .ok_or_else(|| not(AffineError::Number))?;
        let bytes = array.slice(&Hyperslab::whole(array.shape()))?;
        let numbers = float64(&bytes, dtype).map_err(|_| not(AffineError::Number))?;
        Self::of(&numbers).map_err(not)
    }

    /// Returns the number of axes of positions.
    pub fn axes(&self) -> usize {
        self.axes
    }

    /// Returns the rows of the matrix without the last one, in row-major order.
    pub fn rows(&self) -> &[f64] {
        &self.rows
    }

    /// Returns the map of positions that are multiplied by a factor for each axis first, to change
    /// their units.
    #[must_use]
    pub fn scaled(&self, factors: &[f64]) -> Self {
        let mut map = self.clone();
        for row in map.rows.chunks_exact_mut(self.axes.saturating_add(1)) {
            let columns = row.iter_mut().zip(factors).take(self.axes);
            columns.for_each(|(value, factor)| *value *= factor);
        }
        map
    }

    /// Maps a position and iterates over the resulting coordinates.
    pub(super) fn apply<'a>(&'a self, position: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let rows = self.rows.chunks_exact(self.axes.saturating_add(1));
        rows.map(move |row| {
            let (factors, shift) = row.split_at(self.axes);
            let products = factors.iter().zip(position);
            let sum = products.fold(0.0, |sum, (factor, at)| sum + factor * at);
            sum + shift.first().copied().unwrap_or(0.0)
        })
    }
}
