//! Changes of a store: each one transaction, repeated after conflicts.

mod load;
mod recorded;
mod rows;
mod tables;

use core::fmt;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use bytes::Bytes;
use zvf_build::{
    Geometry, GeometryBuilder, OutOfBounds, Output, Profile, VertexOwners, WritePlan,
    edit::{EditError, Edits, LevelChange, LevelSnapshot},
};
use zvf_dataset::{
    Dataset, Error, Failure, Location, Progress, StateError, base, boxed,
    nodes::{self, element},
};
use zvf_format::path::ChunkCoords;
use zvf_model::{
    array::Presence, error_chain::error_chain, fetch::BoxFuture, generation::Generation,
    grid::ChunkCoord, key::Key, layout::ArrayRole, level::LevelId, zarr::Node,
};
use zvf_store::{
    CellRead, CellReader, CommitError, OpenOptions, Store, Transaction, TransactionError,
};

use self::{load::OpenLevel, recorded::RecordedReads};
use crate::{
    commit::{commit_or_abort, unfinished},
    stale::{coarser_levels, mark_stale},
    writer::{
        PlanCheck,
        cell_writer::{CellWriter, StagedTransaction},
        encode::{self, Arrays, encoded},
        has_moved,
    },
};

/// Changes a store of generation 0.9 or 0.10. Each method is one transaction: readers see the whole change
/// or nothing of it, also if the process dies.
///
/// Several editors may write at once. A change is computed again if others committed in between,
/// and fails with a [conflict](CommitError::Conflict) if they changed the same chunk or object and
/// [retries](Self::retries) are exhausted.
///
/// ```
/// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
/// use zvf::{Editor, OutOfBounds};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = folder.path().join("points.zv").display().to_string();
/// # let address = address.as_str();
/// # let positions = NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]);
/// # let paths = Geometry::builder(positions).paths(vec![0, 2, 3], vec![7, 8]).build()?;
/// # zvf::create(address, &paths, Design::new(GeometryKind::Streamlines), &Default::default()).await?;
/// let editor = Editor::open(address).await?;
/// let positions = NumericColumn::float32(3, [1.0, 1.0, 0.0, 8.0, 2.0, 1.0]);
/// let more = Geometry::builder(positions).paths(vec![0, 2], vec![9]).build()?;
/// editor.append(&more, OutOfBounds::Reject).await?;
/// editor.remove(&[7]).await?;
/// editor.compact().await?;
/// let objects = editor.dataset().await?.query(&zvf::Query::new()).await?.objects;
/// assert_eq!(objects.len(), 2);
/// # Ok(()) }
/// ```
pub struct Editor {
    store: Store,
    address: String,
    retries: usize,
    check: Option<PlanCheck>,
    progress: Option<Progress>,
    renumber: bool,
}

/// The result of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangeSummary {
    /// The number of the transaction.
    pub transaction: u64,
    /// Number of added vertices.
    pub added: u64,
    /// Number of removed vertices.
    pub removed: u64,
    /// Ids of the objects that were added or replaced; after a removal, ids of the removed objects.
    pub objects: Vec<i64>,
    /// Number of changed chunks.
    pub chunks: u64,
    /// Number of removed links. A link is removed if one of its ends is.
    pub links: u64,
    /// Number of links removed because one of their ends was, while another end stayed.
    pub severed: u64,
    /// Number of bytes written.
    pub bytes: u64,
    /// The reason why the change could not be finished after its commit, as on a full disk; `None` as
    /// a rule. Readers see the whole change, and the next change of the store finishes it.
    pub unfinished: Option<String>,
}

impl fmt::Debug for Editor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Editor").field(&self.address).finish()
    }
}

/// The array and element of a cell, and its new payload.
type ChangedCell = (Key, Vec<u64>, Option<Vec<u8>>);

/// Computes the change of a level. Called again with a newer snapshot if others committed in between.
type Make<'a> = dyn Fn(&LevelSnapshot) -> Result<LevelChange, Failure> + Send + Sync + 'a;

