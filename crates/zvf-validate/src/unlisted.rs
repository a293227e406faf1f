//! Chunks in the shards of arrays that do not list them: a listing of the store does not show them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use zvf_model::{
    array::Presence,
    fetch::{AnyArray, CellRef, CellRequest},
    grid::{ChunkCoord, Grid},
    key::Key,
    zarr::{Array, DataType},
};

use crate::{
    chunked_part::{cell_of_file, grid},
    context::Context,
    tree::StoreTree,
};

/// Maximum number of elements that are looked for in the shards of an array.
const MAX_ELEMENTS: usize = 1 << 22;
/// Number of elements of a request.
const BATCH: usize = 4096;

/// Returns the chunks of each array whose presence is deferred and whose cells are in shards, by the key of
/// the array. An array with too many elements, or that cannot be opened, is left out.
pub(crate) async fn in_shards(
    context: &Context<'_>,
    tree: &StoreTree,
) -> BTreeMap<String, BTreeSet<ChunkCoord>> {
    let mut found = BTreeMap::new();
    for (name, node) in tree.nodes() {
        let array = node.as_array().filter(|array| is_deferred(array));
        let parts = array.and_then(|array| {
            let key = Key::parse(name).ok()?;
            let grid = grid(array, array.rank()).ok()?;
            let elements = elements(tree, &key, array)?;
            let opened = context.fetch.array(&key, Arc::new(array.clone())).ok()?;
            Some((opened, grid, elements))
        });
        if let Some((array, grid, elements)) = parts {
            let chunks = stored(context, &array, &grid, &elements).await;
            found.insert(name.to_owned(), chunks);
        }
    }
    found
}

fn is_deferred(array: &Array) -> bool {
    let is_bytes = matches!(array.data_type, DataType::VariableBytes);
    is_bytes && array.sharding().is_some() && Presence::is_deferred(&array.attributes)
}

/// Returns the elements of all stored shards, unless they are too many.
fn elements(tree: &StoreTree, key: &Key, array: &Array) -> Option<Vec<Vec<u64>>> {
    let mut elements = Vec::new();
    for (file, _) in tree.below(key) {
        if let Some(shard) = cell_of_file(key, array, file) {
            let own = array.elements_of(&shard)?;
            if elements.len().saturating_add(own.len()) > MAX_ELEMENTS {
                return None;
            }
            elements.extend(own);
        }
    }
    Some(elements)
}

/// Returns the chunks of the elements that have a cell.
async fn stored(
    context: &Context<'_>,
    array: &AnyArray,
    grid: &Grid,
    elements: &[Vec<u64>],
) -> BTreeSet<ChunkCoord> {
    let mut chunks = BTreeSet::new();
    for batch in elements.chunks(BATCH) {
        let wanted: Vec<CellRequest> = batch
            .iter()
            .map(|element| CellRequest {
                cell: CellRef::Element(array.clone(), element.clone()),
                part: Some(0..0),
            })
            .collect();
        let cells = context.fetch.cells(&wanted).await;
        let present = batch.iter().zip(cells).filter_map(|(element, cell)| {
            // A cell that cannot be read is stored: the check of its chunk reports it.
            (!matches!(cell, Ok(None))).then(|| grid.chunk_of(element))?
        });
        chunks.extend(present);
    }
    chunks
}
