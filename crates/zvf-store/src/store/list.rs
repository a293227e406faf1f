//! Listing of the objects below a prefix.

use std::{collections::BTreeSet, fs, io, path::Path as FilePath};

use futures_util::TryStreamExt;
use object_store::path::Path;
use zvf_model::key::Key;

use super::{Store, overlay::Overlay};
use crate::{
    backend::{
        self, Backend, FailureKind, gave_up_early, message_contains, names_no_bucket,
        refuses_listing,
    },
    io::{ListError, ListedFile, Listing, is_reserved},
    threads::run_blocking,
};

/// An object in the reserved folder of transactions.
#[derive(Clone, Debug)]
pub(crate) struct ReservedFile {
    pub(crate) name: String,
    pub(crate) size: u64,
    /// Time of the last change, in milliseconds since 1970.
    pub(crate) modified: i64,
}

impl Store {
    /// Lists every object below `prefix`, at any depth, sorted by name.
    ///
    /// A bucket returns a thousand objects for each request. An empty object with the name of a
    /// folder, as consoles make to mark the folder, is left out.
    ///
    /// # Errors
    ///
    /// [`ListError`]; [`ListError::TooMany`] as soon as there are more objects than `limit`.
    pub async fn list_all(&self, prefix: &Key, limit: usize) -> Result<Vec<ListedFile>, ListError> {
        self.recorder().list();
        self.simulate_latency(0).await;
        let too_many = || ListError::TooMany {
            prefix: prefix.clone(),
            limit,
        };
        let from_folder = self.list_folder(prefix, limit).await;
        let mut files = match (from_folder, self.backend()) {
            (Some(files), _) => {
                let mut files = files?;
                files.retain(|file| self.is_visible(prefix, &file.name));
                files
            }
            (None, Backend::Objects(objects)) => {
                let path = &self.path(prefix)?;
                let list = || async move {
                    let mut found = objects.list(Some(path));
                    let mut files = Vec::new();
                    while let Some(object) = found.try_next().await? {
                        let Some(below) = object.location.prefix_match(path) else {
                            continue;
                        };
                        let name: Path = below.collect();
                        let name = String::from(name);
                        // The marker of the prefix itself.
                        if name.is_empty() || !self.is_visible(prefix, &name) {
                            continue;
                        }
                        let size = object.size;
                        files.push(ListedFile { name, size });
                        // One object above the limit is enough to fail.
                        if files.len() > limit {
                            remove_markers(&mut files);
                            if files.len() > limit {
                                break;
                            }
                        }
                    }
                    Ok(files)
                };
                let files = self.retry_policy().run(list, is_cut_off).await;
                files.map_err(|source| list_error(prefix, source))?
            }
            #[cfg(feature = "zip")]
            (None, Backend::Zip(archive)) => {
                let mut files = archive.list_all(prefix.as_str());
                files.retain(|file| self.is_visible(prefix, &file.name));
                files
            }
        };
        self.note_read(None);
        if let Some(overlay) = self.overlay() {
            overlay.list_all(prefix, &mut files);
        }
        remove_markers(&mut files);
        if files.len() > limit {
            return Err(too_many());
        }
        if files.is_empty() {
            self.check_listing_works(prefix).await?;
        }
        files.sort_unstable();
        if prefix.is_root() {
            self.keep_files(&files);
        }
        Ok(files)
    }

    /// Lists every object below `prefix` in order to delete them: like [`list_all`](Self::list_all),
    /// but fails where a symbolic link leads to another folder, whose files are not of the store.
    ///
    /// # Errors
    ///
    /// [`ListError`].
    pub async fn list_to_delete(
        &self,
        prefix: &Key,
        limit: usize,
    ) -> Result<Vec<ListedFile>, ListError> {
        if let Some(root) = self.folder().map(FilePath::to_owned) {
            let from = prefix.clone();
            let found = run_blocking(move || linked_folder(&root, &from))
                .await
                .unwrap_or_else(|error| Err(io::Error::other(error)));
            let failed = |key: &Key, source: io::Error| ListError::Io {
                prefix: key.clone(),
                source: Box::new(source),
            };
            if let Some(link) = found.map_err(|error| failed(prefix, error))? {
                const REASON: &str =
                    "it is a symbolic link, and files of other folders are not deleted; remove it";
                return Err(failed(&link, io::Error::other(REASON)));
            }
        }
        self.list_all(prefix, limit).await
    }

