//! The outcome of the checks of one chunk.

use serde_json::{Value, json};
use zvf_model::{base64, draco::VertexOrder};

use super::Bits;
use crate::share::ChunkOutcome;

/// Facts about a chunk that the checks of a level need.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CheckedCells {
    /// Number of vertices, or `None` if it is unknown.
    pub(super) rows: Option<u64>,
    /// Number of fragments, or `None` if the index is unreadable or absent.
    pub(super) fragments: Option<u64>,
    pub(super) order: VertexOrder,
    /// The chunk has vertices or a fragment index.
    pub(super) is_counted: bool,
    /// Fragments with at least one row, in levels of objects.
    pub(super) filled: Option<Bits>,
    /// Number of vertices outside the bounds.
    pub(super) out_of_bounds: u64,
    /// Corners of the box around these vertices.
    pub(super) corners: Option<(Vec<f64>, Vec<f64>)>,
    /// The fragments are not the rows in order.
    pub(super) is_untiled: bool,
    /// Values per row of each attribute of vertices, then of fragments. `None` without rows.
    pub(super) widths: Vec<Option<u64>>,
}

impl ChunkOutcome for CheckedCells {
    fn to_json(&self) -> Value {
        // JSON numbers are not exact.
        let bits = |corner: &[f64]| {
            corner
                .iter()
                .map(|at| json!(at.to_bits()))
                .collect::<Value>()
        };
        let corners = self.corners.as_ref();
        json!([
            self.rows,
            self.fragments,
            self.order == VertexOrder::Lost,
            self.is_counted,
            self.filled
                .as_ref()
                .map(|bits| base64::encode(&bits.to_bytes())),
            self.out_of_bounds,
            corners.map(|(lower, upper)| [bits(lower), bits(upper)]),
            self.is_untiled,
            self.widths,
        ])
    }

    fn from_json(json: &Value) -> Option<Self> {
        let [
            rows,
            fragments,
            is_lost,
            is_counted,
            filled,
            out_of_bounds,
            corners,
            is_untiled,
            widths,
        ] = json.as_array()?.as_slice()
        else {
            return None;
        };
        let corner = |bits: &Value| -> Option<Vec<f64>> {
            let bits = bits.as_array()?.iter();
            bits.map(|at| Some(f64::from_bits(at.as_u64()?))).collect()
        };
        Some(Self {
            rows: optional(rows, Value::as_u64)?,
            fragments: optional(fragments, Value::as_u64)?,
            order: if is_lost.as_bool()? {
                VertexOrder::Lost
            } else {
                VertexOrder::Kept
            },
            is_counted: is_counted.as_bool()?,
            filled: optional(filled, |filled| {
                let bytes = base64::decode(filled.as_str()?.as_bytes()).ok()?;
                Some(Bits::from_bytes(&bytes))
            })?,
            out_of_bounds: out_of_bounds.as_u64()?,
            corners: optional(corners, |corners| match corners.as_array()?.as_slice() {
                [lower, upper] => Some((corner(lower)?, corner(upper)?)),
                _ => None,
            })?,
            is_untiled: is_untiled.as_bool()?,
            widths: {
                let widths = widths
                    .as_array()?
                    .iter()
                    .map(|width| optional(width, Value::as_u64));
                widths.collect::<Option<_>>()?
            },
        })
    }
}

/// Parses a value that may be null.
#[expect(clippy::option_option, reason = "no value, and null")]
pub(in crate::consistency) fn optional<T>(
    json: &Value,
    parse: impl FnOnce(&Value) -> Option<T>,
) -> Option<Option<T>> {
    match json {
        Value::Null => Some(None),
        json => Some(Some(parse(json)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_survive_as_text() -> Result<(), Box<dyn core::error::Error>> {
        let mut filled = Bits::new(70);
        filled.set(69);
        let checked = CheckedCells {
            rows: Some(u64::MAX),
            fragments: None,
            order: VertexOrder::Lost,
            is_counted: true,
            filled: Some(filled),
            out_of_bounds: 3,
            corners: Some((vec![0.1 + 0.2, f64::MIN], vec![1e300, 5e-324])),
            is_untiled: true,
            widths: vec![None, Some(3)],
        };
        for checked in [checked, CheckedCells::default()] {
            let json = serde_json::from_str(&checked.to_json().to_string())?;
            assert_eq!(CheckedCells::from_json(&json), Some(checked));
        }
        Ok(())
    }
}
