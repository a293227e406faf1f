//! GIFTI surfaces, with the shape, function and label files that belong to them.
//!
//! A file is XML: an element `GIFTI` with `MetaData`, a `LabelTable` and any number of `DataArray`,
//! each with an intent, a type (uint8, int32 or float32), a shape and data as text, base64, or base64
//! of a zlib stream. `ExternalFileBinary` names a file, which is read in the same folder only. A
//! document type is not fetched, and entities are not expanded.
//!
//! # Geometry
//!
//! | in the file | in the geometry |
//! |---|---|
//! | first `POINTSET` | positions, in millimetres of its data space |
//! | first `TRIANGLE` | faces; the winding is kept |
//! | further arrays | vertex attributes, named by the metadata `Name`, else by the file or the intent |
//! | successive `TIME_SERIES` of one type | one attribute with a column for each |
//! | `LABEL` | keys as an attribute; the table is in the header |
//! | rows of points and of triangles | `vertex.source_row`, `link.source_link`, for the order of the file |
//!
//! # Headers
//!
//! | key of `headers/gifti` | content |
//! |---|---|
//! | `meta`, `labels` | pairs; key, name, red, green, blue and alpha of each label |
//! | `points`, `triangles` | `meta` and `matrices` of the arrays |
//! | `columns` | `attribute`, `intent` and `meta` of the other arrays |
//!
//! The writer puts everything into one file, with base64 of zlib, unless its name is `NAME.surf.gii`. Such
//! a file has the geometry alone, as Connectome Workbench requires it, and the values are beside it:
//!
//! | file | values |
//! |---|---|
//! | `NAME.func.gii` | `TIME_SERIES` |
//! | `NAME.label.gii` | `LABEL`, as int32, with the labels |
//! | `NAME.shape.gii` | all others; an attribute of several columns has an array `ATTRIBUTE_0`, … for each |
//!
//! They are read with the surface if they are given as further files. Results without a triangle are
//! refused, because no array of the format is empty.

mod array;
mod writer;
mod xml;

use std::path::Path;

use serde_json::{Value, json};
use zvf::{Column, ColumnValues, GeometryBuilder, GeometryKind, NumericColumn, numeric::Kind};

use crate::{
    FileDescription, FileError, FileFault, FileFormat, FileHeader, FileReadOptions, WholeReader,
    fields::scatter,
    overlay::{self, SurfaceValues},
    values::to_f64,
};

pub use writer::GiftiWriter;
use xml::{DataArray, GiftiFile};

/// Opens a surface, to which other files add values of vertices.
pub(crate) fn open(
    path: &Path,
    options: &FileReadOptions,
    overlays: Vec<SurfaceValues>,
) -> Result<WholeReader, FileError> {
    let mut file = xml::read(path, options.unpacked)?;
    let mut take = |intent: &str| {
        let place = file.arrays.iter().position(|array| array.intent == intent);
        place.map(|place| file.arrays.remove(place))
    };
    let missing =
        "the file has no POINTSET and TRIANGLE; read the surface, and add this file with --with";
    let missing = || FileFault::Unsupported(missing).of(path);
    let mut points = take("POINTSET").ok_or_else(missing)?;
    let mut triangles = take("TRIANGLE").ok_or_else(missing)?;
    let made = surface(&mut points, &mut triangles);
    let mut geometry = made.map_err(|fault| fault.of(path))?;
    let mut description =
        FileDescription::new(FileFormat::Gii, GeometryKind::Mesh).axes_xyz(Some("millimeter"));
    let frame = points.matrices.first().map(|[space, ..]| space.clone());
    if let Some(frame) = frame {
        description.crs = Some(json!({ "frame": frame, "unit": "millimeter" }));
    }
    let kept = |array: &DataArray| json!({ "meta": array.meta, "matrices": array.matrices });
    let mut header = FileHeader::new();
    header.insert("meta".to_owned(), json!(file.meta));
    header.insert("points".to_owned(), kept(&points));
    header.insert("triangles".to_owned(), kept(&triangles));
    let mut all = vec![overlay_of(file, path)];
    all.extend(overlays);
    overlay::add(&mut geometry, &mut header, all)?;
    description.header = header;
    Ok(WholeReader::new(geometry, description))
}

/// Reads a file with values for the vertices of a surface.
pub(crate) fn read_overlay(path: &Path, limit: u64) -> Result<SurfaceValues, FileError> {
    let file = xml::read(path, limit)?;
    Ok(overlay_of(file, path))
}

