//! Creation of stores.

pub mod cell_writer;
pub mod encode;
mod streamed;

use std::{borrow::Cow, path::PathBuf, sync::Arc};

use bytes::Bytes;
use zvf_build::{Design, Geometry, PlanEstimate, PlanSummary, Profile, WritePlan};
use zvf_dataset::{Error, Failure, Location, Progress, StateError, nodes};
use zvf_model::{fetch::BoxFuture, key::Key};
use zvf_store::{
    CreateError, Creation, ListedFile, OpenOptions, RowTable, Store, Transaction, spawn_blocking,
};

use crate::{
    commit::{commit_or_abort, unfinished},
    task_runner::TaskRunner,
};

use self::{
    cell_writer::{CellWriter, Destination, StagedTransaction},
    encode::{Arrays, encoded, encoded_on_all_cores},
};

pub use streamed::run_part;
pub use streamed::{GeometryBatches, GeometrySource, create_from_source};
pub use streamed::{job, shares};

/// The result of creating a store.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct WriteReport {
    /// Counts of the contents of the store.
    pub summary: PlanSummary,
    /// Number of uploaded objects.
    pub objects: u64,
    /// Number of uploaded bytes.
    pub bytes: u64,
    /// The number of the transaction; 0 for a store that is new.
    pub transaction: u64,
    /// The reason why the change could not be finished after its commit, as on a full disk; `None` as
    /// a rule. Readers see the whole change, and the next change of the store finishes it.
    pub unfinished: Option<String>,
}

/// Decides whether a store of this size is written; an error stops the creation.
pub type PlanCheck = Arc<
    dyn Fn(&PlanEstimate) -> Result<(), Box<dyn core::error::Error + Send + Sync>> + Send + Sync,
>;

/// Options of [`create`], [`create_from_source`] and [`create_from_plan`].
///
/// ```
/// use zvf::CreateOptions;
///
/// let options = CreateOptions::new().overwrite(true).node_copy(false);
/// assert!(options.overwrite);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct CreateOptions {
    /// Replaces an existing store in one transaction, and deletes the leftovers of an unfinished
    /// one. Default: an existing store is an error.
    pub overwrite: bool,
    /// Called after each task.
    pub progress: Option<Progress>,
    /// Called with the expected size of the store, before anything is written. Input that is read in
    /// batches is first estimated from a sample, and again once all rows were read twice.
    pub check: Option<PlanCheck>,
    /// Maximum number of bytes of geometry held by [`create_from_source`]. Default: 1 GiB.
    pub memory: Option<u64>,
    /// Runs the tasks of [`create_from_source`], except for geometry with links. Default: this process.
    pub runner: Option<Arc<dyn TaskRunner>>,
    /// Adds a [copy of the nodes](zvf_model::node_copy) to the root, which saves requests over
    /// the network. Only stores of 0.9 have one. Default: `true`.
    pub node_copy: bool,
    /// Seals the store: writes an inventory of its objects that readers check what they read
    /// against. Every change of a sealed store keeps it. Default: `true`.
    pub seal: bool,
    /// Options the store is opened with.
    pub open: OpenOptions,
}

impl Default for CreateOptions {
    fn default() -> Self {
        Self {
            overwrite: false,
            progress: None,
            check: None,
            memory: None,
            runner: None,
            node_copy: true,
            seal: true,
            open: OpenOptions::default(),
        }
    }
}

impl CreateOptions {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    zvf_model::setters! {
        check: PlanCheck,
        memory: u64,
        node_copy: bool,
        open: OpenOptions,
        overwrite: bool,
        progress: Progress,
        runner: Arc<dyn TaskRunner>,
        seal: bool,
    }
}

impl core::fmt::Debug for CreateOptions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("CreateOptions")
            .field("overwrite", &self.overwrite)
            .finish_non_exhaustive()
    }
}

