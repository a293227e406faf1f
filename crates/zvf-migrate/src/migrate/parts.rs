//! Migration of vertices, fragments and attributes, whose cells are copied unchanged. Tasks may copy
//! the cells; the nodes of the arrays are written after them.

use bytes::Bytes;
use futures_util::future::{join, join3};
use zvf_build::{
    Output,
    migrate::{ChunkExtent, MigrationNote},
};
use zvf_catalog::{CatalogError, Damage, Fault, Scope, StoredArray, check_attribute_cell};
use zvf_dataset::{Failure, nodes::place};
use zvf_format::{fragment::FragmentIndex, numeric::Dtype};
use zvf_model::{
    array::{CellAttribute, FragmentArray, VertexEncoding, Vertices},
    grid::ChunkCoord,
    key::Key,
    layout::{ArrayRole, GroupRole, VERTICES},
    metadata::Attributes,
    word::Word,
};

use super::{
    Migration,
    level::{ChunkFacts, Level},
    no_place,
};

/// Approximate bytes of cells in memory.
pub(super) const BATCH_BYTES: u64 = 64 << 20;
/// Cells in the first batch, which measures the size of a cell.
const FIRST_BATCH: usize = 16;
/// Maximum number of cells in a batch.
const MAX_BATCH: usize = 512;

/// Number of cells in the next batch.
pub(super) struct Batches(usize);

impl Batches {
    pub(super) fn new() -> Self {
        Self(FIRST_BATCH)
    }

    /// Returns the end of the batch that starts at `at`.
    pub(super) fn end(&self, at: usize, all: usize) -> usize {
        at.saturating_add(self.0).min(all)
    }

    /// Adapts the size of the next batch to the bytes of this one.
    pub(super) fn adapt(&mut self, cells: usize, bytes: u64) {
        let each = (bytes / cells.max(1) as u64).max(1);
        self.0 = usize::try_from(BATCH_BYTES / each)
            .unwrap_or(MAX_BATCH)
            .clamp(1, MAX_BATCH);
    }
}

/// The arrays of a level with one cell for each chunk, except for links.
pub(super) struct ChunkArrays {
    vertices: Option<VertexArrays>,
    attributes: Vec<Attribute>,
    /// Folders of the attributes.
    folders: Vec<GroupRole<'static>>,
    /// All chunks with a cell to copy, ascending.
    pub(super) chunks: Vec<ChunkCoord>,
}

impl ChunkArrays {
    /// Returns the number of attributes whose cells are copied.
    pub(super) fn copied_attributes(&self) -> usize {
        self.vertices.as_ref().map_or(0, |_| self.attributes.len())
    }
}

/// The array of vertices, and that of their fragments.
struct VertexArrays {
    vertices: StoredArray,
    fragments: Option<StoredArray>,
    metadata: Vertices,
}

/// An attribute with one cell for each chunk.
struct Attribute {
    name: String,
    part: StoredArray,
    metadata: CellAttribute,
    scope: Scope,
}

/// Chunks whose cells were written, by array.
#[derive(Debug, Default)]
pub(super) struct CopiedChunks {
    pub(super) vertices: Vec<Vec<i64>>,
    pub(super) fragments: Vec<Vec<i64>>,
    pub(super) attributes: Vec<CopiedAttribute>,
}

/// Chunks with a cell of an attribute.
#[derive(Debug, Default)]
pub(super) struct CopiedAttribute {
    pub(super) chunks: Vec<Vec<i64>>,
    /// Number of values in a row, if a cell shows it.
    pub(super) columns: Option<u64>,
}

/// The array that cells are written to, and the chunks written so far.
pub(super) struct Target<'a> {
    pub(super) key: Key,
    pub(super) extent: &'a ChunkExtent,
    pub(super) arity: usize,
    pub(super) old: &'a Attributes,
    pub(super) keys: Vec<Vec<i64>>,
}

