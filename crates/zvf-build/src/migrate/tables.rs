//! Object index, groups, their attributes, and parametric objects.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use zvf_format::{groups, numeric::Kind, open_rows};

use super::{MigrationTarget, overlaid};
use crate::{
    error::BuildError,
    geometry::{Attribute, Values},
    metadata::{self, ArrayNode},
    output::{Output, group_metadata, node},
    stored_column::TableColumn,
    tables::{self, EncodedRows, MANIFESTS},
};
use zvf_model::column::NumericColumn;

/// Rows of a table and their presence.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRows {
    /// Name of the table.
    pub name: String,
    /// Values; those of absent rows are ignored.
    pub values: Values,
    /// Presence of each row; `None` means all are present.
    pub present: Option<Vec<bool>>,
}

impl TableRows {
    /// Converts the rows to a column. Without absent rows, a column that uses every value of its
    /// type is legal.
    fn column(&self, needs_fill: bool) -> Result<TableColumn, BuildError> {
        let attribute = Attribute {
            name: self.name.clone(),
            values: self.values.clone(),
        };
        let rows = (0..self.values.len()).map(|row| self.is_present(row).then_some(row));
        let mut column = match TableColumn::of(&attribute, &rows.collect::<Vec<_>>()) {
            Err(BuildError::NoFillValue(_)) if !needs_fill => self.without_fill()?,
            column => column?,
        };
        // Complete booleans need no fill value.
        if let (Values::Numbers(numbers), None) = (&self.values, &self.present)
            && numbers.kind == Kind::Bool
        {
            column.data_type = json!("bool");
            "bool".clone_into(&mut column.dtype);
            column.fill = (json!(false), vec![0]);
        }
        Ok(column)
    }

    fn without_fill(&self) -> Result<TableColumn, BuildError> {
        let Values::Numbers(numbers) = &self.values else {
            return Err(BuildError::NoFillValue(self.name.clone()));
        };
        let size = numbers.kind.size();
        Ok(TableColumn {
            name: self.name.clone(),
            data_type: json!(numbers.kind.name()),
            dtype: numbers.kind.name().to_owned(),
            size,
            columns: numbers.row_len(),
            bytes: numbers.bytes.clone(),
            fill: zero(numbers.kind.name(), size),
            present: (0..numbers.len()).map(|row| self.is_present(row)).collect(),
        })
    }

    fn is_present(&self, row: usize) -> bool {
        let present = self.present.as_ref();
        present.is_none_or(|present| present.get(row).copied().unwrap_or(false))
    }

