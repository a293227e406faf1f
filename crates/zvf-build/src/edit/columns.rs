//! Conversion of added attributes to the types of the store.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{
    error::{EditError, damaged},
    image::LevelSnapshot,
};
use crate::{
    geometry::{Attribute, Values},
    plan::WritePlan,
    stored_column::StoredColumn,
};
use zvf_model::column::NumericColumn;

impl LevelSnapshot {
    /// Returns added columns in the types of the store, by array path.
    pub(super) fn columns(
        &mut self,
        what: &'static str,
        family: &str,
        attributes: &[Attribute],
    ) -> Result<BTreeMap<String, StoredColumn>, EditError> {
        let mut columns = BTreeMap::new();
        let named: BTreeSet<&str> = attributes
            .iter()
            .map(|attribute| attribute.name.as_str())
            .collect();
        let paths = self.arrays.keys().filter(|path| path.starts_with(family));
        let stored: Vec<String> = paths.cloned().collect();
        for path in &stored {
            let name = &path[family.len()..];
            if !named.contains(name) {
                let name = name.to_owned();
                return Err(EditError::MissingAttribute { what, name });
            }
        }
        for attribute in attributes {
            let path = format!("{family}{}", attribute.name);
            let name = attribute.name.clone();
            if !self.arrays.contains_key(&path) {
                return Err(EditError::UnknownAttribute { what, name });
            }
            let column = self.column(what, &path, attribute)?;
            columns.insert(path, column);
        }
        Ok(columns)
    }

    /// Converts a column to the type of its array; new words are appended to the dictionary.
    pub(super) fn column(
        &mut self,
        what: &'static str,
        path: &str,
        attribute: &Attribute,
    ) -> Result<StoredColumn, EditError> {
        let node = self.nodes.get_mut(path);
        let node = node.ok_or_else(|| EditError::NotLoaded(path.to_owned()))?;
        let says = &mut node["attributes"];
        let dtype = says["dtype"].as_str().unwrap_or("float32").to_owned();
        let columns: u64 = match says["row_shape"].as_array() {
            Some(shape) => shape.iter().filter_map(Value::as_u64).product(),
            None => 1,
        };
        let name = attribute.name.clone();
        let unlike = |found: String| EditError::AttributeType {
            what,
            name: name.clone(),
            expected: format!("{columns} x {dtype}"),
            found,
        };
        let texts = match (
            &attribute.values,
            says["encoding"].as_str() == Some("dictionary"),
        ) {
            (Values::Numbers(numbers), false) => {
                let same = numbers.kind.name() == dtype && numbers.row_len() as u64 == columns;
                let found = format!("{} x {}", numbers.row_len(), numbers.kind.name());
                if !same {
                    return Err(unlike(found));
                }
                let numbers = numbers.clone();
                return Ok(StoredColumn {
                    name,
                    numbers,
                    says: Map::new(),
                });
            }
            (Values::Numbers(numbers), true) => return Err(unlike(numbers.kind.name().to_owned())),
            (Values::Text(_), false) => return Err(unlike("text".to_owned())),
            (Values::Text(texts), true) => texts,
        };
        let fill = says["_FillValue"].as_i64();
        let words = says["categories"].as_array_mut();
        let words = words.ok_or_else(|| damaged(path, "a dictionary without categories"))?;
        let mut numbers: BTreeMap<String, i64> = BTreeMap::new();
        for (number, word) in (0..).zip(words.iter()) {
            if let Some(word) = word.as_str() {
                numbers.insert(word.to_owned(), number);
            }
        }
        let mut codes = Vec::with_capacity(texts.len());
        for text in texts {
            codes.push(match text {
                None => fill.ok_or_else(|| unlike("text with missing values".to_owned()))?,
                Some(text) => {
                    let next = words.len() as i64;
                    *numbers.entry(text.clone()).or_insert_with(|| {
                        words.push(json!(text));
                        next
                    })
                }
            });
        }
        let kind = zvf_format::numeric::Dtype::parse(&dtype);
        let kind = kind.map_err(|error| damaged(path, error))?.kind();
        let most = match kind.name() {
            "int8" => 127,
            "uint8" => 255,
            "int16" => 32_767,
            "uint16" => 65_535,
            _ => i64::from(i32::MAX),
        };
        if words.len() as i64 > most {
            return Err(EditError::TextType { what, name, dtype });
        }
        let bytes = codes
            .iter()
            .flat_map(|code| code.to_le_bytes()[..kind.size()].to_vec());
        Ok(StoredColumn {
            name,
            numbers: NumericColumn {
                bytes: bytes.collect(),
                ..NumericColumn::new(kind, 1)
            },
            says: Map::new(),
        })
    }

    /// Returns fragment attributes by object row: the given ones and the object ids that the store
    /// maintains.
    pub(super) fn fragment_columns(
        &mut self,
        plan: &WritePlan,
        owners: &[i64],
    ) -> Result<BTreeMap<String, NumericColumn>, EditError> {
        let family = "0/fragment_attributes/";
        let paths = self.arrays.keys().filter(|path| path.starts_with(family));
        let stored: Vec<String> = paths.cloned().collect();
        let mut columns = BTreeMap::new();
        let what = "fragment attribute";
        for attribute in &plan.geometry.fragment {
            if !stored.contains(&format!("{family}{}", attribute.name)) {
                let name = attribute.name.clone();
                return Err(EditError::UnknownAttribute { what, name });
            }
        }
        for path in stored {
            let name = &path[family.len()..];
            if name == "object_id" {
                let kind = self.arrays[&path]
                    .dtype
                    .map(zvf_format::numeric::Dtype::kind);
                let kind = kind.unwrap_or(zvf_format::numeric::Kind::Int64);
                let bytes = owners.iter().flat_map(|id| id.to_le_bytes());
                let numbers = NumericColumn {
                    bytes: bytes.collect(),
                    ..NumericColumn::new(kind, 1)
                };
                columns.insert(path, numbers);
                continue;
            }
            let attribute = plan
                .geometry
                .fragment
                .iter()
                .find(|attribute| attribute.name == name);
            let attribute = attribute.ok_or_else(|| EditError::MissingAttribute {
                what,
                name: name.to_owned(),
            })?;
            let given = plan
                .objects
                .as_ref()
                .map_or(&[][..], |objects| &objects.given);
            let column = self.column(what, &path, attribute)?;
            let mut numbers = NumericColumn::new(column.numbers.kind, column.numbers.width);
            for row in given {
                match row {
                    Some(row) => numbers.bytes.extend_from_slice(column.numbers.row(*row)),
                    None => numbers
                        .bytes
                        .resize(numbers.bytes.len() + numbers.row_size(), 0),
                }
            }
            columns.insert(path, numbers);
        }
        Ok(columns)
    }
}
