//! Kills processes and checks the stores they leave.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

use core::time::Duration;

use zvf::{Editor, OpenOptions, StateError, Store};

use super::{
    child::{self, End},
    place::Place,
    scenario::Operation,
    state::State,
    store_states::StoreStates,
};
use crate::block_on;

/// The time at which a process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KillTime {
    Never,
    /// At a call of the hook, which runs before and after each operation.
    At(usize),
    /// After this many microseconds, at any point.
    After(u64),
}

/// The state of a store after its writer was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoundState {
    Old,
    New,
}

/// Counters of the outcomes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Processes that died of SIGKILL, by operation.
    pub(crate) killed: BTreeMap<Operation, usize>,
    /// Processes that left the old state.
    pub(crate) old: usize,
    /// Processes that left the new state.
    pub(crate) new: usize,
    /// Of these, processes that had committed but not finished.
    pub(crate) pending: usize,
    /// Processes that completed before they were killed.
    pub(crate) done: usize,
}

impl KillTime {
    pub(super) fn word(self) -> String {
        match self {
            Self::Never => "never".to_owned(),
            Self::At(call) => format!("at {call}"),
            Self::After(micros) => format!("after {micros}"),
        }
    }

    pub(super) fn of_word(word: &str) -> Self {
        match word.split_once(' ') {
            Some(("at", call)) => Self::At(call.parse().unwrap()),
            Some(("after", micros)) => Self::After(micros.parse().unwrap()),
            _ => Self::Never,
        }
    }
}

impl Tally {
    pub(crate) fn kills(&self) -> usize {
        self.killed.values().sum()
    }
}

/// Kills a process for each job, several concurrently.
pub(crate) fn kill_all(place: &Place, jobs: &[(&StoreStates, KillTime)], at_once: usize) -> Tally {
    let (next, tally) = (Mutex::new(jobs.iter()), Mutex::new(Tally::default()));
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let job = held(&next).next();
                    let Some((states, kill_time)) = job else {
                        return;
                    };
                    let _on_panic = OnPanic(states, *kill_time);
                    kill(place, states, *kill_time, &tally);
                }
            });
        }
    });
    tally.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a mutex, also after a panic, which reports its own cause.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kill(place: &Place, states: &StoreStates, kill_time: KillTime, tally: &Mutex<Tally>) {
    let place = states.set(place);
    let address = place.address();
    let end = child::run(states.scenario, kill_time, &address);
    let pending = block_on(State::is_pending(&address));
    let which = block_on(read_state(states, &address)).unwrap_or_else(|fault| panic!("{fault}"));
    let recovered = block_on(recover(states, &place, which, kill_time));
    block_on(place.empty());
    let mut tally = held(tally);
    if end == End::Killed {
        *tally.killed.entry(states.scenario.operation).or_default() += 1;
        match which {
            FoundState::Old => tally.old += 1,
            FoundState::New => tally.new += 1,
        }
        tally.pending += usize::from(pending);
    } else {
        assert_eq!(recovered, FoundState::New, "no process was killed");
        tally.done += 1;
    }
}

/// Returns which of the two states readers see; otherwise describes the difference.
pub(super) async fn read_state(states: &StoreStates, address: &str) -> Result<FoundState, String> {
    let found = State::read(address)
        .await
        .map_err(|error| format!("cannot be read: {error:?}"))?;
    if found.as_ref() == Some(&states.new) {
        return Ok(FoundState::New);
    }
    if found == states.old {
        return Ok(FoundState::Old);
    }
    Err(match (&found, &states.old) {
        (None, _) => "the store is gone".to_owned(),
        (Some(found), old) => {
            let old = old.as_ref().map(|old| found.differs(old));
            let new = found.differs(&states.new);
            format!("neither old nor new: {old:?} from the old, {new} from the new")
        }
    })
}

/// Returns the state of a store without writers or unfinished transactions. A store whose objects
/// equal those of a state byte for byte is in that state; other stores are read.
async fn read_objects(states: &StoreStates, address: &str) -> Result<FoundState, String> {
    if let Ok(store) = Store::open(address)
        && let Ok(files) = State::files(&store).await
    {
        if files == states.new.files {
            return Ok(FoundState::New);
        }
        if states.old.as_ref().is_some_and(|old| files == old.files) {
            return Ok(FoundState::Old);
        }
    }
    read_state(states, address).await
}

/// Opens the store for writing, which recovers it, and reads its state again. A committed change
/// stays. On a disk nothing is committed after the process is dead, while a server may still
/// process requests.
async fn recover(
    states: &StoreStates,
    place: &Place,
    before: FoundState,
    kill_time: KillTime,
) -> FoundState {
    let address = place.address();
    let opened = Editor::open(&address).await;
    let left_none = states.old.is_none() && before == FoundState::Old;
    match opened {
        Ok(_) => assert!(!left_none || matches!(place, Place::Bucket(_))),
        Err(error)
            if let Some(StateError::NoStore { .. } | StateError::Unfinished { .. }) =
                error.cause() =>
        {
            assert!(left_none);
        }
        Err(error) => panic!("cannot be recovered: {error:?}"),
    }
    assert!(
        !State::is_pending(&address).await,
        "something is left to do"
    );
    let after = read_objects(states, &address)
        .await
        .unwrap_or_else(|fault| panic!("recovered: {fault}"));
    match (place, before) {
        (Place::Bucket(_), FoundState::Old) => {}
        _ => assert_eq!(after, before, "recovering changed it"),
    }
    // Running the operation again succeeds. Where a store exists this takes as long as everything
    // else, so it is done for every fourth call.
    let again = states.old.is_none() || !matches!(kill_time, KillTime::At(call) if call % 4 > 0);
    if after == FoundState::Old && again {
        let open = OpenOptions::default();
        let again = states.scenario.perform(&address, &open).await;
        again.unwrap_or_else(|error| panic!("cannot be done again: {error:?}"));
        let again = read_objects(states, &address).await;
        assert_eq!(again, Ok(FoundState::New), "done again");
    }
    nothing_left(place).await;
    after
}

/// Asserts that a swept folder holds nothing but the store, the lock and the logs.
pub(super) async fn nothing_left(place: &Place) {
    let store = Store::open(&place.address()).unwrap();
    store.sweep(Duration::ZERO).await.unwrap();
    let files = place.files();
    let left: Vec<&str> = files
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| {
            let is_own = *name == ".zvf/lock" || name.starts_with(".zvf/log/");
            name.starts_with(".zvf/") && !is_own || name.contains('#')
        })
        .collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

/// Prints the scenario and the kill if the test panics.
struct OnPanic<'a>(&'a StoreStates, KillTime);

impl Drop for OnPanic<'_> {
    #[expect(clippy::print_stderr, reason = "part of how a test fails")]
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("that was {:?}, killed {:?}", self.0.scenario, self.1);
        }
    }
}
