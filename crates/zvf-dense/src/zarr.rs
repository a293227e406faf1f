//! Zarr v2 and v3 arrays in folders, through `zarrs`.
//!
//! The size of a chunk is compared with the budget before it is decoded. Beyond that, the codecs of
//! `zarrs` are responsible for hostile bytes.

mod sink;

pub use sink::{ZarrCompression, ZarrSink};

use std::{error::Error, path::Path, sync::Arc};

use rayon::prelude::*;
use serde_json::{Map, Value};
use zarrs::{
    array::{Array, ArrayBytes, ArraySubset},
    filesystem::FilesystemStore,
    storage::ReadableStorageTraits,
};

use crate::{
    CellPart, ChunkGrid, DenseArray, DenseError, Hyperslab, NumpyDtype, ReadCost,
    array::checked_len,
    hyperslab::product,
    scatter::{ScatterPiece, scatter},
};

/// Default memory budget of a read.
const BUDGET: u64 = 1 << 30;

/// A Zarr array in a folder.
#[derive(Debug)]
pub struct ZarrArray {
    name: String,
    store: Arc<FilesystemStore>,
    array: Array<FilesystemStore>,
    dtype: NumpyDtype,
    grid: ChunkGrid,
    dimension_names: Option<Vec<String>>,
    budget: u64,
}

impl ZarrArray {
    /// Opens the array in a folder. Values are returned in little-endian order regardless of their stored
    /// order.
    ///
    /// ```
    /// use zvf_dense::{
    ///     DenseArray, NumpyDtype, ChunkGrid, MemoryArray, Hyperslab, convert,
    ///     zarr::{ZarrArray, ZarrCompression, ZarrSink},
    /// };
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("volume.zarr");
    /// let volume = MemoryArray::new("volume", NumpyDtype::parse("u1")?, vec![2, 3], (0..6).collect())?;
    /// let grid = ChunkGrid::new(vec![2, 3], vec![2, 2], None)?;
    /// let raw = ZarrCompression::Raw;
    /// let sink = ZarrSink::create(&path, volume.dtype(), grid, raw, &Default::default(), None)?;
    /// convert(&volume, Box::new(sink), &mut |_| {})?;
    ///
    /// let read = ZarrArray::open(&path, None)?;
    /// let row = Hyperslab::new(&[1, 0], &[2, 3], None)?;
    /// assert_eq!(&read.slice(&row)?[..], [3, 4, 5]);
    /// assert_eq!(read.read_plan(&row)?.chunks, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`DenseError::Zarr`] if there is no array, or its chunks, codecs or type are not supported.
    pub fn open(path: &Path, budget: Option<u64>) -> Result<Self, DenseError> {
        let name = path.display().to_string();
        let in_store = |source: Box<dyn Error + Send + Sync>| DenseError::Zarr {
            name: name.clone(),
            source,
        };
        let store = FilesystemStore::new(path).map_err(|error| in_store(error.into()))?;
        let store = Arc::new(store);
        let array = Array::open(Arc::clone(&store), "/").map_err(|error| in_store(error.into()))?;
        let metadata =
            serde_json::to_value(array.metadata()).map_err(|error| in_store(error.into()))?;
        let text = metadata
            .get("data_type")
            .or_else(|| metadata.get("dtype"))
            .and_then(Value::as_str)
            .ok_or_else(|| in_store("its data type is not a number".into()))?;
        let dtype = NumpyDtype::parse(text).map_err(|source| DenseError::Dtype {
            name: name.clone(),
            source,
        })?;
        // zarrs returns native order, which is little-endian here.
        let dtype = match dtype.number() {
            Some(number) => number.kind().into(),
            None => return Err(in_store("its data type is not a number".into())),
        };
        let chunk = chunk_shape(&metadata)
            .ok_or_else(|| in_store("its chunks are of no regular grid".into()))?;
        let grid = ChunkGrid::new(array.shape().to_vec(), chunk, None).map_err(|source| {
            DenseError::Grid {
                name: name.clone(),
                source,
            }
        })?;
        let names = metadata.get("dimension_names").and_then(Value::as_array);
        let names = names.and_then(|names| {
            let names = names.iter().map(|name| Some(name.as_str()?.to_owned()));
            names.collect()
        });
        Ok(Self {
            store,
            array,
            dtype,
            grid,
            dimension_names: names,
            budget: budget.unwrap_or(BUDGET),
            name,
        })
    }

    fn fault(&self, source: impl Into<Box<dyn Error + Send + Sync>>) -> DenseError {
        DenseError::Zarr {
            name: self.name.clone(),
            source: source.into(),
        }
    }
}