impl Target<'_> {
    fn node(&self, migration: &Migration<'_>, attributes: Attributes) -> Result<Output, Failure> {
        let keys: Vec<&[i64]> = self.keys.iter().map(Vec::as_slice).collect();
        let form = migration.form;
        let (extent, arity) = (self.extent, self.arity);
        let node = form.part(&self.key, extent, arity, &keys, self.old, attributes);
        node.ok_or_else(|| no_place(&self.key))
    }

    /// Registers the array with the writer.
    pub(super) fn begin(&self, migration: &Migration<'_>) -> Result<(), Failure> {
        migration
            .writer
            .register(&[self.node(migration, Attributes::new())?])
    }

    /// Adds a cell to `outputs`, and its chunk to the list of non-empty chunks if it is stored.
    pub(super) fn cell(
        &mut self,
        migration: &Migration<'_>,
        chunk: &[i64],
        payload: Vec<u8>,
        outputs: &mut Vec<Output>,
    ) -> Result<(), Failure> {
        if !payload.is_empty() || migration.form.keeps_empty_cells() {
            self.keys.push(chunk.to_vec());
        }
        let made = migration.form.cell(&self.key, self.extent, chunk, payload);
        outputs.extend(made.ok_or_else(|| no_place(&self.key))?);
        Ok(())
    }

    /// Writes the node, after all cells.
    pub(super) async fn end(
        self,
        migration: &Migration<'_>,
        attributes: Attributes,
    ) -> Result<(), Failure> {
        migration
            .writer
            .write(vec![self.node(migration, attributes)?])
            .await
    }
}