/// Conditions under which a change is committed.
#[derive(Clone, Copy, Default)]
struct Conditions {
    /// No link may lose one of its ends only.
    keeps_links: bool,
    /// The store is at this transaction.
    base: Option<u64>,
}

impl Editor {
    /// Opens a store to change it. Completes the committed transaction of a process that died.
    ///
    /// # Errors
    ///
    /// [`StateError::NoStore`] when there is no store, [`StateError::Unchangeable`] when it is not
    /// a store of
    /// 0.9, [`Error`] when it cannot be read.
    pub async fn open(location: impl Into<Location>) -> Result<Self, Error> {
        Self::open_with(location, &OpenOptions::default()).await
    }

    /// Opens the store with `options`, as [`open`](Self::open). Options have no effect on a
    /// [`Store`] that is already open.
    ///
    /// # Errors
    ///
    /// See [`open`](Self::open).
    pub async fn open_with(
        location: impl Into<Location>,
        options: &OpenOptions,
    ) -> Result<Self, Error> {
        Ok(Self::open_store(location.into().open(options)?).await?)
    }

    fn open_store(store: Store) -> BoxFuture<'static, Result<Self, Failure>> {
        Box::pin(async move {
            let (address, store) = (store.to_string(), store.without_node_copy());
            let begun = store.begin().await.map_err(|error| match error {
                TransactionError::NoStore => Failure::State(StateError::NoStore {
                    address: address.clone(),
                    exists: true,
                }),
                error => error.into(),
            });
            begun?.abort().await?;
            let dataset = base::open(store.clone()).await?;
            let profile = dataset.layout().profile();
            // Structure alone does not prove the generation: a newer version may have the same
            // layout.
            let declared = dataset.root().version.and_then(Generation::of_version);
            let is_current = dataset.layout().generation.is_current();
            if !is_current || declared != Some(dataset.layout().generation) {
                let profile = if is_current {
                    "an unknown version"
                } else {
                    profile
                };
                return Err(Failure::State(StateError::Unchangeable {
                    address,
                    profile,
                }));
            }
            Ok(Self {
                store,
                address,
                retries: 16,
                check: None,
                progress: None,
                renumber: false,
            })
        })
    }

    zvf_model::setters! {
        /// Calls `check` with the expected size of added geometry, before anything is written. An error
        /// ends the change with [`ErrorKind::Interrupted`](zvf_model::error_kind::ErrorKind::Interrupted). The store
        /// keeps its chunk shape, so geometry of a larger scale may need very many chunks.
        check: PlanCheck,
        /// Sets the callback for progress: the number of cells read and objects written, and of those known
        /// so far. Both start again when a change is repeated after a conflict.
        progress: Progress,
        /// Gives added objects the next free ids, in the order of the ids that they have, for geometry
        /// whose ids are numbers of its own, such as those of tractograms. Default: false.
        renumber: bool,
        /// Sets how often a change is repeated after a conflict. Default: 16.
        retries: usize,
    }

    /// Opens the current state of the store.
    ///
    /// # Errors
    ///
    /// [`Error`] when it cannot be opened.
    pub async fn dataset(&self) -> Result<Dataset, Error> {
        Dataset::open(self.store.clone()).await
    }

    /// Adds geometry to the store. Objects without ids get new ones, greater than all others. Groups
    /// with a name are those of the store with this name, or new ones. Groups of geometry with ids may
    /// also list stored objects, which join them.
    ///
    /// # Errors
    ///
    /// [`EditError`] when the geometry does not fit the store, an
    /// object already exists, or a vertex lies outside the bounds and `out_of_bounds` rejects it;
    /// [`Error`] otherwise.
    pub async fn append(
        &self,
        geometry: &Geometry,
        out_of_bounds: OutOfBounds,
    ) -> Result<ChangeSummary, Error> {
        Ok(self
            .change(&|image| self.addition(geometry, image, out_of_bounds))
            .await?)
    }

    /// Removes objects and all links to them.
    ///
    /// # Errors
    ///
    /// [`EditError`] when an object does not exist; [`Error`]
    /// otherwise.
    pub async fn remove(&self, ids: &[i64]) -> Result<ChangeSummary, Error> {
        Ok(self.remove_if(ids, Conditions::default()).await?)
    }

    /// Removes objects and all links to them, if the store is at `transaction`. For ids that a query
    /// of this transaction found: in a later one, other objects may have them, or the objects no longer
    /// satisfy its predicate.
    ///
    /// ```
    /// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
    /// use zvf::{Editor, Query};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let address = folder.path().join("points.zv").display().to_string();
    /// # let address = address.as_str();
    /// # let positions = NumericColumn::float32(2, [0.0, 0.0, 9.0, 1.0, 12.0, 5.0]);
    /// # let points = Geometry::builder(positions).object_ids(vec![7, 7, 8]).build()?;
    /// # zvf::create(address, &points, Design::new(GeometryKind::Points), &Default::default()).await?;
    /// let editor = Editor::open(address).await?;
    /// let dataset = editor.dataset().await?;
    /// let found = dataset.query(&Query::new().limit(1)).await?.objects;
    /// editor.remove_objects(dataset.transaction(), &found).await?;
    /// assert!(editor.remove_objects(dataset.transaction(), &[8]).await.is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`StateError::OutdatedRows`] when the store is at another transaction;
    /// [`EditError`] when an object does not exist; [`Error`]
    /// otherwise.
    pub async fn remove_objects(
        &self,
        transaction: u64,
        ids: &[i64],
    ) -> Result<ChangeSummary, Error> {
        let conditions = Conditions {
            base: Some(transaction),
            ..Conditions::default()
        };
        Ok(self.remove_if(ids, conditions).await?)
    }

    async fn remove_if(
        &self,
        ids: &[i64],
        conditions: Conditions,
    ) -> Result<ChangeSummary, Failure> {
        let remove: BTreeSet<i64> = ids.iter().copied().collect();
        let make = |_: &LevelSnapshot| {
            Ok(LevelChange {
                remove: remove.clone(),
                ..LevelChange::default()
            })
        };
        self.attempts(&make, conditions).await
    }

    /// Replaces existing objects by objects with the same ids. They stay in their groups and keep
    /// attributes that the geometry lacks.
    ///
    /// # Errors
    ///
    /// [`EditError::Unnamed`] when the geometry names no object; [`EditError::Severed`] when links
    /// to other objects would be dropped; otherwise as for [`append`](Self::append).
    pub async fn replace(
        &self,
        geometry: &Geometry,
        out_of_bounds: OutOfBounds,
    ) -> Result<ChangeSummary, Error> {
        let ids = geometry.owners().ids().unwrap_or_default();
        let own: BTreeSet<i64> = ids.iter().copied().collect();
        if own.is_empty() {
            return Err(Failure::Edit(EditError::Unnamed).into());
        }
        Ok(self.replace_set(&own, geometry, out_of_bounds).await?)
    }

    /// Replaces objects by geometry with any ids, which edits, splits or merges them.
    ///
    /// # Errors
    ///
    /// See [`replace`](Self::replace).
    pub async fn replace_objects(
        &self,
        remove: &[i64],
        geometry: &Geometry,
        out_of_bounds: OutOfBounds,
    ) -> Result<ChangeSummary, Error> {
        let remove = remove.iter().copied().collect();
        Ok(self.replace_set(&remove, geometry, out_of_bounds).await?)
    }

    /// Returns the change that adds geometry, with new ids where it has none.
    fn addition(
        &self,
        geometry: &Geometry,
        image: &LevelSnapshot,
        out_of_bounds: OutOfBounds,
    ) -> Result<LevelChange, Failure> {
        let mut geometry = geometry.clone().into_builder();
        if self.renumber {
            image.renumber(&mut geometry);
        }
        image.join_groups_by_name(&mut geometry);
        let groups = stored_members(&mut geometry, image);
        let design = image.design(out_of_bounds);
        if let Some(next) = image.next_id() {
            geometry.owners.number_paths(next);
            if geometry.owners == VertexOwners::Unnamed && image.kind().is_linked() {
                geometry.owners = VertexOwners::Vertices(vec![next; geometry.vertices()]);
            }
        }
        let plan = WritePlan::new(geometry.build()?, design)?;
        if let Some(check) = &self.check {
            check(&plan.estimate()).map_err(Failure::Declined)?;
        }
        Ok(LevelChange {
            add: Some(plan),
            groups,
            ..LevelChange::default()
        })
    }

    async fn replace_set(
        &self,
        remove: &BTreeSet<i64>,
        geometry: &Geometry,
        out_of_bounds: OutOfBounds,
    ) -> Result<ChangeSummary, Failure> {
        self.change_keeping_links(&|image| {
            Ok(LevelChange {
                remove: remove.clone(),
                ..self.addition(geometry, image, out_of_bounds)?
            })
        })
        .await
    }

    /// Removes the remains of removed objects: fragments without rows, vertices that no fragment lists,
    /// as other programs leave them, and fragmented groups of links. Other vertices and links stay, so
    /// coarser levels still match, except in chunks that lost vertices. A store without remains is not
    /// changed.
    ///
    /// # Errors
    ///
    /// [`Error`] when the store cannot be read or written.
    pub async fn compact(&self) -> Result<ChangeSummary, Error> {
        boxed(async move {
            // Leftovers of dead writers: a running one uploads more often than once an hour. Deleted
            // first, because the change needs the space.
            let hour = core::time::Duration::from_hours(1);
            let swept = self.store.sweep(hour).await;
            let mut changed = self
                .change(&|_| {
                    Ok(LevelChange {
                        compact: true,
                        ..LevelChange::default()
                    })
                })
                .await?;
            if let Err(error) = swept {
                changed.unfinished.get_or_insert(error_chain(&error));
            }
            Ok(changed)
        })
        .await
    }

    async fn change(&self, make: &Make<'_>) -> Result<ChangeSummary, Failure> {
        self.attempts(make, Conditions::default()).await
    }

    /// Applies a change, as [`change`](Self::change), but fails if it would drop links.
    async fn change_keeping_links(&self, make: &Make<'_>) -> Result<ChangeSummary, Failure> {
        let conditions = Conditions {
            keeps_links: true,
            ..Conditions::default()
        };
        self.attempts(make, conditions).await
    }

    fn attempts<'a>(
        &'a self,
        make: &'a Make<'a>,
        conditions: Conditions,
    ) -> BoxFuture<'a, Result<ChangeSummary, Failure>> {
        Box::pin(async move {
            let mut left = self.retries;
            loop {
                let transaction = self.store.begin().await?;
                let base = transaction.base();
                if let Some(expected) = conditions.base.filter(|expected| *expected != base) {
                    transaction.abort().await?;
                    return Err(Failure::State(StateError::OutdatedRows {
                        expected,
                        found: base,
                    }));
                }
                let error = match Box::pin(self.attempt(transaction, make, conditions)).await {
                    Ok(changed) => return Ok(changed),
                    Err(error) => error,
                };
                let counts = match &error {
                    Failure::Commit(CommitError::Outdated { .. }) => false,
                    Failure::Commit(CommitError::Conflict { .. }) => true,
                    // It may be committed, and must not be applied twice.
                    Failure::Commit(_) => return Err(error),
                    // A read during a concurrent commit may mix two states, which looks damaged.
                    _ if has_moved(&self.store, base).await? => false,
                    _ => return Err(error),
                };
                if counts && left == 0 {
                    return Err(error);
                }
                left = left.saturating_sub(usize::from(counts));
            }
        })
    }

    async fn attempt(
        &self,
        mut transaction: Transaction,
        make: &Make<'_>,
        conditions: Conditions,
    ) -> Result<ChangeSummary, Failure> {
        let outcome = self.stage(&mut transaction, make, conditions).await;
        let (root, mut changed) = match outcome {
            Ok((Some(root), changed)) => (root, changed),
            Ok((None, mut changed)) => {
                changed.transaction = transaction.base();
                transaction.abort().await?;
                return Ok(changed);
            }
            Err(error) => {
                let _ = transaction.abort().await;
                return Err(error);
            }
        };
        let committed = commit_or_abort(transaction, &root).await?;
        changed.unfinished = unfinished(&committed);
        changed.transaction = committed.transaction;
        Ok(changed)
    }

    /// Stages a change. Returns the new root, `None` if there is nothing to change, and the summary.
    async fn stage(
        &self,
        transaction: &mut Transaction,
        make: &Make<'_>,
        conditions: Conditions,
    ) -> Result<(Option<Bytes>, ChangeSummary), Failure> {
        let key = nodes::metadata(&Key::root())?;
        let root = Node::parse(&key, transaction.root())?;
        // Cells written from damaged data would appear to be undamaged.
        let store = self.store.with_seal(transaction.root())?;
        let reads = RecordedReads::new(CellReader::new(store.clone()));
        let (level, before, mut image) = OpenLevel::open(&reads, &self.address, &root).await?;
        let change = make(&image)?;
        let generation = level.generation();
        let writer = CellWriter::new(StagedTransaction::new(&mut *transaction), generation)
            .with_progress(self.progress.clone());
        level.load(&mut image, &change, &writer).await?;
        let edits = image.apply(&change)?;
        if conditions.keeps_links && edits.severed > 0 {
            return Err(EditError::Severed {
                links: edits.severed,
            }
            .into());
        }
        let chunks = if change.compact {
            edits
                .cells
                .keys()
                .map(|(_, chunk)| chunk)
                .collect::<BTreeSet<_>>()
                .len()
        } else {
            edits.touched.len()
        };
        let mut changed = ChangeSummary {
            transaction: 0,
            added: edits.added,
            removed: edits.removed,
            objects: edits.objects.clone(),
            chunks: chunks as u64,
            links: edits.links as u64,
            severed: edits.severed as u64,
            bytes: 0,
            unfinished: None,
        };
        let (objects, gone) = self
            .objects(reads.reader(), generation, &before, &edits)
            .await?;
        if change.compact && objects.is_empty() && gone.is_empty() {
            return Ok((None, changed));
        }
        writer.put_counted(objects).await?;
        changed.bytes = writer.take_report().bytes;
        drop(writer);
        for key in gone {
            transaction.delete(key).await?;
        }
        for chunk in &edits.touched {
            let level = LevelId::FULL;
            transaction.touch(format!("{level}/{}", ChunkCoords(chunk)));
        }
        for id in &edits.touched_objects {
            transaction.touch(format!("object/{id}"));
        }
        // Links shape coarser levels, also in chunks whose vertices are unchanged.
        let mut stale = edits.unlinked;
        if change.compact {
            let keys = Profile::V09.keys(LevelId::FULL);
            let vertices = nodes::place(keys.node(&ArrayRole::Vertices))?;
            let rewritten = edits.cells.keys().filter(|(array, _)| *array == vertices);
            stale.extend(rewritten.map(|(_, chunk)| chunk.clone()));
        } else {
            stale.extend(edits.touched);
        }
        let mut root = edits.root;
        if !change.compact || !stale.is_empty() {
            let coarser = coarser_levels(&store, LevelId::FULL).await?;
            mark_stale(&mut root, &coarser, stale.into_iter().map(ChunkCoord::new));
        }
        let root = encode::root_bytes(root, generation);
        Ok((Some(root), changed))
    }

    /// Encodes edits. Returns the objects to write and the keys to delete.
    async fn objects(
        &self,
        reader: &CellReader,
        generation: Generation,
        before: &BTreeMap<Key, Node>,
        edits: &Edits,
    ) -> Result<(Vec<(Key, Bytes)>, Vec<Key>), Failure> {
        let mut outputs: Vec<Output> = Vec::new();
        for (key, node) in &edits.nodes {
            if before.get(key) != Some(node) {
                outputs.push(Output::node(key.clone(), node.clone()));
            }
        }
        let arrays = arrays_of(generation, &edits.nodes)?;
        // An array without cells may have got another origin, on which the keys of its former cells do
        // not depend.
        let former = arrays_of(generation, before)?;
        let mut gone = Vec::new();
        let mut shards: BTreeMap<Key, Vec<ChangedCell>> = BTreeMap::new();
        for ((node, chunk), payload) in &edits.cells {
            let array = match payload {
                Some(_) => arrays.get(node)?,
                None => former.get(node)?,
            };
            let index = element(&array, chunk)?;
            let location = array.locate(&index).map_err(|source| Failure::Index {
                node: array.node().clone(),
                source,
            })?;
            match (location, payload) {
                ((key, Some(_)), payload) => {
                    let cell = (node.clone(), index, payload.clone());
                    shards.entry(key).or_default().push(cell);
                }
                ((_, None), Some(payload)) => outputs.push(Output::Cell {
                    array: node.clone(),
                    index,
                    payload: payload.clone(),
                }),
                ((key, None), None) => gone.push(key),
            }
        }
        for (key, cells) in shards {
            // A shard is written as a whole, with its unchanged cells.
            let Some((node, _, _)) = cells.first() else {
                continue;
            };
            let Some(Node::Array(metadata)) = edits.nodes.get(node) else {
                continue;
            };
            let presence = Presence::parse(node, metadata, metadata.rank())?.value;
            let array = arrays.get(node)?;
            let mut all: Vec<(Vec<u64>, Vec<u8>)> = Vec::new();
            for chunk in presence.chunks() {
                let index = element(&array, chunk.coords())?;
                let same = array.locate(&index).is_ok_and(|(other, _)| other == key);
                let changed = cells.iter().any(|(_, at, _)| *at == index);
                if !same || changed {
                    continue;
                }
                let cell = CellRead {
                    array: &array,
                    index: &index,
                    part: None,
                };
                let Some(payload) = reader.read_one(cell).await? else {
                    return Err(Failure::MissingCell {
                        node: array.node().clone(),
                        cell: format!("{:?}", chunk.coords()),
                    });
                };
                all.push((index, payload.to_vec()));
            }
            let changed = cells
                .iter()
                .filter_map(|(_, index, payload)| Some((index.clone(), payload.clone()?)));
            all.extend(changed);
            if all.is_empty() {
                gone.push(key);
            }
            outputs.extend(all.into_iter().map(|(index, payload)| Output::Cell {
                array: node.clone(),
                index,
                payload,
            }));
        }
        outputs.extend(edits.tables.iter().cloned());
        let mut objects = encoded(&arrays, outputs)?;
        objects.dedup_by(|a, b| a.0 == b.0);
        let put: BTreeSet<&Key> = objects.iter().map(|(key, _)| key).collect();
        if !edits.tables.is_empty() {
            gone.extend(load::tables_gone(before, &put)?);
        }
        gone.retain(|key| !put.contains(key));
        Ok((objects, gone))
    }
}

