//! Operators: the steps of a plan, as `EXPLAIN` shows them.

use core::fmt::{self, Write};

use crate::resolve::query::LevelQuery;

/// A step of a plan.
///
/// Its file holds the code that runs it. A plan has at most one operator of each name.
pub(crate) trait Operator {
    /// The name, which reads are attributed to.
    const NAME: &'static str;

    /// Adds the parameters of the operator.
    fn details(&self, query: &LevelQuery<'_>, details: &mut Details) {
        let _ = (query, details);
    }

    /// Adds the round trips of the operator that depend on the results of earlier ones.
    fn later_reads(&self, query: &LevelQuery<'_>, later: &mut Vec<LaterRead>) {
        let _ = (query, later);
    }
}

/// A round trip that depends on the results of earlier ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaterRead {
    pub(crate) what: &'static str,
    /// `true` if the round trip is needed even when the first one reads whole cells.
    pub(crate) is_always: bool,
}

impl LaterRead {
    /// Creates a round trip that is always needed.
    pub(crate) const fn always(what: &'static str) -> Self {
        let is_always = true;
        Self { what, is_always }
    }
}

/// An operator of a plan in words.
pub(crate) struct OperatorText {
    pub(crate) name: &'static str,
    /// Distance from the root of the plan.
    pub(crate) depth: usize,
    /// Its parameters, as `key=value, key=value`.
    pub(crate) details: String,
    pub(crate) later: Vec<LaterRead>,
}

/// The operators of a plan in words, each before its inputs.
pub(crate) struct OperatorTree<'t> {
    pub(crate) operators: Vec<OperatorText>,
    query: &'t LevelQuery<'t>,
    depth: usize,
    is_repeated: bool,
}

impl<'t> OperatorTree<'t> {
    pub(crate) fn new(query: &'t LevelQuery<'t>) -> Self {
        Self {
            operators: Vec::new(),
            query,
            depth: 0,
            is_repeated: false,
        }
    }

    /// Adds an operator, if the plan has it. The next one is its input.
    pub(crate) fn push<'o, O: Operator + 'o>(&mut self, operator: impl Into<Option<&'o O>>) {
        let Some(operator) = operator.into() else {
            return;
        };
        let mut details = Details::default();
        operator.details(self.query, &mut details);
        let mut later = Vec::new();
        if !self.is_repeated {
            operator.later_reads(self.query, &mut later);
        }
        self.operators.push(OperatorText {
            name: O::NAME,
            depth: self.depth,
            details: details.0,
            later,
        });
        self.depth = self.depth.saturating_add(1);
    }

    /// Adds two inputs of the last operator.
    pub(crate) fn inputs(&mut self, first: impl FnOnce(&mut Self), second: impl FnOnce(&mut Self)) {
        let depth = self.depth;
        first(self);
        self.depth = depth;
        second(self);
    }

    /// Leaves out later round trips of the next operators: the last one runs them repeatedly.
    pub(crate) fn repeat_inputs(&mut self) {
        self.is_repeated = true;
    }
}

/// Parameters as text.
#[derive(Default)]
pub(crate) struct Details(String);

impl Details {
    pub(crate) fn add(&mut self, key: &str, value: impl fmt::Display) {
        let comma = if self.0.is_empty() { "" } else { ", " };
        // Writing to a string does not fail.
        let _ = write!(self.0, "{comma}{key}={value}");
    }

    pub(crate) fn list(&mut self, key: &str, values: &[String]) {
        self.add(key, format_args!("[{}]", values.join(", ")));
    }
}
