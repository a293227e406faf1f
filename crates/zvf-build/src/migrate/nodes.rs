//! Attributes of the root and the levels.

use serde_json::{Map, Value, json};

use super::MigrationTarget;

/// Facts needed to write the root.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RootFacts {
    /// Name of the collection, if the source has none.
    pub name: String,
    /// Levels.
    pub levels: Vec<u32>,
    /// `true` if several objects share a fragment.
    pub shares_fragments: bool,
}

/// Facts counted in a level.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LevelFacts {
    /// Number of vertices.
    pub vertices: u64,
    /// Names of the arrays present.
    pub present: Vec<&'static str>,
    /// `true` if the fragments of every chunk tile its rows in order.
    pub tiles: bool,
    /// `true` if several objects share a fragment.
    pub shares_fragments: bool,
    /// Number of objects of the parent level, if it has objects.
    pub inherited_objects: Option<u64>,
}

const SHARED: &str = "shared_fragments";

impl MigrationTarget {
    /// Returns the attributes of the root: the old ones without those specific to the old
    /// generation.
    pub fn root(&self, old: &Map<String, Value>, facts: &RootFacts) -> Map<String, Value> {
        let mut attributes = old.clone();
        // Keys of transactions and of packed shards.
        for removed in ["zvf", "shard_layout", "shard_size"] {
            attributes.remove(removed);
        }
        if let Some(block) = attributes
            .get_mut("zarr_vectors")
            .and_then(Value::as_object_mut)
        {
            block.insert("zv_version".to_owned(), json!(self.profile.version()));
            let mut tokens = match block.get("format_capabilities") {
                Some(Value::Array(tokens)) => tokens.clone(),
                _ => Vec::new(),
            };
            tokens.retain(|token| token != "partitioned_cross_chunk_links");
            if facts.shares_fragments && !tokens.contains(&json!(SHARED)) {
                tokens.push(json!(SHARED));
            }
            block.insert("format_capabilities".to_owned(), json!(tokens));
        }
        if self.is_current() && !attributes.contains_key("ome") {
            let scales = attributes
                .get("multiscales")
                .and_then(|scales| scales.get(0));
            let axes = scales.and_then(|scales| scales.get("axes"));
            let axes = axes.cloned().unwrap_or_else(|| json!([]));
            let nodes = facts.levels.iter();
            let nodes = nodes.map(|level| json!({"type": "zv:level", "name": level.to_string()}));
            let ome = json!({
                "version": "0.6",
                "type": "collection",
                "name": facts.name,
                "attributes": {"scene": {
                    "coordinateSystems": [{"name": "world", "axes": axes}],
                    "coordinateTransformations": [],
                }},
                "nodes": nodes.collect::<Vec<Value>>(),
            });
            attributes.insert("ome".to_owned(), ome);
        }
        attributes
    }

    /// Returns the attributes of a level, and descriptions of corrected values.
    pub fn level(
        &self,
        old: &Map<String, Value>,
        level: u32,
        facts: &LevelFacts,
    ) -> (Map<String, Value>, Vec<&'static str>) {
        let mut attributes = old.clone();
        let mut wrong = Vec::new();
        let block = attributes
            .entry("zarr_vectors_level")
            .or_insert_with(|| json!({"level": level}));
        if let Some(block) = block.as_object_mut() {
            let mut put = |key: &'static str, value: Value| {
                let known = block.insert(key.to_owned(), value.clone());
                known.is_some_and(|known| known != value)
            };
            if put("vertex_count", json!(facts.vertices)) {
                wrong.push("a count of vertices that differed from the rows");
            }
            put("level", json!(level));
            if let Some(objects) = facts.inherited_objects
                && block.contains_key("inherited_num_objects")
            {
                block.insert("inherited_num_objects".to_owned(), json!(objects));
            }
            let declared = block.get("arrays_present").and_then(Value::as_array);
            let names = declared.map(|names| names.iter().filter_map(Value::as_str));
            let mut names: Vec<&str> = names.map(Iterator::collect).unwrap_or_default();
            let mut present = facts.present.clone();
            // Unlisted arrays are legal, and each generation names link arrays differently.
            // A profile without text lacks attributes of objects and groups that are all text.
            let may_be_absent = |name: &str| {
                let has_text = ["object_attributes", "group_attributes"].contains(&name);
                name.contains("link") || (has_text && !self.has_text())
            };
            let is_wrong = |name: &&str| !may_be_absent(name) && is_level_array(name);
            let mut absent = names.iter().filter(|name| !present.contains(*name));
            if absent.any(is_wrong) {
                wrong.push("a list of arrays that names missing arrays");
            }
            // Listed names keep their order; unlisted ones follow.
            names.retain(|name| !is_level_array(name) || present.contains(name));
            present.sort_unstable();
            present.dedup();
            present.retain(|name| !names.contains(name));
            names.extend(present);
            let all = json!(names);
            block.insert("arrays_present".to_owned(), all);
            block.remove("fragments_tile");
            // Links are written anew, in an order that may differ from that of the fragments.
            block.remove("fragment_link_groups");
            if facts.tiles && self.is_current() {
                block.insert("fragments_tile".to_owned(), json!(true));
            }
            if facts.shares_fragments {
                block.insert(SHARED.to_owned(), json!(true));
            }
        }
        (attributes, wrong)
    }
}

/// Returns whether a name in a level is an array or group that is migrated. Further geometries have
/// other names.
pub fn is_level_array(name: &str) -> bool {
    [
        "vertices",
        "vertex_fragments",
        "vertex_attributes",
        "fragment_attributes",
        "links",
        "link_fragments",
        "link_attributes",
        "cross_chunk_links",
        "cross_chunk_link_attributes",
        "object_index",
        "object_attributes",
        "groups",
        "group_attributes",
    ]
    .contains(&name)
}
