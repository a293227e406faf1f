//! A store before a change and after it.

use super::{
    act::{Act, Verb},
    child::{self, End},
    kills::Stop,
    place::{Files, Place},
    state::State,
};
use crate::block_on;

/// What is there before an act, and after it.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(super) act: Act,
    /// What is there before, also what no reader looks at.
    pub(super) files: Files,
    /// The call at which somebody was killed before, for [`Verb::Finish`].
    left: Option<usize>,
    /// `None` where there is no store.
    pub(super) old: Option<State>,
    pub(super) new: State,
    /// How often the hook is called when nobody is killed.
    pub(crate) calls: usize,
    pub(super) micros: u64,
}

impl Scene {
    /// Does it once to the end, at such a place.
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
            panic!("{act:?} was killed by somebody else")
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

    /// A place with what was there before.
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

/// What is to be finished.
fn appending(act: Act) -> Act {
    Act {
        verb: Verb::Append,
        ..act
    }
}

/// The first call at which appending is committed: it leaves the most to do.
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
