//! Changing stores.

mod load;

use core::fmt;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde_json::Value;
use zvf_build::{
    Geometry, OutOfBounds, Output, WritePlan,
    edit::{Edits, LevelChange, LevelSnapshot},
};
use zvf_model::{generation::Generation, key::Key, zarr::Node};
use zvf_store::{
    CellRead, CellReader, CommitError, OpenOptions, Store, Transaction, TransactionError,
};

use crate::{
    dataset::Dataset,
    error::Error,
    failure::{Failure, boxed},
    location::Location,
    nodes::{self, element},
    stale::mark_stale,
    writer::encode::{self, Arrays, encoded},
};

/// Changes a store of generation 0.9. Every verb is one transaction: readers see all
/// of it or nothing, and so does whoever comes after a process that died.
///
/// Others may write at the same time. What they did in the meantime is taken into
/// account; who changes the same chunk or object is told of the
/// [conflict](CommitError::Conflict), unless
/// [asked to try again](Self::retries).
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
/// # let mut paths = Geometry::new(NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]));
/// # paths.part_offsets = Some(vec![0, 2, 3]);
/// # paths.part_objects = Some(vec![7, 8]);
/// # zvf::create(address, &paths, Design::new(GeometryKind::Streamlines), &Default::default()).await?;
/// let editor = Editor::open(address).await?;
/// let mut more = Geometry::new(NumericColumn::float32(3, [1.0, 1.0, 0.0, 8.0, 2.0, 1.0]));
/// more.part_offsets = Some(vec![0, 2]);
/// more.part_objects = Some(vec![9]);
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
}

/// What a change came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangeSummary {
    /// The number of the transaction.
    pub transaction: u64,
    /// Vertices that came.
    pub added: u64,
    /// Vertices that went.
    pub removed: u64,
    /// Objects that came.
    pub objects: Vec<i64>,
    /// Chunks that changed.
    pub chunks: u64,
    /// Links that went because one of their ends did, though others stayed.
    pub severed: u64,
    /// Bytes that were written.
    pub bytes: u64,
}

impl fmt::Debug for Editor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Editor").field(&self.address).finish()
    }
}

/// The array and element of a cell, and what it holds now.
type ChangedCell = (String, Vec<u64>, Option<Vec<u8>>);

/// What is to be done to an image. Called again with a newer one when others
/// committed in between.
type Make<'a> = dyn Fn(&LevelSnapshot) -> Result<LevelChange, Failure> + Send + Sync + 'a;

impl Editor {
    /// Opens the store at `address` to change it. What a transaction of a dead process
    /// left to do is done first.
    ///
    /// # Errors
    ///
    /// [`Error`] when there is no store, or none that is changed.
    pub async fn open(location: impl Into<Location>) -> Result<Self, Error> {
        Self::open_with(location, &OpenOptions::default()).await
    }

