//! Transactions: all or nothing, one after the other, whoever dies.

use core::{future::Future, time::Duration};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
};

use bytes::Bytes;
use serde_json::{Value as Json, json};
use zvf_model::key::Key;
use zvf_store::{CommitError, OpenOptions, RecordFault, Store, Transaction, TransactionError};

use crate::support::{Killer, Place, block_on, full, key, log, recorded};

const ROOT: &[u8] = br#"{"zarr_format": 3, "node_type": "group", "attributes": {"kept": [1.5]}}"#;

/// Objects by key.
type Objects = BTreeMap<String, String>;

async fn put(store: &Store, objects: &[(&str, &str)]) {
    let objects = objects
        .iter()
        .map(|(at, text)| (key(at), Bytes::from((*text).to_owned())));
    store.put_each(objects.collect()).await.unwrap();
}

/// A store with a root and two objects.
fn begun(place: &Place, killer: &Killer) -> Store {
    let store = place.open(killer);
    let root = core::str::from_utf8(ROOT).unwrap();
    block_on(put(
        &store,
        &[("zarr.json", root), ("0/a", "old a"), ("0/x/b", "old b")],
    ));
    store
}

/// The first transaction of most tests.
async fn change(store: &Store) -> Result<u64, CommitError> {
    let mut transaction = store.begin().await?;
    transaction.put(key("0/a"), "new a".into()).await?;
    transaction
        .put_each(vec![(key("0/y/c"), "new c".into())])
        .await?;
    transaction.delete(key("0/x/b")).await?;
    transaction.touch("0/a");
    let committed = transaction.commit(ROOT).await?;
    Ok(committed.transaction)
}

fn old() -> Objects {
    objects(&[("0/a", "old a"), ("0/x/b", "old b")])
}

fn new() -> Objects {
    objects(&[("0/a", "new a"), ("0/y/c", "new c")])
}

fn objects(pairs: &[(&str, &str)]) -> Objects {
    let owned = |(at, text): &(&str, &str)| ((*at).to_owned(), (*text).to_owned());
    pairs.iter().map(owned).collect()
}

async fn read(store: &Store, at: &str) -> Option<Bytes> {
    store.read_one(full(at)).await.unwrap()
}

/// Every object but the root, as reads, listings and sizes agree on them.
async fn all(store: &Store) -> Objects {
    let mut found = Objects::new();
    for at in ["0/a", "0/x/b", "0/y/c"] {
        if let Some(bytes) = read(store, at).await {
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

/// What the root says of transactions.
async fn state(store: &Store) -> (Json, Bytes) {
    let root = read(store, "zarr.json").await.unwrap();
    let json: Json = serde_json::from_slice(&root).unwrap();
    assert_eq!(json["attributes"]["kept"], json!([1.5]));
    (json["attributes"]["zvf"].clone(), root)
}

#[test]
fn a_transaction_is_seen_after_its_commit_and_not_before() {
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
                matches!(again, CommitError::Failed(TransactionError::Over)),
                "{again:?}"
            );
        });
        assert_eq!(left(place), ["lock", "log/1.json"]);
    });
}

