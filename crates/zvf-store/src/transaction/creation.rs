//! Atomic creation of stores.

use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use zvf_model::{
    key::{Key, KeyError},
    level::LevelId,
};

use super::{
    CreateError, TransactionError, check_key,
    creation_marker::is_job,
    head::{NodeCopyUpdate, State},
    id::TransactionId,
    layout::{creation_marker_key, head_key, reserved_folder},
    lock::FolderLock,
    node_copy::{NodeChanges, has_copy},
    sealing::SealChanges,
};
use crate::{
    io::{Precondition, WriteError},
    store::Store,
};

/// A store in creation.
///
/// Objects are put at their keys at once, because readers do not recognise a store without a root.
/// [`commit`](Self::commit) puts the root last. Until then a marker at `.zvf/creating` reserves the
/// place.
///
/// ```
/// use zvf_model::key::Key;
/// use zvf_store::Store;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = Store::create("memory:")?;
/// let creation = store.begin_create().await?;
/// creation.put_many(vec![(Key::parse("0/a")?, "cell".into())]).await?;
/// creation.commit(br#"{"zarr_format": 3, "node_type": "group"}"#).await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Creation {
    pub(super) store: Store,
    pub(super) id: TransactionId,
    pub(super) lock: Option<FolderLock>,
    /// Contents of the marker that reserves the place for this creation.
    pub(super) marker: Bytes,
    /// The nodes for the node copy, if one is written.
    nodes: Option<Mutex<NodeChanges>>,
    /// The entries of the inventory, if one is written.
    pub(super) seal: Option<Mutex<SealChanges>>,
}

impl Store {
    /// Begins to create a store in an empty place.
    ///
    /// On disk, leftovers of a creation whose process died are deleted first: they carry a marker
    /// whose lock is free. Nothing else is ever deleted.
    ///
    /// # Errors
    ///
    /// [`CreateError`].
    pub async fn begin_create(&self) -> Result<Creation, CreateError> {
        let store = self.without_overlay();
        store.check_writable()?;
        store.check_no_root().await?;
        if store.folder().is_some() {
            store.check_marked_or_empty().await?;
            let begin = async move { store.begin_create_in_folder().await };
            return self.run_locked(begin).await;
        }
        let id = TransactionId::random();
        if store.read_marker().await?.is_some() {
            return Err(CreateError::Leftovers);
        }
        store.check_marked_or_empty().await?;
        if !store.put_marker(&id, &Precondition::Absent).await? {
            return Err(CreateError::Leftovers);
        }
        let mark = Bytes::copy_from_slice(id.as_str().as_bytes());
        let (key, absent) = (creation_marker_key()?, Precondition::Absent);
        store.check_refuses(&key, mark, &absent).await?;
        Ok(Creation::new(store, id, None))
    }

    async fn begin_create_in_folder(self) -> Result<Creation, CreateError> {
        let lock = self.try_lock()?.ok_or(CreateError::InProgress)?;
        self.check_no_root().await?;
        self.check_marked_or_empty().await?;
        let id = TransactionId::random();
        match self.read_marker().await? {
            // Its processes take no lock.
            Some(marker) if is_job(&marker) => return Err(CreateError::Leftovers),
            Some(_) => self.clear_folder(&lock).await?,
            None => {
                // A process that died before it wrote a file may have made folders.
                self.remove_empty(&lock).await;
                self.put_marker(&id, &Precondition::None).await?;
            }
        }
        Ok(Creation::new(self, id, Some(lock)))
    }

    /// Begins to create a store as [`begin_create`](Self::begin_create) does, but takes over an
    /// unfinished creation in a bucket, or one that was [suspended](Creation::suspend), and deletes
    /// its objects.
    ///
    /// There is no way to tell whether its processes are still running. If they are, its commit
    /// fails with [`CreateError::TakenOver`].
    ///
    /// # Errors
    ///
    /// [`CreateError`].
    #[doc(hidden)]
    pub async fn begin_create_replacing_leftovers(&self) -> Result<Creation, CreateError> {
        let store = self.without_overlay();
        let marker = store.read_marker().await?;
        let is_job = marker.as_deref().is_some_and(is_job);
        if marker.is_none() || (store.folder().is_some() && !is_job) {
            return store.begin_create().await;
        }
        store.check_no_root().await?;
        let id = TransactionId::random();
        if store.folder().is_none() {
            store.put_marker(&id, &Precondition::None).await?;
            store.clear().await?;
            return Ok(Creation::new(store, id, None));
        }
        let lock = store.try_lock()?.ok_or(CreateError::InProgress)?;
        let begin = async move {
            store.put_marker(&id, &Precondition::None).await?;
            store.clear_folder(&lock).await?;
            Ok(Creation::new(store, id, Some(lock)))
        };
        self.run_locked(begin).await
    }

