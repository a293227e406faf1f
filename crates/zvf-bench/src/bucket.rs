//! The cost of queries in a bucket with a latency of 30 ms and a bandwidth of 80 MB/s: requests,
//! bytes, dependent round trips, and seconds of a virtual clock.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::{runtime::Runtime, time::Instant};
use zvf::{Bbox, Clip, CreateOptions, Dataset, Mode, OpenOptions, Predicate, Query, QueryResult};
use zvf_store::SimulatedNetwork;

use crate::{
    data::{Data, SHARES, Workload},
    floor::{Floor, column_bytes},
    worker::{FILTER, StoreForm},
};

const LATENCY: Duration = Duration::from_millis(30);
const BANDWIDTH: u64 = 80_000_000;

/// A query, and the query that the open dataset runs before it.
struct NamedQuery {
    name: String,
    warm: Option<Query>,
    query: Query,
}

/// The cost of a query.
pub(crate) struct Cost {
    pub(crate) query: String,
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    /// Bytes of the result.
    pub(crate) result: u64,
    pub(crate) vertices: usize,
    /// The least that any reader of the store transfers.
    pub(crate) floor: Floor,
    /// Dependent round trips, including opening.
    pub(crate) rounds: u64,
    pub(crate) seconds: f64,
}

impl Cost {
    fn json(&self) -> Value {
        json!({
            "query": self.query,
            "requests": self.requests,
            "bytes": self.bytes,
            "result": self.result,
            "vertices": self.vertices,
            "chunks": self.floor.chunks,
            "floor": {"requests": self.floor.requests, "bytes": self.floor.bytes},
            "rounds": self.rounds,
            "seconds": self.seconds,
        })
    }

    fn amplification(&self) -> f64 {
        self.bytes as f64 / self.result.max(1) as f64
    }
}

/// A limit on the cost of a query.
pub(crate) struct Bound {
    pub(crate) query: String,
    pub(crate) what: &'static str,
    pub(crate) value: f64,
    pub(crate) max: f64,
    /// The value of a reader that knows in advance which cells contain the result.
    pub(crate) floor: f64,
}

impl Bound {
    pub(crate) fn is_met(&self) -> bool {
        self.value <= self.max
    }
}

/// Prints the costs of all queries of a kind in each of `wanted` as JSON.
pub(crate) fn print(data: &Data, wanted: &[StoreForm], folder: &Path) -> Result<()> {
    let mut forms = Vec::new();
    for &form in wanted {
        let costs = measure(data, form, folder)?;
        let bounds = bounds(&costs, data.kind, form).into_iter().map(|bound| {
            json!({
                "query": bound.query,
                "what": bound.what,
                "value": bound.value,
                "most": bound.max,
                "floor": bound.floor,
                "met": bound.is_met(),
            })
        });
        forms.push(json!({
            "form": form.name(),
            "queries": costs.iter().map(Cost::json).collect::<Vec<_>>(),
            "bounds": bounds.collect::<Vec<_>>(),
        }));
    }
    let (kind, vertices) = (data.kind.name(), data.positions.len());
    println!(
        "{}",
        json!({"kind": kind, "vertices": vertices, "forms": forms})
    );
    Ok(())
}

/// Writes a store and runs each query on a newly opened dataset.
pub(crate) fn measure(data: &Data, form: StoreForm, folder: &Path) -> Result<Vec<Cost>> {
    let path = folder.join(format!("{}-{}.zv", data.kind.name(), form.name()));
    let address = path.to_str().context("a path that is not text")?;
    let mut design = data.design();
    form.apply(&mut design);
    let options = CreateOptions::default().seal(form.is_sealed());
    let create = async { zvf::create(address, data.geometry().build()?, design, &options).await };
    still()?.block_on(create)?;
    let queries = queries(data)?.into_iter();
    let costs = queries
        .map(|query| cost(address, query, form.reads_rows()))
        .collect();
    std::fs::remove_dir_all(&path)?;
    costs
}

/// Creates a runtime whose clock advances when all tasks wait.
fn still() -> Result<Runtime> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    Ok(runtime.enable_all().start_paused(true).build()?)
}

