//! Migration of stores to another generation.

mod extras;
mod level;
mod links;
mod objects;
mod parametric;
mod parts;
pub mod tasks;
mod units;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::{Value, json};
use zvf_build::{
    BuildError, CellChecksums, CellCompression, Output, Profile,
    migrate::{ChunkExtent, ImpliedLinks, LevelFacts, MigrationNote, MigrationTarget, RootFacts},
};
use zvf_catalog::{Catalog, CatalogError, Damage, Fault, LinkCells};
use zvf_dataset::{
    Dataset, Error, Failure, Location, Progress,
    base::{self, check_whole_level},
    nodes::{self, place},
};
use zvf_format::path::Delta;
use zvf_model::{
    error_chain::error_chain,
    fetch::{BoxFuture, FetchProblem},
    generation::Generation,
    grid::ChunkCoord,
    json::Json,
    key::Key,
    level::LevelId,
    metadata::Attributes,
};
use zvf_store::{CreateError, OpenOptions, Store, path_in_folder};
use zvf_write::writer::{
    WriteReport, begin_replace,
    cell_writer::{CellWriter, Destination},
    commit_or_delete, copies_nodes,
    encode::root_bytes,
    finish_replace, name_of,
};

use level::{Level, is_suspect};
use links::CopiedLinks;
use parts::ChunkArrays;
use tasks::CopiedCells;

/// Subject of the note about a part that cannot be read.
const DAMAGED: &str = "cannot be read";

/// Options of [`migrate`].
///
/// ```
/// use zvf::{MigrateOptions, Profile};
///
/// let options = MigrateOptions::new(Profile::V08).overwrite(true).skip_damaged(true);
/// assert_eq!(options.profile, Profile::V08);
/// ```
#[derive(Clone)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "independent options")]
pub struct MigrateOptions {
    /// Generation and form of the new store. Default: 0.9.
    pub profile: Profile,
    /// Compression of its cells.
    pub compression: CellCompression,
    /// Name of the new collection where the old one has none. Default: the folder of its address.
    pub name: Option<String>,
    /// Checksums of its cells. Default: as the profile has them.
    pub checksums: CellChecksums,
    /// Leaves out and lists parts that cannot be read. Default: such a part is an error.
    pub skip_damaged: bool,
    /// Replaces an existing store in one transaction, which may be the one that is read.
    /// Default: an existing store is an error.
    pub overwrite: bool,
    /// Called with the number of cells written and of all known so far. The second number grows
    /// as arrays are opened.
    pub progress: Option<Progress>,
    /// Adds a [copy of the nodes](zvf_model::node_copy) to a root of 0.9. Default: `true`.
    pub node_copy: bool,
    /// Seals the new store, as [`CreateOptions::seal`](zvf_write::writer::CreateOptions::seal). Default: `true`.
    pub seal: bool,
    /// Options both stores are opened with.
    pub open: OpenOptions,
}

impl Default for MigrateOptions {
    fn default() -> Self {
        Self::new(Profile::default())
    }
}

impl MigrateOptions {
    /// Returns the default options for a store of `profile`.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            compression: CellCompression::default(),
            name: None,
            checksums: CellChecksums::default(),
            skip_damaged: false,
            overwrite: false,
            progress: None,
            node_copy: true,
            seal: true,
            open: OpenOptions::default(),
        }
    }

    zvf_model::setters! {
        checksums: CellChecksums,
        compression: CellCompression,
        name: into String,
        node_copy: bool,
        open: OpenOptions,
        overwrite: bool,
        progress: Progress,
        seal: bool,
        skip_damaged: bool,
    }
}

impl core::fmt::Debug for MigrateOptions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("MigrateOptions")
            .field("profile", &self.profile)
            .field("overwrite", &self.overwrite)
            .field("skip_damaged", &self.skip_damaged)
            .finish_non_exhaustive()
    }
}

