//! `EXPLAIN`: the operators of a query with the requests they would make, or made.

use core::{
    fmt,
    future::{Future, poll_fn},
    ops::ControlFlow,
    task::{Poll, Waker},
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use zvf_model::{
    fetch::{
        AnyArray, BoxFuture, CellOptions, CellRef, CellRequest, CellSource, Fetch, FetchError,
        FetchProblem, Fetched, MaybeSend, Port,
    },
    key::Key,
    level::LevelId,
    zarr::{Array, Node},
};

use crate::{
    catalog::chunked_array::object_of,
    catalog::level::{LevelCache, Session},
    diagnostics::Diagnostics,
    error::QueryError,
    exec::{
        context::ExecContext,
        operator::{ObjectScan, Operator, PathScan, PlanNode},
        pipeline::Pipeline,
    },
    query::{LevelChoice, Query, Shape},
    resolve::query::LevelQuery,
    result::LevelUse,
    sync::lock,
};

/// The plan of a query: its operators and the data that they would read.
///
/// Making a plan reads metadata and lists the sizes of objects; with a budget, it also reads
/// fragment indexes to count vertices. The requests of the first round trip are exact; later
/// requests depend on its data and are only described.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// Contribution of each level, as in [`QueryResult::levels`](crate::QueryResult::levels); empty
    /// for queries without a budget. The requests that count vertices for a budget are not included
    /// in this plan.
    pub levels: Vec<LevelUse>,
    /// `true` if the counts of `levels` are exact except for filters and limits, `false` if they
    /// are estimates.
    pub is_exact: bool,
    /// Requests of the first round trip in all levels, by array.
    pub first: Vec<Reads>,
    /// Descriptions of the later round trips, in order.
    pub then: Vec<&'static str>,
    /// The operators of the plan, each before its inputs.
    pub operators: Vec<OperatorReport>,
    /// Total size in bytes of the cells that the first round trip reads from: an upper bound on its
    /// bytes, which are fewer where parts of cells are read. `None` if the store cannot list.
    pub at_most: Option<u64>,
    /// Remarks, such as levels skipped because they are out of date.
    pub notes: Vec<String>,
}

/// An operator of a plan and what it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperatorReport {
    /// The level that the operator reads.
    pub level: LevelId,
    /// Distance from the root of the plan.
    pub depth: usize,
    /// The name of the operator.
    pub name: &'static str,
    /// Its parameters, as `key=value, key=value`.
    pub details: String,
    /// Number of requests: those of the first round trip if the plan is explained, all of them if
    /// it is analyzed. An analysis counts cells before adjacent reads are merged.
    pub requests: u64,
    /// Size of these requests in bytes; `None` if the store cannot list.
    pub bytes: Option<u64>,
    /// Number of dependent round trips, without those for metadata.
    pub round_trips: u64,
}

/// The operator and its parameters on one line, indented by its depth, with what it reads.
impl fmt::Display for OperatorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indent = self.depth.saturating_mul(2);
        write!(f, "{:indent$}{}", "", self.name)?;
        if !self.details.is_empty() {
            write!(f, ": {}", self.details)?;
        }
        if self.requests == 0 {
            return Ok(());
        }
        write!(f, " [requests={}", self.requests)?;
        match self.bytes {
            Some(bytes) => write!(f, ", bytes={bytes}")?,
            None => f.write_str(", bytes=?")?,
        }
        write!(f, ", round_trips={}]", self.round_trips)
    }
}

/// Requests for one array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reads {
    /// The array, or its parent where each chunk has an array of its own.
    pub array: Key,
    /// Number of requested objects.
    pub requests: u64,
    /// Size in bytes; `None` if the store cannot list.
    pub bytes: Option<u64>,
}

impl Explanation {
    /// Returns the number of requests of the first round trip.
    pub fn requests(&self) -> u64 {
        self.first.iter().map(|reads| reads.requests).sum()
    }

