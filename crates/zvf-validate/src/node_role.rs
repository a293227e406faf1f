//! Roles of nodes: the part that each path of a store holds, by the layout of its generation.

use zvf_format::path::Delta;
use zvf_model::{
    array::SHARD_PREFIX,
    generation::Generation,
    key::Key,
    layout::{ArrayRole, ChunkForm, CrossChunkForm, Layout, LinkForm, LinkOffsets, TableForm},
    level::LevelId,
    scope::Scope,
};

/// The role of a node, derived from its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeRole<'a> {
    Root,
    Level,
    /// Holds other nodes and has no metadata of its own.
    Folder,
    Vertices,
    VertexFragments,
    LinkFragments,
    /// An attribute with a cell for each chunk.
    ChunkAttribute(Scope, &'a str),
    /// A group with the policy of several arrays of links.
    LinkFamily(Delta),
    /// Cells of links, with the path segment of the offsets if each offset has its own array.
    Links(Delta, Option<&'a str>),
    LinkAttributeFamily(&'a str, Delta),
    LinkAttribute(&'a str, Delta, Option<&'a str>),
    CrossChunkLinks(Delta),
    CrossChunkAttribute(&'a str, Delta),
    /// The array of one cell.
    Cell,
    /// An array of many cells, in stores up to 0.8.0.
    Shard,
    /// One array of bytes: a table or its offsets, up to 0.8.0.
    Blob,
    ObjectIndex,
    Manifests,
    /// Spans or blocks of a dense object index.
    ManifestRows,
    ObjectIds,
    ObjectAttribute(&'a str),
    Groups,
    GroupAttribute(&'a str),
    GeometryIndex,
    CompositeVertices(&'a str),
    CompositeLinks(&'a str),
    Parametric,
    ParametricObjects,
    ParametricNames,
    ParametricAttribute(&'a str),
    ParametricGroups,
    ParametricGroupAttribute(&'a str),
    Header,
    /// Belongs to another program or to a transaction.
    Foreign,
    /// Not part of the layout.
    Stray,
}

/// The node type that a role requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeType {
    Group,
    Array,
    Either,
}

impl<'a> NodeRole<'a> {
    /// Returns the role of a path.
    pub(crate) fn of(layout: Layout, path: &'a str) -> Self {
        let names: Vec<&str> = path.split('/').collect();
        match names.as_slice() {
            [""] => Self::Root,
            ["headers"] => Self::Folder,
            ["headers", _] => Self::Header,
            [".zvf" | "headers", ..] => Self::Foreign,
            ["parametric"] => Self::Parametric,
            ["parametric", rest @ ..] => parametric(layout, rest),
            [level, rest @ ..] if LevelId::parse(level).is_some() => in_level(layout, rest),
            _ => Self::Stray,
        }
    }

    /// Returns the required node type.
    pub(crate) fn node_type(self, layout: Layout) -> NodeType {
        let table = match layout.tables {
            TableForm::Child => NodeType::Group,
            TableForm::Array => NodeType::Array,
        };
        match self {
            Self::Root
            | Self::Level
            | Self::Folder
            | Self::LinkFamily(_)
            | Self::LinkAttributeFamily(..)
            | Self::CrossChunkLinks(_)
            | Self::CrossChunkAttribute(..)
            | Self::ObjectIndex
            | Self::GeometryIndex
            | Self::Parametric => NodeType::Group,
            Self::Cell
            | Self::Shard
            | Self::Blob
            | Self::Manifests
            | Self::ManifestRows
            | Self::ObjectIds => NodeType::Array,
            Self::Groups => match layout.groups {
                TableForm::Child => NodeType::Group,
                TableForm::Array => NodeType::Array,
            },
            Self::ObjectAttribute(_)
            | Self::GroupAttribute(_)
            | Self::CompositeLinks(_)
            | Self::ParametricObjects
            | Self::ParametricNames
            | Self::ParametricAttribute(_)
            | Self::ParametricGroups
            | Self::ParametricGroupAttribute(_) => table,
            Self::Header | Self::Foreign | Self::Stray => NodeType::Either,
            _ => match self.chunk_form(layout) {
                // Only some parts have native shards in 0.8.1, so both types are valid.
                _ if layout.generation == Generation::V0_8_1 => NodeType::Either,
                Some(ChunkForm::Child) => NodeType::Group,
                Some(ChunkForm::Cell | ChunkForm::Padded) => NodeType::Array,
                None => NodeType::Either,
            },
        }
    }

    /// Returns the storage form of a part with one cell per chunk.
    pub(crate) fn chunk_form(self, layout: Layout) -> Option<ChunkForm> {
        let zero = LinkOffsets::Zero { width: 2, arity: 1 };
        let part = match self {
            Self::Vertices => ArrayRole::Vertices,
            Self::VertexFragments => ArrayRole::VertexFragments,
            Self::LinkFragments => ArrayRole::LinkFragments,
            Self::ChunkAttribute(scope, name) => scope.array(name),
            Self::Links(delta, _) => ArrayRole::Links(delta, zero),
            Self::LinkAttribute(name, delta, _) => ArrayRole::LinkAttribute(name, delta, zero),
            Self::CompositeVertices(kind) => ArrayRole::CompositeVertices(kind),
            _ => return None,
        };
        layout.chunk_form(&part)
    }

    /// Returns the value of `zv_array` for this role.
    pub(crate) fn tag(self) -> Option<&'static str> {
        Some(match self {
            Self::Vertices => "vertices",
            Self::VertexFragments => "vertex_fragments",
            Self::LinkFragments => "link_fragments",
            Self::ChunkAttribute(scope, _) => scope.cells()?.tag(),
            Self::LinkFamily(_) => "links_family",
            Self::Links(..) => "links",
            Self::LinkAttributeFamily(..) => "link_attribute_family",
            Self::LinkAttribute(..) => "link_attribute",
            Self::CrossChunkLinks(_) => "cross_chunk_links",
            Self::CrossChunkAttribute(..) => "cross_chunk_link_attribute",
            Self::ObjectIndex => "object_index",
            Self::ObjectAttribute(_) => "object_attribute",
            Self::Groups => "groups",
            Self::GroupAttribute(_) => "groupings_attribute",
            Self::ParametricObjects => "parametric_objects",
            Self::ParametricNames => "parametric_names",
            _ => return None,
        })
    }

    /// Returns the user-given name in the path, such as that of an attribute.
    pub(crate) fn name(self) -> Option<&'a str> {
        match self {
            Self::ChunkAttribute(_, name)
            | Self::LinkAttributeFamily(name, _)
            | Self::LinkAttribute(name, ..)
            | Self::CrossChunkAttribute(name, _)
            | Self::ObjectAttribute(name)
            | Self::GroupAttribute(name)
            | Self::ParametricAttribute(name)
            | Self::ParametricGroupAttribute(name) => Some(name),
            _ => None,
        }
    }
}

/// Returns the level that contains a path.
pub(crate) fn level_of(path: &str) -> Option<LevelId> {
    LevelId::parse(path.split('/').next()?)
}

/// Returns the key of a descendant, or `None` if `name` is not a valid path.
pub(crate) fn below(key: &Key, name: &str) -> Option<Key> {
    key.join_path(name).ok()
}

/// Returns the scope of a folder of attributes.
fn scope_of(folder: &str) -> Option<Scope> {
    Scope::ALL
        .into_iter()
        .find(|scope| scope.group().name() == folder)
}

fn in_level<'a>(layout: Layout, names: &[&'a str]) -> NodeRole<'a> {
    let mut names = names.to_vec();
    if let Some(first) = names.first_mut() {
        *first = layout.names.written(first);
    }
    let scope = names.first().and_then(|folder| scope_of(folder));
    if let Some(scope) = scope.filter(|scope| Scope::OF_CHUNKS.contains(scope)) {
        match names.as_slice() {
            [_, name] => return NodeRole::ChunkAttribute(scope, name),
            [_, _, name] => return cell(name),
            _ => {}
        }
    }
    match names.as_slice() {
        [] => NodeRole::Level,
        ["vertices"] => NodeRole::Vertices,
        ["vertex_fragments"] => NodeRole::VertexFragments,
        ["link_fragments"] => NodeRole::LinkFragments,
        ["vertices" | "vertex_fragments" | "link_fragments", name] => cell(name),
        ["object_index"] => NodeRole::ObjectIndex,
        ["object_index", "manifests"] => NodeRole::Manifests,
        ["object_index", "manifest_spans" | "manifest_blocks"] => NodeRole::ManifestRows,
        ["object_index", "object_ids"] => NodeRole::ObjectIds,
        ["object_index", "data" | "offsets"] => NodeRole::Blob,
        ["groups"] => NodeRole::Groups,
        ["groups", "data" | "offsets"] if layout.groups == TableForm::Child => NodeRole::Blob,
        ["geometry_index"] => NodeRole::GeometryIndex,
        [_] if scope.is_some() => NodeRole::Folder,
        ["links"] | ["link_attributes", _] => NodeRole::Folder,
        ["links", rest @ ..] => links(layout, rest),
        ["link_attributes", name, rest @ ..] => link_attribute(layout, name, rest),
        ["object_attributes", name] => NodeRole::ObjectAttribute(name),
        ["object_attributes", _, "data" | "present_mask"] | ["group_attributes", _, "data"]
            if is_child(layout) =>
        {
            NodeRole::Blob
        }
        ["group_attributes", name] => NodeRole::GroupAttribute(name),
        [
            family @ ("cross_chunk_links" | "cross_chunk_link_attributes"),
            rest @ ..,
        ] if layout.cross_chunk != CrossChunkForm::Links => crossing(layout, family, rest),
        [name, rest @ ..] => composite(layout, name, rest),
    }
}

/// Returns whether a node may be an array of pairs of numbered vertices instead of a group.
pub(crate) fn may_be_pairs(layout: Layout, key: &Key) -> bool {
    layout.chunks == ChunkForm::Padded
        && key.name() == Some("cross_chunk_links")
        && key.segments().count() == 2
}

/// Returns whether tables are groups with an array of bytes below.
fn is_child(layout: Layout) -> bool {
    layout.tables == TableForm::Child
}

/// Returns the role of a child of a part with one cell per chunk.
fn cell(name: &str) -> NodeRole<'static> {
    if name.starts_with(SHARD_PREFIX) {
        NodeRole::Shard
    } else {
        NodeRole::Cell
    }
}

fn links<'a>(layout: Layout, names: &[&'a str]) -> NodeRole<'a> {
    let per_offsets = layout.links == LinkForm::PerOffsets;
    let delta = names.first().and_then(|name| Delta::parse(name).ok());
    match (delta, names) {
        (Some(delta), [_]) if per_offsets => NodeRole::LinkFamily(delta),
        (Some(delta), [_]) => NodeRole::Links(delta, None),
        (Some(delta), [_, offsets]) if per_offsets => NodeRole::Links(delta, Some(offsets)),
        (Some(_), [_, name]) => cell(name),
        _ => NodeRole::Stray,
    }
}

