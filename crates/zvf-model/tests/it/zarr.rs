//! Zarr nodes: accepted and rejected forms, with reasons.

use serde_json::{Value as Json, json};
use zvf_format::numeric::{ByteOrder, Kind};
use zvf_model::{
    key::Key,
    zarr::{DataType, IndexError, IndexLocation, Node, PlainCodec},
};

use crate::store::key;

fn array() -> Json {
    json!({
        "shape": [4, 6], "data_type": "float32", "zarr_format": 3, "node_type": "array",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0.0, "attributes": {"any": [1]}, "storage_transformers": [],
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    })
}

fn sharded() -> Json {
    let mut json = array();
    json["codecs"] = json!([{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [1, 3], "codecs": [{"name": "bytes"}, "zstd"],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
        "index_location": "start"}}]);
    json
}

fn parse(json: &Json) -> Result<Node, String> {
    let file = key("0/a/zarr.json");
    let node = Node::parse(&file, json.to_string().as_bytes());
    node.map_err(|error| error.to_string())
}

/// Sets or removes the value at `pointer`, and expects a message.
#[track_caller]
fn refused(mut json: Json, pointer: &str, value: Option<Json>, message: &str) {
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let parent = json.pointer_mut(parent).unwrap();
    match (value, parent) {
        (Some(value), Json::Object(parent)) => parent.insert(field.to_owned(), value),
        (None, Json::Object(parent)) => parent.remove(field),
        (Some(value), Json::Array(parent)) => {
            parent[field.parse::<usize>().unwrap()] = value;
            None
        }
        _ => panic!("{pointer}"),
    };
    let error = parse(&json).unwrap_err();
    assert_eq!(error, format!("0/a/zarr.json: {message}"));
}

#[test]
fn an_array_is_read() {
    let node = parse(&array()).unwrap();
    let array = node.as_array().unwrap();
    assert_eq!(array.data_type, DataType::Number(Kind::Float32));
    assert_eq!(
        array.codecs.plain(),
        Some(PlainCodec::Bytes(ByteOrder::Little))
    );
    assert_eq!(array.grid_shape(), [2, 2]);
    assert_eq!(array.elements(), 24);
    assert_eq!(node.attributes()["any"], json!([1]));
}

#[test]
fn a_sharded_array_is_read() {
    let node = parse(&sharded()).unwrap();
    let array = node.as_array().unwrap();
    assert_eq!(array.codecs.plain(), None);
    let sharding = array.codecs.plain_sharding().unwrap();
    assert_eq!(sharding.index_location, IndexLocation::Start);
    assert_eq!(sharding.codecs.iter().count(), 2);
    assert_eq!(array.decoded_shape(), [1, 3]);
    assert_eq!(
        sharding.inner_of(&[3, 5], &array.chunk_shape),
        Some(vec![1, 0])
    );
    assert_eq!(sharding.inner_of(&[3], &array.chunk_shape), None);
    assert_eq!(sharding.inner_of(&[3, 5], &[0, 0]), None);
}

#[test]
fn chunk_keys_follow_the_encoding() {
    let check = |encoding: Json, want: &str| {
        let mut json = array();
        json["chunk_key_encoding"] = encoding;
        let node = parse(&json).unwrap();
        let found = node.as_array().unwrap().chunk_key(&key("0/a"), &[1, 0]);
        assert_eq!(found.unwrap().as_str(), format!("0/a/{want}"));
    };
    check(json!({"name": "default"}), "c/1/0");
    check(json!("default"), "c/1/0");
    check(
        json!({"name": "default", "configuration": {"separator": "."}}),
        "c.1.0",
    );
    check(json!({"name": "v2"}), "1.0");
    check(
        json!({"name": "v2", "configuration": {"separator": "/"}}),
        "1/0",
    );

    let mut scalar = array();
    scalar["shape"] = json!([]);
    scalar["chunk_grid"]["configuration"]["chunk_shape"] = json!([]);
    let key_of = |json: &Json| {
        let node = parse(json).unwrap();
        node.as_array()
            .unwrap()
            .chunk_key(&Key::root(), &[])
            .unwrap()
    };
    assert_eq!(key_of(&scalar).as_str(), "c");
    scalar["chunk_key_encoding"] = json!({"name": "v2"});
    assert_eq!(key_of(&scalar).as_str(), "0");
}

