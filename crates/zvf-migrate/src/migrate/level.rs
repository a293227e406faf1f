//! State of a level during its migration, and its node.

use std::collections::HashMap;

use zvf_build::{
    Output,
    migrate::{ChunkExtent, FragmentEnds, ImpliedLinks, LevelFacts, MigrationNote},
};
use zvf_catalog::{LinkCells, StoredArray};
use zvf_dataset::{Failure, nodes::place};
use zvf_format::{links::LinkWidth, path::Delta};
use zvf_model::{grid::ChunkCoord, layout::LevelKeys, level::LevelId, metadata::Attributes};

use super::Migration;

/// State of a level, collected during its migration.
pub(super) struct Level {
    pub(super) id: LevelId,
    /// Nodes of the level in the target.
    pub(super) keys: LevelKeys,
    /// Number of coordinates in a chunk key.
    pub(super) arity: usize,
    pub(super) extent: ChunkExtent,
    pub(super) chunks: HashMap<ChunkCoord, ChunkFacts>,
    pub(super) facts: LevelFacts,
    /// True if the source declares that objects share fragments.
    pub(super) declares_shared: bool,
    /// New ids of renumbered objects, by old id.
    pub(super) renumbered: HashMap<i64, i64>,
    /// Links that paths imply, if stored links may be wrong.
    pub(super) bridges: Option<ImpliedLinks>,
}

/// State of a chunk.
#[derive(Clone, Debug, Default)]
pub(super) struct ChunkFacts {
    pub(super) rows: u64,
    pub(super) fragments: u32,
    /// First and last row of each fragment; empty unless needed.
    pub(super) ends: FragmentEnds,
    /// A bit for each fragment that an object references.
    pub(super) named: Vec<u64>,
}

impl ChunkFacts {
    /// Marks a fragment as referenced. Returns whether it was marked before.
    pub(super) fn name(&mut self, fragment: u32) -> bool {
        let (word, bit) = ((fragment / 64) as usize, 1_u64 << (fragment % 64));
        if self.named.len() <= word {
            self.named.resize(word + 1, 0);
        }
        let known = self.named[word] & bit != 0;
        self.named[word] |= bit;
        known
    }
}

impl Level {
    /// Extends the level to the chunks of an array.
    pub(super) fn reach(&mut self, part: &StoredArray) {
        for chunk in part.chunks() {
            self.extent.reach(chunk.coords());
        }
    }
}

impl Migration<'_> {
    /// Writes the node of a level, after its parts.
    pub(super) async fn level_node(&self, node: &Attributes, level: &Level) -> Result<(), Failure> {
        {
            let mut state = self.state();
            state.vertices += level.facts.vertices;
            state.shares_fragments |= level.facts.shares_fragments;
        }
        let (attributes, wrong) = self.form.level(node, level.id, &level.facts);
        for what in wrong {
            self.repaired(MigrationNote::new(level.id.to_string(), what, 1));
        }
        let key = place(level.keys.level())?;
        self.writer
            .write(vec![Output::group(key, attributes)])
            .await
    }

    /// Opens the link cells of a level without reading them.
    pub(super) async fn all_links(
        &self,
        level: &Level,
    ) -> Result<Vec<(Delta, LinkCells)>, Failure> {
        let catalog = self.catalog();
        let mut all = Vec::new();
        for delta in catalog.stored_link_deltas(level.id).await? {
            let cells = catalog.all_link_cells(level.id, delta).await;
            if let Some(Some(cells)) = self.skip_damaged(cells)? {
                all.push((delta, cells));
            }
        }
        Ok(all)
    }
}

/// Returns whether links may name the wrong rows.
pub(super) fn is_suspect(delta: Delta, cells: &LinkCells) -> bool {
    let mut families = cells.families().into_iter();
    delta == Delta::INTRA
        && !cells.rows_are_known()
        && families.any(|(_, width)| width == LinkWidth::EDGE)
}
