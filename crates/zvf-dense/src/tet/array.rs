//! Reads of boxes of a dataset.

mod contiguous;

pub use contiguous::Contiguous;

use core::ops::Range;
use std::{borrow::Cow, io, sync::Arc};

use rayon::prelude::*;
use serde_json::{Map, Value};
use zstd::bulk::Decompressor;

use super::{
    TetError, TetFile,
    file::{DatasetInfo, Inner},
    tiles::Tile,
};
use crate::{
    CellPart, ChunkGrid, ChunkVisitor, DenseArray, DenseError, Hyperslab, NumpyDtype, ReadCost,
    array::checked_len,
    hyperslab::product,
    scatter::{ScatterPiece, scatter},
    strided::strides,
};

/// Maximum number of dataset names in an error.
const MAX_LISTED: usize = 8;
/// Maximum memory of a batch in bytes; a single larger tile forms its own batch.
const BATCH_BYTES: u64 = 64 << 20;
/// Maximum number of tiles in a batch.
const BATCH_TILES: usize = 1 << 14;

/// A dataset of a `.tet` file.
#[derive(Clone, Debug)]
pub struct TetArray {
    file: Arc<Inner>,
    id: usize,
    info: DatasetInfo,
}

/// A tile to read.
struct TileRead {
    number: u64,
    tile: Tile,
    /// The byte range to read from the file.
    span: Range<u64>,
    /// Extents of the elements in the decoded bytes.
    extents: Vec<u64>,
    /// The selected part of these elements.
    parts: Vec<CellPart>,
    /// Length of the decoded bytes.
    raw_len: usize,
}

/// A payload in its stored form.
pub(super) struct StoredTile<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    /// Decoded length of the tile.
    pub(super) raw_len: u64,
    pub(super) is_zstd: bool,
}

impl TetFile {
    /// Returns the first dataset with this name.
    ///
    /// # Errors
    ///
    /// [`TetError::NoDataset`] if no dataset has this name.
    pub fn dataset(&self, name: &str) -> Result<TetArray, DenseError> {
        let datasets = self.datasets();
        let id = datasets.iter().position(|dataset| dataset.name == name);
        let array = id.and_then(|id| self.dataset_at(id));
        array.ok_or_else(|| {
            let available = datasets.iter().take(MAX_LISTED);
            let error = TetError::NoDataset {
                name: name.to_owned(),
                available: available.map(|dataset| dataset.name.clone()).collect(),
            };
            DenseError::tet(self.source().name(), error)
        })
    }

    /// Returns dataset `id`.
    pub fn dataset_at(&self, id: usize) -> Option<TetArray> {
        let present = self.inner.datasets.get(id);
        present.map(|info| TetArray::new(Arc::clone(&self.inner), id, info.clone()))
    }
}

impl TetArray {
    pub(super) fn new(file: Arc<Inner>, id: usize, info: DatasetInfo) -> Self {
        Self { file, id, info }
    }

    /// Returns the description of the dataset.
    pub fn info(&self) -> &DatasetInfo {
        &self.info
    }

    fn size(&self) -> u64 {
        self.info.dtype.size()
    }

    fn tet(&self, error: TetError) -> DenseError {
        DenseError::tet(self.file.source.name(), error)
    }

    /// Returns the number of a tile in the grid, its location in the file, and its extents.
    fn tile(&self, parts: &[CellPart]) -> Option<(u64, Tile, Vec<u64>)> {
        let coordinate: Vec<u64> = parts.iter().map(|part| part.cell).collect();
        let number = self.info.grid.chunk_number(&coordinate)?;
        let tile = self.file.tiles.get(self.id, number)?;
        let extents = self.info.grid.chunk_selection(&coordinate).shape();
        Some((number, tile, extents))
    }

