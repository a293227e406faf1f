//! Conversion of added attributes to the types of the store.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{
    error::{EditError, damaged, missing},
    image::{CellId, LevelSnapshot},
    links,
};
use crate::{
    plan::WritePlan,
    stored_column::{StoredColumn, little, set_nan},
};
use zvf_format::{fragment::FragmentIndex, numeric::Kind};
use zvf_model::{
    array::{CellAttribute, CellAttributeRole},
    column::{Column, ColumnValues, NumericColumn},
};

const VERTEX: &str = "0/vertex_attributes/";
const FRAGMENT: &str = "0/fragment_attributes/";
const LINK: &str = "0/link_attributes/";

impl LevelSnapshot {
    /// Returns added columns in the types of the store, by array path.
    pub(super) fn columns(
        &mut self,
        what: &'static str,
        family: &str,
        attributes: &[Column],
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
        attribute: &Column,
    ) -> Result<StoredColumn, EditError> {
        let columns = self.stored_columns(path)?;
        let node = self.nodes.get_mut(path);
        let node = node.ok_or_else(|| missing(path))?;
        let attributes = node["attributes"].as_object_mut();
        let attributes = attributes.ok_or_else(|| damaged(path, "no attributes"))?;
        let columns = columns.unwrap_or_else(|| declared_columns(attributes));
        let numbers = fitted(what, path, attributes, columns, attribute)?;
        let dtype = little(numbers.kind);
        Ok(StoredColumn {
            name: attribute.name.clone(),
            metadata: CellAttribute::new(CellAttributeRole::Link, &attribute.name, dtype),
            numbers,
        })
    }

    /// Returns the number of columns of an attribute, as readers find it: from the size of a cell,
    /// because the reference declares one column of attributes that have several. `None` if no cell
    /// is loaded; see [`sample`](Self::sample).
    fn stored_columns(&self, path: &str) -> Result<Option<u64>, EditError> {
        let attribute = attribute_of(path);
        for ((path, chunk), cell) in &self.cells {
            if attribute_of(path) != attribute {
                continue;
            }
            let rows = self.rows_of_cell(path, chunk)?;
            let dtype = self.arrays.get(path).and_then(|array| array.dtype);
            let size = dtype.map_or(Kind::Float32.size(), |dtype| dtype.kind().size());
            let column = rows.saturating_mul(size);
            if column == 0 {
                continue;
            }
            if !cell.len().is_multiple_of(column) {
                return Err(damaged(path, "not a whole number of rows").in_chunk(chunk));
            }
            return Ok(Some((cell.len() / column) as u64));
        }
        Ok(None)
    }

    /// Returns the number of rows of an attribute's cell, from the cell that its rows belong to.
    fn rows_of_cell(&self, path: &str, chunk: &[i64]) -> Result<usize, EditError> {
        let cell = |path: &str| self.cells.get(&(path.to_owned(), chunk.to_vec()));
        if path.starts_with(VERTEX) {
            let row = self.axes.saturating_mul(self.positions.size()).max(1);
            return Ok(cell("0/vertices").map_or(0, |positions| positions.len() / row));
        }
        if path.starts_with(FRAGMENT) {
            let index = cell("0/vertex_fragments").map(|index| FragmentIndex::parse(index));
            let index = index.transpose();
            let index = index.map_err(|error| damaged("0/vertex_fragments", error))?;
            return Ok(index.map_or(0, |index| index.len() as usize));
        }
        let segment = path.rsplit_once('/').map_or(path, |(_, segment)| segment);
        let rows = links::load(self, segment, chunk)?.rows;
        Ok(usize::try_from(rows).unwrap_or(usize::MAX))
    }

