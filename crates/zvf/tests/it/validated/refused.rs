//! A store that a query, a migration or an editor refuses has a finding.
//!
//! Names of entries and members of `zarr.json` of the recorded stores of every generation are
//! damaged. Each part runs on the damaged store; if one fails that succeeds on the intact store,
//! the validator must report more than for the intact store.

use std::collections::BTreeSet;

use zvf::{Dataset, Editor, OpenOptions, Profile, Query, ValidateOptions};
use zvf_model::error_chain::error_chain;
use zvf_testkit::{
    golden::{Files, Golden},
    sample,
};

use super::{
    findings,
    mutants::{json, with},
};
use crate::{
    block_on,
    damage::{expected::Intact, open, run},
    golden::stores,
    migrated::migrated,
};

/// Number of damages of each sort that are tried on a store, evenly spread.
const CASES_PER_STORE: u64 = 12;

/// Part of refusals of an editor that are no fault of the store: cells are decoded without the parameters
/// of their encoder.
const NO_ENCODER: &str = "is not supported for writing";

/// A damaged store.
struct Damaged {
    what: String,
    files: Files,
}

/// Returns names that are almost `name`: of one coordinate fewer or more, or of other words.
fn other_names(name: &str) -> Vec<String> {
    let mut names = vec![
        "junk".to_owned(),
        format!("{name}.0"),
        format!("0{name}"),
        format!("+{name}"),
        format!("{name}x"),
    ];
    names.extend(name.rsplit_once('.').map(|(front, _)| front.to_owned()));
    names
}

/// Returns stores in which one entry has another name, or a copy with another name beside it.
fn renamed(files: &Files) -> Vec<Damaged> {
    let mut entries = BTreeSet::new();
    for (path, _) in files {
        let mut end = Some(path.as_str());
        while let Some(path) = end {
            entries.insert(path);
            end = path.rsplit_once('/').map(|(parent, _)| parent);
        }
    }
    let mut damaged = Vec::new();
    for entry in entries {
        let (parent, name) = entry.rsplit_once('/').unwrap_or(("", entry));
        for other in other_names(name) {
            let path = [parent, &other].join("/");
            let target = path.trim_start_matches('/');
            let moved = |path: &str| {
                let rest = path.strip_prefix(entry)?;
                (rest.is_empty() || rest.starts_with('/')).then(|| format!("{target}{rest}"))
            };
            let is_taken = |path: &str| path == target || path.starts_with(&format!("{target}/"));
            if files.iter().any(|(path, _)| is_taken(path)) {
                continue;
            }
            let mut copied = files.clone();
            let mut renamed = Files::new();
            for (path, bytes) in files {
                let other = moved(path);
                copied.extend(other.clone().map(|other| (other, bytes.clone())));
                renamed.push((other.unwrap_or_else(|| path.clone()), bytes.clone()));
            }
            damaged.push(Damaged {
                what: format!("{entry} is also {target}"),
                files: copied,
            });
            damaged.push(Damaged {
                what: format!("{entry} is {target}"),
                files: renamed,
            });
        }
    }
    damaged
}

/// Returns stores in which one member of a `zarr.json` is removed or has another value.
fn changed(files: &Files) -> Vec<Damaged> {
    let nodes = files.iter().filter(|(path, _)| path.ends_with("zarr.json"));
    let mutants = nodes.flat_map(|(path, bytes)| json::mutants(path, bytes));
    let damaged = mutants.map(|mutant| Damaged {
        what: format!("{}: {}", mutant.file, mutant.what),
        files: with(files, &mutant),
    });
    damaged.collect()
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

/// Returns the damaged stores with which the validator is content, but another part is not.
fn unreported(store: &str, files: &Files) -> Vec<String> {
    let options = ValidateOptions::default();
    let healthy = findings(files, &options);
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
    let cases = usize::try_from(sample::cases(CASES_PER_STORE)).unwrap();
    for all in [renamed(files), changed(files)] {
        let each = (all.len() / cases).max(1);
        for damaged in all.iter().skip(store.len() % each).step_by(each) {
            if findings(&damaged.files, &options) != healthy {
                continue;
            }
            for (part, error) in block_on(refusals(&damaged.files, &intact)) {
                if !refused.contains(&part) && !error.contains(NO_ENCODER) {
                    missed.push(format!("{store}: {}: {part}: {error}", damaged.what));
                }
            }
        }
    }
    missed
}

fn check(archive: &str) {
    let golden = Golden::open(archive);
    let mut missed = Vec::new();
    for (store, _) in stores(&golden) {
        missed.extend(unreported(&store, &golden.store(&store)));
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
