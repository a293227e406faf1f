//! The library, as `zvf create` calls it.

use zvf::{
    CreateOptions, Existing,
    build::{Design, Geometry},
};

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

/// Writes a store.
///
/// # Errors
///
/// [`zvf::Error`].
pub(crate) async fn create(
    out: &str,
    geometry: Geometry,
    design: &Design,
    options: &Options,
) -> Result<Created, zvf::Error> {
    let mut how = CreateOptions::default();
    if options.overwrite {
        how.existing = Existing::Replace;
    }
    let written = zvf::create(out, geometry, design.clone(), &how).await?;
    let summary = written.summary;
    Ok(Created {
        vertices: summary.vertices,
        objects: summary.objects,
        chunks: summary.chunks,
        bytes_written: written.bytes,
        transaction: written.transaction,
        chunk_shape: summary.chunk_shape,
        bin_shape: summary.bin_shape,
        why: summary.why,
    })
}
