//! Layouts: the paths of each generation as data.
//!
//! A [`Layout`] has one field for each difference between generations. Detection returns the layout
//! of a store, and [`Layout::of`] that of a generation, for writers. For an [`ArrayRole`] it
//! returns keys:
//!
//! * [`described_at`](Layout::described_at): the node whose attributes describe
//!   the part;
//! * [`values_at`](Layout::values_at): the array of a part that is one array;
//! * [`cell`](Layout::cell): array and element of one chunk of a part that has a cell for each
//!   chunk. [`Array::chunk_of`](crate::zarr::Array::chunk_of) and
//!   [`chunk_key`](crate::zarr::Array::chunk_key) convert it to a file.
//!
//! | part | 0.6, 0.7 | 0.8.0 | 0.8.1 | 0.9 |
//! |---|---|---|---|---|
//! | `vertices` and other parts with a cell per chunk | `vertices/<chunk>`, element 0 | the same | the same, or `vertices`, element = chunk, in native shards | `vertices`, element = chunk − origin |
//! | links inside a chunk | `links/0/<chunk>` | the same | the same, or `links/0` | `links/0/<zeros>` |
//! | links between chunks | `cross_chunk_links/0/data` | `cross_chunk_links/0/<cell>` | the same | `links/0/<offsets>` |
//! | manifests | `object_index/data` and `offsets`, from 0.7 on `manifests` | `manifests` | the same | the same, and `object_ids` |
//! | attributes of objects and groups | `object_attributes/<name>/data`, `present_mask` | the same | `object_attributes/<name>` | the same |
//! | groups | `groups/data` and `offsets` | the same | `groups` | the same |
//!
//! Paths of 0.10 are those of 0.9. The profile `0.8-padded` is 0.8.0 with `vertices`, `vertex_attributes` and
//! `links/<delta>` as plain arrays of numbers, of shape (grid …, most rows,
//! columns).

use std::borrow::Cow;

use zvf_format::path::{ChunkCoords, Delta};

use crate::{
    attribute_name::stored_name,
    generation::Generation,
    grid::{ChunkCoord, Grid, GridError},
    key::{Key, KeyError},
    level::LevelId,
    zarr::MAX_RANK,
};

/// Layout of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The generation.
    pub generation: Generation,
    /// Parts that have a cell for each chunk.
    pub chunks: ChunkForm,
    /// Link arrays.
    pub links: LinkForm,
    /// Links between chunks.
    pub cross_chunk: CrossChunkForm,
    /// Manifests.
    pub object_index: ObjectIndexForm,
    /// Attributes of objects and groups, links of further geometries, parametric
    /// objects.
    pub tables: TableForm,
    /// Groups.
    pub groups: TableForm,
    /// Names of parts.
    pub names: PartNames,
}

/// Names of parts of a level that documents of the format call otherwise than its writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartNames {
    /// Folder of the attributes of vertices.
    pub vertex_attributes: &'static str,
    /// Groups of objects.
    pub groups: &'static str,
}

impl PartNames {
    /// The names that writers use.
    pub const WRITTEN: Self = Self {
        vertex_attributes: VERTEX_ATTRIBUTES,
        groups: GROUPS,
    };
    /// The names in the description of chunk arrays.
    pub const DOCUMENTED: Self = Self {
        vertex_attributes: "attributes",
        groups: "groupings",
    };

    /// Returns the name of a group in the store.
    pub const fn stored(&self, group: GroupRole<'_>) -> &'static str {
        match group {
            GroupRole::VertexAttributes => self.vertex_attributes,
            other => other.name(),
        }
    }

    /// Returns the name that writers use for the child of a level.
    pub fn written<'a>(&self, name: &'a str) -> &'a str {
        if name == self.vertex_attributes {
            VERTEX_ATTRIBUTES
        } else if name == self.groups {
            GROUPS
        } else {
            name
        }
    }
}

