//! Meshes that do not fit into memory. Temporary files hold the triangles and their parts in each
//! node of the octree. The nodes are encoded from these files, a few at a time.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufWriter, Seek, SeekFrom, Write},
    ops::ControlFlow,
};

use rayon::prelude::*;
use zvf::{Dataset, QueryResult};
use zvf_catalog::Selection;
use zvf_dense::{ByteSource, FileSource};
use zvf_precomputed::{CutFragment, MeshCutter, MeshNode, PrecomputedError, TriangleSource};

use super::{
    live_skeletons::SegmentRead,
    object_rows::ObjectRows,
    pool::on_pool,
    stored_object::{ObjectWriter, StoredObject, TEMPORARY},
};
use crate::{
    layers::{
        LayerError,
        meshes::{BITS, NODE_TRIANGLES},
        shapes::{fan, positions},
    },
    spill::{PartitionId, Spill, SpillEntry},
};

/// Bytes of a position.
const POSITION: usize = 12;
/// Bytes of the corners of a triangle.
const CORNERS: usize = 3 * POSITION;
/// Triangles that are cut at once.
const BATCH: usize = 1 << 14;
/// Positions of a block that is read at once.
const BLOCK: u32 = 1 << 10;
/// Blocks of positions in memory.
const BLOCKS: u32 = 1 << 9;
/// Bytes of parts of triangles in memory.
const BUFFERED: usize = 16 << 20;
/// Bits of the Z order in which nodes that are encoded together differ: they are the children of
/// one node, and a surface crosses about half of them.
const GROUP_BITS: u32 = 3;
/// Maximum number of triangles of nodes that are encoded together. It is about eight times the
/// number that they should have.
const MAX_GROUP_TRIANGLES: usize = 1 << 20;

/// A manifest, and the fragments in a file.
pub(super) struct StoredMesh {
    pub(super) manifest: Vec<u8>,
    pub(super) data: StoredObject,
}

/// Returns a mesh as a file; `None` if it has no triangles. Each of `reads` is a level, the finest
/// first.
pub(super) async fn stored_mesh(
    dataset: &Dataset,
    reads: &[SegmentRead],
) -> Result<Option<StoredMesh>, LayerError> {
    let mut levels = Vec::new();
    for read in reads {
        levels.extend(stored_triangles(dataset, read).await?);
    }
    on_pool(move || encode(&levels)).await
}

