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
//! | its `object_id`, `part` | the object of each vertex; paths, as `zvf query -o` writes them |
//! | its other properties | vertex attributes |
//! | `face` with `vertex_indices` or `vertex_index` | polygons; other properties are link attributes |
//! | `edge` with `vertex1`, `vertex2` | links of a graph, in a file without faces |
//!
//! Comments are kept in the header. Other lists and elements are left out, with a note.

mod columns;
mod header;
mod values;

use std::path::Path;

use zvf::{Geometry, GeometryKind};

use crate::{
    FileDescription, FileError, FileFault, FileFormat, FileReadOptions, input::ByteReader,
    polygons::PolygonList, text::NO_LINE_END, values::not_finite, whole::WholeReader,
};
use columns::PropertyColumns;
use header::{ElementDeclaration, PlyHeader};
use values::PlyValues;

/// Opens a file.
///
/// # Errors
///
/// [`FileError`] if the file is damaged.
pub fn open(path: &Path, options: &FileReadOptions) -> Result<WholeReader, FileError> {
    let (again, reading) = (path.to_path_buf(), options.clone());
    Ok(read(path, options)?.reread(move || read(&again, &reading)))
}

fn read(path: &Path, options: &FileReadOptions) -> Result<WholeReader, FileError> {
    let mut file = ByteReader::open(path, options.unpacked)?;
    let header = PlyHeader::read(&mut file)?;
    let mut values = PlyValues::new(file, header.form, header.lines);
    let mut content = PlyContent::default();
    for element in &header.elements {
        values.check(element.rows, element.least(header.form))?;
        match element.name.as_str() {
            "vertex" => content.vertices = PropertyColumns::read(element, &mut values)?,
            "face" => content.faces(element, &mut values)?,
            "edge" => content.edges = PropertyColumns::read(element, &mut values)?,
            name => {
                PropertyColumns::read(element, &mut values)?;
                if element.rows > 0 {
                    content.left_out.push(format!("element {name}"));
                }
            }
        }
    }
    values.finish()?;
    if values.is_cut() {
        content.notes.push(NO_LINE_END.to_owned());
    }
    match header.comments {
        Some(comments) => content.comments = comments,
        None => content
            .notes
            .push("comments are longer than 8 MiB and are not kept".to_owned()),
    }
    content.finish(path)
}

/// The content of a file.
#[derive(Debug, Default)]
struct PlyContent {
    vertices: PropertyColumns,
    polygons: PolygonList,
    of_faces: PropertyColumns,
    edges: PropertyColumns,
    comments: Vec<String>,
    notes: Vec<String>,
    left_out: Vec<String>,
}

impl PlyContent {
    /// Reads faces: one list of corners, and attributes.
    fn faces(
        &mut self,
        element: &ElementDeclaration,
        values: &mut PlyValues,
    ) -> Result<(), FileError> {
        let is_corners = |name: &str| matches!(name, "vertex_indices" | "vertex_index");
        let mut of_faces = PropertyColumns::of(element);
        if let [only] = element.properties.as_slice()
            && let Some(count) = only.count
            && is_corners(&only.name)
            && values.polygons(element.rows, count, only.kind, &mut self.polygons)?
        {
            self.of_faces = of_faces;
            return Ok(());
        }
        let mut corners: Vec<u32> = Vec::new();
        for _ in 0..element.rows {
            for (at, property) in element.properties.iter().enumerate() {
                match property.count {
                    Some(count) if is_corners(&property.name) => {
                        corners.clear();
                        for _ in 0..values.integer(count)?.max(0) {
                            let corner = values.integer(property.kind)?;
                            let row = u32::try_from(corner).map_err(|_| {
                                let expected = "vertices count from 0; the file is damaged";
                                values.error(FileFault::field(
                                    "the corner of a face",
                                    corner,
                                    expected,
                                ))
                            })?;
                            corners.push(row);
                        }
                        let pushed = self.polygons.push(corners.iter().copied());
                        pushed.map_err(|fault| values.error(fault))?;
                    }
                    Some(_) => PropertyColumns::skip_list(property, values)?,
                    None => of_faces.value(at, property.kind, values)?,
                }
            }
        }
        let lists = element
            .properties
            .iter()
            .filter(|it| it.count.is_some() && !is_corners(&it.name));
        self.left_out
            .extend(lists.map(|list| format!("list {} of faces", list.name)));
        self.of_faces = of_faces;
        Ok(())
    }

