//! Sizes of objects, without reading them.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, TryStreamExt, stream};
use zvf_model::key::Key;

use crate::{
    list::{ListError, Listing},
    store::Store,
};

impl Store {
    /// Sizes of the objects at `keys` in their order, `None` for absent ones.
    ///
    /// Each folder that one of them is in is listed once, as many side by side
    /// as requests may be. In a bucket that is a request for each thousand
    /// objects there, wanted or not.
    ///
    /// # Errors
    ///
    /// [`ListError`]; also for a folder of more children than `limit`.
    pub async fn sizes(&self, keys: &[Key], limit: usize) -> Result<Vec<Option<u64>>, ListError> {
        let folders: BTreeSet<Key> = keys.iter().filter_map(Key::parent).collect();
        let listings = folders.into_iter().map(|folder| async move {
            let listing = self.list(&folder, limit).await?;
            Ok::<_, ListError>((folder, listing))
        });
        let listings = stream::iter(listings).buffer_unordered(self.concurrency());
        let listings: BTreeMap<Key, Listing> = listings.try_collect().await?;
        let size = |key: &Key| {
            let listing = listings.get(&key.parent()?)?;
            listing.size_of(key.name()?)
        };
        Ok(keys.iter().map(size).collect())
    }
}
