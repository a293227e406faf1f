//! Reads `GeoParquet`.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs::File,
    panic::{self, AssertUnwindSafe},
    path::Path,
};

use arrow_array::{Array, ArrayRef, RecordBatch, cast::AsArray};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;
use zvf::{
    AxisSpec, Column, ColumnValues, Geometry, GeometryBuilder, GeometryKind, NumericColumn, Owner,
    VertexOwners, numeric::Kind,
};
use zvf_arrow::column_of;

use super::{
    GEO, default_crs,
    wkb::{self, WkbGeometry, WkbKind},
};
use crate::{
    FileDescription, FileError, FileFault, FileFormat, FileReadOptions, WholeReader,
    names::rename,
    polygons::PolygonList,
    values::{has_rounded_integers, to_f64},
};

/// Rows that are decoded together.
const BATCH: usize = 1 << 16;
/// Attribute of objects with the id of the object that a part was cut from.
const SOURCE_OBJECT: &str = "source_object";
/// Upper bound on the corners of a polygon of a mesh.
const CORNERS: usize = 8;

/// Opens a file.
///
/// # Errors
///
/// [`FileError`] if the file is damaged, or has geometry of several types.
pub fn open(path: &Path, options: &FileReadOptions) -> Result<WholeReader, FileError> {
    // The decoder checks the structure of a file, but not every number in it.
    let read = panic::catch_unwind(AssertUnwindSafe(|| read(path, options))).unwrap_or_else(|_| {
        let why = "the file is damaged: its decoder stopped unexpectedly";
        Err(FileFault::Unsupported(why))
    });
    read.map_err(|fault| fault.of(path))
}

/// A column of geometry as the metadata describe it.
struct GeometryColumn {
    name: String,
    crs: Option<Value>,
    /// Columns with bounds.
    covering: BTreeSet<String>,
}

impl GeometryColumn {
    fn parse(text: &str) -> Result<Self, FileFault> {
        let metadata: Value = serde_json::from_str(text)?;
        let name = metadata
            .get("primary_column")
            .and_then(Value::as_str)
            .unwrap_or("geometry");
        let columns = metadata.get("columns");
        let column = columns
            .and_then(|columns| columns.get(name))
            .unwrap_or(&Value::Null);
        let encoding = column
            .get("encoding")
            .and_then(Value::as_str)
            .unwrap_or("absent");
        if encoding != "WKB" {
            let expected = "geometry is read as WKB; write the file again with this encoding";
            return Err(FileFault::field(
                "the encoding of the geometry",
                encoding,
                expected,
            ));
        }
        let crs = match column.get("crs") {
            None => Some(default_crs()),
            Some(Value::Null) => None,
            Some(crs) => Some(crs.clone()),
        };
        let paths = column
            .pointer("/covering/bbox")
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        let covering = paths.filter_map(|(_, path)| Some(path.get(0)?.as_str()?.to_owned()));
        Ok(Self {
            name: name.to_owned(),
            crs,
            covering: covering.collect(),
        })
    }
}

fn read(path: &Path, options: &FileReadOptions) -> Result<WholeReader, FileFault> {
    let file = File::open(path)?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)?;
    let mut pairs = builder
        .metadata()
        .file_metadata()
        .key_value_metadata()
        .into_iter()
        .flatten();
    let text = pairs
        .find(|pair| pair.key == GEO)
        .and_then(|pair| pair.value.as_ref());
    let Some(text) = text else {
        let why = "the file has no column of geometry; tables of coordinates are read as .parquet";
        return Err(FileFault::Unsupported(why));
    };
    let column = GeometryColumn::parse(text)?;
    let unpacked = builder
        .metadata()
        .row_groups()
        .iter()
        .map(|group| u64::try_from(group.total_byte_size()).unwrap_or(u64::MAX));
    let limit = options.unpacked;
    if unpacked.fold(0, u64::saturating_add) > limit {
        return Err(FileFault::Unpacked { limit });
    }
    let mut content = TableContent::default();
    for batch in builder.with_batch_size(BATCH).build()? {
        content.add(&batch?, &column)?;
    }
    if options.nan_for_missing {
        content.put_nan()?;
    }
    content.finish(column)
}

/// Rows of a file.
#[derive(Default)]
struct TableContent {
    has_z: Option<bool>,
    /// Points, lines or rings of all rows, and the row of each.
    parts: Vec<(usize, Vec<[f64; 3]>)>,
    family: Option<RowFamily>,
    /// Polygons have a hole, or several parts.
    is_area: bool,
    rows: usize,
    absent: usize,
    columns: Vec<Column>,
    /// Lists of numbers, with a value for each vertex.
    lists: BTreeMap<String, ListColumn>,
    left_out: BTreeSet<String>,
}

/// A list of values in each row.
#[derive(Default)]
struct ListColumn {
    lengths: Vec<usize>,
    values: Option<Column>,
}

