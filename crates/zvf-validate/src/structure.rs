//! L1: nodes and their types.

use zvf_model::{
    detection::{Evidence, FamilyForm, NodeForm, part_names},
    key::Key,
    layout::{ChunkForm, Layout, LinkForm, PartNames},
    level::LevelId,
    metadata::MetadataFault,
    root::RootMetadata,
    scope::Scope,
    zarr::Node,
};

use crate::{
    context::Context,
    rule::Depth,
    rules::{metadata, structure as rules},
    store::{LevelNode, StoreMetadata},
    tree::StoreTree,
    unlisted,
};

pub(crate) mod required;
mod walk;

/// Families of a level whose children may be chunks, with the number of path segments above a
/// chunk.
const FAMILIES: [(&str, usize); 8] = [
    ("vertices", 1),
    ("vertex_fragments", 1),
    ("link_fragments", 1),
    (PartNames::DOCUMENTED.vertex_attributes, 2),
    ("links", 2),
    ("link_attributes", 3),
    ("cross_chunk_links", 2),
    ("cross_chunk_link_attributes", 3),
];

/// Reads all nodes and detects the generation. Returns `None` after reporting that the store cannot
/// be opened.
pub(crate) async fn check(context: &Context<'_>) -> Option<StoreMetadata> {
    let mut tree = StoreTree::list(context).await?;
    let root = Key::root();
    if !tree.has_file(&root) {
        context.report(&rules::NO_ROOT, &root, "there is no zarr.json");
        return None;
    }
    let own = tree.keys().filter(|key| !is_foreign(key));
    let (nodes, children): (Vec<&str>, Vec<&str>) = own.partition(|key| !may_be_chunk(key));
    let (nodes, children) = (keys(&nodes), keys(&children));
    tree.read(context, &nodes).await;
    if !matches!(tree.node(&root), Some(Node::Group(_))) {
        let message = "its zarr.json is not a group of Zarr v3";
        context.report(&rules::ROOT_UNREADABLE, &root, message);
        return None;
    }
    let mut ids: Vec<LevelId> = tree
        .folders(&root)
        .into_iter()
        .filter_map(LevelId::parse)
        .collect();
    ids.sort_unstable();
    let Some(first) = ids.first().copied() else {
        context.report(
            &rules::NO_LEVEL,
            &root,
            "no child of the root is named by a number",
        );
        return None;
    };
    // One child shows whether the children of a family are arrays.
    let samples = samples(&tree, &child(&root, &first.to_string())?);
    tree.read(context, &samples).await;
    let evidence = evidence(&tree, first)?;
    let detection = match evidence.detect() {
        Ok(detection) => detection,
        Err(error) => {
            context.report(&rules::NO_GENERATION, &root, error);
            return None;
        }
    };
    let rest: Vec<Key> = children
        .into_iter()
        .filter(|key| !is_cell(detection.layout, key.as_str()) && tree.node(key).is_none())
        .collect();
    tree.read(context, &rest).await;
    if context.options.depth >= Depth::Consistency {
        tree.in_shards = unlisted::in_shards(context, &tree).await;
    }
    let attributes = tree.node(&root)?.attributes();
    let parsed = match RootMetadata::parse(&root, attributes) {
        Ok(parsed) => Some(parsed),
        Err(error) => {
            let rule = match error.fault {
                MetadataFault::Capabilities(_) => &metadata::REQUIRED_CAPABILITY,
                _ => &metadata::ROOT_UNUSABLE,
            };
            context.report_at(rule, &root, &error.path, &error.fault);
            None
        }
    };
    check_headers(context, &tree);
    let levels = ids
        .into_iter()
        .filter_map(|id| {
            let key = child(&root, &id.to_string())?;
            Some(LevelNode::new(context, &tree, id, key, parsed.as_ref()))
        })
        .collect();
    let store = StoreMetadata {
        tree,
        detection,
        root: parsed,
        levels,
    };
    walk::check(context, &store);
    required::check(context, &store);
    Some(store)
}

/// Returns whether a path belongs to a transaction or to the header of another format. Its nodes
/// are never opened.
fn is_foreign(path: &str) -> bool {
    let mut names = path.split('/');
    match names.next() {
        Some(".zvf") => true,
        Some("headers") => names.count() > 1,
        _ => false,
    }
}

/// Checks that headers of source files are attributes of groups.
fn check_headers(context: &Context<'_>, tree: &StoreTree) {
    let Ok(folder) = Key::parse("headers") else {
        return;
    };
    for name in tree.folders(&folder) {
        if let Some(key) = child(&folder, name)
            && tree.array(&key).is_some()
        {
            context.report(&rules::HEADER, &key, "an array");
        }
    }
}

/// Parses paths. Invalid keys are never listed as nodes.
fn keys(paths: &[&str]) -> Vec<Key> {
    let keys = paths.iter().filter_map(|path| match *path {
        "" => Some(Key::root()),
        path => Key::parse(path).ok(),
    });
    keys.collect()
}

