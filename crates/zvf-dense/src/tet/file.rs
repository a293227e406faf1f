//! Opening of files.

use std::sync::Arc;

use serde_json::{Map, Value};
use zvf_format::tetration::{
    self, ChunkIndex, DatasetDirectory, DatasetRecord, SUPERBLOCK_LEN, Superblock,
};

use super::{
    TetError,
    budget::{MemoryBudget, host_memory},
    footer::FooterInfo,
    kind_of,
    tiles::Tiles,
};
use crate::{ByteSource, ChunkGrid, DenseError, NumpyDtype};

/// Options for opening a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct TetOptions {
    /// Limit on the memory of a read.
    pub budget: MemoryBudget,
}

/// An open `.tet` file. All structures are checked; payloads are checked when they are read.
///
/// Opening reads the superblock, directory, index and footer in at most four requests, plus one if
/// metadata is spilled. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct TetFile {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) source: Arc<dyn ByteSource>,
    pub(super) superblock: Superblock,
    pub(super) datasets: Vec<DatasetInfo>,
    pub(super) tiles: Tiles,
    pub(super) budget: u64,
    budget_bps: u16,
    budget_bytes: u32,
    footer: Option<FooterInfo>,
    payload_end: u64,
}

/// The description of a dataset in a file.
#[derive(Clone, Debug)]
pub struct DatasetInfo {
    pub(super) name: String,
    pub(super) tet_dtype: tetration::TetDtype,
    pub(super) dtype: NumpyDtype,
    pub(super) grid: ChunkGrid,
    pub(super) attributes: Map<String, Value>,
    pub(super) dimension_names: Option<Vec<String>>,
}

impl DatasetInfo {
    /// Returns the name, which may be empty.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the element type of the format.
    pub fn dtype(&self) -> tetration::TetDtype {
        self.tet_dtype
    }

    /// Returns the shape and its division into tiles.
    pub fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    /// Returns the attributes. The format allows text values only.
    pub fn attributes(&self) -> &Map<String, Value> {
        &self.attributes
    }

    /// Returns the names of the axes, if the footer has one for each axis.
    pub fn dimension_names(&self) -> Option<&[String]> {
        self.dimension_names.as_deref()
    }

    fn new(record: &DatasetRecord<'_>, footer: Option<&FooterInfo>) -> Result<Self, DenseError> {
        let grid = ChunkGrid::new(
            record.shape().iter().collect(),
            record.chunk_shape().iter().collect(),
            None,
        )
        .map_err(|source| DenseError::Grid {
            name: record.name().to_owned(),
            source,
        })?;
        let declared = |key: &str| footer?.of_dataset(record.name(), key);
        let names = declared("dim_names").and_then(Value::as_array);
        let names = names.filter(|names| names.len() == record.rank());
        let names = names.and_then(|names| {
            let names = names.iter().map(|name| Some(name.as_str()?.to_owned()));
            names.collect()
        });
        let attributes = declared("attrs").and_then(Value::as_object);
        Ok(Self {
            name: record.name().to_owned(),
            tet_dtype: record.dtype(),
            dtype: kind_of(record.dtype()).into(),
            grid,
            attributes: attributes.cloned().unwrap_or_default(),
            dimension_names: names,
        })
    }
}

impl TetFile {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// [`DenseError::Tet`] if a structure of the file is invalid; see [`TetError`].
    pub fn open(source: Arc<dyn ByteSource>, options: TetOptions) -> Result<Self, DenseError> {
        let in_file = |error: TetError| DenseError::tet(source.name(), error);
        let len = source.len();
        let head = source.read(0..SUPERBLOCK_LEN.min(len))?;
        let superblock = Superblock::parse(&head).map_err(|error| in_file(error.into()))?;
        let index_span = superblock.index_span();
        if index_span.end > len {
            let end = index_span.end;
            return Err(in_file(TetError::IndexSpan { end, len }));
        }
        // Directory and index are adjacent and read in one request.
        let region = source.read(superblock.directory_span().start..index_span.end)?;
        let split = superblock.directory_span();
        let split = usize::try_from(split.end.saturating_sub(split.start)).unwrap_or(usize::MAX);
        let (records, rows) = region.split_at_checked(split).unwrap_or_default();
        let directory = DatasetDirectory::parse(records, superblock.datasets())
            .map_err(|error| in_file(error.into()))?;
        let index = match superblock.datasets() {
            0 => Ok(ChunkIndex::EMPTY),
            _ => ChunkIndex::parse(rows),
        };
        let index = index.map_err(|error| in_file(error.into()))?;
        let (bytes, bps) = (index.memory_budget_bytes(), index.memory_budget_bps());
        let budget = options.budget.resolve(bytes, bps, host_memory());
        let (footer, payload_end) = if superblock.has_footer() {
            let footer = FooterInfo::read(&*source, index_span.end, index.len(), budget)?;
            (Some(footer.0), footer.1)
        } else {
            (None, len)
        };
        let checked = index.check(&directory, payload_end);
        checked.map_err(|error| in_file(error.into()))?;
        let datasets = directory
            .iter()
            .map(|record| DatasetInfo::new(&record, footer.as_ref()))
            .collect::<Result<Vec<_>, _>>()?;
        let grids: Vec<ChunkGrid> = datasets.iter().map(|info| info.grid.clone()).collect();
        let tiles = Tiles::new(&index, &grids).map_err(in_file)?;
        drop(region);
        drop(head);
        Ok(Self {
            inner: Arc::new(Inner {
                source,
                superblock,
                datasets,
                tiles,
                budget,
                budget_bps: bps,
                budget_bytes: bytes,
                footer,
                payload_end,
            }),
        })
    }

    /// Returns the source of the file.
    pub fn source(&self) -> &dyn ByteSource {
        &*self.inner.source
    }

    /// Returns the superblock, the first 32 bytes of the file.
    pub fn superblock(&self) -> Superblock {
        self.inner.superblock
    }

    /// Returns the descriptions of all datasets, by id.
    pub fn datasets(&self) -> &[DatasetInfo] {
        &self.inner.datasets
    }

    /// Returns the footer, if the file has one.
    pub fn footer(&self) -> Option<&FooterInfo> {
        self.inner.footer.as_ref()
    }

    /// Returns the end of the payload area: the first spill, the footer, or the end of the file.
    pub fn payload_end(&self) -> u64 {
        self.inner.payload_end
    }

    /// Returns the memory limit of a read in bytes, resolved from the options and the file.
    pub fn budget(&self) -> u64 {
        self.inner.budget
    }

    /// Returns the share of memory in the file, in basis points; 0 if unset.
    pub fn memory_budget_bps(&self) -> u16 {
        self.inner.budget_bps
    }

    /// Returns the memory limit in the file, in bytes; 0 if unset.
    pub fn memory_budget_bytes(&self) -> u32 {
        self.inner.budget_bytes
    }

    /// Reads the chunk index again and passes it to `visit`, with rows in stored order.
    ///
    /// # Errors
    ///
    /// If the index cannot be read.
    pub fn with_index<T>(&self, visit: impl FnOnce(ChunkIndex<'_>) -> T) -> Result<T, DenseError> {
        if self.inner.datasets.is_empty() {
            return Ok(visit(ChunkIndex::EMPTY));
        }
        let bytes = self.source().read(self.superblock().index_span())?;
        let index = ChunkIndex::parse(&bytes)
            .map_err(|error| DenseError::tet(self.source().name(), error.into()))?;
        Ok(visit(index))
    }
}
