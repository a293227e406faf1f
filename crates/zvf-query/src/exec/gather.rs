//! Copy of selected rows into the columns of a batch.

use core::ops::Range;
use std::collections::BTreeSet;

use zvf_catalog::{Chunk, Diagnostics, ObjectSet, RowSelection, Schema, on_cores};
use zvf_model::object_ids::Owner;

use super::{
    clip::{BorderClip, InterpolatedVertex, PathPart},
    filter::SelectedRows,
    limit::Limit,
    links::{LinkGraph, LinkNode, LinkVertices, SelectedLinks},
    operator::{Details, Operator},
};
use crate::{
    batch::{
        loaded::LoadedChunks,
        vertices::{Owners, VertexBuilder},
    },
    error::QueryError,
    resolve::query::{Batching, LevelQuery},
    result::{Parts, QueryResult},
};

/// Upper bound on the bytes of a batch.
const MAX_BATCH_BYTES: u64 = 64 << 20;
/// Upper bound on position bytes preallocated.
const MAX_PREALLOC_BYTES: u64 = 8 << 30;
/// Bytes of vertices copied into a batch at once, by all cores.
const PORTION_BYTES: u64 = 8 << 20;

/// The operator that copies the selected rows into columns of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gather {
    /// Returns the object of each row.
    pub(crate) owners: bool,
}

impl Operator for Gather {
    const NAME: &'static str = "Gather";

    fn details(&self, query: &LevelQuery<'_>, details: &mut Details) {
        details.list("columns", &query.shown.vertex);
    }
}

impl Gather {
    /// Gathers vertices of `chunks` chunks.
    pub(crate) fn chunks<'g>(
        self,
        query: &'g LevelQuery<'g>,
        schema: &'g Schema,
        chunks: usize,
    ) -> VertexGather<'g> {
        VertexGather {
            query,
            schema,
            owners: self.owners,
            chunks,
            builder: query.vertices(schema, self.owners),
            objects: BTreeSet::new(),
        }
    }

    /// Gathers parts of paths.
    pub(crate) fn paths<'g>(
        self,
        query: &LevelQuery<'_>,
        schema: &'g Schema,
        loaded: &'g LoadedChunks,
        clip: Option<&'g BorderClip<'g>>,
    ) -> PathGather<'g> {
        PathGather {
            schema,
            loaded,
            clip,
            builder: query.vertices(schema, self.owners),
            kept: RowOrder::default(),
            parts: Parts {
                offsets: vec![0],
                objects: Vec::new(),
            },
        }
    }
}

/// The gather of vertices of chunks, in the order of the chunks.
///
/// Its input are selections of chunks; its output are batches of about
/// [`batch_size`](LevelQuery::batch_size) bytes.
pub(crate) struct VertexGather<'g> {
    query: &'g LevelQuery<'g>,
    schema: &'g Schema,
    owners: bool,
    /// Number of chunks of the scan.
    chunks: usize,
    builder: VertexBuilder,
    /// Ids of the objects of all vertices in batches.
    objects: BTreeSet<i64>,
}

