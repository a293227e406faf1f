//! What belongs where: every path of a store, as its layout has it.

use zvf_format::path::Delta;
use zvf_model::{
    array::SHARD_PREFIX,
    generation::Generation,
    key::Key,
    layout::{ChunkForm, CrossChunkForm, Layout, LinkForm, LinkOffsets, Part, TableForm},
    level::LevelId,
};

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    Root,
    Level,
    /// Holds other nodes, and says nothing itself.
    Folder,
    Vertices,
    VertexFragments,
    LinkFragments,
    VertexAttribute(&'a str),
    FragmentAttribute(&'a str),
    /// The policy of many arrays of links.
    LinkFamily(Delta),
    /// Links in cells; with the offsets where each has an array.
    Links(Delta, Option<&'a str>),
    LinkAttributeFamily(&'a str, Delta),
    LinkAttribute(&'a str, Delta, Option<&'a str>),
    CrossChunkLinks(Delta),
    CrossChunkAttribute(&'a str, Delta),
    /// The array of one cell.
    Cell,
    /// An array of many cells, in stores up to 0.8.0.
    Shard,
    /// Bytes in one piece: tables and their offsets up to 0.8.0.
    Blob,
    ObjectIndex,
    Manifests,
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
    /// Of another program, or of transactions.
    Foreign,
    /// Nothing that the layout has.
    Stray,
}

/// Which type of node a place has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeType {
    Group,
    Array,
    Either,
}

impl<'a> Place<'a> {
    /// What belongs at a path.
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

    /// The type of its node.
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
            Self::Cell | Self::Shard | Self::Blob | Self::Manifests | Self::ObjectIds => {
                NodeType::Array
            }
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
                // Native shards of 0.8.1 are of some parts only.
                _ if layout.generation == Generation::V0_8_1 => NodeType::Either,
                Some(ChunkForm::Child) => NodeType::Group,
                Some(ChunkForm::Cell | ChunkForm::Padded) => NodeType::Array,
                None => NodeType::Either,
            },
        }
    }

    /// How the cells of a part are stored that has one for each chunk.
    pub(crate) fn chunk_form(self, layout: Layout) -> Option<ChunkForm> {
        let zero = LinkOffsets::Zero { width: 2, arity: 1 };
        let part = match self {
            Self::Vertices => Part::Vertices,
            Self::VertexFragments => Part::VertexFragments,
            Self::LinkFragments => Part::LinkFragments,
            Self::VertexAttribute(name) => Part::VertexAttribute(name),
            Self::FragmentAttribute(name) => Part::FragmentAttribute(name),
            Self::Links(delta, _) => Part::Links(delta, zero),
            Self::LinkAttribute(name, delta, _) => Part::LinkAttribute(name, delta, zero),
            Self::CompositeVertices(kind) => Part::CompositeVertices(kind),
            _ => return None,
        };
        layout.chunk_form(&part)
    }

    /// What `zv_array` says of a node here.
    pub(crate) fn tag(self) -> Option<&'static str> {
        Some(match self {
            Self::Vertices => "vertices",
            Self::VertexFragments => "vertex_fragments",
            Self::LinkFragments => "link_fragments",
            Self::VertexAttribute(_) => "attribute",
            Self::FragmentAttribute(_) => "fragment_attribute",
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

    /// The name that a caller gave what stands here.
    pub(crate) fn name(self) -> Option<&'a str> {
        match self {
            Self::VertexAttribute(name)
            | Self::FragmentAttribute(name)
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

/// The level that a path is in.
pub(crate) fn level_of(path: &str) -> Option<LevelId> {
    LevelId::parse(path.split('/').next()?)
}

/// The node of a name below another; `None` for what is no key.
pub(crate) fn below(key: &Key, name: &str) -> Option<Key> {
    key.join_path(name).ok()
}

/// Folders of a level whose children have names.
const FOLDERS: [&str; 6] = [
    "links",
    "link_attributes",
    "vertex_attributes",
    "fragment_attributes",
    "object_attributes",
    "group_attributes",
];

fn in_level<'a>(layout: Layout, names: &[&'a str]) -> Place<'a> {
    match names {
        [] => Place::Level,
        ["vertices"] => Place::Vertices,
        ["vertex_fragments"] => Place::VertexFragments,
        ["link_fragments"] => Place::LinkFragments,
        ["vertices" | "vertex_fragments" | "link_fragments", name]
        | ["vertex_attributes" | "fragment_attributes", _, name] => cell(name),
        ["object_index"] => Place::ObjectIndex,
        ["object_index", "manifests"] => Place::Manifests,
        ["object_index", "object_ids"] => Place::ObjectIds,
        ["object_index", "data" | "offsets"] => Place::Blob,
        ["groups"] => Place::Groups,
        ["groups", "data" | "offsets"] if layout.groups == TableForm::Child => Place::Blob,
        ["geometry_index"] => Place::GeometryIndex,
        [name] if FOLDERS.contains(name) => Place::Folder,
        ["vertex_attributes", name] => Place::VertexAttribute(name),
        ["fragment_attributes", name] => Place::FragmentAttribute(name),
        ["links", rest @ ..] => links(layout, rest),
        ["link_attributes", _] => Place::Folder,
        ["link_attributes", name, rest @ ..] => link_attribute(layout, name, rest),
        ["object_attributes", name] => Place::ObjectAttribute(name),
        ["object_attributes", _, "data" | "present_mask"] | ["group_attributes", _, "data"]
            if is_child(layout) =>
        {
            Place::Blob
        }
        ["group_attributes", name] => Place::GroupAttribute(name),
        [
            family @ ("cross_chunk_links" | "cross_chunk_link_attributes"),
            rest @ ..,
        ] if layout.cross_chunk != CrossChunkForm::Links => crossing(layout, family, rest),
        [name, rest @ ..] => composite(layout, name, rest),
    }
}

/// Whether tables are groups with their values below.
fn is_child(layout: Layout) -> bool {
    layout.tables == TableForm::Child
}

/// A child of a part that has a cell for each chunk.
fn cell(name: &str) -> Place<'static> {
    match name.starts_with(SHARD_PREFIX) {
        true => Place::Shard,
        false => Place::Cell,
    }
}

