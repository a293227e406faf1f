//! Reads one file, or all files of a folder.

use std::{
    collections::BTreeSet,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};
use zvf::{
    Column, Geometry, GeometryBuilder, GeometryKind, GeometrySource, NumericColumn, numeric::Kind,
};

use super::{
    StatedUnit,
    sample::{Sample, SwcFile, parse},
    stated_unit,
};
use crate::{
    FileDescription, FileError, FileFault, FileFormat, FilePlace, FileReadOptions, GeometryReader,
    description::MAX_HEADER_TEXT,
    input::ByteReader,
    object_ids::{numeric_names, stem},
    reader::built,
    text::NO_LINE_END,
    values::narrow,
};

/// SWC files that are read in batches of whole files.
#[derive(Debug)]
pub struct SwcReader {
    paths: Vec<PathBuf>,
    ids: Vec<i64>,
    names: Vec<String>,
    form: SwcForm,
    /// Factor of all lengths: the unit of the files is this multiple of the unit of the axes.
    multiple: f64,
    /// The content of all files, if it fits into the memory for it.
    kept: Option<Vec<SwcSkeleton>>,
    unpacked: u64,
    description: FileDescription,
    /// The next file.
    next: usize,
}

/// Types and attributes that all files have.
#[derive(Clone, Copy, Debug, Default)]
struct SwcForm {
    /// True if a number of some file needs float64.
    is_wide: bool,
    /// True if a type of a sample does not fit into 8 bits.
    has_wide_types: bool,
    /// True if the ids of some file do not ascend.
    has_rows: bool,
}

/// A checked file: samples, and the row of each parent.
#[derive(Debug)]
struct SwcSkeleton {
    samples: Vec<Sample>,
    parents: Vec<Option<usize>>,
}

/// Findings of the first pass over the files.
#[derive(Debug, Default)]
struct SwcSurvey {
    form: SwcForm,
    samples: u64,
    has_more_columns: bool,
    /// Names of files that may be cut off.
    cut: Vec<String>,
    /// Units that comments state.
    units: BTreeSet<StatedUnit>,
    /// The comments of each file with the numbers of their lines; `None` if they are too long.
    comments: Option<Vec<Value>>,
    /// Size of the comments.
    text: usize,
}

impl SwcReader {
    /// Opens a file, or the `.swc` files of a folder by name, and further files. Reads all of them
    /// once.
    ///
    /// # Errors
    ///
    /// [`FileError`] for the first file that is damaged.
    pub fn open(path: &Path, options: &FileReadOptions) -> Result<Self, FileError> {
        let mut paths = if path.is_dir() {
            files_of(path)?
        } else {
            vec![path.to_path_buf()]
        };
        paths.extend(options.with.iter().cloned());
        let mut survey = SwcSurvey {
            comments: Some(Vec::new()),
            ..SwcSurvey::default()
        };
        let mut kept = Some(Vec::with_capacity(paths.len()));
        let mut size = 0_u64;
        for path in &paths {
            let (skeleton, bytes) = survey.read(path, options.unpacked)?;
            size = size.saturating_add(bytes);
            // Samples take about as many bytes in memory as in their file.
            kept = kept.filter(|_| size <= options.in_memory);
            if let Some(kept) = &mut kept {
                kept.push(skeleton);
            }
        }
        let mut description =
            FileDescription::new(FileFormat::Swc, GeometryKind::Skeletons).axes_xyz(None);
        let names: Vec<String> = paths.iter().map(|path| name_of(path)).collect();
        let numbers = match &options.ids {
            Some(ids) => Some(ids.of(&names, path, options.unpacked)?),
            None => numeric_names(&names),
        };
        description.numbers_objects = numbers.is_none();
        if numbers.is_none() && names.iter().any(|name| name.parse::<i64>().is_ok()) {
            let note = "objects are numbered in the order of the file names, because these are not \
                        all different numbers; object.name has the names";
            description.notes.push(note.to_owned());
        }
        let ids = numbers.unwrap_or_else(|| crate::reader::ids_of(&names));
        let (mut units, mut multiple) = (survey.units.iter(), 1.0);
        if let Some(unit) = units.next() {
            if units.next().is_some() {
                let why = "the comments of the files state different units; create a store of the files \
                           of one unit, and append the others";
                return Err(FileFault::Unsupported(why).of(path));
            }
            for axis in &mut description.axes {
                axis.unit = Some(unit.name.to_owned());
            }
            multiple = unit.multiple();
        }
        let mut form = survey.form;
        if multiple.to_bits() != 1_f64.to_bits() {
            let unit = description
                .axes
                .first()
                .and_then(|axis| axis.unit.as_deref());
            description.notes.push(format!(
                "coordinates and radii are multiplied by {multiple}: the file is in units of {multiple} {}",
                unit.unwrap_or_default()
            ));
            form.is_wide = true;
        }
        survey.describe(&ids, &mut description);
        Ok(Self {
            paths,
            ids,
            names,
            form,
            multiple,
            kept,
            unpacked: options.unpacked,
            description,
            next: 0,
        })
    }