/// Returns the shape of chunks, or of shards.
fn chunk_shape(metadata: &Value) -> Option<Vec<u64>> {
    let of_v3 = metadata
        .get("chunk_grid")
        .filter(|grid| grid["name"] == "regular")
        .and_then(|grid| grid["configuration"].get("chunk_shape"));
    let extents = of_v3.or_else(|| metadata.get("chunks"))?.as_array()?;
    extents.iter().map(Value::as_u64).collect()
}

impl DenseArray for ZarrArray {
    fn name(&self) -> &str {
        &self.name
    }

    fn dtype(&self) -> &NumpyDtype {
        &self.dtype
    }

    fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    fn attributes(&self) -> &Map<String, Value> {
        self.array.attributes()
    }

    fn dimension_names(&self) -> Option<&[String]> {
        self.dimension_names.as_deref()
    }

    fn budget(&self) -> u64 {
        self.budget
    }

    fn read_plan(&self, selection: &Hyperslab) -> Result<ReadCost, DenseError> {
        let bytes = self.byte_len(selection)?;
        let mut plan = ReadCost {
            bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
            ..ReadCost::default()
        };
        let mut cells = self.grid.chunks(selection);
        while let Some(parts) = cells.next() {
            let coordinate: Vec<u64> = parts.iter().map(|part| part.cell).collect();
            let key = self.array.chunk_key(&coordinate);
            let size = self
                .store
                .size_key(&key)
                .map_err(|error| self.fault(error))?;
            plan.chunks = plan.chunks.saturating_add(1);
            // A missing chunk has the fill value.
            plan.bytes_read = plan.bytes_read.saturating_add(size.unwrap_or(0));
        }
        plan.blocks = plan.chunks;
        Ok(plan)
    }

    fn slice_into(&self, selection: &Hyperslab, into: &mut [u8]) -> Result<ReadCost, DenseError> {
        checked_len(self, selection, into)?;
        let size = self.dtype.size();
        let chunk = self.grid.chunk_shape().iter().copied().chain([size]);
        let needed = product(chunk).unwrap_or(u64::MAX);
        let budget = self.scratch();
        if needed > budget {
            return Err(DenseError::Budget { needed, budget });
        }
        let plan = self.read_plan(selection)?;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        // One chunk per thread at a time, or as many as fit in memory with the selected parts.
        let threads = rayon::current_num_threads();
        let both = needed.saturating_mul(2);
        let capacity = budget.checked_div(both).unwrap_or(budget);
        let at_once =
            usize::try_from(capacity).map_or(threads, |capacity| capacity.clamp(1, threads));
        let mut cells = self.grid.chunks(selection);
        loop {
            let mut batch = Vec::with_capacity(at_once);
            while batch.len() < at_once
                && let Some(parts) = cells.next()
            {
                batch.push(parts.to_vec());
            }
            if batch.is_empty() {
                return Ok(plan);
            }
            let read = batch.par_iter().map(|parts| self.read(parts, selection));
            let boxes = read.collect::<Result<Vec<_>, _>>()?;
            let pieces: Vec<ScatterPiece<'_>> = boxes.iter().map(Chunk::piece).collect();
            let done = scatter(&pieces, selection, size, into);
            done.ok_or_else(|| self.fault("a chunk is shorter than its shape"))?;
        }
    }
}

/// The part of a chunk that was read: the bounding box of the selection.
struct Chunk {
    bytes: Vec<u8>,
    extents: Vec<u64>,
    parts: Vec<CellPart>,
}

impl Chunk {
    fn piece(&self) -> ScatterPiece<'_> {
        ScatterPiece {
            bytes: &self.bytes,
            extents: &self.extents,
            parts: &self.parts,
        }
    }
}

impl ZarrArray {
    fn read(&self, parts: &[CellPart], selection: &Hyperslab) -> Result<Chunk, DenseError> {
        let axes = parts
            .iter()
            .zip(selection.axes())
            .zip(self.grid.chunk_shape());
        let ranges: Vec<_> = axes
            .map(|((part, axis), chunk)| {
                let start = part.cell.saturating_mul(*chunk).saturating_add(part.offset);
                let last = part.count.saturating_sub(1).saturating_mul(axis.step());
                start..start.saturating_add(last).saturating_add(1)
            })
            .collect();
        let subset = ArraySubset::new_with_ranges(&ranges);
        let bytes: Result<ArrayBytes<'_>, _> = self.array.retrieve_array_subset(&subset);
        let bytes = bytes
            .map_err(|error| self.fault(error))?
            .into_fixed()
            .map_err(|error| self.fault(error))?;
        let extents = ranges
            .iter()
            .map(|range| range.end.saturating_sub(range.start));
        let parts = parts.iter().map(|part| CellPart { offset: 0, ..*part });
        Ok(Chunk {
            bytes: bytes.into_owned(),
            extents: extents.collect(),
            parts: parts.collect(),
        })
    }
}
