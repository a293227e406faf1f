//! Reads cells of chunked arrays as stored, for tools that rewrite them.

use std::sync::Arc;

use bytes::Bytes;
use zvf_format::numeric::Kind;
use zvf_model::{
    fetch::{AnyArray, BoxFuture},
    grid::ChunkCoord,
    key::Key,
    layout::ArrayRole,
    level::LevelId,
    metadata::Attributes,
};

use crate::{
    catalog::Catalog,
    chunked_array::ChunkedArray,
    error::{CatalogError, Damage, Fault},
};

/// An open array of a level with one cell per chunk.
#[derive(Clone, Debug)]
pub struct StoredArray {
    family: Arc<ChunkedArray>,
    chunks: Vec<ChunkCoord>,
}

/// The capacity of a padded array's cells. The fragments of a chunk tell which rows are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaddedRows {
    /// Number of rows.
    pub rows: u64,
    /// Size of a row in bytes.
    pub row: u64,
}

impl StoredArray {
    /// Returns the node with the array's metadata.
    pub fn node(&self) -> &Key {
        &self.family.node
    }

    /// Returns the attributes of the node.
    pub fn attributes(&self) -> &Attributes {
        &self.family.attributes
    }

    /// Returns the array with all cells; `None` if each chunk has its own.
    pub fn array(&self) -> Option<&AnyArray> {
        self.family.array()
    }

    /// Returns the chunks that have a cell, ascending. A padded array has a cell for each chunk
    /// with fragments.
    pub fn chunks(&self) -> &[ChunkCoord] {
        &self.chunks
    }

    /// Returns the names of children that are not chunks.
    pub fn unrecognized_children(&self) -> &[String] {
        &self.family.unrecognized_children
    }

    /// Returns the capacity of the cells of a padded array; `None` for other arrays.
    pub fn padded(&self) -> Option<PaddedRows> {
        let padded = self.family.padded()?;
        let size = u64::try_from(padded.kind.size()).unwrap_or(u64::MAX);
        Some(PaddedRows {
            rows: padded.rows,
            row: padded.columns.saturating_mul(size),
        })
    }

    /// Returns the kind of the numbers of a padded array; `None` for other arrays.
    pub fn padded_kind(&self) -> Option<Kind> {
        self.family.padded().map(|padded| padded.kind)
    }
}

impl Catalog<'_> {
    /// Opens an array with one cell per chunk; `None` if it does not exist. Takes two round trips
    /// on first use.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if the level does not exist or the array cannot be opened.
    pub fn stored_array<'f>(
        &'f self,
        level: LevelId,
        part: &'f ArrayRole<'_>,
    ) -> BoxFuture<'f, Result<Option<StoredArray>, CatalogError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            let Some(family) = self.chunked_array(&level, part).await? else {
                return Ok(None);
            };
            let chunks = if let Some(chunks) = family.chunks() {
                chunks
            } else {
                let fragments = self
                    .chunked_array(&level, &ArrayRole::VertexFragments)
                    .await?;
                let chunks = fragments
                    .and_then(|fragments| fragments.chunks())
                    .unwrap_or_default()
                    .into_iter();
                chunks.filter(|chunk| family.has(chunk)).collect()
            };
            Ok(Some(StoredArray { family, chunks }))
        })
    }

    /// Reads the payloads of these chunks, in this order, in one round trip. Each fails alone;
    /// links of a padded array that were never written are empty.
    pub fn stored_cells<'f>(
        &'f self,
        part: &'f StoredArray,
        chunks: &'f [ChunkCoord],
    ) -> BoxFuture<'f, Vec<Result<Bytes, Damage>>> {
        Box::pin(async move {
            let family = &part.family;
            let mut wanted = Vec::with_capacity(chunks.len());
            let indices: Vec<Option<usize>> = chunks
                .iter()
                .map(|chunk| {
                    wanted.push(family.cell_request(chunk, None)?);
                    Some(wanted.len().saturating_sub(1))
                })
                .collect();
            let mut results = if wanted.is_empty() {
                Vec::new()
            } else {
                self.fetch.cells(&wanted).await
            };
            let read = chunks.iter().zip(indices).map(|(chunk, index)| {
                // Each chunk is requested once.
                let result = index.and_then(|index| results.get_mut(index));
                let result = result.map(|result| core::mem::replace(result, Ok(None)));
                let fault = match result {
                    Some(Ok(Some(cell))) => return Ok(cell.bytes),
                    Some(Ok(None)) if family.padded().is_some() => return Ok(Bytes::new()),
                    Some(Ok(None)) | None => Fault::MissingCell,
                    Some(Err(error)) => Fault::Fetch(error),
                };
                Err(Damage::in_chunk(&family.node, chunk, fault))
            });
            read.collect()
        })
    }
}
