//! Datasets and options for writing.

use serde_json::{Map, Value};
use zvf_format::tetration;

/// The compression of payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    #[default]
    Raw,
    /// One zstd frame of this level.
    Zstd(i32),
}

/// The description of a dataset to write.
#[derive(Clone, Debug)]
pub struct DatasetSpec {
    pub(super) name: String,
    pub(super) tet_dtype: tetration::TetDtype,
    pub(super) shape: Vec<u64>,
    pub(super) chunk: Vec<u64>,
    pub(super) compression: Compression,
    pub(super) attributes: Map<String, Value>,
    pub(super) dimension_names: Option<Vec<String>>,
}

impl DatasetSpec {
    /// Creates the description of a dataset with raw tiles. Tiles may be larger than the shape.
    pub fn new(
        name: impl Into<String>,
        dtype: tetration::TetDtype,
        shape: &[u64],
        chunk: &[u64],
    ) -> Self {
        Self {
            name: name.into(),
            tet_dtype: dtype,
            shape: shape.to_vec(),
            chunk: chunk.to_vec(),
            compression: Compression::Raw,
            attributes: Map::new(),
            dimension_names: None,
        }
    }

    /// Sets the compression.
    #[must_use]
    pub fn compressed(self, compression: Compression) -> Self {
        Self {
            compression,
            ..self
        }
    }

    /// Sets the attributes. The format allows text values only.
    #[must_use]
    pub fn attributes(self, attributes: Map<String, Value>) -> Self {
        Self { attributes, ..self }
    }

    /// Sets the names of the axes.
    #[must_use]
    pub fn dimension_names(self, names: Option<Vec<String>>) -> Self {
        Self {
            dimension_names: names,
            ..self
        }
    }
}

/// Options for writing a file.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Memory limit for readers in bytes; 0 leaves it unset.
    pub memory_budget_bytes: u32,
    /// Memory limit for readers as a share of available memory, in basis points; 0 leaves it unset.
    pub memory_budget_bps: u16,
    /// Write a CRC-32 of each payload to a place that other readers ignore. Verification reads
    /// them.
    pub checksums: bool,
    /// History records for the footer.
    pub history: Vec<Value>,
}