    /// Opens the store with `options`, as [`open`](Self::open). Options have no effect on a
    /// [`Store`] that is already open.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub async fn open_with(
        location: impl Into<Location>,
        options: &OpenOptions,
    ) -> Result<Self, Error> {
        Ok(Self::open_store(location.into().open(options)?).await?)
    }

    fn open_store(store: Store) -> BoxFuture<'static, Result<Self, Failure>> {
        Box::pin(async move {
            let (address, store) = (store.to_string(), store.without_node_copy());
            let begun = store.begin().await;
            let begun = begun.map_err(|error| match error {
                TransactionError::NoStore => Failure::NoStore {
                    address: address.clone(),
                },
                error => error.into(),
            });
            begun?.abort().await?;
            let dataset = Dataset::open_store(store.clone()).await?;
            let profile = dataset.layout().profile();
            // What is read by its structure alone may be more than it looks like.
            let declared = dataset.root().version;
            let current = declared.and_then(Generation::of_version) == Some(Generation::V0_9);
            if profile != "0.9" || !current {
                let profile = match profile {
                    "0.9" => "an unknown version",
                    older => older,
                };
                return Err(Failure::Unchangeable { address, profile });
            }
            Ok(Self {
                store,
                address,
                retries: 16,
            })
        })
    }

    /// How often a change is tried again that others were in the way of.
    #[must_use]
    pub fn retries(mut self, retries: usize) -> Self {
        self.retries = retries;
        self
    }

    /// The store as it is now.
    ///
    /// # Errors
    ///
    /// [`Error`] when it cannot be opened.
    pub async fn dataset(&self) -> Result<Dataset, Error> {
        Ok(Dataset::open_store(self.store.clone()).await?)
    }

    /// Adds geometry to what is there. Objects without ids get new ones, above all
    /// others.
    ///
    /// # Errors
    ///
    /// [`Error::Edit`] when it does not fit the store, an object is there already,
    /// or it lies outside the bounds and these are not to be expanded; [`Error`].
    pub async fn append(
        &self,
        geometry: &Geometry,
        out_of_bounds: OutOfBounds,
    ) -> Result<ChangeSummary, Error> {
        Ok(self
            .change(&|image| {
                let add = Some(planned(geometry.clone(), image, out_of_bounds)?);
                Ok(LevelChange {
                    add,
                    ..LevelChange::default()
                })
            })
            .await?)
    }

    /// Removes objects, and links to them.
    ///
    /// # Errors
    ///
    /// [`Error::Edit`] when one is not there; [`Error`].
    pub async fn remove(&self, ids: &[i64]) -> Result<ChangeSummary, Error> {
        let remove: BTreeSet<i64> = ids.iter().copied().collect();
        Ok(self
            .change(&|_| {
                Ok(LevelChange {
                    remove: remove.clone(),
                    ..LevelChange::default()
                })
            })
            .await?)
    }

    /// Puts objects in the place of those of the same ids, which must be there. They
    /// stay in their groups, and keep the attributes that are not given.
    ///
    /// # Errors
    ///
    /// [`Error::Unnamed`] when no object is named; [`Error::Severed`] when others are
    /// linked to them; otherwise as for [`append`](Self::append).
    pub async fn replace(
        &self,
        geometry: &Geometry,
        out_of_bounds: OutOfBounds,
    ) -> Result<ChangeSummary, Error> {
        let own = geometry
            .part_objects
            .as_ref()
            .or(geometry.object_ids.as_ref());
        let own: BTreeSet<i64> = own.into_iter().flatten().copied().collect();
        if own.is_empty() {
            return Err(Error::Unnamed);
        }
        Ok(self.replace_set(&own, geometry, out_of_bounds).await?)
    }

    /// Puts geometry in the place of objects: the way to edit, split and merge them.
    ///
    /// # Errors
    ///
    /// As for [`replace`](Self::replace).
    pub async fn replace_objects(
        &self,
        remove: &[i64],
        geometry: &Geometry,
        out_of_bounds: OutOfBounds,
    ) -> Result<ChangeSummary, Error> {
        let remove = remove.iter().copied().collect();
        Ok(self.replace_set(&remove, geometry, out_of_bounds).await?)
    }

    async fn replace_set(
        &self,
        remove: &BTreeSet<i64>,
        geometry: &Geometry,
        out_of_bounds: OutOfBounds,
    ) -> Result<ChangeSummary, Failure> {
        self.change_whole(&|image| {
            Ok(LevelChange {
                remove: remove.clone(),
                add: Some(planned(geometry.clone(), image, out_of_bounds)?),
                ..LevelChange::default()
            })
        })
        .await
    }

    /// Removes what removed objects left behind: fragments without rows, rows without
    /// fragments, groups of links in pieces.
    ///
    /// # Errors
    ///
    /// [`Error`].
    pub fn compact(&self) -> BoxFuture<'_, Result<ChangeSummary, Error>> {
        boxed(async move {
            let changed = self.change(&|_| {
                Ok(LevelChange {
                    compact: true,
                    ..LevelChange::default()
                })
            });
            let changed = changed.await?;
            // Leftovers of dead writers: none that lives takes an hour between two puts.
            self.store
                .sweep(core::time::Duration::from_hours(1))
                .await?;
            Ok(changed)
        })
    }

    async fn change(&self, make: &Make<'_>) -> Result<ChangeSummary, Failure> {
        self.attempts(make, false).await
    }

    /// The same, refusing to lose links.
    async fn change_whole(&self, make: &Make<'_>) -> Result<ChangeSummary, Failure> {
        self.attempts(make, true).await
    }

    fn attempts<'a>(
        &'a self,
        make: &'a Make<'a>,
        whole: bool,
    ) -> BoxFuture<'a, Result<ChangeSummary, Failure>> {
        Box::pin(async move {
            let mut left = self.retries;
            loop {
                let transaction = self.store.begin().await?;
                let base = transaction.base();
                let error = match self.attempt(transaction, make, whole).await {
                    Ok(changed) => return Ok(changed),
                    Err(error) => error,
                };
                let counts = match &error {
                    Failure::Commit(CommitError::Outdated { .. }) => false,
                    Failure::Commit(CommitError::Conflict { .. }) => true,
                    // It may be committed, and is not to be made twice.
                    Failure::Commit(_) => return Err(error),
                    // What was read while others changed it may be of two states, and then
                    // looks damaged.
                    _ if self.moved_from(base).await? => false,
                    _ => return Err(error),
                };
                if counts && left == 0 {
                    return Err(error);
                }
                left = left.saturating_sub(usize::from(counts));
            }
        })
    }

    /// Whether others committed since a transaction.
    async fn moved_from(&self, base: u64) -> Result<bool, Failure> {
        let now = self.store.begin().await?;
        let moved = now.base() != base;
        now.abort().await?;
        Ok(moved)
    }

    async fn attempt(
        &self,
        mut transaction: Transaction,
        make: &Make<'_>,
        whole: bool,
    ) -> Result<ChangeSummary, Failure> {
        let outcome = self.stage(&mut transaction, make, whole).await;
        let (root, mut changed) = match outcome {
            Ok(staged) => staged,
            Err(error) => {
                let _ = transaction.abort().await;
                return Err(error);
            }
        };
        match transaction.commit(&root).await {
            Ok(committed) => {
                changed.transaction = committed.transaction;
                Ok(changed)
            }
            Err(error) => {
                if matches!(
                    error,
                    CommitError::Outdated { .. } | CommitError::Conflict { .. }
                ) {
                    let _ = transaction.abort().await;
                }
                Err(error.into())
            }
        }
    }

    /// Stages a change; the new root, and what it comes to.
    async fn stage(
        &self,
        transaction: &mut Transaction,
        make: &Make<'_>,
        whole: bool,
    ) -> Result<(Bytes, ChangeSummary), Failure> {
        let key = nodes::metadata(&Key::root())?;
        let root = Node::parse(&key, transaction.root())?;
        let reader = CellReader::new(self.store.clone());
        let (before, mut image) = load::image(&self.store, &reader, root.attributes()).await?;
        let change = make(&image)?;
        load::cells(&reader, &before, &mut image, &change).await?;
        let edits = image.apply(&change)?;
        if whole && edits.severed > 0 {
            return Err(Failure::Severed {
                links: edits.severed,
            });
        }
        let mut changed = ChangeSummary {
            transaction: 0,
            added: edits.added,
            removed: edits.removed,
            objects: edits.objects.clone(),
            chunks: edits
                .touched
                .iter()
                .filter(|name| name.starts_with("0/"))
                .count() as u64,
            severed: edits.severed as u64,
            bytes: 0,
        };
        let (objects, gone) = self.objects(&reader, &before, &edits).await?;
        changed.bytes = objects.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        transaction.put_many(objects).await?;
        for key in gone {
            transaction.delete(key).await?;
        }
        for name in &edits.touched {
            transaction.touch(name.clone());
        }
        let root = mark_stale(edits.root, &edits.touched);
        Ok((encode::text(&zvf_build::group_metadata(&root)), changed))
    }

    /// What edits are as objects: those to put, and those that go.
    async fn objects(
        &self,
        reader: &CellReader,
        before: &BTreeMap<String, Value>,
        edits: &Edits,
    ) -> Result<(Vec<(Key, Bytes)>, Vec<Key>), Failure> {
        let mut outputs: Vec<Output> = Vec::new();
        for (path, json) in &edits.nodes {
            if before.get(path) != Some(json) {
                let (path, json) = (path.clone(), json.clone());
                outputs.push(Output::Node { path, json });
            }
        }
        let now: Vec<Output> = edits
            .nodes
            .iter()
            .map(|(path, json)| Output::Node {
                path: path.clone(),
                json: json.clone(),
            })
            .collect();
        let arrays = Arrays::of(&now)?;
        let mut gone = Vec::new();
        let mut shards: BTreeMap<Key, Vec<ChangedCell>> = BTreeMap::new();
        for ((path, chunk), payload) in &edits.cells {
            let array = arrays.get(path)?;
            let index = element(&array, chunk)?;
            let place = array.locate(&index).map_err(|source| Failure::Index {
                node: array.node().clone(),
                source,
            })?;
            match (place, payload) {
                ((key, Some(_)), payload) => {
                    let cell = (path.clone(), index, payload.clone());
                    shards.entry(key).or_default().push(cell);
                }
                ((_, None), Some(payload)) => outputs.push(Output::Cell {
                    array: path.clone(),
                    index,
                    payload: payload.clone(),
                }),
                ((key, None), None) => gone.push(key),
            }
        }
        for (key, cells) in shards {
            // The other cells of a shard are written again with those that changed.
            let Some((path, _, _)) = cells.first() else {
                continue;
            };
            let array = arrays.get(path)?;
            let present = load::present(&edits.nodes, path);
            let mut all: Vec<(Vec<u64>, Vec<u8>)> = Vec::new();
            for chunk in present {
                let index = element(&array, &chunk)?;
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
                        cell: format!("{chunk:?}"),
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
                array: path.clone(),
                index,
                payload,
            }));
        }
        outputs.extend(edits.tables.iter().cloned());
        let mut objects = encoded(&arrays, outputs)?;
        objects.dedup_by(|a, b| a.0 == b.0);
        let put: BTreeSet<&Key> = objects.iter().map(|(key, _)| key).collect();
        let tables = load::tables_gone(before, &put)?;
        gone.extend(tables);
        Ok((objects, gone))
    }
}

/// The plan of what is added: with new ids where there are none.
fn planned(
    mut geometry: Geometry,
    image: &LevelSnapshot,
    out_of_bounds: OutOfBounds,
) -> Result<WritePlan, Failure> {
    let design = image.design(out_of_bounds);
    if let Some(next) = image.next_id() {
        if let (Some(offsets), None) = (&geometry.part_offsets, &geometry.part_objects) {
            let ids = next..i64::MAX;
            let parts = offsets.len().saturating_sub(1);
            geometry.part_objects = Some(ids.take(parts).collect());
        } else if image.kind().is_linked() && geometry.object_ids.is_none() {
            geometry.object_ids = Some(vec![next; geometry.vertices()]);
        }
    }
    Ok(WritePlan::new(geometry, design)?)
}
