//! The engine as a module of WebAssembly. The npm package `zvf` in `viewer/pkg` is its interface.
//!
//! The module reads objects through a [`Port`](port::ScriptPort) of JavaScript, takes a request as JSON, and answers with
//! JSON and buffers. Everything else, such as merged ranges, shards, seals and codecs, is that of the native reader.

mod answer;
mod info;
mod port;
mod request;

use std::{cell::RefCell, rc::Rc, sync::Arc};

use futures_util::StreamExt;
use js_sys::{Object, Promise, Reflect};
use serde_json::{Value, json};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;
use zvf::{BatchStream, Dataset, Error, LevelId, OpenOptions, Query, QueryReport};
use zvf_model::error_chain::error_chain;

use answer::Answer;
use port::{PortObjects, ScriptPort};
use request::Request;

/// Memory budget of a store unless it is opened with another: a module has at most 4 GiB of memory.
const BUDGET: u64 = 256 << 20;
/// Size of the cache of decoded cells.
const CACHE: u64 = 64 << 20;

#[wasm_bindgen(raw_module = "./panic.js")]
extern "C" {
    /// Tells the callers that the module has ended.
    fn panicked(sentence: &str);
}

/// Prepares the module. JavaScript calls it once.
#[wasm_bindgen(start)]
pub fn start() {
    // There are no threads to which work could be left.
    zvf_store::compute_alone();
    std::panic::set_hook(Box::new(|panic| {
        panicked(&format!("the engine of zvf has a defect: {panic}"));
    }));
}

/// An open store.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Engine {
    dataset: Dataset,
}

/// A running query whose result arrives in batches.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Batches {
    stream: Rc<RefCell<Option<BatchStream<Error>>>>,
}

/// Opens the store behind a port and returns an [`Engine`].
#[wasm_bindgen]
pub fn open(port: ScriptPort, options: String) -> Promise {
    future_to_promise(async move {
        let options = open_options(&options).map_err(|text| input_error(&text))?;
        let objects = Arc::new(PortObjects::new(port));
        let store = options
            .from_object_store(objects, "")
            .map_err(|error| thrown("invalid input", &error_chain(&error), None))?;
        let dataset = Dataset::open_caching(store, &options)
            .await
            .map_err(|error| engine_error(&error))?;
        Ok(Engine { dataset }.into())
    })
}

fn open_options(text: &str) -> Result<OpenOptions, String> {
    let mut given = Request::parse(text)?;
    let mut options = OpenOptions::new().budget(BUDGET).cache(CACHE).retries(0);
    if let Some(bytes) = given.whole("memoryBudget")? {
        options = options.budget(bytes);
    }
    if let Some(bytes) = given.whole("cache")? {
        options = options.cache(bytes);
    }
    if let Some(requests) = given.whole("concurrency")? {
        let requests = usize::try_from(requests).map_err(|error| error.to_string())?;
        options = options.concurrency(requests.max(1));
    }
    if let Some(enabled) = given.flag("nodeCopy")? {
        options = options.node_copy(enabled);
    }
    if let Some(enabled) = given.flag("checkSeal")? {
        options = options.seal(enabled);
    }
    given.finish()?;
    Ok(options)
}

#[wasm_bindgen]
impl Engine {
    /// Answers a request by the name of a method of `Store`.
    pub fn call(&self, method: String, request: String, cancelled: Promise) -> Promise {
        let dataset = self.dataset.clone();
        until(cancelled, async move {
            Ok(answer(&dataset, &method, &request).await?.into_js())
        })
    }

    /// Starts a query and returns its [`Batches`].
    pub fn batches(&self, request: String) -> Promise {
        let dataset = self.dataset.clone();
        future_to_promise(async move {
            let mut given = Request::parse(&request).map_err(|text| input_error(&text))?;
            let options = given.batch_options().map_err(|text| input_error(&text))?;
            let query = query(&dataset, given).await?;
            let stream = dataset.stream(&query, options);
            let batches = Batches {
                stream: Rc::new(RefCell::new(Some(stream))),
            };
            Ok(batches.into())
        })
    }
}

#[wasm_bindgen]
impl Batches {
    /// Returns the next batch; `undefined` after the last.
    pub fn next(&self, cancelled: Promise) -> Promise {
        let slot = Rc::clone(&self.stream);
        until(cancelled, async move {
            // Taken for the time of the call, so that a second call finds the stream in use.
            let Some(mut stream) = slot.borrow_mut().take() else {
                return Ok(JsValue::UNDEFINED);
            };
            match stream.next().await {
                None => Ok(JsValue::UNDEFINED),
                Some(Err(error)) => Err(engine_error(&error)),
                Some(Ok(mut batch)) => {
                    let report = stream
                        .report()
                        .cloned()
                        .unwrap_or_else(QueryReport::default);
                    batch.notes.extend(report.notes);
                    batch.skipped.extend(report.skipped);
                    *slot.borrow_mut() = Some(stream);
                    Ok(Answer::of_result(batch)
                        .map_err(|text| thrown("over budget", &text, None))?
                        .into_js())
                }
            }
        })
    }
}

