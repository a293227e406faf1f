//! Atomic creation of stores.

use zvf_model::key::Key;
use zvf_store::{CreateError, Store, TransactionError};

use crate::support::{Killer, Place, block_on, full, key};

const ROOT: &[u8] = br#"{"zarr_format": 3, "node_type": "group", "attributes": {}}"#;

async fn create(store: &Store, text: &'static str) -> Result<(), CreateError> {
    let creation = store.begin_create().await?;
    let own = format!("0/{text}");
    let objects = ["0/a", "0/b/c", &own].map(|at| (key(at), text.into()));
    creation.put_many(objects.to_vec()).await?;
    creation.commit(ROOT).await
}

async fn names(store: &Store) -> Vec<String> {
    let files = store.list_all(&Key::root(), 100).await.unwrap();
    files.into_iter().map(|file| file.name).collect()
}

#[test]
fn a_store_is_created_once() {
    Place::each(|place, killer| {
        let store = place.open(killer);
        block_on(async {
            create(&store, "first").await.unwrap();
            assert_eq!(
                names(&store).await,
                ["0/a", "0/b/c", "0/first", "zarr.json"]
            );
            let error = create(&store, "second").await.unwrap_err();
            assert!(matches!(error, CreateError::AlreadyExists), "{error:?}");
            let error = store.begin_create_replacing_leftovers().await.unwrap_err();
            assert!(matches!(error, CreateError::AlreadyExists), "{error:?}");
            let root = store.read_one(full("zarr.json")).await.unwrap();
            assert_eq!(root.unwrap(), ROOT);
        });
        if cfg!(unix)
            && let Some(path) = place.path()
        {
            assert!(!path.join(".zvf").exists(), "something is left");
        }
    });
}

#[test]
fn existing_objects_are_not_touched() {
    Place::each(|place, killer| {
        let store = place.open(killer);
        block_on(async {
            store
                .put_many(vec![(key("0/mine"), "x".into())])
                .await
                .unwrap();
            for error in [
                store.begin_create().await.unwrap_err(),
                store.begin_create_replacing_leftovers().await.unwrap_err(),
            ] {
                assert!(
                    matches!(&error, CreateError::NotEmpty(name) if name == "0"),
                    "{error:?}"
                );
            }
            assert_eq!(names(&store).await, ["0/mine"]);
        });
        if let Some(path) = place.path() {
            assert!(!path.join(".zvf").exists(), "a folder of others got a lock");
        }
    });
}

#[test]
fn a_crash_during_creation_leaves_no_store_or_a_complete_one() {
    Place::each(|place, killer| {
        let (mut none, mut there) = (0, 0);
        for at in 1.. {
            let place = place.another(killer);
            let survived = killer
                .survives(at, create(&place.open(killer), "dead"))
                .is_some();
            let store = place.open(killer);
            block_on(async {
                if store.read_one(full("zarr.json")).await.unwrap().is_some() {
                    there += 1;
                    let error = create(&store, "again").await.unwrap_err();
                    assert!(matches!(error, CreateError::AlreadyExists), "{error:?}");
                    assert_eq!(names(&store).await, ["0/a", "0/b/c", "0/dead", "zarr.json"]);
                    store.sweep(core::time::Duration::ZERO).await.unwrap();
                    let mark = store.read_one(full(".zvf/creating")).await.unwrap();
                    assert_eq!(mark, None);
                    return;
                }
                none += 1;
                create_again(&place, &store).await;
                let read = store.read_one(full("0/b/c")).await.unwrap();
                assert_eq!(read.unwrap(), "alive");
                assert_eq!(
                    names(&store).await,
                    ["0/a", "0/alive", "0/b/c", "zarr.json"]
                );
            });
            if survived {
                break;
            }
        }
        assert!(none > 6 && there > 2, "{none} {there}");
    });
}

