//! Queries of sealed stores make the requests of the same stores without an inventory, in as many
//! round trips, and one for each leaf of the inventory that is not in the root. Those of objects and of
//! paths make none for fragment indexes, which saves a round trip where rows are read in part.

use core::{pin::Pin, time::Duration};

use tokio::time::Instant;
use zvf::{
    CellChecksums, CellCompression, Dataset, Design, Editor, Geometry, GeometryBuilder,
    GeometryKind, Mode, NumericColumn, OpenOptions, OutOfBounds, Query, ShardingPolicy, Store,
    ValidateOptions,
};
use zvf_model::key::Key;
use zvf_query::geometry::{Bbox, Position};
use zvf_store::{Read, RowTable, SimulatedNetwork};

use crate::damage::sealed::several_blocks;

/// Virtual time of a round trip: the clock is paused, so that only requests pass time.
const LATENCY: Duration = Duration::from_secs(1);

/// The cost of opening a store and of a query.
#[derive(Debug, PartialEq, Eq)]
struct Cost {
    /// Round trips.
    rounds: u64,
    /// Requested keys, sorted, without the leaves.
    keys: Vec<String>,
    /// Requested leaves of the inventory.
    leaves: usize,
}

async fn create(side: u16, is_sealed: bool) -> Store {
    let vertices = (0..side * side).flat_map(|at| [f64::from(at % side), f64::from(at / side)]);
    let points = Geometry::builder(NumericColumn::float64(2, vertices));
    let mut design = Design::new(GeometryKind::Points);
    design.chunk_shape = Some(vec![1.0, 1.0]);
    design.name = Some("points".to_owned());
    let network = SimulatedNetwork {
        latency: LATENCY,
        bandwidth: 0,
    };
    let options = OpenOptions::default()
        .simulate_network(network)
        .snapshots(false)
        .record_requests(true);
    let store = options.create("memory:").unwrap();
    let options = zvf::CreateOptions::new().seal(is_sealed);
    zvf::create(&store, points.build().unwrap(), design, &options)
        .await
        .unwrap();
    store
}

/// Opens the store and makes the query, once with nothing known.
async fn cost(store: &Store, query: &Query) -> Cost {
    store.take_request_log();
    let start = Instant::now();
    let dataset = Dataset::open(store.clone()).await.unwrap();
    dataset.query(query).await.unwrap();
    let rounds = start.elapsed().as_secs();
    let log = store.take_request_log().into_iter();
    let keys = log.map(|read| read.key.as_str().to_owned());
    let (leaves, mut keys): (Vec<String>, Vec<String>) =
        keys.partition(|key| key.starts_with(".zvf/seal"));
    keys.sort();
    Cost {
        rounds,
        keys,
        leaves: leaves.len(),
    }
}

/// Returns the numbers of leaves that each query requests in a store of this many chunks along both
/// axes.
fn leaves(side: u16) -> Vec<usize> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build();
    runtime.unwrap().block_on(async {
        let plain = create(side, false).await;
        let sealed = create(side, true).await;
        let some = Bbox::new(&[1.5, 1.5], &[3.5, 2.5]).unwrap();
        let place = Position::new(&[2.2, 2.2]).unwrap();
        let queries = [
            Query::new().region(some),
            Query::new().nearest(place, 2),
            Query::new().limit(5),
            Query::new(),
        ];
        let mut leaves = Vec::new();
        for query in &queries {
            let without = cost(&plain, query).await;
            let with = cost(&sealed, query).await;
            assert!(without.rounds > 1, "{without:?}");
            assert_eq!(without.leaves, 0);
            assert_eq!(
                (with.rounds, &with.keys),
                (without.rounds, &without.keys),
                "{query:?}"
            );
            leaves.push(with.leaves);
        }
        leaves
    })
}

#[test]
fn an_inventory_in_the_root_costs_no_request() {
    assert_eq!(leaves(8), [0; 4]);
}

#[test]
fn a_large_inventory_costs_a_request_for_each_leaf_and_no_round_trip() {
    let leaves = leaves(120);
    // Those of the nodes and of the cells that the query reads.
    assert!(leaves[0] >= 1 && leaves[0] <= 3, "{leaves:?}");
    assert!(leaves[1] >= 1 && leaves[1] <= 3, "{leaves:?}");
    assert!(leaves[3] >= leaves[0], "{leaves:?}");
}

