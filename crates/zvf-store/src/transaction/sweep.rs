//! Deletion of objects that dead writers left.

use core::time::Duration;
use std::{collections::BTreeMap, time::SystemTime};

use super::{
    TransactionError,
    id::TransactionId,
    layout::{creation_marker_key, reserved_folder},
    lock::FolderLock,
};
use crate::store::{ReservedFile, Store};

impl Store {
    /// Deletes the staged objects of abandoned transactions and, on disk, temporary files of killed
    /// processes. Returns the number of deleted objects.
    ///
    /// A transaction counts as abandoned when it was not committed and nothing was staged for
    /// `older_than`. Choose that longer than any transaction takes, including the difference between
    /// the clocks of this machine and the store: a transaction that is swept while it is still
    /// running fails to commit. Leftovers only take space; no reader looks at them.
    ///
    /// # Errors
    ///
    /// [`TransactionError`].
    pub async fn sweep(&self, older_than: Duration) -> Result<u64, TransactionError> {
        let store = self.without_overlay();
        if store.folder().is_none() {
            return store.sweep_under(None, older_than).await;
        }
        // Taking the lock creates a file, so check first that the folder is a store.
        if store.head().await?.is_none() {
            return Ok(0);
        }
        let lock = store.lock().await?;
        let sweep = async move { store.sweep_under(Some(&lock), older_than).await };
        self.run_locked(sweep).await
    }

    /// Sweeps under the lock of the folder, if the store is one.
    async fn sweep_under(
        &self,
        lock: Option<&FolderLock>,
        older_than: Duration,
    ) -> Result<u64, TransactionError> {
        let Some(head) = self.head().await? else {
            return Ok(0);
        };
        let folder_of_all = reserved_folder()?;
        let found = self.list_reserved(&folder_of_all).await?;
        let mut folders: BTreeMap<String, Vec<ReservedFile>> = BTreeMap::new();
        for file in found {
            if let Some((folder, _)) = file.name.split_once('/') {
                folders.entry(folder.to_owned()).or_default().push(file);
            }
        }
        let mut keys = Vec::new();
        let leaves = folders.remove("seal");
        for (folder, files) in folders {
            let leftover = TransactionId::parse(&folder).is_some_and(|id| !head.is_pending(&id));
            let newest = files.iter().map(|file| file.modified).max();
            if leftover && newest.is_some_and(|at| is_older(at, older_than)) {
                for file in files {
                    keys.push(folder_of_all.join_path(&file.name)?);
                }
            }
        }
        if let Some(files) = leaves {
            let old = files
                .iter()
                .filter(|file| is_older(file.modified, older_than));
            let names = old.filter_map(|file| Some(file.name.split_once('/')?.1));
            keys.extend(Self::unused_leaves(&head.document, names)?);
        }
        // The root exists, so the process that created the store died before it deleted the marker.
        let marker = creation_marker_key()?;
        if self.version(&marker).await?.is_some() {
            keys.push(marker);
        }
        let mut count = u64::try_from(keys.len()).unwrap_or(u64::MAX);
        self.delete_many(keys).await?;
        if let Some(lock) = lock {
            let temporary = self.sweep_temporary_files(lock, older_than).await?;
            count = count.saturating_add(temporary);
        }
        Ok(count)
    }
}

/// Returns whether a time in milliseconds since 1970 is at least `than` ago.
fn is_older(modified: i64, than: Duration) -> bool {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_millis());
    let modified = u128::try_from(modified).unwrap_or(0);
    now.saturating_sub(modified) >= than.as_millis()
}
