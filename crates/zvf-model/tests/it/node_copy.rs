//! The copy of nodes in the root.

use serde_json::{Value, json};
use zvf_model::{
    array::Presence,
    grid::ChunkCoord,
    key::Key,
    node_copy::{
        CopiedNode, LONGEST, MAX_BYTES, MAX_NODES, MEMBER, NodeCopy, is_copy_of, with_chunk_runs,
    },
    zarr::{Array, Node},
};

fn key(path: &str) -> Key {
    Key::parse(path).unwrap()
}

fn group(attributes: &Value) -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": attributes})
}

fn array(list: &[String]) -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": [4], "codecs": [{"name": "bytes"}],
        "attributes": {"nonempty_chunks": list},
    })
}

/// Serializes and parses a copy.
fn again(copy: &NodeCopy, transaction: u64) -> NodeCopy {
    let root = json!({MEMBER: copy.to_json(transaction), "zvf": {"transaction": transaction}});
    let copy = NodeCopy::current(&key("zarr.json"), root.as_object().unwrap());
    copy.unwrap().unwrap()
}

#[test]
fn only_inserted_nodes_are_known() {
    let mut copy = NodeCopy::new();
    let bare = json!({"zarr_format": 3, "node_type": "group"});
    let nodes = [
        ("0", group(&json!({"a": 1}))),
        ("0/links", bare.clone()),
        ("0/links/0/+1.0.0", array(&["0.0.0".to_owned()])),
        ("0/links-too", array(&[])),
        ("00", group(&json!({}))),
    ];
    for (path, node) in &nodes {
        copy.put(key(path), node.clone());
    }
    copy.put(key("0/gone"), bare);
    copy.remove(&key("0/gone"));
    let copy = again(&copy, 3);
    assert_eq!(copy.transaction(), 3);
    for (path, node) in nodes {
        let node = with_chunk_runs(node);
        assert_eq!(copy.get(&key(path)), CopiedNode::Node(node), "{path}");
    }
    for path in ["0/gone", "1", "0/links/0", "0/link"] {
        assert_eq!(copy.get(&key(path)), CopiedNode::Absent, "{path}");
    }
    assert_eq!(copy.children(&Key::root()), ["0", "00"]);
    assert_eq!(copy.children(&key("0")), ["links", "links-too"]);
    assert_eq!(copy.children(&key("0/links")), ["0"]);
    assert_eq!(copy.children(&key("0/links/0")), ["+1.0.0"]);
    assert_eq!(copy.children(&key("1")), [""; 0]);
    assert!(copy.may_be_array(&key("0/links-too")) && !copy.may_be_array(&key("0/links")));
}

#[test]
fn nodes_with_equal_forms_share_them() {
    let mut copy = NodeCopy::new();
    for at in 0..10 {
        copy.put(key(&format!("0/{at}")), array(&[at.to_string()]));
    }
    let json = copy.to_json(0).unwrap();
    assert_eq!(json["forms"].as_array().unwrap().len(), 1);
    // Unused forms are dropped.
    for at in 0..10 {
        copy.put(key(&format!("0/{at}")), group(&json!({})));
    }
    let json = copy.to_json(0).unwrap();
    assert_eq!(
        json["forms"],
        json!([{"zarr_format": 3, "node_type": "group"}])
    );
}

#[test]
fn long_nodes_must_be_read_separately() {
    let mut copy = NodeCopy::new();
    copy.put(key("0"), group(&json!({"long": "x".repeat(LONGEST)})));
    copy.put(key("1"), json!("no node"));
    copy.put(key("2"), group(&json!([])));
    let copy = again(&copy, 0);
    for path in ["0", "1", "2"] {
        assert_eq!(copy.get(&key(path)), CopiedNode::Separate, "{path}");
    }
}

#[test]
fn a_copy_is_bounded() {
    let mut copy = NodeCopy::new();
    copy.put(key("short"), group(&json!({})));
    for at in 0..100 {
        copy.put(
            key(&format!("long/{at}")),
            group(&json!({"long": "x".repeat(LONGEST / 2)})),
        );
    }
    let json = copy.to_json(0).unwrap();
    assert!(json.to_string().len() <= MAX_BYTES + 1000);
    let copy = again(&copy, 0);
    assert!(matches!(copy.get(&key("short")), CopiedNode::Node(_)));
    let apart = copy
        .keys()
        .filter(|key| copy.get(key) == CopiedNode::Separate)
        .count();
    assert!((60..80).contains(&apart), "{apart}");

    let mut copy = NodeCopy::new();
    for at in 0..=MAX_NODES {
        copy.put(key(&at.to_string()), Value::Null);
    }
    assert_eq!(copy.to_json(0), None);
    let nodes: serde_json::Map<String, Value> = (0..=MAX_NODES)
        .map(|at| (at.to_string(), Value::Null))
        .collect();
    let root = json!({MEMBER: {"transaction": 0, "forms": [], "nodes": nodes}});
    let error = NodeCopy::parse(&key("zarr.json"), root.as_object().unwrap()).unwrap_err();
    assert_eq!(error.path.as_str(), "attributes.zvf_nodes.nodes");
}

