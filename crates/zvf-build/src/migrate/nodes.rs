//! What the root and the levels say.

use serde_json::{Map, Value, json};

use super::MigrationTarget;

/// What is known of a store when its root is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RootFacts {
    /// What the collection is called, where nothing said so.
    pub name: String,
    /// The levels there are.
    pub levels: Vec<u32>,
    /// Whether several objects name one fragment.
    pub shares_fragments: bool,
}

/// What was counted in a level.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LevelFacts {
    /// Vertices.
    pub vertices: u64,
    /// Parts there are.
    pub present: Vec<&'static str>,
    /// Whether the fragments of every chunk are its rows, one after the other.
    pub tiles: bool,
    /// Whether several objects name one fragment.
    pub shares_fragments: bool,
}

const SHARED: &str = "shared_fragments";

impl MigrationTarget {
    /// The attributes of a root: all there were, but for what is of the old
    /// generation.
    pub fn root(&self, old: &Map<String, Value>, facts: &RootFacts) -> Map<String, Value> {
        let mut says = old.clone();
        // Those of transactions and of shards that are packed.
        for gone in ["zvf", "shard_layout", "shard_size"] {
            says.remove(gone);
        }
        if let Some(block) = says.get_mut("zarr_vectors").and_then(Value::as_object_mut) {
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
        if self.is_current() && !says.contains_key("ome") {
            let scales = says.get("multiscales").and_then(|scales| scales.get(0));
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
            says.insert("ome".to_owned(), ome);
        }
        says
    }

    /// The attributes of a level. What it said wrongly is named.
    pub fn level(
        &self,
        old: &Map<String, Value>,
        level: u32,
        facts: &LevelFacts,
    ) -> (Map<String, Value>, Vec<&'static str>) {
        let mut says = old.clone();
        let mut wrong = Vec::new();
        let block = says
            .entry("zarr_vectors_level")
            .or_insert_with(|| json!({"level": level}));
        if let Some(block) = block.as_object_mut() {
            let mut put = |key: &'static str, value: Value| {
                let known = block.insert(key.to_owned(), value.clone());
                known.is_some_and(|known| known != value)
            };
            if put("vertex_count", json!(facts.vertices)) {
                wrong.push("a count of vertices that was not that of the rows");
            }
            put("level", json!(level));
            let declared = block.get("arrays_present").and_then(Value::as_array);
            let names = declared.map(|names| names.iter().filter_map(Value::as_str));
            let mut names: Vec<&str> = names.map(Iterator::collect).unwrap_or_default();
            let mut present = facts.present.clone();
            // Parts that are there and not named are no mistake, and each generation has
            // its own names for what belongs to links.
            let is_wrong = |name: &&str| !name.contains("link") && is_level_array(name);
            let mut absent = names.iter().filter(|name| !present.contains(*name));
            if absent.any(is_wrong) {
                wrong.push("a list of parts that names some that are not there");
            }
            // In the order they were in, and then those that were not named.
            names.retain(|name| !is_level_array(name) || present.contains(name));
            present.sort_unstable();
            present.dedup();
            present.retain(|name| !names.contains(name));
            names.extend(present);
            let all = json!(names);
            block.insert("arrays_present".to_owned(), all);
            block.remove("fragments_tile");
            if facts.tiles && self.is_current() {
                block.insert("fragments_tile".to_owned(), json!(true));
            }
            if facts.shares_fragments {
                block.insert(SHARED.to_owned(), json!(true));
            }
        }
        (says, wrong)
    }
}

/// Whether a name in a level is that of a part that is migrated; further geometries
/// have names of their own.
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
