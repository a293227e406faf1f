//! What is to be written, and how.

use serde_json::{Map, Value};
use zvf_format::tetration;

/// How payloads are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// The bytes themselves.
    #[default]
    Raw,
    /// One zstd frame of this level.
    Zstd(i32),
}

/// A dataset to be written.
#[derive(Clone, Debug)]
pub struct DatasetSpec {
    pub(super) name: String,
    pub(super) tet_dtype: tetration::Dtype,
    pub(super) shape: Vec<u64>,
    pub(super) chunk: Vec<u64>,
    pub(super) compression: Compression,
    pub(super) attributes: Map<String, Value>,
    pub(super) dimension_names: Option<Vec<String>>,
}

impl DatasetSpec {
    /// A dataset of raw tiles. Tiles may be larger than the shape.
    pub fn new(
        name: impl Into<String>,
        dtype: tetration::Dtype,
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

    /// Stored like this.
    #[must_use]
    pub fn compressed(self, compression: Compression) -> Self {
        Self {
            compression,
            ..self
        }
    }

    /// With attributes, which the format has as text only.
    #[must_use]
    pub fn attributes(self, attributes: Map<String, Value>) -> Self {
        Self { attributes, ..self }
    }

    /// With names of the axes.
    #[must_use]
    pub fn dimension_names(self, names: Option<Vec<String>>) -> Self {
        Self {
            dimension_names: names,
            ..self
        }
    }
}

/// How a file is written.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Bytes of memory that readers may use; 0 leaves it to them.
    pub memory_budget_bytes: u32,
    /// Share of memory that readers may use, in basis points; 0 leaves it to them.
    pub memory_budget_bps: u16,
    /// Whether a CRC-32 of each payload is written where other readers do not
    /// look. Verifying reads them.
    pub checksums: bool,
    /// Rows of the history, as the footer has them.
    pub history: Vec<Value>,
}
