//! Damaged and absurd bytes: errors, without memory for counts that the bytes cannot hold.

use zvf_precomputed::{
    AnnotationInfo, AnnotationKind, AnnotationList, LegacyMeshFragment, PrecomputedError,
    PropertySpec, RecordLayout, SegmentProperties, ShardEncoding, ShardError, ShardFile,
    ShardingSpec, Skeleton, SkeletonInfo,
};

use crate::hex;

#[test]
fn absurd_counts_are_refused_from_the_header() {
    let many = [0xff; 16];
    assert_eq!(
        Skeleton::decode(&many, &[]),
        Err(PrecomputedError::Truncated("positions"))
    );
    assert_eq!(
        LegacyMeshFragment::decode(&many),
        Err(PrecomputedError::Truncated("positions"))
    );
    for kind in AnnotationKind::ALL {
        let layout = RecordLayout::new(kind, 3, &[PropertySpec::default()]);
        assert!(AnnotationList::decode(&many, &layout).is_err());
        assert!(layout.decode_single(&many, 1).is_err());
    }
    let layout = RecordLayout::new(AnnotationKind::Polyline, 3, &[]);
    let one = hex("0100000000000000 01000000 000000000000000000000000 0000000000000000");
    assert_eq!(
        AnnotationList::decode(&one, &layout),
        Err(PrecomputedError::Polyline(3))
    );
}

#[test]
fn damaged_indexes_of_shards_are_refused() {
    let spec = ShardingSpec::default();
    assert_eq!(
        ShardFile::parse(spec, &[0; 15]).unwrap_err(),
        ShardError::Index
    );
    let words =
        |words: &[u64]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    for (file, error) in [
        (vec![0, u64::MAX], ShardError::Minishard(0)),
        (vec![8, 0, 1], ShardError::Minishard(0)),
        (vec![0, 16, 1, 2], ShardError::Minishard(0)),
        (vec![0, 24, 7, 0, u64::MAX], ShardError::Outside(7)),
        (vec![0, 24, 7, u64::MAX, 2], ShardError::Outside(7)),
    ] {
        let bytes = words(&file);
        let shard = ShardFile::parse(spec, &bytes).unwrap();
        assert_eq!(shard.get(7, 1000), Err(error), "{file:?}");
    }
    let gzip = ShardingSpec {
        minishard_index_encoding: ShardEncoding::Gzip,
        ..spec
    };
    let bytes = words(&[0, 8, 1]);
    let shard = ShardFile::parse(gzip, &bytes).unwrap();
    assert_eq!(shard.get(7, 1000), Err(ShardError::Minishard(0)));
}

#[test]
fn documents_of_other_kinds_are_refused() {
    for json in ["", "{}", "[]", "17", r#"{"@type": "x"}"#, r#"{"@type": 5}"#] {
        assert!(AnnotationInfo::parse(json.as_bytes()).is_err(), "{json}");
        assert!(SkeletonInfo::parse(json.as_bytes()).is_err(), "{json}");
        assert!(SegmentProperties::parse(json.as_bytes()).is_err(), "{json}");
    }
    let bits = r#"{"@type": "neuroglancer_skeletons", "sharding":
        {"@type": "neuroglancer_uint64_sharded_v1", "preshift_bits": 0, "hash": "identity",
         "minishard_bits": 40, "shard_bits": 0}}"#;
    let error = SkeletonInfo::parse(bits.as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "sharding.minishard_bits of the info document is not a supported number of bits"
    );
    let scale = r#"{"@type": "neuroglancer_annotations_v1", "dimensions": {"x": [0, "m"]}}"#;
    let error = AnnotationInfo::parse(scale.as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "dimensions.x of the info document is not one axis with a positive scale"
    );
}
