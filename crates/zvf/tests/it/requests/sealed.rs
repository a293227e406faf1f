//! Queries of sealed stores make the requests of the same stores without an inventory, in as many
//! round trips, and one for each leaf of the inventory that is not in the root.

use core::time::Duration;

use tokio::time::Instant;
use zvf::{Dataset, Design, Geometry, GeometryKind, NumericColumn, OpenOptions, Query, Store};
use zvf_query::geometry::{Bbox, Position};
use zvf_store::SimulatedNetwork;

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
    let points = Geometry::new(NumericColumn::float64(2, vertices));
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
    zvf::create(&store, points, design, &options).await.unwrap();
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