impl VertexGather<'_> {
    /// Splits a group of chunks into portions that are copied at once, of about
    /// [`PORTION_BYTES`].
    pub(crate) fn portions<'c>(
        &self,
        group: &'c [Option<Chunk>],
    ) -> impl Iterator<Item = &'c [Option<Chunk>]> + use<'c> {
        portions(group, self.builder.row_size(), self.query.batch_size())
    }

    /// Appends all vertices of chunks in bulk and returns whether that was possible. Otherwise,
    /// reserves memory for them.
    pub(crate) fn push_chunks(&mut self, portion: &[Option<Chunk>]) -> bool {
        let expected = self.expected(portion);
        let is_done = self.builder.push_chunks(self.schema, portion, expected);
        if !is_done {
            self.builder.reserve(expected);
        }
        is_done
    }

    /// Appends selected vertices of a chunk.
    pub(crate) fn push(
        &mut self,
        selected: &SelectedRows<'_>,
        objects: Option<&ObjectSet>,
        diagnostics: &Diagnostics,
    ) -> Result<(), QueryError> {
        let object = |fragment| selected.owners.object(fragment, objects);
        let (chunk, rows) = (selected.chunk, &selected.rows);
        self.builder
            .push(self.schema, chunk, rows, object, diagnostics)
    }

    /// Takes the batch if it is full.
    pub(crate) fn full_batch(&mut self) -> Option<QueryResult> {
        (self.builder.size() >= self.query.batch_size()).then(|| self.take_batch())
    }

    /// Returns the last batch and the ids of the objects in all batches.
    pub(crate) fn finish(mut self) -> (QueryResult, BTreeSet<i64>) {
        let batch = self.take_batch();
        (batch, self.objects)
    }

    fn take_batch(&mut self) -> QueryResult {
        let empty = self.query.vertices(self.schema, self.owners);
        let mut batch = self.query.empty_result();
        core::mem::replace(&mut self.builder, empty).finish(&mut batch);
        self.objects.extend(batch.objects_of_rows());
        batch
    }

    /// Estimates the vertices of a batch of a whole level from those of some chunks. The count in
    /// the metadata may be wrong, so chunks bound it.
    fn expected(&self, some: &[Option<Chunk>]) -> usize {
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let rows = some
            .iter()
            .flatten()
            .map(|chunk| count(chunk.loaded.len()))
            .fold(0, u64::saturating_add);
        let per_chunk = count(self.chunks).div_ceil(count(some.len()).max(1));
        let alike = rows.saturating_mul(per_chunk);
        let all = match self.query.level.metadata.vertex_count {
            Some(count) => count.min(alike.saturating_mul(8)),
            None => alike,
        };
        let max = self.query.batch_size().min(MAX_PREALLOC_BYTES) / self.schema.row().max(1);
        usize::try_from(all.min(max.saturating_add(rows))).unwrap_or(0)
    }
}

/// Splits a group of chunks into portions of about [`PORTION_BYTES`], for vertices of `row` bytes
/// and batches of at most `max` bytes.
fn portions(
    group: &[Option<Chunk>],
    row: u64,
    max: u64,
) -> impl Iterator<Item = &[Option<Chunk>]> + use<'_> {
    let max = PORTION_BYTES.min(max / 2);
    let mut rest = group;
    core::iter::from_fn(move || {
        let mut bytes = 0_u64;
        let count = rest.iter().take_while(|chunk| {
            let rows = chunk.as_ref().map_or(0, |chunk| chunk.loaded.len());
            let rows = u64::try_from(rows).unwrap_or(u64::MAX);
            let is_first = bytes == 0;
            bytes = bytes.saturating_add(rows.saturating_mul(row));
            is_first || bytes <= max
        });
        let (now, later) = rest.split_at_checked(count.count())?;
        rest = later;
        (!now.is_empty()).then_some(now)
    })
}

impl LevelQuery<'_> {
    /// Returns the size in bytes at which a batch is emitted.
    pub(crate) fn batch_size(&self) -> u64 {
        let budget = self.catalog.fetch.budget();
        let share = (budget / 8).clamp(1, MAX_BATCH_BYTES);
        match self.batching {
            Batching::Whole => budget.max(1),
            Batching::Budget => share,
            Batching::Stream(max) => share.min(max).max(1),
        }
    }
}

/// The gather of parts of paths, in the order of the paths.
///
/// Its input are parts of segments in loaded chunks; its output is one batch.
pub(crate) struct PathGather<'g> {
    schema: &'g Schema,
    loaded: &'g LoadedChunks,
    clip: Option<&'g BorderClip<'g>>,
    builder: VertexBuilder,
    kept: RowOrder,
    parts: Parts,
}

