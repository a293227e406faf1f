//! PLY 1.0, binary and little-endian.
//!
//! Vertices have one property per axis with the name of the axis, then the columns that identify
//! objects and paths, then their attributes; several channels are `NAME_0`, `NAME_1`, …. Links of
//! two ends and steps of paths are edges; links of other widths are faces. Columns of a type that
//! PLY lacks are written in a type that holds all of their values, or else left out: text, complex
//! numbers, and integers beyond 53 bits.

use std::{
    collections::{HashMap, HashSet},
    io::{self, Read, Seek, Write},
    num::TryFromIntError,
    path::{Path, PathBuf},
};

use tempfile::{SpooledTempFile, spooled_tempfile_in};
use zvf::{
    LevelId, LevelUse, ObjectGroup, Owner, QueryResult,
    numeric::{Kind, Value},
};
use zvf_model::attribute_name::stored_name;

use zvf_tables::{
    FileError, FileFault, FileFormat, OutputColumn, OutputTable, Sink, Staged, StoreDescription,
    WrittenFiles, display::len_u64, level_list,
};

/// Size in bytes up to which the rows of an element stay in memory.
const IN_MEMORY: usize = 1 << 20;
/// Approximate size in bytes of the rows that are encoded together.
const BLOCK: usize = 1 << 16;
/// Property with the object of a vertex.
const OBJECT_ID: &str = "object_id";

/// A PLY file that is written in batches. The header has the numbers and types of all rows, so rows
/// are kept in temporary files beside the target until the end.
pub(crate) struct PlyWriter {
    target: PathBuf,
    level: String,
    vertices: PlyRows,
    links: PlyRows,
    /// Number of ends of a link; 0 before the first link.
    width: usize,
    /// Steps of paths.
    steps: PlyRows,
    /// Number of paths; `None` for other geometry.
    parts: Option<i64>,
    /// Attributes of objects, which the format does not hold.
    of_objects: Vec<String>,
    /// True if no axis is named z.
    lacks_z: bool,
}

impl PlyWriter {
    pub(crate) fn new(target: &Path) -> Self {
        let folder = target.parent();
        let folder = folder
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        Self {
            target: target.to_path_buf(),
            level: LevelId::default().to_string(),
            vertices: PlyRows::new(folder),
            links: PlyRows::new(folder),
            width: 0,
            steps: PlyRows::new(folder),
            parts: None,
            of_objects: Vec::new(),
            lacks_z: false,
        }
    }

    /// Adds the next batch.
    ///
    /// # Errors
    ///
    /// Returns [`FileError`] if the format does not hold the coordinates or the number of
    /// vertices, or a temporary file cannot be written.
    pub(crate) fn write(&mut self, batch: &QueryResult) -> Result<(), FileError> {
        self.add(batch)
            .map_err(|fault| fault.of_target(&self.target))
    }

    fn add(&mut self, batch: &QueryResult) -> Result<(), FileFault> {
        let table = OutputTable::vertices_after(batch, self.parts.unwrap_or(0))?;
        let rows = self.vertices.rows.saturating_add(len_u64(table.rows));
        if i32::try_from(rows).is_err() {
            let (format, what) = (FileFormat::Ply.extension(), format!("{rows} vertices"));
            return Err(FileFault::Beyond { format, what });
        }
        let mut axes = table.columns.iter().take(batch.axes.len());
        if let Some(axis) = axes.find(|axis| PlyType::of(axis).is_none()) {
            let (format, kind) = (
                FileFormat::Ply.extension(),
                axis.kind().map_or("text", Kind::name),
            );
            return Err(FileFault::InexactCoordinates { format, kind });
        }
        self.vertices
            .add(&table.columns, table.rows, |_, _| Ok(()))?;
        if let Some(parts) = &batch.parts {
            let paths = i64::try_from(parts.objects.len()).unwrap_or(i64::MAX);
            self.parts = Some(self.parts.unwrap_or(0).saturating_add(paths));
            let steps: Vec<u64> = steps(&parts.offsets).collect();
            self.steps.add(&[], steps.len(), |row, bytes| {
                let step = steps.get(row).copied().unwrap_or(0);
                put_end(step, bytes)?;
                put_end(step.saturating_add(1), bytes)
            })?;
        }
        if let Some(table) = OutputTable::links(batch)? {
            // The ends are written as two properties of an edge or as the list of a face.
            let Some((ends, attributes)) = table.columns.split_first() else {
                return Err(FileFault::Broken("links without ends"));
            };
            if self.width != 0 && self.width != ends.channels() {
                let why = "links have different numbers of ends";
                return Err(FileFault::Broken(why));
            }
            self.width = ends.channels();
            self.links.add(attributes, table.rows, |row, bytes| {
                put_ends(ends, row, bytes)
            })?;
        }
        self.level = batch.level.to_string();
        self.lacks_z = !batch.axes.iter().any(|axis| axis == "z");
        for column in &batch.object {
            let line = format!(
                "object.{}: not supported by {}",
                column.name,
                FileFormat::Ply
            );
            if !self.of_objects.contains(&line) {
                self.of_objects.push(line);
            }
        }
        Ok(())
    }

