//! Results as streams of batches.

use core::{
    future::Future,
    ops::ControlFlow,
    pin::Pin,
    task::{Context, Poll},
};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use futures_util::stream::Stream;
use zvf_model::fetch::{BoxFuture, MaybeSend};

use super::run::QueryReport;
use crate::{
    batch::split::SplitResult,
    query::BatchOptions,
    result::{Links, QueryResult},
    sync::lock,
};

/// The sender of batches to a [`BatchStream`].
#[derive(Clone, Debug, Default)]
pub struct BatchSender(Arc<Mutex<VecDeque<QueryResult>>>);

impl BatchSender {
    /// Sends a batch.
    pub fn send(&self, batch: QueryResult) -> ControlFlow<()> {
        lock(&self.0).push_back(batch);
        ControlFlow::Continue(())
    }
}

/// A result as a stream of batches. Concatenated in order, the batches are the result.
///
/// The query runs only while the stream is polled: it stops at each batch until the batch is taken.
/// Dropping the stream ends the query. After an error the stream ends; batches before the error are
/// correct.
#[must_use = "a stream does nothing unless polled"]
pub struct BatchStream<E> {
    work: Option<BoxFuture<'static, Result<QueryReport, E>>>,
    sent: BatchSender,
    options: BatchOptions,
    splitting: Option<SplitResult>,
    report: Option<QueryReport>,
}

impl<E> BatchStream<E> {
    /// Creates a stream of the batches that a query sends. `query` runs it with
    /// [`Session::batches_within`](crate::Session::batches_within).
    pub fn new<F>(options: BatchOptions, query: impl FnOnce(BatchSender) -> F) -> Self
    where
        F: Future<Output = Result<QueryReport, E>> + MaybeSend + 'static,
    {
        let sent = BatchSender::default();
        Self {
            work: Some(Box::pin(query(sent.clone()))),
            sent,
            options,
            splitting: None,
            report: None,
        }
    }

    /// Returns the levels, skipped parts and notes of the result, once the stream has ended without
    /// an error.
    pub fn report(&self) -> Option<&QueryReport> {
        self.report.as_ref()
    }
}

impl<E: Send + 'static> Stream for BatchStream<E> {
    type Item = Result<QueryResult, E>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(splitting) = &mut this.splitting {
                if let Some(batch) = splitting.next() {
                    return Poll::Ready(Some(Ok(batch)));
                }
                this.splitting = None;
            }
            let next = lock(&this.sent.0).pop_front();
            if let Some(batch) = next {
                let rows = max_rows(this.options, &batch);
                this.splitting = Some(SplitResult::new(batch, rows));
                continue;
            }
            let Some(work) = &mut this.work else {
                return Poll::Ready(None);
            };
            match work.as_mut().poll(context) {
                Poll::Pending if lock(&this.sent.0).is_empty() => return Poll::Pending,
                Poll::Pending => {}
                Poll::Ready(done) => {
                    this.work = None;
                    match done {
                        Ok(report) => this.report = Some(report),
                        Err(error) => {
                            // Batches that were sent before the error come first.
                            if lock(&this.sent.0).is_empty() {
                                return Poll::Ready(Some(Err(error)));
                            }
                            this.work = Some(Box::pin(core::future::ready(Err(error))));
                        }
                    }
                }
            }
        }
    }
}

impl<E> core::fmt::Debug for BatchStream<E> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BatchStream")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Returns the rows that a batch of this result may have.
fn max_rows(options: BatchOptions, result: &QueryResult) -> usize {
    let links = result.links.as_ref().map_or(0, Links::len);
    let rows = result.positions.len().max(links).max(1);
    let row = result.size() / u64::try_from(rows).unwrap_or(u64::MAX);
    let fit = usize::try_from(options.bytes / row.max(1)).unwrap_or(usize::MAX);
    options.rows.min(fit).max(1)
}
