//! Jobs that build one chunk of a level. Jobs are independent of each other.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use rayon::prelude::*;
use zvf_build::{
    Output,
    coarsen::{
        CoarseChunk, CoarsenInput, Coarsener, FineChunk, FineLinks, FragmentReference, NO_VERTEX,
        Ownership,
    },
    migrate::{
        AlignedLinks, ChunkExtent, LinkArrayKey, LinkAttributeType, LinkTarget, MigrationTarget,
    },
};
use zvf_catalog::CellLinks;
use zvf_dataset::{Failure, nodes::place};
use zvf_format::path::Delta;
use zvf_model::{
    generation::Generation,
    grid::ChunkCoord,
    key::Key,
    layout::{ArrayRole, GroupRole, LevelKeys, VERTICES},
    level::LevelId,
    metadata::Attributes,
};
use zvf_store::CellArray;
use zvf_write::writer::encode::{Arrays, encoded_on_all_cores};

use super::source::Payloads;

/// A cell that is stored in a shard.
pub(super) struct ShardCell {
    pub(super) level: LevelId,
    pub(super) node: Key,
    /// Coordinates of the shard in the grid of shards.
    pub(super) at: Vec<u64>,
    pub(super) array: CellArray,
    pub(super) key: Key,
    pub(super) number: u64,
    pub(super) payload: Bytes,
}

/// State shared by all jobs of a level.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) recipe: Coarsener,
    /// Form of the cells of the level, and of the cells of links between levels.
    pub(super) form: MigrationTarget,
    pub(super) aside: MigrationTarget,
    pub(super) fine: LevelArrays,
    pub(super) coarse: LevelArrays,
    /// Extent of a chunk of the level.
    pub(super) chunk_shape: Vec<f64>,
    /// Links inside the level.
    pub(super) links: Option<LinkTarget>,
    /// Links from the finer level to this one, and back.
    pub(super) up: Option<LinkTarget>,
    pub(super) down: Option<LinkTarget>,
    /// True if later steps need the coarse row of each fine row.
    pub(super) keeps_parents: bool,
    pub(super) opened: OpenArrays,
}

/// The opened arrays of written cells, by path. Opening an array takes longer than encoding most
/// cells.
pub(super) struct OpenArrays {
    generation: Generation,
    arrays: Mutex<Arc<Arrays>>,
}

/// Clones start empty, because a clone is used for other levels.
impl Clone for OpenArrays {
    fn clone(&self) -> Self {
        Self::new(self.generation)
    }
}

/// The nodes and chunk grid of a level.
#[derive(Clone, Debug)]
pub(super) struct LevelArrays {
    pub(super) keys: LevelKeys,
    pub(super) extent: ChunkExtent,
    pub(super) arity: usize,
    /// Number of leading coordinates of a chunk key that are not spatial.
    pub(super) leading: usize,
}

/// The input of one chunk.
pub(super) struct Job {
    pub(super) chunk: ChunkCoord,
    pub(super) fine: Vec<(ChunkCoord, Payloads, Vec<FragmentReference>)>,
    pub(super) links: Vec<Arc<CellLinks>>,
}

/// The result of one chunk, except for its encoded cells.
pub(super) struct Outcome {
    pub(super) chunk: ChunkCoord,
    pub(super) rows: u64,
    pub(super) names: u64,
    pub(super) tiles: bool,
    pub(super) links: u64,
    pub(super) linked: u64,
    /// Number of these links between chunks of different coordinates.
    pub(super) crossed: u64,
    pub(super) error: Option<f64>,
    /// Number of dropped pieces of meshes.
    pub(super) dropped: u64,
    pub(super) named: Vec<FragmentReference>,
    /// Coarse rows of the rows of each finer chunk, if later steps need them.
    pub(super) parents: Vec<(ChunkCoord, Vec<u32>)>,
    pub(super) put: Vec<WrittenCell>,
    /// Cells of shards, which are written together with the other cells of the shard.
    pub(super) shard_cells: Vec<ShardCell>,
}

