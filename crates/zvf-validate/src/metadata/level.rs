//! Metadata of each level.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use zvf_model::{
    array::ObjectIndex,
    level::{AttributeChunking, LevelId, LevelMetadata, Refinement},
    metadata::{MetadataFault, MetadataNote},
    root::RootMetadata,
};

use super::faults;
use crate::{
    context::Context,
    node_role::below,
    rules::metadata as rules,
    store::{LevelNode, StoreMetadata},
    structure::required,
};

const BLOCK: &str = "zarr_vectors_level";

pub(super) fn check(context: &Context<'_>, store: &StoreMetadata) {
    let Some(root) = &store.root else {
        for level in &store.levels {
            let message = "the root's metadata cannot be used";
            context.report(&rules::NOT_RUN, &level.key, message);
        }
        return;
    };
    for level in &store.levels {
        let Some(metadata) = &level.metadata else {
            continue;
        };
        if store.tree.has_file(&level.key) && store.tree.node(&level.key).is_none() {
            let message = "its zarr.json cannot be read";
            context.report(&rules::NOT_RUN, &level.key, message);
            continue;
        }
        for note in &metadata.notes {
            noted(context, store, level, note);
        }
        for name in metadata.unknown.keys() {
            let place = format!("attributes.{BLOCK}.{name}");
            let message = "no version of the format defines this field";
            context.report_at(&rules::UNKNOWN_FIELD, &level.key, place, message);
        }
        let mut seen = BTreeSet::new();
        for name in metadata
            .arrays_present
            .iter()
            .filter(|name| !seen.insert(*name))
        {
            let place = format!("attributes.{BLOCK}.arrays_present");
            let message = format!("{name:?} is a duplicate");
            context.report_at(&rules::DUPLICATE, &level.key, place, message);
        }
        parent(context, store, level, metadata);
        bins(context, root, level, metadata);
        if let Some(chunking) = &metadata.attribute_chunking {
            attribute_chunking(context, root, level, chunking);
        }
        inherited(context, store, level, metadata);
        completion(context, store, level, metadata);
        if metadata.is_unfinished {
            let message = "the level is being built";
            context.report(&rules::UNFINISHED_LEVEL, &level.key, message);
        }
    }
}

/// Checks that the level that completes an additive one exists.
fn completion(
    context: &Context<'_>,
    store: &StoreMetadata,
    level: &LevelNode,
    metadata: &LevelMetadata,
) {
    let next = level.id.offset(1);
    let exists = next.is_some_and(|next| store.level(next).is_some());
    if metadata.refinement == Refinement::Replace || exists {
        return;
    }
    let next = next.map_or_else(String::new, |next| format!(" {next}"));
    let message = format!("the level is additive, but level{next} does not exist");
    let place = format!("attributes.{BLOCK}.refinement");
    context.report_at(&rules::ADDITIVE_REST, &level.key, place, message);
}

/// Reports a tolerated fault, under a more specific rule where the field has one.
fn noted(context: &Context<'_>, store: &StoreMetadata, level: &LevelNode, note: &MetadataNote) {
    let key = &level.key;
    let field = note.path.as_str().rsplit('.').next().unwrap_or_default();
    let message = format!("{}; {}", note.fault, note.assumed);
    let (rule, value) = match (field, &note.fault) {
        ("level", _) => {
            let number = json!(level.id.number());
            (&rules::LEVEL_NUMBER, number)
        }
        ("arrays_present", MetadataFault::Missing) => {
            let parts = json!(required::parts(store, level));
            (&rules::FIELD_MISSING, parts)
        }
        _ => return faults::note(context, key, note),
    };
    context.report_attribute(rule, key, &[BLOCK, field], message, Some(value));
}

fn parent(
    context: &Context<'_>,
    store: &StoreMetadata,
    level: &LevelNode,
    metadata: &LevelMetadata,
) {
    let message = match (level.id, metadata.parent_level) {
        (LevelId::FULL, None) => return,
        (LevelId::FULL, Some(parent)) => {
            format!("level 0 is the finest, but declares level {parent} as its parent")
        }
        (_, None) => "the level does not declare its parent".to_owned(),
        (id, Some(parent)) if parent >= id => {
            format!("the declared parent, level {parent}, is not finer")
        }
        (_, Some(parent)) if store.level(parent).is_none() => {
            format!("the declared parent, level {parent}, does not exist")
        }
        _ => return,
    };
    let place = format!("attributes.{BLOCK}.parent_level");
    context.report_at(&rules::PARENT, &level.key, place, message);
}

