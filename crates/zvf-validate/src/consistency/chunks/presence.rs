//! Lists of chunks, compared with the stored cells.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use zvf_model::{
    array::Presence,
    error_chain::error_chain,
    fetch::{AnyArray, CellRef, CellRequest},
    grid::{ChunkCoord, Grid},
    key::Key,
    zarr::Array,
};

use crate::{
    batch::{self, FetchedCell},
    chunked_part::{CellStorage, ChunkedPart, cell_of_file, list_of},
    context::Context,
    rule::Rule,
    rules::consistency as rules,
    share::ChunkOutcome,
    tree::StoreTree,
};

/// Maximum number of cells in a request.
const MAX_BATCH_CELLS: usize = 4096;
/// Maximum number of cells per shard; no known store has more.
const MAX_SHARD_CELLS: u64 = 1 << 24;

/// Reports cells that the array does not list, and cells outside its grid. `seed` is that of the
/// [pass](crate::chunk_pass::ChunkPass) that reads the cells.
pub(in crate::consistency) async fn check(
    context: &Context<'_>,
    tree: &StoreTree,
    part: &ChunkedPart,
    seed: &str,
) {
    let CellStorage::Elements {
        array,
        grid,
        listed,
        stored,
    } = &part.form
    else {
        return;
    };
    let metadata = array.metadata();
    outside(context, tree, &part.key, metadata);
    if Presence::is_deferred(&part.attributes) {
        return;
    }
    let mut found = BTreeSet::new();
    match stored {
        // Only damaged stores have such cells.
        Some(_) if context.is_share() => {}
        Some(stored) => {
            let unlisted: Vec<ChunkCoord> = stored
                .keys()
                .filter(|chunk| !listed.contains(*chunk))
                .cloned()
                .collect();
            for chunks in unlisted.chunks(MAX_BATCH_CELLS) {
                let results = read(context, (array, grid), chunks).await;
                find_present(context, part, chunks, results, &mut found);
            }
        }
        None => {
            let shards: Vec<_> = tree
                .below(&part.key)
                .filter_map(|(file, _)| {
                    let shard = cell_of_file(&part.key, metadata, file)?;
                    let coords = shard.iter().map(|at| i64::try_from(*at).ok());
                    Some((file, coords.collect::<Option<Vec<i64>>>()?, shard))
                })
                .collect();
            let all = shards.iter().map(|(_, coords, _)| coords.clone()).collect();
            let own = context.own_groups(seed, all);
            let pass = format!("{} shards", part.key);
            let recorder = context.silent();
            let reader = if context.is_share() {
                &recorder
            } else {
                context
            };
            for (file, coords, shard) in shards {
                let shard_chunk = ChunkCoord::new(coords.as_slice());
                let recorded = context.recorded(&pass, &shard_chunk, |_: &UnlistedChunks| true);
                if let Some(UnlistedChunks(chunks)) = recorded {
                    found.extend(chunks);
                    continue;
                }
                if !own.contains(&coords) {
                    continue;
                }
                let Some(elements) = Elements::of_shard(metadata, &shard) else {
                    let message = format!("{file} has too many cells to read each");
                    context.report(&rules::PART_NOT_CHECKED, &part.key, message);
                    continue;
                };
                let chunks = elements.filter_map(|cell| grid.chunk_of(&cell));
                let mut unlisted = chunks.filter(|chunk| !listed.contains(chunk));
                let mut present = BTreeSet::new();
                let mut is_first = true;
                loop {
                    let chunks: Vec<ChunkCoord> = unlisted.by_ref().take(MAX_BATCH_CELLS).collect();
                    if chunks.is_empty() {
                        break;
                    }
                    let results = read(context, (array, grid), &chunks).await;
                    // No cell of a shard can be found without its index, and the shard may hold few cells.
                    if is_first && let Some((rule, fault)) = common_fault(&results) {
                        let message = format!("cells that are not listed: {fault}");
                        reader.report_at(rule, &part.key, file, message);
                        break;
                    }
                    is_first = false;
                    find_present(reader, part, &chunks, results, &mut present);
                }
                let present = UnlistedChunks(present);
                context.record(&pass, &shard_chunk, &present, recorder.take());
                found.extend(present.0);
            }
        }
    }
    if let Some(first) = found.first() {
        let message = format!("{} chunks, first {first}", found.len());
        let all = listed.iter().chain(&found);
        let path = ["nonempty_chunks"];
        let list = Some(list_of(all));
        context.report_attribute(&rules::CELL_UNLISTED, &part.key, &path, message, list);
    }
}

/// The chunks of a shard that have a cell and are not listed.
struct UnlistedChunks(BTreeSet<ChunkCoord>);

impl ChunkOutcome for UnlistedChunks {
    fn to_json(&self) -> Value {
        self.0.iter().map(|chunk| json!(chunk.coords())).collect()
    }

    fn from_json(json: &Value) -> Option<Self> {
        let chunks = json.as_array()?.iter().map(|chunk| {
            let coords = chunk.as_array()?.iter().map(Value::as_i64);
            Some(ChunkCoord::new(coords.collect::<Option<Vec<i64>>>()?))
        });
        Some(Self(chunks.collect::<Option<_>>()?))
    }
}