impl Migration<'_> {
    /// Opens the arrays with one cell for each chunk, except for links. The level then reaches all
    /// of their chunks.
    pub(super) async fn chunk_arrays(&self, level: &mut Level) -> Result<ChunkArrays, Failure> {
        let catalog = self.catalog();
        let id = level.id;
        let vertices = catalog.stored_array(id, &ArrayRole::Vertices);
        let fragments = catalog.stored_array(id, &ArrayRole::VertexFragments);
        let groups = catalog.stored_array(id, &ArrayRole::LinkFragments);
        let (vertices, fragments, groups) = join3(vertices, fragments, groups).await;
        let (vertices, fragments) = (self.skip_damaged(vertices)?, self.skip_damaged(fragments)?);
        let (attributes, folders) = self.cell_attributes(level).await?;
        let own = [vertices.iter().flatten(), fragments.iter().flatten()];
        let own = own
            .into_iter()
            .flatten()
            .chain(attributes.iter().map(|own| &own.part));
        let others = self.skip_damaged(groups)?;
        let mut chunks = Vec::new();
        for part in own {
            chunks.extend_from_slice(part.chunks());
            level.reach(part);
            self.lost(unrecognized_children(part));
        }
        if let Some(Some(part)) = &others {
            level.reach(part);
            self.lost(unrecognized_children(part));
        }
        chunks.sort_unstable();
        chunks.dedup();
        let mut arrays = ChunkArrays {
            vertices: None,
            attributes,
            folders,
            chunks,
        };
        match (vertices, fragments) {
            (Some(Some(vertices)), Some(fragments)) => {
                let metadata = Vertices::parse(vertices.node(), vertices.attributes())?.value;
                if let Word::Unknown(encoding) = &metadata.encoding {
                    let (node, encoding) = (vertices.node().clone(), encoding.clone());
                    return Err(CatalogError::Encoding { node, encoding }.into());
                }
                if let Some(fragments) = &fragments {
                    FragmentArray::parse(fragments.node(), fragments.attributes())?;
                }
                arrays.vertices = Some(VertexArrays {
                    vertices,
                    fragments,
                    metadata,
                });
            }
            // Other cells mean nothing without vertices.
            _ => arrays.chunks.clear(),
        }
        Ok(arrays)
    }

    /// Migrates all parts with one cell for each chunk, except for links. Tasks may have written
    /// the cells.
    pub(super) async fn chunk_parts(
        &self,
        level: &mut Level,
        arrays: &ChunkArrays,
        copied: Option<CopiedChunks>,
    ) -> Result<(), Failure> {
        for folder in &arrays.folders {
            self.parent(&place(level.keys.group(*folder))?).await?;
            level.facts.present.push(folder.name());
        }
        let Some(own) = &arrays.vertices else {
            return Ok(());
        };
        let copied = match copied {
            Some(copied) => copied,
            None => self.copy_chunks(level, arrays, &arrays.chunks).await?,
        };
        for facts in level.chunks.values() {
            level.facts.vertices += facts.rows;
        }
        self.vertex_nodes(level, own, copied.vertices, copied.fragments)
            .await?;
        level.facts.present.push(VERTICES);
        for (attribute, copied) in arrays.attributes.iter().zip(copied.attributes) {
            self.attribute_node(level, attribute, copied).await?;
        }
        Ok(())
    }

    /// Writes the cells of some of the chunks of the arrays, which are consecutive.
    pub(super) async fn copy_chunks(
        &self,
        level: &mut Level,
        arrays: &ChunkArrays,
        chunks: &[ChunkCoord],
    ) -> Result<CopiedChunks, Failure> {
        let Some(own) = &arrays.vertices else {
            return Ok(CopiedChunks::default());
        };
        let mut copied = self.vertices(level, own, chunks).await?;
        for attribute in &arrays.attributes {
            let own = within(attribute.part.chunks(), chunks);
            copied
                .attributes
                .push(self.attribute(level, attribute, own).await?);
        }
        Ok(copied)
    }

    async fn cell_attributes(
        &self,
        level: &Level,
    ) -> Result<(Vec<Attribute>, Vec<GroupRole<'static>>), Failure> {
        let catalog = self.catalog();
        let (mut attributes, mut folders) = (Vec::new(), Vec::new());
        for scope in Scope::OF_CHUNKS {
            let names = catalog.attribute_list(level.id, scope).await?;
            if !names.is_empty() {
                folders.push(scope.group());
            }
            for name in names.iter() {
                let stored = catalog.stored_array(level.id, &scope.array(name)).await;
                let Some(Some(part)) = self.skip_damaged(stored)? else {
                    continue;
                };
                let metadata = CellAttribute::parse(part.node(), part.attributes())?.value;
                attributes.push(Attribute {
                    name: name.clone(),
                    part,
                    metadata,
                    scope,
                });
            }
        }
        Ok((attributes, folders))
    }

    /// Writes the cells of vertices and their fragments, chunk by chunk.
    async fn vertices(
        &self,
        level: &mut Level,
        arrays: &VertexArrays,
        chunks: &[ChunkCoord],
    ) -> Result<CopiedChunks, Failure> {
        let catalog = self.catalog();
        let (vertices, fragments) = (&arrays.vertices, arrays.fragments.as_ref());
        let row = arrays.metadata.dtype.size() as u64 * self.source.root().axes.len() as u64;
        let row = (arrays.metadata.encoding == VertexEncoding::Raw).then_some(row);
        let mut own = within(vertices.chunks(), chunks).to_vec();
        let of_fragments = fragments.map(StoredArray::chunks).unwrap_or_default();
        own.extend_from_slice(within(of_fragments, chunks));
        own.sort_unstable();
        own.dedup();
        let chunks = own;
        self.writer.expect(chunks.len());
        let (extent, none) = (level.extent.clone(), Attributes::new());
        let mut rows_to = arrays.rows_target(level, &extent)?;
        let mut index_to = arrays.index_target(level, &extent, &none)?;
        rows_to.begin(self)?;
        index_to.begin(self)?;
        let with_ends = level.bridges.is_some();
        let mut batches = Batches::new();
        let (mut at, mut waiting) = (0, Vec::new());
        while at < chunks.len() || !waiting.is_empty() {
            let end = batches.end(at, chunks.len());
            let batch = &chunks[at..end];
            let read = join(
                cells_or_none(&catalog, Some(vertices), batch),
                cells_or_none(&catalog, fragments, batch),
            );
            let count = batch.len();
            let ((rows, indexes), put) =
                join(read, self.writer.write(core::mem::take(&mut waiting))).await;
            put?;
            let mut bytes = 0;
            for ((chunk, rows), index) in batch.iter().zip(rows).zip(indexes) {
                let read = chunk_cells(vertices, fragments, chunk, rows, index, row, with_ends);
                let cells = match read {
                    Ok(cells) => cells,
                    Err(damage) => {
                        self.damaged(damage)?;
                        continue;
                    }
                };
                bytes += cells.rows.len() as u64;
                level.facts.tiles &= cells.tiles;
                level.chunks.insert(chunk.clone(), cells.facts);
                let at = chunk.coords();
                rows_to.cell(self, at, Vec::from(cells.rows), &mut waiting)?;
                index_to.cell(self, at, Vec::from(cells.index), &mut waiting)?;
            }
            batches.adapt(count, bytes);
            self.writer.done(count);
            at = end;
        }
        Ok(CopiedChunks {
            vertices: rows_to.keys,
            fragments: index_to.keys,
            attributes: Vec::new(),
        })
    }

    /// Writes the nodes of vertices and of their fragments, after all cells.
    async fn vertex_nodes(
        &self,
        level: &Level,
        arrays: &VertexArrays,
        vertices: Vec<Vec<i64>>,
        fragments: Vec<Vec<i64>>,
    ) -> Result<(), Failure> {
        let generation = level.keys.layout.generation;
        let rows_to = Target {
            keys: vertices,
            ..arrays.rows_target(level, &level.extent)?
        };
        rows_to
            .end(self, arrays.metadata.to_attributes(generation))
            .await?;
        let none = Attributes::new();
        let index_to = Target {
            keys: fragments,
            ..arrays.index_target(level, &level.extent, &none)?
        };
        index_to
            .end(self, FragmentArray::Vertices.to_attributes())
            .await
    }

    /// Writes the cells of an attribute of vertices or fragments.
    async fn attribute(
        &self,
        level: &Level,
        attribute: &Attribute,
        chunks: &[ChunkCoord],
    ) -> Result<CopiedAttribute, Failure> {
        let catalog = self.catalog();
        let part = &attribute.part;
        self.writer.expect(chunks.len());
        let mut target = attribute.target(level)?;
        target.begin(self)?;
        let padded = part.padded();
        let mut columns = None;
        let mut batches = Batches::new();
        let (mut at, mut waiting) = (0, Vec::new());
        while at < chunks.len() || !waiting.is_empty() {
            let end = batches.end(at, chunks.len());
            let batch = &chunks[at..end];
            let count = batch.len();
            let read = catalog.stored_cells(part, batch);
            let (read, put) = join(read, self.writer.write(core::mem::take(&mut waiting))).await;
            put?;
            let mut bytes = 0;
            for (chunk, cell) in batch.iter().zip(read) {
                let mut cell = match cell {
                    Ok(cell) => cell,
                    Err(damage) => {
                        self.damaged(damage)?;
                        continue;
                    }
                };
                let facts = level.chunks.get(chunk);
                if facts.is_none() && self.options.skip_damaged {
                    // The vertices were lost.
                    continue;
                }
                if let Some(padded) = padded {
                    let rows = facts.map_or(0, |facts| facts.rows);
                    cell = used(&cell, rows.saturating_mul(padded.row));
                }
                let rows = facts.map_or(0, |facts| match attribute.scope {
                    Scope::Vertex => facts.rows,
                    Scope::Fragment => u64::from(facts.fragments),
                    // Their rows are not those of a chunk.
                    Scope::Link | Scope::Object | Scope::Group => 0,
                });
                if facts.is_some_and(|facts| facts.rows > 0) {
                    let (metadata, node) = (&attribute.metadata, part.node());
                    match check_attribute_cell(metadata, node, chunk, &cell, rows) {
                        // Edits of zarr-vectors change vertices and leave their attributes. Such
                        // cells are copied as they are: only queries of the attribute refuse them.
                        Ok(())
                        | Err(Damage {
                            fault: Fault::Uneven { .. },
                            ..
                        }) => {}
                        Err(damage) => {
                            self.damaged(damage)?;
                            continue;
                        }
                    }
                }
                columns = columns.or_else(|| columns_of(attribute.metadata.dtype, &cell, rows));
                bytes += cell.len() as u64;
                target.cell(self, chunk.coords(), Vec::from(cell), &mut waiting)?;
            }
            batches.adapt(count, bytes);
            self.writer.done(count);
            at = end;
        }
        Ok(CopiedAttribute {
            chunks: target.keys,
            columns,
        })
    }

    /// Writes the node of an attribute, after all cells.
    async fn attribute_node(
        &self,
        level: &Level,
        attribute: &Attribute,
        copied: CopiedAttribute,
    ) -> Result<(), Failure> {
        let target = Target {
            keys: copied.chunks,
            ..attribute.target(level)?
        };
        let metadata = self.attribute_metadata(attribute, copied.columns, &target.key)?;
        target.end(self, metadata.to_attributes()).await
    }

    fn attribute_metadata(
        &self,
        attribute: &Attribute,
        columns: Option<u64>,
        key: &Key,
    ) -> Result<CellAttribute, Failure> {
        let metadata = &attribute.metadata;
        let Some(role) = attribute.scope.cells() else {
            return Err(Failure::NoCells { node: key.clone() });
        };
        let name = metadata.name.as_deref().unwrap_or(&attribute.name);
        let mut new = CellAttribute::new(role, name, metadata.dtype);
        let declared = metadata.declared_columns();
        let columns = columns.or(declared).unwrap_or(1);
        let shape = metadata.row_shape.as_ref();
        let fits = shape.is_some_and(|shape| shape.iter().product::<u64>() == columns);
        if !fits {
            if let Some(shape) = shape {
                let why = format!("{shape:?} for {columns} values");
                let what = "a shape of rows that differs from the values";
                self.repaired(MigrationNote::new(key.to_string(), what, 1).because(why));
            }
            if !self.form.keeps_empty_cells() || shape.is_some() {
                new.row_shape = Some((columns > 1).then_some(columns).into_iter().collect());
            }
        }
        Ok(new)
    }
}

