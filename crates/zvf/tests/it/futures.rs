//! Futures move between threads, and a dropped one stops.

use core::time::Duration;

use zvf::{
    CreateOptions, Dataset, Design, Editor, Geometry, GeometryKind, LevelId, MigrateOptions,
    NumericColumn, OpenOptions, OutOfBounds, Profile, PyramidOptions, Query, Store,
    TaskPlanOptions, ValidateOptions,
};
use zvf_store::SimulatedNetwork;

/// Fails to compile for a future that is not `Send`.
fn is_send(_: impl Future + Send) {}

/// No future is polled.
#[test]
fn futures_are_send() {
    let store = Store::create("memory:").unwrap();
    let points = Geometry::new(NumericColumn::float32(3, [0.0; 3]));
    let design = Design::new(GeometryKind::Points);
    let (create, levels) = (CreateOptions::new(), PyramidOptions::new());
    is_send(zvf::create(store.clone(), &points, design, &create));
    is_send(zvf::build_pyramid(store.clone(), &levels));
    is_send(zvf::refresh_pyramid(store.clone(), &levels));
    is_send(zvf::validate(store.clone(), &ValidateOptions::default()));
    is_send(zvf::repair(store.clone(), &ValidateOptions::default()));
    let migrate = MigrateOptions::new(Profile::V09);
    is_send(zvf::migrate(store.clone(), "other.zv", &migrate));
    is_send(Dataset::open(store.clone()));
    is_send(async {
        let dataset = Dataset::open(store.clone()).await.unwrap();
        let query = Query::new();
        dataset.query(&query).await.unwrap();
        dataset.count(&query).await.unwrap();
        dataset.explain(&query).await.unwrap();
        dataset.partitions(&query, 2).await.unwrap();
        dataset.info().await.unwrap();
        dataset.level(LevelId::new(0)).await.unwrap();
        dataset.attributes(LevelId::new(0)).await.unwrap();
        dataset.analyze(&query).await.unwrap();
        let go_on = |_| core::ops::ControlFlow::Continue(());
        dataset.batches(&query, go_on).await.unwrap();
    });
    is_send(async {
        let editor = Editor::open(store.clone()).await.unwrap();
        editor.append(&points, OutOfBounds::Reject).await.unwrap();
        editor.replace(&points, OutOfBounds::Reject).await.unwrap();
        editor.remove(&[1]).await.unwrap();
        editor.remove_rows(None, &[1]).await.unwrap();
        editor.compact().await.unwrap();
    });
    is_send(async {
        let (open, tasks) = (OpenOptions::new(), TaskPlanOptions::default());
        let plan = zvf::plan_pyramid("memory:", &levels, &tasks).await.unwrap();
        plan.run(0, &open).await.unwrap();
        plan.advance(&open).await.unwrap();
        plan.discard(&open).await.unwrap();
    });
}

#[test]
fn a_dropped_query_makes_no_further_requests() {
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().join("points.zv").display().to_string();
    let positions = (0..900_u16).flat_map(|at| [f32::from(at), 0.0, 0.0]);
    let points = Geometry::new(NumericColumn::float32(3, positions));
    let mut design = Design::new(GeometryKind::Points);
    design.chunk_shape = Some(vec![1.0; 3]);
    let create = CreateOptions::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        zvf::create(&address, &points, design, &create)
            .await
            .unwrap();
        let latency = Duration::from_millis(100);
        let options = OpenOptions::new().simulate_network(SimulatedNetwork {
            latency,
            bandwidth: 0,
        });
        let dataset = Dataset::open_with(&address, &options).await.unwrap();
        let query = Query::new();
        let requests = || dataset.store().activity().requests;
        // The third wave of at most 64 requests each begins and does not end.
        let cut = tokio::time::timeout(latency * 5 / 2, dataset.query(&query)).await;
        assert!(cut.is_err());
        let begun = requests();
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(requests(), begun);
        dataset.query(&query).await.unwrap();
        assert!(requests() - begun > 256, "{begun} of {}", requests());
        assert!(begun <= 256, "{begun}");
    });
}
