//! Reads points, and the vertices and faces of large meshes, in batches.

use std::error::Error;

use zvf::{
    Geometry, GeometryBuilder, GeometryKind, GeometrySource, LinkNumbering, NumericColumn,
    VertexOwners, numeric::Kind,
};

use super::{
    columns::PropertyColumns,
    described,
    header::{ElementDeclaration, PlyForm, PlyHeader},
    read_faces,
    values::PlyValues,
};
use crate::{
    FileDescription, FileError, FileFault, FileReadOptions, GeometryReader, input::ByteReader,
    polygons::PolygonList, reader::built, values::not_finite,
};

/// Number of rows that are read together to look at them.
const LOOK: u64 = 1 << 16;

/// A PLY file that is read in batches.
#[derive(Debug)]
pub(super) struct PlyReader {
    values: PlyValues,
    elements: Vec<ElementDeclaration>,
    /// Offset of the data, and the number of lines before them.
    start: (u64, u64),
    description: FileDescription,
    positions: Kind,
    /// True if the property `object_id` has the objects of the vertices.
    has_objects: bool,
    /// The faces of a mesh.
    faces: Option<FaceForm>,
    vertices: u64,
    /// The current element.
    element: usize,
    /// Number of its rows that were read.
    row: u64,
}

/// Form of the links that faces become.
#[derive(Clone, Copy, Debug)]
struct FaceForm {
    /// Number of corners of all faces; `None` if they become triangles.
    corners: Option<usize>,
}

/// Returns whether a file is read in batches: points, and meshes larger than the memory for them
/// whose vertices precede their faces.
pub(super) fn is_in_batches(header: &PlyHeader, length: u64, options: &FileReadOptions) -> bool {
    let place = |name: &str| header.elements.iter().position(|it| it.name == name);
    let element = |name: &str| header.elements.iter().find(|it| it.name == name);
    let Some(vertices) = element("vertex") else {
        return false;
    };
    let has_positions = ["x", "y", "z"]
        .iter()
        .all(|name| vertices.scalar(name).is_some());
    let are_paths =
        vertices.scalar("part").is_some() && options.kind.is_some_and(GeometryKind::is_paths);
    if !has_positions || vertices.rows == 0 || are_paths {
        return false;
    }
    match element("face").filter(|faces| faces.rows > 0) {
        Some(faces) => {
            let lists = faces.properties.iter().filter(|it| it.is_corners());
            lists.count() == 1 && place("vertex") < place("face") && length > options.in_memory
        }
        None => {
            let is_graph = element("edge").is_some_and(|edges| {
                let ends = ["vertex1", "vertex2"];
                ends.iter().all(|name| edges.scalar(name).is_some())
            });
            !is_graph
        }
    }
}

impl PlyReader {
    /// Starts with the data after a header. Reads the faces of a mesh once to learn their form.
    pub(super) fn open(mut file: ByteReader, header: PlyHeader) -> Result<Self, FileError> {
        let start = (file.at(), header.lines);
        let is_cut = header.form == PlyForm::Ascii && !ends_with_line(&mut file)?;
        file.seek(start.0)?;
        let has_faces = header
            .elements
            .iter()
            .any(|element| element.name == "face" && element.rows > 0);
        let kind = if has_faces {
            GeometryKind::Mesh
        } else {
            GeometryKind::Points
        };
        let values = PlyValues::new(file, header.form, header.lines);
        let elements = header.elements.clone();
        let mut least = 0_u64;
        for element in &elements {
            let rows = element.least(header.form);
            values.check(rows)?;
            // Rows without properties take no bytes.
            if !element.properties.is_empty() {
                least = least.saturating_add(rows);
            }
        }
        values.check(least)?;
        let mut reader = Self {
            values,
            elements,
            start,
            description: described(header, kind, is_cut),
            positions: Kind::Float32,
            has_objects: false,
            faces: None,
            vertices: 0,
            element: 0,
            row: 0,
        };
        reader.look(has_faces)?;
        reader.restart()?;
        Ok(reader)
    }

    /// Finds the types of what the data hold.
    fn look(&mut self, has_faces: bool) -> Result<(), FileError> {
        let mut bytes = 0_u64;
        for at in 0..self.elements.len() {
            let Some(element) = self.elements.get(at).cloned() else {
                continue;
            };
            let in_file = |fault: FileFault| fault.of(self.values.path());
            match element.name.as_str() {
                "vertex" => {
                    self.vertices = element.rows;
                    let mut none = PropertyColumns::of(&element);
                    self.positions = none.positions().map_err(in_file)?.kind;
                    self.has_objects = self.look_at_objects(&element, has_faces)?;
                    let row = element.properties.iter().map(|it| it.kind.size());
                    let row = u64::try_from(row.sum::<usize>()).unwrap_or(u64::MAX);
                    bytes = bytes.saturating_add(element.rows.saturating_mul(row));
                }
                "face" if has_faces => {
                    let form = self.face_form(&element)?;
                    let corners = u64::try_from(form.corners.unwrap_or(3)).unwrap_or(8);
                    let row = corners.saturating_mul(8);
                    bytes = bytes.saturating_add(element.rows.saturating_mul(row));
                    self.faces = Some(form);
                }
                // Only what precedes the faces is read now.
                _ if has_faces && self.faces.is_none() => {
                    PropertyColumns::skip(&element, element.rows, &mut self.values)?;
                }
                _ => {}
            }
        }
        self.description.bytes = bytes;
        Ok(())
    }

