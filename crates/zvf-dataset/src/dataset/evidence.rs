//! Reads the few nodes that distinguish generations.

use futures_util::future::{try_join, try_join_all, try_join4};
use zvf_model::{
    detection::{Evidence, FamilyForm, NodeForm, part_names},
    key::Key,
    scope::Scope,
    zarr::Node,
};

use crate::{
    failure::Failure,
    nodes::{self, NodeSource},
};

/// Completes the `claim`, the evidence in the root's attributes, with the nodes of a level.
///
/// Takes four round trips: the children of the level; their nodes and the names of link families;
/// the nodes of the families and the names of their arrays; one array node of each family.
pub(crate) async fn gather(
    source: impl NodeSource,
    claim: &Evidence,
    level: &Key,
) -> Result<Evidence, Failure> {
    let children = source.children(level).await?;
    let has = |name: &str| children.iter().any(|folder| folder == name);
    let composite = children.iter().find(|name| name.starts_with("links_"));
    let names = part_names(children.iter().map(String::as_str));
    let [vertices, index, groups] = ["vertices", "object_index", names.groups];
    let parametric = nodes::child(&Key::root(), "parametric")?;
    let mut keys = vec![nodes::child(&parametric, "objects")?];
    for name in [vertices, index, groups]
        .into_iter()
        .chain(composite.map(String::as_str))
    {
        keys.push(nodes::child(level, name)?);
    }
    let read = source.nodes(&keys);
    let links = families(source, level, "links", has("links"));
    let crossing = families(source, level, "cross_chunk_links", has("cross_chunk_links"));
    let attribute = attribute(source, level, &children);
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
        names: Some(names),
        scopes: Scope::ALL
            .into_iter()
            .filter(|scope| has(scope.group().name()))
            .collect(),
        ..claim.clone()
    })
}

/// Completes the `claim` without listing, given the form of the vertices. Takes one round trip; the
/// children of groups remain unknown.
pub(crate) async fn probe(
    source: impl NodeSource,
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
    let mut found = source.nodes(&keys).await?.into_iter();
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
    source: impl NodeSource,
    level: &Key,
    children: &[String],
) -> Result<Option<NodeForm>, Failure> {
    for family in ["object_attributes", "group_attributes"] {
        if !children.iter().any(|folder| folder == family) {
            continue;
        }
        let family = nodes::child(level, family)?;
        let Some(name) = source.children(&family).await?.into_iter().next() else {
            continue;
        };
        let node = source.node(&nodes::child(&family, &name)?).await?;
        return Ok(Some(
            node.map_or(NodeForm::Group, |node| NodeForm::of(&node)),
        ));
    }
    Ok(None)
}

async fn families(
    source: impl NodeSource,
    level: &Key,
    name: &str,
    exists: bool,
) -> Result<Vec<FamilyForm>, Failure> {
    if !exists {
        return Ok(Vec::new());
    }
    let parent = nodes::child(level, name)?;
    let deltas = source.children(&parent).await?;
    let families = deltas.iter().map(|delta| family(source, &parent, delta));
    try_join_all(families).await
}

/// Reads the node of a link family and of one of its children.
async fn family(source: impl NodeSource, parent: &Key, delta: &str) -> Result<FamilyForm, Failure> {
    let key = nodes::child(parent, delta)?;
    let (node, names) = try_join(source.node(&key), source.children(&key)).await?;
    let mut children = Vec::new();
    if let Some(name) = names.into_iter().next() {
        let child = source.node(&nodes::child(&key, &name)?).await?;
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