/// Copies the triangles of a level to a file; `None` if a coordinate is not finite.
async fn stored_triangles(
    dataset: &Dataset,
    read: &SegmentRead,
) -> Result<Option<StoredTriangles>, LayerError> {
    let query = read.query().clone().columns(Selection::none());
    let mut rows = ObjectRows::new(read.object());
    let mut triangles = TriangleFile::new().map_err(LayerError::Temporary)?;
    let mut is_finite = Ok(true);
    let read = dataset.batches(&query, |batch| {
        is_finite = triangles.add(&batch, &mut rows);
        match is_finite {
            Ok(true) => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    });
    read.await?;
    if is_finite? {
        triangles.finish().map(Some).map_err(LayerError::Temporary)
    } else {
        Ok(None)
    }
}

/// Writes triangles by their corners.
struct TriangleFile {
    positions: PositionFile,
    file: BufWriter<File>,
    count: usize,
}

impl TriangleFile {
    fn new() -> io::Result<Self> {
        Ok(Self {
            positions: PositionFile::new()?,
            file: BufWriter::with_capacity(1 << 20, tempfile::tempfile()?),
            count: 0,
        })
    }

    /// Adds the vertices and triangles of an object in a batch. Returns whether all coordinates are
    /// finite.
    fn add(&mut self, batch: &QueryResult, rows: &mut ObjectRows) -> Result<bool, LayerError> {
        let own = rows.add(batch)?;
        let Some(positions) = positions(batch, &own) else {
            return Ok(false);
        };
        let written = self.positions.push(&positions);
        written.map_err(LayerError::Temporary)?;
        let mut written = Ok(());
        rows.links(batch, |face| {
            for triangle in fan(face) {
                if written.is_ok() {
                    written = self.push(triangle);
                }
            }
        });
        written.map(|()| true).map_err(LayerError::Temporary)
    }

    fn push(&mut self, triangle: [u32; 3]) -> io::Result<()> {
        for row in triangle {
            self.file.write_all(&self.positions.get(row)?)?;
        }
        self.count = self.count.saturating_add(1);
        Ok(())
    }

    fn finish(self) -> io::Result<StoredTriangles> {
        let size = self.count.saturating_mul(CORNERS);
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        Ok(StoredTriangles {
            count: self.count,
            file: FileSource::of_file(TEMPORARY, self.file.into_inner()?, size),
        })
    }
}

/// Positions by row, in a file of which some blocks are in memory.
struct PositionFile {
    writer: BufWriter<File>,
    count: u32,
    /// The file, if no position was written since the last one was read.
    reader: Option<FileSource>,
    blocks: HashMap<u32, PositionBlock>,
}

struct PositionBlock {
    number: u32,
    bytes: Vec<u8>,
}

impl PositionFile {
    fn new() -> io::Result<Self> {
        Ok(Self {
            writer: BufWriter::with_capacity(1 << 20, tempfile::tempfile()?),
            count: 0,
            reader: None,
            blocks: HashMap::new(),
        })
    }

    fn push(&mut self, positions: &[[f32; 3]]) -> io::Result<()> {
        if positions.is_empty() {
            return Ok(());
        }
        if self.reader.take().is_some() {
            // On Windows, reading moves the position at which the file is written.
            self.writer.seek(SeekFrom::End(0))?;
            self.blocks.clear();
        }
        for position in positions {
            let bytes = position.map(f32::to_le_bytes);
            self.writer.write_all(bytes.as_flattened())?;
            self.count = self.count.saturating_add(1);
        }
        Ok(())
    }

    fn get(&mut self, row: u32) -> io::Result<[u8; POSITION]> {
        if self.reader.is_none() {
            self.writer.flush()?;
            let size = u64::from(self.count).saturating_mul(12);
            let file = self.writer.get_ref().try_clone()?;
            self.reader = Some(FileSource::of_file(TEMPORARY, file, size));
        }
        let missing = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let (number, at) = (row / BLOCK, row % BLOCK);
        let block = self
            .blocks
            .entry(number % BLOCKS)
            .or_insert_with(|| PositionBlock {
                number: u32::MAX,
                bytes: Vec::new(),
            });
        if block.number != number {
            let first = number.saturating_mul(BLOCK);
            let rows = self.count.saturating_sub(first).min(BLOCK);
            let rows = usize::try_from(rows).unwrap_or(0);
            block.bytes.resize(rows.saturating_mul(POSITION), 0);
            let reader = self.reader.as_ref().ok_or_else(missing)?;
            reader.read_into(u64::from(first).saturating_mul(12), &mut block.bytes)?;
            block.number = number;
        }
        let rows = block.bytes.as_chunks::<POSITION>().0;
        let row = rows.get(usize::try_from(at).unwrap_or(usize::MAX));
        row.copied().ok_or_else(missing)
    }
}

/// Triangles in a file, by their corners.
struct StoredTriangles {
    file: FileSource,
    count: usize,
}

impl StoredTriangles {
    /// Calls `pass` with batches of triangles, given by their corners.
    fn batches(
        &self,
        mut pass: impl FnMut(&[[[f32; 3]; 3]]) -> Result<(), LayerError>,
    ) -> Result<(), LayerError> {
        let mut bytes = Vec::new();
        let mut triangles = Vec::with_capacity(BATCH.min(self.count));
        let mut start = 0_u64;
        let mut left = self.count;
        while left > 0 {
            let count = left.min(BATCH);
            bytes.resize(count.saturating_mul(CORNERS), 0);
            let read = self.file.read_into(start, &mut bytes);
            read.map_err(LayerError::Temporary)?;
            let numbers = bytes.as_chunks::<4>().0.as_chunks::<3>().0;
            triangles.clear();
            let corners = numbers.as_chunks::<3>().0.iter();
            triangles.extend(corners.map(|corners| corners.map(|at| at.map(f32::from_le_bytes))));
            pass(&triangles)?;
            let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            start = start.saturating_add(size);
            left = left.saturating_sub(count);
        }
        Ok(())
    }
}

impl TriangleSource for StoredTriangles {
    type Error = LayerError;

    fn count(&self) -> usize {
        self.count
    }

    fn each(&self, mut pass: impl FnMut([[f32; 3]; 3])) -> Result<(), LayerError> {
        self.batches(|triangles| {
            triangles.iter().copied().for_each(&mut pass);
            Ok(())
        })
    }
}

fn encode(levels: &[StoredTriangles]) -> Result<Option<StoredMesh>, LayerError> {
    let Some(cutter) = MeshCutter::new(levels, BITS, NODE_TRIANGLES)? else {
        return Ok(None);
    };
    let mut data = ObjectWriter::new().map_err(LayerError::Temporary)?;
    let mut nodes = Vec::new();
    for (level, source) in cutter.sources().enumerate() {
        let Some(triangles) = levels.get(source) else {
            continue;
        };
        let cut = NodeParts::new(&cutter, level, triangles)?;
        let encoded = cut.encode(&mut data)?;
        if encoded.is_empty() {
            break;
        }
        nodes.push(encoded);
    }
    if nodes.is_empty() {
        return Ok(None);
    }
    Ok(Some(StoredMesh {
        manifest: cutter.manifest(nodes).encode()?,
        data: data.finish().map_err(LayerError::Temporary)?,
    }))
}

/// The parts of the triangles of a level in each node.
struct NodeParts {
    level: usize,
    spill: Spill,
}

impl NodeParts {
    fn new(
        cutter: &MeshCutter,
        level: usize,
        triangles: &StoredTriangles,
    ) -> Result<Self, LayerError> {
        let folder = tempfile::tempdir().map_err(LayerError::Temporary)?;
        let mut spill = Spill::new(folder, BUFFERED);
        let mut sizes: HashMap<u64, usize> = HashMap::new();
        let (mut number, mut record) = (0_u64, Vec::new());
        triangles.batches(|triangles| {
            for fragment in cutter.cut(level, triangles) {
                let key = fragment.order();
                let shard = key >> GROUP_BITS;
                let size = sizes.entry(shard).or_default();
                *size = size.saturating_add(fragment.triangles());
                if *size > MAX_GROUP_TRIANGLES {
                    return Err(LayerError::Dense(MAX_GROUP_TRIANGLES));
                }
                record.clear();
                for along in fragment.node {
                    record.extend_from_slice(&along.to_le_bytes());
                }
                fragment.write_triangles(&mut record);
                let entry = SpillEntry {
                    key,
                    id: number,
                    record: &record,
                };
                spill.push(PartitionId { index: 0, shard }, entry)?;
            }
            number = number.saturating_add(1);
            Ok(())
        })?;
        Ok(Self { level, spill })
    }

    /// Appends the fragments to `data` in Z order, and returns their sizes.
    fn encode(self, data: &mut ObjectWriter) -> Result<Vec<MeshNode>, LayerError> {
        let mut nodes = Vec::new();
        for partition in self.spill.partitions() {
            let spilled = self.spill.read(partition)?;
            let mut entries = spilled.entries();
            // The parts of a node are in the order in which they were cut.
            entries.sort_by_key(|entry| (entry.key, entry.id));
            let groups: Vec<&[SpillEntry<'_>]> = entries.chunk_by(|a, b| a.key == b.key).collect();
            let encoded: Vec<([u32; 3], Vec<u8>)> = groups
                .into_par_iter()
                .filter_map(|entries| {
                    let fragment = self.fragment(entries)?;
                    let bytes = fragment.mesh().encode();
                    Some(bytes.map(|bytes| (fragment.node, bytes)))
                })
                .collect::<Result<_, _>>()?;
            for (position, bytes) in encoded {
                let size = u32::try_from(bytes.len())
                    .map_err(|_| PrecomputedError::Count("bytes of a fragment"))?;
                nodes.push(MeshNode { position, size });
                data.write_all(&bytes).map_err(LayerError::Temporary)?;
            }
        }
        Ok(nodes)
    }

    /// Joins the parts of a node.
    fn fragment(&self, entries: &[SpillEntry<'_>]) -> Option<CutFragment> {
        let mut fragment: Option<CutFragment> = None;
        for entry in entries {
            let (node, triangles) = entry.record.split_first_chunk::<POSITION>()?;
            let fragment = fragment.get_or_insert_with(|| {
                let mut along = node.as_chunks::<4>().0.iter();
                let mut next = || along.next().map_or(0, |along| u32::from_le_bytes(*along));
                CutFragment::new(self.level, [next(), next(), next()])
            });
            fragment.read_triangles(triangles);
        }
        fragment
    }
}
