//! Jobs: creations and transactions that processes work on at different times.
//!
//! A creation or transaction ends with its process. Schedulers of clusters start one process to plan
//! the work, others to do it and a last one to commit it, with pauses between them. The state that
//! they share is in the store: the marker of a creation names the job, and the files of the job are
//! in `.zvf/<id>`, beside the staged objects of a transaction.

use core::ops::Range;
use std::collections::BTreeMap;

use bytes::Bytes;
use zvf_model::key::Key;

use super::{
    CreateError, Creation, Transaction, TransactionError,
    creation_marker::job_marker,
    id::TransactionId,
    layout::{creation_marker_key, head_key, transaction_folder},
};
use crate::{
    io::{Precondition, Read},
    store::Store,
};

/// Files that the processes of a job share, in the reserved folder of the store.
///
/// ```
/// use zvf_store::Store;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = Store::create("memory:")?;
/// let creation = store.begin_create().await?;
/// let id = creation.id().to_owned();
/// let files = store.job_files(&id)?;
/// files.put("result-0", "done".into()).await?;
/// creation.suspend().await?;
///
/// let creation = store.resume_create(&id).await?;
/// assert_eq!(files.get("result-0").await?, Some("done".into()));
/// creation.commit(br#"{"zarr_format": 3, "node_type": "group"}"#).await?;
/// files.delete_all().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct JobFiles {
    store: Store,
    folder: Key,
}

impl JobFiles {
    /// Puts a file, which replaces one of the same name and appears whole or not at all.
    ///
    /// # Errors
    ///
    /// [`TransactionError`].
    pub async fn put(&self, name: &str, bytes: Bytes) -> Result<(), TransactionError> {
        let key = self.folder.join(name)?;
        Ok(self.store.put_many(vec![(key, bytes)]).await?)
    }

    /// Reads a file; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// [`TransactionError`].
    pub async fn get(&self, name: &str) -> Result<Option<Bytes>, TransactionError> {
        let found = self.store.fetch_versioned(&self.folder.join(name)?).await?;
        Ok(found.map(|(bytes, _)| bytes))
    }

    /// Reads ranges of files, concurrently; `None` if one of the files does not exist.
    ///
    /// # Errors
    ///
    /// [`TransactionError`], also if a range exceeds its file.
    pub async fn read(
        &self,
        ranges: &[(String, Range<u64>)],
    ) -> Result<Option<Vec<Bytes>>, TransactionError> {
        let reads = ranges
            .iter()
            .map(|(name, range)| {
                let key = self.folder.join(name)?;
                Ok(Read::bounded(key, range.clone()))
            })
            .collect::<Result<Vec<_>, TransactionError>>()?;
        let found = self.store.read(&reads).await?;
        Ok(found.into_iter().collect())
    }

    /// Returns the sizes of all files by name. In a transaction, staged objects are among them.
    ///
    /// # Errors
    ///
    /// [`TransactionError`].
    pub async fn sizes(&self) -> Result<BTreeMap<String, u64>, TransactionError> {
        let files = self.store.list_reserved(&self.folder).await?.into_iter();
        Ok(files.map(|file| (file.name, file.size)).collect())
    }

    /// Deletes all files, including staged objects and temporary files of killed processes.
    ///
    /// # Errors
    ///
    /// [`TransactionError`].
    pub async fn delete_all(&self) -> Result<(), TransactionError> {
        self.store.delete_temporary_files(&self.folder).await?;
        let keys = self.store.reserved_keys(&self.folder).await?;
        Ok(self.store.delete_many(keys).await?)
    }
}

impl Store {
    /// Returns a random identifier, for the files of a job that is neither a creation nor a
    /// transaction.
    pub fn new_job_id() -> String {
        TransactionId::random().as_str().to_owned()
    }

    /// Returns the files of a job: those of the [creation](Creation::id) or
    /// [transaction](Transaction::id) of this identifier.
    ///
    /// # Errors
    ///
    /// [`TransactionError::Finished`] for an invalid identifier.
    pub fn job_files(&self, id: &str) -> Result<JobFiles, TransactionError> {
        let id = TransactionId::parse(id).ok_or(TransactionError::Finished)?;
        Ok(JobFiles {
            store: self.without_overlay(),
            folder: transaction_folder(&id)?,
        })
    }

