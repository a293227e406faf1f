//! Listings of stores in a folder, without `object_store`.
//!
//! `object_store` leaves out what it may not look at, as in a folder without the permission to search
//! it, and symbolic links that lead to nothing. It also converts each path to a URL and back, and
//! requests the metadata of each file four times: two listings took 27 % of the processor time of a
//! validation of streamlines.

use std::{
    error::Error,
    fs,
    io::{self, ErrorKind},
    path::PathBuf,
};

use zvf_model::key::Key;

use super::{Store, regular_file};
use crate::{
    io::{ListError, ListedFile, Listing},
    threads::{par_map, run_blocking},
};

/// A folder below the listed prefix.
struct ListedFolder {
    path: PathBuf,
    /// Name relative to the prefix, with a slash at the end; empty for the prefix.
    name: String,
    /// The folders that symbolic links on the way led to.
    followed: Vec<PathBuf>,
}

/// The entries of a folder.
#[derive(Default)]
struct FolderEntries {
    files: Vec<ListedFile>,
    folders: Vec<ListedFolder>,
}

/// A path, relative to the prefix, that cannot be listed.
struct Fault {
    name: String,
    source: io::Error,
}

impl Store {
    /// Lists every object below `prefix` in any order. Stops after `limit` objects. Returns `None`
    /// for stores that are not in a folder.
    pub(super) async fn list_folder(
        &self,
        prefix: &Key,
        limit: usize,
    ) -> Option<Result<Vec<ListedFile>, ListError>> {
        let mut folders = vec![self.listed_folder(prefix)?];
        let mut files = Vec::new();
        while !folders.is_empty() && files.len() <= limit {
            let listed = par_map(folders, move |folder: ListedFolder| folder.entries(limit));
            let listed = match listed.await {
                Ok(listed) => listed,
                Err(panicked) => return Some(Err(failed(prefix, panicked))),
            };
            folders = Vec::new();
            for entries in listed {
                let mut entries = match entries {
                    Ok(entries) => entries,
                    Err(fault) => return Some(Err(fault.below(prefix))),
                };
                files.append(&mut entries.files);
                folders.append(&mut entries.folders);
            }
        }
        Some(Ok(files))
    }

    /// Lists the children of `prefix` in any order. Returns `None` for stores that are not in a
    /// folder.
    pub(super) async fn list_children(&self, prefix: &Key) -> Option<Result<Listing, ListError>> {
        let folder = self.listed_folder(prefix)?;
        let entries = run_blocking(move || folder.entries(usize::MAX)).await;
        Some(match entries {
            Ok(Ok(entries)) => {
                let folders = entries.folders.into_iter();
                let name = |folder: ListedFolder| folder.name.trim_end_matches('/').to_owned();
                Ok(Listing {
                    folders: folders.map(name).collect(),
                    files: entries.files,
                })
            }
            Ok(Err(fault)) => Err(fault.below(prefix)),
            Err(error) => Err(failed(prefix, error)),
        })
    }

    fn listed_folder(&self, prefix: &Key) -> Option<ListedFolder> {
        Some(ListedFolder {
            path: self.folder()?.join(prefix.as_str()),
            name: String::new(),
            followed: Vec::new(),
        })
    }
}

impl ListedFolder {
    /// Lists the folder. Stops after `limit` files.
    fn entries(self, limit: usize) -> Result<FolderEntries, Fault> {
        let mut found = FolderEntries::default();
        let of_folder = |source| Fault {
            name: self.name.trim_end_matches('/').to_owned(),
            source,
        };
        let entries = match fs::read_dir(&self.path) {
            // Deleted meanwhile, or a prefix without objects.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                regular_file::check_absent(&self.path).map_err(of_folder)?;
                return Ok(found);
            }
            entries => entries.map_err(of_folder)?,
        };
        for entry in entries {
            if found.files.len() > limit {
                break;
            }
            let entry = entry.map_err(of_folder)?;
            let name = format!("{}{}", self.name, entry.file_name().display());
            let added = match entry.file_name().to_str() {
                Some(_) => self.add(&entry, &name, &mut found),
                None => Err(io::Error::other(
                    "its name is not UTF-8; rename or delete it",
                )),
            };
            added.map_err(|source| Fault { name, source })?;
        }
        Ok(found)
    }

    /// Adds an entry with this name relative to the prefix.
    fn add(&self, entry: &fs::DirEntry, name: &str, found: &mut FolderEntries) -> io::Result<()> {
        let path = entry.path();
        let kind = entry.file_type()?;
        let mut followed = self.followed.clone();
        let mut is_folder = kind.is_dir();
        let mut size = 0;
        if !is_folder {
            let metadata = if kind.is_symlink() {
                fs::metadata(&path)
            } else {
                entry.metadata()
            };
            let metadata = match metadata {
                // Deleted meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return regular_file::check_absent(&path);
                }
                metadata => metadata?,
            };
            (is_folder, size) = (metadata.is_dir(), metadata.len());
        }
        if is_folder && kind.is_symlink() {
            let target = fs::canonicalize(&path)?;
            if followed.contains(&target) {
                let text = "it is a symbolic link to a folder that contains it; remove it";
                return Err(io::Error::other(text));
            }
            followed.push(target);
        }
        if is_folder {
            let name = format!("{name}/");
            found.folders.push(Self {
                path,
                name,
                followed,
            });
        } else if !is_temporary(name) {
            let name = name.to_owned();
            found.files.push(ListedFile { name, size });
        }
        Ok(())
    }
}

impl Fault {
    fn below(self, prefix: &Key) -> ListError {
        let key = prefix.join_path(&self.name);
        failed(&key.unwrap_or_else(|_| prefix.clone()), self.source)
    }
}

fn failed(prefix: &Key, source: impl Error + Send + Sync + 'static) -> ListError {
    ListError::Io {
        prefix: prefix.clone(),
        source: Box::new(source),
    }
}

/// Returns whether a file has the name of a temporary file of `object_store`, which ends with `#` and
/// a number.
fn is_temporary(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let number = name.split_once('#').map_or("", |(_, number)| number);
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}