#[test]
fn indexes_outside_are_refused() {
    let node = parse(&array()).unwrap();
    let array = node.as_array().unwrap();
    assert_eq!(array.chunk_of(&[3, 5]), Ok(vec![1, 1]));
    let outside = IndexError::Outside {
        dimension: 1,
        found: 6,
        extent: 6,
    };
    assert_eq!(array.chunk_of(&[3, 6]), Err(outside));
    let rank = IndexError::Rank {
        expected: 2,
        found: 1,
    };
    assert_eq!(array.chunk_of(&[3]), Err(rank.clone()));
    assert_eq!(array.chunk_key(&key("a"), &[0]), Err(rank));
    assert!(array.chunk_key(&key("a"), &[2, 0]).is_err());
}

#[test]
fn every_fault_of_a_node_names_its_place() {
    let check = |pointer: &str, value: Json, message: &str| {
        refused(array(), pointer, Some(value), message);
    };
    let missing = |pointer: &str| {
        let field = pointer.trim_start_matches('/').replace('/', ".");
        refused(array(), pointer, None, &format!("{field}: missing"));
    };
    for field in [
        "/zarr_format",
        "/node_type",
        "/shape",
        "/data_type",
        "/chunk_grid",
        "/chunk_grid/name",
        "/chunk_grid/configuration",
        "/chunk_grid/configuration/chunk_shape",
        "/chunk_key_encoding",
        "/fill_value",
        "/codecs",
    ] {
        missing(field);
    }
    check(
        "/zarr_format",
        json!(2),
        "zarr_format: 2 is not a whole number from 3 to 3",
    );
    check(
        "/zarr_format",
        json!("3"),
        "zarr_format: text, not a number",
    );
    check(
        "/node_type",
        json!("file"),
        "node_type: \"file\" is not \"group\" or \"array\"",
    );
    check(
        "/attributes",
        json!([]),
        "attributes: a list, not an object",
    );
    check(
        "/shape/1",
        json!(-1),
        "shape[1]: -1 is not a whole number from 0 to 18446744073709551615",
    );
    check(
        "/shape/0",
        json!(4.0),
        "shape[0]: 4.0 is not a whole number from 0 to 18446744073709551615",
    );
}

#[test]
fn every_fault_of_a_grid_names_its_place() {
    let check = |pointer: &str, value: Json, message: &str| {
        refused(array(), pointer, Some(value), message);
    };
    let huge = json!([u64::MAX, 2]);
    check(
        "/shape",
        huge,
        "shape: the product of the extents exceeds 64 bits",
    );
    let hidden = json!([0, u64::MAX, u64::MAX]);
    check(
        "/shape",
        hidden,
        "shape: the product of the extents exceeds 64 bits",
    );
    check(
        "/shape",
        json!(vec![1; 33]),
        "shape: 33 dimensions, more than 32",
    );
    let chunk = "/chunk_grid/configuration/chunk_shape";
    check(
        &format!("{chunk}/0"),
        json!(0),
        "chunk_grid.configuration.chunk_shape[0]: 0 is not a whole number from 1 to 18446744073709551615",
    );
    check(
        chunk,
        json!([2]),
        "chunk_grid.configuration.chunk_shape: 1 values, not 2",
    );
    check(
        "/chunk_grid/name",
        json!("rectilinear"),
        "chunk_grid.name: \"rectilinear\" is not the chunk grid \"regular\"",
    );
    check(
        "/chunk_key_encoding/name",
        json!("fanout"),
        "chunk_key_encoding: \"fanout\" is not the chunk key encoding default or v2",
    );
    check(
        "/chunk_key_encoding/configuration/separator",
        json!("../"),
        "chunk_key_encoding.configuration.separator: \"../\" is not \"/\" or \".\"",
    );
    check("/codecs", json!([]), "codecs: 0 values, not 1");
    check("/codecs/0", json!({}), "codecs[0].name: missing");
    check(
        "/storage_transformers",
        json!([{"name": "magic"}]),
        "storage_transformers[0]: \"magic\" must be understood to read the array, but is not supported",
    );
}

