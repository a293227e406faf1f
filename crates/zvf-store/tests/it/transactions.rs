//! Transactions: atomicity, isolation and conflicts.

use core::{future::Future, time::Duration};
use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value as Json, json};
use zvf_model::key::Key;
use zvf_store::{CommitError, RecordError, Store, TransactionError};

use crate::support::{Killer, Place, block_on, full, key, log, recorded};

pub(crate) const ROOT: &[u8] =
    br#"{"zarr_format": 3, "node_type": "group", "attributes": {"kept": [1.5]}}"#;

/// Contents of objects, by key.
pub(crate) type Objects = BTreeMap<String, String>;

pub(crate) async fn put(store: &Store, objects: &[(&str, &str)]) {
    let objects = objects
        .iter()
        .map(|(at, text)| (key(at), Bytes::from((*text).to_owned())));
    store.put_many(objects.collect()).await.unwrap();
}

/// Creates a store with a root and two objects.
pub(crate) fn begun(place: &Place, killer: &Killer) -> Store {
    let store = place.open(killer);
    let root = core::str::from_utf8(ROOT).unwrap();
    block_on(put(
        &store,
        &[("zarr.json", root), ("0/a", "old a"), ("0/x/b", "old b")],
    ));
    store
}

/// Commits the transaction that most tests start with.
pub(crate) async fn change(store: &Store) -> Result<u64, CommitError> {
    let mut transaction = store.begin().await?;
    transaction.put(key("0/a"), "new a".into()).await?;
    transaction
        .put_many(vec![(key("0/y/c"), "new c".into())])
        .await?;
    transaction.delete(key("0/x/b")).await?;
    transaction.touch("0/a");
    let committed = transaction.commit(ROOT).await?;
    Ok(committed.transaction)
}

pub(crate) fn old() -> Objects {
    objects(&[("0/a", "old a"), ("0/x/b", "old b")])
}

pub(crate) fn new() -> Objects {
    objects(&[("0/a", "new a"), ("0/y/c", "new c")])
}

fn objects(pairs: &[(&str, &str)]) -> Objects {
    let owned = |(at, text): &(&str, &str)| ((*at).to_owned(), (*text).to_owned());
    pairs.iter().map(owned).collect()
}

pub(crate) async fn read(store: &Store, at: &str) -> Option<Bytes> {
    store.read_one(full(at)).await.unwrap()
}

/// Returns every object except the root, and checks that reads, listings and sizes agree.
pub(crate) async fn all(store: &Store) -> Objects {
    let mut found = Objects::new();
    for at in ["0/a", "0/x/b", "0/y/c"] {
        let bytes = read(store, at).await;
        let stat = store.stat(&key(at)).await.unwrap();
        let length = |bytes: &Bytes| u64::try_from(bytes.len()).unwrap();
        assert_eq!(
            stat.map(|stat| stat.size),
            bytes.as_ref().map(length),
            "{at}"
        );
        if let Some(bytes) = bytes {
            found.insert(at.to_owned(), String::from_utf8(bytes.to_vec()).unwrap());
        }
    }
    let listed = store.list_all(&Key::root(), 100).await.unwrap();
    let sizes = listed.into_iter().map(|file| (file.name, file.size));
    let listed: BTreeMap<String, u64> = sizes.filter(|(name, _)| name != "zarr.json").collect();
    let size = |text: &String| u64::try_from(text.len()).unwrap();
    let sizes = found.iter().map(|(at, text)| (at.clone(), size(text)));
    assert_eq!(listed, sizes.collect(), "listed and read");
    let top = store.list(&Key::root(), 100).await.unwrap();
    assert!(top.folders == ["0"], "{top:?}");
    let filled: Vec<&str> = ["0/x/b", "0/y/c"]
        .iter()
        .filter(|at| found.contains_key(**at))
        .map(|at| &at[2..3])
        .collect();
    let below = store.list(&key("0"), 100).await.unwrap();
    assert_eq!(below.folders, filled, "no folder that holds nothing");
    for (folder, name) in [("0", "a"), ("0/x", "b"), ("0/y", "c")] {
        let listing = store.list(&key(folder), 100).await.unwrap();
        let there = listing.files.iter().any(|file| file.name == name);
        assert_eq!(
            there,
            found.contains_key(&format!("{folder}/{name}")),
            "{listing:?}"
        );
    }
    found
}

