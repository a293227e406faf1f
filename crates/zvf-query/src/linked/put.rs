//! The answer, put together out of what is selected.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use zvf_format::links::LinkWidth;
use zvf_model::{fetch::Fetch, grid::ChunkCoord};

use super::{
    LinkWork,
    builder::LinkBuilder,
    graph::{Graph, Link},
};
use crate::{
    error::QueryError,
    geometry::{Bbox, Mode},
    links::LinkRecords,
    missing::Ledger,
    objects::Objects,
    plan::{Emit, Plan},
    query::Cut,
    schema::Schema,
    vertices::{Entry, Owners, VertexBuilder},
};

impl<F: Fetch> Plan<'_, F> {
    /// Numbers the vertices and puts the answer together.
    #[expect(
        clippy::too_many_arguments,
        clippy::too_many_lines,
        reason = "the last step of all that was read"
    )]
    pub(super) async fn put_together(
        &self,
        work: &LinkWork<F>,
        records: &[LinkRecords],
        graph: Graph,
        mut links: Vec<Link>,
        objects: Option<Arc<Objects>>,
        owners: &HashMap<ChunkCoord, Owners>,
        ledger: &Ledger,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let schema = &work.schema;
        let cuts = self.area_mode == Mode::Clip && self.query.cut == Cut::Cut;
        let bbox = match (&self.area, cuts) {
            (Some(area), true) => {
                Self::check_cuttable(schema)?;
                Some(*area.bbox().ok_or(QueryError::Unsupported(
                    "a sphere does not cut: clip by a box, or drop what crosses the border",
                ))?)
            }
            _ => None,
        };
        // Links limit an answer where there are any.
        let has_links = !links.is_empty();
        let limit = self
            .query
            .limit
            .and_then(|limit| usize::try_from(limit).ok());
        let by_links = self.filter.link.is_some() || limit.is_some() && has_links;
        if let Some(limit) = limit.filter(|_| has_links) {
            if work.implied {
                // By child, as they will be in the answer.
                links.sort_by_cached_key(|link| {
                    let (chunk, place) = link.ends.first()?;
                    let node = graph.chunks.get(chunk)?.as_ref()?;
                    let at = node.entries.iter().position(|entry| entry.place == *place);
                    Some((chunk.clone(), at))
                });
            }
            links.truncate(limit);
        }
        let mut ends: HashMap<&ChunkCoord, BTreeSet<usize>> = HashMap::new();
        for (chunk, place) in links.iter().flat_map(|link| &link.ends) {
            ends.entry(chunk).or_default().insert(*place);
        }
        let mut vertices = self.vertices(schema, work.shows_objects);
        let mut rows: HashMap<(&ChunkCoord, usize), usize> = HashMap::new();
        let mut keep: Vec<usize> = Vec::new();
        let mut left = match has_links {
            true => usize::MAX,
            false => limit.unwrap_or(usize::MAX),
        };
        for (coord, node) in &graph.chunks {
            let Some(node) = node else { continue };
            let ends = ends.get(coord);
            let is_end = |entry: &Entry| ends.is_some_and(|ends| ends.contains(&entry.place));
            let mut entries = node.entries.clone();
            entries.retain(|entry| is_end(entry) || !by_links && node.is_selected(entry.place));
            entries.truncate(left);
            left = left.saturating_sub(entries.len());
            let base = vertices.rows();
            for (at, entry) in entries.iter().enumerate() {
                let row = base.saturating_add(at);
                rows.entry((coord, entry.place)).or_insert(row);
                // Ends outside are there to cut links at.
                if bbox.is_none() || node.is_selected(entry.place) {
                    keep.push(row);
                }
            }
            let none = Owners::default();
            let owners = owners.get(coord).unwrap_or(&none);
            let object = |fragment| owners.id(fragment, objects.as_deref());
            vertices.push(schema, &node.chunk, &entries, object, ledger)?;
        }
        let width = work.set.as_ref().and_then(|set| set.width().ok().flatten());
        let width = width.map_or(2, LinkWidth::get);
        let faces = bbox.is_some() && width > 2;
        let out_width = if faces { 3 } else { width };
        let mut builder = LinkBuilder::new(work.set.as_ref(), &self.shown.link);
        builder.width = out_width;
        for link in &links {
            let corners = link
                .ends
                .iter()
                .filter_map(|(chunk, place)| rows.get(&(chunk, *place)));
            let corners: Vec<usize> = corners.copied().collect();
            let record = link.record;
            let Some(bbox) = &bbox else {
                builder.push_rows(&corners, record);
                continue;
            };
            let positions: Vec<&[f64]> = link
                .ends
                .iter()
                .filter_map(|(chunk, place)| {
                    let node = graph.chunks.get(chunk)?.as_ref()?;
                    Some(node.coordinates.at(*place))
                })
                .collect();
            for part in cut(bbox, &corners, &positions, schema, &mut vertices, &mut keep) {
                builder.push_rows(&part, record);
            }
        }
        builder.end_cells(records)?;
        if bbox.is_some() {
            let mut place = vec![0_u64; vertices.rows()];
            for (new, old) in (0_u64..).zip(&keep) {
                if let Some(place) = place.get_mut(*old) {
                    *place = new;
                }
            }
            builder.renumber(&place);
            vertices.gather(&keep);
        }
        if work.implied {
            builder.sort_by_child();
        }
        let mut answer = self.empty_answer();
        vertices.finish(&mut answer);
        let ids = answer.object_ids.iter().flatten().copied().collect();
        self.add_objects(&mut answer, objects.as_ref(), &ids, ledger)
            .await?;
        builder.finish(&mut answer);
        let _ = emit(answer);
        Ok(())
    }
}

