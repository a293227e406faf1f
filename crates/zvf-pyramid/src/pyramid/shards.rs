//! Holds the cells of a shard until all of them exist.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Range,
};

use bytes::Bytes;
use rayon::prelude::*;
use zvf_build::{ShardingPolicy, migrate::MigrationTarget};
use zvf_dataset::Failure;
use zvf_model::{grid::ChunkCoord, key::Key, level::LevelId};
use zvf_store::CellArray;
use zvf_write::writer::run;

use super::{
    LevelDesign,
    job::{LevelArrays, ShardCell, Shared},
    source::Source,
};

/// Returns the form of the cells of a level: sharded as designed or, by default, as the root
/// declares for arrays that are added, or like the finer level.
pub(super) fn form(
    source: &Source<'_>,
    design: &LevelDesign,
    form: &MigrationTarget,
    coarse: &LevelArrays,
) -> Result<MigrationTarget, Failure> {
    let sharding = design.sharding.clone();
    let declared = source
        .dataset
        .root()
        .shard_shape
        .as_ref()
        .filter(|_| form.is_current())
        .map(|shape| {
            // Attributes that chunk a level have the first axes of its grid.
            let leading = coarse.arity.saturating_sub(shape.len());
            ShardingPolicy::Shape([vec![1; leading], shape.clone()].concat())
        });
    let sharding = sharding.or(declared);
    let sharding = sharding.unwrap_or_else(|| source.sharding());
    let (chunks, bytes) = source.bytes();
    Ok(form.sharded(&sharding, &coarse.extent, coarse.arity, chunks, bytes)?)
}

/// Shards that may receive more cells.
#[derive(Default)]
pub(super) struct Shards {
    open: BTreeMap<(LevelId, Key, Vec<u64>), Shard>,
    put: HashSet<Key>,
}

struct Shard {
    key: Key,
    array: CellArray,
    cells: Vec<(u64, Bytes)>,
}

/// The step after which each shard has all its cells, by level and shard.
#[derive(Default)]
pub(super) struct LastSteps(HashMap<(LevelId, Vec<u64>), usize>);

/// Chunks of a level with the finer chunks they are built from, ordered by shard.
pub(super) struct Groups {
    pub(super) all: Vec<(ChunkCoord, Vec<ChunkCoord>)>,
    pub(super) last_steps: LastSteps,
    /// For each position, true if every shard is complete or untouched before it.
    is_whole: Vec<bool>,
}

impl Groups {
    /// Orders chunks so that the chunks of a shard are consecutive.
    pub(super) fn new(shared: &Shared, groups: BTreeMap<ChunkCoord, Vec<ChunkCoord>>) -> Self {
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_cached_key(|(chunk, _)| shared.shard_of(&shared.coarse, chunk));
        let mut last_steps = LastSteps::default();
        for (step, (chunk, fine)) in groups.iter().enumerate() {
            last_steps.record(shared, &shared.coarse, chunk, step);
            for chunk in fine {
                last_steps.record(shared, &shared.fine, chunk, step);
            }
        }
        let mut open_until = 0;
        let mut is_whole = Vec::with_capacity(groups.len());
        for (step, (chunk, fine)) in groups.iter().enumerate() {
            is_whole.push(open_until <= step);
            let own = last_steps.of(shared, &shared.coarse, chunk);
            let fine = fine
                .iter()
                .map(|chunk| last_steps.of(shared, &shared.fine, chunk));
            open_until = fine.fold(open_until.max(own), usize::max);
        }
        Self {
            all: groups,
            last_steps,
            is_whole,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Splits the groups into about `max` ranges of similar work. No shard is split.
    pub(super) fn split(&self, max: usize) -> Vec<Range<usize>> {
        let work: usize = self.all.iter().map(|(_, fine)| fine.len()).sum();
        let enough = work.div_ceil(max.max(1));
        let (mut ranges, mut start, mut done) = (Vec::new(), 0, 0);
        for (at, (_, fine)) in self.all.iter().enumerate() {
            if done >= enough && self.is_whole.get(at) == Some(&true) {
                ranges.push(start..at);
                (start, done) = (at, 0);
            }
            done += fine.len();
        }
        if start < self.len() {
            ranges.push(start..self.len());
        }
        ranges
    }
}

impl LastSteps {
    /// Returns the step after which the shard of a chunk has all its cells.
    fn of(&self, shared: &Shared, arrays: &LevelArrays, chunk: &ChunkCoord) -> usize {
        let at = shared.shard_of(arrays, chunk);
        let end = at.and_then(|at| self.0.get(&(arrays.keys.level, at)));
        end.copied().unwrap_or(0)
    }

    /// Records that a step builds cells of the shard of a chunk.
    pub(super) fn record(
        &mut self,
        shared: &Shared,
        arrays: &LevelArrays,
        chunk: &ChunkCoord,
        step: usize,
    ) {
        if let Some(at) = shared.shard_of(arrays, chunk) {
            self.0.insert((arrays.keys.level, at), step + 1);
        }
    }
}

impl Shards {
    /// Adds cells to their shards.
    pub(super) fn add(&mut self, cells: Vec<ShardCell>) -> Result<(), Failure> {
        for cell in cells {
            if self.put.contains(&cell.key) {
                // Writing the shard again would drop the cells it already has.
                return Err(Failure::NoPyramid {
                    why: "a shard was written before all of its cells were built",
                });
            }
            let shard = self
                .open
                .entry((cell.level, cell.node, cell.at))
                .or_insert_with(|| Shard {
                    key: cell.key,
                    array: cell.array,
                    cells: Vec::new(),
                });
            shard.cells.push((cell.number, cell.payload));
        }
        Ok(())
    }

    /// Removes and returns the shards that are complete after `done` steps.
    fn take_complete(&mut self, last_steps: &LastSteps, done: usize) -> Vec<Shard> {
        let whole: Vec<_> = self
            .open
            .keys()
            .filter(|(level, _, at)| {
                let end = last_steps.0.get(&(*level, at.clone()));
                end.is_some_and(|end| *end <= done)
            })
            .cloned()
            .collect();
        let shards: Vec<Shard> = whole
            .iter()
            .filter_map(|name| self.open.remove(name))
            .collect();
        self.put
            .extend(shards.iter().map(|shard| shard.key.clone()));
        shards
    }

    /// Encodes the shards that are complete after `done` steps.
    pub(super) async fn objects(
        &mut self,
        last_steps: &LastSteps,
        done: usize,
    ) -> Result<Vec<(Key, Bytes)>, Failure> {
        let shards = self.take_complete(last_steps, done);
        if shards.is_empty() {
            return Ok(Vec::new());
        }
        run(move || {
            let made =
                shards.into_par_iter().map(|shard| {
                    let bytes = shard.array.encode_shard(&shard.cells).map_err(|source| {
                        Failure::Encode {
                            key: shard.key.clone(),
                            source,
                        }
                    })?;
                    Ok((shard.key, bytes))
                });
            made.collect()
        })
        .await
    }
}
