//! Writers of folders whose futures are dropped while their threads wait to write.

use core::{future::Future, time::Duration};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering::SeqCst},
    mpsc,
};

use tokio::runtime::{Builder, Handle, Runtime};
use zvf_store::{CommitError, CreateError, OpenOptions, Store};

use crate::{
    support::{Killer, Place, block_on, key},
    transactions::{ROOT, begun, change, read, state},
};

/// A runtime with a single thread for blocking work.
fn narrow() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).max_blocking_threads(1);
    builder.build().unwrap()
}

/// Occupies the thread for blocking work until the returned sender sends or is dropped.
fn occupy(runtime: &Handle) -> mpsc::Sender<()> {
    let (free, waits) = mpsc::channel::<()>();
    drop(runtime.spawn_blocking(move || waits.recv()));
    free
}

/// Waits until all blocking work that was started is done.
fn drain(runtime: &Runtime) {
    runtime.block_on(runtime.spawn_blocking(|| ())).unwrap();
}

/// Polls a future until `is_stuck` and a while longer, and drops it.
fn give_up(
    runtime: &Runtime,
    work: impl Future<Output = ()> + Send + 'static,
    is_stuck: impl Fn() -> bool,
) {
    let task = runtime.spawn(work);
    while !is_stuck() && !task.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(100));
    task.abort();
    drop(runtime.block_on(task));
}

#[test]
fn a_commit_that_is_given_up_does_not_write_over_a_later_one() {
    let place = Place::folder();
    let path = begun(&place, &Killer::default()).to_string();
    let runtime = narrow();
    let (handle, free) = (runtime.handle().clone(), Arc::new(Mutex::new(None)));
    let (occupied, is_armed) = (Arc::clone(&free), AtomicBool::new(true));
    let hook = move |_: &str, at: &zvf_model::key::Key| {
        if at.as_str() == "zarr.json" && is_armed.swap(false, SeqCst) {
            *occupied.lock().unwrap() = Some(occupy(&handle));
        }
    };
    let options = OpenOptions::default().write_hook(Arc::new(hook));
    let store = options.create(&path).unwrap();
    let puts_root = || free.lock().unwrap().is_some();
    let change = async move { drop(change(&store).await) };
    give_up(&runtime, change, puts_root);
    assert!(puts_root());

    let other = Store::create(&path).unwrap();
    let committed = loop {
        let committed = block_on(async {
            let mut transaction = other.begin().await.unwrap();
            transaction.put(key("0/a"), "other".into()).await.unwrap();
            transaction.commit(ROOT).await
        });
        match committed {
            Ok(committed) => break committed.transaction,
            Err(CommitError::Outdated { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    };
    let (_, root) = block_on(state(&other));
    drop(free.lock().unwrap().take());
    drain(&runtime);
    drop(runtime);
    block_on(async {
        let (state, found) = state(&other).await;
        assert_eq!(found, root, "the root was replaced");
        assert_eq!(state["transaction"], committed);
        assert_eq!(read(&other, "0/a").await.unwrap(), "other");
        // The first commit went on and ended before the lock was released.
        assert_eq!(committed, 2);
        assert_eq!(read(&other, "0/y/c").await.unwrap(), "new c");
    });
}

#[test]
fn objects_of_a_creation_that_is_given_up_are_put_under_its_lock() {
    for durable in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let joined = folder.path().join("store");
        let path = joined.to_str().unwrap();
        let options = OpenOptions::default().durable(durable);
        let store = options.create(path).unwrap();
        let runtime = narrow();
        let creation = runtime.block_on(store.begin_create()).unwrap();
        let free = occupy(runtime.handle());
        let put = async move {
            let objects = vec![(key("0/a"), "left".into())];
            creation.put_many(objects).await.unwrap();
        };
        give_up(&runtime, put, || true);
        let begun = block_on(store.begin_create());
        if durable {
            // Its put did not need the thread.
            begun.unwrap();
        } else {
            let error = begun.unwrap_err();
            assert!(matches!(error, CreateError::InProgress), "{error:?}");
        }
        drop(free);
        drain(&runtime);
        let creation = block_on(store.begin_create()).unwrap();
        assert!(!folder.path().join("store/0/a").exists());
        block_on(creation.commit(ROOT)).unwrap();
    }
}
