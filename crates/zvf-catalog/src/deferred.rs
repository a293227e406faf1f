//! Chunks of arrays that do not list them: their presence is deferred to the store.

use std::sync::Arc;

use zvf_model::{
    array::Presence,
    fetch::{CellRef, CellRequest, FetchProblem, Port},
    grid::{ChunkCoord, Grid},
    key::Key,
    zarr::Array,
};

use crate::error::{CatalogError, Damage, Fault};

/// Maximum number of elements that are looked for in the shards of an array.
const MAX_ELEMENTS: u64 = 1 << 22;
/// Number of elements of a request.
const BATCH: usize = 4096;

/// Returns the chunks that an array of byte strings lists, or, if it has no list, the stored ones.
///
/// A missing list takes one listing of the array, and the reads of all cells of its shards.
///
/// # Errors
///
/// [`Fault::Unlisted`] if the list is missing and the store cannot be listed, or its shards are too large;
/// other errors if the array or the list is invalid, or a cell cannot be read.
pub async fn presence(
    fetch: Port<'_>,
    key: &Key,
    array: &Array,
    arity: usize,
) -> Result<Presence, CatalogError> {
    let listed = Presence::parse(key, array, arity)?;
    if listed.notes.is_empty() {
        return Ok(listed.value);
    }
    let unlisted = || CatalogError::from(Damage::new(key, Fault::Unlisted));
    let files = match fetch.files(key).await {
        Err(error) if error.problem == FetchProblem::Unlistable => return Err(unlisted()),
        files => files?,
    };
    let objects = files
        .iter()
        .filter_map(|(file, _)| array.chunk_at(key, file));
    let elements: Vec<Vec<u64>> = match array.sharding() {
        None => objects.collect(),
        Some(_) => {
            let mut elements = Vec::new();
            for shard in objects {
                let own = array.elements_of(&shard);
                let count = own.as_ref().and_then(|own| u64::try_from(own.len()).ok());
                let known = u64::try_from(elements.len()).unwrap_or(u64::MAX);
                match (own, count) {
                    (Some(own), Some(count)) if known.saturating_add(count) <= MAX_ELEMENTS => {
                        elements.extend(own);
                    }
                    _ => return Err(unlisted()),
                }
            }
            stored(fetch, key, array, elements).await?
        }
    };
    let grid: &Grid = listed.value.grid();
    let chunks: Vec<ChunkCoord> = elements
        .iter()
        .filter_map(|element| grid.chunk_of(element))
        .collect();
    let mut attributes = array.attributes.clone();
    Presence::set_list(&mut attributes, chunks.iter().map(ChunkCoord::coords));
    let array = array.clone().with_attributes(attributes);
    Ok(Presence::parse(key, &array, arity)?.value)
}

/// Returns the elements that have a cell.
async fn stored(
    fetch: Port<'_>,
    key: &Key,
    array: &Array,
    elements: Vec<Vec<u64>>,
) -> Result<Vec<Vec<u64>>, CatalogError> {
    let opened = fetch.array(key, Arc::new(array.clone()))?;
    let mut stored = Vec::new();
    for batch in elements.chunks(BATCH) {
        let wanted: Vec<CellRequest> = batch
            .iter()
            .map(|element| CellRequest {
                cell: CellRef::Element(opened.clone(), element.clone()),
                part: Some(0..0),
            })
            .collect();
        let cells = fetch.bypass_cache().cells(&wanted).await;
        for (element, cell) in batch.iter().zip(cells) {
            // A cell that cannot be read is stored, and the query that needs it reports it.
            if !matches!(cell, Ok(None)) {
                stored.push(element.clone());
            }
        }
    }
    Ok(stored)
}