#[test]
fn validation_reads_no_object_again_for_the_inventory() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build();
    runtime.unwrap().block_on(async {
        let mut reads = Vec::new();
        for is_sealed in [false, true] {
            let store = create(8, is_sealed).await;
            store.take_request_log();
            let report = zvf::validate(store.clone(), &ValidateOptions::default()).await;
            assert!(report.unwrap().is_ok());
            let log = store.take_request_log().into_iter();
            let mut keys: Vec<String> = log.map(|read| read.key.as_str().to_owned()).collect();
            keys.sort();
            reads.push(keys);
        }
        assert!(reads[0].len() > 64, "{reads:?}");
        assert_eq!(reads[0], reads[1]);
    });
}

/// Paths through many chunks, with an attribute: 40 KiB of positions in some hundred cells.
fn paths() -> (GeometryBuilder, Design) {
    let mut rows = Vec::new();
    for path in 0..200_u16 {
        for step in 0..17_u16 {
            let turn = f32::from(path * 7 % 50 + step);
            rows.extend([turn, f32::from(path % 40), f32::from((path + step) % 30)]);
        }
    }
    let mut geometry = Geometry::builder(NumericColumn::float32(3, rows))
        .paths((0..=200).map(|path| path * 17).collect(), None);
    let values: Vec<f32> = (0..200 * 17_u16).map(f32::from).collect();
    let values = NumericColumn::float32(1, values);
    geometry.vertex = vec![zvf::Column::new("value", values)];
    let mut design = Design::new(GeometryKind::Streamlines);
    design.chunk_shape = Some(vec![12.0; 3]);
    (geometry, design)
}

/// Opens the store and makes the query with nothing known: round trips, requests, and bytes.
async fn total(store: &Store, query: &Query) -> [u64; 3] {
    let before = store.activity();
    let start = Instant::now();
    let dataset = Dataset::open(store.clone()).await.unwrap();
    dataset.query(query).await.unwrap();
    let rounds = start.elapsed().as_secs();
    let after = store.activity();
    let requests = (after.requests + after.lists) - (before.requests + before.lists);
    [rounds, requests, after.bytes_read - before.bytes_read]
}

#[test]
fn rows_of_compressed_cells_take_one_round_trip_more() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build();
    runtime.unwrap().block_on(async {
        let mut costs = Vec::new();
        for compression in [CellCompression::None, CellCompression::Auto] {
            let network = SimulatedNetwork {
                latency: LATENCY,
                bandwidth: 0,
            };
            let options = OpenOptions::default().simulate_network(network).cache(0);
            let store = options.create("memory:").unwrap();
            let (geometry, design) = several_blocks(compression);
            let options = zvf::CreateOptions::new().seal(true);
            zvf::create(&store, geometry, design, &options)
                .await
                .unwrap();
            let one = total(&store, &Query::new().objects([7])).await;
            let whole = total(&store, &Query::new()).await;
            assert!(one[2] < whole[2] / 2, "{one:?} of {whole:?}");
            costs.push(one);
        }
        let [[rounds, requests, _], [auto_rounds, auto_requests, _]] = costs[..] else {
            panic!("two stores");
        };
        // The first bytes of the positions and values of two chunks locate the blocks.
        assert_eq!(auto_rounds, rounds + 1);
        assert!(
            auto_requests > requests && auto_requests <= requests + 4,
            "{costs:?}"
        );
    });
}