/// Runs work until it ends or `cancelled` is rejected, whose reason is then the error. Dropping the work aborts its
/// requests.
fn until(
    cancelled: Promise,
    work: impl Future<Output = Result<JsValue, JsValue>> + 'static,
) -> Promise {
    let cancelled = wasm_bindgen_futures::JsFuture::from(cancelled);
    future_to_promise(async move {
        let work = Box::pin(work);
        match futures_util::future::select(work, cancelled).await {
            futures_util::future::Either::Left((done, _)) => done,
            futures_util::future::Either::Right((reason, _)) => reason,
        }
    })
}

async fn answer(dataset: &Dataset, method: &str, request: &str) -> Result<Answer, JsValue> {
    let input = |text: String| input_error(&text);
    let failed = |error: Error| engine_error(&error);
    let mut given = Request::parse(request).map_err(input)?;
    if method == "info" {
        given.finish().map_err(input)?;
        return Ok(info::store(dataset).await.map_err(failed)?.into());
    }
    if ["attributes", "groups", "range"].contains(&method) {
        let level = given.level().map_err(input)?;
        let name = given.text("attribute").map_err(input)?;
        given.finish().map_err(input)?;
        return match (method, name) {
            ("attributes", _) => info::attributes(dataset, level.unwrap_or(LevelId::FULL)).await,
            ("groups", _) => info::groups(dataset, level.unwrap_or(LevelId::FULL)).await,
            (_, Some(name)) => info::range(dataset, level, &name).await,
            (_, None) => return Err(input_error("range needs the name of an attribute")),
        }
        .map(Answer::from)
        .map_err(failed);
    }
    let query = query(dataset, given).await?;
    match method {
        "query" => {
            let mut found = dataset.query(&query).await.map_err(failed)?;
            if let Some(zvf::Region::Box(bbox)) = &query.region
                && found.positions.is_empty()
            {
                found.notes.extend(bbox.why_empty(dataset.root()));
            }
            Answer::of_result(found).map_err(|text| thrown("over budget", &text, None))
        }
        "count" => {
            let counts = dataset.count(&query).await.map_err(failed)?;
            Ok(json!({
                "level": counts.level.number(),
                "vertices": counts.vertices,
                "parts": counts.parts,
                "objects": counts.objects,
                "links": counts.links,
                "levels": answer::levels(&counts.levels),
                "skipped": answer::skipped(&counts.skipped),
                "notes": counts.notes,
            })
            .into())
        }
        "explain" => {
            let plan = dataset.explain(&query).await.map_err(failed)?;
            let operators = plan.operators.iter().map(|operator| {
                json!({
                    "depth": operator.depth,
                    "name": operator.name,
                    "details": operator.details,
                    "level": operator.level.number(),
                    "requests": operator.requests,
                    "roundTrips": operator.round_trips,
                    "bytes": operator.bytes,
                })
            });
            Ok(json!({
                "requests": plan.requests(),
                "bytes": plan.bytes(),
                "atMost": plan.at_most,
                "levels": answer::levels(&plan.levels),
                "operators": operators.collect::<Vec<Value>>(),
                "notes": plan.notes,
            })
            .into())
        }
        _ => Err(input_error(&format!("there is no method {method}"))),
    }
}

/// Builds the query of a request, with the numbers of the groups that it names.
async fn query(dataset: &Dataset, mut given: Request) -> Result<Query, JsValue> {
    let names = given.group_names().map_err(|text| input_error(&text))?;
    let mut query = given.query().map_err(|text| input_error(&text))?;
    if !names.is_empty() {
        let numbers = dataset
            .groups_named(LevelId::FULL, &names)
            .await
            .map_err(|error| engine_error(&error))?;
        query.groups.get_or_insert_default().extend(numbers);
    }
    Ok(query)
}

/// Converts a count to a number of JavaScript, which is exact up to 2^53.
#[expect(
    clippy::cast_precision_loss,
    reason = "JavaScript has no other numbers in JSON"
)]
fn to_number(count: u64) -> f64 {
    count as f64
}

fn input_error(text: &str) -> JsValue {
    thrown("invalid input", text, None)
}

fn engine_error(error: &Error) -> JsValue {
    use zvf::ErrorKind as Kind;
    let kind = match error.kind() {
        Kind::Damaged => "damaged",
        Kind::Unsupported => "unsupported",
        Kind::OverBudget => "over budget",
        Kind::NotFound => "not found",
        Kind::Conflict => "conflict",
        Kind::InvalidInput => "invalid input",
        Kind::Interrupted => "interrupted",
        _ => "unavailable",
    };
    let key = error.key().map(ToString::to_string);
    thrown(kind, &error_chain(error), key.as_deref())
}

/// Returns an object from which the package makes a `ZvfError`.
fn thrown(kind: &str, message: &str, key: Option<&str>) -> JsValue {
    let object = Object::new();
    for (name, text) in [
        ("kind", Some(kind)),
        ("message", Some(message)),
        ("key", key),
    ] {
        if let Some(text) = text {
            // Setting a member of a plain object does not fail.
            let _ = Reflect::set(&object, &name.into(), &text.into());
        }
    }
    object.into()
}