    /// Checks that there is no root.
    async fn check_no_root(&self) -> Result<(), CreateError> {
        match self.version(&head_key()?).await? {
            Some(_) => Err(CreateError::AlreadyExists),
            None => Ok(()),
        }
    }

    /// Checks that the place is empty or marked as a creation.
    async fn check_marked_or_empty(&self) -> Result<(), CreateError> {
        if self.read_marker().await?.is_some() {
            return Ok(());
        }
        let found = self.list(&Key::root(), usize::MAX).await?;
        if let Some(file) = found.files.into_iter().next() {
            return Err(CreateError::NotEmpty(file.name));
        }
        for folder in found.folders {
            // A full disk takes folders, but no files: those of a store are leftovers.
            let is_leftover = is_of_store(&folder) && self.is_without_files(&folder).await;
            if !is_leftover {
                return Err(CreateError::NotEmpty(folder));
            }
        }
        Ok(())
    }

    /// Returns whether a creation began here and has not completed: there is a marker, but no root.
    ///
    /// # Errors
    ///
    /// [`CreateError`] if the store cannot be read.
    #[doc(hidden)]
    pub async fn is_unfinished(&self) -> Result<bool, CreateError> {
        let store = self.without_overlay();
        Ok(store.read_marker().await?.is_some() && store.version(&head_key()?).await?.is_none())
    }

    /// Reads the marker: the identifier of the creation, if there is one.
    async fn read_marker(&self) -> Result<Option<Bytes>, CreateError> {
        let found = self.fetch_versioned(&creation_marker_key()?).await?;
        Ok(found.map(|(mark, _)| mark))
    }

    async fn put_marker(
        &self,
        id: &TransactionId,
        condition: &Precondition,
    ) -> Result<bool, CreateError> {
        let mark = Bytes::copy_from_slice(id.as_str().as_bytes());
        self.put_marker_bytes(mark, condition).await
    }

    /// Puts the marker if the condition holds. Returns whether it is there, also if that is due to an
    /// attempt whose response was lost.
    pub(super) async fn put_marker_bytes(
        &self,
        marker: Bytes,
        condition: &Precondition,
    ) -> Result<bool, CreateError> {
        let key = creation_marker_key()?;
        let put = self.put_if(&key, marker.clone(), condition).await?;
        Ok(put.is_some() || self.read_marker().await? == Some(marker))
    }

    /// Deletes everything but the marker and the lock.
    async fn clear(&self) -> Result<(), CreateError> {
        let mut keys: Vec<Key> = self
            .list_to_delete(&Key::root(), usize::MAX)
            .await?
            .iter()
            .map(|file| Key::parse(&file.name))
            .collect::<Result<_, KeyError>>()?;
        // The files of jobs are in folders; the marker and the lock are not.
        let folder = reserved_folder()?;
        let reserved = self.reserved_keys(&folder).await?.into_iter();
        keys.extend(reserved.filter(|key| key.parent().as_ref() != Some(&folder)));
        Ok(self.delete_many(keys).await?)
    }

    /// Deletes everything but the marker and the lock, and on disk temporary files and folders.
    async fn clear_folder(&self, lock: &FolderLock) -> Result<(), CreateError> {
        self.clear().await?;
        self.sweep_temporary_files(lock, Duration::ZERO).await?;
        self.remove_empty(lock).await;
        Ok(())
    }
}

/// Returns whether a store has a child of this name: a level, or one of two fixed names.
fn is_of_store(folder: &str) -> bool {
    LevelId::parse(folder).is_some() || ["headers", "parametric"].contains(&folder)
}

impl Creation {
    fn new(store: Store, id: TransactionId, lock: Option<FolderLock>) -> Self {
        let marker = Bytes::copy_from_slice(id.as_str().as_bytes());
        Self::continuing(store, id, lock, marker)
    }

    pub(super) fn continuing(
        store: Store,
        id: TransactionId,
        lock: Option<FolderLock>,
        marker: Bytes,
    ) -> Self {
        Self {
            store,
            id,
            lock,
            marker,
            nodes: None,
            seal: None,
        }
    }

    /// Seals the store: writes an inventory of the objects that are put from now on. Records of
    /// objects that other processes put have to be [merged](Self::merge).
    pub fn write_seal(&mut self) {
        self.seal = Some(Mutex::default());
    }

    /// Writes a [node copy](zvf_model::node_copy) into the root, of all nodes that are put from now
    /// on. It is left out when there are too many nodes.
    pub fn write_node_copy(&mut self) {
        self.nodes = Some(Mutex::default());
    }