#[test]
fn every_fault_of_sharding_names_its_place() {
    let at = "/codecs/0/configuration";
    let check = |field: &str, value: Option<Json>, message: &str| {
        let place = format!("codecs[0].configuration{message}");
        refused(sharded(), &format!("{at}/{field}"), value, &place);
    };
    check("chunk_shape", None, ".chunk_shape: missing");
    check("codecs", None, ".codecs: missing");
    check("index_codecs", None, ".index_codecs: missing");
    let odd = ".chunk_shape: an inner chunk of 2 does not divide a chunk of 3";
    check("chunk_shape", Some(json!([1, 2])), odd);
    check(
        "chunk_shape",
        Some(json!([1])),
        ".chunk_shape: 1 values, not 2",
    );
    let middle = ".index_location: \"middle\" is not \"start\" or \"end\"";
    check("index_location", Some(json!("middle")), middle);
    refused(sharded(), at, None, "codecs[0].configuration: missing");
}

#[test]
fn members_that_must_be_understood_are_rejected() {
    let message = "\"paint\" must be understood to read the array, but is not supported";
    refused(
        array(),
        "/paint",
        Some(json!({})),
        &format!("paint: {message}"),
    );
    refused(
        array(),
        "/paint",
        Some(json!({"must_understand": true})),
        &format!("paint: {message}"),
    );
    let mut optional = array();
    optional["paint"] = json!({"must_understand": false});
    optional["dimension_names"] = json!(["x", null]);
    optional["consolidated_metadata"] = Json::Null;
    assert!(parse(&optional).is_ok());
}

#[test]
fn invalid_nodes_are_rejected() {
    let file = key("zarr.json");
    let error = Node::parse(&file, b"{\n  nope").unwrap_err();
    assert_eq!(
        error.to_string(),
        "zarr.json: $: not valid JSON: line 2, column 3"
    );
    let error = Node::parse_within(&file, &[b' '; 100], 99).unwrap_err();
    assert_eq!(
        error.to_string(),
        "zarr.json: $: 100 bytes, more than the limit of 99"
    );
    let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
    assert!(
        Node::parse(&file, &deep)
            .unwrap_err()
            .to_string()
            .contains("not valid JSON")
    );
    let error = Node::parse(&file, b"[]").unwrap_err();
    assert_eq!(error.to_string(), "zarr.json: $: a list, not an object");
}

#[test]
fn text_of_partial_characters_is_rejected() {
    let check = |configuration: Json, want: &str| {
        let text = json!({"name": "fixed_length_utf32", "configuration": configuration});
        refused(array(), "/data_type", Some(text), want);
    };
    let at = "data_type.configuration.length_bytes:";
    check(json!({}), &format!("{at} missing"));
    let odd = format!("{at} 6 disagrees with whole characters of four bytes");
    check(json!({"length_bytes": 6}), &odd);
    for wrong in [json!(0), json!(-4), json!(1_u64 << 40)] {
        let want = format!("{at} {wrong} is not a whole number from 4 to 4294967295");
        check(json!({"length_bytes": wrong}), &want);
    }
    let bare = Some(json!("fixed_length_utf32"));
    refused(array(), "/data_type", bare, "data_type: missing");
}

#[test]
fn types_are_distinguished() {
    let check = |name: Json, want: &DataType| {
        let mut json = array();
        json["data_type"] = name;
        assert_eq!(&parse(&json).unwrap().as_array().unwrap().data_type, want);
    };
    check(json!("variable_length_bytes"), &DataType::VariableBytes);
    check(json!("bytes"), &DataType::VariableBytes);
    check(json!("string"), &DataType::VariableText);
    let text = json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}});
    check(text, &DataType::FixedText { bytes: 12 });
    let raw = json!({"name": "raw", "configuration": {"length": 3}});
    let configuration = raw["configuration"].as_object().unwrap().clone();
    let name = "raw".to_owned();
    check(
        raw,
        &DataType::Other {
            name,
            configuration,
        },
    );
    assert_eq!(DataType::VariableBytes.dtype(ByteOrder::Little), None);
    let big = DataType::Number(Kind::Int16).dtype(ByteOrder::Big).unwrap();
    assert_eq!(big.to_string(), ">i2");
}
