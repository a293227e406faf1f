//! The gathered vertices of a graph and where its ends went.

use zvf_catalog::{Diagnostics, ObjectSet, RowSelection, Schema, on_cores};

use super::{LinkBuilder, LinkGraph, SelectedEnd, SelectedLinks};
use crate::{
    batch::vertices::{Owners, VertexBuilder, VertexPart},
    error::QueryError,
    result::QueryResult,
};

/// The row of an end that was not gathered.
const ABSENT: usize = usize::MAX;

/// Gathered vertices, and the row of each end of a link.
pub(crate) struct LinkVertices {
    builder: VertexBuilder,
    /// Rows of the result for the rows of each chunk, by the number of the chunk.
    chunks: Vec<GatheredRows>,
    /// Rows inside the region, if vertices outside are gathered only to split links.
    inside: Option<Vec<usize>>,
}

/// Rows of the result for the rows of a chunk in memory.
#[derive(Default)]
struct GatheredRows {
    first: usize,
    len: usize,
    /// Offset of each row from `first`; `None` if the rows are in order.
    places: Option<Vec<usize>>,
}

impl GatheredRows {
    /// Numbers the `kept` rows of a chunk, of which `rows` are in memory.
    fn of(kept: &RowSelection, rows: usize) -> Self {
        let mut next = 0_usize;
        let in_order = kept.runs().iter().all(|run| {
            let goes_on = run.index == next;
            next = next.saturating_add(run.len);
            goes_on
        });
        let places = (!in_order).then(|| {
            let mut places = vec![ABSENT; rows];
            let mut before = 0_usize;
            for run in kept.runs() {
                let own = places.get_mut(run.indices()).unwrap_or_default();
                for (place, known) in (before..).zip(own) {
                    // A row of several fragments has its place in the first of them.
                    if *known == ABSENT {
                        *known = place;
                    }
                }
                before = before.saturating_add(run.len);
            }
            places
        });
        Self {
            first: 0,
            len: kept.len(),
            places,
        }
    }

    /// Returns the row of the result for a row in memory.
    fn row(&self, index: usize) -> Option<usize> {
        let place = match &self.places {
            Some(places) => places
                .get(index)
                .copied()
                .filter(|place| *place != ABSENT)?,
            None => Some(index).filter(|index| *index < self.len)?,
        };
        Some(self.first.saturating_add(place))
    }
}

impl LinkVertices {
    /// Creates an empty set of vertices. `splits` is whether links are split, so that the rows
    /// inside the region must be known.
    pub(crate) fn new(builder: VertexBuilder, splits: bool) -> Self {
        Self {
            builder,
            chunks: Vec::new(),
            inside: splits.then(Vec::new),
        }
    }

    /// Appends the `kept` vertices of each chunk of the graph, on all cores where possible.
    pub(crate) fn push(
        &mut self,
        schema: &Schema,
        graph: &LinkGraph,
        kept: &[RowSelection],
        (owners, objects): (&[Owners], Option<&ObjectSet>),
        diagnostics: &Diagnostics,
    ) -> Result<(), QueryError> {
        let nodes = graph.chunks.iter().map(|(_, node)| node.as_ref());
        let numbered: Vec<_> = nodes.clone().zip(kept).collect();
        let rows = kept.iter().map(RowSelection::len).sum::<usize>();
        let bytes = rows.saturating_mul(size_of::<usize>());
        self.chunks = on_cores(numbered, bytes, |(node, kept)| match node {
            Some(node) => GatheredRows::of(kept, node.chunk.loaded.len()),
            None => GatheredRows::default(),
        });
        let mut first = self.builder.rows();
        for chunk in &mut self.chunks {
            chunk.first = first;
            first = first.saturating_add(chunk.len);
        }
        if let Some(inside) = &mut self.inside {
            for ((node, kept), chunk) in nodes.clone().zip(kept).zip(&self.chunks) {
                let is_selected = |index| node.is_some_and(|node| node.marks.is_selected(index));
                let rows = (chunk.first..)
                    .zip(kept.iter())
                    .filter(|(_, run)| is_selected(run.index));
                inside.extend(rows.map(|(row, _)| row));
            }
        }
        let none = Owners::default();
        let owners = owners.iter().chain(core::iter::repeat(&none));
        let parts: Vec<_> = nodes
            .zip(kept)
            .zip(owners)
            .filter_map(|((node, rows), owners)| {
                let chunk = &node?.chunk;
                Some(VertexPart {
                    chunk,
                    rows,
                    owners,
                })
            })
            .collect();
        if self.builder.push_parts(schema, &parts, rows, objects) {
            return Ok(());
        }
        for part in parts {
            let object = |fragment| part.owners.object(fragment, objects);
            self.builder
                .push(schema, part.chunk, part.rows, object, diagnostics)?;
        }
        Ok(())
    }

    /// Returns the row of an end.
    pub(crate) fn row(&self, end: SelectedEnd) -> Option<usize> {
        self.chunks.get(end.chunk())?.row(end.index())
    }

    /// Appends a new vertex between others and returns its row.
    pub(crate) fn blend(&mut self, position: &[f64], weights: &[(usize, f64)]) -> usize {
        let row = self.builder.rows();
        self.builder.blend(position, weights);
        if let Some(inside) = &mut self.inside {
            inside.push(row);
        }
        row
    }

    /// Appends links to `builder` by the rows of their ends, on all cores.
    pub(crate) fn push_links(&self, links: &SelectedLinks, builder: &mut LinkBuilder) {
        let none = GatheredRows::default();
        builder.push_runs(links.runs(), |run, to| {
            let number = |row: Option<usize>| {
                // All ends are gathered, so each has a row.
                row.and_then(|row| u64::try_from(row).ok())
                    .unwrap_or(u64::MAX)
            };
            let chunk = run
                .chunk()
                .map(|chunk| usize::try_from(chunk).unwrap_or(usize::MAX));
            match chunk.map(|chunk| self.chunks.get(chunk).unwrap_or(&none)) {
                Some(chunk) => {
                    for (to, end) in to.iter_mut().zip(run.ends()) {
                        *to = number(chunk.row(end.index()));
                    }
                }
                None => {
                    for (to, end) in to.iter_mut().zip(run.ends()) {
                        *to = number(self.row(*end));
                    }
                }
            }
        });
    }

    /// Drops the vertices outside the region and renumbers the ends of links.
    pub(crate) fn keep_inside(&mut self, builder: &mut LinkBuilder) {
        let Some(inside) = &self.inside else {
            return;
        };
        let mut renumbered = vec![0_u64; self.builder.rows()];
        for (new, old) in (0_u64..).zip(inside) {
            if let Some(number) = renumbered.get_mut(*old) {
                *number = new;
            }
        }
        builder.renumber(&renumbered);
        self.builder.gather(inside);
    }

    /// Puts the vertices into a batch.
    pub(crate) fn finish(self, batch: &mut QueryResult) {
        self.builder.finish(batch);
    }
}
