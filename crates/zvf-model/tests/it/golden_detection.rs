//! The generation of every recorded store, from its structure.

use serde_json::json;
use zvf_model::{
    detection::{DetectionNote, Evidence},
    generation::Generation,
    level::LevelId,
};

use crate::store::{Store, all, report};

#[test]
fn golden_generation_of_every_store() {
    let (mut stores, mut alone, mut overridden) = (0, 0, 0);
    for store in all() {
        let detection = store.detect();
        assert_eq!(detection.generation, store.generation, "{}", store.name);
        // The first builds of 0.7 stored manifests like 0.6.
        assert_eq!(detection.notes, [], "{}", store.name);
        stores += 1;
        alone += u32::from(check_without_version(&store));
        overridden += check_with_other_versions(&store);
    }
    assert_eq!(stores, 133);
    report(format_args!(
        "generation of {stores} stores, {alone} of them from structure to one generation, \
         {overridden} wrong versions overridden"
    ));
}

/// Returns whether the structure alone determines the generation.
fn check_without_version(store: &Store) -> bool {
    for version in [None, Some(json!("garbage")), Some(json!(9))] {
        let missing = version.is_none();
        let evidence = Evidence {
            version,
            ..store.evidence(LevelId::FULL)
        };
        let detection = evidence.detect().unwrap();
        assert!(
            detection.possible.contains(&store.generation),
            "{}",
            store.name
        );
        let noted = detection.notes.iter().any(|note| match note {
            DetectionNote::VersionMissing => missing,
            DetectionNote::VersionMalformed(_) => !missing,
            _ => false,
        });
        assert!(noted, "{}", store.name);
        // 0.9 is never confused with another generation.
        let is_09 = detection.generation == Generation::V0_9;
        let native = store.name.ends_with("0.8.1/native_sharded");
        assert_eq!(
            is_09,
            store.generation == Generation::V0_9 || native,
            "{}",
            store.name
        );
    }
    let evidence = store.evidence(LevelId::FULL);
    let possible = evidence.detect().unwrap().possible;
    possible.start() == possible.end()
}

fn check_with_other_versions(store: &Store) -> u32 {
    let mut overridden = 0;
    let right = store.detect();
    for (version, claimed) in [
        ("0.6.0", Generation::V0_6),
        ("0.7", Generation::V0_7),
        ("0.8.0", Generation::V0_8_0),
        ("0.8.1", Generation::V0_8_1),
        ("0.9.2", Generation::V0_9),
    ] {
        let evidence = Evidence {
            version: Some(json!(version)),
            ..store.evidence(LevelId::FULL)
        };
        let detection = evidence.detect().unwrap();
        let (low, high) = (right.possible.start(), right.possible.end());
        if claimed == Generation::V0_8_0 {
            // The documents describe more forms for this generation alone.
            assert!(detection.possible.contains(low), "{}", store.name);
            assert!(detection.possible.contains(high), "{}", store.name);
        } else {
            assert_eq!(detection.possible, right.possible, "{}", store.name);
        }
        assert!(
            detection.possible.contains(&detection.generation),
            "{}",
            store.name
        );
        let expected = claimed.clamp(*detection.possible.start(), *detection.possible.end());
        assert_eq!(detection.generation, expected, "{}", store.name);
        if expected != claimed {
            let note =
                |note: &DetectionNote| matches!(note, DetectionNote::VersionOverridden { .. });
            assert!(detection.notes.iter().any(note), "{}", store.name);
            overridden += 1;
        }
    }
    overridden
}