/// Types of geometry that are read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowFamily {
    Points,
    Lines,
    Polygons,
}

impl TableContent {
    fn add(&mut self, batch: &RecordBatch, of: &GeometryColumn) -> Result<(), FileFault> {
        let Some(geometry) = batch.column_by_name(&of.name) else {
            let expected = "the metadata name this column, and the file lacks it";
            return Err(FileFault::field(
                "the column of geometry",
                &of.name,
                expected,
            ));
        };
        let mut kept: Vec<u64> = Vec::new();
        for row in 0..geometry.len() {
            let value = value(geometry, row)?;
            match value.map(wkb::parse).transpose()?.flatten() {
                None => self.absent = self.absent.saturating_add(1),
                Some(found) => {
                    self.push(found)?;
                    kept.extend(u64::try_from(row));
                }
            }
        }
        let rows: Vec<usize> = kept
            .iter()
            .filter_map(|row| usize::try_from(*row).ok())
            .collect();
        let is_first = self.columns.is_empty() && self.lists.is_empty();
        let mut columns = Vec::new();
        for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            let name = field.name();
            if *name == of.name || of.covering.contains(name) || self.left_out.contains(name) {
                continue;
            }
            match array.data_type() {
                DataType::List(_) | DataType::LargeList(_) => self.list(name, array, &rows)?,
                _ => match column_of(name, array) {
                    Ok(column) => columns.push(column.take(rows.iter().copied())),
                    Err(_) => {
                        self.left_out.insert(name.clone());
                    }
                },
            }
        }
        if is_first {
            self.columns = columns;
            return Ok(());
        }
        for column in &mut self.columns {
            let Some(more) = columns.iter().find(|more| more.name == column.name) else {
                continue;
            };
            let appended = column.append(more.clone());
            appended.map_err(|_| FileFault::Broken("a column changes its type"))?;
        }
        Ok(())
    }

    fn push(&mut self, found: WkbGeometry) -> Result<(), FileFault> {
        let family = match found.kind {
            WkbKind::Point | WkbKind::MultiPoint => RowFamily::Points,
            WkbKind::LineString | WkbKind::MultiLineString => RowFamily::Lines,
            WkbKind::Polygon | WkbKind::MultiPolygon => RowFamily::Polygons,
        };
        let is_other = self.family.is_some_and(|other| other != family);
        if is_other || self.has_z.is_some_and(|has_z| has_z != found.has_z) {
            let why = "the file has geometry of several types or dimensions; write a file for each of them";
            return Err(FileFault::Unsupported(why));
        }
        self.family = Some(family);
        self.has_z = Some(found.has_z);
        if family == RowFamily::Polygons {
            self.is_area |= found.rings.as_slice() != [1];
        }
        let row = self.rows;
        self.rows = row.saturating_add(1);
        self.parts
            .extend(found.parts.into_iter().map(|part| (row, part)));
        Ok(())
    }

    /// Adds lists, which belong to vertices if they have their number.
    fn list(&mut self, name: &str, array: &ArrayRef, rows: &[usize]) -> Result<(), FileFault> {
        let list = self.lists.entry(name.to_owned()).or_default();
        for row in rows {
            let item = match array.data_type() {
                DataType::List(_) => array.as_list::<i32>().value(*row),
                _ => array.as_list::<i64>().value(*row),
            };
            list.lengths
                .push(if array.is_null(*row) { 0 } else { item.len() });
            if array.is_null(*row) {
                continue;
            }
            let Ok(column) = column_of(name, &item) else {
                self.lists.remove(name);
                self.left_out.insert(name.to_owned());
                return Ok(());
            };
            match &mut list.values {
                None => list.values = Some(column),
                Some(values) => {
                    let appended = values.append(column);
                    appended.map_err(|_| FileFault::Broken("a column changes its type"))?;
                }
            }
        }
        Ok(())
    }

    /// Turns integers and booleans with rows without a value into float64 with NaN.
    fn put_nan(&mut self) -> Result<(), FileFault> {
        let lists = self
            .lists
            .values_mut()
            .filter_map(|list| list.values.as_mut());
        for column in self.columns.iter_mut().chain(lists) {
            let Some(nulls) = column.nulls.as_ref().filter(|nulls| nulls.contains(&true)) else {
                continue;
            };
            let ColumnValues::Numeric(numbers) = &column.values else {
                continue;
            };
            if has_rounded_integers(numbers, nulls) {
                let expected = "it has integers beyond 2^53, which are rounded beside NaN; give all \
                                rows a value";
                return Err(FileFault::field("the column", &column.name, expected));
            }
            let is_float = numbers.kind.nan().is_some();
            if let Some(floats) = to_f64(numbers).filter(|_| !is_float) {
                column.values = NumericColumn::float64(numbers.width, floats).into();
            }
        }
        Ok(())
    }

    /// Returns the object of each row: its `object_id`, if all rows have one.
    fn objects(&mut self) -> Option<Vec<i64>> {
        let at = self
            .columns
            .iter()
            .position(|column| column.name == "object_id")?;
        let column = self.columns.get(at)?;
        let ColumnValues::Numeric(numbers) = &column.values else {
            return None;
        };
        let ids: Vec<i64> = numbers.to_vec::<i64>().filter(|_| column.nulls.is_none())?;
        self.columns.remove(at);
        Some(ids)
    }

    fn finish(mut self, of: GeometryColumn) -> Result<WholeReader, FileFault> {
        let Some((family, has_z)) = self.family.zip(self.has_z) else {
            return Err(FileFault::Empty);
        };
        let mut notes = Vec::new();
        if self.absent > 0 {
            notes.push(format!("left out: {} rows without geometry", self.absent));
        }
        let corners = self.parts.first().map_or(0, |(_, ring)| ring.len());
        let is_mesh = family == RowFamily::Polygons
            && !self.is_area
            && (4..=CORNERS.saturating_add(1)).contains(&corners)
            && self
                .parts
                .iter()
                .all(|(_, ring)| ring.len() == corners && ring.first() == ring.last());
        let (kind, mut geometry) = match family {
            RowFamily::Points => (GeometryKind::Points, self.points(has_z)),
            RowFamily::Polygons if is_mesh => (GeometryKind::Mesh, self.mesh(has_z)?),
            RowFamily::Polygons | RowFamily::Lines => (GeometryKind::Polylines, self.lines(has_z)?),
        };
        if family == RowFamily::Polygons && !is_mesh {
            notes.push("polygons are read as their rings, and holes as further rings".to_owned());
        }
        if geometry
            .object
            .iter()
            .any(|column| column.name == SOURCE_OBJECT)
        {
            notes.push(format!(
                "additional parts of an object become separate objects; object.{SOURCE_OBJECT} holds the id of the whole"
            ));
        }
        if !self.left_out.is_empty() {
            let names: Vec<&str> = self.left_out.iter().map(String::as_str).collect();
            notes.push(format!("left out: columns {}", names.join(", ")));
        }
        let mut description = FileDescription::new(FileFormat::GeoParquet, kind);
        let names = ["x", "y", "z"].into_iter().take(if has_z { 3 } else { 2 });
        description.axes = names.map(AxisSpec::new).collect();
        description.crs = of.crs;
        description.notes = notes;
        let header = &mut description.header;
        rename(&mut geometry.vertex, header, "names");
        rename(&mut geometry.link, header, "link_names");
        rename(&mut geometry.object, header, "object_names");
        Ok(WholeReader::new(geometry, description))
    }

    fn positions(&self, has_z: bool) -> NumericColumn {
        let axes = if has_z { 3 } else { 2 };
        let rows = self.parts.iter().flat_map(|(_, part)| part);
        let values = rows.flat_map(|row| row.iter().take(axes).copied());
        NumericColumn::float64(if has_z { 3 } else { 2 }, values)
    }

    /// Returns points; several of one row have its attributes.
    fn points(&mut self, has_z: bool) -> GeometryBuilder {
        let mut geometry = Geometry::builder(self.positions(has_z));
        let objects = self.objects();
        let rows = || self.parts.iter().map(|(row, _)| *row);
        if let Some(ids) = objects {
            let ids = rows().map(|row| ids.get(row).copied().unwrap_or(Owner::NONE));
            geometry.owners = VertexOwners::Vertices(ids.collect());
        }
        let rows: Vec<usize> = rows().collect();
        let columns = self
            .columns
            .iter()
            .map(|column| column.take(rows.iter().copied()));
        geometry.vertex = columns.collect();
        self.left_out.extend(self.lists.keys().cloned());
        geometry
    }

    /// Returns lines, with the object of each.
    fn lines(&mut self, has_z: bool) -> Result<GeometryBuilder, FileFault> {
        let mut geometry = Geometry::builder(self.positions(has_z));
        let row_id = |row: usize| i64::try_from(row).unwrap_or(i64::MAX);
        let ids: Vec<i64> = self
            .objects()
            .unwrap_or_else(|| (0..self.rows).map(row_id).collect());
        // A store joins the parts of one object, so each further part becomes an object.
        let mut used = BTreeSet::new();
        let mut last = ids.iter().copied().max().unwrap_or(-1);
        let mut offsets = vec![0_u64];
        let mut owners = Vec::new();
        let mut objects: Vec<(i64, i64, usize)> = Vec::new();
        for (row, part) in &self.parts {
            let end = offsets.last().copied().unwrap_or(0);
            offsets.push(end.saturating_add(u64::try_from(part.len()).unwrap_or(u64::MAX)));
            let source = ids.get(*row).copied().unwrap_or(0);
            let id = if used.insert(source) {
                source
            } else {
                let why = "no object ids are left for additional parts of objects";
                last = last.checked_add(1).ok_or(FileFault::Unsupported(why))?;
                last
            };
            owners.push(id);
            objects.push((id, source, *row));
        }
        let without_parts = ids.iter().enumerate().filter(|(_, id)| used.insert(**id));
        objects.extend(without_parts.map(|(row, id)| (*id, *id, row)));
        objects.sort_unstable();
        let columns = self
            .columns
            .iter()
            .map(|column| column.take(objects.iter().map(|(_, _, row)| *row)));
        geometry.object = columns.collect();
        let is_divided = objects.iter().any(|(id, source, _)| id != source);
        let is_named = |column: &Column| column.name == SOURCE_OBJECT;
        if is_divided && !geometry.object.iter().any(is_named) {
            let mut sources = NumericColumn::new(Kind::Int64, 1);
            let ids = objects
                .iter()
                .flat_map(|(_, source, _)| source.to_le_bytes());
            sources.bytes = ids.collect();
            geometry
                .object
                .push(Column::new(SOURCE_OBJECT.to_owned(), sources));
        }
        geometry.objects = Some(objects.into_iter().map(|(id, _, _)| id).collect());
        geometry.owners = VertexOwners::Paths {
            offsets,
            objects: Some(owners),
        };
        let mut vertices = vec![0_usize; self.rows];
        for (row, part) in &self.parts {
            if let Some(count) = vertices.get_mut(*row) {
                *count = count.saturating_add(part.len());
            }
        }
        for (name, list) in std::mem::take(&mut self.lists) {
            match list.values {
                Some(values) if list.lengths == vertices => geometry.vertex.push(values),
                _ => {
                    self.left_out.insert(name);
                }
            }
        }
        Ok(geometry)
    }

    /// Returns faces, whose corners with equal coordinates are one vertex.
    fn mesh(&mut self, has_z: bool) -> Result<GeometryBuilder, FileFault> {
        let mut rows: HashMap<[u64; 3], u32> = HashMap::new();
        let mut vertices: Vec<[f64; 3]> = Vec::new();
        let mut polygons = PolygonList::default();
        for (_, ring) in &self.parts {
            let mut corners = Vec::new();
            for corner in ring.iter().take(ring.len().saturating_sub(1)) {
                let next = u32::try_from(vertices.len())
                    .map_err(|_| FileFault::Unsupported("a store has fewer than 2^32 vertices"))?;
                let row = *rows.entry(corner.map(f64::to_bits)).or_insert(next);
                if row == next {
                    vertices.push(*corner);
                }
                corners.push(row);
            }
            polygons.push(corners)?;
        }
        let axes = if has_z { 3 } else { 2 };
        let values = vertices
            .iter()
            .flat_map(|row| row.iter().take(axes).copied());
        let mut geometry =
            Geometry::builder(NumericColumn::float64(if has_z { 3 } else { 2 }, values));
        if let Some(ids) = self.objects() {
            self.own(&ids, &rows, &mut geometry);
        }
        self.left_out.extend(self.lists.keys().cloned());
        polygons.add_to(&mut geometry, std::mem::take(&mut self.columns))?;
        Ok(geometry)
    }

    /// Gives vertices the object of their faces, if no two objects share a vertex.
    fn own(&mut self, ids: &[i64], rows: &HashMap<[u64; 3], u32>, geometry: &mut GeometryBuilder) {
        let mut owners = vec![None; geometry.vertices()];
        for (row, ring) in &self.parts {
            let id = ids.get(*row).copied();
            for corner in ring {
                let vertex = rows
                    .get(&corner.map(f64::to_bits))
                    .and_then(|row| usize::try_from(*row).ok());
                let Some(owner) = vertex.and_then(|row| owners.get_mut(row)) else {
                    continue;
                };
                if owner.is_some() && *owner != id {
                    self.left_out
                        .insert("object_id, whose objects share vertices".to_owned());
                    return;
                }
                *owner = id;
            }
        }
        if let Some(ids) = owners.into_iter().collect() {
            geometry.owners = VertexOwners::Vertices(ids);
        }
    }
}

/// Returns the bytes of a row; `None` if it is null.
fn value(array: &ArrayRef, row: usize) -> Result<Option<&[u8]>, FileFault> {
    if array.is_null(row) {
        return Ok(None);
    }
    Ok(Some(match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().value(row),
        DataType::LargeBinary => array.as_binary::<i64>().value(row),
        DataType::BinaryView => array.as_binary_view().value(row),
        other => {
            let expected = "well-known binary is a column of bytes";
            return Err(FileFault::field(
                "the type of the geometry",
                other,
                expected,
            ));
        }
    }))
}