/// The result of a migration.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MigrateReport {
    /// The generation of the source.
    pub from: Generation,
    /// The profile of the new store.
    pub to: Profile,
    /// Number of levels.
    pub levels: u64,
    /// Number of vertices of all levels.
    pub vertices: u64,
    /// Number of links inside and between all levels, without copies.
    pub links: u64,
    /// Number of uploaded objects.
    pub objects: u64,
    /// Number of uploaded bytes.
    pub bytes: u64,
    /// Faults of the old store that the new one does not have.
    pub repaired: Vec<MigrationNote>,
    /// Parts that the new store lacks.
    pub lost: Vec<MigrationNote>,
    /// The reason why the change could not be finished after its commit, as on a full disk; `None` as
    /// a rule. Readers see the whole change, and the next change of the store finishes it.
    pub unfinished: Option<String>,
}

impl MigrateReport {
    /// Returns the report as JSON.
    pub fn to_json(&self) -> Json {
        let notes = |notes: &[MigrationNote]| {
            let notes = notes.iter().map(|note| {
                let mut json = json!({"path": note.path, "what": note.what, "count": note.count});
                if let Some(why) = &note.why {
                    json["why"] = json!(why);
                }
                json
            });
            Value::Array(notes.collect())
        };
        json!({
            "from": self.from.to_string(),
            "to": self.to.name(),
            "levels": self.levels,
            "vertices": self.vertices,
            "links": self.links,
            "objects_written": self.objects,
            "bytes_written": self.bytes,
            "repaired": notes(&self.repaired),
            "lost": notes(&self.lost),
        })
        .into()
    }
}

/// Rewrites the store at `source` as a store of another generation at `target`. The source does
/// not change, and the target can be opened when it is complete, not before.
///
/// Cells are read and written in batches. Attributes of objects, and links before 0.8, are held
/// whole, one at a time.
///
/// ```
/// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
/// use zvf::{MigrateOptions, Profile};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = folder.path().join("points.zv").display().to_string();
/// # let address = address.as_str();
/// # let positions = NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]);
/// # let points = Geometry::new(positions);
/// # let mut design = Design::new(GeometryKind::Points);
/// # design.chunk_shape = Some(vec![10.0; 3]);
/// # zvf::create(address, &points, design, &Default::default()).await?;
/// let mut options = MigrateOptions::default();
/// options.profile = Profile::V08;
/// let target = folder.path().join("old.zv").display().to_string();
/// let migrated = zvf::migrate(address, &target, &options).await?;
/// println!("{migrated:?}");
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`Error`] when a part cannot be read, unless [`skip_damaged`](MigrateOptions::skip_damaged) is
/// set; [`CreateError`] when something exists at `target`, or it is in the store at `source`.
pub async fn migrate(
    source: impl Into<Location>,
    target: impl Into<Location>,
    options: &MigrateOptions,
) -> Result<MigrateReport, Error> {
    let dataset = Dataset::open_with(source, &options.open).await?;
    migrate_dataset(&dataset, target, options).await
}

/// Rewrites the store of an open dataset, as [`migrate`].
///
/// # Errors
///
/// See [`migrate`].
pub async fn migrate_dataset(
    source: &Dataset,
    target: impl Into<Location>,
    options: &MigrateOptions,
) -> Result<MigrateReport, Error> {
    let target = target.into();
    if let Some(address) = target.address() {
        check_outside(source.address(), address)?;
    }
    let name = new_name(source, target.address(), options);
    let store = target.create(&options.open)?;
    Ok(migrate_in(source, &store, &name, options).await?)
}

/// Returns the name of the new collection if the old one has none.
fn new_name(source: &Dataset, target: Option<&str>, options: &MigrateOptions) -> String {
    let name = options
        .name
        .as_deref()
        .or_else(|| target.and_then(name_of))
        .or_else(|| name_of(source.address()));
    name.unwrap_or("zarr_vectors").to_owned()
}

