//! Detection of the generation of a store.
//!
//! The structure takes precedence over the version string: writers of several generations wrote the
//! same string, and some edited it. A caller fills [`Evidence`] from the nodes below and calls
//! [`detect`](Evidence::detect). Missing nodes are omitted; a level with vertices is preferable.
//!
//! | node | evidence |
//! |---|---|
//! | root | `zv_version`; `format_version` is 0.4 or older; the convention in `zarr_conventions`: 0.10 |
//! | `<level>/vertices` | group: one array a chunk, up to 0.8.1. Byte strings: one cell a chunk, from 0.9 on, or 0.8.1 when sharded without `chunk_grid_origin`. Numbers: padded |
//! | `<level>/vertex_group_offsets` | when it exists: 0.5 or older |
//! | children of `<level>/links/0` | byte strings: from 0.9 on. `uint8`: chunks, up to 0.8.1. `links/0` an array itself: 0.8.1 with native shards |
//! | `<level>/cross_chunk_links/<delta>`, its children | `data`: up to 0.7. Cells: 0.8. Other forms are development layouts |
//! | `<level>/object_index` | the attribute `layout` |
//! | a child of `<level>/object_attributes` | group: up to 0.8.0. Array: from 0.8.1 |
//! | `<level>/groups`, `<level>/links_<kind>`, `parametric/objects` | the same |
//! | `<level>/fragment_attributes` | when it exists: from 0.8.0 |
//!
//! Five small reads in one round trip and the listings in another suffice; if `vertices` confirms a
//! version of 0.9, it suffices alone. A store without links, objects and groups has the same
//! structure in several generations and is read in the same way; the version then selects one of
//! them.

use core::ops::RangeInclusive;

use serde_json::Value;
use zvf_format::numeric::Kind;

use crate::{
    generation::Generation,
    layout::{ChunkForm, CrossChunkForm, Layout, LinkForm, ObjectIndexForm, PartNames, TableForm},
    metadata::{Attributes, Excerpt, dialect},
    scope::Scope,
    version::Version,
    zarr::{DataType, Node},
};

mod candidates;

use candidates::{CandidateGenerations, Forms};

/// Form of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeForm {
    /// A group, with or without a `zarr.json`.
    Group,
    /// An array of byte strings.
    Bytes {
        /// `true` if it is sharded.
        sharded: bool,
        /// `true` if it has the attribute `chunk_grid_origin`.
        origin: bool,
    },
    /// An array of `uint8` of one dimension: the blob of one chunk.
    Blob,
    /// Any other array of numbers.
    Numbers {
        /// Its dimensions.
        rank: usize,
    },
    /// Any other array.
    Other,
}

impl NodeForm {
    /// Returns the form of a parsed node.
    pub fn of(node: &Node) -> Self {
        let Some(array) = node.as_array() else {
            return Self::Group;
        };
        match &array.data_type {
            DataType::VariableBytes => Self::Bytes {
                sharded: array.sharding().is_some(),
                origin: array.attributes.contains_key("chunk_grid_origin"),
            },
            DataType::Number(Kind::UInt8) if array.rank() == 1 => Self::Blob,
            DataType::Number(_) => Self::Numbers { rank: array.rank() },
            _ => Self::Other,
        }
    }
}

/// Form of a link family, `links/<delta>` or `cross_chunk_links/<delta>`.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyForm {
    /// Its node.
    pub node: NodeForm,
    /// Its attributes; empty when it has no `zarr.json`.
    pub attributes: Attributes,
    /// Its children by name, with their form if known. One child suffices.
    pub children: Vec<(String, Option<NodeForm>)>,
}

/// Structure of a store as seen by the caller. The [module](self) lists the relevant nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// The root's `zv_version`, unparsed.
    pub version: Option<Value>,
    /// `true` if the root has `format_version` instead.
    pub format_version: bool,
    /// `true` if the root declares the convention of 0.10.
    pub convention: bool,
    /// `<level>/vertices`.
    pub vertices: Option<NodeForm>,
    /// `true` if `<level>/vertex_group_offsets` exists.
    pub vertex_group_offsets: bool,
    /// The families below `<level>/links`.
    pub links: Vec<FamilyForm>,
    /// The families below `<level>/cross_chunk_links`.
    pub cross_chunk_links: Vec<FamilyForm>,
    /// Attributes of `<level>/object_index`.
    pub object_index: Option<Attributes>,
    /// Any child of `<level>/object_attributes` or `<level>/group_attributes`.
    pub object_attribute: Option<NodeForm>,
    /// Any `<level>/links_<kind>` of a composite store.
    pub composite_links: Option<NodeForm>,
    /// `parametric/objects`.
    pub parametric_objects: Option<NodeForm>,
    /// `<level>/groups`, or the node of the name in `names`.
    pub groups: Option<NodeForm>,
    /// Names of parts among the children of the level; `None` if these were not listed.
    pub names: Option<PartNames>,
    /// Scopes with a group of attributes in the level.
    pub scopes: Vec<Scope>,
}

