//! Coarser levels of a store.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "shares, extents and choices, none of which needs to be exact"
)]

mod auto;
mod between;
mod build;
mod clear;
mod declare;
mod deep;
mod design;
mod job;
mod metadata;
mod objects;
mod pending;
mod refresh;
mod resume;
mod shards;
mod source;
mod sparse;
mod stats;
mod tally;
pub mod tasks;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Instant,
};

use serde_json::Value;
use zvf_build::{
    Output,
    coarsen::{AggregatedAttribute, Aggregation, MethodKind},
};
use zvf_dataset::{Error, Failure, Location, base, nodes};
use zvf_model::{
    array::{CellAttribute, FragmentArray},
    fetch::BoxFuture,
    key::Key,
    layout::ArrayRole,
    level::LevelId,
    metadata::Attributes,
    root::{CrossLevel, CrossLevelDepth},
    scope::Scope,
    zarr::Node,
};
use zvf_store::{OpenOptions, Store, Transaction};
use zvf_write::{
    commit::unfinished,
    form::form,
    job::PlannedJob,
    task_runner::TaskRunner,
    writer::{begin_on, encode::root_bytes, or_changed},
};

use self::{
    build::{Build, NewLevel},
    design::Coarsening,
    pending::PENDING_LEVELS,
    source::{LevelSize, SortedLinks, Source},
};

pub use auto::AutoLevels;
pub use design::{LevelDesign, ObjectSelection};
pub use refresh::refresh_pyramid;

/// Callback for progress: the level, the number of finished chunks and of all chunks.
pub type LevelProgress = Arc<dyn Fn(LevelId, u64, u64) + Send + Sync>;

/// The levels to build.
#[derive(Clone, Debug, PartialEq)]
pub enum PyramidLevels {
    /// Levels chosen from the contents of the store.
    Auto(AutoLevels),
    /// These levels, finest first.
    Explicit(Vec<LevelDesign>),
}

impl Default for PyramidLevels {
    fn default() -> Self {
        Self::Auto(AutoLevels::default())
    }
}

/// Options of [`build_pyramid`] and [`refresh_pyramid`].
///
/// ```
/// use zvf::{AutoLevels, CrossLevel, PyramidOptions};
///
/// let mut levels = AutoLevels::default();
/// levels.levels = Some(2);
/// let options = PyramidOptions::new()
///     .levels(levels)
///     .cross_level(CrossLevel::None)
///     .overwrite(true);
/// assert!(options.overwrite);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct PyramidOptions {
    /// Levels to build: [`AutoLevels`], or a `Vec` of [`LevelDesign`].
    pub levels: PyramidLevels,
    /// Aggregation of the values of attributes, by name. Default: one that suits the type.
    pub rules: BTreeMap<String, Aggregation>,
    /// Links between levels to store. Default: from fine to coarse.
    pub cross_level: CrossLevel,
    /// Maximum number of levels that a link spans. Default: no limit.
    pub depth: Option<u32>,
    /// Declares additive levels by `refinement: add`, a draft of the format after 0.9.2, instead of
    /// `zvf_additive`. Readers of this draft return whole levels, and those without additive levels
    /// refuse the store. Points with objects are refused, because levels of this draft hold whole
    /// objects. Default: `false`.
    pub refinement: bool,
    /// Replaces existing levels. Default: levels that differ from the design are an error.
    pub overwrite: bool,
    /// Called after each chunk.
    pub progress: Option<LevelProgress>,
    /// Runs the tasks of a level in other processes, which open the store by its address.
    /// Default: all cores of this process. A partial refresh always runs in this process.
    pub runner: Option<Arc<dyn TaskRunner>>,
    /// Options the store is opened with.
    pub open: OpenOptions,
    /// Records the levels that are still to be built in the root, so that a refresh continues with
    /// them after an interruption.
    pub(crate) records_pending: bool,
}

impl Default for PyramidOptions {
    fn default() -> Self {
        Self {
            levels: PyramidLevels::default(),
            rules: BTreeMap::new(),
            cross_level: CrossLevel::Implicit,
            depth: None,
            refinement: false,
            overwrite: false,
            progress: None,
            runner: None,
            open: OpenOptions::default(),
            records_pending: false,
        }
    }
}

