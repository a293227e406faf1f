//! Attributes of vertices, fragments and objects from tables.

use std::{
    borrow::Cow,
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use zvf_build::{
    BuildError, Column, Profile,
    edit::{EditError, StoredValues},
};
use zvf_catalog::{CatalogError, Damage, Fault, Scope, StoredArray};
use zvf_dataset::{Dataset, Failure, StateError, base, nodes};
use zvf_format::{
    fragment::Rows,
    numeric::{Dtype, Kind, columns_of},
};
use zvf_model::{
    array::CellAttribute, error_kind::ErrorKind, grid::ChunkCoord, layout::FRAGMENT_OWNERS,
    level::LevelId, row_id::RowId,
};
use zvf_store::{Store, Transaction};

use super::{
    AttributeReport, AttributeSpec, BATCH_CELLS, Batch, counted, finish, fragment_index,
    fragment_indexes,
    object_table::{self, OldRows},
    raw_vertices, root,
    row_values::RowValues,
    unchanged_levels,
    vertex::{Values, VertexTarget},
};

/// Options for writing attributes from a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableOptions {
    /// Replaces existing attributes of other types, whose other values are lost.
    pub replace: bool,
    /// The transaction to which addresses of vertices belong; not checked if `None`.
    pub transaction: Option<u64>,
}

impl TableOptions {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    zvf_model::setters! {
        replace: bool,
        transaction: u64,
    }
}

