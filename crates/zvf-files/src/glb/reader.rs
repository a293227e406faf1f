//! Reads a file as a whole.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
};

use serde_json::Value;
use zvf::{
    Column, Geometry, GeometryBuilder, GeometryKind, NumericColumn, VertexOwners, numeric::Kind,
};

use super::{
    accessor::Accessor,
    scene::{PlacedMesh, is_mirror, list, number, placed_meshes, transformed},
};
use crate::{
    FileDescription, FileError, FileFault, FileFormat, FileReadOptions,
    input::ByteReader,
    object_ids::NamedObjects,
    polygons::PolygonList,
    values::{narrow, not_finite},
    whole::WholeReader,
};

/// Upper bound on the size of a scene in bytes. Parsed, it takes several times as much.
const MAX_SCENE: u64 = 16 << 20;
/// Upper bound on the number of listed parts that are left out.
const MAX_LEFT_OUT: usize = 32;

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
    let (scene, data) = chunks(&mut file)?;
    let read = || {
        let mut content = GlbContent::default();
        for placed in placed_meshes(&scene)? {
            content.add(&scene, &data, &placed)?;
        }
        for (key, what) in [
            ("animations", "animations"),
            ("cameras", "cameras"),
            ("materials", "materials"),
            ("skins", "skins"),
        ] {
            if !list(&scene, key).is_empty() {
                content.left_out.insert(what.to_owned());
            }
        }
        content.finish()
    };
    read().map_err(|fault| fault.of(path))
}

/// Reads the scene, and the data.
fn chunks(file: &mut ByteReader) -> Result<(Value, Vec<u8>), FileError> {
    let magic = file.array("the header")?;
    if magic != *b"glTF" {
        let expected = "a .glb file starts with glTF; convert other glTF files to .glb";
        let found = String::from_utf8_lossy(&magic).into_owned();
        return Err(file.error(FileFault::field("the start of the file", found, expected)));
    }
    let version = u32::from_le_bytes(file.array("the version")?);
    if version != 2 {
        let expected = "only version 2 is read; convert the file";
        return Err(file.error(FileFault::field("the version of glTF", version, expected)));
    }
    let length = u64::from(u32::from_le_bytes(file.array("the length of the file")?));
    if length > file.length() {
        let (needed, left) = (length, file.length());
        let what = "the file";
        return Err(file.error(FileFault::Truncated { what, needed, left }));
    }
    if length < file.length() {
        let more = file.length().saturating_sub(length);
        return Err(file.error(FileFault::Trailing(more)));
    }
    let (mut scene, mut data) = (None, Vec::new());
    while file.left() > 0 {
        let size = u64::from(u32::from_le_bytes(file.array("the length of a chunk")?));
        let kind: [u8; 4] = file.array("the type of a chunk")?;
        file.check(size, "a chunk")?;
        match (&kind, scene.is_some()) {
            (b"JSON", false) => {
                if size > MAX_SCENE {
                    let why = "the scene is larger than 16 MiB; write several files";
                    return Err(file.error(FileFault::Unsupported(why)));
                }
                let mut text = Vec::new();
                file.take(&mut text, size, "the scene")?;
                let parsed = serde_json::from_slice::<Value>(&text);
                scene = Some(parsed.map_err(|source| file.error(source.into()))?);
            }
            (_, false) => {
                let why = "the first chunk is no scene; the file is damaged";
                return Err(file.error(FileFault::Unsupported(why)));
            }
            (b"BIN\0", true) if data.is_empty() => file.take(&mut data, size, "the data")?,
            // Readers ignore other chunks.
            (_, true) => file.seek(file.at().saturating_add(size))?,
        }
    }
    let why = "the file has no scene; it is cut off or damaged";
    let scene = scene.ok_or_else(|| file.error(FileFault::Unsupported(why)))?;
    Ok((scene, data))
}

/// Colours of vertices, as they are stored.
#[derive(Debug)]
struct StoredColours {
    values: NumericColumn,
    /// Number of vertices that have them; others have no colours, or colours of another type.
    rows: usize,
}

/// The content of a file.
#[derive(Debug, Default)]
struct GlbContent {
    positions: Vec<f64>,
    colours: Option<StoredColours>,
    polygons: PolygonList,
    edges: Vec<u32>,
    /// Number of vertices that primitives name.
    corners: usize,
    /// Name of the mesh of each object.
    names: Vec<String>,
    /// The first vertex of each mesh.
    starts: Vec<usize>,
    left_out: BTreeSet<String>,
}

