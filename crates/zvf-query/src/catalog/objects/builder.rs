//! Objects out of manifests, within a budget.

use zvf_format::{int64s::Int64s, manifest::ObjectManifest};
use zvf_model::grid::ChunkCoord;

use super::{ObjectFragment, ObjectIds, Objects, interner::ChunkInterner};
use crate::error::{Fault, QueryError};

/// Takes manifests in ascending order of rows.
#[derive(Debug)]
pub(super) struct ObjectsBuilder {
    sid_ndim: usize,
    budget: u64,
    /// Bytes held but for pieces.
    held: u64,
    numbers: ChunkInterner,
    rows: Option<Vec<u64>>,
    starts: Vec<usize>,
    pieces: Vec<ObjectFragment>,
    incomplete: bool,
}

/// Bytes of a place: where it starts, in vectors that grow by doubling.
const PLACE: u64 = 16;
/// Bytes of a piece: itself, and its owner.
const PIECE: u64 = 16;
/// Bytes of a chunk apart from its coordinates, which are held twice.
const CHUNK: u64 = 64;

impl ObjectsBuilder {
    /// For all objects, of so many bytes of ids.
    pub(super) fn new(sid_ndim: usize, ids: u64, budget: u64) -> Self {
        Self {
            sid_ndim,
            budget,
            held: ids,
            numbers: ChunkInterner::new(),
            rows: None,
            starts: vec![0],
            pieces: Vec::new(),
            incomplete: false,
        }
    }

    /// Some rows only.
    pub(super) fn of_some(mut self) -> Self {
        self.rows = Some(Vec::new());
        self
    }

    /// Adds the manifest of a row. Nothing at all is an empty one.
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

    fn expand(&mut self, manifest: &[u8]) -> Result<(), ManifestFault> {
        let manifest = ObjectManifest::parse(manifest, self.sid_ndim)
            .map_err(|error| ManifestFault::Fault(error.into()))?;
        let mut last = None;
        for block in manifest {
            // A range of many fragments takes few bytes: first whether they may be
            // held, then they are.
            let pieces = self.pieces.len().saturating_add(block.fragments.len());
            self.check(pieces)?;
            let number = match last {
                Some(number) if self.numbers.is(number, block.chunk) => number,
                _ => match self.numbers.find(block.chunk) {
                    Some(number) => number,
                    None => self.number(block.chunk)?,
                },
            };
            last = Some(number);
            let pieces = block.fragments.iter();
            self.pieces.extend(pieces.map(|fragment| ObjectFragment {
                chunk: number,
                fragment,
            }));
        }
        Ok(())
    }

    /// The number of a chunk that did not come before.
    fn number(&mut self, chunk: Int64s<'_>) -> Result<u32, ManifestFault> {
        let size = u64::try_from(self.sid_ndim).unwrap_or(u64::MAX);
        let size = size.saturating_mul(16).saturating_add(CHUNK);
        self.held = self.held.saturating_add(size);
        self.check(self.pieces.len())?;
        let number = self.numbers.add(chunk);
        number.ok_or(ManifestFault::Fault(Fault::Range))
    }

    /// Ends a row that has the pieces since the last one.
    fn end(&mut self, row: u64) -> Result<(), ManifestFault> {
        self.starts.push(self.pieces.len());
        if let Some(rows) = &mut self.rows {
            rows.push(row);
        }
        self.held = self.held.saturating_add(PLACE);
        self.check(self.pieces.len())
    }

    /// Adds a row whose manifest could not be read.
    pub(super) fn push_lost(&mut self, row: u64) -> Result<(), ManifestFault> {
        self.incomplete = true;
        // Pieces in front of the damage are no object.
        self.pieces
            .truncate(self.starts.last().copied().unwrap_or(0));
        self.end(row)
    }

    /// That ids could not be read.
    pub(super) fn incomplete(&mut self) {
        self.incomplete = true;
    }

    fn check(&self, pieces: usize) -> Result<(), ManifestFault> {
        let pieces = u64::try_from(pieces).unwrap_or(u64::MAX);
        let bytes = pieces.saturating_mul(PIECE).saturating_add(self.held);
        if bytes <= self.budget {
            return Ok(());
        }
        Err(ManifestFault::OverBudget(bytes))
    }

    /// The objects; of as many ids as there are rows.
    pub(super) fn finish(self, ids: ObjectIds) -> Objects {
        // There are no more than numbers of 32 bits.
        let numbers = 0..u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        let chunks = self.numbers.into_chunks();
        let mut in_order: Vec<(&ChunkCoord, u32)> = chunks.iter().zip(numbers).collect();
        in_order.sort_unstable();
        let in_order = in_order.into_iter().map(|(_, number)| number).collect();
        Objects {
            chunks,
            in_order,
            ids,
            rows: self.rows,
            starts: self.starts,
            pieces: self.pieces,
            incomplete: self.incomplete,
            owners: std::sync::OnceLock::new(),
            steps: std::sync::OnceLock::new(),
        }
    }

    /// The error of what takes too much.
    pub(super) fn over_budget(&self, bytes: u64) -> QueryError {
        QueryError::OverBudget {
            what: "the objects of the level",
            bytes,
            budget: self.budget,
        }
    }
}

/// Why a manifest was not taken.
#[derive(Debug)]
pub(super) enum ManifestFault {
    Fault(Fault),
    OverBudget(u64),
}
