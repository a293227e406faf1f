//! Positions converted to f64.

use zvf_format::numeric::{Dtype, Element, Elements, Kind, NumericRows, Value};

/// Positions as f64, row by row.
#[derive(Clone, Debug, Default)]
pub struct Coordinates {
    axes: usize,
    values: Vec<f64>,
}

impl Coordinates {
    /// Converts encoded positions.
    pub fn of(bytes: &[u8], dtype: Dtype, axes: usize) -> Self {
        let values = Vec::with_capacity(bytes.len() / dtype.size().max(1));
        let mut coordinates = Self { axes, values };
        coordinates.push(bytes, dtype);
        coordinates
    }

    /// Creates an empty list of positions.
    #[inline]
    pub fn new(axes: usize) -> Self {
        let values = Vec::new();
        Self { axes, values }
    }

    /// Appends encoded positions.
    pub fn push(&mut self, bytes: &[u8], dtype: Dtype) {
        let values = &mut self.values;
        let columns = core::num::NonZeroU32::MIN;
        if let Ok(rows) = NumericRows::parse(bytes, dtype, columns) {
            match dtype.kind() {
                Kind::Float32 => extend(values, rows.elements::<f32>()),
                Kind::Float64 => extend(values, rows.elements::<f64>()),
                _ => {
                    let all = (0..rows.rows())
                        .map(|row| rows.value(row, 0).map_or(f64::NAN, Value::to_f64));
                    values.extend(all);
                }
            }
        }
    }

    /// Returns the number of positions.
    #[inline]
    pub fn len(&self) -> usize {
        self.values.len().checked_div(self.axes).unwrap_or(0)
    }

    /// Returns whether there are no positions.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the positions in order.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[f64]> + ExactSizeIterator {
        self.values.chunks_exact(self.axes.max(1))
    }

    /// Returns the position at an index, or an empty slice past the end.
    #[inline]
    pub fn at(&self, index: usize) -> &[f64] {
        let start = index.saturating_mul(self.axes);
        let position = self.values.get(start..start.saturating_add(self.axes));
        position.unwrap_or_default()
    }
}

/// Appends values. Resizing first avoids a capacity check per value.
fn extend<T: Element + Into<f64>>(values: &mut Vec<f64>, elements: Option<Elements<'_, T>>) {
    let Some(elements) = elements else {
        return;
    };
    let before = values.len();
    values.resize(before.saturating_add(elements.len()), 0.0);
    let slots = values.get_mut(before..).unwrap_or_default();
    for (slot, value) in slots.iter_mut().zip(elements.iter()) {
        *slot = value.into();
    }
}