/// Creates the store after a crash: directly on disk, and in a bucket by replacing leftovers.
async fn create_again(place: &Place, store: &Store) {
    match (place, create(store, "alive").await) {
        (_, Ok(())) => {}
        (Place::Memory(_), Err(CreateError::Leftovers)) => {
            let creation = store.begin_create_replacing_leftovers().await.unwrap();
            let objects = ["0/a", "0/b/c", "0/alive"].map(|at| (key(at), "alive".into()));
            creation.put_many(objects.to_vec()).await.unwrap();
            creation.commit(ROOT).await.unwrap();
        }
        (_, Err(error)) => panic!("{error:?}"),
    }
}

#[test]
fn one_of_two_concurrent_creations_succeeds() {
    Place::each(|place, killer| {
        let store = place.open(killer);
        block_on(async {
            let first = store.begin_create().await.unwrap();
            first
                .put_many(vec![(key("0/a"), "first".into())])
                .await
                .unwrap();
            let error = place.open(killer).begin_create().await.unwrap_err();
            let told = matches!(
                (place, &error),
                (Place::Folder(_), CreateError::InProgress)
                    | (Place::Memory(_), CreateError::Leftovers)
            );
            assert!(told, "{error:?}");
            first.commit(ROOT).await.unwrap();
            assert_eq!(names(&store).await, ["0/a", "zarr.json"]);
        });
    });
}

#[test]
fn a_creation_that_was_taken_over_fails() {
    let place = Place::memory(&Killer::default());
    let store = place.open(&Killer::default());
    block_on(async {
        let first = store.begin_create().await.unwrap();
        first
            .put_many(vec![(key("0/first"), "x".into())])
            .await
            .unwrap();
        let second = store.begin_create_replacing_leftovers().await.unwrap();
        second
            .put_many(vec![(key("0/second"), "x".into())])
            .await
            .unwrap();
        let error = first.commit(ROOT).await.unwrap_err();
        assert!(matches!(error, CreateError::TakenOver), "{error:?}");
        second.commit(ROOT).await.unwrap();
        assert_eq!(names(&store).await, ["0/second", "zarr.json"]);
    });
}

#[test]
fn an_aborted_creation_leaves_nothing() {
    Place::each(|place, killer| {
        let store = place.open(killer);
        block_on(async {
            let creation = store.begin_create().await.unwrap();
            creation
                .put_many(vec![(key("0/a"), "x".into())])
                .await
                .unwrap();
            let error = creation
                .put_many(vec![(key("zarr.json"), "x".into())])
                .await
                .unwrap_err();
            assert!(
                matches!(error, TransactionError::Reserved { .. }),
                "{error:?}"
            );
            creation.abort().await.unwrap();
            assert_eq!(names(&store).await, [""; 0]);
            create(&store, "next").await.unwrap();
        });
    });
}

/// A full disk takes folders, but no files: each left a folder behind, and every retry was refused.
#[test]
fn empty_folders_of_a_store_do_not_block_a_creation() {
    Place::each(|place, killer| {
        let Some(path) = place.path() else {
            return;
        };
        let store = place.open(killer);
        let make = |folder: &str| std::fs::create_dir_all(path.join(folder)).unwrap();
        block_on(async {
            let creation = store.begin_create().await.unwrap();
            make("0/vertices/c/0");
            std::fs::write(path.join("0/vertices/zarr.json#1"), "{").unwrap();
            assert!(store.is_unfinished().await.unwrap());
            creation.abort().await.unwrap();
            assert!(!store.is_unfinished().await.unwrap());
            assert!(
                !path.join("0").exists(),
                "an aborted creation left a folder"
            );

            make("0/vertices/c/0");
            make("headers");
            create(&store, "next").await.unwrap();
            assert!(!path.join("headers").exists());
            assert!(!store.is_unfinished().await.unwrap());
        });
    });
}

#[test]
fn empty_folders_of_others_are_not_removed() {
    Place::each(|place, killer| {
        let Some(path) = place.path() else {
            return;
        };
        let store = place.open(killer);
        std::fs::create_dir_all(path.join("results/today")).unwrap();
        block_on(async {
            let error = store.begin_create().await.unwrap_err();
            assert!(matches!(error, CreateError::NotEmpty(name) if name == "results"));
        });
        assert!(path.join("results/today").exists());
    });
}

