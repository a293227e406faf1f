//! Every recorded store migrated forth and back, with the reports.

use std::collections::BTreeMap;

use zvf::{Dataset, MigrateReport, Profile};
use zvf_format::path::Delta;
use zvf_testkit::golden::Golden;

use super::{
    content::{Content, renamed, same},
    migrated,
};
use crate::{
    block_on,
    golden::{open, stores},
    golden_reads::golden_points_and_paths,
    requests::snapshot,
};

const BRIDGES: &str = "links between pieces of paths with wrong rows";
const FILLED: &str = "values of links that had none, now filled in";
const WIDTH: &str = "cells of links with another number of ends";

/// Formats a report, one line per item.
fn lines(store: &str, report: &MigrateReport) -> Vec<String> {
    let line = |sign: char| {
        let store = store.to_owned();
        move |found: &zvf::MigrationNote| {
            format!(
                "{store} {sign} {}: {} {}",
                found.path, found.count, found.what
            )
        }
    };
    let repaired = report.repaired.iter().map(line('+'));
    repaired.chain(report.lost.iter().map(line('-'))).collect()
}

/// Removes from the source content what the report lists as lost or repaired; other tests check
/// these.
fn without(mut content: Content, report: &MigrateReport) -> Content {
    let says = |what: &str| {
        let mut findings = report.repaired.iter().chain(&report.lost);
        findings.any(|finding| finding.what == what)
    };
    for level in content.levels.values_mut() {
        if says(BRIDGES) {
            level.links.retain(|(delta, _), _| *delta != Delta::INTRA);
        }
        if says(FILLED) {
            for records in level.links.values_mut() {
                let all = core::mem::take(records).into_iter();
                for ((ends, _), count) in all {
                    *records.entry((ends, BTreeMap::new())).or_default() += count;
                }
            }
        }
        if says(WIDTH) {
            level
                .links
                .retain(|(delta, width), _| (*delta, *width) != (Delta::INTRA, 3));
        }
    }
    content
}

async fn there(source: &Dataset, profile: Profile, store: &str) -> (Dataset, Vec<String>) {
    let expected = Content::of(source).await;
    let (target, report) = migrated(source, profile).await.unwrap();
    assert_eq!(target.layout().profile(), profile.name(), "{store}");
    let whole = Content::of(&target).await;
    let found = renamed(without(whole.clone(), &report));
    same(&found, &without(expected, &report), store);
    let said = lines(store, &report);
    // A second migration changes nothing.
    let (again, report) = migrated(&target, profile).await.unwrap();
    assert_eq!(report.repaired, [], "{store}");
    same(&Content::of(&again).await, &whole, store);
    (target, said)
}

fn check(archive: &str, profile: Profile) {
    let golden = Golden::open(archive);
    let mut said = Vec::new();
    for (store, _) in stores(&golden) {
        let source = open(&golden, &store);
        said.extend(block_on(there(&source, profile, &store)).1);
    }
    said.push(String::new());
    let name = format!("migrated_{archive}_to_{}", profile.name());
    snapshot::check(&name, &said.join("\n"));
}

#[test]
fn golden_06_to_09() {
    check("zvf-06", Profile::V09);
}

#[test]
fn golden_06_to_08() {
    check("zvf-06", Profile::V08);
}

#[test]
fn golden_07_to_09() {
    check("zvf-07", Profile::V09);
}

#[test]
fn golden_07_to_08() {
    check("zvf-07", Profile::V08);
}

#[test]
fn golden_08_to_09() {
    check("zvf-08", Profile::V09);
}

#[test]
fn golden_08_to_08() {
    check("zvf-08", Profile::V08);
}

#[test]
fn golden_09_to_08_and_back() {
    let golden = Golden::open("zvf-09");
    let mut said = Vec::new();
    for (store, _) in stores(&golden) {
        let source = open(&golden, &store);
        block_on(async {
            let (older, lines) = there(&source, Profile::V08, &store).await;
            said.extend(lines);
            let before = Content::of(&older).await;
            let (back, report) = migrated(&older, Profile::V09).await.unwrap();
            assert_eq!(report.repaired, [], "{store}");
            same(&Content::of(&back).await, &before, &store);
        });
    }
    said.push(String::new());
    snapshot::check("migrated_zvf-09_to_0.8", &said.join("\n"));
}

#[test]
fn migrated_stores_return_the_recorded_reads() {
    for archive in ["zvf-06", "zvf-07", "zvf-08"] {
        for profile in [Profile::V09, Profile::V08] {
            golden_points_and_paths(archive, |source| {
                block_on(migrated(&source, profile)).unwrap().0
            });
        }
    }
}
