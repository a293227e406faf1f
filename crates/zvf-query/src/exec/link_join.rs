//! Join of links with the vertices at their ends: graphs, skeletons, meshes.

mod input;
mod numbering;
mod row_map;
mod select;
mod stream;
mod unreadable;

use std::collections::HashMap;

use super::{
    chunk_scan::ChunkScan,
    clip::{BorderClip, ClipOperator},
    context::ExecContext,
    filter::Filter,
    gather::{Gather, LinkGather},
    limit::Limit,
    link_scan::LinkScan,
    links::{LinkBuilder, LinkGraph, LinkVertices, SelectedLinks},
    object_columns::ObjectColumns,
    object_scan::{ObjectScan, OwnerScan},
    operator::{Details, LaterRead, Operator, OperatorTree},
};
use crate::{
    error::QueryError,
    resolve::query::{Emit, LevelQuery},
};

use input::LinkInput;
pub(crate) use stream::{StreamedLinkJoin, WholeLinksPlan};

/// A selection of links by region, objects and predicate.
#[derive(Debug)]
pub(crate) struct LinksPlan {
    pub(crate) columns: ObjectColumns,
    pub(crate) clip: Option<ClipOperator>,
    pub(crate) gather: Gather,
    pub(crate) limit: Limit,
    pub(crate) join: LinkJoin,
    pub(crate) filter: Option<Filter>,
    pub(crate) scan: ChunkScan,
    pub(crate) objects: LinkObjects,
    pub(crate) links: LinkScan,
}

/// The operator that joins links with the vertices at their ends, and selects them.
#[derive(Debug)]
pub(crate) struct LinkJoin;

impl Operator for LinkJoin {
    const NAME: &'static str = "LinkJoin";

    fn details(&self, query: &LevelQuery<'_>, details: &mut Details) {
        if let Some(predicate) = &query.filter.link {
            details.add("predicate", predicate);
        }
    }

    fn later_reads(&self, query: &LevelQuery<'_>, later: &mut Vec<LaterRead>) {
        if query.area.is_some() {
            later.push(LaterRead::always(
                "vertices at the other ends of links that may enter the region",
            ));
        }
    }
}

/// The objects that a selection of links reads.
#[derive(Debug)]
pub(crate) enum LinkObjects {
    None,
    /// All, to name the owners of vertices.
    Owners(OwnerScan),
    /// The objects that the query selects.
    Selected(ObjectScan),
}

impl LinksPlan {
    /// Adds the operators of the plan to `tree`.
    pub(crate) fn describe(&self, tree: &mut OperatorTree<'_>) {
        tree.push(&self.columns);
        tree.push(self.clip.as_ref());
        tree.push(&self.gather);
        tree.push(self.limit.as_operator());
        tree.push(&self.join);
        let vertices = |tree: &mut OperatorTree<'_>| {
            tree.push(self.filter.as_ref());
            tree.push(&self.scan);
            match &self.objects {
                LinkObjects::None => {}
                LinkObjects::Owners(owners) => tree.push(owners),
                LinkObjects::Selected(objects) => tree.push(objects),
            }
        };
        tree.inputs(vertices, |tree| tree.push(&self.links));
    }

    /// Emits the vertices and links that the region and the predicate select.
    ///
    /// Two round trips: the chunks of the region beside the links that can enter it; then the other
    /// ends of links that may enter it. The input is collected, because each link needs the
    /// vertices at all of its ends. Links are limited before they are split, so that a limit counts
    /// links of the store.
    pub(crate) async fn execute(
        &self,
        context: ExecContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        self.links.note_unknown_rows(context);
        let (query, diagnostics, schema) = (context.query, context.diagnostics, &*self.scan.schema);
        let LinkInput {
            graph,
            records,
            objects,
            owners,
        } = self.input(context).await?;
        let mut links = query.selected_links(&self.links, &records, &graph, diagnostics)?;
        let mut limit = self.limit;
        let by_links = query.filter.link.is_some() || !links.is_empty() && !limit.passes_all();
        // Vertices that no selected link ends at.
        let others = match (by_links, links.is_empty()) {
            (true, _) => Limit::new(Some(0)),
            (false, true) => limit,
            (false, false) => Limit::new(None),
        };
        self.limit_links(&mut links, &graph, &mut limit);
        let clip = BorderClip::open(self.clip, query, schema)?;
        let splits = clip.as_ref().is_some_and(BorderClip::splits);
        let vertices = LinkVertices::new(query.vertices(schema, self.gather.owners), splits);
        let gather = LinkGather {
            schema,
            graph: &graph,
            owners: &owners,
            objects: objects.as_deref(),
        };
        let mut vertices = gather.copy(&links, others, vertices, diagnostics)?;
        let mut builder = LinkBuilder::new(self.links.set.as_deref(), &query.shown.link);
        match clip {
            Some(clip) => clip.links(&graph, &links, &mut vertices, &mut builder),
            None => vertices.push_links(&links, &mut builder),
        }
        builder.end_cells(&records)?;
        if self.links.implied {
            builder.sort_by_child();
        }
        let mut batch = query.empty_result();
        vertices.finish(&mut batch);
        let ids = batch.objects_of_rows().collect();
        let columns = context.of(&self.columns);
        columns
            .add_objects(&mut batch, objects.as_ref(), &ids)
            .await?;
        builder.finish(&mut batch);
        let _ = emit(batch);
        Ok(())
    }

    /// Keeps the first links. Where links are sorted by child, the first children are kept.
    fn limit_links(&self, links: &mut SelectedLinks, graph: &LinkGraph, limit: &mut Limit) {
        if limit.passes_all() || links.is_empty() {
            return;
        }
        if self.links.implied {
            // The positions of the rows in memory, by chunk.
            let mut positions: HashMap<usize, HashMap<usize, usize>> = HashMap::new();
            links.sort_by_first_end(|end| {
                let of_chunk = positions.entry(end.chunk()).or_insert_with(|| {
                    let rows = graph
                        .node(end.chunk())
                        .map(|node| node.rows.iter())
                        .into_iter()
                        .flatten()
                        .map(|run| run.index)
                        .zip(0..);
                    rows.collect()
                });
                (end.chunk(), of_chunk.get(&end.index()).copied())
            });
        }
        links.truncate(limit.take(usize::MAX));
    }
}

impl LevelQuery<'_> {
    /// Returns whether the query selects the whole level, which is emitted in batches.
    pub(crate) fn is_everything(&self) -> bool {
        self.area.is_none()
            && self.query.filter.is_none()
            && self.query.limit.is_none()
            && self.query.nearest.is_none()
            && !self.selects_objects()
    }
}
