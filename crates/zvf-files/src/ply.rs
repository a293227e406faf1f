//! PLY, the polygon format of Stanford: points, meshes and graphs.
//!
//! A header of text declares elements, and their properties in the order of the data:
//!
//! ```text
//! ply
//! format ascii 1.0
//! element vertex 3
//! property float x
//! property float y
//! property float z
//! element face 1
//! property list uchar int vertex_indices
//! end_header
//! ```
//!
//! The format is `ascii`, `binary_little_endian` or `binary_big_endian`. Types are `char`, `uchar`,
//! `short`, `ushort`, `int`, `uint`, `float` and `double`, or `int8` to `float64`.
//!
//! | element | in the geometry |
//! |---|---|
//! | `vertex` | x, y, z are coordinates, in their type |
//! | its `red`, `green`, `blue`, `alpha`; `nx`, `ny`, `nz`; `NAME_0`, `NAME_1`, … | `rgb`, `rgba`; `normal`; `NAME`, if they follow each other and have one type |
//! | its `object_id` | the object of each vertex |
//! | its `part` | the path of each vertex, if there is an `object_id` and edges join consecutive vertices of each part, as `zvf query -o` writes paths, or if paths are requested |
//! | its other properties | vertex attributes |
//! | `face` with `vertex_indices` or `vertex_index` | polygons; other properties are link attributes |
//! | `edge` with `vertex1`, `vertex2` | links of a graph, in a file without faces |
//!
//! Comments are kept in the header. Other lists and elements are left out, with a note.
//!
//! Points are read in batches, whatever their number. Faces refer to any vertices, and are read in
//! batches after them if the file is large; whether all have one number of corners then takes a pass
//! of its own. Graphs and paths are read as a whole.

mod columns;
mod header;
mod reader;
mod values;
mod writer;

use std::path::Path;

use zvf::{Geometry, GeometryBuilder, GeometryKind, VertexOwners};

use crate::{
    FileDescription, FileError, FileFault, FileFormat, FileReadOptions, GeometryReader,
    input::ByteReader, polygons::PolygonList, text::NO_LINE_END, values::not_finite,
    whole::WholeReader,
};
use columns::{PropertyColumns, skip_list};
use header::{ElementDeclaration, PlyHeader};
use reader::PlyReader;
use values::PlyValues;

pub(crate) use writer::PlyWriter;

/// Opens a file. Points are read in batches, and so are meshes of files that are larger than
/// [`FileReadOptions::in_memory`]: their vertices, then their faces.
///
/// # Errors
///
/// [`FileError`] if the header is damaged, or a file that is read as a whole.
pub fn open(path: &Path, options: &FileReadOptions) -> Result<Box<dyn GeometryReader>, FileError> {
    let mut file = ByteReader::open(path, options.unpacked)?;
    let mut header = PlyHeader::read(&mut file)?;
    header.rename_axes(&options.renames);
    if reader::is_in_batches(&header, file.length(), options) {
        return Ok(Box::new(PlyReader::open(file, header)?));
    }
    let (again, reading) = (path.to_path_buf(), options.clone());
    let reread = move || {
        let mut file = ByteReader::open(&again, reading.unpacked)?;
        let mut header = PlyHeader::read(&mut file)?;
        header.rename_axes(&reading.renames);
        read(file, header, reading.kind)
    };
    Ok(Box::new(read(file, header, options.kind)?.reread(reread)))
}

/// Reads the data of a file as a whole.
fn read(
    file: ByteReader,
    header: PlyHeader,
    requested: Option<GeometryKind>,
) -> Result<WholeReader, FileError> {
    let path = file.path().to_path_buf();
    let mut values = PlyValues::new(file, header.form, header.lines);
    let mut content = PlyContent::default();
    for element in &header.elements {
        values.check(element.least(header.form))?;
        match element.name.as_str() {
            "vertex" => {
                content.vertices = PropertyColumns::read(element, element.rows, &mut values)?;
            }
            "face" => {
                let polygons = &mut content.polygons;
                content.of_faces = read_faces(element, element.rows, &mut values, polygons)?;
            }
            "edge" => content.edges = PropertyColumns::read(element, element.rows, &mut values)?,
            _ => PropertyColumns::skip(element, element.rows, &mut values)?,
        }
    }
    values.finish()?;
    let is_cut = values.is_cut();
    content.finish(&path, header, is_cut, requested)
}

/// Reads faces: a list of corners, and attributes.
fn read_faces(
    element: &ElementDeclaration,
    rows: u64,
    values: &mut PlyValues,
    polygons: &mut PolygonList,
) -> Result<PropertyColumns, FileError> {
    let mut attributes = PropertyColumns::of(element);
    if let [only] = element.properties.as_slice()
        && let Some(count) = only.count
        && only.is_corners()
        && values.polygons(rows, count, only.kind, polygons)?
    {
        return Ok(attributes);
    }
    let mut corners: Vec<u32> = Vec::new();
    for _ in 0..rows {
        let mut scalar = 0_usize;
        for property in &element.properties {
            match property.count {
                Some(count) if property.is_corners() => {
                    corners.clear();
                    for _ in 0..values.integer(count)?.max(0) {
                        let corner = values.integer(property.kind)?;
                        let row = u32::try_from(corner).map_err(|_| {
                            let expected = "vertices count from 0; the file is damaged";
                            values.error(FileFault::field("the corner of a face", corner, expected))
                        })?;
                        corners.push(row);
                    }
                    let pushed = polygons.push(corners.iter().copied());
                    pushed.map_err(|fault| values.error(fault))?;
                }
                Some(_) => skip_list(property, values)?,
                None => {
                    attributes.value(scalar, property.kind, values)?;
                    scalar = scalar.saturating_add(1);
                }
            }
        }
    }
    Ok(attributes)
}

