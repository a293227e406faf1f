//! Writing of files.

mod append;
mod metadata;
mod spec;

pub use spec::{Compression, DatasetSpec, WriteOptions};

use std::{
    io::{BufWriter, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use rayon::prelude::*;
use serde_json::{Map, Value};
use tempfile::NamedTempFile;
use zvf_format::tetration::{
    ChunkIndexBuilder, DatasetDirectoryBuilder, FLAG_FOOTER, Payload, SUPERBLOCK_LEN, Superblock,
};

use super::{TetError, footer::SpillRef, kind_of};
use crate::{ChunkGrid, DenseError, DenseSink, Hyperslab, NumpyDtype, staged, strided};

/// Length of pending tiles in bytes that triggers encoding.
const BATCH: usize = 8 << 20;

/// A writer of a `.tet` file. The file appears at its path only when [`finish`](Self::finish)
/// succeeds.
///
/// Equal input gives equal bytes. Datasets are written in the given order, the tiles of each in
/// row-major order. Each dataset starts at a multiple of 8 bytes, and its tiles are contiguous. A
/// footer is written only if it has content, in version 1, which all releases of the reference
/// implementation read.
#[derive(Debug)]
pub struct TetWriter {
    target: PathBuf,
    file: BufWriter<NamedTempFile>,
    datasets: Vec<Dataset>,
    directory: Vec<u8>,
    index: ChunkIndexBuilder,
    options: WriteOptions,
    /// Metadata of the file that is appended to.
    metadata: Map<String, Value>,
    checksums: Vec<u8>,
    waiting: Vec<Vec<u8>>,
    waiting_bytes: usize,
    /// Offset of the next byte in the file.
    at: u64,
    /// The dataset being written.
    current: usize,
}

#[derive(Debug)]
struct Dataset {
    spec: DatasetSpec,
    dtype: NumpyDtype,
    grid: ChunkGrid,
    chunks: u64,
    /// Number of tiles written so far.
    put: u64,
}

struct EncodedTile {
    bytes: Vec<u8>,
    raw_len: u64,
    is_zstd: bool,
}

impl TetWriter {
    /// Creates a file with these datasets.
    ///
    /// # Errors
    ///
    /// If the format does not allow a dataset, or the file cannot be created.
    pub fn create(
        path: &Path,
        datasets: Vec<DatasetSpec>,
        options: WriteOptions,
    ) -> Result<Self, DenseError> {
        Self::start(path, datasets, options, Map::new())
    }

    fn start(
        path: &Path,
        specs: Vec<DatasetSpec>,
        options: WriteOptions,
        metadata: Map<String, Value>,
    ) -> Result<Self, DenseError> {
        let name = path.display().to_string();
        let mut directory = DatasetDirectoryBuilder::default();
        let mut datasets = Vec::with_capacity(specs.len());
        let mut rows = 0_u64;
        for spec in specs {
            let pushed = directory.push(&spec.name, spec.tet_dtype, &spec.shape, &spec.chunk);
            pushed.map_err(|source| {
                let dataset = spec.name.clone();
                let error = TetError::Dataset {
                    name: dataset,
                    source,
                };
                DenseError::tet(&name, error)
            })?;
            let grid =
                ChunkGrid::new(spec.shape.clone(), spec.chunk.clone(), None).map_err(|source| {
                    DenseError::Grid {
                        name: spec.name.clone(),
                        source,
                    }
                })?;
            let chunks = grid.chunk_count();
            let sum = chunks.and_then(|chunks| rows.checked_add(chunks));
            rows = sum.ok_or_else(|| DenseError::tet(&name, TetError::Large))?;
            datasets.push(Dataset {
                dtype: kind_of(spec.tet_dtype).into(),
                grid,
                chunks: chunks.unwrap_or(u64::MAX),
                put: 0,
                spec,
            });
        }
        metadata::check(&datasets).map_err(|error| DenseError::tet(&name, error))?;
        let directory = directory.finish();
        let at = head(&datasets, directory.len(), rows, 0)
            .map(|superblock| {
                let end = superblock.index_span().end;
                end.max(SUPERBLOCK_LEN)
            })
            .map_err(|error| DenseError::tet(&name, error))?;
        let in_file = |error| DenseError::io(&name, error);
        let staged = staged::create(path).map_err(in_file)?;
        let mut file = BufWriter::with_capacity(1 << 20, staged);
        file.seek(SeekFrom::Start(at)).map_err(in_file)?;
        let mut index = ChunkIndexBuilder::default();
        index.memory_budget_bytes(options.memory_budget_bytes);
        index.memory_budget_bps(options.memory_budget_bps);
        Ok(Self {
            target: path.to_path_buf(),
            file,
            datasets,
            directory,
            index,
            options,
            metadata,
            checksums: Vec::new(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            at,
            current: 0,
        })
    }

    fn name(&self) -> String {
        self.target.display().to_string()
    }

    fn tet(&self, error: TetError) -> DenseError {
        DenseError::tet(&self.name(), error)
    }

    fn order(&self, dataset: usize, fault: &'static str) -> DenseError {
        self.tet(TetError::Order { dataset, fault })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), DenseError> {
        let written = self.file.write_all(bytes);
        written.map_err(|error| DenseError::io(&self.name(), error))?;
        let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let at = self.at.checked_add(len);
        self.at = at.ok_or_else(|| self.tet(TetError::Large))?;
        Ok(())
    }

    /// Advances to a dataset. The datasets before it must be complete.
    fn turn_to(&mut self, dataset: usize) -> Result<(), DenseError> {
        if dataset == self.current && self.datasets.get(dataset).is_some() {
            return Ok(());
        }
        let next = self.current.checked_add(1);
        let current = self.datasets.get(self.current);
        let is_complete = current.is_some_and(|current| current.put == current.chunks);
        if next != Some(dataset) || !is_complete || dataset >= self.datasets.len() {
            return Err(self.order(
                dataset,
                "datasets must be written in the order in which they were declared",
            ));
        }
        self.flush()?;
        self.current = dataset;
        self.align()
    }

    /// Writes zeros up to a multiple of 8 bytes.
    fn align(&mut self) -> Result<(), DenseError> {
        let padding = usize::try_from(self.at.wrapping_neg() % 8).unwrap_or(0);
        self.write([0; 8].get(..padding).unwrap_or_default())
    }

    /// Returns the coordinate and the decoded length of the next chunk of the current dataset.
    fn next(&self) -> Option<(Vec<u64>, u64)> {
        let dataset = self.datasets.get(self.current)?;
        if dataset.put >= dataset.chunks {
            return None;
        }
        let coordinate = coordinate(&dataset.grid, dataset.put);
        let selection = dataset.grid.chunk_selection(&coordinate);
        Some((coordinate, selection.byte_len(dataset.dtype.size())?))
    }

    /// Writes the next tile of a dataset: its elements without padding beyond the edge, in
    /// row-major order and little-endian.
    ///
    /// # Errors
    ///
    /// If another dataset is due, the length does not match, or writing fails.
    pub fn put_chunk(&mut self, dataset: usize, bytes: &[u8]) -> Result<(), DenseError> {
        self.turn_to(dataset)?;
        let next = self.next();
        let (_, len) = next.ok_or_else(|| self.order(dataset, "more chunks than the grid has"))?;
        if u64::try_from(bytes.len()) != Ok(len) {
            return Err(self.order(dataset, "a chunk of another length than its tile"));
        }
        self.waiting.push(bytes.to_vec());
        self.waiting_bytes = self.waiting_bytes.saturating_add(bytes.len());
        if let Some(dataset) = self.datasets.get_mut(dataset) {
            dataset.put = dataset.put.saturating_add(1);
        }
        if self.waiting_bytes >= BATCH {
            self.flush()?;
        }
        Ok(())
    }

    /// Divides a complete array, row-major and little-endian, into the tiles of a dataset and
    /// writes them.
    ///
    /// # Errors
    ///
    /// See [`put_chunk`](Self::put_chunk).
    pub fn put_array(&mut self, dataset: usize, bytes: &[u8]) -> Result<(), DenseError> {
        let known = self
            .datasets
            .get(dataset)
            .ok_or_else(|| self.order(dataset, "there is no such dataset"))?;
        let (grid, size) = (known.grid.clone(), known.dtype.size());
        let len = Hyperslab::whole(grid.shape()).byte_len(size);
        if len != u64::try_from(bytes.len()).ok() {
            return Err(self.order(dataset, "an array of another length than its shape"));
        }
        let mut cells = grid.chunks(&Hyperslab::whole(grid.shape()));
        while let Some(parts) = cells.next() {
            let cell = strided::extract_cell(bytes, grid.shape(), grid.chunk_shape(), parts, size)
                .ok_or_else(|| self.tet(TetError::Large))?;
            self.put_chunk(dataset, &cell)?;
        }
        Ok(())
    }

    /// Returns a sink for one dataset. Finishing the sink does not finish the file.
    ///
    /// # Errors
    ///
    /// If the dataset does not exist.
    pub fn sink(&mut self, dataset: usize) -> Result<TetSink<'_>, DenseError> {
        let grid = self
            .datasets
            .get(dataset)
            .map(|known| known.grid.clone())
            .ok_or_else(|| self.order(dataset, "there is no such dataset"))?;
        Ok(TetSink {
            writer: self,
            dataset,
            grid,
        })
    }

    /// Encodes pending tiles on all threads and writes them in order.
    fn flush(&mut self) -> Result<(), DenseError> {
        let waiting = core::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        let Some(dataset) = self.datasets.get(self.current) else {
            return Ok(());
        };
        let compression = dataset.spec.compression;
        let count = u64::try_from(waiting.len()).unwrap_or(u64::MAX);
        let first = dataset.put.saturating_sub(count);
        let encoded = waiting
            .into_par_iter()
            .map(|bytes| encode(bytes, compression))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| DenseError::io(&self.name(), error))?;
        for (number, encoded) in (first..).zip(encoded) {
            self.write_tile(number, &encoded)?;
        }
        Ok(())
    }

    fn write_tile(&mut self, number: u64, encoded: &EncodedTile) -> Result<(), DenseError> {
        let offset = self.at;
        let stored_len = u64::try_from(encoded.bytes.len()).unwrap_or(u64::MAX);
        let payload = if encoded.is_zstd {
            Payload::Zstd {
                offset,
                stored_len,
                raw_len: encoded.raw_len,
            }
        } else {
            Payload::Raw {
                offset,
                len: stored_len,
            }
        };
        let grid = self.datasets.get(self.current).map(|dataset| &dataset.grid);
        let coordinate = grid
            .map(|grid| coordinate(grid, number))
            .unwrap_or_default();
        let id = u64::try_from(self.current).unwrap_or(u64::MAX);
        let pushed = self.index.push(id, &coordinate, payload).map(|_| ());
        pushed.map_err(|error| self.tet(error.into()))?;
        if self.options.checksums {
            self.checksums.extend(crc(&encoded.bytes).to_le_bytes());
        }
        self.write(&encoded.bytes)
    }

    /// Writes the index and the footer, and moves the file to its path.
    ///
    /// # Errors
    ///
    /// If chunks are missing, or writing fails. The path is left unchanged.
    pub fn finish(mut self) -> Result<(), DenseError> {
        self.flush()?;
        let missing = self.datasets.iter().position(|d| d.put < d.chunks);
        if let Some(dataset) = missing {
            return Err(self.order(dataset, "chunks are missing"));
        }
        let flags = self.write_footer()?;
        let rows = self.datasets.iter().map(|dataset| dataset.chunks).sum();
        let superblock = head(&self.datasets, self.directory.len(), rows, flags)
            .map_err(|error| self.tet(error))?;
        let name = self.name();
        let in_file = |error| DenseError::io(&name, error);
        self.file.seek(SeekFrom::Start(0)).map_err(in_file)?;
        self.file.write_all(&superblock.encode()).map_err(in_file)?;
        self.file.write_all(&self.directory).map_err(in_file)?;
        if !self.datasets.is_empty() {
            self.file.write_all(&self.index.finish()).map_err(in_file)?;
        }
        let file = self
            .file
            .into_inner()
            .map_err(|error| in_file(error.into_error()))?;
        staged::publish(file, &self.target).map_err(in_file)
    }

    /// Writes the footer if it has content, and returns the flags of the superblock.
    fn write_footer(&mut self) -> Result<u32, DenseError> {
        let rows = core::mem::take(&mut self.checksums);
        let checksums = if self.options.checksums && !rows.is_empty() {
            let spill = self.spill(&rows)?;
            Some(spill)
        } else {
            None
        };
        let metadata = metadata::metadata(&self.datasets, core::mem::take(&mut self.metadata));
        let history = core::mem::take(&mut self.options.history);
        let footer =
            metadata::Footer::new(history, metadata, checksums).map_err(|error| self.tet(error))?;
        let Some(footer) = footer else {
            return Ok(0);
        };
        let spilled = match &footer.spilled {
            Some(bytes) => Some(self.spill(bytes)?),
            None => None,
        };
        let bytes = footer.finish(spilled).map_err(|error| self.tet(error))?;
        self.write(&bytes)?;
        Ok(FLAG_FOOTER)
    }

    fn spill(&mut self, bytes: &[u8]) -> Result<SpillRef, DenseError> {
        let offset = self.at;
        self.write(bytes)?;
        Ok(SpillRef {
            offset,
            len: self.at.saturating_sub(offset),
        })
    }
}

/// Creates the superblock of a file.
fn head(
    datasets: &[Dataset],
    directory_len: usize,
    rows: u64,
    flags: u32,
) -> Result<Superblock, TetError> {
    let count = u32::try_from(datasets.len()).map_err(|_| TetError::Large)?;
    // The directory starts with a length field that is not part of the records.
    let records = directory_len.saturating_sub(8);
    let records = u64::try_from(records).unwrap_or(u64::MAX);
    Ok(Superblock::new(count, records, rows, flags)?)
}

fn coordinate(grid: &ChunkGrid, number: u64) -> Vec<u64> {
    let counts: Vec<u64> = grid.chunk_counts().collect();
    let mut coordinate = vec![0; counts.len()];
    let mut rest = number;
    for (at, count) in coordinate.iter_mut().zip(counts).rev() {
        *at = rest.checked_rem(count).unwrap_or(0);
        rest = rest.checked_div(count).unwrap_or(0);
    }
    coordinate
}

fn encode(bytes: Vec<u8>, compression: Compression) -> std::io::Result<EncodedTile> {
    let raw_len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    Ok(match compression {
        Compression::Raw => EncodedTile {
            bytes,
            raw_len,
            is_zstd: false,
        },
        Compression::Zstd(level) => EncodedTile {
            bytes: zstd::bulk::compress(&bytes, level)?,
            raw_len,
            is_zstd: true,
        },
    })
}

pub(super) fn crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// A sink for one dataset of a [`TetWriter`].
#[derive(Debug)]
pub struct TetSink<'a> {
    writer: &'a mut TetWriter,
    dataset: usize,
    grid: ChunkGrid,
}

impl DenseSink for TetSink<'_> {
    fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    fn put_chunk(&mut self, _: &Hyperslab, bytes: &[u8]) -> Result<(), DenseError> {
        self.writer.put_chunk(self.dataset, bytes)
    }

    fn finish(self: Box<Self>) -> Result<(), DenseError> {
        Ok(())
    }
}