impl GlbContent {
    /// Adds a mesh.
    fn add(
        &mut self,
        scene: &Value,
        data: &[u8],
        placed: &PlacedMesh<'_>,
    ) -> Result<(), FileFault> {
        self.names.push(placed.name.to_owned());
        self.starts.push(self.vertices());
        // Primitives of a mesh may share their vertices.
        let mut known: HashMap<u64, u32> = HashMap::new();
        for primitive in list(placed.mesh, "primitives") {
            let attributes = primitive.get("attributes").unwrap_or(&Value::Null);
            self.note_attributes(primitive, attributes);
            let Some(place) = number(attributes, "POSITION")? else {
                self.leave_out("primitives without positions");
                continue;
            };
            let accessor = Accessor::parse(scene, data, place)?;
            if accessor.columns != 3 {
                let expected = "positions have 3 coordinates";
                let found = accessor.columns;
                return Err(FileFault::field("the size of a position", found, expected));
            }
            let first = match known.get(&place) {
                Some(first) => *first,
                None => {
                    let first = u32::try_from(self.vertices()).unwrap_or(u32::MAX);
                    self.add_vertices(data, accessor, placed)?;
                    self.add_colours(scene, data, attributes, accessor.rows)?;
                    known.insert(place, first);
                    first
                }
            };
            let indices = match number(primitive, "indices")? {
                Some(place) => Some(Accessor::parse(scene, data, place)?),
                None => None,
            };
            // Each number takes a byte of the data, unless primitives share it.
            let count = indices.map_or(accessor.rows, |indices| indices.rows);
            self.corners = self.corners.saturating_add(count);
            if self.corners > data.len() {
                return Err(shared());
            }
            let rows = u32::try_from(accessor.rows).unwrap_or(u32::MAX);
            let corners: Vec<u32> = match indices {
                Some(indices) => indices.indices()?.collect(),
                None => (0..rows).collect(),
            };
            if let Some(corner) = corners.iter().find(|corner| **corner >= rows) {
                let expected = "no vertex has this number; the file is damaged";
                return Err(FileFault::field("an index", corner, expected));
            }
            let corners: Vec<u32> = corners
                .iter()
                .map(|corner| corner.saturating_add(first))
                .collect();
            self.add_primitive(
                number(primitive, "mode")?,
                &corners,
                is_mirror(&placed.matrix),
            )?;
        }
        Ok(())
    }

    fn add_vertices(
        &mut self,
        data: &[u8],
        accessor: Accessor<'_>,
        placed: &PlacedMesh<'_>,
    ) -> Result<(), FileFault> {
        let vertices = self.vertices().saturating_add(accessor.rows);
        // A position takes 3 bytes or more, unless meshes share it.
        if vertices > data.len() || u32::try_from(vertices).is_err() {
            return Err(shared());
        }
        let moved = |position| transformed(&placed.matrix, position);
        self.positions.extend(accessor.positions().flat_map(moved));
        Ok(())
    }

    fn add_colours(
        &mut self,
        scene: &Value,
        data: &[u8],
        attributes: &Value,
        rows: usize,
    ) -> Result<(), FileFault> {
        let Some(place) = number(attributes, "COLOR_0")? else {
            return Ok(());
        };
        let accessor = Accessor::parse(scene, data, place)?;
        let kind = accessor.kind();
        let is_colour = matches!(accessor.columns, 3 | 4)
            && matches!(kind, Kind::UInt8 | Kind::UInt16 | Kind::Float32);
        if !is_colour || accessor.rows != rows {
            let expected = "colours have 3 or 4 numbers for each vertex; the file is damaged";
            return Err(FileFault::field(
                "the size of the colours",
                accessor.rows,
                expected,
            ));
        }
        let width = u32::try_from(accessor.columns).unwrap_or(0);
        let colours = self.colours.get_or_insert_with(|| StoredColours {
            values: NumericColumn::new(kind, width),
            rows: 0,
        });
        if (colours.values.kind, colours.values.width) == (kind, width) {
            colours.rows = colours.rows.saturating_add(rows);
            for row in accessor.row_bytes() {
                colours.values.bytes.extend_from_slice(row);
            }
        }
        Ok(())
    }

    /// Adds the faces or edges of a primitive.
    fn add_primitive(
        &mut self,
        mode: Option<u64>,
        corners: &[u32],
        is_mirrored: bool,
    ) -> Result<(), FileFault> {
        let multiple = |of: usize| {
            if corners.len().is_multiple_of(of) {
                return Ok(());
            }
            let expected = "triangles have 3 each, and lines 2; the file is damaged";
            Err(FileFault::field(
                "the number of corners",
                corners.len(),
                expected,
            ))
        };
        let mode = mode.unwrap_or(4);
        match mode {
            0 => {}
            1 => {
                multiple(2)?;
                self.edges.extend_from_slice(corners);
            }
            2 | 3 => {
                for pair in corners.windows(2) {
                    self.edges.extend_from_slice(pair);
                }
                if let ([first, .., last], 2) = (corners, mode) {
                    self.edges.extend([*last, *first]);
                }
            }
            4 => {
                multiple(3)?;
                for face in corners.as_chunks::<3>().0 {
                    self.push_face(*face, is_mirrored)?;
                }
            }
            5 => {
                for (number, face) in corners.windows(3).enumerate() {
                    let is_even = number.is_multiple_of(2);
                    if let [a, b, c] = face {
                        self.push_face([*a, *b, *c], is_mirrored == is_even)?;
                    }
                }
            }
            6 => {
                if let [centre, rest @ ..] = corners {
                    for pair in rest.windows(2) {
                        if let [a, b] = pair {
                            self.push_face([*centre, *a, *b], is_mirrored)?;
                        }
                    }
                }
            }
            other => {
                let expected = "modes are 0 to 6; the file is damaged";
                return Err(FileFault::field("the mode of a primitive", other, expected));
            }
        }
        Ok(())
    }