#[test]
fn the_costs_in_the_guide_are_those_of_queries() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build();
    let lines = runtime.unwrap().block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let bbox = Bbox::new(&[3.0, 3.0, 3.0], &[20.0, 9.0, 10.0]).unwrap();
        let place = Position::new(&[20.0, 20.0, 10.0]).unwrap();
        let queries = [
            ("the whole level", Query::new()),
            ("a box", Query::new().region(bbox)),
            ("one object", Query::new().objects([77])),
            ("the ten nearest", Query::new().nearest(place, 10)),
        ];
        let mut stores = Vec::new();
        for is_sealed in [false, true] {
            let network = SimulatedNetwork {
                latency: LATENCY,
                bandwidth: 0,
            };
            let bucket = OpenOptions::default()
                .simulate_network(network)
                .create("memory:")
                .unwrap();
            let path = folder.path().join(is_sealed.to_string());
            let disk = OpenOptions::default()
                .create(path.to_str().unwrap())
                .unwrap();
            for store in [disk, bucket] {
                let (geometry, design) = paths();
                let options = zvf::CreateOptions::new().seal(is_sealed);
                zvf::create(&store, geometry.build().unwrap(), design, &options)
                    .await
                    .unwrap();
                stores.push(store);
            }
        }
        let [disk, bucket, sealed_disk, sealed_bucket] = &stores[..] else {
            panic!("four stores");
        };
        let mut lines = Vec::new();
        for (name, query) in &queries {
            let mut cells = Vec::new();
            for (plain, sealed) in [(disk, sealed_disk), (bucket, sealed_bucket)] {
                let (without, with) = (total(plain, query).await, total(sealed, query).await);
                assert_eq!(without[0], with[0], "round trips of {name}");
                // Row tables replace fragment indexes in a bucket.
                assert!(with[1] <= without[1] && with[2] >= without[2], "{name}");
                let text = |[_, requests, bytes]: [u64; 3]| format!("{requests}, {bytes}");
                cells.extend([text(without), text(with)]);
            }
            lines.push(format!("| {name} | {} |", cells.join(" | ")));
        }
        lines
    });
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    for line in &lines {
        assert!(
            guide.contains(line),
            "docs/security.md lacks:\n{}",
            lines.join("\n")
        );
    }
}

/// Creates a store of [`paths`] whose rows are read in part.
async fn create_paths(is_sealed: bool, sharding: ShardingPolicy) -> Store {
    let network = SimulatedNetwork {
        latency: LATENCY,
        bandwidth: 0,
    };
    let store = OpenOptions::default()
        .simulate_network(network)
        .record_requests(true)
        .create("memory:")
        .unwrap();
    let (geometry, mut design) = paths();
    design.checksums = CellChecksums::Off;
    design.sharding = sharding;
    let options = zvf::CreateOptions::new().seal(is_sealed);
    zvf::create(&store, geometry.build().unwrap(), design, &options)
        .await
        .unwrap();
    store
}

/// The queries that read row tables.
fn queries_of_paths() -> Vec<Query> {
    let few: Vec<i64> = (0..60).collect();
    let mut queries: Vec<Query> = [vec![77], vec![3, 150, 3], (0..90).collect()]
        .map(|ids: Vec<i64>| Query::new().objects(ids))
        .into();
    for (low, high) in [
        ([3.0; 3], [20.0; 3]),
        ([11.0, 0.0, 11.0], [13.0, 40.0, 12.5]),
    ] {
        for mode in [Mode::Clip, Mode::Touch, Mode::Within] {
            let bbox = Bbox::new(&low, &high).unwrap();
            queries.push(Query::new().region(bbox).mode(mode));
            queries.push(Query::new().region(bbox).mode(mode).objects(few.clone()));
        }
    }
    queries
}

/// Compares the results of queries of two stores, and returns for the first query and each of both the
/// round trips and the number of requests for fragment indexes.
fn compare_paths<'s>(
    sealed: &'s Store,
    plain: &'s Store,
) -> Pin<Box<dyn Future<Output = [[u64; 2]; 2]> + 's>> {
    Box::pin(async move {
        let mut first = None;
        for query in queries_of_paths() {
            let mut results = Vec::new();
            let costs = [sealed, plain].map(async |store: &Store| {
                store.take_request_log();
                let start = Instant::now();
                let dataset = Dataset::open(store.clone()).await.unwrap();
                let result = dataset.query(&query).await.unwrap();
                let rounds = start.elapsed().as_secs();
                let log = store.take_request_log().into_iter();
                let indexes = log.filter(|read| read.key.as_str().contains("/vertex_fragments/"));
                (format!("{result:?}"), [rounds, indexes.count() as u64])
            });
            let mut numbers = [[0; 2]; 2];
            for (cost, numbers) in costs.into_iter().zip(&mut numbers) {
                let (result, cost) = cost.await;
                results.push(result);
                *numbers = cost;
            }
            assert_eq!(results[0], results[1], "{query:?}");
            assert!(numbers[0][0] <= numbers[1][0], "{query:?}: {numbers:?}");
            first.get_or_insert(numbers);
        }
        first.unwrap()
    })
}

/// Runs a test with virtual time.
fn with_virtual_time(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build();
    runtime.unwrap().block_on(test);
}

