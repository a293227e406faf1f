//! Values of the vertices of a surface, in files of their own.

use std::path::{Path, PathBuf};

use serde_json::Value;
use zvf::{Column, ColumnValues, Geometry, GeometryBuilder, NumericColumn};

use crate::{FileError, FileFault, FileHeader, names::AttributeNames, values::not_finite};

/// Values of the vertices of a surface.
#[derive(Debug, Default)]
pub(crate) struct SurfaceValues {
    pub(crate) path: PathBuf,
    pub(crate) columns: Vec<Column>,
    /// Descriptions of the columns in the header.
    pub(crate) kept: Vec<Value>,
    /// Labels: key, name, red, green, blue and alpha.
    pub(crate) labels: Vec<Value>,
}

/// Adds values of vertices, and columns for the order of the file.
pub(crate) fn add(
    geometry: &mut GeometryBuilder,
    header: &mut FileHeader,
    overlays: Vec<SurfaceValues>,
) -> Result<(), FileError> {
    let mut names = AttributeNames::default();
    let rows = |count: usize| -> NumericColumn { (0..u32::MAX).take(count).collect() };
    let faces = geometry.links.len();
    let row = Column::new(names.add("source_row"), rows(geometry.vertices()));
    geometry.vertex.push(row);
    geometry.link.push(Column::new("source_link", rows(faces)));
    let (mut kept, mut labels) = (Vec::new(), Vec::new());
    for overlay in overlays {
        let path = overlay.path;
        labels.extend(overlay.labels);
        for (mut column, mut entry) in overlay.columns.into_iter().zip(overlay.kept) {
            let found = match &column.values {
                ColumnValues::Numeric(numbers) => numbers.len(),
                ColumnValues::Dictionary { codes, .. } => codes.len(),
            };
            if found != geometry.vertices() {
                let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
                let fault = FileFault::OtherSurface {
                    found: count(found),
                    vertices: count(geometry.vertices()),
                };
                return Err(fault.of(&path));
            }
            column.name = names.add(&column.name);
            if let Some(entry) = entry.as_object_mut() {
                entry.insert("attribute".to_owned(), column.name.clone().into());
            }
            kept.push(entry);
            geometry.vertex.push(column);
        }
    }
    header.insert("columns".to_owned(), kept.into());
    if !labels.is_empty() {
        header.insert("labels".to_owned(), labels.into());
    }
    names.record(header, "names");
    Ok(())
}

/// Returns a mesh of coordinates and of the corners of triangles.
pub(crate) fn mesh(
    positions: NumericColumn,
    corners: impl ExactSizeIterator<Item = i32>,
) -> Result<GeometryBuilder, FileFault> {
    if let Some(value) = not_finite(&positions) {
        return Err(FileFault::NotFinite(value));
    }
    if positions.is_empty() {
        return Err(FileFault::Empty);
    }
    let mut links = Vec::with_capacity(corners.len());
    let (mut least, mut most) = (0, 0);
    links.extend(corners.map(|corner| {
        (least, most) = (corner.min(least), corner.max(most));
        i64::from(corner)
    }));
    let is_past = usize::try_from(most).is_ok_and(|most| most >= positions.len());
    if least < 0 || is_past && !links.is_empty() {
        let corner = if least < 0 { least } else { most };
        let expected = "a triangle names vertices from 0 on; the file is cut or damaged";
        return Err(FileFault::field("a corner", corner, expected));
    }
    Ok(Geometry::builder(positions).links(3, links))
}

/// Returns the name of a file without the extensions of its format.
pub(crate) fn stem(path: &Path) -> String {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let mut name = file.as_ref();
    for end in [
        ".gz", ".gii", ".annot", ".shape", ".func", ".label", ".surf",
    ] {
        name = name.strip_suffix(end).unwrap_or(name);
    }
    name.to_owned()
}
