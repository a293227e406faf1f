//! Application of a committed transaction.
//!
//! The process that committed it applies it; if that one dies, the next transaction does. Every step
//! may be repeated, also by two processes at once.

use zvf_model::key::{Key, KeyError};

use super::{
    TransactionError,
    head::{Head, MAX_ATTEMPTS},
    id::TransactionId,
    journal::{Journal, StagedPut},
    layout::{MAX_LOGS, head_key, journal_key, log_key},
    lock::FolderLock,
    log::CommitLog,
};
use crate::{
    io::{ListError, ObjectVersion, Precondition, ReadError, WriteError},
    store::Store,
};

/// The reason why an application stops early.
enum Stop {
    /// Another process has applied the transaction.
    AlreadyApplied,
    Failed(TransactionError),
}

impl Store {
    /// Applies the transaction of a head, unless another process does.
    pub(super) async fn finish(&self, head: &Head) -> Result<(), TransactionError> {
        let Some(id) = &head.state.id else {
            return Ok(());
        };
        match self.read_journal(id).await? {
            Some(journal) => self.apply(&journal).await,
            // The journal is deleted last, so everything is applied.
            None => self.remove_pending_mark(id).await,
        }
    }

    /// Applies a committed transaction in a store with conditional puts.
    ///
    /// A delayed process may continue after others have finished this transaction and committed
    /// more. Therefore each put names the version that it replaces, and the head is checked before
    /// each batch, which also guards deletes.
    pub(super) async fn apply(&self, journal: &Journal) -> Result<(), TransactionError> {
        match self.apply_in_batches(journal).await {
            Ok(()) => self.conclude(journal).await,
            Err(Stop::AlreadyApplied) => Ok(()),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    async fn apply_in_batches(&self, journal: &Journal) -> Result<(), Stop> {
        let id = &journal.id;
        let mut seen = None;
        for deletes in journal.deletes.chunks(self.concurrency()) {
            self.check_still_pending(id, &mut seen).await?;
            self.delete_many(deletes.to_vec()).await?;
        }
        for puts in journal.puts.chunks(self.concurrency()) {
            self.check_still_pending(id, &mut seen).await?;
            let puts = puts.iter().map(|put| self.put_staged(id, put));
            self.run_concurrently(puts).await?;
        }
        self.check_still_pending(id, &mut seen).await
    }

    /// Checks that the head is pending for `id`, and returns its version.
    async fn check_pending(&self, id: &TransactionId) -> Result<ObjectVersion, Stop> {
        match self.head().await? {
            Some(head) if head.is_pending(id) => Ok(head.version),
            _ => Err(Stop::AlreadyApplied),
        }
    }

    /// Checks that the head is still pending, by its version alone if that is unchanged: the head
    /// may hold a copy of all nodes.
    async fn check_still_pending(
        &self,
        id: &TransactionId,
        seen: &mut Option<ObjectVersion>,
    ) -> Result<(), Stop> {
        let key = head_key().map_err(TransactionError::from)?;
        let is_seen = match seen {
            Some(seen) if seen.is_known() => self.version(&key).await?.as_ref() == Some(seen),
            _ => false,
        };
        if !is_seen {
            *seen = Some(self.check_pending(id).await?);
        }
        Ok(())
    }

    /// Puts a staged object at its key, if the object there is the one that it replaces.
    async fn put_staged(&self, id: &TransactionId, put: &StagedPut) -> Result<(), Stop> {
        let Some((bytes, _)) = self.fetch_versioned(&put.staged).await? else {
            if self.is_applied(put).await? {
                return Ok(());
            }
            self.check_pending(id).await?;
            let key = put.key.clone();
            return Err(Stop::Failed(TransactionError::StagedObjectMissing { key }));
        };
        let condition = match &put.replaces {
            None => Precondition::Absent,
            Some(tag) => Precondition::Matches(tag.clone()),
        };
        let done = self.put_if(&put.key, bytes, &condition).await?;
        if done.is_some() || self.is_applied(put).await? {
            return Ok(());
        }
        self.check_pending(id).await?;
        let key = put.key.clone();
        Err(Stop::Failed(TransactionError::ModifiedExternally { key }))
    }

    /// Returns whether a staged object is at its key, by size and checksum.
    async fn is_applied(&self, put: &StagedPut) -> Result<bool, TransactionError> {
        let found = self.fetch_versioned(&put.key).await?;
        Ok(found.is_some_and(|(bytes, _)| {
            u64::try_from(bytes.len()) == Ok(put.bytes) && crc32c::crc32c(&bytes) == put.crc32c
        }))
    }

    /// Applies the transaction of a head, under the lock of the folder.
    pub(super) async fn finish_locked(
        &self,
        lock: &FolderLock,
        head: &Head,
    ) -> Result<(), TransactionError> {
        let Some(id) = &head.state.id else {
            return Ok(());
        };
        match self.read_journal(id).await? {
            Some(journal) => self.apply_locked(lock, &journal).await,
            None => self.remove_pending_mark(id).await,
        }
    }

    /// Applies a committed transaction, under the lock of the folder.
    pub(super) async fn apply_locked(
        &self,
        lock: &FolderLock,
        journal: &Journal,
    ) -> Result<(), TransactionError> {
        self.delete_many(journal.deletes.clone()).await?;
        self.remove_empty_around(lock, &journal.deletes).await;
        let moves = journal
            .puts
            .iter()
            .map(|put| (put.staged.clone(), put.key.clone()));
        let moved = self.rename_files(moves.collect()).await?;
        let left: Vec<&StagedPut> = match &moved {
            None => journal.puts.iter().collect(),
            Some(moved) => {
                let puts = journal.puts.iter().zip(moved);
                let left = puts.filter(|(_, is_moved)| !**is_moved);
                left.map(|(put, _)| put).collect()
            }
        };
        let renames = left.into_iter().map(|put| async move {
            // A process that died may have moved it already.
            if self.rename(&put.staged, &put.key).await? || self.is_applied(put).await? {
                return Ok(());
            }
            let key = put.key.clone();
            Err(TransactionError::StagedObjectMissing { key })
        });
        self.run_concurrently(renames).await?;
        self.conclude(journal).await
    }

    /// Writes the log, deletes staged objects and the journal, and removes the pending mark.
    ///
    /// The mark is removed last: until then other processes know where to continue, so a process
    /// that dies here leaves nothing behind.
    async fn conclude(&self, journal: &Journal) -> Result<(), TransactionError> {
        let log = (log_key(journal.transaction)?, CommitLog::encode(journal));
        self.put_many(vec![log]).await?;
        if let Some(old) = journal.transaction.checked_sub(MAX_LOGS) {
            self.delete_many(vec![log_key(old)?]).await?;
        }
        if self.folder().is_none() {
            let staged = journal.puts.iter().map(|put| put.staged.clone());
            self.delete_many(staged.collect()).await?;
        }
        self.delete(&journal_key(&journal.id)?).await?;
        self.remove_pending_mark(&journal.id).await
    }

    /// Removes the pending mark from the head.
    async fn remove_pending_mark(&self, id: &TransactionId) -> Result<(), TransactionError> {
        let key = head_key()?;
        for _ in 0..MAX_ATTEMPTS {
            let head = match self.head().await? {
                Some(head) if head.is_pending(id) => head,
                _ => return Ok(()),
            };
            let condition = match self.folder() {
                // The lock excludes other writers.
                Some(_) => Precondition::None,
                None => Precondition::Matches(head.version.clone()),
            };
            let put = self
                .put_if(&key, head.without_pending_mark()?, &condition)
                .await?;
            if put.is_some() {
                return Ok(());
            }
        }
        Err(TransactionError::Contended)
    }

    async fn read_journal(&self, id: &TransactionId) -> Result<Option<Journal>, TransactionError> {
        let found = self.fetch_versioned(&journal_key(id)?).await?;
        found
            .map(|(bytes, _)| Journal::parse(id, &bytes))
            .transpose()
    }

    /// Returns the keys of all objects in a reserved folder.
    pub(super) async fn reserved_keys(&self, folder: &Key) -> Result<Vec<Key>, TransactionError> {
        let found = self.list_reserved(folder).await?;
        let keys = found.iter().map(|file| folder.join_path(&file.name));
        Ok(keys.collect::<Result<_, KeyError>>()?)
    }
}

impl From<TransactionError> for Stop {
    fn from(error: TransactionError) -> Self {
        Self::Failed(error)
    }
}

impl From<ReadError> for Stop {
    fn from(error: ReadError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<WriteError> for Stop {
    fn from(error: WriteError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<ListError> for Stop {
    fn from(error: ListError) -> Self {
        Self::Failed(error.into())
    }
}
