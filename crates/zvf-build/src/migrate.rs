//! Migration of stores between generations: node metadata, placement of cells and their encoding. A
//! caller that reads one store and writes another calls these part by part, so that no store is
//! held whole.
//!
//! Payloads of vertices, attributes, fragment indexes and manifests are equal in all generations
//! from 0.6 on; [`MigrationTarget::part`] and [`MigrationTarget::cell`] put them in the containers
//! of the target. [`LinkTarget`] places links anew. [`MigrationTarget::object_index`] and its
//! relatives write tables. [`ImpliedLinks`] are the links that writers of paths should have stored.

mod chunk_arrays;
mod implied_links;
mod links;
mod nodes;
mod tables;

use zvf_model::{generation::Generation, layout::LevelKeys, level::LevelId};

use crate::{
    CellCompression, GeometryKind,
    design::{CellChecksums, Design, Profile, ShardingPolicy},
    error::BuildError,
    metadata::Encoding,
};

pub use chunk_arrays::ChunkExtent;
pub use implied_links::{FragmentEnds, ImpliedLinks};
pub use links::{
    AlignedLinks, LinkArrayKey, LinkAttributeType, LinkRecordPolicy, LinkTarget, LinkTotals,
    PlacedLinkCell, PlacedLinks,
};
pub use nodes::{LevelFacts, RootFacts, is_level_array};
pub use tables::{ObjectIndexCounts, changed_type};

/// Form of the store that a migration writes.
#[derive(Clone, Debug, PartialEq)]
pub struct MigrationTarget {
    profile: Profile,
    cells: Encoding,
    tables: Encoding,
    /// Shard shape in cells.
    shard: Option<Vec<u64>>,
}

/// Record of a repair, or of data that the new store does not contain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrationNote {
    /// Node in the source store.
    pub path: String,
    /// Subject.
    pub what: &'static str,
    /// Number of affected items.
    pub count: u64,
    /// Detail, if any.
    pub why: Option<String>,
}

impl MigrationNote {
    /// Creates a note about `count` items of a node.
    pub fn new(path: impl Into<String>, what: &'static str, count: u64) -> Self {
        Self {
            path: path.into(),
            what,
            count,
            why: None,
        }
    }

    /// Adds a detail.
    #[must_use]
    pub fn because(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }
}

impl MigrationTarget {
    /// Creates a target.
    ///
    /// # Errors
    ///
    /// [`BuildError::UnsupportedOption`] for the padded profile, whose cells have one fixed size.
    pub fn new(
        profile: Profile,
        compression: CellCompression,
        checksums: CellChecksums,
    ) -> Result<Self, BuildError> {
        if profile == Profile::Padded {
            return Err(BuildError::UnsupportedOption {
                profile: profile.name(),
                what: "migration",
            });
        }
        let mut design = Design::new(GeometryKind::Points);
        design.profile = profile;
        design.compression = compression;
        design.checksums = checksums;
        Ok(Self {
            profile,
            cells: Encoding::of_cells(&design),
            tables: Encoding::of_tables(&design),
            shard: None,
        })
    }

    /// Returns the target with sharded cells, for arrays with more than one cell in a shard.
    ///
    /// # Errors
    ///
    /// [`BuildError`] for an invalid shard shape, or a profile without shards.
    pub fn sharded(
        &self,
        sharding: &ShardingPolicy,
        grid: &ChunkExtent,
        arity: usize,
        chunks: u64,
        bytes: u64,
    ) -> Result<Self, BuildError> {
        let mut design = Design::new(GeometryKind::Points);
        design.profile = self.profile;
        design.sharding = sharding.clone();
        let capacity = grid.grid(arity).unwrap_or_default().shape;
        let shard = crate::sharding::shard(&design, &capacity, chunks, bytes)?;
        Ok(Self {
            shard,
            ..self.clone()
        })
    }

    /// Returns the shard index of a chunk's cell, if it shares a shard with others.
    pub fn shard_of(&self, grid: &ChunkExtent, arity: usize, chunk: &[i64]) -> Option<Vec<u64>> {
        let capacity = grid.grid(arity)?.shape;
        let shard = self.shard_in(&capacity)?;
        let index = grid.index(chunk)?;
        Some(
            index
                .iter()
                .zip(shard)
                .map(|(at, extent)| at / extent)
                .collect(),
        )
    }

    /// Returns the shard shape of an array of this shape; `None` if no shard would have two cells.
    fn shard_in(&self, capacity: &[u64]) -> Option<&[u64]> {
        let shard = self.shard.as_deref()?;
        let mut own = shard.iter().zip(capacity);
        let is_shared = own.any(|(shard, capacity)| *shard.min(capacity) > 1);
        (is_shared && shard.len() == capacity.len()).then_some(shard)
    }

    /// Returns the target with cells compressed as tables are, which a migration always compresses.
    #[must_use]
    pub fn compressed(&self) -> Self {
        Self {
            cells: self.tables.clone(),
            ..self.clone()
        }
    }

    /// Returns the nodes of a level.
    pub fn keys(&self, level: LevelId) -> LevelKeys {
        self.profile.keys(level)
    }

    /// Returns the profile.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Returns the generation.
    pub fn generation(&self) -> Generation {
        self.profile.layout().generation
    }

    /// Returns whether the target is of 0.9 or later, whose arrays have one cell for each chunk.
    pub fn is_current(&self) -> bool {
        self.profile.is_current()
    }
}
