//! Row tables of the fragment indexes in a store, for its inventory.

use std::collections::BTreeMap;

use zvf_dataset::nodes::cell_array;
use zvf_format::{fragment::FragmentIndex, fragment_lengths};
use zvf_model::{
    fetch::{CellRef, CellRequest},
    key::Key,
    layout::VERTEX_FRAGMENTS,
    level::LevelId,
    zarr::{Array, Node},
};
use zvf_store::{CellReader, RowTable, Store};

/// Number of cells that are read at once.
const BATCH: usize = 1024;

/// Reads the fragment indexes of all levels and returns their row tables. Indexes that cannot be read have
/// none: readers then read the index itself.
pub(crate) async fn row_tables(store: &Store) -> Vec<RowTable> {
    let cells = CellReader::new(store.without_seal());
    let children = cells.port().children(&Key::root()).await;
    let mut tables = Vec::new();
    for level in children.unwrap_or_default() {
        let Ok(node) = Key::parse(&format!("{level}/{VERTEX_FRAGMENTS}")) else {
            continue;
        };
        if LevelId::parse(&level).is_none() {
            continue;
        }
        let nodes = cells.port().nodes(core::slice::from_ref(&node)).await;
        if let Some(Node::Array(array)) = nodes.unwrap_or_default().pop().flatten() {
            tables.extend(tables_of(&cells, &node, array).await.unwrap_or_default());
        }
    }
    tables
}

/// Returns the row tables of an array of fragment indexes.
async fn tables_of(cells: &CellReader, node: &Key, array: Array) -> Option<Vec<RowTable>> {
    let port = cells.port().bypass_cache();
    let listed = zvf_catalog::presence(port, node, &array, array.rank());
    let presence = listed.await.ok()?;
    let located = cell_array(node, array.clone()).ok()?;
    let opened = port.array(node, array.into()).ok()?;
    let chunks = presence.chunks_where(&zvf_catalog::EVERYWHERE, |_| true);
    let mut tables: BTreeMap<Key, RowTable> = BTreeMap::new();
    for chunks in chunks.chunks(BATCH) {
        let index = |chunk: &_| presence.grid().cell_of(chunk).ok();
        let elements = chunks.iter().filter_map(|chunk| index(chunk.coords()));
        let indices: Vec<Vec<u64>> = elements.collect();
        let wanted = indices.iter().map(|index| CellRequest {
            cell: CellRef::Element(opened.clone(), index.clone()),
            part: None,
        });
        let read = port.cells(&wanted.collect::<Vec<_>>()).await;
        for (index, cell) in indices.iter().zip(read) {
            let Ok(Some(cell)) = cell else {
                continue;
            };
            let Ok(index_of_cell) = FragmentIndex::parse(&cell.bytes) else {
                continue;
            };
            let lengths = fragment_lengths::encode(&index_of_cell);
            if let (Some(lengths), Ok((object, number))) = (lengths, located.locate(index)) {
                let entry = tables.entry(object.clone());
                let table = entry.or_insert_with(|| RowTable::new(object));
                table.push(number, &lengths);
            }
        }
    }
    Some(tables.into_values().collect())
}
