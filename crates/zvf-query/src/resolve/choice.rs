//! The choice of levels that a query reads.

use core::num::NonZeroU32;
use std::collections::BTreeSet;

use zvf_catalog::{Catalog, CatalogError, Damage, Diagnostics, Fault, child};
use zvf_model::{
    fetch::BoxFuture,
    grid::ChunkCoord,
    key::Key,
    level::{ADDITIVE_LEVELS, LevelId, Refinement},
    root::RootMetadata,
};

use crate::{
    error::QueryError,
    query::{LevelChoice, Query, Shape},
    resolve::query::shape_of,
    session::Session,
};

/// Maximum number of levels that complete each other, far above that of any pyramid. It bounds the
/// requests of a query.
const MAX_CHAIN: usize = 64;
/// Maximum number of chunks of another level that the chunks of a query select.
const MAX_CHUNKS: usize = 1 << 20;

/// A level, or some chunks of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LevelPart {
    pub(crate) level: LevelId,
    /// Chunks of the level; `None` for all that the query allows.
    pub(crate) chunks: Option<Vec<ChunkCoord>>,
    /// Counted vertices by chunk.
    pub(crate) counted: Vec<(ChunkCoord, u64)>,
    /// The part of the selection that is read to fill a budget; `None` for all of it.
    pub(crate) sample: Option<LevelSample>,
}

/// A part of a selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LevelSample {
    /// Vertices at even distances in the order of the result.
    Vertices(VertexSample),
    /// These objects.
    Objects(Vec<i64>),
}

/// The vertices of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VertexSample {
    /// Number of vertices of the sample.
    pub(crate) kept: u64,
    /// Number of vertices from which they are chosen.
    pub(crate) of: u64,
}

impl VertexSample {
    /// Returns the number of vertices that are kept of the first `rows`.
    pub(crate) fn kept_of(self, rows: u64) -> u64 {
        let share = u128::from(rows).saturating_mul(self.kept.into());
        let kept = share.checked_div(self.of.into()).unwrap_or_default();
        u64::try_from(kept).unwrap_or(u64::MAX)
    }
}

impl LevelPart {
    pub(crate) fn whole(level: LevelId) -> Self {
        Self {
            level,
            chunks: None,
            counted: Vec::new(),
            sample: None,
        }
    }

    /// Returns whether the part is a sample without objects.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(&self.sample, Some(LevelSample::Objects(objects)) if objects.is_empty())
    }

    /// Returns these chunks of a level.
    pub(crate) fn of_chunks(level: LevelId, counted: Vec<(ChunkCoord, u64)>) -> Self {
        let chunks = counted.iter().map(|(chunk, _)| chunk.clone());
        Self {
            chunks: Some(chunks.collect()),
            counted,
            ..Self::whole(level)
        }
    }

    /// Returns the query restricted to the part.
    pub(crate) fn query(&self, query: &Query) -> Query {
        let mut query = query.clone();
        query.level = LevelChoice::Number(self.level);
        if let Some(chunks) = &self.chunks {
            query.chunks = Some(chunks.clone());
        }
        if let Some(LevelSample::Objects(objects)) = &self.sample {
            query.objects = Some(objects.clone());
            query.groups = None;
        }
        query
    }
}

/// One level or parts of several that are read together: the coarsest first, or the finest first if
/// they complete each other.
pub(crate) type LevelParts = Vec<LevelPart>;

/// The levels that a query may read.
#[derive(Debug)]
pub(crate) struct LevelPlan {
    /// Alternatives in the order in which they are tried: each is run if the one before has too many
    /// vertices. Never empty.
    pub(crate) alternatives: Vec<LevelParts>,
    /// Maximum number of vertices; `None` if the first alternative is known to fit.
    pub(crate) max: Option<u64>,
    /// True if counts are exact, apart from filters and limits.
    pub(crate) is_exact: bool,
    /// True if the result lists its levels.
    pub(crate) lists_levels: bool,
}