/// A link cut at a box: rows of the builder for each part of it.
fn cut<A: zvf_model::fetch::CellSource>(
    bbox: &Bbox,
    corners: &[usize],
    positions: &[&[f64]],
    schema: &Schema<A>,
    vertices: &mut VertexBuilder,
    keep: &mut Vec<usize>,
) -> Vec<Vec<usize>> {
    let kind = schema.dtype.kind();
    let mut new = |position: &[f64], weights: &[(usize, f64)]| {
        // A corner itself is no new vertex.
        if let [(row, _)] = weights
            .iter()
            .filter(|(_, w)| *w != 0.0)
            .collect::<Vec<_>>()[..]
        {
            return *row;
        }
        let row = vertices.rows();
        vertices.blend(&crate::cut::rounded(bbox, position, kind), weights);
        keep.push(row);
        row
    };
    match (corners, positions) {
        ([corner], _) => vec![vec![*corner]],
        ([a, b], [at_a, at_b]) => {
            let Some(part) = bbox.clip_segment([at_a, at_b]) else {
                return Vec::new();
            };
            let start = new(&part.start, &[(*a, 1.0 - part.t0), (*b, part.t0)]);
            let end = new(&part.end, &[(*a, 1.0 - part.t1), (*b, part.t1)]);
            vec![vec![start, end]]
        }
        _ => {
            let mut parts = Vec::new();
            for triangle in bbox.clip_polygon(positions) {
                let rows: Vec<usize> = triangle
                    .vertices
                    .iter()
                    .map(|vertex| {
                        let weights = triangle.corners.iter().zip(vertex.weights);
                        let weights = weights
                            .filter_map(|(at, weight)| Some((*corners.get(*at)?, weight)))
                            .collect::<Vec<_>>();
                        new(&vertex.position, &weights)
                    })
                    .collect();
                // A fan; what is a point or segment repeats a corner.
                match rows.as_slice() {
                    [] => {}
                    [one] => parts.push(vec![*one; 3]),
                    [one, two] => parts.push(vec![*one, *two, *two]),
                    [first, rest @ ..] => {
                        for pair in rest.windows(2) {
                            let [second, third] = pair else { continue };
                            parts.push(vec![*first, *second, *third]);
                        }
                    }
                }
            }
            parts
        }
    }
}