impl PyramidOptions {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    zvf_model::setters! {
        cross_level: CrossLevel,
        depth: u32,
        levels: into PyramidLevels,
        open: OpenOptions,
        overwrite: bool,
        progress: LevelProgress,
        refinement: bool,
        runner: Arc<dyn TaskRunner>,
    }

    /// Sets the aggregation of the values of attribute `name`.
    #[must_use]
    pub fn rule(mut self, name: impl Into<String>, rule: Aggregation) -> Self {
        self.rules.insert(name.into(), rule);
        self
    }
}

impl From<AutoLevels> for PyramidLevels {
    fn from(levels: AutoLevels) -> Self {
        Self::Auto(levels)
    }
}

impl From<Vec<LevelDesign>> for PyramidLevels {
    fn from(levels: Vec<LevelDesign>) -> Self {
        Self::Explicit(levels)
    }
}

impl core::fmt::Debug for PyramidOptions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PyramidOptions")
            .field("levels", &self.levels)
            .field("cross_level", &self.cross_level)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

impl PyramidOptions {
    /// Returns whether links to the next level and links back are stored.
    fn stored_links(&self) -> (bool, bool) {
        let any = self.depth != Some(0);
        (
            any && self.cross_level != CrossLevel::None,
            any && self.cross_level == CrossLevel::Explicit,
        )
    }

    /// Returns the depth as the metadata have it.
    fn depth_of(&self) -> CrossLevelDepth {
        match (self.cross_level, self.depth) {
            (CrossLevel::None, _) => CrossLevelDepth::Levels(0),
            (_, None) => CrossLevelDepth::All,
            // A store has fewer levels than the format can express.
            (_, Some(depth)) => {
                CrossLevelDepth::of_number(depth.into()).unwrap_or(CrossLevelDepth::All)
            }
        }
    }
}

/// The result of building a level.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LevelReport {
    /// The number of the level.
    pub level: LevelId,
    /// The method.
    pub method: &'static str,
    /// Number of stored vertices.
    pub vertices: u64,
    /// Number of references of objects to vertices. A shared vertex counts several times. `None` if
    /// paths were rebuilt in part, which does not read the references of unchanged chunks.
    pub named: Option<u64>,
    /// Number of chunks with vertices.
    pub chunks: u64,
    /// Number of objects with vertices; `None` without objects.
    pub objects: Option<u64>,
    /// Number of links inside the level.
    pub links: u64,
    /// Number of bytes written, including links to the level.
    pub bytes: u64,
    /// Maximum displacement of the geometry, if the method computes it.
    pub error: Option<f64>,
    /// Number of connected pieces of meshes that the level lacks, because they are smaller than its
    /// edges or have fewer faces than `cull`. A refresh counts those of rebuilt chunks.
    pub dropped_pieces: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// The number of the transaction.
    pub transaction: u64,
    /// The reason why the change could not be finished after its commit, as on a full disk; `None` as
    /// a rule. Readers see the whole change, and the next change of the store finishes it.
    pub unfinished: Option<String>,
}

/// The result of building a pyramid.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PyramidReport {
    /// The levels that were built, finest first.
    pub levels: Vec<LevelReport>,
    /// Number of existing levels that equal the design and were kept.
    pub existing: u32,
}