    /// Returns the size of the first round trip in bytes; `None` if the store cannot list.
    pub fn bytes(&self) -> Option<u64> {
        self.first.iter().map(|reads| reads.bytes).sum()
    }
}

impl Session<'_> {
    /// Plans a query and returns the operators and requests without reading data.
    ///
    /// # Errors
    ///
    /// [`QueryError`] when the query is invalid for the store.
    pub fn explain<'f>(
        &'f self,
        query: &'f Query,
    ) -> BoxFuture<'f, Result<Explanation, QueryError>> {
        Box::pin(async move {
            let outcome = self.explain_unconfirmed(query).await;
            self.confirmed(outcome).await
        })
    }

    fn explain_unconfirmed<'f>(
        &'f self,
        query: &'f Query,
    ) -> BoxFuture<'f, Result<Explanation, QueryError>> {
        Box::pin(async move {
            let diagnostics = Diagnostics::new(query.keep_going);
            let chosen = self.choose(query, &diagnostics).await?;
            let parts = chosen.alternatives.first().map_or(&[][..], Vec::as_slice);
            let (mut requested, mut whole): (Vec<RecordedRead>, Vec<RecordedRead>) =
                Default::default();
            let (mut then, mut operators) = (Vec::new(), Vec::new());
            for (number, part) in parts.iter().enumerate() {
                let query = part.query(query);
                let of_part = self.dry_run(&query, false).await?;
                let of_whole = self.dry_run(&query, true).await?;
                let in_part = of_part.requested.len() < of_whole.requested.len();
                for read in of_part.later {
                    if (in_part || read.is_always) && !then.contains(&read.what) {
                        then.push(read.what);
                    }
                }
                let reports = of_part.operators.into_iter();
                let operator = |report: &OperatorReport| (number, Some(report.name));
                operators.extend(reports.map(|report| (operator(&report), report)));
                requested.extend(
                    of_part
                        .requested
                        .into_iter()
                        .map(|read| read.of_part(number)),
                );
                whole.extend(of_whole.requested);
            }
            let levels = parts.iter().map(|part| {
                let counts = part.counted.iter().map(|(_, count)| *count);
                LevelUse {
                    level: part.level,
                    vertices: counts.fold(0, u64::saturating_add),
                    chunks: part.counted.clone(),
                }
            });
            let levels = match matches!(query.level, LevelChoice::Budget(_)) {
                true => levels.collect(),
                false => Vec::new(),
            };
            let sizes = Sizes::of(self, requested.iter().chain(&whole)).await?;
            for (operator, report) in &mut operators {
                let own = requested.iter().filter(|read| read.operator == *operator);
                let own = by_object(own);
                report.requests = u64::try_from(own.len()).unwrap_or(u64::MAX);
                report.round_trips = u64::from(!own.is_empty());
                let bytes = own.into_iter();
                report.bytes = bytes
                    .map(|(key, part)| part.or_else(|| sizes.of_object(key)))
                    .sum();
            }
            let mut first: BTreeMap<Key, Reads> = BTreeMap::new();
            for (object, parts) in by_object(&requested) {
                let array = array_of(object);
                let reads = first.entry(array.clone()).or_insert(Reads {
                    array,
                    requests: 0,
                    bytes: Some(0),
                });
                reads.requests = reads.requests.saturating_add(1);
                let bytes = parts.or_else(|| sizes.of_object(object));
                reads.bytes = reads.bytes.zip(bytes).map(|(a, b)| a.saturating_add(b));
            }
            let at_most = by_object(&whole)
                .into_keys()
                .map(|object| sizes.of_object(object));
            Ok(Explanation {
                levels,
                is_exact: chosen.is_exact,
                notes: diagnostics.finish().1,
                first: first.into_values().collect(),
                then,
                operators: operators.into_iter().map(|(_, report)| report).collect(),
                at_most: at_most.sum(),
            })
        })
    }

    /// Plans a query of one level and runs it over a port that records the requests of the
    /// first round trip and serves none. With `whole`, the port reads no cell in part.
    async fn dry_run(&self, query: &Query, whole: bool) -> Result<DryRun, QueryError> {
        let recording = Recording {
            fetch: self.fetch,
            whole,
            requested: Mutex::default(),
            is_over: AtomicBool::new(false),
            metadata: Metadata::default(),
        };
        let levels = LevelCache::default();
        let session = Session {
            fetch: Port::new(&recording),
            layout: self.layout,
            root: self.root,
            levels: &levels,
        };
        let mut query = query.clone();
        query.keep_going = false;
        let mut run = DryRun::default();
        let outcome = session.run_dry(&query, &recording, &mut run).await;
        run.requested = core::mem::take(&mut *lock(&recording.requested));
        match outcome {
            // The port returns errors only, so a run that requested data always fails.
            Err(_) if !run.requested.is_empty() => Ok(run),
            other => other.map(|()| run),
        }
    }

    async fn run_dry(
        &self,
        query: &Query,
        recording: &Recording<'_>,
        run: &mut DryRun,
    ) -> Result<(), QueryError> {
        let diagnostics = Diagnostics::new(false);
        let plan = self.resolve(query).await?;
        let root = Box::pin(plan.physical_plan(&diagnostics)).await?;
        run.operators = reports(&root, &plan);
        root.later_reads(&plan, &mut run.later)?;
        // After planning, because the recording port fails the read of groups.
        if let Some(groups) = &query.groups {
            plan.requested_groups(groups, &diagnostics).await?;
        }
        let ports = operator_ports(Port::new(recording), &root);
        let context = ExecContext {
            ports: &ports,
            ..ExecContext::new(&plan, &diagnostics)
        };
        let mut emit = |_| ControlFlow::Continue(());
        root.execute(context, &mut emit).await
    }

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

    fn analyze_unconfirmed<'f>(
        &'f self,
        query: &'f Query,
    ) -> BoxFuture<'f, Result<Vec<OperatorReport>, QueryError>> {
        Box::pin(async move {
            let diagnostics = Diagnostics::new(query.keep_going);
            let chosen = self.choose(query, &diagnostics).await?;
            let parts = chosen.alternatives.first().map_or(&[][..], Vec::as_slice);
            let mut operators = Vec::new();
            for part in parts {
                let query = part.query(query);
                let levels = LevelCache::default();
                let counting = CountingPort::new(self.fetch);
                let session = Session {
                    fetch: Port::new(&counting),
                    levels: &levels,
                    ..*self
                };
                let plan = session.resolve(&query).await?;
                let root = Box::pin(plan.physical_plan(&diagnostics)).await?;
                let ports = operator_ports(plan_port(&session, &query), &root);
                let context = ExecContext {
                    ports: &ports,
                    ..ExecContext::new(&plan, &diagnostics)
                };
                let mut emit = |_| ControlFlow::Continue(());
                root.execute(context, &mut emit).await?;
                for mut report in reports(&root, &plan) {
                    let counts = counting.counts(report.name);
                    report.requests = counts.cells;
                    report.bytes = Some(counts.bytes);
                    report.round_trips = counts.round_trips;
                    operators.push(report);
                }
            }
            Ok(operators)
        })
    }
}