impl Session<'_> {
    /// Chooses the levels that a query reads. A budget reads the fragment indexes needed to count.
    pub(crate) async fn choose(
        &self,
        query: &Query,
        diagnostics: &Diagnostics,
    ) -> Result<LevelPlan, QueryError> {
        if let LevelChoice::Budget(budget) = query.level {
            return Box::pin(self.levels_within(query, &budget, diagnostics)).await;
        }
        let id = self.chosen_level(query).await?;
        let stale = self.stale();
        let levels = self.joint_levels(query, id).await?;
        if let LevelChoice::Vertices(max) = query.level
            && self
                .declared(query, &levels)
                .await?
                .is_none_or(|count| count > max)
        {
            diagnostics.note(format!(
                "no level has at most {max} vertices; level {id}, the coarsest, was read"
            ));
        }
        for level in levels.iter().filter(|level| stale.contains(level)) {
            diagnostics.note(format!(
                "level {level} is outdated: later changes are not in it"
            ));
        }
        if !stale.is_empty() {
            let regardless = self.level_of(query, &BTreeSet::new()).await;
            if let Some(other) = regardless.ok().filter(|other| *other != id) {
                diagnostics.note(skipped_level_note(other));
            }
        }
        let lists_levels = levels.len() > 1;
        if lists_levels && self.is_completed(id).await? {
            check_union(query, self.catalog.root)?;
        } else if lists_levels && (query.drill.is_some() || query.nearest.is_some()) {
            return Err(QueryError::Unsupported(
                "points of an additive level are on all coarser levels as well: \
                 query level 0 for the nearest and for linked vertices",
            ));
        }
        let mut parts = Vec::with_capacity(levels.len());
        for level in levels {
            parts.push(LevelPart {
                chunks: self.chunks_at(query, id, level).await?,
                ..LevelPart::whole(level)
            });
        }
        self.order(&mut parts).await?;
        Ok(LevelPlan {
            alternatives: vec![parts],
            max: None,
            is_exact: false,
            lists_levels,
        })
    }

    /// Returns whether coarser levels complete a level.
    pub(crate) async fn is_completed(&self, id: LevelId) -> Result<bool, QueryError> {
        let level = self.catalog.level(id).await?;
        Ok(level.metadata.refinement == Refinement::Add)
    }

    /// Returns whether parts are of several levels that complete each other.
    pub(crate) async fn is_union(&self, parts: &[LevelPart]) -> Result<bool, QueryError> {
        for part in parts.iter().filter(|_| parts.len() > 1) {
            if self.is_completed(part.level).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Orders parts that complete each other: the finest first. Others stay coarsest first.
    pub(crate) async fn order(&self, parts: &mut LevelParts) -> Result<(), QueryError> {
        if self.is_union(parts).await? {
            parts.sort_by_key(|part| part.level);
        }
        Ok(())
    }

    /// Maps the chunks that a query names on the level `of` to the overlapping chunks of `level`.
    /// Returns `None` if the query names no chunks, or if the levels do not complete each other.
    async fn chunks_at(
        &self,
        query: &Query,
        of: LevelId,
        level: LevelId,
    ) -> Result<Option<Vec<ChunkCoord>>, QueryError> {
        let Some(chunks) = &query.chunks else {
            return Ok(None);
        };
        if level == of || !self.is_completed(of).await? {
            return Ok(None);
        }
        let scales = (
            self.catalog.level(of).await?,
            self.catalog.level(level).await?,
        );
        let scales = (
            scales.0.metadata.scale(self.catalog.root),
            scales.1.metadata.scale(self.catalog.root),
        );
        let (Ok(from), Ok(to)) = scales else {
            return Err(QueryError::Unsupported(
                "the chunks of an additive level and of the levels that complete it have no common \
                 multiple: select a region instead of chunks",
            ));
        };
        overlapping(chunks, &from, &to)
            .ok_or(QueryError::Unsupported(
                "the chunks overlap too many chunks of the levels that complete an additive one: \
                 select a region instead of chunks",
            ))
            .map(Some)
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
        let mut datasets: Vec<_> = self.catalog.root.datasets.iter().collect();
        datasets.retain(|dataset| !without.contains(&dataset.level));
        datasets.sort_by_key(|dataset| dataset.level);
        match &query.level {
            LevelChoice::Number(id) => Ok(*id),
            LevelChoice::Scale(max) => {
                let root = self.catalog.root;
                for dataset in datasets.into_iter().rev() {
                    // Levels that the root only names declare their bins.
                    let scale = match &dataset.scale {
                        Some(scale) => Some(scale.clone()),
                        None => {
                            let level = self.catalog.level(dataset.level).await?;
                            level.metadata.dataset(root).scale
                        }
                    };
                    if scale.iter().flatten().all(|scale| scale <= max) {
                        return Ok(dataset.level);
                    }
                }
                Err(QueryError::NoScale)
            }
            LevelChoice::Vertices(max) => {
                let mut last = LevelId::FULL;
                for dataset in datasets {
                    last = dataset.level;
                    let levels = self.joint_levels(query, last).await?;
                    let declared = self.declared(query, &levels).await?;
                    if declared.is_some_and(|count| count <= *max) {
                        break;
                    }
                }
                Ok(last)
            }
            LevelChoice::Budget(_) => Err(QueryError::Unsupported(
                "a budget may choose several levels, but this needs one level: name it",
            )),
        }
    }

    /// Returns the number of vertices that levels declare; `None` if one does not. Paths of a level may
    /// share vertices, which are then counted once for each path, as in a result.
    async fn declared(&self, query: &Query, levels: &[LevelId]) -> Result<Option<u64>, QueryError> {
        let mut declared = Some(0_u64);
        let shape = query.shape.unwrap_or_else(|| shape_of(self.catalog.root));
        for id in levels {
            let level = self.catalog.level(*id).await?;
            let count = if level.metadata.shared_fragments && shape == Shape::Paths {
                let diagnostics = Diagnostics::new(query.keep_going);
                let all = Query::new().shape(shape);
                let counting = Box::pin(self.counts(&all, *id, &diagnostics));
                Some(counting.await?.all())
            } else {
                level.metadata.vertex_count
            };
            declared = declared.zip(count).map(|(a, b)| a.saturating_add(b));
        }
        Ok(declared)
    }

    /// Returns the stale levels: a finer level has changed since they were built.
    pub(crate) fn stale(&self) -> BTreeSet<LevelId> {
        self.catalog.root.stale_levels().collect()
    }

    /// Returns the levels that hold the content of a level, the coarsest first: those up to the
    /// first that is not additive.
    async fn chain(&self, id: LevelId) -> Result<Vec<LevelId>, QueryError> {
        let mut chain = vec![id];
        let mut level = self.catalog.level(id).await?;
        while level.metadata.refinement == Refinement::Add {
            let id = level.id();
            if !self.catalog.root.has_capability(ADDITIVE_LEVELS) {
                let node = Catalog::node_of(&level)?;
                return Err(Damage::new(&node, Fault::UndeclaredAdditive).into());
            }
            let next = id
                .offset(1)
                .filter(|_| chain.len() < MAX_CHAIN)
                .ok_or_else(|| self.catalog.no_level(id))?;
            level = match self.catalog.level(next).await {
                Err(CatalogError::NoLevel { .. }) => {
                    let node = child(&Key::root(), &next.to_string())?;
                    return Err(Damage::new(&node, Fault::NoRest(id)).into());
                }
                level => level?,
            };
            chain.push(next);
        }
        chain.reverse();
        Ok(chain)
    }

    /// Returns the levels whose content a query of a level returns, the coarsest first: the level, and
    /// coarser ones that complete it.
    ///
    /// # Errors
    ///
    /// Returns [`QueryError`] if a level does not exist or its metadata is invalid.
    pub fn completed_by(&self, level: LevelId) -> BoxFuture<'_, Result<Vec<LevelId>, QueryError>> {
        Box::pin(async move { self.joint_levels(&Query::new(), level).await })
    }

    /// Returns the levels that are read together with this one, the coarsest first.
    pub(crate) async fn joint_levels(
        &self,
        query: &Query,
        id: LevelId,
    ) -> Result<Vec<LevelId>, QueryError> {
        if query.own_level {
            return Ok(vec![id]);
        }
        if self.is_completed(id).await? {
            return self.chain(id).await;
        }
        let shape = query.shape.unwrap_or_else(|| shape_of(self.catalog.root));
        let alone = shape != Shape::Points || query.geometry.is_some();
        if alone || id == LevelId::FULL || !self.catalog.level(id).await?.metadata.is_additive() {
            return Ok(vec![id]);
        }
        let mut levels: Vec<LevelId> = self.level_ids();
        levels.retain(|other| *other > id);
        levels.push(id);
        Ok(levels)
    }

    /// Returns the levels that the root names and level 0, the coarsest first.
    pub(crate) fn level_ids(&self) -> Vec<LevelId> {
        let ids: BTreeSet<LevelId> = self
            .catalog
            .root
            .datasets
            .iter()
            .map(|dataset| dataset.level)
            .chain([LevelId::FULL])
            .collect();
        ids.into_iter().rev().collect()
    }
}

