//! Object index, object attributes and groups of a level.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};
use zvf_format::{
    groups,
    int64s::Int64s,
    manifest::{FragmentRef, ObjectManifest, ObjectManifestBuilder},
    numeric::{ByteOrder, Kind},
    vlen::VlenFrame,
};
use zvf_model::{
    array::Table as TableMetadata,
    column::{Column, ColumnValues},
    key::Key,
    zarr::{Array, Codec, DataType},
};

use super::error::{EditError, damaged};
use crate::stored_column::is_fill;

/// Tables of a level.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    /// Id of each object; `None` without an object index.
    pub(super) ids: Option<Vec<i64>>,
    /// Encoded manifest of each object.
    pub(super) manifests: Vec<Vec<u8>>,
    /// `true` if the index stores the manifests as rows of numbers.
    pub(super) is_dense: bool,
    pub(super) object: BTreeMap<String, Table>,
    pub(super) groups: Vec<Vec<i64>>,
    pub(super) group: BTreeMap<String, Table>,
    /// Loaded group frames, until the ranges are known.
    loose_groups: Option<Vec<Vec<u8>>>,
    /// Loaded ids.
    loose_ids: Option<Vec<i64>>,
    /// Loaded arrays of a dense index.
    loose_dense: DenseArrays,
    /// Objects whose manifests are in absent chunks.
    absent: AbsentManifests,
    pub(super) row_of: HashMap<i64, usize>,
}

/// Objects of an index whose manifests, or spans of a dense index, are in absent chunks.
#[derive(Clone, Debug, Default)]
struct AbsentManifests {
    /// Path of the array.
    path: String,
    /// Number of rows of the array.
    rows: usize,
    /// Number of rows in absent chunks.
    absent: usize,
}

/// Table of numeric or text rows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    pub(super) data_type: Value,
    pub(super) dtype: String,
    /// Type of a number; `None` for text.
    pub(super) kind: Option<Kind>,
    pub(super) columns: usize,
    /// Encoded rows, `None` if absent.
    pub(super) rows: Vec<Option<Vec<u8>>>,
    /// Fill value as JSON and as bytes, if rows that equal it are values.
    pub(super) fill: Option<(Value, Vec<u8>)>,
    pub(super) attributes: Map<String, Value>,
}

impl Tables {
    pub(super) fn load(
        &mut self,
        path: &str,
        array: &Array,
        mut chunks: Vec<Option<Vec<u8>>>,
    ) -> Result<(), EditError> {
        make_little_endian(array, &mut chunks);
        let part = path.strip_prefix("0/").unwrap_or(path);
        let rows = array.shape.first().copied().unwrap_or(0);
        let rows = usize::try_from(rows).map_err(|error| damaged(path, error))?;
        if let Some(("object_index", "manifests" | "manifest_spans")) = part.split_once('/') {
            self.absent = AbsentManifests::of(path, array, rows, &chunks);
        }
        match part.split_once('/') {
            None => self.loose_groups = Some(items(path, array, rows, chunks)?),
            Some(("object_index", "manifests")) => {
                self.manifests = items(path, array, rows, chunks)?;
            }
            Some(("object_index", "manifest_spans")) => {
                self.loose_dense.spans = Some(Int64Table::of(path, array, chunks)?);
            }
            Some(("object_index", "manifest_blocks")) => {
                self.loose_dense.blocks = Some(Int64Table::of(path, array, chunks)?);
            }
            Some(("object_index", "object_ids")) => {
                let bytes = values(path, array, rows, chunks)?.concat();
                let ids = Int64s::parse(&bytes).map_err(|error| damaged(path, error))?;
                self.loose_ids = Some(ids.iter().collect());
            }
            Some(("object_attributes", name)) => {
                let table = Table::of(path, array, rows, chunks)?;
                self.object.insert(name.to_owned(), table);
            }
            Some(("group_attributes", name)) => {
                let table = Table::of(path, array, rows, chunks)?;
                self.group.insert(name.to_owned(), table);
            }
            Some(_) => {}
        }
        Ok(())
    }

