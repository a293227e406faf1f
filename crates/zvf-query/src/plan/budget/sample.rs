//! Samples of a level that does not fit a budget.

use core::ops::ControlFlow;
use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap, HashSet},
};

use zvf_catalog::{Diagnostics, Names, Selection};
use zvf_model::{level::LevelId, random::hash};

use super::selected_rows;
use crate::{
    error::QueryError,
    query::{LevelChoice, Query},
    resolve::{
        choice::{LevelPart, LevelParts, LevelSample, VertexSample},
        query::Batching,
    },
    result::QueryResult,
    session::Session,
};

/// The seed of the objects that levels keep by default.
const SEED: u64 = 0;

/// Vertices of the objects that a query selects on a level, in the order of the result.
type ObjectVertices = Vec<(i64, u64)>;

impl Session<'_> {
    /// Returns a selection of paths with at most `max` vertices: as many as fit from the finer level, the
    /// rest from the coarser one. Returns `None` if no path of the finer level fits, or if the query names
    /// its objects.
    pub(super) async fn path_sample(
        &self,
        query: &Query,
        [coarse, fine]: [&[LevelId]; 2],
        max: u64,
    ) -> Result<Option<LevelParts>, QueryError> {
        let (&[coarse], &[fine]) = (coarse, fine) else {
            return Ok(None);
        };
        if query.objects.is_some() {
            return Ok(None);
        }
        let mut objects = Vec::with_capacity(2);
        for level in [coarse, fine] {
            let Some(of_level) = self.object_vertices(query, level).await? else {
                return Ok(None);
            };
            objects.push(of_level);
        }
        let objects = refined(&objects, max);
        let mut parts = Vec::with_capacity(2);
        for (level, ids) in [coarse, fine].into_iter().zip(objects) {
            let part = LevelPart {
                sample: Some(LevelSample::Objects(ids)),
                ..LevelPart::whole(level)
            };
            let diagnostics = Diagnostics::new(query.keep_going);
            let sampled = part.query(query);
            let counts = self.counts(&sampled, level, &diagnostics).await?;
            let counted = counts.by_chunk();
            parts.push(LevelPart { counted, ..part });
        }
        let is_finer = parts.last().is_some_and(|fine| !fine.is_empty());
        Ok(is_finer.then_some(parts))
    }

    /// Counts the vertices of each object on a level, as far as they may be in the region; `None` if they
    /// cannot be counted.
    async fn object_vertices(
        &self,
        query: &Query,
        level: LevelId,
    ) -> Result<Option<ObjectVertices>, QueryError> {
        let query = Query {
            level: LevelChoice::Number(level),
            columns: Selection::none(),
            ..query.clone()
        };
        let diagnostics = Diagnostics::new(query.keep_going);
        let plan = self.resolve(&query).await?;
        let schema = self
            .catalog
            .schema(&plan.level, &Names::default(), true)
            .await?;
        let Some(schema) = schema else {
            return Ok(None);
        };
        let Some((objects, rows)) = selected_rows(&plan, &schema, &diagnostics).await? else {
            return Ok(None);
        };
        let vertices = rows
            .into_iter()
            .filter_map(|(index, rows)| Some((objects.id(index)?, rows)));
        Ok(Some(vertices.collect()))
    }

    /// Fits the samples of some parts to the vertices that the query selects, so that all parts have up to
    /// `max` together. Returns `None` if no sample does. Runs the query without columns if there is a sample.
    pub(in crate::plan) async fn fitted<'p>(
        &self,
        query: &Query,
        parts: &'p [LevelPart],
        max: u64,
    ) -> Result<Option<Cow<'p, [LevelPart]>>, QueryError> {
        let Some(at) = parts.iter().position(|part| part.sample.is_some()) else {
            return Ok(Some(Cow::Borrowed(parts)));
        };
        let mut fitted = parts.to_vec();
        let mut samples = parts.iter().map(|part| &part.sample);
        let is_by_object = samples.any(|sample| matches!(sample, Some(LevelSample::Objects(_))));
        for part in &mut fitted {
            part.sample = None;
        }
        let query = Query {
            columns: Selection::none(),
            limit: None,
            ..query.clone()
        };
        let mut objects: Vec<ObjectVertices> = vec![Vec::new(); fitted.len()];
        let mut places: HashMap<(LevelId, i64), usize> = HashMap::new();
        let levels: Vec<LevelId> = fitted.iter().map(|part| part.level).collect();
        let mut count = |batch: QueryResult| {
            let at = levels.iter().position(|level| *level == batch.level);
            let Some(of_level) = at.and_then(|at| objects.get_mut(at)) else {
                return ControlFlow::Continue(());
            };
            let parts = batch.parts.unwrap_or_default();
            let lengths = parts.offsets.windows(2).filter_map(|ends| match ends {
                [start, end] => end.checked_sub(*start),
                _ => None,
            });
            for (object, length) in parts.objects.into_iter().zip(lengths) {
                let place = *places
                    .entry((batch.level, object))
                    .or_insert(of_level.len());
                if place == of_level.len() {
                    of_level.push((object, 0));
                }
                if let Some((_, rows)) = of_level.get_mut(place) {
                    *rows = rows.saturating_add(length);
                }
            }
            ControlFlow::Continue(())
        };
        let diagnostics = Diagnostics::new(query.keep_going);
        let counting = self.run_parts(&query, Batching::Budget, &fitted, &diagnostics, &mut count);
        let used = counting.await?;
        let counts = used.iter().map(|used| used.vertices);
        let total = counts.fold(0, u64::saturating_add);
        let of = used.get(at).map_or(0, |used| used.vertices);
        if is_by_object {
            let fine = used.last().map_or(0, |used| used.vertices);
            if fine <= max {
                fitted.drain(..fitted.len().saturating_sub(1));
                return Ok(Some(Cow::Owned(fitted)));
            }
            for (part, ids) in fitted.iter_mut().zip(refined(&objects, max)) {
                part.sample = Some(LevelSample::Objects(ids));
            }
            let is_finer = fitted.last().is_some_and(|fine| !fine.is_empty());
            fitted.retain(|part| !part.is_empty());
            return Ok(is_finer.then_some(Cow::Owned(fitted)));
        }
        let kept = max.saturating_sub(total.saturating_sub(of));
        if total > max {
            let part = fitted.get_mut(at).filter(|_| kept > 0);
            let Some(part) = part else {
                return Ok(None);
            };
            part.sample = Some(LevelSample::Vertices(VertexSample { kept, of }));
        }
        Ok(Some(Cow::Owned(fitted)))
    }
}

