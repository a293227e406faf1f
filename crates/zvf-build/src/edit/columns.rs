//! Conversion of added attributes to the types of the store.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    error::{EditError, damaged, missing},
    image::{CellId, LevelSnapshot},
    links,
};
use crate::{
    fragment_column::{by_fragment, by_object, owners},
    plan::WritePlan,
    stored_column::{StoredColumn, little, set_nan},
};
use zvf_format::{
    fragment::FragmentIndex,
    numeric::{Dtype, Kind},
};
use zvf_model::{
    array::{CellAttribute, CellAttributeRole},
    attribute_name::label,
    column::{Column, ColumnValues, NumericColumn},
    key::Key,
    level_content::CellContent,
    metadata::Attributes,
    scope::Scope,
};

impl LevelSnapshot {
    /// Returns added columns of vertices in the types of the store, by array.
    pub(super) fn vertex_columns(
        &mut self,
        attributes: &[Column],
    ) -> Result<BTreeMap<Key, StoredColumn>, EditError> {
        let what = "vertex attribute";
        let mut columns = BTreeMap::new();
        let named: BTreeSet<&str> = attributes
            .iter()
            .map(|attribute| attribute.name.as_str())
            .collect();
        let is_own = |array: &&Key| self.keys.scope_of(array) == Some(Scope::Vertex);
        let own = self.arrays.keys().filter(is_own);
        let stored: BTreeMap<String, Key> = own
            .map(|array| (label_of(array).into_owned(), array.clone()))
            .collect();
        if let Some(name) = stored.keys().find(|name| !named.contains(name.as_str())) {
            let name = name.clone();
            return Err(EditError::MissingAttribute { what, name });
        }
        for attribute in attributes {
            let name = attribute.name.clone();
            let Some(array) = stored.get(&*label(&name)).cloned() else {
                return Err(EditError::UnknownAttribute { what, name });
            };
            let column = self.column(what, &array, attribute)?;
            columns.insert(array, column);
        }
        Ok(columns)
    }