/// A written cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WrittenCell {
    pub(super) node: Key,
    pub(super) chunk: Vec<i64>,
    /// Attributes of the array's node, if they depend on the cell.
    pub(super) attributes: Option<Attributes>,
}

/// A cell to be written.
pub(super) struct NewCell {
    pub(super) put: WrittenCell,
    pub(super) payload: Vec<u8>,
}

impl NewCell {
    fn new(node: Key, chunk: &[i64], payload: Vec<u8>) -> Self {
        let chunk = chunk.to_vec();
        let put = WrittenCell {
            node,
            chunk,
            attributes: None,
        };
        Self { put, payload }
    }

    /// Creates a cell of an array whose attributes depend on the cell.
    pub(super) fn with_attributes(
        node: Key,
        chunk: &[i64],
        payload: Vec<u8>,
        attributes: Attributes,
    ) -> Self {
        let mut cell = Self::new(node, chunk, payload);
        cell.put.attributes = Some(attributes);
        cell
    }
}

impl OpenArrays {
    /// Returns no arrays, for a store of this generation.
    pub(super) fn new(generation: Generation) -> Self {
        Self {
            generation,
            arrays: Mutex::new(Arc::new(Arrays::new(generation))),
        }
    }

    fn arrays(&self) -> Arc<Arrays> {
        Arc::clone(&self.arrays.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds the arrays among nodes, and returns all of them.
    fn with(&self, nodes: &[Output]) -> Result<Arc<Arrays>, Failure> {
        let others = Arrays::of(self.generation, nodes)?;
        let mut own = self.arrays.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut own).extend(others);
        Ok(Arc::clone(&own))
    }
}

impl Shared {
    /// Returns whether jobs need the links that leave the chunk. In trees, these links tell where the
    /// order of rows implies no link.
    pub(super) fn needs_ties(&self) -> bool {
        self.recipe.shape == Ownership::Trees || self.recipe.method.needs_ties()
    }

    /// Builds a chunk. Returns the outcome and the objects to upload.
    pub(super) fn run(&self, job: &Job) -> Result<(Outcome, Vec<(Key, Bytes)>), Failure> {
        let mut made = self.make(job)?;
        let attributes = self.recipe.take_cells(&mut made);
        let keys = &self.coarse.keys;
        let at = job.chunk.coords();
        let mut cells = Vec::new();
        if made.rows > 0 {
            let mut put = |part: &ArrayRole<'_>, payload: Vec<u8>| {
                cells.push(NewCell::new(place(keys.node(part))?, at, payload));
                Ok::<_, Failure>(())
            };
            put(&ArrayRole::Vertices, made.positions)?;
            put(&ArrayRole::VertexFragments, made.fragments)?;
            for (part, payload) in attributes {
                put(&part, payload)?;
            }
            if let Some(form) = self.links.as_ref().filter(|_| made.link_count > 0)
                && let Some(array_key) = form.aligned(at)
            {
                put(&ArrayRole::LinkFragments, made.link_fragments)?;
                let mut put = |node, payload, attributes| {
                    cells.push(NewCell::with_attributes(node, at, payload, attributes));
                };
                let attributes = form.array(&array_key, self.coarse.arity);
                put(place(form.key(&array_key))?, made.links, attributes);
                for (field, payload) in self.recipe.link.iter().zip(made.link) {
                    if let Some(payload) = payload {
                        let columns = columns(&payload, made.link_count, field.made().size());
                        let about = LinkAttributeType {
                            name: &field.name,
                            dtype: field.made(),
                            columns,
                        };
                        let attributes =
                            form.attribute(&array_key, about, self.coarse.arity, made.link_count);
                        let node = place(form.attribute_key(&field.name, &array_key))?;
                        put(node, payload, attributes);
                    }
                }
            }
        }
        let (mut linked, mut crossed) = (0, 0);
        let fine = job.fine.par_iter().zip(&made.parents);
        let between: Vec<Result<_, Failure>> = fine
            .map(|((fine, ..), parents)| {
                let mut cells = Vec::new();
                let count = self.between_levels(fine, &job.chunk, parents, &mut cells)?;
                Ok((fine, count, cells))
            })
            .collect();
        for found in between {
            let (fine, count, own) = found?;
            linked += count;
            crossed += if *fine == job.chunk { 0 } else { count };
            cells.extend(own);
        }
        let EncodedCells {
            objects,
            put,
            shard_cells,
        } = self.encode(cells)?;
        let parents = if self.keeps_parents {
            job.fine
                .iter()
                .map(|(fine, ..)| fine.clone())
                .zip(made.parents)
                .collect()
        } else {
            Vec::new()
        };
        let outcome = Outcome {
            chunk: job.chunk.clone(),
            rows: u64::from(made.rows),
            names: made.names,
            tiles: made.tiles,
            links: made.link_count,
            linked,
            crossed,
            error: made.error,
            dropped: made.dropped_pieces,
            named: made.named,
            parents,
            put,
            shard_cells,
        };
        Ok((outcome, objects))
    }

