//! Stores that the façade creates and edits pass the consistency rules.

use zvf::{CreateOptions, Editor, Store, ValidateOptions, validate};
use zvf_build::{GeometryKind, OutOfBounds, Profile, WritePlan};
use zvf_testkit::stores::Random;

use crate::{block_on, written::random};

async fn found_in(store: &Store) -> Vec<String> {
    let report = validate(store.clone(), &ValidateOptions::default()).await;
    let findings = report.unwrap().findings.into_iter();
    let own = findings.filter(|finding| finding.rule.code.starts_with("ZV-L3-0"));
    own.map(|finding| format!("{} {}", finding.rule.code, finding.message))
        .collect()
}

async fn created(plan: WritePlan) -> Store {
    let none: [(&str, &[u8]); 0] = [];
    let store = Store::from_memory(none).unwrap();
    let options = CreateOptions::default();
    zvf::create_from_plan(&store, plan, &options).await.unwrap();
    store
}

#[test]
fn created_stores_have_no_findings() {
    for profile in Profile::ALL {
        for kind in GeometryKind::ALL {
            for seed in 0..4 {
                let case = random::case(seed, kind, profile);
                let about = format!("seed {seed}, {kind:?}, {:?}", case.design);
                let plan = WritePlan::new(case.geometry.build().unwrap(), case.design).unwrap();
                let found = block_on(async { found_in(&created(plan).await).await });
                assert!(found.is_empty(), "{about}: {found:#?}");
            }
        }
    }
}

#[test]
fn edited_stores_have_no_findings() {
    for kind in GeometryKind::ALL {
        for seed in 0..4 {
            let mut case = random::case(seed, kind, Profile::V09);
            let axes = case.geometry.axes();
            case.design.bounds = Some((vec![-200.0; axes], vec![200.0; axes]));
            let about = format!("seed {seed}, {kind:?}, {:?}", case.design);
            let mut random = Random::new(seed);
            let plan = WritePlan::new(case.geometry.clone().build().unwrap(), case.design.clone())
                .unwrap();
            block_on(async {
                let store = created(plan).await;
                let editor = Editor::open(store.clone()).await.unwrap();
                let more = case.more(&mut random, 30, 1_000_000);
                let appended = editor
                    .append(&more.build().unwrap(), OutOfBounds::Reject)
                    .await
                    .is_ok();
                let found_now = found_in(&store).await;
                assert!(found_now.is_empty(), "{appended} {about}: {found_now:#?}");
                let _ = editor.remove(&[1_000_000, 0]).await;
                let found_now = found_in(&store).await;
                assert!(found_now.is_empty(), "removed, {about}: {found_now:#?}");
                editor.compact().await.unwrap();
                let found_now = found_in(&store).await;
                assert!(found_now.is_empty(), "compacted, {about}: {found_now:#?}");
            });
        }
    }
}
