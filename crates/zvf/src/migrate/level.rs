//! Migration of one level: each of its parts, then its node.

use std::collections::HashMap;

use serde_json::{Map, Value};
use zvf_build::migrate::{
    ChunkExtent, FragmentEnds, ImpliedLinks, LevelFacts, MigrationNote, MigrationTarget,
};
use zvf_format::{links::LinkWidth, path::Delta};
use zvf_model::{grid::ChunkCoord, level::LevelId};
use zvf_query::LinkCells;

use super::Migration;
use crate::failure::Failure;

/// State of a level, collected during its migration.
pub(super) struct Level {
    pub(super) id: LevelId,
    /// Path of the level.
    pub(super) path: String,
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

impl Migration<'_> {
    /// Migrates a level.
    pub(super) async fn level(&self, id: LevelId) -> Result<(), Failure> {
        let metadata = self.source.level_metadata(id).await?;
        let root = self.source.root();
        let path = id.to_string();
        let node = self.attributes(&path).await?;
        let chunk = metadata.effective_chunk_shape(root).extents();
        let bounds = root.bounds.as_ref();
        let bounds = bounds.map(|bounds| (bounds.lower(), bounds.upper()));
        let chunking = metadata.attribute_chunking.as_ref();
        let values = chunking.map(|chunking| chunking.values.len() as u64);
        let mut level = Level {
            id,
            path,
            arity: metadata.arity(root),
            extent: ChunkExtent::of_bounds(bounds, chunk, values),
            chunks: HashMap::new(),
            facts: LevelFacts {
                tiles: true,
                ..LevelFacts::default()
            },
            declares_shared: metadata.shared_fragments,
            renumbered: HashMap::new(),
            bridges: None,
        };
        let links = self.all_links(&level).await?;
        let suspect = links.iter().any(|(delta, cells)| is_suspect(*delta, cells));
        level.bridges = suspect.then(ImpliedLinks::new);
        self.chunk_parts(&mut level).await?;
        self.objects(&mut level).await?;
        self.groups(&mut level).await?;
        self.links(&mut level, links).await?;
        self.composite(&mut level).await?;
        self.other_nodes(&level).await?;
        self.level_node(&node, &level).await
    }

    async fn level_node(&self, node: &Map<String, Value>, level: &Level) -> Result<(), Failure> {
        {
            let mut state = self.state();
            state.vertices += level.facts.vertices;
            state.shares_fragments |= level.facts.shares_fragments;
        }
        let (attributes, wrong) = self.form.level(node, level.id.number(), &level.facts);
        for what in wrong {
            self.repaired(MigrationNote::new(&level.path, what, 1));
        }
        self.writer
            .write(vec![MigrationTarget::group(&level.path, &attributes)])
            .await
    }

    /// Opens the link cells of a level without reading them.
    async fn all_links(&self, level: &Level) -> Result<Vec<(Delta, LinkCells)>, Failure> {
        let session = self.session();
        let mut all = Vec::new();
        for delta in session.stored_link_deltas(level.id).await? {
            let cells = session.all_link_cells(level.id, delta).await;
            if let Some(Some(cells)) = self.skip_damaged(cells)? {
                all.push((delta, cells));
            }
        }
        Ok(all)
    }
}

/// Returns whether links may name the wrong rows.
fn is_suspect(delta: Delta, cells: &LinkCells) -> bool {
    let mut families = cells.families().into_iter();
    delta == Delta::INTRA
        && !cells.rows_are_known()
        && families.any(|(_, width)| width == LinkWidth::EDGE)
}
