//! How a store is to be made.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use zvf_format::numeric::Kind;

use crate::{geometry::GeometryKind, parametric::Parametric};

/// The generation and form of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// What `zarr-vectors` 0.9 reads and writes.
    #[default]
    V09,
    /// One array of bytes for each chunk, links between chunks in cells of their
    /// own.
    V08,
    /// The same, with vertices, their attributes and links as plain arrays of
    /// numbers.
    Padded,
}

impl Profile {
    /// Every profile there is.
    pub const ALL: [Self; 3] = [Self::V09, Self::V08, Self::Padded];

    /// As the command line has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::V09 => "0.9",
            Self::V08 => "0.8",
            Self::Padded => "0.8-padded",
        }
    }

    /// What its stores declare.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::V09 => "0.9.2",
            _ => "0.8.0",
        }
    }
}

/// How cells are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CellCompression {
    /// Not at all: parts of a cell can be read alone.
    #[default]
    None,
    /// zstd at a level. Level 1 decodes up to twice as fast as level 3 at about
    /// the same size.
    Zstd(i32),
    /// blosc: zstd over shuffled bits.
    Blosc,
    /// gzip at a level.
    Gzip(u32),
}

/// How many cells go in one object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum ShardingPolicy {
    /// Each cell is an object of its own.
    #[default]
    None,
    /// As many as make an object of some 16 MB.
    Auto,
    /// A box of so many chunks along each axis.
    Shape(Vec<u64>),
}

/// What happens to vertices outside the bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OutOfBounds {
    /// Nothing is written.
    #[default]
    Reject,
    /// They are left out, and with them the paths and links they are part of.
    Drop,
    /// The bounds become as large as it takes.
    Expand,
}

/// What a store is read for, which decides how large cells become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Small cells where there are objects, large ones for points without.
    #[default]
    Auto,
    /// Objects and boxes, one by one or from a bucket: cells of some 128 kB.
    Lookup,
    /// Scans of everything: cells of about 1 MB.
    Scan,
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisSpec {
    /// Its name.
    pub name: String,
    /// Its type, `space` as a rule.
    pub kind: String,
    /// Its unit, by its full name.
    pub unit: Option<String>,
}

/// How a store is to be made. What is not said is chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    /// What it holds.
    pub kind: GeometryKind,
    /// The generation and form of it.
    pub profile: Profile,
    /// Extent of a chunk along each axis.
    pub chunk_shape: Option<Vec<f64>>,
    /// Extent of a bin along each axis: how points without objects are sorted
    /// inside a chunk.
    pub bin_shape: Option<Vec<f64>>,
    /// What coordinates are stored as; as they come when not said.
    pub dtype: Option<Kind>,
    /// How cells are compressed.
    pub compression: CellCompression,
    /// Whether cells carry checksums; where the profile has them when not said.
    pub checksum: Option<bool>,
    /// How many cells go in one object.
    pub sharding: ShardingPolicy,
    /// Whether the order of a link's ends is data, so that nothing is swapped.
    pub directed: bool,
    /// Whether every chunk a link touches gets a copy of it.
    pub duplicate: bool,
    /// Whether the steps of paths from chunk to chunk are stored as links too, as they always
    /// are before 0.9. Objects say them: readers need no links for that, and where
    /// chunks are small those are most of the files.
    pub step_links: bool,
    /// The least and the greatest of each axis; those of the vertices when not
    /// said.
    pub bounds: Option<(Vec<f64>, Vec<f64>)>,
    /// What happens to vertices outside them.
    pub out_of_bounds: OutOfBounds,
    /// What it is read for.
    pub purpose: Purpose,
    /// The axes; x, y, z, w and so on in space when not said.
    pub axes: Option<Vec<AxisSpec>>,
    /// The coordinate reference system, opaque.
    pub crs: Option<Value>,
    /// What the collection is called.
    pub name: Option<String>,
    /// Objects that are formulas.
    pub parametric: Option<Parametric>,
    /// Headers of files of other formats, by format.
    pub headers: BTreeMap<String, Map<String, Value>>,
}

impl Design {
    /// Of a kind of geometry, with nothing else said.
    pub fn new(kind: GeometryKind) -> Self {
        Self {
            kind,
            profile: Profile::default(),
            chunk_shape: None,
            bin_shape: None,
            dtype: None,
            compression: CellCompression::default(),
            checksum: None,
            sharding: ShardingPolicy::default(),
            directed: false,
            duplicate: false,
            step_links: false,
            bounds: None,
            out_of_bounds: OutOfBounds::default(),
            purpose: Purpose::default(),
            axes: None,
            crs: None,
            name: None,
            parametric: None,
            headers: BTreeMap::new(),
        }
    }

    /// Whether steps of paths are stored as links.
    pub fn has_step_links(&self) -> bool {
        self.step_links || self.profile != Profile::V09
    }

    /// Whether cells carry checksums.
    pub fn has_checksums(&self) -> bool {
        self.checksum.unwrap_or(self.profile == Profile::V09)
    }
}
