//! `FreeSurfer` surfaces with curvature and annotation files. They are read only.
//!
//! All numbers are big-endian.
//!
//! | file | layout |
//! |---|---|
//! | surface (`lh.pial`) | `ff ff fe`, two lines of text, i32 vertices, i32 triangles, vertices × 3 f32, triangles × 3 i32, a footer |
//! | surface of quadrangles | `ff ff fd`, u24 vertices, u24 quadrangles, vertices × 3 f32, quadrangles × 4 u24 |
//! | old surface of quadrangles | the same with `ff ff ff` and vertices × 3 i16, in hundredths |
//! | values (`lh.curv`, `lh.thickness`) | `ff ff ff`, i32 vertices, i32 triangles, i32 1, f32 each |
//! | old values | u24 vertices, u24 triangles, i16 each, in hundredths |
//! | annotation (`lh.aparc.annot`) | i32 n, n × (i32 vertex, i32 value), i32 1, a table of names and colours |
//!
//! Coordinates are those of the file (surface RAS), in millimetres. Values become vertex attributes
//! named after the part of the file name after the hemisphere; the table of an annotation is in the
//! key `labels` of `headers/freesurfer`, with `stamp` and `footer` (base64) of the surface.
//! Quadrangles remain faces of four corners.

use std::path::Path;

use serde_json::{Value, json};
use zvf::{Column, ColumnValues, GeometryBuilder, GeometryKind, NumericColumn, numeric::Kind};

use crate::{
    FileDescription, FileError, FileFault, FileFormat, FileHeader, FileReadOptions, WholeReader,
    input::ByteReader,
    overlay::{self, SurfaceValues},
};
use zvf_model::base64;

/// The first bytes of surfaces of triangles, and of quadrangles.
const TRIANGLES: [u8; 3] = [0xff, 0xff, 0xfe];
const QUADRANGLES: [u8; 3] = [0xff, 0xff, 0xfd];
const OLD_QUADRANGLES: [u8; 3] = [0xff, 0xff, 0xff];

/// Upper bound on the kept footer, in bytes.
const FOOTER: u64 = 8 << 10;
/// Upper bound on the size of the table of an annotation.
const TABLE: u64 = 1 << 20;

/// Opens a surface, to which other files add values of vertices.
pub(crate) fn open(
    path: &Path,
    options: &FileReadOptions,
    overlays: Vec<SurfaceValues>,
) -> Result<WholeReader, FileError> {
    let mut file = ByteReader::open(path, options.unpacked)?;
    let magic: [u8; 3] = file.array("the signature")?;
    let mut stamp = Vec::new();
    let mut geometry = match magic {
        TRIANGLES => {
            let mut line = Vec::new();
            file.line(&mut stamp)?;
            file.line(&mut line)?;
            triangles(&mut file)?
        }
        QUADRANGLES | OLD_QUADRANGLES => quadrangles(&mut file, magic == OLD_QUADRANGLES)?,
        _ => {
            let found = format!("{magic:02x?}");
            let expected = "surfaces start with ff ff fe, ff ff fd or ff ff ff; the file is another \
                            format or damaged";
            return Err(file.error(FileFault::field("the signature", found, expected)));
        }
    };
    let mut description = FileDescription::new(FileFormat::FreeSurfer, GeometryKind::Mesh)
        .axes_xyz(Some("millimeter"));
    description.crs = Some(json!({ "frame": "surface RAS", "unit": "millimeter" }));
    let mut header = FileHeader::new();
    if magic == TRIANGLES {
        let stamp = String::from_utf8_lossy(&stamp).trim_end().to_owned();
        header.insert("stamp".to_owned(), stamp.into());
    }
    let left = file.left();
    if left > FOOTER {
        let note = format!("left out: a footer of {left} bytes");
        description.notes.push(note);
    } else {
        let mut footer = Vec::new();
        file.take(&mut footer, left, "the footer")?;
        header.insert("footer".to_owned(), base64::encode(&footer).into());
    }
    overlay::add(&mut geometry, &mut header, overlays)?;
    description.header = header;
    Ok(WholeReader::new(geometry, description))
}

