//! Attributes of objects, computed from the positions of their vertices.

use core::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use zvf_catalog::{ObjectSet, StoredArray};
use zvf_dataset::{Dataset, Failure};
use zvf_format::{
    fragment::FragmentIndex,
    numeric::{ByteOrder, Dtype, Kind, NumericRows, Value},
};
use zvf_model::column::{Column, NumericColumn};
use zvf_model::{grid::ChunkCoord, layout::ArrayRole, level::LevelId, scope::Scope};
use zvf_store::Transaction;

use super::{
    AttributeLocation, AttributeReport, AttributeSpec, BATCH_CELLS, Batch, VertexFn, cell_name,
    computed_values,
    object_table::{self, OldRows},
    raw_vertices, unchanged_levels,
};
use crate::writer::run;

/// Reduction of the values of an object's vertices to one value. NaN is ignored.
///
/// Values are reduced for each fragment first, then for each object, in the order of chunks and
/// fragments. Floating-point sums depend on this order.
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

impl ObjectReduction {
    /// All reductions.
    pub const ALL: [Self; 4] = [Self::Mean, Self::Sum, Self::Min, Self::Max];

    /// Returns the name: `mean`, `sum`, `min` or `max`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
        }
    }
}

/// The values of one column that were reduced so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Accumulator {
    value: f64,
    /// Number of values.
    count: u64,
}

impl Accumulator {
    fn of(value: f64) -> Self {
        if value.is_nan() {
            Self::default()
        } else {
            Self { value, count: 1 }
        }
    }

    fn add(&mut self, other: Self, reduction: ObjectReduction) {
        self.value = match (self.count, other.count) {
            (_, 0) => return,
            (0, _) => other.value,
            _ => match reduction {
                ObjectReduction::Mean | ObjectReduction::Sum => self.value + other.value,
                ObjectReduction::Min => self.value.min(other.value),
                ObjectReduction::Max => self.value.max(other.value),
            },
        };
        self.count += other.count;
    }
}

/// The reduced values of fragments, in the order of chunks.
#[derive(Debug, Default)]
pub(super) struct FragmentValues {
    objects: Vec<u32>,
    /// For each fragment, a number for each column.
    values: Vec<Accumulator>,
}

impl FragmentValues {
    /// Reduces rows of values to their fragments.
    fn of(
        rows: &NumericRows<'_>,
        owned: &OwnedRows,
        columns: usize,
        reduction: ObjectReduction,
    ) -> Self {
        let mut reduced = Self::default();
        let mut first = 0;
        for (object, end) in &owned.fragments {
            let own = owned.rows.get(first..*end).unwrap_or_default();
            first = *end;
            for (_, column) in (0..columns).zip(0_u32..) {
                let mut all = Accumulator::default();
                for row in own {
                    let value = rows.value(*row as usize, column);
                    let value = Accumulator::of(value.map_or(f64::NAN, Value::to_f64));
                    all.add(value, reduction);
                }
                reduced.values.push(all);
            }
            reduced.objects.push(*object);
        }
        reduced
    }

    fn rows(&self, columns: usize) -> impl Iterator<Item = (u32, &[Accumulator])> {
        let rows = self.values.chunks(columns.max(1));
        self.objects.iter().copied().zip(rows)
    }

    /// Appends the encoded values.
    pub(super) fn encode(&self, columns: usize, bytes: &mut Vec<u8>) {
        for (object, values) in self.rows(columns) {
            bytes.extend(object.to_le_bytes());
            for Accumulator { value, count } in values {
                bytes.extend(value.to_le_bytes());
                bytes.extend(count.to_le_bytes());
            }
        }
    }

    /// Decodes the output of [`encode`](Self::encode); `None` if it is invalid.
    pub(super) fn decode(bytes: &[u8], columns: usize) -> Option<Self> {
        let size = columns.checked_mul(16)?.checked_add(4)?;
        let rows = bytes.chunks_exact(size);
        rows.remainder().is_empty().then_some(())?;
        let mut decoded = Self::default();
        for row in rows {
            let (object, values) = row.split_first_chunk()?;
            decoded.objects.push(u32::from_le_bytes(*object));
            for pair in values.as_chunks::<8>().0.as_chunks::<2>().0 {
                let [value, count] = *pair;
                let (value, count) = (f64::from_le_bytes(value), u64::from_le_bytes(count));
                decoded.values.push(Accumulator { value, count });
            }
        }
        Some(decoded)
    }
}