    pub(super) fn finish(
        &mut self,
        index: Option<&Value>,
        groups: Option<&Value>,
        axes: usize,
    ) -> Result<(), EditError> {
        if let Some(index) = index {
            let path = "0/object_index";
            if index["sid_ndim"].as_u64() != Some(axes as u64) {
                return Err(damaged(path, "chunk keys of another number of axes"));
            }
            // Objects of absent chunks are empty. Written back, they would stay empty.
            self.absent.check(index)?;
            let dense = core::mem::take(&mut self.loose_dense);
            match index.get("layout").and_then(Value::as_str) {
                Some(DENSE_LAYOUT) => {
                    if !self.manifests.is_empty() {
                        return Err(damaged(path, "it has manifests in two forms"));
                    }
                    self.is_dense = true;
                    let objects = self.loose_ids.as_ref().map_or(0, Vec::len);
                    self.manifests = dense.manifests(objects, axes)?;
                }
                Some(layout) if !layout.starts_with("vlen_manifests_v") => {
                    return Err(EditError::Unsupported(
                        "the layout of the object index is unknown",
                    ));
                }
                _ if dense.spans.is_some() || dense.blocks.is_some() => {
                    return Err(damaged(path, "it has manifests in two forms"));
                }
                _ => {}
            }
            let objects = self.manifests.len();
            let ids = match self.loose_ids.take() {
                Some(ids) => ids,
                None => (0..objects as i64).collect(),
            };
            if ids.len() != objects {
                let why = format!("{} ids for {objects} manifests", ids.len());
                return Err(damaged(path, why));
            }
            self.row_of = ids.iter().copied().zip(0..).collect();
            if self.row_of.len() != objects {
                return Err(damaged(path, "an id occurs twice"));
            }
            for (name, table) in &mut self.object {
                if table.rows.len() > objects {
                    let path = format!("0/object_attributes/{name}");
                    return Err(damaged(&path, "more rows than there are objects"));
                }
                // Other writers may append objects without extending the attributes.
                table.rows.resize(objects, None);
            }
            self.ids = Some(ids);
        }
        if let Some(loose) = self.loose_groups.take() {
            let ranges = groups.and_then(|groups| groups.get("group_ranges"));
            for (number, item) in loose.iter().enumerate() {
                let range = ranges.and_then(|ranges| ranges.get(number.to_string()));
                let ends = range.and_then(Value::as_array);
                let ends =
                    ends.and_then(|ends| Some((ends.first()?.as_i64()?, ends.get(1)?.as_i64()?)));
                let members = match ends {
                    Some((start, stop)) if stop.saturating_sub(start) <= 1 << 26 => {
                        (start..stop).collect()
                    }
                    Some(_) => return Err(damaged("0/groups", "a range of too many objects")),
                    None => {
                        let list =
                            Int64s::parse(item).map_err(|error| damaged("0/groups", error))?;
                        list.iter().collect()
                    }
                };
                self.groups.push(members);
            }
        }
        Ok(())
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
        let path = "0/object_index/manifests";
        let manifest = ObjectManifest::parse(bytes, axes).map_err(|error| damaged(path, error))?;
        let mut all = Vec::new();
        for block in &manifest {
            let chunk: Vec<i64> = block.chunk.iter().collect();
            match &block.fragments {
                FragmentRef::Single(one) => all.push((chunk, *one)),
                fragments => {
                    if fragments.len() > 1 << 26 {
                        return Err(damaged(path, "a block of too many fragments"));
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
                self.manifests[row] = encoded(&left, axes)?;
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
        let manifest = encoded(fragments, axes)?;
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
}

impl AbsentManifests {
    fn of(path: &str, array: &Array, rows: usize, chunks: &[Option<Vec<u8>>]) -> Self {
        let chunk = array.decoded_shape().first().copied().unwrap_or(1);
        let chunk = usize::try_from(chunk).unwrap_or(usize::MAX);
        let absent = (0_usize..).zip(chunks).filter(|(_, bytes)| bytes.is_none());
        let counts = absent.map(|(at, _)| rows.saturating_sub(at.saturating_mul(chunk)).min(chunk));
        Self {
            path: path.to_owned(),
            rows,
            absent: counts.sum(),
        }
    }

    /// Fails if some of these objects are not empty: the index declares more present objects than
    /// the stored chunks have, or does not declare that all are empty and no chunk is stored.
    fn check(&self, index: &Value) -> Result<(), EditError> {
        if self.absent == 0 {
            return Ok(());
        }
        let present = index["num_present"].as_u64();
        let objects = index["num_objects"].as_u64().unwrap_or(self.rows as u64);
        let declared = present.unwrap_or(0);
        let exceeds = declared.saturating_add(self.absent as u64) > objects;
        if exceeds || self.absent == self.rows && present != Some(0) {
            let why = format!(
                "chunks of {} objects are missing, and some of these objects have vertices; restore \
                 the chunks before editing the store",
                self.absent
            );
            return Err(damaged(&self.path, why));
        }
        Ok(())
    }
}

/// Encodes a manifest with one block for each fragment.
pub(super) fn encoded(fragments: &[(Vec<i64>, u32)], axes: usize) -> Result<Vec<u8>, EditError> {
    let mut builder = ObjectManifestBuilder::new(axes);
    for (chunk, number) in fragments {
        let pushed = builder.push_single(chunk, *number);
        pushed.map_err(|error| damaged("0/object_index/manifests", error))?;
    }
    Ok(builder.finish())
}

/// Layout of an index that stores manifests as rows of numbers.
pub(super) const DENSE_LAYOUT: &str = "dense_manifests_v1";

/// Maximum number of rows that a few bytes can describe: rows of absent chunks, or blocks that
/// several objects of a dense index share.
const MAX_DESCRIBED: usize = 1 << 22;

/// Arrays of a dense object index.
#[derive(Clone, Debug, Default)]
struct DenseArrays {
    /// The first block and the number of blocks of each object.
    spans: Option<Int64Table>,
    /// Chunk coordinates and fragment of each block.
    blocks: Option<Int64Table>,
}

impl DenseArrays {
    /// Encodes the manifests of this many objects.
    fn manifests(self, objects: usize, axes: usize) -> Result<Vec<Vec<u8>>, EditError> {
        let missing = |name: &str| EditError::NotLoaded(format!("0/object_index/{name}"));
        let spans = self.spans.ok_or_else(|| missing("manifest_spans"))?;
        let blocks = self.blocks.ok_or_else(|| missing("manifest_blocks"))?;
        let shapes = [(&spans, 2), (&blocks, axes.saturating_add(1))];
        for (table, columns) in shapes {
            if table.columns != columns {
                let why = format!("{} numbers in a row, not {columns}", table.columns);
                return Err(damaged(&table.path, why));
            }
        }
        if spans.rows != objects {
            let why = format!("{} rows for {objects} ids", spans.rows);
            return Err(damaged(&spans.path, why));
        }
        let mut decoded = 0_usize;
        let mut manifests = Vec::with_capacity(objects);
        for row in 0..objects {
            let range = match spans.row(row)?.as_slice() {
                // The start of an empty object has no meaning.
                [_, 0] => Some(0..0),
                [start, count] => {
                    let start = usize::try_from(*start).ok();
                    let count = usize::try_from(*count).ok();
                    let end = start.zip(count).and_then(|(a, b)| a.checked_add(b));
                    start.zip(end).map(|(start, end)| start..end)
                }
                _ => None,
            };
            let range = range.filter(|range| range.end <= blocks.rows);
            let range = range.ok_or_else(|| {
                let why = format!("row {row} names blocks that do not exist");
                damaged(&spans.path, why)
            })?;
            decoded = decoded.saturating_add(range.len());
            if decoded > blocks.stored().saturating_add(MAX_DESCRIBED) {
                return Err(damaged(&spans.path, "too many objects share their blocks"));
            }
            let mut builder = ObjectManifestBuilder::new(axes);
            for at in range {
                let block = blocks.row(at)?;
                let pushed = block.split_last().is_some_and(|(fragment, chunk)| {
                    let fragment = u32::try_from(*fragment);
                    fragment.is_ok_and(|fragment| builder.push_single(chunk, fragment).is_ok())
                });
                if !pushed {
                    let why = format!("row {at} is not a fragment of a chunk");
                    return Err(damaged(&blocks.path, why));
                }
            }
            manifests.push(builder.finish());
        }
        Ok(manifests)
    }
}

/// Table of `int64` rows in chunks. Absent chunks hold fill values.
#[derive(Clone, Debug)]
struct Int64Table {
    path: String,
    rows: usize,
    columns: usize,
    /// Number of rows in a chunk.
    chunk: usize,
    fill: i64,
    chunks: Vec<Option<Vec<u8>>>,
}

impl Int64Table {
    fn of(path: &str, array: &Array, chunks: Vec<Option<Vec<u8>>>) -> Result<Self, EditError> {
        let is_table = matches!(array.data_type, DataType::Number(Kind::Int64));
        let fill = array.fill_value.as_i64();
        let (&[rows, columns], Some(chunk), Some(fill)) = (
            array.shape.as_slice(),
            array.decoded_shape().first(),
            fill.filter(|_| is_table),
        ) else {
            return Err(damaged(path, "it is not a table of int64"));
        };
        let size = |extent| usize::try_from(extent).map_err(|error| damaged(path, error));
        Ok(Self {
            path: path.to_owned(),
            rows: size(rows)?,
            columns: size(columns)?,
            chunk: size(*chunk)?.max(1),
            fill,
            chunks,
        })
    }

    /// Returns the number of rows in stored chunks.
    fn stored(&self) -> usize {
        let bytes = self.chunks.iter().flatten().map(Vec::len);
        let row = self.columns.saturating_mul(8).max(1);
        bytes.fold(0, usize::saturating_add) / row
    }

    /// Decodes a row.
    fn row(&self, at: usize) -> Result<Vec<i64>, EditError> {
        let missing = || damaged(&self.path, format!("row {at} is missing"));
        let chunk = self.chunks.get(at / self.chunk).ok_or_else(missing)?;
        let Some(bytes) = chunk else {
            return Ok(vec![self.fill; self.columns]);
        };
        let size = self.columns.saturating_mul(8);
        let start = (at % self.chunk).saturating_mul(size);
        let row = bytes.get(start..start.saturating_add(size));
        let row = row.ok_or_else(missing)?;
        let row = Int64s::parse(row).map_err(|error| damaged(&self.path, error))?;
        Ok(row.iter().collect())
    }
}

/// Decodes the chunks of a byte string array.
fn items(
    path: &str,
    array: &Array,
    rows: usize,
    chunks: Vec<Option<Vec<u8>>>,
) -> Result<Vec<Vec<u8>>, EditError> {
    let chunk = array.decoded_shape().first().copied().unwrap_or(1);
    let chunk = usize::try_from(chunk).map_err(|error| damaged(path, error))?;
    let mut items = Vec::new();
    let mut described = 0_usize;
    for bytes in chunks {
        let Some(bytes) = bytes else {
            let end = rows.min(items.len().saturating_add(chunk));
            describe(path, end.saturating_sub(items.len()), &mut described)?;
            items.resize(end.max(items.len()), Vec::new());
            continue;
        };
        if chunk == 1 {
            // A single string is read without its frame.
            items.push(bytes);
            continue;
        }
        let frame = VlenFrame::parse(&bytes).map_err(|error| damaged(path, error))?;
        items.extend(frame.iter().map(<[u8]>::to_vec));
    }
    if items.len() < rows {
        return Err(damaged(path, format!("{} items of {rows}", items.len())));
    }
    items.truncate(rows);
    Ok(items)
}

/// Adds rows of an absent chunk to their number.
fn describe(path: &str, rows: usize, described: &mut usize) -> Result<(), EditError> {
    *described = described.saturating_add(rows);
    match *described > MAX_DESCRIBED {
        true => Err(damaged(path, "too many rows in absent chunks")),
        false => Ok(()),
    }
}

/// Converts the numbers of a table to little-endian, the order in which tables are written.
fn make_little_endian(array: &Array, chunks: &mut [Option<Vec<u8>>]) {
    let codecs = array
        .sharding()
        .map_or(&array.codecs, |shard| &shard.codecs);
    if codecs.iter().find_map(Codec::byte_order) != Some(ByteOrder::Big) {
        return;
    }
    let size = match &array.data_type {
        DataType::Number(kind @ (Kind::Complex64 | Kind::Complex128)) => kind.size() / 2,
        DataType::Number(kind) => kind.size(),
        DataType::FixedText { .. } => 4,
        _ => return,
    };
    for bytes in chunks.iter_mut().flatten() {
        bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
}

/// Decodes the rows of a numeric or text array. Absent chunks hold fill values.
fn values(
    path: &str,
    array: &Array,
    rows: usize,
    chunks: Vec<Option<Vec<u8>>>,
) -> Result<Vec<Vec<u8>>, EditError> {
    let (size, columns) = row_of(path, array)?;
    let mut all: Vec<Vec<u8>> = Vec::new();
    let chunk = array.decoded_shape().first().copied().unwrap_or(1);
    let chunk = usize::try_from(chunk).map_err(|error| damaged(path, error))?;
    let mut described = 0_usize;
    for bytes in chunks {
        let Some(bytes) = bytes else {
            let end = rows.min(all.len().saturating_add(chunk));
            let values = end.saturating_sub(all.len()).saturating_mul(columns);
            describe(path, values, &mut described)?;
            let fill = array.fill_element();
            let fill = fill.ok_or_else(|| damaged(path, "its fill value has another type"))?;
            all.resize(end.max(all.len()), fill.repeat(columns));
            continue;
        };
        let rows = bytes.chunks_exact((size * columns).max(1));
        all.extend(rows.map(<[u8]>::to_vec));
    }
    if all.len() < rows {
        return Err(damaged(path, format!("{} rows of {rows}", all.len())));
    }
    all.truncate(rows);
    Ok(all)
}

/// Returns the size of a value and the number of values in a row.
fn row_of(path: &str, array: &Array) -> Result<(usize, usize), EditError> {
    let size = match &array.data_type {
        DataType::Number(kind) => kind.size(),
        DataType::FixedText { bytes } => {
            usize::try_from(*bytes).map_err(|error| damaged(path, error))?
        }
        _ => return Err(damaged(path, "neither numbers nor text of a fixed length")),
    };
    let columns: u64 = array.shape.get(1..).unwrap_or_default().iter().product();
    let columns = usize::try_from(columns).map_err(|error| damaged(path, error))?;
    Ok((size, columns))
}

impl Table {
    fn of(
        path: &str,
        array: &Array,
        rows: usize,
        chunks: Vec<Option<Vec<u8>>>,
    ) -> Result<Self, EditError> {
        let (size, columns) = row_of(path, array)?;
        let kind = match &array.data_type {
            DataType::Number(kind) => Some(*kind),
            _ => None,
        };
        let all = values(path, array, rows, chunks)?;
        let fill = array.fill_element();
        // Readers have the same rule: a bool has no spare value, so the fill value is one.
        let key = Key::parse(path).map_err(|error| damaged(path, error))?;
        let metadata = TableMetadata::parse_array(&key, &array.attributes).value;
        let fill_is_absent = metadata.fill_is_absent && kind != Some(Kind::Bool);
        let absent = |row: &Vec<u8>| {
            let fill = fill.as_deref().filter(|_| fill_is_absent);
            fill.is_some_and(|fill| {
                let mut values = row.chunks_exact(size.max(1));
                values.all(|value| match kind {
                    Some(kind) => is_fill(kind, value, fill),
                    None => value == fill,
                })
            })
        };
        let rows = all.into_iter();
        let rows = rows.map(|row| (!absent(&row)).then_some(row)).collect();
        Ok(Self {
            data_type: match kind {
                Some(kind) => json!(kind.name()),
                None => json!({
                    "name": "fixed_length_utf32", "configuration": {"length_bytes": size},
                }),
            },
            dtype: match kind {
                Some(kind) => kind.name().to_owned(),
                None => format!("<U{}", size / 4),
            },
            kind,
            columns: columns.max(1),
            rows,
            fill: fill
                .filter(|_| !fill_is_absent)
                .map(|fill| (array.fill_value.clone(), fill)),
            attributes: array.attributes.clone(),
        })
    }
}

impl Table {
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
                let new_attributes = if of_groups {
                    json!({"zv_array": "groupings_attribute", "name": attribute.name})
                } else {
                    json!({
                        "zv_array": "object_attribute", "name": attribute.name,
                        "fill_sentinel_meaning": "absent",
                    })
                };
                Ok(Self {
                    data_type: Value::Null,
                    dtype: found,
                    kind,
                    columns,
                    rows: vec![None; rows],
                    fill: None,
                    attributes: crate::output::json_object(new_attributes),
                })
            }
        }
    }

    /// Encodes one row of an attribute; `None` for a null row.
    pub(super) fn value(attribute: &Column, at: usize) -> Option<Vec<u8>> {
        match &attribute.values {
            ColumnValues::Numeric(_) if attribute.is_null(at) => None,
            ColumnValues::Numeric(numbers) => Some(numbers.row(at).to_vec()),
            ColumnValues::Dictionary { .. } => {
                let letters = attribute.text_at(at)?.chars();
                let letters = letters.flat_map(|letter| u32::from(letter).to_le_bytes());
                Some(letters.collect())
            }
        }
    }
}

/// Encodes the members of a group.
pub(super) fn members(ids: &[i64]) -> Vec<u8> {
    groups::encode_list(ids)
}