/// Reads the vertices and triangles of a surface.
fn triangles(file: &mut ByteReader) -> Result<GeometryBuilder, FileError> {
    let vertices = count(file, "the number of vertices")?;
    let triangles = count(file, "the number of triangles")?;
    let mut positions = NumericColumn::new(Kind::Float32, 3);
    file.take(
        &mut positions.bytes,
        vertices.saturating_mul(12),
        "the vertices",
    )?;
    let mut corners = Vec::new();
    file.take(&mut corners, triangles.saturating_mul(12), "the triangles")?;
    swap(&mut positions.bytes);
    let (words, _) = corners.as_chunks::<4>();
    let corners = words.iter().map(|word| i32::from_be_bytes(*word));
    overlay::mesh(positions, corners).map_err(|fault| fault.of(file.path()))
}

/// Reads the vertices and quadrangles of an old surface. Coordinates are float32, or hundredths in
/// two bytes if `is_short`.
fn quadrangles(file: &mut ByteReader, is_short: bool) -> Result<GeometryBuilder, FileError> {
    let vertices = u24(file.array("the number of vertices")?);
    let faces = u24(file.array("the number of quadrangles")?);
    let mut bytes = Vec::new();
    let size = if is_short { 6 } else { 12 };
    let mut positions = NumericColumn::new(Kind::Float32, 3);
    file.take(
        &mut bytes,
        u64::from(vertices).saturating_mul(size),
        "the vertices",
    )?;
    if is_short {
        positions.bytes = from_hundredths(&bytes);
    } else {
        positions.bytes = std::mem::take(&mut bytes);
        swap(&mut positions.bytes);
    }
    file.take(
        &mut bytes,
        u64::from(faces).saturating_mul(12),
        "the quadrangles",
    )?;
    let (words, _) = bytes.as_chunks::<3>();
    let corners = words.iter().map(|word| u24(*word).cast_signed());
    let made = overlay::mesh(positions, corners);
    let mut geometry = made.map_err(|fault| fault.of(file.path()))?;
    geometry.links.width = 4;
    Ok(geometry)
}

/// Reads a file with values for the vertices of a surface.
pub(crate) fn read_overlay(path: &Path, limit: u64) -> Result<SurfaceValues, FileError> {
    let mut file = ByteReader::open(path, limit)?;
    let stem = overlay::stem(path);
    let name = stem
        .strip_prefix("lh.")
        .or_else(|| stem.strip_prefix("rh."))
        .unwrap_or(&stem)
        .to_owned();
    let is_annotation = path.extension().is_some_and(|end| end == "annot");
    let mut labels = Vec::new();
    let (values, intent) = if is_annotation {
        let values = annotation(&mut file, &mut labels)?;
        (values, "LABEL")
    } else {
        (scalars(&mut file)?, "SHAPE")
    };
    let entry = json!({ "intent": intent, "meta": [[["Name", name.as_str()]]] });
    Ok(SurfaceValues {
        path: path.to_path_buf(),
        columns: vec![Column::new(name, ColumnValues::Numeric(values))],
        kept: vec![entry],
        labels,
    })
}

/// Reads the values of a curvature file of either form.
fn scalars(file: &mut ByteReader) -> Result<NumericColumn, FileError> {
    let magic: [u8; 3] = file.array("the signature")?;
    let mut values = NumericColumn::new(Kind::Float32, 1);
    if magic == [0xff; 3] {
        let vertices = count(file, "the number of vertices")?;
        count(file, "the number of triangles")?;
        let each = count(file, "the number of values of a vertex")?;
        if each != 1 {
            let expected = "files with 1 are read";
            let fault = FileFault::field("the number of values of a vertex", each, expected);
            return Err(file.error(fault));
        }
        file.take(&mut values.bytes, vertices.saturating_mul(4), "the values")?;
        swap(&mut values.bytes);
    } else {
        let vertices = u64::from(u24(magic));
        file.array::<3>("the number of triangles")?;
        let mut bytes = Vec::new();
        file.take(&mut bytes, vertices.saturating_mul(2), "the values")?;
        values.bytes = from_hundredths(&bytes);
    }
    match file.left() {
        0 => Ok(values),
        left => Err(file.error(FileFault::Trailing(left))),
    }
}

