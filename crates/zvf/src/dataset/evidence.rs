//! Reads the few nodes that distinguish generations.

use futures_util::future::{try_join, try_join_all, try_join4};
use zvf_model::{
    detection::{Evidence, FamilyForm, NodeForm},
    key::Key,
    zarr::Node,
};
use zvf_store::Store;

use crate::{failure::Failure, nodes};

/// Completes the `claim`, the evidence in the root's attributes, with the nodes of a level.
///
/// Takes four round trips: the children of the level; their nodes and the names of link families;
/// the nodes of the families and the names of their arrays; one array node of each family.
pub(crate) async fn gather(
    store: &Store,
    claim: &Evidence,
    level: &Key,
) -> Result<Evidence, Failure> {
    let listing = nodes::children(store, level).await?;
    let has = |name: &str| listing.folders.iter().any(|folder| folder == name);
    let composite = listing
        .folders
        .iter()
        .find(|name| name.starts_with("links_"));
    let [vertices, index, groups] = ["vertices", "object_index", "groups"];
    let parametric = nodes::child(&Key::root(), "parametric")?;
    let mut keys = vec![nodes::child(&parametric, "objects")?];
    for name in [vertices, index, groups]
        .into_iter()
        .chain(composite.map(String::as_str))
    {
        keys.push(nodes::child(level, name)?);
    }
    let read = nodes::read(store, &keys);
    let links = families(store, level, "links", has("links"));
    let crossing = families(store, level, "cross_chunk_links", has("cross_chunk_links"));
    let attribute = attribute(store, level, &listing.folders);
    let (found, links, cross_chunk_links, object_attribute) =
        try_join4(read, links, crossing, attribute).await?;
    let mut found = found.into_iter();
    let mut next = || found.next().flatten();
    let (parametric, own, index_node, groups_node) = (next(), next(), next(), next());
    let form = |node: Option<Node>, exists: bool| match node {
        Some(node) => Some(NodeForm::of(&node)),
        None => exists.then_some(NodeForm::Group),
    };
    Ok(Evidence {
        vertices: form(own, has(vertices)),
        vertex_group_offsets: has("vertex_group_offsets"),
        links,
        cross_chunk_links,
        object_index: index_node.map(|node| node.attributes().clone()),
        object_attribute,
        composite_links: form(next(), composite.is_some()),
        parametric_objects: parametric.map(|node| NodeForm::of(&node)),
        groups: form(groups_node, has(groups)),
        fragment_attributes: has("fragment_attributes"),
        ..claim.clone()
    })
}

/// Completes the `claim` without listing, given the form of the vertices. Takes one round trip; the
/// children of groups remain unknown.
pub(crate) async fn probe(
    store: &Store,
    claim: &Evidence,
    level: &Key,
    vertices: Option<NodeForm>,
) -> Result<Evidence, Failure> {
    let parametric = nodes::child(&Key::root(), "parametric")?;
    let links = nodes::child(&nodes::child(level, "links")?, "0")?;
    let crossing = nodes::child(&nodes::child(level, "cross_chunk_links")?, "0")?;
    let keys = [
        nodes::child(&parametric, "objects")?,
        nodes::child(level, "object_index")?,
        nodes::child(level, "groups")?,
        links,
        crossing,
    ];
    let mut found = nodes::read(store, &keys).await?.into_iter();
    let mut next = || found.next().flatten();
    let (parametric, index, groups) = (next(), next(), next());
    let family = |node: Node| FamilyForm {
        node: NodeForm::of(&node),
        attributes: node.attributes().clone(),
        children: Vec::new(),
    };
    Ok(Evidence {
        vertices,
        links: next().map(family).into_iter().collect(),
        cross_chunk_links: next().map(family).into_iter().collect(),
        object_index: index.map(|node| node.attributes().clone()),
        parametric_objects: parametric.map(|node| NodeForm::of(&node)),
        groups: groups.map(|node| NodeForm::of(&node)),
        ..claim.clone()
    })
}

/// Returns the form of any one attribute of objects or groups.
async fn attribute(
    store: &Store,
    level: &Key,
    folders: &[String],
) -> Result<Option<NodeForm>, Failure> {
    for family in ["object_attributes", "group_attributes"] {
        if !folders.iter().any(|folder| folder == family) {
            continue;
        }
        let family = nodes::child(level, family)?;
        let Some(name) = nodes::children(store, &family)
            .await?
            .folders
            .into_iter()
            .next()
        else {
            continue;
        };
        let node = nodes::read_one(store, &nodes::child(&family, &name)?).await?;
        return Ok(Some(
            node.map_or(NodeForm::Group, |node| NodeForm::of(&node)),
        ));
    }
    Ok(None)
}

async fn families(
    store: &Store,
    level: &Key,
    name: &str,
    exists: bool,
) -> Result<Vec<FamilyForm>, Failure> {
    if !exists {
        return Ok(Vec::new());
    }
    let parent = nodes::child(level, name)?;
    let deltas = nodes::children(store, &parent).await?.folders;
    let families = deltas.iter().map(|delta| family(store, &parent, delta));
    try_join_all(families).await
}

/// Reads the node of a link family and of one of its children.
async fn family(store: &Store, parent: &Key, delta: &str) -> Result<FamilyForm, Failure> {
    let key = nodes::child(parent, delta)?;
    let (node, listing) =
        try_join(nodes::read_one(store, &key), nodes::children(store, &key)).await?;
    let names = listing.folders;
    let mut children = Vec::new();
    if let Some(name) = names.into_iter().next() {
        let child = nodes::read_one(store, &nodes::child(&key, &name)?).await?;
        let form = child.map(|node| NodeForm::of(&node));
        children.push((name, form));
    }
    let attributes = node.as_ref().map(|node| node.attributes().clone());
    Ok(FamilyForm {
        node: node.map_or(NodeForm::Group, |node| NodeForm::of(&node)),
        attributes: attributes.unwrap_or_default(),
        children,
    })
}
