//! Mutation tests of validation: every field of every blob and every value of every `zarr.json`,
//! for a store of each kind, set to a wrong value. Each mutant must be found or proven harmless.
//!
//! A mutant is harmless if every query gives the original result. A mutant with other legal data
//! (another coordinate in the same chunk) can only be detected by a checksum, so the same change
//! must be found in the store with checksums. The remaining mutants are listed in `free.rs`, each
//! with its reason.

mod fields;
mod free;
pub(super) mod json;

use std::collections::BTreeMap;

use zvf::{CreateOptions, Store, ValidateOptions};
use zvf_build::{CellChecksums, Design, GeometryBuilder, GeometryKind, Profile, WritePlan};
use zvf_model::key::Key;
use zvf_store::Read;
use zvf_testkit::{golden::Files, stores::Random};

use super::findings;
use crate::{
    block_on,
    damage::{expected::Intact, is_same, open, run},
    written::random::GeometryGenerator,
};

/// A changed file.
pub(super) struct Mutant {
    pub(super) file: String,
    /// Description of the change, for failure messages.
    pub(super) what: String,
    pub(super) bytes: Vec<u8>,
}

/// Findings of random geometry that is not damaged: objects of several trees, links between
/// objects, duplicate and reversed links, inconsistently oriented faces.
const BENIGN_FINDINGS: [&str; 6] = [
    "ZV-L4-023",
    "ZV-L4-030",
    "ZV-L4-031",
    "ZV-L4-032",
    "ZV-L4-041",
    "ZV-L4-042",
];

/// Counters of the outcomes.
#[derive(Debug, Default)]
struct Tally {
    made: usize,
    found: usize,
    harmless: usize,
    guarded: usize,
    free: usize,
    missed: Vec<String>,
}

/// Reads all files of a store.
pub(crate) async fn snapshot(store: &Store) -> Files {
    let listed = store.list_all(&Key::root(), 1 << 20).await.unwrap();
    let keys: Vec<Key> = listed
        .iter()
        .map(|file| Key::parse(&file.name).unwrap())
        .collect();
    let reads: Vec<Read> = keys.iter().cloned().map(Read::full).collect();
    let bytes = store.read(&reads).await.unwrap();
    keys.iter()
        .zip(bytes)
        .map(|(key, bytes)| (key.as_str().to_owned(), bytes.unwrap().to_vec()))
        .collect()
}

fn design(kind: GeometryKind, profile: Profile, checksum: bool) -> Design {
    let mut design = Design::new(kind);
    design.profile = profile;
    design.chunk_shape = Some(vec![16.0, 16.0]);
    design.checksums = if checksum {
        CellChecksums::On
    } else {
        CellChecksums::Off
    };
    design
}

fn geometry(design: &Design) -> GeometryBuilder {
    let mut random = Random::new(7);
    let mut generator = GeometryGenerator {
        random: &mut random,
        design,
        axes: 2,
        double: false,
        tag: 0,
        first_id: 0,
        rich: true,
        with_ids: true,
        attribute_types: 0,
    };
    generator.geometry(20)
}

/// Creates a store and returns its files.
fn made(geometry: GeometryBuilder, design: Design) -> Files {
    let plan = WritePlan::new(geometry.build().unwrap(), design).unwrap();
    block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        let mut options = CreateOptions::default();
        // The copy of the nodes would reveal most changes before any other rule.
        options.node_copy = false;
        zvf::create_from_plan(&store, plan, &options).await.unwrap();
        snapshot(&store).await
    })
}

/// Creates a small store with attributes and groups, without checksums.
pub(super) fn small(kind: GeometryKind, profile: Profile) -> Files {
    let design = design(kind, profile, false);
    made(geometry(&design), design)
}

/// Replaces a file by its mutant.
fn with(files: &Files, mutant: &Mutant) -> Files {
    let files = files.iter().map(|(path, bytes)| {
        let bytes = if *path == mutant.file {
            &mutant.bytes
        } else {
            bytes
        };
        (path.clone(), bytes.clone())
    });
    files.collect()
}

/// If this variable is set, all mutants are judged, otherwise one in [`CASES_PER_KIND`], which
/// takes half a minute instead of five.
const ALL: &str = "ZVF_TEST_ALL";
/// Each kind starts at another offset, so that what all kinds have in common is judged once.
const CASES_PER_KIND: usize = 6;

