//! Folders on disk that hold nothing. In a bucket there are none, and to whoever lists
//! a store each folder is a node or a chunk.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use zvf_model::key::Key;

use super::lock::FolderLock;
use crate::{off_thread::spawn_blocking, overlay::HOME, store::Store};

impl Store {
    /// Removes folders that deleting objects left with nothing in them. `object_store`
    /// does when it deletes, unless its process is killed between the two; what is gone
    /// already it does not look at again.
    pub(super) async fn remove_empty_around(&self, _: &FolderLock, keys: &[Key]) {
        let Some(root) = self.folder() else {
            return;
        };
        let paths = keys.iter().map(|key| root.join(key.as_str()));
        let folders: BTreeSet<PathBuf> = paths
            .filter_map(|path| Some(path.parent()?.to_owned()))
            .collect();
        let root = root.to_owned();
        // What cannot be removed holds something, or shows in whatever comes next.
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

    /// Removes all of them but those of transactions.
    pub(super) async fn remove_empty(&self, _: &FolderLock) {
        if let Some(root) = self.folder().map(Path::to_owned) {
            spawn_blocking(move || remove_below(&root, true)).await;
        }
    }
}

fn remove_below(folder: &Path, is_root: bool) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let is_own = is_root && entry.file_name() == HOME;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !is_own {
            remove_below(&entry.path(), false);
            drop(fs::remove_dir(entry.path()));
        }
    }
}
