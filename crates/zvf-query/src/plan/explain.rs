//! What a query would read.

use core::{
    future::{Future, poll_fn},
    task::{Poll, Waker},
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::future::BoxFuture;
use zvf_model::{
    fetch::{AnyArray, CellOf, CellSource, Fetch, FetchError, FetchProblem, Fetched, Port, Wanted},
    key::Key,
    zarr::{Array, Node},
};

use crate::{
    catalog::chunked_array::object_of,
    catalog::level::{LevelCache, Session},
    diagnostics::Diagnostics,
    error::QueryError,
    query::{LevelChoice, Query, Shape},
    result::LevelUse,
    sync::lock,
};

/// What a query would read, found out without reading any of it.
///
/// Metadata are read, and the sizes of objects listed. What is read first is
/// known exactly; what follows from its content is described.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// What each level gives, as in [`QueryResult::levels`](crate::QueryResult::levels). Finding
    /// that out for a budget reads what counting takes, which comes on top.
    pub levels: Vec<LevelUse>,
    /// Whether that is what is given, but for filters and limits, rather than about
    /// that.
    pub is_exact: bool,
    /// What is asked for in the first round trip, by array; of each level.
    pub first: Vec<Reads>,
    /// What is asked for after that, in words, a round trip each.
    pub then: Vec<&'static str>,
    /// Bytes of everything that chunks in question hold: more is not read, unless
    /// paths or links lead out of them. `None` where the store cannot list.
    pub at_most: Option<u64>,
    /// Levels that are behind.
    pub notes: Vec<String>,
}

/// What is asked for of one array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reads {
    /// The array, or the part of a level that has one for each chunk.
    pub array: Key,
    /// Objects.
    pub requests: u64,
    /// Bytes; `None` where the store cannot list.
    pub bytes: Option<u64>,
}

impl Explanation {
    /// Requests of the first round trip.
    pub fn requests(&self) -> u64 {
        self.first.iter().map(|reads| reads.requests).sum()
    }

    /// Bytes of the first round trip.
    pub fn bytes(&self) -> Option<u64> {
        self.first.iter().map(|reads| reads.bytes).sum()
    }
}

impl Session<'_> {
    /// What a query would read.
    ///
    /// # Errors
    ///
    /// [`QueryError`] when the query cannot be asked of the store.
    pub fn explain<'f>(
        &'f self,
        query: &'f Query,
    ) -> BoxFuture<'f, Result<Explanation, QueryError>> {
        Box::pin(async move {
            let diagnostics = Diagnostics::new(query.keep_going);
            let chosen = self.choose(query, &diagnostics).await?;
            let drawing = chosen.drawings.first().map_or(&[][..], Vec::as_slice);
            let (mut asked, mut whole, mut then) = (Vec::new(), Vec::new(), Vec::new());
            for part in drawing {
                let query = part.query(query);
                let of_part = self.first_asked(&query, false).await?;
                let of_whole = self.first_asked(&query, true).await?;
                let more = self.then(&query, of_part.len() < of_whole.len()).await?;
                then.extend(
                    more.into_iter()
                        .filter(|more| !then.contains(more))
                        .collect::<Vec<_>>(),
                );
                asked.extend(of_part);
                whole.extend(of_whole);
            }
            let levels = drawing.iter().map(|part| {
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
            let sizes = Sizes::of(self, asked.iter().chain(&whole)).await?;
            let mut first: BTreeMap<Key, Reads> = BTreeMap::new();
            for (object, parts) in by_object(&asked) {
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
                at_most: at_most.sum(),
            })
        })
    }

    /// What a query of one level asks for before it has read anything; with `whole`,
    /// as if nothing could be read in part.
    async fn first_asked(&self, query: &Query, whole: bool) -> Result<Vec<Asked>, QueryError> {
        let dry = Dry {
            fetch: self.fetch,
            whole,
            asked: Mutex::default(),
            is_over: AtomicBool::new(false),
            metadata: Metadata::default(),
        };
        let levels = LevelCache::default();
        let session = Session {
            fetch: Port::new(&dry),
            layout: self.layout,
            root: self.root,
            levels: &levels,
        };
        let mut query = query.clone();
        query.keep_going = false;
        let outcome = session.dry_run(&query).await;
        let asked = core::mem::take(&mut *lock(&dry.asked));
        match outcome {
            // Nothing was wrong but that nothing is read.
            Err(_) if !asked.is_empty() => Ok(asked),
            other => other.map(|()| asked),
        }
    }

    async fn dry_run(&self, query: &Query) -> Result<(), QueryError> {
        let diagnostics = Diagnostics::new(false);
        let plan = self.resolve(query).await?;
        if let Some(groups) = &query.groups {
            plan.asked_groups(groups, &diagnostics).await?;
        }
        let mut emit = |_| core::ops::ControlFlow::Continue(());
        Box::pin(plan.run(&diagnostics, &mut emit)).await
    }

    async fn then(&self, query: &Query, in_part: bool) -> Result<Vec<&'static str>, QueryError> {
        let plan = self.resolve(query).await?;
        let mut then = Vec::new();
        let is_all_asked = match plan.shape == Shape::Paths && plan.is_everything() {
            true => match plan.schema(true).await? {
                Some(schema) => !plan.all_at_once(&schema)?.is_empty(),
                None => false,
            },
            false => false,
        };
        let named = query.objects.is_some() || query.groups.is_some();
        if query.groups.is_some() {
            then.push("manifests of the members of the groups");
        }
        if plan.shape == Shape::Links && plan.selects_objects() {
            then.push("fragment indexes of the chunks the objects are in, and links between these");
            then.push("their rows there");
        }
        match plan.shape {
            _ if query.nearest.is_some() => {
                then.push("the next nearest chunks, until none that is left holds anything nearer");
            }
            Shape::Links if query.region.is_some() => {
                then.push("vertices at the other ends of links that may come into the region");
            }
            Shape::Paths if query.region.is_some() && !named => {
                then.push("fragment indexes of other chunks that the paths go through");
                then.push("their rows there");
            }
            Shape::Points if !plan.selects_objects() => {
                if in_part {
                    then.push("the rows of the bins that the region touches");
                }
            }
            Shape::Links if plan.is_everything() => then.push("links"),
            Shape::Links => {}
            Shape::Paths if is_all_asked => {}
            Shape::Paths | Shape::Points => {
                then.push("fragment indexes of the chunks that the objects are in");
                then.push("their rows there");
            }
        }
        if !plan.shown.object.is_empty() {
            then.push("attributes of the objects found");
        }
        if query.drill.is_some() {
            then.push("links between the levels");
            then.push("the vertices they lead to");
        }
        Ok(then)
    }
}

