//! Bytes that other programs wrote: cloud-volume 12.15.2, osteoid 0.7.4, neuroglancer 2.41.2 and
//! tensorstore 0.1.86.

#![expect(
    clippy::print_stdout,
    reason = "`cargo xtask conformance --golden` prints what was compared"
)]

use zvf_precomputed::{
    Annotation, AnnotationInfo, AnnotationKind, AnnotationList, AttributeType, LegacyMeshFragment,
    ManifestLevel, MeshNode, MultilodManifest,
    PropertyValue::{Rgb, Uint8, Uint16, Uint32},
    RecordLayout, ShardEncoding, ShardFile, ShardHash, ShardingSpec, Skeleton, VertexAttribute,
};

use crate::hex;

#[test]
fn golden_skeleton_of_osteoid() {
    let attribute = |id: &str, data_type| VertexAttribute {
        id: id.to_owned(),
        data_type,
        components: 1,
    };
    let attributes = [
        attribute("radius", AttributeType::Float32),
        attribute("kind", AttributeType::Uint8),
    ];
    let bytes = hex(
        "02000000010000000000803f0000004000004040000080400000a0400000d040
                     00000000010000000000003f000000400307",
    );
    let skeleton = Skeleton {
        positions: vec![[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]],
        edges: vec![[0, 1]],
        attributes: vec![hex("0000003f00000040"), vec![3, 7]],
    };
    assert_eq!(skeleton.encode(&attributes).unwrap(), bytes);
    assert_eq!(Skeleton::decode(&bytes, &attributes).unwrap(), skeleton);
    println!("conformance: a skeleton of osteoid");
}

const INFO: &str = r#"{"@type": "neuroglancer_annotations_v1",
    "dimensions": {"x": [1e-06, "m"], "y": [1e-06, "m"], "z": [1e-06, "m"]},
    "lower_bound": [1.0, 2.0, 3.0], "upper_bound": [4.0, 5.0, 6.0], "annotation_type": "KIND",
    "properties": [{"id": "a", "type": "uint32"}, {"id": "h", "type": "uint16"},
                   {"id": "c", "type": "uint8"}, {"id": "col", "type": "rgb"}],
    "relationships": [{"id": "object", "key": "rel_object"}], "by_id": {"key": "by_id"},
    "spatial": [{"key": "spatial0", "grid_shape": [1, 1, 1], "chunk_size": [3.0, 3.0, 3.0],
                 "limit": 2}]}"#;

#[test]
fn golden_annotations_of_neuroglancer() {
    let properties = vec![Uint32(70_000), Uint16(300), Uint8(5), Rgb([1, 2, 3])];
    let tail = "701101002c01050102030000";
    for (kind, coordinates, geometry) in [
        (
            AnnotationKind::Point,
            vec![1.0, 2.0, 3.0],
            "0000803f0000004000004040",
        ),
        (
            AnnotationKind::Line,
            vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            "0000803f0000004000004040000080400000a0400000c040",
        ),
        (
            AnnotationKind::Polyline,
            vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            "030000000000803f0000004000004040000080400000a0400000c0400000e040
             0000004100001041",
        ),
    ] {
        let info = AnnotationInfo::parse(INFO.replace("KIND", kind.name()).as_bytes()).unwrap();
        assert_eq!((info.kind, info.spatial[0].limit), (kind, 2));
        let layout = RecordLayout::of(&info);
        let annotation = Annotation {
            coordinates,
            properties: properties.clone(),
        };
        let single = hex(&format!(
            "{geometry}{tail}0200000009000000000000000a00000000000000"
        ));
        let related = vec![vec![9, 10]];
        assert_eq!(layout.encode_single(&annotation, &related).unwrap(), single);
        assert_eq!(
            layout.decode_single(&single, 1).unwrap(),
            (annotation.clone(), related)
        );
        let list = hex(&format!("0100000000000000{geometry}{tail}1100000000000000"));
        let annotations = AnnotationList {
            annotations: vec![annotation],
            ids: vec![17],
        };
        assert_eq!(annotations.encode(&layout).unwrap(), list);
        assert_eq!(AnnotationList::decode(&list, &layout).unwrap(), annotations);
    }
    println!("conformance: annotations of three kinds of neuroglancer");
}

