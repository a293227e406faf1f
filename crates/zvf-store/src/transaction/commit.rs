//! The commit of a transaction: journal, head and application.

use bytes::Bytes;

use super::{
    CommitError, CommitReport, Transaction, TransactionError,
    head::{Head, NodeCopyUpdate, State},
    id::TransactionId,
    journal::{Journal, StagedPut},
    layout::{head_key, journal_key, transaction_folder},
    lock::FolderLock,
};
use crate::{
    io::{Precondition, WriteError},
    store::Store,
};

/// The outcome of a commit under the lock of a folder.
enum LockedCommit {
    /// Committed, with the error if not all objects are at their keys.
    Done(Result<(), TransactionError>),
    /// Another transaction was committed before.
    Outdated(Head),
}

impl Transaction {
    /// Commits this transaction with `root` as the root's `zarr.json`.
    ///
    /// A member `zvf` of the attributes of `root` is replaced. A member
    /// [`zvf_nodes`](zvf_model::node_copy) is updated if the base has a valid node copy, and removed
    /// otherwise.
    ///
    /// When this returns, all objects are at their keys, except as
    /// [`unfinished`](CommitReport::unfinished) states. The new state is visible earlier, from the put
    /// of the root on: nothing that fails afterwards undoes it or makes it an error. Afterwards the
    /// transaction is finished, except for the errors that allow another attempt.
    ///
    /// # Atomicity
    ///
    /// The put of the root makes all changes visible at once. See the table of steps in
    /// `docs/adr/0007`.
    ///
    /// If the future is dropped once the root is being put, the transaction may be committed all the
    /// same, as after [`CommitError::Uncertain`]. In a folder, the commit then goes on in the
    /// background and holds the lock until it ends.
    ///
    /// # Errors
    ///
    /// [`CommitError`].
    pub async fn commit(&mut self, root: &[u8]) -> Result<CommitReport, CommitError> {
        self.check_committable()?;
        if !self.stale.is_empty() {
            let keys = self.stale.iter().cloned().collect();
            return Err(CommitError::Stale { keys });
        }
        let number = self.base().checked_add(1);
        let next = State {
            transaction: number.ok_or(TransactionError::Finished)?,
            id: Some(self.id.clone()),
            pending: true,
        };
        let update = NodeCopyUpdate {
            changes: &self.nodes,
            base: (!self.rebuilds_node_copy).then(|| self.base()),
        };
        let mut root = next.write_with_node_copy(root, update)?;
        let seal = Box::pin(self.next_seal(next.transaction)).await?;
        let mut replaced = self.replaced_leaves(seal.as_ref());
        replaced.append(&mut self.seal_leaves);
        if let Some(seal) = seal {
            root = seal.write_into(&root)?;
            self.seal_leaves = seal.objects.iter().map(|(key, _)| key.clone()).collect();
            let put = self.store.put_many(seal.objects).await;
            put.map_err(TransactionError::from)?;
        }
        let committed = match self.store.folder() {
            Some(_) => self.commit_in_folder(next, root).await,
            None => self.commit_conditionally(next, root).await,
        };
        if committed.is_ok() {
            // The new root does not refer to them. What remains takes space until it is swept.
            let _: Result<(), WriteError> = self.store.delete_many(replaced).await;
        }
        committed
    }

    /// Commits under the lock of the folder, which excludes other commits and applications.
    async fn commit_in_folder(
        &mut self,
        next: State,
        root: Bytes,
    ) -> Result<CommitReport, CommitError> {
        let journal = self.journal(&next);
        self.write_journal(&journal).await?;
        let lock = self.store.lock().await?;
        let (store, base) = (self.store.clone(), self.base.document.clone());
        let commit = async move { store.commit_locked(&lock, &base, root, &journal).await };
        // If the future is dropped, the outcome is unknown.
        self.finished = true;
        let committed = self.store.run_locked(commit).await;
        self.finished = matches!(committed, Ok(LockedCommit::Done(_)));
        match committed? {
            LockedCommit::Done(applied) => Ok(self.finish(&next, applied)),
            LockedCommit::Outdated(head) => Err(self.outdated_error(&head).await?),
        }
    }

    /// Commits with a put that names the version of the head that it replaces, in memory and in
    /// buckets.
    async fn commit_conditionally(
        &mut self,
        next: State,
        root: Bytes,
    ) -> Result<CommitReport, CommitError> {
        let puts: Vec<&StagedPut> = self.puts.values().collect();
        self.store.check_staged(&self.id, &puts).await?;
        self.record_replaced_versions().await?;
        let journal = self.journal(&next);
        self.write_journal(&journal).await?;
        let (key, bytes) = (journal_key(&self.id)?, journal.encode());
        let checked = self.store.check_conditional_puts(&key, bytes).await;
        checked.map_err(TransactionError::from)?;
        // If the future is dropped, the outcome is unknown.
        self.finished = true;
        let committed = self.put_root(next, root, &journal).await;
        self.finished = matches!(committed, Ok(_) | Err(CommitError::Uncertain { .. }));
        committed
    }

