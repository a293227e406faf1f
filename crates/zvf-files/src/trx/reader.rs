//! Reads streamlines in batches.

use std::{error::Error, path::Path};

use serde_json::{Map, Value};
use zvf::{
    Column, Geometry, GeometryBuilder, GeometryKind, GeometrySource, NumericColumn, numeric::Kind,
};

use super::{
    archive::{ArrayName, TrxArchive, is_json},
    tables,
};
use crate::{
    FileDescription, FileError, FileFault, FileFormat, FileHeader, FileReadOptions, GeometryReader,
    affine::VoxelMap,
    description::MAX_HEADER_TEXT,
    input::ByteReader,
    names::AttributeNames,
    reader::{PathBatch, built, note_empty, object_id},
    values::not_finite,
};

/// A TRX file or folder that is read in batches.
#[derive(Debug)]
pub struct TrxReader {
    archive: TrxArchive,
    positions: VertexArray,
    vertex: Vec<VertexArray>,
    offsets: Vec<u64>,
    tables: GeometryBuilder,
    description: FileDescription,
    /// Next streamline.
    next: usize,
}

/// An array with a row for each vertex, read in step with the others.
#[derive(Debug)]
struct VertexArray {
    /// Name of the attribute.
    name: String,
    path: String,
    array: ArrayName,
    reader: ByteReader,
}

impl TrxReader {
    /// Opens a file or folder, and reads everything except the rows of vertices.
    ///
    /// # Errors
    ///
    /// [`FileError`] if an array is missing or does not fit the header.
    pub fn open(path: &Path, options: &FileReadOptions) -> Result<Self, FileError> {
        let archive = TrxArchive::open(path, options.unpacked)?;
        let mut description = FileDescription::new(FileFormat::Trx, GeometryKind::Streamlines)
            .axes_xyz(Some("millimeter"));
        description.crs = Some(serde_json::json!({ "frame": "RAS+", "unit": "millimeter" }));
        let header = header(&archive)?;
        let [streamlines, vertices] = ["NB_STREAMLINES", "NB_VERTICES"].map(|key| {
            let value = header.get(key).and_then(Value::as_u64);
            let expected = "header.json must give this number";
            value.ok_or_else(|| {
                archive.error("header.json", FileFault::field(key, "absent", expected))
            })
        });
        let (streamlines, vertices) = (streamlines?, vertices?);
        // The offsets have a row for each streamline, so that their number is not absurd.
        let (offsets, kind) = offsets(&archive, streamlines, vertices)?;
        let tables = tables::read(&archive, streamlines)?;
        description.header = tables.header;
        let (positions, vertex) = vertex_arrays(&archive, vertices, &mut description.header)?;
        keep_header(header, &mut description);
        let spans = offsets
            .windows(2)
            .filter(|span| matches!(span, [start, end] if start == end));
        note_empty(
            &mut description.notes,
            u64::try_from(spans.count()).unwrap_or(u64::MAX),
        );
        if kind != Kind::UInt32 {
            description
                .header
                .insert("offsets".to_owned(), kind.name().into());
        }
        let rows = vertex.iter().map(|it| it.array.row_size());
        let row = rows.fold(positions.array.row_size(), u64::saturating_add);
        description.bytes = row.saturating_mul(vertices);
        let mut geometry = tables.geometry;
        geometry.positions = NumericColumn::new(positions.array.kind, 3);
        Ok(Self {
            archive,
            positions,
            vertex,
            offsets,
            tables: geometry,
            description,
            next: 0,
        })
    }

    fn batch(&mut self, vertices: usize) -> Result<Option<GeometryBuilder>, FileError> {
        let mut batch = PathBatch::new();
        for (number, span) in self.offsets.windows(2).enumerate().skip(self.next) {
            let &[start, end] = span else { break };
            let points = end.saturating_sub(start);
            // Streamlines without points end a batch, because a batch has to have points.
            if points > 0 && batch.is_full(vertices) {
                break;
            }
            batch.push(object_id(u64::try_from(number).unwrap_or(u64::MAX)), points);
            self.next = number.saturating_add(1);
        }
        let rows = batch.vertices();
        let positions = self.positions.take(rows)?;
        if let Some(value) = not_finite(&positions) {
            return Err(self
                .archive
                .error(&self.positions.path, FileFault::NotFinite(value)));
        }
        let mut attributes = Vec::with_capacity(self.vertex.len());
        for array in &mut self.vertex {
            attributes.push(Column::new(array.name.clone(), array.take(rows)?));
        }
        Ok(batch.geometry(positions, attributes))
    }
}

impl VertexArray {
    /// Reads the next rows.
    fn take(&mut self, rows: u64) -> Result<NumericColumn, FileError> {
        let mut column = NumericColumn::new(self.array.kind, self.array.width);
        let length = rows.saturating_mul(self.array.row_size());
        self.reader
            .take(&mut column.bytes, length, "rows of vertices")?;
        Ok(column)
    }
}

impl GeometrySource for TrxReader {
    fn next(&mut self, vertices: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        built(self.batch(vertices)?)
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.next = 0;
        for array in std::iter::once(&mut self.positions).chain(&mut self.vertex) {
            array.reader = self.archive.reader(&array.path)?;
        }
        Ok(())
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        Ok(self.tables.clone().build()?)
    }
}

impl GeometryReader for TrxReader {
    fn description(&self) -> &FileDescription {
        &self.description
    }
}

