//! Detection of the generation of a store.
//!
//! The version string proposes, the structure decides: writers of several
//! generations left the same string, and some edited it. A caller fills
//! [`Evidence`] from the nodes below and asks it to [detect](Evidence::detect).
//! Nodes that are not there are left out; a level that has vertices is best.
//!
//! | node | what it tells |
//! |---|---|
//! | root | `zv_version`; `format_version` is 0.4 or older |
//! | `<level>/vertices` | group: one array a chunk, up to 0.8.1. Byte strings: one cell a chunk, 0.9, or 0.8.1 when sharded without `chunk_grid_origin`. Numbers: padded |
//! | `<level>/vertex_group_offsets` | when it exists: 0.5 or older |
//! | children of `<level>/links/0` | byte strings: 0.9. `uint8`: chunks, up to 0.8.1. `links/0` an array itself: 0.8.1 with native shards |
//! | `<level>/cross_chunk_links/<delta>`, its children | `data`: up to 0.7. Cells: 0.8. Other forms are development layouts |
//! | `<level>/object_index` | the attribute `layout` |
//! | a child of `<level>/object_attributes` | group: up to 0.8.0. Array: from 0.8.1 |
//! | `<level>/groups`, `<level>/links_<kind>`, `parametric/objects` | the same |
//! | `<level>/fragment_attributes` | when it exists: from 0.8.0 |
//!
//! Five small reads in one round, the listings in another, are enough; `vertices`
//! alone where they confirm a version of 0.9. A store
//! without links, objects and groups looks the same in several generations, and
//! reads the same; then the version picks one of them.

use core::ops::RangeInclusive;

use serde_json::Value;
use zvf_format::numeric::Kind;

use crate::{
    generation::Generation,
    layout::{ChunkForm, CrossChunkForm, Layout, LinkForm, ObjectIndexForm, TableForm},
    metadata::{Attributes, Excerpt},
    version::Version,
    zarr::{DataType, Node},
};

mod clues;

use clues::{Clues, Forms};

/// What kind of node stands somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeForm {
    /// A group, also one without a `zarr.json` of its own.
    Group,
    /// An array of byte strings.
    Bytes {
        /// Whether it is sharded.
        sharded: bool,
        /// Whether it has the attribute `chunk_grid_origin`.
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
    /// The form of a parsed node.
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

/// What a link family, `links/<delta>` or `cross_chunk_links/<delta>`, is.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyForm {
    /// Its node.
    pub node: NodeForm,
    /// Its attributes; empty when it has no `zarr.json`.
    pub attributes: Attributes,
    /// Its children by name, with their form where it is known. One child is
    /// enough.
    pub children: Vec<(String, Option<NodeForm>)>,
}

/// What a caller saw of a store. See the [module](self) for what to look at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// The root's `zv_version`, as it stands.
    pub version: Option<Value>,
    /// Whether the root has `format_version` instead.
    pub format_version: bool,
    /// `<level>/vertices`.
    pub vertices: Option<NodeForm>,
    /// Whether `<level>/vertex_group_offsets` exists.
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
    /// `<level>/groups`.
    pub groups: Option<NodeForm>,
    /// Whether `<level>/fragment_attributes` exists.
    pub fragment_attributes: bool,
}

/// Which generation a store is, and how it is laid out.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Detection {
    /// The generation.
    pub generation: Generation,
    /// All generations the structure agrees with; for what the store holds they
    /// are the same.
    pub possible: RangeInclusive<Generation>,
    /// Where things are, as found.
    pub layout: Layout,
    /// The version, when it could be read.
    pub version: Option<Version>,
    /// What was overridden.
    pub notes: Vec<DetectionNote>,
}

