//! Writes `GeoParquet`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{
    ArrayRef, BinaryArray, Float64Array, Int64Array, ListArray, RecordBatch, StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields, Schema};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::{metadata::KeyValue, properties::WriterProperties},
};
use serde_json::{Map, Value, json};
use zvf::{Column, ObjectIds, Owner, QueryResult, Scope};
use zvf_arrow::array_of;

use super::{
    GEO, is_default_crs,
    projjson::projjson,
    wkb::{WkbEncoder, WkbKind},
};
use crate::{
    FileError, FileFault, GroupTables, ResultWriter, StoreDescription, WrittenResult,
    las::epsg,
    values::AxisOrder,
    writer::{OutputSink, PathRows, groups_left_out, left_out, paths},
};

/// Vertices of a batch of rows: well below the 2 GiB of binary values that a batch can have.
const VERTICES: usize = 1 << 18;
const FORMAT: &str = "geoparquet";

/// A `GeoParquet` file. Points and paths are written as they come, geometry with links at the end.
pub struct GeoParquetWriter {
    path: PathBuf,
    sink: Option<OutputSink>,
    writer: Option<ArrowWriter<OutputSink>>,
    schema: Option<Arc<Schema>>,
    crs: Option<Value>,
    left_out: Vec<String>,
    has_z: bool,
    kinds: BTreeSet<WkbKind>,
    bounds: Option<[[f64; 3]; 2]>,
    objects: ObjectAttributeRows,
    linked: Option<LinkedResult>,
    /// Number of paths of one vertex.
    single: u64,
}

impl fmt::Debug for GeoParquetWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("GeoParquetWriter");
        debug.field("path", &self.path).finish_non_exhaustive()
    }
}

/// Attributes of the objects of all batches.
#[derive(Debug, Default)]
struct ObjectAttributeRows {
    rows: BTreeMap<i64, usize>,
    columns: Vec<Column>,
}

/// Geometry with links, collected from its batches.
#[derive(Debug, Default)]
struct LinkedResult {
    positions: Vec<[f64; 3]>,
    objects: Vec<i64>,
    ends: Vec<u64>,
    width: usize,
    link: Vec<Column>,
}

/// Rows of a table before they are encoded.
struct TableRows {
    /// Values of all rows, and the length of each.
    geometry: Vec<u8>,
    sizes: Vec<usize>,
    bounds: Vec<[[f64; 3]; 2]>,
    objects: Option<Vec<i64>>,
    /// Attributes with one row each.
    columns: Vec<(&'static str, Column)>,
    /// Attributes of vertices, and the vertices of each row.
    lists: Vec<Column>,
    lengths: Vec<usize>,
}

impl GeoParquetWriter {
    /// Creates the file.
    pub(crate) fn create(path: &Path, description: &StoreDescription) -> Result<Self, FileError> {
        let mut left_out = Vec::new();
        let stated = description.crs.as_ref().filter(|crs| !crs.is_null());
        let crs = stated.and_then(|crs| {
            if is_default_crs(crs) || is_projjson(crs) {
                return Some(crs.clone());
            }
            let code = epsg(crs);
            // A file may state another unit than that of the code.
            let is_metric = crs.get("unit").is_none_or(|unit| unit == "metre");
            let known = code.filter(|_| is_metric).and_then(projjson);
            if known.is_none() {
                let code = code.map_or_else(String::new, |code| format!(" EPSG:{code}"));
                left_out.push(format!(
                    "the coordinate reference system{code}: {FORMAT} holds PROJJSON, which a store can get when \
                     it is created"
                ));
            }
            known
        });
        let units = description.axes.iter().filter(|axis| axis.unit.is_some());
        if units.count() > 0 {
            left_out.push(format!("units of axes: not supported by {FORMAT}"));
        }
        Ok(Self {
            path: path.to_path_buf(),
            sink: Some(OutputSink::create(path)?),
            writer: None,
            schema: None,
            crs,
            left_out,
            has_z: false,
            kinds: BTreeSet::new(),
            bounds: None,
            objects: ObjectAttributeRows::default(),
            linked: None,
            single: 0,
        })
    }

