//! Properties of segments.

use zvf_precomputed::{SegmentProperties, SegmentProperty, SegmentPropertyValues as Values};

fn property(id: &str, values: Values) -> SegmentProperty {
    SegmentProperty {
        id: id.to_owned(),
        description: None,
        values,
    }
}

#[test]
fn the_document_round_trips() {
    let properties = SegmentProperties {
        ids: vec![17, u64::MAX],
        properties: vec![
            property("label", Values::Label(vec!["a".to_owned(), "b".to_owned()])),
            SegmentProperty {
                description: Some("mm".to_owned()),
                ..property(
                    "length",
                    Values::Number {
                        data_type: "float32".to_owned(),
                        values: vec![1.5, 0.1],
                    },
                )
            },
            property(
                "count",
                Values::Number {
                    data_type: "int32".to_owned(),
                    values: vec![-1.0, 2.0],
                },
            ),
            property(
                "groups",
                Values::Tags {
                    tags: vec!["left".to_owned(), "right".to_owned()],
                    descriptions: vec![String::new(); 2],
                    values: vec![vec![0], vec![0, 1]],
                },
            ),
        ],
    };
    let json = properties.to_json().unwrap();
    assert!(json.contains(r#""values":[-1,2]"#), "{json}");
    assert!(json.contains(r#""values":[1.5,0.1]"#), "{json}");
    assert!(
        json.contains(r#""ids":["17","18446744073709551615"]"#),
        "{json}"
    );
    assert_eq!(
        SegmentProperties::parse(json.as_bytes()).unwrap(),
        properties
    );
}

/// The document had null, which no reader accepts.
#[test]
fn numbers_beyond_float32_are_the_largest_floats() {
    let values = Values::Number {
        data_type: "float32".to_owned(),
        values: vec![1e300, -1e300, f64::INFINITY],
    };
    let properties = SegmentProperties {
        ids: vec![1, 2, 3],
        properties: vec![property("volume", values)],
    };
    let json = properties.to_json().unwrap();
    let read = SegmentProperties::parse(json.as_bytes()).unwrap();
    let Values::Number { values, .. } = &read.properties[0].values else {
        panic!("{read:?}");
    };
    let largest = f64::from(f32::MAX);
    for (found, expected) in values.iter().zip([largest, -largest, largest]) {
        assert!((found - expected).abs() < 1e32, "{found}");
    }
}

#[test]
fn nothing_is_written_without_segments() {
    assert_eq!(SegmentProperties::default().to_json(), None);
}

#[test]
fn errors_name_the_place() {
    let json = r#"{"@type": "neuroglancer_segment_properties", "inline": {"ids": ["1"],
        "properties": [{"id": "t", "type": "tags", "tags": ["a"], "values": [[1]]}]}}"#;
    let error = SegmentProperties::parse(json.as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "inline.properties[0].values[0][0] of the info document is not the position of a tag"
    );
}
