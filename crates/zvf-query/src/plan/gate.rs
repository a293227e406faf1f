//! The gate between a running query and the receiver of its batches.

use core::{mem, ops::ControlFlow};
use std::sync::{Mutex, MutexGuard, PoisonError};

use zvf_model::fetch::FetchError;

use crate::{resolve::query::Emit, result::QueryResult};

/// Passes batches on whose reads are confirmed, and holds the others back.
pub(super) struct Gate<'g, 'e> {
    each: &'g mut Emit<'e>,
    waiting: Vec<QueryResult>,
    is_over: bool,
}

impl<'g, 'e> Gate<'g, 'e> {
    pub(super) fn new(each: &'g mut Emit<'e>) -> Self {
        Self {
            each,
            waiting: Vec::new(),
            is_over: false,
        }
    }

    /// Passes a batch on, or holds it back if only a request can confirm its reads. A change of the
    /// store ends the query; its error follows from the check at the end.
    pub(super) fn pass(
        &mut self,
        batch: QueryResult,
        confirmed: Option<&Result<(), FetchError>>,
    ) -> ControlFlow<()> {
        match confirmed {
            _ if self.is_over => {}
            Some(Ok(())) if self.waiting.is_empty() => self.is_over = (self.each)(batch).is_break(),
            Some(Err(_)) => self.is_over = true,
            Some(Ok(())) | None => self.waiting.push(batch),
        }
        match self.is_over {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Returns whether batches are held back.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Passes on the batches that are held back.
    pub(super) fn release(&mut self) {
        for batch in mem::take(&mut self.waiting) {
            if !self.is_over {
                self.is_over = (self.each)(batch).is_break();
            }
        }
    }
}

/// Locks a gate, which is shared by a query and the loop that runs it.
pub(super) fn lock<'a, 'g, 'e>(gate: &'a Mutex<Gate<'g, 'e>>) -> MutexGuard<'a, Gate<'g, 'e>> {
    gate.lock().unwrap_or_else(PoisonError::into_inner)
}