#[test]
fn a_copy_of_an_earlier_transaction_is_ignored() {
    let copy = NodeCopy::new().to_json(4);
    for (head, counts) in [
        (json!({"transaction": 4}), true),
        (json!({"transaction": 5}), false),
        (Value::Null, false),
    ] {
        let root = json!({MEMBER: copy, "zvf": head});
        let current = NodeCopy::current(&key("zarr.json"), root.as_object().unwrap());
        assert_eq!(current.unwrap().is_some(), counts, "{head}");
    }
    let root = json!({});
    assert_eq!(
        NodeCopy::parse(&key("zarr.json"), root.as_object().unwrap()),
        Ok(None)
    );
}

/// An array of 2 × 3 chunks.
fn listing(list: &Value) -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": [2, 3], "data_type": "variable_length_bytes",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 1]}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "codecs": ["vlen-bytes"],
        "attributes": {"nonempty_chunks": list, "chunk_grid_origin": [-1, 9]},
    })
}

fn parsed(json: &Value) -> Array {
    match Node::from_json(&key("0"), json.clone()).unwrap() {
        Node::Array(array) => array,
        Node::Group(_) => panic!("{json}"),
    }
}

#[test]
fn lists_of_chunks_are_copied_as_runs() {
    let every = ["-1.10", "-1.11", "-1.9", "0.10", "0.11", "0.9"];
    for bits in 0..1_u32 << every.len() {
        let listed = every
            .iter()
            .enumerate()
            .filter(|(at, _)| bits >> at & 1 == 1);
        let node = listing(&listed.map(|(_, name)| *name).collect());
        let mut copy = NodeCopy::new();
        copy.put(key("0"), node.clone());
        let CopiedNode::Node(copied) = again(&copy, 0).get(&key("0")) else {
            panic!("{node}");
        };
        assert_eq!(copied["attributes"]["nonempty_chunks"], Value::Null);
        assert!(is_copy_of(
            &key("0"),
            copied.clone(),
            &Node::Array(parsed(&node))
        ));
        let presence = |json: &Value| Presence::parse(&key("0"), &parsed(json), 2).unwrap().value;
        let (stored, copied) = (presence(&node), presence(&copied));
        assert_eq!(stored, copied);
        assert_eq!(stored.len(), bits.count_ones() as usize);
        let chunks: Vec<ChunkCoord> = copied.chunks().collect();
        assert_eq!(chunks.len(), copied.chunks().len());
        assert!(chunks.is_sorted());
        for (at, name) in every.iter().enumerate() {
            let chunk = ChunkCoord::parse(name, 2).unwrap();
            assert_eq!(copied.contains(&chunk), bits >> at & 1 == 1, "{name}");
            assert_eq!(copied.contains(&chunk), chunks.contains(&chunk), "{name}");
        }
        for first in [-2..=-1, -1..=-1, 0..=0, -1..=0, 1..=5] {
            let mut within = chunks.clone();
            within.retain(|chunk| first.contains(&chunk.coords()[0]));
            assert_eq!(copied.chunks_where(&first, |_| true), within, "{first:?}");
        }
    }
    let copied = with_chunk_runs(listing(&json!(["-1.10", "-1.11", "0.9"])));
    assert_eq!(copied["attributes"]["zvf_chunk_runs"], json!([1, 3]));
}

#[test]
fn lists_that_runs_cannot_restore_are_copied_as_they_are() {
    for list in [
        json!(["-1.9", "-1.10"]),
        json!(["-1.9", "-1.9"]),
        json!(["-1.8"]),
        json!(["-1.9.0"]),
        json!([1]),
        json!({"-1.9": 1}),
        Value::Null,
    ] {
        let node = listing(&list);
        assert_eq!(with_chunk_runs(node.clone()), node);
    }
    let mut node = listing(&json!(["-1.9"]));
    node["attributes"]["zvf_chunk_runs"] = json!([]);
    assert_eq!(with_chunk_runs(node.clone()), node);
    // The list of the node has priority.
    let presence = Presence::parse(&key("0"), &parsed(&node), 2).unwrap();
    assert_eq!((presence.value.len(), presence.notes.len()), (1, 0));
}

#[test]
fn malformed_runs_are_rejected() {
    for (runs, fault) in [
        (json!([0]), "attributes.zvf_chunk_runs: 1 values, not 2"),
        (
            json!([0, 0]),
            "attributes.zvf_chunk_runs[1]: 0 is not a whole number from 1 to 6",
        ),
        (
            json!([0, 7]),
            "attributes.zvf_chunk_runs[1]: 7 is not a whole number from 1 to 6",
        ),
        (
            json!([7, 1]),
            "attributes.zvf_chunk_runs[0]: 7 is not a whole number from 0 to 6",
        ),
        (
            json!([0, 1, 0, 1]),
            "attributes.zvf_chunk_runs[2]: 0 is not a whole number from 1 to 5",
        ),
        (
            json!(["0", 1]),
            "attributes.zvf_chunk_runs[0]: text, not a number",
        ),
        (json!("0"), "attributes.zvf_chunk_runs: text, not a list"),
    ] {
        let mut node = listing(&Value::Null);
        node["attributes"]["zvf_chunk_runs"] = runs;
        let error = Presence::parse(&key("0"), &parsed(&node), 2).unwrap_err();
        assert_eq!(error.to_string(), format!("0: {fault}"));
    }
    let mut node = listing(&Value::Null);
    node["shape"] = json!([1_u64 << 40, 1 << 20]);
    node["attributes"]["zvf_chunk_runs"] = json!([0, 1 << 23]);
    let error = Presence::parse(&key("0"), &parsed(&node), 2).unwrap_err();
    assert!(error.to_string().contains("from 1 to 4194304"), "{error}");
}