    /// Lists the children of `prefix`, one level deep. An absent prefix gives an empty listing.
    ///
    /// A bucket returns a thousand children for each request. All of them are held in memory before
    /// `limit` is checked. Markers of folders are left out, as in [`list_all`](Self::list_all).
    ///
    /// # Errors
    ///
    /// [`ListError`]; [`ListError::TooMany`] for more children than `limit`.
    pub async fn list(&self, prefix: &Key, limit: usize) -> Result<Listing, ListError> {
        self.recorder().list();
        self.simulate_latency(0).await;
        let from_folder = self.list_children(prefix).await;
        let mut listing = match (from_folder, self.backend()) {
            (Some(listing), _) => listing?,
            (None, Backend::Objects(objects)) => {
                let path = self.path(prefix)?;
                let list = || objects.list_with_delimiter(Some(&path));
                let found = self
                    .retry_policy()
                    .run(list, is_cut_off)
                    .await
                    .map_err(|source| list_error(prefix, source))?;
                let name = |path: &Path| path.filename().map(str::to_owned);
                let file = |object: object_store::ObjectMeta| {
                    // The marker of the prefix itself.
                    if object.location == path {
                        return None;
                    }
                    let name = name(&object.location)?;
                    let size = object.size;
                    Some(ListedFile { name, size })
                };
                Listing {
                    folders: found.common_prefixes.iter().filter_map(name).collect(),
                    files: found.objects.into_iter().filter_map(file).collect(),
                }
            }
            #[cfg(feature = "zip")]
            (None, Backend::Zip(archive)) => archive.list(prefix.as_str()),
        };
        self.note_read(None);
        listing.folders.retain(|name| self.is_visible(prefix, name));
        listing
            .files
            .retain(|file| self.is_visible(prefix, &file.name));
        if let Some(overlay) = self.overlay() {
            self.remove_emptied_folders(overlay, prefix, &mut listing)
                .await?;
            overlay.list(prefix, &mut listing);
        }
        let folders = &listing.folders;
        let is_marker = |file: &ListedFile| file.size == 0 && folders.contains(&file.name);
        listing.files.retain(|file| !is_marker(file));
        if listing.folders.len().saturating_add(listing.files.len()) > limit {
            let prefix = prefix.clone();
            return Err(ListError::TooMany { prefix, limit });
        }
        if listing.is_empty() {
            self.check_listing_works(prefix).await?;
        }
        Box::pin(self.check_listing(prefix, &listing)).await?;
        listing.folders.sort_unstable();
        listing.files.sort_unstable();
        Ok(listing)
    }

