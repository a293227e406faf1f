//! Vertices of another level that vertices are linked to.

use core::ops::ControlFlow;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use zvf_catalog::{
    ChunkRequest, Damage, Fault, Level, LinkSet, LinkView, RequestedRows, RowRun, RowSelection,
    Schema,
};
use zvf_format::path::Delta;
use zvf_model::{grid::ChunkCoord, object_ids::Owner, row_id::RowId};

use super::{
    context::ExecContext,
    empty::Empty,
    limit::Limit,
    operator::{Details, LaterRead, Operator, OperatorTree},
    selection_plan::SelectionPlan,
};
use crate::{
    error::QueryError,
    query::{LevelChoice, Query, Shape},
    resolve::query::{Emit, LevelQuery},
    result::QueryResult,
    session::Session,
};

/// Rows of vertices, by chunk.
type RowsByChunk = BTreeMap<ChunkCoord, BTreeSet<u64>>;

/// An end of a link: the number of its chunk, and its row.
type LinkEnd = (u32, u64);

/// Splits the ends of a link into those to start from and those to reach.
type EndSplit = fn(&[LinkEnd]) -> Option<(&[LinkEnd], &[LinkEnd])>;

fn source_first(ends: &[LinkEnd]) -> Option<(&[LinkEnd], &[LinkEnd])> {
    ends.split_at_checked(1)
}

fn source_last(ends: &[LinkEnd]) -> Option<(&[LinkEnd], &[LinkEnd])> {
    let (targets, sources) = ends.split_at_checked(1)?;
    Some((sources, targets))
}

/// The operator that follows links to another level, by the number of levels.
#[derive(Debug)]
pub(crate) struct LevelJump(pub(crate) i32);

impl Operator for LevelJump {
    const NAME: &'static str = "LevelJump";

    fn details(&self, _: &LevelQuery<'_>, details: &mut Details) {
        details.add("levels", self.0);
    }

    fn later_reads(&self, _: &LevelQuery<'_>, later: &mut Vec<LaterRead>) {
        later.push(LaterRead::always("links between the levels"));
        later.push(LaterRead::always("the vertices at their other ends"));
    }
}

/// A jump to the vertices of another level that vertices are linked to.
#[derive(Debug)]
pub(crate) struct LevelJumpPlan {
    pub(crate) jump: LevelJump,
    pub(crate) input: SelectionPlan,
}

impl LevelJumpPlan {
    /// Adds the operators of the plan to `tree`.
    pub(crate) fn describe(&self, tree: &mut OperatorTree<'_>) {
        tree.push(&self.jump);
        self.input.describe(tree);
    }

    /// Returns the rows of the vertices of the input.
    async fn start_rows(&self, context: ExecContext<'_>) -> Result<RowsByChunk, QueryError> {
        let query = context.query;
        // The limit applies to the vertices reached, not to those they are reached from.
        let start = Query {
            limit: None,
            ..query.query.clone()
        };
        let start = Session::new(query.catalog).resolve(&start).await?;
        let mut ids = Vec::new();
        let mut collect = |batch: QueryResult| {
            ids.extend(batch.row_ids.unwrap_or_default());
            ControlFlow::Continue(())
        };
        let inner = ExecContext::new(&start, context.diagnostics);
        self.input.execute(inner, &mut collect).await?;
        let chunks = self
            .input
            .schema()
            .map(Schema::all_chunks)
            .unwrap_or_default();
        let mut rows = RowsByChunk::new();
        for id in ids.into_iter().map(RowId::from) {
            let rank = usize::try_from(id.chunk()).unwrap_or(usize::MAX);
            if let Some(chunk) = chunks.get(rank) {
                rows.entry(chunk.clone()).or_default().insert(id.row());
            }
        }
        Ok(rows)
    }

