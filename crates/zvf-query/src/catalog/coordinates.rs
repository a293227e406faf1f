//! Positions of a chunk as numbers to calculate with.

use zvf_format::numeric::{Dtype, Element, Elements, Kind, NumericRows, Value};

use crate::geometry::{Bbox, MAX_AXES};

/// Positions of held rows, as f64.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coordinates {
    axes: usize,
    values: Vec<f64>,
}

impl Coordinates {
    pub(crate) fn of(bytes: &[u8], dtype: Dtype, axes: usize) -> Self {
        let values = Vec::with_capacity(bytes.len() / dtype.size().max(1));
        let mut coordinates = Self { axes, values };
        coordinates.push(bytes, dtype);
        coordinates
    }

    /// No positions.
    pub(crate) fn new(axes: usize) -> Self {
        let values = Vec::new();
        Self { axes, values }
    }

    /// Appends positions.
    pub(crate) fn push(&mut self, bytes: &[u8], dtype: Dtype) {
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

    /// Number of positions.
    pub(crate) fn len(&self) -> usize {
        self.values.len().checked_div(self.axes).unwrap_or(0)
    }

    /// The positions in their order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &[f64]> + ExactSizeIterator {
        self.values.chunks_exact(self.axes.max(1))
    }

    /// The least box around them, of those numbers that are some; `None` when there is
    /// no position.
    pub(crate) fn extent(&self) -> Option<Bbox> {
        if self.values.is_empty() {
            return None;
        }
        let (mut lo, mut hi) = ([f64::INFINITY; MAX_AXES], [f64::NEG_INFINITY; MAX_AXES]);
        for position in self.iter() {
            for ((lo, hi), value) in lo.iter_mut().zip(&mut hi).zip(position) {
                *lo = lo.min(*value);
                *hi = hi.max(*value);
            }
        }
        Bbox::new(lo.get(..self.axes)?, hi.get(..self.axes)?).ok()
    }

    /// The position at a place.
    pub(crate) fn at(&self, place: usize) -> &[f64] {
        let start = place.saturating_mul(self.axes);
        let position = self.values.get(start..start.saturating_add(self.axes));
        position.unwrap_or_default()
    }
}

/// Appends values, of which it is known how many there are: one by one they would be counted.
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