/// Checks that several levels that complete each other can serve a query.
fn check_union(query: &Query, root: &RootMetadata) -> Result<(), QueryError> {
    let shape = query.shape.unwrap_or_else(|| shape_of(root));
    let single = query.drill.is_some() || query.nearest.is_some() || query.geometry.is_some();
    if single || shape == Shape::Links && query.limit.is_some() {
        return Err(QueryError::Unsupported(
            "the level is additive, so a part of its content is on coarser levels: a search for the \
             nearest, a level jump, an additional geometry and a limit on links need one level; \
             query a region without them, or the level's own content",
        ));
    }
    Ok(())
}

/// Returns the chunks of a level that overlap chunks of another one, ascending; `None` if there are
/// too many. The scales are the extents of the chunks of both levels in a common unit. Coordinates with
/// another number of axes are returned unchanged, because they name no chunk of either level.
fn overlapping(
    chunks: &[ChunkCoord],
    from: &[NonZeroU32],
    to: &[NonZeroU32],
) -> Option<Vec<ChunkCoord>> {
    let mut found = BTreeSet::new();
    for chunk in chunks {
        let Some(spatial) = chunk.spatial(from.len()) else {
            found.insert(chunk.clone());
            continue;
        };
        let leading = chunk.coords().len().saturating_sub(spatial.len());
        let leading = chunk.coords().get(..leading).unwrap_or_default();
        let mut all = vec![leading.to_vec()];
        for (coord, (from, to)) in spatial.iter().zip(from.iter().zip(to)) {
            let (from, to) = (i128::from(from.get()), i128::from(to.get()));
            let start = i128::from(*coord).checked_mul(from)?;
            let first = start.checked_div_euclid(to)?;
            let end = start.checked_add(from)?.checked_sub(1)?;
            let last = end.checked_div_euclid(to)?;
            let count = usize::try_from(last.checked_sub(first)?.checked_add(1)?).ok()?;
            let more = all.len().checked_mul(count)?.checked_add(found.len())?;
            if more > MAX_CHUNKS {
                return None;
            }
            let wider = all.iter().flat_map(|before| {
                let coords = (first..=last).filter_map(|coord| i64::try_from(coord).ok());
                coords.map(|coord| before.iter().copied().chain([coord]).collect())
            });
            all = wider.collect();
        }
        found.extend(all.into_iter().map(ChunkCoord::new));
    }
    Some(found.into_iter().collect())
}

/// Returns the note that a stale level was skipped.
pub(crate) fn skipped_level_note(level: LevelId) -> String {
    format!("level {level} is outdated and was skipped")
}
