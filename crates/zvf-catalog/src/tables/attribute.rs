//! Attributes of objects and groups.

use core::num::NonZeroU32;
use std::sync::Arc;

use bytes::Bytes;
use zvf_format::numeric::{ByteOrder, Dtype, Kind, NumericRows, Value};
use zvf_model::{
    array::Table,
    fetch::AnyArray,
    key::Key,
    layout::TableForm,
    zarr::{DataType, Node},
};

use super::{
    ByteStringArray, RowArray,
    dictionary::{DictionaryBuilder, utf32},
    rows::TableElement,
};
use crate::{
    catalog::Catalog,
    chunked_array::child,
    diagnostics::Diagnostics,
    error::{CatalogError, Damage, Fault},
};
use zvf_model::column::{Column, ColumnValues, NumericColumn};

/// An attribute with one row per object or group.
#[derive(Clone, Debug)]
pub(crate) struct AttributeTable {
    name: String,
    values: AttributeForm,
    absent: Absent,
}

#[derive(Clone, Debug)]
enum AttributeForm {
    Rows(RowArray),
    /// Text of variable length, with the fill value of text that was never written.
    Text(ByteStringArray, String),
}

/// The encoding of nulls.
#[derive(Clone, Debug)]
enum Absent {
    None,
    /// Rows equal to the fill value are null.
    Fill,
    /// A mask tells which rows are present.
    Mask(RowArray),
}

