//! Flipped bits. A flip in a count or an offset is an error or changes nothing; a flip in a value
//! changes only that value.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use zvf::QueryResult;
use zvf_query::{Column, ColumnValues};
use zvf_testkit::golden::Golden;

use super::{
    Files,
    expected::{ExpectedResult, Intact},
    files, is_same, open, run,
};
use crate::block_on;

const STORES: &[&str] = &[
    "points_attributes",
    "points_objects_groups",
    "lines_mixed",
    "polylines_3d",
    "graph_3d",
    "skeleton_multi",
    "mesh_objects",
];

fn intact(golden: &Golden, store: &str) -> Intact {
    block_on(Intact::of(files(
        golden,
        &format!("{store}/store.zarrvectors"),
    )))
}

/// Returns the store with one bit of one file flipped.
fn flipped(files: &Files, number: usize, bit: usize) -> Files {
    let mut files = files.clone();
    files[number].1[bit / 8] ^= 1 << (bit % 8);
    files
}

/// The outcome of a query.
#[derive(Debug)]
enum Outcome {
    Refused,
    Same,
    Other(Box<QueryResult>),
}

fn all_there_is(intact: &Intact) -> impl Iterator<Item = &ExpectedResult> {
    let expected = intact.results.iter();
    expected.filter(|expected| ["whole", "links"].contains(&expected.name))
}

/// Queries the whole store, with paths and links if it has them.
fn outcomes(intact: &Intact, files: &Files) -> Vec<Outcome> {
    block_on(async {
        let dataset = open(files).await;
        let mut outcome = Vec::new();
        for expected in all_there_is(intact) {
            let Ok(dataset) = &dataset else {
                outcome.push(Outcome::Refused);
                continue;
            };
            outcome.push(match run(dataset, &expected.query).await {
                Err(_) => Outcome::Refused,
                Ok(result) if is_same(&result, &expected.result) => Outcome::Same,
                Ok(result) => Outcome::Other(Box::new(result)),
            });
        }
        outcome
    })
}

/// Counts the bits that differ.
fn bits(one: &[u8], other: &[u8]) -> Option<u32> {
    let pairs = one.iter().zip(other);
    let differ = pairs.map(|(one, other)| (one ^ other).count_ones()).sum();
    (one.len() == other.len()).then_some(differ)
}

fn column_bits(one: &[Column], other: &[Column]) -> Option<u32> {
    let mut sum = 0;
    for (one, other) in one.iter().zip(other) {
        sum += match (&one.values, &other.values) {
            (ColumnValues::Numeric(one), ColumnValues::Numeric(other)) => {
                bits(&one.bytes, &other.bytes)?
            }
            _ if one == other => 0,
            _ => return None,
        };
    }
    (one.len() == other.len()).then_some(sum)
}

/// Returns whether only values of vertex rows changed: the number of vertices, their objects and
/// links are the same.
fn only_values(left: &QueryResult, whole: &QueryResult) -> bool {
    let mut same = whole.clone();
    same.positions.bytes.clone_from(&left.positions.bytes);
    same.vertex.clone_from(&left.vertex);
    same.notes.clone_from(&left.notes);
    let positions = bits(&left.positions.bytes, &whole.positions.bytes);
    let values = column_bits(&left.vertex, &whole.vertex);
    // A vertex of several paths appears once per path.
    let few = |bits: Option<u32>| bits.is_some_and(|bits| bits <= 4);
    *left == same && few(positions) && few(values)
}

/// Returns whether one link has other ends and everything else is unchanged.
fn only_a_link(left: &QueryResult, whole: &QueryResult) -> bool {
    let (Some(links), Some(before)) = (&left.links, &whole.links) else {
        return false;
    };
    let width = usize::try_from(before.width).unwrap();
    // Links of skeletons are ordered by child.
    let all = |ends: &[u64]| {
        let ends = ends.chunks(width).map(<[u64]>::to_vec);
        ends.collect::<BTreeSet<_>>()
    };
    let (links, before) = (all(&links.ends), all(&before.ends));
    // An implied link reappears once no stored link overrides it.
    links.difference(&before).count() <= 2
        && left.positions == whole.positions
        && left.vertex == whole.vertex
        && left.object_ids == whole.object_ids
}