    /// Adds a triangle, which turns around if it is mirrored. Strips have some without an area.
    fn push_face(&mut self, [a, b, c]: [u32; 3], is_mirrored: bool) -> Result<(), FileFault> {
        if a == b || b == c || c == a {
            return Ok(());
        }
        self.polygons
            .push(if is_mirrored { [a, c, b] } else { [a, b, c] })
    }

    fn vertices(&self) -> usize {
        self.positions.len() / 3
    }

    fn leave_out(&mut self, what: &str) {
        if self.left_out.len() < MAX_LEFT_OUT {
            self.left_out.insert(what.to_owned());
        }
    }

    /// Notes the parts of a primitive that are left out.
    fn note_attributes(&mut self, primitive: &Value, attributes: &Value) {
        for name in attributes
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name)
        {
            if !matches!(name.as_str(), "POSITION" | "COLOR_0") {
                let name: String = name.chars().take(24).collect();
                self.leave_out(&format!("attribute {name}"));
            }
        }
        if !list(primitive, "targets").is_empty() {
            self.leave_out("morph targets");
        }
    }

    fn finish(mut self) -> Result<WholeReader, FileFault> {
        let vertices = self.vertices();
        if vertices == 0 {
            return Err(FileFault::Empty);
        }
        let is_single = |number: &f64| f64::from(narrow(*number)).to_bits() == number.to_bits();
        let numbers = std::mem::take(&mut self.positions);
        let positions = if numbers.iter().all(is_single) {
            NumericColumn::float32(3, numbers.into_iter().map(narrow))
        } else {
            NumericColumn::float64(3, numbers)
        };
        if let Some(value) = not_finite(&positions) {
            return Err(FileFault::NotFinite(value));
        }
        let mut geometry = Geometry::builder(positions);
        let has_faces = self.polygons.len() > 0;
        let kind = match (has_faces, self.edges.is_empty()) {
            (true, _) => GeometryKind::Mesh,
            (false, false) => GeometryKind::Graphs,
            (false, true) => GeometryKind::Points,
        };
        if has_faces && !self.edges.is_empty() {
            self.leave_out("lines, beside triangles");
        }
        match self.colours.take() {
            Some(colours) if colours.rows == vertices => {
                let name = if colours.values.width == 4 {
                    "rgba"
                } else {
                    "rgb"
                };
                geometry.vertex.push(Column::new(name, colours.values));
            }
            Some(_) => self.leave_out("colours, which some vertices lack or have of another type"),
            None => {}
        }
        self.add_objects(&mut geometry, vertices);
        if has_faces {
            self.polygons.add_to(&mut geometry, Vec::new())?;
        } else {
            geometry.links.ends = self.edges.iter().copied().map(i64::from).collect();
        }
        let mut description = FileDescription::new(FileFormat::Glb, kind).axes_xyz(None);
        if !self.left_out.is_empty() {
            let list: Vec<&str> = self.left_out.iter().map(String::as_str).collect();
            description
                .notes
                .push(format!("left out: {}", list.join(", ")));
        }
        Ok(WholeReader::new(geometry, description))
    }

    /// Adds objects, if there are several meshes.
    fn add_objects(&self, geometry: &mut GeometryBuilder, vertices: usize) {
        let ends = self.starts.iter().skip(1).copied().chain([vertices]);
        let sizes = self
            .starts
            .iter()
            .zip(ends)
            .map(|(start, end)| end.saturating_sub(*start));
        let meshes: BTreeMap<i64, (&str, usize)> = (1..)
            .zip(self.names.iter().map(String::as_str).zip(sizes))
            .filter(|(_, (_, size))| *size > 0)
            .collect();
        if meshes.len() < 2 {
            return;
        }
        let names = meshes
            .iter()
            .map(|(place, (name, _))| (*place, Some(*name)));
        let named = NamedObjects::new(names);
        let owners = meshes
            .iter()
            .flat_map(|(place, (_, size))| std::iter::repeat_n(named.id(*place), *size));
        geometry.owners = VertexOwners::Vertices(owners.collect());
        named.add_to(geometry);
    }
}

/// Returns the fault of parts that read the same data, so that they could take any memory.
fn shared() -> FileFault {
    FileFault::Unsupported(
        "parts of the scene share their data; write each part with data of its own",
    )
}
