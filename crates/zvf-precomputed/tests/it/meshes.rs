//! Single-resolution meshes.

use zvf_precomputed::{LegacyMeshFragment, LegacyMeshInfo, LegacyMeshManifest, PrecomputedError};

use crate::hex;

#[test]
fn fragments_round_trip() {
    let fragment = LegacyMeshFragment {
        positions: vec![[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
        triangles: vec![[0, 1, 2]],
    };
    let bytes = fragment.encode().unwrap();
    let wanted = hex("03000000 000000000000000000000000 0000803f0000000000000000
                      000000000000803f00000000 000000000100000002000000");
    assert_eq!(bytes, wanted);
    assert_eq!(LegacyMeshFragment::decode(&bytes).unwrap(), fragment);
    // A prefix that ends after the positions is a fragment without triangles.
    for end in (0..bytes.len()).filter(|end| *end != 40) {
        assert!(LegacyMeshFragment::decode(&bytes[..end]).is_err(), "{end}");
    }
}

#[test]
fn rows_are_checked() {
    let bytes = hex("01000000 000000000000000000000000 000000000000000001000000");
    let outside = PrecomputedError::Row {
        row: 1,
        vertices: 1,
    };
    assert_eq!(LegacyMeshFragment::decode(&bytes), Err(outside));
}

#[test]
fn documents_round_trip() {
    let manifest = LegacyMeshManifest {
        fragments: vec!["17:0:a".to_owned()],
    };
    let parsed = LegacyMeshManifest::parse(manifest.to_json().as_bytes()).unwrap();
    assert_eq!(parsed, manifest);
    let info = LegacyMeshInfo {
        segment_properties: Some("props".to_owned()),
    };
    assert_eq!(
        LegacyMeshInfo::parse(info.to_json().as_bytes()).unwrap(),
        info
    );
    for name in ["../x", "/x", "a\\\\b", "..", ""] {
        let json = format!(r#"{{"fragments": ["{name}"]}}"#);
        assert!(
            LegacyMeshManifest::parse(json.as_bytes()).is_err(),
            "{name}"
        );
    }
}
