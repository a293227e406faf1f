//! Attributes of vertices and fragments: one cell for each chunk.

use core::ops::Range;
use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use zvf_build::{Output, Profile};
use zvf_catalog::StoredArray;
use zvf_dataset::{
    Dataset, Failure,
    nodes::{element, place},
};
use zvf_format::numeric::{ByteOrder, Dtype};
use zvf_model::{
    array::{CellAttribute, Presence},
    grid::ChunkCoord,
    key::Key,
    layout::ArrayRole,
    level::LevelId,
    metadata::Attributes,
    scope::Scope,
    zarr::Node,
};
use zvf_store::Transaction;

use super::{
    AttributeLocation, AttributeReport, AttributeSpec, BATCH_CELLS, Batch, VertexFn,
    computed_values, counted, node_of, present, raw_vertices, root, row_values::RowValues,
};
use crate::writer::{
    cell_writer::{CellWriter, Destination, StagedTransaction},
    encode::{Arrays, encoded},
    run,
};

/// The source of the values of vertices.
#[derive(Clone)]
pub(super) enum Values {
    /// A function of positions.
    Positions(Arc<VertexFn>),
    /// Rows of a table.
    Rows(Arc<RowValues>),
}

/// An attribute of vertices or fragments that is to be staged.
pub(super) struct VertexTarget<'a> {
    dataset: &'a Dataset,
    spec: &'a AttributeSpec,
    location: AttributeLocation,
    scope: Scope,
    /// Positions or fragment indexes, which have the number of rows of each chunk.
    counted: StoredArray,
    dtype: Dtype,
    /// The node of the attribute and the nodes above it.
    nodes: Vec<Output>,
    arrays: Arrays,
    /// Chunks of each object. A shard is written as a whole.
    objects: Vec<Vec<ChunkCoord>>,
}

/// Stages an attribute that is computed from positions. Returns the new root.
pub(super) async fn write(
    dataset: &Dataset,
    transaction: &mut Transaction,
    spec: &AttributeSpec,
    values: Arc<VertexFn>,
) -> Result<(Bytes, AttributeReport), Failure> {
    let target = VertexTarget::open(dataset, spec, Attributes::new()).await?;
    let written = target
        .stage(transaction, &Values::Positions(values))
        .await?;
    let root = root(dataset, transaction, target.counted.chunks()).await?;
    Ok((root, written))
}

impl<'a> VertexTarget<'a> {
    /// Opens the vertices. `attributes` are added to those of the node.
    pub(super) async fn open(
        dataset: &'a Dataset,
        spec: &'a AttributeSpec,
        attributes: Attributes,
    ) -> Result<Self, Failure> {
        Self::of_scope(dataset, spec, attributes, Scope::Vertex).await
    }

    /// Opens vertices or fragments. `attributes` are added to those of the node.
    pub(super) async fn of_scope(
        dataset: &'a Dataset,
        spec: &'a AttributeSpec,
        attributes: Attributes,
        scope: Scope,
    ) -> Result<Self, Failure> {
        let location = AttributeLocation::find(dataset, spec, scope, LevelId::FULL).await?;
        let (vertices, dtype) = raw_vertices(dataset, spec).await?;
        let counted = counted(dataset, scope, vertices).await?;
        let chunks = counted.chunks();
        let nodes = nodes_of(dataset, &location.key, spec, scope, chunks, attributes).await?;
        let arrays = Arrays::of(dataset.layout().generation, &nodes)?;
        let array = arrays.get(&location.key)?;
        let mut objects: BTreeMap<Key, Vec<ChunkCoord>> = BTreeMap::new();
        for chunk in chunks {
            let index = element(&array, chunk.coords())?;
            let found = array.locate(&index).map_err(|source| Failure::Index {
                node: location.key.clone(),
                source,
            })?;
            objects.entry(found.0).or_default().push(chunk.clone());
        }
        // Sorted by coordinate, not by name, where `10` precedes `2`: consecutive batches are then
        // neighbours, and the function can reuse data it has read.
        let mut objects: Vec<Vec<ChunkCoord>> = objects.into_values().collect();
        objects.sort_unstable();
        Ok(Self {
            dataset,
            spec,
            location,
            scope,
            counted,
            dtype,
            nodes,
            arrays,
            objects,
        })
    }

    /// Returns the number of objects that the attribute consists of.
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns the chunks with vertices.
    pub(super) fn chunks(&self) -> &[ChunkCoord] {
        self.counted.chunks()
    }

    /// Stages nodes and cells.
    pub(super) async fn stage(
        &self,
        transaction: &mut Transaction,
        values: &Values,
    ) -> Result<AttributeReport, Failure> {
        self.location.delete_replaced(transaction).await?;
        let generation = self.dataset.layout().generation;
        let writer = CellWriter::new(StagedTransaction::new(transaction), generation)
            .with_progress(self.spec.progress.clone());
        let mut written = self
            .write_cells(&writer, 0..self.objects.len(), values)
            .await?;
        writer.write(self.nodes.clone()).await?;
        written.bytes = writer.take_report().bytes;
        Ok(written)
    }