/// Returns the description of a file. The last line of a file that is cut has no line end.
fn described(header: PlyHeader, kind: GeometryKind, is_cut: bool) -> FileDescription {
    let mut description = FileDescription::new(FileFormat::Ply, kind).axes_xyz(None);
    let left_out = left_out(&header, kind);
    if is_cut {
        description.notes.push(NO_LINE_END.to_owned());
    }
    match header.comments {
        Some(comments) if comments.is_empty() => {}
        Some(comments) => {
            let header = &mut description.header;
            header.insert("comments".to_owned(), comments.into());
        }
        None => {
            let note = "comments are longer than 8 MiB and are not kept";
            description.notes.push(note.to_owned());
        }
    }
    if !left_out.is_empty() {
        let note = format!("left out: {}", left_out.join(", "));
        description.notes.push(note);
    }
    description
}

/// Lists the elements and lists that geometry of a kind does not have.
fn left_out(header: &PlyHeader, kind: GeometryKind) -> Vec<String> {
    let mut lines = Vec::new();
    let mut last = Vec::new();
    for element in &header.elements {
        let lists = element.properties.iter().filter(|it| it.count.is_some());
        match element.name.as_str() {
            "vertex" => last.extend(lists.map(|list| format!("list {}", list.name))),
            "face" => {
                let lists = lists.filter(|list| !list.is_corners());
                lines.extend(lists.map(|list| format!("list {} of faces", list.name)));
            }
            "edge" if kind == GeometryKind::Mesh && element.rows > 0 => {
                last.insert(0, "element edge, beside faces".to_owned());
            }
            "edge" => {}
            name if element.rows > 0 => lines.push(format!("element {name}")),
            _ => {}
        }
    }
    lines.append(&mut last);
    lines
}

/// The content of a file that is read as a whole.
#[derive(Debug, Default)]
struct PlyContent {
    vertices: PropertyColumns,
    polygons: PolygonList,
    of_faces: PropertyColumns,
    edges: PropertyColumns,
}

impl PlyContent {
    fn finish(
        mut self,
        path: &Path,
        header: PlyHeader,
        is_cut: bool,
        requested: Option<GeometryKind>,
    ) -> Result<WholeReader, FileError> {
        let in_file = |fault: FileFault| fault.of(path);
        let positions = self.vertices.positions().map_err(in_file)?;
        if positions.is_empty() {
            return Err(FileFault::Empty.of(path));
        }
        let ends = ["vertex1", "vertex2"].map(|name| self.edges.take_integers(name));
        let object_ids = self.vertices.take_integers("object_id");
        let mut geometry = Geometry::builder(positions);
        let kind = if self.polygons.len() > 0 {
            let attributes = self.of_faces.attributes();
            self.polygons
                .add_to(&mut geometry, attributes)
                .map_err(in_file)?;
            GeometryKind::Mesh
        } else if let Some(parts) = self.vertices.integers("part").filter(|parts| {
            let are_requested = requested.is_some_and(GeometryKind::is_paths);
            are_requested || object_ids.is_some() && are_steps(&ends, parts)
        }) {
            self.vertices.take_integers("part");
            add_paths(&mut geometry, &parts, object_ids.as_deref());
            GeometryKind::Polylines
        } else if let [Some(one), Some(two)] = ends {
            let count = i64::try_from(geometry.vertices()).unwrap_or(i64::MAX);
            let is_outside = |end: &&i64| !(0..count).contains(*end);
            if let Some(end) = one.iter().chain(&two).find(is_outside) {
                let expected = "no vertex has this number; the file is damaged";
                return Err(FileFault::field("the end of an edge", end, expected).of(path));
            }
            geometry.links.ends = one
                .iter()
                .zip(&two)
                .flat_map(|(one, two)| [*one, *two])
                .collect();
            if !geometry.links.is_empty() {
                geometry.link = self.edges.attributes();
            }
            GeometryKind::Graphs
        } else {
            GeometryKind::Points
        };
        if let (VertexOwners::Unnamed, Some(ids)) = (&geometry.owners, object_ids) {
            geometry.owners = VertexOwners::Vertices(ids);
        }
        geometry.vertex = self.vertices.attributes();
        if let Some(value) = not_finite(&geometry.positions) {
            return Err(FileFault::NotFinite(value).of(path));
        }
        Ok(WholeReader::new(geometry, described(header, kind, is_cut)))
    }
}

/// Returns whether edges join the consecutive vertices of each part, in their order.
fn are_steps(ends: &[Option<Vec<i64>>; 2], parts: &[i64]) -> bool {
    let [Some(one), Some(two)] = ends else {
        return false;
    };
    let pairs = (0_i64..).zip(parts.windows(2));
    let steps = pairs
        .filter(|(_, pair)| pair.first() == pair.last())
        .map(|(row, _)| (row, row.saturating_add(1)));
    one.iter().copied().zip(two.iter().copied()).eq(steps)
}

/// Makes a path of each run of equal parts.
fn add_paths(geometry: &mut GeometryBuilder, parts: &[i64], objects: Option<&[i64]>) {
    let mut offsets = vec![0_u64];
    let mut ids = Vec::new();
    let mut end = 0_usize;
    for run in parts.chunk_by(|one, two| one == two) {
        let object = objects.and_then(|objects| objects.get(end)).or(run.first());
        ids.push(object.copied().unwrap_or(0));
        end = end.saturating_add(run.len());
        offsets.push(u64::try_from(end).unwrap_or(u64::MAX));
    }
    geometry.owners = VertexOwners::Paths {
        offsets,
        objects: Some(ids),
    };
}
