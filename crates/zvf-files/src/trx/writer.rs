//! Writes a zip file of arrays, which are collected in temporary files.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet, hash_map::Entry},
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};
use zvf::{Column, ColumnValues, NumericColumn, QueryResult, Scope, numeric::Kind};

use super::array::{ArrayRow, ArrayRows, ArrayType, SpilledArray, converted, is_file_name};
use crate::{
    FileError, FileFault, FileHeader, GroupTables, ResultWriter, StoreDescription, WrittenResult,
    names::original,
    values::{AxisOrder, to_f32_bytes, to_f64},
    voxel_grid::FileGrid,
    writer::{ObjectNumbers, OutputSink, left_out, paths},
};

/// Number of points whose extent is found at once.
const BLOCK: usize = 1 << 14;

/// A TRX file that is written in batches.
#[derive(Debug)]
pub struct TrxWriter {
    path: PathBuf,
    kept: FileHeader,
    grid: FileGrid,
    /// The order of coordinates and their array, once the first batch has come.
    positions: Option<(AxisOrder, SpilledArray)>,
    vertex: Vec<SpilledArray>,
    object: Vec<SpilledArray>,
    offsets: Vec<u64>,
    numbers: StreamlineNumbers,
    objects: ObjectNumbers,
    /// Object of the last streamline, with its row of each attribute.
    last: (Option<i64>, Vec<ArrayRow>),
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

impl TrxWriter {
    /// Creates a file.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the folder cannot be written.
    pub fn create(path: &Path, description: &StoreDescription) -> Result<Self, FileError> {
        Ok(Self {
            path: path.to_path_buf(),
            kept: description.headers.get("trx").cloned().unwrap_or_default(),
            grid: FileGrid::of_store(description),
            positions: None,
            vertex: Vec::new(),
            object: Vec::new(),
            offsets: vec![0],
            numbers: StreamlineNumbers::default(),
            objects: ObjectNumbers::default(),
            last: (None, Vec::new()),
            left_out: Vec::new(),
        })
    }

    /// Creates the arrays for the columns of the first batch.
    fn plan(&mut self, batch: &QueryResult) -> Result<(), FileFault> {
        let coordinates = AxisOrder::of(batch, "trx")?;
        let positions = floats(&batch.positions, &coordinates)?;
        let array = SpilledArray::new("", "", "positions", &positions, None)?;
        self.positions = Some((coordinates, array));
        let types = self.kept.get("types");
        let kept = |path: &str| ArrayType::named(types?.get(path)?.as_str()?);
        let scopes = [
            ("vertex", "dpv/", "names", &batch.vertex),
            ("object", "dps/", "object_names", &batch.object),
        ];
        for (scope, folder, names, columns) in scopes {
            for column in columns {
                let Some(values) = held(&column.values) else {
                    let line = format!("{scope}.{}: trx holds real numbers only", column.name);
                    self.left_out.push(line);
                    continue;
                };
                let name = original(self.kept.get(names), &column.name);
                let kept = kept(&format!("{folder}{}", column.name));
                let array = SpilledArray::new(&column.name, folder, name, values, kept)?;
                match scope {
                    "vertex" => self.vertex.push(array),
                    _ => self.object.push(array),
                }
            }
        }
        let holds = |scope: Scope, _: &Column| matches!(scope, Scope::Vertex | Scope::Object);
        self.left_out.extend(left_out(batch, "trx", holds));
        Ok(())
    }

    fn put(&mut self, batch: &QueryResult) -> Result<(), FileFault> {
        if self.positions.is_none() {
            self.plan(batch)?;
        }
        if let Some((coordinates, array)) = &mut self.positions {
            let positions = floats(&batch.positions, coordinates)?;
            let rows = array.check(&positions, None)?;
            array.push(&rows)?;
            if let FileGrid::MadeUp(_) = self.grid {
                for start in (0..batch.positions.len()).step_by(BLOCK) {
                    let end = start.saturating_add(BLOCK).min(batch.positions.len());
                    let fault = FileFault::Broken("positions end inside a row");
                    let block = batch.positions.take(start..end).ok_or(fault)?;
                    self.grid.enclose(&coordinates.rows(&block)?);
                }
            }
        }
        for array in &mut self.vertex {
            let rows = array.rows_of(&batch.vertex)?;
            array.push(&rows)?;
        }
        let rows: HashMap<i64, usize> = batch
            .objects
            .iter()
            .zip(0_usize..)
            .map(|(id, row)| (*id, row))
            .collect();
        let object = self
            .object
            .iter_mut()
            .map(|array| array.rows_of(&batch.object))
            .collect::<Result<Vec<ArrayRows<'_>>, _>>()?;
        for path in paths(batch, "trx")? {
            let points = u64::try_from(path.end.saturating_sub(path.start)).unwrap_or(0);
            let end = self
                .offsets
                .last()
                .copied()
                .unwrap_or(0)
                .saturating_add(points);
            let number = u32::try_from(self.offsets.len().saturating_sub(1)).map_err(|_| {
                FileFault::Result {
                    format: "trx",
                    holds: "up to 4294967295 streamlines",
                    remedy: "select fewer",
                }
            })?;
            self.offsets.push(end);
            self.numbers.push(path.object, number);
            self.objects.push(path.object);
            if self.last.0 != Some(path.object) {
                let row = rows
                    .get(&path.object)
                    .ok_or(FileFault::Broken("an object without a row of attributes"));
                let row = match row {
                    Ok(row) => *row,
                    Err(_) if object.is_empty() => 0,
                    Err(fault) => return Err(fault),
                };
                let values = object.iter().map(|rows| rows.row(row)).collect();
                self.last = (Some(path.object), values);
            }
            for (array, row) in self.object.iter_mut().zip(&self.last.1) {
                array.push_row(row)?;
            }
        }
        Ok(())
    }

