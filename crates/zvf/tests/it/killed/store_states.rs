//! A store before and after a change.

use super::{
    child::{self, End},
    kills::KillTime,
    place::{Files, Place},
    scenario::{Operation, Scenario},
    state::State,
};
use crate::block_on;

/// The states before and after a scenario.
#[derive(Debug)]
pub(crate) struct StoreStates {
    pub(super) scenario: Scenario,
    /// Files of the store before the scenario runs, with the files that readers ignore.
    pub(super) files: Files,
    /// The call at which the previous process was killed, for [`Operation::Finish`].
    left: Option<usize>,
    /// `None` if there is no store.
    pub(super) old: Option<State>,
    pub(super) new: State,
    /// Number of hook calls of an undisturbed run.
    pub(crate) calls: usize,
    pub(super) micros: u64,
}

impl StoreStates {
    /// Runs the scenario to its end.
    pub(crate) fn new(scenario: Scenario, place: &Place) -> Self {
        let before = Place::folder();
        block_on(scenario.prepare(&before.address()));
        let files = before.files();
        let mut old = block_on(State::read(&before.address())).unwrap();
        let left =
            (scenario.operation == Operation::Finish).then(|| first_left(scenario, &files, place));
        let place = set(scenario, &files, left, place);
        if left.is_some() {
            old = block_on(State::read(&place.address())).unwrap();
        }
        let End::Done { calls, micros } = child::run(scenario, KillTime::Never, &place.address())
        else {
            panic!("{scenario:?} was killed by another process")
        };
        let new = block_on(State::read(&place.address())).unwrap().unwrap();
        let same = old.as_ref().is_some_and(|old| old.content == new.content);
        let keeps = matches!(scenario.operation, Operation::Compact | Operation::Finish);
        assert_eq!(same, keeps, "{scenario:?}: not told apart");
        Self {
            scenario,
            files,
            left,
            old,
            new,
            calls,
            micros,
        }
    }

    /// Returns a place with the state before the scenario.
    pub(super) fn set(&self, place: &Place) -> Place {
        set(self.scenario, &self.files, self.left, place)
    }
}

fn set(scenario: Scenario, files: &Files, left: Option<usize>, place: &Place) -> Place {
    let place = place.another();
    block_on(place.fill(files));
    if let Some(at) = left {
        let end = child::run(appending(scenario), KillTime::At(at), &place.address());
        assert_eq!(end, End::Killed);
        assert!(block_on(State::is_pending(&place.address())));
    }
    place
}

/// Returns the append that [`Operation::Finish`] completes.
fn appending(scenario: Scenario) -> Scenario {
    Scenario {
        operation: Operation::Append,
        ..scenario
    }
}

/// Returns the first call after the append has committed, which leaves the most work.
fn first_left(scenario: Scenario, files: &Files, place: &Place) -> usize {
    let mut calls = 1..;
    let left = calls.find(|at| {
        let place = place.another();
        block_on(place.fill(files));
        let end = child::run(appending(scenario), KillTime::At(*at), &place.address());
        assert_eq!(end, End::Killed, "never left anything");
        block_on(State::is_pending(&place.address()))
    });
    left.unwrap()
}