#[test]
fn golden_shards_of_tensorstore() {
    let raw = [
        "0e000000000000003e00000000000000580000000000000088000000000000007661
         6c7565203076616c7565203100000000000000000100000000000000000000000000
         000000000000000000000700000000000000070000000000000076616c7565203276
         616c7565203130393935313136323737373902000000000000000100000000010000
         3e000000000000000000000000000000070000000000000013000000
         00000000",
        "07000000000000001f000000000000000000000000000000000000000000000076616c75
         652035050000000000000000000000000000000700000000000000",
    ];
    let gzip = [
        "000000000000000000000000000000003600000000000000540000000000000
         01f8b08000000000002032b4bcc294d55300000b7311e2c070000001f8b080000000
         00002032b4bcc294d553004002101195b070000001f8b0800000000000203636080
         004606ec401a8d06008c19e1c030000000",
        "360000000000000054000000000000007b000000000000009d000000000000001f8b0
         8000000000002032b4bcc294d553002009b5010c2070000001f8b08000000000002
         032b4bcc294d5530050038c5745c070000001f8b0800000000000203636280006606
         ec401a8d0600fbe27a3e300000001f8b08000000000002032b4bcc294d553034b0b
         43435343433323737b70400217d5668130000001f8b0800000000000203636660606
         06064600861800075280d00fc0ce6c318000000",
    ];
    for (hash, encoding, files) in [
        (ShardHash::Identity, ShardEncoding::Raw, raw),
        (ShardHash::Murmur, ShardEncoding::Gzip, gzip),
    ] {
        let spec = ShardingSpec {
            preshift_bits: 1,
            hash,
            minishard_bits: 1,
            shard_bits: 1,
            minishard_index_encoding: encoding,
            data_encoding: encoding,
        };
        let files = files.map(hex);
        for key in [0, 1, 2, 5, (1 << 40) + 3] {
            let shard = usize::try_from(spec.locate(key).shard).unwrap();
            let file = ShardFile::parse(spec, &files[shard]).unwrap();
            let value = file.get(key, 100).unwrap().unwrap();
            assert_eq!(value, format!("value {key}").into_bytes());
        }
    }
    println!("conformance: shards of tensorstore in two encodings");
}

#[test]
fn golden_mesh_of_cloud_volume() {
    let bytes = hex("040000000000803f0000004000004040000080400000a0400000d040
                     000000000000803f000000000000e0400000e0400000e040
                     000000000100000002000000020000000100000003000000");
    let mesh = LegacyMeshFragment {
        positions: vec![
            [1.0, 2.0, 3.0],
            [4.0, 5.0, 6.5],
            [0.0, 1.0, 0.0],
            [7.0, 7.0, 7.0],
        ],
        triangles: vec![[0, 1, 2], [2, 1, 3]],
    };
    assert_eq!(mesh.encode().unwrap(), bytes);
    assert_eq!(LegacyMeshFragment::decode(&bytes).unwrap(), mesh);
    println!("conformance: a mesh of cloud-volume");
}

/// With several levels, cloud-volume 12.15.2 writes manifests that it does not read.
#[test]
fn golden_manifest_of_cloud_volume() {
    let bytes = hex("000020410000a0410000f0410000803f0000004000004040
                     010000000000004000000000000000000000003f03000000
                     000000000100000000000000000000000000000001000000
                     000000000000000000000000640000003200000046000000");
    let node = |position, size| MeshNode { position, size };
    let manifest = MultilodManifest {
        chunk_shape: [10.0, 20.0, 30.0],
        grid_origin: [1.0, 2.0, 3.0],
        levels: vec![ManifestLevel {
            scale: 2.0,
            vertex_offset: [0.0, 0.0, 0.5],
            nodes: vec![
                node([0, 0, 0], 100),
                node([1, 0, 0], 50),
                node([0, 1, 0], 70),
            ],
        }],
    };
    assert_eq!(manifest.encode().unwrap(), bytes);
    assert_eq!(MultilodManifest::decode(&bytes).unwrap(), manifest);
    println!("conformance: a manifest of cloud-volume");
}