/// Storage of the cells of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkForm {
    /// A group, with one `uint8` array for each chunk.
    Child,
    /// One array of byte strings, with one element for each chunk.
    Cell,
    /// One array of numbers: chunk, row, column. Fragment indexes, fragment
    /// attributes and the sidecar of links stay as [`Child`](Self::Child).
    Padded,
}

/// Set of link arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkForm {
    /// One for each delta.
    PerDelta,
    /// One for each delta and offsets.
    PerOffsets,
}

/// Location of cross-chunk links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrossChunkForm {
    /// In one table a delta, with chunks in the records.
    Table,
    /// In one array for each tuple of chunks.
    Cells,
    /// With the other links.
    Links,
}

/// Storage of manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectIndexForm {
    /// Back to back in `data`, with `offsets`.
    Open,
    /// One item of `manifests` each; the object's id is the row.
    Manifests,
    /// The same, with the ids in `object_ids`.
    ManifestsWithIds,
}

/// Storage of groups and of attributes of objects and groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableForm {
    /// A group with `data`, and `offsets` or `present_mask`.
    Child,
    /// One array.
    Array,
}

/// A part of a level, or of the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArrayRole<'a> {
    /// Coordinates; a cell for each chunk.
    Vertices,
    /// Fragment indexes over vertices; a cell for each chunk.
    VertexFragments,
    /// Fragment indexes over links; a cell for each chunk.
    LinkFragments,
    /// An attribute of vertices; a cell for each chunk.
    VertexAttribute(&'a str),
    /// An attribute of fragments; a cell for each chunk.
    FragmentAttribute(&'a str),
    /// All links of a delta: the node with the policy.
    LinkFamily(Delta),
    /// Links; a cell for each chunk. The offsets, as in the path, are for 0.9;
    /// older generations have the part only where they are all zero.
    Links(Delta, LinkOffsets<'a>),
    /// An attribute of all links of a delta: the node that describes it.
    LinkAttributeFamily(&'a str, Delta),
    /// An attribute of links; a cell for each chunk.
    LinkAttribute(&'a str, Delta, LinkOffsets<'a>),
    /// Links between chunks, up to 0.8.1.
    CrossChunkLinks(Delta),
    /// An attribute of links between chunks, up to 0.8.1.
    CrossChunkLinkAttribute(&'a str, Delta),
    /// Manifests of objects.
    Manifests,
    /// Start of each manifest, up to early 0.7.
    ManifestOffsets,
    /// First row and number of rows of each object in a dense object index, a draft after 0.9.2.
    ManifestSpans,
    /// Chunks and fragments of objects in a dense object index.
    ManifestBlocks,
    /// Ids of objects, from 0.9 on.
    ObjectIds,
    /// An attribute of objects.
    ObjectAttribute(&'a str),
    /// Objects that have an attribute, up to 0.8.0.
    PresentMask(&'a str),
    /// Members of groups.
    Groups,
    /// Start of each group, up to 0.8.0.
    GroupOffsets,
    /// An attribute of groups.
    GroupAttribute(&'a str),
    /// Coordinates of a further geometry; a cell for each chunk.
    CompositeVertices(&'a str),
    /// Links of a further geometry.
    CompositeLinks(&'a str),
    /// List of further geometries: attributes only.
    GeometryIndex,
}

impl<'a> ArrayRole<'a> {
    /// Returns the name of the attribute; `None` for other parts.
    pub const fn attribute(&self) -> Option<&'a str> {
        match self {
            Self::VertexAttribute(name)
            | Self::FragmentAttribute(name)
            | Self::LinkAttributeFamily(name, _)
            | Self::LinkAttribute(name, ..)
            | Self::CrossChunkLinkAttribute(name, _)
            | Self::ObjectAttribute(name)
            | Self::PresentMask(name)
            | Self::GroupAttribute(name) => Some(name),
            _ => None,
        }
    }
}

/// A group of a level that contains nodes and has no metadata of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GroupRole<'a> {
    /// Attributes of vertices.
    VertexAttributes,
    /// Attributes of fragments.
    FragmentAttributes,
    /// Families of links.
    Links,
    /// Attributes of links.
    LinkAttributes,
    /// The families of an attribute of links.
    LinkAttribute(&'a str),
    /// Families of links between chunks, up to 0.8.1.
    CrossChunkLinks,
    /// Attributes of links between chunks, up to 0.8.1.
    CrossChunkLinkAttributes,
    /// The families of an attribute of links between chunks, up to 0.8.1.
    CrossChunkLinkAttribute(&'a str),
    /// Attributes of objects.
    ObjectAttributes,
    /// Attributes of groups.
    GroupAttributes,
}

impl ArrayRole<'_> {
    /// The attribute that has the object of each fragment.
    pub const OWNERS: Self = Self::FragmentAttribute(FRAGMENT_OWNERS);
}

impl GroupRole<'_> {
    /// Returns the child of the level that is the group, or contains it. Levels list these names as
    /// present.
    pub const fn name(self) -> &'static str {
        match self {
            Self::VertexAttributes => VERTEX_ATTRIBUTES,
            Self::FragmentAttributes => FRAGMENT_ATTRIBUTES,
            Self::Links => LINKS,
            Self::LinkAttributes | Self::LinkAttribute(_) => LINK_ATTRIBUTES,
            Self::CrossChunkLinks => CROSS_CHUNK_LINKS,
            Self::CrossChunkLinkAttributes | Self::CrossChunkLinkAttribute(_) => {
                CROSS_CHUNK_LINK_ATTRIBUTES
            }
            Self::ObjectAttributes => OBJECT_ATTRIBUTES,
            Self::GroupAttributes => GROUP_ATTRIBUTES,
        }
    }
}

/// Child of a level: coordinates.
pub const VERTICES: &str = "vertices";
/// Child of a level: fragment indexes over vertices.
pub const VERTEX_FRAGMENTS: &str = "vertex_fragments";
/// Child of a level: fragment indexes over links.
pub const LINK_FRAGMENTS: &str = "link_fragments";
/// Child of a level: the object index.
pub const OBJECT_INDEX: &str = "object_index";
/// Child of a level: groups of objects.
pub const GROUPS: &str = "groups";
/// Child of a level: the list of further geometries.
pub const GEOMETRY_INDEX: &str = "geometry_index";
/// Child of the root: parametric objects.
pub const PARAMETRIC: &str = "parametric";
/// Child of the root: headers of files in other formats.
pub const HEADERS: &str = "headers";
/// The fragment attribute that has the object of each fragment.
pub const FRAGMENT_OWNERS: &str = "object_id";
const VERTEX_ATTRIBUTES: &str = "vertex_attributes";
const FRAGMENT_ATTRIBUTES: &str = "fragment_attributes";
const LINKS: &str = "links";
const LINK_ATTRIBUTES: &str = "link_attributes";
const CROSS_CHUNK_LINKS: &str = "cross_chunk_links";
const CROSS_CHUNK_LINK_ATTRIBUTES: &str = "cross_chunk_link_attributes";
const OBJECT_ATTRIBUTES: &str = "object_attributes";
const GROUP_ATTRIBUTES: &str = "group_attributes";

/// Names of the children of a level that hold its geometry, objects and attributes. Further
/// geometries have other names.
pub const LEVEL_PARTS: [&str; 13] = [
    VERTICES,
    VERTEX_FRAGMENTS,
    VERTEX_ATTRIBUTES,
    FRAGMENT_ATTRIBUTES,
    LINKS,
    LINK_FRAGMENTS,
    LINK_ATTRIBUTES,
    CROSS_CHUNK_LINKS,
    CROSS_CHUNK_LINK_ATTRIBUTES,
    OBJECT_INDEX,
    OBJECT_ATTRIBUTES,
    GROUPS,
    GROUP_ATTRIBUTES,
];

/// Names of the children of a level that are not divided among chunks.
const TABLES: [&str; 4] = [OBJECT_INDEX, OBJECT_ATTRIBUTES, GROUPS, GROUP_ATTRIBUTES];

/// The nodes of a level, for writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelKeys {
    /// The layout of the store.
    pub layout: Layout,
    /// The level.
    pub level: LevelId,
}

impl LevelKeys {
    /// Returns the group of the level.
    ///
    /// # Errors
    ///
    /// None in practice: a number is part of a key.
    pub fn level(&self) -> Result<Key, KeyError> {
        Key::parse(&self.level.to_string())
    }

    /// Returns a group.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if a name cannot be part of a key.
    pub fn group(&self, role: GroupRole<'_>) -> Result<Key, KeyError> {
        let group = self.level()?.join(role.name())?;
        match role {
            GroupRole::LinkAttribute(name) | GroupRole::CrossChunkLinkAttribute(name) => {
                group.join(&stored_name(name))
            }
            _ => Ok(group),
        }
    }

    /// Returns whether a node is a table of objects or groups, or a part of one.
    pub fn is_table(&self, node: &Key) -> bool {
        let mut segments = node.segments();
        segments.next().and_then(LevelId::parse) == Some(self.level)
            && segments.next().is_some_and(|part| TABLES.contains(&part))
    }

    /// Returns the node that describes `part`.
    ///
    /// # Errors
    ///
    /// [`AddressError`] if the layout has no such part, or a name cannot be part of a key.
    pub fn node(&self, part: &ArrayRole<'_>) -> Result<Key, AddressError> {
        let key = self.layout.described_at(self.level, part)?;
        key.ok_or(AddressError::NoPart)
    }

    /// Returns the array with the values of `part`.
    ///
    /// # Errors
    ///
    /// Errors of [`node`](Self::node).
    pub fn values(&self, part: &ArrayRole<'_>) -> Result<Key, AddressError> {
        let key = self.layout.values_at(self.level, part)?;
        key.ok_or(AddressError::NoPart)
    }

    /// Returns the array of the cell of a chunk, where each cell has an array of its own.
    ///
    /// # Errors
    ///
    /// Errors of [`Layout::cell`].
    pub fn cell(&self, part: &ArrayRole<'_>, chunk: &[i64]) -> Result<Key, AddressError> {
        let node = self.node(part)?;
        Ok(CellAddress::child(&node, chunk)?.array)
    }
}

/// Offsets of a link array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkOffsets<'a> {
    /// All endpoints in one chunk. Formatting requires link width and arity.
    Zero {
        /// Number of endpoints.
        width: usize,
        /// Numbers in a chunk key.
        arity: usize,
    },
    /// The path segment.
    Segment(&'a str),
}

/// A part of the store that belongs to no level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RootArrayRole<'a> {
    /// Types of parametric objects: attributes only.
    Parametric,
    /// The objects.
    ParametricObjects,
    /// Their names.
    ParametricNames,
    /// An attribute of them.
    ParametricAttribute(&'a str),
    /// Groups of them.
    ParametricGroups,
    /// Start of each group, up to 0.8.0.
    ParametricGroupOffsets,
    /// An attribute of their groups.
    ParametricGroupAttribute(&'a str),
    /// Group of headers.
    Headers,
    /// Header of a file in another format: attributes only.
    Header(&'a str),
}

/// One cell: an array, and the first element that belongs to the cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellAddress {
    /// The array.
    pub array: Key,
    /// The element.
    pub element: Vec<u64>,
}

/// Grid of an array of cells.
#[derive(Clone, Copy, Debug)]
pub struct CellGrid<'a> {
    /// Chunks in the array.
    pub grid: &'a Grid,
    /// Its number of dimensions; those after the grid are rows and columns.
    pub rank: usize,
}

/// Reason that a cell has no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The part has no cells in this layout.
    #[error("the part has no cell for each chunk in this generation")]
    NoCells,
    /// The layout has no such part.
    #[error("the generation has no such part")]
    NoPart,
    /// The grid of the array is required.
    #[error("the grid of the array is needed to find a chunk in it")]
    NoGrid,
    /// The array has fewer dimensions than its grid, or too many.
    #[error("an array of {rank} dimensions with a grid of {grid}")]
    Rank {
        /// Dimensions of the array.
        rank: usize,
        /// Dimensions of the grid.
        grid: usize,
    },
    /// The chunk is outside the array.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// A name that cannot be part of a key.
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl Layout {
    /// Returns the layout that writers of a generation use.
    pub const fn of(generation: Generation) -> Self {
        match generation {
            Generation::V0_6 => Self {
                generation,
                chunks: ChunkForm::Child,
                links: LinkForm::PerDelta,
                cross_chunk: CrossChunkForm::Table,
                object_index: ObjectIndexForm::Open,
                tables: TableForm::Child,
                groups: TableForm::Child,
                names: PartNames::WRITTEN,
            },
            Generation::V0_7 => Self {
                generation,
                object_index: ObjectIndexForm::Manifests,
                ..Self::of(Generation::V0_6)
            },
            Generation::V0_8_0 => Self {
                generation,
                cross_chunk: CrossChunkForm::Cells,
                ..Self::of(Generation::V0_7)
            },
            Generation::V0_8_1 => Self {
                generation,
                tables: TableForm::Array,
                groups: TableForm::Array,
                ..Self::of(Generation::V0_8_0)
            },
            Generation::V0_9 => Self {
                generation,
                chunks: ChunkForm::Cell,
                links: LinkForm::PerOffsets,
                cross_chunk: CrossChunkForm::Links,
                object_index: ObjectIndexForm::ManifestsWithIds,
                tables: TableForm::Array,
                groups: TableForm::Array,
                names: PartNames::WRITTEN,
            },
            Generation::V0_10 => Self {
                generation,
                ..Self::of(Generation::V0_9)
            },
        }
    }

    /// Generation 0.8 with plain numeric arrays, for any Zarr reader.
    pub const PADDED: Self = Self {
        chunks: ChunkForm::Padded,
        ..Self::of(Generation::V0_8_0)
    };

    /// Returns the name of the profile on the command line.
    pub fn profile(&self) -> &'static str {
        match (self.chunks, self.generation) {
            (ChunkForm::Padded, _) => "0.8-padded",
            (_, Generation::V0_6) => "0.6",
            (_, Generation::V0_7) => "0.7",
            (_, Generation::V0_8_0) => "0.8",
            (_, Generation::V0_8_1) => "0.8.1",
            (_, Generation::V0_9) => "0.9",
            (_, Generation::V0_10) => "0.10",
        }
    }

    /// Returns the storage of the cells of `part`; `None` if it has none.
    pub fn chunk_form(&self, part: &ArrayRole<'_>) -> Option<ChunkForm> {
        let dense = matches!(
            part,
            ArrayRole::Vertices | ArrayRole::VertexAttribute(_) | ArrayRole::Links(..)
        );
        let has_cells = dense
            || matches!(
                part,
                ArrayRole::VertexFragments
                    | ArrayRole::LinkFragments
                    | ArrayRole::FragmentAttribute(_)
                    | ArrayRole::LinkAttribute(..)
                    | ArrayRole::CompositeVertices(_)
            );
        let form = match self.chunks {
            ChunkForm::Padded if !dense => ChunkForm::Child,
            form => form,
        };
        has_cells.then_some(form)
    }

    /// Returns the node whose attributes describe `part`: an array, or the group that represents
    /// many. `None` if the layout has no such part. An attribute is at its
    /// [stored name](crate::attribute_name).
    ///
    /// # Errors
    ///
    /// [`KeyError`] if a name cannot be part of a key.
    pub fn described_at(
        &self,
        level: LevelId,
        part: &ArrayRole<'_>,
    ) -> Result<Option<Key>, KeyError> {
        self.described_under(level, part, stored_name)
    }

    /// Returns the node of an attribute whose name is no identifier but is used for its node, as some
    /// writers do.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the name cannot be part of a key.
    pub fn foreign_attribute_at(
        &self,
        level: LevelId,
        part: &ArrayRole<'_>,
    ) -> Result<Option<Key>, KeyError> {
        self.described_under(level, part, |name| name.into())
    }

    fn described_under(
        &self,
        level: LevelId,
        part: &ArrayRole<'_>,
        stored: fn(&str) -> Cow<'_, str>,
    ) -> Result<Option<Key>, KeyError> {
        let merged = self.cross_chunk == CrossChunkForm::Links;
        let per_offsets = self.links == LinkForm::PerOffsets;
        let node = Key::parse(&level.to_string())?;
        let below = |segments: &[&str]| node.join_all(segments);
        let key = match part {
            ArrayRole::Vertices => below(&[VERTICES])?,
            ArrayRole::VertexFragments => below(&[VERTEX_FRAGMENTS])?,
            ArrayRole::LinkFragments => below(&[LINK_FRAGMENTS])?,
            ArrayRole::VertexAttribute(name) => {
                below(&[self.names.vertex_attributes, &stored(name)])?
            }
            ArrayRole::FragmentAttribute(name) => below(&[FRAGMENT_ATTRIBUTES, &stored(name)])?,
            ArrayRole::LinkFamily(delta) => below(&[LINKS, &delta.to_string()])?,
            ArrayRole::Links(delta, offsets) => {
                let family = below(&[LINKS, &delta.to_string()])?;
                match offsets.in_family(family, per_offsets)? {
                    Some(key) => key,
                    None => return Ok(None),
                }
            }
            ArrayRole::LinkAttributeFamily(name, delta) => {
                below(&[LINK_ATTRIBUTES, &stored(name), &delta.to_string()])?
            }
            ArrayRole::LinkAttribute(name, delta, offsets) => {
                let family = below(&[LINK_ATTRIBUTES, &stored(name), &delta.to_string()])?;
                match offsets.in_family(family, per_offsets)? {
                    Some(key) => key,
                    None => return Ok(None),
                }
            }
            ArrayRole::CrossChunkLinks(_) | ArrayRole::CrossChunkLinkAttribute(..) if merged => {
                return Ok(None);
            }
            ArrayRole::CrossChunkLinks(delta) => below(&[CROSS_CHUNK_LINKS, &delta.to_string()])?,
            ArrayRole::CrossChunkLinkAttribute(name, delta) => below(&[
                CROSS_CHUNK_LINK_ATTRIBUTES,
                &stored(name),
                &delta.to_string(),
            ])?,
            ArrayRole::Manifests
            | ArrayRole::ManifestOffsets
            | ArrayRole::ManifestSpans
            | ArrayRole::ManifestBlocks
            | ArrayRole::ObjectIds => below(&[OBJECT_INDEX])?,
            ArrayRole::ObjectAttribute(name) | ArrayRole::PresentMask(name) => {
                below(&[OBJECT_ATTRIBUTES, &stored(name)])?
            }
            ArrayRole::Groups | ArrayRole::GroupOffsets => below(&[self.names.groups])?,
            ArrayRole::GroupAttribute(name) => below(&[GROUP_ATTRIBUTES, &stored(name)])?,
            ArrayRole::CompositeVertices(kind) => below(&[&format!("vertices_{kind}")])?,
            ArrayRole::CompositeLinks(kind) => below(&[&format!("links_{kind}")])?,
            ArrayRole::GeometryIndex => below(&[GEOMETRY_INDEX])?,
        };
        Ok(Some(key))
    }

    /// Returns the array that holds the values of `part`, for parts that are one array. `None` if
    /// the layout has no such array.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if a name cannot be part of a key.
    pub fn values_at(&self, level: LevelId, part: &ArrayRole<'_>) -> Result<Option<Key>, KeyError> {
        let Some(node) = self.described_at(level, part)? else {
            return Ok(None);
        };
        let child = self.tables == TableForm::Child;
        let open = self.object_index == ObjectIndexForm::Open;
        let has_ids = self.object_index == ObjectIndexForm::ManifestsWithIds;
        let key = match part {
            ArrayRole::Manifests if open => node.join("data")?,
            ArrayRole::Manifests => node.join("manifests")?,
            ArrayRole::ManifestOffsets if open => node.join("offsets")?,
            ArrayRole::ManifestSpans if has_ids => node.join("manifest_spans")?,
            ArrayRole::ManifestBlocks if has_ids => node.join("manifest_blocks")?,
            ArrayRole::ObjectIds if has_ids => node.join("object_ids")?,
            ArrayRole::ObjectAttribute(_)
            | ArrayRole::GroupAttribute(_)
            | ArrayRole::CompositeLinks(_) => self.tables.values(node)?,
            ArrayRole::Groups => self.groups.values(node)?,
            ArrayRole::PresentMask(_) if child => TableForm::present_mask(&node)?,
            ArrayRole::GroupOffsets if self.groups == TableForm::Child => {
                TableForm::offsets(&node)?
            }
            ArrayRole::CrossChunkLinks(_) | ArrayRole::CrossChunkLinkAttribute(..)
                if self.cross_chunk == CrossChunkForm::Table =>
            {
                node.join("data")?
            }
            _ => return Ok(None),
        };
        Ok(Some(key))
    }

    /// Returns the address of the cell of `chunk`. Parts that are one array require its grid.
    ///
    /// # Errors
    ///
    /// [`AddressError`] if the part has no cells, the chunk is outside the array, or a name cannot
    /// be part of a key.
    pub fn cell(
        &self,
        level: LevelId,
        part: &ArrayRole<'_>,
        chunk: &ChunkCoord,
        array: Option<CellGrid<'_>>,
    ) -> Result<CellAddress, AddressError> {
        let form = self.chunk_form(part).ok_or(AddressError::NoCells)?;
        let node = self
            .described_at(level, part)?
            .ok_or(AddressError::NoCells)?;
        match (form, array) {
            (ChunkForm::Child, _) => Ok(CellAddress::child(&node, chunk.coords())?),
            (ChunkForm::Cell | ChunkForm::Padded, None) => Err(AddressError::NoGrid),
            (ChunkForm::Cell | ChunkForm::Padded, Some(array)) => {
                CellAddress::element(node, chunk, array)
            }
        }
    }

    /// Returns the key of the links, or of a link attribute, between chunks that are given in
    /// stored order. `None` if the layout has no such arrays.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if a name cannot be part of a key.
    pub fn cross_chunk_cell(
        &self,
        level: LevelId,
        part: &ArrayRole<'_>,
        chunks: &[i64],
    ) -> Result<Option<CellAddress>, KeyError> {
        let crossing = matches!(
            part,
            ArrayRole::CrossChunkLinks(_) | ArrayRole::CrossChunkLinkAttribute(..)
        );
        if !crossing || self.cross_chunk != CrossChunkForm::Cells {
            return Ok(None);
        }
        let node = self.described_at(level, part)?;
        node.map(|node| CellAddress::child(&node, chunks))
            .transpose()
    }

    /// Returns the node that describes a part of the root.
    ///
    /// # Errors
    ///
    /// [`AddressError`] if the layout has no such part, or a name cannot be part of a key.
    pub fn root_node(&self, part: &RootArrayRole<'_>) -> Result<Key, AddressError> {
        let parametric = Key::parse(PARAMETRIC)?;
        Ok(match part {
            RootArrayRole::Parametric => parametric,
            RootArrayRole::Headers => Key::parse(HEADERS)?,
            RootArrayRole::Header(format) => Key::parse(HEADERS)?.join(format)?,
            RootArrayRole::ParametricObjects => parametric.join("objects")?,
            RootArrayRole::ParametricNames => parametric.join("names")?,
            RootArrayRole::ParametricAttribute(name) => {
                parametric.join_all(&[OBJECT_ATTRIBUTES, &stored_name(name)])?
            }
            RootArrayRole::ParametricGroups | RootArrayRole::ParametricGroupOffsets => {
                parametric.join(GROUPS)?
            }
            RootArrayRole::ParametricGroupAttribute(name) => {
                parametric.join_all(&[GROUP_ATTRIBUTES, &stored_name(name)])?
            }
        })
    }

    /// Returns the array of the values of a part of the root, or its node if it is a group.
    ///
    /// # Errors
    ///
    /// Errors of [`root_node`](Self::root_node).
    pub fn root_values(&self, part: &RootArrayRole<'_>) -> Result<Key, AddressError> {
        let node = self.root_node(part)?;
        match part {
            RootArrayRole::Parametric | RootArrayRole::Headers | RootArrayRole::Header(_) => {
                Ok(node)
            }
            RootArrayRole::ParametricGroupOffsets if self.tables == TableForm::Array => {
                Err(AddressError::NoPart)
            }
            RootArrayRole::ParametricGroupOffsets => Ok(TableForm::offsets(&node)?),
            _ => Ok(self.tables.values(node)?),
        }
    }

    /// Returns the node of a part of the root; that of its values if attributes have a separate
    /// node. `None` if the layout has no such part.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if a name cannot be part of a key.
    pub fn root_part(&self, part: &RootArrayRole<'_>) -> Result<Option<Key>, KeyError> {
        match self.root_values(part) {
            Ok(key) => Ok(Some(key)),
            Err(AddressError::Key(error)) => Err(error),
            Err(_) => Ok(None),
        }
    }
}

impl TableForm {
    /// Returns the array with the values of the table described at `node`.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the key becomes too long.
    pub fn values(self, node: Key) -> Result<Key, KeyError> {
        match self {
            Self::Child => node.join("data"),
            Self::Array => Ok(node),
        }
    }

    /// Returns the array that marks the existing rows of the table described at `node`, up to 0.8.0.
    ///
    /// # Errors
    ///
    /// Errors of [`values`](Self::values).
    pub fn present_mask(node: &Key) -> Result<Key, KeyError> {
        node.join("present_mask")
    }

    /// Returns the array with the starts of the groups described at `node`, up to 0.8.0.
    ///
    /// # Errors
    ///
    /// Errors of [`values`](Self::values).
    pub fn offsets(node: &Key) -> Result<Key, KeyError> {
        node.join("offsets")
    }
}

impl LinkOffsets<'_> {
    /// Returns the array for the offsets in its family, if it has one.
    fn in_family(&self, family: Key, per_offsets: bool) -> Result<Option<Key>, KeyError> {
        match (self, per_offsets) {
            (Self::Zero { .. }, false) => Ok(Some(family)),
            (Self::Segment(text), false) => Ok(is_zero(text).then_some(family)),
            (Self::Segment(text), true) => family.join(text).map(Some),
            (Self::Zero { width: 0 | 1, .. }, true) => family.join("self").map(Some),
            (Self::Zero { width, arity }, true) => {
                // Bounded by the maximum length of a segment.
                let max = crate::key::MAX_SEGMENT_BYTES;
                let zeros = vec!["0"; (*arity).min(max)].join(".");
                let offsets = vec![zeros; width.saturating_sub(1).min(max)];
                family.join(&offsets.join("_")).map(Some)
            }
        }
    }
}

fn is_zero(segment: &str) -> bool {
    segment == "self" || segment.split(['.', '_']).all(|number| number == "0")
}

impl CellAddress {
    /// Returns the address of a cell with an array of its own.
    fn child(node: &Key, coords: &[i64]) -> Result<Self, KeyError> {
        Ok(Self {
            array: node.join(&ChunkCoords(coords).to_string())?,
            element: vec![0],
        })
    }

    /// Returns the address of a cell in a shared array.
    fn element(node: Key, chunk: &ChunkCoord, array: CellGrid<'_>) -> Result<Self, AddressError> {
        let mut element = array.grid.cell_of(chunk.coords())?;
        let (rank, grid) = (array.rank, element.len());
        if rank < grid || rank > MAX_RANK {
            return Err(AddressError::Rank { rank, grid });
        }
        element.resize(rank, 0);
        Ok(Self {
            array: node,
            element,
        })
    }
}