/// Reduces the batches of a part to its sample of vertices.
#[derive(Debug)]
pub(in crate::plan) struct VertexSampler {
    sample: Option<VertexSample>,
    /// Maximum number of vertices.
    limit: u64,
    /// Number of vertices kept.
    kept: u64,
    /// Grows by the number of kept vertices with each vertex; one is kept at each multiple of all.
    sum: u128,
    /// Objects of kept vertices.
    objects: BTreeSet<i64>,
}

impl VertexSampler {
    /// Creates the sampler of a part; without a sample, it keeps all.
    pub(in crate::plan) fn new(sample: Option<VertexSample>, limit: Option<u64>) -> Self {
        Self {
            sample,
            limit: limit.unwrap_or(u64::MAX),
            kept: 0,
            sum: 0,
            objects: BTreeSet::new(),
        }
    }

    /// Keeps the next vertices of the sample, and their objects.
    pub(in crate::plan) fn keep(&mut self, batch: &mut QueryResult) {
        let Some(VertexSample { kept, of }) = self.sample else {
            return;
        };
        let mut rows = Vec::new();
        for row in 0..batch.positions.len() {
            self.sum = self.sum.saturating_add(kept.into());
            if self.sum >= of.into() {
                self.sum = self.sum.saturating_sub(of.into());
                if self.kept < self.limit {
                    self.kept = self.kept.saturating_add(1);
                    rows.push(row);
                }
            }
        }
        batch.keep_vertices(&rows);
        self.objects.extend(batch.objects_of_rows());
        if batch.object_ids.is_some() {
            let objects = batch.objects.iter().enumerate();
            let present: Vec<usize> = objects
                .filter_map(|(row, id)| self.objects.contains(id).then_some(row))
                .collect();
            batch.keep_objects(&present);
        }
    }
}

/// Divides objects among a coarser and a finer level: of those with the smallest hashes of their ids, as many
/// as fit in `max` vertices are read from the finer level. Others are read from the coarser one, if they have
/// vertices there. Returns the ids of each level in the given order.
fn refined(objects: &[ObjectVertices], max: u64) -> [Vec<i64>; 2] {
    let [coarse, fine] = objects else {
        return Default::default();
    };
    let counted: HashMap<i64, u64> = coarse.iter().copied().collect();
    let counts = coarse.iter().map(|(_, rows)| *rows);
    let mut total = counts.fold(0, u64::saturating_add);
    let mut order: Vec<usize> = (0..fine.len()).collect();
    order.sort_by_cached_key(|at| {
        let id = fine.get(*at).map_or(0, |(id, _)| *id);
        (hash(SEED, [id.cast_unsigned()]), id)
    });
    order.retain(|at| {
        let Some((id, rows)) = fine.get(*at) else {
            return false;
        };
        let before = counted.get(id).copied().unwrap_or(0);
        let with = total.saturating_sub(before).saturating_add(*rows);
        let is_finer = *rows > 0 && with <= max;
        if is_finer {
            total = with;
        }
        is_finer
    });
    order.sort_unstable();
    let ids = order.iter().filter_map(|at| fine.get(*at));
    let finer: Vec<i64> = ids.map(|(id, _)| *id).collect();
    let is_finer: HashSet<i64> = finer.iter().copied().collect();
    let others = coarse
        .iter()
        .filter(|(id, rows)| *rows > 0 && !is_finer.contains(id));
    [others.map(|(id, _)| *id).collect(), finer]
}
