//! The library, as `zvf create` calls it.

use std::{error::Error, sync::Arc};

use zvf::{
    Attribute, CreateOptions, Design, Geometry, GeometrySource, PlanCheck, Values, WriteReport,
};

use crate::{
    display::len_u64,
    formats::WholeFile,
    hint::{Operation, with_hint},
    progress::ProgressMeter,
    worker_pool::WorkerPool,
};

/// What does not change the store, but how it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CreateSettings {
    /// The most bytes of memory to take.
    pub memory: Option<u64>,
    /// How many threads.
    pub threads: Option<usize>,
    /// How many processes.
    pub workers: Option<usize>,
    /// Whether a store that is there is replaced.
    pub overwrite: bool,
    /// Whether the root has no copy of the nodes.
    pub no_node_copy: bool,
}

/// Why options cannot be kept to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CreateSettingsError {
    /// The geometry is too large.
    #[error(
        "the geometry takes {found} bytes of memory and --memory allows {most}; raise it, or create a store of a part and append the rest"
    )]
    Memory {
        /// Bytes it takes.
        found: u64,
        /// Bytes it may take.
        most: u64,
    },
    /// Threads cannot be started.
    #[error("{0} threads cannot be started")]
    Threads(usize),
    /// Work that cannot be shared.
    #[error(
        "the work cannot be shared among processes: {0}; leave out --workers, or use --threads"
    )]
    NotShared(WholeFile),
}

impl CreateSettings {
    /// Whether geometry can be written with these.
    ///
    /// # Errors
    ///
    /// [`CreateSettingsError::Memory`] when it is too large.
    pub fn check(&self, geometry: &Geometry) -> Result<(), CreateSettingsError> {
        let found = size(geometry);
        match self.memory {
            Some(most) if found > most => Err(CreateSettingsError::Memory { found, most }),
            _ => Ok(()),
        }
    }
}

/// Bytes that geometry takes in memory, about.
fn size(geometry: &Geometry) -> u64 {
    let attributes = [
        &geometry.vertex,
        &geometry.link,
        &geometry.object,
        &geometry.fragment,
        &geometry.group,
    ];
    let attributes: u64 = attributes
        .into_iter()
        .flatten()
        .map(size_of_attribute)
        .sum();
    let lists = [
        &geometry.part_objects,
        &geometry.object_ids,
        &geometry.objects,
    ];
    let ids: usize = lists.into_iter().flatten().map(Vec::len).sum();
    let parts = geometry.part_offsets.as_ref().map_or(0, Vec::len);
    let members: usize = geometry.groups.values().map(Vec::len).sum();
    let numbers = len_u64(geometry.links.len() + ids + parts + members).saturating_mul(8);
    len_u64(geometry.positions.bytes.len())
        .saturating_add(attributes)
        .saturating_add(numbers)
}

fn size_of_attribute(attribute: &Attribute) -> u64 {
    match &attribute.values {
        Values::Numbers(numbers) => len_u64(numbers.bytes.len()),
        Values::Text(texts) => {
            let words: usize = texts.iter().flatten().map(String::len).sum();
            len_u64(words + size_of_val(texts.as_slice()))
        }
    }
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreateSummary {
    /// Vertices.
    pub vertices: u64,
    /// Objects.
    pub objects: u64,
    /// Chunks.
    pub chunks: u64,
    /// Files, or objects of a bucket.
    pub files: u64,
    /// Bytes in them.
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

/// Writes a store, and says how far it is.
pub(super) async fn create(
    out: &str,
    geometry: Geometry,
    design: &Design,
    how: &CreateOptions,
) -> Result<CreateSummary, Box<dyn Error>> {
    let written = zvf::create(out, geometry, design.clone(), how).await;
    created(written)
}

/// Writes a store of what comes in batches.
pub(super) async fn create_from(
    out: &str,
    source: &mut dyn GeometrySource,
    design: &Design,
    how: &CreateOptions,
) -> Result<CreateSummary, Box<dyn Error>> {
    let written = zvf::create_from_source(out, source, design.clone(), how).await;
    created(written)
}

impl CreateSettings {
    /// Converts to options of the library, with a progress meter and a check of the plan.
    pub(super) fn how(
        &self,
        meter: ProgressMeter,
        check: PlanCheck,
    ) -> Result<CreateOptions, CreateSettingsError> {
        if let Some(threads) = self.threads {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build_global()
                .map_err(|_| CreateSettingsError::Threads(threads))?;
        }
        let mut how = CreateOptions::default();
        how.runner = self
            .workers
            .map(|workers| WorkerPool::new(workers).shared());
        if self.overwrite {
            how.overwrite = true;
        }
        how.node_copy = !self.no_node_copy;
        how.memory = self.memory;
        how.check = Some(check);
        how.progress = Some(Arc::new(move |done, of| meter.set(done, of)));
        Ok(how)
    }
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
    })
}
