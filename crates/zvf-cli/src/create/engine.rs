//! The library, as `zvf create` calls it.

use zvf::build::{Design, Geometry};

/// What does not change the store, but how it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The most bytes of memory to take.
    pub memory: Option<u64>,
    /// How many threads.
    pub workers: Option<usize>,
    /// Whether a store that is there is replaced.
    pub overwrite: bool,
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Created {
    /// Vertices.
    pub vertices: u64,
    /// Objects.
    pub objects: u64,
    /// Chunks.
    pub chunks: u64,
    /// Bytes of all that was written.
    pub bytes_written: u64,
    /// The number of the transaction.
    pub transaction: u64,
    /// Extent of a chunk along each axis.
    pub chunk_shape: Vec<f64>,
    /// Extent of a bin along each axis, of geometry in bins.
    pub bin_shape: Option<Vec<f64>>,
    /// Why those were chosen, a line each.
    pub why: Vec<String>,
}

/// Why no store was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The library has no way to write.
    #[error("{out} is not written: this build of zvf reads stores, and does not yet write them")]
    NotYet {
        /// Where it was to be.
        out: String,
    },
}

/// Writes a store.
#[expect(clippy::unused_async, reason = "writing is I/O")]
pub(crate) async fn create(
    out: &str,
    geometry: Geometry,
    design: &Design,
    options: &Options,
) -> Result<Created, CreateError> {
    let _ = (geometry, design, options);
    let out = out.to_owned();
    Err(CreateError::NotYet { out })
}
