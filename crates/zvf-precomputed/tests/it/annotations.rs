//! Annotations: documents, records, lists.

use proptest::prelude::*;
use zvf_precomputed::{
    Annotation, AnnotationInfo, AnnotationKind, AnnotationList, Dimension, Dimensions,
    PrecomputedError, PropertySpec, PropertyType, PropertyValue, RecordLayout, Relationship,
    ShardingSpec, SpatialLevel, ValueLabel,
};

use crate::rejects_prefixes;

fn property(id: &str, kind: PropertyType) -> PropertySpec {
    PropertySpec {
        id: id.to_owned(),
        kind,
        ..PropertySpec::default()
    }
}

#[test]
fn properties_are_sorted_by_alignment_and_padded() {
    let properties = [
        property("c", PropertyType::Uint8),
        property("a", PropertyType::Uint32),
        property("col", PropertyType::Rgb),
        property("h", PropertyType::Uint16),
    ];
    let layout = RecordLayout::new(AnnotationKind::Point, 3, &properties);
    assert_eq!(layout.record_size(), Some(24));
    let values = [
        PropertyValue::Uint8(7),
        PropertyValue::Uint32(0x0403_0201),
        PropertyValue::Rgb([8, 9, 10]),
        PropertyValue::Uint16(0x0605),
    ];
    let mut bytes = Vec::new();
    layout.write(&[0.0; 3], &values, &mut bytes).unwrap();
    assert_eq!(bytes[12..], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 0]);
}

#[test]
fn the_document_keeps_the_order_of_axes() {
    let dimension = |name: &str| Dimension {
        name: name.to_owned(),
        scale: 1e-6,
        unit: "m".to_owned(),
    };
    let mut kind = property("kind", PropertyType::Uint8);
    kind.labels = vec![ValueLabel {
        value: 1.0,
        label: "soma".to_owned(),
    }];
    kind.description = Some("Kind of \"cell\"".to_owned());
    let info = AnnotationInfo {
        dimensions: Dimensions(vec![dimension("z"), dimension("a b"), dimension("x")]),
        lower_bound: vec![0.0; 3],
        upper_bound: vec![10.5; 3],
        kind: AnnotationKind::Polyline,
        properties: vec![kind, property("fa", PropertyType::Float32)],
        relationships: vec![Relationship {
            id: "object".to_owned(),
            key: "objects".to_owned(),
            sharding: Some(ShardingSpec::for_any(1000, 1 << 30)),
        }],
        by_id: "by_id".to_owned(),
        by_id_sharding: Some(ShardingSpec::for_consecutive(1 << 24, 1 << 30)),
        spatial: vec![SpatialLevel {
            key: "spatial0".to_owned(),
            grid_shape: vec![1, 2, 3],
            chunk_size: vec![10.5, 5.25, 3.5],
            limit: 17,
            sharding: None,
        }],
    };
    let json = info.to_json();
    assert!(
        json.starts_with(r#"{"dimensions":{"z":[1e-6,"m"],"a b":[1e-6,"m"],"x":"#),
        "{json}"
    );
    assert_eq!(AnnotationInfo::parse(json.as_bytes()).unwrap(), info);
}

#[test]
fn wrong_coordinates_and_properties_are_refused() {
    let layout = RecordLayout::new(AnnotationKind::Polyline, 3, &[]);
    let mut to = Vec::new();
    let one = layout.write(&[0.0; 3], &[], &mut to);
    assert_eq!(one, Err(PrecomputedError::Polyline(3)));
    let part = layout.write(&[0.0; 7], &[], &mut to);
    assert_eq!(part, Err(PrecomputedError::Polyline(7)));
    let layout = RecordLayout::new(AnnotationKind::Line, 3, &[]);
    let short = layout.write(&[0.0; 3], &[], &mut to);
    let wanted = PrecomputedError::Coordinates {
        found: 3,
        wanted: 6,
    };
    assert_eq!(short, Err(wanted));
    let other = layout.write(&[0.0; 6], &[PropertyValue::Uint8(0)], &mut to);
    assert_eq!(other, Err(PrecomputedError::Schema("properties")));
    assert!(to.is_empty());
}

fn value_of(kind: PropertyType, bits: u32) -> PropertyValue {
    let [a, b, c, d] = bits.to_le_bytes();
    match kind {
        PropertyType::Int32 => PropertyValue::Int32(i32::from_le_bytes([a, b, c, d])),
        PropertyType::Uint32 => PropertyValue::Uint32(bits),
        PropertyType::Int16 => PropertyValue::Int16(i16::from_le_bytes([a, b])),
        PropertyType::Uint16 => PropertyValue::Uint16(u16::from_le_bytes([a, b])),
        PropertyType::Int8 => PropertyValue::Int8(i8::from_le_bytes([a])),
        PropertyType::Uint8 => PropertyValue::Uint8(a),
        PropertyType::Rgb => PropertyValue::Rgb([a, b, c]),
        PropertyType::Rgba => PropertyValue::Rgba([a, b, c, d]),
        _ => PropertyValue::Float32(f32::from(u16::from_le_bytes([a, b]))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn lists_round_trip(
        kind in 0..5_usize,
        rank in 1..5_usize,
        types in prop::collection::vec(0..9_usize, 0..7),
        rows in prop::collection::vec((any::<u64>(), any::<u32>(), 2..5_usize), 0..6),
    ) {
        let kind = AnnotationKind::ALL[kind];
        let types: Vec<PropertyType> = types.iter().map(|at| PropertyType::ALL[*at]).collect();
        let specs: Vec<PropertySpec> =
            types.iter().enumerate().map(|(at, kind)| property(&format!("p{at}"), *kind)).collect();
        let layout = RecordLayout::new(kind, rank, &specs);
        let mut list = AnnotationList::default();
        for (id, bits, points) in rows {
            let points = kind.points().unwrap_or(points);
            list.ids.push(id);
            list.annotations.push(Annotation {
                coordinates: (0_u16..).take(points * rank).map(f32::from).collect(),
                properties: types.iter().map(|kind| value_of(*kind, bits)).collect(),
            });
        }
        let bytes = list.encode(&layout).unwrap();
        rejects_prefixes(&bytes, |bytes| AnnotationList::decode(bytes, &layout));
        rejects_prefixes(&bytes, |bytes| AnnotationList::split(bytes, &layout).map(|list| list.len()));
        let records = AnnotationList::split(&bytes, &layout).unwrap();
        prop_assert_eq!(records.len(), list.ids.len());
        for (record, (id, annotation)) in records.iter().zip(list.ids.iter().zip(&list.annotations)) {
            prop_assert_eq!(record.id, *id);
            let decoded = layout.decode_single(record.bytes, 0).unwrap();
            prop_assert_eq!(&decoded.0, annotation);
        }
        prop_assert_eq!(AnnotationList::decode(&bytes, &layout).unwrap(), list);
        let longer = [bytes.as_slice(), &[0]].concat();
        prop_assert!(AnnotationList::decode(&longer, &layout).is_err());
    }
}
