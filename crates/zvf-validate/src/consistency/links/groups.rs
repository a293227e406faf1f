//! Link fragments: groups of the links inside chunks.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use zvf_format::fragment::{FragmentIndex, Rows};
use zvf_model::{grid::ChunkCoord, key::Key, layout::ArrayRole};

use super::super::chunks::optional;
use crate::{
    batch::CellPayload,
    chunk_pass::{ChunkCheck, ChunkPass},
    chunked_part::open_part,
    context::Context,
    rules::consistency as rules,
    share::ChunkOutcome,
    store::LevelScope,
};

/// The `link_fragments` of a level. Their cells are checked with those of the vertices.
#[derive(Debug)]
pub(super) struct Groups {
    key: Key,
    /// `None` for unreadable cells, which are reported.
    chunks: BTreeMap<ChunkCoord, Option<Extent>>,
}

/// The links that the groups of a chunk cover.
#[derive(Clone, Copy, Debug)]
struct Extent {
    /// One more than the highest link.
    end: u64,
    /// Number of links.
    links: u64,
}

impl Groups {
    /// Reads all cells. Returns `None` if the level has none.
    pub(super) async fn read(context: &Context<'_>, scope: LevelScope<'_>) -> Option<Self> {
        let aside = context.silent();
        let cells = open_part(&aside, scope, &ArrayRole::LinkFragments)?;
        let chunks = cells.chunks();
        let pass = ChunkPass {
            name: format!("{} extents", cells.key),
            seed: cells.key.as_str(),
            parts: &[&cells],
            chunks: &chunks,
        };
        let mut extents = Extents::default();
        pass.run(&aside, &mut extents).await;
        let Extents(chunks) = extents;
        let key = cells.key;
        Some(Self { key, chunks })
    }

    /// Returns the number of used links of a chunk, if it has groups.
    pub(super) fn used(&self, chunk: &ChunkCoord) -> Option<u64> {
        match self.chunks.get(chunk) {
            Some(extent) => extent.map(|extent| extent.end),
            None => Some(0),
        }
    }

    /// Returns the chunks with groups.
    pub(super) fn chunks(&self) -> impl Iterator<Item = ChunkCoord> {
        self.chunks.keys().cloned()
    }

    /// Reports groups in a level without links inside chunks.
    pub(super) fn report_unexpected(&self, context: &Context<'_>) {
        for chunk in self.chunks.keys() {
            self.check(context, chunk, 0);
        }
    }

    /// Compares the groups of a chunk with its links.
    pub(super) fn check(&self, context: &Context<'_>, at: &ChunkCoord, links: u64) {
        match self.chunks.get(at) {
            None if links > 0 => {
                let message = format!("{links} links, but no cell");
                context.report_in_chunk(&rules::LINK_GROUPS_MISSING, &self.key, at, message);
            }
            Some(Some(extent)) if extent.end > links => {
                let message = format!("groups of {} links, but there are {links}", extent.end);
                context.report_in_chunk(&rules::LINK_GROUPS, &self.key, at, message);
            }
            Some(Some(extent)) if extent.links < links => {
                let left = links.saturating_sub(extent.links);
                let message = format!("{left} of {links} links are in no group");
                context.report_in_chunk(&rules::LINK_GROUPS, &self.key, at, message);
            }
            _ => {}
        }
    }
}

/// Reads the cells of all chunks.
#[derive(Default)]
struct Extents(BTreeMap<ChunkCoord, Option<Extent>>);

impl ChunkCheck for Extents {
    type Outcome = Option<Extent>;

    fn check(&self, _: &Context<'_>, _: &ChunkCoord, cells: &[CellPayload]) -> Option<Extent> {
        let bytes = cells.first().and_then(|cell| cell.bytes())?;
        let index = FragmentIndex::parse(bytes).ok()?;
        Some(Extent::of(&index))
    }

    fn add(&mut self, chunk: &ChunkCoord, extent: Option<Extent>) {
        self.0.insert(chunk.clone(), extent);
    }
}

impl ChunkOutcome for Option<Extent> {
    fn to_json(&self) -> Value {
        json!(self.map(|extent| [extent.end, extent.links]))
    }

    fn from_json(json: &Value) -> Option<Self> {
        optional(json, |json| match json.as_array()?.as_slice() {
            [end, links] => Some(Extent {
                end: end.as_u64()?,
                links: links.as_u64()?,
            }),
            _ => None,
        })
    }
}

impl Extent {
    /// Allocates memory for the rows that the index names, not for the counts that it declares.
    fn of(index: &FragmentIndex<'_>) -> Self {
        let end = index.extent();
        if index.tiles(end) {
            return Self { end, links: end };
        }
        let mut runs = Vec::new();
        for rows in index {
            match rows {
                Rows::Range(rows) => runs.push((rows.start, rows.end)),
                Rows::List(rows) => {
                    runs.extend(rows.iter().map(|row| (row, row.saturating_add(1))));
                }
            }
        }
        runs.sort_unstable();
        let (mut links, mut covered) = (0_u64, 0_u64);
        for (start, end) in runs {
            links = links.saturating_add(end.saturating_sub(start.max(covered)));
            covered = covered.max(end);
        }
        Self { end, links }
    }
}