    /// Writes the file, and gives it its name.
    ///
    /// # Errors
    ///
    /// Returns [`FileError`] if a file cannot be written.
    pub(crate) fn finish(
        self,
        description: &StoreDescription,
        groups: &[ObjectGroup],
        levels: &[LevelUse],
        mut staged: Staged,
    ) -> Result<WrittenFiles, FileError> {
        let level = match levels {
            [] => self.level,
            levels => level_list(levels),
        };
        let types = self.vertices.types();
        let of_links = self.links.types();
        let mut left_out = self.vertices.left_out(&types);
        left_out.extend(self.links.left_out(&of_links));
        left_out.extend(self.of_objects);
        let groups = groups.iter();
        left_out.extend(groups.map(|it| format!("group.{}: not supported by ply", it.id)));
        let comments: String = comments(description)
            .flat_map(|comment| [comment, "\n"])
            .collect();
        let rows = self.vertices.rows;
        let mut header = format!(
            "ply\nformat binary_little_endian 1.0\ncomment level {level}\n{comments}element vertex {rows}\n"
        );
        header.push_str(&self.vertices.header(&types, &[]));
        let has_links = self.links.rows > 0;
        if has_links {
            header.push_str(&links_header(self.width, self.links.rows));
            let ends = ["vertex1", "vertex2", "vertex_indices"];
            header.push_str(&self.links.header(&of_links, &ends));
        } else if self.parts.is_some() {
            header.push_str(&links_header(2, self.steps.rows));
        }
        header.push_str("end_header\n");
        let (mut vertices, mut links, mut steps) = (self.vertices, self.links, self.steps);
        staged.write(|sink| {
            sink.write_all(header.as_bytes())?;
            vertices.copy_to(&types, sink)?;
            if has_links {
                links.copy_to(&of_links, sink)?;
            } else {
                steps.copy_to(&[], sink)?;
            }
            Ok(())
        })?;
        let mut written = staged.publish()?;
        written.left_out = left_out;
        if self.lacks_z {
            let note = "vertices have no z, without which most programs do not read a ply file";
            written.notes.push(note.to_owned());
        }
        Ok(written)
    }
}

/// Returns the comments of a file that the store comes from, without lines that would change the
/// meaning of the header.
fn comments(description: &StoreDescription) -> impl Iterator<Item = &str> {
    let header = description.headers.get("ply");
    let lines = header
        .and_then(|header| header.get("comments")?.as_array())
        .into_iter()
        .flatten()
        .filter_map(|line| line.as_str());
    let is_comment = |line: &&str| line.starts_with("comment ") || line.starts_with("obj_info ");
    // The comment about the level of an earlier result.
    let is_level = |line: &str| {
        let level = line.strip_prefix("comment level ");
        level.is_some_and(|level| level.chars().all(|c| c.is_ascii_digit() || c == ','))
    };
    lines
        .filter(move |line| is_comment(line) && !is_level(line) && !line.contains(char::is_control))
}

