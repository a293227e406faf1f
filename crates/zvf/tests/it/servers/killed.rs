//! Killed and concurrent writers on a bucket, with the same tests as on a disk.

use super::{Place as Server, report};
use crate::killed::{
    KillTime, Operation, Place, Scenario, StoreProperty, StoreStates, WriterSetup, kill_all,
    write_at_once,
};
use zvf_build::GeometryKind;
use zvf_testkit::sample::cases;

/// Kills of each operation, in the sample. The tests on a disk have many more.
const EACH: u64 = 6;
/// Concurrent processes; the server has at most one core.
const CONCURRENT_KILLS: usize = 3;

fn place(name: &str) -> Place {
    Place::Bucket(Server::S3.address("stores", &format!("killed-{name}/0")))
}

#[test]
#[ignore = "needs servers: cargo xtask servers"]
fn a_writer_killed_in_a_bucket_leaves_the_old_or_the_new_state() {
    let place = place("operations");
    let properties = [StoreProperty::Tiny, StoreProperty::Sharded]
        .into_iter()
        .cycle();
    let kinds = GeometryKind::ALL.into_iter().cycle().skip(2);
    let operations = Operation::ALL.into_iter().zip(kinds.zip(properties));
    let all_states: Vec<StoreStates> = operations
        .map(|(operation, (kind, property))| {
            let scenario = Scenario::first(operation, kind, property, 50_000);
            StoreStates::new(scenario, &place)
        })
        .collect();
    let kills = usize::try_from(cases(EACH)).unwrap();
    let mut jobs = Vec::new();
    for states in &all_states {
        // Evenly over all operations.
        let each = kills.min(states.calls);
        let calls = (1..=each).map(|at| (at * states.calls).div_ceil(each));
        jobs.extend(calls.map(|call| (states, KillTime::At(call))));
    }
    let tally = kill_all(&place, &jobs, CONCURRENT_KILLS);
    assert_eq!(tally.done, 0, "{tally:?}");
    for operation in Operation::ALL {
        assert!(
            tally.killed[&operation] >= kills / 2,
            "{operation:?}: {tally:?}"
        );
    }
    assert!(
        tally.old > 3 && tally.new > 3 && tally.pending > 3,
        "{tally:?}"
    );
    report(format_args!(
        "S3: {} processes killed at {} operations: {} left the old state, {} the new one, {} of them to be finished",
        tally.kills(),
        all_states.iter().map(|states| states.calls).sum::<usize>(),
        tally.old,
        tally.new,
        tally.pending,
    ));
}

#[test]
#[ignore = "needs servers: cargo xtask servers"]
fn four_writers_append_to_a_bucket_concurrently() {
    let mut committed = 0;
    let mut conflicts = 0;
    for (name, overlapping, with_ids, retries) in [
        ("own", false, true, 0),
        ("shared", true, false, 10_000),
        ("once", true, false, 0),
    ] {
        let setup = WriterSetup {
            writers: 4,
            appends: 3,
            overlapping,
            with_ids,
            retries,
        };
        let outcome = write_at_once(setup, &place(&format!("at-once-{name}")));
        assert!(
            name == "once" || outcome.conflicts == 0,
            "{name}: {outcome:?}"
        );
        committed += outcome.committed;
        conflicts += outcome.conflicts;
    }
    report(format_args!(
        "S3: 4 concurrent processes: {committed} appends committed, {conflicts} rejected with a \
         conflict, none lost"
    ));
}
