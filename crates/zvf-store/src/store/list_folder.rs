//! Listings of stores in a folder, without `object_store`.
//!
//! `object_store` converts each path to a URL and back, and requests the metadata of each file four
//! times: two listings took 27 % of the processor time of a validation of streamlines.

use std::{fs, io::ErrorKind, path::PathBuf};

use zvf_model::key::Key;

use super::Store;
use crate::{io::ListedFile, threads::par_map};

/// A folder below the listed prefix.
struct ListedFolder {
    path: PathBuf,
    /// Name relative to the prefix, with a slash at the end; empty for the prefix.
    name: String,
}

/// The entries of a folder.
#[derive(Default)]
struct FolderEntries {
    files: Vec<ListedFile>,
    folders: Vec<ListedFolder>,
}

impl Store {
    /// Lists every object below `prefix` in any order, as `object_store` does. Stops after `limit`
    /// objects.
    ///
    /// Returns `None` for stores that are not in a folder, and if an entry below the prefix cannot
    /// be listed or is not a plain file or folder with a plain name. `object_store` then lists the
    /// prefix.
    pub(super) async fn list_folder(&self, prefix: &Key, limit: usize) -> Option<Vec<ListedFile>> {
        let mut folders = vec![ListedFolder {
            path: self.folder()?.join(prefix.as_str()),
            name: String::new(),
        }];
        let mut files = Vec::new();
        while !folders.is_empty() && files.len() <= limit {
            let listed = par_map(folders, move |folder: ListedFolder| folder.entries(limit));
            let listed = listed.await.ok()?;
            folders = Vec::new();
            for entries in listed {
                let mut entries = entries?;
                files.append(&mut entries.files);
                folders.append(&mut entries.folders);
            }
        }
        Some(files)
    }
}

impl ListedFolder {
    /// Lists the folder. Stops after `limit` files.
    fn entries(self, limit: usize) -> Option<FolderEntries> {
        let mut found = FolderEntries::default();
        let entries = match fs::read_dir(&self.path) {
            // Deleted meanwhile, or a prefix without objects.
            Err(error) if error.kind() == ErrorKind::NotFound => return Some(found),
            entries => entries.ok()?,
        };
        for entry in entries {
            if found.files.len() > limit {
                break;
            }
            let entry = entry.ok()?;
            let kind = entry.file_type().ok()?;
            let name = entry.file_name();
            let name = name.to_str().filter(|name| is_plain(name))?;
            let name = format!("{}{name}", self.name);
            if kind.is_dir() {
                found.folders.push(ListedFolder {
                    path: entry.path(),
                    name: format!("{name}/"),
                });
            } else if kind.is_file() {
                match entry.metadata() {
                    Ok(metadata) => found.files.push(ListedFile {
                        name,
                        size: metadata.len(),
                    }),
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(_) => return None,
                }
            } else {
                return None;
            }
        }
        Some(found)
    }
}

/// Returns whether a file name is the same in a key, and not that of a temporary file of
/// `object_store`, which ends with `#` and a number.
fn is_plain(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'#' | b'%' | b'\\'))
}
