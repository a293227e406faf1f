//! Object index, groups, their attributes, and parametric objects.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use zvf_format::{groups, numeric::Kind, open_rows};

use super::{MigrationTarget, overlaid};
use crate::{
    error::BuildError,
    metadata::{self, ArrayNode},
    output::{Output, group_metadata, node},
    stored_column::TableColumn,
    tables::{self, EncodedRows, MANIFESTS},
};
use zvf_model::column::{Column, ColumnValues, NumericColumn};

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
        data_type: json!(numbers.kind.name()),
        dtype: numbers.kind.name().to_owned(),
        size,
        columns: numbers.row_len(),
        bytes: numbers.bytes.clone(),
        fill: zero(numbers.kind.name(), size),
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
    pub fn object_index(
        &self,
        level: u32,
        old: &Map<String, Value>,
        arity: usize,
        counts: ObjectIndexCounts,
    ) -> Vec<Output> {
        let ObjectIndexCounts {
            rows,
            present,
            sorted,
        } = counts;
        let mut attributes = json!({
            "zv_array": "object_index",
            "num_objects": rows,
            "sid_ndim": arity,
            "layout": "vlen_manifests_v1",
        });
        if self.is_current() {
            attributes["layout"] = json!("vlen_manifests_v2");
            attributes["num_present"] = json!(present);
            attributes["object_ids_sorted"] = json!(sorted);
        }
        let path = format!("{level}/object_index");
        let mut outputs = vec![node(&path, group_metadata(&overlaid(old, attributes)))];
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
        let max = rows.clamp(1, MANIFESTS as u64) as usize;
        let payload = tables::framed(&array, chunk, manifests, max)?;
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
        rows: &Column,
    ) -> Result<Vec<Output>, BuildError> {
        let is_whole = rows.nulls.is_none();
        let column = table(rows, self.is_current() && !is_whole)?;
        let mut outputs = Vec::new();
        let mut attributes = describes(&column, "object_attribute");
        if self.is_current() {
            // If the fill value occurs as a value, it must not be read as absent.
            let used = is_whole && column.bytes.chunks(column.size).any(|n| n == column.fill.1);
            if column.dtype != "bool" && !used {
                attributes["fill_sentinel_meaning"] = json!("absent");
            }
            self.array(&mut outputs, path, overlaid(old, attributes), &column);
            return Ok(outputs);
        }
        let masked = column.present.contains(&false);
        attributes["num_channels"] = json!(column.columns);
        attributes["has_present_mask"] = json!(masked);
        outputs.push(node(path, group_metadata(&overlaid(old, attributes))));
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

    /// Returns the outputs of an attribute of groups or parametric objects. Absent rows
    /// [remain absent](Self::keeps_absent), or become values.
    ///
    /// # Errors
    ///
    /// [`BuildError`] for text that cannot be stored, or when no value is left to serve as fill.
    pub fn plain_attribute(
        &self,
        path: &str,
        tag: Option<&str>,
        old: &Map<String, Value>,
        rows: &Column,
    ) -> Result<Vec<Output>, BuildError> {
        let has_absent = rows.nulls.is_some() && self.keeps_absent(tag, rows);
        let mut column = if has_absent {
            table(rows, true)?
        } else {
            let rows = Column {
                nulls: None,
                ..rows.clone()
            };
            table(&rows, false)?
        };
        if !has_absent && !column.is_text() && column.dtype != "bool" {
            column.fill = zero(&column.dtype, column.size);
        }
        let mut outputs = Vec::new();
        let mut attributes = describes(&column, tag.unwrap_or_default());
        if tag.is_none() {
            attributes = json!({"dtype": column.dtype, "shape": tables::shape(&column)});
        }
        if has_absent {
            attributes["fill_sentinel_meaning"] = json!("absent");
        }
        if self.is_current() {
            self.array(&mut outputs, path, overlaid(old, attributes), &column);
            return Ok(outputs);
        }
        if tag.is_some() {
            attributes["num_channels"] = json!(column.columns);
        }
        outputs.push(node(path, group_metadata(&overlaid(old, attributes))));
        tables::blob(
            &mut outputs,
            &self.tables,
            format!("{path}/data"),
            column.bytes,
        );
        Ok(outputs)
    }

    /// Returns whether absent rows of an attribute of groups or parametric objects remain absent in
    /// the target. 0.8 has no form for them, and a bool no spare value.
    pub fn keeps_absent(&self, tag: Option<&str>, rows: &Column) -> bool {
        tag.is_some() && self.is_current() && !is_boolean(rows)
    }

    fn array(
        &self,
        outputs: &mut Vec<Output>,
        path: &str,
        attributes: Map<String, Value>,
        column: &TableColumn,
    ) {
        let size = if column.is_text() { 4 } else { column.size };
        let codecs = self.tables.codecs(metadata::bytes(size), size);
        tables::rows(outputs, codecs, path, attributes, &EncodedRows::of(column));
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
        let mut attributes = json!({"num_groups": members.len()});
        if !ranges.is_empty() {
            let ranges = ranges.iter();
            let ranges =
                ranges.map(|(group, (start, stop))| (group.to_string(), json!([start, stop])));
            attributes["group_ranges"] = Value::Object(ranges.collect());
        }
        if tagged {
            attributes["zv_array"] = json!("groups");
        }
        let attributes = overlaid(old, attributes);
        let members: Vec<Vec<u8>> = members.iter().map(|ids| groups::encode_list(ids)).collect();
        if self.is_current() {
            let codecs = self.tables.codecs(metadata::vlen(), 1);
            let max = members.len().max(1);
            tables::strings(&mut outputs, codecs, path, attributes, &members, max)?;
            return Ok(outputs);
        }
        outputs.push(node(path, group_metadata(&attributes)));
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
        let attributes = json!({"link_count": ends.len() / width, "link_width": width});
        let attributes = overlaid(old, attributes);
        let mut outputs = Vec::new();
        if self.is_current() {
            let codecs = self.tables.codecs(metadata::bytes(8), 8);
            let rows = EncodedRows::wide_ids(width, &bytes);
            tables::rows(&mut outputs, codecs, path, attributes, &rows);
        } else {
            outputs.push(node(path, group_metadata(&attributes)));
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
        let attributes = json!({
            "zv_array": "parametric_objects", "num_objects": numbers.len(),
            "max_row_length": numbers.row_len(), "dtype": "float64",
        });
        let attributes = overlaid(objects, attributes);
        let (path, bytes) = ("parametric/objects", &numbers.bytes);
        if self.is_current() {
            let codecs = self.tables.codecs(metadata::bytes(8), 8);
            let rows = EncodedRows::floats(numbers.row_len(), bytes);
            tables::rows(&mut outputs, codecs, path, attributes, &rows);
        } else {
            outputs.push(node(path, group_metadata(&attributes)));
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
        let attributes = json!({"zv_array": "parametric_names", "num_objects": names.len()});
        let attributes = overlaid(named, attributes);
        let path = "parametric/names";
        if self.is_current() {
            let codecs = self.tables.codecs(metadata::vlen(), 1);
            let names: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
            let max = names.len();
            tables::strings(&mut outputs, codecs, path, attributes, &names, max)?;
        } else {
            outputs.push(node(path, group_metadata(&attributes)));
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