#[test]
fn a_created_store_starts_at_transaction_0() {
    Place::each(|place, killer| {
        let store = place.open(killer);
        let root =
            br#"{"attributes": {"zvf": {"transaction": 9, "id": "ab", "pending": true}, "x": 1}}"#;
        block_on(async {
            store
                .begin_create()
                .await
                .unwrap()
                .commit(root)
                .await
                .unwrap();
            let transaction = store.begin().await.unwrap();
            assert_eq!(transaction.base(), 0);
            let root: serde_json::Value = serde_json::from_slice(transaction.root()).unwrap();
            assert_eq!(root, serde_json::json!({"attributes": {"x": 1}}));
        });
    });
}

/// Plans a creation: leaves it with a file for its tasks. Returns its identifier.
async fn planned(store: &Store) -> String {
    let creation = store.begin_create_replacing_leftovers().await.unwrap();
    let id = creation.id().to_owned();
    let files = store.job_files(&id).unwrap();
    files.put("input", "1".into()).await.unwrap();
    creation.suspend().await.unwrap();
    id
}

#[test]
fn a_suspended_creation_excludes_others_and_is_continued() {
    Place::each(|place, killer| {
        let store = place.open(killer);
        block_on(async {
            let first = planned(&store).await;
            let error = store.begin_create().await.unwrap_err();
            assert!(matches!(error, CreateError::Leftovers), "{error:?}");
            store.check_suspended(&first).await.unwrap();
            // Only on request is it replaced, with its files.
            let id = planned(&store).await;
            for error in [
                store.check_suspended(&first).await.unwrap_err(),
                store.resume_create(&first).await.unwrap_err(),
            ] {
                assert!(matches!(error, CreateError::TakenOver), "{error:?}");
            }
            let old = store.job_files(&first).unwrap();
            assert!(old.sizes().await.unwrap().is_empty());
            let task = vec![(key("0/a"), "task".into())];
            place.open(killer).put_many(task).await.unwrap();

            let creation = store.resume_create(&id).await.unwrap();
            let end = vec![(key("0/b"), "end".into())];
            creation.put_many(end).await.unwrap();
            creation.commit(ROOT).await.unwrap();
            assert_eq!(names(&store).await, ["0/a", "0/b", "zarr.json"]);
            let error = store.resume_create(&id).await.unwrap_err();
            assert!(matches!(error, CreateError::AlreadyExists), "{error:?}");
            let files = store.job_files(&id).unwrap();
            assert_eq!(files.get("input").await.unwrap(), Some("1".into()));
            // A task that was killed while it wrote its result.
            if let Some(path) = place.path() {
                std::fs::write(path.join(format!(".zvf/{id}/result-1#1")), "ha").unwrap();
            }
            files.delete_all().await.unwrap();
            assert_eq!(files.get("input").await.unwrap(), None);
        });
        if cfg!(unix)
            && let Some(path) = place.path()
        {
            assert!(!path.join(".zvf").exists(), "something is left");
        }
    });
}

#[test]
fn a_commit_of_a_suspended_creation_may_die_anywhere_and_be_repeated() {
    Place::each(|place, killer| {
        for at in 1.. {
            let place = place.another(killer);
            let store = place.open(killer);
            let id = block_on(planned(&store));
            let commit = async {
                let creation = place.open(killer).resume_create(&id).await?;
                creation.put_many(vec![(key("0/a"), "a".into())]).await?;
                creation.commit(ROOT).await
            };
            let survived = killer.survives(at, commit).is_some();
            block_on(async {
                match store.resume_create(&id).await {
                    Ok(creation) => {
                        let objects = vec![(key("0/a"), "a".into())];
                        creation.put_many(objects).await.unwrap();
                        creation.commit(ROOT).await.unwrap();
                    }
                    Err(error) => {
                        assert!(matches!(error, CreateError::AlreadyExists), "{error:?}");
                    }
                }
                assert_eq!(names(&store).await, ["0/a", "zarr.json"]);
            });
            if survived {
                break;
            }
        }
    });
}