/// Returns whether every vertex occurs in the original result.
fn no_new_vertex(left: &QueryResult, whole: &QueryResult) -> bool {
    let size = whole.positions.row_size();
    let before: BTreeSet<&[u8]> = whole.positions.bytes.chunks(size).collect();
    let mut now = left.positions.bytes.chunks(size);
    now.all(|row| before.contains(row))
}

/// The content of bytes in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Bytes {
    /// Counts and offsets.
    Structure,
    /// Coordinates or vertex values.
    Values,
    /// Row numbers of links.
    Ends,
    /// Numbers of rows or fragments.
    Numbers,
    /// Everything else: values of objects and links, members.
    Others,
}

fn kind_of(key: &str, at: usize) -> Bytes {
    // The frame header: number of items and length of the first.
    if at < 8 && !key.contains("object_attributes") && !key.contains("object_ids") {
        return Bytes::Structure;
    }
    let part = key.split('/').nth(1).unwrap();
    match part {
        // Magic, version, flags, number of fragments and of ranges.
        "vertex_fragments" | "link_fragments" if at < 24 => Bytes::Structure,
        "vertex_fragments" | "link_fragments" | "object_index" => Bytes::Numbers,
        "vertices" | "vertex_attributes" => Bytes::Values,
        "links" => Bytes::Ends,
        _ => Bytes::Others,
    }
}

#[test]
fn flipped_bits_in_cells_are_detected_or_change_one_value() {
    flips_in_cells(4);
}

#[test]
fn flipped_bits_in_metadata_are_detected_or_change_an_unconstrained_value() {
    flips_in_metadata(37);
}

#[test]
#[ignore = "takes minutes; the two tests above take some of the bits"]
fn every_flipped_bit_is_detected_or_changes_one_value() {
    flips_in_cells(1);
    flips_in_metadata(1);
}

#[expect(clippy::print_stdout, reason = "what was seen is worth showing")]
fn flips_in_cells(sample: usize) {
    let golden = Golden::open("zvf-09");
    let mut sums: BTreeMap<(Bytes, &str), u32> = BTreeMap::new();
    for store in STORES {
        let intact = intact(&golden, store);
        for (number, (key, bytes)) in intact.files.iter().enumerate() {
            let is_compressed = bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
            if key.ends_with("zarr.json") || is_compressed {
                continue;
            }
            for byte in 0..bytes.len() {
                let kind = kind_of(key, byte);
                // Tests two bits of each structural byte and one bit in four of the other bytes.
                let chosen: &[usize] = match kind {
                    _ if sample == 1 => &[0, 1, 2, 3, 4, 5, 6, 7],
                    Bytes::Structure => &[0, 5],
                    _ if (byte + number).is_multiple_of(4) => &[3],
                    _ => &[],
                };
                for bit in chosen {
                    let bit = byte * 8 + (bit + byte + number) % 8;
                    let outcome = outcomes(&intact, &flipped(&intact.files, number, bit));
                    for (outcome, expected) in outcome.iter().zip(all_there_is(&intact)) {
                        let what = match outcome {
                            Outcome::Refused => "refused",
                            Outcome::Same => "same",
                            Outcome::Other(left) => {
                                let fine = match kind {
                                    Bytes::Structure => false,
                                    Bytes::Values => only_values(left, &expected.result),
                                    Bytes::Ends => only_a_link(left, &expected.result),
                                    Bytes::Numbers | Bytes::Others => {
                                        no_new_vertex(left, &expected.result)
                                    }
                                };
                                assert!(
                                    fine,
                                    "{store}/{key} bit {bit}, {}: {kind:?}",
                                    expected.name
                                );
                                "other"
                            }
                        };
                        *sums.entry((kind, what)).or_default() += 1;
                    }
                }
            }
        }
    }
    println!("damage: flips, sample {sample}: {sums:?}");
    assert!(sums[&(Bytes::Structure, "refused")] > 1000);
    assert!(sums[&(Bytes::Values, "other")] > 100);
}

