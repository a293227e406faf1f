//! Writes a zip file of arrays, which are collected in temporary files.

use std::{
    collections::{HashMap, hash_map::Entry},
    fs::File,
    io::{self, BufWriter, Seek, Write},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};
use zvf::{Column, ColumnValues, NumericColumn, QueryResult, numeric::Kind};

use crate::{
    FileError, FileFault, FileHeader, GroupTables, ResultDescription, ResultWriter, WrittenResult,
    affine::VoxelMap,
    names::original,
    trk,
    values::{AxisOrder, narrow, numbers, to_f64},
    writer::{OutputSink, left_out, paths},
};

/// A TRX file that is written in batches.
#[derive(Debug)]
pub struct TrxWriter {
    path: PathBuf,
    kept: FileHeader,
    affine: VoxelMap,
    dimensions: [u64; 3],
    positions: Option<SpilledArray>,
    vertex: Vec<SpilledArray>,
    object: Vec<SpilledArray>,
    offsets: Vec<u64>,
    numbers: StreamlineNumbers,
    /// Object of the last streamline, with its row of each attribute.
    last: (Option<i64>, Vec<Vec<u8>>),
    left_out: Vec<String>,
}

/// The numbers of the streamlines of each object.
#[derive(Debug, Default)]
struct StreamlineNumbers {
    first: HashMap<i64, u32>,
    /// The numbers of further streamlines. Few objects have several.
    further: HashMap<i64, Vec<u32>>,
}

impl StreamlineNumbers {
    fn push(&mut self, object: i64, number: u32) {
        match self.first.entry(object) {
            Entry::Vacant(first) => {
                first.insert(number);
            }
            Entry::Occupied(_) => self.further.entry(object).or_default().push(number),
        }
    }

    fn of(&self, object: i64) -> impl Iterator<Item = u32> {
        let further = self.further.get(&object).into_iter().flatten();
        self.first.get(&object).into_iter().chain(further).copied()
    }
}

/// An array that grows in a temporary file.
#[derive(Debug)]
struct SpilledArray {
    /// Name of the attribute in the store.
    name: String,
    /// Path in the zip file.
    member: String,
    kind: Kind,
    width: u32,
    file: BufWriter<File>,
}

impl SpilledArray {
    fn new(
        name: &str,
        folder: &str,
        original: &str,
        column: &NumericColumn,
        ty: Option<&str>,
    ) -> io::Result<Self> {
        let kind = super::archive::kind_of(ty.unwrap_or_default()).unwrap_or(match column.kind {
            Kind::Bool => Kind::UInt8,
            kind => kind,
        });
        let is_bit = ty == Some("bit") || column.kind == Kind::Bool;
        let ty = if is_bit { "bit" } else { kind.name() };
        let member = match column.width {
            1 => format!("{folder}{original}.{ty}"),
            width => format!("{folder}{original}.{width}.{ty}"),
        };
        Ok(Self {
            name: name.to_owned(),
            member,
            kind,
            width: column.width,
            file: BufWriter::with_capacity(1 << 16, tempfile::tempfile()?),
        })
    }

    /// Returns rows in the type of the array.
    fn encode(&self, column: &NumericColumn) -> Option<Vec<u8>> {
        if column.width != self.width {
            return None;
        }
        if column.kind == self.kind || column.kind == Kind::Bool && self.kind == Kind::UInt8 {
            return Some(column.bytes.clone());
        }
        // Types differ where the reader widened bytes, or a later batch lacks values.
        match (self.kind, column.kind) {
            (Kind::UInt8 | Kind::Int8, Kind::UInt16 | Kind::Int16) => {
                Some(column.bytes.iter().step_by(2).copied().collect())
            }
            (Kind::Float32, _) => {
                let values = to_f64(column)?.into_iter();
                Some(
                    values
                        .flat_map(|value| narrow(value).to_le_bytes())
                        .collect(),
                )
            }
            (Kind::Float64, _) => {
                let values = to_f64(column)?.into_iter();
                Some(values.flat_map(f64::to_le_bytes).collect())
            }
            _ => None,
        }
    }

