//! Making stores.

pub(crate) mod encode;
mod pipeline;
mod streamed;

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use zvf_build::{Design, Geometry, PlanSummary, Profile, WritePlan};
use zvf_model::key::Key;
use zvf_store::{
    CreateError, Creation, ListedFile, OpenOptions, Store, Transaction, spawn_blocking,
};

use crate::{error::Error, location::Location, nodes, task_runner::TaskRunner};

use self::{
    encode::{Arrays, encoded},
    pipeline::make_and_put,
};

pub(crate) use streamed::run_part;
pub use streamed::{GeometrySource, create_from_source};

/// What was written.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct WriteReport {
    /// What the store holds now.
    pub summary: PlanSummary,
    /// Objects that were put.
    pub objects: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// The number of the transaction; 0 for a store that is new.
    pub transaction: u64,
}

/// What is told while tasks are done: how many are, and of how many.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// How a store is made.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct CreateOptions {
    /// What takes the place of a store that is there.
    pub existing: Existing,
    /// Who is told how far it is.
    pub progress: Option<Progress>,
    /// The most memory that geometry may take on its way, for
    /// [`create_from_source`]; 1 GiB when not said.
    pub memory: Option<u64>,
    /// Who makes the parts of a store for [`create_from_source`]; this process when not
    /// said.
    pub runner: Option<Arc<dyn TaskRunner>>,
    /// Whether the root does without a [copy of the nodes](zvf_model::node_copy), which
    /// saves requests where the store is read over the network.
    pub no_node_copy: bool,
    /// How the store is opened.
    pub open: OpenOptions,
}

/// What happens to what is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and nothing is written.
    #[default]
    Refuse,
    /// A store is replaced at once, when all of the new one is there. What a writer
    /// left in a bucket without finishing is deleted.
    Replace,
}

impl core::fmt::Debug for CreateOptions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("CreateOptions")
            .field("existing", &self.existing)
            .finish_non_exhaustive()
    }
}

/// Makes a store of geometry at `address`.
///
/// Nothing can be opened there until everything is.
///
/// ```
/// use zvf::CreateOptions;
/// use zvf::build::{Design, Geometry, GeometryKind, Numbers};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = folder.path().join("points.zv").display().to_string();
/// # let address = address.as_str();
/// let points = Geometry::new(Numbers::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0]));
/// let design = Design::new(GeometryKind::Points);
/// let written = zvf::create(address, &points, design, &CreateOptions::default()).await?;
/// assert_eq!(written.summary.vertices, 2);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`Error::Refused`] before anything is written; [`Error::Create`] when something
/// is there; [`Error`] when the store cannot be written.
pub async fn create<'a>(
    location: impl Into<Location>,
    geometry: impl Into<Cow<'a, Geometry>>,
    design: Design,
    options: &CreateOptions,
) -> Result<WriteReport, Error> {
    create_whole(
        location.into(),
        geometry.into().into_owned(),
        design,
        options,
    )
    .await
}

fn create_whole(
    location: Location,
    geometry: Geometry,
    design: Design,
    options: &CreateOptions,
) -> BoxFuture<'_, Result<WriteReport, Error>> {
    Box::pin(async move {
        let design = named(design, location.address());
        let plan = run(move || Ok(WritePlan::new_consuming(geometry, design)?)).await?;
        let store = location.create(&options.open)?;
        create_in(&store, plan, options).await
    })
}

/// A collection is called like its folder when nobody says how.
fn named(mut design: Design, address: Option<&str>) -> Design {
    if let Some(name) = address.and_then(name_of) {
        design.name.get_or_insert_with(|| name.to_owned());
    }
    design
}

/// What a store is called by its address.
pub(crate) fn name_of(address: &str) -> Option<&str> {
    let folder = address.trim_end_matches('/').rsplit(['/', '\\']).next();
    let folder = folder.unwrap_or_default();
    let name = [".zarrvectors", ".zv", ".zarr"]
        .iter()
        .find_map(|end| folder.strip_suffix(end))
        .unwrap_or(folder);
    (!name.is_empty() && name != "." && name != "..").then_some(name)
}

/// Creates a store from a [`WritePlan`] made ahead, as [`create`].
///
/// # Errors
///
/// As for [`create`].
pub async fn create_from_plan(
    location: impl Into<Location>,
    plan: WritePlan,
    options: &CreateOptions,
) -> Result<WriteReport, Error> {
    let store = location.into().create(&options.open)?;
    create_in(&store, plan, options).await
}

fn create_in<'a>(
    store: &'a Store,
    plan: WritePlan,
    options: &'a CreateOptions,
) -> BoxFuture<'a, Result<WriteReport, Error>> {
    Box::pin(async move {
        let failed = |source| Error::Create {
            address: store.to_string(),
            source,
        };
        let plan = Arc::new(plan);
        let progress = options.progress.as_ref();
        let begun = match (store.begin_create().await, options.existing) {
            (Err(CreateError::Leftovers), Existing::Replace) => {
                store.begin_create_replacing_leftovers().await
            }
            (Err(CreateError::AlreadyExists), Existing::Replace) => {
                return replace(store, &plan, options).await;
            }
            (begun, _) => begun,
        };
        let mut creation = begun.map_err(failed)?;
        if copies_nodes(plan.profile(), options.no_node_copy) {
            creation.write_node_copy();
        }
        let made = put_all(&Sink::Creation(&creation), &plan, progress).await;
        conclude(store, creation, made.map(|written| (root(&plan), written))).await
    })
}