    fn finish(mut self, path: &Path) -> Result<WholeReader, FileError> {
        let in_file = |fault: FileFault| fault.of(path);
        let positions = self.vertices.positions().map_err(in_file)?;
        if positions.is_empty() {
            return Err(FileFault::Empty.of(path));
        }
        let ends = ["vertex1", "vertex2"].map(|name| self.edges.take_integers(name));
        let object_ids = self.vertices.take_integers("object_id");
        let parts = self.vertices.take_integers("part");
        let mut geometry = Geometry::new(positions);
        let kind = if self.polygons.len() > 0 {
            if self.edges.rows() > 0 {
                self.left_out.push("element edge, beside faces".to_owned());
            }
            let attributes = self.of_faces.attributes();
            self.polygons
                .add_to(&mut geometry, attributes)
                .map_err(in_file)?;
            GeometryKind::Mesh
        } else if let Some(parts) = parts {
            // Files of older versions name the object of a path so.
            let objects = self.vertices.take_integers("object").or(object_ids.clone());
            add_paths(&mut geometry, &parts, objects.as_deref());
            GeometryKind::Polylines
        } else if let [Some(one), Some(two)] = ends {
            let count = i64::try_from(geometry.vertices()).unwrap_or(i64::MAX);
            let is_outside = |end: &&i64| !(0..count).contains(*end);
            if let Some(end) = one.iter().chain(&two).find(is_outside) {
                let expected = "no vertex has this number; the file is damaged";
                return Err(FileFault::field("the end of an edge", end, expected).of(path));
            }
            geometry.links = one
                .iter()
                .zip(&two)
                .flat_map(|(one, two)| [*one, *two])
                .collect();
            geometry.link = self.edges.attributes();
            GeometryKind::Graphs
        } else {
            GeometryKind::Points
        };
        if geometry.part_offsets.is_none() {
            geometry.object_ids = object_ids;
        }
        geometry.vertex = self.vertices.attributes();
        if let Some(value) = not_finite(&geometry.positions) {
            return Err(FileFault::NotFinite(value).of(path));
        }
        let mut description = FileDescription::new(FileFormat::Ply, kind).axes_xyz(None);
        if !self.comments.is_empty() {
            let comments = std::mem::take(&mut self.comments);
            description
                .header
                .insert("comments".to_owned(), comments.into());
        }
        description.notes.append(&mut self.notes);
        self.left_out.append(&mut self.vertices.left_out);
        if !self.left_out.is_empty() {
            description
                .notes
                .push(format!("left out: {}", self.left_out.join(", ")));
        }
        Ok(WholeReader::new(geometry, description))
    }
}

/// Makes a path of each run of equal parts.
fn add_paths(geometry: &mut Geometry, parts: &[i64], objects: Option<&[i64]>) {
    let mut offsets = vec![0_u64];
    let mut ids = Vec::new();
    let mut end = 0_usize;
    for run in parts.chunk_by(|one, two| one == two) {
        let object = objects.and_then(|objects| objects.get(end)).or(run.first());
        ids.push(object.copied().unwrap_or(0));
        end = end.saturating_add(run.len());
        offsets.push(u64::try_from(end).unwrap_or(u64::MAX));
    }
    geometry.part_offsets = Some(offsets);
    geometry.part_objects = Some(ids);
}