impl VertexArrays {
    fn rows_target<'a>(
        &'a self,
        level: &Level,
        extent: &'a ChunkExtent,
    ) -> Result<Target<'a>, Failure> {
        Ok(Target {
            key: place(level.keys.node(&ArrayRole::Vertices))?,
            extent,
            arity: level.arity,
            old: self.vertices.attributes(),
            keys: Vec::new(),
        })
    }

    fn index_target<'a>(
        &'a self,
        level: &Level,
        extent: &'a ChunkExtent,
        none: &'a Attributes,
    ) -> Result<Target<'a>, Failure> {
        Ok(Target {
            key: place(level.keys.node(&ArrayRole::VertexFragments))?,
            extent,
            arity: level.arity,
            old: self
                .fragments
                .as_ref()
                .map_or(none, StoredArray::attributes),
            keys: Vec::new(),
        })
    }
}

impl Attribute {
    fn target<'a>(&'a self, level: &'a Level) -> Result<Target<'a>, Failure> {
        Ok(Target {
            key: place(level.keys.node(&self.scope.array(&self.name)))?,
            extent: &level.extent,
            arity: level.arity,
            old: self.part.attributes(),
            keys: Vec::new(),
        })
    }
}

/// Returns the chunks from the first to the last of `range`; both lists ascend.
fn within<'a>(chunks: &'a [ChunkCoord], range: &[ChunkCoord]) -> &'a [ChunkCoord] {
    let (Some(first), Some(last)) = (range.first(), range.last()) else {
        return &[];
    };
    let start = chunks.partition_point(|chunk| chunk < first);
    let end = chunks.partition_point(|chunk| chunk <= last);
    chunks.get(start..end).unwrap_or_default()
}

