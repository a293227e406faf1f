//! Comparison of every node and file with the layout.

use zvf_format::path::Delta;
use zvf_model::{
    array::LinkFamily,
    grid::ChunkCoord,
    key::Key,
    layout::ArrayRole,
    zarr::{Array, Node},
};

use crate::{
    chunked_part::cell_of_file,
    context::Context,
    node_role::{NodeRole, NodeType, level_of, may_be_pairs},
    rules::structure as rules,
    store::{LevelNode, StoreMetadata},
    tree::FolderEntry,
};

/// Names of the only chunk of a one-chunk array, in every chunk key encoding.
const ONLY_CHUNK: [&str; 3] = ["c/0", "c.0", "0"];

/// Checks every node, folder and file of the store.
pub(super) fn check(context: &Context<'_>, store: &StoreMetadata) {
    node(context, store, &Key::root());
}

/// Checks a node or folder and everything below it.
fn node(context: &Context<'_>, store: &StoreMetadata, key: &Key) {
    let place = NodeRole::of(*store.layout(), key.as_str());
    match place {
        NodeRole::Foreign | NodeRole::Header => return,
        NodeRole::Stray => {
            let message = "no reader of this generation opens it";
            return context.report(&rules::UNKNOWN_ENTRY, key, message);
        }
        NodeRole::Cell => return cell(context, store, key),
        _ => {}
    }
    let found = store.tree.node(key);
    if found.is_none() && store.tree.has_file(key) {
        // The unreadable node is reported already, and without it the layout below is unknown.
        return;
    }
    if !is_right(context, store, key, place, found) {
        return;
    }
    if let Some(Node::Array(array)) = found {
        return files(context, store, key, array);
    }
    for entry in store.tree.entries(key) {
        match entry {
            FolderEntry::File("zarr.json") => {}
            FolderEntry::File(name) => stray_file(context, key, name),
            FolderEntry::Folder(name) => match key.join(name) {
                Ok(child) => node(context, store, &child),
                Err(error) => context.report(
                    &rules::UNKNOWN_ENTRY,
                    key,
                    format_args!("a folder name that is not a valid key: {error}"),
                ),
            },
        }
    }
}

/// Returns whether a node has the type of its role; reports it otherwise.
fn is_right(
    context: &Context<'_>,
    store: &StoreMetadata,
    key: &Key,
    place: NodeRole<'_>,
    found: Option<&Node>,
) -> bool {
    let Some(found) = found else {
        match place {
            NodeRole::Folder if store.layout().generation.is_current() => {
                context.report(&rules::GROUP_MISSING, key, "there is no zarr.json");
            }
            NodeRole::Folder => {
                context.report(&rules::GROUP_IMPLICIT, key, "there is no zarr.json");
            }
            _ => context.report(
                &rules::NODE_MISSING,
                key,
                "it holds files, but no zarr.json",
            ),
        }
        // Without its zarr.json, an array is only checked for files.
        return place.node_type(*store.layout()) == NodeType::Group;
    };
    let message = match (place.node_type(*store.layout()), found) {
        (NodeType::Group, Node::Array(_)) if may_be_pairs(*store.layout(), key) => return true,
        (NodeType::Group, Node::Array(_)) => "an array where a group is required",
        (NodeType::Array, Node::Group(_)) => "a group where an array is required",
        _ => return true,
    };
    context.report(&rules::NODE_TYPE, key, message);
    false
}

/// Checks the array of one cell. Its `zarr.json` is read with the cell.
fn cell(context: &Context<'_>, store: &StoreMetadata, key: &Key) {
    let level = level_of(key.as_str()).and_then(|id| store.level(id));
    let arity = level.map_or(0, |level| level.arity);
    let name = key.name().unwrap_or_default();
    let folder = key.parent().unwrap_or_else(Key::root);
    match NodeRole::of(*store.layout(), folder.as_str()) {
        NodeRole::CrossChunkLinks(delta) | NodeRole::CrossChunkAttribute(_, delta) => {
            let ends = level.and_then(|level| ends_between(store, level, delta));
            // Without its family, a cell is reported already.
            if let Some(ends) = ends
                && ChunkCoord::parse(name, ends.saturating_mul(arity)).is_err()
            {
                let message =
                    format!("{name} is not a key of {ends} chunks of {arity} coordinates");
                return context.report(&rules::LINK_CELL_NAME, key, message);
            }
        }
        _ if arity > 0 && ChunkCoord::parse(name, arity).is_err() => {
            let message = format!("{name} is not a chunk key of {arity} coordinates");
            return context.report(&rules::UNKNOWN_ENTRY, key, message);
        }
        _ => {}
    }
    for (file, _) in store.tree.below(key) {
        let name = file
            .strip_prefix(key.as_str())
            .unwrap_or_default()
            .strip_prefix('/')
            .unwrap_or_default();
        if name != "zarr.json" && !ONLY_CHUNK.contains(&name) {
            stray_file(context, key, name);
        }
    }
}

/// Returns the number of ends of links between chunks up to 0.8.1; `None` if their family is unusable.
fn ends_between(store: &StoreMetadata, level: &LevelNode, delta: Delta) -> Option<usize> {
    let key = store.at(level, &ArrayRole::CrossChunkLinks(delta))?;
    let attributes = store.tree.node(&key)?.attributes();
    let family = LinkFamily::parse_cross_chunk(&key, delta, attributes);
    Some(family.ok()?.value?.width.get())
}

/// Reports files below an array that are not one of its chunks.
fn files(context: &Context<'_>, store: &StoreMetadata, key: &Key, array: &Array) {
    for (file, _) in store.tree.below(key) {
        let name = file
            .strip_prefix(key.as_str())
            .unwrap_or_default()
            .strip_prefix('/')
            .unwrap_or_default();
        if name != "zarr.json" && cell_of_file(key, array, file).is_none() {
            stray_file(context, key, name);
        }
    }
}

fn stray_file(context: &Context<'_>, key: &Key, name: &str) {
    context.report_at(
        &rules::UNKNOWN_ENTRY,
        key,
        name,
        "no reader of this generation opens this file",
    );
}
