//! Decodes manifests into [`ObjectSet`] within a memory budget.

use zvf_format::{
    int64s::Int64s,
    manifest::{FragmentRef, ManifestError, ObjectManifest},
};
use zvf_model::grid::ChunkCoord;

use super::{ObjectFragment, ObjectIdTable, ObjectSet, interner::ChunkInterner};
use crate::error::{CatalogError, Fault};

/// Builds a list of objects from manifests in ascending order of rows.
#[derive(Debug)]
pub(super) struct ObjectsBuilder {
    sid_ndim: usize,
    budget: u64,
    /// Bytes allocated, without fragments.
    loaded: u64,
    numbers: ChunkInterner,
    rows: Option<Vec<u64>>,
    starts: Vec<usize>,
    fragments: Vec<ObjectFragment>,
    incomplete: bool,
}

/// Upper bound on the fragments of a block that are decoded before the blocks after it are checked.
const UNCHECKED_FRAGMENTS: usize = 1 << 10;
/// Bytes per object: its start, in vectors that grow by doubling.
const BYTES_PER_OBJECT: u64 = 16;
/// Bytes per fragment: the fragment and its owner.
const BYTES_PER_FRAGMENT: u64 = 16;
/// Bytes per chunk, without its coordinates, which are stored three times.
const BYTES_PER_CHUNK: u64 = 64;

impl ObjectsBuilder {
    /// Creates a builder for all objects. `id_bytes` is the size of their ids.
    pub(super) fn new(sid_ndim: usize, id_bytes: u64, budget: u64) -> Self {
        Self {
            sid_ndim,
            budget,
            loaded: id_bytes,
            numbers: ChunkInterner::new(),
            rows: None,
            starts: vec![0],
            fragments: Vec::new(),
            incomplete: false,
        }
    }

    /// Records the row of each object, for a builder of some objects only.
    pub(super) fn with_rows(mut self) -> Self {
        self.rows = Some(Vec::new());
        self
    }

    /// Adds the manifest of a row. Empty bytes are an empty manifest.
    pub(super) fn push(&mut self, row: u64, manifest: &[u8]) -> Result<(), ManifestFault> {
        if !manifest.is_empty() {
            self.expand(manifest).map_err(|fault| match fault {
                ManifestFault::Fault(fault) => ManifestFault::Fault(Fault::Row {
                    row,
                    source: Box::new(fault),
                }),
                other @ ManifestFault::OverBudget(_) => other,
            })?;
        }
        self.end(row)
    }

    /// Adds an object whose fragments are rows of a dense index: the coordinates of a chunk and the
    /// fragment, as 64-bit integers.
    pub(super) fn push_blocks(&mut self, row: u64, blocks: &[u8]) -> Result<(), ManifestFault> {
        let (known, loaded) = (self.numbers.len(), self.loaded);
        let pushed = self.push_each_block(row, blocks);
        if pushed.is_err() {
            // Chunks that only a damaged manifest names are not chunks of objects.
            self.numbers.truncate(known);
            self.loaded = loaded;
        }
        pushed?;
        self.end(row)
    }

    fn push_each_block(&mut self, row: u64, blocks: &[u8]) -> Result<(), ManifestFault> {
        let size = self.sid_ndim.saturating_add(1).saturating_mul(8);
        let mut last = None;
        for block in blocks.chunks(size) {
            self.check(self.fragments.len().saturating_add(1))?;
            let fault = |fault| {
                ManifestFault::Fault(Fault::Row {
                    row,
                    source: Box::new(fault),
                })
            };
            let (chunk, fragment) = block
                .split_last_chunk::<8>()
                .ok_or_else(|| fault(Fault::Range))?;
            let chunk = Int64s::parse(chunk).map_err(|error| fault(error.into()))?;
            let fragment =
                u32::try_from(i64::from_le_bytes(*fragment)).map_err(|_| fault(Fault::Range))?;
            let number = match self.numbers.find_after(last, chunk) {
                Some(number) => number,
                None => self.number(chunk)?,
            };
            last = Some(number);
            self.fragments.push(ObjectFragment {
                chunk: number,
                fragment,
            });
        }
        Ok(())
    }

