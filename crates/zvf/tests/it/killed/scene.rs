//! A store before and after a change.

use super::{
    act::{Act, Verb},
    child::{self, End},
    kills::Stop,
    place::{Files, Place},
    state::State,
};
use crate::block_on;

/// The states before and after an act.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(super) act: Act,
    /// The files before the act, including those that readers ignore.
    pub(super) files: Files,
    /// The call at which the previous process was killed, for [`Verb::Finish`].
    left: Option<usize>,
    /// `None` if there is no store.
    pub(super) old: Option<State>,
    pub(super) new: State,
    /// Number of hook calls of an undisturbed run.
    pub(crate) calls: usize,
    pub(super) micros: u64,
}

impl Scene {
    /// Runs the act to its end.
    pub(crate) fn new(act: Act, place: &Place) -> Self {
        let before = Place::folder();
        block_on(act.prepare(&before.address()));
        let files = before.files();
        let mut old = block_on(State::read(&before.address())).unwrap();
        let left = (act.verb == Verb::Finish).then(|| first_left(act, &files, place));
        let place = set(act, &files, left, place);
        if left.is_some() {
            old = block_on(State::read(&place.address())).unwrap();
        }
        let End::Done { calls, micros } = child::run(act, Stop::Never, &place.address()) else {
            panic!("{act:?} was killed by another process")
        };
        let new = block_on(State::read(&place.address())).unwrap().unwrap();
        let same = old.as_ref().is_some_and(|old| old.content == new.content);
        let keeps = matches!(act.verb, Verb::Compact | Verb::Finish);
        assert_eq!(same, keeps, "{act:?}: not told apart");
        Self {
            act,
            files,
            left,
            old,
            new,
            calls,
            micros,
        }
    }

    /// Returns a place with the state before the act.
    pub(super) fn set(&self, place: &Place) -> Place {
        set(self.act, &self.files, self.left, place)
    }
}

fn set(act: Act, files: &Files, left: Option<usize>, place: &Place) -> Place {
    let place = place.another();
    block_on(place.fill(files));
    if let Some(at) = left {
        let end = child::run(appending(act), Stop::At(at), &place.address());
        assert_eq!(end, End::Killed);
        assert!(block_on(State::is_pending(&place.address())));
    }
    place
}

/// Returns the append that [`Verb::Finish`] completes.
fn appending(act: Act) -> Act {
    Act {
        verb: Verb::Append,
        ..act
    }
}

/// Returns the first call after the append has committed, which leaves the most work.
fn first_left(act: Act, files: &Files, place: &Place) -> usize {
    let mut calls = 1..;
    let left = calls.find(|at| {
        let place = place.another();
        block_on(place.fill(files));
        let end = child::run(appending(act), Stop::At(*at), &place.address());
        assert_eq!(end, End::Killed, "never left anything");
        block_on(State::is_pending(&place.address()))
    });
    left.unwrap()
}
