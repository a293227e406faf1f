//! Changing many objects at once, or none: `docs/adr/0007` says how and why.

mod apply;
mod copy;
mod creation;
mod empty;
mod error;
mod head;
mod lock;
mod log;
mod parts;
mod record;
mod root;
mod sweep;
mod unfinished;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use zvf_model::key::Key;

use crate::{
    overlay::is_own,
    store::Store,
    write::{Condition, WriteError},
};

use copy::Nodes;
use head::Head;
use record::Put;

pub use creation::Creation;
pub use error::{CommitError, CreateError, RecordError, TransactionError};

pub(crate) use head::{Id, State};
pub(crate) use record::{Journal, journal_of};

/// Changes to a store that are seen together or not at all.
///
/// Objects that are [`put`](Self::put) wait in a place that no reader looks at.
/// [`commit`](Self::commit) makes all of them part of the store with one put of
/// the root's `zarr.json`, and only if nobody else committed since
/// [`Store::begin`]. A process that dies before leaves the store as it was; one
/// that dies after has written all of it: whoever reads or begins next sees to
/// that.
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
/// # Two at once
///
/// Of two transactions that began at the same state, the second to commit is
/// told [`CommitError::Conflict`] when both [touched](Self::touch) the same
/// name, and [`CommitError::Outdated`] otherwise. After the latter it may
/// [`rebase`](Self::rebase), put again the objects that both changed, and commit
/// once more.
#[derive(Debug)]
pub struct Transaction {
    store: Store,
    id: Id,
    base: Head,
    puts: BTreeMap<Key, Put>,
    deletes: BTreeSet<Key>,
    touched: BTreeSet<String>,
    nodes: Nodes,
    /// Whether the copy of the nodes begins anew.
    copies_anew: bool,
    /// Changed by others after this was staged.
    stale: BTreeSet<Key>,
    /// Names given to staged objects so far.
    names: u64,
    /// Tells a part of a transaction of another process from its other parts.
    part: Option<Id>,
    over: bool,
}

/// What came of a [`Transaction`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommitReport {
    /// Its number: one more than that before it.
    pub transaction: u64,
}

impl Store {
    /// Begins a transaction at the present state of the store: one round trip.
    ///
    /// What a transaction of a dead process left to do is done first; on a disk
    /// a living one is waited for.
    ///
    /// # Errors
    ///
    /// [`TransactionError`]; [`TransactionError::NoStore`] when there is no root.
    pub async fn begin(&self) -> Result<Transaction, TransactionError> {
        let store = self.bare();
        store.check_writable()?;
        let base = store.settled_head().await?;
        Ok(Transaction {
            store,
            id: Id::random(),
            base,
            puts: BTreeMap::new(),
            deletes: BTreeSet::new(),
            touched: BTreeSet::new(),
            nodes: Nodes::default(),
            copies_anew: false,
            stale: BTreeSet::new(),
            names: 0,
            part: None,
            over: false,
        })
    }
}

impl Transaction {
    /// The number of the transaction that this one builds on; 0 for a store
    /// that never had one.
    pub fn base(&self) -> u64 {
        self.base.state.transaction
    }

    /// The root's `zarr.json` that this one builds on.
    pub fn root(&self) -> &Bytes {
        &self.base.document
    }

    /// Puts an object with the commit. It is sent now, and not held; putting it
    /// again replaces it.
    ///
    /// # Errors
    ///
    /// [`TransactionError`]; [`TransactionError::Reserved`] for the root's
    /// `zarr.json`, which [`commit`](Self::commit) is given, and below `.zvf`.
    pub async fn put(&mut self, key: Key, bytes: Bytes) -> Result<(), TransactionError> {
        self.put_many(vec![(key, bytes)]).await
    }

    /// Puts objects with the commit, sent side by side.
    ///
    /// # Errors
    ///
    /// As for [`put`](Self::put); none of them counts as put then.
    pub async fn put_many(&mut self, objects: Vec<(Key, Bytes)>) -> Result<(), TransactionError> {
        self.check_open()?;
        let mut puts = Vec::with_capacity(objects.len());
        let mut staged = Vec::with_capacity(objects.len());
        for (key, bytes) in objects {
            check_key(&key)?;
            let put = Put {
                key,
                staged: self.next_staged()?,
                bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
                crc32c: crc32c::crc32c(&bytes),
                was: None,
            };
            staged.push((put.staged.clone(), bytes.clone()));
            puts.push((put, bytes));
        }
        self.store.put_unseen(staged).await?;
        let mut replaced = Vec::new();
        for (put, bytes) in puts {
            self.nodes.put(&put.key, &bytes);
            self.deletes.remove(&put.key);
            self.stale.remove(&put.key);
            let before = self.puts.insert(put.key.clone(), put);
            replaced.extend(before.map(|put| put.staged));
        }
        self.store.delete_many(replaced).await?;
        Ok(())
    }

