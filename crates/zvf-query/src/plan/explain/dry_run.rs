//! Execution of a plan over a port that records the requests of the first round trip.

use core::{
    future::{Future, poll_fn},
    ops::ControlFlow,
    task::{Poll, Waker},
};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use zvf_catalog::{Catalog, Diagnostics, LevelCache, object_of};
use zvf_model::{
    fetch::{
        AnyArray, CellOptions, CellRef, CellRequest, CellSource, Fetch, FetchError, FetchProblem,
        Fetched, MaybeSend, Port,
    },
    key::Key,
    zarr::{Array, Node},
};

use crate::{
    error::QueryError,
    exec::{
        context::ExecContext,
        operator::{OperatorText, OperatorTree},
    },
    query::Query,
    session::Session,
    sync::lock,
};

/// The outcome of a dry run.
#[derive(Default)]
pub(super) struct DryRun {
    pub(super) requested: Vec<RecordedRead>,
    /// The operators of the plan, each before its inputs.
    pub(super) operators: Vec<OperatorText>,
}

/// A recorded request.
pub(super) struct RecordedRead {
    pub(super) object: Key,
    /// Bytes; `None` for the whole object.
    pub(super) bytes: Option<u64>,
    /// The name of the operator that reads.
    pub(super) operator: Option<&'static str>,
}

impl Session<'_> {
    /// Plans a query of one level and runs it over a port that records the requests of the
    /// first round trip and serves none. With `whole`, the port reads no cell in part.
    pub(super) async fn dry_run(&self, query: &Query, whole: bool) -> Result<DryRun, QueryError> {
        let recording = Recording {
            fetch: self.catalog.fetch,
            whole,
            requested: Mutex::default(),
            is_over: AtomicBool::new(false),
            metadata: Metadata::default(),
        };
        let levels = LevelCache::default();
        let catalog = Catalog {
            fetch: Port::new(&recording),
            levels: &levels,
            ..self.catalog
        };
        let mut query = query.clone();
        query.keep_going = false;
        let mut run = DryRun::default();
        let outcome = Session::new(catalog).run_dry(&query, &mut run).await;
        run.requested = core::mem::take(&mut *lock(&recording.requested));
        match outcome {
            // The port returns errors only, so a run that requested data always fails.
            Err(_) if !run.requested.is_empty() => Ok(run),
            other => other.map(|()| run),
        }
    }

    async fn run_dry(&self, query: &Query, run: &mut DryRun) -> Result<(), QueryError> {
        let diagnostics = Diagnostics::new(false);
        let plan = self.resolve(query).await?;
        let root = Box::pin(plan.physical_plan(&diagnostics)).await?;
        let mut tree = OperatorTree::new(&plan);
        root.describe(&mut tree);
        run.operators = tree.operators;
        let context = ExecContext::new(&plan, &diagnostics);
        // After planning, because the recording port fails the read of groups.
        if let Some(groups) = &query.groups {
            context.requested_groups(groups).await?;
        }
        let mut emit = |_| ControlFlow::Continue(());
        root.execute(context, &mut emit).await
    }
}

/// The requests of a dry run's first round trip, by operator. Metadata is read from the store.
struct Recording<'a> {
    fetch: Port<'a>,
    whole: bool,
    requested: Mutex<Vec<RecordedRead>>,
    /// `true` after the first round trip. Later requests are reactions to its failure and are not
    /// recorded.
    is_over: AtomicBool,
    metadata: Metadata,
}

/// Number of pending reads of metadata, and the tasks to wake when none is pending.
#[derive(Default)]
struct Metadata(Mutex<(u64, Vec<Waker>)>);

impl Metadata {
    async fn count<T>(&self, work: impl Future<Output = T>) -> T {
        lock(&self.0).0 += 1;
        // The guard also decrements the count if the future is dropped.
        let _pending = PendingRead(self);
        work.await
    }

    /// Returns whether reads are pending, and if so registers `waker` to be woken after the last.
    fn is_awaited(&self, waker: &Waker) -> bool {
        let mut awaited = lock(&self.0);
        if awaited.0 > 0 {
            awaited.1.push(waker.clone());
        }
        awaited.0 > 0
    }
}