    fn expand(&mut self, manifest: &[u8]) -> Result<(), ManifestFault> {
        let (known, loaded) = (self.numbers.len(), self.loaded);
        let expanded = self.expand_blocks(manifest);
        if expanded.is_err() {
            // Chunks that only a damaged manifest names are not chunks of objects.
            self.numbers.truncate(known);
            self.loaded = loaded;
        }
        if let Err(ManifestFault::OverBudget(_)) = &expanded {
            // Damage after the block that exceeds the budget comes first.
            ObjectManifest::parse(manifest, self.sid_ndim)
                .map_err(|error| ManifestFault::Fault(error.into()))?;
        }
        expanded
    }

    /// Appends the fragments of a manifest, up to the first fault.
    fn expand_blocks(&mut self, manifest: &[u8]) -> Result<(), ManifestFault> {
        let fault = |error: ManifestError| ManifestFault::Fault(error.into());
        let blocks = ObjectManifest::checked(manifest, self.sid_ndim).map_err(fault)?;
        let (mut last, mut is_checked) = (None, false);
        for block in blocks {
            let block = block.map_err(fault)?;
            // Many damaged manifests could each cost a long range before their damage is found.
            if !is_checked && block.fragments.len() > UNCHECKED_FRAGMENTS {
                ObjectManifest::parse(manifest, self.sid_ndim).map_err(fault)?;
                is_checked = true;
            }
            // A few bytes may encode a long range of fragments, so the budget is checked before
            // the fragments are allocated.
            let pieces = self.fragments.len().saturating_add(block.fragments.len());
            self.check(pieces)?;
            let number = match self.numbers.find_after(last, block.chunk) {
                Some(number) => number,
                None => self.number(block.chunk)?,
            };
            last = Some(number);
            let piece = |fragment| ObjectFragment {
                chunk: number,
                fragment,
            };
            match block.fragments {
                FragmentRef::Single(fragment) => self.fragments.push(piece(fragment)),
                fragments => self.fragments.extend(fragments.iter().map(piece)),
            }
        }
        Ok(())
    }

    /// Assigns a number to a new chunk.
    fn number(&mut self, chunk: Int64s<'_>) -> Result<u32, ManifestFault> {
        self.loaded = self.loaded.saturating_add(self.bytes_of_chunk());
        self.check(self.fragments.len())?;
        let number = self.numbers.add(chunk);
        number.ok_or(ManifestFault::Fault(Fault::Range))
    }

    /// Ends an object with the fragments added since the previous one.
    fn end(&mut self, row: u64) -> Result<(), ManifestFault> {
        self.starts.push(self.fragments.len());
        if let Some(rows) = &mut self.rows {
            rows.push(row);
        }
        self.loaded = self.loaded.saturating_add(BYTES_PER_OBJECT);
        self.check(self.fragments.len())
    }

    /// Creates a builder for the next rows, to be filled on another core and
    /// [appended](Self::append). `parts` is the number of such builders at a time, which share the
    /// budget.
    pub(super) fn part(&self, parts: usize) -> Self {
        let left = self
            .budget
            .saturating_sub(Self::bytes_of(self.loaded, self.fragments.len()));
        let parts = u64::try_from(parts).unwrap_or(u64::MAX).max(1);
        Self::new(self.sid_ndim, 0, left.div_euclid(parts))
    }

    /// Returns the number of fragments.
    pub(super) fn fragments(&self) -> usize {
        self.fragments.len()
    }

    /// Reserves memory for more fragments that are in memory already.
    pub(super) fn reserve(&mut self, more: usize) {
        self.fragments.reserve(more);
        zvf_pages::prefer_large(&mut self.fragments);
    }

