//! Collection of skipped data and notes.

use std::{collections::BTreeSet, sync::Mutex};

use zvf_model::{error_chain::error_chain, error_kind::ErrorKind, key::Key};

use crate::{
    error::{Damage, QueryError},
    result::Skipped,
    sync::lock,
};

/// Receiver of damage: strict queries fail, others record it.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    keep_going: bool,
    written: Mutex<Written>,
}

#[derive(Debug, Default)]
struct Written {
    /// Without duplicates: damage may be found repeatedly and in many cells.
    missing: BTreeSet<Skipped>,
    notes: BTreeSet<String>,
}

impl Diagnostics {
    pub(crate) fn new(keep_going: bool) -> Self {
        Self {
            keep_going,
            ..Self::default()
        }
    }

    /// Fails, or records the damage and continues.
    pub(crate) fn skip(&self, damage: Damage) -> Result<(), QueryError> {
        // Rows that a larger budget or another build would read are not damaged.
        let is_readable_elsewhere = matches!(
            damage.kind(),
            ErrorKind::OverBudget | ErrorKind::Unsupported
        );
        if is_readable_elsewhere || !self.keep_going {
            return Err(damage.into());
        }
        let reason = error_chain(&damage);
        self.write_missing(Skipped {
            key: damage.key,
            reason,
            is_absent: false,
        });
        Ok(())
    }

    /// Fails, or records requested data that is missing.
    pub(crate) fn absent(&self, key: &Key, error: QueryError) -> Result<(), QueryError> {
        if !self.keep_going {
            return Err(error);
        }
        self.write_missing(Skipped {
            key: key.clone(),
            reason: error.to_string(),
            is_absent: true,
        });
        Ok(())
    }

    fn write_missing(&self, part: Skipped) {
        lock(&self.written).missing.insert(part);
    }

    /// Records a defect that was worked around.
    pub(crate) fn note(&self, note: impl Into<String>) {
        lock(&self.written).notes.insert(note.into());
    }

    /// Adds the records of another collection.
    pub(crate) fn absorb(&self, other: &Self) {
        let other = core::mem::take(&mut *lock(&other.written));
        let mut written = lock(&self.written);
        written.missing.extend(other.missing);
        written.notes.extend(other.notes);
    }

    /// Returns whether nothing was recorded.
    pub(crate) fn is_empty(&self) -> bool {
        let written = lock(&self.written);
        written.missing.is_empty() && written.notes.is_empty()
    }

    /// Returns whether data was left out.
    pub(crate) fn is_incomplete(&self) -> bool {
        !lock(&self.written).missing.is_empty()
    }

    pub(crate) fn keeps_going(&self) -> bool {
        self.keep_going
    }

    /// Returns the records in the order of keys.
    pub(crate) fn finish(&self) -> (Vec<Skipped>, Vec<String>) {
        let Written { missing, notes } = core::mem::take(&mut *lock(&self.written));
        (missing.into_iter().collect(), notes.into_iter().collect())
    }
}
