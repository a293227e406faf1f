//! Running and counting queries.

use core::{future::poll_fn, ops::ControlFlow, task::Poll};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use zvf_catalog::{
    CatalogError, Damage, Diagnostics, Fault, Names, Selection, Skipped, advise_naming_attributes,
    child,
};
use zvf_model::{
    error_kind::ErrorKind,
    fetch::{BoxFuture, FetchProblem, MaybeSend},
    key::Key,
    layout::ArrayRole,
    level::LevelId,
    root::WindingOrder,
};

use super::{
    budget::VertexSampler,
    confirmation::{ConfirmationBuffer, lock},
};
use crate::{
    batch::merge::{CollectedResult, over_budget},
    error::QueryError,
    exec::context::ExecContext,
    geometry::Mode,
    predicate::Scope,
    query::{BatchOptions, Clip, LevelChoice, Query, Shape},
    resolve::{
        choice::{LevelPart, LevelParts, LevelPlan, LevelSample},
        query::{Batching, Emit, shape_of},
    },
    result::{LevelUse, QueryResult},
    session::Session,
};

/// The size of a selection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// The level; the finest if there are several.
    pub level: LevelId,
    /// The contribution of each level, as in [`QueryResult::levels`].
    pub levels: Vec<LevelUse>,
    /// Number of vertices, including those that clipping creates.
    pub vertices: u64,
    /// Number of paths; `None` for other geometry.
    pub parts: Option<u64>,
    /// Number of objects with a selected part; `None` if objects are not read.
    pub objects: Option<u64>,
    /// Number of links; `None` for points and paths.
    pub links: Option<u64>,
    /// Parts that could not be read.
    pub skipped: Vec<Skipped>,
    /// Known defects of the store that were worked around, and stale levels.
    pub notes: Vec<String>,
}

/// The parts of a result that are not in its batches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueryReport {
    /// The contribution of each level, as in [`QueryResult::levels`].
    pub levels: Vec<LevelUse>,
    /// Parts that could not be read.
    pub skipped: Vec<Skipped>,
    /// Known defects of the store that were worked around, and stale levels.
    pub notes: Vec<String>,
}

