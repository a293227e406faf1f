//! OBJ, the text format of Wavefront: meshes and lines.
//!
//! The first word of a line decides; `\` at the end of a line continues it.
//!
//! | line | meaning | in the geometry |
//! |---|---|---|
//! | `v x y z` or `v x y z r g b` | vertex | position, `vertex.rgb` |
//! | `f a b c …`, a = `v`, `v/vt`, `v//vn`, `v/vt/vn` | polygon, from 1; negative numbers count back | links |
//! | `l a b …` | polyline | edges, in a file without polygons |
//! | `o NAME`, `g NAME` | object from here on | objects, with `object.name`, numbered from 1; `object_ID` has this id and no name |
//! | `p`, `vt`, `vn`, `s`, `usemtl`, `mtllib`, comments | | left out, with a note; other files are not opened |
//!
//! A vertex belongs to the first object that uses it. If two objects share a vertex, the file is one
//! object. Coordinates are float32 if its shortest text is the number of the file, otherwise float64.

mod writer;

pub(crate) use writer::write;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
};

use zvf::{
    Column, Geometry, GeometryBuilder, GeometryKind, NumericColumn, VertexOwners, numeric::Kind,
};

use crate::{
    FileDescription, FileError, FileFault, FileFormat, FileReadOptions,
    input::ByteReader,
    object_ids::NamedObjects,
    polygons::PolygonList,
    text::{LineReader, NO_LINE_END, number},
    values::{is_float32, narrow},
    whole::WholeReader,
};

/// The content of a file.
#[derive(Debug, Default)]
struct ObjContent {
    positions: Vec<f64>,
    needs_float64: bool,
    colours: Vec<f32>,
    polygons: PolygonList,
    edges: Vec<u32>,
    /// Corners of the last line.
    corners: Vec<u32>,
    /// Names of objects, in the order in which they first occur.
    names: Vec<String>,
    /// The place of each name.
    places: HashMap<String, usize>,
    /// The place of the current name, from 1; 0 before all names.
    current: i64,
    /// The object of each vertex, from the polygons and lines that use it.
    owners: BTreeMap<u32, i64>,
    /// True if objects share a vertex.
    shares: bool,
    left_out: BTreeSet<String>,
    /// True if the last line has no line end.
    is_cut: bool,
}

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
    let file = ByteReader::open(path, options.unpacked)?;
    let mut lines = LineReader::new(file);
    let mut content = ObjContent::default();
    let mut joined = String::new();
    while let Some(line) = lines.next()? {
        let continues = line.strip_suffix('\\');
        if continues.is_none() && joined.is_empty() {
            let added = content.add(line);
            added.map_err(|fault| lines.error(fault))?;
            continue;
        }
        joined.push_str(continues.unwrap_or(line));
        if continues.is_some() {
            joined.push(' ');
            continue;
        }
        let added = content.add(&joined);
        added.map_err(|fault| lines.error(fault))?;
        joined.clear();
    }
    if !joined.is_empty() {
        let added = content.add(&joined);
        added.map_err(|fault| lines.error(fault))?;
    }
    content.is_cut = lines.is_cut();
    content.finish(path)
}

/// Returns the words of a line before a comment at its end.
fn before_comment<'a>(words: impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
    words.take_while(|word| !word.starts_with('#'))
}

impl ObjContent {
    fn add(&mut self, line: &str) -> Result<(), FileFault> {
        let mut words = line.split_ascii_whitespace();
        match words.next().unwrap_or_default() {
            "v" => {
                let mut words = before_comment(words);
                for what in ["x", "y", "z"] {
                    let text = words.next();
                    let value = number(text, what)?;
                    self.needs_float64 =
                        self.needs_float64 || !is_float32(text.unwrap_or_default(), value);
                    self.positions.push(value);
                }
                self.colour(words)?;
            }
            "f" => {
                self.take_corners(before_comment(words))?;
                self.own();
                self.polygons.push(self.corners.iter().copied())?;
            }
            "l" => {
                self.take_corners(before_comment(words))?;
                self.own();
                for pair in self.corners.windows(2) {
                    self.edges.extend_from_slice(pair);
                }
            }
            "o" | "g" => {
                let name = words.collect::<Vec<&str>>().join(" ");
                let next = self.names.len();
                let place = *self.places.entry(name.clone()).or_insert(next);
                if place == next {
                    self.names.push(name);
                }
                self.current = i64::try_from(place).unwrap_or(i64::MAX).saturating_add(1);
            }
            "" => {}
            word if word.starts_with('#') => {}
            word => {
                let word: String = word.chars().take(16).collect();
                if self.left_out.len() < 32 {
                    self.left_out.insert(format!("lines {word}"));
                }
            }
        }
        Ok(())
    }

