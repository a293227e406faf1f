//! Deleting what dead writers left.

use core::time::Duration;
use std::{collections::BTreeMap, time::SystemTime};

use zvf_model::key::Key;

use super::{Id, TransactionError, creation::marker};
use crate::{list::OwnFile, overlay::HOME, store::Store};

impl Store {
    /// Deletes what transactions left that were never committed, in which
    /// nothing was staged for so long, and on disk files that somebody was killed
    /// writing. How many objects went.
    ///
    /// Nobody looks at these, they only take room. A transaction that is still
    /// being prepared looks the same: `older_than` has to be longer than any
    /// takes, and allow for a clock that differs from the store's. One that is
    /// swept away under its writer fails to commit.
    ///
    /// # Errors
    ///
    /// [`TransactionError`].
    pub async fn sweep(&self, older_than: Duration) -> Result<u64, TransactionError> {
        let store = self.bare();
        let lock = match store.folder() {
            // Without looking first, a folder of something else would get one.
            Some(_) if store.head().await?.is_none() => return Ok(0),
            Some(_) => Some(store.lock().await?),
            None => None,
        };
        let Some(head) = store.head().await? else {
            return Ok(0);
        };
        let home = Key::parse(HOME)?;
        let found = store.list_own(&home).await?;
        let mut folders: BTreeMap<String, Vec<OwnFile>> = BTreeMap::new();
        for file in found {
            if let Some((folder, _)) = file.name.split_once('/') {
                folders.entry(folder.to_owned()).or_default().push(file);
            }
        }
        let mut keys = Vec::new();
        for (folder, files) in folders {
            let leftover = Id::parse(&folder).is_some_and(|id| !head.is_pending(&id));
            let newest = files.iter().map(|file| file.modified).max();
            if leftover && newest.is_some_and(|at| is_older(at, older_than)) {
                for file in files {
                    keys.push(home.join_path(&file.name)?);
                }
            }
        }
        // The store is there: whoever created it died before this was the last thing to do.
        let marker = marker()?;
        if store.tag(&marker).await?.is_some() {
            keys.push(marker);
        }
        let mut count = u64::try_from(keys.len()).unwrap_or(u64::MAX);
        store.delete_many(keys).await?;
        if let Some(lock) = &lock {
            let unfinished = store.sweep_unfinished(lock, older_than).await?;
            count = count.saturating_add(unfinished);
        }
        drop(lock);
        Ok(count)
    }
}

fn is_older(modified: i64, than: Duration) -> bool {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_millis());
    let modified = u128::try_from(modified).unwrap_or(0);
    now.saturating_sub(modified) >= than.as_millis()
}