    /// Adds a cell of each attribute without one to `needs`, and the cell that its rows belong to,
    /// unless its metadata states its number of columns.
    pub(super) fn sample(&self, needs: &mut BTreeSet<CellId>) {
        for (path, array) in &self.arrays {
            let is_attribute = [VERTEX, FRAGMENT, LINK]
                .iter()
                .any(|family| path.starts_with(family));
            let attributes = &self
                .nodes
                .get(path)
                .map_or(&Value::Null, |node| &node["attributes"]);
            let is_reliable = attributes["encoding"].as_str() == Some("dictionary")
                || attributes["row_shape"]
                    .as_array()
                    .is_some_and(|shape| !shape.is_empty());
            let has_cell = |needs: &BTreeSet<CellId>| {
                let attribute = attribute_of(path);
                needs
                    .iter()
                    .any(|(path, _)| attribute_of(path) == attribute)
            };
            let Some(chunk) = array.present.first().filter(|_| is_attribute) else {
                continue;
            };
            if is_reliable || has_cell(needs) {
                continue;
            }
            let of_rows = match path {
                path if path.starts_with(VERTEX) => "0/vertices",
                path if path.starts_with(FRAGMENT) => "0/vertex_fragments",
                path => {
                    let segment = path
                        .rsplit_once('/')
                        .map_or(path.as_str(), |(_, segment)| segment);
                    needs.extend(links::of_cell(self, segment, chunk));
                    continue;
                }
            };
            let of_rows = (of_rows.to_owned(), chunk.clone());
            if self
                .arrays
                .get(&of_rows.0)
                .is_some_and(|array| array.present.contains(chunk))
            {
                needs.extend([of_rows, (path.clone(), chunk.clone())]);
            }
        }
    }

    /// Returns fragment attributes by object row: the given ones and the object ids that the store
    /// maintains.
    pub(super) fn fragment_columns(
        &mut self,
        plan: &WritePlan,
        owners: &[i64],
    ) -> Result<BTreeMap<String, NumericColumn>, EditError> {
        let family = FRAGMENT;
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
                let kind = kind.unwrap_or(Kind::Int64);
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
                .map_or(&[][..], |objects| &objects.attribute_rows);
            let mut attribute = attribute.clone();
            let missing = attribute.len();
            if given.contains(&None) {
                attribute.extend_with_nulls(missing.saturating_add(1));
            }
            let column = self.column(what, &path, &attribute)?;
            let rows = given.iter().map(|row| row.unwrap_or(missing));
            columns.insert(path, column.numbers.take(rows));
        }
        Ok(columns)
    }
}

/// Returns the path of an attribute, which is the same for all arrays of an attribute of links.
fn attribute_of(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some((attribute, _)) if path.starts_with(LINK) => attribute,
        _ => path,
    }
}

/// Returns the number of columns that the metadata of an array states.
fn declared_columns(attributes: &Map<String, Value>) -> u64 {
    match attributes.get("row_shape").and_then(Value::as_array) {
        Some(shape) => shape.iter().filter_map(Value::as_u64).product(),
        None => 1,
    }
}

/// Converts a column to the type of the array with these attributes and this number of columns; new
/// words are appended to its dictionary.
fn fitted(
    what: &'static str,
    path: &str,
    attributes: &mut Map<String, Value>,
    columns: u64,
    attribute: &Column,
) -> Result<NumericColumn, EditError> {
    let dtype = attributes
        .get("dtype")
        .and_then(Value::as_str)
        .unwrap_or("float32")
        .to_owned();
    let name = attribute.name.clone();
    let unlike = |found: String| EditError::AttributeType {
        what,
        name: name.clone(),
        expected: format!("{columns} x {dtype}"),
        found,
    };
    match (
        &attribute.values,
        attributes.get("encoding").and_then(Value::as_str) == Some("dictionary"),
    ) {
        (ColumnValues::Numeric(numbers), false) => {
            let same = numbers.kind.name() == dtype && numbers.row_len() as u64 == columns;
            let found = format!("{} x {}", numbers.row_len(), numbers.kind.name());
            if !same {
                return Err(unlike(found));
            }
            let mut numbers = numbers.clone();
            if let Some(nulls) = &attribute.nulls {
                set_nan(&name, &mut numbers, nulls)?;
            }
            return Ok(numbers);
        }
        (ColumnValues::Numeric(numbers), true) => {
            return Err(unlike(numbers.kind.name().to_owned()));
        }
        (ColumnValues::Dictionary { .. }, false) => return Err(unlike("text".to_owned())),
        (ColumnValues::Dictionary { .. }, true) => {}
    }
    let fill = attributes.get("_FillValue").and_then(Value::as_i64);
    let words = attributes
        .get_mut("categories")
        .and_then(Value::as_array_mut);
    let words = words.ok_or_else(|| damaged(path, "a dictionary without categories"))?;
    let mut numbers: BTreeMap<String, i64> = BTreeMap::new();
    for (number, word) in (0..).zip(words.iter()) {
        if let Some(word) = word.as_str() {
            numbers.insert(word.to_owned(), number);
        }
    }
    let mut codes = Vec::with_capacity(attribute.len());
    for text in attribute.texts() {
        codes.push(match text {
            None => fill.ok_or_else(|| EditError::AttributeType {
                what,
                name: name.clone(),
                expected: "text without missing values".to_owned(),
                found: "text with missing values; give each row a text".to_owned(),
            })?,
            Some(text) => {
                let next = words.len() as i64;
                *numbers.entry(text.to_owned()).or_insert_with(|| {
                    words.push(json!(text));
                    next
                })
            }
        });
    }
    let kind = zvf_format::numeric::Dtype::parse(&dtype);
    let kind = kind.map_err(|error| damaged(path, error))?.kind();
    let max = match kind.name() {
        "int8" => 127,
        "uint8" => 255,
        "int16" => 32_767,
        "uint16" => 65_535,
        _ => i64::from(i32::MAX),
    };
    if words.len() as i64 > max {
        return Err(EditError::TextType { what, name, dtype });
    }
    let bytes = codes
        .iter()
        .flat_map(|code| code.to_le_bytes()[..kind.size()].to_vec());
    Ok(NumericColumn {
        bytes: bytes.collect(),
        ..NumericColumn::new(kind, 1)
    })
}