/// Judges mutants of a store, starting at an offset. `checked` is the same store with checksums.
fn judge(plain: &Files, checked: &Files, first: usize) -> Tally {
    let each = match std::env::var_os(ALL) {
        Some(_) => 1,
        None => CASES_PER_KIND,
    };
    let options = ValidateOptions::default();
    let healthy = findings(plain, &options);
    assert!(
        healthy
            .iter()
            .all(|line| BENIGN_FINDINGS.contains(&&line[..9])),
        "{healthy:?}"
    );
    assert_eq!(findings(checked, &options), healthy);
    let intact = block_on(Intact::of(plain.clone()));
    let sums: BTreeMap<&str, &[u8]> = checked
        .iter()
        .map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
        .collect();
    let mut tally = Tally::default();
    // Files of transactions are not covered by these rules.
    for (path, bytes) in plain.iter().filter(|(path, _)| !path.starts_with(".zvf/")) {
        let mutants = if path.ends_with("zarr.json") {
            json::mutants(path, bytes)
        } else {
            fields::mutants(plain, path, bytes)
        };
        for mutant in mutants {
            tally.made += 1;
            if !(tally.made + first).is_multiple_of(each) {
                continue;
            }
            let files = with(plain, &mutant);
            if findings(&files, &options) != healthy {
                tally.found += 1;
            } else if is_harmless(&intact, &files) {
                tally.harmless += 1;
            } else if let Some(original) = sums.get(path.as_str())
                && guarded(checked, original, bytes, &mutant)
            {
                tally.guarded += 1;
            } else if free::is_free(path, &mutant.what) {
                tally.free += 1;
            } else {
                tally.missed.push(format!("{path}: {}", mutant.what));
            }
        }
    }
    tally
}

fn is_harmless(intact: &Intact, files: &Files) -> bool {
    block_on(async {
        let Ok(dataset) = open(files).await else {
            return false;
        };
        for expected in &intact.results {
            match run(&dataset, &expected.query).await {
                Ok(result) if is_same(&result, &expected.result) => {}
                _ => return false,
            }
        }
        true
    })
}

/// Returns whether the same change is found in the store with checksums.
fn guarded(checked: &Files, original: &[u8], plain: &[u8], mutant: &Mutant) -> bool {
    // The checksum follows the same bytes and is left unchanged.
    if original.len() != plain.len() + 4 || !original.starts_with(plain) {
        return false;
    }
    let mut bytes = mutant.bytes.clone();
    bytes.extend_from_slice(&original[plain.len()..]);
    let mutant = Mutant {
        file: mutant.file.clone(),
        what: String::new(),
        bytes,
    };
    !findings(&with(checked, &mutant), &ValidateOptions::default()).is_empty()
}

#[expect(clippy::print_stdout, reason = "the test runner shows it on request")]
fn check(kind: GeometryKind, min: usize) {
    let plain = small(kind, Profile::V09);
    let design = design(kind, Profile::V09, true);
    let checked = made(geometry(&design), design);
    let tally = judge(&plain, &checked, kind as usize);
    let judged = tally.found + tally.harmless + tally.guarded + tally.free;
    println!(
        "{kind:?}: {judged} of {} mutants, {} found, {} harmless, {} guarded by checksums, {} free",
        tally.made, tally.found, tally.harmless, tally.guarded, tally.free
    );
    let missed = &tally.missed;
    let some: Vec<&String> = missed.iter().take(40).collect();
    assert!(missed.is_empty(), "{} missed: {some:#?}", missed.len());
    assert!(tally.made >= min, "{} mutants", tally.made);
    assert!(judged >= tally.made / CASES_PER_KIND, "{judged} judged");
}

#[test]
fn mutants_of_points() {
    check(GeometryKind::Points, 2000);
}

#[test]
fn mutants_of_lines() {
    check(GeometryKind::Lines, 2000);
}

#[test]
fn mutants_of_polylines() {
    check(GeometryKind::Polylines, 2000);
}

#[test]
fn mutants_of_streamlines() {
    check(GeometryKind::Streamlines, 2000);
}

#[test]
fn mutants_of_skeletons() {
    check(GeometryKind::Skeletons, 2000);
}

#[test]
fn mutants_of_graphs() {
    check(GeometryKind::Graphs, 2000);
}

#[test]
fn mutants_of_meshes() {
    check(GeometryKind::Mesh, 2000);
}