/// What detection decided against.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DetectionNote {
    /// The root has no `zv_version`.
    #[error("zv_version is missing, the structure decides")]
    VersionMissing,
    /// `zv_version` is no version.
    #[error("zv_version is {0}, which is no version; the structure decides")]
    VersionMalformed(Excerpt),
    /// The structure is of another generation.
    #[error("zv_version is {version}, but the store is laid out as {generation}")]
    VersionOverridden {
        /// The version.
        version: Version,
        /// What the structure says.
        generation: Generation,
    },
    /// A node is as in another generation; it is read as it is.
    #[error("{0} is laid out as in another generation")]
    Mixed(&'static str),
}

/// Why a store is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerationError {
    /// Format 0.5 or older.
    #[error(
        "a store of format 0.5 or older, which is not read: it has {0}; rewrite it with the software that wrote it"
    )]
    TooOld(OldSign),
    /// A version nobody here knows.
    #[error(
        "format version {0} is not known, 0.6 to 0.9 are: use a newer reader, or correct zv_version if it is wrong"
    )]
    UnknownVersion(Version),
    /// The development layout 0.8.0-P.
    #[error(
        "cross_chunk_links is nested by chunk (development layout 0.8.0-P, partitioned_v1), which is not read: rewrite the store with the branch that wrote it"
    )]
    Partitioned,
    /// The development layout 0.8.0-S.
    #[error(
        "cross_chunk_links has arrays by number of chunks (development layout 0.8.0-S, sharded_v1), which is not read: rewrite the store with the branch that wrote it"
    )]
    Sharded,
    /// The packed development layout.
    #[error(
        "cross_chunk_links is one array with cell_keys (packed_sharded), which is not read: rewrite the store without packing"
    )]
    Packed,
    /// `vertices` is nothing any generation has.
    #[error("vertices is {0:?}, which no generation has: this is no store, or a damaged one")]
    Vertices(NodeForm),
    /// Nodes of different generations.
    #[error(
        "{first} is as in generation {first_generation}, {second} as in {second_generation}: the store is a mix, or of a development version; rewrite it with the software that wrote it"
    )]
    Contradiction {
        /// A node.
        first: &'static str,
        /// What it says at the latest, or earliest.
        first_generation: Generation,
        /// Another.
        second: &'static str,
        /// What that says.
        second_generation: Generation,
    },
    /// Neither version nor structure.
    #[error("neither zv_version nor any array says which generation the store is")]
    Undetermined,
}

