//! Manifests of a partly rebuilt level.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use zvf_build::coarsen::FragmentReference;
use zvf_catalog::ObjectSet;
use zvf_model::grid::ChunkCoord;

use super::super::{build::Build, source::Source};

/// Returns the visits of an object to chunks of the coarser level: the start of each visit in its
/// manifest, and the chunk.
pub(super) fn visits(
    source: &Source<'_>,
    objects: &ObjectSet,
    index: usize,
    scale: &[i64],
) -> Vec<(u32, ChunkCoord)> {
    let mut visits: Vec<(u32, ChunkCoord)> = Vec::new();
    for (at, piece) in (0u32..).zip(objects.fragments(index)) {
        let Some(chunk) = objects.chunk(piece.chunk) else {
            continue;
        };
        let coarse = source.chunk_of(chunk, scale);
        if visits.last().is_none_or(|(_, last)| *last != coarse) {
            visits.push((at, coarse));
        }
    }
    visits
}

/// Adds the pieces of objects in unchanged chunks.
pub(super) fn complete(
    build: &mut Build<'_>,
    stale: &BTreeSet<ChunkCoord>,
    old: Option<&ObjectSet>,
) {
    let (Some(now), Some(old)) = (build.source.objects.as_deref(), old) else {
        return;
    };
    let is_ordered = build.shared.recipe.shape.is_shared();
    let mut numbers: HashMap<ChunkCoord, u32> =
        build.tally.chunk_of.iter().cloned().zip(0..).collect();
    let mut named: Vec<(FragmentReference, u32)> = Vec::new();
    for index in 0..now.len() {
        let Some(row) = now.row(index).and_then(|row| u32::try_from(row).ok()) else {
            continue;
        };
        let kept = build.shared.recipe.kept.as_ref();
        if !kept.is_none_or(|kept| kept.get(row as usize).copied().unwrap_or(false)) {
            continue;
        }
        let before = now.id(index).and_then(|id| old.find(id));
        let pieces = before.map(|index| old.fragments(index)).unwrap_or_default();
        // The pieces in each chunk, in their order.
        let mut own: BTreeMap<&ChunkCoord, Vec<u32>> = BTreeMap::new();
        for piece in pieces {
            if let Some(chunk) = old
                .chunk(piece.chunk)
                .filter(|chunk| !stale.contains(*chunk))
            {
                own.entry(chunk).or_default().push(piece.fragment);
            }
        }
        let mut put = |at: u32, fragment: u32, chunk: &ChunkCoord| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            let number = *numbers.entry(chunk.clone()).or_insert(next);
            named.push((
                FragmentReference {
                    object: row,
                    at,
                    fragment,
                },
                number,
            ));
        };
        if !is_ordered {
            for (chunk, fragments) in own {
                for fragment in fragments {
                    put(0, fragment, chunk);
                }
            }
            continue;
        }
        let mut next: BTreeMap<ChunkCoord, usize> = BTreeMap::new();
        for (at, chunk) in visits(build.source, now, index, &build.scale) {
            let turn = next.entry(chunk.clone()).or_default();
            if let Some(fragment) = own.get(&chunk).and_then(|own| own.get(*turn)) {
                put(at, *fragment, &chunk);
            }
            *turn += 1;
        }
    }
    let mut chunk_of: Vec<(u32, ChunkCoord)> = numbers
        .into_iter()
        .map(|(chunk, number)| (number, chunk))
        .collect();
    chunk_of.sort_unstable();
    build.tally.chunk_of = chunk_of.into_iter().map(|(_, chunk)| chunk).collect();
    build.tally.named.extend(named);
}
