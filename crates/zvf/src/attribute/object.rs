//! Attributes of objects, computed from the positions of their vertices.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Map;
use zvf_format::{
    fragment::FragmentIndex,
    numeric::{ByteOrder, Dtype, Kind, NumericRows, Value},
};
use zvf_model::column::{Column, NumericColumn};
use zvf_model::{grid::ChunkCoord, layout::ArrayRole, level::LevelId};
use zvf_query::ObjectSet;
use zvf_store::Transaction;

use super::{
    AttributeLocation, AttributeReport, AttributeSpec, BATCH_CELLS, Batch, VertexFn,
    computed_values, present, raw_vertices, root,
};
use crate::{
    dataset::Dataset,
    failure::Failure,
    form::form,
    writer::{
        cell_writer::{CellWriter, StagedTransaction},
        run,
    },
};

/// Reduction of the values of an object's vertices to one value. NaN is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ObjectReduction {
    /// The mean.
    Mean,
    /// The sum.
    Sum,
    /// The minimum.
    Min,
    /// The maximum.
    Max,
}

/// Running reductions of all objects.
struct Table {
    reduction: ObjectReduction,
    columns: usize,
    /// The reduced value and the number of values, for each object and column.
    cells: Vec<(f64, u64)>,
}

impl Table {
    fn new(reduction: ObjectReduction, objects: usize, columns: usize) -> Self {
        Self {
            reduction,
            columns,
            cells: vec![(0.0, 0); objects.saturating_mul(columns)],
        }
    }

    /// Adds rows of values to their objects.
    fn add(&mut self, rows: &NumericRows<'_>, owned: &[(u32, u32)]) {
        for (object, row) in owned {
            let (object, row) = (*object as usize, *row as usize);
            for (column, number) in (0..self.columns).zip(0_u32..) {
                let value = rows.value(row, number).map_or(f64::NAN, Value::to_f64);
                let Some((so_far, count)) = self.cells.get_mut(object * self.columns + column)
                else {
                    continue;
                };
                if value.is_nan() {
                    continue;
                }
                *so_far = match self.reduction {
                    _ if *count == 0 => value,
                    ObjectReduction::Mean | ObjectReduction::Sum => *so_far + value,
                    ObjectReduction::Min => so_far.min(value),
                    ObjectReduction::Max => so_far.max(value),
                };
                *count += 1;
            }
        }
    }

    /// Returns a row per object; null if no vertex has a value.
    fn rows(self, name: &str) -> Column {
        // Callers read the columns through a view, whose width is a `u32`.
        let width = u32::try_from(self.columns).unwrap_or(u32::MAX);
        let mut numbers = NumericColumn::new(Kind::Float64, width);
        let mut nulls = Vec::with_capacity(self.cells.len() / self.columns.max(1));
        for row in self.cells.chunks(self.columns.max(1)) {
            nulls.push(row.iter().all(|(_, count)| *count == 0));
            for (value, count) in row {
                let value = match (self.reduction, *count) {
                    (_, 0) => f64::NAN,
                    (ObjectReduction::Mean, count) => value / float(count),
                    _ => *value,
                };
                numbers.bytes.extend(value.to_le_bytes());
            }
        }
        Column {
            nulls: Some(nulls),
            ..Column::new(name, numbers)
        }
    }
}

/// Returns the nearest float.
#[expect(clippy::cast_precision_loss, reason = "values are summed as floats")]
fn float(value: impl Into<i128>) -> f64 {
    value.into() as f64
}