/// Returns the first vertex of each step of each path.
fn steps(offsets: &[u64]) -> impl Iterator<Item = u64> {
    let spans = offsets.iter().zip(offsets.iter().skip(1));
    spans.flat_map(|(start, end)| *start..end.saturating_sub(1).max(*start))
}

fn links_header(width: usize, rows: u64) -> String {
    if width == 2 {
        return format!("element edge {rows}\nproperty int vertex1\nproperty int vertex2\n");
    }
    let count = if width < 256 { "uchar" } else { "uint" };
    format!("element face {rows}\nproperty list {count} int vertex_indices\n")
}

fn put_ends(ends: &OutputColumn<'_>, row: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
    let width = ends.channels();
    if width != 2 {
        if let Ok(count) = u8::try_from(width) {
            bytes.push(count);
        } else {
            let count = u32::try_from(width).map_err(io::Error::other)?;
            bytes.extend_from_slice(&count.to_le_bytes());
        }
    }
    for channel in 0..width {
        put_end(integer(ends.value(row, channel)), bytes)?;
    }
    Ok(())
}

/// Writes an end of a link. Vertex numbers fit into an i32, because their count is limited.
fn put_end<T>(end: T, bytes: &mut Vec<u8>) -> io::Result<()>
where
    i32: TryFrom<T, Error = TryFromIntError>,
{
    let end = i32::try_from(end).map_err(io::Error::other)?;
    bytes.extend_from_slice(&end.to_le_bytes());
    Ok(())
}

/// Attributes whose channels have names that programs know.
const FAMILIES: [(&str, &[&str]); 3] = [
    ("rgba", &["red", "green", "blue", "alpha"]),
    ("rgb", &["red", "green", "blue"]),
    ("normal", &["nx", "ny", "nz"]),
];

/// The rows of an element, encoded in the types that suffice for each batch.
struct PlyRows {
    columns: Vec<RowColumn>,
    /// The place of each column by name.
    places: HashMap<String, usize>,
    segments: Vec<RowSegment>,
    rows: u64,
    /// The bytes of all rows.
    data: SpooledTempFile,
}

/// A column of an element.
struct RowColumn {
    name: String,
    channels: usize,
    kind: Option<Kind>,
    /// True if batches have the column in different types.
    is_mixed: bool,
}

/// Consecutive rows that are encoded alike.
struct RowSegment {
    rows: u64,
    /// Number of bytes before the columns of a row: the ends of a link.
    prefix: usize,
    /// The encoding of each column; columns past the end are absent.
    columns: Vec<SegmentColumn>,
}

/// The encoding of a column in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentColumn {
    Encoded(PlyType),
    /// The batches do not have the column.
    Absent,
    /// PLY has no type for the values.
    Unsupported,
}

impl PlyRows {
    fn new(folder: &Path) -> Self {
        Self {
            columns: Vec::new(),
            places: HashMap::new(),
            segments: Vec::new(),
            rows: 0,
            data: spooled_tempfile_in(IN_MEMORY, folder),
        }
    }

