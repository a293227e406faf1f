//! Applying a committed transaction: by whoever committed it, or, when they are
//! gone, by whoever comes next. Any step may be taken twice, also by two at once.

use zvf_model::key::{Key, KeyError};

use super::{
    Head, Id, Journal, TransactionError,
    head::LOOKS,
    lock::FolderLock,
    log::{KEPT, log_of},
    record::{Log, Put, journal_of},
};
use crate::{
    list::ListError,
    read::ReadError,
    store::Store,
    write::{Condition, Tag, WriteError},
};

/// Why applying stops.
enum Stop {
    /// The transaction is finished: somebody else applied it.
    Finished,
    Failed(TransactionError),
}

impl Store {
    /// Finishes the transaction of a head, as far as nobody else does.
    pub(super) async fn finish(&self, head: &Head) -> Result<(), TransactionError> {
        let Some(id) = &head.state.id else {
            return Ok(());
        };
        match self.journal(id).await? {
            Some(journal) => self.apply(&journal).await,
            // It goes last, when all is applied.
            None => self.settle(id).await,
        }
    }

    /// Applies a committed transaction, in a store that compares tags.
    ///
    /// Whoever was held up may come back after others finished this and went
    /// on. So each put says what it replaces, and before each batch the head is
    /// looked at, which also guards deletes.
    pub(super) async fn apply(&self, journal: &Journal) -> Result<(), TransactionError> {
        match self.apply_in_batches(journal).await {
            Ok(()) => self.conclude(journal).await,
            Err(Stop::Finished) => Ok(()),
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
            self.side_by_side(puts).await?;
        }
        self.check_still_pending(id, &mut seen).await
    }

    /// The tag of the head, which says that this is to be applied.
    async fn check_pending(&self, id: &Id) -> Result<Tag, Stop> {
        match self.head().await? {
            Some(head) if head.is_pending(id) => Ok(head.tag),
            _ => Err(Stop::Finished),
        }
    }

    /// The same without the head's bytes, of which a copy of all nodes may be part,
    /// while it is the one seen.
    async fn check_still_pending(&self, id: &Id, seen: &mut Option<Tag>) -> Result<(), Stop> {
        let key = Head::key().map_err(TransactionError::from)?;
        let is_seen = match seen {
            Some(seen) if seen.tells() => self.tag(&key).await?.as_ref() == Some(seen),
            _ => false,
        };
        if !is_seen {
            *seen = Some(self.check_pending(id).await?);
        }
        Ok(())
    }

    /// Puts a staged object at its place, if what is there is what it replaces.
    async fn put_staged(&self, id: &Id, put: &Put) -> Result<(), Stop> {
        let Some((bytes, _)) = self.fetch_tagged(&put.staged).await? else {
            if self.is_applied(put).await? {
                return Ok(());
            }
            self.check_pending(id).await?;
            let key = put.key.clone();
            return Err(Stop::Failed(TransactionError::StagedObjectMissing { key }));
        };
        let condition = match &put.was {
            None => Condition::Absent,
            Some(tag) => Condition::Is(tag.clone()),
        };
        let done = self.put_if(&put.key, bytes, &condition).await?;
        if done.is_some() || self.is_applied(put).await? {
            return Ok(());
        }
        self.check_pending(id).await?;
        let key = put.key.clone();
        Err(Stop::Failed(TransactionError::ModifiedExternally { key }))
    }

    /// Whether what was staged is at its place.
    async fn is_applied(&self, put: &Put) -> Result<bool, TransactionError> {
        let found = self.fetch_tagged(&put.key).await?;
        Ok(found.is_some_and(|(bytes, _)| {
            u64::try_from(bytes.len()) == Ok(put.bytes) && crc32c::crc32c(&bytes) == put.crc32c
        }))
    }

    /// Finishes the transaction of a head, under the lock of the folder.
    pub(super) async fn finish_under(
        &self,
        lock: &FolderLock,
        head: &Head,
    ) -> Result<(), TransactionError> {
        let Some(id) = &head.state.id else {
            return Ok(());
        };
        match self.journal(id).await? {
            Some(journal) => self.apply_under(lock, &journal).await,
            None => self.settle(id).await,
        }
    }

    /// Applies a committed transaction, when nobody else can.
    pub(super) async fn apply_under(
        &self,
        lock: &FolderLock,
        journal: &Journal,
    ) -> Result<(), TransactionError> {
        self.delete_many(journal.deletes.clone()).await?;
        self.remove_empty_around(lock, &journal.deletes).await;
        let moves = journal.puts.iter();
        let moves = moves.map(|put| (put.staged.clone(), put.key.clone()));
        let moved = self.rename_files(moves.collect()).await?;
        let left: Vec<&Put> = match &moved {
            None => journal.puts.iter().collect(),
            Some(moved) => {
                let puts = journal.puts.iter().zip(moved);
                let left = puts.filter(|(_, is_moved)| !**is_moved);
                left.map(|(put, _)| put).collect()
            }
        };
        let renames = left.into_iter().map(|put| async move {
            // Moved before by a process that is dead.
            if self.rename(&put.staged, &put.key).await? || self.is_applied(put).await? {
                return Ok(());
            }
            let key = put.key.clone();
            Err(TransactionError::StagedObjectMissing { key })
        });
        self.side_by_side(renames).await?;
        self.conclude(journal).await
    }

    /// Leaves a log for those who began before, and nothing else.
    ///
    /// The head is settled last: until then everybody knows where to go on, and
    /// nothing is left behind by whoever dies here.
    async fn conclude(&self, journal: &Journal) -> Result<(), TransactionError> {
        let log = (log_of(journal.transaction)?, Log::of(journal));
        self.put_many(vec![log]).await?;
        if let Some(old) = journal.transaction.checked_sub(KEPT) {
            self.delete_many(vec![log_of(old)?]).await?;
        }
        if self.folder().is_none() {
            let staged = journal.puts.iter().map(|put| put.staged.clone());
            self.delete_many(staged.collect()).await?;
        }
        self.delete(&journal_of(&journal.id)?).await?;
        self.settle(&journal.id).await
    }

    /// Takes the mark from the head.
    async fn settle(&self, id: &Id) -> Result<(), TransactionError> {
        let key = Head::key()?;
        for _ in 0..LOOKS {
            let head = match self.head().await? {
                Some(head) if head.is_pending(id) => head,
                _ => return Ok(()),
            };
            let condition = match self.folder() {
                // Under the lock.
                Some(_) => Condition::Always,
                None => Condition::Is(head.tag.clone()),
            };
            let put = self.put_if(&key, head.settled()?, &condition).await?;
            if put.is_some() {
                return Ok(());
            }
        }
        Err(TransactionError::Contended)
    }

    async fn journal(&self, id: &Id) -> Result<Option<Journal>, TransactionError> {
        let found = self.fetch_tagged(&journal_of(id)?).await?;
        found
            .map(|(bytes, _)| Journal::parse(id, &bytes))
            .transpose()
    }

    /// Keys of everything in a folder of transactions.
    pub(super) async fn own_keys(&self, folder: &Key) -> Result<Vec<Key>, TransactionError> {
        let found = self.list_own(folder).await?;
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
