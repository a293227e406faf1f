//! Transactions in memory whose writer is paused while other writers commit.

use core::{future::Future, time::Duration};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering::SeqCst},
    mpsc,
};

use bytes::Bytes;
use zvf_store::{CommitError, OpenOptions, Store, Transaction, TransactionError};

use crate::{
    support::{Killer, Place, block_on, key},
    transactions::{ROOT, begun, change, put, read, state},
};

/// A store in memory with a writer that can be paused at a chosen operation.
struct PausedStore {
    store: Store,
    /// The operation at which the writer pauses, counted from 1.
    at: Arc<AtomicUsize>,
    reached: mpsc::Receiver<String>,
    go_on: mpsc::Sender<()>,
}

impl PausedStore {
    fn new() -> Self {
        let at = Arc::new(AtomicUsize::new(0));
        let ((says, reached), (go_on, waits)) = (mpsc::channel(), mpsc::channel());
        let (hook, channels) = (Arc::clone(&at), Mutex::new((says, waits)));
        let options = OpenOptions::default().write_hook(Arc::new(move |operation, at| {
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

    /// Pauses a transaction at operation `at`, runs `others`, and resumes it. Returns its result, and
    /// the name of the operation if the transaction reached it.
    fn during(
        &self,
        at: usize,
        others: impl Future<Output = ()>,
    ) -> (Result<u64, CommitError>, Option<String>) {
        self.at.store(at, SeqCst);
        let store = self.store.clone();
        let slow = std::thread::Builder::new()
            .name("slow".to_owned())
            .spawn(move || block_on(change(&store)))
            .unwrap();
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
fn a_paused_writer_does_not_overwrite_later_commits() {
    let (mut committed, mut conflicts) = (Vec::new(), 0);
    for at in 1.. {
        let held = PausedStore::new();
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
fn a_writer_paused_after_its_commit_does_not_change_later_commits() {
    // The root is put to commit, and again when the transaction is applied; each put calls the hook
    // before and after.
    let mut puts_of_root = 0;
    for at in 1.. {
        let held = PausedStore::new();
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
fn objects_changed_without_a_transaction_are_not_overwritten() {
    for at in 1.. {
        let held = PausedStore::new();
        let store = &held.store;
        let (outcome, reached) = held.during(at, async {
            put(store, &[("0/a", "foreign")]).await;
        });
        if reached.as_deref() != Some("put-over 0/a") {
            assert!(reached.is_some(), "never got there");
            continue;
        }
        let foreign = |error: &TransactionError| matches!(error, TransactionError::ModifiedExternally { key: k } if k == &key("0/a"));
        // It is committed, and readers see it, but the next writer cannot finish it.
        assert_eq!(outcome.unwrap(), 1);
        let error = block_on(store.begin()).unwrap_err();
        assert!(foreign(&error), "{error:?}");
        assert_eq!(block_on(read(store, "0/a")).unwrap(), "foreign");
        return;
    }
}
