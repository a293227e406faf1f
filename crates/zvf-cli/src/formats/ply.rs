//! PLY 1.0, binary and little-endian.
//!
//! Vertices have one property per axis with the name of the axis, then the columns that identify
//! objects and paths, then their attributes; several channels are `NAME_0`, `NAME_1`, …. Links of
//! two ends and steps of paths are edges; links of other widths are faces. Columns of a type that
//! PLY lacks are written in a type that holds all of their values, or else left out: text, complex
//! numbers, and integers beyond 53 bits.

use std::{
    collections::HashSet,
    io::{self, Write},
    num::TryFromIntError,
};

use zvf::{
    QueryResult,
    numeric::{Kind, Value},
};

use super::{
    Format, OutputTable, ResultWriteError, StoreDescription,
    output_table::OutputColumn,
    staged::{Sink, Staged},
};

pub(super) fn write(
    result: &QueryResult,
    description: &StoreDescription,
    staged: &mut Staged,
) -> Result<Vec<String>, ResultWriteError> {
    let vertices = OutputTable::vertices(result)?;
    let links = OutputTable::links(result)?;
    if i32::try_from(vertices.rows).is_err() {
        let what = format!("{} vertices", vertices.rows);
        let format = Format::Ply;
        return Err(ResultWriteError::Beyond { format, what });
    }
    let mut left_out = Vec::new();
    let mut element = PlyElement::default();
    for (at, column) in vertices.columns.iter().enumerate() {
        let is_axis = at < result.axes.len();
        if !element.add(column) && is_axis {
            return Err(ResultWriteError::Coordinates {
                format: Format::Ply,
                kind: column.kind().map_or("text", Kind::name),
            });
        }
    }
    left_out.append(&mut element.left_out);
    let mut of_links = PlyElement::default();
    let mut ends = None;
    if let Some(table) = &links {
        // The ends are written as two properties of an edge or as the list of a face.
        let Some((first, attributes)) = table.columns.split_first() else {
            return Err(ResultWriteError::Broken("links without ends"));
        };
        of_links
            .names
            .extend(["vertex1", "vertex2", "vertex_indices"].map(str::to_owned));
        for column in attributes {
            of_links.add(column);
        }
        left_out.append(&mut of_links.left_out);
        ends = Some((first, table.rows));
    }
    left_out.extend(super::object_data_left_out(result, Format::Ply));
    let steps = steps(result);
    staged.write(|sink| {
        let comments: String = comments(description)
            .flat_map(|comment| [comment, "\n"])
            .collect();
        let mut header = format!(
            "ply\nformat binary_little_endian 1.0\ncomment level {}\n{comments}element vertex {}\n",
            super::level_names(result),
            vertices.rows
        );
        header.push_str(&element.header());
        if let Some((first, rows)) = ends {
            header.push_str(&links_header(first.channels(), rows));
            header.push_str(&of_links.header());
        } else if result.parts.is_some() {
            header.push_str(&links_header(2, steps.clone().count()));
        }
        header.push_str("end_header\n");
        sink.write_all(header.as_bytes())?;
        for row in 0..vertices.rows {
            element.row(row, sink)?;
        }
        if let Some((first, rows)) = ends {
            for row in 0..rows {
                put_ends(first, row, sink)?;
                of_links.row(row, sink)?;
            }
        } else {
            for step in steps {
                for end in [step, step.saturating_add(1)] {
                    put_end(end, sink)?;
                }
            }
        }
        Ok(())
    })?;
    Ok(left_out)
}

/// Returns the comments of a file that the store comes from, without lines that would change the
/// meaning of the header.
fn comments(description: &StoreDescription) -> impl Iterator<Item = &str> {
    let header = description.headers.get("ply");
    let lines = header.and_then(|header| header.get("comments")?.as_array());
    let lines = lines.into_iter().flatten().filter_map(|line| line.as_str());
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
fn steps(result: &QueryResult) -> impl Iterator<Item = u64> + Clone + '_ {
    let offsets = result.parts.as_ref().map(|parts| parts.offsets.as_slice());
    let offsets = offsets.unwrap_or_default();
    let spans = offsets.iter().zip(offsets.iter().skip(1));
    spans.flat_map(|(start, end)| *start..end.saturating_sub(1).max(*start))
}