impl Catalog<'_> {
    /// Opens the attribute at `key`; `None` if the node does not exist. Takes one round trip.
    pub(crate) async fn table_at(
        &self,
        key: &Key,
        name: &str,
    ) -> Result<Option<AttributeTable>, CatalogError> {
        let (data, mask) = (child(key, "data")?, child(key, "present_mask")?);
        let keys = match self.layout.tables {
            TableForm::Array => vec![key.clone()],
            TableForm::Child => vec![key.clone(), data.clone(), mask.clone()],
        };
        let mut nodes = self.fetch.nodes(&keys).await?.into_iter();
        let Some(node) = nodes.next().flatten() else {
            return Ok(None);
        };
        let array = |key: &Key, node: Option<Node>| match node {
            Some(Node::Array(array)) => Ok(Some(self.fetch.array(key, Arc::new(array))?)),
            Some(Node::Group(_)) => Err(Damage::new(key, Fault::Kind).into()),
            None => Ok::<_, CatalogError>(None),
        };
        let group = match node {
            Node::Array(described) => {
                let table = Table::parse_array(key, &described.attributes).value;
                let array = self.fetch.array(key, Arc::new(described))?;
                return AttributeTable::of_array(name, array, &table).map(Some);
            }
            Node::Group(group) => group,
        };
        let nodes: Vec<Option<Node>> = match self.layout.tables {
            TableForm::Child => nodes.collect(),
            TableForm::Array => self.fetch.nodes(&[data.clone(), mask.clone()]).await?,
        };
        let mut nodes = nodes.into_iter();
        let table = Table::parse_group(key, &group.attributes)?.value;
        let values = array(&data, nodes.next().flatten())?
            .ok_or_else(|| Damage::new(&data, Fault::Missing))?;
        let mut present = None;
        if table.has_present_mask {
            let there = array(&mask, nodes.next().flatten())?;
            present = Some(there.ok_or_else(|| Damage::new(&mask, Fault::Missing))?);
        }
        AttributeTable::of_group(name, values, present, &table).map(Some)
    }

    /// Opens rows of `columns` int64 values at a node that declares no type: links of an
    /// additional geometry. Takes one round trip.
    pub(crate) async fn int64_rows_at(
        &self,
        key: &Key,
        name: &str,
        columns: u64,
    ) -> Result<Option<AttributeTable>, CatalogError> {
        let data = child(key, "data")?;
        let mut nodes = self
            .fetch
            .nodes(&[key.clone(), data.clone()])
            .await?
            .into_iter();
        let (node, data_node) = (nodes.next().flatten(), nodes.next().flatten());
        let values = match (node, data_node) {
            (None, _) => return Ok(None),
            (Some(Node::Array(array)), _) => {
                RowArray::new(self.fetch.array(key, Arc::new(array))?)?
            }
            (Some(Node::Group(_)), Some(Node::Array(array))) => {
                let array = self.fetch.array(&data, Arc::new(array))?;
                let dtype = Dtype::new(Kind::Int64, ByteOrder::Little);
                RowArray::blob(array, dtype, columns)?
            }
            (Some(Node::Group(_)), _) => return Err(Damage::new(&data, Fault::Missing).into()),
        };
        Ok(Some(AttributeTable {
            name: name.to_owned(),
            values: AttributeForm::Rows(values),
            absent: Absent::None,
        }))
    }

    /// Reads rows of an attribute in the given order, or all stored rows if `rows` is `None`, in
    /// one round trip. Rows past the end are null, as are rows of damaged cells if `diagnostics`
    /// skips the damage.
    pub(crate) async fn table_column(
        &self,
        table: &AttributeTable,
        rows: Option<&[u64]>,
        diagnostics: &Diagnostics,
    ) -> Result<Column, CatalogError> {
        match &table.values {
            AttributeForm::Rows(array) => self.rows_column(table, array, rows, diagnostics).await,
            AttributeForm::Text(array, fill) => {
                let text = (array, fill.as_str());
                self.text_column(table, text, rows, diagnostics).await
            }
        }
    }

    async fn rows_column(
        &self,
        table: &AttributeTable,
        array: &RowArray,
        rows: Option<&[u64]>,
        diagnostics: &Diagnostics,
    ) -> Result<Column, CatalogError> {
        let count = rows.map(<[u64]>::len);
        self.check_held(array.size(count))?;
        let request = array.request(rows);
        let mut wanted = request.wanted.clone();
        let mask = match &table.absent {
            Absent::Mask(mask) => Some((mask, mask.request(rows))),
            _ => None,
        };
        wanted.extend(
            mask.iter()
                .flat_map(|(_, mask)| mask.wanted.iter().cloned()),
        );
        let mut results = self.fetch.cells(&wanted).await;
        let of_mask = results.split_off(request.wanted.len().min(results.len()));
        let read = array.finish(&request, results);
        let mut damaged = Vec::new();
        for (rows, damage) in read.damaged {
            diagnostics.skip(damage)?;
            damaged.push(rows);
        }
        let mut present = None;
        if let Some((mask, request)) = &mask {
            let read = mask.finish(request, of_mask);
            for (rows, damage) in read.damaged {
                diagnostics.skip(damage)?;
                damaged.push(rows);
            }
            present = Some(read.bytes);
        }
        let row = usize::try_from(array.row()).unwrap_or(usize::MAX).max(1);
        let absent = |index: usize, bytes: &[u8]| match &present {
            Some(present) => present.get(index).is_none_or(|present| *present == 0),
            None => matches!(table.absent, Absent::Fill) && array.is_fill(bytes),
        };
        let row_of = |index: usize| match rows {
            Some(rows) => rows.get(index).copied().unwrap_or(u64::MAX),
            None => u64::try_from(index).unwrap_or(u64::MAX),
        };
        let missing: Vec<bool> = read
            .bytes
            .chunks(row)
            .enumerate()
            .map(|(index, bytes)| {
                let at = row_of(index);
                at >= array.rows
                    || damaged.iter().any(|rows| rows.contains(&at))
                    || absent(index, bytes)
            })
            .collect();
        let values = match array.element {
            TableElement::Number(kind) => {
                let columns = u32::try_from(array.columns)
                    .map_err(|_| Damage::new(array.node(), Fault::Range))?;
                ColumnValues::Numeric(NumericColumn {
                    kind,
                    width: columns,
                    bytes: read.bytes,
                })
            }
            TableElement::Text(_) => {
                let mut words = DictionaryBuilder::default();
                for (index, bytes) in read.bytes.chunks(row).enumerate() {
                    let word = utf32(bytes);
                    words.push(&word.ok_or_else(|| no_text(array.node(), row_of(index)))?);
                }
                words.finish()
            }
        };
        Ok(column(&table.name, values, missing))
    }

    async fn text_column(
        &self,
        table: &AttributeTable,
        (array, fill): (&ByteStringArray, &str),
        rows: Option<&[u64]>,
        diagnostics: &Diagnostics,
    ) -> Result<Column, CatalogError> {
        let rows: Vec<u64> = if let Some(rows) = rows {
            rows.to_vec()
        } else {
            self.check_held(array.rows.saturating_mul(16))?;
            (0..array.rows).collect()
        };
        // Sorted rows visit the items of each cell in one pass.
        let mut order: Vec<(u64, usize)> = rows.iter().copied().zip(0..).collect();
        order.retain(|(row, _)| *row < array.rows);
        order.sort_unstable();
        let cells = order.chunk_by(|a, b| array.cell_of(a.0) == array.cell_of(b.0));
        let wanted: Vec<_> = cells
            .clone()
            .filter_map(|cell| cell.first())
            .map(|(row, _)| array.cell_request(array.cell_of(*row)))
            .collect();
        let results = self.fetch.cells(&wanted).await;
        let mut texts: Vec<Option<Bytes>> = vec![None; rows.len()];
        for (indices, result) in cells.zip(results) {
            let cell = indices.first().map_or(0, |(row, _)| array.cell_of(*row));
            let read = match result {
                Ok(Some(payload)) => texts_of(array, cell, &payload.bytes, indices),
                Ok(None) => Ok(vec![Bytes::copy_from_slice(fill.as_bytes()); indices.len()]),
                Err(error) => Err(array.damage(cell, Fault::Fetch(error))),
            };
            match read {
                Ok(read) => {
                    for ((_, index), text) in indices.iter().zip(read) {
                        if let Some(at) = texts.get_mut(*index) {
                            *at = Some(text);
                        }
                    }
                }
                Err(damage) => diagnostics.skip(damage)?,
            }
        }
        let mut words = DictionaryBuilder::default();
        let mut missing = Vec::with_capacity(texts.len());
        let fill_is_absent = matches!(table.absent, Absent::Fill);
        for (text, row) in texts.iter().zip(&rows) {
            let word = core::str::from_utf8(text.as_deref().unwrap_or_default())
                .map_err(|_| no_text(array.node(), *row))?;
            words.push(word);
            missing.push(text.is_none() || fill_is_absent && word == fill);
        }
        Ok(column(&table.name, words.finish(), missing))
    }

    fn check_held(&self, bytes: u64) -> Result<(), CatalogError> {
        let budget = self.fetch.budget();
        if bytes <= budget {
            return Ok(());
        }
        let what = "the values of an attribute";
        Err(CatalogError::OverBudget {
            what,
            bytes,
            budget,
        })
    }
}

