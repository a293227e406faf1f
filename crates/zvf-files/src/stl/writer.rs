//! Writes binary STL.

use std::path::{Path, PathBuf};

use zvf::QueryResult;

use crate::{
    FileError, FileFault, GroupTables, ResultWriter, WrittenResult,
    collected::WholeResult,
    values::{narrow, narrow_coordinate},
    writer::{OutputSink, groups_left_out},
};

/// A binary STL file, written at the end.
#[derive(Debug)]
pub struct StlWriter {
    path: PathBuf,
    whole: WholeResult,
}

impl StlWriter {
    /// Creates a writer.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            whole: WholeResult::default(),
        }
    }
}

impl ResultWriter for StlWriter {
    fn write(&mut self, batch: &QueryResult) -> Result<(), FileError> {
        let links = batch.links.as_ref();
        let fault = if links.is_none_or(|links| links.width < 3) {
            Some(FileFault::Result {
                format: "stl",
                holds: "meshes",
                remedy: "write ply, obj or glb",
            })
        } else {
            self.whole.add(batch, "stl", false).err()
        };
        fault.map_or(Ok(()), |fault| Err(fault.of(&self.path)))
    }

    fn finish(mut self: Box<Self>, tables: &GroupTables) -> Result<WrittenResult, FileError> {
        let in_file = |fault: FileFault| fault.of(&self.path);
        let triangles = self.whole.triangles().map_err(in_file)?;
        let count = u32::try_from(triangles.len());
        let count = count.map_err(|_| {
            in_file(FileFault::Result {
                format: "stl",
                holds: "up to 4294967295 triangles",
                remedy: "write ply",
            })
        })?;
        let mut sink = OutputSink::create(&self.path)?;
        let mut header = [b' '; 80];
        for (target, byte) in header.iter_mut().zip(b"written by zvf") {
            *target = *byte;
        }
        sink.write(&header)?;
        sink.write(&count.to_le_bytes())?;
        for triangle in triangles {
            let corners =
                triangle.map(|row| self.whole.positions.get(row).copied().unwrap_or_default());
            for number in normal(corners) {
                sink.write(&narrow(number).to_le_bytes())?;
            }
            for number in corners.into_iter().flatten() {
                let near = narrow_coordinate(number, "stl").map_err(in_file)?;
                sink.write(&near.to_le_bytes())?;
            }
            sink.write(&[0, 0])?;
        }
        self.whole.left_out.extend(groups_left_out(tables, "stl"));
        Ok(WrittenResult {
            files: vec![sink.publish(|_| Ok(()))?],
            left_out: self.whole.left_out,
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
