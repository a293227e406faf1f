//! Object index, object attributes and groups of a level.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use zvf_format::{
    groups,
    manifest::{FragmentRef, ObjectManifest, ObjectManifestBuilder},
    numeric::Kind,
};
use zvf_model::{
    array::{ObjectIndexLayout, Table as TableMetadata, TableRole},
    column::{Column, ColumnValues},
    key::Key,
    layout::{ArrayRole, LevelKeys},
    level_content::{ObjectContent, TableContent},
    metadata::Attributes,
    zarr::DataType,
};

use super::error::{EditError, damaged};

/// Tables of a level.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    /// Id of each object; `None` without an object index.
    pub(super) ids: Option<Vec<i64>>,
    /// Array of manifests, which damage of them names.
    pub(super) manifests_node: Key,
    /// Encoded manifest of each object.
    pub(super) manifests: Vec<Vec<u8>>,
    /// `true` if the index stores the manifests as rows of numbers.
    pub(super) is_dense: bool,
    pub(super) object: BTreeMap<String, Table>,
    pub(super) groups: Vec<Vec<i64>>,
    pub(super) group: BTreeMap<String, Table>,
    pub(super) row_of: HashMap<i64, usize>,
}

/// Table of numeric or text rows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    pub(super) dtype: String,
    /// Type of a number; `None` for text.
    pub(super) kind: Option<Kind>,
    pub(super) columns: usize,
    /// Encoded rows, `None` if absent.
    pub(super) rows: Vec<Option<Vec<u8>>>,
    /// Fill value as JSON and as bytes, if rows that equal it are values.
    pub(super) fill: Option<(Value, Vec<u8>)>,
    pub(super) attributes: Attributes,
}

impl Tables {
    /// Takes the tables that the catalog has read.
    pub(super) fn new(
        keys: LevelKeys,
        objects: Option<ObjectContent>,
        object: Vec<TableContent>,
        groups: Vec<Vec<i64>>,
        group: Vec<TableContent>,
    ) -> Result<Self, EditError> {
        let mut tables = Self {
            ids: None,
            manifests_node: keys.values(&ArrayRole::Manifests)?,
            manifests: Vec::new(),
            is_dense: false,
            object: Table::by_name(object)?,
            groups,
            group: Table::by_name(group)?,
            row_of: HashMap::new(),
        };
        if let Some(objects) = objects {
            check_manifests(keys, &objects)?;
            let rows = objects.manifests.len();
            for (name, table) in &mut tables.object {
                if table.rows.len() > rows {
                    let node = keys.node(&ArrayRole::ObjectAttribute(name))?;
                    return Err(damaged(&node, "more rows than there are objects"));
                }
                // Other writers may append objects without extending the attributes.
                table.rows.resize(rows, None);
            }
            tables.is_dense = objects.index.layout == ObjectIndexLayout::Dense;
            tables.manifests = objects
                .manifests
                .iter()
                .map(|bytes| bytes.to_vec())
                .collect();
            tables.row_of = objects.ids.iter().copied().zip(0..).collect();
            tables.ids = Some(objects.ids);
        }
        Ok(tables)
    }

    /// Decodes the fragments of an object in order: chunk and number.
    pub(super) fn manifest(
        &self,
        row: usize,
        axes: usize,
    ) -> Result<Vec<(Vec<i64>, u32)>, EditError> {
        let bytes = self.manifests.get(row).map_or(&[][..], Vec::as_slice);
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        let node = &self.manifests_node;
        let manifest = ObjectManifest::parse(bytes, axes).map_err(|error| damaged(node, error))?;
        let mut all = Vec::new();
        for block in &manifest {
            let chunk: Vec<i64> = block.chunk.iter().collect();
            match &block.fragments {
                FragmentRef::Single(one) => all.push((chunk, *one)),
                fragments => {
                    if fragments.len() > 1 << 26 {
                        return Err(damaged(node, "a block of too many fragments"));
                    }
                    all.extend(fragments.iter().map(|number| (chunk.clone(), number)));
                }
            }
        }
        Ok(all)
    }