    /// Emits the vertices that the vertices of the input are linked to, by chunk and row.
    ///
    /// Follows the links stored at the level of the query, or those of the target in reverse where
    /// only these are stored, and otherwise goes level by level.
    pub(crate) async fn execute(
        &self,
        context: ExecContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        let mut rows = self.start_rows(context).await?;
        let (query, levels) = (context.query, self.jump.0);
        let scope = context.of(&self.jump);
        let (catalog, session) = (scope.catalog, Session::new(scope.catalog));
        let from = query.level.id();
        let no_level = || QueryError::NoFinerLevel {
            level: from,
            levels: levels.unsigned_abs(),
        };
        let target = from.offset(levels).ok_or_else(no_level)?;
        let target = catalog.level(target).await?;
        // Edits of a level renumber its rows, but not the links of coarser levels to them.
        let (finer, coarser) = (from.min(target.id()), from.max(target.id()));
        let stale = session.stale();
        if let Some(level) = stale
            .iter()
            .find(|level| finer < **level && **level <= coarser)
        {
            return Err(QueryError::OutdatedLinks(*level));
        }
        let direct = scope
            .linked_rows(&query.level, &target, &rows, levels)
            .await?;
        let reached = match direct {
            Some(reached) => reached,
            None => {
                let step = levels.signum();
                let mut level = Arc::clone(&query.level);
                for _ in 0..levels.unsigned_abs() {
                    let next = level.id().offset(step).ok_or_else(no_level)?;
                    let next = catalog.level(next).await?;
                    let reached = scope.linked_rows(&level, &next, &rows, step).await?;
                    rows = reached.ok_or(QueryError::Unsupported(
                        "the store has no links between these levels",
                    ))?;
                    level = next;
                }
                rows
            }
        };
        let at_target = Query {
            level: LevelChoice::Number(target.id()),
            columns: query.query.columns.clone(),
            owners: query.query.owners,
            limit: query.query.limit,
            shape: Some(Shape::Points),
            ..Query::default()
        };
        let at_target = session.resolve(&at_target).await?;
        let at_target = ExecContext::new(&at_target, context.diagnostics);
        at_target.gather_rows(&reached, emit).await
    }
}