    /// Returns `header.json`.
    fn header(&self) -> Value {
        let mut header = self
            .kept
            .get("header")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let grid = self.grid.grid();
        if !header.contains_key("VOXEL_TO_RASMM") {
            header.insert("VOXEL_TO_RASMM".to_owned(), grid.affine.to_json());
        }
        if !header.contains_key("DIMENSIONS") {
            header.insert("DIMENSIONS".to_owned(), json!(grid.dimensions));
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
            .map(|(_, array)| array)
            .chain(&mut self.vertex)
            .chain(&mut self.object);
        for array in arrays {
            zip.start_file(array.path(), options)?;
            let rounded = array.copy_to(zip)?;
            self.left_out.extend(array.rounded(rounded));
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
        self.left_out.extend(self.objects.left_out("trx"));
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
    let mut used = HashSet::new();
    let mut renamed = 0_usize;
    for group in &tables.groups {
        let row = usize::try_from(group.id).unwrap_or(usize::MAX);
        let given = names.and_then(|names| names.text_at(row));
        let name = given.filter(|name| is_file_name(name) && used.insert((*name).to_owned()));
        let name = name.map_or_else(
            || {
                let mut name = format!("group_{}", group.id);
                while !used.insert(name.clone()) {
                    name.push('_');
                }
                renamed = renamed.saturating_add(usize::from(given.is_some()));
                name
            },
            str::to_owned,
        );
        zip.start_file(format!("groups/{name}.uint32"), options)?;
        let members = group.members.iter().flat_map(|id| numbers.of(*id));
        let bytes: Vec<u8> = members.flat_map(u32::to_le_bytes).collect();
        zip.write_all(&bytes)?;
        for column in tables.columns.iter().filter(|column| column.name != "name") {
            let Some(values) = held(&column.values) else {
                continue;
            };
            // Pairs of group and attribute that the source file had, with their types.
            let pairs = kept.get("dpg").and_then(|pairs| pairs.get(&column.name));
            let pair = pairs.and_then(|types| types.get(&name));
            let Some(one) = values.take([row]) else {
                continue;
            };
            let is_nan = || to_f64(&one).is_some_and(|one| one.iter().all(|value| value.is_nan()));
            let is_absent = pairs.is_some() && pair.is_none() && is_nan();
            if column.is_null(row) || is_absent {
                continue;
            }
            let pair_type = pair.and_then(Value::as_str).and_then(ArrayType::named);
            let in_pair_type = pair_type.and_then(|of| Some((of, converted(&one, of.kind)?)));
            // That type may not hold a value that was edited.
            let own = || (ArrayType::of(one.kind), one.bytes.clone());
            let (array_type, bytes) = in_pair_type.unwrap_or_else(own);
            let original = original(kept.get("group_names"), &column.name);
            let path = array_type.path(&format!("dpg/{name}/"), original, one.width);
            zip.start_file(path, options)?;
            zip.write_all(&bytes)?;
        }
    }
    if renamed > 0 {
        out.push(format!(
            "group.name: {renamed} names repeat or have characters that trx does not support; \
             group_ID stands for them"
        ));
    }
    for column in tables.columns.iter().filter(|column| column.name != "name") {
        if held(&column.values).is_none() {
            out.push(format!(
                "group.{}: trx holds real numbers only",
                column.name
            ));
        }
    }
    Ok(out)
}

/// Returns the numbers of a column that a file holds; `None` for text and complex numbers.
fn held(values: &ColumnValues) -> Option<&NumericColumn> {
    match values {
        ColumnValues::Numeric(values) => {
            let is_complex = matches!(values.kind, Kind::Complex64 | Kind::Complex128);
            Some(values).filter(|_| !is_complex)
        }
        ColumnValues::Dictionary { .. } => None,
    }
}

/// Returns x, y and z in a type of floats.
fn floats<'a>(
    positions: &'a NumericColumn,
    order: &AxisOrder,
) -> Result<Cow<'a, NumericColumn>, FileFault> {
    let kind = positions.kind;
    let is_float = matches!(kind, Kind::Float16 | Kind::Float32 | Kind::Float64);
    if is_float && order.are_in_order() && positions.row_len() == 3 {
        return Ok(Cow::Borrowed(positions));
    }
    let wide = NumericColumn::float64(3, order.rows(positions)?.into_flattened());
    let is_narrow = matches!(kind, Kind::Float16 | Kind::Float32);
    let narrow = to_f32_bytes(&wide)
        .filter(|_| is_narrow)
        .map(|bytes| NumericColumn::new(Kind::Float32, 3).with_bytes(bytes));
    Ok(Cow::Owned(narrow.unwrap_or(wide)))
}

impl ResultWriter for TrxWriter {
    fn write(&mut self, batch: &QueryResult) -> Result<(), FileError> {
        self.put(batch).map_err(|fault| fault.of(&self.path))
    }

    fn finish(mut self: Box<Self>, tables: &GroupTables) -> Result<WrittenResult, FileError> {
        if self.positions.is_none() {
            return Err(FileFault::Empty.of(&self.path));
        }
        let coordinates = self.positions.as_ref().map(|(coordinates, _)| coordinates);
        let z = coordinates.and_then(AxisOrder::note);
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
            notes: self.grid.note().into_iter().chain(z).collect(),
        })
    }
}