    /// Plans the read of a tile from its selected `parts`. Reads of raw tiles are limited to the
    /// selected rows.
    fn wanted(&self, parts: &[CellPart], selection: &Hyperslab) -> Option<TileRead> {
        let (number, tile, extents) = self.tile(parts)?;
        let raw_len = product(extents.iter().copied().chain([self.size()]))?;
        let mut wanted = TileRead {
            number,
            tile,
            span: tile.span(),
            extents,
            parts: parts.to_vec(),
            raw_len: usize::try_from(raw_len).ok()?,
        };
        if !tile.is_zstd {
            let narrowed = narrowed(parts, &wanted.extents, selection, self.size())?;
            let (range, extents, parts) = narrowed;
            wanted.raw_len = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
            wanted.span = shifted(&range, tile.offset)?;
            (wanted.extents, wanted.parts) = (extents, parts);
        }
        Some(wanted)
    }

    /// Reads and decodes a batch: one read of all ranges, then decoding on all threads.
    fn decode_all(&self, batch: &[&TileRead]) -> Result<Vec<Cow<'_, [u8]>>, DenseError> {
        let ranges: Vec<Range<u64>> = batch.iter().map(|wanted| wanted.span.clone()).collect();
        let stored = self.file.source.read_ranges(&ranges)?;
        if batch.iter().all(|wanted| !wanted.tile.is_zstd) {
            return Ok(stored);
        }
        let tiles = batch.par_iter().zip(stored).map_init(
            Decompressor::new,
            |decoder, (wanted, stored)| {
                if wanted.tile.is_zstd {
                    self.decode(decoder, wanted, &stored).map(Cow::Owned)
                } else {
                    Ok(stored)
                }
            },
        );
        tiles.collect()
    }

    fn visit_batch(
        &self,
        batch: &mut Vec<(Hyperslab, TileRead)>,
        visit: &mut ChunkVisitor<'_>,
    ) -> Result<(), DenseError> {
        let wanted: Vec<&TileRead> = batch.iter().map(|(_, wanted)| wanted).collect();
        let decoded = self.decode_all(&wanted)?;
        for ((selection, _), bytes) in batch.iter().zip(&decoded) {
            visit(selection, bytes)?;
        }
        batch.clear();
        Ok(())
    }

    fn flush(
        &self,
        batch: &mut Vec<TileRead>,
        selection: &Hyperslab,
        into: &mut [u8],
    ) -> Result<(), DenseError> {
        let wanted: Vec<&TileRead> = batch.iter().collect();
        let decoded = self.decode_all(&wanted)?;
        let pieces: Vec<ScatterPiece<'_>> = batch
            .iter()
            .zip(&decoded)
            .map(|(wanted, bytes)| ScatterPiece {
                bytes,
                extents: &wanted.extents,
                parts: &wanted.parts,
            })
            .collect();
        let size = usize::try_from(self.size()).unwrap_or(usize::MAX);
        let done = scatter(&pieces, selection, size, into);
        done.ok_or_else(|| self.ended())?;
        batch.clear();
        Ok(())
    }

    /// Creates the error for a tile that does not match the selection. Opening the file and
    /// `byte_len` rule this out.
    fn ended(&self) -> DenseError {
        let name = self.file.source.name();
        DenseError::io(name, io::ErrorKind::UnexpectedEof.into())
    }

    fn decode(
        &self,
        decoder: &mut io::Result<Decompressor<'_>>,
        wanted: &TileRead,
        stored: &[u8],
    ) -> Result<Vec<u8>, DenseError> {
        let fault = |source: io::Error| {
            self.tet(TetError::Decode {
                dataset: self.id,
                coordinate: self.coordinate(wanted.number),
                offset: wanted.tile.offset,
                source,
            })
        };
        let mut bytes = Vec::new();
        let reserved = bytes.try_reserve_exact(wanted.raw_len);
        reserved.map_err(|_| fault(io::ErrorKind::OutOfMemory.into()))?;
        let decoder = decoder
            .as_mut()
            .map_err(|error| fault(error.kind().into()))?;
        // Decodes at most up to the capacity of `bytes`.
        let decoded = decoder.decompress_to_buffer(stored, &mut bytes);
        let found = decoded.map_err(fault)?;
        if found != wanted.raw_len {
            return Err(self.tet(TetError::DecodedLen {
                dataset: self.id,
                coordinate: self.coordinate(wanted.number),
                offset: wanted.tile.offset,
                found,
                expected: wanted.raw_len,
            }));
        }
        Ok(bytes)
    }

    /// Reads the payload of a tile in its stored form.
    pub(super) fn stored(&self, number: u64) -> Result<StoredTile<'_>, DenseError> {
        let tile = self
            .file
            .tiles
            .get(self.id, number)
            .ok_or_else(|| self.ended())?;
        let whole = self.info.grid.chunk_selection(&self.coordinate(number));
        Ok(StoredTile {
            bytes: self.file.source.read(tile.span())?,
            raw_len: whole.byte_len(self.size()).ok_or_else(|| self.ended())?,
            is_zstd: tile.is_zstd,
        })
    }

    /// Reads the stored bytes of a tile and decodes them to check that decoding succeeds.
    pub(super) fn check_tile(
        &self,
        decoder: &mut io::Result<Decompressor<'_>>,
        coordinate: &[u64],
    ) -> Result<Cow<'_, [u8]>, DenseError> {
        let whole = self.info.grid.chunk_selection(coordinate);
        let mut cells = self.info.grid.chunks(&whole);
        let wanted = cells
            .next()
            .and_then(|parts| self.wanted(parts, &whole))
            .ok_or_else(|| self.ended())?;
        let needed = u64::try_from(wanted.raw_len).unwrap_or(u64::MAX);
        let budget = self.scratch();
        if wanted.tile.is_zstd && needed > budget {
            return Err(DenseError::Budget { needed, budget });
        }
        let stored = self.file.source.read(wanted.span.clone())?;
        if wanted.tile.is_zstd {
            self.decode(decoder, &wanted, &stored)?;
        }
        Ok(stored)
    }

    /// Returns the coordinate of a tile by its number.
    pub(super) fn coordinate(&self, number: u64) -> Vec<u64> {
        let counts: Vec<u64> = self.info.grid.chunk_counts().collect();
        let mut rest = number;
        let mut coordinate: Vec<u64> = counts
            .iter()
            .rev()
            .map(|count| {
                let at = rest.checked_rem(*count).unwrap_or(0);
                rest = rest.checked_div(*count).unwrap_or(0);
                at
            })
            .collect();
        coordinate.reverse();
        coordinate
    }
}

