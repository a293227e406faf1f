//! Stores that were made and changed here: nothing is found in them.

use zvf::{CreateOptions, Store, validate, validation::ValidateOptions};
use zvf_build::{GeometryKind, Profile, WritePlan};

use crate::{
    block_on,
    written::random::{self, Case},
};

/// What geometry is like is not for who stores it to decide: objects of several trees,
/// edges to themselves and between objects, links that are there twice, faces that are
/// turned differently or crowd at an edge.
const GEOMETRY: [&str; 6] = [
    "ZV-L4-023",
    "ZV-L4-030",
    "ZV-L4-031",
    "ZV-L4-032",
    "ZV-L4-041",
    "ZV-L4-042",
];

/// Nothing is found but that, not even a note.
pub(crate) async fn is_sound(store: &Store, about: &str) {
    let report = validate(store.clone(), &ValidateOptions::default()).await;
    let findings = report.unwrap().findings;
    let lines: Vec<String> = findings
        .iter()
        .filter(|found| !GEOMETRY.contains(&found.rule.code))
        .map(|found| {
            let place = found.location.as_deref().unwrap_or("-");
            let (code, path) = (found.rule.code, &found.path);
            format!("{code} {path} {place} {}", found.message)
        })
        .collect();
    assert!(lines.is_empty(), "{about}: {lines:#?}");
}

fn check_all(profile: Profile) {
    for kind in GeometryKind::ALL {
        for seed in 0..8 {
            let Case {
                geometry, design, ..
            } = random::case(seed, kind, profile);
            let about = format!("seed {seed}, {kind:?}, {profile:?}, {design:?}");
            let plan = WritePlan::new(geometry, design).unwrap();
            block_on(async {
                let none: [(&str, &[u8]); 0] = [];
                let store = Store::from_memory(none).unwrap();
                let options = CreateOptions::default();
                zvf::create_from_plan(&store, plan, &options).await.unwrap();
                is_sound(&store, &about).await;
            });
        }
    }
}

#[test]
fn nothing_is_found_in_stores_of_0_9() {
    check_all(Profile::V09);
}

#[test]
fn nothing_is_found_in_stores_of_0_8() {
    check_all(Profile::V08);
}

#[test]
fn nothing_is_found_in_padded_stores() {
    check_all(Profile::Padded);
}