    /// Converts a column to the type of its array; new words are appended to the dictionary.
    pub(super) fn column(
        &mut self,
        what: &'static str,
        array: &Key,
        attribute: &Column,
    ) -> Result<StoredColumn, EditError> {
        let columns = self.stored_columns(array)?;
        let stored = self.arrays.get_mut(array).map(|array| &mut array.cells);
        let (Some(CellContent::Attribute(metadata)), Some(node)) =
            (stored, self.nodes.get_mut(array))
        else {
            return Err(missing(array));
        };
        let numbers = fitted(what, metadata, columns, attribute)?;
        if let Some(dictionary) = &metadata.dictionary {
            CellAttribute::set_categories(node.attributes_mut(), &dictionary.categories);
        }
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
    fn stored_columns(&self, array: &Key) -> Result<Option<u64>, EditError> {
        let attribute = self.attribute_of(array);
        for ((array, chunk), cell) in &self.cells {
            if self.attribute_of(array) != attribute {
                continue;
            }
            let rows = self.rows_of_cell(array, chunk)?;
            let dtype = self.arrays.get(array);
            let dtype = dtype.and_then(|array| array.cells.dtype());
            let size = dtype.map_or(Kind::Float32.size(), |dtype| dtype.kind().size());
            let column = rows.saturating_mul(size);
            if column == 0 {
                continue;
            }
            if !cell.len().is_multiple_of(column) {
                return Err(damaged(array, "not a whole number of rows").in_chunk(chunk));
            }
            return Ok(Some((cell.len() / column) as u64));
        }
        Ok(None)
    }

    /// Returns the number of rows of an attribute's cell, from the cell that its rows belong to.
    fn rows_of_cell(&self, array: &Key, chunk: &[i64]) -> Result<usize, EditError> {
        let cell = |array: &Key| self.cells.get(&(array.clone(), chunk.to_vec()));
        match self.keys.scope_of(array) {
            Some(Scope::Vertex) => {
                let row = self.axes.saturating_mul(self.positions.size()).max(1);
                Ok(cell(&self.keys.vertices).map_or(0, |positions| positions.len() / row))
            }
            Some(Scope::Fragment) => {
                let fragments = &self.keys.vertex_fragments;
                let index = cell(fragments)
                    .map(|index| FragmentIndex::parse(index))
                    .transpose()
                    .map_err(|error| damaged(fragments, error))?;
                Ok(index.map_or(0, |index| index.len() as usize))
            }
            // Tables have no cells of chunks.
            Some(Scope::Link | Scope::Object | Scope::Group) | None => {
                let links = links::array(self, links::segment(array))?;
                let rows = links::load(self, &links, chunk)?.rows;
                Ok(usize::try_from(rows).unwrap_or(usize::MAX))
            }
        }
    }

    /// Returns the path of an attribute, which is the same for all arrays of an attribute of links.
    fn attribute_of<'k>(&self, array: &'k Key) -> &'k str {
        match array.as_str().rsplit_once('/') {
            Some((attribute, _)) if array.is_below(&self.keys.link_attributes) => attribute,
            _ => array.as_str(),
        }
    }

    /// Adds a cell of each attribute without one to `needs`, and the cell that its rows belong to,
    /// unless its metadata states its number of columns.
    ///
    /// # Errors
    ///
    /// None in practice: the keys of links have the segments of keys of their attributes.
    pub(super) fn sample(&self, needs: &mut BTreeSet<CellId>) -> Result<(), EditError> {
        for (key, array) in &self.arrays {
            let (CellContent::Attribute(metadata), Some(chunk)) =
                (&array.cells, array.present.first())
            else {
                continue;
            };
            let shape = metadata.row_shape.as_ref();
            let is_reliable =
                metadata.dictionary.is_some() || shape.is_some_and(|shape| !shape.is_empty());
            let attribute = self.attribute_of(key);
            let mut needed = needs.iter().map(|(key, _)| self.attribute_of(key));
            if is_reliable || needed.any(|other| other == attribute) {
                continue;
            }
            let of_rows = match self.keys.scope_of(key) {
                Some(Scope::Fragment) => &self.keys.vertex_fragments,
                Some(Scope::Vertex) => &self.keys.vertices,
                // Links have arrays for each segment. Tables have no cells of chunks.
                Some(Scope::Link | Scope::Object | Scope::Group) | None => {
                    let links = links::array(self, links::segment(key))?;
                    needs.extend(links::of_cell(self, &links, chunk));
                    continue;
                }
            };
            let rows = self.arrays.get(of_rows);
            if rows.is_some_and(|array| array.present.contains(chunk)) {
                needs.extend([of_rows, key].map(|key| (key.clone(), chunk.clone())));
            }
        }
        Ok(())
    }

    /// Returns fragment attributes with a row for each added fragment: the given ones and the object
    /// ids that the store maintains.
    pub(super) fn fragment_columns(
        &mut self,
        plan: &WritePlan,
    ) -> Result<BTreeMap<Key, NumericColumn>, EditError> {
        let is_own = |array: &&Key| self.keys.scope_of(array) == Some(Scope::Fragment);
        let stored: Vec<Key> = self.arrays.keys().filter(is_own).cloned().collect();
        let what = "fragment attribute";
        let (layout, objects) = (&plan.layout, plan.objects.as_ref());
        let mut added: BTreeMap<&str, Column> = BTreeMap::new();
        for column in &plan.geometry.fragment {
            added.insert(&column.name, by_object(column, layout, objects));
        }
        for column in &plan.geometry.fragment_rows {
            added.insert(&column.name, by_fragment(column, layout)?);
        }
        let is_stored = |name: &&&str| stored.iter().any(|array| label_of(array) == **name);
        if let Some(name) = added.keys().find(|name| !is_stored(name)) {
            let name = (*name).to_owned();
            return Err(EditError::UnknownAttribute { what, name });
        }
        let mut columns = BTreeMap::new();
        for array in stored {
            let name = label_of(&array).into_owned();
            let numbers = if array == self.keys.owners {
                let dtype = self.arrays[&array].cells.dtype();
                let ids = objects.map_or(&[][..], |objects| &objects.ids);
                NumericColumn {
                    bytes: owners(layout, ids).bytes,
                    ..NumericColumn::new(dtype.map_or(Kind::Int64, Dtype::kind), 1)
                }
            } else {
                let given = added
                    .get(name.as_str())
                    .ok_or(EditError::MissingAttribute { what, name })?;
                self.column(what, &array, given)?.numbers
            };
            columns.insert(array, numbers);
        }
        Ok(columns)
    }
}

/// Returns the label of an attribute in cells, from its array.
fn label_of(array: &Key) -> Cow<'_, str> {
    label(array.name().unwrap_or_default())
}

