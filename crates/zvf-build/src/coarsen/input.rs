//! Stored input of a coarser chunk, and its conversion to a block.

use std::collections::HashSet;

use rayon::prelude::*;
use zvf_format::{
    fragment::{FragmentIndex, FragmentIndexError, Rows},
    numeric::{ByteOrder, Dtype},
};

use zvf_model::column::NumericColumn;

use super::{AggregateError, Coarsener, NO_OBJECT, NO_VERTEX, Ownership, PathRun, VertexBlock};
use crate::coordinates::{self, BLOCK};

/// Stored data of a level within one chunk of the next.
#[derive(Clone, Debug, Default)]
pub struct CoarsenInput<'a> {
    /// Chunks, ascending.
    pub chunks: Vec<FineChunk<'a>>,
    /// Link cells with an end in these chunks.
    pub links: Vec<FineLinks<'a>>,
}

/// Chunk of the finer level.
#[derive(Clone, Debug, Default)]
pub struct FineChunk<'a> {
    /// Name of the chunk.
    pub name: String,
    /// Payload of the vertices.
    pub positions: &'a [u8],
    /// Payload of the fragment index.
    pub fragments: &'a [u8],
    /// Payloads of vertex attributes, if present.
    pub vertex: Vec<Option<&'a [u8]>>,
    /// Payloads of fragment attributes, if present.
    pub fragment: Vec<Option<&'a [u8]>>,
    /// References of objects to its fragments.
    pub named: &'a [FragmentReference],
}

/// Reference of an object's manifest to a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FragmentReference {
    /// Row of the object.
    pub object: u32,
    /// Position in the manifest.
    pub at: u32,
    /// Fragment number.
    pub fragment: u32,
}

/// Links of a cell.
#[derive(Clone, Debug, Default)]
pub struct FineLinks<'a> {
    /// Input chunk of each chunk number in `ends`, [`NO_VERTEX`] for chunks elsewhere.
    pub chunks: Vec<u32>,
    /// Chunk number and row of each end.
    pub ends: &'a [(u32, u64)],
    /// Payloads of link attributes, if present.
    pub values: Vec<Option<&'a [u8]>>,
}

/// Error of coarsening a chunk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CoarsenError {
    /// The fragment index is invalid.
    #[error("the fragment index of chunk {chunk} is invalid")]
    FragmentIndex {
        /// The chunk.
        chunk: String,
        /// Cause.
        source: FragmentIndexError,
    },
    /// A cell ends inside a row.
    #[error(
        "chunk {chunk} has {bytes} bytes of {what}, which is not a whole number of rows for {rows} vertices"
    )]
    PartialRow {
        /// The chunk.
        chunk: String,
        /// Contents of the cell.
        what: String,
        /// Size of the cell in bytes.
        bytes: usize,
        /// Number of rows of the chunk.
        rows: usize,
    },
    /// Cells of an attribute are absent, and its type has no null for the coarser level.
    #[error(
        "{what} is not stored for some vertices or links, which would be null on the coarser level, \
         but its type has no null: write these values, or aggregate {what} by count"
    )]
    NoNull {
        /// Name of the attribute.
        what: String,
    },
    /// Values of an attribute cannot be aggregated.
    #[error("values of {what} cannot be aggregated")]
    Aggregate {
        /// Name of the attribute.
        what: String,
        /// Cause.
        source: AggregateError,
    },
    /// A row is referenced that does not exist.
    #[error("row {row} of chunk {chunk} is referenced, but the chunk has {rows} rows")]
    UnknownRow {
        /// The chunk.
        chunk: String,
        /// The row.
        row: u64,
        /// Number of rows of the chunk.
        rows: usize,
    },
    /// A fragment is referenced that does not exist.
    #[error(
        "fragment {fragment} of chunk {chunk} is referenced, but the chunk has {fragments} fragments"
    )]
    UnknownFragment {
        /// The chunk.
        chunk: String,
        /// Fragment number.
        fragment: u32,
        /// Number of fragments of the chunk.
        fragments: u32,
    },
    /// Two objects share a vertex, and the level does not declare sharing.
    #[error(
        "row {row} of chunk {chunk} belongs to two objects, and the level does not say that \
         objects share: `zvf validate --repair` says so"
    )]
    SharedVertex {
        /// The chunk.
        chunk: String,
        /// The row.
        row: u64,
    },
    /// Fragments or objects list vertices of a chunk more often than is supported.
    #[error(
        "chunk {chunk} lists more than {MAX_LISTED} vertices in its fragments; use smaller chunks"
    )]
    TooManyListed {
        /// The chunk.
        chunk: String,
    },
    /// A chunk has too many bins.
    #[error("a chunk would have {bins} bins, more than {MAX_BINS}; use larger bins")]
    TooManyBins {
        /// Number of bins.
        bins: u64,
    },
    /// The chunk would have too many vertices or links.
    #[error("the chunk would have more than 4 billion vertices or links; use smaller chunks")]
    TooMany,
    /// Coordinates are not finite.
    #[error("positions are not finite")]
    PositionType,
}