/// Reads `header.json`.
fn header(archive: &TrxArchive) -> Result<Map<String, Value>, FileError> {
    let name = "header.json";
    let length = archive.length(name);
    if length == 0 || usize::try_from(length).is_ok_and(|length| length > MAX_HEADER_TEXT) {
        let expected =
            "a TRX file has a header.json of up to 8 MiB; the file is damaged or another format";
        return Err(archive.error(
            name,
            FileFault::field("the size of the header", length, expected),
        ));
    }
    let bytes = archive.bytes(name)?;
    serde_json::from_slice(&bytes).map_err(|error| archive.error(name, error.into()))
}

/// Keeps the header, and gives its affine map a name that all formats use.
fn keep_header(header: Map<String, Value>, description: &mut FileDescription) {
    let kept = &mut description.header;
    if let Some(affine) = header.get("VOXEL_TO_RASMM").and_then(VoxelMap::from_json) {
        kept.insert("voxel_to_rasmm".to_owned(), affine.to_json());
    }
    if let Some(dimensions) = header.get("DIMENSIONS") {
        kept.insert("dimensions".to_owned(), dimensions.clone());
    }
    kept.insert("header".to_owned(), header.into());
}

/// Finds the arrays of vertices and checks their sizes.
fn vertex_arrays(
    archive: &TrxArchive,
    vertices: u64,
    header: &mut FileHeader,
) -> Result<(VertexArray, Vec<VertexArray>), FileError> {
    let mut names = AttributeNames::default();
    let mut positions = None;
    let mut vertex = Vec::new();
    let mut bits = Map::new();
    for path in archive.names() {
        let file = match path.split_once('/') {
            None if path.starts_with("positions.") => path.as_str(),
            Some(("dpv", file)) if !is_json(file) => file,
            _ => continue,
        };
        let Some(array) = ArrayName::parse(file) else {
            let expected = "arrays are named NAME.TYPE or NAME.COLUMNS.TYPE";
            return Err(archive.error(
                &path,
                FileFault::field("the name of an array", &path, expected),
            ));
        };
        let found = archive.length(&path);
        let expected = vertices.saturating_mul(array.row_size());
        if found != expected {
            let what = "bytes of an array, by NB_VERTICES";
            return Err(archive.error(
                &path,
                FileFault::Count {
                    what,
                    found,
                    expected,
                },
            ));
        }
        let reader = archive.reader(&path)?;
        let is_position = file == path;
        let name = if is_position {
            String::new()
        } else {
            names.add(&array.name)
        };
        if array.is_bit {
            bits.insert(format!("dpv/{name}"), "bit".into());
        }
        let array = VertexArray {
            name,
            path: path.clone(),
            array,
            reader,
        };
        if !is_position {
            vertex.push(array);
        } else if positions.replace(array).is_some() {
            return Err(archive.error(&path, FileFault::Twice("positions".to_owned())));
        }
    }
    if !bits.is_empty() {
        let types = header.entry("types").or_insert_with(|| Map::new().into());
        if let Some(types) = types.as_object_mut() {
            types.extend(bits);
        }
    }
    names.record(header, "names");
    let is_float = |kind| matches!(kind, Kind::Float16 | Kind::Float32 | Kind::Float64);
    match positions {
        Some(positions) if positions.array.width == 3 && is_float(positions.array.kind) => {
            Ok((positions, vertex))
        }
        Some(positions) => {
            let expected = "positions are named positions.3.float16, float32 or float64";
            let fault = FileFault::field("the array", &positions.path, expected);
            Err(archive.error(&positions.path, fault))
        }
        None => {
            let expected = "a TRX file has an array positions.3.TYPE";
            Err(archive.error(
                "positions",
                FileFault::field("positions", "absent", expected),
            ))
        }
    }
}

/// Reads the offsets and checks that they ascend from 0 to the number of vertices.
fn offsets(
    archive: &TrxArchive,
    streamlines: u64,
    vertices: u64,
) -> Result<(Vec<u64>, Kind), FileError> {
    let names = archive.names();
    let mut paths = names.iter().filter(|path| path.starts_with("offsets."));
    let path = paths.next();
    let array = path.and_then(|path| ArrayName::parse(path));
    let (Some(path), Some(array)) = (path, array) else {
        let expected = "a TRX file has an array offsets.uint32 or offsets.uint64";
        return Err(archive.error("offsets", FileFault::field("offsets", "absent", expected)));
    };
    if let Some(other) = paths.next() {
        return Err(archive.error(other, FileFault::Twice("offsets".to_owned())));
    }
    let rows = tables::rows(archive, path, &array, Some(streamlines.saturating_add(1)))?;
    let offsets = match array.kind {
        Kind::UInt32 => rows
            .to_vec::<u32>()
            .map(|all| all.into_iter().map(u64::from).collect()),
        Kind::UInt64 => rows.to_vec::<u64>(),
        Kind::Int64 => rows.to_vec::<i64>().map(|all| {
            all.into_iter()
                .map(|offset| u64::try_from(offset).unwrap_or(u64::MAX))
                .collect()
        }),
        _ => None,
    };
    let offsets: Vec<u64> = offsets.filter(|_| array.width == 1).ok_or_else(|| {
        let expected = "offsets are uint32 or uint64 in one column";
        archive.error(path, FileFault::field("the array", path, expected))
    })?;
    let ascends = offsets.is_sorted();
    if !ascends || offsets.first() != Some(&0) || offsets.last() != Some(&vertices) {
        let expected = "they ascend from 0 to NB_VERTICES; the file is damaged";
        let found = format!("{:?} to {:?}", offsets.first(), offsets.last());
        return Err(archive.error(
            path,
            FileFault::field("the sequence of offsets", found, expected),
        ));
    }
    Ok((offsets, array.kind))
}