/// Returns the port that a query reads through.
fn plan_port<'a>(session: &Session<'a>, query: &Query) -> Port<'a> {
    if query.scans_whole_level() {
        return session.fetch.bypass_cache();
    }
    session.fetch
}

/// Returns the port of each operator of a plan, by its id.
fn operator_ports<'a>(port: Port<'a>, root: &PlanNode) -> Vec<Port<'a>> {
    let mut ports = vec![port; root.id.saturating_add(1)];
    root.walk(0, &mut |node, _| {
        if let Some(own) = ports.get_mut(node.id) {
            *own = port.for_operator(node.operator.name());
        }
    });
    ports
}

/// The outcome of a dry run.
#[derive(Default)]
struct DryRun {
    requested: Vec<RecordedRead>,
    /// Reports of the operators, each before its inputs.
    operators: Vec<OperatorReport>,
    later: Vec<LaterRead>,
}

/// Returns the operators of a plan, each before its inputs.
fn reports(root: &PlanNode, query: &LevelQuery<'_>) -> Vec<OperatorReport> {
    let mut reports = Vec::new();
    root.walk(0, &mut |node, depth| {
        let report = OperatorReport {
            level: query.level.id(),
            depth,
            name: node.operator.name(),
            details: node.operator.details(query),
            ..OperatorReport::default()
        };
        reports.push(report);
    });
    reports
}

