//! Selects the objects that a level keeps.

use std::collections::{BTreeMap, HashMap};

use zvf_build::coarsen::{FragmentReference, ObjectFacts, Strategy};
use zvf_dataset::Failure;
use zvf_format::numeric::{ByteOrder, Dtype, NumericRows, Value};
use zvf_model::grid::ChunkCoord;
use zvf_query::{ColumnValues, NumericColumn};

use super::{design::ObjectSelection, source::Source};

/// Number of chunks read per batch.
const BATCH_CHUNKS: usize = 256;

/// Returns the objects to keep, by row; `None` if the level has no objects.
pub(super) async fn kept(
    source: &Source<'_>,
    wanted: &ObjectSelection,
    scale: &[i64],
) -> Result<Option<Vec<bool>>, Failure> {
    let sparsity = &wanted.sparsity;
    let Some(objects) = &source.objects else {
        return Ok(None);
    };
    let rows = usize::try_from(
        objects
            .row(objects.len().saturating_sub(1))
            .map_or(0, |row| row + 1),
    )
    .unwrap_or(usize::MAX);
    let mut facts = vec![ObjectFacts::default(); rows];
    let mut numbers: HashMap<ChunkCoord, u32> = HashMap::new();
    for index in 0..objects.len() {
        let row = objects.row(index).and_then(|row| usize::try_from(row).ok());
        let Some(own) = row.and_then(|row| facts.get_mut(row)) else {
            continue;
        };
        own.id = objects.id(index).unwrap_or_default();
        let mut chunks: Vec<u32> = Vec::new();
        for piece in objects.fragments(index) {
            let Some(chunk) = objects.chunk(piece.chunk) else {
                continue;
            };
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            chunks.push(*numbers.entry(source.chunk_of(chunk, scale)).or_insert(next));
        }
        own.is_present = !chunks.is_empty();
        chunks.sort_unstable();
        chunks.dedup();
        own.chunks = chunks;
    }
    if matches!(sparsity.strategy, Strategy::Length | Strategy::Coverage) {
        lengths(source, &mut facts).await?;
    }
    if matches!(sparsity.strategy, Strategy::Attribute { .. }) {
        let name = wanted.attribute.as_deref().ok_or(Failure::NoPyramid {
            why: "objects are selected by an attribute, but no attribute is named",
        })?;
        let column = source
            .catalog()
            .object_values(source.id, name, None)
            .await?;
        let ColumnValues::Numeric(numbers) = &column.values else {
            return Err(Failure::NoPyramid {
                why: "objects cannot be selected by a text attribute",
            });
        };
        let missing = column.nulls.as_deref().unwrap_or_default();
        for (row, own) in facts.iter_mut().enumerate() {
            own.value = match missing.get(row) {
                Some(true) => None,
                _ => number(numbers, row),
            };
        }
    }
    if matches!(sparsity.strategy, Strategy::PerGroup { .. }) {
        let by_id: BTreeMap<i64, usize> = facts
            .iter()
            .enumerate()
            .map(|(row, own)| (own.id, row))
            .collect();
        if let Some(groups) = source.catalog().group_list(source.id).await? {
            for group in 0..groups.len() {
                let number = u32::try_from(group).unwrap_or(u32::MAX);
                for id in groups
                    .members(group)
                    .into_iter()
                    .flat_map(|members| members.iter())
                {
                    if let Some(own) = by_id.get(&id).and_then(|row| facts.get_mut(*row)) {
                        own.groups.push(number);
                    }
                }
            }
        }
    }
    Ok(Some(sparsity.kept(&facts)?))
}

/// A fragment of an object, with its first and last position.
struct Run {
    object: u32,
    fragment: u32,
    at: u32,
    first: Vec<f64>,
    last: Vec<f64>,
}

/// Computes the length and number of vertices of each object. The length of a path includes the
/// gaps between its fragments.
async fn lengths(source: &Source<'_>, facts: &mut [ObjectFacts]) -> Result<(), Failure> {
    let mut named = source.named();
    let chunks = source.chunks();
    let mut runs: Vec<Run> = Vec::new();
    for batch in chunks.chunks(BATCH_CHUNKS) {
        let payloads = source.read(batch).await?;
        for (chunk, own) in batch.iter().zip(payloads) {
            let named = named.remove(chunk).unwrap_or_default();
            let (from, mut todo) = (runs.len(), named.iter());
            source.positions(chunk, &own, &named, &mut |object, fragment, position| {
                let Some(facts) = facts.get_mut(object as usize) else {
                    return;
                };
                facts.vertices += 1;
                match runs[from..].last_mut() {
                    Some(run) if (run.object, run.fragment) == (object, fragment) => {
                        facts.length += distance(&run.last, position);
                        run.last.copy_from_slice(position);
                    }
                    _ => {
                        let is_it = |own: &&FragmentReference| {
                            (own.object, own.fragment) == (object, fragment)
                        };
                        let own = todo.find(is_it);
                        runs.push(Run {
                            object,
                            fragment,
                            at: own.map_or(u32::MAX, |own| own.at),
                            first: position.to_vec(),
                            last: position.to_vec(),
                        });
                    }
                }
            })?;
        }
    }
    if source.is_paths() || source.is_shared {
        runs.sort_by_key(|run| (run.object, run.at));
        for pair in runs
            .windows(2)
            .filter(|pair| pair[0].object == pair[1].object)
        {
            if let Some(facts) = facts.get_mut(pair[0].object as usize) {
                facts.length += distance(&pair[0].last, &pair[1].first);
            }
        }
    }
    Ok(())
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let squares = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b));
    squares.sum::<f64>().sqrt()
}

/// Returns the first number of a row.
fn number(rows: &NumericColumn, row: usize) -> Option<f64> {
    let dtype = Dtype::new(rows.kind, ByteOrder::Little);
    let columns = core::num::NonZeroU32::new(rows.width)?;
    let rows = NumericRows::parse(&rows.bytes, dtype, columns).ok()?;
    Some(match rows.value(row, 0)? {
        Value::Complex { re, .. } => re,
        real => real.to_f64(),
    })
}