    fn add(&mut self, batch: &QueryResult) -> Result<(), FileFault> {
        let axes = AxisOrder::of(batch, FORMAT)?;
        self.has_z = batch.axes.len() == 3;
        let positions = axes.rows(&batch.positions)?;
        self.objects.add(batch)?;
        if batch.links.is_some() || self.linked.is_some() {
            return self.collect(batch, positions);
        }
        if batch.parts.is_some() {
            return self.add_paths(batch, &positions);
        }
        let encoder = WkbEncoder { has_z: self.has_z };
        for start in (0..positions.len()).step_by(VERTICES) {
            let end = start.saturating_add(VERTICES).min(positions.len());
            let rows = positions.get(start..end).unwrap_or_default();
            let take = |column: &Column| column.take(start..end);
            let mut table = TableRows::new(rows.len());
            table.objects = batch
                .object_ids
                .as_ref()
                .and_then(|ids| Some(ids.numbers().get(start..end)?.to_vec()));
            for row in rows {
                table.push(std::slice::from_ref(row), |into| encoder.point(*row, into));
            }
            for scope in Scope::OF_CHUNKS {
                let columns = batch.columns(scope).iter();
                table
                    .columns
                    .extend(columns.map(|column| (scope.name(), take(column))));
            }
            self.put(table, WkbKind::Point)?;
        }
        Ok(())
    }

    fn add_paths(&mut self, batch: &QueryResult, positions: &[[f64; 3]]) -> Result<(), FileFault> {
        let all = paths(batch, FORMAT)?;
        let mut rest = all.as_slice();
        while !rest.is_empty() {
            let mut vertices = 0_usize;
            let count = rest.iter().take_while(|path| {
                let is_first = vertices == 0;
                vertices = vertices.saturating_add(path.end.saturating_sub(path.start));
                is_first || vertices <= VERTICES
            });
            let (now, later) = rest.split_at(count.count().clamp(1, rest.len()));
            rest = later;
            self.put_paths(batch, positions, now)?;
        }
        Ok(())
    }

    fn put_paths(
        &mut self,
        batch: &QueryResult,
        positions: &[[f64; 3]],
        paths: &[PathRows],
    ) -> Result<(), FileFault> {
        let encoder = WkbEncoder { has_z: self.has_z };
        let mut table = TableRows::new(paths.len());
        // A line has two points or more, so a path of one vertex is written with it twice.
        let mut taken: Vec<usize> = Vec::new();
        for path in paths {
            let rows = positions.get(path.start..path.end).unwrap_or_default();
            let size = rows.len().saturating_mul(24).saturating_add(9);
            if i32::try_from(size).is_err() {
                return Err(FileFault::Result {
                    format: FORMAT,
                    holds: "paths of less than 2 GiB",
                    remedy: "write trx or parquet",
                });
            }
            if let [only] = rows {
                self.single = self.single.saturating_add(1);
                table.push(rows, |into| encoder.line(&[*only; 2], into));
                table.lengths.push(2);
                taken.extend([path.start; 2]);
                continue;
            }
            table.push(rows, |into| encoder.line(rows, into));
            table.lengths.push(rows.len());
            taken.extend(path.start..path.end);
        }
        table.objects = Some(paths.iter().map(|path| path.object).collect());
        let scopes = Scope::OF_CHUNKS.into_iter();
        table.lists = scopes
            .flat_map(|scope| batch.columns(scope))
            .map(|column| column.take(taken.iter().copied()))
            .collect();
        self.put(table, WkbKind::LineString)
    }

    /// Keeps a batch of geometry with links.
    fn collect(&mut self, batch: &QueryResult, positions: Vec<[f64; 3]>) -> Result<(), FileFault> {
        let linked = self.linked.get_or_insert_default();
        if linked.positions.is_empty() {
            let holds = |scope: Scope, _: &Column| !Scope::OF_CHUNKS.contains(&scope);
            let lines = left_out(batch, FORMAT, holds).map(|line| format!("{line} beside links"));
            self.left_out.extend(lines);
        }
        linked.positions.extend(positions);
        let objects = batch.object_ids.iter().flat_map(ObjectIds::numbers);
        linked.objects.extend(objects);
        if let Some(links) = &batch.links {
            linked.width = usize::try_from(links.width).unwrap_or(usize::MAX);
            linked.ends.extend_from_slice(&links.ends);
        }
        append(&mut linked.link, &batch.link)
    }