/// Values of an attribute of vertices in the form in which they are stored.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StoredValues {
    /// Values, or dictionary codes of text.
    pub numbers: NumericColumn,
    /// Attributes of the array.
    pub attributes: Map<String, Value>,
    /// Value of vertices without one; `None` if the type has none.
    pub filler: Option<Vec<u8>>,
}

impl StoredValues {
    /// Converts the column of a new attribute. `is_partial` is whether some vertices have no row.
    ///
    /// # Errors
    ///
    /// [`EditError::Build`] if values cannot be stored.
    pub fn new(column: &Column, is_partial: bool) -> Result<Self, EditError> {
        let rows = column.len();
        let mut column = column.clone();
        let is_text = matches!(column.values, ColumnValues::Dictionary { .. });
        if is_text && is_partial {
            // The dictionary then has a code for missing values.
            column.extend_with_nulls(rows.saturating_add(1));
        }
        let stored = StoredColumn::of(column, CellAttributeRole::Vertex, true)?;
        let numbers = match stored.numbers.len() > rows {
            true => stored.numbers.take(0..rows),
            false => stored.numbers,
        };
        let attributes = stored.metadata.to_attributes();
        let filler = filler(&numbers, &attributes);
        Ok(Self {
            numbers,
            attributes,
            filler,
        })
    }

    /// Converts a column to the type of an existing attribute of vertices at `path`. `columns` is the
    /// number of columns of its cells; `None` if it has none, and the metadata is to be believed.
    ///
    /// # Errors
    ///
    /// [`EditError::AttributeType`] if the types differ; [`EditError`] if the attribute is damaged.
    pub fn like(
        path: &str,
        attributes: &Map<String, Value>,
        columns: Option<u64>,
        column: &Column,
    ) -> Result<Self, EditError> {
        let mut attributes = attributes.clone();
        let columns = columns.unwrap_or_else(|| declared_columns(&attributes));
        let numbers = fitted("vertex attribute", path, &mut attributes, columns, column)?;
        let filler = filler(&numbers, &attributes);
        Ok(Self {
            numbers,
            attributes,
            filler,
        })
    }
}

/// Returns the value of a vertex without one: NaN, or the code of missing text.
fn filler(numbers: &NumericColumn, attributes: &Map<String, Value>) -> Option<Vec<u8>> {
    if let Some(code) = attributes.get("_FillValue").and_then(Value::as_i64) {
        let bytes = code.to_le_bytes();
        return bytes.get(..numbers.kind.size()).map(<[u8]>::to_vec);
    }
    Some(numbers.kind.nan()?.repeat(numbers.row_len()))
}