/// Maximum number of vertices that the fragments of the chunks within a coarser chunk list. Fragments
/// overlap, so that a small file could list any number.
const MAX_LISTED: u64 = 1 << 28;
/// Maximum number of bins, and thus of fragments, of a chunk.
pub(super) const MAX_BINS: u64 = 1 << 24;

/// Owner of a row that no fragment references.
const UNREFERENCED: u32 = NO_VERTEX - 1;

/// Block with the origin of its vertices.
#[derive(Debug, Default)]
pub(super) struct SourceBlock {
    pub(super) block: VertexBlock,
    /// Vertex of each row of all chunks; [`NO_VERTEX`] for unreferenced rows.
    pub(super) vertex_of: Vec<u32>,
    /// Offsets of chunks in `vertex_of`, and the end of the last.
    pub(super) starts: Vec<usize>,
    /// Row of each vertex, counted over all chunks.
    pub(super) row_of: Vec<u32>,
    /// Manifest position at which each path starts.
    pub(super) path_at: Vec<u32>,
    /// Path or object, chunk and fragment of each fragment in use.
    pub(super) of_fragments: Vec<(u32, u32, u32)>,
    /// Cell and index of each stored link of the block.
    pub(super) link_of: Vec<(u32, u32)>,
    /// Index of the first link implied by row order.
    pub(super) implied_from: usize,
    listed: ListedRows,
}

/// Number of rows that fragments list.
#[derive(Debug, Default)]
struct ListedRows(u64);

impl ListedRows {
    /// Counts the rows of a fragment.
    fn add(&mut self, rows: &Rows<'_>, chunk: &FineChunk<'_>) -> Result<(), CoarsenError> {
        self.0 = self.0.saturating_add(rows.len());
        if self.0 > MAX_LISTED {
            let chunk = chunk.name.clone();
            return Err(CoarsenError::TooManyListed { chunk });
        }
        Ok(())
    }
}

