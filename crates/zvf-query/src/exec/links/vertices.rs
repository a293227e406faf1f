//! The gathered vertices of a graph and where its ends went.

use super::{LinkBuilder, LinkNode, SelectedLinks};
use crate::{
    batch::vertices::VertexBuilder, catalog::schema::Schema, diagnostics::Diagnostics,
    error::QueryError, result::QueryResult, selection::RowSelection,
};

/// The row of an end that was not gathered.
const ABSENT: usize = usize::MAX;

/// Gathered vertices, and the row of each end of a link.
pub(crate) struct LinkVertices {
    builder: VertexBuilder,
    /// The row of each vertex, by the number of its chunk and its index there.
    rows: Vec<Vec<usize>>,
    /// Rows inside the region, if vertices outside are gathered only to split links.
    inside: Option<Vec<usize>>,
}

impl LinkVertices {
    /// Creates an empty set of vertices. `splits` is whether links are split, so that the rows
    /// inside the region must be known.
    pub(crate) fn new(builder: VertexBuilder, splits: bool) -> Self {
        Self {
            builder,
            rows: Vec::new(),
            inside: splits.then(Vec::new),
        }
    }

    /// Appends vertices of the next chunk of the graph.
    pub(crate) fn push(
        &mut self,
        schema: &Schema,
        node: &LinkNode,
        kept: &RowSelection,
        object: impl Fn(u32) -> i64,
        diagnostics: &Diagnostics,
    ) -> Result<(), QueryError> {
        let mut rows = vec![ABSENT; node.marks.is_member.len()];
        for (row, run) in (self.builder.rows()..).zip(kept.iter()) {
            // The first of several fragments.
            if let Some(known) = rows.get_mut(run.index).filter(|known| **known == ABSENT) {
                *known = row;
            }
            if let Some(inside) = &mut self.inside
                && node.marks.is_selected(run.index)
            {
                inside.push(row);
            }
        }
        self.rows.push(rows);
        self.builder
            .push(schema, &node.chunk, kept, object, diagnostics)
    }

    /// Appends an unreadable chunk.
    pub(crate) fn skip_chunk(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Returns the row of an end.
    pub(crate) fn row(&self, (number, index): &(usize, usize)) -> Option<usize> {
        let row = self.rows.get(*number)?.get(*index).copied()?;
        (row != ABSENT).then_some(row)
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

    /// Appends links to `builder` by the rows of their ends.
    pub(crate) fn push_links(&self, links: &SelectedLinks, builder: &mut LinkBuilder) {
        let mut corners = Vec::new();
        for (ends, record) in links.iter() {
            corners.clear();
            corners.extend(ends.iter().filter_map(|end| self.row(end)));
            builder.push_rows(&corners, record);
        }
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