    fn batch(&mut self, vertices: usize) -> Result<Option<GeometryBuilder>, FileError> {
        let mut columns = SampleColumns::new(self.form, self.multiple);
        while let (Some(path), Some(id)) = (self.paths.get(self.next), self.ids.get(self.next)) {
            if columns.samples > 0 && columns.samples >= vertices {
                break;
            }
            match self.kept.as_ref().and_then(|kept| kept.get(self.next)) {
                Some(skeleton) => columns.add(*id, skeleton),
                None => {
                    let (file, _) = read(path, self.unpacked)?;
                    self.form.check(&file).map_err(|fault| fault.of(path))?;
                    columns.add(*id, &skeleton(file, path)?);
                }
            }
            self.next = self.next.saturating_add(1);
        }
        Ok((columns.samples > 0).then(|| columns.geometry()))
    }
}

impl SwcForm {
    fn add(&mut self, file: &SwcFile) {
        self.is_wide |= file.needs_float64;
        let is_wide = |sample: &Sample| i8::try_from(sample.kind).is_err();
        self.has_wide_types |= file.samples.iter().any(is_wide);
        self.has_rows |= !file.samples.is_sorted_by_key(|sample| sample.id);
    }

    /// Checks that a file has not changed since the first pass.
    fn check(self, file: &SwcFile) -> Result<(), FileFault> {
        let mut form = self;
        form.add(file);
        let is_same = form.is_wide == self.is_wide
            && form.has_wide_types == self.has_wide_types
            && form.has_rows == self.has_rows;
        if is_same && !file.samples.is_empty() {
            return Ok(());
        }
        let why = "the file changed while it was read; read it again";
        Err(FileFault::Unsupported(why))
    }

    fn kind(self) -> Kind {
        if self.is_wide {
            Kind::Float64
        } else {
            Kind::Float32
        }
    }
}

impl SwcSurvey {
    /// Reads a file. Returns its skeleton, and its size in bytes.
    fn read(&mut self, path: &Path, limit: u64) -> Result<(SwcSkeleton, u64), FileError> {
        let (mut file, bytes) = read(path, limit)?;
        if file.is_cut {
            self.cut.push(name_of(path));
        }
        if file.samples.is_empty() {
            return Err(FileFault::Empty.of(path));
        }
        self.form.add(&file);
        self.has_more_columns |= file.has_more_columns;
        let samples = u64::try_from(file.samples.len()).unwrap_or(u64::MAX);
        self.samples = self.samples.saturating_add(samples);
        let comments = std::mem::take(&mut file.comments);
        let lines = comments.iter().map(|(_, text)| text.as_str());
        self.units.extend(lines.filter_map(stated_unit));
        let lines = comments.iter().map(|(_, text)| text.len());
        let sizes = lines.map(|length| length.saturating_add(16));
        self.text = sizes.fold(self.text, usize::saturating_add);
        self.comments = self
            .comments
            .take()
            .filter(|_| self.text <= MAX_HEADER_TEXT);
        if let Some(all) = &mut self.comments {
            let comments = comments.iter().map(|(line, text)| json!([line, text]));
            all.push(comments.collect());
        }
        Ok((skeleton(file, path)?, bytes))
    }

    /// Adds notes and comments to a description.
    fn describe(self, ids: &[i64], description: &mut FileDescription) {
        let notes = &mut description.notes;
        match self.cut.as_slice() {
            [] => {}
            [_] if ids.len() == 1 => notes.push(NO_LINE_END.to_owned()),
            [name, ..] => {
                let count = self.cut.len();
                notes.push(format!(
                    "in {count} files, such as {name}.swc, {NO_LINE_END}"
                ));
            }
        }
        match self.comments {
            None => {
                let note = "the comments of the files are longer than 8 MiB and are not kept";
                notes.push(note.to_owned());
            }
            Some(comments) => {
                let of_files = ids.iter().zip(comments);
                let kept: Map<String, Value> = of_files
                    .filter(|(_, it)| it.as_array().is_some_and(|it| !it.is_empty()))
                    .map(|(id, comments)| (id.to_string(), comments))
                    .collect();
                if !kept.is_empty() {
                    let header = &mut description.header;
                    header.insert("comments".to_owned(), kept.into());
                }
            }
        }
        if self.has_more_columns {
            let note = "columns after the seventh and comments after samples are left out";
            notes.push(note.to_owned());
        }
        // Coordinates, the radius, id, type, and the link to the parent.
        let size = if self.form.is_wide { 53 } else { 37 };
        description.bytes = self.samples.saturating_mul(size);
    }
}

