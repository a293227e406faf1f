//! Transactions: changes of many objects that become visible together or not at all.
//!
//! # How a commit becomes visible
//!
//! Every reader reads the root's `zarr.json`, the *head*, first. One conditional put of the head
//! therefore commits a transaction. These objects are written, in this order:
//!
//! | step | object | visible state | code |
//! |---|---|---|---|
//! | stage | `.zvf/<id>/<n>`: each new object | old | [`Transaction::put_many`] |
//! | seal | `.zvf/seal/…`: checksums of objects, if the store is sealed | old | `commit.rs` |
//! | journal | `.zvf/<id>/journal.json`: keys, sizes and checksums of staged objects, deleted keys | old | `commit.rs` |
//! | commit | `zarr.json` with the next number, `<id>` and `pending`, if it is still the base | **new** | `commit.rs` |
//! | apply | deletes, then each staged object at its key | new | `apply.rs` |
//! | log | `.zvf/log/<number>.json`: touched names and changed keys, for concurrent transactions | new | `apply.rs` |
//! | clean up | staged objects and then the journal are deleted | new | `apply.rs` |
//! | end | `zarr.json` without `pending` | new | `apply.rs` |
//!
//! A reader that finds `pending` in the head reads the journal and looks up staged objects where
//! they are ([`Store::committed_view`]).
//!
//! # Atomicity
//!
//! - A process that dies before the commit leaves the old state. Its staged objects take space until
//!   [`Store::sweep`] deletes them.
//! - A process that dies after the commit leaves the new state, with `pending` in the head. The next
//!   [`Store::begin`] applies the rest. Every step after the commit may be repeated, also by two
//!   processes at once.
//! - In a bucket and in memory, a put names the version that it replaces. On disk, which has no
//!   conditional put, a file lock is held from the commit to the end.
//!
//! `docs/adr/0007` gives the reasons and the limits of this protocol.

mod apply;
mod commit;
mod conflict;
mod creation;
mod creation_marker;
mod creation_part;
mod empty_folders;
mod error;
mod head;
mod id;
mod job;
mod journal;
mod layout;
mod lock;
mod log;
mod node_copy;
mod part;
mod record;
mod root_members;
mod sealing;
mod snapshot;
mod sweep;
mod temporary_files;
mod view;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use zvf_model::key::Key;

use crate::{
    seal::SealEntry,
    store::{Store, is_reserved},
};

use head::Head;
use id::TransactionId;
use journal::StagedPut;
use layout::{ROOT, transaction_folder};
use node_copy::NodeChanges;
use sealing::{SealChanges, SealUpdate};

pub use creation::Creation;
pub use creation_part::CreationPart;
pub use error::{CommitError, CreateError, RecordError, TransactionError};
pub use job::JobFiles;
pub use snapshot::SnapshotError;

/// Changes to a store that become visible together or not at all.
///
/// Objects that are [`put`](Self::put) are staged where no reader looks. [`commit`](Self::commit)
/// makes all of them visible with one put of the root's `zarr.json`, provided that no other
/// transaction was committed since [`Store::begin`].
///
/// ```
/// use zvf_model::key::Key;
/// use zvf_store::{Read, Store};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let root = br#"{"zarr_format": 3, "node_type": "group", "attributes": {}}"#;
/// let store = Store::from_memory([("zarr.json", root.as_slice()), ("0/b", b"old")])?;
///
/// let mut transaction = store.begin().await?;
/// transaction.put(Key::parse("0/a")?, "new".into()).await?;
/// transaction.delete(Key::parse("0/b")?).await?;
/// transaction.touch("0/a");
/// let root = transaction.root().clone();
/// assert_eq!(transaction.commit(&root).await?.transaction, 1);
///
/// let read = [Read::full(Key::parse("0/a")?), Read::full(Key::parse("0/b")?)];
/// assert_eq!(store.read(&read).await?, [Some("new".into()), None]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Atomicity
///
/// A process that dies before the commit leaves the store unchanged. After the commit, readers see
/// all changes, and the next transaction completes what a dead process left.
///
/// # Concurrency
///
/// Of two transactions that began at the same state, the second to commit fails with
/// [`CommitError::Conflict`] if both [touched](Self::touch) the same name, and with
/// [`CommitError::Outdated`] otherwise. In the latter case it can [`rebase`](Self::rebase), put
/// again the objects that both changed, and commit again.
#[derive(Debug)]
pub struct Transaction {
    store: Store,
    id: TransactionId,
    base: Head,
    puts: BTreeMap<Key, StagedPut>,
    deletes: BTreeSet<Key>,
    touched: BTreeSet<String>,
    nodes: NodeChanges,
    /// The commit writes a new node copy instead of updating the old one.
    rebuilds_node_copy: bool,
    seal: SealChanges,
    seal_update: SealUpdate,
    /// Number of inventories that commits of this transaction have written.
    seal_attempts: u64,
    /// Leaves of the inventory that were put for a commit.
    seal_leaves: Vec<Key>,
    /// Keys that other transactions changed after this one put or deleted them.
    stale: BTreeSet<Key>,
    /// Number of staged objects so far, which names the next one.
    staged_count: u64,
    /// Identifier of this process's part of a transaction that several processes work on.
    part: Option<TransactionId>,
    /// Another process commits the transaction.
    is_part: bool,
    finished: bool,
}

