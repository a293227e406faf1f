//! GLB, the binary form of glTF 2.0: written only, for viewers.
//!
//! | part | content |
//! |---|---|
//! | header | `glTF`, u32 2, u32 length of the file |
//! | chunk `JSON` | u32 length, `JSON`, the scene, padded with blanks to a multiple of 4 |
//! | chunk `BIN` | u32 length, `BIN` and NUL, positions as f32, colours as bytes, indices as u32 |
//!
//! Points become a primitive of mode 0, paths and edges of mode 1, polygons triangles of mode 4. The
//! attributes `rgb`, `rgba`, `color` and `colors` become `COLOR_0`. Coordinates are relative to the
//! centre of the result, which is the translation of the node, so that large coordinates keep their
//! digits. Axes stay as they are in the store: glTF has y up and metres.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use zvf::QueryResult;

use crate::{
    FileError, FileFault, GroupTables, ResultWriter, WrittenResult,
    collected::WholeResult,
    values::{narrow, narrow_coordinate},
    writer::{OutputSink, groups_left_out},
};

/// Type codes of accessors.
const FLOAT: u32 = 5126;
const UNSIGNED_BYTE: u32 = 5121;
const UNSIGNED_INT: u32 = 5125;

/// A GLB file, written at the end.
#[derive(Debug)]
pub struct GlbWriter {
    path: PathBuf,
    whole: WholeResult,
}

impl GlbWriter {
    /// Creates a writer.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            whole: WholeResult::default(),
        }
    }

    /// Returns the mode of the primitive and its indices; points have none.
    fn primitive(&self) -> Result<(u32, Vec<usize>), FileFault> {
        if self.whole.has_paths {
            let steps = self.whole.paths.iter();
            let steps = steps.flat_map(|(start, end)| *start..end.saturating_sub(1).max(*start));
            return Ok((
                1,
                steps.flat_map(|row| [row, row.saturating_add(1)]).collect(),
            ));
        }
        match self.whole.width {
            0 | 1 => Ok((0, Vec::new())),
            2 => {
                let rows = self
                    .whole
                    .links
                    .iter()
                    .map(|end| usize::try_from(*end).unwrap_or(usize::MAX));
                Ok((1, rows.collect()))
            }
            _ => Ok((4, self.whole.triangles()?.into_iter().flatten().collect())),
        }
    }

    fn bytes(&self) -> Result<Vec<u8>, FileFault> {
        let positions = &self.whole.positions;
        if positions.is_empty() {
            return Err(FileFault::Empty);
        }
        let too_large = || FileFault::Result {
            format: "glb",
            holds: "up to 4 GiB",
            remedy: "select less, or write ply",
        };
        let (mode, indices) = self.primitive()?;
        let (mut min, mut max) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
        for position in positions {
            for ((value, min), max) in position.iter().zip(&mut min).zip(&mut max) {
                *min = min.min(*value);
                *max = max.max(*value);
            }
        }
        let centre = [0, 1, 2].map(|axis: usize| {
            let at = |bound: &[f64; 3]| bound.get(axis).copied().unwrap_or(0.0);
            f64::midpoint(at(&min), at(&max))
        });
        let local = |position: &[f64; 3]| {
            let [x, y, z] = *position;
            [x - centre[0], y - centre[1], z - centre[2]].map(narrow)
        };
        let mut data: Vec<u8> = Vec::with_capacity(positions.len().saturating_mul(12));
        for position in positions {
            for (value, centre) in position.iter().zip(centre) {
                data.extend(narrow_coordinate(value - centre, "glb")?.to_le_bytes());
            }
        }
        let mut views =
            vec![json!({"buffer": 0, "byteOffset": 0, "byteLength": data.len(), "target": 34962})];
        let mut accessors = vec![json!({
            "bufferView": 0, "componentType": FLOAT, "count": positions.len(), "type": "VEC3",
            "min": local(&min), "max": local(&max),
        })];
        let mut attributes = json!({"POSITION": 0});
        if self.whole.colours.len() == positions.len() {
            let start = data.len();
            data.extend(self.whole.colours.iter().flatten());
            views.push(json!({"buffer": 0, "byteOffset": start, "byteLength": data.len().saturating_sub(start), "target": 34962}));
            accessors.push(json!({
                "bufferView": 1, "componentType": UNSIGNED_BYTE, "normalized": true,
                "count": positions.len(), "type": "VEC4",
            }));
            if let Some(attributes) = attributes.as_object_mut() {
                attributes.insert("COLOR_0".to_owned(), json!(1));
            }
        }
        let mut primitive = json!({"attributes": attributes, "mode": mode});
        if !indices.is_empty() {
            let start = data.len();
            for row in &indices {
                let row = u32::try_from(*row).ok().filter(|row| *row < u32::MAX);
                let row = row.ok_or_else(too_large)?;
                data.extend_from_slice(&row.to_le_bytes());
            }
            views.push(json!({"buffer": 0, "byteOffset": start, "byteLength": data.len().saturating_sub(start), "target": 34963}));
            let accessor = json!({
                "bufferView": views.len().saturating_sub(1), "componentType": UNSIGNED_INT,
                "count": indices.len(), "type": "SCALAR",
            });
            accessors.push(accessor);
            if let Some(primitive) = primitive.as_object_mut() {
                let number: Value = accessors.len().saturating_sub(1).into();
                primitive.insert("indices".to_owned(), number);
            }
        }
        data.resize(data.len().next_multiple_of(4), 0);
        let scene = json!({
            "asset": {"version": "2.0", "generator": "zvf"},
            "scene": 0, "scenes": [{"nodes": [0]}],
            "nodes": [{"mesh": 0, "translation": centre}],
            "meshes": [{"primitives": [primitive]}],
            "buffers": [{"byteLength": data.len()}],
            "bufferViews": views, "accessors": accessors,
        });
        let mut text = scene.to_string().into_bytes();
        text.resize(text.len().next_multiple_of(4), b' ');
        let chunk = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(|_| too_large());
        let length = text.len().saturating_add(data.len()).saturating_add(28);
        let length = u32::try_from(length).map_err(|_| too_large())?;
        let mut bytes =
            Vec::with_capacity(text.len().saturating_add(data.len()).saturating_add(28));
        bytes.extend_from_slice(b"glTF");
        bytes.extend_from_slice(&2_u32.to_le_bytes());
        bytes.extend_from_slice(&length.to_le_bytes());
        for (name, content) in [(b"JSON", &text), (b"BIN\0", &data)] {
            bytes.extend_from_slice(&chunk(content)?.to_le_bytes());
            bytes.extend_from_slice(name);
            bytes.extend_from_slice(content);
        }
        Ok(bytes)
    }
}

impl ResultWriter for GlbWriter {
    fn write(&mut self, batch: &QueryResult) -> Result<(), FileError> {
        self.whole
            .add(batch, "glb", true)
            .map_err(|fault| fault.of(&self.path))
    }

    fn finish(mut self: Box<Self>, tables: &GroupTables) -> Result<WrittenResult, FileError> {
        let bytes = self.bytes().map_err(|fault| fault.of(&self.path))?;
        let mut sink = OutputSink::create(&self.path)?;
        sink.write(&bytes)?;
        self.whole.left_out.extend(groups_left_out(tables, "glb"));
        Ok(WrittenResult {
            files: vec![sink.publish(|_| Ok(()))?],
            left_out: self.whole.left_out,
        })
    }
}