impl Coarsener {
    /// Decodes the input into a block.
    pub(super) fn gather(
        &self,
        input: &CoarsenInput<'_>,
        lower: Vec<f64>,
        upper: Vec<f64>,
    ) -> Result<SourceBlock, CoarsenError> {
        let axes = self.axes;
        let size = self.positions.size() * axes;
        let mut all = SourceBlock {
            starts: vec![0],
            ..SourceBlock::default()
        };
        let mut indexes = Vec::with_capacity(input.chunks.len());
        for chunk in &input.chunks {
            let rows = rows_of(chunk, size)?;
            let index = FragmentIndex::parse(chunk.fragments).map_err(|source| {
                CoarsenError::FragmentIndex {
                    chunk: chunk.name.clone(),
                    source,
                }
            })?;
            if index.extent() > rows as u64 {
                let row = index.extent() - 1;
                return Err(no_row(chunk, row, rows));
            }
            indexes.push(index);
            let end = all.starts[all.starts.len() - 1] + rows;
            if u32::try_from(end).is_err() {
                return Err(CoarsenError::TooMany);
            }
            all.starts.push(end);
        }
        let rows = all.starts[all.starts.len() - 1];
        let is_kept = |object: u32| {
            let kept = self.kept.as_ref();
            kept.is_none_or(|kept| kept.get(object as usize).copied().unwrap_or(false))
        };
        let mut owners = Vec::new();
        if self.shape.is_shared() {
            all.vertex_of = (0..rows as u32).collect();
            all.row_of.clone_from(&all.vertex_of);
        } else {
            owners = vec![UNREFERENCED; rows];
            let has_objects = self.has_objects;
            for ((at, chunk), index) in (0u32..).zip(&input.chunks).zip(&indexes) {
                let first = all.starts[at as usize];
                let mut own = |fragment: u32, owner: u32| {
                    let found = index
                        .rows(fragment)
                        .ok_or_else(|| no_fragment(chunk, fragment, index))?;
                    all.listed.add(&found, chunk)?;
                    for row in &found {
                        let slot = &mut owners[first + row as usize];
                        if *slot != UNREFERENCED && *slot != owner && has_objects {
                            let chunk = chunk.name.clone();
                            return Err(CoarsenError::SharedVertex { chunk, row });
                        }
                        *slot = owner;
                    }
                    Ok(())
                };
                if has_objects {
                    for named in chunk.named.iter().filter(|named| is_kept(named.object)) {
                        own(named.fragment, named.object)?;
                        all.of_fragments.push((named.object, at, named.fragment));
                    }
                    if self.shape == Ownership::Exclusive && self.width.is_none() {
                        let fragments = chunk.named.iter().map(|named| named.fragment);
                        let named: HashSet<u32> = fragments.collect();
                        let mut others = (0..index.len()).filter(|at| !named.contains(at));
                        others.try_for_each(|fragment| own(fragment, NO_OBJECT))?;
                    }
                } else {
                    for fragment in 0..index.len() {
                        own(fragment, NO_OBJECT)?;
                    }
                }
            }
            all.vertex_of = vec![NO_VERTEX; rows];
            for (row, owner) in owners.iter().enumerate() {
                if *owner != UNREFERENCED {
                    all.vertex_of[row] = all.row_of.len() as u32;
                    all.row_of.push(row as u32);
                }
            }
        }
        let block = &mut all.block;
        (block.lower, block.upper) = (lower, upper);
        block.axes = axes;
        block.topology = self.shape.topology(self.width);
        self.positions_of(input, &all.row_of, &all.starts, &mut block.positions)?;
        if self.has_objects && !self.shape.is_shared() {
            block.owners = all.row_of.iter().map(|row| owners[*row as usize]).collect();
        }
        drop(owners);
        if self.shape.is_shared() {
            self.paths(input, &indexes, &mut all, is_kept)?;
        }
        self.links_of(input, &indexes, &mut all)?;
        Ok(all)
    }

    fn positions_of(
        &self,
        input: &CoarsenInput<'_>,
        row_of: &[u32],
        starts: &[usize],
        out: &mut Vec<f64>,
    ) -> Result<(), CoarsenError> {
        let axes = self.axes;
        let rows = starts[starts.len() - 1];
        let mut values = vec![0.0; rows * axes];
        let mut rest = values.as_mut_slice();
        for (chunk, ends) in input.chunks.iter().zip(starts.windows(2)) {
            let (own, after) = rest.split_at_mut((ends[1] - ends[0]) * axes);
            rest = after;
            let numbers = NumericColumn {
                bytes: in_order(chunk.positions, self.positions),
                ..NumericColumn::new(self.positions.kind(), axes as u32)
            };
            let parts =
                coordinates::blocks(numbers.len()).zip(own.par_chunks_mut(BLOCK * axes.max(1)));
            parts.for_each_init(Vec::new, |values, (rows, part)| {
                coordinates::block(&numbers, rows, values);
                part.copy_from_slice(values);
            });
        }
        let is_finite = |part: &[f64]| part.iter().all(|value| value.is_finite());
        if !values.par_chunks(BLOCK).all(is_finite) {
            return Err(CoarsenError::PositionType);
        }
        if row_of.len() == rows {
            *out = values;
            return Ok(());
        }
        out.reserve(row_of.len() * axes);
        for row in row_of {
            let at = *row as usize * axes;
            out.extend_from_slice(&values[at..at + axes]);
        }
        Ok(())
    }

