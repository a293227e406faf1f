//! A store that a query, its counts, a migration or an editor refuses has an error.
//!
//! Names of entries and members of `zarr.json` are damaged, and entries are removed and added, in the
//! recorded stores of every generation and in created stores of every profile and kind. Each part
//! runs on the damaged store; if one fails that succeeds on the intact store, the validator must
//! report more than for the intact store, and an error if this library created the store.

use std::collections::BTreeSet;

use zvf::{Dataset, Editor, OpenOptions, Profile, Query, Severity, ValidateOptions, validate};
use zvf_build::GeometryKind;
use zvf_model::error_chain::error_chain;
use zvf_testkit::{
    golden::{Files, Golden},
    sample,
};

use super::{
    findings, line,
    mutants::{self, json},
};
use crate::{
    block_on,
    damage::{expected::Intact, open, run},
    golden::stores,
    migrated::migrated,
};

/// Number of damages of each sort that are tried on a store, evenly spread.
const CASES_PER_STORE: u64 = 12;
const CASES_PER_CREATED_STORE: u64 = 6;

/// Parts of refusals that are no fault of the store: cells are decoded without the parameters of their
/// encoder, and a store without objects, groups or links between levels is another healthy store.
const NO_FAULT: [&str; 4] = [
    "is not supported for writing",
    "has no objects",
    "has no group",
    "has no links between",
];

/// A change of the files of a store.
enum Damage {
    /// An entry has another name.
    Renamed { entry: String, target: String },
    /// A copy of an entry has another name.
    Copied { entry: String, target: String },
    /// An entry does not exist.
    Removed { entry: String },
    /// A file has other bytes.
    Changed {
        what: String,
        file: usize,
        bytes: Vec<u8>,
    },
}

impl Damage {
    /// Returns the damaged store.
    fn of(&self, files: &Files) -> Files {
        match self {
            Self::Renamed { entry, target } => {
                let renamed = files.iter().map(|(path, bytes)| {
                    let path = moved(path, entry, target).unwrap_or_else(|| path.clone());
                    (path, bytes.clone())
                });
                renamed.collect()
            }
            Self::Copied { entry, target } => {
                let copies = files
                    .iter()
                    .filter_map(|(path, bytes)| Some((moved(path, entry, target)?, bytes.clone())));
                copies.chain(files.iter().cloned()).collect()
            }
            Self::Removed { entry } => {
                let kept = files.iter().filter(|(path, _)| !is_below(path, entry));
                kept.cloned().collect()
            }
            Self::Changed { file, bytes, .. } => {
                let mut files = files.clone();
                files[*file].1.clone_from(bytes);
                files
            }
        }
    }

    /// Describes the change.
    fn what(&self, files: &Files) -> String {
        match self {
            Self::Renamed { entry, target } => format!("{entry} is {target}"),
            Self::Copied { entry, target } => format!("{entry} is also {target}"),
            Self::Removed { entry } => format!("{entry} is removed"),
            Self::Changed { what, file, .. } => format!("{}: {what}", files[*file].0),
        }
    }
}

