//! Every file of a store of each kind removed, truncated, extended and bit-flipped.

use std::collections::BTreeMap;

use zvf::{Dataset, QueryResult};
use zvf_model::error_chain::error_chain;
use zvf_testkit::golden::Golden;

use super::{
    Files,
    expected::{ExpectedResult, Intact},
    files, is_same, open, run,
    subset::is_part,
};
use crate::block_on;

/// A store of each kind: points with attributes, with objects and groups, chunked by an attribute,
/// sharded and compressed; lines, polylines, graphs with link attributes, skeletons, meshes,
/// pyramids; and a store of each generation.
const STORES: &[(&str, &str)] = &[
    ("zvf-09", "points_attributes/store.zarrvectors"),
    ("zvf-09", "points_objects_groups/store.zarrvectors"),
    ("zvf-09", "points_chunk_by_attribute/store.zarrvectors"),
    ("zvf-09", "points_categorical/store.zarrvectors"),
    ("zvf-09", "points_fragment_attributes/store.zarrvectors"),
    ("zvf-09", "points_sharded_zstd/store.zarrvectors"),
    ("zvf-09", "lines_mixed/store.zarrvectors"),
    ("zvf-09", "polylines_3d/store.zarrvectors"),
    ("zvf-09", "graph_3d/store.zarrvectors"),
    ("zvf-09", "graph_2d_objects/store.zarrvectors"),
    ("zvf-09", "graph_sharded/store.zarrvectors"),
    ("zvf-09", "skeleton_multi/store.zarrvectors"),
    ("zvf-09", "mesh_objects/store.zarrvectors"),
    ("zvf-09", "pyramid_points/store.zarrvectors"),
    ("zvf-06", "graph.zv"),
    ("zvf-06", "streamlines.zv"),
    ("zvf-06", "points_objects.zv"),
    ("zvf-07", "graph.zv"),
    ("zvf-07", "sharded_octree.zv"),
    ("zvf-08", "0.8.0/graph.zv"),
    ("zvf-08", "0.8.0/streamlines.zv"),
    ("zvf-08", "0.8.1/graph.zv"),
    ("zvf-08", "0.8.1/streamlines.zv"),
    ("zvf-08", "0.8.1/native_sharded.zv"),
];

/// A change of a file; `None` removes the file.
#[derive(Clone, Debug)]
struct FileDamage {
    what: String,
    bytes: Option<Vec<u8>>,
}

/// Truncates a file.
fn cut(bytes: &[u8], length: usize) -> FileDamage {
    FileDamage {
        what: format!("cut to {length}"),
        bytes: Some(bytes[..length].to_vec()),
    }
}

/// Returns these changes: removed, extended, and truncated to nothing, to half and by one byte.
fn damages(bytes: &[u8]) -> Vec<FileDamage> {
    let longer = [bytes, &[0]].concat();
    let mut lengths = vec![0, bytes.len() / 2, bytes.len().saturating_sub(1)];
    lengths.dedup();
    let cuts = lengths.into_iter().map(|length| cut(bytes, length));
    let what = |what: &str, bytes| FileDamage {
        what: what.to_owned(),
        bytes,
    };
    let others = [what("removed", None), what("longer", Some(longer))];
    others.into_iter().chain(cuts).collect()
}

fn with_damage(files: &Files, at: usize, damage: &FileDamage) -> Files {
    let mut files = files.clone();
    match &damage.bytes {
        Some(bytes) => files[at].1.clone_from(bytes),
        None => drop(files.remove(at)),
    }
    files
}

/// Returns whether a message names a location: a key of the store below its levels or, for errors
/// about the root and the levels, the missing item.
fn says_where(message: &str, files: &Files) -> bool {
    let mut nodes = files
        .iter()
        .flat_map(|(key, _)| {
            let ends = key.match_indices('/').map(|(at, _)| at);
            ends.chain([key.len()]).map(move |end| &key[..end])
        })
        .filter(|node| node.contains('/') || *node == "zarr.json");
    nodes.any(|node| message.contains(node)) || WITHOUT_KEY.iter().any(|m| message.contains(m))
}

/// Messages without a key, about optional items that are missing.
const WITHOUT_KEY: &[&str] = &[
    "memory: has no level",
    "memory: is not a Zarr store: it has no zarr.json",
    "there is no level 1",
    "level 0 has no group 0",
    // Without ids, objects are numbered by row, as a note says.
    "level 0 has no object 4",
    // Without the vertices node, a store of 0.9 looks like a mix of generations.
    "vertices has the form of generation 0.8.1, but links that of 0.9",
];

