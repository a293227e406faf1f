//! The nearest to a place.

use std::collections::HashMap;

use zvf_model::fetch::Fetch;

use crate::{
    answer::NO_OBJECT,
    chunk::{Chunk, Rows, Wish},
    error::QueryError,
    geometry::{Nearest, squared_to_point},
    missing::Ledger,
    plan::{Emit, Plan, VertexFilter},
    query::{NearestTo, Shape},
    vertices::{Entry, VertexBuilder},
};

impl<F: Fetch> Plan<'_, F> {
    /// The nearest vertices, paths or links, the nearest first. Chunks are read
    /// from the nearest on until none that is left can hold anything nearer.
    pub(crate) async fn nearest(
        &self,
        nearest: &NearestTo,
        ledger: &Ledger,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        if self.selects_objects() {
            return Err(QueryError::Unsupported(
                "the nearest of selected objects are not looked for: ask for one or the other",
            ));
        }
        match self.shape {
            Shape::Points => self.nearest_points(nearest, ledger, emit).await,
            Shape::Paths | Shape::Links => Err(QueryError::Unsupported(
                "the nearest paths and links are not looked for yet",
            )),
        }
    }

    async fn nearest_points(
        &self,
        nearest: &NearestTo,
        ledger: &Ledger,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let index = self.session.object_index(&self.level).await?;
        let needs_objects =
            index.is_some() && (self.shows_objects() || self.filter.vertex_needs_objects());
        let with_fragments = needs_objects || !self.tiles() || !self.read.fragment.is_empty();
        let Some(schema) = self.schema(with_fragments).await? else {
            let answer = self.without_vertices().await?;
            let _ = emit(answer);
            return Ok(());
        };
        let objects = match needs_objects {
            true => self.session.objects(&self.level, ledger).await?,
            false => None,
        };
        let filter = VertexFilter {
            predicate: self.filter.vertex.as_ref(),
            object_columns: match self.filter.vertex_needs_objects() {
                true => self.object_columns_of_filter(None, ledger).await?,
                false => Vec::new(),
            },
        };
        let chunks = self.chunks(&schema)?;
        let mut order: Vec<(f64, usize)> = chunks
            .iter()
            .enumerate()
            .filter(|(_, chunk)| self.area.as_ref().is_none_or(|area| area.reaches(chunk)))
            .map(|(at, chunk)| (self.space.squared_distance(&nearest.place, [chunk]), at))
            .collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        if self.filter.is_never {
            order.clear();
        }
        let count = nearest
            .count
            .min(usize::try_from(self.limit()).unwrap_or(usize::MAX));
        let mut best: Nearest<(usize, usize)> = Nearest::new(count);
        let mut read: HashMap<usize, (Chunk, Vec<Entry>)> = HashMap::new();
        let mut next = 0_usize;
        let mut at_once = 1_usize;
        while count > 0 {
            // All that could hold one of the nearest, once there are enough.
            let left = order.get(next..).unwrap_or_default();
            let near = left.iter().take_while(|(squared, _)| best.admits(*squared));
            let wanted = match best.len() < count {
                true => left.len().min(at_once),
                false => near.count(),
            };
            if wanted == 0 {
                break;
            }
            at_once = at_once.saturating_mul(4);
            let now = left.get(..wanted).unwrap_or_default();
            next = next.saturating_add(wanted);
            let wishes = now.iter().filter_map(|(_, at)| {
                Some(Wish {
                    chunk: chunks.get(*at)?.clone(),
                    fragments: with_fragments,
                    rows: Rows::All,
                })
            });
            let found = self
                .session
                .chunks(&schema, wishes.collect(), ledger)
                .await?;
            for ((_, number), chunk) in now.iter().zip(found) {
                let Some(chunk) = chunk else { continue };
                let owners = self.owners_of(objects.as_ref(), &chunk, ledger)?;
                let mut entries = chunk.entries();
                self.retain_selected(&schema, &chunk, &mut entries, &filter, &owners)?;
                let coordinates = schema.coordinates(&chunk);
                for (at, entry) in entries.iter().enumerate() {
                    let squared = squared_to_point(&nearest.place, coordinates.at(entry.place));
                    best.push(squared, (*number, at));
                }
                read.insert(*number, (chunk, entries));
            }
        }
        let shows_objects = self.shows_objects() && index.is_some();
        let mut vertices = VertexBuilder::new(&schema, &self.shown, shows_objects);
        for (_, (number, at)) in best.into_sorted() {
            let Some((chunk, entries)) = read.get(&number) else {
                continue;
            };
            let owners = self.owners_of(objects.as_ref(), chunk, ledger)?;
            let object = |fragment| match &objects {
                Some(objects) => owners.id(fragment, |place| objects.id(place)),
                None => NO_OBJECT,
            };
            let entry = entries.get(at..at.saturating_add(1)).unwrap_or_default();
            vertices.push(&schema, chunk, entry, object, ledger)?;
        }
        let mut answer = self.empty_answer();
        vertices.finish(&mut answer);
        self.add_objects(&mut answer, objects.as_ref(), ledger)
            .await?;
        let _ = emit(answer);
        Ok(())
    }
}