/// Returns the transaction state in the root, and the bytes of the root.
pub(crate) async fn state(store: &Store) -> (Json, Bytes) {
    let root = read(store, "zarr.json").await.unwrap();
    let json: Json = serde_json::from_slice(&root).unwrap();
    assert_eq!(json["attributes"]["kept"], json!([1.5]));
    (json["attributes"]["zvf"].clone(), root)
}

#[test]
fn a_transaction_is_visible_only_after_its_commit() {
    Place::each(|place, killer| {
        let store = begun(place, killer);
        block_on(async {
            let mut transaction = store.begin().await.unwrap();
            assert_eq!((transaction.base(), &transaction.root()[..]), (0, ROOT));
            transaction.put(key("0/a"), "never".into()).await.unwrap();
            transaction.put(key("0/a"), "new a".into()).await.unwrap();
            transaction.put(key("0/x/b"), "never".into()).await.unwrap();
            transaction
                .put(key("0/never"), "never".into())
                .await
                .unwrap();
            transaction.discard(&key("0/never")).await.unwrap();
            transaction.delete(key("0/x/b")).await.unwrap();
            transaction.delete(key("0/y/c")).await.unwrap();
            transaction.put(key("0/y/c"), "new c".into()).await.unwrap();
            assert_eq!(all(&store).await, old());
            assert_eq!(transaction.commit(ROOT).await.unwrap().transaction, 1);
            assert_eq!(all(&store).await, new());
            let (member, _) = state(&store).await;
            assert_eq!(member["transaction"], 1);
            assert_eq!(member.get("pending"), None);
            let again = transaction.commit(ROOT).await.unwrap_err();
            assert!(
                matches!(again, CommitError::Failed(TransactionError::Finished)),
                "{again:?}"
            );
        });
        assert_eq!(left(place), ["lock", "log/1.json"]);
    });
}

/// Returns the names in the transaction folder on disk; for other stores, the expected names.
pub(crate) fn left(place: &Place) -> Vec<String> {
    let Some(path) = place.path() else {
        return vec!["lock".to_owned(), "log/1.json".to_owned()];
    };
    let mut names = Vec::new();
    let home = path.join(".zvf");
    for entry in std::fs::read_dir(home).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if !entry.file_type().unwrap().is_dir() {
            names.push(name);
            continue;
        }
        for below in std::fs::read_dir(entry.path()).unwrap() {
            let below = below.unwrap().file_name().into_string().unwrap();
            names.push(format!("{name}/{below}"));
        }
    }
    names.sort();
    names
}

#[test]
fn an_aborted_transaction_leaves_nothing() {
    Place::each(|place, killer| {
        let store = begun(place, killer);
        block_on(async {
            let mut transaction = store.begin().await.unwrap();
            transaction.put(key("0/a"), "never".into()).await.unwrap();
            transaction.abort().await.unwrap();
            assert_eq!(all(&store).await, old());
            assert_eq!(
                store.sweep(Duration::ZERO).await.unwrap(),
                0,
                "something was left"
            );
        });
    });
}

