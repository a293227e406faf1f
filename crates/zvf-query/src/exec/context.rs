//! The query that an execution works on, and the port of each operator.

use std::borrow::Cow;

use zvf_model::fetch::Port;

use crate::{catalog::level::Session, diagnostics::Diagnostics, resolve::query::LevelQuery};

/// The environment of one execution.
#[derive(Clone, Copy)]
pub(crate) struct ExecContext<'c> {
    pub(crate) query: &'c LevelQuery<'c>,
    /// A port for each operator, by its id, when requests are attributed to operators. Empty
    /// otherwise: all operators then read through the port of the query.
    pub(crate) ports: &'c [Port<'c>],
    pub(crate) diagnostics: &'c Diagnostics,
}

impl<'c> ExecContext<'c> {
    /// Returns a context whose operators read through the port of the query.
    pub(crate) fn new(query: &'c LevelQuery<'c>, diagnostics: &'c Diagnostics) -> Self {
        let ports = &[];
        Self {
            query,
            ports,
            diagnostics,
        }
    }

    /// Returns the query, reading through the port of an operator.
    pub(crate) fn scope(&self, operator: usize) -> Cow<'c, LevelQuery<'c>> {
        let Some(fetch) = self.ports.get(operator).copied() else {
            return Cow::Borrowed(self.query);
        };
        let mut query = self.query.clone();
        query.session = Session {
            fetch,
            ..query.session
        };
        Cow::Owned(query)
    }
}
