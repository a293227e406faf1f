//! Controls: the checks of this module detect stores in neither state.

use zvf_build::GeometryKind;

use super::{
    act::{Act, Like, Verb},
    child::{self, End},
    kills::{Stop, Which, look},
    place::Place,
    scene::Scene,
};
use crate::block_on;

/// Detects one object of the new state in the old store, and the reverse.
#[test]
fn one_object_of_the_other_state_is_detected() {
    let place = Place::folder();
    let act = Act::first(Verb::Append, GeometryKind::Points, Like::Plain, 0);
    let scene = Scene::new(act, &place);
    let old = scene.old.clone().unwrap();
    let mut noticed = 0;
    for (from, to) in [(&scene.new, &old), (&old, &scene.new)] {
        for (name, bytes) in &from.files {
            if to.files.get(name) == Some(bytes) {
                continue;
            }
            let place = place.another();
            let mut files: Vec<_> = to.files.clone().into_iter().collect();
            block_on(place.fill(&files));
            let sound = block_on(look(&scene, &place.address())).unwrap();
            assert_eq!(sound == Which::New, to == &scene.new);
            files.push((name.clone(), bytes.clone()));
            block_on(place.fill(&files));
            // A badly damaged store may also panic here.
            let address = place.address();
            let found = std::panic::catch_unwind(|| block_on(look(&scene, &address)));
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
    let act = Act::first(Verb::Careless, GeometryKind::Points, Like::Plain, 0);
    let scene = Scene::new(act, &place);
    let (mut killed, mut mixed) = (0, 0);
    for at in 1..=scene.calls {
        let place = scene.set(&place);
        let address = place.address();
        killed += usize::from(child::run(act, Stop::At(at), &address) == End::Killed);
        let found = std::panic::catch_unwind(|| block_on(look(&scene, &address)));
        mixed += usize::from(!matches!(found, Ok(Ok(_))));
    }
    assert_eq!(killed, scene.calls);
    assert!(mixed > killed / 5, "{mixed} of {killed}");
}
