//! The least that any reader of a store transfers for a result.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use bytes::Bytes;
use serde_json::Value;
use zvf::QueryResult;
use zvf_codecs::ShardLayout;
use zvf_model::{
    grid::{ChunkCoord, ChunkShape},
    key::Key,
    zarr::{Array, IndexLocation, Node},
};

/// Objects and bytes of the cells that contain the stored rows of a result, for a reader that knows
/// them in advance: without metadata, indexes, manifests, attributes of objects, links between
/// chunks, and vertices outside a region that only determine where its border is crossed.
pub(crate) struct Floor {
    /// Objects of the store. A shard is one object.
    pub(crate) requests: u64,
    /// Bytes of the cells, or of the rows of vertices if they can be read without the rest of their
    /// cell.
    pub(crate) bytes: u64,
    /// Chunks that contain vertices of the result.
    pub(crate) chunks: usize,
}

impl Floor {
    /// Finds the cells of a result in the folder of its store. Vertices that are not stored, as on the
    /// border of a region, must not be among its rows. `reads_rows` tells whether single
    /// rows of a cell can be read.
    pub(crate) fn of(
        result: &QueryResult,
        store: &Path,
        shape: &ChunkShape,
        reads_rows: bool,
    ) -> Result<Self> {
        let places = chunks_of_vertices(result, shape)?;
        let chunks: BTreeSet<&ChunkCoord> = places.iter().collect();
        let linked = chunks_of_links(result, &places);
        let attributes = |columns: &[zvf::Column], folder: &str, rest: &str| -> Vec<String> {
            let names = columns.iter().map(|column| column.name.as_str());
            names.map(|name| format!("{folder}/{name}{rest}")).collect()
        };

        let mut cells = Cells::new(store);
        cells.add("vertices", &chunks, true)?;
        for array in attributes(&result.vertex, "vertex_attributes", "") {
            cells.add(&array, &chunks, true)?;
        }
        // Links that follow from the order of vertices have no cell.
        cells.add("links/0/0.0.0", &linked, false)?;
        for array in attributes(&result.link, "link_attributes", "/0/0.0.0") {
            cells.add(&array, &linked, false)?;
        }
        let columns = result.vertex.iter().map(column_bytes).sum::<usize>();
        let rows = result.positions.bytes.len() + columns;
        Ok(Self {
            requests: cells.objects.len() as u64,
            bytes: if reads_rows { rows as u64 } else { cells.bytes },
            chunks: chunks.len(),
        })
    }
}

/// Returns the bytes of a column.
pub(crate) fn column_bytes(column: &zvf::Column) -> usize {
    match &column.values {
        zvf::ColumnValues::Numeric(rows) => rows.bytes.len(),
        zvf::ColumnValues::Dictionary { codes, .. } => codes.len() * 4,
    }
}

/// Returns the chunk of each vertex.
fn chunks_of_vertices(result: &QueryResult, shape: &ChunkShape) -> Result<Vec<ChunkCoord>> {
    let values: Vec<f64> = result
        .positions
        .bytes
        .chunks_exact(4)
        .map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])))
        .collect();
    let places = values.chunks_exact(shape.axes()).map(|at| {
        let chunk = shape.chunk_of(at);
        chunk.with_context(|| format!("no chunk contains {at:?}"))
    });
    places.collect()
}

/// Returns the chunks that contain all ends of a link.
fn chunks_of_links<'a>(result: &QueryResult, places: &'a [ChunkCoord]) -> BTreeSet<&'a ChunkCoord> {
    let Some(links) = &result.links else {
        return BTreeSet::new();
    };
    let links = links.ends.chunks_exact(links.width.max(1) as usize);
    let within = links.filter_map(|ends| {
        let mut chunks = ends.iter().map(|end| &places[*end as usize]);
        let first = chunks.next()?;
        chunks.all(|chunk| chunk == first).then_some(first)
    });
    within.collect()
}

/// The cells of a result in level 0 of a store.
struct Cells<'a> {
    store: &'a Path,
    /// The files that contain the cells.
    objects: BTreeSet<PathBuf>,
    /// Bytes of the cells.
    bytes: u64,
}

impl<'a> Cells<'a> {
    fn new(store: &'a Path) -> Self {
        Self {
            store,
            objects: BTreeSet::new(),
            bytes: 0,
        }
    }