    /// Writes geometry with links: faces, edges, or one row for each object.
    fn put_linked(&mut self, linked: &LinkedResult) -> Result<(), FileFault> {
        let encoder = WkbEncoder { has_z: self.has_z };
        let mut are_ends = vec![false; linked.positions.len()];
        for end in &linked.ends {
            let row = usize::try_from(*end).unwrap_or(usize::MAX);
            if let Some(is_end) = are_ends.get_mut(row) {
                *is_end = true;
            }
        }
        let alone = are_ends.iter().filter(|is_end| !**is_end).count();
        if alone > 0 {
            self.left_out.push(format!(
                "{alone} vertices without links: not supported by {FORMAT}"
            ));
        }
        let width = linked.width.max(2);
        let owner = |row: usize| linked.objects.get(row).copied();
        let corners = |ends: &[u64]| -> Result<(Vec<[f64; 3]>, Option<i64>), FileFault> {
            let rows: Vec<usize> = ends
                .iter()
                .map(|end| usize::try_from(*end).unwrap_or(usize::MAX))
                .collect();
            let places: Option<Vec<[f64; 3]>> = rows
                .iter()
                .map(|row| linked.positions.get(*row).copied())
                .collect();
            let places = places.ok_or(FileFault::Broken(
                "a link refers to a vertex that does not exist",
            ))?;
            Ok((places, rows.first().and_then(|row| owner(*row))))
        };
        let has_objects = linked.objects.iter().any(|id| *id >= 0);
        if width == 2 && linked.link.is_empty() && has_objects {
            return self.put_objects(linked, &corners);
        }
        let count = linked.ends.len().checked_div(width).unwrap_or(0);
        for start in (0..count).step_by(VERTICES / 8) {
            let end = start.saturating_add(VERTICES / 8).min(count);
            let span = start.saturating_mul(width)..end.saturating_mul(width);
            let ends = linked.ends.get(span).unwrap_or_default();
            let mut table = TableRows::new(end.saturating_sub(start));
            let mut owners = Vec::new();
            for link in ends.chunks_exact(width) {
                let (places, owner) = corners(link)?;
                table.push(&places, |into| match width {
                    2 => encoder.line(&places, into),
                    _ => encoder.polygon(&places, into),
                });
                owners.extend(owner);
            }
            table.objects = Some(owners).filter(|_| has_objects);
            let columns = linked
                .link
                .iter()
                .map(|column| ("link", column.take(start..end)));
            table.columns.extend(columns);
            let kind = match width {
                2 => WkbKind::LineString,
                _ => WkbKind::Polygon,
            };
            self.put(table, kind)?;
        }
        Ok(())
    }

    /// Writes edges as one row for each object.
    fn put_objects(
        &mut self,
        linked: &LinkedResult,
        corners: &impl Fn(&[u64]) -> Result<(Vec<[f64; 3]>, Option<i64>), FileFault>,
    ) -> Result<(), FileFault> {
        let encoder = WkbEncoder { has_z: self.has_z };
        let mut of_object: BTreeMap<i64, Vec<[[f64; 3]; 2]>> = BTreeMap::new();
        for link in linked.ends.chunks_exact(2) {
            let (places, owner) = corners(link)?;
            if let &[first, second] = places.as_slice() {
                let lines = of_object.entry(owner.unwrap_or(Owner::NONE)).or_default();
                lines.push([first, second]);
            }
        }
        let alone: BTreeSet<i64> = linked.objects.iter().copied().collect();
        let alone = alone
            .iter()
            .filter(|id| !of_object.contains_key(id))
            .count();
        if alone > 0 {
            self.left_out.push(format!(
                "{alone} objects without links: not supported by {FORMAT}"
            ));
        }
        let all: Vec<(i64, Vec<[[f64; 3]; 2]>)> = of_object.into_iter().collect();
        let mut rest = all.as_slice();
        while !rest.is_empty() {
            let mut vertices = 0_usize;
            let count = rest.iter().take_while(|(_, lines)| {
                let is_first = vertices == 0;
                vertices = vertices.saturating_add(lines.len().saturating_mul(2));
                is_first || vertices <= VERTICES
            });
            let (now, later) = rest.split_at(count.count().clamp(1, rest.len()));
            rest = later;
            let mut table = TableRows::new(now.len());
            for (_, lines) in now {
                let size = lines.len().saturating_mul(57).saturating_add(9);
                if i32::try_from(size).is_err() {
                    return Err(FileFault::Result {
                        format: FORMAT,
                        holds: "objects of less than 2 GiB",
                        remedy: "write swc or parquet",
                    });
                }
                table.push(lines.as_flattened(), |into| encoder.lines(lines, into));
            }
            table.objects = Some(now.iter().map(|(id, _)| *id).collect());
            self.put(table, WkbKind::MultiLineString)?;
        }
        Ok(())
    }