/// Returns the chunks for which a padded array has a file.
pub(super) fn stored_chunks(tree: &StoreTree, part: &ChunkedPart) -> Vec<ChunkCoord> {
    let CellStorage::Padded { array, padded } = &part.form else {
        return Vec::new();
    };
    let axes = padded.grid.shape().len();
    let chunks = tree.below(&part.key).filter_map(|(file, _)| {
        let cell = cell_of_file(&part.key, array.metadata(), file)?;
        padded.grid.chunk_of(cell.get(..axes)?)
    });
    chunks.collect()
}

/// Reads the cells of chunks.
async fn read(
    context: &Context<'_>,
    (array, grid): (&AnyArray, &Grid),
    chunks: &[ChunkCoord],
) -> Vec<FetchedCell> {
    let wanted: Vec<_> = chunks
        .iter()
        .filter_map(|chunk| {
            let cell = grid.cell_of(chunk.coords()).ok()?;
            Some(CellRequest {
                cell: CellRef::Element(array.clone(), cell),
                part: None,
            })
        })
        .collect();
    context.fetch.cells(&wanted).await
}

/// Returns the fault of all cells and the rule that it violates, if there are several cells and
/// none can be read, for the same reason.
fn common_fault(results: &[FetchedCell]) -> Option<(&'static Rule, String)> {
    let [Err(first), rest @ ..] = results else {
        return None;
    };
    let (rule, fault) = (batch::rule_of(first), error_chain(&*first.source));
    let is_same = |result: &FetchedCell| match result {
        Err(error) => batch::rule_of(error) == rule && error_chain(&*error.source) == fault,
        Ok(_) => false,
    };
    (!rest.is_empty() && rest.iter().all(is_same)).then_some((rule, fault))
}

/// Adds the chunks that have a cell, and reports unreadable and empty cells.
fn find_present(
    context: &Context<'_>,
    part: &ChunkedPart,
    chunks: &[ChunkCoord],
    results: Vec<FetchedCell>,
    found: &mut BTreeSet<ChunkCoord>,
) {
    for (chunk, result) in chunks.iter().zip(results) {
        match result {
            Ok(Some(cell)) if cell.bytes.is_empty() => {
                let message = "the payload is empty, and the cell is not listed";
                context.report_in_chunk(&rules::CELL_EMPTY, &part.key, chunk, message);
            }
            Ok(Some(_)) => {
                found.insert(chunk.clone());
            }
            Ok(None) => {}
            Err(error) => {
                let message = format!("not listed: {}", error_chain(&*error.source));
                context.report_in_chunk(batch::rule_of(&error), &part.key, chunk, message);
            }
        }
    }
}

/// Reports files that would be cells of a larger grid.
fn outside(context: &Context<'_>, tree: &StoreTree, key: &Key, array: &Array) {
    for (file, _) in tree.below(key) {
        if cell_of_file(key, array, file).is_some() {
            continue;
        }
        let rest = file.strip_prefix(key.as_str());
        let names = rest.map(|rest| rest.split(['/', '.']).filter(|name| !name.is_empty()));
        let numbers: Option<Vec<u64>> = names.and_then(|names| {
            let names = names.filter(|name| *name != "c");
            names.map(|name| name.parse().ok()).collect()
        });
        if let Some(index) = numbers.filter(|index| index.len() == array.rank()) {
            let grid = array.grid_shape();
            if index.iter().zip(&grid).any(|(at, extent)| at >= extent) {
                let message = format!("{index:?} is outside the grid {grid:?}");
                context.report_at(&rules::CELL_OUTSIDE, key, file, message);
            }
        }
    }
}

/// Iterates over the elements of a shard inside the array, last axis fastest.
struct Elements {
    first: Vec<u64>,
    end: Vec<u64>,
    next: Option<Vec<u64>>,
}

impl Elements {
    /// Returns `None` above the limit.
    fn of_shard(array: &Array, shard: &[u64]) -> Option<Self> {
        let axes = shard.iter().zip(&array.chunk_shape).zip(&array.shape);
        let (mut first, mut end, mut count) = (Vec::new(), Vec::new(), 1_u64);
        for ((at, extent), shape) in axes {
            let start = at.checked_mul(*extent)?.min(*shape);
            let stop = start.checked_add(*extent)?.min(*shape);
            count = count.checked_mul(stop.saturating_sub(start))?;
            first.push(start);
            end.push(stop);
        }
        (count <= MAX_SHARD_CELLS).then(|| Self {
            next: (count > 0).then(|| first.clone()),
            first,
            end,
        })
    }
}

impl Iterator for Elements {
    type Item = Vec<u64>;

    fn next(&mut self) -> Option<Vec<u64>> {
        let now = self.next.take()?;
        let mut after = now.clone();
        let axes = after.iter_mut().zip(self.first.iter().zip(&self.end)).rev();
        for (at, (first, end)) in axes {
            *at = at.saturating_add(1);
            if *at < *end {
                self.next = Some(after);
                break;
            }
            *at = *first;
        }
        Some(now)
    }
}