/// Running reductions of all objects.
pub(super) struct Table {
    reduction: ObjectReduction,
    columns: usize,
    /// For each object, a number for each column.
    cells: Vec<Accumulator>,
}

impl Table {
    /// Adds the values of fragments to their objects. Returns `false` if an object does not exist.
    pub(super) fn add(&mut self, fragments: &FragmentValues) -> bool {
        for (object, values) in fragments.rows(self.columns) {
            let first = (object as usize).saturating_mul(self.columns);
            let own = self
                .cells
                .get_mut(first..first.saturating_add(self.columns));
            let Some(own) = own else { return false };
            for (own, value) in own.iter_mut().zip(values) {
                own.add(*value, self.reduction);
            }
        }
        true
    }

    /// Returns a row per object; null if no vertex has a value.
    fn rows(self, name: &str) -> Column {
        // Callers read the columns through a view, whose width is a `u32`.
        let width = u32::try_from(self.columns).unwrap_or(u32::MAX);
        let mut numbers = NumericColumn::new(Kind::Float64, width);
        let mut nulls = Vec::with_capacity(self.cells.len() / self.columns.max(1));
        for row in self.cells.chunks(self.columns.max(1)) {
            nulls.push(row.iter().all(|reduced| reduced.count == 0));
            for Accumulator { value, count } in row {
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

/// An attribute of objects that is to be staged.
pub(super) struct ObjectTarget<'a> {
    dataset: &'a Dataset,
    spec: &'a AttributeSpec,
    reduction: ObjectReduction,
    location: AttributeLocation,
    objects: Arc<ObjectSet>,
    vertices: StoredArray,
    dtype: Dtype,
    fragments: StoredArray,
    /// Number of values of a vertex.
    columns: usize,
}

/// Stages an attribute that is computed from positions. Returns the new root.
pub(super) async fn write(
    dataset: &Dataset,
    transaction: &mut Transaction,
    spec: &AttributeSpec,
    reduction: ObjectReduction,
    values: Arc<VertexFn>,
) -> Result<(Bytes, AttributeReport), Failure> {
    let target = ObjectTarget::open(dataset, spec, reduction).await?;
    let mut table = target.table();
    let all = 0..target.chunks().len();
    let reduced = target.reduce(all, &values, |fragments| {
        table.add(&fragments);
    });
    let written = reduced.await?;
    target.stage(transaction, table, written).await
}

impl<'a> ObjectTarget<'a> {
    pub(super) async fn open(
        dataset: &'a Dataset,
        spec: &'a AttributeSpec,
        reduction: ObjectReduction,
    ) -> Result<Self, Failure> {
        let location = AttributeLocation::find(dataset, spec, Scope::Object, LevelId::FULL).await?;
        let catalog = dataset.catalog();
        let objects = catalog
            .object_list(LevelId::FULL)
            .await?
            .ok_or_else(|| spec.error("the store has no objects"))?;
        let (vertices, dtype) = raw_vertices(dataset, spec).await?;
        let fragments = ArrayRole::VertexFragments;
        let fragments = catalog
            .stored_array(LevelId::FULL, &fragments)
            .await?
            .ok_or_else(|| spec.error("vertices have no fragments"))?;
        Ok(Self {
            dataset,
            spec,
            reduction,
            columns: location.row / spec.kind.size(),
            location,
            objects,
            vertices,
            dtype,
            fragments,
        })
    }

    /// Returns the chunks with vertices.
    pub(super) fn chunks(&self) -> &[ChunkCoord] {
        self.vertices.chunks()
    }

    /// Returns the number of values of a vertex.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// Returns a table without values.
    pub(super) fn table(&self) -> Table {
        Table {
            reduction: self.reduction,
            columns: self.columns,
            cells: vec![Accumulator::default(); self.objects.len().saturating_mul(self.columns)],
        }
    }

    /// Reduces the values in a range of chunks, and passes them on in the order of chunks.
    pub(super) async fn reduce(
        &self,
        range: Range<usize>,
        values: &Arc<VertexFn>,
        mut pass: impl FnMut(FragmentValues),
    ) -> Result<AttributeReport, Failure> {
        let catalog = self.dataset.catalog();
        let (spec, row, columns) = (self.spec, self.location.row, self.columns);
        let axes = self.dataset.root().axes.len();
        // A position, a value, and the number of its row.
        let kept = (axes.saturating_mul(8)).saturating_add(row) + size_of::<u32>();
        let max = spec.memory / (kept as u64).max(1);
        let mut written = AttributeReport::default();
        let (mut batch, mut owned) = (Batch::default(), OwnedRows::default());
        let chunks = self.chunks().get(range).unwrap_or_default();
        let (mut done, all) = (0, 2 * chunks.len() as u64);
        let mut report = |units: usize| {
            done += units as u64;
            if let Some(progress) = &spec.progress {
                progress(done, all);
            }
        };
        let mut waiting = chunks.chunks(BATCH_CELLS).peekable();
        while let Some(some) = waiting.next() {
            let cells = catalog.stored_cells(&self.vertices, some).await;
            let indexes = catalog.stored_cells(&self.fragments, some).await;
            for (chunk, (cell, index)) in some.iter().zip(cells.into_iter().zip(indexes)) {
                let cell = cell.map_err(zvf_catalog::CatalogError::from)?;
                let index = index.map_err(zvf_catalog::CatalogError::from)?;
                let before = batch.vertices();
                batch.add(chunk, &cell, self.dtype, axes)?;
                let index = FragmentIndex::parse(&index).map_err(|source| Failure::Fragments {
                    node: self.fragments.node().clone(),
                    source,
                })?;
                let rows = before..batch.vertices();
                let wrong = || Failure::Attribute {
                    name: cell_name(&ArrayRole::VertexFragments, chunk),
                    why: "an object lists a fragment, or a fragment a vertex, that does not exist",
                };
                own(&self.objects, chunk, &index, rows, &mut owned).ok_or_else(wrong)?;
            }
            report(some.len());
            if waiting.peek().is_some() && batch.vertices() < max {
                continue;
            }
            let (full, rows) = (std::mem::take(&mut batch), std::mem::take(&mut owned));
            written.vertices += full.vertices();
            written.chunks += full.rows.len() as u64;
            written.batches += 1;
            let count = full.rows.len();
            let (make, reduction, spec) = (Arc::clone(values), self.reduction, spec.clone());
            let reduced = run(move || {
                let bytes = computed_values(&*make, &full, axes, row, &spec)?;
                let of_values = Dtype::new(spec.kind, ByteOrder::Little);
                let width = u32::try_from(columns)
                    .ok()
                    .and_then(|n| n.try_into().ok())
                    .ok_or_else(|| spec.error("a vertex has too many values"))?;
                let values = NumericRows::parse(&bytes, of_values, width)
                    .map_err(|_| spec.error("there are not whole values"))?;
                Ok(FragmentValues::of(&values, &rows, columns, reduction))
            });
            pass(reduced.await?);
            report(count);
        }
        Ok(written)
    }

    /// Stages the attribute. Returns the new root.
    pub(super) async fn stage(
        self,
        transaction: &mut Transaction,
        table: Table,
        mut written: AttributeReport,
    ) -> Result<(Bytes, AttributeReport), Failure> {
        let rows = [table.rows(&self.spec.name)];
        let ids: Option<Vec<i64>> = (0..self.objects.len())
            .map(|at| self.objects.id(at))
            .collect();
        let ids = ids.ok_or_else(|| self.spec.error("an object has no id"))?;
        let old = OldRows::Dropped;
        let staged = object_table::stage(self.dataset, transaction, &ids, &rows, old);
        written.bytes = staged.await?;
        Ok((unchanged_levels(self.dataset, transaction)?, written))
    }
}

/// Rows of a batch that belong to objects.
#[derive(Default)]
struct OwnedRows {
    rows: Vec<u32>,
    /// The object of each fragment, and the end of its rows.
    fragments: Vec<(u32, usize)>,
}

/// Appends the rows of each fragment of a chunk that belongs to an object. The chunk has the range
/// `rows` of a batch. Returns `None` if a row or fragment does not exist.
fn own(
    objects: &ObjectSet,
    chunk: &ChunkCoord,
    index: &FragmentIndex<'_>,
    rows: Range<u64>,
    owned: &mut OwnedRows,
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
            owned.rows.push(u32::try_from(row).ok()?);
        }
        owned.fragments.push((object, owned.rows.len()));
    }
    Some(())
}