#[test]
fn reserved_keys_and_invalid_roots_are_rejected() {
    let store = recorded(&[("zarr.json", ROOT.to_vec())]);
    block_on(async {
        let mut transaction = store.begin().await.unwrap();
        for at in ["zarr.json", ".zvf/lock", ".zvf", ""] {
            let put = transaction.put(key(at), "x".into()).await.unwrap_err();
            let delete = transaction.delete(key(at)).await.unwrap_err();
            for error in [put, delete] {
                assert!(
                    matches!(error, TransactionError::Reserved { .. }),
                    "{at}: {error:?}"
                );
            }
        }
        for root in [&b"no json"[..], b"[]", br#"{"attributes": 5}"#] {
            let error = transaction.commit(root).await.unwrap_err();
            let record = matches!(error, CommitError::Failed(TransactionError::Record { .. }));
            assert!(record, "{error:?}");
        }
        assert_eq!(transaction.commit(ROOT).await.unwrap().transaction, 1);
        let none = Store::from_memory([("0/a", b"x".as_slice())]).unwrap();
        let error = none.begin().await.unwrap_err();
        assert!(matches!(error, TransactionError::NoStore), "{error:?}");
    });
}

/// Other processes stage objects, which are committed once their journals are merged.
#[test]
fn parts_of_other_processes_are_merged() {
    let store = recorded(&[("zarr.json", ROOT.to_vec())]);
    block_on(async {
        let mut transaction = store.begin().await.unwrap();
        transaction.put(key("0/a"), "mine".into()).await.unwrap();
        let mut staged = Vec::new();
        // Two attempts at one part run concurrently; their staged objects do not collide.
        let mut parts = Vec::new();
        for _ in 0..2 {
            parts.push(store.join_transaction(transaction.id()).await.unwrap());
        }
        for (number, part) in parts.iter_mut().enumerate() {
            let texts = [("0/a", "theirs"), ("0/b", "theirs")];
            let objects = texts.map(|(at, text)| (key(at), format!("{text} {number}").into()));
            part.put_many(objects.into()).await.unwrap();
            staged.push(part.staged_journal());
            let error = part.commit(ROOT).await.unwrap_err();
            assert!(matches!(
                error,
                CommitError::Failed(TransactionError::Finished)
            ));
        }
        // An aborted part deletes its own staged objects.
        let mut gives_up = store.join_transaction(transaction.id()).await.unwrap();
        gives_up.put(key("0/c"), "x".into()).await.unwrap();
        gives_up.abort().await.unwrap();
        // Only the main transaction may put nodes.
        let mut node = store.join_transaction(transaction.id()).await.unwrap();
        node.put(key("0/zarr.json"), "{}".into()).await.unwrap();
        let error = transaction
            .merge_staged(&node.staged_journal())
            .await
            .unwrap_err();
        assert!(
            matches!(error, TransactionError::Reserved { .. }),
            "{error:?}"
        );
        let other = store.begin().await.unwrap();
        for staged in [&other.staged_journal()[..], b"no json", b"{}"] {
            let mut journal = staged.to_vec();
            if staged == &other.staged_journal()[..] {
                // Objects staged for another transaction.
                let text = String::from_utf8(parts[0].staged_journal().to_vec()).unwrap();
                journal = text.replace(transaction.id(), other.id()).into_bytes();
            }
            let error = transaction.merge_staged(&journal).await.unwrap_err();
            assert!(
                matches!(error, TransactionError::Record { .. }),
                "{error:?}"
            );
        }
        assert!(store.join_transaction("../x").await.is_err());
        transaction.merge_staged(&staged[1]).await.unwrap();
        transaction.commit(ROOT).await.unwrap();
        let found = store
            .read(&[full("0/a"), full("0/b"), full("0/c")])
            .await
            .unwrap();
        assert_eq!(
            found,
            [Some("theirs 1".into()), Some("theirs 1".into()), None]
        );
        // The part joined before the rebase, so its base is outdated.
        let mut next = store.begin().await.unwrap();
        let late = store.join_transaction(next.id()).await.unwrap();
        change(&store).await.unwrap();
        next.rebase().await.unwrap();
        let error = next.merge_staged(&late.staged_journal()).await.unwrap_err();
        assert!(
            matches!(error, TransactionError::Record { .. }),
            "{error:?}"
        );
    });
}

