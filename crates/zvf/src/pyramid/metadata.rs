//! Metadata of the root and of a new level.

use serde_json::{Map, Value, json};
use zvf_model::{
    root::{CrossLevel, RootMetadata},
    word::Word,
};

use super::{ATTRIBUTE_GROUPS, build::Build, stats};

/// Returns the cross-level links that the root declares.
pub(super) fn stored(root: &RootMetadata) -> CrossLevel {
    let declared = root.cross_level_storage.as_ref();
    declared.and_then(Word::known).unwrap_or(CrossLevel::None)
}

/// Returns the number of levels that links span; all if `None`.
pub(super) fn depth(root: &RootMetadata) -> Option<u32> {
    root.cross_level_depth
        .and_then(|depth| u32::try_from(depth).ok())
}

const CAPABILITIES: &str = "format_capabilities";

/// Adds a capability to a list of the root, once.
pub(super) fn token(block: &mut Map<String, Value>, list: &str, name: &str) {
    let tokens = block.entry(list).or_insert_with(|| json!([]));
    if let Some(tokens) = tokens.as_array_mut()
        && !tokens.iter().any(|known| known == name)
    {
        tokens.push(json!(name));
    }
}

impl Build<'_> {
    /// Returns the attributes of the level.
    pub(super) fn level_attributes(&self) -> Map<String, Value> {
        let source = self.source;
        let tally = &self.tally;
        let paths = self.families();
        let has = |family: &str| {
            paths
                .iter()
                .any(|path| path.split('/').nth(1) == Some(family))
        };
        let mut present = vec!["vertices"];
        for family in ATTRIBUTE_GROUPS {
            present.extend(has(family).then_some(family));
        }
        present.extend(self.shared.links.is_some().then_some("links"));
        present.extend(source.objects.is_some().then_some("object_index"));
        let share = match source.objects.as_deref() {
            Some(objects) if !objects.is_empty() => self.share(objects.len() as u64),
            _ => 1.0,
        };
        let mut attributes = Map::new();
        let mut put = |key: &str, value: Value| {
            attributes.insert(key.to_owned(), value);
        };
        put("level", json!(self.target.number()));
        put("object_sparsity", json!(share));
        put("vertex_count", json!(tally.rows));
        put(
            "coarsening_method",
            json!(self.design.method.kind().in_metadata()),
        );
        put("parent_level", json!(source.id.number()));
        put("arrays_present", json!(present));
        if self.metadata.chunk_shape.as_ref() != Some(&source.dataset.root().chunk_shape)
            && let Some(shape) = &self.metadata.chunk_shape
        {
            put("chunk_shape", json!(shape.extents()));
        }
        if let Some(chunking) = &self.metadata.attribute_chunking {
            put("chunk_dims", json!(chunking.dims));
            if let Some(name) = &chunking.name {
                put("chunk_attribute_name", json!(name));
            }
            put("chunk_attribute_values", json!(chunking.values));
        }
        if let Some(objects) = source.objects.as_deref() {
            put("preserves_object_ids", json!(true));
            put("inherited_num_objects", json!(objects.len()));
        }
        if self.shared.recipe.shape.is_shared() {
            put("shared_fragments", json!(true));
        } else if !tally.is_untiled && self.shared.form.has_ids() {
            put("fragments_tile", json!(true));
        }
        let mut all =
            Map::from_iter([("zarr_vectors_level".to_owned(), Value::Object(attributes))]);
        all.insert("zvf_pyramid".to_owned(), stats::describe(self));
        if self.design.additive {
            all.insert("zvf_additive".to_owned(), json!(true));
        }
        all
    }

    /// Returns the share of all objects that the level keeps.
    fn share(&self, objects: u64) -> f64 {
        if self.shared.recipe.kept.is_none() {
            return 1.0;
        }
        let kept = self.tally.present.max(1) as f64;
        (kept / objects as f64).min(1.0)
    }

    /// Returns the attributes of the root, including the level.
    pub(super) fn root_attributes(&self, mut root: Map<String, Value>) -> Map<String, Value> {
        let metadata = self.source.dataset.root();
        let number = self.target.number();
        if let Some(block) = root.get_mut("zarr_vectors").and_then(Value::as_object_mut) {
            if self.source.objects.is_some() {
                token(block, CAPABILITIES, "preserved_object_ids");
            }
            if self.shared.recipe.shape.is_shared() {
                token(block, CAPABILITIES, "shared_fragments");
            }
            let storage = match self.design.additive {
                true => CrossLevel::None,
                false => self.options.cross_level,
            };
            let depth = match storage {
                CrossLevel::None => 0,
                _ => self.options.depth_of(),
            };
            if storage != CrossLevel::None && depth != 0 {
                token(block, CAPABILITIES, "multiscale_links");
            }
            block.insert("cross_level_depth".to_owned(), json!(depth));
            block.insert("cross_level_storage".to_owned(), json!(storage.as_str()));
        }
        dataset(
            &mut root,
            metadata,
            number,
            &self.bin_of(),
            &self.base_bin(),
        );
        let nodes = root.get_mut("ome").and_then(|ome| ome.get_mut("nodes"));
        if let Some(nodes) = nodes.and_then(Value::as_array_mut) {
            let node = json!({"type": "zv:level", "name": number.to_string()});
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
        root
    }

    fn bin_of(&self) -> Vec<f64> {
        let root = self.source.dataset.root();
        self.metadata.effective_bin_shape(root).extents().to_vec()
    }

    fn base_bin(&self) -> Vec<f64> {
        let root = self.source.dataset.root();
        let base = root.base_bin_shape.as_ref().unwrap_or(&root.chunk_shape);
        base.extents().to_vec()
    }
}

/// Inserts a level into `multiscales`.
fn dataset(
    root: &mut Map<String, Value>,
    metadata: &RootMetadata,
    level: u32,
    bin: &[f64],
    base: &[f64],
) {
    let _ = metadata;
    let datasets = root
        .get_mut("multiscales")
        .and_then(|scales| scales.get_mut(0))
        .and_then(|scale| scale.get_mut("datasets"))
        .and_then(Value::as_array_mut);
    let Some(datasets) = datasets else { return };
    let scale: Vec<f64> = bin.iter().zip(base).map(|(bin, base)| bin / base).collect();
    let half: Vec<f64> = bin.iter().map(|bin| bin / 2.0).collect();
    let path = level.to_string();
    datasets.retain(|own| own.get("path").and_then(Value::as_str) != Some(&path));
    datasets.push(json!({"path": path, "coordinateTransformations": [
        {"type": "scale", "scale": scale},
        {"type": "translation", "translation": half},
    ]}));
    datasets.sort_by_key(|own| {
        own.get("path")
            .and_then(Value::as_str)
            .and_then(|path| path.parse::<u64>().ok())
    });
}