/// Creates a store of `geometry`.
///
/// The store can be opened when it is complete, not before.
///
/// ```
/// use zvf::CreateOptions;
/// use zvf::{Design, Geometry, GeometryKind, NumericColumn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = folder.path().join("points.zv").display().to_string();
/// # let address = address.as_str();
/// let points = Geometry::new(NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0]));
/// let design = Design::new(GeometryKind::Points);
/// let written = zvf::create(address, &points, design, &CreateOptions::default()).await?;
/// assert_eq!(written.summary.vertices, 2);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`BuildError`](zvf_build::BuildError) before anything is written; [`CreateError`] when something
/// exists at the location; [`Error`] when the store cannot be written.
pub async fn create<'a>(
    location: impl Into<Location>,
    geometry: impl Into<Cow<'a, Geometry>>,
    design: Design,
    options: &CreateOptions,
) -> Result<WriteReport, Error> {
    let geometry = geometry.into().into_owned();
    Ok(create_whole(location.into(), geometry, design, options).await?)
}

fn create_whole(
    location: Location,
    geometry: Geometry,
    design: Design,
    options: &CreateOptions,
) -> BoxFuture<'_, Result<WriteReport, Failure>> {
    Box::pin(async move {
        let design = named(design, location.address());
        let plan = run(move || Ok(WritePlan::new_consuming(geometry, design)?)).await?;
        let folder = NewFolder::at(location.address());
        let store = location.create(&options.open)?;
        folder.keep_if(create_in(&store, plan, options).await)
    })
}

/// A folder that does not exist before a creation, and has to be gone after one that failed.
struct NewFolder(Option<PathBuf>);

impl NewFolder {
    /// Takes the folder at an address, if it is a path at which nothing exists.
    fn at(address: Option<&str>) -> Self {
        let path = address.map(|address| address.strip_prefix("file://").unwrap_or(address));
        let path = path.filter(|path| !path.contains("://"));
        Self(path.map(PathBuf::from).filter(|path| !path.exists()))
    }

    /// Removes the folder if the creation failed and left it empty.
    fn keep_if<T, E>(self, created: Result<T, E>) -> Result<T, E> {
        if let (Err(_), Some(folder)) = (&created, &self.0) {
            // Removes no folder with contents: these are marked, and the next creation deletes them.
            let _ = std::fs::remove_dir(folder);
        }
        created
    }
}

/// Names a collection without a name after its folder.
fn named(mut design: Design, address: Option<&str>) -> Design {
    if let Some(name) = address.and_then(name_of) {
        design.name.get_or_insert_with(|| name.to_owned());
    }
    design
}

/// Returns the name of a store: the last part of its address, without the extension.
pub fn name_of(address: &str) -> Option<&str> {
    let folder = address
        .trim_end_matches('/')
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or_default();
    let name = [".zarrvectors", ".zv", ".zarr"]
        .iter()
        .find_map(|end| folder.strip_suffix(end))
        .unwrap_or(folder);
    (!name.is_empty() && name != "." && name != "..").then_some(name)
}

/// Creates a store from a [`zvf_build::WritePlan`], as [`create`].
///
/// # Errors
///
/// See [`create`].
pub async fn create_from_plan(
    location: impl Into<Location>,
    plan: WritePlan,
    options: &CreateOptions,
) -> Result<WriteReport, Error> {
    let location = location.into();
    let folder = NewFolder::at(location.address());
    let store = location.create(&options.open)?;
    Ok(folder.keep_if(create_in(&store, plan, options).await)?)
}

fn create_in<'a>(
    store: &'a Store,
    plan: WritePlan,
    options: &'a CreateOptions,
) -> BoxFuture<'a, Result<WriteReport, Failure>> {
    Box::pin(async move {
        let failed = |source| Failure::Create {
            address: store.to_string(),
            source,
        };
        if let Some(check) = &options.check {
            check(&plan.estimate()).map_err(Failure::Declined)?;
        }
        let plan = Arc::new(plan);
        let begun = match (store.begin_create().await, options.overwrite) {
            (Err(CreateError::Leftovers), true) => store.begin_create_replacing_leftovers().await,
            (Err(CreateError::AlreadyExists), true) => {
                return replace(store, &plan, options).await;
            }
            (begun, _) => begun,
        };
        let mut creation = begun.map_err(failed)?;
        if copies_nodes(plan.profile(), options.node_copy) {
            creation.write_node_copy();
        }
        if options.seal {
            creation.write_seal();
        }
        let writer =
            CellWriter::new(&creation, plan.generation()).with_progress(options.progress.clone());
        let made = write_plan(&writer, &plan).await;
        commit_or_delete(store, creation, made.map(|written| (root(&plan), written))).await
    })
}