    /// Encodes the rows of a dense index: the span of each object, and all blocks.
    pub(super) fn dense_rows(&self, axes: usize) -> Result<(Vec<u8>, Vec<u8>), EditError> {
        let (mut spans, mut blocks) = (Vec::new(), Vec::new());
        let mut start = 0_i64;
        for row in 0..self.manifests.len() {
            let fragments = self.manifest(row, axes)?;
            let count = fragments.len() as i64;
            spans.extend([start, count].map(i64::to_le_bytes));
            start += count;
            for (chunk, number) in fragments {
                blocks.extend(chunk.into_iter().map(i64::to_le_bytes));
                blocks.push(i64::from(number).to_le_bytes());
            }
        }
        Ok((spans.into_flattened(), blocks.into_flattened()))
    }

    /// Removes emptied chunks from manifests, because their fragment numbers restart at 0 when
    /// vertices return.
    pub(super) fn remove_chunks(
        &mut self,
        chunks: &std::collections::BTreeSet<Vec<i64>>,
        axes: usize,
    ) -> Result<(), EditError> {
        for row in 0..self.manifests.len() {
            let fragments = self.manifest(row, axes)?;
            let named = |(chunk, _): &(Vec<i64>, u32)| chunks.contains(chunk);
            if fragments.iter().any(named) {
                let left: Vec<_> = fragments
                    .into_iter()
                    .filter(|entry| !named(entry))
                    .collect();
                self.manifests[row] = self.encoded(&left, axes)?;
            }
        }
        Ok(())
    }

    /// Appends an object.
    pub(super) fn push(
        &mut self,
        id: i64,
        fragments: &[(Vec<i64>, u32)],
        axes: usize,
    ) -> Result<(), EditError> {
        let manifest = self.encoded(fragments, axes)?;
        let ids = self.ids.get_or_insert_default();
        self.row_of.insert(id, ids.len());
        ids.push(id);
        self.manifests.push(manifest);
        for table in self.object.values_mut() {
            table.rows.push(None);
        }
        Ok(())
    }

    /// Removes objects, also from groups.
    pub(super) fn remove(&mut self, removed: &std::collections::BTreeSet<i64>) {
        let Some(ids) = &mut self.ids else {
            return;
        };
        let keep: Vec<bool> = ids.iter().map(|id| !removed.contains(id)).collect();
        let kept = |at: &mut usize| {
            let keep = keep.get(*at).copied().unwrap_or(true);
            *at += 1;
            keep
        };
        let mut at = 0;
        self.manifests.retain(|_| kept(&mut at));
        for table in self.object.values_mut() {
            let mut at = 0;
            table.rows.retain(|_| kept(&mut at));
        }
        ids.retain(|id| !removed.contains(id));
        self.row_of = ids.iter().copied().zip(0..).collect();
        for members in &mut self.groups {
            members.retain(|id| !removed.contains(id));
        }
    }

    /// Encodes a manifest with one block for each fragment.
    pub(super) fn encoded(
        &self,
        fragments: &[(Vec<i64>, u32)],
        axes: usize,
    ) -> Result<Vec<u8>, EditError> {
        let mut builder = ObjectManifestBuilder::new(axes);
        for (chunk, number) in fragments {
            let pushed = builder.push_single(chunk, *number);
            pushed.map_err(|error| damaged(&self.manifests_node, error))?;
        }
        Ok(builder.finish())
    }
}

/// Fails if chunks of manifests are missing whose objects are not all empty: written back, they would
/// be empty.
fn check_manifests(keys: LevelKeys, objects: &ObjectContent) -> Result<(), EditError> {
    let (part, empty) = match objects.index.layout {
        ObjectIndexLayout::Dense => (ArrayRole::ManifestSpans, EMPTY_MANIFEST),
        _ => (ArrayRole::Manifests, 0),
    };
    let manifests = objects.manifests.iter();
    let absent = manifests.filter(|bytes| bytes.len() <= empty).count();
    let rows = u64::try_from(absent).unwrap_or(u64::MAX);
    let undeclared = absent == objects.manifests.len() && objects.index.num_present.is_none();
    if absent == 0 || !undeclared && !objects.index.must_have_present(rows) {
        return Ok(());
    }
    let why = format!(
        "chunks of {absent} objects are missing, and some of these objects have vertices; restore \
         the chunks before editing the store"
    );
    Err(damaged(&keys.values(&part)?, why))
}