/// Fails if the target is in the store that is read, where its files would be damage.
fn check_outside(source: &str, target: &str) -> Result<(), Failure> {
    let path = path_in_folder(target, source);
    if path.is_some_and(|path| !path.as_os_str().is_empty()) {
        Err(Failure::Create {
            address: target.to_owned(),
            source: CreateError::InStore(source.to_owned()),
        })
    } else {
        Ok(())
    }
}

/// Returns the form of the new store, and the source with all of its levels. Fails if a level is a
/// draft that cannot be migrated.
async fn checked(
    source: &Dataset,
    options: &MigrateOptions,
) -> Result<(MigrationTarget, Dataset), Failure> {
    let form = MigrationTarget::new(options.profile, options.compression, options.checksums)?;
    let source = base::surveyed(source).await?;
    let levels = base::levels(&source).await?;
    levels.iter().try_for_each(check_whole_level)?;
    Ok((form, source))
}

fn migrate_in<'a>(
    source: &'a Dataset,
    store: &'a Store,
    name: &'a str,
    options: &'a MigrateOptions,
) -> BoxFuture<'a, Result<MigrateReport, Failure>> {
    Box::pin(async move {
        let (form, source) = checked(source, options).await?;
        let copies = copies_nodes(options.profile, options.node_copy);
        let failed = |source| Failure::Create {
            address: store.to_string(),
            source,
        };
        let begun = match (store.begin_create().await, options.overwrite) {
            (Err(CreateError::Leftovers), true) => store.begin_create_replacing_leftovers().await,
            (Err(CreateError::AlreadyExists), true) => {
                let (staged, before) = begin_replace(store, copies, options.seal).await?;
                let migration = Migration::new(&source, &form, &staged, options);
                let root = migration.run(name).await;
                let (written, report) = migration.finish();
                drop(migration);
                let made = root.map(|root| (root, written));
                let written = finish_replace(staged, before, made).await?;
                return Ok(MigrateReport {
                    unfinished: written.unfinished,
                    ..report
                });
            }
            (begun, _) => begun,
        };
        let mut creation = begun.map_err(failed)?;
        if copies {
            creation.write_node_copy();
        }
        if options.seal {
            creation.write_seal();
        }
        let migration = Migration::new(&source, &form, &creation, options);
        let made = migration.run(name).await;
        let (written, mut report) = migration.finish();
        drop(migration);
        let made = made.map(|root| (root, written));
        let written = commit_or_delete(store, creation, made).await?;
        (report.objects, report.bytes) = (written.objects, written.bytes);
        Ok(report)
    })
}

/// A running migration.
struct Migration<'a> {
    source: &'a Dataset,
    form: &'a MigrationTarget,
    writer: CellWriter<&'a dyn Destination>,
    options: &'a MigrateOptions,
    /// Cells that tasks have written.
    copied: Option<CopiedCells>,
    state: Mutex<State>,
}

/// A level, its links and its other arrays, none of whose cells is read yet.
struct OpenLevel {
    level: Level,
    links: Vec<(Delta, LinkCells)>,
    arrays: ChunkArrays,
}

/// A level whose vertices and attributes of them are migrated, and its links.
struct LevelWithVertices {
    level: Level,
    links: Vec<(Delta, LinkCells)>,
    copied_links: Option<CopiedLinks>,
}

#[derive(Default)]
struct State {
    repaired: Vec<MigrationNote>,
    lost: Vec<MigrationNote>,
    vertices: u64,
    links: u64,
    shares_fragments: bool,
    /// Number of rows of the object index of each level.
    object_rows: BTreeMap<LevelId, u64>,
    /// Chunks of each level whose vertices were migrated. Recorded only if damage is skipped.
    intact: HashMap<LevelId, Arc<HashSet<ChunkCoord>>>,
    /// Groups that were written because a node is below them.
    parents: Vec<Key>,
}