/// Returns the arrays among nodes.
fn arrays_of(generation: Generation, nodes: &BTreeMap<Key, Node>) -> Result<Arrays, Failure> {
    let nodes = nodes
        .iter()
        .map(|(key, node)| Output::node(key.clone(), node.clone()));
    Arrays::of(generation, &nodes.collect::<Vec<_>>())
}

/// Takes the stored objects out of the groups of added geometry, and returns them by group. Without
/// ids, members are numbers of objects of the geometry.
fn stored_members(
    geometry: &mut GeometryBuilder,
    image: &LevelSnapshot,
) -> BTreeMap<u32, Vec<i64>> {
    let mut stored = BTreeMap::new();
    let named = geometry.owners.ids();
    let Some(named) = named.filter(|_| !geometry.groups.is_empty()) else {
        return stored;
    };
    let listed = geometry.objects.iter().flatten();
    let own: HashSet<i64> = named.iter().chain(listed).copied().collect();
    for (number, members) in &mut geometry.groups {
        let is_stored = |id: &i64| !own.contains(id) && image.has_object(*id);
        let joining: Vec<i64> = members.iter().copied().filter(is_stored).collect();
        if !joining.is_empty() {
            members.retain(|id| !is_stored(id));
            stored.insert(*number, joining);
        }
    }
    stored
}
