//! Join of links with the vertices at their ends: graphs, skeletons, meshes.

mod input;
mod numbering;
mod row_map;
mod select;
mod stream;
mod unreadable;

use std::{borrow::Cow, collections::HashMap};

use zvf_model::grid::ChunkCoord;

use super::{
    clip::BorderClip,
    context::ExecContext,
    gather::LinkGather,
    limit::Limit,
    links::{LinkBuilder, LinkGraph, LinkVertices, SelectedLinks},
    operator::{ChunkScan, LinkScan, ObjectScan, Operator},
    pipeline::Pipeline,
};
use crate::{
    catalog::{
        chunk::{ChunkRequest, RequestedRows},
        schema::Schema,
    },
    error::QueryError,
    resolve::query::{Emit, LevelQuery},
};

use input::LinkInput;
pub(crate) use stream::execute as stream;

/// Emits the vertices and links that the region and the predicate select.
///
/// Two round trips: the chunks of the region beside the links that can enter it; then the other
/// ends of links that may enter it. The input is collected, because each link needs the vertices
/// at all of its ends.
pub(crate) async fn execute(
    pipeline: Pipeline<'_>,
    context: ExecContext<'_>,
    emit: &mut Emit<'_>,
) -> Result<(), QueryError> {
    let Some(work) = LinkWork::new(pipeline, context) else {
        return Ok(());
    };
    let (query, diagnostics, schema) = (context.query, context.diagnostics, work.schema);
    let LinkInput {
        graph,
        records,
        objects,
        owners,
    } = query.link_input(&work, diagnostics).await?;
    let mut links = query.selected_links(&work, &records, &graph, diagnostics)?;
    let mut limit = pipeline.limit();
    let by_links = query.filter.link.is_some() || !links.is_empty() && !limit.passes_all();
    // Vertices that no selected link ends at.
    let others = match (by_links, links.is_empty()) {
        (true, _) => Limit::new(Some(0)),
        (false, true) => limit,
        (false, false) => Limit::new(None),
    };
    limit_links(&mut links, &graph, &work, &mut limit);
    let clip = BorderClip::open(pipeline.clips, query, schema)?;
    let splits = clip.as_ref().is_some_and(BorderClip::splits);
    let vertices = LinkVertices::new(query.vertices(schema, work.scan.owners), splits);
    let gather = LinkGather {
        schema,
        graph: &graph,
        owners: &owners,
        objects: objects.as_deref(),
    };
    let mut vertices = gather.copy(&links, others, vertices, diagnostics)?;
    let mut builder = LinkBuilder::new(work.links.set.as_deref(), &query.shown.link);
    match clip {
        Some(clip) => clip.links(&graph, &links, &mut vertices, &mut builder),
        None => vertices.push_links(&links, &mut builder),
    }
    builder.end_cells(&records)?;
    if work.links.implied {
        builder.sort_by_child();
    }
    let mut batch = query.empty_result();
    vertices.finish(&mut batch);
    let ids = batch.owners_of_rows().collect();
    let columns = context.scope(pipeline.columns());
    columns
        .add_objects(&mut batch, objects.as_ref(), &ids, diagnostics)
        .await?;
    builder.finish(&mut batch);
    let _ = emit(batch);
    Ok(())
}

/// Keeps the first links. Where links are sorted by child, the first children are kept.
fn limit_links(
    links: &mut SelectedLinks,
    graph: &LinkGraph,
    work: &LinkWork<'_>,
    limit: &mut Limit,
) {
    if limit.passes_all() || links.is_empty() {
        return;
    }
    if work.links.implied {
        // The positions of the rows in memory, by chunk.
        let mut positions: HashMap<usize, HashMap<usize, usize>> = HashMap::new();
        links.sort_by_first_end(|end| {
            let of_chunk = positions.entry(end.chunk()).or_insert_with(|| {
                let rows = graph.node(end.chunk()).map(|node| node.rows.iter());
                let rows = rows.into_iter().flatten().map(|run| run.index).zip(0..);
                rows.collect()
            });
            (end.chunk(), of_chunk.get(&end.index()).copied())
        });
    }
    links.truncate(limit.take(usize::MAX));
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

/// The inputs of a join, with the query reading through the port of each operator.
struct LinkWork<'w> {
    context: ExecContext<'w>,
    schema: &'w Schema,
    scan: &'w ChunkScan,
    links: &'w LinkScan,
    /// The node that filters vertices.
    filter: Option<usize>,
    /// Reads all objects, to name the owners of vertices.
    has_owners: bool,
    chunks: Cow<'w, LevelQuery<'w>>,
    cells: Cow<'w, LevelQuery<'w>>,
    objects: Cow<'w, LevelQuery<'w>>,
}

impl<'w> LinkWork<'w> {
    /// Finds the inputs of the join in its plan. Reports links that cannot be read.
    fn new(pipeline: Pipeline<'w>, context: ExecContext<'w>) -> Option<Self> {
        let [vertices, links] = pipeline.source.inputs.as_slice() else {
            return None;
        };
        let below = pipeline.below(vertices);
        let (Operator::ChunkScan(scan), Operator::LinkScan(found)) =
            (&below.source.operator, &links.operator)
        else {
            return None;
        };
        if found.set.as_ref().is_some_and(|set| !set.rows_are_known) {
            context.diagnostics.note(
                "links between chunks are left out: writers of paths did not store the rows of \
                 their ends; read the store as paths",
            );
        }
        Some(Self {
            context,
            schema: &scan.schema,
            scan,
            links: found,
            filter: below.filter,
            has_owners: pipeline.source.find(&is_owner_scan).is_some(),
            chunks: context.scope(below.source.id),
            cells: context.scope(links.id),
            objects: context.scope(below.objects()),
        })
    }

    /// Returns the request for rows of a chunk.
    fn request(&self, chunk: &ChunkCoord, rows: RequestedRows) -> ChunkRequest {
        ChunkRequest {
            chunk: chunk.clone(),
            fragments: self.scan.fragments,
            rows,
        }
    }
}

fn is_owner_scan(operator: &Operator) -> bool {
    matches!(operator, Operator::ObjectScan(ObjectScan::Owners))
}