    fn row_size(&self) -> usize {
        let width = usize::try_from(self.width).unwrap_or(1);
        self.kind.size().saturating_mul(width)
    }
}

impl TrxWriter {
    /// Creates a file.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the folder cannot be written.
    pub fn create(path: &Path, description: &ResultDescription) -> Result<Self, FileError> {
        let (affine, dimensions) = trk::voxel_grid(description);
        Ok(Self {
            path: path.to_path_buf(),
            kept: description.headers.get("trx").cloned().unwrap_or_default(),
            affine,
            dimensions,
            positions: None,
            vertex: Vec::new(),
            object: Vec::new(),
            offsets: vec![0],
            numbers: StreamlineNumbers::default(),
            last: (None, Vec::new()),
            left_out: Vec::new(),
        })
    }

    /// Creates the arrays for the columns of the first batch.
    fn plan(&mut self, batch: &QueryResult) -> Result<(), FileFault> {
        let coordinates = AxisOrder::of(batch, "trx")?;
        if !coordinates.are_in_order() || batch.positions.row_len() != 3 {
            return Err(FileFault::Result {
                format: "trx",
                holds: "axes x, y and z in this order",
                remedy: "write csv or npz",
            });
        }
        let positions = &batch.positions;
        let is_float = matches!(
            positions.kind,
            Kind::Float16 | Kind::Float32 | Kind::Float64
        );
        let ty = (!is_float).then_some("float64");
        self.positions = Some(SpilledArray::new("", "", "positions", positions, ty)?);
        let types = self.kept.get("types").cloned();
        let ty = |path: String| types.as_ref()?.get(&path)?.as_str().map(str::to_owned);
        let scopes = [
            ("vertex", "dpv", "names", &batch.vertex),
            ("object", "dps", "object_names", &batch.object),
        ];
        for (scope, folder, names, columns) in scopes {
            for column in columns {
                let Some(values) = numbers(column).filter(|values| is_held(values.kind)) else {
                    let line = format!("{scope}.{}: trx holds real numbers only", column.name);
                    self.left_out.push(line);
                    continue;
                };
                let name = original(self.kept.get(names), &column.name);
                let ty = ty(format!("{folder}/{}", column.name));
                let array = SpilledArray::new(
                    &column.name,
                    &format!("{folder}/"),
                    name,
                    &values,
                    ty.as_deref(),
                )?;
                match scope {
                    "vertex" => self.vertex.push(array),
                    _ => self.object.push(array),
                }
            }
        }
        self.left_out
            .extend(left_out("fragment", &batch.fragment, "trx"));
        Ok(())
    }

    fn put(&mut self, batch: &QueryResult) -> Result<(), FileFault> {
        if self.positions.is_none() {
            self.plan(batch)?;
        }
        let missing = FileFault::Broken("a column changes its type between batches");
        if let Some(array) = &mut self.positions {
            let bytes = array.encode(&batch.positions).ok_or(missing)?;
            array.file.write_all(&bytes)?;
        }
        for array in &mut self.vertex {
            let bytes = encoded(array, &batch.vertex)?;
            array.file.write_all(&bytes)?;
        }
        let rows = batch.objects.iter().zip(0_usize..);
        let rows: HashMap<i64, usize> = rows.map(|(id, row)| (*id, row)).collect();
        let object = self
            .object
            .iter()
            .map(|array| encoded(array, &batch.object));
        let object = object.collect::<Result<Vec<_>, _>>()?;
        for path in paths(batch, "trx")? {
            let points = u64::try_from(path.end.saturating_sub(path.start)).unwrap_or(0);
            let end = self
                .offsets
                .last()
                .copied()
                .unwrap_or(0)
                .saturating_add(points);
            let number = u32::try_from(self.offsets.len().saturating_sub(1));
            let number = number.map_err(|_| FileFault::Result {
                format: "trx",
                holds: "up to 4294967295 streamlines",
                remedy: "select fewer",
            })?;
            self.offsets.push(end);
            self.numbers.push(path.object, number);
            if self.last.0 != Some(path.object) {
                let row = rows.get(&path.object);
                let row = row.ok_or(FileFault::Broken("an object without a row of attributes"));
                let row = match row {
                    Ok(row) => *row,
                    Err(_) if object.is_empty() => 0,
                    Err(fault) => return Err(fault),
                };
                let of = |(array, bytes): (&SpilledArray, &Vec<u8>)| {
                    let size = array.row_size();
                    let start = row.saturating_mul(size);
                    bytes
                        .get(start..start.saturating_add(size))
                        .unwrap_or_default()
                        .to_vec()
                };
                self.last = (
                    Some(path.object),
                    self.object.iter().zip(&object).map(of).collect(),
                );
            }
            for (array, row) in self.object.iter_mut().zip(&self.last.1) {
                array.file.write_all(row)?;
            }
        }
        Ok(())
    }