/// An object, and how much of it; `None` is all.
type Asked = (Key, Option<u64>);

/// Each object once, with the bytes of its parts.
fn by_object(asked: &[Asked]) -> BTreeMap<&Key, Option<u64>> {
    let mut objects: BTreeMap<&Key, Option<u64>> = BTreeMap::new();
    for (object, part) in asked {
        objects
            .entry(object)
            .and_modify(|parts| *parts = parts.zip(*part).map(|(a, b)| a.saturating_add(b)))
            .or_insert(*part);
    }
    objects
}

/// The array an object belongs to; where each chunk has one, what they are of.
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

/// Sizes of objects.
struct Sizes(BTreeMap<Key, u64>);

impl Sizes {
    async fn of<'k>(
        session: &Session<'_>,
        asked: impl Iterator<Item = &'k Asked>,
    ) -> Result<Self, QueryError> {
        let mut keys: Vec<Key> = asked.map(|(key, _)| key.clone()).collect();
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

/// Reads metadata, and notes down the first cells that are asked for.
struct Dry<'a> {
    fetch: Port<'a>,
    whole: bool,
    asked: Mutex<Vec<Asked>>,
    /// Whether the first round is over: what a plan does about failures does not
    /// count.
    is_over: AtomicBool,
    metadata: Metadata,
}

/// Metadata that somebody waits for, and who goes on when nobody does.
#[derive(Default)]
struct Metadata(Mutex<(u64, Vec<Waker>)>);

impl Metadata {
    async fn count<T>(&self, work: impl Future<Output = T>) -> T {
        lock(&self.0).0 += 1;
        // Given back also where the plan stops waiting.
        let _waiting = Waiting(self);
        work.await
    }

    /// Whether somebody waits; who asks is woken when nobody does.
    fn is_awaited(&self, waker: &Waker) -> bool {
        let mut awaited = lock(&self.0);
        if awaited.0 > 0 {
            awaited.1.push(waker.clone());
        }
        awaited.0 > 0
    }
}

/// One that waits.
struct Waiting<'a>(&'a Metadata);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut awaited = lock(&self.0.0);
        awaited.0 = awaited.0.saturating_sub(1);
        if awaited.0 == 0 {
            awaited.1.drain(..).for_each(Waker::wake);
        }
    }
}

#[derive(Clone, Debug)]
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

impl Fetch for Dry<'_> {
    type Array = DryArray;

    fn array(&self, node: &Key, array: Arc<Array>) -> Result<Self::Array, FetchError> {
        let (array, whole) = (self.fetch.array(node, array)?, self.whole);
        Ok(DryArray { array, whole })
    }

    fn nodes(
        &self,
        keys: &[Key],
    ) -> impl Future<Output = Result<Vec<Option<Node>>, FetchError>> + Send {
        self.metadata.count(self.fetch.nodes(keys))
    }

    fn cells(
        &self,
        wanted: &[Wanted<Self::Array>],
    ) -> impl Future<Output = Vec<Result<Option<Fetched>, FetchError>>> + Send {
        let mut keys = Vec::with_capacity(wanted.len());
        let is_over = self.is_over.load(Ordering::Relaxed);
        let mut asked = lock(&self.asked);
        let before = asked.len();
        for wanted in wanted {
            let part = wanted.part.as_ref();
            let part = part.map(|part| part.end.saturating_sub(part.start));
            match &wanted.cell {
                CellOf::Element(array, element) => {
                    keys.push(array.node().clone());
                    let extents = array.metadata().decoded_shape();
                    let first = element.iter().zip(extents);
                    // Cells are counted, objects are found by items.
                    let first = first.map(|(cell, extent)| cell.saturating_mul(*extent));
                    if let Some(object) = object_of(&array.array, &first.collect::<Vec<_>>()) {
                        asked.push((object, part));
                    }
                }
                CellOf::Child(key) => {
                    keys.push(key.clone());
                    asked.extend(key.metadata().ok().map(|object| (object, None)));
                    asked.extend(key.join_path("c/0").ok().map(|object| (object, None)));
                }
            }
        }
        if is_over {
            asked.truncate(before);
        }
        drop(asked);
        let mut waited = false;
        // Whatever else is asked for side by side gets its turn first, also what has to know
        // metadata before it can ask.
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

    fn children(&self, key: &Key) -> impl Future<Output = Result<Vec<String>, FetchError>> + Send {
        self.metadata.count(self.fetch.children(key))
    }

    fn sizes(
        &self,
        keys: &[Key],
    ) -> impl Future<Output = Result<Vec<Option<u64>>, FetchError>> + Send {
        self.metadata.count(self.fetch.sizes(keys))
    }

    fn budget(&self) -> u64 {
        self.fetch.budget()
    }
}
