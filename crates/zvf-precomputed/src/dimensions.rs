//! The axes of annotations and of the state of a viewer.

use core::fmt;
use std::{collections::HashSet, fmt::Write};

use serde_core::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::InfoError;

/// An axis: its name, and the unit of its coordinates.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// Name of the axis.
    pub name: String,
    /// Size of a step of the coordinate, in `unit`.
    pub scale: f64,
    /// `m`, `s`, `Hz`, `rad/s`, or empty.
    pub unit: String,
}

/// The axes of a space, in order. JSON keeps them in an object, in which the order of the keys
/// counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dimensions(pub Vec<Dimension>);

impl Dimensions {
    /// Returns the axes as a JSON object.
    pub fn to_json(&self) -> String {
        let mut text = String::from("{");
        for (axis, dimension) in self.0.iter().enumerate() {
            let comma = if axis == 0 { "" } else { "," };
            let name = Value::from(dimension.name.as_str());
            let scale = Value::from(dimension.scale);
            let unit = Value::from(dimension.unit.as_str());
            // Writing into a string does not fail.
            let _ = write!(text, "{comma}{name}:[{scale},{unit}]");
        }
        text.push('}');
        text
    }

    /// Reads the member `dimensions` of a document.
    pub(crate) fn of_document(json: &[u8]) -> Result<Self, InfoError> {
        let document: Document = serde_json::from_slice(json)?;
        let dimensions = document.0.ok_or(InfoError::Field {
            path: "dimensions".to_owned(),
            wanted: "an object of axes",
        })?;
        let mut names = HashSet::new();
        let fault = dimensions.0.iter().find(|dimension| {
            let is_valid = dimension.scale.is_finite() && dimension.scale > 0.0;
            !is_valid || !names.insert(dimension.name.as_str())
        });
        match fault {
            Some(dimension) => Err(InfoError::Field {
                path: format!("dimensions.{}", dimension.name),
                wanted: "one axis with a positive scale",
            }),
            None => Ok(dimensions),
        }
    }
}

/// The dimensions of a document, whose order a [`Value`] would lose.
struct Document(Option<Dimensions>);

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(DocumentVisitor).map(Self)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Option<Dimensions>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an info document")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut dimensions = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == "dimensions" {
                dimensions = Some(map.next_value::<Dimensions>()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(dimensions)
    }
}

impl<'de> Deserialize<'de> for Dimensions {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(AxesVisitor)
    }
}

struct AxesVisitor;

impl<'de> Visitor<'de> for AxesVisitor {
    type Value = Dimensions;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of axes as {\"x\": [1e-9, \"m\"]}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Dimensions, A::Error> {
        let mut axes = Vec::new();
        while let Some((name, axis)) = map.next_entry::<String, Value>()? {
            let scale = axis.get(0).and_then(Value::as_f64);
            let unit = axis.get(1).and_then(Value::as_str);
            let (Some(scale), Some(unit)) = (scale, unit) else {
                return Err(A::Error::custom(format_args!(
                    "axis {name:?} is not a scale and a unit"
                )));
            };
            axes.push(Dimension {
                name,
                scale,
                unit: unit.to_owned(),
            });
        }
        Ok(Dimensions(axes))
    }
}
