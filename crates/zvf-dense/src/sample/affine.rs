//! From positions to indices.

use serde_json::Value;

use super::AffineError;
use crate::{DenseArray, DenseError, Hyperslab, sample::values::float64};

/// A map from positions in the world to indices of voxels: a matrix of one more row and
/// column than there are axes, whose last row is 0 but for a 1 at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Affine {
    axes: usize,
    /// Row by row, without the last.
    rows: Vec<f64>,
}

impl Affine {
    /// The map that leaves positions as they are.
    pub fn identity(axes: usize) -> Self {
        let row = |row| (0..=axes).map(move |column| f64::from(u8::from(row == column)));
        Self {
            axes,
            rows: (0..axes).flat_map(row).collect(),
        }
    }

    /// The matrix of these numbers, row by row.
    ///
    /// # Errors
    ///
    /// [`AffineError`] when it is none.
    pub fn of(numbers: &[f64]) -> Result<Self, AffineError> {
        let axes = (1..=super::MOST_AXES).find(|axes| {
            let side = axes.saturating_add(1);
            side.saturating_mul(side) == numbers.len()
        });
        let axes = axes.ok_or(AffineError::Square(numbers.len()))?;
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

    /// Reads a matrix: JSON, or numbers between spaces, commas and ends of lines.
    ///
    /// # Errors
    ///
    /// [`AffineError`] when it is none.
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
            let words = text.split(|at: char| at.is_whitespace() || at == ',' || at == ';');
            let words = words.filter(|word| !word.is_empty());
            words.map(|word| word.parse().ok()).collect()
        };
        Self::of(&numbers.ok_or(AffineError::Number)?)
    }

    /// Reads the matrix that an array is.
    ///
    /// # Errors
    ///
    /// [`DenseError::Affine`] when it is none.
    pub fn of_array(array: &dyn DenseArray) -> Result<Self, DenseError> {
        let not = |source| DenseError::Affine {
            name: array.name().to_owned(),
            source,
        };
        let count = crate::hyperslab::product(array.shape().iter().copied());
        let count = count.and_then(|count| usize::try_from(count).ok());
        // Looked at before anything is read.
        let most = super::MOST_AXES.saturating_add(1).saturating_pow(2);
        let count = count.unwrap_or(usize::MAX);
        if count > most {
            return Err(not(AffineError::Square(count)));
        }
        let dtype = array.dtype().number();
        let dtype = dtype.ok_or_else(|| not(AffineError::Number))?;
        let bytes = array.slice(&Hyperslab::whole(array.shape()))?;
        let numbers = float64(&bytes, dtype).map_err(|_| not(AffineError::Number))?;
        Self::of(&numbers).map_err(not)
    }

    /// Axes of positions.
    pub fn axes(&self) -> usize {
        self.axes
    }

    /// Where a position is, axis by axis.
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