    /// Encodes rows, with the attributes of their objects.
    fn put(&mut self, mut table: TableRows, kind: WkbKind) -> Result<(), FileFault> {
        self.kinds.insert(kind);
        for [low, high] in &table.bounds {
            let all = self.bounds.get_or_insert([*low, *high]);
            for axis in 0..3 {
                if let (Some(all), Some(low)) = (all[0].get_mut(axis), low.get(axis)) {
                    *all = all.min(*low);
                }
                if let (Some(all), Some(high)) = (all[1].get_mut(axis), high.get(axis)) {
                    *all = all.max(*high);
                }
            }
        }
        if let Some(objects) = &table.objects {
            let rows = self.objects.rows_of(objects);
            let columns = self
                .objects
                .columns
                .iter()
                .map(|column| ("object", column.take(rows.iter().copied())));
            table.columns.extend(columns);
        }
        let (fields, arrays) = table.encode(self.has_z)?;
        let schema = match &self.schema {
            Some(schema) => Arc::clone(schema),
            None => {
                let schema = Arc::new(Schema::new(fields));
                self.schema = Some(Arc::clone(&schema));
                schema
            }
        };
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
        if self.writer.is_none() {
            let Some(sink) = self.sink.take() else {
                return Err(FileFault::Broken("the file is closed"));
            };
            let properties = WriterProperties::builder();
            let level = ZstdLevel::try_new(1)?;
            let properties = properties
                .set_compression(Compression::ZSTD(level))
                .set_max_row_group_row_count(Some(1 << 18))
                .build();
            self.writer = Some(ArrowWriter::try_new(sink, schema, Some(properties))?);
        }
        if let Some(writer) = &mut self.writer {
            writer.write(&batch)?;
        }
        Ok(())
    }

    /// Returns the metadata of geometry.
    fn metadata(&self) -> Value {
        let kinds = self.kinds.iter().map(|kind| kind.name(self.has_z));
        let axes = if self.has_z { 3 } else { 2 };
        let mut column = Map::new();
        column.insert("encoding".to_owned(), "WKB".into());
        column.insert(
            "geometry_types".to_owned(),
            kinds.collect::<Vec<String>>().into(),
        );
        match &self.crs {
            // Files in longitude and latitude name no system.
            Some(crs) if is_default_crs(crs) => {}
            crs => {
                column.insert("crs".to_owned(), crs.clone().unwrap_or(Value::Null));
            }
        }
        if let Some(bounds) = self.bounds {
            let numbers: Vec<f64> = bounds
                .iter()
                .flat_map(|corner| corner.iter().take(axes))
                .copied()
                .collect();
            column.insert("bbox".to_owned(), json!(numbers));
        }
        // The specification names these four here; the column also has bounds of z.
        let names = covering_names(false);
        let paths: Map<String, Value> = names
            .map(|name| (name.to_owned(), json!(["bbox", name])))
            .collect();
        column.insert("covering".to_owned(), json!({ "bbox": paths }));
        json!({ "version": "1.1.0", "primary_column": "geometry", "columns": { "geometry": column } })
    }

    fn complete(&mut self) -> Result<OutputSink, FileFault> {
        if let Some(linked) = self.linked.take() {
            self.put_linked(&linked)?;
        }
        if self.writer.is_none() {
            // A file without rows has the geometry alone.
            self.put(TableRows::new(0), WkbKind::Point)?;
            self.kinds.clear();
        }
        let metadata = self.metadata().to_string();
        let Some(mut writer) = self.writer.take() else {
            return Err(FileFault::Broken("the file is closed"));
        };
        writer.append_key_value_metadata(KeyValue::new(GEO.to_owned(), metadata));
        Ok(writer.into_inner()?)
    }
}

impl ResultWriter for GeoParquetWriter {
    fn write(&mut self, batch: &QueryResult) -> Result<(), FileError> {
        let added = self.add(batch);
        added.map_err(|fault| fault.of(&self.path))
    }

    fn finish(mut self: Box<Self>, tables: &GroupTables) -> Result<WrittenResult, FileError> {
        let completed = self.complete();
        let sink = completed.map_err(|fault| fault.of(&self.path))?;
        let mut left_out = std::mem::take(&mut self.left_out);
        if self.single > 0 {
            let single = self.single;
            left_out.push(format!(
                "{single} paths of one vertex: they have it twice in {FORMAT}"
            ));
        }
        left_out.extend(groups_left_out(tables, FORMAT));
        Ok(WrittenResult {
            files: vec![sink.publish(|_| Ok(()))?],
            left_out,
            ..WrittenResult::default()
        })
    }
}

impl ObjectAttributeRows {
    /// Adds the objects of a batch. Each comes once.
    fn add(&mut self, batch: &QueryResult) -> Result<(), FileFault> {
        if batch.object.is_empty() {
            return Ok(());
        }
        for id in &batch.objects {
            let next = self.rows.len();
            self.rows.entry(*id).or_insert(next);
        }
        append(&mut self.columns, &batch.object)
    }

