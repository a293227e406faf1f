//! Asking a store.

use core::ops::ControlFlow;
use std::collections::BTreeSet;

use zvf_model::{fetch::Fetch, level::LevelId};

use crate::{
    answer::{Answer, Group, Missing},
    error::QueryError,
    level::Session,
    missing::Ledger,
    plan::{Emit, Plan},
    query::{Query, Shape},
};

/// How much a query selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// The level.
    pub level: LevelId,
    /// Vertices, new ones included.
    pub vertices: u64,
    /// Paths; `None` for other geometry.
    pub parts: Option<u64>,
    /// Objects that have some of it; `None` when nothing is known about objects.
    pub objects: Option<u64>,
    /// Links; `None` for points and paths.
    pub links: Option<u64>,
    /// What could not be read.
    pub missing: Vec<Missing>,
    /// Known defects of the store that were got around.
    pub notes: Vec<String>,
}

/// What batches have left unsaid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// What could not be read.
    pub missing: Vec<Missing>,
    /// Known defects of the store that were got around.
    pub notes: Vec<String>,
}

impl<F: Fetch> Session<'_, F> {
    /// All that a query selects, in memory at once.
    ///
    /// # Errors
    ///
    /// [`QueryError`], also when the answer takes more memory than the store's
    /// budget: then ask for [`batches`](Self::batches).
    pub async fn query(&self, query: &Query) -> Result<Answer, QueryError> {
        let budget = self.fetch.budget();
        let (mut whole, mut over) = (None::<Answer>, None);
        let outcome = self.batches(query, |batch| {
            match &mut whole {
                None => whole = Some(batch),
                Some(whole) => whole.append(batch),
            }
            let bytes = whole.as_ref().map_or(0, Answer::size);
            if bytes > budget {
                over = Some(bytes);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        let outcome = outcome.await?;
        if let Some(bytes) = over {
            let what = "what is selected would";
            return Err(QueryError::OverBudget {
                what,
                bytes,
                budget,
            });
        }
        let mut answer = whole.unwrap_or_default();
        answer.missing = outcome.missing;
        answer.notes = outcome.notes;
        Ok(answer)
    }

    /// Gives what a query selects piece by piece, so that little of it is in
    /// memory at a time; a break ends the query.
    ///
    /// Pieces in order are the answer: vertices first, then links. Their
    /// numbers of rows count from the start of the answer, see
    /// [`Answer::first_row`]. With a region, what paths and links select is one
    /// piece. Objects and their attributes come with the last piece that has
    /// some of them.
    ///
    /// # Errors
    ///
    /// [`QueryError`]; pieces given before it are right, but not all.
    pub async fn batches(
        &self,
        query: &Query,
        mut each: impl FnMut(Answer) -> ControlFlow<()> + Send,
    ) -> Result<Outcome, QueryError> {
        let outcome = self.ask(query, &mut each).await;
        match outcome {
            Err(error) => Err(self.advised(query, error).await),
            outcome => outcome,
        }
    }

    /// The error with what would have been there.
    async fn advised(&self, query: &Query, mut error: QueryError) -> QueryError {
        let QueryError::NoAttribute { scope, there, .. } = &mut error else {
            return error;
        };
        if let (Some(scope), true) = (*scope, there.is_empty())
            && let Ok(id) = self.chosen_level(&query.level).await
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
        each: &mut (impl FnMut(Answer) -> ControlFlow<()> + Send),
    ) -> Result<Outcome, QueryError> {
        let ledger = Ledger::new(query.keep_going);
        let plan = self.plan(query).await?;
        let mut groups = match &query.groups {
            Some(ids) => plan.asked_groups(ids, &ledger).await?,
            None => Vec::new(),
        };
        let mut first_row = 0_u64;
        let mut emit = |mut batch: Answer| {
            batch.first_row = first_row;
            batch.groups = core::mem::take(&mut groups);
            if let Some(parts) = &mut batch.parts {
                parts
                    .offsets
                    .iter_mut()
                    .for_each(|at| *at = at.saturating_add(first_row));
            }
            let rows = u64::try_from(batch.positions.len()).unwrap_or(u64::MAX);
            first_row = first_row.saturating_add(rows);
            each(batch)
        };
        // Plans are large; who asks should not have to carry them.
        Box::pin(plan.run(&ledger, &mut emit)).await?;
        let (missing, notes) = ledger.finish();
        Ok(Outcome { missing, notes })
    }

    /// How much a query selects. Reads what selecting takes, and no attribute
    /// that only an answer would show.
    ///
    /// # Errors
    ///
    /// [`QueryError`].
    pub async fn count(&self, query: &Query) -> Result<Counts, QueryError> {
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
        counts.missing = outcome.missing;
        counts.notes = outcome.notes;
        Ok(counts)
    }
}

impl<F: Fetch> Plan<'_, F> {
    async fn run(&self, ledger: &Ledger, emit: &mut Emit<'_>) -> Result<(), QueryError> {
        if let Some(name) = &self.query.geometry {
            return self.further_geometry(name, ledger, emit).await;
        }
        if let Some(levels) = self.query.drill {
            return self.drill(levels, ledger, emit).await;
        }
        if let Some(nearest) = &self.query.nearest {
            return self.nearest(nearest, ledger, emit).await;
        }
        self.select(ledger, emit).await
    }

    /// What region, objects and filter select.
    pub(crate) async fn select(
        &self,
        ledger: &Ledger,
        emit: &mut Emit<'_>,
    ) -> Result<(), QueryError> {
        match self.shape {
            Shape::Links => self.linked(ledger, emit).await,
            Shape::Paths => self.paths(ledger, emit).await,
            Shape::Points if self.selects_objects() => self.paths(ledger, emit).await,
            Shape::Points => self.points(ledger, emit).await,
        }
    }

    /// The groups of these numbers.
    pub(crate) async fn asked_groups(
        &self,
        ids: &[u64],
        ledger: &Ledger,
    ) -> Result<Vec<Group>, QueryError> {
        let groups = self.session.groups(&self.level, ledger).await?;
        let mut asked = Vec::with_capacity(ids.len());
        for id in ids {
            let budget = self.session.fetch.budget();
            let group = groups.as_ref().map(|groups| groups.group(*id, budget));
            match group.transpose()?.flatten() {
                Some(group) => asked.push(group),
                None => {
                    let (id, level) = (*id, self.level.id());
                    let node = Session::<F>::node_of(&self.level)?;
                    ledger.absent(&node, QueryError::NoGroup { id, level })?;
                }
            }
        }
        Ok(asked)
    }
}