fn link_attribute<'a>(layout: Layout, name: &'a str, names: &[&'a str]) -> NodeRole<'a> {
    let per_offsets = layout.links == LinkForm::PerOffsets;
    let delta = names.first().and_then(|name| Delta::parse(name).ok());
    match (delta, names) {
        (Some(delta), [_]) if per_offsets => NodeRole::LinkAttributeFamily(name, delta),
        (Some(delta), [_]) => NodeRole::LinkAttribute(name, delta, None),
        (Some(delta), [_, offsets]) if per_offsets => {
            NodeRole::LinkAttribute(name, delta, Some(offsets))
        }
        (Some(_), [_, name]) => cell(name),
        _ => NodeRole::Stray,
    }
}

/// Returns the role of a node below the families of links between chunks, up to 0.8.1.
fn crossing<'a>(layout: Layout, family: &str, names: &[&'a str]) -> NodeRole<'a> {
    let is_table = layout.cross_chunk == CrossChunkForm::Table;
    let (attribute, rest) = match (family, names) {
        (_, []) | ("cross_chunk_link_attributes", [_]) => return NodeRole::Folder,
        ("cross_chunk_link_attributes", [name, rest @ ..]) => (Some(*name), rest),
        (_, rest) => (None, rest),
    };
    let delta = rest.first().and_then(|name| Delta::parse(name).ok());
    match (delta, rest) {
        (Some(delta), [_]) => match attribute {
            Some(name) => NodeRole::CrossChunkAttribute(name, delta),
            None => NodeRole::CrossChunkLinks(delta),
        },
        // Values of all links between chunks may be one array beside cells of links too.
        (Some(_), [_, "data"]) if is_table || attribute.is_some() => NodeRole::Blob,
        (Some(_), [_, _]) if !is_table => NodeRole::Cell,
        _ => NodeRole::Stray,
    }
}

