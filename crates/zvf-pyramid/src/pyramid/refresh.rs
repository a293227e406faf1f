//! Rebuilds stale levels where the finer level changed.

mod arrays;
mod counts;
mod manifests;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use zvf_build::{Output, coarsen::Aggregation};
use zvf_catalog::ObjectSet;
use zvf_dataset::{Dataset, Error, Failure, Location, base, nodes};
use zvf_model::{
    fetch::BoxFuture,
    grid::ChunkCoord,
    key::Key,
    layout::ArrayRole,
    level::{ADDITIVE_LEVELS, LevelId},
    metadata::Attributes,
    stale_levels::StaleLevels,
    zarr::Node,
};
use zvf_store::Store;
use zvf_write::writer::{begin_on, encode::root_bytes, or_changed};

use super::{
    LevelDesign, LevelReport, PyramidLevels, PyramidOptions, PyramidReport,
    build::{Build, NewLevel},
    clear, commit_level,
    design::Coarsening,
    kept, make, metadata,
    pending::PENDING_LEVELS,
    pending::{self, PendingLevels},
    source::Source,
    stats::{self, Recipe},
    tally::max_error,
};

/// Chunks of a level that changed since the next level was built.
#[derive(Clone, Debug, PartialEq)]
enum ChangedChunks {
    All,
    Some(BTreeSet<ChunkCoord>),
}

