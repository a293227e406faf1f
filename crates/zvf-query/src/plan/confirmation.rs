//! The buffer between a running query and the receiver of its batches.

use core::{mem, ops::ControlFlow};
use std::sync::{Mutex, MutexGuard, PoisonError};

use zvf_model::fetch::FetchError;

use crate::{resolve::query::Emit, result::QueryResult};

/// Passes batches on whose reads are confirmed, and holds the others back.
pub(super) struct ConfirmationBuffer<'g, 'e> {
    receiver: &'g mut Emit<'e>,
    pending: Vec<QueryResult>,
    is_over: bool,
}

impl<'g, 'e> ConfirmationBuffer<'g, 'e> {
    pub(super) fn new(receiver: &'g mut Emit<'e>) -> Self {
        Self {
            receiver,
            pending: Vec::new(),
            is_over: false,
        }
    }

    /// Passes a batch on, or holds it back if only a request can confirm its reads. A change of the
    /// store ends the query; its error follows from the check at the end.
    pub(super) fn emit(
        &mut self,
        batch: QueryResult,
        confirmed: Option<&Result<(), FetchError>>,
    ) -> ControlFlow<()> {
        match confirmed {
            _ if self.is_over => {}
            Some(Ok(())) if self.pending.is_empty() => {
                self.is_over = (self.receiver)(batch).is_break();
            }
            Some(Err(_)) => self.is_over = true,
            Some(Ok(())) | None => self.pending.push(batch),
        }
        if self.is_over {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Returns whether batches are held back.
    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Passes on the batches that are held back.
    pub(super) fn release(&mut self) {
        for batch in mem::take(&mut self.pending) {
            if !self.is_over {
                self.is_over = (self.receiver)(batch).is_break();
            }
        }
    }
}

/// Locks a buffer, which is shared by a query and the loop that runs it.
pub(super) fn lock<'a, 'g, 'e>(
    buffer: &'a Mutex<ConfirmationBuffer<'g, 'e>>,
) -> MutexGuard<'a, ConfirmationBuffer<'g, 'e>> {
    buffer.lock().unwrap_or_else(PoisonError::into_inner)
}