/// A guard for one pending read.
struct PendingRead<'a>(&'a Metadata);

impl Drop for PendingRead<'_> {
    fn drop(&mut self) {
        let mut awaited = lock(&self.0.0);
        awaited.0 = awaited.0.saturating_sub(1);
        if awaited.0 == 0 {
            awaited.1.drain(..).for_each(Waker::wake);
        }
    }
}

struct DryArray {
    array: AnyArray,
    whole: bool,
}

impl CellSource for DryArray {
    fn node(&self) -> &Key {
        self.array.node()
    }

    fn metadata(&self) -> &Arc<Array> {
        self.array.metadata()
    }

    fn is_plain(&self) -> bool {
        !self.whole && self.array.is_plain()
    }

    fn is_in_blocks(&self) -> bool {
        !self.whole && self.array.is_in_blocks()
    }
}

impl Fetch for Recording<'_> {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        let array = self.fetch.array(node, array)?;
        let whole = self.whole;
        Ok(AnyArray::new(DryArray { array, whole }))
    }

    fn fragment_lengths_bytes(&self, node: &Key) -> Option<u64> {
        self.fetch.fragment_lengths_bytes(node)
    }

    fn nodes(
        &self,
        keys: &[Key],
    ) -> impl Future<Output = Result<Vec<Option<Node>>, FetchError>> + MaybeSend {
        self.metadata.count(self.fetch.nodes(keys))
    }

    fn cells(
        &self,
        wanted: &[CellRequest],
        options: CellOptions,
    ) -> impl Future<Output = Vec<Result<Option<Fetched>, FetchError>>> + MaybeSend {
        let read = |object, bytes| RecordedRead {
            object,
            bytes,
            operator: options.operator,
        };
        let mut keys = Vec::with_capacity(wanted.len());
        let is_over = self.is_over.load(Ordering::Relaxed);
        let mut requested = lock(&self.requested);
        let before = requested.len();
        for wanted in wanted {
            let part = wanted.part.as_ref();
            let part = part.map(|part| part.end.saturating_sub(part.start));
            match &wanted.cell {
                CellRef::Element(array, element) => {
                    keys.push(array.node().clone());
                    let extents = array.metadata().decoded_shape();
                    let first = element.iter().zip(extents);
                    // `element` counts cells, but `object_of` takes the index of an item.
                    let first = first.map(|(cell, extent)| cell.saturating_mul(*extent));
                    if let Some(object) = object_of(array, &first.collect::<Vec<_>>()) {
                        requested.push(read(object, part));
                    }
                }
                CellRef::Child(key) => {
                    keys.push(key.clone());
                    requested.extend(key.metadata().ok().map(|object| read(object, None)));
                    requested.extend(key.join_path("c/0").ok().map(|object| read(object, None)));
                }
            }
        }
        if is_over {
            requested.truncate(before);
        }
        drop(requested);
        let mut waited = false;
        // Concurrent futures issue their requests before the first round trip ends, including
        // futures that wait for metadata first.
        let turn = poll_fn(move |context| {
            if self.metadata.is_awaited(context.waker()) {
                waited = false;
                return Poll::Pending;
            }
            if waited {
                return Poll::Ready(());
            }
            waited = true;
            context.waker().wake_by_ref();
            Poll::Pending
        });
        async move {
            turn.await;
            self.is_over.store(true, Ordering::Relaxed);
            let unread = |key| {
                Err(FetchError {
                    key,
                    problem: FetchProblem::Unavailable,
                    source: "nothing is read".into(),
                })
            };
            keys.into_iter().map(unread).collect()
        }
    }

    fn children(
        &self,
        key: &Key,
    ) -> impl Future<Output = Result<Vec<String>, FetchError>> + MaybeSend {
        self.metadata.count(self.fetch.children(key))
    }

    fn sizes(
        &self,
        keys: &[Key],
    ) -> impl Future<Output = Result<Vec<Option<u64>>, FetchError>> + MaybeSend {
        self.metadata.count(self.fetch.sizes(keys))
    }

    fn budget(&self) -> u64 {
        self.fetch.budget()
    }
}
