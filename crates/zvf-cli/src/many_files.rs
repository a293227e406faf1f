//! Stores of very many small files, which are refused unless they are confirmed.

use std::fmt;

use zvf_build::PlanEstimate;

use crate::display::{count_noun, group_digits};

/// Number of files at which very small chunks are refused.
const MANY_FILES: u64 = 50_000;
/// Number of vertices in a chunk below which chunks are very small.
const MIN_VERTICES: u64 = 64;
/// Number of vertices in a chunk of the suggested shape.
const SUGGESTED_VERTICES: u64 = 4096;
/// Bytes that a file takes on disk at least.
const DISK_BLOCK: u64 = 4096;

/// A store, or an addition to one, of very many small files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManyFilesError {
    target: PlanTarget,
    shape: String,
    files: String,
    chunks: String,
    vertices: String,
    disk: String,
    better: String,
}

/// The target of a plan: a new store, or additions to an existing one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanTarget {
    /// A new store, whose chunk shape can be chosen.
    New,
    /// Geometry that is added to a store.
    Addition,
}

impl fmt::Display for ManyFilesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            shape,
            files,
            chunks,
            vertices,
            disk,
            better,
            ..
        } = self;
        match self.target {
            PlanTarget::New => write!(
                f,
                "{shape} as --chunk-shape makes {files} of {chunks} for {vertices}, {disk} bytes on \
                 disk; use --chunk-shape {better}, combine chunks with --shard, or confirm with --yes"
            ),
            PlanTarget::Addition => write!(
                f,
                "the chunks of the store, {shape}, make {files} of {chunks} for {vertices}, {disk} \
                 bytes on disk; check whether the file has the unit of the store, create the store \
                 with --chunk-shape {better}, or confirm with --yes"
            ),
        }
    }
}

impl std::error::Error for ManyFilesError {}

impl ManyFilesError {
    /// Returns the error of a plan with very many files of very few vertices.
    pub(crate) fn of(estimate: &PlanEstimate, target: PlanTarget) -> Option<Self> {
        let per_chunk = estimate.vertices.checked_div(estimate.chunks)?;
        if estimate.files <= MANY_FILES || per_chunk >= MIN_VERTICES {
            return None;
        }
        let list = |extents: &[f64]| {
            let extents: Vec<String> = extents.iter().map(ToString::to_string).collect();
            extents.join(",")
        };
        let disk = estimate.files.saturating_mul(DISK_BLOCK);
        Some(Self {
            target,
            shape: list(&estimate.chunk_shape),
            files: count_noun(estimate.files, "file", "files"),
            chunks: count_noun(estimate.chunks, "chunk", "chunks"),
            vertices: count_noun(estimate.vertices, "vertex", "vertices"),
            disk: group_digits(disk.max(estimate.bytes)),
            better: list(&better_shape(estimate)),
        })
    }
}

/// Doubles the shape until a chunk has the usual number of vertices, if they are spread evenly.
fn better_shape(estimate: &PlanEstimate) -> Vec<f64> {
    let mut shape = estimate.chunk_shape.clone();
    let growth = u32::try_from(shape.len()).unwrap_or(u32::MAX).min(63);
    let mut chunks = estimate.chunks;
    while chunks > 1 && chunks.saturating_mul(SUGGESTED_VERTICES) > estimate.vertices {
        chunks >>= growth;
        for extent in &mut shape {
            *extent *= 2.0;
        }
    }
    shape
}
