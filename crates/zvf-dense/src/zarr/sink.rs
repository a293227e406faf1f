//! The writer of Zarr v3 arrays.

use std::{
    error::Error,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use zarrs::{
    array::{Array, ArrayBytes, ArrayMetadata, ArrayMetadataOptions},
    filesystem::FilesystemStore,
};

use crate::{
    ChunkGrid, DenseError, DenseSink, Hyperslab, NumpyDtype,
    scatter::{ScatterPiece, scatter},
};

/// Compression of the chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZarrCompression {
    /// No compression.
    Raw,
    /// zstd with this level.
    Zstd(i32),
    /// gzip with this level.
    Gzip(u32),
    /// Blosc with lz4 and byte shuffle, with this level.
    Blosc(u32),
    /// zstd with level 3.
    #[default]
    Default,
}

impl ZarrCompression {
    fn codec(self, size: u64) -> Option<Value> {
        Some(match self {
            Self::Raw => return None,
            Self::Default => Self::Zstd(3).codec(size)?,
            Self::Zstd(level) => {
                json!({"name": "zstd", "configuration": {"level": level, "checksum": false}})
            }
            Self::Gzip(level) => json!({"name": "gzip", "configuration": {"level": level}}),
            Self::Blosc(level) => json!({"name": "blosc", "configuration": {
                "cname": "lz4", "clevel": level, "shuffle": "shuffle",
                "typesize": size, "blocksize": 0,
            }}),
        })
    }
}

/// A Zarr v3 array under construction, written beside its path and renamed by `finish`.
#[derive(Debug)]
pub struct ZarrSink {
    target: PathBuf,
    staged: TempDir,
    array: Array<FilesystemStore>,
    grid: ChunkGrid,
    size: u64,
}

impl ZarrSink {
    /// Starts an array; `path` must not exist.
    ///
    /// # Errors
    ///
    /// If `path` exists, or Zarr has no such dtype.
    pub fn create(
        path: &Path,
        dtype: &NumpyDtype,
        grid: ChunkGrid,
        compression: ZarrCompression,
        attributes: &Map<String, Value>,
        dimension_names: Option<&[String]>,
    ) -> Result<Self, DenseError> {
        let name = path.display().to_string();
        let in_store = |source: Box<dyn Error + Send + Sync>| DenseError::Zarr {
            name: name.clone(),
            source,
        };
        if path.exists() {
            return Err(DenseError::io(
                &name,
                std::io::ErrorKind::AlreadyExists.into(),
            ));
        }
        let number = dtype
            .number()
            .ok_or_else(|| in_store("elements are not numbers".into()))?;
        let mut codecs = vec![json!({"name": "bytes", "configuration": {"endian": "little"}})];
        codecs.extend(compression.codec(dtype.size()));
        let kind = number.kind().name();
        let fill = match kind {
            "bool" => json!(false),
            kind if kind.starts_with("complex") => json!([0, 0]),
            _ => json!(0),
        };
        let mut metadata = json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": grid.shape(),
            "data_type": kind,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": grid.chunk_shape()}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": fill,
            "codecs": codecs,
            "attributes": attributes,
        });
        if let (Some(names), Some(metadata)) = (dimension_names, metadata.as_object_mut()) {
            metadata.insert("dimension_names".to_owned(), json!(names));
        }
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let mut staged = tempfile::Builder::new();
        staged.prefix(".zvf-").suffix(".part");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            staged.permissions(std::fs::Permissions::from_mode(0o777));
        }
        let staged = staged
            .tempdir_in(folder.unwrap_or(Path::new(".")))
            .map_err(|error| DenseError::io(&name, error))?;
        let store = FilesystemStore::new(staged.path());
        let store = Arc::new(store.map_err(|error| in_store(error.into()))?);
        let metadata: Result<ArrayMetadata, _> = serde_json::from_value(metadata);
        let metadata = metadata.map_err(|error| in_store(error.into()))?;
        let array = Array::new_with_metadata(store, "/", metadata)
            .map_err(|error| in_store(error.into()))?;
        // Omit the library version, so that equal input gives equal files.
        let options = ArrayMetadataOptions::default().with_include_zarrs_metadata(false);
        let stored = array.store_metadata_opt(&options);
        stored.map_err(|error| in_store(error.into()))?;
        Ok(Self {
            target: path.to_path_buf(),
            staged,
            array,
            grid,
            size: dtype.size(),
        })
    }

    fn fault(&self, source: impl Into<Box<dyn Error + Send + Sync>>) -> DenseError {
        DenseError::Zarr {
            name: self.target.display().to_string(),
            source: source.into(),
        }
    }
}

impl DenseSink for ZarrSink {
    fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    fn put_chunk(&mut self, selection: &Hyperslab, bytes: &[u8]) -> Result<(), DenseError> {
        let axes = selection.axes().iter().zip(self.grid.chunk_shape());
        let coordinate: Vec<u64> = axes
            .map(|(axis, chunk)| axis.start() / (*chunk).max(1))
            .collect();
        let chunk = self.grid.chunk_shape();
        let extents = selection.shape();
        let padded;
        let whole = if extents == chunk {
            bytes
        } else {
            // Chunks at the edge are padded with zeros.
            let shape = Hyperslab::whole(chunk);
            let len = shape
                .byte_len(self.size)
                .and_then(|len| usize::try_from(len).ok())
                .ok_or_else(|| self.fault("a chunk larger than memory"))?;
            let parts: Vec<_> = extents
                .iter()
                .map(|count| crate::CellPart {
                    cell: 0,
                    offset: 0,
                    at: 0,
                    count: *count,
                })
                .collect();
            let piece = ScatterPiece {
                bytes,
                extents: &extents,
                parts: &parts,
            };
            let size = usize::try_from(self.size).unwrap_or(usize::MAX);
            let mut into = vec![0; len];
            let done = scatter(&[piece], &shape, size, &mut into);
            done.ok_or_else(|| self.fault("a chunk of another length than its shape"))?;
            padded = into;
            &padded
        };
        let stored = self
            .array
            .store_chunk(&coordinate, ArrayBytes::new_flen(whole));
        stored.map_err(|error| self.fault(error))
    }

    fn finish(self: Box<Self>) -> Result<(), DenseError> {
        let name = self.target.display().to_string();
        let staged = self.staged.keep();
        let renamed = std::fs::rename(&staged, &self.target);
        renamed.map_err(|error| {
            std::fs::remove_dir_all(&staged).ok();
            DenseError::io(&name, error)
        })
    }
}