impl Session<'_> {
    /// Runs a query and returns its result.
    ///
    /// # Errors
    ///
    /// [`QueryError`], also if the result exceeds the memory budget of the store: use
    /// [`batches`](Self::batches) then.
    pub fn query<'f>(&'f self, query: &'f Query) -> BoxFuture<'f, Result<QueryResult, QueryError>> {
        Box::pin(async move {
            let budget = self.catalog.fetch.budget();
            let mut whole = CollectedResult::default();
            let mut take = |batch| whole.push(batch, budget);
            let outcome = self.run(query, Batching::Whole, &mut take).await;
            let outcome = self.confirmed(outcome).await?;
            let mut result = whole.finish()?.unwrap_or_default();
            result.level = finest(&outcome.levels).unwrap_or(result.level);
            result.levels = outcome.levels;
            result.skipped = outcome.skipped;
            result.notes = outcome.notes;
            Ok(result)
        })
    }

    /// Runs a query and passes its result to `each` in batches, so that a small part of it is in
    /// memory at a time. A break ends the query.
    ///
    /// The batches in order are the result: vertices first, then links. Row numbers count from the
    /// start of the result, see [`QueryResult::first_row`]. Paths and links in a region are one batch,
    /// and so is each level of a query whose budget may be exceeded. Objects and their attributes come
    /// with the last batch of vertices, and with each batch of paths. Each batch is of one level and has its columns.
    ///
    /// # Errors
    ///
    /// [`QueryError`]; batches passed before it are correct but incomplete.
    pub async fn batches(
        &self,
        query: &Query,
        mut each: impl FnMut(QueryResult) -> ControlFlow<()> + MaybeSend,
    ) -> Result<QueryReport, QueryError> {
        let report = Box::pin(self.run_confirmed(query, Batching::Budget, &mut each)).await;
        self.confirmed(report).await
    }

    /// Runs a query and passes each batch on once its reads are confirmed.
    async fn run_confirmed(
        &self,
        query: &Query,
        batching: Batching,
        each: &mut Emit<'_>,
    ) -> Result<QueryReport, QueryError> {
        let buffer = Mutex::new(ConfirmationBuffer::new(each));
        let mut emit = |batch| lock(&buffer).emit(batch, self.catalog.fetch.confirm_now().as_ref());
        let mut running = self.run(query, batching, &mut emit);
        loop {
            let step = poll_fn(|context| {
                let step = running.as_mut().poll(context);
                if step.is_ready() || lock(&buffer).has_pending() {
                    Poll::Ready(step)
                } else {
                    Poll::Pending
                }
            })
            .await;
            if lock(&buffer).has_pending() {
                self.catalog.fetch.confirm().await?;
                lock(&buffer).release();
            }
            if let Poll::Ready(report) = step {
                return report;
            }
        }
    }

    /// Returns `outcome` if everything read for it is of one state of the store.
    pub(super) async fn confirmed<T>(
        &self,
        outcome: Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        match self.catalog.fetch.confirm().await {
            Ok(()) => outcome,
            // Data of two states may look damaged.
            Err(error) if error.problem == FetchProblem::Changed => Err(error.into()),
            Err(error) => outcome.and_then(|_| Err(error.into())),
        }
    }

    /// Runs a query for a [`BatchStream`](crate::BatchStream), which cuts batches to `options`.
    /// Yields once after each batch, and passes batches as [`batches`](Self::batches) does.
    ///
    /// # Errors
    ///
    /// [`QueryError`]; batches passed before it are correct but incomplete.
    pub async fn batches_within(
        &self,
        query: &Query,
        options: BatchOptions,
        mut each: impl FnMut(QueryResult) -> ControlFlow<()> + MaybeSend,
    ) -> Result<QueryReport, QueryError> {
        let batching = Batching::Stream(options.bytes);
        let report = Box::pin(self.run_confirmed(query, batching, &mut each)).await;
        self.confirmed(report).await
    }

    /// Runs a query, in one batch if `batching` requests that and memory allows.
    fn run<'f>(
        &'f self,
        query: &'f Query,
        batching: Batching,
        each: &'f mut Emit<'_>,
    ) -> BoxFuture<'f, Result<QueryReport, QueryError>> {
        Box::pin(async move {
            let is_turned =
                query.counter_clockwise && self.catalog.root.winding() == WindingOrder::Clockwise;
            let mut turn = |mut batch: QueryResult| {
                if let Some(links) = batch.links.as_mut().filter(|_| is_turned) {
                    links.turn_faces();
                }
                each(batch)
            };
            let outcome = self.run_chosen(query, batching, &mut turn).await;
            match outcome {
                Err(QueryError::Catalog(CatalogError::Damaged(Damage {
                    fault: Fault::Fetch(error),
                    ..
                }))) if error.kind() != ErrorKind::Damaged => {
                    Err(CatalogError::Fetch(error).into())
                }
                Err(error) => Err(self.advised(query, error).await),
                outcome => outcome,
            }
        })
    }

    /// Checks that the attributes that a query selects by name exist, as far as the store can be
    /// listed: on the level of the query, or on any level if a budget chooses levels. Lists the
    /// attributes if the query names some.
    ///
    /// # Errors
    ///
    /// [`CatalogError::NoAttribute`] for a missing attribute, with the existing ones; [`QueryError`].
    pub async fn check_selection(&self, query: &Query) -> Result<(), QueryError> {
        let checked = self.check_names(query).await;
        self.confirmed(checked).await
    }

    async fn check_names(&self, query: &Query) -> Result<(), QueryError> {
        let Selection::Named(named) = &query.columns else {
            return Ok(());
        };
        if named.is_empty() || query.geometry.is_some() {
            return Ok(());
        }
        let levels = match query.level {
            // Choosing the levels requires counting vertices. The query checks the levels that it reads.
            LevelChoice::Budget(_) => self
                .catalog
                .root
                .datasets
                .iter()
                .map(|part| part.level)
                .collect(),
            _ => vec![self.chosen_level(query).await?],
        };
        let mut missing = Ok(());
        for level in levels {
            missing = match self.check_names_at(level, named).await {
                Err(error @ CatalogError::NoAttribute { .. }) => missing.and(Err(error)),
                checked => return Ok(checked?),
            };
        }
        Ok(missing?)
    }

    async fn check_names_at(
        &self,
        id: LevelId,
        named: &[(Option<Scope>, String)],
    ) -> Result<(), CatalogError> {
        let level = self.catalog.level(id).await?;
        for (scope, name) in named {
            let scopes = scope.map_or(Scope::ALL.to_vec(), |scope| vec![scope]);
            let mut present = Vec::new();
            let mut is_there = false;
            for scope in scopes {
                match self
                    .catalog
                    .own_attribute_names(&level, scope)
                    .await
                    .map_err(advise_naming_attributes)
                {
                    Ok(names) => {
                        is_there |= names.contains(name);
                        present.extend(names.iter().map(|name| format!("{}.{name}", scope.name())));
                    }
                    Err(CatalogError::Nameless(_)) => is_there = true,
                    Err(error) => return Err(error),
                }
            }
            if !is_there {
                return Err(CatalogError::NoAttribute {
                    scope: *scope,
                    name: name.clone(),
                    present,
                });
            }
        }
        Ok(())
    }

    /// Adds the existing attributes to the error of a missing one.
    async fn advised(&self, query: &Query, mut error: QueryError) -> QueryError {
        let QueryError::Catalog(CatalogError::NoAttribute { scope, present, .. }) = &mut error
        else {
            return error;
        };
        if let (Some(scope), true) = (*scope, present.is_empty())
            && let Ok(id) = self.chosen_level(query).await
            && let Ok(level) = self.catalog.level(id).await
            && let Ok(names) = self.catalog.own_attribute_names(&level, scope).await
        {
            present.extend(names.iter().map(|name| format!("{}.{name}", scope.name())));
        }
        error
    }

    /// Checks that each vertex of the result is a stored vertex of level 0.
    fn check_row_ids(&self, query: &Query, chosen: &LevelPlan) -> Result<(), QueryError> {
        let mut parts = chosen.alternatives.iter().flatten();
        let is_full = parts.all(|part| part.level == LevelId::FULL);
        if !is_full || query.drill.is_some() || query.geometry.is_some() {
            return Err(QueryError::Unsupported(
                "row ids exist for vertices of level 0 only; query level 0, without a level jump \
                 or a named geometry",
            ));
        }
        let shape = query.shape.unwrap_or_else(|| shape_of(self.catalog.root));
        let is_cut = query.region.is_some() && query.mode == Mode::Clip;
        if is_cut && query.clip == Clip::Split && shape != Shape::Points {
            return Err(QueryError::Unsupported(
                "clipping makes new vertices, which have no row ids; drop what crosses the border, \
                 or use another mode",
            ));
        }
        Ok(())
    }

    async fn run_chosen(
        &self,
        query: &Query,
        batching: Batching,
        each: &mut Emit<'_>,
    ) -> Result<QueryReport, QueryError> {
        let diagnostics = Diagnostics::new(query.keep_going);
        let chosen = self.choose(query, &diagnostics).await?;
        if query.row_ids {
            self.check_row_ids(query, &chosen)?;
        }
        let levels = match chosen.max {
            None => {
                let parts = chosen.alternatives.first().map_or(&[][..], Vec::as_slice);
                note_fraction(query, parts, &diagnostics);
                self.run_parts(query, batching, parts, &diagnostics, each)
                    .await?
            }
            Some(max) => {
                let (kept, levels) = self
                    .run_alternatives(query, &chosen.alternatives, max, &diagnostics)
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
            levels: if chosen.lists_levels {
                levels
            } else {
                Vec::new()
            },
            skipped,
            notes,
        })
    }

    /// Returns the attributes that every level with vertices has, for a query on levels that
    /// complete each other.
    async fn common_names(&self, query: &Query, parts: &[LevelPart]) -> Result<Names, QueryError> {
        let mut common: Option<Names> = None;
        for part in parts {
            let query = part.query(query);
            let plan = self.resolve(&query).await?;
            let vertices = self
                .catalog
                .chunked_array(&plan.level, &ArrayRole::Vertices);
            if vertices
                .await?
                .is_none_or(|vertices| vertices.count() == Some(0))
            {
                continue;
            }
            match &mut common {
                None => common = Some(plan.shown),
                Some(common) => {
                    for scope in Scope::ALL.into_iter().filter(|scope| scope.is_in_cells()) {
                        common.keep_common(scope, &plan.shown);
                    }
                }
            }
        }
        Ok(common.unwrap_or_default())
    }

    /// Runs a query on each part, one after the other.
    pub(super) async fn run_parts(
        &self,
        query: &Query,
        batching: Batching,
        parts: &[LevelPart],
        diagnostics: &Diagnostics,
        each: &mut Emit<'_>,
    ) -> Result<Vec<LevelUse>, QueryError> {
        let mut levels = Vec::with_capacity(parts.len());
        let (mut first_row, mut left) = (0_u64, query.limit);
        let mut known = BTreeSet::new();
        let is_union = self.is_union(parts).await?;
        let common = if is_union && query.columns == Selection::All {
            Some(self.common_names(query, parts).await?)
        } else {
            None
        };
        // Objects that no level has had so far.
        let mut absent: Option<BTreeSet<i64>> = None;
        let requested_groups = query.groups.as_ref();
        for (at, part) in parts.iter().enumerate() {
            let mut query = part.query(query);
            let sample = match part.sample {
                Some(LevelSample::Vertices(sample)) => Some(sample),
                _ => None,
            };
            let mut sampler = VertexSampler::new(sample, left);
            query.limit = left.filter(|_| sample.is_none());
            let before = first_row;
            let (mut groups, mut is_over) = (None, false);
            let mut taken = 0_u64;
            let mut plan = self.resolve(&query).await?;
            plan.batching = batching;
            plan.absent = is_union.then(Arc::default);
            if let Some(common) = &common {
                plan.show_common(common);
            }
            if let (Some(ids), 0) = (requested_groups, at) {
                let context = ExecContext::new(&plan, diagnostics);
                groups = Some(context.requested_groups(ids).await?);
            }
            let mut emit = |mut batch: QueryResult| {
                sampler.keep(&mut batch);
                batch.start_at(first_row);
                batch.groups = groups.take().unwrap_or_default();
                if let Some(links) = batch.links.as_mut().filter(|_| before > 0) {
                    let ends = links.ends.iter_mut();
                    ends.for_each(|end| *end = end.saturating_add(before));
                }
                if parts.len() > 1 {
                    batch.keep_new_objects(&mut known);
                }
                let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
                let rows = count(batch.positions.len());
                let paths = batch.parts.as_ref();
                let limited = paths.map_or(rows, |parts| count(parts.objects.len()));
                taken = taken.saturating_add(limited);
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
            left = left.map(|left| left.saturating_sub(taken));
            if let Some(here) = plan.absent.as_deref() {
                let here = core::mem::take(&mut *crate::sync::lock(here));
                absent = Some(match absent {
                    None => here,
                    Some(absent) => absent.intersection(&here).copied().collect(),
                });
            }
            if is_over || left == Some(0) {
                return Ok(levels);
            }
        }
        let level = parts.first().map_or(LevelId::FULL, |part| part.level);
        for id in absent.unwrap_or_default() {
            let index = child(&child(&Key::root(), &level.to_string())?, "object_index")?;
            diagnostics.absent(&index, QueryError::NoObject { id, level })?;
        }
        Ok(levels)
    }

    /// Runs a query on alternatives until one has at most `max` vertices. A limit does not make the
    /// result finer: a query with a limit runs twice, first without it.
    async fn run_alternatives(
        &self,
        query: &Query,
        alternatives: &[LevelParts],
        max: u64,
        diagnostics: &Diagnostics,
    ) -> Result<(Vec<QueryResult>, Vec<LevelUse>), QueryError> {
        let budget = self.catalog.fetch.budget();
        let is_limited = query.limit.is_some();
        let unlimited = query.clone().columns(Selection::none());
        let requested = if is_limited {
            &Query {
                limit: None,
                ..unlimited
            }
        } else {
            query
        };
        let mut over = None;
        for parts in alternatives {
            let own = Diagnostics::new(query.keep_going);
            let Some(parts) = self.fitted(query, parts, max).await? else {
                continue;
            };
            let (mut kept, mut vertices, mut bytes) = (Vec::new(), 0_u64, 0_u64);
            let mut keep = |batch: QueryResult| {
                let rows = u64::try_from(batch.positions.len()).unwrap_or(u64::MAX);
                vertices = vertices.saturating_add(rows);
                if is_limited || vertices > max {
                    // The error reports the number of all vertices.
                    kept.clear();
                    return ControlFlow::Continue(());
                }
                bytes = bytes.saturating_add(batch.size());
                kept.push(batch);
                if bytes > budget {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            };
            let mut levels = self
                .run_parts(requested, Batching::Budget, &parts, &own, &mut keep)
                .await?;
            if vertices <= max && is_limited {
                let mut keep = |batch: QueryResult| {
                    bytes = bytes.saturating_add(batch.size());
                    kept.push(batch);
                    if bytes > budget {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                };
                levels = self
                    .run_parts(query, Batching::Budget, &parts, &own, &mut keep)
                    .await?;
            }
            if bytes > budget {
                return Err(over_budget(bytes, budget));
            }
            if vertices <= max {
                diagnostics.absorb(&own);
                note_fraction(query, &parts, diagnostics);
                return Ok((kept, levels));
            }
            over = levels.first().map(|first| (first.level, vertices));
        }
        let (level, vertices) = over.unwrap_or_default();
        Err(QueryError::OverVertices {
            level,
            vertices,
            budget: max,
            outdated: self.stale().into_iter().collect(),
        })
    }

    /// Counts the vertices, paths, objects and links that a query selects. Reads only attributes that
    /// the predicate uses; [`check_selection`](Self::check_selection) checks the names of the others.
    ///
    /// # Errors
    ///
    /// [`QueryError`].
    pub fn count<'f>(&'f self, query: &'f Query) -> BoxFuture<'f, Result<Counts, QueryError>> {
        Box::pin(async move {
            let mut counts = Counts::default();
            let query = query.clone().columns(Selection::none());
            let mut objects = BTreeSet::new();
            let mut any_objects = false;
            let outcome = self
                .batches(&query, |batch| {
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
                })
                .await?;
            counts.objects = any_objects.then(|| u64::try_from(objects.len()).unwrap_or(u64::MAX));
            counts.level = finest(&outcome.levels).unwrap_or(counts.level);
            counts.levels = outcome.levels;
            counts.skipped = outcome.skipped;
            counts.notes = outcome.notes;
            Ok(counts)
        })
    }
}

/// Returns the finest level of a result.
fn finest(levels: &[LevelUse]) -> Option<LevelId> {
    levels.iter().map(|level| level.level).min()
}

/// Notes that a predicate selects among a part of the vertices, because a budget chose coarser levels or
/// samples.
fn note_fraction(query: &Query, parts: &[LevelPart], diagnostics: &Diagnostics) {
    let is_all = |part: &LevelPart| {
        part.level == LevelId::FULL && part.chunks.is_none() && part.sample.is_none()
    };
    let LevelChoice::Budget(budget) = query.level else {
        return;
    };
    if query.filter.is_none() || parts.iter().any(is_all) {
        return;
    }
    diagnostics.note(format!(
        "the predicate selects among a part of the vertices, which the budget of {} chose; query level 0 \
         for all that satisfy it",
        budget.vertices
    ));
}