/// Collects the JSON paths at which two documents differ.
fn places(one: &Json, other: &Json, at: &str, found: &mut BTreeSet<String>) {
    match (one, other) {
        (Json::Object(one), Json::Object(other)) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                let at = format!("{at}/{name}");
                match (one.get(name), other.get(name)) {
                    (Some(one), Some(other)) => places(one, other, &at, found),
                    // The key was renamed.
                    (Some(_), None) => drop(found.insert(format!("{at} gone"))),
                    _ => {}
                }
            }
        }
        (Json::Array(one), Json::Array(other)) if one.len() == other.len() => {
            for (one, other) in one.iter().zip(other) {
                places(one, other, at, found);
            }
        }
        _ if one != other => drop(found.insert(at.to_owned())),
        _ => {}
    }
}

/// Metadata paths of values that no other data constrains, so that another legal value gives
/// another result; by array, or by root and level.
const VALUES: &[(&str, &str)] = &[
    // Names of axes, and the interpretation of stored values.
    ("", "/attributes/multiscales/axes/name"),
    ("", "/attributes/zarr_vectors/geometry_types"),
    ("", "/attributes/zarr_vectors/links_convention"),
    // The format has a default type for vertices and their attributes.
    ("vertices", "/attributes/dtype gone"),
    ("vertex_attributes", "/attributes/dtype gone"),
    // Rows past the end and missing cells have the fill value.
    ("object_index", "/fill_value"),
    ("object_attributes", "/shape"),
    (
        "object_attributes",
        "/chunk_key_encoding/configuration/separator",
    ),
];

#[expect(clippy::print_stdout, reason = "what was seen is worth showing")]
fn flips_in_metadata(sample: usize) {
    let golden = Golden::open("zvf-09");
    let mut sums: BTreeMap<&str, u32> = BTreeMap::new();
    let mut unknown = BTreeSet::new();
    for (which, store) in STORES.iter().enumerate() {
        let intact = intact(&golden, store);
        for (number, (key, bytes)) in intact.files.iter().enumerate() {
            if !key.ends_with("zarr.json") {
                continue;
            }
            let first = (which + number) % sample;
            for bit in (first..bytes.len() * 8).step_by(sample) {
                let damaged = flipped(&intact.files, number, bit);
                let Ok(json) = serde_json::from_slice::<Json>(&damaged[number].1) else {
                    *sums.entry("no JSON").or_default() += 1;
                    continue;
                };
                for outcome in outcomes(&intact, &damaged) {
                    let what = match outcome {
                        Outcome::Refused => "refused",
                        Outcome::Same => "same",
                        Outcome::Other(_) => {
                            let before = serde_json::from_slice(bytes).unwrap();
                            let mut found = BTreeSet::new();
                            places(&before, &json, "", &mut found);
                            let node = key
                                .strip_suffix("/zarr.json")
                                .unwrap_or("")
                                .split('/')
                                .nth(1)
                                .unwrap_or("");
                            for place in found {
                                let is_known = VALUES
                                    .iter()
                                    .any(|(of, at)| *of == node && place.starts_with(at));
                                if !is_known {
                                    unknown.insert(format!("{node}: {place}"));
                                }
                            }
                            "other"
                        }
                    };
                    *sums.entry(what).or_default() += 1;
                }
            }
        }
    }
    println!("damage: flips in metadata, one in {sample}: {sums:?}");
    assert_eq!(unknown, BTreeSet::new());
    assert!(sums["refused"] > 1000);
}