    /// Collects links with all ends in the block, and marks vertices with other links.
    fn links_of(
        &self,
        input: &CoarsenInput<'_>,
        indexes: &[FragmentIndex<'_>],
        all: &mut SourceBlock,
    ) -> Result<(), CoarsenError> {
        let Some(width) = self.width else {
            return Ok(());
        };
        all.block.width = width;
        let is_tree = self.shape == Ownership::Trees;
        let mut has_parent = vec![false; if is_tree { all.row_of.len() } else { 0 }];
        let mut ends = Vec::with_capacity(width);
        let mut tied: Vec<u32> = Vec::new();
        for (cell, links) in (0u32..).zip(&input.links) {
            for (link, record) in (0u32..).zip(links.ends.chunks_exact(width)) {
                ends.clear();
                let mut here = true;
                for (slot, (number, row)) in record.iter().enumerate() {
                    let chunk = links
                        .chunks
                        .get(*number as usize)
                        .copied()
                        .unwrap_or(NO_VERTEX);
                    if chunk == NO_VERTEX {
                        here = false;
                        continue;
                    }
                    let at = chunk as usize;
                    let rows = all.starts[at + 1] - all.starts[at];
                    let row = usize::try_from(*row)
                        .ok()
                        .filter(|row| *row < rows)
                        .ok_or_else(|| no_row(&input.chunks[at], record[slot].1, rows))?;
                    let vertex = all.vertex_of[all.starts[at] + row];
                    if is_tree && slot == 0 && vertex != NO_VERTEX {
                        has_parent[vertex as usize] = true;
                    }
                    ends.push(vertex);
                }
                if here && !ends.contains(&NO_VERTEX) {
                    all.block.links.extend_from_slice(&ends);
                    all.link_of.push((cell, link));
                } else if !here {
                    tied.extend(ends.iter().filter(|vertex| **vertex != NO_VERTEX));
                }
            }
        }
        if !tied.is_empty() {
            all.block.tied = vec![false; all.row_of.len()];
            for vertex in tied {
                all.block.tied[vertex as usize] = true;
            }
        }
        all.implied_from = all.link_of.len();
        if !is_tree {
            return Ok(());
        }
        for (at, index) in indexes.iter().enumerate() {
            for rows in index {
                all.listed.add(&rows, &input.chunks[at])?;
                let mut before = NO_VERTEX;
                for row in &rows {
                    let vertex = all.vertex_of[all.starts[at] + row as usize];
                    if vertex != NO_VERTEX && before != NO_VERTEX && !has_parent[vertex as usize] {
                        all.block.links.extend([vertex, before]);
                    }
                    before = vertex;
                }
            }
        }
        Ok(())
    }

    /// Collects runs of paths: consecutive manifest entries form one run, and all
    /// entries of an object if objects share points.
    fn paths(
        &self,
        input: &CoarsenInput<'_>,
        indexes: &[FragmentIndex<'_>],
        all: &mut SourceBlock,
        is_kept: impl Fn(u32) -> bool,
    ) -> Result<(), CoarsenError> {
        let mut named: Vec<(FragmentReference, u32)> = Vec::new();
        for (at, chunk) in (0u32..).zip(&input.chunks) {
            let own = chunk.named.iter().filter(|named| is_kept(named.object));
            named.extend(own.map(|named| (*named, at)));
        }
        named.sort_unstable_by_key(|(named, _)| (named.object, named.at));
        let are_points = self.shape == Ownership::SharedPoints;
        let follows = |a: &(FragmentReference, u32), b: &(FragmentReference, u32)| {
            let is_next = are_points || a.0.at.checked_add(1) == Some(b.0.at);
            a.0.object == b.0.object && is_next
        };
        for run in named.chunk_by(follows) {
            let number = all.block.paths.len() as u32;
            let mut rows = Vec::new();
            for (named, at) in run {
                let (chunk, index) = (&input.chunks[*at as usize], &indexes[*at as usize]);
                let own = index
                    .rows(named.fragment)
                    .ok_or_else(|| no_fragment(chunk, named.fragment, index))?;
                all.listed.add(&own, chunk)?;
                let first = all.starts[*at as usize] as u32;
                rows.extend(own.iter().map(|row| first + row as u32));
                all.of_fragments.push((number, *at, named.fragment));
            }
            all.path_at.push(run[0].0.at);
            let object = run[0].0.object;
            all.block.paths.push(PathRun { object, rows });
        }
        Ok(())
    }
}

impl FineChunk<'_> {
    /// Calls `each` with the object, fragment and position of each vertex of each fragment. The
    /// object is [`NO_OBJECT`] without objects; with objects, unreferenced fragments are skipped.
    ///
    /// # Errors
    ///
    /// [`CoarsenError`] when the stored data is inconsistent.
    pub fn each_position(
        &self,
        dtype: Dtype,
        axes: usize,
        has_objects: bool,
        each: &mut dyn FnMut(u32, u32, &[f64]),
    ) -> Result<(), CoarsenError> {
        let rows = rows_of(self, dtype.size() * axes)?;
        let index =
            FragmentIndex::parse(self.fragments).map_err(|source| CoarsenError::FragmentIndex {
                chunk: self.name.clone(),
                source,
            })?;
        if index.extent() > rows as u64 {
            return Err(no_row(self, index.extent() - 1, rows));
        }
        let numbers = NumericColumn {
            bytes: in_order(self.positions, dtype),
            ..NumericColumn::new(dtype.kind(), axes as u32)
        };
        let mut positions = Vec::new();
        coordinates::block(&numbers, 0..rows, &mut positions);
        let mut tell = |object: u32, fragment: u32| {
            let own = index
                .rows(fragment)
                .ok_or_else(|| no_fragment(self, fragment, &index))?;
            for row in &own {
                let at = row as usize * axes;
                each(object, fragment, &positions[at..at + axes]);
            }
            Ok(())
        };
        if has_objects {
            self.named
                .iter()
                .try_for_each(|named| tell(named.object, named.fragment))
        } else {
            (0..index.len()).try_for_each(|fragment| tell(NO_OBJECT, fragment))
        }
    }
}

/// Rows of a chunk.
pub(super) fn rows_of(chunk: &FineChunk<'_>, size: usize) -> Result<usize, CoarsenError> {
    let bytes = chunk.positions.len();
    if bytes.is_multiple_of(size.max(1)) {
        Ok(bytes / size.max(1))
    } else {
        Err(CoarsenError::PartialRow {
            chunk: chunk.name.clone(),
            what: "vertices".to_owned(),
            bytes,
            rows: bytes / size.max(1),
        })
    }
}

/// Converts numbers to little-endian bytes.
pub(super) fn in_order(bytes: &[u8], dtype: Dtype) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if dtype.order() == ByteOrder::Big {
        bytes
            .chunks_exact_mut(dtype.size().max(1))
            .for_each(<[u8]>::reverse);
    }
    bytes
}

fn no_row(chunk: &FineChunk<'_>, row: u64, rows: usize) -> CoarsenError {
    CoarsenError::UnknownRow {
        chunk: chunk.name.clone(),
        row,
        rows,
    }
}

fn no_fragment(chunk: &FineChunk<'_>, fragment: u32, index: &FragmentIndex<'_>) -> CoarsenError {
    CoarsenError::UnknownFragment {
        chunk: chunk.name.clone(),
        fragment,
        fragments: index.len(),
    }
}
