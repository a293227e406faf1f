//! Skeletons.

use zvf_precomputed::{
    AttributeType, PrecomputedError, ShardingSpec, Skeleton, SkeletonInfo, VertexAttribute,
};

use crate::rejects_prefixes;

fn attribute(id: &str, data_type: AttributeType, components: u32) -> VertexAttribute {
    VertexAttribute {
        id: id.to_owned(),
        data_type,
        components,
    }
}

#[test]
fn skeletons_round_trip() {
    let attributes = [
        attribute("radius", AttributeType::Float32, 1),
        attribute("dir", AttributeType::Float32, 3),
        attribute("kind", AttributeType::Uint16, 1),
    ];
    let skeleton = Skeleton {
        positions: vec![[0.0; 3], [1.0; 3], [2.0; 3]],
        edges: vec![[0, 1], [1, 2]],
        attributes: vec![vec![1; 12], vec![2; 36], vec![3; 6]],
    };
    let bytes = skeleton.encode(&attributes).unwrap();
    assert_eq!(bytes.len(), 8 + 36 + 16 + 12 + 36 + 6);
    assert_eq!(Skeleton::decode(&bytes, &attributes).unwrap(), skeleton);
    rejects_prefixes(&bytes, |bytes| Skeleton::decode(bytes, &attributes));
    let longer = [bytes.as_slice(), &[0]].concat();
    let trailing = Skeleton::decode(&longer, &attributes);
    assert_eq!(trailing, Err(PrecomputedError::Trailing(1)));
}

#[test]
fn edges_and_columns_are_checked() {
    let mut skeleton = Skeleton {
        positions: vec![[0.0; 3]],
        edges: vec![[0, 1]],
        attributes: Vec::new(),
    };
    let outside = PrecomputedError::Row {
        row: 1,
        vertices: 1,
    };
    assert_eq!(skeleton.encode(&[]), Err(outside));
    skeleton.edges = Vec::new();
    let radius = [attribute("radius", AttributeType::Float32, 1)];
    let none = skeleton.encode(&radius);
    assert_eq!(none, Err(PrecomputedError::Schema("attributes")));
    skeleton.attributes = vec![vec![0; 3]];
    let short = PrecomputedError::Column {
        attribute: 0,
        found: 3,
        wanted: 4,
    };
    assert_eq!(skeleton.encode(&radius), Err(short));
}

#[test]
fn the_document_round_trips() {
    let info = SkeletonInfo {
        transform: [1000., 0., 0., 5., 0., 1000., 0., 0., 0., 0., 1000., 0.],
        vertex_attributes: vec![attribute("radius", AttributeType::Float32, 1)],
        segment_properties: Some("props".to_owned()),
        sharding: Some(ShardingSpec::for_any(100_000, 1 << 32)),
    };
    assert_eq!(
        SkeletonInfo::parse(info.to_json().as_bytes()).unwrap(),
        info
    );
    let min = SkeletonInfo::parse(br#"{"@type": "neuroglancer_skeletons"}"#).unwrap();
    assert_eq!(min, SkeletonInfo::default());
}