    fn make(&self, job: &Job) -> Result<CoarseChunk, Failure> {
        let numbers: BTreeMap<&ChunkCoord, u32> =
            job.fine.iter().map(|(chunk, ..)| chunk).zip(0..).collect();
        let chunks = job.fine.iter().map(|(chunk, payloads, named)| FineChunk {
            name: format!("{}/{VERTICES}/{chunk}", self.fine.keys.level),
            positions: &payloads.vertices,
            fragments: &payloads.fragments,
            vertex: payloads.vertex.iter().map(Option::as_deref).collect(),
            fragment: payloads.fragment.iter().map(Option::as_deref).collect(),
            named,
        });
        let links = job.links.iter().map(|cell| FineLinks {
            chunks: cell
                .chunks
                .iter()
                .map(|chunk| numbers.get(chunk).copied().unwrap_or(NO_VERTEX))
                .collect(),
            ends: &cell.ends,
            values: cell.values.iter().map(Option::as_deref).collect(),
        });
        let input = CoarsenInput {
            chunks: chunks.collect(),
            links: links.collect(),
        };
        let coords = job.chunk.coords().iter().skip(self.coarse.leading);
        let corners = coords.zip(&self.chunk_shape).map(|(at, extent)| {
            let at = *at as f64;
            (at * extent, (at + 1.0) * extent)
        });
        let (lower, upper) = corners.unzip();
        Ok(self.recipe.make(&input, lower, upper)?)
    }

    /// Adds the links from the rows of a finer chunk to their coarse rows, and back.
    fn between_levels(
        &self,
        fine: &ChunkCoord,
        coarse: &ChunkCoord,
        parents: &[u32],
        cells: &mut Vec<NewCell>,
    ) -> Result<u64, Failure> {
        let rows = parents
            .iter()
            .zip(0u64..)
            .filter(|(parent, _)| **parent != NO_VERTEX);
        let pairs: Vec<(u64, u64)> = rows
            .map(|(parent, row)| (row, u64::from(*parent)))
            .collect();
        if let Some(form) = &self.up {
            file_pairs(form, fine, coarse, &pairs, self.fine.arity, cells)?;
        }
        if let Some(form) = &self.down {
            let back = reversed(&pairs);
            file_pairs(form, coarse, fine, &back, self.coarse.arity, cells)?;
        }
        Ok(pairs.len() as u64)
    }

    /// Returns the level and form of the array at `node`.
    fn level_of(&self, node: &Key) -> (&LevelArrays, &MigrationTarget) {
        let mut parts = node.segments();
        let level = parts.next().and_then(LevelId::parse);
        let families = [GroupRole::Links, GroupRole::CrossChunkLinks].map(GroupRole::name);
        let is_aside = parts.next().is_some_and(|part| families.contains(&part))
            && parts.next().and_then(|delta| Delta::parse(delta).ok()) != Some(Delta::INTRA);
        let form = if is_aside { &self.aside } else { &self.form };
        if level == Some(self.coarse.keys.level) {
            (&self.coarse, form)
        } else {
            (&self.fine, form)
        }
    }

    /// Returns the coordinates of the shard that holds a chunk; `None` without sharding.
    pub(super) fn shard_of(&self, level: &LevelArrays, chunk: &ChunkCoord) -> Option<Vec<u64>> {
        let coords = chunk.coords();
        self.form.shard_of(&level.extent, level.arity, coords)
    }