/// The result of a committed [`Transaction`].
#[derive(Debug)]
#[non_exhaustive]
pub struct CommitReport {
    /// The number of the transaction: one more than that of the previous one.
    pub transaction: u64,
    /// The reason why not all objects are at their keys, as on a full disk. The transaction is
    /// committed nevertheless: readers see the new state and find staged objects through the
    /// journal. The next [`begin`](Store::begin) moves the rest.
    pub unfinished: Option<TransactionError>,
}

impl Store {
    /// Begins a transaction at the present state of the store, in one round trip.
    ///
    /// A committed transaction that a dead process did not finish is applied first. On disk, one
    /// that a live process is applying is waited for.
    ///
    /// # Errors
    ///
    /// [`TransactionError`]; [`TransactionError::NoStore`] when there is no root.
    pub async fn begin(&self) -> Result<Transaction, TransactionError> {
        let store = self.without_overlay();
        store.check_writable()?;
        let base = store.applied_head().await?;
        Ok(Transaction {
            store,
            id: TransactionId::random(),
            base,
            puts: BTreeMap::new(),
            deletes: BTreeSet::new(),
            touched: BTreeSet::new(),
            nodes: NodeChanges::default(),
            rebuilds_node_copy: false,
            seal: SealChanges::default(),
            seal_update: SealUpdate::Keep,
            seal_attempts: 0,
            seal_leaves: Vec::new(),
            stale: BTreeSet::new(),
            staged_count: 0,
            part: None,
            is_part: false,
            finished: false,
        })
    }
}

impl Transaction {
    /// Returns the number of the transaction that this one is based on; 0 for a store that never
    /// had one.
    pub fn base(&self) -> u64 {
        self.base.state.transaction
    }

    /// Returns the root's `zarr.json` that this transaction is based on.
    pub fn root(&self) -> &Bytes {
        &self.base.document
    }

    /// Stages an object to be put by the commit. A second put to the same key replaces the first.
    ///
    /// The object is sent at once and not held in memory.
    ///
    /// # Errors
    ///
    /// [`TransactionError`]; [`TransactionError::Reserved`] for the root's `zarr.json`, which
    /// [`commit`](Self::commit) takes, and for keys below `.zvf`.
    pub async fn put(&mut self, key: Key, bytes: Bytes) -> Result<(), TransactionError> {
        self.put_many(vec![(key, bytes)]).await
    }

    /// Stages objects to be put by the commit, with their [row tables](crate::RowTable), concurrently.
    ///
    /// # Errors
    ///
    /// [`TransactionError`], as for [`put`](Self::put). Then none of the objects counts as put.
    pub async fn put_many(
        &mut self,
        mut objects: Vec<(Key, Bytes)>,
    ) -> Result<(), TransactionError> {
        self.check_open()?;
        let rows = SealChanges::take_rows(&mut objects);
        let mut puts = Vec::with_capacity(objects.len());
        let mut staged = Vec::with_capacity(objects.len());
        for (key, bytes) in objects {
            check_key(&key)?;
            let put = StagedPut {
                key,
                staged: self.next_staged_key()?,
                bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
                crc32c: crc32c::crc32c(&bytes),
                replaces: None,
            };
            staged.push((put.staged.clone(), bytes.clone()));
            puts.push((put, bytes));
        }
        self.store.put_many_non_atomic(staged, None).await?;
        for (put, bytes) in &puts {
            self.nodes.put(&put.key, bytes);
            self.seal.put(&put.key, SealEntry::of(bytes));
        }
        for rows in rows {
            self.seal.put_rows(rows);
        }
        self.add_puts(puts.into_iter().map(|(put, _)| put)).await
    }

