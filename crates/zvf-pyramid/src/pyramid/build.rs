//! Builds one level from the next finer one: jobs in batches, then the parts that span chunks.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::Arc,
};

use bytes::Bytes;
use futures_util::future::{join, join3};
use rayon::prelude::*;
use serde_json::Value;
use zvf_build::{
    coarsen::{Coarsener, FragmentReference, MethodKind, Ownership},
    migrate::{ChunkExtent, LinkRecordPolicy, LinkTarget, MigrationTarget},
};
use zvf_dataset::{Failure, Progress, nodes::place};
use zvf_format::{
    links::{AxisScales, LinkWidth},
    path::Delta,
};
use zvf_model::{
    grid::{Bins, ChunkCoord, ChunkShape},
    key::Key,
    layout::{ArrayRole, LINK_FRAGMENTS},
    level::{LevelId, LevelMetadata},
    metadata::Attributes,
    root::RootMetadata,
};
use zvf_store::Transaction;
use zvf_write::writer::{
    cell_writer::{CellWriter, StagedTransaction},
    run,
};

use super::{
    LevelDesign, PyramidOptions,
    design::Coarsening,
    job::{Job, LevelArrays, NewCell, OpenArrays, Outcome, Shared},
    shards::{self, Groups, LastSteps, Shards},
    source::{SortedLinks, Source},
    tally::Tally,
};

/// Maximum number of cores for which a batch has work.
const MAX_CORES: usize = 16;
/// Approximate bytes of cells that the jobs of a batch read, for each core.
const BATCH_BYTES_PER_CORE: u64 = 4 << 20;
/// Finer chunks in the first batch for each core. It measures the size of a chunk.
const FIRST_BATCH_PER_CORE: usize = 4;
/// Size up to which a batch grows until it has a job for each core, in multiples of its usual size.
const FEW_JOBS: usize = 3;
/// Maximum number of finer chunks in a batch.
const MAX_BATCH: usize = 2048;

/// A level that is being built.
pub(super) struct Build<'a> {
    pub(super) source: &'a Source<'a>,
    pub(super) options: &'a PyramidOptions,
    pub(super) design: &'a LevelDesign,
    pub(super) shared: Arc<Shared>,
    pub(super) target: LevelId,
    /// Metadata of the new level, complete enough to derive its links to the finer level.
    pub(super) metadata: LevelMetadata,
    pub(super) scale: Vec<i64>,
    pub(super) writer: CellWriter<StagedTransaction<Transaction>>,
    pub(super) tally: Tally,
    pub(super) shards: Shards,
    /// Links between levels, each with the arity of its chunk keys and its counts.
    pub(super) between: Vec<(LinkTarget, usize, LinkCounts)>,
    /// Shared state for levels below the finer one, for links that span several levels.
    pub(super) deep_places: BTreeMap<LevelId, Arc<Shared>>,
    pub(super) deep_metadata: BTreeMap<LevelId, LevelMetadata>,
    /// True if the values of the finer level were aggregated by the same rules.
    pub(super) is_again: bool,
    /// The chunks to build, and the chunks for which only the coarse rows are computed; `None`
    /// builds all.
    pub(super) only: Option<(BTreeSet<ChunkCoord>, BTreeSet<ChunkCoord>)>,
    /// The record of the levels that remain to be built after this one; see [`super::pending`].
    pub(super) pending: Option<Value>,
}

/// Number of links, and number of links between chunks of different coordinates.
pub(super) type LinkCounts = (u64, u64);

/// A level to build.
pub(super) struct NewLevel<'a> {
    pub(super) id: LevelId,
    pub(super) design: &'a LevelDesign,
    /// Marks the objects to keep, by row; `None` keeps all.
    pub(super) kept: Option<Vec<bool>>,
    pub(super) form: MigrationTarget,
    pub(super) transaction: Transaction,
    pub(super) pending: Option<Value>,
}

