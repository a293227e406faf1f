//! The overlay through which a store is read while a committed transaction is being applied.

use std::collections::{BTreeMap, BTreeSet};

use zvf_model::key::Key;

use crate::io::{ListedFile, Listing};

/// The changes of a committed transaction that may not have been applied yet.
#[derive(Debug)]
pub(crate) struct Overlay {
    pub(crate) staged: BTreeMap<Key, StagedObject>,
    pub(crate) deleted: BTreeSet<Key>,
}

/// A staged object: its present key and size.
#[derive(Clone, Debug)]
pub(crate) struct StagedObject {
    pub(crate) key: Key,
    pub(crate) bytes: u64,
}

/// The overlay of one key.
pub(super) enum OverlayEntry<'a> {
    Deleted,
    Staged(&'a StagedObject),
}

impl Overlay {
    pub(super) fn get(&self, key: &Key) -> Option<OverlayEntry<'_>> {
        if self.deleted.contains(key) {
            return Some(OverlayEntry::Deleted);
        }
        self.staged.get(key).map(OverlayEntry::Staged)
    }

    /// Returns whether the object at the path `name` below `prefix` is deleted.
    pub(super) fn deletes(&self, prefix: &Key, name: &str) -> bool {
        let key = prefix.join_path(name);
        key.is_ok_and(|key| self.deleted.contains(&key))
    }

    /// Returns whether the folder `name` below `prefix` may be empty: objects in it are deleted and
    /// none is staged.
    pub(super) fn may_empty(&self, prefix: &Key, name: &str) -> bool {
        let Ok(folder) = prefix.join(name) else {
            return false;
        };
        let is_near = |key: &&Key| key.as_str().starts_with(folder.as_str());
        let is_below = |key: &Key| {
            let below = key.as_str().strip_prefix(folder.as_str());
            below.is_some_and(|below| below.starts_with('/'))
        };
        let staged = self.staged.range(&folder..).map(|(key, _)| key);
        let mut deleted = self.deleted.range(&folder..).take_while(is_near);
        deleted.any(is_below) && !staged.take_while(is_near).any(is_below)
    }

    /// Adds the staged objects below `prefix`.
    pub(super) fn list_all(&self, prefix: &Key, files: &mut Vec<ListedFile>) {
        let staged: BTreeMap<&str, u64> = self.below(prefix).collect();
        files.retain(|file| !staged.contains_key(file.name.as_str()));
        files.extend(staged.into_iter().map(|(name, size)| ListedFile {
            name: name.to_owned(),
            size,
        }));
    }

    /// Adds the staged children of `prefix`.
    pub(super) fn list(&self, prefix: &Key, listing: &mut Listing) {
        let (mut folders, mut files) = (BTreeSet::new(), BTreeMap::new());
        for (name, size) in self.below(prefix) {
            match name.split_once('/') {
                Some((folder, _)) => drop(folders.insert(folder)),
                None => drop(files.insert(name, size)),
            }
        }
        listing
            .folders
            .retain(|name| !folders.contains(name.as_str()));
        listing
            .folders
            .extend(folders.into_iter().map(str::to_owned));
        listing
            .files
            .retain(|file| !files.contains_key(file.name.as_str()));
        listing
            .files
            .extend(files.into_iter().map(|(name, size)| ListedFile {
                name: name.to_owned(),
                size,
            }));
    }

    /// Returns the staged objects below `prefix`: relative path and size.
    fn below<'a>(&'a self, prefix: &'a Key) -> impl Iterator<Item = (&'a str, u64)> {
        self.staged.iter().filter_map(move |(key, staged)| {
            let below = key.as_str().strip_prefix(prefix.as_str())?;
            let below = if prefix.is_root() {
                below
            } else {
                below.strip_prefix('/')?
            };
            Some((below, staged.bytes))
        })
    }
}
