//! A store behind the port, in which what is asked for side by side shares a
//! round trip.

use core::{future::poll_fn, task::Poll};
use std::sync::{Arc, Mutex};

use zvf::Dataset;
use zvf_model::{
    fetch::{Fetch, FetchError, Fetched, Wanted},
    key::Key,
    zarr::{Array, Node},
};
use zvf_store::{CellArray, CellReader, Read};

/// A call of the port.
#[derive(Debug)]
pub(super) struct Trip {
    pub(super) round: usize,
    pub(super) what: What,
    /// The requests it took, in the order they were sent.
    pub(super) reads: Vec<Read>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum What {
    Nodes,
    Cells,
    List(Key),
    Sizes,
}

/// A store in memory, read through here alone.
pub(super) struct Rounds {
    cells: CellReader,
    /// Whether metadata are known already: asking for them takes no time.
    known: bool,
    gathering: Mutex<usize>,
    trips: Mutex<Vec<Trip>>,
}

impl Rounds {
    pub(super) fn of(dataset: &Dataset, known: bool) -> Self {
        Self {
            // One of its own: indexes of shards are kept in it.
            cells: CellReader::new(dataset.store().clone()),
            known,
            gathering: Mutex::new(1),
            trips: Mutex::default(),
        }
    }

    pub(super) fn take(&self) -> Vec<Trip> {
        core::mem::take(&mut *self.trips.lock().unwrap())
    }

    /// Waits until all that is asked for side by side is asked for, and gives the
    /// number of the round.
    async fn turn(&self) -> usize {
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
        // The first to be answered: who asks from now on waited for an answer.
        *gathering = (*gathering).max(mine + 1);
        mine
    }

    async fn trip<T>(&self, what: What, answer: impl Future<Output = T>) -> T {
        let is_free = self.known && what != What::Cells;
        let round = if is_free { 0 } else { self.turn().await };
        // A store in memory answers without waiting, so that the log is of this call.
        let answer = answer.await;
        let reads = self.cells.store().take_request_log();
        self.trips.lock().unwrap().push(Trip { round, what, reads });
        answer
    }
}

impl Fetch for Rounds {
    type Array = CellArray;

    fn array(&self, node: &Key, array: Arc<Array>) -> Result<CellArray, FetchError> {
        self.cells.array(node, array)
    }

    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        self.trip(What::Nodes, self.cells.nodes(keys)).await
    }

    async fn cells(
        &self,
        wanted: &[Wanted<CellArray>],
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        self.trip(What::Cells, Fetch::cells(&self.cells, wanted))
            .await
    }

    async fn children(&self, key: &Key) -> Result<Vec<String>, FetchError> {
        self.trip(What::List(key.clone()), self.cells.children(key))
            .await
    }

    async fn sizes(&self, keys: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        self.trip(What::Sizes, self.cells.sizes(keys)).await
    }

    fn budget(&self) -> u64 {
        self.cells.budget()
    }
}
