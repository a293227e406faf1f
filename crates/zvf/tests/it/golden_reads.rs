//! Recorded reads of every golden store, asked as queries, and levels as recorded.
//!
//! The reference's answer is expected where it means what ours does. Where it
//! does not, what ours must be is worked out from what is recorded of the level,
//! and what both have in common is compared with the reference.

mod call;
mod columns;
mod levels;
mod links;
mod older;
mod other;
mod paths;
mod points;
mod recorded;
mod tally;

use zvf_testkit::golden::Golden;

use self::{call::Call, tally::Tally};
use crate::golden::{open, stores};

/// Every recorded read of an archive.
fn reads(archive: &str) -> Tally {
    let golden = Golden::open(archive);
    let mut tally = Tally::default();
    for (store, expected) in stores(&golden) {
        let calls = match expected["reads"].as_array() {
            Some(calls) => calls.iter().map(Call::recorded).collect(),
            None => older::calls(&store, &expected["reads"]),
        };
        if calls.is_empty() {
            continue;
        }
        let dataset = open(&golden, &store);
        for call in calls {
            tally.reads += 1;
            let at = format!("{store}: {} {}", call.name, call.args);
            let level = recorded::level(&expected, call.level());
            let work = call::Work {
                dataset: &dataset,
                level: &level,
                call: &call,
                at: &at,
            };
            match call.name.as_str() {
                "read_points" => points::check(&work, &mut tally),
                "read_lines" | "read_polylines" => paths::check(&work, &mut tally),
                "read_graph" | "read_mesh" => links::check(&work, &mut tally),
                _ => other::check(&work, &mut tally),
            }
        }
    }
    tally
}

#[test]
fn golden_reads_06() {
    reads("zvf-06").report("zvf-06", "recorded reads", 0, &[]);
}

#[test]
fn golden_reads_07() {
    reads("zvf-07").report("zvf-07", "recorded reads", 0, &[]);
}

#[test]
fn golden_reads_08() {
    reads("zvf-08").report("zvf-08", "recorded reads", 0, &[]);
}

#[test]
fn golden_reads_09() {
    reads("zvf-09").report("zvf-09", "recorded reads", 0, &[]);
}
