//! Execution of a plan over a port that counts the reads of each operator.

use core::{future::Future, ops::ControlFlow};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use zvf_catalog::{Catalog, Diagnostics, LevelCache};
use zvf_model::{
    fetch::{
        AnyArray, BoxFuture, CellOptions, CellRef, CellRequest, Fetch, FetchError, Fetched,
        MaybeSend, Port,
    },
    key::Key,
    zarr::{Array, Node},
};

use super::OperatorReport;
use crate::{
    error::QueryError,
    exec::{context::ExecContext, operator::OperatorTree},
    query::Query,
    session::Session,
    sync::lock,
};

impl Session<'_> {
    /// Runs a query and returns its operators with the requests that each of them made.
    ///
    /// A query with a budget is analyzed with the preferred choice of levels.
    ///
    /// # Errors
    ///
    /// [`QueryError`] when the query fails.
    pub fn analyze<'f>(
        &'f self,
        query: &'f Query,
    ) -> BoxFuture<'f, Result<Vec<OperatorReport>, QueryError>> {
        Box::pin(async move {
            let outcome = self.analyze_unconfirmed(query).await;
            self.confirmed(outcome).await
        })
    }

    async fn analyze_unconfirmed(&self, query: &Query) -> Result<Vec<OperatorReport>, QueryError> {
        let diagnostics = Diagnostics::new(query.keep_going);
        let chosen = self.choose(query, &diagnostics).await?;
        let parts = chosen.alternatives.first().map_or(&[][..], Vec::as_slice);
        let mut operators = Vec::new();
        for part in parts {
            let query = part.query(query);
            let levels = LevelCache::default();
            let counting = CountingPort::new(self.catalog.fetch);
            let catalog = Catalog {
                fetch: Port::new(&counting),
                levels: &levels,
                ..self.catalog
            };
            let session = Session::new(catalog);
            let plan = session.resolve(&query).await?;
            let root = Box::pin(plan.physical_plan(&diagnostics)).await?;
            let context = ExecContext::new(&plan, &diagnostics);
            let mut emit = |_| ControlFlow::Continue(());
            root.execute(context, &mut emit).await?;
            let mut tree = OperatorTree::new(&plan);
            root.describe(&mut tree);
            operators.extend(tree.operators.iter().map(|operator| {
                let counts = counting.counts(operator.name);
                OperatorReport {
                    requests: counts.cells,
                    bytes: Some(counts.bytes),
                    round_trips: counts.round_trips,
                    ..OperatorReport::new(plan.level.id(), operator)
                }
            }));
        }
        Ok(operators)
    }
}

/// A port that counts the cells, bytes and round trips of each operator.
struct CountingPort<'a> {
    port: Port<'a>,
    counts: Mutex<BTreeMap<&'static str, ReadCounts>>,
}

#[derive(Clone, Copy, Default)]
struct ReadCounts {
    cells: u64,
    bytes: u64,
    round_trips: u64,
}

impl<'a> CountingPort<'a> {
    fn new(port: Port<'a>) -> Self {
        let counts = Mutex::default();
        Self { port, counts }
    }

    /// Returns the reads of an operator so far.
    fn counts(&self, operator: &str) -> ReadCounts {
        lock(&self.counts)
            .get(operator)
            .copied()
            .unwrap_or_default()
    }
}

impl Fetch for CountingPort<'_> {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        self.port.array(node, array)
    }

    fn nodes(
        &self,
        keys: &[Key],
    ) -> impl Future<Output = Result<Vec<Option<Node>>, FetchError>> + MaybeSend {
        self.port.nodes(keys)
    }

    async fn cells(
        &self,
        wanted: &[CellRequest],
        options: CellOptions,
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        let port = if options.bypasses_cache {
            self.port.bypass_cache()
        } else {
            self.port
        };
        let fetched = port.cells(wanted).await;
        let Some(operator) = options.operator.filter(|_| !wanted.is_empty()) else {
            return fetched;
        };
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let cells = fetched
            .iter()
            .filter_map(|cell| cell.as_ref().ok()?.as_ref());
        let bytes = cells
            .map(|cell| count(cell.bytes.len()))
            .fold(0, u64::saturating_add);
        let mut by_operator = lock(&self.counts);
        let counts = by_operator.entry(operator).or_default();
        counts.cells = counts.cells.saturating_add(count(wanted.len()));
        counts.bytes = counts.bytes.saturating_add(bytes);
        counts.round_trips = counts.round_trips.saturating_add(1);
        fetched
    }

    fn prepare(
        &self,
        arrays: &[AnyArray],
        max_requests: usize,
    ) -> impl Future<Output = ()> + MaybeSend {
        self.port.prepare(arrays, max_requests)
    }

    fn children(
        &self,
        key: &Key,
    ) -> impl Future<Output = Result<Vec<String>, FetchError>> + MaybeSend {
        self.port.children(key)
    }

    fn fragment_lengths_bytes(&self, node: &Key) -> Option<u64> {
        self.port.fragment_lengths_bytes(node)
    }

    fn fragment_lengths(
        &self,
        cells: &[CellRef],
    ) -> impl Future<Output = Result<Vec<Option<Bytes>>, FetchError>> + MaybeSend {
        self.port.fragment_lengths(cells)
    }

    fn sizes(
        &self,
        keys: &[Key],
    ) -> impl Future<Output = Result<Vec<Option<u64>>, FetchError>> + MaybeSend {
        self.port.sizes(keys)
    }

    fn budget(&self) -> u64 {
        self.port.budget()
    }

    fn at_once(&self) -> u64 {
        self.port.at_once()
    }
}
