//! Readers beside writers: every result is of one transaction.

mod model;
pub(crate) mod random;

use core::{ops::ControlFlow, time::Duration};

use zvf::{
    Dataset, Editor, Error, Follow, LevelChoice, OpenOptions, OutOfBounds, Query, StateError,
};
use zvf_query::QueryError;
use zvf_store::SimulatedNetwork;

use self::model::{Content, Model, content};
use crate::block_on;

fn is_changed(error: &Error) -> bool {
    matches!(error.cause(), Some(StateError::Changed { .. }))
}

/// Returns options for a bucket in memory whose objects are all recent.
fn bucket() -> OpenOptions {
    let network = SimulatedNetwork {
        latency: Duration::ZERO,
        bandwidth: 0,
    };
    OpenOptions::default()
        .simulate_network(network)
        .settled_after(Duration::MAX)
        .record_requests(true)
}

/// Removes object 0, compacts, and appends object 99. Compacting moves the fragments of the others.
async fn change(editor: &Editor, model: &mut Model) {
    editor.remove(&[0]).await.unwrap();
    editor.compact().await.unwrap();
    model.remove(0);
    let geometry = model.add(&[99]);
    editor
        .append(&geometry.build().unwrap(), OutOfBounds::Reject)
        .await
        .unwrap();
}

fn object(id: i64) -> Query {
    Query::new().objects([id])
}

async fn run(dataset: &Dataset, query: &Query) -> Content {
    content(&dataset.query(query).await.unwrap())
}

#[test]
fn an_open_dataset_never_mixes_two_transactions() {
    for cache in [0, 64 << 20] {
        for follow in [Follow::Never, Follow::WhenGone, Follow::Always] {
            block_on(async {
                let folder = tempfile::tempdir().unwrap();
                let address = folder.path().join("a.zv").display().to_string();
                let mut model = Model::create(&address, 8).await;
                let options = OpenOptions::default().cache(cache).follow(follow);
                let dataset = Dataset::open_with(&address, &options).await.unwrap();
                let (before, query) = (model.content(), object(3));
                assert_eq!(run(&dataset, &query).await, before.only(&[3]));
                let editor = Editor::open(&address).await.unwrap();
                change(&editor, &mut model).await;
                let after = model.content();
                assert!(!dataset.is_current().await.unwrap());
                match (dataset.query(&query).await, follow) {
                    (Ok(result), _) => assert_eq!(content(&result), after.only(&[3])),
                    (Err(error), _) => match (error.cause(), follow) {
                        (Some(StateError::Changed { address: told }), Follow::Never) => {
                            assert_eq!(*told, address);
                        }
                        _ => panic!("{follow:?}: {error:?}"),
                    },
                }
                let mut dataset = dataset;
                dataset.reload().await.unwrap();
                assert!(dataset.is_current().await.unwrap());
                assert_eq!(dataset.transaction(), 3);
                assert_eq!(run(&dataset, &Query::new()).await, after);
            });
        }
    }
}

#[test]
fn without_checks_the_same_change_mixes_transactions() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let address = folder.path().join("a.zv").display().to_string();
        let mut model = Model::create(&address, 8).await;
        let options = OpenOptions::default().cache(0).snapshots(false);
        let dataset = Dataset::open_with(&address, &options).await.unwrap();
        let before = run(&dataset, &object(3)).await;
        let editor = Editor::open(&address).await.unwrap();
        change(&editor, &mut model).await;
        let result = dataset.query(&object(3)).await;
        assert!(result.is_err() || content(&result.unwrap()) != before);
    });
}

#[test]
fn cached_results_stay_those_of_the_opened_transaction() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let address = folder.path().join("a.zv").display().to_string();
        let mut model = Model::create(&address, 8).await;
        let dataset = Dataset::open(&address).await.unwrap();
        let (before, query) = (model.content(), object(0));
        assert_eq!(run(&dataset, &query).await, before.only(&[0]));
        let editor = Editor::open(&address).await.unwrap();
        change(&editor, &mut model).await;
        assert_eq!(run(&dataset, &query).await, before.only(&[0]));
        assert_eq!(dataset.transaction(), 0);
        let absent = dataset.query(&object(99)).await.unwrap_err();
        assert!(absent.cause::<QueryError>().is_some(), "{absent:?}");
        assert_eq!(run(&dataset, &Query::new()).await, before);
        // Counting reads the store again.
        dataset.info().await.unwrap();
        assert_eq!(dataset.transaction(), 3);
        assert_eq!(run(&dataset, &Query::new()).await, model.content());
        let gone = dataset.query(&query).await.unwrap_err();
        assert!(gone.cause::<QueryError>().is_some(), "{gone:?}");
    });
}