/// Size of a manifest without blocks.
pub(super) const EMPTY_MANIFEST: usize = 4;

impl Table {
    fn by_name(tables: Vec<TableContent>) -> Result<BTreeMap<String, Self>, EditError> {
        let tables = tables.into_iter().map(|table| {
            let name = table.column.name.clone();
            Ok((name, Self::of(table)?))
        });
        tables.collect()
    }

    fn of(table: TableContent) -> Result<Self, EditError> {
        let TableContent {
            array,
            column,
            fill_is_null,
            ..
        } = table;
        let rows = (0..column.len()).map(|row| Self::value(&column, row));
        let (kind, columns, dtype) = match (&column.values, &array.data_type) {
            (ColumnValues::Numeric(numbers), _) => {
                let kind = numbers.kind;
                (Some(kind), numbers.row_len(), kind.name().to_owned())
            }
            (_, DataType::FixedText { bytes }) => (None, 1, format!("<U{}", bytes / 4)),
            _ => {
                return Err(EditError::Unsupported(
                    "an attribute of objects or groups is text of any length",
                ));
            }
        };
        let fill = array.fill_element().filter(|_| !fill_is_null);
        Ok(Self {
            dtype,
            kind,
            columns,
            rows: rows.collect(),
            fill: fill.map(|fill| (array.fill_value.clone(), fill)),
            attributes: array.attributes.clone(),
        })
    }

    /// Returns the existing table of an attribute, or a new one with absent rows.
    pub(super) fn like(
        attribute: &Column,
        present: Option<&Self>,
        of_groups: bool,
        rows: usize,
    ) -> Result<Self, EditError> {
        let what = if of_groups {
            "group attribute"
        } else {
            "object attribute"
        };
        let (kind, columns, found) = match &attribute.values {
            ColumnValues::Numeric(numbers) => {
                // New tables have the stored type of `TableColumn`. Other writers store bool.
                let is_bool = present.is_some_and(|table| table.kind == Some(Kind::Bool));
                let kind = match numbers.kind {
                    Kind::Bool if !is_bool => Kind::UInt8,
                    kind => kind,
                };
                (Some(kind), numbers.row_len(), kind.name().to_owned())
            }
            ColumnValues::Dictionary { .. } => (None, 1, "text".to_owned()),
        };
        match present {
            Some(present) if present.kind == kind && present.columns == columns => {
                Ok(present.clone())
            }
            Some(present) => Err(EditError::AttributeType {
                what,
                name: attribute.name.clone(),
                expected: format!("{} x {}", present.columns, present.dtype),
                found: format!("{columns} x {found}"),
            }),
            None => {
                let described = TableMetadata {
                    role: Some(if of_groups {
                        TableRole::Group
                    } else {
                        TableRole::Object
                    }),
                    name: Some(attribute.name.clone()),
                    values: None,
                    shape: None,
                    num_channels: None,
                    has_present_mask: false,
                    fill_is_absent: !of_groups,
                };
                Ok(Self {
                    dtype: found,
                    kind,
                    columns,
                    rows: vec![None; rows],
                    fill: None,
                    attributes: described.to_array_attributes(),
                })
            }
        }
    }

    /// Decodes one row of text; `None` if it is not text.
    pub(super) fn text(row: &[u8]) -> Option<String> {
        let (letters, rest) = row.as_chunks::<4>();
        let letters = letters.iter().map(|letter| u32::from_le_bytes(*letter));
        let text: Option<String> = letters.map(char::from_u32).collect();
        text.filter(|_| rest.is_empty())
    }

    /// Encodes one row of an attribute; `None` for a null row.
    pub(super) fn value(attribute: &Column, at: usize) -> Option<Vec<u8>> {
        match &attribute.values {
            ColumnValues::Numeric(_) if attribute.is_null(at) => None,
            ColumnValues::Numeric(numbers) => numbers.row(at).map(<[u8]>::to_vec),
            ColumnValues::Dictionary { .. } => {
                let letters = attribute
                    .text_at(at)?
                    .chars()
                    .flat_map(|letter| u32::from(letter).to_le_bytes());
                Some(letters.collect())
            }
        }
    }
}

/// Encodes the members of a group.
pub(super) fn members(ids: &[i64]) -> Vec<u8> {
    groups::encode_list(ids)
}