/// A round trip that depends on the results of earlier ones.
struct LaterRead {
    what: &'static str,
    /// `true` if the round trip is needed even when the first one reads whole cells.
    is_always: bool,
}

impl PlanNode {
    /// Appends the round trips after the first, those of inputs before those of the node.
    fn later_reads(
        &self,
        query: &LevelQuery<'_>,
        later: &mut Vec<LaterRead>,
    ) -> Result<(), QueryError> {
        let mut push = |what, is_always| later.push(LaterRead { what, is_always });
        // The search runs its input repeatedly, so the reads of the input are not listed.
        if let Operator::Nearest(_) = self.operator {
            push(
                "the next nearest chunks, until no other chunk can hold a nearer item",
                true,
            );
            return Ok(());
        }
        for input in &self.inputs {
            input.later_reads(query, later)?;
        }
        let mut push = |what, is_always| later.push(LaterRead { what, is_always });
        match &self.operator {
            Operator::ObjectScan(ObjectScan::Selected) if query.query.groups.is_some() => {
                push("manifests of the members of the groups", true);
                if query.filter.selects_by_object() {
                    push("attributes of objects in the predicate", true);
                }
            }
            Operator::ObjectScan(ObjectScan::Selected) if query.filter.selects_by_object() => {
                push("attributes of objects in the predicate", true);
            }
            Operator::ChunkScan(scan) if query.selects_objects() => {
                push(
                    "fragment indexes of the chunks of the objects, and the links between them",
                    true,
                );
                push(
                    "the rows of their fragments",
                    scan.schema.has_rows_in_part(),
                );
            }
            Operator::ChunkScan(_) if query.shape == Shape::Points => {
                push("the rows of the bins that the region touches", false);
            }
            Operator::LinkJoin if query.area.is_some() => {
                push(
                    "vertices at the other ends of links that may enter the region",
                    true,
                );
            }
            Operator::StreamedLinkJoin => push("links", true),
            Operator::PathScan(scan) => scan.later_reads(query, later)?,
            Operator::ObjectColumns if !query.shown.object.is_empty() => {
                let pipeline = Pipeline::new(self);
                let is_of_paths = matches!(pipeline.source.operator, Operator::PathScan(_));
                if !is_of_paths || !pipeline.limit().passes_all() {
                    push("attributes of the objects found", true);
                }
            }
            Operator::LevelJump(_) => {
                push("links between the levels", true);
                push("the vertices at their other ends", true);
            }
            Operator::ObjectScan(_)
            | Operator::ChunkScan(_)
            | Operator::LinkScan(_)
            | Operator::GeometryScan(_)
            | Operator::Empty(_)
            | Operator::Filter
            | Operator::Clip
            | Operator::Limit(_)
            | Operator::Gather
            | Operator::LinkJoin
            | Operator::Nearest(_)
            | Operator::ObjectColumns => {}
        }
        Ok(())
    }
}

