//! Collection of skipped data and notes.

use core::fmt::Display;
use std::{collections::BTreeSet, sync::Mutex};

use zvf_model::{error_chain::error_chain, error_kind::ErrorKind, key::Key};

use crate::{
    error::{CatalogError, Damage},
    sync::lock,
};

/// Receiver of damage: strict queries fail, others record it.
#[derive(Debug, Default)]
pub struct Diagnostics {
    keep_going: bool,
    written: Mutex<DiagnosticLists>,
}

#[derive(Debug, Default)]
struct DiagnosticLists {
    /// Without duplicates: damage may be found repeatedly and in many cells.
    missing: BTreeSet<Skipped>,
    notes: BTreeSet<String>,
}

impl Diagnostics {
    /// Creates an empty collection. With `keep_going`, damage is recorded.
    pub fn new(keep_going: bool) -> Self {
        Self {
            keep_going,
            ..Self::default()
        }
    }

    /// Fails, or records the damage and continues.
    ///
    /// # Errors
    ///
    /// Returns the damage if it is not skipped, or if another build or a larger budget would read it.
    pub fn skip(&self, damage: Damage) -> Result<(), CatalogError> {
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
    ///
    /// # Errors
    ///
    /// Returns `error` if missing data is not skipped.
    pub fn absent<E: Display>(&self, key: &Key, error: E) -> Result<(), E> {
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
    pub fn note(&self, note: impl Into<String>) {
        lock(&self.written).notes.insert(note.into());
    }

    /// Adds the records of another collection.
    pub fn absorb(&self, other: &Self) {
        let other = core::mem::take(&mut *lock(&other.written));
        let mut written = lock(&self.written);
        written.missing.extend(other.missing);
        written.notes.extend(other.notes);
    }

    /// Returns whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        let written = lock(&self.written);
        written.missing.is_empty() && written.notes.is_empty()
    }

    /// Returns whether data was left out.
    pub fn is_incomplete(&self) -> bool {
        !lock(&self.written).missing.is_empty()
    }

    /// Returns whether damage is recorded instead of failing.
    pub fn keeps_going(&self) -> bool {
        self.keep_going
    }

    /// Returns the records in the order of keys.
    pub fn finish(&self) -> (Vec<Skipped>, Vec<String>) {
        let DiagnosticLists { missing, notes } = core::mem::take(&mut *lock(&self.written));
        (missing.into_iter().collect(), notes.into_iter().collect())
    }
}

/// A part that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skipped {
    /// The object or array concerned.
    pub key: Key,
    /// The error and its causes.
    pub reason: String,
    /// `true` for an object or group of the query that the level does not have, `false` for damage.
    pub is_absent: bool,
}