impl DenseArray for TetArray {
    fn name(&self) -> &str {
        &self.info.name
    }

    fn dtype(&self) -> &NumpyDtype {
        &self.info.dtype
    }

    fn grid(&self) -> &ChunkGrid {
        &self.info.grid
    }

    fn attributes(&self) -> &Map<String, Value> {
        &self.info.attributes
    }

    fn dimension_names(&self) -> Option<&[String]> {
        self.info.dimension_names()
    }

    fn budget(&self) -> u64 {
        self.file.budget
    }

    /// Returns the budget: files may declare one that is smaller than the scratch memory of other
    /// formats.
    fn scratch(&self) -> u64 {
        self.file.budget
    }

    fn read_plan(&self, selection: &Hyperslab) -> Result<ReadCost, DenseError> {
        let bytes = self.byte_len(selection)?;
        let mut plan = ReadCost {
            bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
            ..ReadCost::default()
        };
        let grid = &self.info.grid;
        let mut cells = grid.chunks(selection);
        let mut coordinate = Vec::new();
        while let Some(parts) = cells.next() {
            coordinate.clear();
            coordinate.extend(parts.iter().map(|part| part.cell));
            let number = grid.chunk_number(&coordinate);
            let tile = number
                .and_then(|number| self.file.tiles.get(self.id, number))
                .ok_or_else(|| self.ended())?;
            plan.chunks = plan.chunks.saturating_add(1);
            plan.bytes_read = plan.bytes_read.saturating_add(tile.stored_len);
        }
        plan.blocks = plan.chunks;
        Ok(plan)
    }