fn queries(data: &Data) -> Result<Vec<NamedQuery>> {
    let mut queries = Vec::new();
    let mut add = |name: &str, warm: Option<Query>, query: Query| {
        let name = name.to_owned();
        queries.push(NamedQuery { name, warm, query });
    };
    let modes: &[Mode] = match data.kind {
        Workload::Points => &[Mode::Clip],
        _ => &[Mode::Clip, Mode::Touch],
    };
    for (name, share) in SHARES {
        let corners = data.boxes(share);
        let boxes = corners
            .iter()
            .map(|[low, high]| Bbox::new(low, high))
            .collect::<Result<Vec<_>, _>>()?;
        let [first, second, ..] = boxes.as_slice() else {
            continue;
        };
        for mode in modes {
            let query = |bbox: &Bbox| Query::new().region(*bbox).mode(*mode).owners(false);
            add(&format!("box {name} %, {mode}"), None, query(first));
            if name == "0.1" {
                let warm = format!("box {name} %, {mode}, warm");
                add(&warm, Some(query(second)), query(first));
            }
        }
    }
    let ids = data.hundred_objects();
    if let ([other, .., id], true) = (ids.as_slice(), data.objects() > 1) {
        let query = |id: i64| Query::new().objects([id]);
        add("one object", None, query(*id));
        add("one object, warm", Some(query(*other)), query(*id));
        add("100 objects", None, Query::new().objects(ids.clone()));
    }
    if data.kind == Workload::Points {
        add(
            "filter",
            None,
            Query::new().filter(Predicate::parse(FILTER)?),
        );
    }
    add("whole", None, Query::new());
    Ok(queries)
}

/// `reads_rows` tells whether single rows of a cell can be read.
fn cost(address: &str, query: NamedQuery, reads_rows: bool) -> Result<Cost> {
    let near = SimulatedNetwork {
        latency: LATENCY,
        bandwidth: BANDWIDTH,
    };
    let (seconds, requests, bytes, result) = run(
        address,
        &query,
        OpenOptions::default().cache(0).simulate_network(near),
    )?;
    // If each round trip takes one second and everything else no time, the clock counts round
    // trips.
    let far = SimulatedNetwork {
        latency: Duration::from_secs(1),
        bandwidth: 0,
    };
    let options = OpenOptions::default()
        .cache(0)
        .simulate_network(far)
        .concurrency(1 << 20);
    let (rounds, ..) = run(address, &query, options)?;
    Ok(Cost {
        requests,
        bytes,
        result: size(&result),
        vertices: result.positions.len(),
        floor: floor(address, query.query, reads_rows)?,
        query: query.name,
        rounds: rounds.round() as u64,
        seconds,
    })
}

/// Returns seconds, requests and bytes of a query, including opening unless another query ran
/// before.
fn run(
    address: &str,
    query: &NamedQuery,
    options: OpenOptions,
) -> Result<(f64, u64, u64, QueryResult)> {
    let options = options.budget(16 << 30);
    still()?.block_on(async {
        let mut start = Instant::now();
        let open = Dataset::open_with(address, &options).await?;
        let mut before = zvf_store::Activity::default();
        if let Some(first) = &query.warm {
            open.query(first).await?;
            start = Instant::now();
            before = open.store().activity();
        }
        let result = open.query(&query.query).await?;
        let after = open.store().activity();
        let requests = after.requests + after.lists - before.requests - before.lists;
        let bytes = after.bytes_read - before.bytes_read;
        Ok((start.elapsed().as_secs_f64(), requests, bytes, result))
    })
}

/// Returns the bytes of the columns of a result.
fn size(result: &QueryResult) -> u64 {
    let columns = [
        &result.vertex,
        &result.fragment,
        &result.link,
        &result.object,
    ]
    .into_iter()
    .flatten()
    .map(column_bytes);
    let parts = result.parts.as_ref();
    let words = parts.map_or(0, |parts| parts.offsets.len() + parts.objects.len())
        + result.links.as_ref().map_or(0, |links| links.ends.len())
        + result.object_ids.as_ref().map_or(0, zvf::ObjectIds::len);
    (result.positions.bytes.len() + columns.sum::<usize>() + words * 8) as u64
}

/// Returns the floor of a query, from the rows of its result that are stored.
fn floor(address: &str, query: Query, reads_rows: bool) -> Result<Floor> {
    // New vertices on the border of a region are in no cell.
    let query = query.clip(Clip::Drop);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (open, result) = runtime.block_on(async {
        let options = OpenOptions::default().budget(16 << 30);
        let open = Dataset::open_with(address, &options).await?;
        let result = open.query(&query).await?;
        Ok::<_, zvf::Error>((open, result))
    })?;
    let shape = &open.root().chunk_shape;
    Floor::of(&result, Path::new(address), shape, reads_rows)
}

