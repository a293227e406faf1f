//! Object index, groups, their attributes, and parametric objects.

use serde_json::Value;
use zvf_format::{groups, links::LinkWidth, numeric::Kind, open_rows};
use zvf_model::{
    array::{
        CompositeLinks, Groups, ObjectIndex, ObjectIndexLayout, ParametricNames, ParametricObjects,
        Table, TableRole, overlaid,
    },
    column::{Column, ColumnValues, NumericColumn},
    key::Key,
    layout::{ArrayRole, RootArrayRole, TableForm},
    level::LevelId,
    metadata::Attributes,
};

use super::MigrationTarget;
use crate::{
    error::BuildError,
    metadata,
    output::Output,
    stored_column::{TableColumn, little},
    tables::{self, EncodedRows, MANIFESTS},
};

/// Converts rows to a table. Without null rows, a column that uses every value of its type is legal.
fn table(rows: &Column, needs_fill: bool) -> Result<TableColumn, BuildError> {
    let all: Vec<Option<usize>> = (0..rows.len()).map(Some).collect();
    match TableColumn::of(rows, &all) {
        Err(BuildError::NoFillValue(_)) if !needs_fill => without_fill(rows),
        column => column,
    }
}

fn without_fill(rows: &Column) -> Result<TableColumn, BuildError> {
    let ColumnValues::Numeric(numbers) = &rows.values else {
        return Err(BuildError::NoFillValue(rows.name.clone()));
    };
    let size = numbers.kind.size();
    Ok(TableColumn {
        name: rows.name.clone(),
        values: little(numbers.kind).into(),
        size,
        columns: numbers.row_len(),
        bytes: numbers.bytes.clone(),
        fill: zero(Some(numbers.kind), size),
        present: (0..rows.len()).map(|row| !rows.is_null(row)).collect(),
    })
}

fn is_boolean(rows: &Column) -> bool {
    matches!(&rows.values, ColumnValues::Numeric(numbers) if numbers.kind == Kind::Bool)
}

/// Returns the stored type of rows if it differs: booleans with null rows become `uint8`.
pub fn changed_type(rows: &Column) -> Option<&'static str> {
    (is_boolean(rows) && rows.nulls.is_some()).then_some("uint8")
}

/// Summary of an object index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectIndexCounts {
    /// Number of manifests.
    pub rows: u64,
    /// Number of manifests that are not empty.
    pub present: u64,
    /// `true` if the ids ascend.
    pub sorted: bool,
}

impl MigrationTarget {
    /// Returns whether tables can hold text.
    pub fn has_text(&self) -> bool {
        self.is_current()
    }

    /// Returns whether the target stores object ids, and groups may be ranges of ids.
    pub fn has_ids(&self) -> bool {
        self.is_current()
    }

    /// Returns the number of manifests in a chunk of the index.
    pub fn manifests_at_once(&self) -> u64 {
        MANIFESTS as u64
    }

    /// Returns the nodes of an object index.
    ///
    /// # Errors
    ///
    /// None in practice: the parts have places in each generation.
    pub fn object_index(
        &self,
        level: LevelId,
        old: &Attributes,
        arity: usize,
        counts: ObjectIndexCounts,
    ) -> Result<Vec<Output>, BuildError> {
        let ObjectIndexCounts {
            rows,
            present,
            sorted,
        } = counts;
        let index = ObjectIndex {
            layout: if self.is_current() {
                ObjectIndexLayout::ManifestsWithIds
            } else {
                ObjectIndexLayout::Manifests
            },
            num_objects: rows,
            num_present: self.is_current().then_some(present),
            sid_ndim: arity,
            ids_sorted: sorted,
        };
        let key = self.keys(level).node(&ArrayRole::Manifests)?;
        let mut outputs = vec![Output::group(key, overlaid(old, index.to_attributes()))];
        if rows > 0 || self.is_current() {
            outputs.push(self.manifest_array(level, rows)?);
        }
        Ok(outputs)
    }

    /// Returns the node of the manifests.
    ///
    /// # Errors
    ///
    /// Errors of [`object_index`](Self::object_index).
    pub fn manifest_array(&self, level: LevelId, rows: u64) -> Result<Output, BuildError> {
        let chunk = rows.clamp(1, MANIFESTS as u64);
        let array = metadata::strings(self.tables.of_strings(), rows, chunk, Attributes::new());
        let key = self.keys(level).values(&ArrayRole::Manifests)?;
        Ok(Output::node(key, array))
    }

    /// Encodes a chunk of manifests.
    ///
    /// # Errors
    ///
    /// [`BuildError::CellSize`] when the cell is too large.
    pub fn manifests<B: AsRef<[u8]>>(
        &self,
        level: LevelId,
        rows: u64,
        chunk: u64,
        manifests: &[B],
    ) -> Result<Output, BuildError> {
        let array = self.keys(level).values(&ArrayRole::Manifests)?;
        let max = rows.clamp(1, MANIFESTS as u64) as usize;
        let payload = tables::framed(&array, chunk, manifests, max)?;
        Ok(Output::Cell {
            array,
            index: vec![chunk],
            payload,
        })
    }

