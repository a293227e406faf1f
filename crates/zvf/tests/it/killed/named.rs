//! Known defects of the reference with concurrent or killed writers, W12 to W16 as the issues
//! number them.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use zvf::{Editor, Error, OpenOptions};
use zvf_build::{GeometryKind, OutOfBounds};
use zvf_model::key::Key;
use zvf_store::CommitError;

use super::{
    kills::{KillTime, Tally, kill_all},
    place::Place,
    scenario::{Operation, Scenario, StoreProperty},
    store_states::StoreStates,
    writers::{self, WriterSetup},
};
use crate::block_on;

/// In the reference, each writer updated a shared list of chunks from its own stale copy.
#[test]
fn w12_two_writers_on_disjoint_cells_lose_no_presence() {
    let setup = WriterSetup {
        writers: 2,
        appends: 10,
        overlapping: false,
        with_ids: true,
        retries: 0,
    };
    let outcome = writers::run(setup, &Place::folder());
    assert_eq!((outcome.committed, outcome.conflicts), (20, 0));
}

/// In the reference, both sessions got the next id, and the second object overwrote the first.
#[test]
fn w13_two_sessions_never_get_the_same_id() {
    let (place, other) = (Place::folder(), Arc::new(Mutex::new(Vec::new())));
    let address = place.address();
    block_on(writers::begin(&address));
    // The second session commits in the middle of the first one's change.
    let between = {
        let (address, other) = (address.clone(), Arc::clone(&other));
        move || {
            let added = block_on(append(&address, &OpenOptions::default(), 1, 0)).unwrap();
            *other.lock().unwrap() = added;
        }
    };
    let open = OpenOptions::default().write_hook(once(between));
    let mine = block_on(append(&address, &open, 0, 16)).unwrap();
    let other = other.lock().unwrap().clone();
    assert_eq!((other, mine), (vec![1, 2], vec![3, 4]));
}

/// Without retries, the first session gets a conflict and leaves nothing.
#[test]
fn w13_a_session_without_retries_gets_the_conflict() {
    let place = Place::folder();
    let address = place.address();
    block_on(writers::begin(&address));
    let between = {
        let address = address.clone();
        move || drop(block_on(append(&address, &OpenOptions::default(), 1, 0)).unwrap())
    };
    let open = OpenOptions::default().write_hook(once(between));
    let error = block_on(append(&address, &open, 0, 0)).unwrap_err();
    let Some(CommitError::Conflict { names }) = error.cause() else {
        panic!("{error:?}")
    };
    assert!(
        names.iter().any(|name| name.starts_with("object/")),
        "{names:?}"
    );
    let committed = [(0, vec![1, 2])]
        .into_iter()
        .chain([1, 2].into_iter().zip(writers::tags(1)));
    block_on(writers::check(&address, &committed.collect()));
}

async fn append(
    address: &str,
    open: &OpenOptions,
    writer: u64,
    retries: usize,
) -> Result<Vec<i64>, Error> {
    let editor = Editor::open_with(address, open).await?.retries(retries);
    let changed = editor
        .append(&writers::of(writer).build().unwrap(), OutOfBounds::Reject)
        .await?;
    Ok(changed.objects)
}

type Hook = dyn Fn(&str, &Key) + Send + Sync;

/// Calls a function before the first operation, on another thread because this one is inside a call
/// of the store.
fn once(call: impl Fn() + Send + Sync + 'static) -> Arc<Hook> {
    let (called, call) = (AtomicBool::new(false), Arc::new(call));
    Arc::new(move |_, _| {
        if !called.swap(true, Ordering::SeqCst) {
            let call = Arc::clone(&call);
            std::thread::spawn(move || call()).join().unwrap();
        }
    })
}

/// Kills a process at every call of an operation.
#[track_caller]
fn killed(operation: Operation, kind: GeometryKind, property: StoreProperty) -> Tally {
    let place = Place::on_disk();
    let states = StoreStates::new(Scenario::first(operation, kind, property, 100), &place);
    let jobs: Vec<_> = (1..=states.calls)
        .map(|call| (&states, KillTime::At(call)))
        .collect();
    let tally = kill_all(&place, &jobs, 2);
    assert_eq!((tally.kills(), tally.done), (states.calls, 0));
    assert!(
        tally.old > 0 && tally.new > 0 && tally.pending > 0,
        "{tally:?}"
    );
    tally
}

/// The reference left 2,122 vertices, neither the previous 1,000 nor the new 4,000, while the
/// metadata declared 4,000.
#[test]
fn w14_a_kill_during_a_rewrite_leaves_one_state() {
    killed(
        Operation::Replace,
        GeometryKind::Points,
        StoreProperty::Plain,
    );
}

/// The reference advertised an unfinished, empty pyramid. Every [state](super::state::State) that
/// is read here must hold as many vertices as it declares and equal the old or the new state,
/// levels included.
#[test]
fn w15_a_kill_never_leaves_declared_data_missing() {
    killed(
        Operation::Append,
        GeometryKind::Streamlines,
        StoreProperty::Sharded,
    );
}

/// The reference left 18 of 200 vertices readable.
#[test]
fn w16_a_kill_during_an_edit_leaves_one_state() {
    killed(
        Operation::Exchange,
        GeometryKind::Graphs,
        StoreProperty::Plain,
    );
}
