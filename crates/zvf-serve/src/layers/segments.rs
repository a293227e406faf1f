//! Properties of segments from the attributes of objects.

mod groups;

use std::{collections::HashSet, sync::Arc};

use zvf::{Column, ColumnValues};
use zvf_format::numeric::{Kind, Value};
use zvf_precomputed::{SegmentProperties, SegmentProperty, SegmentPropertyValues, property_ids};

pub(crate) use groups::GroupTable;

use super::attributes::narrow;

/// The viewer reads properties as one document.
pub(crate) const MAX_SEGMENTS: usize = 1_000_000;
/// Values of all properties: the document has some 10 bytes for each.
const MAX_VALUES: usize = 4_000_000;
/// Words of an attribute that are tags.
const MAX_CATEGORIES: usize = 64;
/// Segments that a viewer shows at first.
pub(crate) const INITIAL_SEGMENTS: usize = 500;
/// The id of the only segment of a store without objects. The viewer treats 0 as background.
pub(crate) const ONLY_SEGMENT: u64 = 1;
/// The folder of the properties, below that of a layer.
pub(crate) const PROPERTIES: &str = "properties";

/// The objects of a store with their attributes.
#[derive(Clone, Debug, Default)]
pub(crate) struct SegmentTable {
    /// Ids of objects in the order of the result.
    pub(crate) ids: Vec<i64>,
    /// The number of objects. `ids` may have only the first of them.
    pub(crate) count: usize,
    negative: usize,
    columns: Vec<Column>,
    /// Columns whose batches do not fit together.
    inconsistent: Vec<String>,
    /// The groups whose members are tagged.
    groups: Option<Arc<GroupTable>>,
}