/// Checks that bins divide the chunks of the level, unless they are larger.
fn bins(context: &Context<'_>, root: &RootMetadata, level: &LevelNode, metadata: &LevelMetadata) {
    // Level 0 has the bins of the root, which are checked there.
    if level.id == LevelId::FULL && metadata.chunk_shape.is_none() {
        return;
    }
    let chunk = metadata.effective_chunk_shape(root).extents();
    let bin = metadata.effective_bin_shape(root).extents();
    let larger = bin.iter().zip(chunk).any(|(bin, chunk)| bin > chunk);
    if larger {
        return;
    }
    if let Err(error) = metadata.bins(root) {
        context.report(&rules::BINS, &level.key, error);
    }
}

fn attribute_chunking(
    context: &Context<'_>,
    root: &RootMetadata,
    level: &LevelNode,
    chunking: &AttributeChunking,
) {
    let find = |field: &str, message: String| {
        let place = format!("attributes.{BLOCK}.{field}");
        context.report_at(&rules::CHUNK_ATTRIBUTE, &level.key, place, message);
    };
    if chunking.name.is_none() {
        let message = "chunks are split by an attribute, but its name is missing";
        find("chunk_attribute_name", message.to_owned());
    }
    if chunking.values.is_empty() {
        let message = "chunks are split by an attribute, but its values are missing";
        find("chunk_attribute_values", message.to_owned());
    }
    let mut seen = BTreeSet::new();
    let words = chunking.values.iter().map(Value::to_string);
    for value in words.filter(|word| !seen.insert(word.clone())) {
        find("chunk_attribute_values", format!("{value} is a duplicate"));
    }
    // The list of dimensions is optional.
    if chunking.dims.is_empty() {
        return;
    }
    let axes = root.axes.iter().map(|axis| axis.name.as_str());
    let dims: Vec<&str> = chunking.name.as_deref().into_iter().chain(axes).collect();
    if chunking.name.is_some() && chunking.dims != dims {
        find(
            "chunk_dims",
            format!("{:?} instead of {dims:?}", chunking.dims),
        );
    }
}

/// Checks the statements of a level about its parent.
fn inherited(
    context: &Context<'_>,
    store: &StoreMetadata,
    level: &LevelNode,
    metadata: &LevelMetadata,
) {
    let find = |field: &str, message: &str| {
        let place = format!("attributes.{BLOCK}.{field}");
        context.report_at(&rules::INHERITED, &level.key, place, message);
    };
    if metadata.preserves_object_ids && level.id == LevelId::FULL {
        find(
            "preserves_object_ids",
            "level 0 has no parent whose ids it could keep",
        );
    } else if metadata.preserves_object_ids && metadata.inherited_num_objects.is_none() {
        find(
            "inherited_num_objects",
            "missing, although the level declares that it keeps the ids of its parent",
        );
    }
    let (Some(found), Some(parent)) = (metadata.inherited_num_objects, metadata.parent_level)
    else {
        return;
    };
    // Changes since the level was built are reported as L4 staleness.
    if store
        .root
        .as_ref()
        .is_some_and(|root| root.is_stale(level.id))
    {
        return;
    }
    let Some(objects) = store
        .level(parent)
        .and_then(|parent| objects(store, parent))
    else {
        return;
    };
    if found != objects {
        let message = format!("{found}, but level {parent} has {objects} objects");
        let (rule, path) = (&rules::INHERITED, [BLOCK, "inherited_num_objects"]);
        context.report_attribute(rule, &level.key, &path, message, Some(json!(objects)));
    }
}

/// Returns the number of objects of a level; 0 without an object index.
fn objects(store: &StoreMetadata, level: &LevelNode) -> Option<u64> {
    let key = below(&level.key, "object_index")?;
    if !store.tree.exists(&key) {
        return Some(0);
    }
    let index = ObjectIndex::parse(&key, store.tree.node(&key)?.attributes());
    Some(index.ok()?.value.num_objects)
}