/// Opening; manifests and row tables; rows. Without an inventory there are fragment indexes before rows.
#[test]
fn the_rows_of_fragments_arrive_beside_the_manifests() {
    with_virtual_time(async {
        let sealed = create_paths(true, ShardingPolicy::None).await;
        let plain = create_paths(false, ShardingPolicy::None).await;
        let [with, without] = compare_paths(&sealed, &plain).await;
        assert_eq!([with[0], without[0]], [3, 4]);
        assert!(with[1] == 0 && without[1] > 0, "{with:?} {without:?}");
    });
}

#[test]
fn changes_keep_row_tables() {
    with_virtual_time(async {
        let stores = [
            create_paths(true, ShardingPolicy::None).await,
            create_paths(false, ShardingPolicy::None).await,
        ];
        for store in &stores {
            let editor = Editor::open(store.clone()).await.unwrap();
            let (geometry, _) = paths();
            let geometry = geometry.build().unwrap();
            editor.append(&geometry, OutOfBounds::Reject).await.unwrap();
            editor.remove(&[105, 106, 180]).await.unwrap();
        }
        let [with, without] = compare_paths(&stores[0], &stores[1]).await;
        assert!(with[1] == 0 && without[1] > 0, "{with:?} {without:?}");
        assert_eq!(differences(&stores[0]).await, [""; 0]);
    });
}

#[test]
fn sealing_a_store_writes_row_tables() {
    for sharding in [ShardingPolicy::None, ShardingPolicy::Auto] {
        with_virtual_time(async {
            let sealed = create_paths(false, sharding.clone()).await;
            let plain = create_paths(false, sharding).await;
            zvf::seal(sealed.clone()).await.unwrap();
            let [with, without] = compare_paths(&sealed, &plain).await;
            assert!(with[1] < without[1], "{with:?} {without:?}");
        });
    }
}

/// Returns the objects with findings that differ from the inventory.
async fn differences(store: &Store) -> Vec<String> {
    let options = ValidateOptions::default();
    let report = zvf::validate(store.clone(), &options).await.unwrap();
    let findings = report.findings.into_iter();
    let differences = findings.filter(|finding| finding.rule.code == "ZV-L3-123");
    differences.map(|finding| finding.path).collect()
}

/// An object that is put without a table has none, and its index is read.
#[test]
fn an_index_without_a_row_table_is_read_and_a_wrong_table_is_found() {
    with_virtual_time(async {
        let sealed = create_paths(true, ShardingPolicy::None).await;
        let plain = create_paths(false, ShardingPolicy::None).await;
        let files = sealed.list_all(&Key::root(), usize::MAX).await.unwrap();
        let is_index = |name: &str| name.starts_with("0/vertex_fragments/c/");
        let names: Vec<Key> = files
            .into_iter()
            .map(|file| file.name)
            .filter(|name| is_index(name))
            .map(|name| Key::parse(&name).unwrap())
            .collect();
        let mut tables: Vec<Option<&[u8]>> = vec![None, Some(&[1, 1]), Some(&[0x80])];
        while let Some(lengths) = tables.pop() {
            let mut transaction = sealed.begin().await.unwrap();
            let mut objects = Vec::new();
            for key in &names {
                let bytes = sealed.read_one(Read::full(key.clone())).await.unwrap();
                objects.push((key.clone(), bytes.unwrap()));
                let table = lengths.map(|lengths| {
                    let mut table = RowTable::new(key.clone());
                    table.push(None, lengths);
                    table.into_object().unwrap()
                });
                objects.extend(table);
            }
            transaction.put_many(objects).await.unwrap();
            let root = transaction.root().clone();
            transaction.commit(&root).await.unwrap();
            let found = differences(&sealed).await;
            let mut expected: Vec<String> = Vec::new();
            if lengths.is_some() {
                expected.extend(names.iter().map(|key| key.as_str().to_owned()));
            }
            assert_eq!(found, expected, "{lengths:?}");
            if lengths == Some(&[0x80]) {
                let dataset = Dataset::open(sealed.clone()).await.unwrap();
                let query = Query::new().objects([77]);
                let error = dataset.query(&query).await.unwrap_err();
                let error = zvf_model::error_chain::error_chain(&error);
                assert!(error.contains("0/vertex_fragments"), "{error}");
            }
        }
        let [with, without] = compare_paths(&sealed, &plain).await;
        assert_eq!(with, without);
        zvf::seal(sealed.clone()).await.unwrap();
        let [with, _] = compare_paths(&sealed, &plain).await;
        assert_eq!((with[1], differences(&sealed).await), (0, Vec::new()));
    });
}