/// Returns whether a file is an entry or below it.
fn is_below(path: &str, entry: &str) -> bool {
    let rest = path.strip_prefix(entry);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the path of a file after its entry is renamed.
fn moved(path: &str, entry: &str, target: &str) -> Option<String> {
    is_below(path, entry).then(|| format!("{target}{}", &path[entry.len()..]))
}

/// Returns names that are almost `name`: of one coordinate fewer or more, or of other words.
fn other_names(name: &str) -> Vec<String> {
    let mut names = vec![
        "junk".to_owned(),
        format!("{name}.0"),
        format!("{name}/0"),
        format!("0{name}"),
        format!("+{name}"),
        format!("{name}x"),
    ];
    names.extend(name.rsplit_once('.').map(|(front, _)| front.to_owned()));
    names
}

/// Returns the files and folders of a store.
fn entries(files: &Files) -> BTreeSet<&str> {
    let mut entries = BTreeSet::new();
    for (path, _) in files {
        let mut end = Some(path.as_str());
        while let Some(path) = end {
            entries.insert(path);
            end = path.rsplit_once('/').map(|(parent, _)| parent);
        }
    }
    entries
}

/// Returns damages by which one entry has another name, or a copy with another name beside it.
fn renamed(files: &Files) -> Vec<Damage> {
    let entries = entries(files);
    let mut damages = Vec::new();
    for entry in &entries {
        let (parent, name) = entry.rsplit_once('/').unwrap_or(("", entry));
        for other in other_names(name) {
            let target = [parent, &other].join("/");
            let target = target.trim_start_matches('/').to_owned();
            if entries.contains(target.as_str()) {
                continue;
            }
            let entry = (*entry).to_owned();
            // A file system has no file that is a folder as well.
            if !is_below(&target, &entry) {
                damages.push(Damage::Copied {
                    entry: entry.clone(),
                    target: target.clone(),
                });
            }
            damages.push(Damage::Renamed { entry, target });
        }
    }
    damages
}

/// Returns damages by which one entry does not exist.
fn removed(files: &Files) -> Vec<Damage> {
    let entries = entries(files).into_iter();
    let damages = entries.map(|entry| Damage::Removed {
        entry: entry.to_owned(),
    });
    damages.collect()
}

/// Returns damages by which one member of a `zarr.json` is removed or has another value.
fn changed(files: &Files) -> Vec<Damage> {
    let mut damages = Vec::new();
    for (file, (path, bytes)) in files.iter().enumerate() {
        if path.ends_with("zarr.json") {
            for mutant in json::mutants(path, bytes) {
                let (what, bytes) = (mutant.what, mutant.bytes);
                damages.push(Damage::Changed { what, file, bytes });
            }
        }
    }
    damages
}

/// Returns the parts that refuse a store, with their errors.
async fn refusals(files: &Files, intact: &Intact) -> Vec<(String, String)> {
    let dataset = match open(files).await {
        Ok(dataset) => dataset,
        Err(error) => return vec![("open".to_owned(), error_chain(&error))],
    };
    let mut refusals = Vec::new();
    for expected in &intact.results {
        if let Err(error) = run(&dataset, &expected.query).await {
            refusals.push((format!("query ({})", expected.name), error));
        }
    }
    if let Err(error) = dataset.info().await {
        refusals.push(("info".to_owned(), error_chain(&error)));
    }
    for profile in [Profile::V09, Profile::V08] {
        if let Err(error) = migrated(&dataset, profile).await {
            refusals.push((
                format!("migrate to {}", profile.name()),
                error_chain(&error),
            ));
        }
    }
    if let Err(error) = edit(&dataset, files).await {
        refusals.push(("edit".to_owned(), error_chain(&error)));
    }
    refusals
}

/// Removes the first object of a copy of the store.
async fn edit(dataset: &Dataset, files: &Files) -> Result<(), zvf::Error> {
    let objects = dataset.query(&Query::new()).await?.objects;
    let store = OpenOptions::default().from_memory(files.iter().cloned())?;
    let editor = Editor::open(store).await?;
    let first = objects.iter().find(|id| **id >= 0);
    editor
        .remove(first.map_or(&[][..], std::slice::from_ref))
        .await?;
    Ok(())
}

/// Returns a line for each error of a store.
fn errors(files: &Files) -> BTreeSet<String> {
    let store = OpenOptions::default().from_memory(files.iter().cloned());
    let report = block_on(validate(store.unwrap(), &ValidateOptions::default()));
    let findings = report.unwrap().findings;
    let errors = findings
        .iter()
        .filter(|finding| finding.rule.severity == Severity::Error);
    errors.map(line).collect()
}

/// Returns the damages after which a part refuses the store, although the validator reports nothing that
/// `reports` has not for the intact store.
fn unreported(
    store: &str,
    files: &Files,
    reports: impl Fn(&Files) -> BTreeSet<String>,
    damages: Vec<Vec<Damage>>,
    cases: u64,
) -> Vec<String> {
    let healthy = reports(files);
    // Some were recorded because queries refuse them.
    let whole = async { run(&open(files).await.unwrap(), &Query::new()).await };
    if block_on(whole).is_err() {
        return Vec::new();
    }
    let intact = block_on(Intact::of(files.clone()));
    let refused: BTreeSet<String> = block_on(refusals(files, &intact))
        .into_iter()
        .map(|(part, _)| part)
        .collect();
    let mut missed = Vec::new();
    let cases = usize::try_from(sample::cases(cases)).unwrap();
    for all in damages {
        let each = (all.len() / cases).max(1);
        for damage in all.iter().skip(store.len() % each).step_by(each) {
            let damaged = damage.of(files);
            if !reports(&damaged).is_subset(&healthy) {
                continue;
            }
            let what = format!("{store}: {}", damage.what(files));
            for (part, error) in block_on(refusals(&damaged, &intact)) {
                let is_fault = !NO_FAULT.iter().any(|text| error.contains(text));
                if !refused.contains(&part) && is_fault {
                    missed.push(format!("{what}: {part}: {error}"));
                }
            }
        }
    }
    missed
}

fn check(archive: &str) {
    let golden = Golden::open(archive);
    let options = ValidateOptions::default();
    let mut missed = Vec::new();
    for (store, _) in stores(&golden) {
        let files = golden.store(&store);
        let damages = vec![renamed(&files), changed(&files)];
        let reports = |files: &Files| findings(files, &options).into_iter().collect();
        missed.extend(unreported(
            &store,
            &files,
            reports,
            damages,
            CASES_PER_STORE,
        ));
    }
    assert!(missed.is_empty(), "{} missed: {missed:#?}", missed.len());
}

#[test]
fn refused_stores_of_06_are_reported() {
    check("zvf-06");
}

#[test]
fn refused_stores_of_07_are_reported() {
    check("zvf-07");
}

#[test]
fn refused_stores_of_08_are_reported() {
    check("zvf-08");
}

#[test]
fn refused_stores_of_09_are_reported() {
    check("zvf-09");
}

/// A level that lists an index without having it, and an array with a file that is no cell, were
/// reported with warnings only.
#[test]
fn lost_indexes_of_objects_are_errors() {
    let files = Golden::open("zvf-09").store("points_sharded_zstd/store.zarrvectors");
    assert_eq!(errors(&files), BTreeSet::new());
    for (entry, target) in [
        ("0/object_index", "0/junk"),
        (
            "0/object_index/manifests/c",
            "0/object_index/manifests/junk",
        ),
    ] {
        let (entry, target) = (entry.to_owned(), target.to_owned());
        let damage = Damage::Renamed { entry, target };
        let damaged = damage.of(&files);
        assert!(!errors(&damaged).is_empty(), "{}", damage.what(&files));
        let whole = async { run(&open(&damaged).await.unwrap(), &Query::new()).await };
        assert!(block_on(whole).is_err(), "{}", damage.what(&files));
    }
}

/// Checks created stores of each kind.
fn check_created(profile: Profile) {
    let mut missed = Vec::new();
    for kind in GeometryKind::ALL {
        let store = format!("{kind:?} {}", profile.name());
        let files = mutants::small(kind, profile);
        let damages = vec![renamed(&files), removed(&files), changed(&files)];
        missed.extend(unreported(
            &store,
            &files,
            errors,
            damages,
            CASES_PER_CREATED_STORE,
        ));
    }
    assert!(missed.is_empty(), "{} missed: {missed:#?}", missed.len());
}

#[test]
fn refused_stores_that_were_created_for_0_9_are_reported() {
    check_created(Profile::V09);
}

#[test]
fn refused_stores_that_were_created_for_0_10_are_reported() {
    check_created(Profile::V10);
}

#[test]
fn refused_stores_that_were_created_for_0_8_are_reported() {
    check_created(Profile::V08);
}

#[test]
fn refused_padded_stores_are_reported() {
    check_created(Profile::Padded);
}
