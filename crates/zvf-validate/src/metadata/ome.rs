//! `ome`, the node by which collections list a store, from 0.9 on.

use serde_json::{Map, Value, json};
use zvf_model::{
    key::Key,
    root::{Axis, RootMetadata},
};

use crate::{context::Context, rule::Rule, rules::metadata as rules, store::StoreMetadata};

pub(super) fn check(context: &Context<'_>, store: &StoreMetadata, root: &RootMetadata) {
    let found = root.other.get("ome");
    if found.is_none() && !store.layout().generation.is_current() {
        return;
    }
    let key = Key::root();
    let right = repaired(store, root, found);
    let find = |rule: &'static Rule, message: String| {
        context.report_attribute(rule, &key, &["ome"], message, Some(right.clone()));
    };
    let Some(found) = found else {
        return find(&rules::NO_OME, "there is no ome".to_owned());
    };
    let Some(ome) = found.as_object() else {
        return find(&rules::OME, "not an object".to_owned());
    };
    for (name, expected) in [("version", "0.6"), ("type", "collection")] {
        let found = ome.get(name).unwrap_or(&Value::Null);
        if found.as_str() != Some(expected) {
            find(
                &rules::OME,
                format!("{name} is {found} instead of {expected:?}"),
            );
        }
    }
    if !ome.get("name").is_some_and(Value::is_string) {
        find(&rules::OME, "it has no name".to_owned());
    }
    if ome.get("nodes") != right.get("nodes") && levels(ome.get("nodes")) != Some(numbers(store)) {
        find(
            &rules::OME_NODES,
            "its nodes are not the levels of the store".to_owned(),
        );
    }
    match systems(ome) {
        None => find(
            &rules::OME,
            "it has no list of coordinate systems".to_owned(),
        ),
        Some(systems) => {
            let named = |axes: &Value| names(axes).is_some_and(|names| same(&names, &root.axes));
            let axes = systems.iter().filter_map(|system| system.get("axes"));
            if !axes.clone().any(named) {
                find(
                    &rules::OME_AXES,
                    "its axes are not those of multiscales".to_owned(),
                );
            }
        }
    }
}

fn numbers(store: &StoreMetadata) -> Vec<String> {
    let levels = store.levels.iter();
    levels.map(|level| level.id.to_string()).collect()
}

/// Returns the levels that nodes name. Nodes of other types belong to other programs.
fn levels(nodes: Option<&Value>) -> Option<Vec<String>> {
    let nodes = nodes?.as_array()?.iter();
    let levels = nodes.filter(|node| node.get("type").and_then(Value::as_str) == Some("zv:level"));
    let names = levels.map(|node| Some(node.get("name")?.as_str()?.to_owned()));
    names.collect()
}

fn systems(ome: &Map<String, Value>) -> Option<&Vec<Value>> {
    let scene = ome.get("attributes")?.get("scene")?;
    scene.get("coordinateSystems")?.as_array()
}

fn names(axes: &Value) -> Option<Vec<&str>> {
    let axes = axes.as_array()?.iter();
    axes.map(|axis| axis.get("name")?.as_str()).collect()
}

fn same(names: &[&str], axes: &[Axis]) -> bool {
    let axes = axes.iter().map(|axis| axis.name.as_str());
    axes.eq(names.iter().copied())
}

/// Returns the corrected node. All other fields are kept.
fn repaired(store: &StoreMetadata, root: &RootMetadata, found: Option<&Value>) -> Value {
    let found = found.and_then(Value::as_object).cloned();
    let mut ome = found.unwrap_or_default();
    ome.insert("version".to_owned(), json!("0.6"));
    ome.insert("type".to_owned(), json!("collection"));
    if !ome.get("name").is_some_and(Value::is_string) {
        ome.insert("name".to_owned(), json!("zarr_vectors"));
    }
    let axes = root.axes.iter().map(|axis| {
        let mut object = Map::new();
        object.insert("name".to_owned(), json!(axis.name));
        let more = [("type", &axis.kind), ("unit", &axis.unit)];
        for (name, value) in more {
            if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
                object.insert(name.to_owned(), json!(value));
            }
        }
        Value::Object(object)
    });
    // Collections refer to the system by its id.
    let mut world = systems(&ome)
        .and_then(|systems| systems.first()?.as_object())
        .cloned()
        .unwrap_or_default();
    world.insert("name".to_owned(), json!("world"));
    world.insert("axes".to_owned(), json!(axes.collect::<Vec<_>>()));
    let world = json!([world]);
    let mut attributes = ome
        .get("attributes")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let mut scene = attributes
        .get("scene")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    scene.insert("coordinateSystems".to_owned(), world);
    scene
        .entry("coordinateTransformations")
        .or_insert_with(|| json!([]));
    attributes.insert("scene".to_owned(), Value::Object(scene));
    ome.insert("attributes".to_owned(), Value::Object(attributes));
    let others: Vec<Value> = ome
        .get("nodes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|node| node.get("type").and_then(Value::as_str) != Some("zv:level"))
        .cloned()
        .collect();
    let levels = numbers(store)
        .into_iter()
        .map(|name| json!({"type": "zv:level", "name": name}));
    let nodes: Vec<Value> = levels.chain(others).collect();
    ome.insert("nodes".to_owned(), Value::Array(nodes));
    Value::Object(ome)
}
