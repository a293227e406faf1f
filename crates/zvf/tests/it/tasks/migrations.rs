//! Migrations by tasks.

use std::{fs, path::Path};

use futures_util::future::join;
use proptest::prelude::*;
use serde_json::Value;
use zvf::{MigrateOptions, OpenOptions, Profile, TaskPlanError, plan_migrate};
use zvf_catalog::CatalogError;
use zvf_testkit::{
    golden::Golden,
    stores::{PyramidLinks, Recipe, RecipeProfile, make, pyramid},
};

use super::{again, assert_equal, files, tasks, text, write_files};
use crate::{block_on, golden::stores, stores::recipes};

/// Runs each task twice at once, and checks that the tasks write the store of one process. Returns
/// the report.
async fn check(source: &Path, options: &MigrateOptions, about: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    // The name of the folder is stored in the root.
    let (one, many) = (folder.path().join("1/store"), folder.path().join("2/store"));
    let (source, open) = (text(source), OpenOptions::default());
    let report = zvf::migrate(&source, &text(&one), options).await.unwrap();
    let planned = plan_migrate(&source, &text(&many), options, &tasks(3)).await;
    let plan = planned.unwrap();
    assert_eq!(plan.status(&open).await.unwrap().missing, [0, 1, 2]);
    for task in (0..3).rev() {
        let missing = plan.commit_in_memory(&open).await.unwrap_err();
        let is_missing = matches!(missing.cause(), Some(TaskPlanError::Missing { .. }));
        assert!(is_missing, "{missing}");
        let other = again(&plan);
        let (one, two) = join(plan.run(task, &open), other.run(task, &open)).await;
        // One may find that the other is done.
        assert!(one.unwrap() | two.unwrap(), "{about}");
        assert!(!plan.run(task, &open).await.unwrap());
        assert!(zvf::Dataset::open(text(&many)).await.is_err());
    }
    let committed = again(&plan).commit_in_memory(&open).await.unwrap();
    // A process that does not know of the commit repeats it.
    assert!(plan.commit_in_memory(&open).await.unwrap().is_committed());
    committed.clean(&open).await.unwrap();
    assert_equal(&one, &many, about);
    let found = committed.report().unwrap();
    assert_eq!(found, report.to_json(), "{about}");
    found.into()
}

fn check_golden(archive: &str) {
    let golden = Golden::open(archive);
    for (store, _) in stores(&golden) {
        let folder = tempfile::tempdir().unwrap();
        let prefix = format!("{store}/");
        let files = golden
            .files()
            .filter_map(|(path, bytes)| Some((path.strip_prefix(&prefix)?, bytes)));
        write_files(folder.path(), files);
        for profile in [Profile::V09, Profile::V08] {
            let options = MigrateOptions::new(profile);
            block_on(check(
                folder.path(),
                &options,
                &format!("{store} to {profile:?}"),
            ));
        }
    }
}

#[test]
fn recorded_stores_of_06_are_migrated() {
    check_golden("zvf-06");
}

#[test]
fn recorded_stores_of_07_are_migrated() {
    check_golden("zvf-07");
}

#[test]
fn recorded_stores_of_08_are_migrated() {
    check_golden("zvf-08");
}

#[test]
fn recorded_stores_of_09_are_migrated() {
    check_golden("zvf-09");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: zvf_testkit::sample::cases(12), ..ProptestConfig::default() })]

    #[test]
    fn random_stores_are_migrated(
        recipe in proptest::sample::select(RecipeProfile::ALL.to_vec()).prop_flat_map(recipes),
        is_older in any::<bool>(),
    ) {
        let made = make(&recipe);
        let profile = if is_older { Profile::V08 } else { Profile::V09 };
        migrate_files(&made.files, profile, &format!("{recipe:?}"));
    }

    #[test]
    fn levels_and_links_between_them_are_migrated(
        recipe in proptest::sample::select(vec![RecipeProfile::V09, RecipeProfile::V10, RecipeProfile::V080])
            .prop_flat_map(recipes),
        both in any::<bool>(),
        is_older in any::<bool>(),
    ) {
        let links = if both { PyramidLinks::Explicit } else { PyramidLinks::Implicit };
        let made = pyramid(&recipe, links).fine;
        let profile = if is_older { Profile::V08 } else { Profile::V09 };
        migrate_files(&made.files, profile, &format!("{recipe:?}, {links:?}"));
    }
}