/// Returns whether the root gets a copy of the nodes. Before 0.9 every chunk is a node, and a copy
/// would be too large.
pub fn copies_nodes(profile: Profile, node_copy: bool) -> bool {
    profile.is_current() && node_copy
}

/// Commits a creation, or deletes it after an error.
pub async fn commit_or_delete(
    store: &Store,
    creation: Creation,
    made: Result<(Bytes, WriteReport), Failure>,
) -> Result<WriteReport, Failure> {
    let (root, mut written) = match made {
        Ok(made) => made,
        Err(error) => {
            // Leftovers are marked, and the next creation at this address deletes them.
            let _ = creation.abort().await;
            return Err(error);
        }
    };
    written.objects += 1;
    written.bytes += root.len() as u64;
    let committed = creation.commit(&root).await;
    committed.map_err(|source| Failure::Create {
        address: store.to_string(),
        source,
    })?;
    Ok(written)
}

/// Replaces an existing store by the store of a plan, in one transaction.
async fn replace(
    store: &Store,
    plan: &Arc<WritePlan>,
    options: &CreateOptions,
) -> Result<WriteReport, Failure> {
    let copies = copies_nodes(plan.profile(), options.node_copy);
    let (staged, before) = begin_replace(store, copies, options.seal).await?;
    let writer = CellWriter::new(staged, plan.generation()).with_progress(options.progress.clone());
    let written = write_plan(&writer, plan).await;
    let made = written.map(|written| (root(plan), written));
    finish_replace(writer.into_destination(), before, made).await
}

/// Returns whether others committed after transaction `base`.
pub async fn has_moved(store: &Store, base: u64) -> Result<bool, Failure> {
    let now = store.begin().await?;
    let has_moved = now.base() != base;
    now.abort().await?;
    Ok(has_moved)
}

/// Returns the error of a failed change, or [`StateError::Changed`] if others committed after
/// transaction `base`: their objects look damaged to a reader of an earlier state.
pub async fn or_changed(store: &Store, base: u64, error: Failure) -> Failure {
    match has_moved(store, base).await {
        Ok(true) => Failure::State(StateError::Changed {
            address: store.to_string(),
        }),
        _ => error,
    }
}

/// Begins a transaction on the state that a dataset shows.
///
/// # Errors
///
/// [`StateError::Changed`] if others committed after the dataset was opened: what was read of it
/// may not fit what the transaction changes.
pub async fn begin_on(dataset: &zvf_dataset::Dataset) -> Result<Transaction, Failure> {
    let transaction = dataset.store().begin().await?;
    if transaction.base() == dataset.transaction() {
        return Ok(transaction);
    }
    transaction.abort().await?;
    Err(Failure::State(StateError::Changed {
        address: dataset.store().to_string(),
    }))
}

/// Begins to replace an existing store. Returns the transaction and the files of the store.
pub async fn begin_replace(
    store: &Store,
    copies_nodes: bool,
    is_sealed: bool,
) -> Result<(StagedTransaction<Transaction>, Vec<ListedFile>), Failure> {
    let mut transaction = store.begin().await?;
    if copies_nodes {
        transaction.rebuild_node_copy();
    }
    if is_sealed {
        transaction.seal_puts();
    } else {
        transaction.remove_seal();
    }
    let before = store.list_to_delete(&Key::root(), MAX_FILES).await?;
    Ok((StagedTransaction::recording(transaction), before))
}

