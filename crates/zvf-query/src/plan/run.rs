//! Asking a store.

use core::ops::ControlFlow;
use std::collections::BTreeSet;

use futures_util::future::BoxFuture;
use zvf_model::level::LevelId;

use crate::{
    batch::merge::{CollectedResult, over_budget},
    catalog::level::Session,
    diagnostics::Diagnostics,
    error::QueryError,
    exec::context::ExecContext,
    query::Query,
    resolve::choice::{LevelPart, LevelParts},
    resolve::query::Emit,
    result::{LevelUse, QueryResult, Skipped},
};

/// How much a query selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// The level; the finest where there are several.
    pub level: LevelId,
    /// What each level gives, as in [`QueryResult::levels`].
    pub levels: Vec<LevelUse>,
    /// Vertices, new ones included.
    pub vertices: u64,
    /// Paths; `None` for other geometry.
    pub parts: Option<u64>,
    /// Objects that have some of it; `None` when nothing is known about objects.
    pub objects: Option<u64>,
    /// Links; `None` for points and paths.
    pub links: Option<u64>,
    /// What could not be read.
    pub skipped: Vec<Skipped>,
    /// Known defects of the store that were got around, and levels that are behind.
    pub notes: Vec<String>,
}

/// What batches have left unsaid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueryReport {
    /// What each level gave, as in [`QueryResult::levels`].
    pub levels: Vec<LevelUse>,
    /// What could not be read.
    pub skipped: Vec<Skipped>,
    /// Known defects of the store that were got around, and levels that are behind.
    pub notes: Vec<String>,
}

