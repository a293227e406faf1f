//! The environment of an execution.

use zvf_catalog::{Catalog, Diagnostics};
use zvf_model::fetch::BoxFuture;

use super::operator::Operator;
use crate::{error::QueryError, resolve::query::LevelQuery};

/// An execution of a plan.
pub(crate) type Execution<'f> = BoxFuture<'f, Result<(), QueryError>>;

/// The query that an execution works on, and the session that its operators read through.
#[derive(Clone, Copy)]
pub(crate) struct ExecContext<'c> {
    pub(crate) query: &'c LevelQuery<'c>,
    pub(crate) catalog: Catalog<'c>,
    pub(crate) diagnostics: &'c Diagnostics,
}

impl<'c> ExecContext<'c> {
    /// Returns the context of a query, whose reads are attributed to no operator.
    pub(crate) fn new(query: &'c LevelQuery<'c>, diagnostics: &'c Diagnostics) -> Self {
        Self {
            query,
            catalog: query.catalog,
            diagnostics,
        }
    }

    /// Returns the context of an operator: reads through it are attributed to the operator.
    pub(crate) fn of<O: Operator>(mut self, _: &O) -> Self {
        self.catalog.fetch = self.catalog.fetch.for_operator(O::NAME);
        self
    }
}
