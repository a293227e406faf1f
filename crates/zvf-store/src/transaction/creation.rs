//! Creating a store: all of it, or none.

use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use zvf_model::key::{Key, KeyError};

use super::{
    CreateError, Head, Id, TransactionError, check_key,
    copy::{Nodes, has_copy},
    head::State,
    lock::FolderLock,
};
use crate::{overlay::HOME, store::Store, write::Condition};

/// Where a creation says that it is under way.
pub(super) fn marker() -> Result<Key, KeyError> {
    Key::parse(HOME)?.join("creating")
}

/// A store that is being created.
///
/// Objects go to their place at once, since nobody takes for a store what has
/// no root; [`commit`](Self::commit) puts that last.
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
    store: Store,
    id: Id,
    lock: Option<FolderLock>,
    /// What the copy of the nodes is made of, if there is to be one.
    nodes: Option<Mutex<Nodes>>,
}

impl Store {
    /// Begins to create a store where there is nothing.
    ///
    /// On disk, what a dead process left of one it was creating is deleted
    /// first: the mark in the folder, which nobody holds any more, says whose it
    /// is. Nothing else ever is.
    ///
    /// # Errors
    ///
    /// [`CreateError`].
    pub async fn begin_create(&self) -> Result<Creation, CreateError> {
        let store = self.bare();
        store.check_writable()?;
        store.check_free().await?;
        let id = Id::random();
        if store.folder().is_some() {
            store.check_own_or_empty().await?;
            let lock = store.try_lock()?.ok_or(CreateError::InProgress)?;
            store.check_free().await?;
            store.check_own_or_empty().await?;
            if store.marked_by().await?.is_some() {
                store.clear().await?;
                store.sweep_unfinished(&lock, Duration::ZERO).await?;
                store.remove_empty(&lock).await;
            } else {
                store.mark(&id, &Condition::Always).await?;
            }
            let lock = Some(lock);
            return Ok(Creation::new(store, id, lock));
        }
        if store.marked_by().await?.is_some() {
            return Err(CreateError::Leftovers);
        }
        store.check_own_or_empty().await?;
        if !store.mark(&id, &Condition::Absent).await? {
            return Err(CreateError::Leftovers);
        }
        let mark = Bytes::copy_from_slice(id.as_str().as_bytes());
        let (at, absent) = (marker()?, Condition::Absent);
        store.check_refuses(&at, mark, &absent).await?;
        Ok(Creation::new(store, id, None))
    }

    /// As [`begin_create`](Self::begin_create), but takes over from whoever
    /// began before and deletes what they put: for a bucket, where nobody can
    /// tell whether they are still at it. If they are, they are told with their
    /// commit.
    ///
    /// # Errors
    ///
    /// [`CreateError`].
    pub async fn begin_create_replacing_leftovers(&self) -> Result<Creation, CreateError> {
        let store = self.bare();
        if store.folder().is_some() || store.marked_by().await?.is_none() {
            return store.begin_create().await;
        }
        store.check_free().await?;
        let id = Id::random();
        store.mark(&id, &Condition::Always).await?;
        store.clear().await?;
        Ok(Creation::new(store, id, None))
    }

    /// That there is no root.
    async fn check_free(&self) -> Result<(), CreateError> {
        match self.tag(&Head::key()?).await? {
            Some(_) => Err(CreateError::AlreadyExists),
            None => Ok(()),
        }
    }

    /// That what is there is marked as that of a creation, or nothing.
    async fn check_own_or_empty(&self) -> Result<(), CreateError> {
        if self.marked_by().await?.is_some() {
            return Ok(());
        }
        let found = self.list(&Key::root(), usize::MAX).await?;
        let files = found.files.into_iter().map(|file| file.name);
        match files.chain(found.folders).next() {
            None => Ok(()),
            Some(name) => Err(CreateError::NotEmpty(name)),
        }
    }

    /// Who put the mark, if there is one.
    async fn marked_by(&self) -> Result<Option<Bytes>, CreateError> {
        let found = self.fetch_tagged(&marker()?).await?;
        Ok(found.map(|(mark, _)| mark))
    }

