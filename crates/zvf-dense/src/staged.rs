//! Output files that appear under their name only when they are complete.

use std::{
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use tempfile::NamedTempFile;

/// Creates an empty file next to `target`, removed on drop unless it is [`publish`]ed.
///
/// # Errors
///
/// If the folder of `target` does not exist or cannot be written.
pub fn create(target: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".zvf-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The mode of an ordinary new file. The umask decides on read access.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    // Held while the file is created, so that no file escapes the removal.
    let mut unpublished = UNPUBLISHED.lock().unwrap_or_else(PoisonError::into_inner);
    let file = builder.tempfile_in(folder_of(target))?;
    unpublished.push(file.path().to_path_buf());
    Ok(file)
}

/// Paths of the files that were created and not published. Files of dropped writers are deleted.
static UNPUBLISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes the files that are neither published nor dropped, before the process ends. Afterwards,
/// [`create`] waits forever.
pub fn remove_unpublished() {
    let unpublished = UNPUBLISHED.lock().unwrap_or_else(PoisonError::into_inner);
    for path in unpublished.iter() {
        // Dropped files no longer exist.
        let _ = std::fs::remove_file(path);
    }
    // Keeps the lock until the process ends.
    std::mem::forget(unpublished);
}

/// Syncs a complete file to disk and moves it to `target`.
///
/// # Errors
///
/// If the file cannot be synced or moved.
pub fn publish(file: NamedTempFile, target: &Path) -> io::Result<()> {
    file.as_file().sync_all()?;
    let staged = file.path().to_path_buf();
    file.persist(target).map_err(|error| error.error)?;
    let mut unpublished = UNPUBLISHED.lock().unwrap_or_else(PoisonError::into_inner);
    unpublished.retain(|path| *path != staged);
    drop(unpublished);
    // Makes the new name survive a power failure on systems that can sync folders.
    if let Ok(folder) = open_folder(folder_of(target)) {
        folder.sync_all().ok();
    }
    Ok(())
}

fn open_folder(folder: PathBuf) -> io::Result<File> {
    OpenOptions::new().read(true).open(folder)
}

fn folder_of(target: &Path) -> PathBuf {
    let folder = target
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_path_buf()
}
