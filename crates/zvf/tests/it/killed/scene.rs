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
        let mut files = before.files();
        let mut old = block_on(State::read(&before.address())).unwrap();
        if act.verb == Verb::Finish {
            (files, old) = left_to_finish(act, &files);
        }
        let place = place.another();
        block_on(place.fill(&files));
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
            old,
            new,
            calls,
            micros,
        }
    }

    /// A place with what was there before.
    pub(super) fn set(&self, place: &Place) -> Place {
        let place = place.another();
        block_on(place.fill(&self.files));
        place
    }
}

/// What appending leaves that is killed halfway through applying.
fn left_to_finish(act: Act, files: &Files) -> (Files, Option<State>) {
    let act = Act { verb: Verb::Append, ..act };
    let mut left = None;
    for at in 1.. {
        let place = Place::folder();
        block_on(place.fill(files));
        if child::run(act, Stop::At(at), &place.address()) != End::Killed {
            break;
        }
        if block_on(State::is_pending(&place.address())) {
            left = Some((at, place));
            // The first after the commit leaves the most to do.
            break;
        }
    }
    let (_, place) = left.unwrap();
    let state = block_on(State::read(&place.address())).unwrap();
    (place.files(), state)
}