/// Generation and layout of a store.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Detection {
    /// The generation.
    pub generation: Generation,
    /// All generations that match the structure; they do not differ for the content of this store.
    pub possible: RangeInclusive<Generation>,
    /// The detected layout.
    pub layout: Layout,
    /// The version, if it is valid.
    pub version: Option<Version>,
    /// Contradictions that were resolved.
    pub notes: Vec<DetectionNote>,
}

/// A contradiction that detection resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DetectionNote {
    /// The root has no `zv_version`.
    #[error("zv_version is missing; the generation follows from the structure")]
    VersionMissing,
    /// `zv_version` is malformed.
    #[error("zv_version is {0}, which is not a version; the generation follows from the structure")]
    VersionMalformed(Excerpt),
    /// The structure belongs to another generation.
    #[error("zv_version is {version}, but the store is laid out as {generation}")]
    VersionOverridden {
        /// The version.
        version: Version,
        /// Generation of the structure.
        generation: Generation,
    },
    /// A node has the form of another generation and is read in that form.
    #[error("{0} is laid out as in another generation")]
    Mixed(&'static str),
}

/// Reason that a store cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerationError {
    /// Format 0.5 or older.
    #[error(
        "stores of format 0.5 or older are not supported, and this one has {0}; rewrite it with the software that wrote it"
    )]
    TooOld(OldSign),
    /// A version that are unknown to this crate.
    #[error(
        "format version {0} is unknown, as only 0.6 to 0.10 are supported; use a newer reader, or correct zv_version if it is wrong"
    )]
    UnknownVersion(Version),
    /// The development layout 0.8.0-P.
    #[error(
        "cross_chunk_links is nested by chunk (development layout 0.8.0-P, partitioned_v1), which is not supported: rewrite the store with the branch that wrote it"
    )]
    Partitioned,
    /// The development layout 0.8.0-S.
    #[error(
        "cross_chunk_links has arrays by number of chunks (development layout 0.8.0-S, sharded_v1), which is not supported: rewrite the store with the branch that wrote it"
    )]
    Sharded,
    /// The packed development layout.
    #[error(
        "cross_chunk_links is one array with cell_keys (packed_sharded), which is not supported: rewrite the store without packing"
    )]
    Packed,
    /// `vertices` has a form of no generation.
    #[error("vertices is {0:?}, which no generation has: this is not a store, or it is damaged")]
    Vertices(NodeForm),
    /// Nodes of different generations.
    #[error(
        "{first} has the form of generation {first_generation}, but {second} that of {second_generation}: the store mixes generations, or a development version wrote it; rewrite it with the software that wrote it"
    )]
    Contradiction {
        /// A node.
        first: &'static str,
        /// Its latest or earliest generation.
        first_generation: Generation,
        /// Another.
        second: &'static str,
        /// Generation of the other node.
        second_generation: Generation,
    },
    /// Neither version nor structure determines the generation.
    #[error("neither zv_version nor any array shows the generation of the store")]
    Undetermined,
}

/// Sign of an old store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OldSign {
    /// The root says `format_version`.
    #[error("format_version")]
    FormatVersion,
    /// `zv_version` is below 0.6.
    #[error("zv_version {0}")]
    Version(Version),
    /// `vertex_group_offsets` exists.
    #[error("vertex_group_offsets")]
    VertexGroupOffsets,
}

impl Evidence {
    /// Creates evidence from the root's attributes; the caller adds the rest.
    pub fn of_root(attributes: &Attributes) -> Self {
        let block = attributes.get("zarr_vectors");
        let field = |name| block.and_then(|block| block.get(name));
        Self {
            version: field("zv_version").filter(|v| !v.is_null()).cloned(),
            format_version: field("zv_version").is_none()
                && (field("format_version").is_some() || attributes.contains_key("format_version")),
            convention: dialect::is_marked(attributes),
            ..Self::default()
        }
    }