/// What lies in the folder of transactions, on disk; elsewhere as if.
fn left(place: &Place) -> Vec<String> {
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
fn what_a_transaction_may_not_write_is_refused() {
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

#[test]
fn a_store_at_rest_is_followed_without_a_request() {
    let store = recorded(&[("zarr.json", ROOT.to_vec())]);
    block_on(async {
        change(&store).await.unwrap();
        let (_, root) = state(&store).await;
        store.take_log();
        for root in [ROOT, &root, b"no json"] {
            store.follow(root).await.unwrap();
        }
    });
    assert_eq!(log(&store), Vec::<String>::new());
}

/// Dies at every operation; then readers see the old or the new state, and
/// whoever begins next finishes the new one.
#[test]
fn whoever_dies_leaves_the_old_state_or_the_new() {
    Place::each(|place, killer| {
        let (mut before, mut during, mut after) = (0, 0, 0);
        for at in 1.. {
            let place = place.another(killer);
            let store = begun(&place, killer);
            let survived = killer.survives(at, change(&store)).is_some();
            drop(store);
            match block_on(check_after_death(&place, killer)) {
                (false, _) => before += 1,
                (true, true) => during += 1,
                (true, false) => after += 1,
            }
            if survived {
                break;
            }
        }
        // The operation that commits is seen both before and after it is done.
        assert!(
            before > 5 && during > 8 && after > 0,
            "{before} {during} {after}"
        );
    });
}

/// Whether the transaction was committed, and whether it had to be finished.
async fn check_after_death(place: &Place, killer: &Killer) -> (bool, bool) {
    let store = place.open(killer);
    let (member, root) = state(&store).await;
    let committed = member["transaction"] == 1;
    let pending = member["pending"] == true;
    let want = if committed { new() } else { old() };
    let followed = store.follow(&root).await.unwrap();
    assert_eq!(all(&followed).await, want, "as readers see it");

    let mut next = store.begin().await.unwrap();
    assert_eq!(next.base(), u64::from(committed));
    assert_eq!(all(&store).await, want, "as it lies there");
    let (member, _) = state(&store).await;
    assert_eq!(member.get("pending"), None);
    // A reader that saw the mark before.
    assert_eq!(all(&followed).await, want, "as earlier readers see it");

    next.put(key("0/a"), "newer".into()).await.unwrap();
    next.touch("0/a");
    next.commit(ROOT).await.unwrap();
    assert_eq!(read(&store, "0/a").await.unwrap(), "newer");
    let swept = store.sweep(Duration::ZERO).await.unwrap();
    assert!(
        !committed || swept == 0,
        "a committed transaction left {swept} objects"
    );
    if place.path().is_some() {
        assert!(
            left(place)
                .iter()
                .all(|name| name == "lock" || name.starts_with("log/"))
        );
    }
    (committed, pending)
}

#[test]
fn whoever_dies_finishing_for_the_dead_is_finished_for_too() {
    Place::each(|place, killer| {
        let mut deaths = 0;
        for at in 1.. {
            let place = place.another(killer);
            let survived = killer
                .survives(at, change(&begun(&place, killer)))
                .is_some();
            let pending = block_on(state(&place.open(killer))).0["pending"] == true;
            if pending {
                for again in 1.. {
                    let place = place.another(killer);
                    killer.survives(at, change(&begun(&place, killer)));
                    let store = place.open(killer);
                    let done = killer.survives(again, store.begin()).is_some();
                    drop(store);
                    let (committed, _) = block_on(check_after_death(&place, killer));
                    assert!(committed);
                    if done {
                        break;
                    }
                    deaths += 1;
                }
            }
            if survived {
                break;
            }
        }
        assert!(deaths > 50, "{deaths}");
    });
}

#[test]
fn a_zip_of_a_store_that_is_being_changed_is_the_new_state() {
    if !cfg!(feature = "zip") {
        return;
    }
    let killer = Killer::default();
    let mut pending = 0;
    for at in 1.. {
        let place = Place::folder();
        let survived = killer
            .survives(at, change(&begun(&place, &killer)))
            .is_some();
        let path = place.path().unwrap();
        block_on(async {
            let (member, root) = state(&place.open(&killer)).await;
            if member["pending"] == true {
                pending += 1;
                let zipped = zip_of(&path);
                let store = Store::open(zipped.to_str().unwrap()).unwrap();
                assert_eq!(all(&store.follow(&root).await.unwrap()).await, new());
            }
        });
        if survived {
            break;
        }
    }
    assert!(pending > 8, "{pending}");
}

#[cfg(not(feature = "zip"))]
fn zip_of(_: &std::path::Path) -> std::path::PathBuf {
    std::path::PathBuf::new()
}

#[cfg(feature = "zip")]
fn zip_of(folder: &std::path::Path) -> std::path::PathBuf {
    use std::io::Write;
    let path = folder.with_extension("zip");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let entry = entry.unwrap().path();
            if entry.is_dir() {
                folders.push(entry);
                continue;
            }
            let name = entry.strip_prefix(folder).unwrap().to_str().unwrap();
            let options = zip::write::SimpleFileOptions::default();
            zip.start_file(name, options).unwrap();
            zip.write_all(&std::fs::read(&entry).unwrap()).unwrap();
        }
    }
    zip.finish().unwrap();
    path
}

