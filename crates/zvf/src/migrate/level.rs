//! One level: its parts in turn, and its node in the end.

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

/// What becomes known of a level on the way.
pub(super) struct Level {
    pub(super) id: LevelId,
    /// Its path.
    pub(super) path: String,
    /// Numbers of a chunk key.
    pub(super) arity: usize,
    pub(super) extent: ChunkExtent,
    pub(super) chunks: HashMap<ChunkCoord, ChunkFacts>,
    pub(super) facts: LevelFacts,
    /// Whether the level said already that objects share fragments.
    pub(super) says_shared: bool,
    /// The rows of objects that are numbered anew, by their ids.
    pub(super) renumbered: HashMap<i64, i64>,
    /// Links that paths imply, where those that are stored may be wrong.
    pub(super) bridges: Option<ImpliedLinks>,
}

/// What is known of a chunk.
#[derive(Clone, Debug, Default)]
pub(super) struct ChunkFacts {
    pub(super) rows: u64,
    pub(super) fragments: u32,
    /// First and last row of each fragment, where that is asked for.
    pub(super) ends: FragmentEnds,
    /// A bit for each fragment that an object named.
    pub(super) named: Vec<u64>,
}

impl ChunkFacts {
    /// Notes that an object named a fragment; whether one had before.
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
    /// All of a level.
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
            says_shared: metadata.shared_fragments,
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
        let (says, wrong) = self.form.level(node, level.id.number(), &level.facts);
        for what in wrong {
            self.repaired(MigrationNote::new(&level.path, what, 1));
        }
        self.writer
            .write(vec![MigrationTarget::group(&level.path, &says)])
            .await
    }

    /// All links of a level, unread.
    async fn all_links(&self, level: &Level) -> Result<Vec<(Delta, LinkCells)>, Failure> {
        let session = self.session();
        let mut all = Vec::new();
        for delta in session.stored_link_deltas(level.id).await? {
            let cells = session.all_link_cells(level.id, delta).await;
            if let Some(Some(cells)) = self.passed(cells)? {
                all.push((delta, cells));
            }
        }
        Ok(all)
    }
}

/// Whether links may not name the rows they should.
fn is_suspect(delta: Delta, cells: &LinkCells) -> bool {
    let mut families = cells.families().into_iter();
    delta == Delta::INTRA
        && !cells.rows_are_known()
        && families.any(|(_, width)| width == LinkWidth::EDGE)
}