    /// Determines generation and layout.
    ///
    /// # Errors
    ///
    /// [`GenerationError`] describes what was found and how to proceed.
    pub fn detect(&self) -> Result<Detection, GenerationError> {
        let mut notes = Vec::new();
        let version = self.version(&mut notes)?;
        let mut candidates = CandidateGenerations::of_root(version, self.convention);
        let mut forms = Forms::default();
        self.inspect_vertices(&mut candidates, &mut forms)?;
        self.inspect_links(&mut candidates, &mut forms)?;
        self.inspect_cross_chunk_links(&mut candidates, &mut forms)?;
        self.inspect_objects(&mut candidates, &mut forms);
        for node in &candidates.mixed {
            notes.push(DetectionNote::Mixed(node));
        }
        let generation = candidates.choose()?;
        match version {
            Some(version) if Generation::of_version(version) != Some(generation) => {
                notes.push(DetectionNote::VersionOverridden {
                    version,
                    generation,
                });
            }
            _ => {}
        }
        let possible = match candidates.first {
            Some(_) => candidates.low..=candidates.high,
            None => generation..=generation,
        };
        Ok(Detection {
            generation,
            possible,
            layout: forms.apply(Layout::of(generation)),
            version,
            notes,
        })
    }

    fn version(&self, notes: &mut Vec<DetectionNote>) -> Result<Option<Version>, GenerationError> {
        if self.format_version {
            return Err(GenerationError::TooOld(OldSign::FormatVersion));
        }
        if self.vertex_group_offsets {
            return Err(GenerationError::TooOld(OldSign::VertexGroupOffsets));
        }
        let Some(value) = &self.version else {
            notes.push(DetectionNote::VersionMissing);
            return Ok(None);
        };
        let version = value.as_str().map(Version::parse);
        let Some(Ok(version)) = version else {
            let found = Excerpt::of(&value.to_string());
            notes.push(DetectionNote::VersionMalformed(found));
            return Ok(None);
        };
        if version < Version::new(0, 6, 0) {
            return Err(GenerationError::TooOld(OldSign::Version(version)));
        }
        match Generation::of_version(version) {
            Some(_) => Ok(Some(version)),
            None => Err(GenerationError::UnknownVersion(version)),
        }
    }

    fn inspect_vertices(
        &self,
        candidates: &mut CandidateGenerations,
        forms: &mut Forms,
    ) -> Result<(), GenerationError> {
        use Generation::{V0_6, V0_8_0, V0_8_1, V0_9, V0_10};
        let Some(vertices) = self.vertices else {
            return Ok(());
        };
        match vertices {
            NodeForm::Group => {
                forms.chunks = Some(ChunkForm::Child);
                candidates.require(VERTICES, V0_6, V0_8_1)
            }
            NodeForm::Bytes { sharded, origin } => {
                forms.chunks = Some(ChunkForm::Cell);
                let native = sharded && !origin;
                candidates.require(VERTICES, if native { V0_8_1 } else { V0_9 }, V0_10)
            }
            // At least one axis of chunks, then rows and columns.
            NodeForm::Numbers { rank: 3.. } => {
                forms.chunks = Some(ChunkForm::Padded);
                candidates.require(VERTICES, V0_8_0, V0_8_0)
            }
            form => Err(GenerationError::Vertices(form)),
        }
    }

    fn inspect_links(
        &self,
        candidates: &mut CandidateGenerations,
        forms: &mut Forms,
    ) -> Result<(), GenerationError> {
        use Generation::{V0_6, V0_8_1, V0_9, V0_10};
        for family in &self.links {
            let known = family.children.iter().find_map(|(_, form)| *form);
            match (family.node, known) {
                (NodeForm::Bytes { .. }, _) => {
                    forms.links = Some(LinkForm::PerDelta);
                    candidates.require(LINKS, V0_8_1, V0_8_1)?;
                }
                (NodeForm::Group, Some(NodeForm::Bytes { .. })) => {
                    forms.links = Some(LinkForm::PerOffsets);
                    candidates.require(LINKS, V0_9, V0_10)?;
                }
                (NodeForm::Group, Some(NodeForm::Blob)) => {
                    forms.links = Some(LinkForm::PerDelta);
                    candidates.require(LINKS, V0_6, V0_8_1)?;
                }
                // Padded links of numbers, and families without arrays.
                _ => {}
            }
        }
        Ok(())
    }

    fn inspect_cross_chunk_links(
        &self,
        candidates: &mut CandidateGenerations,
        forms: &mut Forms,
    ) -> Result<(), GenerationError> {
        use Generation::{V0_6, V0_7, V0_8_0, V0_8_1};
        for family in &self.cross_chunk_links {
            let layout = family.attributes.get("layout").and_then(Value::as_str);
            let is_array = family.node != NodeForm::Group;
            if is_array || layout == Some("packed_sharded") {
                return Err(GenerationError::Packed);
            }
            if layout == Some("sharded_v1")
                || family.children.iter().any(|(name, _)| by_count(name))
            {
                return Err(GenerationError::Sharded);
            }
            if layout == Some("partitioned_v1") || family.is_nested() {
                return Err(GenerationError::Partitioned);
            }
            if family.children.iter().any(|(name, _)| name == "data") {
                forms.cross_chunk = Some(CrossChunkForm::Table);
                candidates.require(CROSS_CHUNK, V0_6, V0_7)?;
            } else if !family.children.is_empty() {
                forms.cross_chunk = Some(CrossChunkForm::Cells);
                candidates.require(CROSS_CHUNK, V0_8_0, V0_8_1)?;
            }
        }
        Ok(())
    }