    /// Returns the stored type if it differs: booleans with absent rows become `uint8`.
    pub fn becomes(&self) -> Option<&'static str> {
        match (&self.values, &self.present) {
            (Values::Numbers(numbers), Some(_)) if numbers.kind == Kind::Bool => Some("uint8"),
            _ => None,
        }
    }
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

    /// Returns the nodes of an object index, given its rows, the number of non-empty ones, and
    /// whether ids ascend.
    pub fn object_index(
        &self,
        level: u32,
        old: &Map<String, Value>,
        arity: usize,
        (rows, present, sorted): (u64, u64, bool),
    ) -> Vec<Output> {
        let mut says = json!({
            "zv_array": "object_index",
            "num_objects": rows,
            "sid_ndim": arity,
            "layout": "vlen_manifests_v1",
        });
        if self.is_current() {
            says["layout"] = json!("vlen_manifests_v2");
            says["num_present"] = json!(present);
            says["object_ids_sorted"] = json!(sorted);
        }
        let path = format!("{level}/object_index");
        let mut outputs = vec![node(&path, group_metadata(&overlaid(old, says)))];
        if rows > 0 || self.is_current() {
            outputs.push(self.manifest_array(level, rows));
        }
        outputs
    }

    /// Returns the node of the manifests.
    pub fn manifest_array(&self, level: u32, rows: u64) -> Output {
        let codecs = self.tables.codecs(metadata::vlen(), 1);
        let chunk = rows.clamp(1, MANIFESTS as u64);
        let array = ArrayNode::strings(codecs, rows, chunk, Map::new());
        node(format!("{level}/object_index/manifests"), array.json())
    }

    /// Encodes a chunk of manifests.
    ///
    /// # Errors
    ///
    /// [`BuildError::CellSize`] when the cell is too large.
    pub fn manifests<B: AsRef<[u8]>>(
        &self,
        level: u32,
        rows: u64,
        chunk: u64,
        manifests: &[B],
    ) -> Result<Output, BuildError> {
        let array = format!("{level}/object_index/manifests");
        let most = rows.clamp(1, MANIFESTS as u64) as usize;
        let payload = tables::framed(&array, chunk, manifests, most)?;
        Ok(Output::Cell {
            array,
            index: vec![chunk],
            payload,
        })
    }

    /// Returns the outputs of object ids, if the target stores them.
    pub fn ids(&self, level: u32, ids: &[i64]) -> Vec<Output> {
        let mut outputs = Vec::new();
        if self.is_current() {
            let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
            let path = format!("{level}/object_index/object_ids");
            let codecs = self.tables.codecs(metadata::bytes(8), 8);
            tables::rows(
                &mut outputs,
                codecs,
                &path,
                Map::new(),
                &EncodedRows::ids(&bytes),
            );
        }
        outputs
    }

    /// Returns the outputs of an object attribute.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when no value is left to serve as fill.
    pub fn object_attribute(
        &self,
        path: &str,
        old: &Map<String, Value>,
        rows: &TableRows,
    ) -> Result<Vec<Output>, BuildError> {
        let is_whole = rows.present.is_none();
        let column = rows.column(self.is_current() && !is_whole)?;
        let mut outputs = Vec::new();
        let mut says = describes(&column, "object_attribute");
        if self.is_current() {
            // If the fill value occurs as a value, it must not be read as absent.
            let used = is_whole && column.bytes.chunks(column.size).any(|n| n == column.fill.1);
            if column.dtype != "bool" && !used {
                says["fill_sentinel_meaning"] = json!("absent");
            }
            self.array(&mut outputs, path, overlaid(old, says), &column);
            return Ok(outputs);
        }
        let masked = column.present.contains(&false);
        says["num_channels"] = json!(column.columns);
        says["has_present_mask"] = json!(masked);
        outputs.push(node(path, group_metadata(&overlaid(old, says))));
        let row = column.size * column.columns;
        let mut bytes = column.bytes;
        for (at, present) in column.present.iter().enumerate() {
            if !present {
                bytes[at * row..(at + 1) * row].fill(0);
            }
        }
        tables::blob(&mut outputs, &self.tables, format!("{path}/data"), bytes);
        if masked {
            let mask = column.present.iter().map(|present| u8::from(*present));
            let path = format!("{path}/present_mask");
            tables::blob(&mut outputs, &self.tables, path, mask.collect());
        }
        Ok(outputs)
    }

    /// Returns the outputs of an attribute of groups or parametric objects, which has no absent
    /// rows.
    ///
    /// # Errors
    ///
    /// [`BuildError`] for text that cannot be stored.
    pub fn plain_attribute(
        &self,
        path: &str,
        tag: Option<&str>,
        old: &Map<String, Value>,
        rows: &TableRows,
    ) -> Result<Vec<Output>, BuildError> {
        let present = None;
        let rows = TableRows {
            present,
            ..rows.clone()
        };
        let mut column = rows.column(false)?;
        if !column.is_text() && column.dtype != "bool" {
            column.fill = zero(&column.dtype, column.size);
        }
        let mut outputs = Vec::new();
        let mut says = describes(&column, tag.unwrap_or_default());
        if tag.is_none() {
            says = json!({"dtype": column.dtype, "shape": tables::shape(&column)});
        }
        if self.is_current() {
            self.array(&mut outputs, path, overlaid(old, says), &column);
            return Ok(outputs);
        }
        if tag.is_some() {
            says["num_channels"] = json!(column.columns);
        }
        outputs.push(node(path, group_metadata(&overlaid(old, says))));
        tables::blob(
            &mut outputs,
            &self.tables,
            format!("{path}/data"),
            column.bytes,
        );
        Ok(outputs)
    }

    fn array(
        &self,
        outputs: &mut Vec<Output>,
        path: &str,
        says: Map<String, Value>,
        column: &TableColumn,
    ) {
        let size = if column.is_text() { 4 } else { column.size };
        let codecs = self.tables.codecs(metadata::bytes(size), size);
        tables::rows(outputs, codecs, path, says, &EncodedRows::of(column));
    }

    /// Returns the outputs of groups. Members in `ranges` are not listed; only 0.9 has ranges.
    ///
    /// # Errors
    ///
    /// [`BuildError::CellSize`] when a cell is too large.
    pub fn groups(
        &self,
        path: &str,
        old: &Map<String, Value>,
        tagged: bool,
        members: &[Vec<i64>],
        ranges: &BTreeMap<u64, (i64, i64)>,
    ) -> Result<Vec<Output>, BuildError> {
        let mut outputs = Vec::new();
        let mut says = json!({"num_groups": members.len()});
        if !ranges.is_empty() {
            let ranges = ranges.iter();
            let ranges =
                ranges.map(|(group, (start, stop))| (group.to_string(), json!([start, stop])));
            says["group_ranges"] = Value::Object(ranges.collect());
        }
        if tagged {
            says["zv_array"] = json!("groups");
        }
        let says = overlaid(old, says);
        let members: Vec<Vec<u8>> = members.iter().map(|ids| groups::encode_list(ids)).collect();
        if self.is_current() {
            let codecs = self.tables.codecs(metadata::vlen(), 1);
            let most = members.len().max(1);
            tables::strings(&mut outputs, codecs, path, says, &members, most)?;
            return Ok(outputs);
        }
        outputs.push(node(path, group_metadata(&says)));
        let members = open_rows::encode(&members);
        tables::blob(
            &mut outputs,
            &self.tables,
            format!("{path}/data"),
            members.data,
        );
        let path = format!("{path}/offsets");
        tables::blob(&mut outputs, &self.tables, path, members.offsets);
        Ok(outputs)
    }

    /// Returns the outputs of links of a further geometry.
    pub fn composite_links(
        &self,
        path: &str,
        old: &Map<String, Value>,
        width: usize,
        ends: &[i64],
    ) -> Vec<Output> {
        let bytes: Vec<u8> = ends.iter().flat_map(|end| end.to_le_bytes()).collect();
        let width = width.max(1);
        let says = json!({"link_count": ends.len() / width, "link_width": width});
        let says = overlaid(old, says);
        let mut outputs = Vec::new();
        if self.is_current() {
            let codecs = self.tables.codecs(metadata::bytes(8), 8);
            let rows = EncodedRows::wide_ids(width, &bytes);
            tables::rows(&mut outputs, codecs, path, says, &rows);
        } else {
            outputs.push(node(path, group_metadata(&says)));
            tables::blob(&mut outputs, &self.tables, format!("{path}/data"), bytes);
        }
        outputs
    }

    /// Returns the outputs of parametric objects: rows of numbers, and optional names.
    ///
    /// # Errors
    ///
    /// [`BuildError::CellSize`] when a cell is too large.
    pub fn parametric(
        &self,
        old: [&Map<String, Value>; 3],
        numbers: &NumericColumn,
        names: Option<&[String]>,
    ) -> Result<Vec<Output>, BuildError> {
        let [group, objects, named] = old;
        let mut outputs = vec![node("parametric", group_metadata(group))];
        if numbers.is_empty() {
            return Ok(outputs);
        }
        let says = json!({
            "zv_array": "parametric_objects", "num_objects": numbers.len(),
            "max_row_length": numbers.row_len(), "dtype": "float64",
        });
        let says = overlaid(objects, says);
        let (path, bytes) = ("parametric/objects", &numbers.bytes);
        if self.is_current() {
            let codecs = self.tables.codecs(metadata::bytes(8), 8);
            let rows = EncodedRows::floats(numbers.row_len(), bytes);
            tables::rows(&mut outputs, codecs, path, says, &rows);
        } else {
            outputs.push(node(path, group_metadata(&says)));
            tables::blob(
                &mut outputs,
                &self.tables,
                format!("{path}/data"),
                bytes.clone(),
            );
        }
        let Some(names) = names else {
            return Ok(outputs);
        };
        let says = json!({"zv_array": "parametric_names", "num_objects": names.len()});
        let says = overlaid(named, says);
        let path = "parametric/names";
        if self.is_current() {
            let codecs = self.tables.codecs(metadata::vlen(), 1);
            let names: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
            let most = names.len();
            tables::strings(&mut outputs, codecs, path, says, &names, most)?;
        } else {
            outputs.push(node(path, group_metadata(&says)));
            let names = names.join("\n").into_bytes();
            tables::blob(&mut outputs, &self.tables, format!("{path}/data"), names);
        }
        Ok(outputs)
    }
}

fn describes(column: &TableColumn, tag: &str) -> Value {
    json!({
        "zv_array": tag,
        "name": column.name,
        "dtype": column.dtype,
        "shape": tables::shape(column),
    })
}

/// Returns zero as the fill value of complete tables.
fn zero(dtype: &str, size: usize) -> (Value, Vec<u8>) {
    let json = match dtype {
        "bool" => json!(false),
        dtype if dtype.starts_with("complex") => json!([0.0, 0.0]),
        dtype if dtype.starts_with("float") => json!(0.0),
        _ => json!(0),
    };
    (json, vec![0; size])
}