impl AttributeTable {
    /// Returns the array of values.
    pub(crate) fn array(&self) -> &AnyArray {
        match &self.values {
            AttributeForm::Rows(rows) => rows.array(),
            AttributeForm::Text(texts, _) => texts.array(),
        }
    }

    /// Returns whether rows that equal the fill value are null.
    pub(crate) fn fill_is_null(&self) -> bool {
        matches!(self.absent, Absent::Fill)
    }

    /// Creates a table from an array that describes itself, from 0.8.1 on.
    fn of_array(name: &str, array: AnyArray, table: &Table) -> Result<Self, CatalogError> {
        let text = match (&array.metadata().data_type, &array.metadata().fill_value) {
            (DataType::VariableText, fill) => {
                let fill = fill
                    .as_str()
                    .ok_or_else(|| Damage::new(array.node(), Fault::Fill))?;
                Some(fill.to_owned())
            }
            _ => None,
        };
        let values = match text {
            Some(fill) => AttributeForm::Text(ByteStringArray::new(array)?, fill),
            None => AttributeForm::Rows(RowArray::new(array)?),
        };
        // A bool has no spare value for nulls: writers promote the type when rows are absent.
        let is_bool =
            matches!(&values, AttributeForm::Rows(rows) if rows.kind() == Some(Kind::Bool));
        let absent = if table.fill_is_absent && !is_bool {
            Absent::Fill
        } else {
            Absent::None
        };
        Ok(Self {
            name: name.to_owned(),
            values,
            absent,
        })
    }