/// An accepted difference of a result without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Known {
    /// A missing chunk of a table stands for its fill value: writers omit chunks that hold only the
    /// fill value.
    Fill,
    /// A note reports the difference.
    Noted,
}

/// Returns the kind of difference if it is an accepted one.
fn known(key: &str, damage: &FileDamage, left: &QueryResult, whole: &QueryResult) -> Option<Known> {
    let mut same = whole.clone();
    same.notes.clone_from(&left.notes);
    if left.notes != whole.notes {
        // Link values are missing, or objects have other ids.
        same.link.clone_from(&left.link);
        same.objects.clone_from(&left.objects);
        same.object_ids.clone_from(&left.object_ids);
        if let (Some(same), Some(left)) = (&mut same.parts, &left.parts) {
            same.objects.clone_from(&left.objects);
        }
        return (same == *left).then_some(Known::Noted);
    }
    let tables = ["/object_attributes/", "/group_attributes/", "/groups/"];
    let is_table = tables.iter().any(|table| key.contains(table));
    if !is_table || damage.bytes.is_some() || key.ends_with("zarr.json") {
        return None;
    }
    same.object.clone_from(&left.object);
    if key.contains("/groups/") {
        // Without members the query selects nothing.
        return (left.groups != whole.groups).then_some(Known::Fill);
    }
    (same == *left).then_some(Known::Fill)
}

#[derive(Debug, Default)]
struct Sums {
    refused: u32,
    same: u32,
    fill: u32,
    noted: u32,
    /// Results of `keep_going` queries with skipped items.
    less: u32,
    faults: Vec<String>,
}

impl Sums {
    /// Runs the query strictly and, if `lenient`, with `keep_going`.
    async fn check(
        &mut self,
        dataset: &Dataset,
        expected: &ExpectedResult,
        at: &At<'_>,
        lenient: bool,
    ) {
        match run(dataset, &expected.query).await {
            Err(error) if says_where(&error, at.files) => self.refused += 1,
            Err(error) => self.fault(at, expected, &format!("names no key: {error}")),
            Ok(result) if is_same(&result, &expected.result) => self.same += 1,
            Ok(result) => match known(at.key, at.damage, &result, &expected.result) {
                Some(Known::Fill) => self.fill += 1,
                Some(Known::Noted) => self.noted += 1,
                None => self.fault(at, expected, "differs"),
            },
        }
        if !lenient {
            return;
        }
        let query = expected.query.clone().keep_going(true);
        let result = match run(dataset, &query).await {
            // Without metadata, intact data cannot be told from damaged data.
            Err(_) if at.key.ends_with("zarr.json") => return,
            Err(error) => return self.fault(at, expected, &format!("goes not on: {error}")),
            Ok(result) => result,
        };
        if result.skipped.is_empty() {
            let same = is_same(&result, &expected.result);
            if !same && known(at.key, at.damage, &result, &expected.result).is_none() {
                self.fault(at, expected, "differs, and nothing is missing");
            }
            return;
        }
        self.less += 1;
        if let Err(more) = is_part(&result, &expected.result) {
            let missing = &result.skipped;
            self.fault(
                at,
                expected,
                &format!("keeps going, and has {more}, {missing:?}"),
            );
        }
        let named = result
            .skipped
            .iter()
            .any(|m| is_near(m.key.as_str(), at.key));
        if !named && !at.key.ends_with("zarr.json") {
            let missing = &result.skipped;
            self.fault(
                at,
                expected,
                &format!("does not name what is missing: {missing:?}"),
            );
        }
    }

    fn fault(&mut self, at: &At<'_>, expected: &ExpectedResult, what: &str) {
        let (key, damage, name) = (at.key, &at.damage.what, expected.name);
        self.faults
            .push(format!("{}/{key} {damage}, {name}: {what}", at.store));
    }
}

/// Returns whether the reported item is the damaged file, its array, or the adjacent array that
/// contradicts it.
fn is_near(missing: &str, key: &str) -> bool {
    let below = |node: &str| key == node || key.starts_with(&format!("{node}/"));
    let parent = missing
        .rsplit_once('/')
        .map_or(missing, |(parent, _)| parent);
    let fragments = missing.ends_with("/vertices") && key.contains("/vertex_fragments/")
        || missing.ends_with("/vertex_fragments") && key.contains("/vertices/");
    below(missing) || (parent.contains('/') && below(parent)) || fragments
}