/// Returns the mesh of two arrays, and takes their values.
fn surface(
    points: &mut DataArray,
    triangles: &mut DataArray,
) -> Result<GeometryBuilder, FileFault> {
    use Kind::{Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};

    let whole = [Int32, UInt8, Int8, Int16, UInt16, UInt32, Int64, UInt64];
    for (field, values, kinds) in [
        ("the points", &points.values, [Float32, Float64].as_slice()),
        ("the triangles", &triangles.values, whole.as_slice()),
    ] {
        if !kinds.contains(&values.kind) || values.width != 3 {
            let found = format!(
                "an array of {} columns of {}",
                values.width,
                values.kind.name()
            );
            let expected = "points are floats and triangles integers, with 3 columns";
            return Err(FileFault::field(field, found, expected));
        }
    }
    let empty = || NumericColumn::new(Float32, 3);
    let positions = std::mem::replace(&mut points.values, empty());
    let corners = std::mem::replace(&mut triangles.values, empty());
    if corners.kind == Int32 {
        let (words, _) = corners.bytes.as_chunks::<4>();
        return overlay::mesh(positions, words.iter().map(|it| i32::from_le_bytes(*it)));
    }
    let corners = to_f64(&corners).unwrap_or_default();
    // No mesh has a vertex whose number exceeds int32.
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        reason = "numbers out of range become the last int32, which no vertex has"
    )]
    let corners = corners.into_iter().map(|corner| corner as i32);
    overlay::mesh(positions, corners)
}

/// Returns the arrays of a file as attributes.
fn overlay_of(file: GiftiFile, path: &Path) -> SurfaceValues {
    let stem = overlay::stem(path);
    let mut overlay = SurfaceValues {
        path: path.to_path_buf(),
        labels: file.labels,
        ..SurfaceValues::default()
    };
    let count = file.arrays.len();
    // Arrays that become one attribute.
    let mut joined: Vec<DataArray> = Vec::new();
    for array in file.arrays {
        let are_steps = joined.first().is_some_and(|first| {
            [&first.intent, &array.intent] == ["TIME_SERIES"; 2]
                && first.values.kind == array.values.kind
                && first.values.len() == array.values.len()
        });
        if !are_steps {
            push(&mut overlay, &stem, count, std::mem::take(&mut joined));
        }
        joined.push(array);
    }
    push(&mut overlay, &stem, count, joined);
    overlay
}

/// Adds arrays as one attribute.
fn push(overlay: &mut SurfaceValues, stem: &str, count: usize, arrays: Vec<DataArray>) {
    let Some(array) = arrays.first() else {
        return;
    };
    let named = array
        .named("Name")
        .map(str::trim)
        .map(last_of_path)
        .filter(|name| !name.is_empty())
        .map(str::to_owned);
    let intent = array.intent.to_lowercase();
    let name = named.unwrap_or_else(|| match (count, intent.as_str()) {
        (1, _) => stem.to_owned(),
        (_, "none") => format!("{stem}_values"),
        (_, intent) => intent.to_owned(),
    });
    let metas: Vec<Value> = arrays.iter().map(|array| json!(array.meta)).collect();
    let kept = json!({ "intent": array.intent, "meta": metas });
    let values = joined(arrays.into_iter().map(|array| array.values).collect());
    let column = Column::new(name, ColumnValues::Numeric(values));
    overlay.columns.push(column);
    overlay.kept.push(kept);
}

/// Returns the last part of a path, which some programs write as the name of values; other names
/// are returned unchanged.
fn last_of_path(name: &str) -> &str {
    let is_path = name.starts_with(['/', '.', '~']) || name.contains(":\\");
    match name.rsplit(['/', '\\']).next() {
        Some(last) if is_path => last,
        _ => name,
    }
}

/// Joins the rows of columns of one type and length.
fn joined(mut columns: Vec<NumericColumn>) -> NumericColumn {
    if let [_] = columns.as_slice()
        && let Some(only) = columns.pop()
    {
        return only;
    }
    let kind = columns.first().map_or(Kind::Float32, |column| column.kind);
    let widths = columns.iter().map(|column| column.width);
    let mut all = NumericColumn::new(kind, widths.fold(0, u32::saturating_add));
    let row = all.row_size();
    let rows = columns.first().map_or(0, NumericColumn::len);
    all.bytes = vec![0; rows.saturating_mul(row)];
    let mut at = 0_usize;
    for column in columns {
        let size = column.row_size();
        scatter(&column.bytes, size, &mut all.bytes, row, at);
        at = at.saturating_add(size);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shortened_and_other_names_are_kept() {
        assert_eq!(last_of_path("../surf/lh.thickness"), "lh.thickness");
        assert_eq!(last_of_path(r"C:\data\lh.curv"), "lh.curv");
        assert_eq!(last_of_path("area/thickness"), "area/thickness");
    }
}