#[test]
fn a_committed_view_of_an_idle_store_makes_no_request() {
    let store = recorded(&[("zarr.json", ROOT.to_vec())]);
    block_on(async {
        change(&store).await.unwrap();
        let (_, root) = state(&store).await;
        store.take_request_log();
        for root in [ROOT, &root, b"no json"] {
            store.committed_view(root).await.unwrap();
        }
    });
    assert_eq!(log(&store), Vec::<String>::new());
}

#[test]
fn transactions_that_touch_a_common_name_conflict() {
    Place::each(|place, killer| {
        let store = begun(place, killer);
        block_on(async {
            let mut late = store.begin().await.unwrap();
            late.put(key("0/a"), "late".into()).await.unwrap();
            late.touch("0/a");
            late.touch("0/other");
            change(&store).await.unwrap();
            let error = late.commit(ROOT).await.unwrap_err();
            assert!(
                matches!(&error, CommitError::Conflict { names } if names == &["0/a"]),
                "{error:?}"
            );
            let error = late.rebase().await.unwrap_err();
            assert!(matches!(error, CommitError::Conflict { .. }), "{error:?}");
            late.abort().await.unwrap();
            assert_eq!(all(&store).await, new());
            assert_eq!(store.sweep(Duration::ZERO).await.unwrap(), 0);
        });
    });
}

#[test]
fn transactions_that_touch_different_names_both_commit() {
    Place::each(|place, killer| {
        let store = begun(place, killer);
        block_on(async {
            let mut late = store.begin().await.unwrap();
            late.put(key("0/late"), "late".into()).await.unwrap();
            late.put(key("0/a"), "made of old a".into()).await.unwrap();
            late.delete(key("0/y/c")).await.unwrap();
            late.touch("0/late");
            change(&store).await.unwrap();
            for _ in 0..2 {
                let error = late.commit(ROOT).await.unwrap_err();
                assert!(
                    matches!(
                        error,
                        CommitError::Outdated {
                            base: 0,
                            current: 1
                        }
                    ),
                    "{error:?}"
                );
            }
            late.rebase().await.unwrap();
            assert_eq!(late.base(), 1);
            // A commit needs every object that both transactions changed to be put again or discarded.
            let stale = |keys: &[&str], error: CommitError| match error {
                CommitError::Stale { keys: found } => {
                    assert_eq!(found, keys.iter().map(|at| key(at)).collect::<Vec<_>>());
                }
                error => panic!("{error:?}"),
            };
            stale(&["0/a", "0/y/c"], late.commit(ROOT).await.unwrap_err());
            late.put(key("0/a"), "made of new a".into()).await.unwrap();
            stale(&["0/y/c"], late.commit(ROOT).await.unwrap_err());
            late.discard(&key("0/y/c")).await.unwrap();
            assert_eq!(late.commit(ROOT).await.unwrap().transaction, 2);
            assert_eq!(read(&store, "0/late").await.unwrap(), "late");
            assert_eq!(read(&store, "0/a").await.unwrap(), "made of new a");
            assert_eq!(read(&store, "0/y/c").await.unwrap(), "new c");
        });
    });
}

#[test]
fn a_root_changed_without_a_transaction_conflicts() {
    Place::each(|place, killer| {
        let store = begun(place, killer);
        block_on(async {
            change(&store).await.unwrap();
            let mut late = store.begin().await.unwrap();
            late.touch("x");
            let (_, root) = state(&store).await;
            let other = core::str::from_utf8(&root)
                .unwrap()
                .replace("group", "group ");
            put(&store, &[("zarr.json", &other)]).await;
            let error = late.commit(ROOT).await.unwrap_err();
            assert!(
                matches!(&error, CommitError::Conflict { names } if names == &["x"]),
                "{error:?}"
            );
        });
    });
}