impl PathGather<'_> {
    /// Appends a part of a segment of an object, with the new vertices at its ends.
    pub(crate) fn push(
        &mut self,
        segment: &RowSelection,
        part: PathPart,
        id: i64,
        diagnostics: &Diagnostics,
    ) -> Result<(), QueryError> {
        let PathPart { rows, ends } = part;
        // New vertices are blended from rows on both sides of the border.
        let first = if ends.start.is_some() || ends.end.is_some() && rows.is_empty() {
            rows.start.saturating_sub(1)
        } else {
            rows.start
        };
        let is_cut_after = ends.end.is_some() || rows.is_empty();
        let last = rows
            .end
            .saturating_add(usize::from(is_cut_after))
            .min(segment.len());
        let base = self.builder.rows();
        let row = |at: usize| base.saturating_add(at.saturating_sub(first));
        let runs: Vec<_> = segment.part(first..last).collect();
        for same in runs.chunk_by(|a, b| a.chunk == b.chunk) {
            let Some(chunk) = same.first().and_then(|run| self.loaded.get(run.chunk)) else {
                continue;
            };
            let own: RowSelection = same.iter().copied().collect();
            self.builder
                .push(self.schema, chunk, &own, |_| Owner::Object(id), diagnostics)?;
        }
        let start = self.blend(&row, rows.start, ends.start);
        let end = self.blend(&row, rows.end, ends.end);
        self.kept.one(start);
        self.kept.range(row(rows.start)..row(rows.end));
        self.kept.one(end);
        self.parts.objects.push(id);
        let end = u64::try_from(self.kept.len).unwrap_or(u64::MAX);
        self.parts.offsets.push(end);
        Ok(())
    }

    /// Appends a new vertex between the row before `at` and `at`, and returns its row.
    fn blend(
        &mut self,
        row: &impl Fn(usize) -> usize,
        at: usize,
        between: Option<InterpolatedVertex>,
    ) -> Option<usize> {
        let (between, clip) = (between?, self.clip?);
        let before = at.checked_sub(1)?;
        let new = self.builder.rows();
        let weights = [(row(before), 1.0 - between.t), (row(at), between.t)];
        self.builder.blend(&clip.position(&between), &weights);
        Some(new)
    }

    /// Puts the vertices into a batch and returns the parts of paths.
    pub(crate) fn finish(mut self, batch: &mut QueryResult) -> Parts {
        if let Some(rows) = self.kept.rows_of(self.builder.rows()) {
            self.builder.gather(&rows);
        }
        self.builder.finish(batch);
        self.parts
    }
}

/// The rows of a builder that a batch keeps, in its order. A builder also holds vertices outside
/// the region that new vertices are blended from.
#[derive(Default)]
struct RowOrder {
    len: usize,
    /// The rows; `None` as long as they are the first `len` in order.
    rows: Option<Vec<usize>>,
}

impl RowOrder {
    fn one(&mut self, row: Option<usize>) {
        if let Some(row) = row {
            self.range(row..row.saturating_add(1));
        }
    }

    fn range(&mut self, range: Range<usize>) {
        let before = self.len;
        self.len = before.saturating_add(range.len());
        if self.rows.is_none() && range.start == before {
            return;
        }
        self.rows
            .get_or_insert_with(|| (0..before).collect())
            .extend(range);
    }

    /// Returns the rows to keep of `rows` in all; `None` for all of them in order.
    fn rows_of(self, rows: usize) -> Option<Vec<usize>> {
        let in_order = || (0..self.len).collect();
        match self.rows {
            None if self.len == rows => None,
            None => Some(in_order()),
            rows => rows,
        }
    }
}

/// The gather of vertices of a selection of links.
pub(crate) struct LinkGather<'g> {
    pub(crate) schema: &'g Schema,
    pub(crate) graph: &'g LinkGraph,
    /// The objects of the fragments of each chunk of the graph.
    pub(crate) owners: &'g [Owners],
    pub(crate) objects: Option<&'g ObjectSet>,
}

impl LinkGather<'_> {
    /// Copies the vertices at the ends of links, and vertices that are selected by themselves as
    /// far as `others` goes.
    pub(crate) fn copy(
        &self,
        links: &SelectedLinks,
        mut others: Limit,
        mut vertices: LinkVertices,
        diagnostics: &Diagnostics,
    ) -> Result<LinkVertices, QueryError> {
        let passes_others = !others.is_reached();
        let nodes = self.graph.chunks.iter().map(|(_, node)| node.as_ref());
        let rows = nodes.clone().flatten().map(|node| node.rows.len());
        let bytes = rows.sum::<usize>().saturating_mul(size_of::<u64>());
        let selects_all = passes_others && nodes.clone().flatten().all(LinkNode::selects_all);
        let mut kept: Vec<RowSelection> = if selects_all {
            let rows = |node: Option<&LinkNode>| node.map(|node| node.rows.clone());
            nodes.map(|node| rows(node).unwrap_or_default()).collect()
        } else {
            let flags = nodes.zip(links.marks(self.graph)).collect();
            on_cores(flags, bytes, |(node, mut flags)| match node {
                Some(node) => {
                    if passes_others {
                        node.marks.add_selected(&mut flags);
                    }
                    let mut kept = node.rows.clone();
                    kept.keep_indices(&flags);
                    kept
                }
                None => RowSelection::default(),
            })
        };
        if links.is_empty() {
            for kept in &mut kept {
                others.truncate(kept);
            }
        }
        let objects = (self.owners, self.objects);
        vertices.push(self.schema, self.graph, &kept, objects, diagnostics)?;
        Ok(vertices)
    }
}
