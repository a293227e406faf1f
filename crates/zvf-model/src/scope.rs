//! The elements that have attributes.
//!
//! | scope | group of a level | a value for each |
//! |---|---|---|
//! | vertex | `vertex_attributes` | row of a chunk |
//! | fragment | `fragment_attributes` | fragment of a chunk |
//! | link | `link_attributes` | link |
//! | object | `object_attributes` | row of the object index |
//! | group | `group_attributes` | group |

use zvf_format::path::Delta;

use crate::{
    array::CellAttributeRole,
    generation::Generation,
    layout::{ArrayRole, GroupRole},
};

/// The kind of element an attribute belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the variants are terms of the format")]
pub enum Scope {
    Vertex,
    Fragment,
    Link,
    Object,
    Group,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 5] = [
        Self::Vertex,
        Self::Fragment,
        Self::Link,
        Self::Object,
        Self::Group,
    ];

    /// Scopes with a cell of values for each chunk. A query returns a value of them for each vertex.
    pub const OF_CHUNKS: [Self; 2] = [Self::Vertex, Self::Fragment];

    /// Returns the name of the scope, as written before an attribute's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vertex => "vertex",
            Self::Fragment => "fragment",
            Self::Link => "link",
            Self::Object => "object",
            Self::Group => "group",
        }
    }

    /// Returns the scope of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }

    /// Returns the plural of the name.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Vertex => "vertices",
            Self::Fragment => "fragments",
            Self::Link => "links",
            Self::Object => "objects",
            Self::Group => "groups",
        }
    }

    /// Returns whether values are in cells of chunks, and not in a table.
    pub const fn is_in_cells(self) -> bool {
        match self {
            Self::Vertex | Self::Fragment | Self::Link => true,
            Self::Object | Self::Group => false,
        }
    }

    /// Returns the first generation with such attributes, if they are evidence of it.
    pub const fn since(self) -> Option<Generation> {
        match self {
            Self::Fragment => Some(Generation::V0_8_0),
            Self::Vertex | Self::Link | Self::Object | Self::Group => None,
        }
    }

    /// Returns the role in the metadata of cells; `None` for tables.
    pub const fn cells(self) -> Option<CellAttributeRole> {
        match self {
            Self::Vertex => Some(CellAttributeRole::Vertex),
            Self::Fragment => Some(CellAttributeRole::Fragment),
            Self::Link => Some(CellAttributeRole::Link),
            Self::Object | Self::Group => None,
        }
    }

    /// Returns the group of a level that contains the attributes.
    pub const fn group(self) -> GroupRole<'static> {
        match self {
            Self::Vertex => GroupRole::VertexAttributes,
            Self::Fragment => GroupRole::FragmentAttributes,
            Self::Link => GroupRole::LinkAttributes,
            Self::Object => GroupRole::ObjectAttributes,
            Self::Group => GroupRole::GroupAttributes,
        }
    }

    /// Returns the node that describes an attribute; of links, that of the links inside the level.
    pub const fn array(self, name: &str) -> ArrayRole<'_> {
        match self {
            Self::Vertex => ArrayRole::VertexAttribute(name),
            Self::Fragment => ArrayRole::FragmentAttribute(name),
            Self::Link => ArrayRole::LinkAttributeFamily(name, Delta::INTRA),
            Self::Object => ArrayRole::ObjectAttribute(name),
            Self::Group => ArrayRole::GroupAttribute(name),
        }
    }
}
