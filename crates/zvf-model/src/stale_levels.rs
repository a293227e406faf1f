//! Stale levels: the record in the root of coarser levels that no longer match a finer one, an
//! extension of this library, maintained by edits.
//!
//! | attribute of the root | holds |
//! |---|---|
//! | `zvf_stale_levels` | levels built before the last change of a finer one |
//! | `zvf_stale_chunks` | chunks that changed since the next level was built, by level; a missing list means all chunks |

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{grid::ChunkCoord, level_id::LevelId, metadata::Attributes};

const LEVELS: &str = "zvf_stale_levels";
const CHUNKS: &str = "zvf_stale_chunks";
/// Maximum number of changed chunks of a level that are listed; beyond it all chunks count as changed.
const MAX_CHUNKS: usize = 1 << 14;

/// Levels that no longer match a finer one, and the chunks that changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaleLevels {
    levels: BTreeSet<LevelId>,
    chunks: BTreeMap<LevelId, BTreeSet<ChunkCoord>>,
}

impl StaleLevels {
    /// Reads the attributes of a root. Entries that are not levels, and lists with other entries than
    /// chunks, are ignored.
    pub fn parse(root: &Attributes) -> Self {
        let chunks = root
            .get(CHUNKS)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(level, list)| {
                let chunk = |name: &Value| {
                    let name = name.as_str()?;
                    ChunkCoord::parse(name, name.split('.').count()).ok()
                };
                let list = list.as_array()?.iter().map(chunk);
                Some((LevelId::parse(level)?, list.collect::<Option<_>>()?))
            });
        Self {
            levels: listed(root).collect(),
            chunks: chunks.collect(),
        }
    }

    /// Replaces the record in the attributes of a root.
    pub fn write(&self, root: &mut Attributes) {
        let levels: Vec<u32> = self.levels.iter().map(|level| level.number()).collect();
        put(root, LEVELS, levels.is_empty(), levels.into());
        let chunks: Attributes = self
            .chunks
            .iter()
            .map(|(level, chunks)| {
                let names: BTreeSet<String> = chunks.iter().map(ChunkCoord::to_string).collect();
                let names: Vec<String> = names.into_iter().collect();
                (level.to_string(), Value::from(names))
            })
            .collect();
        put(root, CHUNKS, chunks.is_empty(), chunks.into());
    }

    /// Returns the finest stale level.
    pub fn first(&self) -> Option<LevelId> {
        self.levels.first().copied()
    }

    /// Returns the chunks of a level that changed since the next level was built; `None` if they are
    /// not known, and all of them may have changed.
    pub fn changed_chunks(&self, level: LevelId) -> Option<&BTreeSet<ChunkCoord>> {
        self.chunks.get(&level)
    }

    /// Adds a change of unknown chunks of `level`: the levels in `coarser` become stale.
    pub fn add(&mut self, level: LevelId, coarser: &[LevelId]) {
        if !coarser.is_empty() {
            self.levels.extend(coarser);
            self.chunks.remove(&level);
        }
    }

    /// Adds a change of the chunks `changed` of level 0: the levels in `coarser` become stale.
    pub fn add_chunks(
        &mut self,
        coarser: &[LevelId],
        changed: impl IntoIterator<Item = ChunkCoord>,
    ) {
        if coarser.is_empty() {
            return;
        }
        let known = self.chunks.remove(&LevelId::FULL);
        // After a change that was not recorded by chunk, the list would be incomplete.
        let known = known.or(self.levels.is_empty().then(BTreeSet::new));
        self.levels = coarser.iter().copied().collect();
        if let Some(mut chunks) = known {
            chunks.extend(changed);
            if chunks.len() <= MAX_CHUNKS {
                self.chunks.insert(LevelId::FULL, chunks);
            }
        }
    }

    /// Removes a level that was rebuilt. `changed` are the chunks that changed; `None` if there is no
    /// coarser level.
    pub fn rebuilt(&mut self, level: LevelId, changed: Option<&BTreeSet<ChunkCoord>>) {
        self.levels.remove(&level);
        if let Some(before) = level.offset(-1) {
            self.chunks.remove(&before);
        }
        if let Some(changed) = changed.filter(|_| !self.levels.is_empty()) {
            let chunks = self.chunks.entry(level).or_default();
            chunks.extend(changed.iter().cloned());
        }
    }

    /// Removes the levels from `first` on.
    pub fn remove_from(&mut self, first: LevelId) {
        self.levels.retain(|level| *level < first);
        // Changed chunks matter only to levels that remain.
        self.chunks.retain(|level, _| level.offset(1) < Some(first));
    }
}

/// Returns the stale levels in the attributes of a root.
pub(crate) fn listed(root: &Attributes) -> impl Iterator<Item = LevelId> + '_ {
    let listed = root.get(LEVELS).and_then(Value::as_array);
    let numbers = listed
        .into_iter()
        .flatten()
        .filter_map(Value::as_u64)
        .filter_map(|number| u32::try_from(number).ok());
    numbers.map(LevelId::new)
}

fn put(root: &mut Attributes, name: &str, is_empty: bool, value: Value) {
    if is_empty {
        root.remove(name);
    } else {
        root.insert(name.to_owned(), value);
    }
}