impl<'a> Build<'a> {
    /// Derives the state that all chunks share.
    pub(super) fn new(
        source: &'a Source<'a>,
        options: &'a PyramidOptions,
        coarsening: &Coarsening,
        level: NewLevel<'a>,
    ) -> Result<Self, Failure> {
        let NewLevel {
            id: target,
            design,
            kept,
            form,
            transaction,
            pending,
        } = level;
        let root = source.dataset.root();
        let shapes = LevelShapes::new(source, target, design)?;
        let recipe = recipe(source, design, coarsening, kept, &shapes)?;
        let chunk_shape = shapes.chunk.extents().to_vec();
        let mut metadata = source.metadata.clone();
        metadata.level = target;
        metadata.chunk_shape = Some(shapes.chunk);
        metadata.bin_shape = Some(shapes.bin);
        let mut fine = level_arrays(root, &form, &source.metadata);
        let mut coarse = level_arrays(root, &form, &metadata);
        let scale = design.scale();
        for chunk in source.chunks() {
            fine.extent.reach(chunk.coords());
            coarse
                .extent
                .reach(source.chunk_of(&chunk, &scale).coords());
        }
        let form = shards::form(source, design, &form, &coarse)?;
        let aside = form.compressed();
        // In an additive pyramid, points of the finer level need not have a point in this one.
        let (stores_up, stores_down) = if design.additive {
            (false, false)
        } else {
            options.stored_links()
        };
        let up = stores_up
            .then(|| link_form(root, &source.metadata, &metadata, 1, &aside))
            .transpose()?;
        let down = stores_down
            .then(|| link_form(root, &metadata, &source.metadata, -1, &aside))
            .transpose()?;
        let links = inside_form(source, &metadata, &form)?;
        let is_deep = options.depth != Some(1) && source.id.number() > 0 && stores_up;
        let shared = Shared {
            recipe,
            aside,
            form,
            fine,
            coarse,
            chunk_shape,
            keeps_parents: links.is_some() || is_deep,
            links,
            up,
            down,
            opened: OpenArrays::new(source.dataset.layout().generation),
        };
        let progress = options.progress.clone();
        let progress = progress.map(|progress| -> Progress {
            Arc::new(move |done, total| progress(target, done, total))
        });
        let generation = source.dataset.layout().generation;
        let staged = StagedTransaction::new(transaction);
        let writer = CellWriter::new(staged, generation).with_progress(progress);
        Ok(Self {
            source,
            options,
            design,
            shared: Arc::new(shared),
            target,
            metadata,
            scale,
            writer,
            tally: Tally::default(),
            shards: Shards::default(),
            between: Vec::new(),
            deep_places: BTreeMap::new(),
            deep_metadata: BTreeMap::new(),
            is_again: coarsening.is_again,
            only: None,
            pending,
        })
    }

    /// Returns whether a chunk is built. For other chunks, only the coarse rows are computed.
    pub(super) fn is_made(&self, chunk: &ChunkCoord) -> bool {
        let only = self.only.as_ref();
        only.is_none_or(|(stale, _)| stale.contains(chunk))
    }

    /// Returns the chunk of this level that covers a chunk of a finer one.
    pub(super) fn coarse_of(
        &self,
        level: Option<LevelId>,
        chunk: &ChunkCoord,
    ) -> Option<ChunkCoord> {
        let level = level?;
        if level == self.source.id {
            return Some(self.source.chunk_of(chunk, &self.scale));
        }
        let root = self.source.dataset.root();
        let fine = self.deep_metadata.get(&level)?.scale(root).ok()?;
        let coarse = self.metadata.scale(root).ok()?;
        let factors = fine
            .iter()
            .zip(&coarse)
            .map(|(fine, coarse)| i64::from(coarse.get() / fine.get()).max(1));
        let scale: Vec<i64> = factors.collect();
        Some(self.source.chunk_of(chunk, &scale))
    }

    /// Returns the shared state of the level that an array belongs to.
    pub(super) fn shared_of(&self, node: &Key) -> &Shared {
        let level = node.segments().next().and_then(LevelId::parse);
        let deep = level.and_then(|level| self.deep_places.get(&level));
        deep.map_or(&*self.shared, |shared| shared)
    }