    /// Encodes cells as objects, and returns cells of shards unencoded.
    pub(super) fn encode(&self, cells: Vec<NewCell>) -> Result<EncodedCells, Failure> {
        let (mut outputs, mut put) = (Vec::new(), Vec::with_capacity(cells.len()));
        let mut shard_cells = Vec::new();
        let mut arrays = self.opened.arrays();
        for cell in cells {
            let (level, form) = self.level_of(&cell.put.node);
            let path = &cell.put.node;
            if form.is_current() && !arrays.has(path) {
                let none = Attributes::new();
                let (extent, arity) = (&level.extent, level.arity);
                let node = form
                    .part(path, extent, arity, &[], &none, none.clone())
                    .ok_or_else(|| outside_grid(path))?;
                arrays = self.opened.with(std::slice::from_ref(&node))?;
            }
            let chunk = &cell.put.chunk;
            let made = form
                .cell(path, &level.extent, chunk, cell.payload)
                .ok_or_else(|| outside_grid(path))?;
            match form.shard_of(&level.extent, level.arity, chunk) {
                Some(at) => {
                    let array = arrays.get(path)?;
                    for output in made {
                        shard_cells.extend(in_shard(&array, level.keys.level, &at, output)?);
                    }
                }
                None => outputs.extend(made),
            }
            put.push(cell.put);
        }
        Ok(EncodedCells {
            objects: encoded_on_all_cores(&arrays, outputs)?,
            put,
            shard_cells,
        })
    }

    /// Returns the node of an array with a cell for each of these chunks.
    pub(super) fn node(
        &self,
        node: &Key,
        chunks: &[&[i64]],
        old: &Attributes,
        attributes: Attributes,
    ) -> Result<Output, Failure> {
        let (level, form) = self.level_of(node);
        let output = form.part(node, &level.extent, level.arity, chunks, old, attributes);
        output.ok_or_else(|| outside_grid(node))
    }
}