    /// Adds the words after the coordinates of a vertex.
    fn colour<'a>(&mut self, mut words: impl Iterator<Item = &'a str>) -> Result<(), FileFault> {
        let Some(red) = words.next() else {
            return Ok(());
        };
        if let (Some(green), Some(blue), None) = (words.next(), words.next(), words.next()) {
            for text in [red, green, blue] {
                self.colours.push(narrow(number(Some(text), "a colour")?));
            }
        } else {
            self.left_out.insert("weights of vertices".to_owned());
        }
        Ok(())
    }

    /// Parses corners, as `7`, `7/1/2` or `-1`, to rows of vertices.
    fn take_corners<'a>(&mut self, words: impl Iterator<Item = &'a str>) -> Result<(), FileFault> {
        let vertices = i64::try_from(self.positions.len() / 3).unwrap_or(i64::MAX);
        let corner = |word: &str| {
            let first = word.split('/').next().unwrap_or_default();
            let number: Option<i64> = first.parse().ok();
            let number = number.ok_or_else(|| FileFault::Number {
                what: "the number of a vertex",
                text: word.chars().take(24).collect(),
            })?;
            let row = if number < 0 {
                vertices.saturating_add(number)
            } else {
                number.saturating_sub(1)
            };
            let row = u32::try_from(row).ok().filter(|_| number != 0);
            row.ok_or_else(|| {
                let expected = "vertices count from 1, and from -1 backwards";
                FileFault::field("the number of a vertex", number, expected)
            })
        };
        self.corners.clear();
        for word in words {
            self.corners.push(corner(word)?);
        }
        Ok(())
    }

    /// Gives the vertices of the last line to the current object.
    fn own(&mut self) {
        if self.names.is_empty() {
            // Most files have one object: nothing is kept for it.
            return;
        }
        let object = self.current;
        for corner in &self.corners {
            let owner = *self.owners.entry(*corner).or_insert(object);
            self.shares |= owner != object;
        }
    }

    fn finish(mut self, path: &Path) -> Result<WholeReader, FileError> {
        let vertices = self.positions.len() / 3;
        if vertices == 0 {
            return Err(FileFault::Empty.of(path));
        }
        let positions = if self.needs_float64 {
            NumericColumn::float64(3, std::mem::take(&mut self.positions))
        } else {
            NumericColumn::float32(
                3,
                std::mem::take(&mut self.positions).into_iter().map(narrow),
            )
        };
        debug_assert!(matches!(positions.kind, Kind::Float32 | Kind::Float64));
        let mut geometry = Geometry::builder(positions);
        let has_faces = self.polygons.len() > 0;
        let kind = match (has_faces, self.edges.is_empty()) {
            (true, _) => GeometryKind::Mesh,
            (false, false) => GeometryKind::Graphs,
            (false, true) => GeometryKind::Points,
        };
        let mut description = FileDescription::new(FileFormat::Obj, kind).axes_xyz(None);
        if has_faces && !self.edges.is_empty() {
            self.left_out.insert("lines l, beside polygons".to_owned());
        }
        if self.colours.len() == vertices.saturating_mul(3) {
            geometry.vertex.push(Column::new(
                "rgb",
                NumericColumn::float32(3, std::mem::take(&mut self.colours)),
            ));
        } else if !self.colours.is_empty() {
            self.left_out
                .insert("colours, which some vertices lack".to_owned());
        }
        self.add_objects(&mut geometry, vertices);
        let Self {
            polygons,
            edges,
            left_out,
            is_cut,
            ..
        } = self;
        let linked = if has_faces {
            polygons.add_to(&mut geometry, Vec::new())
        } else {
            geometry.links.ends = edges.iter().copied().map(i64::from).collect();
            let count = u64::try_from(vertices).unwrap_or(u64::MAX);
            match edges.iter().find(|end| u64::from(**end) >= count) {
                None => Ok(()),
                Some(end) => {
                    let expected = "no vertex has this number; the file is damaged";
                    Err(FileFault::field("the end of a line", end, expected))
                }
            }
        };
        linked.map_err(|fault| fault.of(path))?;
        if is_cut {
            description.notes.push(NO_LINE_END.to_owned());
        }
        if !left_out.is_empty() {
            let list: Vec<&str> = left_out.iter().map(String::as_str).collect();
            description
                .notes
                .push(format!("left out: {}", list.join(", ")));
        }
        Ok(WholeReader::new(geometry, description))
    }

    /// Adds objects, if the file has names and no vertex belongs to two of them.
    fn add_objects(&mut self, geometry: &mut GeometryBuilder, vertices: usize) {
        let used: BTreeSet<i64> = self.owners.values().copied().collect();
        if self.shares || used.is_empty() {
            if self.shares {
                self.left_out
                    .insert("objects, which share vertices".to_owned());
            }
            return;
        }
        // Vertices without an object belong to object 0.
        let rows = (0..vertices).map(|row| {
            let row = u32::try_from(row).ok();
            row.and_then(|row| self.owners.get(&row))
                .copied()
                .unwrap_or(0)
        });
        let owners: Vec<i64> = rows.collect();
        let places: BTreeSet<i64> = owners.iter().copied().collect();
        let named = NamedObjects::new(places.iter().map(|place| (*place, self.name(*place))));
        let owners = owners.iter().map(|place| named.id(*place)).collect();
        geometry.owners = VertexOwners::Vertices(owners);
        named.add_to(geometry);
    }

    /// Returns the name at a place from 1.
    fn name(&self, place: i64) -> Option<&str> {
        let at = usize::try_from(place.checked_sub(1)?).ok()?;
        self.names.get(at).map(String::as_str)
    }
}