/// Rebuilds the stale levels, only where the finer level changed.
///
/// A level is rebuilt whole if its changed chunks are unknown, if the chunk grid of the store grew, if
/// the order of the objects changed, as [`Editor::compact`](zvf_write::editor::Editor::compact) does, or if its
/// form does not support a partial rebuild.
///
/// ```
/// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
/// use zvf::{Editor, PyramidOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = folder.path().join("points.zv").display().to_string();
/// # let address = address.as_str();
/// # let positions = NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]);
/// # let paths = Geometry::builder(positions).paths(vec![0, 2, 3], vec![7, 8]).build()?;
/// # zvf::create(address, &paths, Design::new(GeometryKind::Streamlines), &Default::default()).await?;
/// zvf::build_pyramid(address, &PyramidOptions::default()).await?;
/// let editor = Editor::open(address).await?;
/// editor.remove(&[7]).await?;
/// zvf::refresh_pyramid(address, &PyramidOptions::default()).await?;
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`](zvf_model::error_kind::ErrorKind::InvalidInput) if a level does not record how it
/// was built; [`Error`] otherwise.
pub async fn refresh_pyramid(
    location: impl Into<Location>,
    options: &PyramidOptions,
) -> Result<PyramidReport, Error> {
    let store = location.into().open(&options.open)?;
    Ok(refresh_in(&store, options).await?)
}

fn refresh_in<'a>(
    store: &'a Store,
    options: &'a PyramidOptions,
) -> BoxFuture<'a, Result<PyramidReport, Failure>> {
    Box::pin(async move {
        let store = &store.without_node_copy();
        let mut made = PyramidReport::default();
        loop {
            let dataset = base::open(store.clone()).await?;
            let stale = StaleLevels::parse(&dataset.root().other);
            let id = stale.first().and_then(|target| target.offset(-1));
            let Some(id) = id else {
                let more = Box::pin(complete(store, &dataset, options)).await?;
                made.levels.extend(more.levels);
                return Ok(made);
            };
            let target = id.offset(1).unwrap_or(id);
            let recipe = recipe(&dataset, target).await?;
            let options = refresh_options(&dataset, options, recipe.rules.clone());
            let coarsening = Coarsening {
                rules: recipe.rules,
                is_again: id.number() > 0,
            };
            let source = Source::open(&dataset, id, &coarsening).await?;
            let is_additive = recipe.design.additive;
            let level = match changed(&dataset, &stale, id) {
                ChangedChunks::Some(_) if is_additive => None,
                ChangedChunks::Some(chunks) => {
                    Box::pin(refresh_chunks(
                        &source,
                        &recipe.design,
                        &coarsening,
                        &options,
                        &chunks,
                    ))
                    .await?
                }
                ChangedChunks::All => None,
            };
            if let Some(level) = level {
                made.levels.push(level);
                continue;
            }
            // All coarser levels derive from this one, so that they are rebuilt as well.
            let first = if is_additive { LevelId::new(1) } else { target };
            let more = Box::pin(rebuild(store, &dataset, options, first)).await?;
            made.levels.extend(more.levels);
            return Ok(made);
        }
    })
}

/// Rebuilds the levels from `first` on, and the levels that an interrupted refresh did not build.
async fn rebuild(
    store: &Store,
    dataset: &Dataset,
    mut options: PyramidOptions,
    first: LevelId,
) -> Result<PyramidReport, Failure> {
    let mut designs = Vec::new();
    // The rebuild deletes all levels of the store, including those that `multiscales` does not list.
    let present = base::surveyed(dataset).await?.levels().to_vec();
    for level in present.iter().filter(|level| **level >= first) {
        designs.push(recipe(dataset, *level).await?.design);
    }
    if let Some(pending) = pending(dataset)? {
        designs.extend(pending.recipes.into_iter().map(|recipe| recipe.design));
        options.refinement |= pending.refinement;
    }
    options.refinement |= dataset.root().has_capability(ADDITIVE_LEVELS);
    options.levels = PyramidLevels::Explicit(designs);
    options.overwrite = true;
    make(store, &options, first.number() - 1).await
}

/// Builds the levels that an interrupted refresh deleted and did not build again.
async fn complete(
    store: &Store,
    dataset: &Dataset,
    options: &PyramidOptions,
) -> Result<PyramidReport, Failure> {
    let Some(pending) = pending(dataset)? else {
        return Ok(PyramidReport::default());
    };
    let present = base::surveyed(dataset).await?.levels().to_vec();
    let coarsest = present.last().copied().unwrap_or(LevelId::FULL);
    let catalog = dataset.catalog();
    let vertices = catalog.stored_array(coarsest, &ArrayRole::Vertices).await?;
    let is_empty = vertices.is_none_or(|vertices| vertices.chunks().is_empty());
    if coarsest != LevelId::FULL && is_empty {
        // A level without vertices has no coarser ones until it has vertices again.
        return Ok(PyramidReport::default());
    }
    let rules = pending.recipes.first().map(|recipe| recipe.rules.clone());
    let mut options = refresh_options(dataset, options, rules.unwrap_or_default());
    let designs = pending.recipes.into_iter().map(|recipe| recipe.design);
    let rest: Vec<LevelDesign> = designs.collect();
    let is_additive = pending.refinement || rest.iter().any(|design| design.additive);
    // Additive levels are counted from the first. Those that exist are kept.
    let first = if is_additive { 0 } else { coarsest.number() };
    let mut designs = Vec::new();
    for level in present.iter().filter(|level| level.number() > first) {
        designs.push(recipe(dataset, *level).await?.design);
    }
    designs.extend(rest);
    options.refinement = pending.refinement;
    options.levels = PyramidLevels::Explicit(designs);
    make(store, &options, first).await
}

/// Returns the options that rebuild levels as they were built.
fn refresh_options(
    dataset: &Dataset,
    options: &PyramidOptions,
    rules: BTreeMap<String, Aggregation>,
) -> PyramidOptions {
    PyramidOptions {
        rules,
        cross_level: metadata::stored(dataset.root()),
        depth: metadata::depth(dataset.root()),
        levels: PyramidLevels::Explicit(Vec::new()),
        overwrite: false,
        refinement: false,
        records_pending: true,
        ..options.clone()
    }
}

/// Reads the recipe of a level.
async fn recipe(dataset: &Dataset, level: LevelId) -> Result<Recipe, Failure> {
    let level = attributes(dataset, &level.to_string()).await?;
    stats::recipe(&level).ok_or(Failure::NoPyramid {
        why: "a level does not record how it was built: build all levels again with --overwrite",
    })
}

/// Returns the levels that an interrupted refresh left; `None` if there are none.
fn pending(dataset: &Dataset) -> Result<Option<PendingLevels>, Failure> {
    let root = &dataset.root().other;
    match pending::of(root) {
        None if root.contains_key(PENDING_LEVELS) => Err(Failure::NoPyramid {
            why: "the record of the levels that remain to be built is damaged: build all levels \
                  again with --overwrite",
        }),
        pending => Ok(pending),
    }
}

/// Returns the chunks of a level that changed since the next level was built; all chunks if they
/// are not recorded.
fn changed(dataset: &Dataset, stale: &StaleLevels, id: LevelId) -> ChangedChunks {
    let arity = dataset.root().axes.len();
    let is_chunk = |chunk: &ChunkCoord| chunk.coords().len() == arity;
    match stale.changed_chunks(id) {
        Some(chunks) if chunks.iter().all(is_chunk) => ChangedChunks::Some(chunks.clone()),
        _ => ChangedChunks::All,
    }
}

/// Reads the attributes of a node.
pub(super) async fn attributes(dataset: &Dataset, path: &str) -> Result<Attributes, Failure> {
    let key = nodes::named(Key::parse(path), path)?;
    super::source::of_node(dataset, &key).await
}

/// Rebuilds the chunks of the next level that cover `changed`; `None` if the level has to be
/// rebuilt whole.
async fn refresh_chunks(
    source: &Source<'_>,
    design: &LevelDesign,
    coarsening: &Coarsening,
    options: &PyramidOptions,
    changed: &BTreeSet<ChunkCoord>,
) -> Result<Option<LevelReport>, Failure> {
    let start = Instant::now();
    let dataset = source.dataset;
    let target = source.id.offset(1).unwrap_or(source.id);
    let form = zvf_write::form::form(dataset).await?;
    let has_copies = source.links.as_ref().is_some_and(|links| links.duplicate);
    // The existing level may be older than the declaration, and its cells not in shards.
    let may_differ = design.sharding.is_none() && dataset.root().shard_shape.is_some();
    let is_chunked = source.metadata.attribute_chunking.is_some();
    if !form.has_ids() || is_chunked || has_copies || may_differ {
        return Ok(None);
    }
    let scale = design.scale();
    let kept = kept(source, design).await?;
    let old = dataset.catalog().object_list(target).await?;
    let mut stale: BTreeSet<ChunkCoord> = changed
        .iter()
        .map(|chunk| source.chunk_of(chunk, &scale))
        .collect();
    if let (Some(now), Some(old)) = (&source.objects, &old) {
        if !is_same_order(now, old) {
            // The rows of a chunk follow the order of the objects, and links name rows of unchanged
            // chunks.
            return Ok(None);
        }
        also_stale(source, &scale, now, old, kept.as_deref(), &mut stale);
    }
    let transaction = begin_on(dataset).await?;
    let level = NewLevel {
        id: target,
        design,
        kept,
        form,
        transaction,
        pending: None,
    };
    let mut build = Build::new(source, options, coarsening, level)?;
    let staged = match stage(&mut build, &stale, old.as_deref()).await {
        Ok(staged) => staged,
        Err(error) => {
            let _ = build.into_transaction().abort().await;
            return Err(or_changed(dataset.store(), dataset.transaction(), error).await);
        }
    };
    let Some(root) = staged else {
        build.into_transaction().abort().await?;
        return Ok(None);
    };
    commit_level(build, &root, start).await.map(Some)
}

/// Returns whether the objects that both levels have are in the same order.
fn is_same_order(now: &ObjectSet, old: &ObjectSet) -> bool {
    let common = (0..now.len()).filter_map(|index| old.find(now.id(index)?));
    common.is_sorted()
}

/// Adds the chunks that change although no vertex in them did, because other objects are kept or a
/// path visits a chunk more or less often.
fn also_stale(
    source: &Source<'_>,
    scale: &[i64],
    now: &ObjectSet,
    old: &ObjectSet,
    kept: Option<&[bool]>,
    stale: &mut BTreeSet<ChunkCoord>,
) {
    let mut more = BTreeSet::new();
    for index in 0..now.len() {
        let Some(id) = now.id(index) else { continue };
        let row = now.row(index).and_then(|row| usize::try_from(row).ok());
        let is_kept =
            kept.is_none_or(|kept| row.and_then(|row| kept.get(row)).copied().unwrap_or(false));
        let before: Vec<&ChunkCoord> = match old.find(id) {
            Some(index) => old
                .fragments(index)
                .iter()
                .filter_map(|piece| old.chunk(piece.chunk))
                .collect(),
            None => Vec::new(),
        };
        let visits = manifests::visits(source, now, index, scale);
        if is_kept == before.is_empty() {
            more.extend(visits.iter().map(|(_, chunk)| chunk.clone()));
            more.extend(before.into_iter().cloned());
            continue;
        }
        if !is_kept || !visits.iter().any(|(_, chunk)| stale.contains(chunk)) {
            continue;
        }
        let mut counts: BTreeMap<&ChunkCoord, (usize, usize)> = BTreeMap::new();
        for (_, chunk) in &visits {
            counts.entry(chunk).or_default().0 += 1;
        }
        for chunk in before {
            counts.entry(chunk).or_default().1 += 1;
        }
        let differs = counts
            .into_iter()
            .filter(|(_, (now, before))| now != before);
        more.extend(differs.map(|(chunk, _)| chunk.clone()));
    }
    // Deleted objects left their chunks.
    for index in 0..old.len() {
        let removed = old.id(index).is_none_or(|id| now.find(id).is_none());
        if removed {
            let pieces = old.fragments(index).iter();
            more.extend(pieces.filter_map(|piece| old.chunk(piece.chunk).cloned()));
        }
    }
    stale.extend(more);
}

/// Stages the changes. Returns the new root, or `None` if the level has to be rebuilt whole.
async fn stage(
    build: &mut Build<'_>,
    stale: &BTreeSet<ChunkCoord>,
    old: Option<&ObjectSet>,
) -> Result<Option<bytes::Bytes>, Failure> {
    let dataset = build.source.dataset;
    let Some(before) = arrays::PreviousArrays::read(build).await? else {
        return Ok(None);
    };
    let sorted = build.source.sorted_links(&build.scale);
    // Chunks at the other end of links from stale chunks, whose coarse rows are needed.
    let mut beside: BTreeSet<ChunkCoord> = BTreeSet::new();
    for chunks in sorted.between.keys() {
        if chunks.iter().any(|chunk| stale.contains(chunk)) {
            beside.extend(
                chunks
                    .iter()
                    .filter(|chunk| !stale.contains(*chunk))
                    .cloned(),
            );
        }
    }
    let removed = counts::RemovedCounts::read(build, stale).await?;
    build.only = Some((stale.clone(), beside));
    build.chunks(&sorted).await?;
    build.crossing(&sorted).await?;
    build.deep_links().await?;
    let present = base::surveyed(dataset).await?.levels().to_vec();
    let target = build.target;
    clear::values_of_links(dataset.store(), build.transaction(), target, &present).await?;
    if build.source.objects.is_some() {
        manifests::complete(build, stale, old);
    }
    build.replace_object_index().await?;
    build.replace_tables().await?;
    let old_attributes = build.old_attributes()?;
    if !before.merge(build, stale, &old_attributes).await? {
        return Ok(None);
    }
    removed.add_unchanged(build);
    build.link_families().await?;
    build.groups().await?;
    let old = base::level(dataset, target).await?;
    // The recorded error still holds for unchanged chunks.
    build.tally.error = max_error(build.tally.error, stats::error(&old.other));
    build.tally.is_untiled |= !old.fragments_tile && !build.shared.recipe.shape.is_shared();
    let level = build.level_attributes();
    let level_key = nodes::place(build.shared.coarse.keys.level())?;
    build
        .writer
        .write(vec![Output::group(level_key, level)])
        .await?;
    build.transaction().touch("*");
    let key = nodes::metadata(&Key::root())?;
    let node = Node::parse(&key, build.transaction().root())?;
    let mut root = node.attributes().clone();
    // The level is no longer stale, and the next one is stale where this one changed.
    let next = target.offset(1).filter(|next| present.contains(next));
    let mut levels = StaleLevels::parse(&root);
    levels.rebuilt(target, next.map(|_| stale));
    levels.write(&mut root);
    Ok(Some(root_bytes(root, dataset.layout().generation)))
}
