//! Stores of one generation as stores of another: what nodes say there, where cells
//! go, and in which form. Whoever reads the one and writes the other calls these
//! part by part, so that no store is ever held whole.
//!
//! Payloads of vertices, attributes, fragment indexes and manifests are the same in
//! all generations from 0.6 on; [`MigrationTarget::part`] and [`MigrationTarget::cell`] put them in the
//! containers of the target. Links are filed anew by [`LinkTarget`]. Tables come by
//! [`MigrationTarget::object_index`] and its like. [`ImpliedLinks`] are what writers of paths should have
//! stored.

mod bridges;
mod links;
mod nodes;
mod parts;
mod tables;

use serde_json::{Map, Value};

use crate::{
    design::{CellCompression, Design, Profile, ShardingPolicy},
    error::BuildError,
    geometry::GeometryKind,
    metadata::Encoding,
};

pub use bridges::{FragmentEnds, ImpliedLinks};
pub use links::{AlignedLinks, LinkArrayKey, LinkCell, LinkTarget, PlacedLinks};
pub use nodes::{LevelFacts, RootFacts, is_level_array};
pub use parts::ChunkExtent;
pub use tables::TableRows;

/// How a store is written that another becomes.
#[derive(Clone, Debug, PartialEq)]
pub struct MigrationTarget {
    profile: Profile,
    cells: Encoding,
    tables: Encoding,
    /// How many cells go in one object along each axis.
    shard: Option<Vec<u64>>,
}

/// Something that was put right, or that the new store does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationNote {
    /// The node in the store that was read.
    pub path: String,
    /// What it is about.
    pub what: &'static str,
    /// How many.
    pub count: u64,
    /// More, where there is more to say.
    pub why: Option<String>,
}

impl MigrationNote {
    /// Of so many things at a node.
    pub fn new(path: impl Into<String>, what: &'static str, count: u64) -> Self {
        Self {
            path: path.into(),
            what,
            count,
            why: None,
        }
    }

    /// With more to say.
    #[must_use]
    pub fn because(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }
}

impl MigrationTarget {
    /// Stores of a profile; checksums where the profile has them when not said.
    ///
    /// # Errors
    ///
    /// [`BuildError::UnsupportedOption`] for the padded profile, which cuts cells to one size.
    pub fn new(
        profile: Profile,
        compression: CellCompression,
        checksum: Option<bool>,
    ) -> Result<Self, BuildError> {
        if profile == Profile::Padded {
            return Err(BuildError::UnsupportedOption {
                profile: profile.name(),
                what: "place for a store that is migrated",
            });
        }
        let mut design = Design::new(GeometryKind::Points);
        design.profile = profile;
        design.compression = compression;
        design.checksum = checksum;
        Ok(Self {
            profile,
            cells: Encoding::of_cells(&design),
            tables: Encoding::of_tables(&design),
            shard: None,
        })
    }

    /// The same, with cells in shards where an array has more than one cell for a shard:
    /// of so many chunks with room for `grid`, whose positions take so many bytes.
    ///
    /// # Errors
    ///
    /// [`BuildError`] for shards that are not possible, and where the profile has none.
    pub fn sharded(
        &self,
        sharding: &ShardingPolicy,
        (grid, arity): (&ChunkExtent, usize),
        (chunks, bytes): (u64, u64),
    ) -> Result<Self, BuildError> {
        let mut design = Design::new(GeometryKind::Points);
        design.profile = self.profile;
        design.sharding = sharding.clone();
        let (_, room) = grid.grid(arity).unwrap_or_default();
        let shard = crate::sharding::shard(&design, &room, chunks, bytes)?;
        Ok(Self {
            shard,
            ..self.clone()
        })
    }

    /// Which object the cell of a chunk is in, where it shares one with others.
    pub fn shard_of(&self, grid: &ChunkExtent, arity: usize, chunk: &[i64]) -> Option<Vec<u64>> {
        let (_, room) = grid.grid(arity)?;
        let shard = self.shard_in(&room)?;
        let index = grid.index(chunk)?;
        Some(
            index
                .iter()
                .zip(shard)
                .map(|(at, extent)| at / extent)
                .collect(),
        )
    }

    /// The shards of an array with room for so many cells; none where every shard would
    /// have one.
    fn shard_in(&self, room: &[u64]) -> Option<&[u64]> {
        let shard = self.shard.as_deref()?;
        let mut own = shard.iter().zip(room);
        let is_shared = own.any(|(shard, room)| *shard.min(room) > 1);
        (is_shared && shard.len() == room.len()).then_some(shard)
    }

    /// The same, with cells compressed as tables are, which never are plain.
    #[must_use]
    pub fn compressed(&self) -> Self {
        Self {
            cells: self.tables.clone(),
            ..self.clone()
        }
    }

    /// The profile.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Whether it is of 0.9, whose arrays have a cell for each chunk.
    pub fn is_current(&self) -> bool {
        self.profile == Profile::V09
    }
}

/// What a node said, with what is said of it now. What only the container of the
/// source said is left out.
fn overlaid(old: &Map<String, Value>, new: Value) -> Map<String, Value> {
    const OF_CONTAINERS: [&str; 13] = [
        "nonempty_chunks",
        "chunk_grid_origin",
        "shard_index",
        "layout",
        "num_objects",
        "num_present",
        "object_ids_sorted",
        "num_channels",
        "has_present_mask",
        "fill_sentinel_meaning",
        "group_ranges",
        "num_links",
        "num_physical_records",
    ];
    let mut says = crate::output::json_object(new);
    for (key, value) in old {
        if !OF_CONTAINERS.contains(&key.as_str()) && !says.contains_key(key) {
            says.insert(key.clone(), value.clone());
        }
    }
    says
}