impl ExecContext<'_> {
    /// Returns the rows of `target` that rows of `from` are linked to; `None` when no links are
    /// stored in either direction.
    async fn linked_rows(
        self,
        from: &Level,
        target: &Level,
        rows: &RowsByChunk,
        levels: i32,
    ) -> Result<Option<RowsByChunk>, QueryError> {
        if levels == 0 {
            return Ok(Some(rows.clone()));
        }
        let onward = (from, target, Delta::new(levels));
        let back = (target, from, Delta::new(levels.saturating_neg()));
        let splits: [EndSplit; 2] = [source_first, source_last];
        let (catalog, diagnostics) = (self.catalog, self.diagnostics);
        let mut is_stored = false;
        for ((owner, other, delta), split) in [onward, back].into_iter().zip(splits) {
            if !catalog.link_deltas(owner).await?.contains(&delta) {
                continue;
            }
            is_stored = true;
            let view = LinkView::Logical;
            let set = catalog.links(owner, Some(other), delta, &[], view, diagnostics);
            if let Some(set) = set.await? {
                return self.follow(owner, &set, rows, split).await.map(Some);
            }
        }
        // A family without arrays links nothing.
        Ok(is_stored.then(RowsByChunk::new))
    }

    /// Returns the ends of links that start at `rows`.
    async fn follow(
        self,
        owner: &Level,
        set: &LinkSet,
        rows: &RowsByChunk,
        split: EndSplit,
    ) -> Result<RowsByChunk, QueryError> {
        let cells: Vec<usize> = (0..set.cells.len())
            .filter(|at| {
                let chunks = set.cells.get(*at).and_then(|cell| cell.chunks.as_ref());
                chunks.is_none_or(|chunks| chunks.iter().any(|c| rows.contains_key(c)))
            })
            .collect();
        let mut reached = RowsByChunk::new();
        for records in self
            .catalog
            .link_cells(owner, set, &cells, self.diagnostics)
            .await?
        {
            for link in records.ends.chunks(records.width.max(1)) {
                let Some((starts, targets)) = split(link) else {
                    continue;
                };
                let is_start = |end: &LinkEnd| {
                    let chunk = records.chunk_of(*end);
                    let rows = chunk.and_then(|chunk| rows.get(chunk));
                    rows.is_some_and(|rows| rows.contains(&end.1))
                };
                if !starts.iter().any(is_start) {
                    continue;
                }
                for end in targets {
                    if let Some(chunk) = records.chunk_of(*end) {
                        reached.entry(chunk.clone()).or_default().insert(end.1);
                    }
                }
            }
        }
        Ok(reached)
    }

    /// Emits the vertices in these rows of chunks.
    async fn gather_rows(self, rows: &RowsByChunk, emit: &mut Emit<'_>) -> Result<(), QueryError> {
        let (query, diagnostics) = (self.query, self.diagnostics);
        let index = self.catalog.object_index(&query.level).await?;
        let shows_objects = query.shows_objects() && index.is_some();
        let with_fragments = shows_objects || !query.read.fragment.is_empty();
        let Some(schema) = query.schema(with_fragments).await? else {
            return Empty::without_links().execute(self, emit).await;
        };
        let objects = if shows_objects {
            self.all_objects().await?
        } else {
            None
        };
        let mut requests = Vec::with_capacity(rows.len());
        for (chunk, rows) in rows {
            if !schema.vertices.has(chunk) {
                let fault = Fault::NoChunk(chunk.clone());
                diagnostics.skip(Damage::new(&schema.vertices.node, fault))?;
                continue;
            }
            let request = ChunkRequest {
                chunk: chunk.clone(),
                fragments: with_fragments,
                rows: RequestedRows::Rows(rows.iter().copied().collect()),
            };
            requests.push((rows.len(), request));
        }
        let mut limit = Limit::new(query.query.limit);
        let mut vertices = query.vertices(&schema, shows_objects);
        let mut requests = requests.into_iter();
        // Reads as many chunks at once as the limit needs.
        while let Some((rows, request)) = requests.next().filter(|_| !limit.is_reached()) {
            let (mut wanted, mut part) = (rows, vec![request]);
            while wanted < limit.left()
                && let Some((rows, request)) = requests.next()
            {
                wanted = wanted.saturating_add(rows);
                part.push(request);
            }
            let chunks = self.catalog.chunks(&schema, part, diagnostics).await?;
            for chunk in chunks.into_iter().flatten() {
                let owners = self.owners_of(objects.as_ref(), &chunk)?;
                // Each row once, even if several fragments name it.
                let mut rows: Vec<RowRun> = chunk.runs().iter().collect();
                rows.sort_by_key(|run| run.row);
                let object = |fragment| owners.object(fragment, objects.as_deref());
                let same_row = rows.chunk_by(|a, b| a.row == b.row);
                let ids: Vec<i64> = same_row
                    .map(|runs| {
                        let owners = runs.iter().map(|run| object(run.fragment));
                        owners.fold(Owner::None, Owner::and).number()
                    })
                    .collect();
                rows.dedup_by_key(|run| run.row);
                let mut selected: RowSelection = rows.into_iter().collect();
                limit.truncate(&mut selected);
                vertices.push(&schema, &chunk, &selected, object, diagnostics)?;
                if let Some(given) = &mut vertices.object_ids {
                    let first = given.len().saturating_sub(selected.len());
                    let new = given.get_mut(first..).unwrap_or_default();
                    new.iter_mut().zip(ids).for_each(|(given, id)| *given = id);
                }
            }
        }
        let mut result = query.empty_result();
        vertices.finish(&mut result);
        let ids = result.objects_of_rows().collect();
        self.add_objects(&mut result, objects.as_ref(), &ids)
            .await?;
        let _ = emit(result);
        Ok(())
    }
}