/// Reverses links, which are in ascending order of rows. Returns links from coarse rows to rows, in
/// ascending order.
fn reversed(pairs: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let parents = pairs.iter().map(|(_, parent)| *parent);
    let (Some(min), Some(max)) = (parents.clone().min(), parents.max()) else {
        return Vec::new();
    };
    let span = usize::try_from(max - min).unwrap_or(usize::MAX);
    if span > pairs.len().saturating_mul(4) {
        let mut back: Vec<_> = pairs.iter().map(|(row, parent)| (*parent, *row)).collect();
        back.sort_unstable();
        return back;
    }
    // Counting sort.
    let index = |parent: u64| (parent - min) as usize;
    let mut starts = vec![0_usize; span + 2];
    for (_, parent) in pairs {
        starts[index(*parent) + 1] += 1;
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut back = vec![(0, 0); pairs.len()];
    for (row, parent) in pairs {
        let slot = &mut starts[index(*parent)];
        back[*slot] = (*parent, *row);
        *slot += 1;
    }
    back
}

/// Adds the cells of links from rows of a chunk to rows of a chunk of another level.
pub(super) fn file_pairs(
    form: &LinkTarget,
    from: &ChunkCoord,
    to: &ChunkCoord,
    pairs: &[(u64, u64)],
    arity: usize,
    cells: &mut Vec<NewCell>,
) -> Result<(), Failure> {
    if pairs.is_empty() {
        return Ok(());
    }
    let mut chunks = vec![from.coords(), to.coords()];
    chunks.sort_unstable();
    chunks.dedup();
    if let ([at], Some(array_key)) = (chunks.as_slice(), form.aligned(from.coords())) {
        let rows = pairs.iter().flat_map(|(a, b)| [*a, *b]);
        let links = AlignedLinks::new(rows, Vec::new());
        let payload = form.aligned_payload(&[], &links).unwrap_or_default();
        cells.push(of_links(form, &array_key, at, payload, arity)?);
        return Ok(());
    }
    let ends = [from.coords(), to.coords()];
    let placed = form.file_pairs(ends, pairs)?;
    let Some(((array_key, at), payload)) = placed else {
        return Err(outside_grid(&family(form)?));
    };
    cells.push(of_links(form, &array_key, &at, payload, arity)?);
    Ok(())
}

/// Returns the node of the links of a delta.
fn family(form: &LinkTarget) -> Result<Key, Failure> {
    place(form.key(&if form.is_current() {
        LinkArrayKey::Offsets(String::new())
    } else {
        LinkArrayKey::CrossChunk
    }))
}

/// Returns a cell of links.
fn of_links(
    form: &LinkTarget,
    array_key: &LinkArrayKey,
    at: &[i64],
    payload: Vec<u8>,
    arity: usize,
) -> Result<NewCell, Failure> {
    let node = place(form.key(array_key))?;
    let attributes = form.array(array_key, arity);
    Ok(NewCell::with_attributes(node, at, payload, attributes))
}

/// A callback that receives the array, the chunk and the indexes of the links of a cell.
pub(super) type PlacedLinks<'a> = dyn FnMut(&LinkArrayKey, &[i64], &[usize]) + 'a;

/// Encoded cells.
pub(super) struct EncodedCells {
    pub(super) objects: Vec<(Key, Bytes)>,
    pub(super) put: Vec<WrittenCell>,
    /// Cells of shards, unencoded.
    pub(super) shard_cells: Vec<ShardCell>,
}

/// Returns the cell with its position in a shard; `None` if the array has no shards.
fn in_shard(
    array: &CellArray,
    level: LevelId,
    at: &[u64],
    output: Output,
) -> Result<Option<ShardCell>, Failure> {
    let Output::Cell { index, payload, .. } = output else {
        return Ok(None);
    };
    let location = array.locate(&index).map_err(|source| Failure::Index {
        node: array.node().clone(),
        source,
    })?;
    Ok(match location {
        (key, Some(number)) => Some(ShardCell {
            level,
            node: array.node().clone(),
            at: at.to_vec(),
            array: array.clone(),
            key,
            number,
            payload: Bytes::from(payload),
        }),
        (_, None) => None,
    })
}

/// Assigns links to arrays, adds their cells, and reports the links of each cell to `filed`.
pub(super) fn file(
    form: &LinkTarget,
    chunks: &[&[i64]],
    ends: &[(u32, u64)],
    links: &[usize],
    arity: usize,
    cells: &mut Vec<NewCell>,
    placed_links: &mut PlacedLinks<'_>,
) -> Result<(), Failure> {
    let Some((placed, beside)) = form.file(chunks, ends, links)? else {
        return Err(outside_grid(&family(form)?));
    };
    for ((array_key, at), links) in placed {
        placed_links(&array_key, &at, &links.from);
        cells.push(of_links(form, &array_key, &at, links.payload(), arity)?);
    }
    for (at, links) in beside {
        let Some(array_key) = form.aligned(&at) else {
            continue;
        };
        // A payload without earlier groups has none that could be damaged.
        let payload = form.aligned_payload(&[], &links).unwrap_or_default();
        placed_links(&array_key, &at, &links.from);
        cells.push(of_links(form, &array_key, &at, payload, arity)?);
    }
    Ok(())
}

/// Returns the number of values in a row.
pub(super) fn columns(payload: &[u8], rows: u64, size: usize) -> usize {
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    payload
        .len()
        .checked_div(rows.saturating_mul(size))
        .unwrap_or(1)
}

pub(super) fn outside_grid(node: &Key) -> Failure {
    Failure::Build(zvf_build::BuildError::ChunksTooFarApart(node.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_back_ascend() {
        for parents in [
            vec![],
            vec![7],
            vec![3, 3, 2, 9, 2, 3],
            vec![5, 4_000_000_000, 5, 0, 5],
        ] {
            let pairs: Vec<(u64, u64)> = (0..).step_by(2).zip(parents).collect();
            let mut expected: Vec<_> = pairs.iter().map(|(row, parent)| (*parent, *row)).collect();
            expected.sort_unstable();
            assert_eq!(reversed(&pairs), expected);
        }
    }
}