impl PathScan {
    /// Appends the round trips after the first.
    fn later_reads(
        &self,
        query: &LevelQuery<'_>,
        later: &mut Vec<LaterRead>,
    ) -> Result<(), QueryError> {
        let named = query.query.objects.is_some() || query.query.groups.is_some();
        let is_path = query.shape == Shape::Paths;
        let is_region = is_path && query.area.is_some() && !named;
        if !is_region && is_path && !query.all_at_once(&self.schema)?.is_empty() {
            return Ok(());
        }
        let shows_attributes = query.query.limit.is_none() && !query.shown.object.is_empty();
        let what = match (is_region, shows_attributes) {
            (true, true) => {
                "fragment indexes of other chunks that the paths go through, and attributes of the \
                 objects"
            }
            (true, false) => "fragment indexes of other chunks that the paths go through",
            (false, true) => {
                "fragment indexes of the chunks of the objects, and attributes of the objects"
            }
            (false, false) => "fragment indexes of the chunks of the objects",
        };
        later.push(LaterRead {
            what,
            is_always: true,
        });
        later.push(LaterRead {
            what: "the rows of their fragments",
            is_always: self.schema.has_rows_in_part(),
        });
        Ok(())
    }
}

/// A recorded request.
struct RecordedRead {
    object: Key,
    /// Bytes; `None` for the whole object.
    bytes: Option<u64>,
    /// Index of the level in the plan, and name of the operator.
    operator: (usize, Option<&'static str>),
}

impl RecordedRead {
    fn of_part(self, part: usize) -> Self {
        let operator = (part, self.operator.1);
        Self { operator, ..self }
    }
}

/// Groups requests by object and sums the sizes of their parts; `None` for a whole object.
fn by_object<'a>(
    requested: impl IntoIterator<Item = &'a RecordedRead>,
) -> BTreeMap<&'a Key, Option<u64>> {
    let mut objects: BTreeMap<&Key, Option<u64>> = BTreeMap::new();
    for read in requested {
        let part = read.bytes;
        objects
            .entry(&read.object)
            .and_modify(|parts| *parts = parts.zip(part).map(|(a, b)| a.saturating_add(b)))
            .or_insert(part);
    }
    objects
}

/// Returns the array of an object, or the parent of the array where each chunk has an array of
/// its own.
fn array_of(object: &Key) -> Key {
    let path = object.as_str();
    let path = path.split_once("/c/").map_or(path, |(array, _)| array);
    let path = path.strip_suffix("/zarr.json").unwrap_or(path);
    let is_chunk = |name: &str| {
        name.split('.').all(|number| number.parse::<i64>().is_ok()) && path.contains('/')
    };
    let path = match path.rsplit_once('/') {
        Some((parent, name)) if is_chunk(name) && parent.contains('/') => parent,
        _ => path,
    };
    Key::parse(path).unwrap_or_else(|_| object.clone())
}

/// Sizes of objects; empty if the store cannot list.
struct Sizes(BTreeMap<Key, u64>);

impl Sizes {
    async fn of<'k>(
        session: &Session<'_>,
        requested: impl Iterator<Item = &'k RecordedRead>,
    ) -> Result<Self, QueryError> {
        let mut keys: Vec<Key> = requested.map(|read| read.object.clone()).collect();
        keys.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        keys.dedup();
        match session.fetch.sizes(&keys).await {
            Ok(sizes) => {
                let sizes = keys.into_iter().zip(sizes);
                let sizes = sizes.map(|(key, size)| (key, size.unwrap_or(0)));
                Ok(Self(sizes.collect()))
            }
            Err(error) if error.problem == FetchProblem::Unlistable => Ok(Self(BTreeMap::new())),
            Err(error) => Err(error.into()),
        }
    }

    fn of_object(&self, key: &Key) -> Option<u64> {
        self.0.get(key).copied()
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
}

impl Fetch for Recording<'_> {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        let array = self.fetch.array(node, array)?;
        let whole = self.whole;
        Ok(AnyArray::new(DryArray { array, whole }))
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
            operator: (0, options.operator),
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
        let bytes = cells.map(|cell| count(cell.bytes.len()));
        let bytes = bytes.fold(0, u64::saturating_add);
        let mut counts = lock(&self.counts);
        let counts = counts.entry(operator).or_default();
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