fn composite<'a>(layout: Layout, name: &'a str, rest: &[&'a str]) -> NodeRole<'a> {
    let vertices = name.strip_prefix("vertices_");
    let links = name.strip_prefix("links_");
    match (vertices, links, rest) {
        (Some(kind), _, []) => NodeRole::CompositeVertices(kind),
        (Some(_), _, [name]) => cell(name),
        (_, Some(kind), []) => NodeRole::CompositeLinks(kind),
        (_, Some(_), ["data"]) if is_child(layout) => NodeRole::Blob,
        _ => NodeRole::Stray,
    }
}

fn parametric<'a>(layout: Layout, names: &[&'a str]) -> NodeRole<'a> {
    match names {
        ["objects"] => NodeRole::ParametricObjects,
        ["names"] => NodeRole::ParametricNames,
        ["groups"] => NodeRole::ParametricGroups,
        ["object_attributes" | "group_attributes"] => NodeRole::Folder,
        ["object_attributes", name] => NodeRole::ParametricAttribute(name),
        ["group_attributes", name] => NodeRole::ParametricGroupAttribute(name),
        ["objects" | "names", "data"]
        | ["groups", "data" | "offsets"]
        | ["object_attributes" | "group_attributes", _, "data"]
            if is_child(layout) =>
        {
            NodeRole::Blob
        }
        _ => NodeRole::Stray,
    }
}
