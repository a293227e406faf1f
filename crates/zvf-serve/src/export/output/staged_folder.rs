//! A folder that is written beside its place.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::export::ExportError;

/// A temporary folder that takes the place of the target when it is complete.
pub(super) struct StagedFolder {
    target: PathBuf,
    staged: TempDir,
}

impl StagedFolder {
    /// Creates the temporary folder beside `target`, which must not exist.
    pub(super) fn create(target: &Path) -> Result<Self, ExportError> {
        let failed = |source| ExportError::Folder {
            folder: target.to_path_buf(),
            source,
        };
        if fs::symlink_metadata(target).is_ok() {
            return Err(ExportError::Exists(target.to_path_buf()));
        }
        let parent = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        fs::create_dir_all(parent).map_err(failed)?;
        let staged = tempfile::Builder::new()
            .prefix(".zvf-export-")
            .tempdir_in(parent)
            .map_err(failed)?;
        Ok(Self {
            target: target.to_path_buf(),
            staged,
        })
    }

    /// Returns a folder for temporary files on the same file system.
    pub(super) fn scratch(&self) -> Result<TempDir, ExportError> {
        let scratch = tempfile::Builder::new()
            .prefix(".scratch-")
            .tempdir_in(self.staged.path());
        scratch.map_err(|source| ExportError::Folder {
            folder: self.target.clone(),
            source,
        })
    }

    /// Writes a file at a relative path.
    pub(super) fn write(&self, path: &str, bytes: &[u8]) -> Result<(), ExportError> {
        let file = self.staged.path().join(path);
        let written = match fs::write(&file, bytes) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => file
                .parent()
                .map_or(Ok(()), fs::create_dir_all)
                .and_then(|()| fs::write(&file, bytes)),
            written => written,
        };
        written.map_err(|source| ExportError::File {
            file: self.target.join(path),
            source,
        })
    }

    /// Moves the folder to its place.
    pub(super) fn publish(self) -> Result<(), ExportError> {
        let staged = self.staged.keep();
        let moved = open_to_others(&staged).and_then(|()| fs::rename(&staged, &self.target));
        moved.map_err(|source| {
            // The error of the move says more than that of a failed clean-up.
            let _ = fs::remove_dir_all(&staged);
            ExportError::Folder {
                folder: self.target,
                source,
            }
        })
    }
}

/// Gives a temporary folder, which only its owner may read, the usual permissions.
#[cfg(unix)]
fn open_to_others(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn open_to_others(_: &Path) -> io::Result<()> {
    Ok(())
}
