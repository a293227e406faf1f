//! Parts of a level as they are stored, for whoever writes them elsewhere.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use zvf_format::numeric::Kind;
use zvf_model::{
    fetch::AnyArray, grid::ChunkCoord, key::Key, layout::Part, level::LevelId, metadata::Attributes,
};

use crate::{
    catalog::chunked_array::ChunkedArray,
    catalog::level::Session,
    error::{Damage, Fault, QueryError},
};

/// A part of a level that has a cell for each chunk, opened.
#[derive(Clone, Debug)]
pub struct StoredArray {
    family: Arc<ChunkedArray>,
    chunks: Vec<ChunkCoord>,
}

/// What the cells of a padded array have room for: which rows are in use, the
/// fragments of the chunk say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaddedRows {
    /// Rows.
    pub rows: u64,
    /// Bytes of a row.
    pub row: u64,
}

impl StoredArray {
    /// The node that describes it.
    pub fn node(&self) -> &Key {
        &self.family.node
    }

    /// What the node says.
    pub fn attributes(&self) -> &Attributes {
        &self.family.attributes
    }

    /// The array that has all cells; `None` where each chunk has one of its own.
    pub fn array(&self) -> Option<&AnyArray> {
        self.family.array()
    }

    /// Chunks that have a cell, ascending. A padded array has one wherever
    /// fragments are.
    pub fn chunks(&self) -> &[ChunkCoord] {
        &self.chunks
    }

    /// Names below its node that are no chunk.
    pub fn unrecognized_children(&self) -> &[String] {
        &self.family.unrecognized_children
    }

    /// What its cells have room for, when it is a padded array.
    pub fn padded(&self) -> Option<PaddedRows> {
        let padded = self.family.padded()?;
        let size = u64::try_from(padded.kind.size()).unwrap_or(u64::MAX);
        Some(PaddedRows {
            rows: padded.rows,
            row: padded.columns.saturating_mul(size),
        })
    }

    /// What the numbers of a padded array are.
    pub fn padded_kind(&self) -> Option<Kind> {
        self.family.padded().map(|padded| padded.kind)
    }
}

impl Session<'_> {
    /// Opens a part that has a cell for each chunk; `None` when there is none. Two
    /// round trips when it is asked for first.
    ///
    /// # Errors
    ///
    /// [`QueryError`] when the level is not there or the part cannot be opened.
    pub fn stored_array<'f>(
        &'f self,
        level: LevelId,
        part: &'f Part<'_>,
    ) -> BoxFuture<'f, Result<Option<StoredArray>, QueryError>> {
        Box::pin(async move {
            let level = self.level(level).await?;
            let Some(family) = self.chunked_array(&level, part).await? else {
                return Ok(None);
            };
            let chunks = if let Some(chunks) = family.chunks() {
                chunks
            } else {
                let fragments = self.chunked_array(&level, &Part::VertexFragments).await?;
                let chunks = fragments.and_then(|fragments| fragments.chunks());
                let chunks = chunks.unwrap_or_default().into_iter();
                chunks.filter(|chunk| family.has(chunk)).collect()
            };
            Ok(Some(StoredArray { family, chunks }))
        })
    }

    /// The payloads of these chunks, in this order: one round trip. Each fails
    /// alone; an element of a padded array that was never written is empty.
    pub fn stored_cells<'f>(
        &'f self,
        part: &'f StoredArray,
        chunks: &'f [ChunkCoord],
    ) -> BoxFuture<'f, Vec<Result<Bytes, Damage>>> {
        Box::pin(async move {
            let family = &part.family;
            let mut wanted = Vec::with_capacity(chunks.len());
            let places = chunks.iter().map(|chunk| {
                wanted.push(family.wanted(chunk, None)?);
                Some(wanted.len().saturating_sub(1))
            });
            let places: Vec<Option<usize>> = places.collect();
            let mut answers = match wanted.is_empty() {
                true => Vec::new(),
                false => self.fetch.cells(&wanted).await,
            };
            let read = chunks.iter().zip(places).map(|(chunk, place)| {
                // Each is asked for once.
                let answer = place.and_then(|place| answers.get_mut(place));
                let answer = answer.map(|answer| core::mem::replace(answer, Ok(None)));
                let fault = match answer {
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
