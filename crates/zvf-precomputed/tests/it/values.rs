//! Damaged values: refused, or read as what they are.

use proptest::prelude::*;
use zvf_precomputed::{LegacyMeshFragment, Skeleton, SkeletonInfo};

#[path = "../laws/values.rs"]
mod law;

#[test]
fn the_law_reads_values() {
    let skeleton = Skeleton {
        positions: vec![[1.0; 3], [2.0; 3]],
        edges: vec![[0, 1]],
        attributes: Vec::new(),
    };
    let bytes = skeleton.encode(&[]).unwrap();
    assert_eq!(law::values(&[&[0], bytes.as_slice()].concat()), 1);
    let mesh = LegacyMeshFragment {
        positions: vec![[1.0; 3]; 3],
        triangles: vec![[0, 1, 2]],
    };
    let bytes = mesh.encode().unwrap();
    assert!(law::values(&[&[0], bytes.as_slice()].concat()) >= 1);
    let info = SkeletonInfo::default().to_json();
    assert_eq!(law::values(&[&[0], info.as_bytes()].concat()), 1);
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        law::values(&bytes);
    }

    #[test]
    fn damaged_skeletons_are_refused_or_read(
        vertices in 1_u8..6,
        choice in any::<u8>(),
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 0..4),
        more in 0_usize..40,
    ) {
        let skeleton = Skeleton {
            positions: vec![[0.5; 3]; usize::from(vertices)],
            edges: (1..u32::from(vertices)).map(|row| [row - 1, row]).collect(),
            attributes: Vec::new(),
        };
        let mut bytes = skeleton.encode(&[]).unwrap();
        bytes.insert(0, choice);
        bytes.resize(bytes.len() + more, 7);
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        law::values(&bytes);
    }

    #[test]
    fn damaged_documents_are_refused_or_read(
        which in 0_usize..4,
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 0..3),
    ) {
        let documents = [
            r#"{"@type":"neuroglancer_annotations_v1","dimensions":{"x":[1e-9,"m"]},"lower_bound":[0],"upper_bound":[1],"annotation_type":"point","properties":[{"id":"a","type":"uint8","enum_values":[1],"enum_labels":["b"]}],"relationships":[{"id":"o","key":"r"}],"by_id":{"key":"i"},"spatial":[{"key":"s","grid_shape":[1],"chunk_size":[1],"limit":5}]}"#,
            r#"{"@type":"neuroglancer_skeletons","transform":[1,0,0,0,0,1,0,0,0,0,1,0],"vertex_attributes":[{"id":"r","data_type":"float32","num_components":1}],"segment_properties":"p"}"#,
            r#"{"@type":"neuroglancer_multilod_draco","vertex_quantization_bits":16,"transform":[1,0,0,0,0,1,0,0,0,0,1,0],"lod_scale_multiplier":1}"#,
            r#"{"@type":"neuroglancer_segment_properties","inline":{"ids":["1"],"properties":[{"id":"a","type":"number","data_type":"uint8","values":[3]},{"id":"t","type":"tags","tags":["x"],"tag_descriptions":[""],"values":[[0]]}]}}"#,
        ];
        let mut bytes = [&[0], documents[which].as_bytes()].concat();
        let is_whole = changes.is_empty();
        for (at, byte) in changes {
            let at = 1 + at % (bytes.len() - 1);
            bytes[at] = byte;
        }
        let read = law::values(&bytes);
        prop_assert!(!is_whole || read == 1);
    }
}