/// Reads the value of each vertex and the table of an annotation.
fn annotation(file: &mut ByteReader, labels: &mut Vec<Value>) -> Result<NumericColumn, FileError> {
    let pairs = count(file, "the number of vertices")?;
    let mut bytes = Vec::new();
    file.take(&mut bytes, pairs.saturating_mul(8), "the values")?;
    let (pairs, _) = bytes.as_chunks::<8>();
    let mut values = vec![0_i32; pairs.len()];
    for pair in pairs {
        let [a, b, c, d, rest @ ..] = *pair;
        let vertex = i32::from_be_bytes([a, b, c, d]);
        let place = usize::try_from(vertex).ok();
        let Some(value) = place.and_then(|place| values.get_mut(place)) else {
            let expected =
                "an annotation has as many vertices as its surface; the file is cut or damaged";
            return Err(file.error(FileFault::field("a vertex", vertex, expected)));
        };
        *value = i32::from_be_bytes(rest);
    }
    if file.left() > 0 && count(file, "the mark of a table")? != 0 {
        table(file, labels)?;
    }
    Ok(values.into_iter().collect())
}

/// Reads the table of names and colours.
fn table(file: &mut ByteReader, labels: &mut Vec<Value>) -> Result<(), FileError> {
    if file.left() > TABLE {
        let reason = "the table of the annotation is larger than 1 MiB; the file is damaged";
        return Err(file.error(FileFault::Unsupported(reason)));
    }
    let version = i32::from_be_bytes(file.array("the version of a table")?);
    let is_numbered = version == -2;
    if version < 0 {
        if !is_numbered {
            let expected = "versions 1 and 2 are read";
            return Err(file.error(FileFault::field("the version", version, expected)));
        }
        count(file, "the largest number")?;
    }
    text(file)?;
    let entries = if is_numbered {
        count(file, "the number of entries")?
    } else {
        u64::from(version.unsigned_abs())
    };
    for _ in 0..entries {
        if is_numbered {
            count(file, "the number of an entry")?;
        }
        let name = text(file)?;
        let mut colour = [0_u64; 4];
        for channel in &mut colour {
            *channel = count(file, "a colour")?.min(255);
        }
        let [red, green, blue, transparency] = colour;
        let key = red | green << 8 | blue << 16;
        let alpha = 255_u64.saturating_sub(transparency);
        labels.push(json!([key, name, red, green, blue, alpha]));
    }
    Ok(())
}

/// Reads a text with its length.
fn text(file: &mut ByteReader) -> Result<String, FileError> {
    let length = count(file, "the length of a name")?;
    let mut bytes = Vec::new();
    file.take(&mut bytes, length, "a name")?;
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// Reads a number that is not negative.
fn count(file: &mut ByteReader, what: &'static str) -> Result<u64, FileError> {
    let number = i32::from_be_bytes(file.array(what)?);
    u64::try_from(number).map_err(|_| {
        let expected = "it cannot be negative; the file is damaged";
        file.error(FileFault::field(what, number, expected))
    })
}

/// Returns a number of three bytes.
fn u24([high, middle, low]: [u8; 3]) -> u32 {
    u32::from_be_bytes([0, high, middle, low])
}

/// Converts hundredths in two bytes to float32.
fn from_hundredths(bytes: &[u8]) -> Vec<u8> {
    let (words, _) = bytes.as_chunks::<2>();
    let numbers = words
        .iter()
        .map(|word| f32::from(i16::from_be_bytes(*word)) / 100.0);
    numbers.flat_map(f32::to_le_bytes).collect()
}

/// Brings 32-bit numbers into little-endian order.
fn swap(bytes: &mut [u8]) {
    let (words, _) = bytes.as_chunks_mut::<4>();
    for word in words {
        word.reverse();
    }
}