    /// Returns `header.json`.
    fn header(&self) -> Value {
        let header = self.kept.get("header").and_then(Value::as_object);
        let mut header = header.cloned().unwrap_or_default();
        if !header.contains_key("VOXEL_TO_RASMM") {
            header.insert("VOXEL_TO_RASMM".to_owned(), self.affine.to_json());
        }
        if !header.contains_key("DIMENSIONS") {
            header.insert("DIMENSIONS".to_owned(), json!(self.dimensions));
        }
        let streamlines = self.offsets.len().saturating_sub(1);
        header.insert("NB_STREAMLINES".to_owned(), json!(streamlines));
        let vertices = self.offsets.last().copied().unwrap_or(0);
        header.insert("NB_VERTICES".to_owned(), json!(vertices));
        header.into()
    }

    fn fill(
        &mut self,
        zip: &mut ZipWriter<&mut File>,
        tables: &GroupTables,
    ) -> Result<(), FileFault> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(true);
        zip.start_file("header.json", options)?;
        zip.write_all(self.header().to_string().as_bytes())?;
        let arrays = self
            .positions
            .iter_mut()
            .chain(&mut self.vertex)
            .chain(&mut self.object);
        for array in arrays {
            zip.start_file(array.member.as_str(), options)?;
            array.file.flush()?;
            array.file.get_mut().rewind()?;
            io::copy(array.file.get_mut(), zip)?;
        }
        let vertices = self.offsets.last().copied().unwrap_or(0);
        let is_wide = self
            .kept
            .get("offsets")
            .is_some_and(|kind| kind == "uint64");
        if is_wide || u32::try_from(vertices).is_err() {
            zip.start_file("offsets.uint64", options)?;
            let bytes: Vec<u8> = self
                .offsets
                .iter()
                .flat_map(|at| at.to_le_bytes())
                .collect();
            zip.write_all(&bytes)?;
        } else {
            zip.start_file("offsets.uint32", options)?;
            let offsets = self
                .offsets
                .iter()
                .map(|at| u32::try_from(*at).unwrap_or(u32::MAX));
            let bytes: Vec<u8> = offsets.flat_map(u32::to_le_bytes).collect();
            zip.write_all(&bytes)?;
        }
        let out = put_groups(&self.kept, &self.numbers, zip, options, tables)?;
        self.left_out.extend(out);
        Ok(())
    }
}