    /// Checks that a [suspended](Creation::suspend) creation is neither complete nor replaced.
    ///
    /// # Errors
    ///
    /// [`CreateError::AlreadyExists`] when there is a root, and [`CreateError::TakenOver`] when the
    /// place is not reserved for this creation.
    pub async fn check_suspended(&self, id: &str) -> Result<(), CreateError> {
        let id = TransactionId::parse(id).ok_or(TransactionError::Finished)?;
        let store = self.without_overlay();
        let found = store.fetch_versioned(&creation_marker_key()?).await?;
        if found.is_some_and(|(found, _)| found == job_marker(&id)) {
            return Ok(());
        }
        match store.version(&head_key()?).await? {
            Some(_) => Err(CreateError::AlreadyExists),
            None => Err(CreateError::TakenOver),
        }
    }

    /// Continues a [suspended](Creation::suspend) creation.
    ///
    /// # Errors
    ///
    /// [`CreateError`], as for [`check_suspended`](Self::check_suspended);
    /// [`CreateError::InProgress`] when another process on this disk continues it.
    pub async fn resume_create(&self, id: &str) -> Result<Creation, CreateError> {
        let store = self.without_overlay();
        store.check_writable()?;
        store.check_suspended(id).await?;
        let id = TransactionId::parse(id).ok_or(TransactionError::Finished)?;
        let lock = match store.folder() {
            Some(_) => Some(store.try_lock()?.ok_or(CreateError::InProgress)?),
            None => None,
        };
        // Another process may have committed it before this one took the lock.
        if let Err(error) = store.check_suspended(id.as_str()).await {
            if let Some(lock) = lock {
                lock.remove();
            }
            return Err(error);
        }
        let marker = job_marker(&id);
        Ok(Creation::continuing(store, id, lock, marker))
    }

    /// Continues a transaction of a process that has ended, by its [identifier](Transaction::id).
    /// Objects that it staged are not part of the commit until they are
    /// [merged](Transaction::merge_staged).
    ///
    /// # Errors
    ///
    /// [`TransactionError`], as for [`begin`](Self::begin); [`TransactionError::Finished`] when the
    /// transaction is committed, or for an invalid identifier.
    pub async fn resume_transaction(&self, id: &str) -> Result<Transaction, TransactionError> {
        let mut transaction = self.join_transaction(id).await?;
        transaction.is_part = false;
        if self.is_last_transaction(id).await? {
            Err(TransactionError::Finished)
        } else {
            Ok(transaction)
        }
    }

    /// Returns whether the last committed transaction has this identifier. A transaction that a
    /// dead process did not finish is applied first.
    ///
    /// # Errors
    ///
    /// [`TransactionError`], as for [`begin`](Self::begin).
    pub async fn is_last_transaction(&self, id: &str) -> Result<bool, TransactionError> {
        Ok(self.without_overlay().applied_head().await?.is_of(id))
    }
}

impl Creation {
    /// Returns the unique identifier of this creation, for [`Store::resume_create`].
    pub fn id(&self) -> &str {
        self.id.as_str()
    }

    /// Leaves the creation to be [continued](Store::resume_create) by another process. The place
    /// stays reserved: another creation fails with [`CreateError::Leftovers`], and
    /// [`Store::begin_create_replacing_leftovers`] replaces this one.
    ///
    /// # Errors
    ///
    /// [`CreateError::TakenOver`] when another process took over.
    pub async fn suspend(self) -> Result<(), CreateError> {
        if self.lock.is_none() {
            return self.put_job_marker().await;
        }
        let store = self.store.clone();
        let put = async move { self.put_job_marker().await };
        store.run_locked(put).await
    }

    async fn put_job_marker(self) -> Result<(), CreateError> {
        let key = creation_marker_key()?;
        let condition = match self.lock {
            // The lock excludes other processes.
            Some(_) => Precondition::None,
            None => {
                let found = self.store.fetch_versioned(&key).await?;
                let own = found.filter(|(found, _)| *found == self.marker);
                let (_, version) = own.ok_or(CreateError::TakenOver)?;
                Precondition::Matches(version)
            }
        };
        let marker = job_marker(&self.id);
        if !self.store.put_marker_bytes(marker, &condition).await? {
            return Err(CreateError::TakenOver);
        }
        if let Some(lock) = self.lock {
            lock.remove();
        }
        Ok(())
    }
}