impl<'a> Migration<'a> {
    fn new(
        source: &'a Dataset,
        form: &'a MigrationTarget,
        destination: &'a dyn Destination,
        options: &'a MigrateOptions,
    ) -> Self {
        let writer = CellWriter::new(destination, form.generation());
        Self {
            source,
            form,
            writer: writer.with_progress(options.progress.clone()),
            options,
            copied: None,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn catalog(&self) -> Catalog<'_> {
        self.source.catalog()
    }

    /// Writes all nodes and cells, except for the root, which it returns.
    async fn run(&self, name: &str) -> Result<bytes::Bytes, Failure> {
        let levels = self.source.levels().to_vec();
        // Links lead to vertices of other levels, which may be damaged.
        let mut with_vertices = Vec::with_capacity(levels.len());
        for level in &levels {
            with_vertices.push(self.level_vertices(*level).await?);
            self.forget_arrays();
        }
        for level in with_vertices {
            self.rest_of_level(level).await?;
            self.forget_arrays();
        }
        self.parametric().await?;
        self.other_root_nodes(&levels).await?;
        let attributes = self.attributes(&Key::root()).await?;
        let mut with_bins = Vec::with_capacity(levels.len());
        for level in levels {
            let metadata = base::level(self.source, level).await?;
            with_bins.push(metadata.dataset(self.source.root()));
        }
        let facts = RootFacts {
            name: name.to_owned(),
            levels: with_bins,
            shares_fragments: self.state().shares_fragments,
        };
        let root = self.form.root(&attributes, &facts);
        Ok(root_bytes(root, self.form.generation()))
    }

    /// Forgets arrays all of whose cells are written.
    fn forget_arrays(&self) {
        self.writer.forget_arrays();
        self.state().parents.clear();
    }

    /// Migrates the vertices and fragments of a level, and their attributes.
    async fn level_vertices(&self, id: LevelId) -> Result<LevelWithVertices, Failure> {
        let OpenLevel {
            mut level,
            links,
            arrays,
        } = self.open_level(id).await?;
        let (chunks, copied_links) = match &self.copied {
            None => (None, None),
            Some(copied) => {
                let (chunks, links) = self.copied_level(copied, &mut level, &arrays).await?;
                (Some(chunks), Some(links))
            }
        };
        self.chunk_parts(&mut level, &arrays, chunks).await?;
        if self.options.skip_damaged {
            let intact = level.chunks.keys().cloned().collect();
            self.state().intact.insert(id, Arc::new(intact));
        }
        Ok(LevelWithVertices {
            level,
            links,
            copied_links,
        })
    }

    /// Migrates the objects and links of a level, and everything else in it.
    async fn rest_of_level(&self, with_vertices: LevelWithVertices) -> Result<(), Failure> {
        let LevelWithVertices {
            mut level,
            links,
            copied_links,
        } = with_vertices;
        self.objects(&mut level).await?;
        self.groups(&mut level).await?;
        let lacks_steps = self.lacks_step_links(&level, &links);
        self.links(&mut level, links, copied_links).await?;
        if lacks_steps {
            self.step_links(&mut level).await?;
        }
        self.composite(&mut level).await?;
        self.other_nodes(&level).await?;
        let node = self.attributes(&place(level.keys.level())?).await?;
        let metadata = base::level(self.source, level.id).await?;
        level.facts.bins = Some(metadata.dataset(self.source.root()));
        let parent = metadata.parent_level;
        level.facts.inherited_objects =
            parent.and_then(|parent| self.state().object_rows.get(&parent).copied());
        self.level_node(&node, &level).await
    }

    /// Opens the arrays of a level.
    async fn open_level(&self, id: LevelId) -> Result<OpenLevel, Failure> {
        let metadata = base::level(self.source, id).await?;
        let root = self.source.root();
        let chunk = metadata.effective_chunk_shape(root).extents();
        let bounds = root.bounds.as_ref();
        let bounds = bounds.map(|bounds| (bounds.lower(), bounds.upper()));
        let chunking = metadata.attribute_chunking.as_ref();
        let values = chunking.map(|chunking| chunking.values.len() as u64);
        let mut level = Level {
            id,
            keys: self.form.keys(id),
            arity: metadata.arity(root),
            extent: ChunkExtent::of_bounds(bounds, chunk, values),
            chunks: HashMap::new(),
            facts: LevelFacts {
                tiles: true,
                ..LevelFacts::default()
            },
            declares_shared: metadata.shared_fragments,
            renumbered: HashMap::new(),
            bridges: None,
        };
        let links = self.all_links(&level).await?;
        let suspect = links.iter().any(|(delta, cells)| is_suspect(*delta, cells));
        let needs_bridges = suspect || self.lacks_step_links(&level, &links);
        level.bridges = needs_bridges.then(ImpliedLinks::new);
        let arrays = self.chunk_arrays(&mut level).await?;
        Ok(OpenLevel {
            level,
            links,
            arrays,
        })
    }

    fn finish(&self) -> (WriteReport, MigrateReport) {
        let mut state = self.state();
        let written = self.writer.take_report();
        let by_path = |a: &MigrationNote, b: &MigrationNote| a.path.cmp(&b.path);
        state.repaired.sort_by(by_path);
        state.lost.sort_by(by_path);
        let report = MigrateReport {
            from: self.source.layout().generation,
            to: self.form.profile(),
            levels: self.source.levels().len() as u64,
            vertices: state.vertices,
            links: state.links,
            objects: written.objects,
            bytes: written.bytes,
            repaired: core::mem::take(&mut state.repaired),
            lost: core::mem::take(&mut state.lost),
            unfinished: None,
        };
        (written, report)
    }

    /// Records a repair, if its count is not zero.
    fn repaired(&self, finding: MigrationNote) {
        if finding.count > 0 {
            self.state().repaired.push(finding);
        }
    }

    /// Records a loss, if its count is not zero.
    fn lost(&self, finding: MigrationNote) {
        if finding.count > 0 {
            self.state().lost.push(finding);
        }
    }

    /// Fails with damage, or records it as lost.
    fn damaged(&self, damage: Damage) -> Result<(), Failure> {
        let over_budget = matches!(
            &damage.fault,
            Fault::Fetch(error) if error.problem != FetchProblem::Damaged
        );
        if over_budget || !self.options.skip_damaged {
            return Err(CatalogError::from(damage).into());
        }
        let why = error_chain(&damage.fault);
        let path = match &damage.chunk {
            Some(chunk) => format!("{}/{chunk}", damage.key),
            None => damage.key.to_string(),
        };
        self.lost(MigrationNote::new(path, DAMAGED, 1).because(why));
        Ok(())
    }

    /// Skips damage, as [`damaged`](Self::damaged), and returns every other error.
    fn skip_damaged<T>(&self, read: Result<T, CatalogError>) -> Result<Option<T>, Failure> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(CatalogError::Damaged(damage)) => self.damaged(damage).map(|()| None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the attributes of a node of the source; none if it does not exist.
    async fn attributes(&self, key: &Key) -> Result<Attributes, Failure> {
        let node = nodes::read_one(self.source.store(), key).await?;
        Ok(node
            .map(|node| node.attributes().clone())
            .unwrap_or_default())
    }

    /// Writes the group at `key` with its attributes, once.
    async fn parent(&self, key: &Key) -> Result<(), Failure> {
        {
            let mut state = self.state();
            if state.parents.contains(key) {
                return Ok(());
            }
            state.parents.push(key.clone());
        }
        let attributes = self.attributes(key).await?;
        self.writer
            .write(vec![Output::group(key.clone(), attributes)])
            .await
    }
}

/// Returns the error for links between chunks that are too far apart.
fn too_far() -> Failure {
    Failure::Build(BuildError::ChunksTooFarApart("links".to_owned()))
}

/// Returns the error for a chunk that the new store cannot hold.
fn no_place(key: &Key) -> Failure {
    Failure::Build(BuildError::ChunksTooFarApart(key.to_string()))
}
