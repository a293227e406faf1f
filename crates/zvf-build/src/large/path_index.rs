//! Encoding of the object index from the log of paths.

use core::mem;

use zvf_format::manifest::ObjectManifestBuilder;

use crate::{
    error::BuildError,
    large::{path_log::PathReplay, piece::damaged},
    output::Output,
    plan::LoggedObjects,
    tables::{EncodedRows, framed, rows_at_once},
};
use zvf_model::{
    key::Key,
    layout::{ArrayRole, LevelKeys},
};

/// Encoder of the cells of manifests, ids and attributes of objects whose paths are in a log.
///
/// [`push`](Self::push) takes the log in blocks of any size. It holds the cells that are not
/// complete.
#[derive(Debug)]
pub struct PathIndex {
    replay: PathReplay,
    /// Chunks by number.
    chunks: Vec<Vec<i64>>,
    axes: usize,
    /// The start of a record whose end is in the next block.
    left: Vec<u8>,
    manifests: ManifestCells,
    ids: RowCells,
    columns: Vec<RowCells>,
    /// Objects that were not read.
    missing: usize,
}

/// Manifests of the next cell.
#[derive(Debug)]
struct ManifestCells {
    array: Key,
    manifests: Vec<Vec<u8>>,
    /// Number of manifests in a cell.
    per_cell: usize,
    cells: u64,
}

impl ManifestCells {
    fn push(&mut self, manifest: Vec<u8>, out: &mut Vec<Output>) -> Result<(), BuildError> {
        self.manifests.push(manifest);
        if self.manifests.len() == self.per_cell {
            self.flush(out)
        } else {
            Ok(())
        }
    }

    fn flush(&mut self, out: &mut Vec<Output>) -> Result<(), BuildError> {
        if !self.manifests.is_empty() {
            let payload = framed(&self.array, self.cells, &self.manifests, self.per_cell)?;
            out.push(Output::Cell {
                array: self.array.clone(),
                index: vec![self.cells],
                payload,
            });
            self.manifests.clear();
            self.cells += 1;
        }
        Ok(())
    }
}

/// Rows of the next cell of a table.
#[derive(Debug)]
struct RowCells {
    array: Key,
    rows: EncodedRows<'static>,
    /// Number of rows in a cell.
    per_cell: usize,
    bytes: Vec<u8>,
    cells: usize,
}

impl RowCells {
    fn new(array: Key, rows: EncodedRows<'static>, count: usize) -> Self {
        Self {
            array,
            rows,
            per_cell: rows_at_once(count),
            bytes: Vec::new(),
            cells: 0,
        }
    }

    fn push(&mut self, row: &[u8], out: &mut Vec<Output>) {
        self.bytes.extend_from_slice(row);
        if self.bytes.len() >= self.per_cell * self.rows.row_size() {
            self.flush(out);
        }
    }

    fn flush(&mut self, out: &mut Vec<Output>) {
        if !self.bytes.is_empty() {
            let bytes = mem::take(&mut self.bytes);
            out.push(
                self.rows
                    .cell(&self.array, self.cells, bytes, self.per_cell),
            );
            self.cells += 1;
        }
    }
}

impl PathIndex {
    pub(super) fn new(
        objects: &LoggedObjects,
        keys: LevelKeys,
        chunks: Vec<Vec<i64>>,
        axes: usize,
    ) -> Result<Self, BuildError> {
        let columns: Vec<RowCells> = objects
            .columns
            .iter()
            .map(|column| {
                let key = keys.values(&ArrayRole::ObjectAttribute(&column.name))?;
                Ok(RowCells::new(key, column.rows(), objects.count))
            })
            .collect::<Result<_, BuildError>>()?;
        let size = columns.iter().map(|column| column.rows.row_size()).sum();
        let ids = EncodedRows::ids(&[]);
        let ids_key = keys.values(&ArrayRole::ObjectIds)?;
        Ok(Self {
            replay: PathReplay::new(size, chunks.len()),
            chunks,
            axes,
            left: Vec::new(),
            manifests: ManifestCells {
                array: keys.values(&ArrayRole::Manifests)?,
                manifests: Vec::new(),
                per_cell: objects.manifests,
                cells: 0,
            },
            ids: RowCells::new(ids_key, ids, objects.count),
            columns,
            missing: objects.count,
        })
    }

    /// Reads the next block of the log. Returns the cells that it completes.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the log is damaged, or a cell is more than the format can hold.
    pub fn push(&mut self, block: &[u8]) -> Result<Vec<Output>, BuildError> {
        let mut out = Vec::new();
        let mut bytes = mem::take(&mut self.left);
        bytes.extend_from_slice(block);
        let mut rest = bytes.as_slice();
        while let Some(path) = self.replay.next(&mut rest)? {
            self.missing = self.missing.checked_sub(1).ok_or_else(damaged)?;
            let mut manifest = ObjectManifestBuilder::new(self.axes);
            for (chunk, fragment) in path.runs {
                let coords = &self.chunks[*chunk as usize];
                let pushed = manifest.push_single(coords, *fragment);
                pushed.map_err(|_| BuildError::CellSize {
                    chunk: path.id.to_string(),
                    array: self.manifests.array.to_string(),
                    bytes: u64::MAX,
                })?;
            }
            self.manifests.push(manifest.finish(), &mut out)?;
            self.ids.push(&path.id.to_le_bytes(), &mut out);
            let mut row = path.row;
            for column in &mut self.columns {
                let (own, after) = row.split_at(column.rows.row_size());
                column.push(own, &mut out);
                row = after;
            }
        }
        self.left = rest.to_vec();
        Ok(out)
    }

    /// Returns the last cells, after the whole log.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the log lacks paths, or a cell is more than the format can hold.
    pub fn finish(mut self) -> Result<Vec<Output>, BuildError> {
        if self.missing > 0 || !self.left.is_empty() {
            return Err(damaged());
        }
        let mut out = Vec::new();
        self.manifests.flush(&mut out)?;
        self.ids.flush(&mut out);
        for column in &mut self.columns {
            column.flush(&mut out);
        }
        Ok(out)
    }
}
