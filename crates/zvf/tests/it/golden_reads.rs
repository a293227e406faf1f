//! Recorded reads of every golden store, run as queries, and levels as recorded.
//!
//! A result of the reference that has the same meaning as ours must be equal to it. Otherwise the
//! expected result is derived from the recorded level, and the common part of both results is
//! compared with the reference.

mod again;
mod call;
mod columns;
mod drill;
mod levels;
mod links;
mod older;
mod other;
mod paths;
mod points;
mod recorded;
mod tally;

use zvf::Dataset;
use zvf_testkit::golden::Golden;

use self::{call::Call, tally::Tally};
use crate::golden::{open, stores};

/// Checks every recorded read of an archive.
fn reads(archive: &str) -> Tally {
    reads_of(archive, |_| true, |dataset| dataset)
}

/// Checks the recorded reads of points and paths, on the datasets that `become_of` returns.
pub(crate) fn golden_points_and_paths(archive: &str, become_of: impl Fn(Dataset) -> Dataset) {
    let has_order = |call: &Call| !matches!(call.name.as_str(), "read_graph" | "read_mesh");
    let tally = reads_of(archive, has_order, become_of);
    tally.are_equal();
}

fn reads_of(
    archive: &str,
    wanted: impl Fn(&Call) -> bool,
    become_of: impl Fn(Dataset) -> Dataset,
) -> Tally {
    let golden = Golden::open(archive);
    let mut tally = Tally::default();
    for (store, expected) in stores(&golden) {
        let calls: Vec<Call> = match expected["reads"].as_array() {
            Some(calls) => calls.iter().map(Call::recorded).collect(),
            None => older::calls(&store, &expected["reads"]),
        };
        let calls: Vec<Call> = calls.into_iter().filter(|call| wanted(call)).collect();
        if calls.is_empty() {
            continue;
        }
        let dataset = become_of(open(&golden, &store));
        for call in calls {
            tally.reads += 1;
            let at = format!("{store}: {} {}", call.name, call.args);
            let level = recorded::level(&expected, call.level(), &dataset);
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
    let reasons = [
        (
            "an attribute that read_points took for one of another type",
            1,
        ),
        (
            "attributes of paths, which reads of this archive do not record",
            4,
        ),
    ];
    reads("zvf-06").report("zvf-06", "recorded reads", 128, &reasons);
}

#[test]
fn golden_reads_07() {
    let reasons = [(
        "attributes of paths, which reads of this archive do not record",
        4,
    )];
    reads("zvf-07").report("zvf-07", "recorded reads", 151, &reasons);
}

#[test]
fn golden_reads_08() {
    let reasons = [
        ("an attribute of a fragment without vertices", 4),
        ("the response of a writer", 2),
    ];
    reads("zvf-08").report("zvf-08", "recorded reads", 68, &reasons);
}

#[test]
fn golden_reads_09() {
    let reasons = [
        (
            "a path that crosses the box between vertices, which the reference drops",
            2,
        ),
        (
            "a polyline outside of the box, which the reference keeps by its chunks",
            27,
        ),
        ("arrays without rows, which the reference makes float32", 3),
        (
            "attributes of several numbers, which reads of paths drop",
            5,
        ),
        ("attributes that edits left out of step with vertices", 8),
        (
            "attributes that not all vertices have, which reads of paths drop",
            11,
        ),
        ("copies of links that the reference gives again", 2),
        (
            "links between chunks, which read_skeleton_by_segment_id leaves out",
            1,
        ),
        ("links of one end, which read_graph drops", 4),
        (
            "links with the vertex before, which the reference makes up where the parent is elsewhere",
            1,
        ),
        ("read_graph and read_mesh refuse object_ids", 14),
        (
            "streamed skeletons, whose links between chunks the reference misreads",
            2,
        ),
    ];
    reads("zvf-09").report("zvf-09", "recorded reads", 2000, &reasons);
}