#[test]
fn two_that_touch_the_same_conflict() {
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
fn two_that_touch_nothing_in_common_both_commit() {
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
                        CommitError::Moved {
                            base: 0,
                            current: 1
                        }
                    ),
                    "{error:?}"
                );
            }
            late.rebase().await.unwrap();
            assert_eq!(late.base(), 1);
            // Not before what both changed is made anew.
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
fn a_root_that_was_put_without_a_transaction_conflicts() {
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

/// Adds one to a counter, and to the number of objects in the root.
async fn count(store: &Store, own: &str) {
    loop {
        let mut transaction = store.begin().await.unwrap();
        let before = read(store, "0/counter").await;
        let before = before.map_or(0, |text| {
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

/// Runs eight at once, on two threads.
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
fn of_many_at_once_no_commit_is_lost() {
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
fn many_that_touch_nothing_in_common_all_commit() {
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
                        Err(CommitError::Moved { .. }) => transaction.rebase().await.unwrap(),
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

/// A store in memory of which one writer can be held up.
struct Held {
    store: Store,
    /// Which operation of that writer, counted from 1.
    at: Arc<AtomicUsize>,
    reached: mpsc::Receiver<String>,
    go_on: mpsc::Sender<()>,
}

impl Held {
    fn new() -> Self {
        let at = Arc::new(AtomicUsize::new(0));
        let ((says, reached), (go_on, waits)) = (mpsc::channel(), mpsc::channel());
        let (hook, channels) = (Arc::clone(&at), Mutex::new((says, waits)));
        let options = OpenOptions::default().before_each_write(Arc::new(move |operation, at| {
            let slow = std::thread::current().name() == Some("slow");
            if slow && hook.fetch_sub(1, SeqCst) == 1 {
                let channels = channels.lock().unwrap();
                channels.0.send(format!("{operation} {at}")).unwrap();
                channels.1.recv().unwrap();
            }
        }));
        let place = Place::Memory(options.create("memory:").unwrap());
        let store = begun(&place, &Killer::default());
        Self {
            store,
            at,
            reached,
            go_on,
        }
    }

    /// Holds up the first transaction at an operation while others happen; what
    /// came of it, and where it was, if it got that far.
    fn during(
        &self,
        at: usize,
        others: impl Future<Output = ()>,
    ) -> (Result<u64, CommitError>, Option<String>) {
        self.at.store(at, SeqCst);
        let store = self.store.clone();
        let slow = std::thread::Builder::new().name("slow".to_owned());
        let slow = slow.spawn(move || block_on(change(&store))).unwrap();
        let reached = loop {
            match self.reached.recv_timeout(Duration::from_millis(1)) {
                Ok(operation) => break Some(operation),
                Err(_) if slow.is_finished() => break self.reached.try_recv().ok(),
                Err(_) => {}
            }
        };
        if reached.is_some() {
            block_on(others);
            self.go_on.send(()).unwrap();
        }
        (slow.join().unwrap(), reached)
    }
}

async fn replace(store: &Store, objects: &[(&str, &str)], delete: &[&str]) {
    let mut transaction: Transaction = store.begin().await.unwrap();
    for (at, text) in objects {
        transaction
            .put(key(at), Bytes::from((*text).to_owned()))
            .await
            .unwrap();
    }
    for at in delete {
        transaction.delete(key(at)).await.unwrap();
    }
    transaction.touch("0/a");
    transaction.commit(ROOT).await.unwrap();
}

#[test]
fn whoever_is_held_up_does_not_overwrite_what_came_later() {
    let (mut committed, mut conflicts) = (Vec::new(), 0);
    for at in 1.. {
        let held = Held::new();
        let store = &held.store;
        let (outcome, reached) = held.during(at, async {
            replace(store, &[("0/a", "later"), ("0/y/c", "later")], &[]).await;
            replace(store, &[("0/a", "last"), ("0/y/c", "last")], &[]).await;
        });
        let Some(reached) = reached else {
            break;
        };
        block_on(async {
            let number = state(store).await.0["transaction"].as_u64().unwrap();
            match outcome {
                Ok(1) => {
                    assert_eq!(number, 3, "{reached}");
                    committed.push(reached.clone());
                }
                Err(CommitError::Conflict { .. }) => {
                    assert_eq!(number, 2, "{reached}");
                    conflicts += 1;
                }
                other => panic!("{reached}: {other:?}"),
            }
            for at in ["0/a", "0/y/c"] {
                assert_eq!(
                    read(store, at).await.unwrap(),
                    "last",
                    "{at}, held up at {reached}"
                );
            }
        });
    }
    let held_at = |operation: &str| committed.iter().any(|at| at == operation);
    assert!(
        held_at("put-over 0/a") && held_at("put-new 0/y/c"),
        "{committed:?}"
    );
    assert!(conflicts > 5, "{conflicts}");
}

#[test]
fn whoever_is_held_up_after_the_commit_deletes_and_adds_nothing_later() {
    // The root is put to commit and to settle; each put is seen before and after.
    let mut puts_of_root = 0;
    for at in 1.. {
        let held = Held::new();
        let store = &held.store;
        let (outcome, reached) = held.during(at, async {
            replace(store, &[("0/x/b", "again")], &["0/y/c"]).await;
        });
        let reached = reached.unwrap();
        puts_of_root += usize::from(reached == "put-over zarr.json");
        if puts_of_root < 2 {
            continue;
        }
        assert_eq!(outcome.unwrap(), 1);
        block_on(async {
            assert_eq!(state(store).await.0["transaction"], 2);
            assert_eq!(read(store, "0/x/b").await.unwrap(), "again");
            assert_eq!(read(store, "0/y/c").await, None);
        });
        return;
    }
}

#[test]
fn what_is_changed_from_outside_is_not_overwritten() {
    for at in 1.. {
        let held = Held::new();
        let store = &held.store;
        let (outcome, reached) = held.during(at, async {
            put(store, &[("0/a", "foreign")]).await;
        });
        if reached.as_deref() != Some("put-over 0/a") {
            assert!(reached.is_some(), "never got there");
            continue;
        }
        let foreign = |error: &TransactionError| matches!(error, TransactionError::Foreign { key: k } if k == &key("0/a"));
        let error = outcome.unwrap_err();
        assert!(
            matches!(&error, CommitError::Unfinished { transaction: 1, source } if foreign(source)),
            "{error:?}"
        );
        let error = block_on(store.begin()).unwrap_err();
        assert!(foreign(&error), "{error:?}");
        assert_eq!(block_on(read(store, "0/a")).unwrap(), "foreign");
        return;
    }
}

#[test]
fn sweeping_takes_what_is_old_and_nobody_needs() {
    Place::each(|place, killer| {
        let store = begun(place, killer);
        block_on(async {
            let mut abandoned = store.begin().await.unwrap();
            abandoned
                .put_each(vec![(key("0/p"), "p".into()), (key("0/q"), "q".into())])
                .await
                .unwrap();
            assert_eq!(store.sweep(Duration::from_hours(1)).await.unwrap(), 0);
            assert_eq!(store.sweep(Duration::ZERO).await.unwrap(), 2);
            // Its writer was not dead at all, and is told.
            let error = abandoned.commit(ROOT).await.unwrap_err();
            assert!(
                matches!(error, CommitError::Failed(TransactionError::Lost { .. })),
                "{error:?}"
            );
            assert_eq!(all(&store).await, old());
            assert_eq!(state(&store).await.0, Json::Null);
        });
    });
}

#[test]
fn sweeping_leaves_what_is_committed() {
    Place::each(|place, killer| {
        let mut pending = 0;
        for at in 1.. {
            let place = place.another(killer);
            let survived = killer
                .survives(at, change(&begun(&place, killer)))
                .is_some();
            let store = place.open(killer);
            block_on(async {
                if state(&store).await.0["pending"] == true {
                    pending += 1;
                    assert_eq!(store.sweep(Duration::ZERO).await.unwrap(), 0);
                    store.begin().await.unwrap();
                    assert_eq!(all(&store).await, new());
                }
            });
            if survived {
                break;
            }
        }
        assert!(pending > 8, "{pending}");
    });
}

/// A root in the middle of a transaction, and its journal.
fn with_journal(member: &Json, journal: Option<&Json>) -> (Store, Vec<u8>) {
    let root = json!({"zarr_format": 3, "attributes": {"zvf": member}}).to_string();
    let mut objects = vec![("zarr.json", root.clone().into_bytes())];
    if let Some(journal) = journal {
        objects.push((".zvf/ab/journal.json", journal.to_string().into_bytes()));
    }
    (recorded(&objects), root.into_bytes())
}

#[test]
fn damaged_records_are_refused() {
    let good = json!({"transaction": 1, "id": "ab", "pending": true});
    let journal = json!({"format": 1, "transaction": 1, "deletes": [], "touched": [],
        "puts": [{"key": "0/a", "staged": ".zvf/ab/0", "bytes": 1, "crc32c": 1, "was": null}]});
    let (store, root) = with_journal(&good, Some(&journal));
    block_on(store.follow(&root)).unwrap();

    let check = |member: &Json, journal: Option<&Json>, at: &str, want: RecordFault| {
        let (store, root) = with_journal(member, journal);
        for error in [
            block_on(store.follow(&root)).unwrap_err(),
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
            RecordFault::Member(name.unwrap()),
        );
    }
    let at = ".zvf/ab/journal.json";
    let damaged = |pointer: &str, value: Json| {
        let mut journal = journal.clone();
        *journal.pointer_mut(pointer).unwrap() = value;
        journal
    };
    let cases = [
        ("/format", json!(2), RecordFault::Format(2)),
        ("/puts", json!({}), RecordFault::Member("puts")),
        (
            "/puts/0/key",
            json!("zarr.json"),
            RecordFault::Member("key"),
        ),
        (
            "/puts/0/key",
            json!(".zvf/lock"),
            RecordFault::Member("key"),
        ),
        (
            "/puts/0/staged",
            json!(".zvf/cd/0"),
            RecordFault::Member("staged"),
        ),
        (
            "/puts/0/staged",
            json!("0/b"),
            RecordFault::Member("staged"),
        ),
        (
            "/puts/0/crc32c",
            json!(1_u64 << 32),
            RecordFault::Member("crc32c"),
        ),
        (
            "/deletes",
            json!(["zarr.json"]),
            RecordFault::Member("deletes"),
        ),
        ("/touched", json!([1]), RecordFault::Member("touched")),
    ];
    for (pointer, value, fault) in cases {
        check(&good, Some(&damaged(pointer, value)), at, fault);
    }
    let outside = damaged("/puts/0/key", json!("../x"));
    let (store, root) = with_journal(&good, Some(&outside));
    let error = block_on(store.follow(&root)).unwrap_err();
    assert!(matches!(error, TransactionError::Key(_)), "{error:?}");
}

#[test]
fn a_pending_transaction_without_a_journal_is_applied() {
    let member = json!({"transaction": 7, "id": "ab", "pending": true});
    let (store, root) = with_journal(&member, None);
    block_on(async {
        store.follow(&root).await.unwrap();
        assert_eq!(store.begin().await.unwrap().base(), 7);
    });
}
