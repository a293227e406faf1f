//! Object sizes, without reading the objects.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, TryStreamExt, stream};
use zvf_model::key::Key;

use super::Store;
use crate::io::{ListError, Listing};

impl Store {
    /// Returns the sizes of the objects at `keys`, in their order; `None` for absent objects.
    ///
    /// Lists the parent folder of each key once, concurrently. In a bucket that is one request for
    /// every thousand objects in the folder.
    ///
    /// # Errors
    ///
    /// [`ListError`]; [`ListError::TooMany`] for a folder with more children than `limit`.
    pub async fn sizes(&self, keys: &[Key], limit: usize) -> Result<Vec<Option<u64>>, ListError> {
        let folders: BTreeSet<Key> = keys.iter().filter_map(Key::parent).collect();
        let listings = folders.into_iter().map(|folder| async move {
            let listing = self.list(&folder, limit).await?;
            Ok::<_, ListError>((folder, listing))
        });
        let listings: BTreeMap<Key, Listing> = stream::iter(listings)
            .buffer_unordered(self.concurrency())
            .try_collect()
            .await?;
        let size = |key: &Key| {
            let listing = listings.get(&key.parent()?)?;
            listing.size_of(key.name()?)
        };
        let sizes: Vec<Option<u64>> = keys.iter().map(size).collect();
        Box::pin(self.check_sizes(keys, &sizes)).await?;
        Ok(sizes)
    }
}
