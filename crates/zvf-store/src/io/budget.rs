//! The memory that one call may use.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use zvf_model::key::Key;

use super::error::ReadError;

/// The bytes that one call may still hold.
///
/// Bytes are reserved before memory for them is allocated.
pub(crate) struct ByteBudget {
    total: u64,
    left: AtomicU64,
}

impl ByteBudget {
    pub(crate) fn new(total: u64) -> Self {
        Self {
            total,
            left: total.into(),
        }
    }

    pub(crate) fn left(&self) -> u64 {
        self.left.load(Relaxed)
    }

    /// Reserves `size` bytes for the object at `key`.
    ///
    /// # Errors
    ///
    /// [`ReadError::OverBudget`] when fewer bytes are left; then nothing is reserved.
    pub(crate) fn reserve(&self, key: &Key, size: u64) -> Result<(), ReadError> {
        let left = self
            .left
            .try_update(Relaxed, Relaxed, |left| left.checked_sub(size));
        match left {
            Ok(_) => Ok(()),
            Err(_) => Err(ReadError::OverBudget {
                key: key.clone(),
                size,
                budget: self.total,
            }),
        }
    }

    /// Returns bytes that were reserved for a response that did not arrive.
    pub(crate) fn release(&self, size: u64) {
        self.left.fetch_add(size, Relaxed);
    }
}