/// Builds coarser levels of a store.
///
/// Each level is one transaction. An interrupted build leaves complete levels; calling this again
/// continues after them.
///
/// ```
/// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
/// use zvf::PyramidOptions;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = folder.path().join("points.zv").display().to_string();
/// # let address = address.as_str();
/// # let positions = NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]);
/// # let paths = Geometry::builder(positions).paths(vec![0, 2, 3], vec![7, 8]).build()?;
/// # zvf::create(address, &paths, Design::new(GeometryKind::Streamlines), &Default::default()).await?;
/// let options = PyramidOptions::default();
/// let made = zvf::build_pyramid(address, &options).await?;
/// println!("{} levels", made.levels.len());
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`](zvf_model::error_kind::ErrorKind::InvalidInput) when the levels cannot be built as
/// requested; [`Error`] otherwise.
pub async fn build_pyramid(
    location: impl Into<Location>,
    options: &PyramidOptions,
) -> Result<PyramidReport, Error> {
    let store = location.into().open(&options.open)?;
    Ok(make(&store, options, 0).await?)
}

/// Plans the first level that does not exist, to be built by about `tasks` parts of a job. Returns
/// `None` if all levels exist.
pub async fn plan_level(
    store: &Store,
    options: &PyramidOptions,
    tasks: usize,
) -> Result<Option<(LevelId, PlannedJob)>, Failure> {
    let (_, planned) = levels(store, options, 0, Some(tasks)).await?;
    Ok(planned)
}

/// Builds the levels after `first`.
async fn make(
    store: &Store,
    options: &PyramidOptions,
    first: u32,
) -> Result<PyramidReport, Failure> {
    Ok(levels(store, options, first, None).await?.0)
}

/// Levels that were built, and the one that was planned.
type Levels = (PyramidReport, Option<(LevelId, PlannedJob)>);

/// Builds the levels after `first`, or plans the first of them that does not exist in `tasks`
/// parts.
fn levels<'a>(
    store: &'a Store,
    options: &'a PyramidOptions,
    first: u32,
    tasks: Option<usize>,
) -> BoxFuture<'a, Result<Levels, Failure>> {
    Box::pin(async move {
        let store = &store.without_node_copy();
        if let Some(made) = additive_levels(store, options, tasks).await? {
            return Ok(made);
        }
        let mut made = PyramidReport::default();
        let mut before: Option<LevelDesign> = None;
        let mut known: Option<LevelSize> = None;
        for step in 0.. {
            let number = first.saturating_add(step);
            let dataset = base::open(store.clone()).await?;
            let id = LevelId::new(number);
            let coarsening = Coarsening {
                rules: options.rules.clone(),
                is_again: number > 0,
            };
            let source = Source::open(&dataset, id, &coarsening).await?;
            // Also where no level is made.
            check_rules(&source, options)?;
            check_options(&source, options)?;
            let design = match &options.levels {
                PyramidLevels::Explicit(levels) => levels.get(step as usize).cloned(),
                PyramidLevels::Auto(automatic) => {
                    if known.is_none() && automatic.counts() {
                        known = Some(source.size().await?);
                    }
                    automatic
                        .next(&source, step, known, before.as_ref())
                        .await?
                }
            };
            let Some(design) = design else { break };
            let target = id.offset(1).ok_or(Failure::NoPyramid {
                why: "the store already has the maximum number of levels",
            })?;
            let (vertices, chunks) = if resume::is_made(&dataset, target, &design, options).await? {
                made.existing += 1;
                let present = base::level(&dataset, target).await?;
                let info = Box::pin(base::count(&dataset, &present)).await?;
                (info.vertices.unwrap_or(0), info.chunks)
            } else if let Some(tasks) = tasks {
                let planning = plan_at(&source, target, &design, &coarsening, options, tasks);
                return Ok((made, Some((target, Box::pin(planning).await?))));
            } else {
                let rest = pending::after(options, step as usize);
                let making = level_at(&source, target, &design, &coarsening, options, rest);
                let level = Box::pin(making).await?;
                let counts = (level.vertices, level.chunks);
                made.levels.push(level);
                counts
            };
            let fine = known.map(|known| known.vertices);
            known = Some(LevelSize {
                vertices,
                chunks,
                fewer: fine.map(|fine| fine as f64 / vertices.max(1) as f64),
            });
            before = Some(design);
            if vertices == 0 {
                break;
            }
        }
        Ok((made, None))
    })
}

/// Builds additive levels, which contain each point once, if requested.
async fn additive_levels(
    store: &Store,
    options: &PyramidOptions,
    tasks: Option<usize>,
) -> Result<Option<Levels>, Failure> {
    let is_asked = match &options.levels {
        PyramidLevels::Auto(automatic) => automatic.additive,
        PyramidLevels::Explicit(levels) => levels.iter().any(|level| level.additive),
    };
    if !is_asked {
        return Ok(None);
    }
    let coarsening = Coarsening {
        rules: options.rules.clone(),
        is_again: false,
    };
    let mut made = PyramidReport::default();
    let mut designs = match &options.levels {
        PyramidLevels::Explicit(levels) if levels.iter().all(|level| level.additive) => {
            Some(levels.clone())
        }
        PyramidLevels::Explicit(_) => {
            return Err(Failure::NoPyramid {
                why: "additive levels cannot be combined with complete ones",
            });
        }
        PyramidLevels::Auto(_) => None,
    };
    for target in 1.. {
        let dataset = base::open(store.clone()).await?;
        let source = Source::open(&dataset, LevelId::FULL, &coarsening).await?;
        check_rules(&source, options)?;
        check_options(&source, options)?;
        if options.refinement && source.objects.is_some() {
            return Err(Failure::NoPyramid {
                why: "`refinement: add` puts whole objects on levels, and additive levels divide them; \
                      build them without refinement",
            });
        }
        if let (None, PyramidLevels::Auto(automatic)) = (&designs, &options.levels) {
            designs = Some(
                automatic
                    .design_additive(&source, source.size().await?)
                    .await?,
            );
        }
        let design = designs.as_ref().and_then(|designs| designs.get(target - 1));
        let Some(design) = design else { break };
        let rest = pending::after(options, target - 1);
        let target = LevelId::new(u32::try_from(target).unwrap_or(u32::MAX));
        if resume::is_made(&dataset, target, design, options).await? {
            made.existing += 1;
            continue;
        }
        if let Some(tasks) = tasks {
            let planned = plan_at(&source, target, design, &coarsening, options, tasks).await?;
            return Ok(Some((made, Some((target, planned)))));
        }
        let level = level_at(&source, target, design, &coarsening, options, rest).await?;
        made.levels.push(level);
    }
    if options.refinement {
        let count = designs.map_or(0, |designs| designs.len());
        declare::additive(store, u32::try_from(count).unwrap_or(u32::MAX)).await?;
    }
    Ok(Some((made, None)))
}

/// Plans a level from a source, to be built by a job.
async fn plan_at(
    source: &Source<'_>,
    target: LevelId,
    design: &LevelDesign,
    coarsening: &Coarsening,
    options: &PyramidOptions,
    tasks: usize,
) -> Result<PlannedJob, Failure> {
    let build = begin_level(source, target, design, coarsening, options, None).await?;
    tasks::plan(build, source.dataset.store(), tasks).await
}

/// Builds a level from a source.
async fn level_at(
    source: &Source<'_>,
    target: LevelId,
    design: &LevelDesign,
    coarsening: &Coarsening,
    options: &PyramidOptions,
    pending: Option<Value>,
) -> Result<LevelReport, Failure> {
    let start = Instant::now();
    let build = begin_level(source, target, design, coarsening, options, pending).await?;
    match fill(build).await {
        Ok((build, root)) => commit_level(build, &root, start).await,
        Err((transaction, error)) => {
            // The next writer deletes leftovers.
            let _ = transaction.abort().await;
            let (store, base) = (source.dataset.store(), source.dataset.transaction());
            Err(or_changed(store, base, error).await)
        }
    }
}

/// Begins a level: checks that it may be built, and deletes the levels that it replaces.
async fn begin_level<'a>(
    source: &'a Source<'a>,
    target: LevelId,
    design: &'a LevelDesign,
    coarsening: &Coarsening,
    options: &'a PyramidOptions,
    pending: Option<Value>,
) -> Result<Build<'a>, Failure> {
    let dataset = source.dataset;
    let form = form(dataset).await?;
    let present: Vec<LevelId> = base::surveyed(dataset).await?.levels().to_vec();
    if present.iter().any(|level| *level >= target) && !options.overwrite {
        return Err(Failure::NoPyramid {
            why: "there are coarser levels already; --overwrite replaces them, --refresh makes those anew \
                  that are behind",
        });
    }
    let mut transaction = begin_on(dataset).await?;
    clear::levels(dataset.store(), &mut transaction, target, &present).await?;
    let kept = kept(source, design).await?;
    let level = NewLevel {
        id: target,
        design,
        kept,
        form,
        transaction,
        pending,
    };
    Build::new(source, options, coarsening, level)
}

/// Commits a level. If that fails, deletes its staged objects.
async fn commit_level(
    mut build: Build<'_>,
    root: &[u8],
    start: Instant,
) -> Result<LevelReport, Failure> {
    let committed = commit_kept(&mut build, root, start).await;
    if committed.is_err() {
        // The next writer deletes leftovers.
        let _ = build.into_transaction().abort().await;
    }
    committed
}

/// Commits a level. If that fails, its staged objects are kept.
async fn commit_kept(
    build: &mut Build<'_>,
    root: &[u8],
    start: Instant,
) -> Result<LevelReport, Failure> {
    let committed = build.transaction().commit(root).await?;
    build.count_written();
    let tally = &build.tally;
    Ok(LevelReport {
        level: build.target,
        method: build.design.method.kind().name(),
        vertices: tally.rows,
        named: (!tally.is_partly_named).then_some(tally.names),
        chunks: tally.chunks,
        objects: build.source.objects.as_ref().map(|_| tally.present),
        links: tally.links,
        bytes: tally.bytes,
        error: tally.error,
        dropped_pieces: tally.dropped,
        seconds: start.elapsed().as_secs_f64(),
        transaction: committed.transaction,
        unfinished: unfinished(&committed),
    })
}

/// Returns the objects that a level keeps, by row; `None` keeps all.
async fn kept(source: &Source<'_>, design: &LevelDesign) -> Result<Option<Vec<bool>>, Failure> {
    match &design.sparsity {
        Some(wanted) => sparse::kept(source, wanted, &design.scale()).await,
        None => Ok(None),
    }
}

/// Rejects methods that do not suit the geometry, and extents, factors, tolerances and numbers of
/// points that no level can have.
fn check_options(source: &Source<'_>, options: &PyramidOptions) -> Result<(), Failure> {
    match &options.levels {
        PyramidLevels::Auto(automatic) => {
            if let Some(method) = automatic.method {
                check_geometry(source, method, options)?;
            }
            automatic.check(source.spatial_axes().len())
        }
        PyramidLevels::Explicit(levels) => {
            let mut methods = levels.iter().map(|level| &level.method);
            methods.try_for_each(|method| {
                check_geometry(source, method.kind(), options)?;
                match method.invalidity() {
                    Some(why) => Err(Failure::NoPyramid { why }),
                    None => Ok(()),
                }
            })
        }
    }
}

/// Rejects a method that would leave the geometry unchanged. Levels that record one are rebuilt as
/// they are.
fn check_geometry(
    source: &Source<'_>,
    method: MethodKind,
    options: &PyramidOptions,
) -> Result<(), Failure> {
    if source.id != LevelId::FULL || options.records_pending {
        return Ok(());
    }
    match method.refusal(source.topology()) {
        Some(why) => Err(Failure::NoPyramid { why }),
        None => Ok(()),
    }
}

/// Rejects rules for attributes that do not exist. Coarser levels may lack the attribute.
fn check_rules(source: &Source<'_>, options: &PyramidOptions) -> Result<(), Failure> {
    if source.id != LevelId::FULL {
        return Ok(());
    }
    let cells = source.vertex.iter().chain(&source.fragment);
    let links = source.links.iter().flat_map(|links| &links.fields);
    let known: BTreeSet<&str> = cells
        .map(|own| own.name.as_str())
        .chain(links.map(|own| own.name.as_str()))
        .collect();
    let unknown = options
        .rules
        .keys()
        .find(|name| !known.contains(name.as_str()));
    match unknown {
        None => Ok(()),
        Some(name) => {
            let meant = zvf_model::closest::closest(name, known.iter().copied());
            let meant = meant.map(|meant| format!("; did you mean {meant}?"));
            let known = if known.is_empty() {
                "none".to_owned()
            } else {
                known.into_iter().collect::<Vec<_>>().join(", ")
            };
            Err(Failure::PyramidAttribute {
                name: name.clone(),
                known: known + meant.as_deref().unwrap_or_default(),
            })
        }
    }
}

/// Stages a level. Returns the root that makes it part of the store.
async fn fill(mut build: Build<'_>) -> Result<(Build<'_>, bytes::Bytes), (Transaction, Failure)> {
    match stage(&mut build).await {
        Ok(root) => Ok((build, root)),
        Err(error) => Err((build.into_transaction(), error)),
    }
}

async fn stage(build: &mut Build<'_>) -> Result<bytes::Bytes, Failure> {
    let sorted: SortedLinks = build.source.sorted_links(&build.scale);
    build.chunks(&sorted).await?;
    stage_rest(build, &sorted).await
}

/// Stages what spans chunks, after all chunks.
async fn stage_rest(build: &mut Build<'_>, sorted: &SortedLinks) -> Result<bytes::Bytes, Failure> {
    build.crossing(sorted).await?;
    build.deep_links().await?;
    build.object_index().await?;
    build.tables().await?;
    let node_attributes = build.old_attributes()?;
    build.nodes(&node_attributes).await?;
    build.link_families().await?;
    build.groups().await?;
    let level = build.level_attributes();
    let key = nodes::place(build.shared.coarse.keys.level())?;
    build.writer.write(vec![Output::group(key, level)]).await?;
    // Conflicts with every change of the finer level.
    build.transaction().touch("*");
    let key = nodes::metadata(&Key::root())?;
    let mut root = Node::parse(&key, build.transaction().root())?
        .attributes()
        .clone();
    clear::root(&mut root, build.target, build.source.is_shared);
    let mut root = build.root_attributes(root);
    if let Some(pending) = build.pending.take() {
        root.insert(PENDING_LEVELS.to_owned(), pending);
    }
    Ok(root_bytes(root, build.source.dataset.layout().generation))
}

impl Build<'_> {
    /// Returns the attributes of the nodes of the finer level, by the paths of the new one.
    fn old_attributes(&self) -> Result<BTreeMap<Key, Attributes>, Failure> {
        let keys = self.shared.coarse.keys;
        let mut node_attributes = BTreeMap::new();
        let mut add = |part: ArrayRole<'_>, attributes: Attributes| {
            node_attributes.insert(nodes::place(keys.node(&part))?, attributes);
            Ok::<_, Failure>(())
        };
        let fragments = FragmentArray::Links.to_attributes();
        add(ArrayRole::LinkFragments, fragments)?;
        let (vertices, fragments) = (&self.source.vertices, &self.source.fragments);
        add(ArrayRole::Vertices, vertices.attributes().clone())?;
        add(ArrayRole::VertexFragments, fragments.attributes().clone())?;
        for scope in Scope::OF_CHUNKS {
            let fields = self.shared.recipe.attributes(scope);
            for (own, field) in self.source.attributes(scope).iter().zip(fields) {
                let attributes = counted(own.attributes(), field);
                add(scope.array(&own.name), attributes)?;
            }
        }
        Ok(node_attributes)
    }

    /// Writes the groups above arrays with a cell for each chunk, which exist if they have an array.
    async fn groups(&mut self) -> Result<(), Failure> {
        let keys = self.shared.coarse.keys;
        let families = self.families();
        let mut outputs = Vec::new();
        for scope in Scope::OF_CHUNKS {
            let group = nodes::place(keys.group(scope.group()))?;
            if families.iter().any(|own| own.is_below(&group)) {
                outputs.push(Output::empty_group(group));
            }
        }
        self.writer.write(outputs).await
    }
}

/// Returns the attributes of the node of an aggregated attribute. Counts are numbers of any type.
fn counted(attributes: &Attributes, field: &AggregatedAttribute) -> Attributes {
    let mut attributes = attributes.clone();
    if field.rule == Aggregation::Count {
        CellAttribute::set_scalar(&mut attributes, field.made());
    }
    attributes
}