/// How an old store is recognised.
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
    /// What the root's attributes tell; the rest is for the caller to fill.
    pub fn of_root(attributes: &Attributes) -> Self {
        let block = attributes.get("zarr_vectors");
        let field = |name| block.and_then(|block| block.get(name));
        Self {
            version: field("zv_version").filter(|v| !v.is_null()).cloned(),
            format_version: field("zv_version").is_none()
                && (field("format_version").is_some() || attributes.contains_key("format_version")),
            ..Self::default()
        }
    }

    /// Decides.
    ///
    /// # Errors
    ///
    /// [`GenerationError`] says what was found and what to do.
    pub fn detect(&self) -> Result<Detection, GenerationError> {
        let mut notes = Vec::new();
        let version = self.version(&mut notes)?;
        let mut clues = Clues::default();
        let mut forms = Forms::default();
        self.look_at_vertices(&mut clues, &mut forms)?;
        self.look_at_links(&mut clues, &mut forms)?;
        self.look_at_cross_chunk_links(&mut clues, &mut forms)?;
        self.look_at_objects(&mut clues, &mut forms);
        for node in &clues.mixed {
            notes.push(DetectionNote::Mixed(node));
        }
        let generation = clues.choose(version)?;
        match version {
            Some(version) if Generation::of_version(version) != Some(generation) => {
                notes.push(DetectionNote::VersionOverridden {
                    version,
                    generation,
                });
            }
            _ => {}
        }
        let possible = match clues.first {
            Some(_) => clues.low..=clues.high,
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

    fn look_at_vertices(
        &self,
        clues: &mut Clues,
        forms: &mut Forms,
    ) -> Result<(), GenerationError> {
        use Generation::{V0_6, V0_8_0, V0_8_1, V0_9};
        let Some(vertices) = self.vertices else {
            return Ok(());
        };
        match vertices {
            NodeForm::Group => {
                forms.chunks = Some(ChunkForm::Child);
                clues.hard(VERTICES, V0_6, V0_8_1)
            }
            NodeForm::Bytes { sharded, origin } => {
                forms.chunks = Some(ChunkForm::Cell);
                let native = sharded && !origin;
                clues.hard(VERTICES, if native { V0_8_1 } else { V0_9 }, V0_9)
            }
            // An axis of chunks at least, then rows and columns.
            NodeForm::Numbers { rank: 3.. } => {
                forms.chunks = Some(ChunkForm::Padded);
                clues.hard(VERTICES, V0_8_0, V0_8_0)
            }
            form => Err(GenerationError::Vertices(form)),
        }
    }

    fn look_at_links(&self, clues: &mut Clues, forms: &mut Forms) -> Result<(), GenerationError> {
        use Generation::{V0_6, V0_8_1, V0_9};
        for family in &self.links {
            let known = family.children.iter().find_map(|(_, form)| *form);
            match (family.node, known) {
                (NodeForm::Bytes { .. }, _) => {
                    forms.links = Some(LinkForm::PerDelta);
                    clues.hard(LINKS, V0_8_1, V0_8_1)?;
                }
                (NodeForm::Group, Some(NodeForm::Bytes { .. })) => {
                    forms.links = Some(LinkForm::PerOffsets);
                    clues.hard(LINKS, V0_9, V0_9)?;
                }
                (NodeForm::Group, Some(NodeForm::Blob)) => {
                    forms.links = Some(LinkForm::PerDelta);
                    clues.hard(LINKS, V0_6, V0_8_1)?;
                }
                // Padded links of numbers, and families without arrays.
                _ => {}
            }
        }
        Ok(())
    }

    fn look_at_cross_chunk_links(
        &self,
        clues: &mut Clues,
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
                clues.hard(CROSS_CHUNK, V0_6, V0_7)?;
            } else if !family.children.is_empty() {
                forms.cross_chunk = Some(CrossChunkForm::Cells);
                clues.hard(CROSS_CHUNK, V0_8_0, V0_8_1)?;
            }
        }
        Ok(())
    }

    fn look_at_objects(&self, clues: &mut Clues, forms: &mut Forms) {
        use Generation::{V0_6, V0_7, V0_8_0, V0_8_1, V0_9};
        if let Some(attributes) = &self.object_index {
            match attributes.get("layout").and_then(Value::as_str) {
                Some("vlen_manifests_v2") => {
                    forms.object_index = Some(ObjectIndexForm::ManifestsWithIds);
                    clues.soft("object_index", V0_9, V0_9);
                }
                Some("vlen_manifests_v1") => {
                    forms.object_index = Some(ObjectIndexForm::Manifests);
                    clues.soft("object_index", V0_7, V0_9);
                }
                None => {
                    forms.object_index = Some(ObjectIndexForm::Open);
                    clues.soft("object_index", V0_6, V0_7);
                }
                // Refused where the attributes are parsed.
                Some(_) => {}
            }
        }
        let tables = [
            ("object_attributes", self.object_attribute),
            (GROUPS, self.groups),
            ("composite links", self.composite_links),
            ("parametric/objects", self.parametric_objects),
        ];
        for (node, form) in tables {
            let Some(form) = form else {
                continue;
            };
            let (form, low, high) = match form {
                NodeForm::Group => (TableForm::Child, V0_6, V0_8_0),
                _ => (TableForm::Array, V0_8_1, V0_9),
            };
            let seen = match node {
                GROUPS => &mut forms.groups,
                _ => &mut forms.tables,
            };
            seen.get_or_insert(form);
            clues.soft(node, low, high);
        }
        if self.fragment_attributes {
            clues.soft("fragment_attributes", V0_8_0, V0_9);
        }
    }
}

impl FamilyForm {
    /// Whether the children are directories named by one chunk each.
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
const CROSS_CHUNK: &str = "cross_chunk_links";
