//! The choice of levels that a query reads.

use std::collections::BTreeSet;

use zvf_model::{grid::ChunkCoord, level::LevelId};

use crate::{
    catalog::level::Session,
    diagnostics::Diagnostics,
    error::QueryError,
    query::{LevelChoice, Query, Shape},
    resolve::query::shape_of,
};

/// A level, or some chunks of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LevelPart {
    pub(crate) level: LevelId,
    /// Chunks of the level; `None` for all that the query allows.
    pub(crate) chunks: Option<Vec<ChunkCoord>>,
    /// Counted vertices by chunk.
    pub(crate) counted: Vec<(ChunkCoord, u64)>,
}

impl LevelPart {
    pub(crate) fn whole(level: LevelId) -> Self {
        Self {
            level,
            chunks: None,
            counted: Vec::new(),
        }
    }

    /// Returns the query restricted to the part.
    pub(crate) fn query(&self, query: &Query) -> Query {
        let mut query = query.clone();
        query.level = LevelChoice::Number(self.level);
        if let Some(chunks) = &self.chunks {
            query.chunks = Some(chunks.clone());
        }
        query
    }
}

/// One level or parts of several, the coarsest first, that are read together.
pub(crate) type LevelParts = Vec<LevelPart>;

/// The levels that a query may read.
#[derive(Debug)]
pub(crate) struct LevelPlan {
    /// Alternatives in the order in which they are tried: each is run if the one before has too many
    /// vertices. Never empty.
    pub(crate) alternatives: Vec<LevelParts>,
    /// Maximum number of vertices; `None` if the first alternative is known to fit.
    pub(crate) max: Option<u64>,
    /// Whether counts are exact, apart from filters and limits.
    pub(crate) is_exact: bool,
    /// Whether the result lists its levels.
    pub(crate) is_told: bool,
}

impl Session<'_> {
    /// Chooses the levels that a query reads. A budget reads the fragment indexes needed to count.
    pub(crate) async fn choose(
        &self,
        query: &Query,
        diagnostics: &Diagnostics,
    ) -> Result<LevelPlan, QueryError> {
        if let LevelChoice::Budget(budget) = query.level {
            return Box::pin(self.within(query, &budget, diagnostics)).await;
        }
        let id = self.chosen_level(query).await?;
        let stale = self.stale();
        let drawn = self.drawn_with(query, id).await?;
        for level in drawn.iter().filter(|level| stale.contains(level)) {
            diagnostics.note(format!(
                "level {level} is behind: what was changed since it was made is not in it"
            ));
        }
        if !stale.is_empty() {
            let regardless = self.level_of(query, &BTreeSet::new()).await;
            if let Some(other) = regardless.ok().filter(|other| *other != id) {
                diagnostics.note(passed_over(other));
            }
        }
        let is_told = drawn.len() > 1;
        if is_told && (query.drill.is_some() || query.nearest.is_some()) {
            return Err(QueryError::Unsupported(
                "points of an additive level are on all coarser ones as well: \
                 ask level 0 for the nearest and for what is linked",
            ));
        }
        Ok(LevelPlan {
            alternatives: vec![drawn.into_iter().map(LevelPart::whole).collect()],
            max: None,
            is_exact: false,
            is_told,
        })
    }

    /// Returns the level that the query chooses.
    pub(crate) async fn chosen_level(&self, query: &Query) -> Result<LevelId, QueryError> {
        self.level_of(query, &self.stale()).await
    }

    /// Returns the level that the query chooses, skipping levels in `without` unless the query names
    /// them by number.
    async fn level_of(
        &self,
        query: &Query,
        without: &BTreeSet<LevelId>,
    ) -> Result<LevelId, QueryError> {
        let mut datasets: Vec<_> = self.root.datasets.iter().collect();
        datasets.retain(|dataset| !without.contains(&dataset.level));
        datasets.sort_by_key(|dataset| dataset.level);
        match &query.level {
            LevelChoice::Number(id) => Ok(*id),
            LevelChoice::Scale(max) => {
                let fits = |dataset: &&&zvf_model::root::MultiscaleDataset| {
                    let scale = dataset.scale.as_deref().unwrap_or_default();
                    scale.iter().all(|scale| scale <= max)
                };
                let coarsest = datasets.iter().rev().find(fits);
                let coarsest = coarsest.map(|dataset| dataset.level);
                coarsest.ok_or(QueryError::NoScale)
            }
            LevelChoice::Vertices(max) => {
                let mut last = LevelId::FULL;
                for dataset in datasets {
                    last = dataset.level;
                    let mut declared = Some(0_u64);
                    for level in self.drawn_with(query, last).await? {
                        let count = self.level(level).await?.metadata.vertex_count;
                        declared = declared.zip(count).map(|(a, b)| a.saturating_add(b));
                    }
                    if declared.is_some_and(|count| count <= *max) {
                        break;
                    }
                }
                Ok(last)
            }
            LevelChoice::Budget(_) => Err(QueryError::Unsupported(
                "a budget chooses no single level here: name one",
            )),
        }
    }

    /// Returns the stale levels: a finer level has changed since they were built.
    pub(crate) fn stale(&self) -> BTreeSet<LevelId> {
        self.root.stale_levels().collect()
    }

    /// Returns the levels that are read together with this one, the coarsest first.
    pub(crate) async fn drawn_with(
        &self,
        query: &Query,
        id: LevelId,
    ) -> Result<Vec<LevelId>, QueryError> {
        let shape = query.shape.unwrap_or_else(|| shape_of(self.root));
        let alone = shape != Shape::Points || query.geometry.is_some();
        if alone || id == LevelId::FULL || !self.level(id).await?.metadata.is_additive() {
            return Ok(vec![id]);
        }
        let mut levels: Vec<LevelId> = self.level_ids();
        levels.retain(|other| *other > id);
        levels.push(id);
        Ok(levels)
    }

    /// Returns the levels that the root names and level 0, the coarsest first.
    pub(crate) fn level_ids(&self) -> Vec<LevelId> {
        let ids = self.root.datasets.iter().map(|dataset| dataset.level);
        let ids: BTreeSet<LevelId> = ids.chain([LevelId::FULL]).collect();
        ids.into_iter().rev().collect()
    }
}

/// Returns the note that a stale level was skipped.
pub(crate) fn passed_over(level: LevelId) -> String {
    format!("level {level} is behind what was changed since it was made, and was passed over")
}