fn links_header(width: usize, rows: usize) -> String {
    if width == 2 {
        return format!("element edge {rows}\nproperty int vertex1\nproperty int vertex2\n");
    }
    let count = if width < 256 { "uchar" } else { "uint" };
    format!("element face {rows}\nproperty list {count} int vertex_indices\n")
}

fn put_ends(ends: &OutputColumn<'_>, row: usize, sink: &mut Sink<'_>) -> io::Result<()> {
    let width = ends.channels();
    if width != 2 {
        if let Ok(count) = u8::try_from(width) {
            sink.write_all(&[count])?;
        } else {
            let count = u32::try_from(width).map_err(io::Error::other)?;
            sink.write_all(&count.to_le_bytes())?;
        }
    }
    for channel in 0..width {
        put_end(integer(ends.value(row, channel)), sink)?;
    }
    Ok(())
}

/// Writes an end of a link. Vertex numbers fit into an i32, because `write` limits their count.
fn put_end<T>(end: T, sink: &mut Sink<'_>) -> io::Result<()>
where
    i32: TryFrom<T, Error = TryFromIntError>,
{
    let end = i32::try_from(end).map_err(io::Error::other)?;
    sink.write_all(&end.to_le_bytes())
}

/// Attributes whose channels have names that programs know.
const FAMILIES: [(&str, &[&str]); 3] = [
    ("rgba", &["red", "green", "blue", "alpha"]),
    ("rgb", &["red", "green", "blue"]),
    ("normal", &["nx", "ny", "nz"]),
];

/// The properties of vertices or links.
#[derive(Default)]
struct PlyElement<'a> {
    properties: Vec<PlyProperty<'a>>,
    names: HashSet<String>,
    left_out: Vec<String>,
}

struct PlyProperty<'a> {
    name: String,
    scalar: PlyType,
    column: &'a OutputColumn<'a>,
    channel: usize,
}

impl<'a> PlyElement<'a> {
    /// Adds the properties of a column. Returns false if PLY has no type for it.
    fn add(&mut self, column: &'a OutputColumn<'a>) -> bool {
        let Some(scalar) = PlyType::of(column) else {
            let what = match column.kind() {
                None => "text is",
                Some(Kind::Complex64 | Kind::Complex128) => "complex numbers are",
                Some(_) => "integers beyond 53 bits are",
            };
            let line = format!("{}: {what} not supported by ply", column.name);
            self.left_out.push(line);
            return false;
        };
        for channel in 0..column.channels() {
            let name = self.name(column, channel);
            self.properties.push(PlyProperty {
                name,
                scalar,
                column,
                channel,
            });
        }
        true
    }

    /// Returns a unique property name of letters, digits and underscores.
    fn name(&mut self, column: &OutputColumn<'_>, channel: usize) -> String {
        let name = column.name.as_str();
        let name = ["vertex.", "link."]
            .into_iter()
            .fold(name, |name, scope| name.strip_prefix(scope).unwrap_or(name));
        let allowed = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let name: String = name.chars().map(allowed).collect();
        let family = FAMILIES
            .iter()
            .find(|(family, properties)| name == *family && column.channels() == properties.len());
        let known = family.and_then(|(_, properties)| properties.get(channel));
        let mut name = match (known, column.channels()) {
            (Some(known), _) => (*known).to_owned(),
            (None, 1) => name,
            (None, _) => format!("{name}_{channel}"),
        };
        while !self.names.insert(name.clone()) {
            name.push('_');
        }
        name
    }

    fn header(&self) -> String {
        let lines = self.properties.iter();
        let lines = lines.map(|it| format!("property {} {}\n", it.scalar.name(), it.name));
        lines.collect()
    }

    fn row(&self, row: usize, sink: &mut Sink<'_>) -> io::Result<()> {
        for property in &self.properties {
            let value = property.column.value(row, property.channel);
            let is_missing = property.column.is_null(row);
            property.scalar.put(value.filter(|_| !is_missing), sink)?;
        }
        Ok(())
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
        if !column.may_miss() {
            return Some(scalar);
        }
        Some(match scalar {
            Self::Char | Self::UChar | Self::Short | Self::UShort | Self::Float => Self::Float,
            Self::Int | Self::UInt | Self::Double => Self::Double,
        })
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
    fn put(self, value: Option<Value>, sink: &mut Sink<'_>) -> io::Result<()> {
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