    /// Records staged objects, and deletes the objects that they replace.
    async fn add_puts(
        &mut self,
        puts: impl Iterator<Item = StagedPut>,
    ) -> Result<(), TransactionError> {
        let mut replaced = Vec::new();
        for put in puts {
            self.deletes.remove(&put.key);
            self.stale.remove(&put.key);
            let before = self.puts.insert(put.key.clone(), put);
            replaced.extend(before.map(|put| put.staged));
        }
        Ok(self.store.delete_many(replaced).await?)
    }

    /// Deletes an object with the commit, and discards a staged object for the key.
    ///
    /// # Errors
    ///
    /// [`TransactionError`], as for [`put`](Self::put).
    pub async fn delete(&mut self, key: Key) -> Result<(), TransactionError> {
        self.check_open()?;
        check_key(&key)?;
        self.discard(&key).await?;
        self.nodes.delete(&key);
        self.seal.delete(&key);
        self.deletes.insert(key);
        Ok(())
    }

    /// Cancels a put or delete of a key.
    ///
    /// # Errors
    ///
    /// [`TransactionError`], as for [`put`](Self::put).
    pub async fn discard(&mut self, key: &Key) -> Result<(), TransactionError> {
        self.check_open()?;
        self.deletes.remove(key);
        self.stale.remove(key);
        self.nodes.discard(key);
        self.seal.discard(key);
        if let Some(put) = self.puts.remove(key) {
            self.store.delete(&put.staged).await?;
        }
        Ok(())
    }

    /// Writes a new [node copy](zvf_model::node_copy) with the commit, from the nodes that this
    /// transaction puts. They must be all nodes of the store.
    pub fn rebuild_node_copy(&mut self) {
        self.rebuilds_node_copy = true;
    }

    /// Writes a new node copy with the commit, from the given nodes and the nodes that this transaction
    /// puts. Each node is given by the key and the bytes of its metadata.
    pub fn rebuild_node_copy_with(&mut self, files: impl IntoIterator<Item = (Key, Bytes)>) {
        self.rebuilds_node_copy = true;
        let changed = core::mem::take(&mut self.nodes);
        for (file, bytes) in files {
            self.nodes.put(&file, &bytes);
        }
        self.nodes.extend(changed);
    }

    /// Declares that this transaction depends on or changes the entity of a name, such as a chunk.
    /// Two concurrent transactions that touch the same name conflict.
    ///
    /// Objects that many transactions change and that can be merged, such as counts in metadata,
    /// are better not touched. They are put again after [`rebase`](Self::rebase), so no update is
    /// lost.
    pub fn touch(&mut self, name: impl Into<String>) {
        self.touched.insert(name.into());
    }

    /// Rebases this transaction on the present state of the store, after
    /// [`CommitError::Outdated`].
    ///
    /// Objects that this transaction put or deleted and that others changed meanwhile become stale:
    /// they have to be put or deleted again, based on their present contents. Until then
    /// [`commit`](Self::commit) fails with [`CommitError::Stale`].
    ///
    /// # Errors
    ///
    /// [`CommitError::Conflict`] when another transaction touched the same name.
    pub async fn rebase(&mut self) -> Result<(), CommitError> {
        self.check_open()?;
        let head = self.store.applied_head().await?;
        let changed = self.changed_since(&head).await?;
        let is_ours = |key: &&Key| self.puts.contains_key(*key) || self.deletes.contains(*key);
        let stale: Vec<Key> = changed.iter().filter(is_ours).cloned().collect();
        self.stale.extend(stale);
        self.base = head;
        Ok(())
    }

    /// Aborts this transaction and deletes its staged objects. After [`CommitError::Uncertain`], and
    /// after a [`commit`](Self::commit) whose future was dropped while it put the root, they are
    /// kept, because the commit may have succeeded.
    ///
    /// # Errors
    ///
    /// [`TransactionError`]. The store is unchanged, and [`Store::sweep`] deletes the rest.
    pub async fn abort(self) -> Result<(), TransactionError> {
        if self.finished {
            return Ok(());
        }
        let mut staged = if self.is_part {
            self.puts.into_values().map(|put| put.staged).collect()
        } else {
            let folder = transaction_folder(&self.id)?;
            self.store.reserved_keys(&folder).await?
        };
        staged.sort_unstable();
        staged.extend(self.seal_leaves);
        Ok(self.store.delete_many(staged).await?)
    }

    fn check_open(&self) -> Result<(), TransactionError> {
        if self.finished {
            return Err(TransactionError::Finished);
        }
        Ok(())
    }
}

/// Checks that a transaction may put or delete an object at `key`.
fn check_key(key: &Key) -> Result<(), TransactionError> {
    let text = key.as_str();
    if key.is_root() || is_reserved(text) || text == ROOT {
        let key = key.clone();
        return Err(TransactionError::Reserved { key });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