/// Writes groups and their attributes. Returns what cannot be written.
fn put_groups(
    kept: &FileHeader,
    numbers: &StreamlineNumbers,
    zip: &mut ZipWriter<&mut File>,
    options: SimpleFileOptions,
    tables: &GroupTables,
) -> Result<Vec<String>, FileFault> {
    let mut out = Vec::new();
    let names = tables.columns.iter().find(|column| column.name == "name");
    for group in &tables.groups {
        let row = usize::try_from(group.id).unwrap_or(usize::MAX);
        let name = names.and_then(|names| names.text_at(row));
        let name = name.filter(|name| is_file_name(name));
        let name = name.map_or_else(|| format!("group_{}", group.id), str::to_owned);
        zip.start_file(format!("groups/{name}.uint32"), options)?;
        let members = group.members.iter().flat_map(|id| numbers.of(*id));
        let bytes: Vec<u8> = members.flat_map(u32::to_le_bytes).collect();
        zip.write_all(&bytes)?;
        for column in tables.columns.iter().filter(|column| column.name != "name") {
            let ColumnValues::Numeric(values) = &column.values else {
                continue;
            };
            if !is_held(values.kind) {
                continue;
            }
            // Pairs of group and attribute that the source file had, with their types.
            let pairs = kept.get("dpg").and_then(|pairs| pairs.get(&column.name));
            let ty = pairs.and_then(|types| types.get(&name));
            if pairs.is_some() && ty.is_none() {
                continue;
            }
            let one = values.take([row]);
            if one.is_empty() {
                continue;
            }
            let original = original(kept.get("group_names"), &column.name);
            let folder = format!("dpg/{name}/");
            let array = SpilledArray::new("", &folder, original, &one, ty.and_then(Value::as_str))?;
            let Some(bytes) = array.encode(&one).or_else(|| narrowed(&one, array.kind)) else {
                continue;
            };
            zip.start_file(array.member.as_str(), options)?;
            zip.write_all(&bytes)?;
        }
    }
    for column in tables.columns.iter().filter(|column| column.name != "name") {
        if !matches!(&column.values, ColumnValues::Numeric(values) if is_held(values.kind)) {
            out.push(format!(
                "group.{}: trx holds real numbers only",
                column.name
            ));
        }
    }
    Ok(out)
}

/// Converts float64 values back to the integer type that they came from.
fn narrowed(column: &NumericColumn, kind: Kind) -> Option<Vec<u8>> {
    let values = to_f64(column)?;
    let mut bytes = Vec::new();
    for value in values {
        #[expect(
            clippy::as_conversions,
            clippy::cast_possible_truncation,
            reason = "the value was an integer of this type, and a cast of another saturates"
        )]
        let whole = value as i64;
        let size = kind.size();
        bytes.extend_from_slice(whole.to_le_bytes().get(..size)?);
    }
    let is_integer = !matches!(kind, Kind::Float16 | Kind::Float32 | Kind::Float64);
    is_integer.then_some(bytes)
}

/// Returns whether a name of a group can be part of the name of a member.
fn is_file_name(name: &str) -> bool {
    let is_plain = |c: char| !c.is_control() && !matches!(c, '/' | '\\' | '.');
    !name.is_empty() && name.len() <= 200 && name.chars().all(is_plain)
}

fn is_held(kind: Kind) -> bool {
    !matches!(kind, Kind::Complex64 | Kind::Complex128)
}

/// Returns the rows of an array in a batch.
fn encoded(array: &SpilledArray, columns: &[Column]) -> Result<Vec<u8>, FileFault> {
    let column = columns.iter().find(|column| column.name == array.name);
    let bytes = column
        .and_then(numbers)
        .and_then(|values| array.encode(&values));
    bytes.ok_or(FileFault::Broken(
        "a column changes its type between batches",
    ))
}

impl ResultWriter for TrxWriter {
    fn write(&mut self, batch: &QueryResult) -> Result<(), FileError> {
        self.put(batch).map_err(|fault| fault.of(&self.path))
    }

    fn finish(mut self: Box<Self>, tables: &GroupTables) -> Result<WrittenResult, FileError> {
        if self.positions.is_none() {
            return Err(FileFault::Empty.of(&self.path));
        }
        let sink = OutputSink::create(&self.path)?;
        let mut filled = Ok(());
        let path = sink.publish(|file| {
            let mut zip = ZipWriter::new(file);
            filled = self.fill(&mut zip, tables);
            let finished = zip.finish();
            if filled.is_err() {
                return Err(io::Error::other("the archive is incomplete"));
            }
            finished.map(|_| ()).map_err(io::Error::other)
        });
        filled.map_err(|fault| fault.of(&self.path))?;
        Ok(WrittenResult {
            files: vec![path?],
            left_out: self.left_out,
        })
    }
}