/// Commits a replacement, or deletes what it staged: with it goes every file of the old store that
/// the new one does not replace.
pub async fn finish_replace(
    staged: StagedTransaction<Transaction>,
    before: Vec<ListedFile>,
    made: Result<(Bytes, WriteReport), Failure>,
) -> Result<WriteReport, Failure> {
    let (mut transaction, put) = staged.into_parts();
    let (root, mut written) = match made {
        Ok(made) => made,
        Err(error) => {
            // The next writer deletes leftovers.
            let _ = transaction.abort().await;
            return Err(error);
        }
    };
    for file in before {
        let key = nodes::named(Key::parse(&file.name), &file.name)?;
        if file.name != "zarr.json" && !put.contains(&key) {
            transaction.delete(key).await?;
        }
    }
    // Conflicts with every other change of the old store.
    transaction.touch("*");
    written.objects += 1;
    written.bytes += root.len() as u64;
    let committed = commit_or_abort(transaction, &root).await?;
    written.unfinished = unfinished(&committed);
    written.transaction = committed.transaction;
    Ok(written)
}

/// Maximum number of files listed in a store.
pub const MAX_FILES: usize = 1 << 26;

/// Writes the nodes and cells of a plan, except for the root.
async fn write_plan<D: Destination>(
    writer: &CellWriter<D>,
    plan: &Arc<WritePlan>,
) -> Result<WriteReport, Failure> {
    let rest = {
        let plan = Arc::clone(plan);
        run(move || {
            let outputs = plan.rest()?;
            let arrays = Arrays::of(plan.generation(), &outputs)?;
            let objects = encoded_on_all_cores(&arrays, outputs)?;
            Ok((arrays, objects))
        })
    };
    let (arrays, objects) = rest.await?;
    let (cells, arrays) = (Arc::clone(plan), Arc::new(arrays));
    let make = move |task| encoded(&arrays, cells.run(task)?);
    writer.expect(plan.tasks());
    let tasks = writer.run_tasks(objects, plan.tasks(), make, || writer.done(1));
    tasks.await?;
    Ok(WriteReport {
        summary: plan.summary(),
        ..writer.take_report()
    })
}

impl WriteReport {
    /// Counts uploaded objects.
    pub(crate) fn count(&mut self, objects: &[(Key, Bytes)]) {
        for (_, bytes) in objects.iter().filter(|(key, _)| !RowTable::is_at(key)) {
            self.objects += 1;
            self.bytes += bytes.len() as u64;
        }
    }

    /// Adds the counts of `other`.
    pub(crate) fn add(&mut self, other: &Self) {
        self.objects += other.objects;
        self.bytes += other.bytes;
    }
}

/// Runs blocking work on another thread.
pub async fn run<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    spawn_blocking(work)
        .await
        .unwrap_or(Err(Failure::Interrupted))
}

/// Encodes the root of a plan.
fn root(plan: &WritePlan) -> Bytes {
    encode::root_bytes(plan.root(), plan.generation())
}

#[cfg(test)]
mod tests {
    use zvf_build::{GeometryKind, OutOfBounds};
    use zvf_dataset::Dataset;
    use zvf_model::column::NumericColumn;

    use super::*;
    use crate::editor::Editor;

    #[tokio::test]
    async fn a_transaction_begins_on_the_state_that_was_read() {
        let none: [(&str, &[u8]); 0] = [];
        let store = OpenOptions::default().from_memory(none).unwrap();
        let points = Geometry::new(NumericColumn::float32(3, [1.0, 1.0, 1.0, 9.0, 9.0, 9.0]));
        let design = Design::new(GeometryKind::Points);
        let options = CreateOptions::default();
        create(&store, &points, design, &options).await.unwrap();
        let dataset = Dataset::open(&store).await.unwrap();
        begin_on(&dataset).await.unwrap().abort().await.unwrap();
        let editor = Editor::open(&store).await.unwrap();
        editor.append(&points, OutOfBounds::Expand).await.unwrap();
        let changed = begin_on(&dataset).await;
        assert!(matches!(
            changed,
            Err(Failure::State(StateError::Changed { .. }))
        ));
        let dataset = Dataset::open(&store).await.unwrap();
        begin_on(&dataset).await.unwrap().abort().await.unwrap();
    }
}
