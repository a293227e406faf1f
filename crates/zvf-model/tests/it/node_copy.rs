//! The copy of nodes in the root.

use serde_json::{Value, json};
use zvf_model::{
    key::Key,
    node_copy::{CopiedNode, LONGEST, MAX_BYTES, MAX_NODES, MEMBER, NodeCopy},
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
