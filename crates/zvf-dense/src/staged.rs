//! Files that appear when they are complete.

use std::{
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

/// An empty file beside `target`, removed unless it is [`publish`]ed.
pub(crate) fn create(target: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".zvf-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As any other file: who may not read it is up to the umask.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder_of(target))
}

/// Gives a complete file its name, once it is on the disk.
pub(crate) fn publish(file: NamedTempFile, target: &Path) -> io::Result<()> {
    file.as_file().sync_all()?;
    file.persist(target).map_err(|error| error.error)?;
    // So that the name is there after a power failure, where folders can be synced.
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
