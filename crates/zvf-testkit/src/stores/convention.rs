//! Stores of 0.9 as stores of 0.10, by the table of the specification and without the code under test.

use serde_json::{Map, Value, json};

const UUID: &str = "66268a61-7833-4995-bbcb-233bb417dae5";
const MULTISCALES: &str = "d35379db-88df-4056-af3a-620245f8e347";
const PROJ: &str = "f17cb550-5864-4468-aeb7-f3180cfb622f";

/// Returns the files of a store of 0.9 with the metadata of 0.10. Cells and keys stay.
///
/// # Panics
///
/// Panics if a `zarr.json` is not JSON.
pub fn as_convention(files: Vec<(String, Vec<u8>)>) -> Vec<(String, Vec<u8>)> {
    let root = files
        .iter()
        .find(|(key, _)| key == "zarr.json")
        .map_or(Value::Null, |(_, bytes)| parse(bytes));
    let scales = root["attributes"]["multiscales"][0].clone();
    let converted = files.into_iter().map(|(key, bytes)| {
        let Some(path) = key.strip_suffix("zarr.json") else {
            return (key, bytes);
        };
        let path = path.trim_end_matches('/');
        let mut node = parse(&bytes);
        if let Some(Value::Object(attributes)) = node.get_mut("attributes") {
            convert(path, attributes, &scales);
        }
        (key, node.to_string().into_bytes())
    });
    converted.collect()
}

fn parse(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("nodes are JSON")
}

fn convert(path: &str, attributes: &mut Map<String, Value>, scales: &Value) {
    let object = |value: Option<Value>| match value {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    };
    let short = json!([{"uuid": UUID}]);
    if path.is_empty() {
        let mut block = object(attributes.remove("zarr_vectors"));
        block.insert("kind".into(), "root".into());
        block.insert("zv_version".into(), "0.10.0".into());
        block.insert("axes".into(), scales["axes"].clone());
        let layout: Vec<Value> = scales["datasets"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|dataset| json!({"asset": dataset["path"]}))
            .collect();
        let mut conventions = vec![
            json!({"uuid": UUID, "name": "zarr_vectors"}),
            json!({"uuid": MULTISCALES, "name": "multiscales"}),
        ];
        if let Some(crs) = block.remove("crs") {
            conventions.push(json!({"uuid": PROJ, "name": "proj"}));
            attributes.insert("proj:projjson".into(), crs);
        }
        attributes.insert("multiscales".into(), json!({"layout": layout}));
        attributes.insert("zarr_vectors".into(), block.into());
        attributes.insert("zarr_conventions".into(), conventions.into());
    } else if let Some(block) = attributes.remove("zarr_vectors_level") {
        let mut block = object(Some(block));
        block.retain(|_, value| !value.is_null());
        block.insert("kind".into(), "level".into());
        bins(path, &mut block, scales);
        attributes.insert("zarr_vectors".into(), block.into());
        attributes.insert("zarr_conventions".into(), short);
    } else if let Some(kind) = kind(path, attributes) {
        let mut block = core::mem::take(attributes);
        block.remove("zv_array");
        block.insert("kind".into(), kind.into());
        attributes.insert("zarr_vectors".into(), block.into());
        attributes.insert("zarr_conventions".into(), short);
    }
}

/// Adds the bins of a coarser level, which 0.9 has in the root.
fn bins(path: &str, block: &mut Map<String, Value>, scales: &Value) {
    let datasets = scales["datasets"].as_array().into_iter().flatten();
    let mut own = datasets.filter(|dataset| dataset["path"] == path && path != "0");
    let Some(dataset) = own.next() else { return };
    let steps = dataset["coordinateTransformations"].as_array();
    for step in steps.into_iter().flatten() {
        if let Some(half) = step["translation"].as_array() {
            let bin: Vec<f64> = half.iter().filter_map(Value::as_f64).collect();
            let bin: Vec<f64> = bin.iter().map(|half| half * 2.0).collect();
            block.insert("bin_shape".into(), json!(bin));
        }
        if !step["scale"].is_null() {
            block.insert("bin_ratio".into(), step["scale"].clone());
        }
    }
}

fn kind(path: &str, attributes: &Map<String, Value>) -> Option<&'static str> {
    if path == "parametric" {
        return Some("parametric");
    }
    Some(match attributes.get("zv_array")?.as_str()? {
        "attribute" => "vertex_attribute",
        "groupings_attribute" => "group_attribute",
        "vertices" => "vertices",
        "vertex_fragments" => "vertex_fragments",
        "link_fragments" => "link_fragments",
        "fragment_attribute" => "fragment_attribute",
        "links" => "links",
        "links_family" => "links_family",
        "link_attribute" => "link_attribute",
        "link_attribute_family" => "link_attribute_family",
        "object_index" => "object_index",
        "object_attribute" => "object_attribute",
        "groups" => "groups",
        "parametric_objects" => "parametric_objects",
        "parametric_names" => "parametric_names",
        _ => return None,
    })
}