/// Keys of the rows of a table.
pub(crate) enum TableKeys<'t> {
    /// Addresses of vertices.
    Rows(&'t [u64]),
    /// Addresses of vertices, for attributes of their fragments.
    Fragments(&'t [u64]),
    /// Ids of objects.
    Objects(&'t [i64]),
}

/// Writes attributes from a table in one transaction.
pub(crate) async fn write(
    store: &Store,
    keys: TableKeys<'_>,
    columns: &[Column],
    options: &TableOptions,
) -> Result<AttributeReport, Failure> {
    let mut transaction = store.begin().await?;
    let staged = async {
        let found = transaction.base();
        if let Some(expected) = options.transaction.filter(|expected| *expected != found) {
            return Err(Failure::State(StateError::OutdatedRows { expected, found }));
        }
        let dataset = base::open(store.clone()).await?;
        match keys {
            TableKeys::Rows(rows) => {
                vertices(&dataset, &mut transaction, rows, columns, options).await
            }
            TableKeys::Fragments(rows) => {
                fragments(&dataset, &mut transaction, rows, columns, options).await
            }
            TableKeys::Objects(ids) => {
                check_lengths(columns, ids.len())?;
                let old = if options.replace {
                    OldRows::OfEqualType
                } else {
                    OldRows::Kept
                };
                let bytes = object_table::stage(&dataset, &mut transaction, ids, columns, old);
                let written = AttributeReport {
                    objects: ids.len() as u64,
                    bytes: bytes.await?,
                    ..AttributeReport::default()
                };
                Ok((unchanged_levels(&dataset, &mut transaction)?, written))
            }
        }
    };
    let staged = staged.await;
    finish(store, transaction, staged).await
}

fn check_lengths(columns: &[Column], keys: usize) -> Result<(), Failure> {
    match columns.iter().find(|column| column.len() != keys) {
        None => Ok(()),
        Some(column) => Err(Failure::Attribute {
            name: column.name.clone(),
            why: "it does not have one row for each key",
        }),
    }
}

async fn vertices(
    dataset: &Dataset,
    transaction: &mut Transaction,
    rows: &[u64],
    columns: &[Column],
    options: &TableOptions,
) -> Result<(Bytes, AttributeReport), Failure> {
    let rows = keyed(rows, columns)?;
    let scope = Scope::Vertex;
    cells(dataset, transaction, scope, rows, columns, options).await
}

async fn fragments(
    dataset: &Dataset,
    transaction: &mut Transaction,
    rows: &[u64],
    columns: &[Column],
    options: &TableOptions,
) -> Result<(Bytes, AttributeReport), Failure> {
    if columns.iter().any(|column| column.name == FRAGMENT_OWNERS) {
        return Err(Failure::Attribute {
            name: FRAGMENT_OWNERS.to_owned(),
            why: "the owners of fragments follow from the objects",
        });
    }
    let keyed = fragments_of(dataset, &keyed(rows, columns)?, columns).await?;
    let scope = Scope::Fragment;
    cells(dataset, transaction, scope, keyed, columns, options).await
}

/// Returns the addresses, ascending, with rows of the columns.
fn keyed(rows: &[u64], columns: &[Column]) -> Result<Vec<(RowId, usize)>, Failure> {
    check_lengths(columns, rows.len())?;
    let mut keyed: Vec<(RowId, usize)> = rows.iter().copied().map(RowId::from).zip(0..).collect();
    keyed.sort_unstable();
    if keyed.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(Failure::Attribute {
            name: "row_id".to_owned(),
            why: "a row id occurs twice",
        });
    }
    Ok(keyed)
}

/// Returns the fragments that contain vertices, as addresses of chunks and fragments, ascending, with
/// rows of the columns. Reads the fragment indexes of the chunks of the vertices.
async fn fragments_of(
    dataset: &Dataset,
    vertices: &[(RowId, usize)],
    columns: &[Column],
) -> Result<Vec<(RowId, usize)>, Failure> {
    let indexes = fragment_indexes(dataset).await?;
    let chunks = indexes.chunks();
    let unknown = |id: RowId| EditError::UnknownRow {
        chunk: format!("number {}", id.chunk()),
        row: id.row(),
    };
    let by_chunk = vertices.chunk_by(|one, next| one.0.chunk() == next.0.chunk());
    let mut own = Vec::new();
    for rows in by_chunk {
        let Some((id, _)) = rows.first() else {
            continue;
        };
        let rank = usize::try_from(id.chunk()).unwrap_or(usize::MAX);
        let chunk = chunks.get(rank).ok_or_else(|| unknown(*id))?;
        own.push((rank, chunk.clone(), rows));
    }
    let mut found = Vec::new();
    for some in own.chunks(BATCH_CELLS) {
        let named: Vec<ChunkCoord> = some.iter().map(|(_, chunk, _)| chunk.clone()).collect();
        let cells = dataset.catalog().stored_cells(&indexes, &named).await;
        for ((rank, chunk, rows), cell) in some.iter().zip(cells) {
            let cell = cell.map_err(CatalogError::from)?;
            let index = fragment_index(chunk, &cell)?;
            let mut seen = HashSet::new();
            for (number, fragment) in (0_u32..).zip(index.iter()) {
                let own = rows_of(&fragment, rows);
                let Some((named, first)) = own.first() else {
                    continue;
                };
                for column in columns {
                    let is_equal = |(_, row): &(RowId, usize)| column.rows_are_equal(*row, *first);
                    if !own.iter().all(is_equal) {
                        return Err(Failure::from(EditError::Build(
                            BuildError::FragmentValues {
                                name: column.name.clone(),
                                chunk: chunk.to_string(),
                                fragment: number,
                            },
                        )));
                    }
                }
                let id = RowId::new(*rank, number.into()).ok_or_else(|| unknown(*named))?;
                found.push((id, *first));
                seen.extend(own.iter().map(|(id, _)| id.row()));
            }
            if let Some((id, _)) = rows.iter().find(|(id, _)| !seen.contains(&id.row())) {
                return Err(unknown(*id).into());
            }
        }
    }
    Ok(found)
}

/// Returns those of some rows, ascending, that belong to a fragment. Takes no longer for a long range,
/// whose length is not trusted.
fn rows_of<'r>(fragment: &Rows<'_>, rows: &'r [(RowId, usize)]) -> Cow<'r, [(RowId, usize)]> {
    match fragment {
        Rows::Range(range) => {
            let before = |end: u64| rows.partition_point(|(id, _)| id.row() < end);
            Cow::Borrowed(
                rows.get(before(range.start)..before(range.end))
                    .unwrap_or(&[]),
            )
        }
        Rows::List(list) => {
            let at = |row: u64| rows.binary_search_by_key(&row, |(id, _)| id.row()).ok();
            list.iter()
                .filter_map(|row| rows.get(at(row)?).copied())
                .collect()
        }
    }
}

/// Writes attributes of vertices or fragments.
async fn cells(
    dataset: &Dataset,
    transaction: &mut Transaction,
    scope: Scope,
    keyed: Vec<(RowId, usize)>,
    columns: &[Column],
    options: &TableOptions,
) -> Result<(Bytes, AttributeReport), Failure> {
    let keyed = Arc::new(keyed);
    let mut written = AttributeReport::default();
    let mut chunks: Arc<[ChunkCoord]> = Arc::default();
    for column in columns {
        let mut spec = AttributeSpec::new(column.name.clone(), Kind::UInt8);
        spec.overwrite = true;
        let (vertices, dtype) = raw_vertices(dataset, &spec).await?;
        let part = counted(dataset, scope, vertices).await?;
        chunks = part.chunks().into();
        if let Some((id, _)) = keyed.last()
            && id.chunk() >= chunks.len() as u64
        {
            return Err(Failure::from(EditError::UnknownRow {
                chunk: format!("number {}", id.chunk()),
                row: id.row(),
            }));
        }
        let (old, values) = match like_stored(dataset, scope, &part, dtype, column).await {
            Err(Failure::Edit(_)) if options.replace => (None, None),
            like => like?,
        };
        let values = match values {
            Some(values) => values,
            None => new_values(dataset, scope, column, keyed.len()).await?,
        };
        spec.kind = values.numbers.kind;
        let width = u64::from(values.numbers.width);
        let attributes = values.attributes.clone();
        // The rows of an attribute that remains keep their shape, which may have several axes.
        let shape = values.metadata.row_shape.clone();
        let shape = shape.filter(|shape| old.is_some() && shape.iter().product::<u64>() == width);
        spec.row_shape =
            shape.unwrap_or_else(|| (width > 1).then_some(width).into_iter().collect());
        let source = Arc::new(RowValues {
            name: column.name.clone(),
            scope,
            rows: Arc::clone(&keyed),
            chunks: Arc::clone(&chunks),
            values,
            old,
            missing: AtomicU64::new(0),
        });
        let target = VertexTarget::of_scope(dataset, &spec, attributes, scope).await?;
        let values = Values::Rows(Arc::clone(&source));
        let one = target.stage(transaction, &values).await?;
        let missing = source.missing.load(Ordering::Relaxed);
        if missing > 0 {
            return Err(Failure::from(EditError::MissingRows {
                name: column.name.clone(),
                rows: missing,
            }));
        }
        written.vertices = one.vertices;
        written.chunks = one.chunks;
        written.batches += one.batches;
        written.bytes += one.bytes;
    }
    Ok((root(dataset, transaction, &chunks).await?, written))
}

/// Returns the array of an existing attribute of this name, and the values in its type; neither if
/// there is none.
async fn like_stored(
    dataset: &Dataset,
    scope: Scope,
    counted: &StoredArray,
    positions: Dtype,
    column: &Column,
) -> Result<(Option<StoredArray>, Option<StoredValues>), Failure> {
    let role = scope.array(&column.name);
    let key = nodes::place(Profile::V09.keys(LevelId::FULL).node(&role))?;
    let Some(node) = nodes::read_one(dataset.store(), &key).await? else {
        return Ok((None, None));
    };
    let old = dataset.catalog().stored_array(LevelId::FULL, &role).await?;
    let columns = match &old {
        Some(old) => stored_columns(dataset, scope, counted, positions, old).await?,
        None => None,
    };
    let values = StoredValues::like(&key, node.attributes(), columns, column)?;
    Ok((old, Some(values)))
}

/// Returns the number of columns of an attribute from the size of a cell, because the reference
/// declares one column of attributes that have several. `None` if there is no cell, or its size fits
/// no number of columns.
async fn stored_columns(
    dataset: &Dataset,
    scope: Scope,
    counted: &StoredArray,
    positions: Dtype,
    attribute: &StoredArray,
) -> Result<Option<u64>, Failure> {
    let metadata = CellAttribute::parse(attribute.node(), attribute.attributes());
    let mut chunks = counted.chunks().iter();
    let chunk = chunks.find(|chunk| attribute.chunks().binary_search(chunk).is_ok());
    let (Ok(metadata), Some(chunk)) = (metadata, chunk) else {
        return Ok(None);
    };
    let (catalog, axes) = (dataset.catalog(), dataset.root().axes.len());
    let (mut batch, own) = (Batch::default(), [chunk.clone()]);
    for cell in catalog.stored_cells(counted, &own).await {
        let cell = cell.map_err(CatalogError::from)?;
        batch.count(chunk, &cell, scope, positions, axes)?;
    }
    match batch.add_old(catalog, attribute, &own).await {
        // Reported once all cells are read, unless the attribute is replaced.
        Err(Failure::Catalog(CatalogError::Damaged(damage))) if !is_unavailable(&damage) => {
            return Ok(None);
        }
        read => read?,
    }
    let cell = batch.old.first().and_then(Option::as_ref);
    let columns =
        cell.and_then(|cell| columns_of(cell.len(), metadata.value.dtype, batch.vertices()));
    Ok(columns.map(|columns| u64::from(columns.get())))
}

/// Returns whether data may be read later.
fn is_unavailable(damage: &Damage) -> bool {
    matches!(&damage.fault, Fault::Fetch(error) if error.kind() == ErrorKind::Unavailable)
}

/// Returns the values of a new attribute in the form in which they are stored.
async fn new_values(
    dataset: &Dataset,
    scope: Scope,
    column: &Column,
    rows: usize,
) -> Result<StoredValues, Failure> {
    let level = base::level(dataset, LevelId::FULL).await?;
    let is_whole = scope == Scope::Vertex && level.vertex_count == Some(rows as u64);
    Ok(StoredValues::new(column, !is_whole)?)
}

#[cfg(test)]
mod tests {
    use zvf_format::fragment::{FragmentIndex, FragmentIndexBuilder};

    use super::*;

    #[test]
    fn fragments_of_damaged_length_are_searched_at_once() {
        let mut builder = FragmentIndexBuilder::default();
        builder.push_range(2..1 << 62).unwrap();
        builder.push_list(&[9, 5, 1, 5]).unwrap();
        let bytes = builder.finish();
        let index = FragmentIndex::parse(&bytes).unwrap();
        let rows: Vec<(RowId, usize)> = [1, 5, 9]
            .into_iter()
            .zip(0..)
            .map(|(row, from)| (RowId::new(3, row).unwrap(), from))
            .collect();
        let found: Vec<Vec<usize>> = index
            .iter()
            .map(|fragment| {
                rows_of(&fragment, &rows)
                    .iter()
                    .map(|(_, from)| *from)
                    .collect()
            })
            .collect();
        assert_eq!(found, [vec![1, 2], vec![2, 1, 0, 1]]);
    }
}