    /// Adds rows. `prefix` appends what comes before the columns of a row, in equally many bytes for
    /// all rows.
    fn add(
        &mut self,
        columns: &[OutputColumn<'_>],
        rows: usize,
        prefix: impl Fn(usize, &mut Vec<u8>) -> io::Result<()>,
    ) -> Result<(), FileFault> {
        if self.rows > 0 && rows == 0 {
            return Ok(());
        }
        if self.rows == 0 {
            // Columns without rows may have other types.
            self.columns.clear();
            self.places.clear();
            self.segments.clear();
        }
        let mut encodings = vec![SegmentColumn::Absent; self.columns.len()];
        let mut encoded: Vec<(usize, PlyType, &OutputColumn<'_>)> = Vec::new();
        for column in columns {
            let place = self.place(column)?;
            encodings.resize(self.columns.len(), SegmentColumn::Absent);
            let scalar = PlyType::of(column);
            if let Some(encoding) = encodings.get_mut(place) {
                *encoding = scalar.map_or(SegmentColumn::Unsupported, SegmentColumn::Encoded);
            }
            encoded.extend(scalar.map(|scalar| (place, scalar, column)));
        }
        encoded.sort_by_key(|(place, ..)| *place);
        let mut before = Vec::new();
        if rows > 0 {
            prefix(0, &mut before)?;
        }
        let mut bytes = Vec::new();
        for row in 0..rows {
            prefix(row, &mut bytes)?;
            for (_, scalar, column) in &encoded {
                let is_missing = column.is_null(row);
                for channel in 0..column.channels() {
                    let value = column.value(row, channel).filter(|_| !is_missing);
                    scalar.put(value, &mut bytes)?;
                }
            }
            if bytes.len() >= BLOCK {
                self.data.write_all(&bytes)?;
                bytes.clear();
            }
        }
        self.data.write_all(&bytes)?;
        let rows = len_u64(rows);
        self.rows = self.rows.saturating_add(rows);
        match self.segments.last_mut() {
            Some(last) if last.columns == encodings => {
                last.rows = last.rows.saturating_add(rows);
            }
            _ => self.segments.push(RowSegment {
                rows,
                prefix: before.len(),
                columns: encodings,
            }),
        }
        Ok(())
    }

    /// Returns the place of a column, which is new or has as many channels as before.
    fn place(&mut self, column: &OutputColumn<'_>) -> Result<usize, FileFault> {
        let next = self.columns.len();
        let place = *self.places.entry(column.name.clone()).or_insert(next);
        match self.columns.get_mut(place) {
            Some(known) if known.channels != column.channels() => {
                let why = "an attribute has different numbers of channels";
                return Err(FileFault::Broken(why));
            }
            Some(known) => known.is_mixed |= known.kind != column.kind(),
            None => self.columns.push(RowColumn {
                name: column.name.clone(),
                channels: column.channels(),
                kind: column.kind(),
                is_mixed: false,
            }),
        }
        Ok(place)
    }

    /// Returns the type of each column in the file; `None` for columns that are left out.
    fn types(&self) -> Vec<Option<PlyType>> {
        let of = |(place, column): (usize, &RowColumn)| {
            let mut joined: Option<PlyType> = None;
            let mut is_absent = false;
            for segment in &self.segments {
                match segment.columns.get(place) {
                    Some(SegmentColumn::Encoded(scalar)) => {
                        joined = Some(joined.map_or(*scalar, |joined| joined.or(*scalar)));
                    }
                    Some(SegmentColumn::Unsupported) => return None,
                    Some(SegmentColumn::Absent) | None => is_absent = true,
                }
            }
            // Levels with different types are joined as float64.
            let joined = if column.is_mixed {
                PlyType::Double
            } else {
                joined?
            };
            let is_missing = is_absent && column.name != OBJECT_ID;
            Some(if is_missing {
                joined.with_missing()
            } else {
                joined
            })
        };
        self.columns.iter().enumerate().map(of).collect()
    }

    /// Lists the columns without a type.
    fn left_out(&self, types: &[Option<PlyType>]) -> Vec<String> {
        let mut lines = Vec::new();
        for (column, scalar) in self.columns.iter().zip(types) {
            let what = match column.kind {
                _ if scalar.is_some() => continue,
                None => "text is",
                Some(Kind::Complex64 | Kind::Complex128) => "complex numbers are",
                Some(_) => "integers beyond 53 bits are",
            };
            lines.push(format!("{}: {what} not supported by ply", column.name));
        }
        lines
    }

    /// Returns the declarations of the properties, whose names differ from those in `taken`.
    fn header(&self, types: &[Option<PlyType>], taken: &[&str]) -> String {
        let mut names: HashSet<String> = taken.iter().map(|name| (*name).to_owned()).collect();
        let mut lines = Vec::new();
        for (column, scalar) in self.columns.iter().zip(types) {
            let Some(scalar) = scalar else { continue };
            for channel in 0..column.channels {
                let mut name = property_name(&column.name, column.channels, channel);
                while !names.insert(name.clone()) {
                    name.push('_');
                }
                lines.push(format!("property {} {name}\n", scalar.name()));
            }
        }
        lines.concat()
    }

    /// Writes all rows in the types of the file.
    fn copy_to(&mut self, types: &[Option<PlyType>], sink: &mut Sink) -> io::Result<()> {
        self.data.rewind()?;
        for segment in &self.segments {
            let mut columns = Vec::with_capacity(self.columns.len());
            let (mut record, mut is_final) = (segment.prefix, true);
            for (place, (column, scalar)) in self.columns.iter().zip(types).enumerate() {
                let encoding = segment
                    .columns
                    .get(place)
                    .copied()
                    .unwrap_or(SegmentColumn::Absent);
                if let SegmentColumn::Encoded(encoded) = encoding {
                    record = record.saturating_add(encoded.size().saturating_mul(column.channels));
                    is_final &= *scalar == Some(encoded);
                } else {
                    is_final &= scalar.is_none();
                }
                columns.push((column, encoding, *scalar));
            }
            if is_final {
                let bytes = segment.rows.saturating_mul(len_u64(record));
                if io::copy(&mut (&mut self.data).take(bytes), sink)? < bytes {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                continue;
            }
            let mut bytes = vec![0; record];
            for _ in 0..segment.rows {
                self.data.read_exact(&mut bytes)?;
                let (prefix, rest) = bytes.split_at(segment.prefix.min(record));
                sink.write_all(prefix)?;
                copy_row(&columns, rest, sink)?;
            }
        }
        Ok(())
    }
}

/// Writes the columns of a row, which are encoded one after the other, in the types of the file.
fn copy_row(
    columns: &[(&RowColumn, SegmentColumn, Option<PlyType>)],
    mut bytes: &[u8],
    sink: &mut Sink,
) -> io::Result<()> {
    for (column, encoding, scalar) in columns {
        for _ in 0..column.channels {
            let value = match encoding {
                SegmentColumn::Encoded(encoded) => {
                    let (value, rest) = bytes.split_at(encoded.size().min(bytes.len()));
                    bytes = rest;
                    Some(encoded.value(value))
                }
                _ if column.name == OBJECT_ID => Some(Value::Int(Owner::NONE)),
                _ => None,
            };
            if let Some(scalar) = scalar {
                scalar.put(value, sink)?;
            }
        }
    }
    Ok(())
}

/// Returns the name of the property of a channel: letters, digits and underscores, as names are stored.
fn property_name(column: &str, channels: usize, channel: usize) -> String {
    let name = ["vertex.", "link."]
        .into_iter()
        .fold(column, |name, scope| {
            name.strip_prefix(scope).unwrap_or(name)
        });
    let name = match name.split_once("fragment.") {
        Some(("", name)) => format!("fragment_{}", stored_name(name)),
        _ => stored_name(name).into_owned(),
    };
    let family = FAMILIES
        .iter()
        .find(|(family, properties)| name == *family && channels == properties.len());
    let known = family.and_then(|(_, properties)| properties.get(channel));
    match (known, channels) {
        (Some(known), _) => (*known).to_owned(),
        (None, 1) => name,
        (None, _) => format!("{name}_{channel}"),
    }
}

/// The types of PLY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlyType {
    Char,
    UChar,
    Short,
    UShort,
    Int,
    UInt,
    Float,
    Double,
}

impl PlyType {
    /// Returns a type that holds all values of a column, and NaN if some are missing; `None` if there
    /// is no such type.
    fn of(column: &OutputColumn<'_>) -> Option<Self> {
        let kind = column.kind()?;
        let scalar = match kind {
            Kind::Bool | Kind::UInt8 => Self::UChar,
            Kind::Int8 => Self::Char,
            Kind::Int16 => Self::Short,
            Kind::UInt16 => Self::UShort,
            Kind::Int32 => Self::Int,
            Kind::UInt32 => Self::UInt,
            Kind::Float16 | Kind::Float32 => Self::Float,
            Kind::Float64 => Self::Double,
            Kind::Int64 | Kind::UInt64 => Self::of_wide(column)?,
            Kind::Complex64 | Kind::Complex128 => return None,
        };
        Some(if column.may_miss() {
            scalar.with_missing()
        } else {
            scalar
        })
    }

    /// Returns the type that holds the same values, and NaN.
    fn with_missing(self) -> Self {
        match self {
            Self::Char | Self::UChar | Self::Short | Self::UShort | Self::Float => Self::Float,
            Self::Int | Self::UInt | Self::Double => Self::Double,
        }
    }

    /// Returns the type that holds the values of both types of one column.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            _ if self == other => self,
            (Self::Double, _) | (_, Self::Double) => Self::Double,
            _ => self.with_missing(),
        }
    }