    /// Creates a table from bytes described by their group, up to 0.8.0.
    fn of_group(
        name: &str,
        values: AnyArray,
        present: Option<AnyArray>,
        table: &Table,
    ) -> Result<Self, CatalogError> {
        let key = values.node().clone();
        let damage = |fault| Damage::new(&key, fault);
        let (Some(dtype), Some(shape)) = (table.dtype(), &table.shape) else {
            return Err(damage(Fault::Kind).into());
        };
        let (&expected, row) = shape.split_first().ok_or_else(|| damage(Fault::Kind))?;
        let mut extents = row.iter();
        let columns = extents
            .try_fold(1_u64, |n, &extent| n.checked_mul(extent))
            .ok_or_else(|| damage(Fault::Range))?;
        let values = RowArray::blob(values, dtype, columns)?;
        let rows = |array: &RowArray| match array.rows {
            found if found == expected => Ok(()),
            found => Err(Damage::new(array.node(), Fault::Count { found, expected })),
        };
        rows(&values)?;
        let absent = match present {
            None => Absent::None,
            Some(present) => {
                let bytes = Dtype::new(Kind::UInt8, dtype.order());
                let present = RowArray::blob(present, bytes, 1)?;
                rows(&present)?;
                Absent::Mask(present)
            }
        };
        Ok(Self {
            name: name.to_owned(),
            values: AttributeForm::Rows(values),
            absent,
        })
    }
}

impl RowArray {
    /// Returns whether every value of a row is the fill value. All NaN count as equal; the fill value
    /// of complex numbers is NaN in both parts.
    fn is_fill(&self, row: &[u8]) -> bool {
        let size = self.fill.len().max(1);
        let same = |element: &[u8]| element == self.fill;
        let Some(kind) = self.kind() else {
            return row.chunks(size).all(same);
        };
        let nan = |element: &[u8]| {
            let dtype = Dtype::new(kind, ByteOrder::Little);
            let value = NumericRows::parse(element, dtype, NonZeroU32::MIN);
            match value.ok().and_then(|rows| rows.value(0, 0)) {
                Some(Value::Float(value)) => value.is_nan(),
                Some(Value::Complex { re, im }) => re.is_nan() && im.is_nan(),
                _ => false,
            }
        };
        if nan(&self.fill) {
            row.chunks(size).all(nan)
        } else {
            row.chunks(size).all(same)
        }
    }
}

/// Returns the items of ascending rows of a cell, without copying.
fn texts_of(
    array: &ByteStringArray,
    cell: u64,
    payload: &Bytes,
    rows: &[(u64, usize)],
) -> Result<Vec<Bytes>, Damage> {
    let mut items = array.items(cell, payload)?.zip(array.rows_of(cell).0..);
    let mut last: Option<(u64, Bytes)> = None;
    let mut texts = Vec::with_capacity(rows.len());
    for (row, _) in rows {
        let text = match &last {
            // A row may be requested twice.
            Some((at, text)) if at == row => text.clone(),
            _ => {
                let item = items.find(|(_, at)| at == row).map(|(item, _)| item);
                payload.slice_ref(item.unwrap_or_default())
            }
        };
        last = Some((*row, text.clone()));
        texts.push(text);
    }
    Ok(texts)
}

fn no_text(key: &Key, row: u64) -> Damage {
    let source = Box::new(Fault::Text);
    Damage::new(key, Fault::Row { row, source })
}

fn column(name: &str, values: ColumnValues, missing: Vec<bool>) -> Column {
    Column {
        name: name.to_owned(),
        values,
        nulls: missing.contains(&true).then_some(missing),
    }
}