/// Whether the root gets a copy of the nodes: of 0.9, where there are few. Before,
/// every chunk is one.
pub(crate) fn copies_nodes(profile: Profile, without: bool) -> bool {
    profile == Profile::V09 && !without
}

/// Ends a creation: with the root, or without anything.
pub(crate) async fn conclude(
    store: &Store,
    creation: Creation,
    made: Result<(Bytes, WriteReport), Error>,
) -> Result<WriteReport, Error> {
    let (root, mut written) = match made {
        Ok(made) => made,
        Err(error) => {
            // What is left is marked, and the next to create here deletes it.
            let _ = creation.abort().await;
            return Err(error);
        }
    };
    written.objects += 1;
    written.bytes += root.len() as u64;
    let committed = creation.commit(&root).await;
    committed.map_err(|source| Error::Create {
        address: store.to_string(),
        source,
    })?;
    Ok(written)
}

/// Puts a store in the place of another.
async fn replace(
    store: &Store,
    plan: &Arc<WritePlan>,
    options: &CreateOptions,
) -> Result<WriteReport, Error> {
    let copies = copies_nodes(plan.profile(), options.no_node_copy);
    let (sink, before) = begin_replace(store, copies).await?;
    let written = put_all(&sink, plan, options.progress.as_ref()).await?;
    finish_replace(sink, before, root(plan), written).await
}

/// Begins to put a store in the place of another, whose files come with it.
pub(crate) async fn begin_replace(
    store: &Store,
    copies_nodes: bool,
) -> Result<(Sink<'static>, Vec<ListedFile>), Error> {
    let mut transaction = store.begin().await?;
    if copies_nodes {
        transaction.rebuild_node_copy();
    }
    let before = store.list_all(&Key::root(), MOST_FILES).await?;
    let staged = Box::new(futures_util::lock::Mutex::new((
        transaction,
        HashSet::new(),
    )));
    Ok((Sink::Transaction(staged), before))
}

/// Ends it: what is not of the new store goes.
pub(crate) async fn finish_replace(
    sink: Sink<'_>,
    before: Vec<ListedFile>,
    root: Bytes,
    mut written: WriteReport,
) -> Result<WriteReport, Error> {
    let Sink::Transaction(staged) = sink else {
        return Err(Error::Interrupted);
    };
    let (mut transaction, put) = staged.into_inner();
    for file in before {
        let key = nodes::named(Key::parse(&file.name), &file.name)?;
        if file.name != "zarr.json" && !put.contains(&key) {
            transaction.delete(key).await?;
        }
    }
    // Whatever others did to the store that goes.
    transaction.touch("*");
    written.objects += 1;
    written.bytes += root.len() as u64;
    written.transaction = transaction.commit(&root).await?.transaction;
    Ok(written)
}

/// Files of a store that is replaced.
pub(crate) const MOST_FILES: usize = 1 << 26;

/// Where objects go.
pub(crate) enum Sink<'a> {
    Creation(&'a Creation),
    Transaction(Box<futures_util::lock::Mutex<(Transaction, HashSet<Key>)>>),
}

impl Sink<'_> {
    pub(crate) async fn put(&self, objects: Vec<(Key, Bytes)>) -> Result<(), Error> {
        match self {
            Self::Creation(creation) => Ok(creation.put_many(objects).await?),
            Self::Transaction(staged) => {
                let mut staged = staged.lock().await;
                staged.1.extend(objects.iter().map(|(key, _)| key.clone()));
                Ok(staged.0.put_many(objects).await?)
            }
        }
    }
}

/// Puts all of a plan but the root.
async fn put_all(
    sink: &Sink<'_>,
    plan: &Arc<WritePlan>,
    progress: Option<&Progress>,
) -> Result<WriteReport, Error> {
    let rest = {
        let plan = Arc::clone(plan);
        run(move || {
            let outputs = plan.rest()?;
            let arrays = Arrays::of(&outputs)?;
            let objects = encoded(&arrays, outputs)?;
            Ok((arrays, objects))
        })
        .await?
    };
    let (arrays, objects) = rest;
    let (cells, arrays) = (Arc::clone(plan), Arc::new(arrays));
    let make = move |task| encoded(&arrays, cells.run(task)?);
    let tasks = plan.tasks();
    let tell = |done: usize| {
        if let Some(progress) = progress {
            progress(done as u64, tasks as u64);
        }
    };
    let put = make_and_put(objects, tasks, make, |objects| sink.put(objects), tell);
    Ok(WriteReport {
        summary: plan.summary(),
        ..put.await?
    })
}

impl WriteReport {
    pub(crate) fn count(&mut self, objects: &[(Key, Bytes)]) {
        self.objects += objects.len() as u64;
        self.bytes += objects
            .iter()
            .map(|(_, bytes)| bytes.len() as u64)
            .sum::<u64>();
    }

    /// Counts what else was put.
    pub(crate) fn add(&mut self, other: &Self) {
        self.objects += other.objects;
        self.bytes += other.bytes;
    }
}

/// Runs something beside what waits for the store.
pub(crate) async fn run<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    spawn_blocking(work)
        .await
        .unwrap_or(Err(Error::Interrupted))
}

/// The root of a plan.
fn root(plan: &WritePlan) -> Bytes {
    encode::text(&zvf_build::group_metadata(&plan.root()))
}
