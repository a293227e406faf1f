//! The nearest vertices, paths or links.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use zvf_catalog::{Chunk, ChunkRequest, Coordinates, RequestedRows, RowSelection};
use zvf_format::numeric::{ByteOrder, Dtype};
use zvf_model::grid::ChunkCoord;

use super::{
    chunk_scan::{ChunkGroups, ChunkScan},
    context::ExecContext,
    filter::{Filter, RowFilter},
    gather::Gather,
    items_plan::ItemsPlan,
    object_columns::ObjectColumns,
    object_scan::OwnerScan,
    operator::{Details, LaterRead, Operator, OperatorTree},
};
use crate::{
    batch::merge::CollectedResult,
    error::QueryError,
    geometry::{
        KNearest, Mode, Sphere, squared_distance_to_point, squared_distance_to_segment,
        squared_distance_to_triangle,
    },
    query::{NearestTo, Query, Shape},
    resolve::query::{ChunkCache, Emit, LevelQuery},
    result::{Parts, QueryResult},
    session::Session,
};

/// The operator that keeps the rows nearest to a position.
#[derive(Debug)]
pub(crate) struct Nearest(pub(crate) NearestTo);

impl Operator for Nearest {
    const NAME: &'static str = "Nearest";

    fn details(&self, _: &LevelQuery<'_>, details: &mut Details) {
        let position: Vec<String> = self.0.position.iter().map(f64::to_string).collect();
        details.add("count", self.0.count);
        details.add("position", format_args!("({})", position.join(", ")));
    }

    fn later_reads(&self, _: &LevelQuery<'_>, later: &mut Vec<LaterRead>) {
        later.push(LaterRead::always(
            "the next nearest chunks, until no other chunk can hold a nearer item",
        ));
    }
}

/// A search for the nearest paths or links.
#[derive(Debug)]
pub(crate) struct NearestPlan {
    pub(crate) nearest: Nearest,
    pub(crate) input: ItemsPlan,
}

impl NearestPlan {
    /// Adds the operators of the plan to `tree`.
    pub(crate) fn describe(&self, tree: &mut OperatorTree<'_>) {
        tree.push(&self.nearest);
        tree.repeat_inputs();
        self.input.describe(tree);
    }

    /// Emits the nearest paths or links, the nearest first.
    ///
    /// The input selects them in a sphere around the position, at first one that reaches the
    /// nearest vertices, which grows until it contains enough items. Chunks and links of smaller
    /// spheres are cached.
    pub(crate) async fn execute(
        &self,
        context: ExecContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let session = Session::new(context.query.catalog);
        let (nearest, query) = (&self.nearest.0, context.query);
        let max_count = usize::try_from(query.limit()).unwrap_or(usize::MAX);
        let count = nearest.count.min(max_count);
        let cache = Arc::new(ChunkCache::default());
        let search = context.of(&self.nearest);
        let radius = search.first_radius(nearest, &cache).await?;
        let Some((mut radius, furthest)) = radius else {
            let query = Query {
                nearest: None,
                limit: Some(0),
                ..query.query.clone()
            };
            let query = session.resolve(&query).await?;
            let context = ExecContext::new(&query, context.diagnostics);
            return self.input.execute(context, emit).await;
        };
        loop {
            let sphere = Sphere::new(&nearest.position, radius);
            let in_sphere = Query {
                region: sphere.ok().map(Into::into),
                nearest: None,
                limit: None,
                ..query.query.clone()
            };
            let mut in_sphere = session.resolve(&in_sphere).await?;
            in_sphere.cache = Some(Arc::clone(&cache));
            in_sphere.area_mode = Mode::Touch;
            let mut collected = CollectedResult::default();
            let mut rows = 0_u64;
            let mut collect = |mut batch: QueryResult| {
                batch.start_at(rows);
                let more = u64::try_from(batch.positions.len()).unwrap_or(u64::MAX);
                rows = rows.saturating_add(more);
                collected.push(batch, u64::MAX)
            };
            let inner = ExecContext::new(&in_sphere, context.diagnostics);
            self.input.execute(inner, &mut collect).await?;
            let mut result = collected.finish()?.unwrap_or_else(|| query.empty_result());
            let mut best = KNearest::new(count);
            let distances = distances(&result, &nearest.position);
            for (at, squared) in distances.into_iter().enumerate() {
                best.push(squared, at);
            }
            if best.len() < count && radius < furthest {
                radius = next_radius(radius, furthest);
                continue;
            }
            let best = best.into_sorted();
            result.distances = Some(best.iter().map(|(squared, _)| squared.sqrt()).collect());
            let chosen: Vec<usize> = best.into_iter().map(|(_, at)| at).collect();
            if result.parts.is_some() {
                keep_parts(&mut result, &chosen);
            } else {
                keep_links(&mut result, &chosen);
            }
            let _ = emit(result);
            return Ok(());
        }
    }
}

