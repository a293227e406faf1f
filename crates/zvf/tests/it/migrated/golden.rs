//! Every recorded store.

use zvf::build::Profile;
use zvf_testkit::golden::Golden;

use super::{content::{Content, same}, migrated};
use crate::{
    block_on,
    golden::{open, stores},
};

fn check(archive: &str, profile: Profile) {
    let golden = Golden::open(archive);
    let mut failures = Vec::new();
    for (store, _) in stores(&golden) {
        let source = open(&golden, &store);
        let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            block_on(async {
                let expected = Content::of(&source).await;
                let (target, report) = migrated(&source, profile).await.unwrap();
                let profile = target.layout().profile();
                println!("{store} -> {profile} {:?} {:?}", report.repaired, report.lost);
                let found = Content::of(&target).await;
                same(&found, &expected, &store);
            });
        }));
        if tried.is_err() {
            failures.push(store);
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn golden_06_to_09() {
    check("zvf-06", Profile::V09);
}

#[test]
fn golden_07_to_09() {
    check("zvf-07", Profile::V09);
}

#[test]
fn golden_08_to_09() {
    check("zvf-08", Profile::V09);
}

#[test]
fn golden_06_to_08() {
    check("zvf-06", Profile::V08);
}

#[test]
fn golden_07_to_08() {
    check("zvf-07", Profile::V08);
}

#[test]
fn golden_08_to_08() {
    check("zvf-08", Profile::V08);
}

#[test]
fn golden_09_to_08() {
    check("zvf-09", Profile::V08);
}
