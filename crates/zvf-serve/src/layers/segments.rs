//! Properties of segments from the attributes of objects.

use zvf::{Column, ColumnValues};
use zvf_format::numeric::{Kind, Value};
use zvf_precomputed::{SegmentProperties, SegmentProperty, SegmentPropertyValues, property_ids};

/// The viewer reads properties as one document.
const MOST_SEGMENTS: usize = 1_000_000;
/// Segments that a viewer shows at first.
pub(crate) const SHOWN: usize = 500;
/// The id of the only segment of a store without objects. The viewer treats 0 as background.
pub(crate) const ONLY: u64 = 1;
/// The folder of the properties, below that of a layer.
pub(crate) const PROPERTIES: &str = "properties";

/// The objects of a store with their attributes.
#[derive(Clone, Debug, Default)]
pub(crate) struct SegmentTable {
    /// Ids of objects in the order of the result.
    pub(crate) ids: Vec<i64>,
    columns: Vec<Column>,
    /// Columns whose batches do not fit together.
    torn: Vec<String>,
}

impl SegmentTable {
    pub(crate) fn add(&mut self, ids: &[i64], columns: &[Column]) {
        let before = self.ids.len();
        self.ids.extend_from_slice(ids);
        if self.ids.len() > MOST_SEGMENTS {
            self.columns.clear();
            return;
        }
        for column in columns {
            match self
                .columns
                .iter_mut()
                .find(|known| known.name == column.name)
            {
                Some(known) => {
                    known.extend_with_nulls(before);
                    if known.append(column.clone()).is_err() {
                        self.torn.push(column.name.clone());
                    }
                }
                None => {
                    let mut column = column.clone();
                    column.prepend_nulls(before);
                    self.columns.push(column);
                }
            }
        }
    }

    pub(crate) fn finish(&mut self, notes: &mut Vec<String>) {
        let rows = self.ids.len();
        let torn = core::mem::take(&mut self.torn);
        self.columns.retain(|column| !torn.contains(&column.name));
        for column in &mut self.columns {
            column.extend_with_nulls(rows);
        }
        if rows > MOST_SEGMENTS {
            notes.push(format!(
                "attributes of objects are left out: Neuroglancer reads properties of {MOST_SEGMENTS} \
                 segments at most"
            ));
        }
        let negative = self.ids.iter().filter(|id| **id < 0).count();
        if negative > 0 {
            notes.push(format!("{negative} objects with negative ids are left out"));
        }
    }

    /// Returns the first ids, which a viewer shows.
    pub(crate) fn shown(&self) -> Vec<u64> {
        let ids = self.ids.iter().filter_map(|id| u64::try_from(*id).ok());
        ids.take(SHOWN).collect()
    }

    /// Returns the document as JSON; `None` if there are no properties.
    pub(crate) fn to_json(&self) -> Option<String> {
        match self.columns.as_slice() {
            [] => None,
            _ => self.document().to_json(),
        }
    }

    fn document(&self) -> SegmentProperties {
        let rows: Vec<usize> = (0..self.ids.len())
            .filter(|row| self.ids.get(*row).is_some_and(|id| *id >= 0))
            .collect();
        let ids = rows.iter().filter_map(|row| self.ids.get(*row));
        let ids = ids.filter_map(|id| u64::try_from(*id).ok()).collect();
        let mut properties = Vec::new();
        let mut names = Vec::new();
        for column in &self.columns {
            for (name, values) in values(column, &rows) {
                names.push(name.clone());
                properties.push(SegmentProperty {
                    id: String::new(),
                    description: Some(name),
                    values,
                });
            }
        }
        let ids_of_names = property_ids(names.iter().map(String::as_str));
        for (property, id) in properties.iter_mut().zip(ids_of_names) {
            property.id = id;
        }
        let mut has_label = false;
        for property in &mut properties {
            // A viewer shows one label.
            if let SegmentPropertyValues::Label(texts) = &mut property.values {
                if has_label {
                    property.values = SegmentPropertyValues::Text(core::mem::take(texts));
                }
                has_label = true;
            }
        }
        SegmentProperties { ids, properties }
    }
}

/// Returns the properties of a column with their names.
fn values(column: &Column, rows: &[usize]) -> Vec<(String, SegmentPropertyValues)> {
    match &column.values {
        ColumnValues::Dictionary { .. } => {
            let texts = rows
                .iter()
                .map(|row| column.text_at(*row).unwrap_or_default());
            let texts = texts.map(str::to_owned).collect();
            vec![(column.name.clone(), SegmentPropertyValues::Label(texts))]
        }
        ColumnValues::Numeric(numbers) => {
            let Some(view) = numbers.view() else {
                return Vec::new();
            };
            let channels = (0..numbers.width).filter_map(|channel| {
                let name = match numbers.width {
                    1 => column.name.clone(),
                    _ => format!("{}_{channel}", column.name),
                };
                let number = |row: &usize| {
                    let value = view.value(*row, channel).map(Value::to_f64);
                    value.filter(|value| value.is_finite() && !column.is_null(*row))
                };
                let values: Vec<Option<f64>> = rows.iter().map(number).collect();
                let known = values.iter().flatten();
                let low = known.clone().copied().fold(f64::INFINITY, f64::min);
                let high = known.copied().fold(f64::NEG_INFINITY, f64::max);
                let data_type = number_type(numbers.kind, low, high)?.to_owned();
                // JSON has no NaN: a row without a value has the smallest one.
                let min = if low.is_finite() { low } else { 0.0 };
                let values = values.into_iter().map(|value| value.unwrap_or(min));
                let values = SegmentPropertyValues::Number {
                    data_type,
                    values: values.collect(),
                };
                Some((name, values))
            });
            channels.collect()
        }
    }
}

fn number_type(kind: Kind, low: f64, high: f64) -> Option<&'static str> {
    Some(match kind {
        Kind::UInt8 | Kind::Bool => "uint8",
        Kind::Int8 => "int8",
        Kind::UInt16 => "uint16",
        Kind::Int16 => "int16",
        Kind::UInt32 => "uint32",
        Kind::Int32 => "int32",
        Kind::Int64 | Kind::UInt64 if low >= 0.0 && high <= u32::MAX.into() => "uint32",
        Kind::Int64 if low >= i32::MIN.into() && high <= i32::MAX.into() => "int32",
        Kind::Complex64 | Kind::Complex128 => return None,
        _ => "float32",
    })
}