    fn size(self) -> usize {
        match self {
            Self::Char | Self::UChar => 1,
            Self::Short | Self::UShort => 2,
            Self::Int | Self::UInt | Self::Float => 4,
            Self::Double => 8,
        }
    }

    /// Decodes a value.
    fn value(self, bytes: &[u8]) -> Value {
        fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
            bytes.first_chunk().copied().unwrap_or([0; N])
        }
        match self {
            Self::Char => Value::Int(i8::from_le_bytes(first(bytes)).into()),
            Self::UChar => Value::Int(u8::from_le_bytes(first(bytes)).into()),
            Self::Short => Value::Int(i16::from_le_bytes(first(bytes)).into()),
            Self::UShort => Value::Int(u16::from_le_bytes(first(bytes)).into()),
            Self::Int => Value::Int(i32::from_le_bytes(first(bytes)).into()),
            Self::UInt => Value::Int(u32::from_le_bytes(first(bytes)).into()),
            Self::Float => Value::Float(f32::from_le_bytes(first(bytes)).into()),
            Self::Double => Value::Float(f64::from_le_bytes(first(bytes))),
        }
    }

    fn of_wide(column: &OutputColumn<'_>) -> Option<Self> {
        const EXACT: i64 = 1 << 53;
        let (mut min, mut greatest) = (0, 0);
        for row in (0..).take_while(|row| column.value(*row, 0).is_some()) {
            for channel in 0..column.channels() {
                if column.is_null(row) {
                    continue;
                }
                let value = integer(column.value(row, channel));
                min = value.min(min);
                greatest = value.max(greatest);
            }
        }
        if i32::try_from(min).is_ok() && i32::try_from(greatest).is_ok() {
            return Some(Self::Int);
        }
        (-EXACT <= min && greatest <= EXACT).then_some(Self::Double)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Char => "char",
            Self::UChar => "uchar",
            Self::Short => "short",
            Self::UShort => "ushort",
            Self::Int => "int",
            Self::UInt => "uint",
            Self::Float => "float",
            Self::Double => "double",
        }
    }

    /// Writes a value in this type, which holds every value of the column; NaN if it is missing.
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the type holds every value of the column"
    )]
    fn put(self, value: Option<Value>, sink: &mut impl Write) -> io::Result<()> {
        let whole = integer(value);
        match self {
            Self::Char => sink.write_all(&(whole as i8).to_le_bytes()),
            Self::UChar => sink.write_all(&(whole as u8).to_le_bytes()),
            Self::Short => sink.write_all(&(whole as i16).to_le_bytes()),
            Self::UShort => sink.write_all(&(whole as u16).to_le_bytes()),
            Self::Int => sink.write_all(&(whole as i32).to_le_bytes()),
            Self::UInt => sink.write_all(&(whole as u32).to_le_bytes()),
            Self::Float => sink.write_all(&(float(value) as f32).to_le_bytes()),
            Self::Double => sink.write_all(&float(value).to_le_bytes()),
        }
    }
}

/// Converts a value to an integer, saturating at the maximum; 0 for other types and missing values.
fn integer(value: Option<Value>) -> i64 {
    match value {
        Some(Value::Bool(value)) => value.into(),
        Some(Value::Int(value)) => value,
        Some(Value::UInt(value)) => i64::try_from(value).unwrap_or(i64::MAX),
        _ => 0,
    }
}

fn float(value: Option<Value>) -> f64 {
    match value {
        Some(Value::Float(value)) => value,
        Some(Value::Complex { .. }) | None => f64::NAN,
        #[expect(
            clippy::as_conversions,
            clippy::cast_precision_loss,
            reason = "of integers beyond 53 bits none is written"
        )]
        whole => integer(whole) as f64,
    }
}
