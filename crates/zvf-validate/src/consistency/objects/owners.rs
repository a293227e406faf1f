//! Owners of fragments, derived from manifests.

use std::collections::{BTreeMap, HashMap};

use zvf_format::{
    manifest::{FragmentRef, ObjectManifest},
    numeric::{ByteOrder, Dtype, Kind, NumericRows, Value},
};
use zvf_model::{
    array::CellAttribute, grid::ChunkCoord, key::Key, layout::ArrayRole, object_ids::Owner,
};

use super::super::{Ids, LevelCounts, chunks::Bits, manifests::Manifests};
use crate::{
    batch::{self, CellPayload},
    chunked_part::{CellStorage, ChunkedPart, open_part},
    context::Context,
    finding::Fix,
    rules::consistency as rules,
    store::LevelScope,
};

/// Maximum number of fragments that ranges may name in total. A range takes few bytes whatever its
/// length, so a hostile store could name each fragment a million times.
const MAX_NAMED_FRAGMENTS: u64 = 1 << 32;
/// No owner. An owner is stored as its row plus one.
const NONE: u32 = 0;
/// Several owners.
const SEVERAL: u32 = u32::MAX;

/// Owners of the fragments of a level.
pub(super) struct Owners<'a> {
    context: &'a Context<'a>,
    key: &'a Key,
    chunks: HashMap<Box<[i64]>, Chunk>,
    /// No manifest and no id may be lost. Otherwise the fragment attribute may be the only record of
    /// owners, so it has no fix.
    pub(super) is_complete: bool,
    /// No chunk could be read, so chunks are not checked.
    unread: bool,
    left: u64,
    shared: Option<(ChunkCoord, u32, u64)>,
    /// Buffer for the coordinates of a block.
    coords: Vec<i64>,
}

/// Owners in one chunk.
struct Chunk {
    /// Number of fragments, or `None` if the index is unreadable.
    fragments: Option<u64>,
    /// Owners by fragment. Empty above the memory budget.
    owners: Vec<u32>,
}

impl<'a> Owners<'a> {
    pub(super) fn new(
        context: &'a Context<'a>,
        manifests: &'a Manifests,
        counts: &LevelCounts,
    ) -> Self {
        let fragments = counts.chunks.values().filter_map(|chunk| chunk.fragments);
        let bytes = fragments.fold(0_u64, u64::saturating_add).saturating_mul(4);
        let budget = context.fetch.budget();
        let fits = bytes <= budget;
        if !fits {
            let message = format!(
                "owners of fragments take {bytes} bytes, which exceeds the memory budget of {budget}"
            );
            context.report(&rules::CELL_NOT_CHECKED, &manifests.key, message);
        }
        let chunk = |fragments: Option<u64>| Chunk {
            fragments,
            owners: match fragments.filter(|_| fits) {
                Some(fragments) => vec![NONE; usize::try_from(fragments).unwrap_or(0)],
                None => Vec::new(),
            },
        };
        let read = counts
            .chunks
            .iter()
            .map(|(key, counts)| (key.coords().into(), chunk(counts.fragments)));
        let lost = counts
            .lost
            .iter()
            .map(|key| (key.coords().into(), chunk(None)));
        Self {
            context,
            key: &manifests.key,
            chunks: read.chain(lost).collect(),
            is_complete: false,
            unread: counts.unread,
            left: MAX_NAMED_FRAGMENTS,
            shared: None,
            coords: Vec::new(),
        }
    }

    /// Adds the fragments of a manifest, and reports missing ones.
    pub(super) fn add(&mut self, row: u64, id: Option<i64>, manifest: &ObjectManifest<'_>) {
        if self.unread {
            return;
        }
        let own = u32::try_from(row).unwrap_or(SEVERAL).saturating_add(1);
        for block in manifest {
            self.coords.clear();
            self.coords.extend(block.chunk.iter());
            let found = |rule, message: String| {
                let object = id.map_or_else(|| format!("row {row}"), |id| format!("object {id}"));
                self.context.report_at(rule, self.key, object, message);
            };
            let name = || ChunkCoord::new(self.coords.as_slice());
            let Some(chunk) = self.chunks.get_mut(self.coords.as_slice()) else {
                if !block.fragments.is_empty() {
                    let message = format!("chunk {}", name());
                    found(&rules::MANIFEST_CHUNK, message);
                }
                continue;
            };
            let Some(fragments) = chunk.fragments else {
                continue;
            };
            let max = match &block.fragments {
                FragmentRef::Single(fragment) => Some(*fragment),
                FragmentRef::Range(range) if range.is_empty() => None,
                FragmentRef::Range(range) => range.end.checked_sub(1),
                FragmentRef::List(list) => list.iter().max(),
            };
            if let Some(max) = max.filter(|max| u64::from(*max) >= fragments) {
                let message = format!("fragment {max} of chunk {}, which has {fragments}", name());
                found(&rules::MANIFEST_FRAGMENT, message);
                continue;
            }
            if let FragmentRef::Range(range) = &block.fragments {
                let named = u64::try_from(range.len()).unwrap_or(u64::MAX);
                let Some(left) = self.left.checked_sub(named) else {
                    if self.left > 0 {
                        self.left = 0;
                        let message = "its ranges name too many fragments to check each";
                        self.context
                            .report(&rules::CELL_NOT_CHECKED, self.key, message);
                    }
                    continue;
                };
                self.left = left;
            }
            for fragment in block.fragments.iter() {
                let owner = usize::try_from(fragment).ok();
                let Some(owner) = owner.and_then(|at| chunk.owners.get_mut(at)) else {
                    continue;
                };
                match *owner {
                    NONE => *owner = own,
                    other if other == own || other == SEVERAL => {}
                    _ => {
                        *owner = SEVERAL;
                        let first = || (name(), fragment, 0);
                        let (_, _, count) = self.shared.get_or_insert_with(first);
                        *count = count.saturating_add(1);
                    }
                }
            }
        }
    }