    pub(super) fn arrays_of(&self, metadata: &LevelMetadata) -> LevelArrays {
        level_arrays(self.source.dataset.root(), &self.shared.form, metadata)
    }

    pub(super) fn link_form(
        &self,
        from: &LevelMetadata,
        to: &LevelMetadata,
        delta: i32,
        form: &MigrationTarget,
    ) -> Result<LinkTarget, Failure> {
        link_form(self.source.dataset.root(), from, to, delta, form)
    }

    /// Builds all chunks.
    pub(super) async fn chunks(&mut self, links: &SortedLinks) -> Result<(), Failure> {
        let groups = self.chunk_groups();
        if let (Some(runner), None) = (&self.options.runner, &self.only) {
            return self.run_tasks(Arc::clone(runner), &groups).await;
        }
        let all = 0..groups.len();
        self.make_groups(links, groups, all).await
    }

    /// Returns the chunks to build, each with the finer chunks that it is built from.
    pub(super) fn chunk_groups(&self) -> Groups {
        let mut groups: BTreeMap<ChunkCoord, Vec<ChunkCoord>> = BTreeMap::new();
        for chunk in self.source.chunks() {
            let coarse = self.source.chunk_of(&chunk, &self.scale);
            groups.entry(coarse).or_default().push(chunk);
        }
        if let Some((stale, beside)) = &self.only {
            groups.retain(|chunk, _| stale.contains(chunk) || beside.contains(chunk));
        }
        Groups::new(&self.shared, groups)
    }

    /// Builds a range of the chunks.
    pub(super) async fn make_groups(
        &mut self,
        links: &SortedLinks,
        groups: Groups,
        range: Range<usize>,
    ) -> Result<(), Failure> {
        let mut named = self.source.named();
        self.writer.expect(range.len());
        let Groups {
            all, last_steps, ..
        } = groups;
        let mut todo = all
            .into_iter()
            .skip(range.start)
            .take(range.len())
            .peekable();
        let cores = rayon::current_num_threads().min(MAX_CORES);
        let batch_bytes = BATCH_BYTES_PER_CORE.saturating_mul(cores as u64);
        let mut max = FIRST_BATCH_PER_CORE.saturating_mul(cores);
        let mut waiting: Vec<Job> = Vec::new();
        let mut objects: Vec<(Key, Bytes)> = Vec::new();
        let mut done = range.start;
        // While one batch is built, the next is read and the previous is written.
        loop {
            let mut batch: Vec<(ChunkCoord, Vec<ChunkCoord>)> = Vec::new();
            let mut count = 0;
            while let Some((_, fine)) = todo.peek() {
                let limit = if batch.len() < cores {
                    max.saturating_mul(FEW_JOBS)
                } else {
                    max
                };
                if !batch.is_empty() && count + fine.len() > limit {
                    break;
                }
                count += fine.len();
                batch.extend(todo.next());
            }
            if batch.is_empty() && waiting.is_empty() && objects.is_empty() {
                return Ok(());
            }
            let read = read(
                self.source,
                links,
                batch,
                &mut named,
                self.shared.needs_ties(),
            );
            let shared = Arc::clone(&self.shared);
            let jobs = std::mem::take(&mut waiting);
            let finished = jobs.len();
            done += finished;
            let make = run(move || make(&shared, &jobs));
            let put = self.writer.put(std::mem::take(&mut objects));
            let (read, made, put) = join3(read, make, put).await;
            put?;
            let (bytes, jobs) = read?;
            if count > 0 {
                let each = (bytes / count as u64).max(1);
                max = usize::try_from(batch_bytes / each)
                    .unwrap_or(MAX_BATCH)
                    .clamp(1, MAX_BATCH);
            }
            waiting = jobs;
            for (mut outcome, own) in made? {
                let shard_cells = std::mem::take(&mut outcome.shard_cells);
                if !self.is_made(&outcome.chunk) {
                    self.tally.parents.extend(outcome.parents);
                    continue;
                }
                self.tally.add(outcome);
                self.shards.add(shard_cells)?;
                objects.extend(own);
            }
            objects.extend(self.shards.objects(&last_steps, done).await?);
            self.writer.done(finished);
        }
    }