/// A change and its location.
struct At<'a> {
    store: &'a str,
    files: &'a Files,
    key: &'a str,
    damage: &'a FileDamage,
}

fn each_store(mut each: impl FnMut(&str, &Intact)) {
    let mut archives: BTreeMap<&str, Golden> = BTreeMap::new();
    for (archive, store) in STORES {
        let golden = archives
            .entry(archive)
            .or_insert_with(|| Golden::open(archive));
        let intact = block_on(Intact::of(files(golden, store)));
        each(&format!("{archive}/{store}"), &intact);
    }
}

/// Changes one file and runs the queries.
fn check_damage(
    store: &str,
    intact: &Intact,
    number: usize,
    damage: &FileDamage,
    sums: &mut Sums,
    is_used: impl Fn(usize, &str) -> bool,
) {
    let key = &intact.files[number].0;
    let at = At {
        store,
        files: &intact.files,
        key,
        damage,
    };
    let files = with_damage(&intact.files, number, damage);
    block_on(async {
        let dataset = match open(&files).await {
            Ok(dataset) => dataset,
            Err(error) => {
                let error = error_chain(&error);
                if !says_where(&error, &intact.files) {
                    let what = format!("{store}/{key} {}: names no key: {error}", damage.what);
                    sums.faults.push(what);
                }
                sums.refused += 1;
                return;
            }
        };
        let is_metadata = key.ends_with("zarr.json");
        let expected = intact.results.iter().enumerate();
        for (_, expected) in expected.filter(|(number, expected)| is_used(*number, expected.name)) {
            let lenient = !is_metadata || expected.name == "whole";
            sums.check(&dataset, expected, &at, lenient).await;
        }
    });
}

#[expect(clippy::print_stdout, reason = "what was seen is worth showing")]
fn print_totals(what: &str, sums: &Sums) {
    assert_eq!(sums.faults, Vec::<String>::new());
    let Sums {
        refused,
        same,
        fill,
        noted,
        less,
        ..
    } = sums;
    println!(
        "damage: {what}: {refused} refused, {same} the same, {fill} filled, {noted} noted, \
         {less} in part"
    );
    assert!(*refused > 1000 && *same > 100 && *less > 100);
}

/// Changes every file in every way. Runs the query of everything, and every `sample`th of the other
/// queries.
fn every_file(sample: usize) {
    let mut sums = Sums::default();
    each_store(|store, intact| {
        for (number, (key, bytes)) in intact.files.iter().enumerate() {
            let is_metadata = key.ends_with("zarr.json");
            for (which, damage) in damages(bytes).iter().enumerate() {
                // Truncated JSON never parses, so a few lengths suffice.
                let few = is_metadata && which > 1;
                let is_used = |at: usize, name: &str| {
                    let chosen = (at + number + which).is_multiple_of(sample);
                    name == "whole" || (chosen && !few)
                };
                check_damage(store, intact, number, damage, &mut sums, is_used);
            }
        }
    });
    print_totals(&format!("files, one query in {sample}"), &sums);
}

/// Runs a fifth of the applicable queries.
#[test]
fn removed_truncated_and_extended_files_are_detected() {
    every_file(5);
}

/// Truncates files of fewer than 300 bytes to every `sample`th length.
fn lengths(sample: usize) {
    let mut sums = Sums::default();
    each_store(|store, intact| {
        for (number, (key, bytes)) in intact.files.iter().enumerate() {
            if bytes.len() >= 300 {
                continue;
            }
            let step = if key.ends_with("zarr.json") {
                sample * 4
            } else {
                sample
            };
            for length in (number % step..bytes.len()).step_by(step) {
                let is_used = |_: usize, name: &str| name == "whole" || name == "coarser";
                check_damage(
                    store,
                    intact,
                    number,
                    &cut(bytes, length),
                    &mut sums,
                    is_used,
                );
            }
        }
    });
    print_totals(&format!("lengths, one in {sample}"), &sums);
}

/// Tries a tenth of the lengths of cells and a fortieth of those of metadata.
#[test]
fn files_truncated_to_sampled_lengths_are_detected() {
    lengths(10);
}

#[test]
#[ignore = "takes minutes; the two tests above take some lengths and queries"]
fn files_damaged_in_every_way_are_detected() {
    every_file(1);
    lengths(1);
}