    /// Returns the row of each object; a row past the end for one without attributes.
    fn rows_of(&self, objects: &[i64]) -> Vec<usize> {
        let row = |id: &i64| self.rows.get(id).copied().unwrap_or(usize::MAX);
        objects.iter().map(row).collect()
    }
}

/// Appends the rows of columns to those of earlier batches.
fn append(columns: &mut Vec<Column>, more: &[Column]) -> Result<(), FileFault> {
    if columns.is_empty() {
        *columns = more.to_vec();
        return Ok(());
    }
    for (column, more) in columns.iter_mut().zip(more) {
        let appended = column.append(more.clone());
        appended.map_err(|_| FileFault::Broken("an attribute changes its type between batches"))?;
    }
    Ok(())
}

impl TableRows {
    fn new(rows: usize) -> Self {
        Self {
            geometry: Vec::new(),
            sizes: Vec::with_capacity(rows),
            bounds: Vec::with_capacity(rows),
            objects: None,
            columns: Vec::new(),
            lists: Vec::new(),
            lengths: Vec::new(),
        }
    }

    /// Adds a row, which `encode` appends.
    fn push(&mut self, vertices: &[[f64; 3]], encode: impl FnOnce(&mut Vec<u8>)) {
        let before = self.geometry.len();
        encode(&mut self.geometry);
        self.sizes.push(self.geometry.len().saturating_sub(before));
        let [mut low, mut high] = [[f64::INFINITY; 3], [f64::NEG_INFINITY; 3]];
        for vertex in vertices {
            for ((low, high), value) in low.iter_mut().zip(&mut high).zip(vertex) {
                *low = low.min(*value);
                *high = high.max(*value);
            }
        }
        self.bounds.push([low, high]);
    }

    fn encode(self, has_z: bool) -> Result<(Vec<Field>, Vec<ArrayRef>), FileFault> {
        let mut names: BTreeSet<String> = BTreeSet::new();
        let mut fields = Vec::new();
        let mut arrays: Vec<ArrayRef> = Vec::new();
        let mut add = |scope: &str, name: &str, array: ArrayRef| {
            let mut full = name.to_owned();
            if names.contains(&full) {
                full = format!("{scope}_{name}");
            }
            while !names.insert(full.clone()) {
                full.push('_');
            }
            fields.push(Field::new(full, array.data_type().clone(), true));
            arrays.push(array);
        };
        let offsets = OffsetBuffer::from_lengths(self.sizes.iter().copied());
        let geometry = BinaryArray::try_new(offsets, self.geometry.into(), None)?;
        add("", "geometry", Arc::new(geometry));
        let corner = |corner: usize, axis: usize| {
            let values = self.bounds.iter().map(move |bounds| {
                let value = bounds.get(corner).and_then(|corner| corner.get(axis));
                value.copied().unwrap_or(f64::NAN)
            });
            let array: ArrayRef = Arc::new(Float64Array::from_iter_values(values));
            array
        };
        let axes = if has_z { 3 } else { 2 };
        let places = (0..2).flat_map(|at| (0..axes).map(move |axis| (at, axis)));
        let children: Vec<ArrayRef> = places.map(|(at, axis)| corner(at, axis)).collect();
        let of_children: Fields = covering_names(has_z)
            .map(|name| Field::new(name, DataType::Float64, true))
            .collect();
        add(
            "",
            "bbox",
            Arc::new(StructArray::try_new(of_children, children, None)?),
        );
        if let Some(ids) = self.objects {
            add("", "object_id", Arc::new(Int64Array::from(ids)));
        }
        for (scope, column) in self.columns {
            let name = column.name.clone();
            add(scope, &name, array_of(column)?);
        }
        for column in self.lists {
            let name = column.name.clone();
            let values = array_of(column)?;
            let item = Arc::new(Field::new("item", values.data_type().clone(), true));
            let offsets = OffsetBuffer::from_lengths(self.lengths.iter().copied());
            add(
                "vertex",
                &name,
                Arc::new(ListArray::try_new(item, offsets, values, None)?),
            );
        }
        Ok((fields, arrays))
    }
}

/// Returns the names of bounds, in the order of columns.
fn covering_names(has_z: bool) -> impl Iterator<Item = &'static str> {
    let names = ["xmin", "ymin", "zmin", "xmax", "ymax", "zmax"];
    names
        .into_iter()
        .filter(move |name| has_z || !name.starts_with('z'))
}

/// Returns whether a reference system has the form of PROJJSON.
fn is_projjson(crs: &Value) -> bool {
    let text = |key: &str| crs.get(key).and_then(Value::as_str);
    text("name").is_some() && text("type").is_some_and(|name| name.ends_with("CRS"))
}