    pub(super) fn transaction(&mut self) -> &mut Transaction {
        self.writer.destination().transaction()
    }

    pub(super) fn into_transaction(self) -> Transaction {
        self.writer.into_destination().into_parts().0
    }

    /// Adds the written objects and bytes to the tally.
    pub(super) fn count_written(&mut self) {
        let written = self.writer.take_report();
        self.tally.objects += written.objects;
        self.tally.bytes += written.bytes;
    }

    /// Writes the nodes of all arrays with cells, and of vertices and their fragments also without.
    /// `old` has the attributes of the corresponding nodes of the finer level.
    pub(super) async fn nodes(&mut self, old: &BTreeMap<Key, Attributes>) -> Result<(), Failure> {
        let none = Attributes::new();
        let mut outputs = Vec::new();
        let is_current = self.shared.form.is_current();
        for key in self.required()? {
            self.tally.put.entry(key).or_default();
        }
        for (path, part) in std::mem::take(&mut self.tally.put) {
            let family = path.segments().nth(1).unwrap_or_default();
            // Before 0.9, links have families, and their arrays were written with the cells.
            let is_links = family.contains("link") && family != LINK_FRAGMENTS;
            if is_current || !is_links {
                let old = old.get(&path).unwrap_or(&none);
                outputs.push(part.node(self.shared_of(&path), &path, old)?);
            }
            self.tally.families.insert(path);
        }
        self.writer.write(outputs).await
    }

    /// Returns the keys of the arrays that every level has, even without vertices.
    pub(super) fn required(&self) -> Result<[Key; 2], Failure> {
        let keys = &self.shared.coarse.keys;
        let key = |part: &ArrayRole<'_>| place(keys.node(part));
        Ok([
            key(&ArrayRole::Vertices)?,
            key(&ArrayRole::VertexFragments)?,
        ])
    }

    /// Returns the keys of arrays and families with cells.
    pub(super) fn families(&self) -> Vec<Key> {
        let known = self.tally.families.iter().cloned();
        known.chain(self.tally.put.keys().cloned()).collect()
    }
}

/// Builds the chunks of a batch on all cores.
#[expect(clippy::type_complexity, reason = "what a batch comes to, used once")]
fn make(shared: &Shared, jobs: &[Job]) -> Result<Vec<(Outcome, Vec<(Key, Bytes)>)>, Failure> {
    let made: Vec<Result<_, Failure>> = jobs.par_iter().map(|job| shared.run(job)).collect();
    made.into_iter().collect()
}

/// Reads the input of a batch. Returns its size in bytes and the jobs.
async fn read(
    source: &Source<'_>,
    links: &SortedLinks,
    batch: Vec<(ChunkCoord, Vec<ChunkCoord>)>,
    named: &mut BTreeMap<ChunkCoord, Vec<FragmentReference>>,
    with_ties: bool,
) -> Result<(u64, Vec<Job>), Failure> {
    let chunks: Vec<ChunkCoord> = batch
        .iter()
        .flat_map(|(_, fine)| fine.iter().cloned())
        .collect();
    let own = |chunk: &ChunkCoord| {
        let inside = links.inside.get(chunk).into_iter().flatten();
        let touching = links
            .touching
            .get(chunk)
            .filter(|_| with_ties)
            .into_iter()
            .flatten();
        inside.chain(touching).copied().collect::<Vec<usize>>()
    };
    let of_each: Vec<Vec<usize>> = batch.iter().map(|(chunk, _)| own(chunk)).collect();
    let mut wanted: Vec<usize> = of_each.concat();
    wanted.sort_unstable();
    wanted.dedup();
    let (payloads, read) = join(source.read(&chunks), source.read_links(&wanted)).await;
    let read: Vec<Arc<_>> = read?.into_iter().map(Arc::new).collect();
    let mut payloads = payloads?.into_iter();
    let ends: usize = read.iter().map(|cell| size_of_val(&*cell.ends)).sum();
    let mut bytes = ends as u64;
    let mut jobs = Vec::with_capacity(batch.len());
    for ((chunk, fine), cells) in batch.into_iter().zip(of_each) {
        let fine = fine
            .into_iter()
            .filter_map(|chunk| {
                let payloads = payloads.next()?;
                bytes += payloads.size();
                let named = named.remove(&chunk).unwrap_or_default();
                Some((chunk, payloads, named))
            })
            .collect();
        let links = cells
            .iter()
            .filter_map(|cell| read.get(wanted.binary_search(cell).ok()?).cloned())
            .filter(|cell| source.is_first_copy(cell))
            .collect();
        jobs.push(Job { chunk, fine, links });
    }
    Ok((bytes, jobs))
}