impl SegmentTable {
    /// Adds objects. Only the ids of the first `max` objects are kept.
    pub(crate) fn add(&mut self, ids: &[i64], columns: &[Column], max: usize) {
        let before = self.ids.len();
        let room = max.saturating_sub(before);
        self.ids.extend(ids.iter().take(room));
        self.count = self.count.saturating_add(ids.len());
        let negative = ids.iter().filter(|id| **id < 0).count();
        self.negative = self.negative.saturating_add(negative);
        if self.count > MAX_SEGMENTS {
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
                        self.inconsistent.push(column.name.clone());
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

    /// Fills and limits the columns. Notes what the document changes or lacks; `what` names the
    /// segments.
    pub(crate) fn finish(&mut self, what: &str, notes: &mut Vec<String>) {
        let rows = self.count;
        let inconsistent = core::mem::take(&mut self.inconsistent);
        self.columns
            .retain(|column| !inconsistent.contains(&column.name));
        for column in &mut self.columns {
            column.extend_with_nulls(rows);
        }
        if rows > MAX_SEGMENTS {
            notes.push(format!(
                "attributes of {what} are left out: Neuroglancer reads properties of {MAX_SEGMENTS} \
                 segments at most"
            ));
        }
        let max = MAX_VALUES.checked_div(rows.max(1)).unwrap_or(0);
        let mut values = 0_usize;
        let is_kept = |column: &Column| {
            values = values.saturating_add(match &column.values {
                ColumnValues::Numeric(numbers) => usize::try_from(numbers.width).unwrap_or(1),
                ColumnValues::Dictionary { .. } => 1,
            });
            values <= max
        };
        let (kept, left_out): (Vec<Column>, Vec<Column>) = core::mem::take(&mut self.columns)
            .into_iter()
            .partition(is_kept);
        self.columns = kept;
        notes.extend(left_out.iter().map(|column| {
            format!(
                "attribute {} of {what} is left out: their properties would have more than \
                 {MAX_VALUES} values",
                column.name
            )
        }));
        let shown = self.rows();
        for column in &self.columns {
            let mut found = Vec::new();
            properties_of(column, &shown, &mut found);
            notes.extend(
                found
                    .iter()
                    .map(|note| format!("properties of {what}: {note}")),
            );
        }
        let negative = self.negative;
        if negative > 0 {
            notes.push(format!("{negative} {what} with negative ids are left out"));
        }
    }

    /// Returns the first ids, which a viewer shows.
    pub(crate) fn shown(&self) -> Vec<u64> {
        let ids = self.ids.iter().filter_map(|id| u64::try_from(*id).ok());
        ids.take(INITIAL_SEGMENTS).collect()
    }

    /// Tags the members of groups.
    pub(crate) fn tag(&mut self, groups: &Arc<GroupTable>) {
        if self.count <= MAX_SEGMENTS && !groups.is_empty() {
            self.groups = Some(Arc::clone(groups));
        }
    }

    /// Returns the first column of texts.
    pub(crate) fn first_texts(&self) -> Option<&Column> {
        let is_text = |column: &&Column| matches!(column.values, ColumnValues::Dictionary { .. });
        self.columns.iter().find(is_text)
    }

    /// Returns whether there is a document.
    pub(crate) fn has_document(&self) -> bool {
        let has_properties = !self.columns.is_empty() || self.groups.is_some();
        has_properties && self.ids.iter().any(|id| *id >= 0)
    }

    /// Returns the document as JSON; `None` if there are no properties.
    pub(crate) fn to_json(&self) -> Option<String> {
        if self.has_document() {
            self.document().to_json()
        } else {
            None
        }
    }

    /// Returns the rows of the document.
    fn rows(&self) -> Vec<usize> {
        let rows = self.ids.iter().enumerate();
        rows.filter_map(|(row, id)| (*id >= 0).then_some(row))
            .collect()
    }

    fn document(&self) -> SegmentProperties {
        let rows = self.rows();
        let ids = rows
            .iter()
            .filter_map(|row| self.ids.get(*row))
            .filter_map(|id| u64::try_from(*id).ok())
            .collect();
        let mut properties = Vec::new();
        let mut names = Vec::new();
        for column in &self.columns {
            for (name, values) in properties_of(column, &rows, &mut Vec::new()) {
                names.push(name.clone());
                properties.push(SegmentProperty {
                    id: String::new(),
                    description: Some(name),
                    values,
                });
            }
        }
        if let Some(values) = self.tags(&rows) {
            names.push("tags".to_owned());
            properties.push(SegmentProperty {
                id: String::new(),
                description: None,
                values,
            });
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

    /// Returns the groups and categories of rows as tags, by which a viewer selects segments.
    fn tags(&self, rows: &[usize]) -> Option<SegmentPropertyValues> {
        let groups = self.groups.as_deref();
        let mut names = groups.map(GroupTable::names).unwrap_or_default();
        let mut values: Vec<Vec<u32>> = rows
            .iter()
            .map(|row| match groups.zip(self.ids.get(*row)) {
                Some((groups, object)) => groups.places_of(*object).collect(),
                None => Vec::new(),
            })
            .collect();
        for column in &self.columns {
            let ColumnValues::Dictionary { codes, words } = &column.values else {
                continue;
            };
            if words.len() > MAX_CATEGORIES || words.len().saturating_mul(2) > rows.len() {
                continue;
            }
            let first = u32::try_from(names.len()).unwrap_or(u32::MAX);
            let tag = |word: &String| format!("{}:{word}", column.name);
            names.extend(words.iter().map(tag));
            for (row, tags) in rows.iter().zip(&mut values) {
                let is_word =
                    |code: &&u32| usize::try_from(**code).is_ok_and(|code| code < words.len());
                let code = codes
                    .get(*row)
                    .filter(|_| !column.is_null(*row))
                    .filter(is_word);
                tags.extend(code.map(|code| first.saturating_add(*code)));
            }
        }
        if names.is_empty() {
            return None;
        }
        let mut taken = HashSet::new();
        let tags: Vec<String> = names.iter().map(|name| tag(name, &mut taken)).collect();
        let descriptions = names
            .into_iter()
            .zip(&tags)
            .map(|(name, tag)| if name == *tag { String::new() } else { name });
        Some(SegmentPropertyValues::Tags {
            descriptions: descriptions.collect(),
            tags,
            values,
        })
    }
}

/// Returns a name as a tag: without blanks and a leading `#`, and without regard to case unlike those
/// in `taken`.
fn tag(name: &str, taken: &mut HashSet<String>) -> String {
    let name: String = name
        .trim_start_matches('#')
        .chars()
        .map(|letter| {
            if letter.is_whitespace() || letter.is_control() {
                '_'
            } else {
                letter
            }
        })
        .collect();
    let name = if name.is_empty() {
        "_".to_owned()
    } else {
        name
    };
    let mut own = name.clone();
    let mut number = 2_u64;
    while !taken.insert(own.to_lowercase()) {
        own = format!("{name}_{number}");
        number = number.saturating_add(1);
    }
    own
}

/// Returns the properties of a column with their names. Notes values that are changed.
fn properties_of(
    column: &Column,
    rows: &[usize],
    notes: &mut Vec<String>,
) -> Vec<(String, SegmentPropertyValues)> {
    match &column.values {
        ColumnValues::Dictionary { .. } => {
            let texts = rows
                .iter()
                .map(|row| column.text_at(*row).unwrap_or_default())
                .map(str::to_owned)
                .collect();
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
                    let value = view.value(*row, channel);
                    value.filter(|_| !column.is_null(*row))
                };
                let values: Vec<Option<Value>> = rows.iter().map(number).collect();
                match numbers_of(&name, numbers.kind, &values, notes) {
                    Some(values) => Some((name, values)),
                    None => {
                        notes.push(format!("attribute {name} is left out: it is complex"));
                        None
                    }
                }
            });
            channels.collect()
        }
    }
}

/// Returns numbers as a property; `None` for complex numbers. The format has neither missing values nor
/// NaN, and no integers beyond 32 bits, which become text.
fn numbers_of(
    name: &str,
    kind: Kind,
    values: &[Option<Value>],
    notes: &mut Vec<String>,
) -> Option<SegmentPropertyValues> {
    let is_float = match kind {
        Kind::Complex64 | Kind::Complex128 => return None,
        Kind::Float16 | Kind::Float32 | Kind::Float64 => true,
        _ => false,
    };
    let numbers: Vec<Option<f64>> = values
        .iter()
        .map(|value| {
            let number = value.map(Value::to_f64);
            number.filter(|number| narrow(*number).is_finite())
        })
        .collect();
    let known = numbers.iter().flatten().copied();
    let low = known.clone().fold(f64::INFINITY, f64::min);
    let high = known.fold(f64::NEG_INFINITY, f64::max);
    let missing = numbers.iter().filter(|number| number.is_none()).count();
    // A number that no segment has stands for missing values.
    let stand_in = if low < 0.0 {
        f64::from(narrow(2.0 * low.floor()).max(f32::MIN))
    } else {
        -1.0
    };
    let data_type = match missing {
        _ if is_float => Some("float32"),
        0 => number_type(kind, low, high),
        _ => number_type(Kind::Int64, stand_in, high),
    };
    let Some(data_type) = data_type else {
        notes.push(format!(
            "attribute {name} has integers above 32 bits, which are text"
        ));
        if missing > 0 {
            notes.push(format!(
                "{missing} values of {name} are missing, and shown as empty text"
            ));
        }
        let texts = values.iter().map(|value| match value {
            Some(Value::Int(number)) => number.to_string(),
            Some(Value::UInt(number)) => number.to_string(),
            _ => String::new(),
        });
        return Some(SegmentPropertyValues::Text(texts.collect()));
    };
    if kind == Kind::Float64 {
        notes.push(format!("attribute {name} is rounded to float32"));
    }
    if missing > 0 {
        let why = if is_float {
            "missing or not finite as float32"
        } else {
            "missing"
        };
        notes.push(format!(
            "{missing} values of {name} are {why}, and shown as {stand_in}"
        ));
    }
    let numbers = numbers.into_iter();
    Some(SegmentPropertyValues::Number {
        data_type: data_type.to_owned(),
        values: numbers.map(|number| number.unwrap_or(stand_in)).collect(),
    })
}

/// Returns the type of numbers in this range; `None` for integers beyond 32 bits.
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
        Kind::Int64 | Kind::UInt64 => return None,
        _ => "float32",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_distinct_words() {
        let mut taken = HashSet::new();
        let tags = ["#Left tract", "left_tract", "", "a"].map(|name| tag(name, &mut taken));
        assert_eq!(tags, ["Left_tract", "left_tract_2", "_", "a"]);
    }
}