fn migrate_files(files: &[(String, Vec<u8>)], profile: Profile, about: &str) {
    let folder = tempfile::tempdir().unwrap();
    let files = files.iter().map(|(key, bytes)| (key.as_str(), &bytes[..]));
    write_files(folder.path(), files);
    let mut options = MigrateOptions::new(profile).seal(false);
    options.compression = zvf::CellCompression::Zstd(3);
    block_on(check(folder.path(), &options, about));
}

#[test]
fn damaged_cells_are_skipped_and_listed_once() {
    let made = make(&Recipe {
        size: 90,
        ..Recipe::default()
    });
    let is_cell = |folder: &str| {
        let mut keys = made.files.iter().map(|(key, _)| key);
        let key = keys.find(|key| key.starts_with(folder) && !key.ends_with("zarr.json"));
        key.unwrap().clone()
    };
    let folder = tempfile::tempdir().unwrap();
    let all = made
        .files
        .iter()
        .map(|(key, bytes)| (key.as_str(), &bytes[..]));
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    write_files(&old, all);
    fs::write(old.join(is_cell("0/vertices/")), b"short").unwrap();
    let (open, strict) = (OpenOptions::default(), MigrateOptions::default());
    block_on(async {
        let planned = plan_migrate(&text(&old), &text(&new), &strict, &tasks(1)).await;
        let plan = planned.unwrap();
        let error = plan.run(0, &open).await.unwrap_err();
        assert!(error.cause::<CatalogError>().is_some(), "{error}");
        let report = check(&old, &strict.skip_damaged(true), "damaged").await;
        let lost = report["lost"].as_array().unwrap().iter().filter(|note| {
            note["what"] == "cannot be read"
                && note["path"].as_str().unwrap().starts_with("0/vertices/")
        });
        assert_eq!(lost.count(), 1, "{report}");
    });
}

#[test]
fn a_changed_source_makes_the_plan_outdated() {
    let made = make(&Recipe::default());
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("old"), folder.path().join("new"));
    let all = made
        .files
        .iter()
        .map(|(key, bytes)| (key.as_str(), &bytes[..]));
    write_files(&source, all);
    let (open, options) = (OpenOptions::default(), MigrateOptions::default());
    block_on(async {
        let (from, to) = (text(&source), text(&target));
        let plan = plan_migrate(&from, &to, &options, &tasks(2)).await.unwrap();
        assert!(plan.run(0, &open).await.unwrap());
        assert!(plan_migrate(&from, &to, &options, &tasks(2)).await.is_err());
        let changed = fs::read_to_string(source.join("zarr.json")).unwrap();
        let mut root: Value = serde_json::from_str(&changed).unwrap();
        root["attributes"]["mine"] = 1.into();
        fs::write(source.join("zarr.json"), root.to_string()).unwrap();
        for error in [
            plan.run(1, &open).await.unwrap_err(),
            plan.run(1, &open).await.unwrap_err(),
        ] {
            let said = error.to_string();
            assert!(said.contains("plan again"), "{said}");
        }
        fs::write(source.join("zarr.json"), &changed).unwrap();
        assert!(plan.run(1, &open).await.unwrap());
        root["attributes"]["mine"] = 2.into();
        fs::write(source.join("zarr.json"), root.to_string()).unwrap();
        let said = plan.commit_in_memory(&open).await.unwrap_err().to_string();
        assert!(said.contains("plan again"), "{said}");
        // Another plan replaces this one, whose tasks then fail.
        let restart = tasks(1).replaces_unfinished(true);
        let next = plan_migrate(&from, &to, &options, &restart).await.unwrap();
        let said = plan.run(1, &open).await.unwrap_err().to_string();
        assert!(said.contains("plan again"), "{said}");
        assert!(next.run(0, &open).await.unwrap());
        next.discard(&open).await.unwrap();
        assert!(files(&target).is_empty(), "{:?}", files(&target).keys());
    });
}
