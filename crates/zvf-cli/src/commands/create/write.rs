//! Calls of the library for `zvf create`.

use std::{error::Error, sync::Arc};

use zvf::{
    Column, ColumnValues, CreateOptions, Design, Geometry, GeometrySource, PlanCheck, WriteReport,
};
use zvf_files::WholeFile;

use crate::{
    display::len_u64,
    hint::{Operation, with_hint},
    progress::ProgressMeter,
    worker_pool::WorkerPool,
};

/// Options for how a store is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CreateSettings {
    /// Memory limit in bytes.
    pub memory: Option<u64>,
    /// Number of threads.
    pub threads: Option<usize>,
    /// Number of processes.
    pub workers: Option<usize>,
    /// True to replace an existing store.
    pub overwrite: bool,
    /// True to omit the copy of the nodes in the root.
    pub no_node_copy: bool,
    /// True to omit the inventory.
    pub no_seal: bool,
}

/// Settings that cannot be met.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CreateSettingsError {
    /// The geometry exceeds the memory limit.
    #[error(
        "the geometry takes {found} bytes of memory, but --memory allows {max}; raise it, or create a store of profile 0.9 from a part and append the rest"
    )]
    Memory {
        /// Size of the geometry in bytes.
        found: u64,
        /// Memory limit in bytes.
        max: u64,
    },
    /// The threads cannot be started.
    #[error("{0} threads cannot be started")]
    Threads(usize),
    /// The work cannot be shared among processes.
    #[error(
        "the work cannot be shared among processes: {0}; leave out --workers, or use --threads"
    )]
    NotShared(WholeFile),
    /// The work cannot be divided into tasks.
    #[error("the work cannot be divided into tasks: {0}; use `zvf create` without a plan")]
    NotPlanned(WholeFile),
}

impl CreateSettings {
    /// Checks that geometry fits into the memory limit.
    ///
    /// # Errors
    ///
    /// [`CreateSettingsError::Memory`] if it does not.
    pub fn check(&self, geometry: &Geometry) -> Result<(), CreateSettingsError> {
        let found = size(geometry);
        match self.memory {
            Some(max) if found > max => Err(CreateSettingsError::Memory { found, max }),
            _ => Ok(()),
        }
    }
}

/// Returns the approximate size of geometry in memory, in bytes.
fn size(geometry: &Geometry) -> u64 {
    let columns = geometry.attributes().map(|(_, column)| column);
    let attributes: u64 = columns.map(size_of_attribute).sum();
    let owners = geometry.owners();
    let lists = [owners.ids(), geometry.objects()].into_iter().flatten();
    let ids: usize = lists.map(<[i64]>::len).sum();
    let parts = owners.offsets().map_or(0, <[u64]>::len);
    let members: usize = geometry.groups().values().map(Vec::len).sum();
    let numbers = len_u64(geometry.links().ends.len() + ids + parts + members).saturating_mul(8);
    len_u64(geometry.positions().bytes.len())
        .saturating_add(attributes)
        .saturating_add(numbers)
}

fn size_of_attribute(attribute: &Column) -> u64 {
    match &attribute.values {
        ColumnValues::Numeric(numbers) => len_u64(numbers.bytes.len()),
        ColumnValues::Dictionary { codes, words } => {
            let words: usize = words.iter().map(String::len).sum();
            len_u64(words + size_of_val(codes.as_slice()))
        }
    }
}

/// Summary of a created store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreateSummary {
    /// Number of vertices.
    pub vertices: u64,
    /// Number of objects.
    pub objects: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// Number of files, or of objects in a bucket.
    pub files: u64,
    /// Total size of the files in bytes.
    pub bytes_written: u64,
    /// Number of the transaction.
    pub transaction: u64,
    /// Extent of a chunk along each axis.
    pub chunk_shape: Vec<f64>,
    /// Extent of a bin along each axis; `None` for geometry without bins.
    pub bin_shape: Option<Vec<f64>>,
    /// Reasons for these shapes, one line each.
    pub why: Vec<String>,
    /// The reason why the store, which is committed, could not be tidied up.
    pub unfinished: Option<String>,
}

/// Writes a store.
pub(super) async fn create(
    out: &str,
    geometry: Geometry,
    design: &Design,
    options: &CreateOptions,
) -> Result<CreateSummary, Box<dyn Error>> {
    let written = zvf::create(out, geometry, design.clone(), options).await;
    created(written)
}

/// Writes a store from a source of batches.
pub(super) async fn create_from(
    out: &str,
    source: &mut dyn GeometrySource,
    design: &Design,
    options: &CreateOptions,
) -> Result<CreateSummary, Box<dyn Error>> {
    let written = zvf::create_from_source(out, source, design.clone(), options).await;
    created(written)
}

impl CreateSettings {
    /// Converts to options of the library, with a progress meter and a check of the plan.
    pub(super) fn create_options(
        &self,
        meter: ProgressMeter,
        check: PlanCheck,
    ) -> Result<CreateOptions, CreateSettingsError> {
        if let Some(threads) = self.threads {
            use_threads(threads)?;
        }
        let mut options = CreateOptions::default();
        options.runner = self
            .workers
            .map(|workers| WorkerPool::new(workers).shared());
        if self.overwrite {
            options.overwrite = true;
        }
        options.node_copy = !self.no_node_copy;
        options.seal = !self.no_seal;
        options.memory = self.memory;
        options.check = Some(check);
        options.progress = Some(Arc::new(move |done, of| meter.set(done, of)));
        Ok(options)
    }
}

/// Sets the number of threads of this process.
pub(crate) fn use_threads(threads: usize) -> Result<(), CreateSettingsError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build_global()
        .map_err(|_| CreateSettingsError::Threads(threads))
}

fn created(written: Result<WriteReport, zvf::Error>) -> Result<CreateSummary, Box<dyn Error>> {
    let written = written.map_err(|error| with_hint(Operation::Create, error))?;
    let summary = written.summary;
    Ok(CreateSummary {
        vertices: summary.vertices,
        objects: summary.objects,
        chunks: summary.chunks,
        files: written.objects,
        bytes_written: written.bytes,
        transaction: written.transaction,
        chunk_shape: summary.chunk_shape,
        bin_shape: summary.bin_shape,
        why: summary.why,
        unfinished: written.unfinished,
    })
}