/// Returns the nodes and chunk grid of a level.
fn level_arrays(
    root: &RootMetadata,
    form: &MigrationTarget,
    metadata: &LevelMetadata,
) -> LevelArrays {
    let bounds = root.bounds.as_ref();
    let bounds = bounds.map(|bounds| (bounds.lower(), bounds.upper()));
    let chunking = metadata.attribute_chunking.as_ref();
    let values = chunking.map(|chunking| chunking.values.len() as u64);
    let shape = metadata.effective_chunk_shape(root).extents();
    LevelArrays {
        keys: form.keys(metadata.level),
        extent: ChunkExtent::of_bounds(bounds, shape, values),
        arity: metadata.arity(root),
        leading: usize::from(chunking.is_some()),
    }
}

/// Returns the form of the links inside a level.
fn inside_form(
    source: &Source<'_>,
    metadata: &LevelMetadata,
    form: &MigrationTarget,
) -> Result<Option<LinkTarget>, Failure> {
    let Some(links) = &source.links else {
        return Ok(None);
    };
    let width = LinkWidth::new(links.width as u64).map_err(|_| Failure::NoPyramid {
        why: "its links have more ends than are supported",
    })?;
    let equal = link_scales(source.dataset.root(), metadata, metadata)?;
    let policy = LinkRecordPolicy {
        directed: links.directed,
        duplicate: links.duplicate,
    };
    Ok(Some(form.links(
        metadata.level,
        Delta::INTRA,
        width,
        policy,
        equal,
    )))
}

/// Returns the form of the links between two levels.
fn link_form(
    root: &RootMetadata,
    from: &LevelMetadata,
    to: &LevelMetadata,
    delta: i32,
    form: &MigrationTarget,
) -> Result<LinkTarget, Failure> {
    let scales = link_scales(root, from, to)?;
    let (level, delta) = (from.level, Delta::new(delta));
    let policy = LinkRecordPolicy {
        // 0.8.0 has no such policy: the codes of sorted records tell the order of the ends.
        directed: form.is_current(),
        ..LinkRecordPolicy::default()
    };
    Ok(form.links(level, delta, LinkWidth::EDGE, policy, scales))
}

fn link_scales(
    root: &RootMetadata,
    from: &LevelMetadata,
    to: &LevelMetadata,
) -> Result<Vec<AxisScales>, Failure> {
    from.link_scales(to, root).map_err(|_| Failure::NoPyramid {
        why: "the chunk shape of a level is not a whole multiple of the root's",
    })
}

/// The shapes of a level.
struct LevelShapes {
    chunk: ChunkShape,
    bin: ChunkShape,
    bins: Bins,
}