impl Session<'_> {
    /// All that a query selects, in memory at once.
    ///
    /// # Errors
    ///
    /// [`QueryError`], also when the answer takes more memory than the store's
    /// budget: then ask for [`batches`](Self::batches).
    pub fn query<'f>(&'f self, query: &'f Query) -> BoxFuture<'f, Result<QueryResult, QueryError>> {
        Box::pin(async move {
            let budget = self.fetch.budget();
            let mut whole = CollectedResult::default();
            let mut take = |batch| whole.push(batch, budget);
            let outcome = self.give(query, true, &mut take).await?;
            let mut answer = whole.finish()?.unwrap_or_default();
            answer.level = finest(&outcome.levels).unwrap_or(answer.level);
            answer.levels = outcome.levels;
            answer.skipped = outcome.skipped;
            answer.notes = outcome.notes;
            Ok(answer)
        })
    }

    /// Gives what a query selects piece by piece, so that little of it is in
    /// memory at a time; a break ends the query.
    ///
    /// Pieces in order are the answer: vertices first, then links. Their
    /// numbers of rows count from the start of the answer, see
    /// [`QueryResult::first_row`]. With a region, what paths and links select is one
    /// piece, and so is what each level gives of a budget that may not do. Objects and
    /// their attributes come with the last piece that has some of them. A piece is of
    /// one level, and has its columns.
    ///
    /// # Errors
    ///
    /// [`QueryError`]; pieces given before it are right, but not all.
    pub async fn batches(
        &self,
        query: &Query,
        mut each: impl FnMut(QueryResult) -> ControlFlow<()> + Send,
    ) -> Result<QueryReport, QueryError> {
        self.give(query, false, &mut each).await
    }

    /// What a query selects, in one piece where nothing else is against it.
    fn give<'f>(
        &'f self,
        query: &'f Query,
        in_one: bool,
        each: &'f mut Emit<'_>,
    ) -> BoxFuture<'f, Result<QueryReport, QueryError>> {
        Box::pin(async move {
            let outcome = self.ask(query, in_one, each).await;
            match outcome {
                Err(error) => Err(self.advised(query, error).await),
                outcome => outcome,
            }
        })
    }

    /// The error with what would have been there.
    async fn advised(&self, query: &Query, mut error: QueryError) -> QueryError {
        let QueryError::NoAttribute { scope, there, .. } = &mut error else {
            return error;
        };
        if let (Some(scope), true) = (*scope, there.is_empty())
            && let Ok(id) = self.chosen_level(query).await
            && let Ok(level) = self.level(id).await
            && let Ok(names) = self.attribute_names(&level, scope).await
        {
            there.extend(names.iter().map(|name| format!("{}.{name}", scope.name())));
        }
        error
    }

    async fn ask(
        &self,
        query: &Query,
        in_one: bool,
        each: &mut Emit<'_>,
    ) -> Result<QueryReport, QueryError> {
        let diagnostics = Diagnostics::new(query.keep_going);
        let chosen = self.choose(query, &diagnostics).await?;
        let levels = match chosen.most {
            None => {
                let parts = chosen.alternatives.first().map_or(&[][..], Vec::as_slice);
                self.draw(query, in_one, parts, &diagnostics, each).await?
            }
            Some(most) => {
                let (kept, levels) = self
                    .try_each(query, &chosen.alternatives, most, &diagnostics)
                    .await?;
                for batch in kept {
                    if each(batch).is_break() {
                        break;
                    }
                }
                levels
            }
        };
        let (skipped, notes) = diagnostics.finish();
        Ok(QueryReport {
            levels: if chosen.is_told { levels } else { Vec::new() },
            skipped,
            notes,
        })
    }

    /// Gives what is asked for of each level, one after the other.
    async fn draw(
        &self,
        query: &Query,
        in_one: bool,
        parts: &[LevelPart],
        diagnostics: &Diagnostics,
        each: &mut Emit<'_>,
    ) -> Result<Vec<LevelUse>, QueryError> {
        let mut levels = Vec::with_capacity(parts.len());
        let (mut first_row, mut left) = (0_u64, query.limit);
        let mut known = BTreeSet::new();
        for (at, part) in parts.iter().enumerate() {
            let mut query = part.query(query);
            query.limit = left;
            let before = first_row;
            let (mut groups, mut is_over) = (None, false);
            let mut plan = self.resolve(&query).await?;
            plan.in_one = in_one;
            if let (Some(ids), 0) = (&query.groups, at) {
                groups = Some(plan.asked_groups(ids, diagnostics).await?);
            }
            let mut emit = |mut batch: QueryResult| {
                batch.first_row = first_row;
                batch.groups = groups.take().unwrap_or_default();
                if let Some(parts) = &mut batch.parts {
                    parts
                        .offsets
                        .iter_mut()
                        .for_each(|at| *at = at.saturating_add(first_row));
                }
                if parts.len() > 1 {
                    batch.keep_new_objects(&mut known);
                }
                let rows = u64::try_from(batch.positions.len()).unwrap_or(u64::MAX);
                first_row = first_row.saturating_add(rows);
                let flow = each(batch);
                is_over = flow.is_break();
                flow
            };
            let operators = Box::pin(plan.physical_plan(diagnostics)).await?;
            let context = ExecContext::new(&plan, diagnostics);
            operators.execute(context, &mut emit).await?;
            let vertices = first_row.saturating_sub(before);
            levels.push(LevelUse {
                level: part.level,
                vertices,
                chunks: part.counted.clone(),
            });
            left = left.map(|left| left.saturating_sub(vertices));
            if is_over || left == Some(0) {
                break;
            }
        }
        Ok(levels)
    }

    /// The first drawing that has no more vertices than may be given. A limit does not
    /// make it finer: with one, what is selected is read twice, first without.
    async fn try_each(
        &self,
        query: &Query,
        alternatives: &[LevelParts],
        most: u64,
        diagnostics: &Diagnostics,
    ) -> Result<(Vec<QueryResult>, Vec<LevelUse>), QueryError> {
        let budget = self.fetch.budget();
        let is_limited = query.limit.is_some();
        let unlimited = query.clone().columns(crate::query::Selection::none());
        let asked = match is_limited {
            true => &Query {
                limit: None,
                ..unlimited
            },
            false => query,
        };
        let mut over = None;
        for parts in alternatives {
            let own = Diagnostics::new(query.keep_going);
            let (mut kept, mut vertices, mut bytes) = (Vec::new(), 0_u64, 0_u64);
            let mut keep = |batch: QueryResult| {
                let rows = u64::try_from(batch.positions.len()).unwrap_or(u64::MAX);
                vertices = vertices.saturating_add(rows);
                if is_limited || vertices > most {
                    // How many there are in all is still worth knowing.
                    kept.clear();
                    return ControlFlow::Continue(());
                }
                bytes = bytes.saturating_add(batch.size());
                kept.push(batch);
                match bytes > budget {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            };
            let mut levels = self.draw(asked, false, parts, &own, &mut keep).await?;
            if vertices <= most && is_limited {
                let mut keep = |batch: QueryResult| {
                    bytes = bytes.saturating_add(batch.size());
                    kept.push(batch);
                    match bytes > budget {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    }
                };
                levels = self.draw(query, false, parts, &own, &mut keep).await?;
            }
            if bytes > budget {
                return Err(over_budget(bytes, budget));
            }
            if vertices <= most {
                diagnostics.absorb(&own);
                return Ok((kept, levels));
            }
            over = levels.first().map(|first| (first.level, vertices));
        }
        let (level, vertices) = over.unwrap_or_default();
        Err(QueryError::OverVertices {
            level,
            vertices,
            budget: most,
        })
    }

    /// How much a query selects. Reads what selecting takes, and no attribute
    /// that only an answer would show.
    ///
    /// # Errors
    ///
    /// [`QueryError`].
    pub fn count<'f>(&'f self, query: &'f Query) -> BoxFuture<'f, Result<Counts, QueryError>> {
        Box::pin(async move {
            let mut counts = Counts::default();
            let query = query.clone().columns(crate::query::Selection::none());
            let mut objects = BTreeSet::new();
            let mut any_objects = false;
            let outcome = self.batches(&query, |batch| {
                counts.level = batch.level;
                let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
                let add = |sum: &mut u64, n: usize| *sum = sum.saturating_add(count(n));
                add(&mut counts.vertices, batch.positions.len());
                if let Some(parts) = &batch.parts {
                    add(counts.parts.get_or_insert(0), parts.objects.len());
                }
                if let Some(links) = &batch.links {
                    add(counts.links.get_or_insert(0), links.len());
                }
                any_objects |= batch.object_ids.is_some() || batch.parts.is_some();
                objects.extend(batch.objects);
                ControlFlow::Continue(())
            });
            let outcome = outcome.await?;
            counts.objects = any_objects.then(|| u64::try_from(objects.len()).unwrap_or(u64::MAX));
            counts.level = finest(&outcome.levels).unwrap_or(counts.level);
            counts.levels = outcome.levels;
            counts.skipped = outcome.skipped;
            counts.notes = outcome.notes;
            Ok(counts)
        })
    }
}

/// The finest of the levels that gave something to an answer.
fn finest(levels: &[LevelUse]) -> Option<LevelId> {
    levels.iter().map(|level| level.level).min()
}