    /// Stages the nodes, after the cells of all tasks. Returns the number of bytes.
    pub(super) async fn stage_nodes(&self, transaction: &mut Transaction) -> Result<u64, Failure> {
        let generation = self.dataset.layout().generation;
        let writer = CellWriter::new(StagedTransaction::new(transaction), generation);
        writer.write(self.nodes.clone()).await?;
        Ok(writer.take_report().bytes)
    }

    /// Deletes the attribute that this one replaces, before cells are staged.
    pub(super) async fn delete_replaced(
        &self,
        transaction: &mut Transaction,
    ) -> Result<(), Failure> {
        self.location.delete_replaced(transaction).await
    }

    /// Writes the cells of a range of objects.
    pub(super) async fn write_cells<D: Destination>(
        &self,
        writer: &CellWriter<D>,
        range: Range<usize>,
        values: &Values,
    ) -> Result<AttributeReport, Failure> {
        let catalog = self.dataset.catalog();
        let (key, row) = (&self.location.key, self.location.row);
        let objects = self.objects.get(range).unwrap_or_default();
        let chunks: usize = objects.iter().map(Vec::len).sum();
        writer.expect(2 * chunks);
        let mut written = AttributeReport::default();
        let axes = self.dataset.root().axes.len();
        let kept = u64::try_from(axes.saturating_mul(8).saturating_add(row)).unwrap_or(u64::MAX);
        let mut batch = Batch::default();
        let mut waiting = objects.iter().peekable();
        while let Some(own) = waiting.next() {
            for some in own.chunks(BATCH_CELLS) {
                let cells = catalog.stored_cells(&self.counted, some).await;
                for (chunk, cell) in some.iter().zip(cells) {
                    let cell = cell.map_err(zvf_catalog::CatalogError::from)?;
                    match values {
                        Values::Positions(_) => batch.add(chunk, &cell, self.dtype, axes)?,
                        Values::Rows(_) => {
                            batch.count(chunk, &cell, self.scope, self.dtype, axes)?;
                        }
                    }
                }
                if let Values::Rows(rows) = values
                    && let Some(old) = &rows.old
                {
                    batch.add_old(catalog, old, some).await?;
                }
                writer.done(some.len());
            }
            let vertices = batch.vertices();
            if waiting.peek().is_some() && vertices.saturating_mul(kept) < self.spec.memory {
                continue;
            }
            let full = std::mem::take(&mut batch);
            let chunks = full.rows.len();
            written.vertices += vertices;
            written.chunks += chunks as u64;
            written.batches += 1;
            let (values, node, spec) = (values.clone(), key.clone(), self.spec.clone());
            let arrays = self.arrays.clone();
            let encoded = run(move || {
                let bytes = match &values {
                    Values::Positions(make) => computed_values(&**make, &full, axes, row, &spec)?,
                    Values::Rows(rows) => rows.of(&full, row)?,
                };
                let mut rest = bytes.as_slice();
                let mut outputs = Vec::with_capacity(full.rows.len());
                for (chunk, rows) in full.rows {
                    let (own, next) = rest.split_at((rows * row).min(rest.len()));
                    rest = next;
                    outputs.push(Output::Cell {
                        array: node.clone(),
                        index: element(&arrays.get(&node)?, chunk.coords())?,
                        payload: own.to_vec(),
                    });
                }
                encoded(&arrays, outputs)
            });
            writer.put(encoded.await?).await?;
            writer.done(chunks);
        }
        Ok(written)
    }
}

/// Returns the node of an attribute and the nodes above it. The array has the form of the vertices,
/// and the shards that the root declares for new arrays.
async fn nodes_of(
    dataset: &Dataset,
    key: &Key,
    spec: &AttributeSpec,
    scope: Scope,
    chunks: &[ChunkCoord],
    mut attributes: Attributes,
) -> Result<Vec<Output>, Failure> {
    let keys = Profile::V09.keys(LevelId::FULL);
    let node = place(keys.node(&ArrayRole::Vertices))?;
    let Node::Array(vertices) = node_of(dataset, &node).await? else {
        return Err(Failure::NoCells { node });
    };
    let dtype = Dtype::new(spec.kind, ByteOrder::Little);
    let Some(role) = scope.cells() else {
        return Err(Failure::NoCells { node: key.clone() });
    };
    let mut metadata = CellAttribute::new(role, &spec.name, dtype);
    metadata.row_shape = Some(spec.row_shape.clone());
    let listed = chunks.iter().map(ChunkCoord::coords);
    let origin: Vec<i64> = Presence::origin_of(&vertices.attributes)
        .take(vertices.rank())
        .collect();
    attributes.extend(Presence::attributes_of(&origin, listed));
    attributes.extend(metadata.to_attributes());
    let declared = dataset.root().shard_shape.as_deref();
    let array = zvf_build::added_array(&vertices, declared)?.with_attributes(attributes);
    let mut outputs = vec![Output::node(key.clone(), array)];
    outputs.extend(present(dataset, scope.group(), LevelId::FULL).await?);
    Ok(outputs)
}
