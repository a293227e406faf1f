//! Choice of levels within a budget of vertices.

mod count;
mod refine;
mod regions;
mod sample;

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use zvf_catalog::Diagnostics;
use zvf_model::level::LevelId;

use crate::{
    error::QueryError,
    query::{Query, Shape, VertexBudget},
    resolve::{
        area::{Area, ChunkSpace},
        choice::{LevelPart, LevelParts, LevelPlan, skipped_level_note},
        query::shape_of,
    },
    session::Session,
};

pub(crate) use count::{LevelCount, selected_rows};
pub(super) use sample::VertexSampler;

/// Counts by level.
pub(crate) type CountsByLevel = BTreeMap<LevelId, LevelCount>;

impl Session<'_> {
    /// Returns the levels that a budget selects. Takes one round trip for each counted level after
    /// its metadata, and one more for manifests if objects are selected.
    pub(crate) async fn levels_within(
        &self,
        query: &Query,
        budget: &VertexBudget,
        diagnostics: &Diagnostics,
    ) -> Result<LevelPlan, QueryError> {
        self.check_goes_with(query, budget)?;
        let shape = query.shape.unwrap_or_else(|| shape_of(self.catalog.root));
        let candidates = self.candidates(query, diagnostics).await?;
        let mut counted = CountsByLevel::new();
        // The finest level that fits, and the next finer one, which does not.
        let (mut fitting, mut over) = (None, None);
        let mut at = self.first_guess(query, budget, &candidates).await?;
        while let Some(levels) = candidates.get(at) {
            for level in levels {
                if !counted.contains_key(level) {
                    let counts = self.counts(query, *level, diagnostics).await?;
                    counted.insert(*level, counts);
                }
            }
            let next = if total(levels, &counted, LevelCount::share) <= budget.vertices {
                fitting = Some(at);
                at.checked_add(1).filter(|_| over.is_none())
            } else {
                over = Some(levels);
                at.checked_sub(1).filter(|_| fitting.is_none())
            };
            let Some(next) = next else {
                break;
            };
            at = next;
        }
        let mut alternatives: Vec<LevelParts> = Vec::new();
        let whole = |levels: &Vec<LevelId>| levels.iter().map(|id| part(*id, &counted)).collect();
        let mut coarser = fitting.map_or(&[][..], |at| candidates.get(..=at).unwrap_or_default());
        if let (Some(coarse), Some(fine)) = (coarser.last(), &over) {
            let fits = total(coarse, &counted, LevelCount::share);
            // A coarser level may lack the objects that the query names.
            if fits == 0 && query.objects.is_some() {
                coarser = &[];
            } else if shape == Shape::Points {
                let regions = self.regions(coarse, fine, &counted).await?;
                alternatives
                    .extend(regions.and_then(|regions| regions.parts(budget, self.catalog.root)));
            } else if shape == Shape::Paths && is_underfilled(fits, budget.vertices) {
                let sample = self.path_sample(query, [coarse, fine], budget.vertices);
                let mut parts = sample.await?.unwrap_or_default();
                // A region has to be counted before it is known that no object is left on a level.
                let is_counted = query.region.is_some() || query.filter.is_some();
                parts.retain(|part| is_counted || !part.is_empty());
                alternatives.extend((!parts.is_empty()).then_some(parts));
            }
        }
        let is_sampled = alternatives
            .iter()
            .flatten()
            .any(|part| part.sample.is_some());
        alternatives.extend(coarser.iter().rev().map(whole));
        let is_hope = alternatives.is_empty();
        if is_hope {
            let levels = over.ok_or_else(|| self.catalog.no_level(LevelId::FULL))?;
            let counts_all = query.region.is_none() && query.filter.is_none();
            if counts_all && !query.keep_going {
                return Err(QueryError::OverVertices {
                    level: levels.last().copied().unwrap_or_default(),
                    vertices: total(levels, &counted, LevelCount::all),
                    budget: budget.vertices,
                    outdated: self.stale().into_iter().collect(),
                });
            }
            // The region may contain less than the estimated share, the predicate selects among the
            // counted vertices, and data that cannot be counted is not returned.
            alternatives.push(whole(levels));
        }
        for parts in &mut alternatives {
            self.order(parts).await?;
        }
        // Paths and links that leave a region add vertices beyond those counted.
        let is_exact = query.region.is_none()
            || shape == Shape::Points && counted.values().all(LevelCount::is_exact);
        Ok(LevelPlan {
            alternatives,
            max: (is_hope || !is_exact || is_sampled && query.filter.is_some())
                .then_some(budget.vertices),
            is_exact,
            lists_levels: true,
        })
    }

    /// Returns the candidate levels, each with the levels read together with it, coarsest first.
    async fn candidates(
        &self,
        query: &Query,
        diagnostics: &Diagnostics,
    ) -> Result<Vec<Vec<LevelId>>, QueryError> {
        let stale = self.stale();
        let (stale_ids, fresh): (Vec<_>, Vec<_>) = self
            .level_ids()
            .into_iter()
            .partition(|id| stale.contains(id));
        for id in stale_ids {
            diagnostics.note(skipped_level_note(id));
        }
        // One round trip for all levels.
        try_join_all(fresh.iter().map(|id| self.catalog.level(*id))).await?;
        let mut candidates = Vec::with_capacity(fresh.len());
        for id in fresh {
            let levels = self.joint_levels(query, id).await?;
            if !levels.iter().any(|level| stale.contains(level)) {
                candidates.push(levels);
            }
        }
        Ok(candidates)
    }

    /// Returns the level where counting starts: the finest whose declared count, scaled by the
    /// region's share of the store, fits the budget. This avoids counting coarser levels and does
    /// not affect the result.
    async fn first_guess(
        &self,
        query: &Query,
        budget: &VertexBudget,
        candidates: &[Vec<LevelId>],
    ) -> Result<usize, QueryError> {
        let by_object = query.objects.is_some() || query.groups.is_some();
        if by_object || query.filter.is_some() {
            return Ok(0);
        }
        let mut guess = 0;
        for (at, levels) in candidates.iter().enumerate() {
            let mut declared = 0_u64;
            for id in levels {
                let level = self.catalog.level(*id).await?;
                let Some(count) = level.metadata.vertex_count else {
                    return Ok(guess);
                };
                let area = query.region.as_ref();
                let space = ChunkSpace::of(&level.metadata, self.catalog.root);
                let area = area.map(|region| Area::new(region, &space)).transpose()?;
                let share = area
                    .zip(self.catalog.root.bounds.as_ref())
                    .map_or(1.0, |(area, bounds)| {
                        area.share_between(bounds.lower(), bounds.upper())
                    });
                declared = declared.saturating_add(count::share_of(share, count));
            }
            if declared <= budget.vertices {
                guess = at;
            }
        }
        Ok(guess)
    }

    /// Checks that the query can be combined with a budget.
    fn check_goes_with(&self, query: &Query, budget: &VertexBudget) -> Result<(), QueryError> {
        if query.drill.is_some() || query.nearest.is_some() || query.geometry.is_some() {
            return Err(QueryError::Unsupported(
                "a budget cannot be combined with a level jump, a search for the nearest or an \
                 additional geometry: name a level",
            ));
        }
        if query.chunks.is_some() {
            return Err(QueryError::Unsupported(
                "chunks belong to one level, but a budget may choose several: name the level, or \
                 give a region",
            ));
        }
        let (expected, focus) = (self.catalog.root.axes.len(), budget.focus);
        match focus
            .map(|position| position.len())
            .filter(|n| *n != expected)
        {
            Some(found) => Err(QueryError::Axes { expected, found }),
            None => Ok(()),
        }
    }
}

/// Returns whether a result of `vertices` leaves a fifth of the budget or more unused.
fn is_underfilled(vertices: u64, budget: u64) -> bool {
    vertices < budget.saturating_sub(budget / 5)
}

/// Returns all of a counted level.
fn part(level: LevelId, counted: &CountsByLevel) -> LevelPart {
    let counted = counted.get(&level).map(LevelCount::by_chunk);
    LevelPart {
        counted: counted.unwrap_or_default(),
        ..LevelPart::whole(level)
    }
}

fn total(levels: &[LevelId], counted: &CountsByLevel, of: impl Fn(&LevelCount) -> u64) -> u64 {
    let counts = levels.iter().filter_map(|level| counted.get(level));
    counts.map(of).fold(0, u64::saturating_add)
}