    /// Puts objects and their [row tables](crate::RowTable) concurrently. A process that dies may leave part of a file, which the next
    /// creation in the folder deletes.
    ///
    /// # Errors
    ///
    /// [`TransactionError`]; [`TransactionError::Reserved`] for the root's `zarr.json` and for keys
    /// below `.zvf`.
    pub async fn put_many(&self, mut objects: Vec<(Key, Bytes)>) -> Result<(), TransactionError> {
        let rows = SealChanges::take_rows(&mut objects);
        for (key, _) in &objects {
            check_key(key)?;
        }
        if let Some(nodes) = &self.nodes {
            let mut nodes = nodes.lock().unwrap_or_else(PoisonError::into_inner);
            for (key, bytes) in &objects {
                nodes.put(key, bytes);
            }
        }
        if let Some(seal) = &self.seal {
            SealChanges::put_all(seal, &objects, rows);
        }
        let guard = self.lock.as_ref().map(FolderLock::guard);
        Ok(self.store.put_many_non_atomic(objects, guard).await?)
    }

    /// Puts the root's `zarr.json`, which completes the store.
    ///
    /// The members `zvf` and `zvf_nodes` of its attributes, as in the root of a copied store, are
    /// removed. A node copy is added after [`write_node_copy`](Self::write_node_copy).
    ///
    /// # Atomicity
    ///
    /// Readers find no store before this call and the complete store after it. If the future is
    /// dropped, the store may still be completed.
    ///
    /// # Errors
    ///
    /// [`CreateError::TakenOver`] and [`CreateError::AlreadyExists`] when another process took over
    /// or was first.
    pub async fn commit(self, root: &[u8]) -> Result<(), CreateError> {
        if self.lock.is_none() {
            return self.complete(root).await;
        }
        let (store, root) = (self.store.clone(), Bytes::copy_from_slice(root));
        let complete = async move { self.complete(&root).await };
        store.run_locked(complete).await
    }

    async fn complete(self, root: &[u8]) -> Result<(), CreateError> {
        let store = &self.store;
        if self.lock.is_none() && store.read_marker().await?.as_ref() != Some(&self.marker) {
            return Err(CreateError::TakenOver);
        }
        if let Some(lock) = self.lock.as_ref().filter(|_| is_job(&self.marker)) {
            // Processes of the job may have been killed.
            store.sweep_temporary_files(lock, Duration::ZERO).await?;
        }
        let initial = State::default();
        let root = match &self.nodes {
            Some(nodes) => {
                let nodes = nodes.lock().unwrap_or_else(PoisonError::into_inner);
                initial.write_with_node_copy(
                    root,
                    NodeCopyUpdate {
                        changes: &nodes,
                        base: None,
                    },
                )?
            }
            None => match State::if_json(root)? {
                Some(state) if state == initial && !has_copy(root) => Bytes::copy_from_slice(root),
                _ => initial.write_without_node_copy(root)?,
            },
        };
        let root = match &self.seal {
            Some(seal) => Box::pin(self.put_inventory(seal, &root)).await?,
            None => root,
        };
        let key = head_key()?;
        let put = store
            .put_if(&key, root.clone(), &Precondition::Absent)
            .await?;
        if put.is_none() {
            // It may be the root of this creation, put by an attempt whose response was lost.
            let found = store.fetch_versioned(&key).await?;
            if found.is_none_or(|(found, _)| found != root) {
                return Err(CreateError::AlreadyExists);
            }
        }
        // The store is complete. A marker that stays is of no effect, and sweeping deletes it.
        let _: Result<(), WriteError> = store.delete(&creation_marker_key()?).await;
        if let Some(lock) = self.lock {
            lock.remove();
        }
        Ok(())
    }

    /// Puts the leaves of the inventory and returns the root with it.
    async fn put_inventory(
        &self,
        seal: &Mutex<SealChanges>,
        root: &[u8],
    ) -> Result<Bytes, CreateError> {
        let next = {
            let seal = seal.lock().unwrap_or_else(PoisonError::into_inner);
            seal.whole(0, "0-")?
        };
        let root = next.write_into(root)?;
        self.store.put_many(next.objects).await?;
        Ok(root)
    }

    /// Aborts the creation and deletes its objects, and on disk temporary files and folders.
    ///
    /// # Errors
    ///
    /// [`CreateError`]. Objects that are left are still marked.
    pub async fn abort(self) -> Result<(), CreateError> {
        if self.lock.is_none() {
            return self.remove().await;
        }
        let store = self.store.clone();
        let remove = async move { self.remove().await };
        store.run_locked(remove).await
    }

    async fn remove(self) -> Result<(), CreateError> {
        match &self.lock {
            Some(lock) => self.store.clear_folder(lock).await?,
            None => self.store.clear().await?,
        }
        self.store.delete(&creation_marker_key()?).await?;
        if let Some(lock) = self.lock {
            lock.remove();
        }
        Ok(())
    }
}
