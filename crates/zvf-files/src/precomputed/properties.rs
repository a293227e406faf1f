//! Properties of annotations as columns.

use std::collections::HashMap;

use zvf::{Column, NumericColumn, numeric::Kind};
use zvf_model::attribute_name;
use zvf_precomputed::{PropertySpec, PropertyType, PropertyValue, property_ids};

use crate::{FileDescription, names::AttributeNames};

/// The label that `zvf export precomputed` gives to rows without a value.
const NONE: &str = "(none)";

/// Returns the name of an attribute: the description, if the identifier is made from it, or the
/// identifier.
pub(super) fn original_name<'a>(id: &'a str, description: Option<&'a str>) -> &'a str {
    let name = description.filter(|text| attribute_name::problem(text).is_none());
    let name = name.filter(|name| property_ids([*name]).first().is_some_and(|made| made == id));
    name.unwrap_or(id)
}

/// The columns of the properties of a source.
#[derive(Clone, Debug)]
pub(super) struct PropertyColumns {
    properties: Vec<PropertyColumn>,
}

/// The column of a property.
#[derive(Clone, Debug)]
struct PropertyColumn {
    name: String,
    values: PropertyRows,
}

#[derive(Clone, Debug)]
enum PropertyRows {
    Numbers(NumericColumn),
    /// Integers with names.
    Words {
        labels: HashMap<i64, String>,
        rows: Vec<i64>,
    },
}

impl PropertyColumns {
    /// Plans the columns, names them, and describes them as attributes of `scope`.
    pub(super) fn new(
        specs: &[PropertySpec],
        scope: &str,
        names: &mut AttributeNames,
        description: &mut FileDescription,
    ) -> Self {
        let mut properties = Vec::with_capacity(specs.len());
        for spec in specs {
            let text = spec.description.as_deref().filter(|text| !text.is_empty());
            let original = original_name(&spec.id, text);
            let name = names.add(original);
            if let Some(text) = text.filter(|text| *text != original) {
                description.describe(scope, &name, text);
            }
            let values = if spec.labels.is_empty() {
                numbers_of(spec.kind)
            } else if is_integer(spec.kind) {
                let labels = spec
                    .labels
                    .iter()
                    .filter_map(|label| Some((whole(label.value)?, &label.label)));
                PropertyRows::Words {
                    labels: labels
                        .map(|(value, label)| (value, label.clone()))
                        .collect(),
                    rows: Vec::new(),
                }
            } else {
                let kind = spec.kind.name();
                let note = format!("names of values of {name} are left out: the values are {kind}");
                description.notes.push(note);
                numbers_of(spec.kind)
            };
            properties.push(PropertyColumn { name, values });
        }
        Self { properties }
    }

    /// Returns the columns without rows.
    pub(super) fn emptied(&self) -> Self {
        let properties = self.properties.iter().map(|property| PropertyColumn {
            name: property.name.clone(),
            values: match &property.values {
                PropertyRows::Numbers(numbers) => {
                    PropertyRows::Numbers(numbers.with_bytes(Vec::new()))
                }
                PropertyRows::Words { labels, .. } => PropertyRows::Words {
                    labels: labels.clone(),
                    rows: Vec::new(),
                },
            },
        });
        Self {
            properties: properties.collect(),
        }
    }

    /// Appends the values of an annotation.
    pub(super) fn push(&mut self, values: &[PropertyValue]) {
        for (property, value) in self.properties.iter_mut().zip(values) {
            match &mut property.values {
                PropertyRows::Numbers(numbers) => put(*value, &mut numbers.bytes),
                PropertyRows::Words { rows, .. } => rows.push(integer(*value)),
            }
        }
    }

    /// Returns the columns. A number without a name becomes its digits.
    pub(super) fn finish(self) -> Vec<Column> {
        let columns = self
            .properties
            .into_iter()
            .map(|property| match property.values {
                PropertyRows::Numbers(numbers) => Column::new(property.name, numbers),
                PropertyRows::Words { mut labels, rows } => {
                    for row in &rows {
                        if !labels.contains_key(row) {
                            labels.insert(*row, row.to_string());
                        }
                    }
                    let word = |row: &i64| labels.get(row).filter(|label| *label != NONE);
                    Column::text(property.name, rows.iter().map(word))
                }
            });
        columns.collect()
    }
}

fn numbers_of(kind: PropertyType) -> PropertyRows {
    let (kind, width) = match kind {
        PropertyType::Int32 => (Kind::Int32, 1),
        PropertyType::Uint32 => (Kind::UInt32, 1),
        PropertyType::Int16 => (Kind::Int16, 1),
        PropertyType::Uint16 => (Kind::UInt16, 1),
        PropertyType::Int8 => (Kind::Int8, 1),
        PropertyType::Uint8 => (Kind::UInt8, 1),
        PropertyType::Rgb => (Kind::UInt8, 3),
        PropertyType::Rgba => (Kind::UInt8, 4),
        _ => (Kind::Float32, 1),
    };
    PropertyRows::Numbers(NumericColumn::new(kind, width))
}

fn is_integer(kind: PropertyType) -> bool {
    !matches!(
        kind,
        PropertyType::Float32 | PropertyType::Rgb | PropertyType::Rgba
    )
}

/// Returns a whole number that a 64-bit float holds exactly.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "the number is whole and has at most 53 bits"
)]
pub(super) fn whole(value: f64) -> Option<i64> {
    let is_whole =
        value.fract().abs() < f64::MIN_POSITIVE && value.abs() <= 9_007_199_254_740_992.0;
    is_whole.then_some(value as i64)
}

/// Returns an integer; 0 for other values, which have no labels.
fn integer(value: PropertyValue) -> i64 {
    match value {
        PropertyValue::Int32(value) => value.into(),
        PropertyValue::Uint32(value) => value.into(),
        PropertyValue::Int16(value) => value.into(),
        PropertyValue::Uint16(value) => value.into(),
        PropertyValue::Int8(value) => value.into(),
        PropertyValue::Uint8(value) => value.into(),
        _ => 0,
    }
}

fn put(value: PropertyValue, to: &mut Vec<u8>) {
    match value {
        PropertyValue::Float32(value) => to.extend_from_slice(&value.to_le_bytes()),
        PropertyValue::Int32(value) => to.extend_from_slice(&value.to_le_bytes()),
        PropertyValue::Uint32(value) => to.extend_from_slice(&value.to_le_bytes()),
        PropertyValue::Int16(value) => to.extend_from_slice(&value.to_le_bytes()),
        PropertyValue::Uint16(value) => to.extend_from_slice(&value.to_le_bytes()),
        PropertyValue::Int8(value) => to.extend_from_slice(&value.to_le_bytes()),
        PropertyValue::Uint8(value) => to.push(value),
        PropertyValue::Rgb(value) => to.extend_from_slice(&value),
        PropertyValue::Rgba(value) => to.extend_from_slice(&value),
        // Types that a later version of the format adds have no column.
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_that_are_names_are_kept() {
        assert_eq!(original_name("fA", Some("FA")), "FA");
        assert_eq!(original_name("fA", Some("fractional anisotropy")), "fA");
        assert_eq!(original_name("a_b", Some("a b")), "a b");
        assert_eq!(original_name("a", Some("b")), "a");
        assert_eq!(original_name("a", None), "a");
    }
}