    /// Adds the cells of an array in these chunks. Each must exist if `all` is set.
    fn add(&mut self, array: &str, chunks: &BTreeSet<&ChunkCoord>, all: bool) -> Result<()> {
        let folder = self.store.join("0").join(array);
        let metadata = folder.join("zarr.json");
        if !all && !metadata.exists() {
            return Ok(());
        }
        let json = fs::read(&metadata).with_context(|| metadata.display().to_string())?;
        let array_node = Node::parse(&Key::parse("zarr.json")?, &json)?;
        let node = array_node
            .as_array()
            .with_context(|| format!("{array} is not an array"))?;
        let layout = ShardLayout::new(node)?;
        let origin = origin(node);
        let mut indexes = BTreeMap::new();
        for chunk in chunks {
            let index = chunk
                .coords()
                .iter()
                .zip(origin.iter().chain(&[0; 8]))
                .map(|(at, origin)| u64::try_from(at - origin))
                .collect::<Result<Vec<_>, _>>()?;
            let (file, size) = match &layout {
                None => {
                    let file = path(&folder, &index);
                    let exists = file.try_exists()?;
                    let size = exists.then(|| fs::metadata(&file)).transpose()?;
                    (file, size.map(|size| size.len()))
                }
                Some(layout) => {
                    let (shard, number) = layout.locate(&index).context("a chunk without shard")?;
                    let file = path(&folder, &shard);
                    if !indexes.contains_key(&file) {
                        let read = file.exists().then(|| shard_index(&file, layout));
                        indexes.insert(file.clone(), read.transpose()?);
                    }
                    let range = match &indexes[&file] {
                        Some(index) => index.chunk(number)?,
                        None => None,
                    };
                    (file, range.map(|range| range.end - range.start))
                }
            };
            match size {
                Some(size) => {
                    self.bytes += size;
                    self.objects.insert(file);
                }
                None if !all => {}
                None => anyhow::bail!("{array} has no cell for chunk {chunk}"),
            }
        }
        Ok(())
    }
}

/// Returns the chunk of element 0 of an array; zeros if it is not given.
fn origin(array: &Array) -> Vec<i64> {
    let origin = array
        .attributes
        .get("chunk_grid_origin")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    origin.filter_map(Value::as_i64).collect()
}

fn path(folder: &Path, index: &[u64]) -> PathBuf {
    let names = index.iter().map(u64::to_string);
    names.fold(folder.join("c"), |path, name| path.join(name))
}

fn shard_index(file: &Path, layout: &ShardLayout) -> Result<zvf_codecs::ShardIndex> {
    let bytes = Bytes::from(fs::read(file)?);
    let size = layout.index_size() as usize;
    let index = match layout.index_location() {
        IndexLocation::Start => bytes.slice(..size),
        IndexLocation::End => bytes.slice(bytes.len() - size..),
    };
    Ok(layout.index(index)?)
}

#[cfg(test)]
mod tests {
    use zvf::{CreateOptions, Dataset, Query};

    use super::*;
    use crate::{
        data::{Data, Workload},
        worker::StoreForm,
    };

    /// All cells of a whole read are counted, whether they are files or parts of shards.
    #[test]
    fn the_floor_of_a_whole_read_is_the_size_of_its_cells() {
        let folder = tempfile::tempdir().unwrap();
        let data = Data::new(Workload::Points, 200_000);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let floors = [StoreForm::Zstd, StoreForm::Sharded, StoreForm::Bare].map(|form| {
            let path = folder.path().join(form.name());
            let address = path.to_str().unwrap();
            let mut design = data.design();
            form.apply(&mut design);
            let options = CreateOptions::default().seal(form.is_sealed());
            let (result, shape) = runtime.block_on(async {
                let geometry = data.geometry().build().unwrap();
                let create = zvf::create(address, geometry, design, &options);
                create.await.unwrap();
                let open = Dataset::open(address).await.unwrap();
                let result = open.query(&Query::new()).await.unwrap();
                (result, open.root().chunk_shape.clone())
            });
            Floor::of(&result, &path, &shape, form == StoreForm::Bare).unwrap()
        });
        let [zstd, sharded, bare] = floors;
        assert_eq!(
            zstd.requests,
            zstd.chunks as u64 * 3,
            "positions and two columns"
        );
        assert_eq!(zstd.bytes, sharded.bytes, "equal cells");
        assert!(sharded.requests < zstd.requests);
        assert_eq!(bare.bytes, 200_000 * 20, "exactly the rows");
        assert_eq!(zstd.bytes, files(&folder.path().join("zstd/0")));
    }

    /// Returns the bytes of the cells of vertices and their attributes.
    fn files(level: &Path) -> u64 {
        let arrays = ["vertices", "vertex_attributes"].map(|array| level.join(array));
        arrays.iter().map(|array| below(array)).sum()
    }

    fn below(folder: &Path) -> u64 {
        let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
        let sizes = entries.map(|entry| match entry.path() {
            path if path.is_dir() => below(&path),
            path if path.ends_with("zarr.json") => 0,
            path => fs::metadata(path).unwrap().len(),
        });
        sizes.sum()
    }
}
