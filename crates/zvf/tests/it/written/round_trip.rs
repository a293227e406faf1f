//! Stores are read back as written.

use zvf::{CreateOptions, Dataset, Store};
use zvf_build::{GeometryKind, Profile, WritePlan};

use super::{
    content::Content,
    random::{self, Case},
};
use crate::block_on;

fn check(seed: u64, kind: GeometryKind, profile: Profile) {
    let Case {
        geometry, design, ..
    } = random::case(seed, kind, profile);
    let expected = Content::of(&geometry, &design);
    let about = format!("seed {seed}, {kind:?}, {profile:?}, {design:?}");
    let plan = WritePlan::new(geometry, design).unwrap_or_else(|error| panic!("{error}: {about}"));
    let summary = plan.summary();
    let found = block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        let written = zvf::create_from_plan(&store, plan, &CreateOptions::default()).await;
        written.unwrap_or_else(|error| panic!("{error:?}: {about}"));
        let dataset = Dataset::open(store).await.unwrap();
        assert_eq!(dataset.layout().profile(), profile.name(), "{about}");
        let info = dataset.info().await.unwrap();
        assert_eq!(info.levels[0].vertices, Some(summary.vertices), "{about}");
        assert_eq!(info.levels[0].chunks, summary.chunks, "{about}");
        Content::read(&dataset).await
    });
    compare(&expected, &found, &about);
}

/// Asserts equality with a short message.
pub(super) fn compare(expected: &Content, found: &Content, about: &str) {
    for (tag, vertex) in &expected.vertices {
        assert_eq!(
            Some(vertex),
            found.vertices.get(tag),
            "vertex {tag}, {about}"
        );
    }
    assert_eq!(expected.vertices.len(), found.vertices.len(), "{about}");
    assert_eq!(expected.owners, found.owners, "{about}");
    assert_eq!(expected.paths, found.paths, "{about}");
    assert_eq!(expected.links, found.links, "{about}");
    assert_eq!(expected.objects, found.objects, "{about}");
    assert_eq!(expected.groups, found.groups, "{about}");
}

fn check_all(profile: Profile) {
    for kind in GeometryKind::ALL {
        for seed in 0..zvf_testkit::sample::cases(60) {
            check(seed, kind, profile);
        }
    }
}

#[test]
fn stores_of_0_9_hold_what_was_written() {
    check_all(Profile::V09);
}

#[test]
fn stores_of_0_8_hold_what_was_written() {
    check_all(Profile::V08);
}

#[test]
fn padded_stores_hold_what_was_written() {
    check_all(Profile::Padded);
}
