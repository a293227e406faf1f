//! Controls: the checks of this module detect stores in neither state.

use zvf_build::GeometryKind;

use super::{
    child::{self, End},
    kills::{FoundState, KillTime, read_state},
    place::Place,
    scenario::{Operation, Scenario, StoreProperty},
    store_states::StoreStates,
};
use crate::block_on;

/// Detects one object of the new state in the old store, and the reverse.
#[test]
fn one_object_of_the_other_state_is_detected() {
    let place = Place::folder();
    let scenario = Scenario::first(
        Operation::Append,
        GeometryKind::Points,
        StoreProperty::Plain,
        0,
    );
    let states = StoreStates::new(scenario, &place);
    let old = states.old.clone().unwrap();
    let mut noticed = 0;
    for (from, to) in [(&states.new, &old), (&old, &states.new)] {
        for (name, bytes) in &from.files {
            if to.files.get(name) == Some(bytes) {
                continue;
            }
            let place = place.another();
            let mut files: Vec<_> = to.files.clone().into_iter().collect();
            block_on(place.fill(&files));
            let sound = block_on(read_state(&states, &place.address())).unwrap();
            assert_eq!(sound == FoundState::New, to == &states.new);
            files.push((name.clone(), bytes.clone()));
            block_on(place.fill(&files));
            // A badly damaged store may also panic here.
            let address = place.address();
            let found = std::panic::catch_unwind(|| block_on(read_state(&states, &address)));
            assert!(!matches!(found, Ok(Ok(_))), "{name} went unnoticed");
            noticed += 1;
        }
    }
    assert!(noticed > 10, "{noticed}");
}

/// A writer without transactions, killed in the same way, is detected.
#[test]
fn a_writer_without_transactions_is_detected() {
    let place = Place::folder();
    let scenario = Scenario::first(
        Operation::WithoutTransaction,
        GeometryKind::Points,
        StoreProperty::Plain,
        0,
    );
    let states = StoreStates::new(scenario, &place);
    let (mut killed, mut mixed) = (0, 0);
    for at in 1..=states.calls {
        let place = states.set(&place);
        let address = place.address();
        killed += usize::from(child::run(scenario, KillTime::At(at), &address) == End::Killed);
        let found = std::panic::catch_unwind(|| block_on(read_state(&states, &address)));
        mixed += usize::from(!matches!(found, Ok(Ok(_))));
    }
    assert_eq!(killed, states.calls);
    assert!(mixed > killed / 5, "{mixed} of {killed}");
}