    /// Returns the outputs of object ids, if the target stores them.
    ///
    /// # Errors
    ///
    /// Errors of [`object_index`](Self::object_index).
    pub fn ids(&self, level: LevelId, ids: &[i64]) -> Result<Vec<Output>, BuildError> {
        let mut outputs = Vec::new();
        if self.is_current() {
            let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
            let key = self.keys(level).values(&ArrayRole::ObjectIds)?;
            let (codecs, rows) = (self.tables.of_numbers(8), EncodedRows::ids(&bytes));
            tables::rows(&mut outputs, codecs, &key, Attributes::new(), &rows);
        }
        Ok(outputs)
    }

    /// Returns the outputs of the object attribute described at `key`.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when no value is left to serve as fill.
    pub fn object_attribute(
        &self,
        key: &Key,
        old: &Attributes,
        rows: &Column,
    ) -> Result<Vec<Output>, BuildError> {
        let is_whole = rows.nulls.is_none();
        let column = table(rows, self.is_current() && !is_whole)?;
        let mut outputs = Vec::new();
        let mut described = described(&column, Some(TableRole::Object));
        if self.is_current() {
            // If the fill value occurs as a value, it must not be read as absent.
            let used = is_whole && column.bytes.chunks(column.size).any(|n| n == column.fill.1);
            described.fill_is_absent = column.kind() != Some(Kind::Bool) && !used;
            self.array(&mut outputs, key, old, &described, &column);
            return Ok(outputs);
        }
        let masked = column.present.contains(&false);
        described.has_present_mask = masked;
        outputs.push(group(key, old, &described, &column));
        let row = column.size * column.columns;
        let mut bytes = column.bytes;
        for (at, present) in column.present.iter().enumerate() {
            if !present {
                bytes[at * row..(at + 1) * row].fill(0);
            }
        }
        let data = TableForm::Child.values(key.clone())?;
        tables::blob(&mut outputs, &self.tables, data, bytes);
        if masked {
            let mask = column.present.iter().map(|present| u8::from(*present));
            let key = TableForm::present_mask(key)?;
            tables::blob(&mut outputs, &self.tables, key, mask.collect());
        }
        Ok(outputs)
    }

    /// Returns the outputs of the attribute of groups or parametric objects described at `key`. Absent
    /// rows [remain absent](Self::keeps_absent), or become values.
    ///
    /// # Errors
    ///
    /// [`BuildError`] for text that cannot be stored, or when no value is left to serve as fill.
    pub fn plain_attribute(
        &self,
        key: &Key,
        role: Option<TableRole>,
        old: &Attributes,
        rows: &Column,
    ) -> Result<Vec<Output>, BuildError> {
        let has_absent = rows.nulls.is_some() && self.keeps_absent(role, rows);
        let mut column = if has_absent {
            table(rows, true)?
        } else {
            let rows = Column {
                nulls: None,
                ..rows.clone()
            };
            table(&rows, false)?
        };
        if !has_absent && !column.is_text() && column.kind() != Some(Kind::Bool) {
            column.fill = zero(column.kind(), column.size);
        }
        let mut outputs = Vec::new();
        let described = Table {
            fill_is_absent: has_absent,
            ..described(&column, role)
        };
        if self.is_current() {
            self.array(&mut outputs, key, old, &described, &column);
            return Ok(outputs);
        }
        outputs.push(group(key, old, &described, &column));
        let data = TableForm::Child.values(key.clone())?;
        tables::blob(&mut outputs, &self.tables, data, column.bytes);
        Ok(outputs)
    }

    /// Returns whether absent rows of an attribute of groups or parametric objects remain absent in
    /// the target. 0.8 has no form for them, and a bool no spare value.
    pub fn keeps_absent(&self, role: Option<TableRole>, rows: &Column) -> bool {
        role.is_some() && self.is_current() && !is_boolean(rows)
    }

    fn array(
        &self,
        outputs: &mut Vec<Output>,
        key: &Key,
        old: &Attributes,
        described: &Table,
        column: &TableColumn,
    ) {
        let size = if column.is_text() { 4 } else { column.size };
        let attributes = overlaid(old, described.to_array_attributes());
        let codecs = self.tables.of_numbers(size);
        tables::rows(outputs, codecs, key, attributes, &EncodedRows::of(column));
    }