#[test]
fn logs_are_kept_for_256_transactions() {
    let store = recorded(&[("zarr.json", ROOT.to_vec())]);
    block_on(async {
        let commit = async |count: usize| {
            for _ in 0..count {
                store.begin().await.unwrap().commit(ROOT).await.unwrap();
            }
        };
        let (mut first, mut second) = (store.begin().await.unwrap(), {
            commit(1).await;
            store.begin().await.unwrap()
        });
        commit(256).await;
        second.rebase().await.unwrap();
        let error = first.rebase().await.unwrap_err();
        assert!(matches!(error, CommitError::Conflict { .. }), "{error:?}");
        let log = |n: usize| format!(".zvf/log/{n}.json");
        assert!(read(&store, &log(1)).await.is_none());
        assert!(read(&store, &log(2)).await.is_some());
    });
}

/// Increments a counter and creates the object `own`, in one transaction.
async fn count(store: &Store, own: &str) {
    loop {
        let mut transaction = store.begin().await.unwrap();
        let before = read(store, "0/counter").await.map_or(0, |text| {
            core::str::from_utf8(&text).unwrap().parse::<u32>().unwrap()
        });
        let after = (before + 1).to_string();
        transaction
            .put(key("0/counter"), after.into())
            .await
            .unwrap();
        transaction
            .put(key(own), own.to_owned().into())
            .await
            .unwrap();
        transaction.touch("counter");
        match transaction.commit(ROOT).await {
            Ok(_) => return,
            Err(CommitError::Conflict { .. }) => transaction.abort().await.unwrap(),
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Runs eight tasks concurrently, on two threads.
fn eight<F: Future<Output = ()> + Send + 'static>(work: impl Fn(usize) -> F) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..8).map(|n| tokio::spawn(work(n))).collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

#[test]
fn no_concurrent_commit_is_lost() {
    Place::each(|place, killer| {
        begun(place, killer);
        eight(|n| {
            let store = place.open(killer);
            async move {
                for time in 0..5 {
                    count(&store, &format!("own/{n}/{time}")).await;
                }
            }
        });
        let store = place.open(killer);
        block_on(async {
            assert_eq!(read(&store, "0/counter").await.unwrap(), "40");
            assert_eq!(state(&store).await.0["transaction"], 40);
            assert_eq!(store.list_all(&key("own"), 100).await.unwrap().len(), 40);
        });
    });
}

#[test]
fn concurrent_transactions_on_different_names_all_commit() {
    Place::each(|place, killer| {
        begun(place, killer);
        eight(|n| {
            let store = place.open(killer);
            async move {
                let mut transaction = store.begin().await.unwrap();
                let name = format!("own/{n}");
                transaction.put(key(&name), "x".into()).await.unwrap();
                transaction.touch(name);
                loop {
                    match transaction.commit(ROOT).await {
                        Ok(_) => return,
                        Err(CommitError::Outdated { .. }) => transaction.rebase().await.unwrap(),
                        Err(error) => panic!("{error:?}"),
                    }
                }
            }
        });
        let store = place.open(killer);
        block_on(async {
            assert_eq!(store.list_all(&key("own"), 100).await.unwrap().len(), 8);
            assert_eq!(state(&store).await.0["transaction"], 8);
        });
    });
}

#[test]
fn sweeping_deletes_old_staged_objects() {
    Place::each(|place, killer| {
        let store = begun(place, killer);
        block_on(async {
            let mut abandoned = store.begin().await.unwrap();
            abandoned
                .put_many(vec![(key("0/p"), "p".into()), (key("0/q"), "q".into())])
                .await
                .unwrap();
            assert_eq!(store.sweep(Duration::from_hours(1)).await.unwrap(), 0);
            assert_eq!(store.sweep(Duration::ZERO).await.unwrap(), 2);
            // The swept transaction was still running, so its commit fails.
            let error = abandoned.commit(ROOT).await.unwrap_err();
            assert!(
                matches!(
                    error,
                    CommitError::Failed(TransactionError::StagedObjectMissing { .. })
                ),
                "{error:?}"
            );
            assert_eq!(all(&store).await, old());
            assert_eq!(state(&store).await.0, Json::Null);
        });
    });
}

/// Returns a store with a pending transaction, and its root.
fn with_journal(member: &Json, journal: Option<&Json>) -> (Store, Vec<u8>) {
    let root = json!({"zarr_format": 3, "attributes": {"zvf": member}}).to_string();
    let mut objects = vec![("zarr.json", root.clone().into_bytes())];
    if let Some(journal) = journal {
        objects.push((".zvf/ab/journal.json", journal.to_string().into_bytes()));
    }
    (recorded(&objects), root.into_bytes())
}

#[test]
fn damaged_records_are_rejected() {
    let good = json!({"transaction": 1, "id": "ab", "pending": true});
    let journal = json!({"format": 1, "transaction": 1, "deletes": [], "touched": [],
        "puts": [{"key": "0/a", "staged": ".zvf/ab/0", "bytes": 1, "crc32c": 1, "was": null}]});
    let (store, root) = with_journal(&good, Some(&journal));
    block_on(store.committed_view(&root)).unwrap();

    let check = |member: &Json, journal: Option<&Json>, at: &str, want: RecordError| {
        let (store, root) = with_journal(member, journal);
        for error in [
            block_on(store.committed_view(&root)).unwrap_err(),
            block_on(store.begin()).unwrap_err(),
        ] {
            match error {
                TransactionError::Record { key, fault } => {
                    assert_eq!((key.as_str(), fault), (at, want));
                }
                error => panic!("{error:?}"),
            }
        }
    };
    for (field, value) in [
        ("transaction", json!(-1)),
        ("transaction", json!(u64::MAX)),
        ("id", json!("../../x")),
        ("id", json!("")),
        ("pending", json!(1)),
    ] {
        let mut member = good.clone();
        member[field] = value;
        let name = ["transaction", "id", "pending"]
            .into_iter()
            .find(|name| *name == field);
        check(
            &member,
            None,
            "zarr.json",
            RecordError::Member(name.unwrap()),
        );
    }
    let text = json!("x");
    check(&text, None, "zarr.json", RecordError::Member("zvf"));
    let at = ".zvf/ab/journal.json";
    let damaged = |pointer: &str, value: Json| {
        let mut journal = journal.clone();
        *journal.pointer_mut(pointer).unwrap() = value;
        journal
    };
    let cases = [
        ("/format", json!(2), RecordError::Format(2)),
        ("/puts", json!({}), RecordError::Member("puts")),
        (
            "/puts/0/key",
            json!("zarr.json"),
            RecordError::Member("key"),
        ),
        (
            "/puts/0/key",
            json!(".zvf/lock"),
            RecordError::Member("key"),
        ),
        (
            "/puts/0/staged",
            json!(".zvf/cd/0"),
            RecordError::Member("staged"),
        ),
        (
            "/puts/0/staged",
            json!("0/b"),
            RecordError::Member("staged"),
        ),
        (
            "/puts/0/crc32c",
            json!(1_u64 << 32),
            RecordError::Member("crc32c"),
        ),
        (
            "/deletes",
            json!(["zarr.json"]),
            RecordError::Member("deletes"),
        ),
        ("/touched", json!([1]), RecordError::Member("touched")),
    ];
    for (pointer, value, fault) in cases {
        check(&good, Some(&damaged(pointer, value)), at, fault);
    }
    let outside = damaged("/puts/0/key", json!("../x"));
    let (store, root) = with_journal(&good, Some(&outside));
    let error = block_on(store.committed_view(&root)).unwrap_err();
    assert!(matches!(error, TransactionError::Key(_)), "{error:?}");
}

#[test]
fn a_pending_transaction_without_a_journal_counts_as_applied() {
    let member = json!({"transaction": 7, "id": "ab", "pending": true});
    let (store, root) = with_journal(&member, None);
    block_on(async {
        store.committed_view(&root).await.unwrap();
        assert_eq!(store.begin().await.unwrap().base(), 7);
    });
}
