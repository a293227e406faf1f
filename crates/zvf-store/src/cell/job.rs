//! The work for one cell of a batch: its reads, and its results made from them.

use core::mem;

use bytes::Bytes;

use super::{
    CellError, CellResult, LocatedCell, Part,
    child::{Blob, Child, ChildState},
    element::{CacheKey, Element, ElementPlan, KnownBlocks, ReadResult, byte_count},
    shard_indexes::KnownIndexes,
};
use crate::{
    io::{ByteBudget, Read},
    store::Store,
};

/// The outcome of a job, and the payload to insert into the cell cache.
pub(super) struct JobResult {
    pub(super) outcome: JobOutcome,
    pub(super) cacheable: Option<(CacheKey, Bytes)>,
}

/// A cell whose reads are planned.
pub(super) struct CellJob {
    source: Source,
    parts: Vec<Part>,
    reads: Vec<Read>,
}

/// The source of a payload.
enum Source {
    Failed(CellError),
    Element(Element, ElementPlan),
    Cached(Element, Bytes),
    Child(Child),
}

pub(super) enum JobOutcome {
    /// The result of each part.
    Finished(Vec<CellResult>),
    /// The chunk of a child has another name and has to be read.
    ChunkRenamed {
        child: Child,
        parts: Vec<Part>,
        blob: Blob,
    },
}

impl CellJob {
    /// Plans the reads of a cell.
    pub(super) fn plan(
        cell: Result<LocatedCell, CellError>,
        parts: Vec<Part>,
        indexes: &KnownIndexes,
        blocks: &KnownBlocks,
        store: &Store,
    ) -> Self {
        let mut reads = Vec::new();
        let source = match cell {
            Err(error) => Source::Failed(error),
            Ok(LocatedCell::Element(element)) => {
                let is_sealed = store.checks(element.key());
                let plan = element.plan(&parts, indexes, blocks, is_sealed, &mut reads);
                Source::Element(element, plan)
            }
            Ok(LocatedCell::Child(child)) => {
                child.plan(&mut reads);
                Source::Child(child)
            }
        };
        Self {
            source,
            parts,
            reads,
        }
    }

    /// Creates the job of a cell whose payload is cached.
    pub(super) fn cached(element: Element, parts: Vec<Part>, payload: Bytes) -> Self {
        Self {
            source: Source::Cached(element, payload),
            parts,
            reads: Vec::new(),
        }
    }

    /// Returns whether no other job reads the same objects.
    pub(super) fn is_independent(&self) -> bool {
        match &self.source {
            Source::Element(element, _) => element.shard().is_none(),
            Source::Failed(_) | Source::Cached(..) | Source::Child(_) => true,
        }
    }

    pub(super) fn read_count(&self) -> usize {
        self.reads.len()
    }

    pub(super) fn take_reads(&mut self) -> Vec<Read> {
        mem::take(&mut self.reads)
    }

    /// Estimates the cost of decoding the bytes read, in bytes of decompression.
    pub(super) fn decode_cost(&self, results: &[ReadResult]) -> usize {
        let bytes = results
            .iter()
            .flatten()
            .flatten()
            .map(Bytes::len)
            .fold(0, usize::saturating_add);
        match &self.source {
            Source::Element(element, ElementPlan::Whole | ElementPlan::Blocks(_)) => {
                element.decode_cost(bytes)
            }
            Source::Element(..) | Source::Cached(..) | Source::Failed(_) => 0,
            // The codecs are unknown until the metadata are parsed; assume compression.
            Source::Child(_) => bytes,
        }
    }

    /// Decodes the bytes read into the results of the parts.
    pub(super) fn finish(
        self,
        results: Vec<ReadResult>,
        store: &Store,
        budget: &ByteBudget,
        fills_cache: bool,
    ) -> JobResult {
        let parts = self.parts;
        let mut results = results.into_iter();
        let mut next = || results.next().unwrap_or(Ok(None));
        let mut cacheable = None;
        let outcome = match self.source {
            Source::Failed(error) => {
                JobOutcome::Finished(parts.iter().map(|_| Err(error.clone())).collect())
            }
            Source::Element(element, ElementPlan::Known(known)) => {
                JobOutcome::Finished(element.slice_parts(&known.map(|()| None), &parts))
            }
            Source::Element(element, ElementPlan::Parts(plan)) => {
                let object_size = store.sealed_size(element.key());
                JobOutcome::Finished(element.take_parts(&parts, results, plan, object_size))
            }
            Source::Element(element, ElementPlan::Blocks(plan)) => {
                JobOutcome::Finished(element.take_blocks(&parts, results, &plan, budget))
            }
            Source::Element(element, ElementPlan::Whole) => {
                let payload = element.payload(next(), budget);
                let parts = element.slice_parts(&payload, &parts);
                let payload = payload.ok().flatten().filter(|_| fills_cache);
                cacheable = payload.and_then(|payload| {
                    let key = element.cache_key()?.clone();
                    Some((key, element.detach(payload)))
                });
                JobOutcome::Finished(parts)
            }
            // A cached payload counts towards the budget as if it had been read.
            Source::Cached(element, payload) => {
                let reserved = budget.reserve(element.key(), byte_count(&payload));
                let payload = reserved.map(|()| Some(payload)).map_err(CellError::from);
                JobOutcome::Finished(element.slice_parts(&payload, &parts))
            }
            Source::Child(child) => {
                let (metadata, chunk) = (next(), next());
                let payload = match child.resolve(metadata, chunk) {
                    ChildState::Known(payload) => payload,
                    ChildState::Chunk(blob, chunk) => blob.payload(Ok(Some(chunk)), budget),
                    ChildState::ChunkRenamed(blob) => {
                        let outcome = JobOutcome::ChunkRenamed { child, parts, blob };
                        return JobResult { outcome, cacheable };
                    }
                };
                JobOutcome::Finished(child.slice_parts(&payload, &parts))
            }
        };
        JobResult { outcome, cacheable }
    }
}

impl JobOutcome {
    /// Returns the read of a chunk that has another name.
    pub(super) fn next_read(&self) -> Option<Read> {
        match self {
            Self::Finished(_) => None,
            Self::ChunkRenamed { blob, .. } => Some(blob.read()),
        }
    }

    /// Returns the results of the parts, given the chunk of [`next_read`](Self::next_read).
    pub(super) fn finish(self, chunk: Option<ReadResult>, budget: &ByteBudget) -> Vec<CellResult> {
        match self {
            Self::Finished(results) => results,
            Self::ChunkRenamed { child, parts, blob } => {
                let payload = blob.payload(chunk.unwrap_or(Ok(None)), budget);
                child.slice_parts(&payload, &parts)
            }
        }
    }
}