fn links<'a>(layout: Layout, names: &[&'a str]) -> Place<'a> {
    let per_offsets = layout.links == LinkForm::PerOffsets;
    let delta = names.first().and_then(|name| Delta::parse(name).ok());
    match (delta, names) {
        (Some(delta), [_]) if per_offsets => Place::LinkFamily(delta),
        (Some(delta), [_]) => Place::Links(delta, None),
        (Some(delta), [_, offsets]) if per_offsets => Place::Links(delta, Some(offsets)),
        (Some(_), [_, name]) => cell(name),
        _ => Place::Stray,
    }
}

fn link_attribute<'a>(layout: Layout, name: &'a str, names: &[&'a str]) -> Place<'a> {
    let per_offsets = layout.links == LinkForm::PerOffsets;
    let delta = names.first().and_then(|name| Delta::parse(name).ok());
    match (delta, names) {
        (Some(delta), [_]) if per_offsets => Place::LinkAttributeFamily(name, delta),
        (Some(delta), [_]) => Place::LinkAttribute(name, delta, None),
        (Some(delta), [_, offsets]) if per_offsets => {
            Place::LinkAttribute(name, delta, Some(offsets))
        }
        (Some(_), [_, name]) => cell(name),
        _ => Place::Stray,
    }
}

/// What is below one of the families of links between chunks, up to 0.8.1.
fn crossing<'a>(layout: Layout, family: &str, names: &[&'a str]) -> Place<'a> {
    let is_table = layout.cross_chunk == CrossChunkForm::Table;
    let (attribute, rest) = match (family, names) {
        (_, []) | ("cross_chunk_link_attributes", [_]) => return Place::Folder,
        ("cross_chunk_link_attributes", [name, rest @ ..]) => (Some(*name), rest),
        (_, rest) => (None, rest),
    };
    let delta = rest.first().and_then(|name| Delta::parse(name).ok());
    match (delta, rest) {
        (Some(delta), [_]) => match attribute {
            Some(name) => Place::CrossChunkAttribute(name, delta),
            None => Place::CrossChunkLinks(delta),
        },
        (Some(_), [_, "data"]) if is_table => Place::Blob,
        (Some(_), [_, _]) if !is_table => Place::Cell,
        _ => Place::Stray,
    }
}

fn composite<'a>(layout: Layout, name: &'a str, rest: &[&'a str]) -> Place<'a> {
    let vertices = name.strip_prefix("vertices_");
    let links = name.strip_prefix("links_");
    match (vertices, links, rest) {
        (Some(kind), _, []) => Place::CompositeVertices(kind),
        (Some(_), _, [name]) => cell(name),
        (_, Some(kind), []) => Place::CompositeLinks(kind),
        (_, Some(_), ["data"]) if is_child(layout) => Place::Blob,
        _ => Place::Stray,
    }
}

fn parametric<'a>(layout: Layout, names: &[&'a str]) -> Place<'a> {
    match names {
        ["objects"] => Place::ParametricObjects,
        ["names"] => Place::ParametricNames,
        ["groups"] => Place::ParametricGroups,
        ["object_attributes" | "group_attributes"] => Place::Folder,
        ["object_attributes", name] => Place::ParametricAttribute(name),
        ["group_attributes", name] => Place::ParametricGroupAttribute(name),
        ["objects" | "names", "data"]
        | ["groups", "data" | "offsets"]
        | ["object_attributes" | "group_attributes", _, "data"]
            if is_child(layout) =>
        {
            Place::Blob
        }
        _ => Place::Stray,
    }
}