fn child(key: &Key, name: &str) -> Option<Key> {
    key.join(name).ok()
}

/// Returns the family that contains a path, the depth of its chunks, and the depth of the path in
/// it.
fn family(path: &str) -> Option<(&'static str, usize, usize)> {
    let mut names = path.split('/');
    LevelId::parse(names.next()?)?;
    let name = names.next()?;
    let attributes = Scope::OF_CHUNKS.map(|scope| (scope.group().name(), 2));
    let mut families = FAMILIES.into_iter().chain(attributes);
    let (family, depth) = match families.find(|(family, _)| *family == name) {
        Some(found) => found,
        None if name.starts_with("vertices_") => ("vertices", 1),
        None => return None,
    };
    Some((family, depth, names.count()))
}

/// Returns whether a node may be the array of a chunk, as in generations up to 0.8.
fn may_be_chunk(path: &str) -> bool {
    family(path).is_some_and(|(_, depth, found)| found == depth)
}

/// Returns whether a path is the array of one cell in this layout. Shards hold several cells and
/// are not.
fn is_cell(layout: Layout, path: &str) -> bool {
    let is_shard = path.rsplit('/').next();
    if is_shard.is_some_and(|name| name.starts_with(zvf_model::array::SHARD_PREFIX)) {
        return false;
    }
    let Some((family, depth, found)) = family(path) else {
        return false;
    };
    if found != depth {
        return false;
    }
    match family {
        "links" | "link_attributes" => layout.links == LinkForm::PerDelta,
        "cross_chunk_links" | "cross_chunk_link_attributes" => {
            layout.cross_chunk == zvf_model::layout::CrossChunkForm::Cells
        }
        _ => layout.chunks != ChunkForm::Cell,
    }
}

/// Returns one child of each family of links, which distinguishes the generations.
fn samples(tree: &StoreTree, level: &Key) -> Vec<Key> {
    let mut samples = Vec::new();
    for name in ["links", "cross_chunk_links"] {
        let Some(parent) = child(level, name) else {
            continue;
        };
        for delta in tree.folders(&parent) {
            let Some(family) = child(&parent, delta) else {
                continue;
            };
            let first = tree.folders(&family).into_iter().find(|name| *name != "c");
            samples.extend(first.and_then(|name| child(&family, name)));
        }
    }
    samples
}

/// Collects the facts that distinguish the generations.
fn evidence(tree: &StoreTree, first: LevelId) -> Option<Evidence> {
    let root = Key::root();
    let level = child(&root, &first.to_string())?;
    let form = |key: &Key| match tree.node(key) {
        Some(node) => Some(NodeForm::of(node)),
        None => tree.exists(key).then_some(NodeForm::Group),
    };
    let of = |name: &str| child(&level, name).and_then(|key| form(&key));
    let names = tree.folders(&level);
    let parts = part_names(names.iter().copied());
    let composite = names.iter().find(|name| name.starts_with("links_"));
    let families = |name: &str| {
        let parent = child(&level, name);
        let deltas = parent.iter().flat_map(|parent| tree.folders(parent));
        let families = deltas.filter_map(|delta| {
            let key = child(parent.as_ref()?, delta)?;
            let node = tree.node(&key);
            let first = tree.folders(&key).into_iter().find(|name| *name != "c");
            let children = first.and_then(|name| {
                let form = tree.node(&child(&key, name)?).map(NodeForm::of);
                Some((name.to_owned(), form))
            });
            Some(FamilyForm {
                node: form(&key)?,
                attributes: node
                    .map(|node| node.attributes().clone())
                    .unwrap_or_default(),
                children: children.into_iter().collect(),
            })
        });
        families.collect::<Vec<_>>()
    };
    let attributes: Vec<Key> = ["object_attributes", "group_attributes"]
        .iter()
        .filter_map(|name| child(&level, name))
        .flat_map(|parent| {
            let names = tree.folders(&parent).into_iter();
            let keys = names.filter_map(|name| child(&parent, name));
            keys.collect::<Vec<Key>>()
        })
        .collect();
    // An attribute without a readable node says nothing about the others.
    let readable = attributes.iter().find(|key| tree.node(key).is_some());
    let attribute = readable.or(attributes.first()).and_then(form);
    let index = child(&level, "object_index")?;
    let parametric = Key::parse("parametric/objects").ok()?;
    Some(Evidence {
        vertices: of("vertices"),
        vertex_group_offsets: names.contains(&"vertex_group_offsets"),
        links: families("links"),
        cross_chunk_links: families("cross_chunk_links"),
        object_index: tree.node(&index).map(|node| node.attributes().clone()),
        object_attribute: attribute,
        composite_links: composite.and_then(|name| of(name)),
        parametric_objects: tree.node(&parametric).map(NodeForm::of),
        groups: of(parts.groups),
        names: Some(parts),
        scopes: Scope::ALL
            .into_iter()
            .filter(|scope| names.contains(&scope.group().name()))
            .collect(),
        ..Evidence::of_root(tree.node(&root)?.attributes())
    })
}