    /// Deletes an object with the commit, and what was put there before.
    ///
    /// # Errors
    ///
    /// As for [`put`](Self::put).
    pub async fn delete(&mut self, key: Key) -> Result<(), TransactionError> {
        self.check_open()?;
        check_key(&key)?;
        self.discard(&key).await?;
        self.nodes.delete(&key);
        self.deletes.insert(key);
        Ok(())
    }

    /// Forgets what was put at a key, or that it was deleted.
    ///
    /// # Errors
    ///
    /// As for [`put`](Self::put).
    pub async fn discard(&mut self, key: &Key) -> Result<(), TransactionError> {
        self.check_open()?;
        self.deletes.remove(key);
        self.stale.remove(key);
        self.nodes.discard(key);
        if let Some(put) = self.puts.remove(key) {
            self.store.delete(&put.staged).await?;
        }
        Ok(())
    }

    /// Says that this puts all nodes there will be: with the commit the root gets a
    /// [copy](zvf_model::node_copy) of them, whether or not it had one.
    pub fn rebuild_node_copy(&mut self) {
        self.copies_anew = true;
    }

    /// The same, with these nodes besides those that this puts: the files of all that
    /// are there.
    pub fn rebuild_node_copy_with(&mut self, files: impl IntoIterator<Item = (Key, Bytes)>) {
        self.copies_anew = true;
        let changed = core::mem::take(&mut self.nodes);
        for (file, bytes) in files {
            self.nodes.put(&file, &bytes);
        }
        self.nodes.extend(changed);
    }

    /// Says that this transaction depends on or changes what goes by a name,
    /// such as that of a chunk. Two that touch the same name conflict.
    ///
    /// Objects that many change and that can be merged, such as counts in
    /// metadata, are best not touched: put again after
    /// [`rebase`](Self::rebase), nothing is lost.
    pub fn touch(&mut self, name: impl Into<String>) {
        self.touched.insert(name.into());
    }

    /// Makes all of this part of the store, with `root` as the root's
    /// `zarr.json`; a member `zvf` of its attributes is replaced. A member
    /// [`zvf_nodes`](zvf_model::node_copy) is made that of the new state, when it was that
    /// of the state which this builds on, and left out otherwise.
    ///
    /// When this returns, everything is at its place. The new state counts from
    /// one put on, though, that of the root: see [`CommitError::Unfinished`].
    /// Afterwards the transaction is over, but for the errors that say otherwise.
    ///
    /// # Errors
    ///
    /// [`CommitError`].
    pub async fn commit(&mut self, root: &[u8]) -> Result<CommitReport, CommitError> {
        self.check_whole()?;
        if !self.stale.is_empty() {
            let keys = self.stale.iter().cloned().collect();
            return Err(CommitError::Stale { keys });
        }
        let next = State {
            transaction: self
                .base()
                .checked_add(1)
                .ok_or(TransactionError::Finished)?,
            id: Some(self.id.clone()),
            pending: true,
        };
        let nodes = (&self.nodes, self.base(), self.copies_anew);
        let root = next.put_with(root, nodes)?;
        match self.store.folder() {
            Some(_) => self.commit_in_folder(next, root).await,
            None => self.commit_conditionally(next, root).await,
        }
    }

    /// Under the lock of the folder nobody else commits or applies.
    async fn commit_in_folder(
        &mut self,
        next: State,
        root: Bytes,
    ) -> Result<CommitReport, CommitError> {
        let journal = self.journal(&next);
        self.write_journal(&journal).await?;
        let lock = self.store.lock().await?;
        let head = self.store.settled_head_under(&lock).await?;
        if head.document != self.base.document {
            return Err(self.overtaken(&head).await?);
        }
        self.check_staged().await?;
        let key = Head::key()?;
        let put = self.store.put_if(&key, root, &Condition::Always).await;
        put.map_err(TransactionError::from)?;
        let done = self.store.apply_under(&lock, &journal).await;
        self.finished(&next, done)
    }

    /// In memory and in buckets a put says what it replaces.
    async fn commit_conditionally(
        &mut self,
        next: State,
        root: Bytes,
    ) -> Result<CommitReport, CommitError> {
        self.check_staged().await?;
        self.see_what_was().await?;
        let journal = self.journal(&next);
        self.write_journal(&journal).await?;
        let (key, bytes) = (journal_of(&self.id)?, journal.encode());
        let checked = self.store.check_compares(&key, bytes).await;
        checked.map_err(TransactionError::from)?;
        let condition = Condition::Is(self.base.tag.clone());
        let put = self.store.put_if(&Head::key()?, root, &condition).await;
        match put {
            Ok(Some(_)) => {}
            // Refused, or done by a request whose answer was lost.
            Ok(None) => {
                let head = self.store.settled_head().await?;
                if self.is_among(&head).await? {
                    return self.finished(&next, Ok(()));
                }
                return Err(self.overtaken(&head).await?);
            }
            Err(source) if source.is_transient() => return self.uncertain(&next, source).await,
            Err(source) => return Err(TransactionError::from(source).into()),
        }
        let done = self.store.apply(&journal).await;
        self.finished(&next, done)
    }