    fn inspect_objects(&self, candidates: &mut CandidateGenerations, forms: &mut Forms) {
        use Generation::{V0_6, V0_7, V0_8_0, V0_8_1, V0_9, V0_10};
        forms.names = self.names;
        if let Some(attributes) = &self.object_index {
            match attributes.get("layout").and_then(Value::as_str) {
                Some("vlen_manifests_v2") => {
                    forms.object_index = Some(ObjectIndexForm::ManifestsWithIds);
                    candidates.prefer("object_index", V0_9, V0_10);
                }
                Some("vlen_manifests_v1") => {
                    forms.object_index = Some(ObjectIndexForm::Manifests);
                    candidates.prefer("object_index", V0_7, V0_10);
                }
                None => {
                    forms.object_index = Some(ObjectIndexForm::Open);
                    candidates.prefer_unless_documented("object_index", V0_6, V0_7);
                }
                // Rejected when the attributes are parsed.
                Some(_) => {}
            }
        }
        let tables = [
            (OBJECT_ATTRIBUTES, self.object_attribute),
            (GROUPS, self.groups),
            ("composite links", self.composite_links),
            ("parametric/objects", self.parametric_objects),
        ];
        for (node, form) in tables {
            let Some(form) = form else {
                continue;
            };
            if node == GROUPS && matches!(form, NodeForm::Numbers { rank: 2 }) {
                // Members by group, as documents have them: no writer of a generation does.
                forms.groups = Some(TableForm::Array);
                continue;
            }
            let (form, low, high) = match form {
                NodeForm::Group => (TableForm::Child, V0_6, V0_8_0),
                _ => (TableForm::Array, V0_8_1, V0_10),
            };
            let seen = match node {
                GROUPS => &mut forms.groups,
                _ => &mut forms.tables,
            };
            seen.get_or_insert(form);
            match (node, form) {
                (OBJECT_ATTRIBUTES, TableForm::Array) => {
                    candidates.prefer_unless_documented(node, low, high);
                }
                _ => candidates.prefer(node, low, high),
            }
        }
        for scope in &self.scopes {
            if let Some(since) = scope.since() {
                candidates.prefer(scope.group().name(), since, V0_10);
            }
        }
    }
}

/// Returns the names of the parts of a level with these children: those of the documents where it
/// lacks those of the writers.
pub fn part_names<'a>(children: impl IntoIterator<Item = &'a str>) -> PartNames {
    let (written, documented) = (PartNames::WRITTEN, PartNames::DOCUMENTED);
    let mut names = written;
    let (mut has_attributes, mut has_groups) = (false, false);
    for child in children {
        has_attributes |= child == written.vertex_attributes;
        has_groups |= child == written.groups;
        if child == documented.vertex_attributes {
            names.vertex_attributes = documented.vertex_attributes;
        } else if child == documented.groups {
            names.groups = documented.groups;
        }
    }
    if has_attributes {
        names.vertex_attributes = written.vertex_attributes;
    }
    if has_groups {
        names.groups = written.groups;
    }
    names
}

impl FamilyForm {
    /// Returns whether the children are directories named by one chunk each.
    fn is_nested(&self) -> bool {
        let number = |name| self.attributes.get(name).and_then(Value::as_u64);
        let (width, sid_ndim) = (number("link_width"), number("sid_ndim"));
        let one_chunk = |name: &str| {
            let numbers = u64::try_from(name.split('.').count()).ok();
            width.is_some_and(|width| width > 1) && numbers == sid_ndim
        };
        self.children.iter().any(|(name, form)| {
            let numbers = name.starts_with(|c: char| c == '-' || c.is_ascii_digit());
            numbers
                && match form {
                    Some(form) => *form == NodeForm::Group,
                    None => one_chunk(name),
                }
        })
    }
}

/// `k1`, `k2`, …
fn by_count(name: &str) -> bool {
    let digits = name.strip_prefix('k');
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

const VERTICES: &str = "vertices";
const LINKS: &str = "links";
const GROUPS: &str = "groups";
const OBJECT_ATTRIBUTES: &str = "object_attributes";
const CROSS_CHUNK: &str = "cross_chunk_links";