/// Reads and parses a file. Also returns its size in bytes.
fn read(path: &Path, limit: u64) -> Result<(SwcFile, u64), FileError> {
    let mut reader = ByteReader::open(path, limit)?;
    let length = reader.length();
    let mut bytes = Vec::new();
    reader.take(&mut bytes, length, "the file")?;
    let text = String::from_utf8_lossy(&bytes);
    let file = parse(&text).map_err(|(line, fault)| fault.at(path, FilePlace::Line(line)))?;
    Ok((file, length))
}

/// Finds the parents of the samples of a file.
fn skeleton(file: SwcFile, path: &Path) -> Result<SwcSkeleton, FileError> {
    let parents = file
        .parents()
        .map_err(|(line, fault)| fault.at(path, FilePlace::Line(line)))?;
    let samples = file.samples;
    Ok(SwcSkeleton { samples, parents })
}

/// Lists the `.swc` files of a folder by name.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let in_folder = |source| FileFault::Io(source).of(folder);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(in_folder)? {
        let path = entry.map_err(in_folder)?.path();
        if FileFormat::of_path(&path) == Some(FileFormat::Swc) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns the name of a file without `.swc` and `.swc.gz`.
fn name_of(path: &Path) -> String {
    stem(&path.file_name().unwrap_or_default().to_string_lossy())
}

/// Samples of files as columns.
struct SampleColumns {
    form: SwcForm,
    multiple: f64,
    samples: usize,
    positions: NumericColumn,
    radii: NumericColumn,
    ids: Vec<i32>,
    kinds: Vec<i32>,
    rows: Vec<u32>,
    owners: Vec<i64>,
    links: Vec<i64>,
}

impl SampleColumns {
    fn new(form: SwcForm, multiple: f64) -> Self {
        Self {
            form,
            multiple,
            samples: 0,
            positions: NumericColumn::new(form.kind(), 3),
            radii: NumericColumn::new(form.kind(), 1),
            ids: Vec::new(),
            kinds: Vec::new(),
            rows: Vec::new(),
            owners: Vec::new(),
            links: Vec::new(),
        }
    }

    /// Adds the samples of a file.
    fn add(&mut self, object: i64, file: &SwcSkeleton) {
        let first = i64::try_from(self.samples).unwrap_or(i64::MAX);
        for ((row, sample), parent) in (0_u32..).zip(&file.samples).zip(&file.parents) {
            let [x, y, z, radius] = sample.numbers.map(|number| number * self.multiple);
            for (number, target) in [(x, 0), (y, 0), (z, 0), (radius, 1)] {
                let target = if target == 0 {
                    &mut self.positions.bytes
                } else {
                    &mut self.radii.bytes
                };
                if self.form.is_wide {
                    target.extend_from_slice(&number.to_le_bytes());
                } else {
                    target.extend_from_slice(&narrow(number).to_le_bytes());
                }
            }
            self.ids.push(sample.id);
            self.kinds.push(sample.kind);
            self.rows.push(row);
            self.owners.push(object);
            if let Some(parent) = parent.and_then(|parent| i64::try_from(parent).ok()) {
                self.links.push(first.saturating_add(row.into()));
                self.links.push(first.saturating_add(parent));
            }
        }
        self.samples = self.samples.saturating_add(file.samples.len());
    }

    fn geometry(self) -> GeometryBuilder {
        let mut geometry = Geometry::builder(self.positions)
            .links(2, self.links)
            .object_ids(self.owners);
        let kinds = if self.form.has_wide_types {
            self.kinds.into_iter().collect()
        } else {
            let kinds = self.kinds.into_iter();
            kinds.filter_map(|kind| i8::try_from(kind).ok()).collect()
        };
        let mut vertex: Vec<(&str, NumericColumn)> = vec![
            ("radius", self.radii),
            ("swc_id", self.ids.into_iter().collect()),
            ("type", kinds),
        ];
        if self.form.has_rows {
            vertex.push(("source_row", self.rows.into_iter().collect()));
        }
        let vertex = vertex
            .into_iter()
            .map(|(name, numbers)| Column::new(name.to_owned(), numbers));
        geometry.vertex = vertex.collect();
        geometry
    }
}

impl GeometrySource for SwcReader {
    fn next(&mut self, vertices: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        built(self.batch(vertices)?)
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.next = 0;
        Ok(())
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        let names = self.names.iter().map(|name| Some(name.clone()));
        let tables = Geometry::builder(NumericColumn::new(self.form.kind(), 3))
            .objects(self.ids.clone())
            .object(vec![Column::text("name", names)]);
        Ok(tables.build()?)
    }
}

impl GeometryReader for SwcReader {
    fn description(&self) -> &FileDescription {
        &self.description
    }
}