    /// Returns whether `object_id` has whole numbers, and skips the vertices if their faces are to be
    /// read.
    fn look_at_objects(
        &mut self,
        element: &ElementDeclaration,
        has_faces: bool,
    ) -> Result<bool, FileError> {
        let ids = element.scalar("object_id").map(|property| property.kind);
        let is_float = matches!(ids, Some(Kind::Float32 | Kind::Float64));
        if !is_float {
            if has_faces {
                PropertyColumns::skip(element, element.rows, &mut self.values)?;
            }
            return Ok(ids.is_some());
        }
        let mut are_whole = true;
        let mut left = element.rows;
        if !has_faces {
            self.skip_before("vertex")?;
        }
        while left > 0 {
            let rows = left.min(LOOK);
            let mut columns = PropertyColumns::read(element, rows, &mut self.values)?;
            are_whole &= columns.take_integers("object_id").is_some();
            left = left.saturating_sub(rows);
        }
        Ok(are_whole)
    }

    /// Reads all faces for the form of their links.
    fn face_form(&mut self, element: &ElementDeclaration) -> Result<FaceForm, FileError> {
        let mut common: Option<usize> = None;
        let mut left = element.rows;
        while left > 0 {
            let rows = left.min(LOOK);
            let mut polygons = PolygonList::default();
            read_faces(element, rows, &mut self.values, &mut polygons)?;
            let corners = polygons.common_corners();
            if corners.is_none() || common.is_some_and(|common| Some(common) != corners) {
                return Ok(FaceForm { corners: None });
            }
            common = corners;
            left = left.saturating_sub(rows);
        }
        Ok(FaceForm { corners: common })
    }

    /// Skips the elements before the one of this name.
    fn skip_before(&mut self, name: &str) -> Result<(), FileError> {
        let before = self.elements.iter().take_while(|it| it.name != name);
        for element in before {
            PropertyColumns::skip(element, element.rows, &mut self.values)?;
        }
        Ok(())
    }

    fn restart(&mut self) -> Result<(), FileError> {
        let (at, lines) = self.start;
        self.values.restart(at, lines)?;
        self.element = 0;
        self.row = 0;
        Ok(())
    }

    fn batch(&mut self, rows: usize) -> Result<Option<GeometryBuilder>, FileError> {
        while let Some(element) = self.elements.get(self.element) {
            let left = element.rows.saturating_sub(self.row);
            let is_mesh = self.faces.is_some();
            let is_read = element.name == "vertex" || is_mesh && element.name == "face";
            if is_read && left > 0 {
                let rows = u64::try_from(rows.max(1)).unwrap_or(u64::MAX).min(left);
                let first = self.row;
                self.row = self.row.saturating_add(rows);
                let element = element.clone();
                return match element.name.as_str() {
                    "vertex" => self.vertex_batch(&element, rows).map(Some),
                    _ => self.face_batch(&element, first, rows).map(Some),
                };
            }
            PropertyColumns::skip(element, left, &mut self.values)?;
            self.element = self.element.saturating_add(1);
            self.row = 0;
        }
        self.values.finish()?;
        Ok(None)
    }

    fn vertex_batch(
        &mut self,
        element: &ElementDeclaration,
        rows: u64,
    ) -> Result<GeometryBuilder, FileError> {
        let mut columns = PropertyColumns::read(element, rows, &mut self.values)?;
        let in_file = |fault: FileFault| fault.of(self.values.path());
        let positions = columns.positions().map_err(in_file)?;
        if let Some(value) = not_finite(&positions) {
            return Err(in_file(FileFault::NotFinite(value)));
        }
        let mut geometry = Geometry::builder(positions);
        if self.has_objects
            && let Some(ids) = columns.take_integers("object_id")
        {
            geometry.owners = VertexOwners::Vertices(ids);
        }
        geometry.vertex = columns.attributes();
        if let Some(form) = self.faces
            && let Some(faces) = self.elements.iter().find(|it| it.name == "face")
        {
            // Writers and the engine learn the attributes of links from the first batch.
            let none = PropertyColumns::of(faces).attributes();
            PolygonList::default().add_links(form.corners, 0, &mut geometry, none);
        }
        Ok(geometry)
    }

    fn face_batch(
        &mut self,
        element: &ElementDeclaration,
        first: u64,
        rows: u64,
    ) -> Result<GeometryBuilder, FileError> {
        let mut polygons = PolygonList::default();
        let mut attributes = read_faces(element, rows, &mut self.values, &mut polygons)?;
        let checked = polygons.check(self.vertices);
        checked.map_err(|fault| fault.of(self.values.path()))?;
        let mut geometry = Geometry::builder(NumericColumn::new(self.positions, 3));
        let corners = self.faces.and_then(|form| form.corners);
        let first = u32::try_from(first).unwrap_or(u32::MAX);
        polygons.add_links(corners, first, &mut geometry, attributes.attributes());
        Ok(geometry)
    }
}

/// Returns whether the last byte of a file is a line end.
fn ends_with_line(file: &mut ByteReader) -> Result<bool, FileError> {
    let last = file.length().saturating_sub(1);
    file.seek(last)?;
    Ok(file.array("the last line")? == *b"\n")
}

impl GeometrySource for PlyReader {
    fn next(&mut self, vertices: usize) -> Result<Option<Geometry>, Box<dyn Error + Send + Sync>> {
        built(self.batch(vertices)?)
    }

    fn rewind(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.restart()?)
    }

    fn tables(&self) -> Result<Geometry, Box<dyn Error + Send + Sync>> {
        Ok(Geometry::new(NumericColumn::new(self.positions, 3)))
    }

    fn link_numbering(&self) -> LinkNumbering {
        LinkNumbering::Input
    }
}

impl GeometryReader for PlyReader {
    fn description(&self) -> &FileDescription {
        &self.description
    }
}