    /// Returns the outputs of the groups described at `key`. Members in ranges are not listed; only 0.9
    /// has ranges.
    ///
    /// # Errors
    ///
    /// [`BuildError::CellSize`] when a cell is too large.
    pub fn groups(
        &self,
        key: &Key,
        old: &Attributes,
        groups: &Groups,
        members: &[Vec<i64>],
    ) -> Result<Vec<Output>, BuildError> {
        let mut outputs = Vec::new();
        let attributes = overlaid(old, groups.to_attributes());
        let members: Vec<Vec<u8>> = members.iter().map(|ids| groups::encode_list(ids)).collect();
        if self.is_current() {
            let (codecs, max) = (self.tables.of_strings(), members.len().max(1));
            tables::strings(&mut outputs, codecs, key, attributes, &members, max)?;
            return Ok(outputs);
        }
        outputs.push(Output::group(key.clone(), attributes));
        let members = open_rows::encode(&members);
        let data = TableForm::Child.values(key.clone())?;
        tables::blob(&mut outputs, &self.tables, data, members.data);
        let offsets = TableForm::offsets(key)?;
        tables::blob(&mut outputs, &self.tables, offsets, members.offsets);
        Ok(outputs)
    }

    /// Returns the outputs of the links of a further geometry described at `key`.
    ///
    /// # Errors
    ///
    /// [`BuildError::Key`] if the key becomes too long.
    pub fn composite_links(
        &self,
        key: &Key,
        old: &Attributes,
        width: LinkWidth,
        ends: &[i64],
    ) -> Result<Vec<Output>, BuildError> {
        let bytes: Vec<u8> = ends.iter().flat_map(|end| end.to_le_bytes()).collect();
        let links = CompositeLinks {
            link_count: (ends.len() / width.get()) as u64,
            width,
        };
        let attributes = overlaid(old, links.to_attributes());
        let mut outputs = Vec::new();
        if self.is_current() {
            let rows = EncodedRows::wide_ids(width.get(), &bytes);
            let codecs = self.tables.of_numbers(8);
            tables::rows(&mut outputs, codecs, key, attributes, &rows);
        } else {
            outputs.push(Output::group(key.clone(), attributes));
            let data = TableForm::Child.values(key.clone())?;
            tables::blob(&mut outputs, &self.tables, data, bytes);
        }
        Ok(outputs)
    }

    /// Returns the outputs of parametric objects: rows of numbers, and optional names.
    ///
    /// # Errors
    ///
    /// [`BuildError::CellSize`] when a cell is too large.
    pub fn parametric(
        &self,
        old: [&Attributes; 3],
        numbers: &NumericColumn,
        names: Option<&[String]>,
    ) -> Result<Vec<Output>, BuildError> {
        let [group, objects, named] = old;
        let layout = self.profile.layout();
        let key = layout.root_node(&RootArrayRole::Parametric)?;
        let mut outputs = vec![Output::group(key, group.clone())];
        if numbers.is_empty() {
            return Ok(outputs);
        }
        let described = ParametricObjects {
            num_objects: numbers.len() as u64,
            max_row_length: numbers.row_len() as u64,
        };
        let attributes = overlaid(objects, described.to_attributes());
        let part = RootArrayRole::ParametricObjects;
        let (bytes, values) = (&numbers.bytes, layout.root_values(&part)?);
        if self.is_current() {
            let codecs = self.tables.of_numbers(8);
            let rows = EncodedRows::floats(numbers.row_len(), bytes);
            tables::rows(&mut outputs, codecs, &values, attributes, &rows);
        } else {
            outputs.push(Output::group(layout.root_node(&part)?, attributes));
            tables::blob(&mut outputs, &self.tables, values, bytes.clone());
        }
        let Some(names) = names else {
            return Ok(outputs);
        };
        let described = ParametricNames {
            num_objects: names.len() as u64,
        };
        let attributes = overlaid(named, described.to_attributes());
        let part = RootArrayRole::ParametricNames;
        let values = layout.root_values(&part)?;
        if self.is_current() {
            let codecs = self.tables.of_strings();
            let names: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
            let max = names.len();
            tables::strings(&mut outputs, codecs, &values, attributes, &names, max)?;
        } else {
            outputs.push(Output::group(layout.root_node(&part)?, attributes));
            let names = names.join("\n").into_bytes();
            tables::blob(&mut outputs, &self.tables, values, names);
        }
        Ok(outputs)
    }
}

/// Returns the metadata of a table.
fn described(column: &TableColumn, role: Option<TableRole>) -> Table {
    Table {
        role,
        name: role.map(|_| column.name.clone()),
        values: Some(column.values),
        shape: Some(column.shape()),
        num_channels: None,
        has_present_mask: false,
        fill_is_absent: false,
    }
}

/// Returns the group of a table before 0.9.
fn group(key: &Key, old: &Attributes, described: &Table, column: &TableColumn) -> Output {
    let described = Table {
        num_channels: described.role.map(|_| column.columns as u64),
        ..described.clone()
    };
    Output::group(key.clone(), overlaid(old, described.to_group_attributes()))
}

/// Returns zero as the fill value of complete tables.
fn zero(kind: Option<Kind>, size: usize) -> (Value, Vec<u8>) {
    let zero = match kind {
        Some(Kind::Bool) => false.into(),
        Some(Kind::Complex64 | Kind::Complex128) => [0.0, 0.0].into(),
        Some(Kind::Float16 | Kind::Float32 | Kind::Float64) => 0.0.into(),
        _ => 0.into(),
    };
    (zero, vec![0; size])
}