impl LevelShapes {
    /// Derives the shapes from those of the finer level. Checks that bins and cells divide chunks.
    fn new(source: &Source<'_>, target: LevelId, design: &LevelDesign) -> Result<Self, Failure> {
        let own = source.metadata.effective_chunk_shape(source.dataset.root());
        if design.chunk_scale.len() != own.axes() || design.chunk_scale.contains(&0) {
            return Err(Failure::NoPyramid {
                why: "its chunk shape must be a whole multiple of the finer level's along each axis",
            });
        }
        let shape = |extents: &[f64]| {
            ChunkShape::new(extents).map_err(|_| Failure::NoPyramid {
                why: "the extents of its chunks, bins and cells must be finite and above 0",
            })
        };
        let chunk: Vec<f64> = design.scaled(own.extents()).collect();
        let (chunk, bin) = (shape(&chunk)?, shape(&bin_shape(source, design))?);
        let nested = |extents| {
            Bins::new(&chunk, extents).map_err(|source| Failure::PyramidBins {
                level: target,
                source,
            })
        };
        let bins = nested(bin.clone())?;
        for cell in design.method.cells() {
            nested(shape(cell)?)?;
        }
        Ok(Self { chunk, bin, bins })
    }
}

/// Returns the builder of chunks, if the method suits the geometry.
fn recipe(
    source: &Source<'_>,
    design: &LevelDesign,
    coarsening: &Coarsening,
    kept: Option<Vec<bool>>,
    shapes: &LevelShapes,
) -> Result<Coarsener, Failure> {
    let links = source.links.as_ref();
    let width = links.map(|links| links.width);
    if let Some(why) = design.method.kind().refused_links(width) {
        return Err(Failure::NoPyramid { why });
    }
    let shape = source.shape(design.method.shares());
    // Shared fragments list vertices in order; their links and faces are not followed.
    let is_linked = links.is_some() && !source.is_paths();
    if shape == Ownership::Shared && is_linked && design.method.kind() != MethodKind::Bins {
        return Err(Failure::NoPyramid {
            why: "its objects share fragments, and only --method bins follows links then",
        });
    }
    let keeps = design.method.keeps_vertices();
    let has_objects = source.objects.is_some();
    let vertex = source.vertex.iter().map(|own| own.field(coarsening, keeps));
    // Without objects, the fragments of bins are computed anew.
    let fragment = source
        .fragment
        .iter()
        .filter(|_| has_objects)
        .map(|own| own.field(coarsening, true));
    Ok(Coarsener {
        // A linked vertex belongs to one object, and paths always share.
        method: match shape {
            Ownership::SharedPoints => design.method.clone(),
            _ => design.method.without_sharing(),
        },
        axes: shapes.chunk.axes(),
        positions: source.positions,
        shape,
        has_objects,
        kept,
        bins: (!has_objects).then(|| shapes.bins.clone()),
        width: links.map(|links| links.width),
        directed: links.is_some_and(|links| links.directed),
        vertex: vertex.collect::<Result<_, _>>()?,
        fragment: fragment.collect::<Result<_, _>>()?,
        link: links.map(|links| links.fields.clone()).unwrap_or_default(),
    })
}

/// Returns the extent of bins: as many in each chunk as before, and no smaller than the cells.
fn bin_shape(source: &Source<'_>, design: &LevelDesign) -> Vec<f64> {
    let root = source.dataset.root();
    let own = source.metadata.effective_bin_shape(root);
    let scaled = design.scaled(own.extents());
    match design.method.cell() {
        // In the reference implementation, cells are bins.
        Some(cell) => scaled.zip(cell).map(|(bin, cell)| bin.max(*cell)).collect(),
        None => scaled.collect(),
    }
}

impl Build<'_> {
    /// Writes cells. A shard is written once all of its cells exist.
    pub(super) async fn put_cells(
        &mut self,
        shared: &Arc<Shared>,
        new: Vec<NewCell>,
        last_steps: &LastSteps,
        done: usize,
    ) -> Result<(), Failure> {
        let encoded = shared.encode(new)?;
        self.tally.count_puts(encoded.put);
        self.shards.add(encoded.shard_cells)?;
        let mut objects = encoded.objects;
        objects.extend(self.shards.objects(last_steps, done).await?);
        self.writer.put(objects).await
    }
}
