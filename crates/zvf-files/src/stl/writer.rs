//! Writes binary STL. Facets are written as they arrive; the vertices stay in memory, because facets
//! refer to any of them.

use std::{
    io::{Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use zvf::{QueryResult, numeric::Kind};

use crate::{
    FileError, FileFault, GroupTables, ResultWriter, WrittenResult,
    values::{AxisOrder, narrow, narrow_coordinate, rounded_coordinates, rounded_left_out},
    writer::{OutputSink, groups_left_out, has_object_ids, list_left_out, object_ids_left_out},
};

/// A binary STL file that is written in batches.
#[derive(Debug)]
pub struct StlWriter {
    path: PathBuf,
    /// The file, after the first batch.
    sink: Option<OutputSink>,
    vertices: VertexList,
    facets: u32,
    left_out: Vec<String>,
    has_object_ids: bool,
}

/// Coordinates of vertices, as float32 if the store has no others.
#[derive(Debug, Default)]
struct VertexList {
    narrow: Vec<[f32; 3]>,
    /// All vertices, if some are wider.
    wide: Vec<[f64; 3]>,
    /// For each vertex, true if a facet has it as a corner.
    are_corners: Vec<bool>,
}

impl VertexList {
    fn extend(&mut self, rows: Vec<[f64; 3]>, kind: Kind) {
        if rows.is_empty() {
            return;
        }
        let count = self.are_corners.len().saturating_add(rows.len());
        self.are_corners.resize(count, false);
        if kind == Kind::Float32 && self.wide.is_empty() {
            self.narrow
                .extend(rows.into_iter().map(|row| row.map(narrow)));
            return;
        }
        let before = std::mem::take(&mut self.narrow).into_iter();
        self.wide.extend(before.map(|row| row.map(f64::from)));
        self.wide.extend(rows);
    }

    /// Returns the vertex of a corner of a facet.
    fn corner(&mut self, row: usize) -> Option<[f64; 3]> {
        *self.are_corners.get_mut(row)? = true;
        let narrow = || self.narrow.get(row).map(|row| row.map(f64::from));
        self.wide.get(row).copied().or_else(narrow)
    }
}

impl StlWriter {
    /// Creates a writer. The file is created with the first batch.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            sink: None,
            vertices: VertexList::default(),
            facets: 0,
            left_out: Vec::new(),
            has_object_ids: false,
        }
    }

    /// Takes the file, which is created if there is none. The number of its facets is written last.
    fn sink(&mut self) -> Result<OutputSink, FileError> {
        if let Some(sink) = self.sink.take() {
            return Ok(sink);
        }
        let mut sink = OutputSink::create(&self.path)?;
        let mut header = [b' '; 84];
        for (target, byte) in header.iter_mut().zip(b"written by zvf") {
            *target = *byte;
        }
        sink.write(&header)?;
        Ok(sink)
    }

    /// Lists what the format cannot hold of a batch.
    fn plan(&mut self, batch: &QueryResult) {
        list_left_out(&mut self.left_out, batch, "stl", |_, _| false);
    }

    fn add(&mut self, batch: &QueryResult, sink: &mut OutputSink) -> Result<(), FileFault> {
        let Some(links) = batch.links.as_ref().filter(|links| links.width >= 3) else {
            return Err(FileFault::Result {
                format: "stl",
                holds: "meshes",
                remedy: "write ply, obj or glb",
            });
        };
        self.has_object_ids = self.has_object_ids || has_object_ids(batch);
        let coordinates = AxisOrder::of(batch, "stl")?;
        let rows = coordinates.rows(&batch.positions)?;
        self.vertices.extend(rows, batch.positions.kind);
        let width = usize::try_from(links.width).unwrap_or(usize::MAX);
        let mut facet = Vec::with_capacity(50);
        let mut corners: Vec<[f64; 3]> = Vec::new();
        for ends in links.ends.chunks_exact(width) {
            corners.clear();
            for end in ends {
                let row = usize::try_from(*end).unwrap_or(usize::MAX);
                let corner = self.vertices.corner(row);
                corners.push(corner.ok_or(FileFault::Broken(
                    "a link refers to a vertex that does not exist",
                ))?);
            }
            let Some((first, rest)) = corners.split_first() else {
                continue;
            };
            for pair in rest.windows(2) {
                let &[second, third] = pair else { continue };
                let triangle = [*first, second, third];
                facet.clear();
                for number in normal(triangle) {
                    facet.extend(narrow(number).to_le_bytes());
                }
                for number in triangle.into_iter().flatten() {
                    facet.extend(narrow_coordinate(number, "stl")?.to_le_bytes());
                }
                facet.extend([0, 0]);
                Write::write_all(sink, &facet)?;
                self.facets = self.facets.checked_add(1).ok_or(FileFault::Result {
                    format: "stl",
                    holds: "up to 4294967295 triangles",
                    remedy: "write ply",
                })?;
            }
        }
        Ok(())
    }
}

impl ResultWriter for StlWriter {
    fn write(&mut self, batch: &QueryResult) -> Result<(), FileError> {
        self.plan(batch);
        let mut sink = self.sink()?;
        let added = self.add(batch, &mut sink);
        added.map_err(|fault| fault.of(&self.path))?;
        self.sink = Some(sink);
        Ok(())
    }

    fn finish(mut self: Box<Self>, tables: &GroupTables) -> Result<WrittenResult, FileError> {
        let sink = self.sink()?;
        let facets = self.facets;
        let path = sink.publish(|file| {
            file.seek(SeekFrom::Start(80))?;
            file.write_all(&facets.to_le_bytes())
        })?;
        let corners = self.vertices.are_corners.iter();
        let alone = corners.filter(|is_corner| !**is_corner).count();
        if alone > 0 {
            let line = format!("{alone} vertices without faces: not supported by stl");
            self.left_out.push(line);
        }
        let corners = self.vertices.wide.iter().zip(&self.vertices.are_corners);
        let written = corners.filter(|(_, is_corner)| **is_corner);
        let rounded = rounded_coordinates(written.flat_map(|(corner, _)| corner));
        self.left_out.extend(rounded_left_out(rounded));
        if self.has_object_ids {
            self.left_out.push(object_ids_left_out("stl"));
        }
        self.left_out.extend(groups_left_out(tables, "stl"));
        Ok(WrittenResult {
            files: vec![path],
            left_out: self.left_out,
            ..WrittenResult::default()
        })
    }
}

/// Returns the unit normal of a triangle, or 0 if it has no area.
fn normal([first, second, third]: [[f64; 3]; 3]) -> [f64; 3] {
    let from_first = |corner: [f64; 3]| {
        [
            corner[0] - first[0],
            corner[1] - first[1],
            corner[2] - first[2],
        ]
    };
    let (one, two) = (from_first(second), from_first(third));
    let cross = [
        one[1] * two[2] - one[2] * two[1],
        one[2] * two[0] - one[0] * two[2],
        one[0] * two[1] - one[1] * two[0],
    ];
    let length = cross[0].hypot(cross[1]).hypot(cross[2]);
    if length > 0.0 {
        cross.map(|value| value / length)
    } else {
        [0.0; 3]
    }
}
