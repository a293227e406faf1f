//! Open connections, whose number is limited.

use std::{
    collections::BTreeMap,
    future::pending,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Maximum number of open connections.
const MAX_CONNECTIONS: usize = 256;

/// The open connections. If there are too many, the one that has waited longest for its first request is
/// closed, so that clients which send nothing do not keep out others. Without such a one, the next
/// connection waits.
#[derive(Debug)]
pub(super) struct Connections {
    permits: Arc<Semaphore>,
    silent: Mutex<SilentConnections>,
}

/// Connections without a request, by their number, which ascends.
#[derive(Debug, Default)]
struct SilentConnections {
    next: u64,
    close: BTreeMap<u64, oneshot::Sender<()>>,
}

/// The place of a connection.
pub(super) struct Place {
    pub(super) first: FirstRequest,
    /// Completes if the connection has to be closed.
    pub(super) evicted: BoxFuture<'static, ()>,
    pub(super) permit: OwnedSemaphorePermit,
}

/// The wait for the first request of a connection.
pub(super) struct FirstRequest {
    number: u64,
    connections: Arc<Connections>,
}

impl Connections {
    pub(super) fn new() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            silent: Mutex::default(),
        }
    }

    /// Waits for a place; `None` if there are no more.
    pub(super) async fn place(self: &Arc<Self>) -> Option<Place> {
        let permit = if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            permit
        } else {
            self.close_oldest();
            Arc::clone(&self.permits).acquire_owned().await.ok()?
        };
        let (close, closed) = oneshot::channel();
        let number = self.with_silent(|silent| {
            let number = silent.next;
            silent.next = number.saturating_add(1);
            silent.close.insert(number, close);
            number
        });
        let evicted = async {
            // The sender of a connection with a request is dropped.
            if closed.await.is_err() {
                pending::<()>().await;
            }
        };
        Some(Place {
            first: FirstRequest {
                number,
                connections: Arc::clone(self),
            },
            evicted: evicted.boxed(),
            permit,
        })
    }

    fn close_oldest(&self) {
        let oldest = self.with_silent(|silent| silent.close.pop_first());
        if let Some((_, close)) = oldest {
            // Without a receiver, the connection is closed already.
            let _ = close.send(());
        }
    }

    fn with_silent<T>(&self, change: impl FnOnce(&mut SilentConnections) -> T) -> T {
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut silent)
    }
}

impl FirstRequest {
    /// Tells that a request has arrived.
    pub(super) fn arrived(&self) {
        let closing = self
            .connections
            .with_silent(|silent| silent.close.remove(&self.number));
        drop(closing);
    }
}

impl Drop for FirstRequest {
    fn drop(&mut self) {
        self.arrived();
    }
}