    async fn mark(&self, id: &Id, condition: &Condition) -> Result<bool, CreateError> {
        let mark = Bytes::copy_from_slice(id.as_str().as_bytes());
        let put = self.put_if(&marker()?, mark, condition).await?;
        Ok(put.is_some())
    }

    /// Deletes everything but the mark.
    async fn clear(&self) -> Result<(), CreateError> {
        let keys = self.list_all(&Key::root(), usize::MAX).await?;
        let keys = keys.iter().map(|file| Key::parse(&file.name));
        let keys: Vec<Key> = keys.collect::<Result<_, KeyError>>()?;
        Ok(self.delete_many(keys).await?)
    }
}

impl Creation {
    fn new(store: Store, id: Id, lock: Option<FolderLock>) -> Self {
        Self {
            store,
            id,
            lock,
            nodes: None,
        }
    }

    /// The root is to have a [copy](zvf_model::node_copy) of all nodes that are put from
    /// now on: for stores of a bounded number of them. It is left out when they are too
    /// many.
    pub fn write_node_copy(&mut self) {
        self.nodes = Some(Mutex::default());
    }

    /// Puts objects at their place, as [`Store::put_many`]; but of one that was under way
    /// when a process dies, a folder may have half. Whoever creates there next deletes it.
    ///
    /// # Errors
    ///
    /// [`TransactionError`]; [`TransactionError::Reserved`] for the root's
    /// `zarr.json` and below `.zvf`.
    pub async fn put_many(&self, objects: Vec<(Key, Bytes)>) -> Result<(), TransactionError> {
        for (key, _) in &objects {
            check_key(key)?;
        }
        if let Some(nodes) = &self.nodes {
            let mut nodes = nodes.lock().unwrap_or_else(PoisonError::into_inner);
            for (key, bytes) in &objects {
                nodes.put(key, bytes);
            }
        }
        Ok(self.store.put_unseen(objects).await?)
    }

    /// Puts the root's `zarr.json`: from then on there is a store. A member
    /// `zvf` of its attributes, as of a root that was copied, is left out, and so is
    /// `zvf_nodes`, unless it is to have [one of its own](Self::write_node_copy).
    ///
    /// # Errors
    ///
    /// [`CreateError::TakenOver`] and [`CreateError::AlreadyExists`] when
    /// somebody else took over or was first.
    pub async fn commit(self, root: &[u8]) -> Result<(), CreateError> {
        let store = &self.store;
        if self.lock.is_none()
            && store.marked_by().await?.as_deref() != Some(self.id.as_str().as_bytes())
        {
            return Err(CreateError::TakenOver);
        }
        let fresh = State::default();
        let root = match &self.nodes {
            Some(nodes) => {
                let nodes = nodes.lock().unwrap_or_else(PoisonError::into_inner);
                fresh.put_with(root, (&nodes, 0, true))?
            }
            None => match State::if_json(root)? {
                Some(state) if state == fresh && !has_copy(root) => Bytes::copy_from_slice(root),
                _ => fresh.put_without(root)?,
            },
        };
        let key = Head::key()?;
        let put = store.put_if(&key, root.clone(), &Condition::Absent).await?;
        if put.is_none() {
            // Perhaps by a request of this whose answer was lost.
            let found = store.fetch_tagged(&key).await?;
            if found.is_none_or(|(found, _)| found != root) {
                return Err(CreateError::AlreadyExists);
            }
        }
        store.delete(&marker()?).await?;
        if let Some(lock) = self.lock {
            lock.remove();
        }
        Ok(())
    }

    /// Gives up, and deletes what was put.
    ///
    /// # Errors
    ///
    /// [`CreateError`]; what is left is still marked then.
    pub async fn abort(self) -> Result<(), CreateError> {
        self.store.clear().await?;
        self.store.delete(&marker()?).await?;
        if let Some(lock) = self.lock {
            lock.remove();
        }
        Ok(())
    }
}
