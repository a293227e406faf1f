//! Removal of empty folders on disk. A bucket has none, and a listing shows each folder as a node or
//! a chunk.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use zvf_model::key::Key;

use super::lock::FolderLock;
use crate::{
    store::{RESERVED_FOLDER, Store},
    threads::spawn_blocking,
};

impl Store {
    /// Removes folders that are empty after the objects at `keys` were deleted.
    ///
    /// `object_store` does so after each delete, unless the process is killed in between; for an
    /// object that is already deleted it does nothing.
    pub(super) async fn remove_empty_around(&self, _: &FolderLock, keys: &[Key]) {
        let Some(root) = self.folder() else {
            return;
        };
        let paths = keys.iter().map(|key| root.join(key.as_str()));
        let folders: BTreeSet<PathBuf> = paths
            .filter_map(|path| Some(path.parent()?.to_owned()))
            .collect();
        let root = root.to_owned();
        // A folder that cannot be removed is not empty, or the next operation reports the error.
        spawn_blocking(move || {
            for folder in folders.iter().rev() {
                let around = folder.ancestors().take_while(|folder| **folder != root);
                for folder in around {
                    match fs::remove_dir(folder) {
                        Err(error) if error.kind() != io::ErrorKind::NotFound => break,
                        _ => {}
                    }
                }
            }
        })
        .await;
    }

    /// Removes all empty folders except the reserved one.
    pub(super) async fn remove_empty(&self, _: &FolderLock) {
        if let Some(root) = self.folder().map(Path::to_owned) {
            spawn_blocking(move || remove_below(&root, true)).await;
        }
    }

    /// Returns whether a folder of the root and the folders below it hold no file. In a bucket no
    /// folder is without files.
    pub(super) async fn is_without_files(&self, folder: &str) -> bool {
        let Some(folder) = self.folder().map(|root| root.join(folder)) else {
            return false;
        };
        let found = spawn_blocking(move || has_no_files(&folder)).await;
        found.unwrap_or(false)
    }
}

fn has_no_files(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else {
        return false;
    };
    let mut entries = entries.map(|entry| {
        let entry = entry.ok()?;
        let is_folder = entry.file_type().ok()?.is_dir();
        is_folder.then(|| entry.path())
    });
    entries.all(|folder| folder.is_some_and(|folder| has_no_files(&folder)))
}

fn remove_below(folder: &Path, is_root: bool) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let is_reserved = is_root && entry.file_name() == RESERVED_FOLDER;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !is_reserved {
            remove_below(&entry.path(), false);
            drop(fs::remove_dir(entry.path()));
        }
    }
}