/// Converts a column to the type of an attribute whose cells have this number of columns; `None` if it
/// has no cells, and the metadata is to be believed. New words are appended to its dictionary.
fn fitted(
    what: &'static str,
    metadata: &mut CellAttribute,
    columns: Option<u64>,
    attribute: &Column,
) -> Result<NumericColumn, EditError> {
    let columns = columns.or(metadata.declared_columns()).unwrap_or(1);
    let kind = metadata.dtype.kind();
    let name = attribute.name.clone();
    let unlike = |found: String| EditError::AttributeType {
        what,
        name: name.clone(),
        expected: format!("{columns} x {}", kind.name()),
        found,
    };
    let dictionary = match (&attribute.values, &mut metadata.dictionary) {
        (ColumnValues::Numeric(numbers), None) => {
            let same = numbers.kind == kind && numbers.row_len() as u64 == columns;
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
        (ColumnValues::Numeric(numbers), Some(_)) => {
            return Err(unlike(numbers.kind.name().to_owned()));
        }
        (ColumnValues::Dictionary { .. }, None) => return Err(unlike("text".to_owned())),
        (ColumnValues::Dictionary { .. }, Some(dictionary)) => dictionary,
    };
    let words = &mut dictionary.categories;
    let mut numbers: BTreeMap<String, i64> = BTreeMap::new();
    for (number, word) in (0..).zip(words.iter()) {
        if let Some(word) = word.as_str() {
            numbers.insert(word.to_owned(), number);
        }
    }
    let mut codes = Vec::with_capacity(attribute.len());
    for text in attribute.texts() {
        codes.push(match text {
            None => dictionary.fill.ok_or_else(|| EditError::AttributeType {
                what,
                name: name.clone(),
                expected: "text without missing values".to_owned(),
                found: "text with missing values; give each row a text".to_owned(),
            })?,
            Some(text) => {
                let next = words.len() as i64;
                *numbers.entry(text.to_owned()).or_insert_with(|| {
                    words.push(text.into());
                    next
                })
            }
        });
    }
    let max = match kind {
        Kind::Int8 => 127,
        Kind::UInt8 => 255,
        Kind::Int16 => 32_767,
        Kind::UInt16 => 65_535,
        _ => i64::from(i32::MAX),
    };
    if words.len() as i64 > max {
        let dtype = kind.name().to_owned();
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
    /// Metadata of the array.
    pub metadata: CellAttribute,
    /// All attributes of the array, unknown ones included.
    pub attributes: Attributes,
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
        let mut numbers = stored.numbers;
        numbers.bytes.truncate(rows * numbers.row_size());
        Ok(Self {
            filler: filler(&numbers, &stored.metadata),
            numbers,
            attributes: stored.metadata.to_attributes(),
            metadata: stored.metadata,
        })
    }

    /// Converts a column to the type of an existing attribute of vertices at `key`. `columns` is the
    /// number of columns of its cells; `None` if it has none, and the metadata is to be believed.
    ///
    /// # Errors
    ///
    /// [`EditError::AttributeType`] if the types differ; [`EditError`] if the attribute is damaged.
    pub fn like(
        key: &Key,
        attributes: &Attributes,
        columns: Option<u64>,
        column: &Column,
    ) -> Result<Self, EditError> {
        let mut metadata = CellAttribute::parse(key, attributes)
            .map_err(|error| damaged(key, error))?
            .value;
        let numbers = fitted("vertex attribute", &mut metadata, columns, column)?;
        let mut attributes = attributes.clone();
        if let Some(dictionary) = &metadata.dictionary {
            CellAttribute::set_categories(&mut attributes, &dictionary.categories);
        }
        Ok(Self {
            filler: filler(&numbers, &metadata),
            numbers,
            attributes,
            metadata,
        })
    }
}

/// Returns the value of a vertex without one: NaN, or the code of missing text.
fn filler(numbers: &NumericColumn, metadata: &CellAttribute) -> Option<Vec<u8>> {
    let dictionary = metadata.dictionary.as_ref();
    if let Some(code) = dictionary.and_then(|dictionary| dictionary.fill) {
        let bytes = code.to_le_bytes();
        return bytes.get(..numbers.kind.size()).map(<[u8]>::to_vec);
    }
    Some(numbers.kind.nan()?.repeat(numbers.row_len()))
}
