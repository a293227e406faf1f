//! Killed and concurrent writers on a bucket, with the same tests as on a disk.

use super::{Place as Server, report};
use crate::killed::{Act, Like, Place, Scene, Stop, Verb, Way, kill_all, write_at_once};
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
    let place = place("verbs");
    let likes = [Like::Tiny, Like::Sharded].into_iter().cycle();
    let kinds = GeometryKind::ALL.into_iter().cycle().skip(2);
    let verbs = Verb::ALL.into_iter().zip(kinds.zip(likes));
    let scenes = verbs.map(|(verb, (kind, like))| {
        let act = Act::first(verb, kind, like, 50_000);
        Scene::new(act, &place)
    });
    let scenes: Vec<Scene> = scenes.collect();
    let kills = usize::try_from(cases(EACH)).unwrap();
    let mut jobs = Vec::new();
    for scene in &scenes {
        // Evenly over all operations.
        let each = kills.min(scene.calls);
        let calls = (1..=each).map(|at| (at * scene.calls).div_ceil(each));
        jobs.extend(calls.map(|call| (scene, Stop::At(call))));
    }
    let tally = kill_all(&place, &jobs, CONCURRENT_KILLS);
    assert_eq!(tally.done, 0, "{tally:?}");
    for verb in Verb::ALL {
        assert!(tally.killed[&verb] >= kills / 2, "{verb:?}: {tally:?}");
    }
    assert!(
        tally.old > 3 && tally.new > 3 && tally.pending > 3,
        "{tally:?}"
    );
    report(format_args!(
        "S3: {} processes killed at {} operations: {} left the old state, {} the new one, {} of them to be finished",
        tally.kills(),
        scenes.iter().map(|scene| scene.calls).sum::<usize>(),
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
    for (name, overlapping, given, retries) in [
        ("own", false, true, 0),
        ("shared", true, false, 10_000),
        ("once", true, false, 0),
    ] {
        let way = Way {
            writers: 4,
            appends: 3,
            overlapping,
            given,
            retries,
        };
        let outcome = write_at_once(way, &place(&format!("at-once-{name}")));
        assert!(
            name == "once" || outcome.conflicts == 0,
            "{name}: {outcome:?}"
        );
        committed += outcome.committed;
        conflicts += outcome.conflicts;
    }
    report(format_args!(
        "S3: 4 processes at once: {committed} appends committed, {conflicts} told of a conflict, none lost"
    ));
}
