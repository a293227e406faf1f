//! The answer, put together out of what is selected.

use std::sync::Arc;

use zvf_format::links::LinkWidth;

use super::{
    LinkWork,
    builder::LinkBuilder,
    graph::{End, Graph, Links, Node},
};
use crate::{
    batch::vertices::Owners,
    catalog::links::LinkRecords,
    catalog::objects::ObjectSet,
    diagnostics::Diagnostics,
    error::QueryError,
    exec::clip,
    geometry::Mode,
    query::Clip,
    resolve::query::{Emit, LevelQuery},
    selection::RowSelection,
};

impl LevelQuery<'_> {
    /// Numbers the vertices and puts the answer together.
    #[expect(
        clippy::too_many_arguments,
        clippy::too_many_lines,
        reason = "the last step of all that was read"
    )]
    pub(super) async fn assemble(
        &self,
        work: &LinkWork<'_>,
        records: &[LinkRecords],
        graph: Graph,
        mut links: Links,
        objects: Option<Arc<ObjectSet>>,
        owners: &[Owners],
        diagnostics: &Diagnostics,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let schema = work.schema;
        let cuts = self.area_mode == Mode::Clip && self.query.clip == Clip::Split;
        let bbox = match (&self.area, cuts) {
            (Some(area), true) => {
                clip::check_splittable(schema)?;
                Some(*area.bbox().ok_or(clip::UNSPLITTABLE_REGION)?)
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
                links.sort_by_first_end(|(number, place)| {
                    let entries = graph.node(*number).map(|node| node.entries.iter());
                    let at = entries.and_then(|mut all| all.position(|e| e.place == *place));
                    (*number, at)
                });
            }
            links.truncate(limit);
        }
        // By the number of a chunk and a place there: whether a link ends there, then
        // which row of the answer it is.
        let places = |node: Option<&Node>| node.map_or(0, |node| node.there.len());
        let nodes = graph.chunks.iter().map(|(_, node)| node.as_ref());
        let mut is_end: Vec<Vec<bool>> = nodes.map(|node| vec![false; places(node)]).collect();
        for (number, place) in links.iter().flat_map(|(ends, _)| ends) {
            let flags = is_end.get_mut(*number);
            if let Some(flag) = flags.and_then(|flags| flags.get_mut(*place)) {
                *flag = true;
            }
        }
        let mut vertices = self.vertices(schema, work.scan.owners);
        let mut rows: Vec<Vec<usize>> = Vec::with_capacity(graph.chunks.len());
        let mut keep: Vec<usize> = Vec::new();
        let mut left = match has_links {
            true => usize::MAX,
            false => limit.unwrap_or(usize::MAX),
        };
        let none = Owners::default();
        for (number, is_end) in is_end.iter().enumerate() {
            let mut of_node = vec![usize::MAX; is_end.len()];
            if let Some(node) = graph.node(number) {
                let is_end = |place: usize| is_end.get(place) == Some(&true);
                let given = node.entries.iter().copied().filter(|entry| {
                    is_end(entry.place) || !by_links && node.is_selected(entry.place)
                });
                let given: RowSelection = given.take(left).collect();
                left = left.saturating_sub(given.len());
                for (row, entry) in (vertices.rows()..).zip(given.entries()) {
                    let known = of_node.get_mut(entry.place);
                    if let Some(known) = known.filter(|known| **known == usize::MAX) {
                        *known = row;
                    }
                    // Ends outside are there to cut links at.
                    if bbox.is_some() && node.is_selected(entry.place) {
                        keep.push(row);
                    }
                }
                let owners = owners.get(number).unwrap_or(&none);
                let object = |fragment| owners.id(fragment, objects.as_deref());
                vertices.push(schema, &node.chunk, &given, object, diagnostics)?;
            }
            rows.push(of_node);
        }
        let width = work.set.as_ref().and_then(|set| set.width().ok().flatten());
        let width = width.map_or(2, LinkWidth::get);
        let faces = bbox.is_some() && width > 2;
        let out_width = if faces { 3 } else { width };
        let mut builder = LinkBuilder::new(work.set.as_deref(), &self.shown.link);
        builder.width = out_width;
        builder.reserve(links.ends());
        let row = |(number, place): &End| {
            let row = rows.get(*number)?.get(*place).copied()?;
            (row != usize::MAX).then_some(row)
        };
        let mut corners = Vec::new();
        for (ends, record) in links.iter() {
            corners.clear();
            corners.extend(ends.iter().filter_map(row));
            let Some(bbox) = &bbox else {
                builder.push_rows(&corners, record);
                continue;
            };
            let at = |(number, place): &End| Some(graph.node(*number)?.coordinates.at(*place));
            let positions: Vec<&[f64]> = ends.iter().filter_map(at).collect();
            if clip::is_untouched(bbox, &positions) {
                builder.push_rows(&corners, record);
                continue;
            }
            for part in clip::link(bbox, &corners, &positions, schema, &mut vertices, &mut keep) {
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
        let ids = answer.objects_met().collect();
        work.columns
            .add_objects(&mut answer, objects.as_ref(), &ids, diagnostics)
            .await?;
        builder.finish(&mut answer);
        let _ = emit(answer);
        Ok(())
    }
}
