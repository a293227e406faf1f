//! What is left out when a query keeps going.

use std::{collections::BTreeSet, sync::Mutex};

use zvf_model::{error_chain::error_chain, fetch::FetchProblem, key::Key};

use crate::{
    error::{Damage, Fault, QueryError},
    result::Skipped,
    sync::lock,
};

/// Where damage goes: strict queries stop, others write it down.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    keep_going: bool,
    written: Mutex<Written>,
}

#[derive(Debug, Default)]
struct Written {
    /// By key, then by reason: damage may be met many times, and in many places.
    missing: BTreeSet<(Key, String)>,
    notes: BTreeSet<String>,
}

impl Diagnostics {
    pub(crate) fn new(keep_going: bool) -> Self {
        Self {
            keep_going,
            ..Self::default()
        }
    }

    /// Stops, or writes it down and goes on without it.
    pub(crate) fn skip(&self, damage: Damage) -> Result<(), QueryError> {
        let over_budget = matches!(
            &damage.fault,
            Fault::Fetch(error) if error.problem == FetchProblem::OverBudget
        );
        if over_budget || !self.keep_going {
            return Err(damage.into());
        }
        let reason = error_chain(&damage);
        self.write_missing(damage.key, reason);
        Ok(())
    }

    /// The same for what was asked for and is not there.
    pub(crate) fn absent(&self, key: &Key, error: QueryError) -> Result<(), QueryError> {
        if !self.keep_going {
            return Err(error);
        }
        self.write_missing(key.clone(), error.to_string());
        Ok(())
    }

    fn write_missing(&self, key: Key, reason: String) {
        lock(&self.written).missing.insert((key, reason));
    }

    /// Writes down a defect that was got around.
    pub(crate) fn note(&self, note: impl Into<String>) {
        lock(&self.written).notes.insert(note.into());
    }

    /// Takes over what another wrote down.
    pub(crate) fn absorb(&self, other: &Self) {
        let other = core::mem::take(&mut *lock(&other.written));
        let mut written = lock(&self.written);
        written.missing.extend(other.missing);
        written.notes.extend(other.notes);
    }

    /// Whether nothing was written down.
    pub(crate) fn is_empty(&self) -> bool {
        let written = lock(&self.written);
        written.missing.is_empty() && written.notes.is_empty()
    }

    pub(crate) fn keeps_going(&self) -> bool {
        self.keep_going
    }

    /// What was written down, in the order of keys.
    pub(crate) fn finish(&self) -> (Vec<Skipped>, Vec<String>) {
        let Written { missing, notes } = core::mem::take(&mut *lock(&self.written));
        let missing = missing.into_iter();
        let missing = missing.map(|(key, reason)| Skipped { key, reason });
        (missing.collect(), notes.into_iter().collect())
    }
}
