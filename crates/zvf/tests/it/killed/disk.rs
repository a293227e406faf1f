//! Processes killed at every operation on a disk.

use zvf_build::GeometryKind;
use zvf_testkit::{sample::cases, stores::Random};

use super::{
    kills::{KillTime, kill_all},
    place::Place,
    scenario::{Operation, Scenario, StoreProperty},
    store_states::StoreStates,
};

/// Maximum number of kills of one store by one operation, spread evenly; a sample of those that
/// `cargo xtask nightly` makes.
const KILLS: u64 = 33;
/// Number of kills at random times, in the sample.
const AT_ANY_TIME: u64 = 50;
/// Concurrent processes; more than the cores of this machine, because they wait for files.
const CONCURRENT_KILLS: usize = 4;

/// Returns stores of every kind for every operation; some sharded, some with checksums.
fn all_states(place: &Place) -> Vec<StoreStates> {
    let properties = [
        StoreProperty::Plain,
        StoreProperty::Sharded,
        StoreProperty::Checked,
    ];
    let mut kinds = GeometryKind::ALL.into_iter().cycle();
    let mut all_states = Vec::new();
    for (at, operation) in Operation::ALL.into_iter().enumerate() {
        for property in properties {
            let kind = kinds.next().unwrap();
            let scenario = Scenario::first(operation, kind, property, at as u64 * 1_000);
            all_states.push(StoreStates::new(scenario, place));
        }
    }
    all_states
}

#[test]
fn a_killed_writer_leaves_the_old_or_the_new_state() {
    let place = Place::folder();
    let all_states = all_states(&place);
    let mut jobs = Vec::new();
    for states in &all_states {
        let kills = states.calls.min(count(KILLS));
        let calls = (1..=kills).map(|at| (at * states.calls).div_ceil(kills));
        jobs.extend(calls.map(|call| (states, KillTime::At(call))));
    }
    let at_operations = kill_all(&place, &jobs, CONCURRENT_KILLS);
    let mut random = Random::new(7);
    let jobs = (0..count(AT_ANY_TIME)).map(|_| {
        let states = &all_states[random.below(all_states.len())];
        let end = usize::try_from(states.micros).unwrap();
        (states, KillTime::After(random.below(end) as u64))
    });
    let at_any_time = kill_all(&place, &jobs.collect::<Vec<_>>(), CONCURRENT_KILLS);
    report(&format!(
        "at operations {at_operations:?}, at any time {at_any_time:?}"
    ));
    let kills = at_operations.kills();
    assert!(
        kills >= count(500).min(2_000),
        "{kills} were killed at operations"
    );
    assert_eq!(at_operations.done, 0, "not killed: {at_operations:?}");
    for operation in Operation::ALL {
        assert!(
            at_operations.killed[&operation] > count(25).min(100),
            "{operation:?}: {at_operations:?}"
        );
    }
    // Every outcome occurs, and often.
    let Some(min) = [at_operations.old, at_operations.new, at_operations.pending]
        .into_iter()
        .min()
    else {
        return;
    };
    assert!(min > count(75).min(300), "{at_operations:?}");
    let at_any_time_kills = at_any_time.kills();
    assert!(
        at_any_time_kills > count(AT_ANY_TIME) / 4,
        "{at_any_time:?}"
    );
}

/// Returns the number of cases of which `sample` are the sample.
fn count(sample: u64) -> usize {
    usize::try_from(cases(sample)).unwrap()
}

#[expect(clippy::print_stdout, reason = "shown with --nocapture")]
fn report(line: &str) {
    println!("killed: {line}");
}