/// Reads the cells of a part; `None` for chunks without a cell.
async fn cells_or_none(
    catalog: &zvf_catalog::Catalog<'_>,
    part: Option<&StoredArray>,
    chunks: &[ChunkCoord],
) -> Vec<Option<Result<Bytes, Damage>>> {
    let Some(part) = part else {
        return chunks.iter().map(|_| None).collect();
    };
    let has = |chunk: &&ChunkCoord| part.chunks().binary_search(chunk).is_ok();
    let present: Vec<ChunkCoord> = chunks.iter().filter(has).cloned().collect();
    let mut read = catalog.stored_cells(part, &present).await.into_iter();
    let cells = chunks
        .iter()
        .map(|chunk| if has(&chunk) { read.next() } else { None });
    cells.collect()
}

/// The contents of a chunk.
struct ChunkCells {
    rows: Bytes,
    index: Bytes,
    facts: ChunkFacts,
    /// True if the fragments tile the rows.
    tiles: bool,
}

/// A cell, or `None` if it is not stored.
type StoredCell = Option<Result<Bytes, Damage>>;

/// Checks the rows and the fragment index of a chunk.
fn chunk_cells(
    vertices: &StoredArray,
    fragments: Option<&StoredArray>,
    chunk: &ChunkCoord,
    rows: StoredCell,
    index: StoredCell,
    row: Option<u64>,
    with_ends: bool,
) -> Result<ChunkCells, Damage> {
    let damage = |part: &StoredArray, fault: Fault| Damage {
        key: part.node().clone(),
        chunk: Some(chunk.clone()),
        fault,
    };
    let of_index = fragments.unwrap_or(vertices);
    let index = index.unwrap_or_else(|| Err(damage(of_index, Fault::MissingCell)))?;
    let parsed = FragmentIndex::parse(&index).map_err(|error| damage(of_index, error.into()))?;
    let extent = parsed.extent();
    let mut rows = rows.unwrap_or_else(|| Ok(Bytes::new()))?;
    if let Some(padded) = vertices.padded() {
        rows = used(&rows, extent.saturating_mul(padded.row));
    }
    let count = match row {
        // Only the fragments tell the number of rows in a compressed cell.
        None => extent,
        Some(row) => {
            let bytes = rows.len() as u64;
            if bytes.checked_rem(row) != Some(0) {
                return Err(damage(vertices, Fault::Rows { bytes, row }));
            }
            bytes / row
        }
    };
    if extent > count {
        let row = extent.saturating_sub(1);
        return Err(damage(of_index, Fault::NoRow { row, rows: count }));
    }
    let tiles = row.is_some() && parsed.tiles(count);
    let ends = |rows: zvf_format::fragment::Rows<'_>| {
        let mut rows = rows.iter();
        let first = rows.next()?;
        Some((first, rows.last().unwrap_or(first)))
    };
    let facts = ChunkFacts {
        rows: count,
        fragments: parsed.len(),
        ends: if with_ends {
            parsed.iter().map(ends).collect()
        } else {
            Vec::new()
        },
        named: Vec::new(),
    };
    Ok(ChunkCells {
        rows,
        index,
        facts,
        tiles,
    })
}

/// Returns the used prefix of a padded cell.
fn used(cell: &Bytes, bytes: u64) -> Bytes {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    cell.slice(..bytes.min(cell.len()))
}

/// Returns the number of values in a row, if the cell has the same number for each.
fn columns_of(dtype: Dtype, cell: &Bytes, rows: u64) -> Option<u64> {
    let row = (dtype.size() as u64).checked_mul(rows)?;
    let bytes = cell.len() as u64;
    let is_whole = row > 0 && bytes > 0 && bytes.is_multiple_of(row);
    is_whole.then(|| bytes / row)
}

/// Reports children of an array's node that are not chunks.
pub(super) fn unrecognized_children(part: &StoredArray) -> MigrationNote {
    let unrecognized_children = part.unrecognized_children();
    let finding = MigrationNote::new(
        part.node().to_string(),
        "names that are not chunks",
        unrecognized_children.len() as u64,
    );
    finding.because(unrecognized_children.join(", "))
}
