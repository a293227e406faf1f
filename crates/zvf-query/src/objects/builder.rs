//! Objects out of manifests, within a budget.

use std::collections::HashMap;

use zvf_format::manifest::ObjectManifest;
use zvf_model::grid::ChunkCoord;

use super::{Ids, Objects, Piece};
use crate::error::{Fault, QueryError};

/// Takes manifests in ascending order of rows.
#[derive(Debug)]
pub(super) struct ObjectsBuilder {
    sid_ndim: usize,
    budget: u64,
    /// Bytes held but for pieces.
    held: u64,
    numbers: HashMap<ChunkCoord, u32>,
    /// The coordinates of a block that is looked at.
    coords: Vec<i64>,
    rows: Option<Vec<u64>>,
    starts: Vec<usize>,
    pieces: Vec<Piece>,
    incomplete: bool,
}

/// Bytes of a place: where it starts, in vectors that grow by doubling.
const PLACE: u64 = 16;
/// Bytes of a piece: itself, and its owner.
const PIECE: u64 = 16;
/// Bytes of a chunk apart from its coordinates.
const CHUNK: u64 = 64;

impl ObjectsBuilder {
    /// For all objects, of so many bytes of ids.
    pub(super) fn new(sid_ndim: usize, ids: u64, budget: u64) -> Self {
        Self {
            sid_ndim,
            budget,
            held: ids,
            numbers: HashMap::new(),
            coords: Vec::with_capacity(sid_ndim),
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
        // A range of many fragments takes few bytes: first whether they may be
        // held, then they are.
        let pieces = manifest.iter().map(|block| block.fragments.len());
        let pieces = pieces.fold(self.pieces.len(), usize::saturating_add);
        self.check(pieces)?;
        let mut last = None;
        for block in manifest {
            let number = match last {
                Some(number) if block.chunk.iter().eq(self.coords.iter().copied()) => number,
                _ => {
                    self.coords.clear();
                    self.coords.extend(block.chunk.iter());
                    self.number()?
                }
            };
            last = Some(number);
            let pieces = block.fragments.iter();
            self.pieces.extend(pieces.map(|fragment| Piece {
                chunk: number,
                fragment,
            }));
        }
        Ok(())
    }

    /// The number of the chunk at `coords`.
    fn number(&mut self) -> Result<u32, ManifestFault> {
        if let Some(number) = self.numbers.get(self.coords.as_slice()) {
            return Ok(*number);
        }
        let number = u32::try_from(self.numbers.len());
        let number = number.map_err(|_| ManifestFault::Fault(Fault::Range))?;
        let size = u64::try_from(self.sid_ndim).unwrap_or(u64::MAX);
        let size = size.saturating_mul(8).saturating_add(CHUNK);
        self.held = self.held.saturating_add(size);
        self.check(self.pieces.len())?;
        let chunk = ChunkCoord::new(self.coords.as_slice());
        self.numbers.insert(chunk, number);
        Ok(number)
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
    pub(super) fn finish(self, ids: Ids) -> Objects {
        let mut chunks: Vec<(ChunkCoord, u32)> = self.numbers.into_iter().collect();
        chunks.sort_unstable();
        let in_order = chunks.iter().map(|(_, number)| *number).collect();
        chunks.sort_unstable_by_key(|(_, number)| *number);
        Objects {
            chunks: chunks.into_iter().map(|(chunk, _)| chunk).collect(),
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