/// Stages the table. Returns the new root.
pub(super) async fn stage(
    dataset: &Dataset,
    transaction: &mut Transaction,
    spec: &AttributeSpec,
    reduction: ObjectReduction,
    values: Arc<VertexFn>,
) -> Result<(Bytes, AttributeReport), Failure> {
    let location = AttributeLocation::find(dataset, spec, "0/object_attributes").await?;
    let session = dataset.session();
    let objects = session.object_list(LevelId::FULL).await?;
    let objects = objects.ok_or_else(|| spec.error("the store has no objects"))?;
    let (part, dtype) = raw_vertices(dataset, spec).await?;
    let fragments = ArrayRole::VertexFragments;
    let fragments = session.stored_array(LevelId::FULL, &fragments).await?;
    let fragments = fragments.ok_or_else(|| spec.error("vertices have no fragments"))?;
    let columns = location.row / spec.kind.size();
    let axes = dataset.root().axes.len();
    // A position, a value, and the row of its object.
    let kept = (axes.saturating_mul(8)).saturating_add(location.row) + size_of::<(u32, u32)>();
    let max = spec.memory / (kept as u64).max(1);
    let mut table = Table::new(reduction, objects.len(), columns);
    let mut written = AttributeReport::default();
    let (mut batch, mut owned) = (Batch::default(), Vec::new());
    let chunks = part.chunks();
    let writer = CellWriter::new(StagedTransaction::recording(&mut *transaction))
        .with_progress(spec.progress.clone());
    writer.expect(2 * chunks.len());
    let mut waiting = chunks.chunks(BATCH_CELLS).peekable();
    while let Some(some) = waiting.next() {
        let cells = session.stored_cells(&part, some).await;
        let indexes = session.stored_cells(&fragments, some).await;
        for (chunk, (cell, index)) in some.iter().zip(cells.into_iter().zip(indexes)) {
            let cell = cell.map_err(zvf_query::QueryError::from)?;
            let index = index.map_err(zvf_query::QueryError::from)?;
            let before = batch.vertices();
            batch.add(chunk, &cell, dtype, axes)?;
            let index = FragmentIndex::parse(&index).map_err(|source| Failure::Fragments {
                node: fragments.node().clone(),
                source,
            })?;
            let rows = before..batch.vertices();
            own(&objects, chunk, &index, rows, &mut owned).ok_or_else(|| Failure::Attribute {
                name: format!("0/vertex_fragments/{chunk}"),
                why: "an object lists a fragment, or a fragment a vertex, that does not exist",
            })?;
        }
        writer.done(some.len());
        if waiting.peek().is_some() && batch.vertices() < max {
            continue;
        }
        let (full, rows) = (std::mem::take(&mut batch), std::mem::take(&mut owned));
        written.vertices += full.vertices();
        written.chunks += full.rows.len() as u64;
        written.batches += 1;
        let count = full.rows.len();
        let (make, spec, row) = (Arc::clone(&values), spec.clone(), location.row);
        table = run(move || {
            let bytes = computed_values(&*make, &full, axes, row, &spec)?;
            let of_values = Dtype::new(spec.kind, ByteOrder::Little);
            let width = u32::try_from(columns).ok().and_then(|n| n.try_into().ok());
            let width = width.ok_or_else(|| spec.error("a vertex has too many values"))?;
            let values = NumericRows::parse(&bytes, of_values, width);
            let values = values.map_err(|_| spec.error("there are not whole values"))?;
            table.add(&values, &rows);
            Ok(table)
        })
        .await?;
        writer.done(count);
    }
    let form = form(dataset).await?;
    let rows = table.rows(&spec.name);
    let mut outputs = form.object_attribute(&location.path, &Map::new(), &rows)?;
    outputs.extend(present(dataset, "object_attributes").await?);
    writer.write(outputs).await?;
    written.bytes = writer.take_report().bytes;
    let (transaction, put) = writer.into_destination().into_parts();
    location.delete_replaced(transaction, &put).await?;
    Ok((root(transaction, chunks)?, written))
}

/// Appends the object and row of each vertex of a chunk, which has the range `rows` of a batch.
/// Returns `None` if a row or fragment does not exist.
fn own(
    objects: &ObjectSet,
    chunk: &ChunkCoord,
    index: &FragmentIndex<'_>,
    rows: core::ops::Range<u64>,
    owned: &mut Vec<(u32, u32)>,
) -> Option<()> {
    let mut last = None;
    for (fragment, owner) in objects.owners_of(chunk).iter() {
        // An object may name a fragment twice, for example a path that returns to a chunk.
        if last.replace((fragment, owner)) == Some((fragment, owner)) {
            continue;
        }
        let object = u32::try_from(owner).ok()?;
        for row in &index.rows(fragment)? {
            let row = rows.start.checked_add(row)?;
            if row >= rows.end {
                return None;
            }
            owned.push((object, u32::try_from(row).ok()?));
        }
    }
    Some(())
}