    /// Puts the root if it is still the base, and applies the transaction.
    async fn put_root(
        &mut self,
        next: State,
        root: Bytes,
        journal: &Journal,
    ) -> Result<CommitReport, CommitError> {
        let precondition = Precondition::Matches(self.base.version.clone());
        let put = self.store.put_if(&head_key()?, root, &precondition).await;
        match put {
            Ok(Some(_)) => {}
            // Refused, or already done by an attempt whose response was lost.
            Ok(None) => {
                let head = self.store.applied_head().await?;
                if self.is_committed(&head).await? {
                    return Ok(self.finish(&next, Ok(())));
                }
                return Err(self.outdated_error(&head).await?);
            }
            Err(source) if source.is_transient() => {
                return self.resolve_uncertain(&next, source).await;
            }
            Err(source) => return Err(TransactionError::from(source).into()),
        }
        let applied = self.store.apply(journal).await;
        Ok(self.finish(&next, applied))
    }

    /// Determines the outcome after a put of the head failed without a response. The put may have
    /// been done, or may still be done by a request in flight.
    async fn resolve_uncertain(
        &mut self,
        next: &State,
        source: WriteError,
    ) -> Result<CommitReport, CommitError> {
        let transaction = next.transaction;
        if let Ok(head) = self.store.applied_head().await
            && head.document != self.base.document
        {
            // The head changed, so no put that expects the base can succeed any more.
            if self.is_committed(&head).await? {
                return Ok(self.finish(next, Ok(())));
            }
            return Err(self.outdated_error(&head).await?);
        }
        self.finished = true;
        Err(CommitError::Uncertain {
            transaction,
            source,
        })
    }

    fn finish(&mut self, next: &State, applied: Result<(), TransactionError>) -> CommitReport {
        self.finished = true;
        CommitReport {
            transaction: next.transaction,
            unfinished: applied.err(),
        }
    }

    fn journal(&self, next: &State) -> Journal {
        Journal {
            transaction: next.transaction,
            id: self.id.clone(),
            puts: self.puts.values().cloned().collect(),
            deletes: self.deletes.iter().cloned().collect(),
            touched: self.touched.iter().cloned().collect(),
            seal: None,
        }
    }

    async fn write_journal(&self, journal: &Journal) -> Result<(), TransactionError> {
        let key = journal_key(&self.id)?;
        let objects = vec![(key, journal.encode())];
        Ok(self.store.put_many(objects).await?)
    }

    /// Looks up the versions of the objects that the puts replace. They are those of the base if
    /// the head has not changed when it is put.
    async fn record_replaced_versions(&mut self) -> Result<(), TransactionError> {
        let store = &self.store;
        let lookups = self.puts.values_mut().map(|put| async move {
            put.replaces = store.version(&put.key).await?;
            Ok::<(), TransactionError>(())
        });
        store.run_concurrently(lookups).await
    }
}

impl Store {
    /// Commits under the lock of the folder, if the root is still `base`.
    async fn commit_locked(
        &self,
        lock: &FolderLock,
        base: &Bytes,
        root: Bytes,
        journal: &Journal,
    ) -> Result<LockedCommit, TransactionError> {
        let head = self.applied_head_locked(lock).await?;
        if head.document != *base {
            return Ok(LockedCommit::Outdated(head));
        }
        let puts: Vec<&StagedPut> = journal.puts.iter().collect();
        self.check_staged(&journal.id, &puts).await?;
        self.put_if(&head_key()?, root, &Precondition::None).await?;
        Ok(LockedCommit::Done(self.apply_locked(lock, journal).await))
    }

    /// Checks that no sweep deleted the staged objects of a transaction.
    async fn check_staged(
        &self,
        id: &TransactionId,
        puts: &[&StagedPut],
    ) -> Result<(), TransactionError> {
        if puts.is_empty() {
            return Ok(());
        }
        let folder = transaction_folder(id)?;
        let sizes = match self.sizes_of_files(&folder).await? {
            Some(sizes) => sizes,
            None => {
                let files = self.list_reserved(&folder).await?.into_iter();
                files.map(|file| (file.name, file.size)).collect()
            }
        };
        for put in puts {
            let name = put.staged.name().unwrap_or_default();
            if sizes.get(name) != Some(&put.bytes) {
                let key = put.key.clone();
                return Err(TransactionError::StagedObjectMissing { key });
            }
        }
        Ok(())
    }
}
