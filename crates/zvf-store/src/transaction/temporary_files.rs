//! Temporary files of killed processes.
//!
//! A file is written under its name with `#` and a number appended, and renamed when it is complete.
//! No reader looks at a temporary file and no listing shows it. A killed process leaves its file
//! until it is swept.

use core::time::Duration;
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use zvf_model::key::Key;

use super::{TransactionError, lock::FolderLock};
use crate::{
    io::WriteError,
    store::{RESERVED_FOLDER, Store},
    threads::spawn_blocking,
};

impl Store {
    /// Deletes temporary files that were not written to for `older_than`. Returns their number; 0 in
    /// a bucket.
    pub(super) async fn sweep_temporary_files(
        &self,
        _: &FolderLock,
        older_than: Duration,
    ) -> Result<u64, TransactionError> {
        let Some(root) = self.folder().map(Path::to_owned) else {
            return Ok(0);
        };
        let before = SystemTime::now().checked_sub(older_than);
        let Some(before) = before else {
            return Ok(0);
        };
        run_sweep(move || sweep(&root, &root, before)).await
    }

    /// Deletes all temporary files below a folder that no process writes to any more; none in a bucket.
    pub(super) async fn delete_temporary_files(
        &self,
        folder: &Key,
    ) -> Result<(), TransactionError> {
        let Some(root) = self.folder().map(Path::to_owned) else {
            return Ok(());
        };
        let folder = root.join(folder.as_str());
        let swept = run_sweep(move || sweep(&root, &folder, SystemTime::now())).await;
        swept.map(drop)
    }
}

async fn run_sweep(
    work: impl FnOnce() -> io::Result<u64> + Send + 'static,
) -> Result<u64, TransactionError> {
    let swept = spawn_blocking(work).await.unwrap_or_else(|| {
        Err(io::Error::other(
            "the thread that deletes temporary files stopped",
        ))
    });
    swept.map_err(|source| {
        let (key, source) = (Key::root(), Box::new(source));
        WriteError::Io { key, source }.into()
    })
}

/// Deletes temporary files below a folder of a store that were last written to before a time.
fn sweep(root: &Path, below: &Path, before: SystemTime) -> io::Result<u64> {
    let mut swept: u64 = 0;
    let mut folders = vec![below.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in entries(&folder)? {
            let (path, kind) = entry?;
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && is_temporary(root, &path) && is_before(&path, before) {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => swept = swept.saturating_add(1),
                }
                // Fails for a folder that is not empty, such as that of the store, which holds the root.
                drop(fs::remove_dir(&folder));
            }
        }
    }
    Ok(swept)
}

/// Returns the entries of a folder; none if it does not exist.
fn entries(folder: &Path) -> io::Result<Vec<io::Result<(PathBuf, fs::FileType)>>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        found => Ok(found?
            .map(|entry| {
                let entry = entry?;
                Ok((entry.path(), entry.file_type()?))
            })
            .collect()),
    }
}

/// Returns whether a file is temporary: by its name, and only where a store has objects.
fn is_temporary(root: &Path, path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some((of, number)) = name.and_then(|name| name.rsplit_once('#')) else {
        return false;
    };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let below = path.strip_prefix(root).unwrap_or(path);
    let is_object = of == "zarr.json"
        || below.starts_with(RESERVED_FOLDER)
        || below.iter().any(|segment| segment == "c");
    is_number && is_object
}

fn is_before(path: &Path, before: SystemTime) -> bool {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| modified <= before)
}
