//! Stores created and edited by this library have no findings.

use zvf::{CreateOptions, Store, ValidateOptions, validate};
use zvf_build::{GeometryKind, Profile, WritePlan};

use crate::{
    block_on,
    written::random::{self, Case},
};

/// Findings about geometry, which is the responsibility of the caller: objects of several trees,
/// edges from a vertex to itself and between objects, duplicate links, inconsistently oriented
/// faces, edges with more than two faces.
const GEOMETRY: [&str; 6] = [
    "ZV-L4-023",
    "ZV-L4-030",
    "ZV-L4-031",
    "ZV-L4-032",
    "ZV-L4-041",
    "ZV-L4-042",
];

/// Asserts that a store has no other findings, not even notes.
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
            let plan = WritePlan::new(geometry.build().unwrap(), design).unwrap();
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
fn stores_of_0_9_have_no_findings() {
    check_all(Profile::V09);
}

#[test]
fn stores_of_0_8_have_no_findings() {
    check_all(Profile::V08);
}

#[test]
fn padded_stores_have_no_findings() {
    check_all(Profile::Padded);
}