    /// Returns whether a fragment belongs to several objects.
    pub(super) fn share(&self) -> bool {
        self.shared.is_some()
    }

    pub(super) fn shared_message(&self) -> String {
        self.shared.as_ref().map_or_else(String::new, |shared| {
            let (chunk, fragment, count) = shared;
            format!("{count} fragments, first fragment {fragment} of chunk {chunk}")
        })
    }

    /// Returns the chunks with unowned fragments that have rows: the chunk, its first such
    /// fragment, and their number.
    pub(super) fn unowned(
        &self,
        filled: &BTreeMap<ChunkCoord, Bits>,
    ) -> Vec<(ChunkCoord, usize, u64)> {
        let mut all = Vec::new();
        // Incomplete owners prove nothing.
        if self.unread || self.left == 0 {
            return all;
        }
        for (key, filled) in filled {
            let Some(chunk) = self.chunks.get(key.coords()) else {
                continue;
            };
            let (mut first, mut count) = (None, 0_u64);
            for (number, owner) in chunk.owners.iter().enumerate() {
                if *owner == NONE && filled.get(number) {
                    first.get_or_insert(number);
                    count = count.saturating_add(1);
                }
            }
            all.extend(first.map(|first| (key.clone(), first, count)));
        }
        all
    }

    /// Compares the fragment attribute with the manifests.
    pub(super) async fn compare(
        &self,
        context: &Context<'_>,
        scope: LevelScope<'_>,
        ids: &Ids,
        filled: &BTreeMap<ChunkCoord, Bits>,
    ) {
        if self.unread || self.left == 0 {
            return;
        }
        let aside = context.silent();
        let Some(cells) = open_part(&aside, scope, &ArrayRole::OWNERS) else {
            return;
        };
        let Ok(metadata) = CellAttribute::parse(&cells.key, &cells.attributes) else {
            return;
        };
        let dtype = metadata.value.dtype;
        let each = |key: &ChunkCoord, found: &[CellPayload]| {
            let (Some(chunk), Some(CellPayload::Bytes(bytes))) =
                (self.chunks.get(key.coords()), found.first())
            else {
                return;
            };
            let Ok(rows) = NumericRows::parse(bytes, dtype, core::num::NonZeroU32::MIN) else {
                return;
            };
            if rows.rows() != chunk.owners.len() {
                return;
            }
            let filled = filled.get(key);
            let expected = |number: usize| match chunk.owners.get(number) {
                Some(&SEVERAL) => Some(Owner::SEVERAL),
                // The owner of an empty fragment without owner has no meaning.
                Some(&NONE) => filled?.get(number).then_some(Owner::NONE),
                Some(row) => ids.get(u64::from(row.saturating_sub(1))),
                None => None,
            };
            let mut wrong = (0..rows.rows()).filter_map(|number| {
                let (found, expected) = (id_of(rows.value(number, 0)?)?, expected(number)?);
                (found != expected).then_some((number, found, expected))
            });
            let Some((number, found, right)) = wrong.next() else {
                return;
            };
            let message = format!("fragment {number} has owner {found}, but manifests say {right}");
            let values = (0..rows.rows()).map(|number| {
                let found = rows.value(number, 0).and_then(id_of);
                expected(number).or(found)
            });
            let payload = encoded(values, dtype).filter(|_| self.is_complete);
            let fix = payload
                .zip(element_of(&cells, key))
                .map(|(payload, (array, element))| Fix::Cell {
                    array,
                    element,
                    payload,
                });
            let place = Some(format!("chunk {key}"));
            context.add(&rules::OWNERS, &cells.key, place, message, fix);
        };
        let chunks = cells.chunks();
        batch::each_chunk(&aside, &[&cells], &chunks, each).await;
    }
}

/// Returns an id from its stored bits.
fn id_of(value: Value) -> Option<i64> {
    match value {
        Value::Int(id) => Some(id),
        Value::UInt(id) => Some(id.cast_signed()),
        _ => None,
    }
}

/// Encodes owners, or returns `None` if an id does not fit the type.
fn encoded(values: impl Iterator<Item = Option<i64>>, dtype: Dtype) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    if !matches!(dtype.kind(), Kind::Int64 | Kind::UInt64) {
        return None;
    }
    for value in values {
        let value = value?;
        bytes.extend(match dtype.order() {
            ByteOrder::Big => value.to_be_bytes(),
            ByteOrder::Little => value.to_le_bytes(),
        });
    }
    Some(bytes)
}

/// Returns the array and element of a cell that is stored as an element.
fn element_of(cells: &ChunkedPart, chunk: &ChunkCoord) -> Option<(Key, Vec<u64>)> {
    match &cells.form {
        CellStorage::Elements { grid, .. } => {
            Some((cells.key.clone(), grid.cell_of(chunk.coords()).ok()?))
        }
        CellStorage::Children(_) => Some((cells.key.join(&chunk.to_string()).ok()?, vec![0])),
        CellStorage::Padded { .. } => None,
    }
}