    /// The root may have been put or not, or may be yet by a request under way.
    async fn uncertain(
        &mut self,
        next: &State,
        source: WriteError,
    ) -> Result<CommitReport, CommitError> {
        let transaction = next.transaction;
        if let Ok(head) = self.store.settled_head().await
            && head.document != self.base.document
        {
            // Once it moved, no put that expects the base is done any more.
            if self.is_among(&head).await? {
                return self.finished(next, Ok(()));
            }
            return Err(self.overtaken(&head).await?);
        }
        self.over = true;
        Err(CommitError::Uncertain {
            transaction,
            source,
        })
    }

    fn finished(
        &mut self,
        next: &State,
        done: Result<(), TransactionError>,
    ) -> Result<CommitReport, CommitError> {
        self.over = true;
        let transaction = next.transaction;
        match done {
            Ok(()) => Ok(CommitReport { transaction }),
            Err(source) => Err(CommitError::Unfinished {
                transaction,
                source,
            }),
        }
    }

    /// Builds on the present state of the store from now on, after
    /// [`CommitError::Outdated`].
    ///
    /// What this transaction put or deleted and others changed meanwhile has to
    /// be put or deleted again, made from what is there now:
    /// [`commit`](Self::commit) says [`CommitError::Stale`] until it was.
    ///
    /// # Errors
    ///
    /// [`CommitError::Conflict`] when others touched the same names since.
    pub async fn rebase(&mut self) -> Result<(), CommitError> {
        self.check_open()?;
        let head = self.store.settled_head().await?;
        let changed = self.changed_since(&head).await?;
        let mine = |key: &&Key| self.puts.contains_key(*key) || self.deletes.contains(*key);
        let stale: Vec<Key> = changed.iter().filter(mine).cloned().collect();
        self.stale.extend(stale);
        self.base = head;
        Ok(())
    }

    /// Gives up: what was staged is deleted. After [`CommitError::Uncertain`]
    /// it is left, since it may be needed.
    ///
    /// # Errors
    ///
    /// [`TransactionError`]; the store is as if nothing had been begun, and
    /// [`Store::sweep`] deletes what is left.
    pub async fn abort(self) -> Result<(), TransactionError> {
        if self.over {
            return Ok(());
        }
        let mut staged = match self.part {
            Some(_) => self.puts.into_values().map(|put| put.staged).collect(),
            None => self.store.own_keys(&self.id.folder()?).await?,
        };
        staged.sort_unstable();
        Ok(self.store.delete_many(staged).await?)
    }

    fn check_open(&self) -> Result<(), TransactionError> {
        match self.over {
            true => Err(TransactionError::Finished),
            false => Ok(()),
        }
    }

    fn journal(&self, next: &State) -> Journal {
        Journal {
            transaction: next.transaction,
            id: self.id.clone(),
            puts: self.puts.values().cloned().collect(),
            deletes: self.deletes.iter().cloned().collect(),
            touched: self.touched.iter().cloned().collect(),
        }
    }

    async fn write_journal(&self, journal: &Journal) -> Result<(), TransactionError> {
        let key = journal_of(&self.id)?;
        let objects = vec![(key, journal.encode())];
        Ok(self.store.put_many(objects).await?)
    }

    /// That nobody swept away what is about to be committed.
    async fn check_staged(&self) -> Result<(), TransactionError> {
        if self.puts.is_empty() {
            return Ok(());
        }
        let folder = self.id.folder()?;
        let found = match self.store.sizes_of_files(&folder).await? {
            Some(found) => found,
            None => {
                let found = self.store.list_own(&folder).await?.into_iter();
                found.map(|file| (file.name, file.size)).collect()
            }
        };
        for put in self.puts.values() {
            let name = put.staged.name().unwrap_or_default();
            if found.get(name) != Some(&put.bytes) {
                let key = put.key.clone();
                return Err(TransactionError::StagedObjectMissing { key });
            }
        }
        Ok(())
    }

    /// Looks up the tags of what is about to be replaced. They are those of the
    /// base if the root turns out not to have moved.
    async fn see_what_was(&mut self) -> Result<(), TransactionError> {
        let store = &self.store;
        let looks = self.puts.values_mut().map(|put| async move {
            put.was = store.tag(&put.key).await?;
            Ok::<(), TransactionError>(())
        });
        store.side_by_side(looks).await
    }
}

fn check_key(key: &Key) -> Result<(), TransactionError> {
    let text = key.as_str();
    if key.is_root() || is_own(text) || text == head::ROOT {
        let key = key.clone();
        return Err(TransactionError::Reserved { key });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
