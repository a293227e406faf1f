//! Neither arbitrary JSON nor damage to valid JSON makes a reader panic.

use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};
use zvf_format::path::Delta;
use zvf_model::{
    array::{
        CellAttribute, CompositeLinks, FragmentArray, GeometryIndex, Groups, LegacyShardIndex,
        LinkArray, LinkFamily, ObjectIndex, Padded, ParametricObjects, ParametricTypes, Presence,
        Table, Vertices,
    },
    detection::{Evidence, FamilyForm, NodeForm},
    level::{LevelId, LevelMetadata},
    root::RootMetadata,
    zarr::Node,
};
use zvf_testkit::golden::Golden;

use crate::store::{ARCHIVES, key};

/// Runs every JSON reader on one value.
fn read_all(json: &Json) {
    let at = key("k");
    if let Ok(node) = Node::from_json(&at, json.clone()) {
        read_node(&node);
    }
    let empty = Map::new();
    let attributes = json.as_object().unwrap_or(&empty);
    if let Ok(root) = RootMetadata::parse(&at, attributes) {
        for level in [0, 1] {
            let level = LevelMetadata::parse(&at, LevelId::new(level), attributes, &root);
            if let Ok(level) = level {
                let _ = (level.scale(&root), level.bins(&root), level.arity(&root));
            }
        }
    }
    let delta = Delta::INTRA;
    if let Ok(family) = LinkFamily::parse(&at, delta, attributes)
        && let Some(family) = family.value
    {
        let _ = LinkArray::parse(&at, "+1.0.0", attributes, &family);
        let _ = family.physical_records();
    }
    let _ = LinkFamily::parse_intra(&at, delta, attributes);
    let _ = LinkFamily::parse_cross_chunk(&at, delta, attributes);
    let _ = Vertices::parse(&at, attributes);
    let _ = FragmentArray::parse(&at, attributes);
    let _ = CellAttribute::parse(&at, attributes).map(|read| read.value.declared_columns());
    let _ = ObjectIndex::parse(&at, attributes);
    let _ = Table::parse_group(&at, attributes);
    let _ = Table::parse_array(&at, attributes);
    let _ = Groups::parse(&at, attributes);
    let _ = ParametricTypes::parse(&at, attributes);
    let _ = ParametricObjects::parse(&at, attributes);
    let _ = GeometryIndex::parse(&at, attributes);
    let _ = CompositeLinks::parse(&at, attributes);
    let _ = LegacyShardIndex::parse(&at, attributes, 3, 1000);
    let mut evidence = Evidence::of_root(attributes);
    let _ = evidence.detect();
    evidence.object_index = Some(attributes.clone());
    evidence.cross_chunk_links = vec![FamilyForm {
        node: NodeForm::Group,
        attributes: attributes.clone(),
        children: attributes.keys().map(|name| (name.clone(), None)).collect(),
    }];
    let _ = evidence.detect();
}

fn read_node(node: &Node) {
    let at = key("k");
    let _ = NodeForm::of(node);
    let Some(array) = node.as_array() else {
        return;
    };
    for arity in [0, 3, array.rank()] {
        let _ = Presence::parse(&at, array, arity);
        let _ = Padded::parse(&at, array, arity);
    }
    let last: Vec<u64> = array
        .shape
        .iter()
        .map(|extent| extent.saturating_sub(1))
        .collect();
    if let Ok(chunk) = array.chunk_of(&last) {
        array.chunk_key(&at, &chunk).unwrap();
        if let Some(sharding) = array.sharding() {
            sharding.inner_of(&last, &array.chunk_shape).unwrap();
        }
    }
    let _ = (array.elements(), array.grid_shape(), array.codecs.plain());
}

fn leaf() -> impl Strategy<Value = Json> {
    prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        (0..4i64).prop_map(Json::from),
        "\\PC{0,6}".prop_map(Json::from),
        prop::sample::select(vec![
            "0.0.0",
            "-1.0.2",
            "float32",
            "<U3",
            "group",
            "array",
            "regular",
            "..",
            "0.9.2",
            "dictionary",
            "sharding_indexed",
            "canonical",
            "vlen_manifests_v2",
        ])
        .prop_map(Json::from),
    ]
}

/// Generates names that some reader looks up.
fn name() -> impl Strategy<Value = String> {
    let known = [
        "zarr_format",
        "node_type",
        "attributes",
        "shape",
        "data_type",
        "chunk_grid",
        "codecs",
        "name",
        "configuration",
        "chunk_shape",
        "zarr_vectors",
        "multiscales",
        "axes",
        "bounds",
        "datasets",
        "geometry_types",
        "zv_version",
        "zarr_vectors_level",
        "level",
        "link_width",
        "sid_ndim",
        "offsets",
        "nonempty_chunks",
        "chunk_grid_origin",
        "shard_index",
        "dtype",
        "encoding",
        "categories",
        "group_ranges",
        "parametric_types",
        "num_objects",
        "layout",
        "k1",
    ];
    prop_oneof![
        prop::sample::select(known.to_vec()).prop_map(str::to_owned),
        "\\PC{0,4}",
        "[0-9]{1,3}",
    ]
}

fn any_json() -> impl Strategy<Value = Json> {
    leaf().prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::from),
            prop::collection::vec((name(), inner), 0..6)
                .prop_map(|fields| Json::Object(fields.into_iter().collect())),
        ]
    })
}

/// Collects all paths of a document, as pointers.
fn places(json: &Json, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match json {
        Json::Object(fields) => {
            for (name, value) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                places(value, &format!("{at}/{name}"), found);
            }
        }
        Json::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                places(value, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// Replaces every path of every distinct node of the golden stores by each of a few values.
#[test]
fn damaged_nodes_never_panic() {
    let wrong = [
        Json::Null,
        json!(true),
        json!(-1),
        json!(0),
        json!(1.5),
        json!(u64::MAX),
        json!(1e308),
        json!(""),
        json!("../x"),
        json!([]),
        json!({}),
        json!([[[]]]),
    ];
    let mut seen = std::collections::BTreeSet::new();
    for archive in ARCHIVES {
        for (path, bytes) in Golden::open(archive).files() {
            if !path.ends_with("zarr.json") || !seen.insert(bytes.to_vec()) || seen.len() % 10 != 0
            {
                continue;
            }
            let json: Json = serde_json::from_slice(bytes).unwrap();
            let mut found = Vec::new();
            places(&json, "", &mut found);
            for place in &found {
                for value in &wrong {
                    let mut damaged = json.clone();
                    *damaged.pointer_mut(place).unwrap() = value.clone();
                    read_all(&damaged);
                    if let Some(attributes) = damaged.get("attributes") {
                        read_all(attributes);
                    }
                }
            }
        }
    }
    assert!(seen.len() > 500, "{}", seen.len());
}

proptest! {
    #[test]
    fn no_json_makes_a_reader_panic(json in any_json()) {
        read_all(&json);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = Node::parse(&key("k"), &bytes);
    }
}