/// Returns the radius of the sphere after one of `radius`. The first radius is almost 0 if a vertex is
/// at the position, although a predicate may exclude its path, so that doubling alone would take a
/// thousand spheres.
fn next_radius(radius: f64, furthest: f64) -> f64 {
    (radius * 2.0).max(furthest * 1e-6).min(furthest)
}

impl ExecContext<'_> {
    /// Returns the distance of the nearest `count` vertices, of different objects for paths,
    /// and of the furthest corner of a chunk. `None` without vertices.
    async fn first_radius(
        self,
        nearest: &NearestTo,
        cache: &Arc<ChunkCache>,
    ) -> Result<Option<(f64, f64)>, QueryError> {
        let query = self.query;
        let Some(schema) = query.schema(true).await? else {
            return Ok(None);
        };
        let chunks = query.chunks(&schema)?;
        let mut order: Vec<(f64, usize)> = (0..)
            .zip(&chunks)
            .map(|(at, chunk)| (query.space.squared_distance(&nearest.position, [chunk]), at))
            .collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let Some(hull) = query.space.hull(&chunks) else {
            return Ok(None);
        };
        let squares = nearest
            .position
            .iter()
            .zip(hull.lo().iter().zip(hull.hi()))
            .map(|(x, (lo, hi))| (x - lo).abs().max((x - hi).abs()).powi(2));
        let furthest = squares.sum::<f64>().sqrt() * 1.001;
        let objects = if query.shape == Shape::Paths {
            self.all_objects().await?
        } else {
            None
        };
        let mut cached = Session::new(self.catalog).resolve(query.query).await?;
        cached.cache = Some(Arc::clone(cache));
        let reading = ExecContext::new(&cached, self.diagnostics);
        // The nearest vertex of each object, or all vertices.
        let mut of_objects: HashMap<usize, f64> = HashMap::new();
        let mut of_vertices: KNearest<(usize, usize)> = KNearest::new(nearest.count.max(1));
        let (mut next, mut at_once) = (0_usize, 1_usize);
        loop {
            let bound = match &objects {
                Some(_) => kth(&of_objects, nearest.count.max(1)),
                None => (of_vertices.len() >= nearest.count.max(1))
                    .then(|| of_vertices.clone().into_sorted().last().map(|(d, _)| *d))
                    .flatten(),
            };
            let left = order.get(next..).unwrap_or_default();
            let wanted = match bound {
                None => left.len().min(at_once),
                Some(bound) => left
                    .iter()
                    .take_while(|(squared, _)| *squared <= bound)
                    .count(),
            };
            if wanted == 0 {
                // Rounded up, so that the vertex that determines the radius is inside.
                let radius = bound.map_or(furthest, |squared| squared.sqrt() * (1.0 + 1e-12));
                return Ok(Some((radius.max(f64::MIN_POSITIVE), furthest)));
            }
            at_once = at_once.saturating_mul(4);
            next = next.saturating_add(wanted);
            let now = left.get(..wanted).unwrap_or_default();
            let requests = now.iter().filter_map(|(_, at)| {
                Some(ChunkRequest {
                    chunk: chunks.get(*at)?.clone(),
                    fragments: true,
                    rows: RequestedRows::All,
                })
            });
            let read = reading.read_chunks(&schema, requests.collect()).await?;
            for ((_, number), chunk) in now.iter().zip(read) {
                let Some(chunk) = chunk else { continue };
                let coordinates = chunk.coordinates(&schema);
                let owners = objects.as_ref().map(|o| o.owners_of(&chunk.chunk));
                for (at, run) in chunk.runs().iter().enumerate() {
                    let squared =
                        squared_distance_to_point(&nearest.position, coordinates.at(run.index));
                    match &owners {
                        None => of_vertices.push(squared, (*number, at)),
                        Some(owners) => {
                            for index in owners.positions(run.fragment) {
                                let best = of_objects.entry(index).or_insert(f64::INFINITY);
                                *best = best.min(squared);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A search for the nearest points.
#[derive(Debug)]
pub(crate) struct NearestPointsPlan {
    pub(crate) columns: ObjectColumns,
    pub(crate) nearest: Nearest,
    /// The search gathers its rows itself.
    pub(crate) gather: Gather,
    pub(crate) filter: Option<Filter>,
    pub(crate) scan: ChunkScan,
    pub(crate) owners: Option<OwnerScan>,
}

impl NearestPointsPlan {
    /// Adds the operators of the plan to `tree`.
    pub(crate) fn describe(&self, tree: &mut OperatorTree<'_>) {
        tree.push(&self.columns);
        tree.push(&self.nearest);
        tree.repeat_inputs();
        tree.push(self.filter.as_ref());
        tree.push(&self.scan);
        tree.push(self.owners.as_ref());
    }

    /// Emits the nearest vertices, the nearest first.
    ///
    /// Reads chunks in the order of their distance, four times as many in each round, until no
    /// remaining chunk can contain a nearer vertex.
    pub(crate) async fn execute(
        &self,
        context: ExecContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let (query, schema) = (context.query, &*self.scan.schema);
        let (nearest, scan) = (&self.nearest.0, context.of(&self.scan));
        let objects = OwnerScan::read(self.owners.as_ref(), context).await?;
        let filter = RowFilter::open(self.filter, schema, None, context).await?;
        let chunks = query.scanned_chunks(schema)?;
        let mut order: Vec<(f64, usize)> = chunks
            .iter()
            .enumerate()
            .map(|(at, chunk)| (query.space.squared_distance(&nearest.position, [chunk]), at))
            .collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let count = nearest
            .count
            .min(usize::try_from(query.limit()).unwrap_or(usize::MAX));
        if count == 0 {
            order.clear();
        }
        let mut best: KNearest<(usize, usize)> = KNearest::new(count);
        let mut read: HashMap<usize, (Chunk, RowSelection)> = HashMap::new();
        let mut next = 0_usize;
        let mut at_once = 1_usize;
        loop {
            // Once there are enough candidates, read all chunks that may contain a nearer vertex.
            let left = order.get(next..).unwrap_or_default();
            let near = left.iter().take_while(|(squared, _)| best.admits(*squared));
            let wanted = if best.len() < count {
                left.len().min(at_once)
            } else {
                near.count()
            };
            if wanted == 0 {
                break;
            }
            at_once = at_once.saturating_mul(4);
            let now = left.get(..wanted).unwrap_or_default();
            next = next.saturating_add(wanted);
            let near: Vec<ChunkCoord> = now
                .iter()
                .filter_map(|(_, at)| chunks.get(*at).cloned())
                .collect();
            let mut numbers = now.iter().map(|(_, number)| *number);
            let request = |chunk: &ChunkCoord| self.scan.request(chunk, RequestedRows::All);
            let mut groups = ChunkGroups::new(&near, wanted);
            while !groups.is_done() {
                let found = groups.read(scan, schema, &request).await?;
                for (chunk, number) in found.into_iter().zip(numbers.by_ref()) {
                    let Some(chunk) = chunk else { continue };
                    let owners = context.owners_of(objects.as_ref(), &chunk)?;
                    let selected = filter.select(&chunk, owners)?.rows;
                    let coordinates = chunk.coordinates(schema);
                    for (at, run) in selected.iter().enumerate() {
                        let squared =
                            squared_distance_to_point(&nearest.position, coordinates.at(run.index));
                        best.push(squared, (number, at));
                    }
                    read.insert(number, (chunk, selected));
                }
                // Other chunks have no vertex of the result.
                let kept: BTreeSet<usize> = best.items().map(|(number, _)| *number).collect();
                read.retain(|number, _| kept.contains(number));
            }
        }
        let mut vertices = query.vertices(schema, self.gather.owners);
        let mut distances = Vec::with_capacity(best.len());
        for (squared, (number, at)) in best.into_sorted() {
            let Some((chunk, selected)) = read.get(&number) else {
                continue;
            };
            distances.push(squared.sqrt());
            let owners = context.owners_of(objects.as_ref(), chunk)?;
            let object = |fragment| owners.object(fragment, objects.as_deref());
            let row: RowSelection = selected.part(at..at.saturating_add(1)).collect();
            vertices.push(schema, chunk, &row, object, context.diagnostics)?;
        }
        let mut result = query.empty_result();
        vertices.finish(&mut result);
        result.distances = Some(distances);
        let ids = result.objects_of_rows().collect();
        let columns = context.of(&self.columns);
        columns
            .add_objects(&mut result, objects.as_ref(), &ids)
            .await?;
        let _ = emit(result);
        Ok(())
    }
}

/// Returns the `count`th smallest distance; `None` if there are fewer distances.
fn kth(distances: &HashMap<usize, f64>, count: usize) -> Option<f64> {
    let mut all: Vec<f64> = distances.values().copied().collect();
    all.sort_by(f64::total_cmp);
    all.get(count.checked_sub(1)?).copied()
}

/// Returns the squared distance of each path or link.
fn distances(result: &QueryResult, position: &[f64]) -> Vec<f64> {
    let dtype = Dtype::new(result.positions.kind, ByteOrder::Little);
    let axes = usize::try_from(result.positions.width).unwrap_or(1);
    let positions = Coordinates::of(&result.positions.bytes, dtype, axes);
    let at = |row: &u64| positions.at(usize::try_from(*row).unwrap_or(usize::MAX));
    if let Some(parts) = &result.parts {
        let part = |ends: &[u64]| {
            let [start, end] = ends else {
                return f64::NAN;
            };
            let rows: Vec<u64> = (*start..*end).collect();
            match rows.as_slice() {
                [only] => squared_distance_to_point(position, at(only)),
                rows => rows
                    .windows(2)
                    .map(|pair| match pair {
                        [a, b] => squared_distance_to_segment(position, [at(a), at(b)]),
                        _ => f64::NAN,
                    })
                    .fold(f64::INFINITY, f64::min),
            }
        };
        return parts.offsets.windows(2).map(part).collect();
    }
    let Some(links) = &result.links else {
        return Vec::new();
    };
    let width = usize::try_from(links.width).unwrap_or(1).max(1);
    let link = |ends: &[u64]| match ends {
        [] => f64::NAN,
        [one] => squared_distance_to_point(position, at(one)),
        [a, b] => squared_distance_to_segment(position, [at(a), at(b)]),
        [a, rest @ ..] => rest
            .windows(2)
            .map(|pair| match pair {
                [b, c] => squared_distance_to_triangle(position, [at(a), at(b), at(c)]),
                _ => f64::NAN,
            })
            .fold(f64::INFINITY, f64::min),
    };
    links.ends.chunks(width).map(link).collect()
}

/// Keeps the given paths, in the given order.
fn keep_parts(result: &mut QueryResult, chosen: &[usize]) {
    let Some(parts) = result.parts.take() else {
        return;
    };
    let mut kept = Parts {
        offsets: vec![0],
        objects: Vec::new(),
    };
    let mut rows = Vec::new();
    for at in chosen {
        let ends = parts.offsets.get(*at..).and_then(<[u64]>::first_chunk);
        let (Some([start, end]), Some(object)) = (ends, parts.objects.get(*at)) else {
            continue;
        };
        rows.extend((*start..*end).filter_map(|row| usize::try_from(row).ok()));
        kept.offsets
            .push(u64::try_from(rows.len()).unwrap_or(u64::MAX));
        kept.objects.push(*object);
    }
    result.keep_vertices(&rows);
    let mut left: HashMap<i64, usize> = result.objects.iter().copied().zip(0..).collect();
    let objects: Vec<usize> = kept
        .objects
        .iter()
        .filter_map(|id| left.remove(id))
        .collect();
    result.keep_objects(&objects);
    result.parts = Some(kept);
}

/// Keeps the given links, in the given order, and the vertices at their ends.
fn keep_links(result: &mut QueryResult, chosen: &[usize]) {
    let Some(mut links) = result.links.take() else {
        return;
    };
    let width = usize::try_from(links.width).unwrap_or(1).max(1);
    let ends: Vec<u64> = chosen
        .iter()
        .filter_map(|at| {
            let start = at.checked_mul(width)?;
            links.ends.get(start..start.checked_add(width)?)
        })
        .flatten()
        .copied()
        .collect();
    let rows: BTreeSet<u64> = ends.iter().copied().collect();
    let index: HashMap<u64, u64> = rows.iter().copied().zip(0..).collect();
    links.ends = ends
        .iter()
        .filter_map(|end| index.get(end).copied())
        .collect();
    result
        .link
        .iter_mut()
        .for_each(|column| *column = column.take(chosen.iter().copied()));
    let rows: Vec<usize> = rows
        .iter()
        .filter_map(|row| usize::try_from(*row).ok())
        .collect();
    result.keep_vertices(&rows);
    if let Some(ids) = &result.object_ids {
        let present: BTreeSet<i64> = ids.runs().filter_map(|(owner, _)| owner.object()).collect();
        let objects: Vec<usize> = result
            .objects
            .iter()
            .enumerate()
            .filter(|(_, id)| present.contains(id))
            .map(|(at, _)| at)
            .collect();
        result.keep_objects(&objects);
    }
    result.links = Some(links);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_spheres_lead_from_a_vertex_to_the_furthest_chunk() {
        let (mut radius, mut spheres) = (f64::MIN_POSITIVE, 0);
        while radius < 500.0 {
            radius = next_radius(radius, 500.0);
            spheres += 1;
        }
        assert!(spheres < 30, "{spheres}");
        assert!((next_radius(20.0, 500.0) - 40.0).abs() < f64::EPSILON);
    }
}