    /// Raw tiles of a source in memory are passed without a copy. Other tiles are decoded in
    /// batches on all threads.
    fn visit_chunks(&self, visit: &mut ChunkVisitor<'_>) -> Result<(), DenseError> {
        let grid = &self.info.grid;
        let whole = Hyperslab::whole(grid.shape());
        let mut cells = grid.chunks(&whole);
        let mut batch: Vec<(Hyperslab, TileRead)> = Vec::new();
        let mut held = 0_u64;
        loop {
            let next = match cells.next() {
                Some(parts) => {
                    let coordinate: Vec<u64> = parts.iter().map(|part| part.cell).collect();
                    let wanted = self.wanted(parts, &whole).ok_or_else(|| self.ended())?;
                    Some((grid.chunk_selection(&coordinate), wanted))
                }
                None => None,
            };
            let needed = next.as_ref().map_or(0, |(_, wanted)| {
                let stored = wanted.span.end.saturating_sub(wanted.span.start);
                stored.saturating_add(u64::try_from(wanted.raw_len).unwrap_or(u64::MAX))
            });
            let is_full = held.saturating_add(needed) > BATCH_BYTES.min(self.scratch())
                || batch.len() >= BATCH_TILES;
            if is_full || next.is_none() {
                self.visit_batch(&mut batch, visit)?;
                held = 0;
            }
            let Some((selection, wanted)) = next else {
                return Ok(());
            };
            let budget = self.scratch();
            let decoded = u64::try_from(wanted.raw_len).unwrap_or(u64::MAX);
            let is_held = wanted.tile.is_zstd || self.file.source.bytes().is_none();
            if is_held && decoded > budget {
                return Err(DenseError::Budget {
                    needed: decoded,
                    budget,
                });
            }
            held = held.saturating_add(needed);
            batch.push((selection, wanted));
        }
    }

    fn slice_into(&self, selection: &Hyperslab, into: &mut [u8]) -> Result<ReadCost, DenseError> {
        checked_len(self, selection, into)?;
        let plan = self.read_plan(selection)?;
        if self.read_contiguous(selection, into)? {
            return Ok(plan);
        }
        let is_borrowed = self.file.source.bytes().is_some();
        let max = BATCH_BYTES.min(self.scratch());
        let mut batch: Vec<TileRead> = Vec::new();
        let mut held = 0_u64;
        let mut cells = self.info.grid.chunks(selection);
        while let Some(parts) = cells.next() {
            let wanted = self.wanted(parts, selection).ok_or_else(|| self.ended())?;
            let stored = wanted.span.end.saturating_sub(wanted.span.start);
            // Bytes that are already in memory do not count.
            let stored = if is_borrowed { 0 } else { stored };
            let decoded = if wanted.tile.is_zstd {
                u64::try_from(wanted.raw_len).unwrap_or(u64::MAX)
            } else {
                0
            };
            let needed = stored.saturating_add(decoded);
            let budget = self.scratch();
            if needed > budget {
                return Err(DenseError::Budget { needed, budget });
            }
            if held.saturating_add(needed) > max || batch.len() >= BATCH_TILES {
                self.flush(&mut batch, selection, into)?;
                held = 0;
            }
            held = held.saturating_add(needed);
            batch.push(wanted);
        }
        self.flush(&mut batch, selection, into)?;
        Ok(plan)
    }
}

/// Returns the byte range of a raw tile from the first to the last selected row, with the extents
/// and parts relative to it. Leading axes are narrowed as long as one element remains along each.
fn narrowed(
    parts: &[CellPart],
    extents: &[u64],
    selection: &Hyperslab,
    size: u64,
) -> Option<(Range<u64>, Vec<u64>, Vec<CellPart>)> {
    let strides = strides(extents, usize::try_from(size).ok()?)?;
    let (mut extents, mut parts) = (extents.to_vec(), parts.to_vec());
    let mut start = 0_u64;
    let axes = parts.iter_mut().zip(&mut extents).zip(selection.axes());
    for (((part, extent), axis), stride) in axes.zip(strides) {
        let last = part.count.checked_sub(1)?.checked_mul(axis.step())?;
        let stride = u64::try_from(stride).ok()?;
        start = start.checked_add(part.offset.checked_mul(stride)?)?;
        part.offset = 0;
        *extent = last.checked_add(1)?;
        if *extent > 1 {
            break;
        }
    }
    let len = product(extents.iter().copied().chain([size]))?;
    Some((start..start.checked_add(len)?, extents, parts))
}

fn shifted(range: &Range<u64>, by: u64) -> Option<Range<u64>> {
    Some(range.start.checked_add(by)?..range.end.checked_add(by)?)
}
