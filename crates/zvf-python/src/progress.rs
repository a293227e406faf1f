//! Progress of an operation, for a callback of Python.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use pyo3::prelude::*;
use zvf::{LevelId, LevelProgress, Progress};

/// A callable that takes the work done and all work known so far.
///
/// Threads of the operation set the numbers. The thread that waits for it calls the callable, so
/// that Python code runs on one thread only and costs the operation nothing.
#[derive(Debug, Default)]
pub(crate) struct ProgressCallback {
    callback: Option<Py<PyAny>>,
    counts: Arc<ProgressCounts>,
    last: (AtomicU64, AtomicU64),
}

#[derive(Debug, Default)]
struct ProgressCounts {
    done: AtomicU64,
    of: AtomicU64,
}

impl ProgressCallback {
    /// Creates progress for a callable; nothing is called without one.
    pub(crate) fn new(callback: Option<Bound<'_, PyAny>>) -> Self {
        Self {
            callback: callback.map(Bound::unbind),
            ..Self::default()
        }
    }

    /// Returns the function that the operation calls, if there is a callable.
    pub(crate) fn counter(&self) -> Option<Progress> {
        self.callback.as_ref()?;
        let counts = Arc::clone(&self.counts);
        Some(Arc::new(move |done, of| {
            counts.done.store(done, Ordering::Relaxed);
            counts.of.store(of, Ordering::Relaxed);
        }))
    }

    /// Returns the function that an operation over several levels calls. The counts of a level are
    /// added to those of the levels before it.
    pub(crate) fn level_counter(&self) -> Option<LevelProgress> {
        let counter = self.counter()?;
        let before = std::sync::Mutex::new((None::<LevelId>, 0_u64, 0_u64));
        Some(Arc::new(move |level, done, of| {
            let mut before = before
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            if before.0 != Some(level) {
                *before = (Some(level), before.1.saturating_add(before.2), of);
            }
            counter(before.1.saturating_add(done), before.1.saturating_add(of));
        }))
    }

    /// Calls the callable if the numbers changed since the last call.
    pub(crate) fn call(&self, py: Python<'_>) -> PyResult<()> {
        let Some(callback) = &self.callback else {
            return Ok(());
        };
        let done = self.counts.done.load(Ordering::Relaxed);
        let of = self.counts.of.load(Ordering::Relaxed);
        let old = self.last.0.swap(done, Ordering::Relaxed);
        let changed = self.last.1.swap(of, Ordering::Relaxed) != of || old != done;
        if changed {
            callback.call1(py, (done, of))?;
        }
        Ok(())
    }
}