#[test]
fn a_stream_ends_with_an_error_once_its_transaction_is_gone() {
    for shared in [None, Some(OpenOptions::default()), Some(bucket())] {
        let folder = tempfile::tempdir().unwrap();
        let address = folder.path().join("a.zv").display().to_string();
        let store = shared.map(|options| options.create("memory:").unwrap());
        let (mut model, dataset, editor) = block_on(async {
            let options = OpenOptions::default().cache(0);
            match &store {
                None => {
                    let model = Model::create(&address, 40).await;
                    let dataset = Dataset::open_with(&address, &options).await.unwrap();
                    (model, dataset, Editor::open(&address).await.unwrap())
                }
                Some(store) => {
                    let model = Model::create(store, 40).await;
                    let dataset = Dataset::open_with(store, &options).await.unwrap();
                    (model, dataset, Editor::open(store).await.unwrap())
                }
            }
        });
        let before = model.content();
        let mut batches = Vec::new();
        let outcome = block_on(dataset.batches(&Query::new(), |batch| {
            batches.push(content(&batch));
            if batches.len() == 1 {
                // On another thread, because this one runs the query.
                std::thread::scope(|scope| {
                    let change = scope.spawn(|| block_on(change(&editor, &mut model)));
                    change.join().unwrap();
                });
            }
            ControlFlow::Continue(())
        }));
        for batch in &batches {
            assert!(before.contains(batch), "a batch is not of the opened state");
        }
        match outcome {
            Err(error) if is_changed(&error) => {}
            // Everything was read before the change.
            Ok(_) => assert_eq!(batches.into_iter().sum::<Content>(), before),
            Err(error) => panic!("{error:?}"),
        }
        let after = block_on(run(&dataset, &Query::new()));
        assert_eq!(after, model.content());
    }
}

#[test]
fn a_bucket_takes_a_request_only_for_recent_objects() {
    block_on(async {
        let recent = bucket().create("memory:").unwrap();
        Model::create(&recent, 4).await;
        recent.take_request_log();
        let dataset = Dataset::open(&recent).await.unwrap();
        dataset.query(&object(1)).await.unwrap();
        let log = recent.take_request_log();
        let last = log.last().unwrap();
        assert_eq!(last.key.as_str(), "zarr.json", "the check comes last");
        let heads = log.iter().filter(|read| read.key.as_str() == "zarr.json");
        assert_eq!(heads.count(), 2, "one to open and one to check");

        let network = SimulatedNetwork {
            latency: Duration::ZERO,
            bandwidth: 0,
        };
        let settled = OpenOptions::default()
            .simulate_network(network)
            .record_requests(true)
            .create("memory:")
            .unwrap();
        Model::create(&settled, 4).await;
        settled.take_request_log();
        let dataset = Dataset::open(&settled).await.unwrap();
        dataset.query(&object(1)).await.unwrap();
        let log = settled.take_request_log();
        let heads = log.iter().filter(|read| read.key.as_str() == "zarr.json");
        assert_eq!(heads.count(), 1);
    });
}

#[test]
fn metadata_is_that_of_one_transaction() {
    block_on(async {
        let store = OpenOptions::default().create("memory:").unwrap();
        let mut model = Model::create(&store, 8).await;
        let dataset = Dataset::open(&store).await.unwrap();
        let editor = Editor::open(&store).await.unwrap();
        change(&editor, &mut model).await;
        let info = dataset.info().await.unwrap();
        assert_eq!(info.levels[0].vertices, Some(model.content().vertices()));
        assert_eq!(dataset.transaction(), 3, "counting moved on");
        let level = LevelChoice::Number(dataset.levels()[0]);
        let counts = dataset.count(&Query::new().level(level)).await.unwrap();
        assert_eq!(counts.vertices, model.content().vertices());
    });
}

#[test]
fn a_store_created_anew_is_another_state() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.zv");
        let address = path.display().to_string();
        let first = Model::create(&address, 8).await;
        let options = OpenOptions::default().cache(0);
        let dataset = Dataset::open_with(&address, &options).await.unwrap();
        assert_eq!(run(&dataset, &object(3)).await, first.content().only(&[3]));
        // The root of the second store is equal to that of the first, byte by byte.
        let root = std::fs::read(path.join("zarr.json")).unwrap();
        std::fs::rename(&path, folder.path().join("b.zv")).unwrap();
        let second = Model::create_at(&address, 8, 1).await;
        assert_eq!(std::fs::read(path.join("zarr.json")).unwrap(), root);
        assert_eq!(run(&dataset, &object(3)).await, second.content().only(&[3]));
    });
}
