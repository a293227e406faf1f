//! A store behind the port in which concurrent calls share a round trip.

use core::{future::poll_fn, task::Poll};
use std::sync::{Arc, Mutex};

use zvf::Dataset;
use zvf_model::{
    fetch::{AnyArray, CellOptions, CellRequest, Fetch, FetchError, Fetched},
    key::Key,
    zarr::{Array, Node},
};
use zvf_store::{CellReader, Read};

/// A call of the port.
#[derive(Debug)]
pub(super) struct PortCall {
    pub(super) round: usize,
    pub(super) what: CallKind,
    /// Its requests, in the order in which they were sent.
    pub(super) reads: Vec<Read>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    Nodes,
    Cells,
    List(Key),
    Sizes,
}

/// A store in memory that is read only through this port.
pub(super) struct Rounds {
    cells: CellReader,
    /// Metadata is cached: its calls take no round.
    known: bool,
    gathering: Mutex<usize>,
    calls: Mutex<Vec<PortCall>>,
}

impl Rounds {
    pub(super) fn of(dataset: &Dataset, known: bool) -> Self {
        Self {
            // A separate reader, because it caches shard indexes.
            cells: CellReader::new(dataset.store().clone()),
            known,
            gathering: Mutex::new(1),
            calls: Mutex::default(),
        }
    }

    pub(super) fn take(&self) -> Vec<PortCall> {
        core::mem::take(&mut *self.calls.lock().unwrap())
    }

    /// Waits until all concurrent calls have arrived; returns the number of the round.
    async fn join_round(&self) -> usize {
        let mine = *self.gathering.lock().unwrap();
        let mut waited = false;
        poll_fn(|context| {
            if waited {
                return Poll::Ready(());
            }
            waited = true;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        let mut gathering = self.gathering.lock().unwrap();
        // The first response ends the round: later calls depended on it.
        *gathering = (*gathering).max(mine + 1);
        mine
    }

    async fn call<T>(&self, what: CallKind, result: impl Future<Output = T>) -> T {
        let is_free = self.known && what != CallKind::Cells;
        let round = if is_free { 0 } else { self.join_round().await };
        // A store in memory responds without waiting, so the log contains only this call.
        let result = result.await;
        let reads = self.cells.store().take_request_log();
        self.calls
            .lock()
            .unwrap()
            .push(PortCall { round, what, reads });
        result
    }
}

impl Fetch for Rounds {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        self.cells.array(node, array)
    }

    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        self.call(CallKind::Nodes, self.cells.nodes(keys)).await
    }

    async fn cells(
        &self,
        wanted: &[CellRequest],
        options: CellOptions,
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        self.call(CallKind::Cells, self.cells.cells(wanted, options))
            .await
    }

    async fn children(&self, key: &Key) -> Result<Vec<String>, FetchError> {
        self.call(CallKind::List(key.clone()), self.cells.children(key))
            .await
    }

    async fn sizes(&self, keys: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        self.call(CallKind::Sizes, self.cells.sizes(keys)).await
    }

    fn budget(&self) -> u64 {
        self.cells.budget()
    }
}