/// Returns the limits on the costs of queries in a bucket, with the measured values.
pub(crate) fn bounds(costs: &[Cost], kind: Workload, form: StoreForm) -> Vec<Bound> {
    let mut bounds = Vec::new();
    for cost in costs {
        let mut add = |what: &'static str, value: f64, max: f64, floor: f64| {
            let query = cost.query.clone();
            bounds.push(Bound {
                query,
                what,
                value,
                max,
                floor,
            });
        };
        let query = cost.query.as_str();
        let is_warm = query.ends_with("warm");
        let (requests, bytes) = (cost.requests as f64, cost.bytes as f64);
        let floor = &cost.floor;
        let (floor_requests, floor_bytes) = (floor.requests as f64, floor.bytes as f64);
        let floor_amplification = floor_bytes / cost.result.max(1) as f64;
        let chunks = floor.chunks.max(1) as f64;
        if !is_warm && (query.starts_with("box") || query == "one object") {
            // One round trip opens the store.
            add("rounds", cost.rounds as f64, 5.0, 2.0);
        }
        if kind == Workload::Streamlines && query.starts_with("one object") {
            let (max, max_bytes) = if is_warm { (4.0, 20e3) } else { (12.0, 150e3) };
            add("requests", requests, max, floor_requests);
            add("bytes", bytes, max_bytes, floor_bytes);
        }
        let amplification = if cost.result > 1_000_000 { 2.0 } else { 3.0 };
        if query == "box 0.1 %, clip" {
            add("requests", requests, 40.0, floor_requests);
            add(
                "amplification",
                cost.amplification(),
                amplification,
                floor_amplification,
            );
        }
        // With cached metadata, the cost does not depend on the number of chunks.
        if query == "box 0.1 %, touch, warm" {
            let max = if form == StoreForm::Sharded { 0.2 } else { 2.0 };
            add(
                "requests per chunk",
                requests / chunks,
                max,
                floor_requests / chunks,
            );
        }
        if query == "box 0.1 %, touch" {
            add(
                "amplification",
                cost.amplification(),
                3.0,
                floor_amplification,
            );
        }
    }
    bounds
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, env, fs};

    use super::*;

    /// The recorded costs by kind, form and query: requests, round trips and bytes.
    const RECORDED_COSTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/costs.json");

    /// Requests, bytes and round trips are deterministic, so none may grow unnoticed. Bytes may
    /// grow by 2 %, because the compression library may change.
    #[test]
    fn queries_cost_no_more_than_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let mut now = BTreeMap::new();
        for kind in Workload::ALL {
            let data = Data::new(kind, 20_000);
            for form in [StoreForm::Plain, StoreForm::Bare, StoreForm::Sharded] {
                for cost in measure(&data, form, folder.path()).unwrap() {
                    let name = format!("{} {} {}", kind.name(), form.name(), cost.query);
                    let floor = &cost.floor;
                    assert!(floor.requests <= cost.requests, "{name}");
                    assert!(floor.bytes <= cost.bytes, "{name}");
                    now.insert(name, [cost.requests, cost.rounds, cost.bytes]);
                }
            }
        }
        if env::var_os("ZVF_UPDATE_SNAPSHOTS").is_some() {
            fs::write(RECORDED_COSTS, format!("{:#}\n", json!(now))).unwrap();
        }
        let kept: Value =
            serde_json::from_str(&fs::read_to_string(RECORDED_COSTS).unwrap()).unwrap();
        assert_eq!(kept.as_object().unwrap().len(), now.len());
        for (name, [requests, rounds, bytes]) in now {
            let [max_requests, max_rounds, max_bytes] =
                [0, 1, 2].map(|at| kept[&name][at].as_u64().unwrap());
            assert!(
                requests <= max_requests,
                "{name}: {requests} requests, not {max_requests}"
            );
            assert!(
                rounds <= max_rounds,
                "{name}: {rounds} round trips, not {max_rounds}"
            );
            let max = max_bytes + max_bytes / 50;
            assert!(bytes <= max, "{name}: {bytes} bytes, not {max_bytes}");
        }
    }

    #[test]
    fn values_below_their_bounds_meet_them() {
        let cost = |requests, bytes, rounds| Cost {
            query: "one object".to_owned(),
            requests,
            bytes,
            result: 2000,
            vertices: 100,
            floor: Floor {
                requests: 4,
                bytes: 2000,
                chunks: 2,
            },
            rounds,
            seconds: 0.1,
        };
        let met = |cost: Cost| -> Vec<bool> {
            let bounds = bounds(&[cost], Workload::Streamlines, StoreForm::Plain);
            bounds.iter().map(Bound::is_met).collect()
        };
        assert_eq!(met(cost(12, 150_000, 5)), [true, true, true]);
        assert_eq!(met(cost(13, 150_001, 6)), [false, false, false]);
    }
}