    /// Removes folders from the listing whose objects are all deleted but not yet removed.
    async fn remove_emptied_folders(
        &self,
        overlay: &Overlay,
        prefix: &Key,
        listing: &mut Listing,
    ) -> Result<(), ListError> {
        let folders = core::mem::take(&mut listing.folders);
        for name in folders {
            if overlay.may_empty(prefix, &name)
                && let Ok(folder) = prefix.join(&name)
            {
                // A limit of 0 fails with the first object.
                match self.list_all(&folder, 0).await {
                    Ok(_) => continue,
                    Err(ListError::TooMany { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            listing.folders.push(name);
        }
        Ok(())
    }

    /// Returns whether the path `name` below `prefix` belongs to the store: it is neither reserved
    /// for transactions nor deleted by one.
    fn is_visible(&self, prefix: &Key, name: &str) -> bool {
        let reserved = prefix.is_root() && is_reserved(name);
        let deleted = |overlay: &Overlay| overlay.deletes(prefix, name);
        !reserved && !self.overlay().is_some_and(deleted)
    }

    /// Lists every object below a prefix in the reserved folder.
    pub(crate) async fn list_reserved(&self, prefix: &Key) -> Result<Vec<ReservedFile>, ListError> {
        let Some(objects) = self.objects() else {
            return Ok(Vec::new());
        };
        self.recorder().list();
        let path = &self.path(prefix)?;
        let list = || async move {
            let mut found = objects.list(Some(path));
            let mut files = Vec::new();
            while let Some(object) = found.try_next().await? {
                let Some(below) = object.location.prefix_match(path) else {
                    continue;
                };
                let name = String::from(below.collect::<Path>());
                // The marker of the prefix itself.
                if name.is_empty() {
                    continue;
                }
                files.push(ReservedFile {
                    name,
                    size: object.size,
                    modified: object.last_modified.timestamp_millis(),
                });
            }
            Ok(files)
        };
        let files = self.retry_policy().run(list, is_cut_off).await;
        files.map_err(|source| list_error(prefix, source))
    }

    /// Distinguishes an empty prefix from a web server that cannot list and reports every prefix as
    /// absent. Such a server lists nothing at the root either, which is checked once.
    async fn check_listing_works(&self, prefix: &Key) -> Result<(), ListError> {
        let Some(objects) = self.objects().filter(|_| self.is_web()) else {
            return Ok(());
        };
        let lists = match self.capabilities().lists.get() {
            Some(lists) => *lists,
            None if prefix.is_root() => false,
            None => {
                self.recorder().list();
                let top = objects
                    .list_with_delimiter(Some(self.root()))
                    .await
                    .map_err(|source| list_error(prefix, source))?;
                !(top.common_prefixes.is_empty() && top.objects.is_empty())
            }
        };
        if *self.capabilities().lists.get_or_init(|| lists) {
            return Ok(());
        }
        Err(ListError::Unlistable {
            prefix: prefix.clone(),
            source: "the server lists nothing, not even at the root of the store".into(),
        })
    }

    fn path(&self, prefix: &Key) -> Result<Path, ListError> {
        let path = Path::parse(prefix).map_err(|source| list_error(prefix, source.into()))?;
        Ok(self.root().parts().chain(path.parts()).collect())
    }
}

/// Removes empty files that have the name of a folder.
///
/// Consoles and other programs mark a folder of a bucket with an empty object whose key ends with a
/// slash, which `object_store` removes.
fn remove_markers(files: &mut Vec<ListedFile>) {
    let empty: BTreeSet<String> = files
        .iter()
        .filter(|file| file.size == 0)
        .map(|file| file.name.clone())
        .collect();
    if empty.is_empty() {
        return;
    }
    let mut markers: BTreeSet<String> = BTreeSet::new();
    for file in &*files {
        for (end, _) in file.name.match_indices('/') {
            let folder = file.name.get(..end).unwrap_or_default();
            if empty.contains(folder) && !markers.contains(folder) {
                markers.insert(folder.to_owned());
            }
        }
    }
    files.retain(|file| file.size > 0 || !markers.contains(&file.name));
}

/// Returns a symbolic link to a folder at, above or below a prefix of a store in a folder.
fn linked_folder(root: &FilePath, prefix: &Key) -> io::Result<Option<Key>> {
    let is_link = |path: &FilePath| path.is_symlink() && path.is_dir();
    let (mut key, mut path) = (Key::root(), root.to_owned());
    for name in prefix.as_str().split('/').filter(|name| !name.is_empty()) {
        key = key.join(name).map_err(io::Error::other)?;
        path.push(name);
        if is_link(&path) {
            return Ok(Some(key));
        }
    }
    let mut folders = vec![(key, path)];
    while let Some((key, path)) = folders.pop() {
        let entries = match fs::read_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            let name = entry.file_name();
            // Other names are no keys, and listings refuse them.
            let Some(below) = name.to_str().and_then(|name| key.join(name).ok()) else {
                continue;
            };
            if kind.is_symlink() && is_link(&entry.path()) {
                return Ok(Some(below));
            }
            if kind.is_dir() {
                folders.push((below, entry.path()));
            }
        }
    }
    Ok(None)
}

/// Converts an error of `object_store`.
fn list_error(prefix: &Key, failure: object_store::Error) -> ListError {
    let prefix = prefix.clone();
    let (refused, has_no_bucket) = (refuses_listing(&failure), names_no_bucket(&failure));
    let (kind, source) = backend::classify(failure);
    match kind {
        _ if has_no_bucket => ListError::NoBucket { prefix, source },
        _ if refused => ListError::Unlistable { prefix, source },
        FailureKind::Unauthenticated => ListError::Unauthenticated { prefix, source },
        FailureKind::Throttled => ListError::Throttled { prefix, source },
        FailureKind::Unavailable => ListError::Unavailable { prefix, source },
        FailureKind::Forbidden | FailureKind::Other => ListError::Io { prefix, source },
    }
}

/// Returns whether the response was cut off, which `object_store` does not retry.
fn is_cut_off(failure: &object_store::Error) -> bool {
    gave_up_early(failure) || message_contains(failure, "invalid list response")
}

#[cfg(test)]
mod tests;