    /// Appends the objects of a [part](Self::part) and returns `true`, unless they may exceed the
    /// budget.
    pub(super) fn append(&mut self, part: Self) -> bool {
        let loaded = self.loaded.saturating_add(part.loaded);
        let pieces = self.fragments.len().saturating_add(part.fragments.len());
        if Self::bytes_of(loaded, pieces) > self.budget {
            return false;
        }
        self.loaded = loaded;
        let known = self.numbers.len();
        let chunks = part.numbers.into_chunks();
        let all = chunks.len();
        let numbers = chunks.into_iter().map(|chunk| self.numbers.intern(chunk));
        let Some(numbers) = numbers.collect::<Option<Vec<u32>>>() else {
            return false;
        };
        // Chunks that both know are held once.
        let new = self.numbers.len().saturating_sub(known);
        let shared = u64::try_from(all.saturating_sub(new)).unwrap_or(u64::MAX);
        let twice = shared.saturating_mul(self.bytes_of_chunk());
        self.loaded = self.loaded.saturating_sub(twice);
        let before = self.fragments.len();
        let starts = part.starts.iter().skip(1);
        self.starts
            .extend(starts.map(|start| start.saturating_add(before)));
        let number = |number: u32| {
            let number = usize::try_from(number).ok();
            let number = number.and_then(|number| numbers.get(number));
            number.copied().unwrap_or_default()
        };
        let fragments = part.fragments.iter().map(|piece| ObjectFragment {
            chunk: number(piece.chunk),
            ..*piece
        });
        self.fragments.extend(fragments);
        true
    }

    /// Adds a row whose manifest could not be read.
    pub(super) fn push_unreadable(&mut self, row: u64) -> Result<(), ManifestFault> {
        self.incomplete = true;
        // Fragments before the damage are not a complete object.
        self.fragments
            .truncate(self.starts.last().copied().unwrap_or(0));
        self.end(row)
    }

    /// Marks the list as incomplete because ids could not be read.
    pub(super) fn mark_incomplete(&mut self) {
        self.incomplete = true;
    }

    fn bytes_of_chunk(&self) -> u64 {
        let size = u64::try_from(self.sid_ndim).unwrap_or(u64::MAX);
        size.saturating_mul(24).saturating_add(BYTES_PER_CHUNK)
    }

    fn bytes_of(loaded: u64, pieces: usize) -> u64 {
        let pieces = u64::try_from(pieces).unwrap_or(u64::MAX);
        pieces
            .saturating_mul(BYTES_PER_FRAGMENT)
            .saturating_add(loaded)
    }

    fn check(&self, pieces: usize) -> Result<(), ManifestFault> {
        let bytes = Self::bytes_of(self.loaded, pieces);
        if bytes <= self.budget {
            return Ok(());
        }
        Err(ManifestFault::OverBudget(bytes))
    }

    /// Returns the objects. `ids` has one id per row.
    pub(super) fn finish(self, ids: ObjectIdTable) -> ObjectSet {
        // Chunk numbers have 32 bits, so the count fits.
        let numbers = 0..u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        let chunks = self.numbers.into_chunks();
        let mut in_order: Vec<(&ChunkCoord, u32)> = chunks.iter().zip(numbers).collect();
        in_order.sort_unstable();
        let in_order = in_order.into_iter().map(|(_, number)| number).collect();
        ObjectSet {
            chunks,
            in_order,
            ids,
            rows: self.rows,
            starts: self.starts,
            fragments: self.fragments,
            incomplete: self.incomplete,
            owners: std::sync::OnceLock::new(),
            transitions: std::sync::OnceLock::new(),
        }
    }

    /// Returns the error for exceeding the memory budget.
    pub(super) fn over_budget(&self, bytes: u64) -> CatalogError {
        CatalogError::OverBudget {
            what: "the objects of the level",
            bytes,
            budget: self.budget,
        }
    }
}

/// Error of adding a manifest.
#[derive(Debug)]
pub(super) enum ManifestFault {
    Fault(Fault),
    OverBudget(u64),
}
