//! Writes GLB files in batches.

use std::{
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tempfile::SpooledTempFile;
use zvf::{Column, QueryResult, Scope};

use super::{FLOAT, UNSIGNED_BYTE, UNSIGNED_INT};
use crate::{
    FileError, FileFault, GroupTables, ResultWriter, WrittenResult,
    input::length_of,
    values::{AxisOrder, narrow, narrow_coordinate, numbers, to_f64},
    writer::{
        OutputSink, groups_left_out, has_object_ids, list_divided_faces, list_left_out,
        object_ids_left_out, paths, spool,
    },
};

/// Size of a vertex in its temporary file: three float64.
const VERTEX: usize = 24;
/// Number of vertices that are converted together.
const BLOCK: usize = 1 << 12;

/// Names of attributes that are colours.
const COLOURS: [&str; 4] = ["rgba", "rgb", "color", "colors"];

/// A GLB file that is written in batches.
#[derive(Debug)]
pub struct GlbWriter {
    path: PathBuf,
    positions: SpooledTempFile,
    vertices: u64,
    min: [f64; 3],
    max: [f64; 3],
    /// Red, green, blue and alpha of vertices.
    colours: SpooledTempFile,
    coloured: u64,
    indices: SpooledTempFile,
    index_count: u64,
    has_paths: bool,
    /// Number of ends of a link.
    width: u32,
    left_out: Vec<String>,
    has_object_ids: bool,
}

impl GlbWriter {
    /// Creates a writer. The file is created at the end.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            positions: spool(path),
            vertices: 0,
            min: [f64::INFINITY; 3],
            max: [f64::NEG_INFINITY; 3],
            colours: spool(path),
            coloured: 0,
            indices: spool(path),
            index_count: 0,
            has_paths: false,
            width: 0,
            left_out: Vec::new(),
            has_object_ids: false,
        }
    }

    /// Lists what the format cannot hold of a batch, whose attribute at a place is its colours.
    fn plan(&mut self, batch: &QueryResult, colours: Option<usize>) {
        let colours = colours.and_then(|place| batch.vertex.get(place));
        let holds = |scope: Scope, column: &Column| {
            scope == Scope::Vertex && colours.is_some_and(|own| own.name == column.name)
        };
        list_left_out(&mut self.left_out, batch, "glb", holds);
        list_divided_faces(&mut self.left_out, batch, "glb");
    }

    fn add(&mut self, batch: &QueryResult) -> Result<(), FileFault> {
        let coordinates = AxisOrder::of(batch, "glb")?;
        let is_named = |column: &Column| COLOURS.contains(&column.name.as_str());
        let mut places = batch.vertex.iter().enumerate();
        let colours = places.find_map(|(place, column)| {
            let colours = is_named(column).then(|| colour_bytes(column));
            Some((place, colours.flatten()?))
        });
        self.plan(batch, colours.as_ref().map(|(place, _)| *place));
        if !self.has_object_ids && has_object_ids(batch) {
            self.has_object_ids = true;
            self.left_out.push(object_ids_left_out("glb"));
        }
        let rows = coordinates.rows(&batch.positions)?;
        let first = self.vertices;
        self.vertices = first.saturating_add(length_of(&rows));
        for position in &rows {
            for ((value, min), max) in position.iter().zip(&mut self.min).zip(&mut self.max) {
                *min = min.min(*value);
                *max = max.max(*value);
            }
        }
        let bytes = rows.into_iter().flatten().flat_map(f64::to_le_bytes);
        self.positions.write_all(&bytes.collect::<Vec<u8>>())?;
        if let Some((_, colours)) = colours {
            self.coloured = self.coloured.saturating_add(length_of(&colours));
            self.colours.write_all(&colours.into_flattened())?;
        }
        let mut indices = Vec::new();
        if batch.parts.is_some() {
            self.has_paths = true;
            for path in paths(batch, "glb")? {
                for row in path.start..path.end.saturating_sub(1).max(path.start) {
                    let row = u64::try_from(row).unwrap_or(u64::MAX).saturating_add(first);
                    push(row, &mut indices)?;
                    push(row.saturating_add(1), &mut indices)?;
                }
            }
        } else if let Some(links) = &batch.links {
            self.width = links.width;
            let width = usize::try_from(links.width).unwrap_or(usize::MAX);
            for ends in links.ends.chunks_exact(width.max(1)) {
                self.push_link(ends, &mut indices)?;
            }
        }
        self.index_count = self
            .index_count
            .saturating_add(length_of(&indices).checked_div(4).unwrap_or(0));
        Ok(self.indices.write_all(&indices)?)
    }

    /// Adds the indices of an edge, or of a polygon as a fan of triangles around its first corner.
    fn push_link(&self, ends: &[u64], indices: &mut Vec<u8>) -> Result<(), FileFault> {
        if ends.iter().any(|end| *end >= self.vertices) {
            let why = "a link refers to a vertex that does not exist";
            return Err(FileFault::Broken(why));
        }
        match ends {
            [] | [_] => Ok(()),
            [one, two] => push(*one, indices).and_then(|()| push(*two, indices)),
            [first, rest @ ..] => {
                for pair in rest.windows(2) {
                    for corner in std::iter::once(first).chain(pair) {
                        push(*corner, indices)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Returns the scene, and the size of its data.
    fn scene(&self, centre: [f64; 3]) -> (Value, u64) {
        let local = |bound: [f64; 3]| {
            let [x, y, z] = bound;
            [x - centre[0], y - centre[1], z - centre[2]].map(narrow)
        };
        // Without indices, lines and triangles would join consecutive vertices.
        let mode = match (self.has_paths, self.width) {
            _ if self.index_count == 0 => 0,
            (true, _) | (false, 2) => 1,
            (false, _) => 4,
        };
        let mut size = self.vertices.saturating_mul(12);
        let mut views =
            vec![json!({"buffer": 0, "byteOffset": 0, "byteLength": size, "target": 34962})];
        let mut accessors = vec![json!({
            "bufferView": 0, "componentType": FLOAT, "count": self.vertices, "type": "VEC3",
            "min": local(self.min), "max": local(self.max),
        })];
        let mut attributes = json!({"POSITION": 0});
        if self.coloured == self.vertices {
            let length = self.coloured.saturating_mul(4);
            views.push(
                json!({"buffer": 0, "byteOffset": size, "byteLength": length, "target": 34962}),
            );
            accessors.push(json!({
                "bufferView": 1, "componentType": UNSIGNED_BYTE, "normalized": true,
                "count": self.vertices, "type": "VEC4",
            }));
            if let Some(attributes) = attributes.as_object_mut() {
                attributes.insert("COLOR_0".to_owned(), json!(1));
            }
            size = size.saturating_add(length);
        }
        let mut primitive = json!({"attributes": attributes, "mode": mode});
        if self.index_count > 0 {
            let length = self.index_count.saturating_mul(4);
            views.push(
                json!({"buffer": 0, "byteOffset": size, "byteLength": length, "target": 34963}),
            );
            let accessor = json!({
                "bufferView": views.len().saturating_sub(1), "componentType": UNSIGNED_INT,
                "count": self.index_count, "type": "SCALAR",
            });
            accessors.push(accessor);
            if let Some(primitive) = primitive.as_object_mut() {
                let number: Value = accessors.len().saturating_sub(1).into();
                primitive.insert("indices".to_owned(), number);
            }
            size = size.saturating_add(length);
        }
        // All parts have multiples of 4 bytes.
        let scene = json!({
            "asset": {"version": "2.0", "generator": "zvf"},
            "scene": 0, "scenes": [{"nodes": [0]}],
            "nodes": [{"mesh": 0, "translation": centre}],
            "meshes": [{"primitives": [primitive]}],
            "buffers": [{"byteLength": size}],
            "bufferViews": views, "accessors": accessors,
        });
        (scene, size)
    }

    fn copy_to(&mut self, sink: &mut OutputSink) -> Result<(), FileFault> {
        if self.vertices == 0 {
            // glTF has no buffers without bytes.
            let asset = json!({"version": "2.0", "generator": "zvf"});
            let scene = json!({"asset": asset, "scene": 0, "scenes": [{}]});
            return put_header(sink, &scene, 0);
        }
        let centre = [0, 1, 2].map(|axis: usize| {
            let at = |bound: &[f64; 3]| bound.get(axis).copied().unwrap_or(0.0);
            f64::midpoint(at(&self.min), at(&self.max))
        });
        let (scene, size) = self.scene(centre);
        put_header(sink, &scene, size)?;
        self.positions.rewind()?;
        let mut left = self.vertices;
        let mut block = Vec::new();
        while left > 0 {
            let rows = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
            block.resize(rows.saturating_mul(VERTEX), 0);
            self.positions.read_exact(&mut block)?;
            let (numbers, _) = block.as_chunks::<8>();
            let mut vertices = Vec::with_capacity(rows.saturating_mul(12));
            for (number, centre) in numbers.iter().zip(centre.iter().cycle()) {
                let near = narrow_coordinate(f64::from_le_bytes(*number) - centre, "glb")?;
                vertices.extend(near.to_le_bytes());
            }
            sink.write_all(&vertices)?;
            left = left.saturating_sub(u64::try_from(rows).unwrap_or(u64::MAX));
        }
        if self.coloured == self.vertices {
            self.colours.rewind()?;
            io::copy(&mut self.colours, sink)?;
        }
        self.indices.rewind()?;
        io::copy(&mut self.indices, sink)?;
        Ok(())
    }
}

/// Writes what precedes the data of a scene. A scene without data has no chunk for them.
fn put_header(sink: &mut OutputSink, scene: &Value, size: u64) -> Result<(), FileFault> {
    let mut text = scene.to_string().into_bytes();
    text.resize(text.len().next_multiple_of(4), b' ');
    let word = |length: u64| u32::try_from(length).map_err(|_| too_large());
    let chunk = if size == 0 { 0 } else { size.saturating_add(8) };
    let length = length_of(&text).saturating_add(chunk).saturating_add(20);
    sink.write_all(b"glTF")?;
    for number in [2, word(length)?, word(length_of(&text))?] {
        sink.write_all(&number.to_le_bytes())?;
    }
    sink.write_all(b"JSON")?;
    sink.write_all(&text)?;
    if size > 0 {
        sink.write_all(&word(size)?.to_le_bytes())?;
        sink.write_all(b"BIN\0")?;
    }
    Ok(())
}

/// Appends the number of a vertex.
fn push(row: u64, indices: &mut Vec<u8>) -> Result<(), FileFault> {
    let row = u32::try_from(row).ok().filter(|row| *row < u32::MAX);
    indices.extend_from_slice(&row.ok_or_else(too_large)?.to_le_bytes());
    Ok(())
}

fn too_large() -> FileFault {
    FileFault::Result {
        format: "glb",
        holds: "up to 4 GiB",
        remedy: "select less, or write ply",
    }
}

/// Converts colours to bytes: integers as they are, floats from 0 to 1. Returns `None` for other
/// attributes than three or four numbers.
fn colour_bytes(column: &Column) -> Option<Vec<[u8; 4]>> {
    let values = numbers(column)?;
    let width = values.row_len();
    if !matches!(width, 3 | 4) {
        return None;
    }
    let is_float = values.kind.name().starts_with("float");
    let is_wide = values.kind.name().ends_with("16") && !is_float;
    let scale = match (is_float, is_wide) {
        (true, _) => 255.0,
        (false, true) => 1.0 / 257.0,
        (false, false) => 1.0,
    };
    let floats = to_f64(&values)?;
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number is clamped to a byte"
    )]
    let byte = |value: f64| (value * scale).round().clamp(0.0, 255.0) as u8;
    let rows = floats.chunks_exact(width).map(|row| {
        let at = |channel: usize, other: u8| row.get(channel).copied().map_or(other, byte);
        [at(0, 0), at(1, 0), at(2, 0), at(3, 255)]
    });
    Some(rows.collect())
}

impl ResultWriter for GlbWriter {
    fn write(&mut self, batch: &QueryResult) -> Result<(), FileError> {
        self.add(batch).map_err(|fault| fault.of(&self.path))
    }

    fn finish(mut self: Box<Self>, tables: &GroupTables) -> Result<WrittenResult, FileError> {
        let mut sink = OutputSink::create(&self.path)?;
        let copied = self.copy_to(&mut sink);
        copied.map_err(|fault| fault.of(&self.path))?;
        if (1..self.vertices).contains(&self.coloured) {
            let line = "colours, which some vertices lack: not supported by glb";
            self.left_out.push(line.to_owned());
        }
        self.left_out.extend(groups_left_out(tables, "glb"));
        Ok(WrittenResult {
            files: vec![sink.publish(|_| Ok(()))?],
            left_out: self.left_out,
            ..WrittenResult::default()
        })
    }
}
