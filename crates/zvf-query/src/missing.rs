//! What is left out when a query keeps going.

use std::collections::BTreeSet;

use zvf_model::fetch::FetchProblem;

use crate::{
    answer::Missing,
    error::{Damage, Fault, QueryError},
};

/// Where damage goes: strict queries stop, others write it down.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    keep_going: bool,
    missing: Vec<Missing>,
    notes: BTreeSet<String>,
}

impl Ledger {
    pub(crate) fn new(keep_going: bool) -> Self {
        Self {
            keep_going,
            ..Self::default()
        }
    }

    /// Stops, or writes it down and goes on without it.
    pub(crate) fn missing(&mut self, damage: Damage) -> Result<(), QueryError> {
        let over_budget = matches!(
            &damage.fault,
            Fault::Fetch(error) if error.problem == FetchProblem::OverBudget
        );
        if over_budget || !self.keep_going {
            return Err(damage.into());
        }
        let missing = Missing {
            key: damage.key.clone(),
            reason: reasons(&damage),
        };
        if !self.missing.contains(&missing) {
            self.missing.push(missing);
        }
        Ok(())
    }

    /// Writes down a defect that was got around.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.insert(note.into());
    }

    pub(crate) fn keeps_going(&self) -> bool {
        self.keep_going
    }

    /// What was written down, in the order of keys.
    pub(crate) fn finish(&mut self) -> (Vec<Missing>, Vec<String>) {
        let mut missing = core::mem::take(&mut self.missing);
        missing.sort_by(|a, b| a.key.as_str().cmp(b.key.as_str()));
        let notes = core::mem::take(&mut self.notes);
        (missing, notes.into_iter().collect())
    }
}

/// An error and its causes in one line.
fn reasons(damage: &Damage) -> String {
    let mut text = damage.to_string();
    let mut next = core::error::Error::source(damage);
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
