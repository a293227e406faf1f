//! Files that are published only if nothing is left out.

use std::{fs, path::Path};

use tempfile::TempDir;

use crate::table::{OutputFile, WrittenFiles, staged};
use crate::{FileError, FileFault};

/// A file that is written to a temporary folder beside its target, if it may lack nothing.
#[derive(Debug)]
pub struct LosslessTarget {
    folder: Option<TempDir>,
    file: OutputFile,
    target: OutputFile,
}

impl LosslessTarget {
    /// Creates the folder. Files go to their target if `is_strict` is false.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the folder cannot be created.
    pub fn new(target: &OutputFile, is_strict: bool) -> Result<Self, FileError> {
        let mut made = Self {
            folder: None,
            file: target.clone(),
            target: target.clone(),
        };
        if is_strict {
            let folder = tempfile::Builder::new()
                .prefix(".zvf-")
                .tempdir_in(target.folder())
                .map_err(|source| FileFault::Write(source).of(target.path()))?;
            made.file = target.inside(folder.path());
            made.folder = Some(folder);
        }
        Ok(made)
    }

    /// Returns the file to write.
    pub fn file(&self) -> &OutputFile {
        &self.file
    }

    /// Moves the files to their target, and removes the files of an earlier result that this one
    /// does not have.
    ///
    /// # Errors
    ///
    /// [`FileFault::Lossy`] if something is left out; no file has changed then.
    pub fn publish(self, mut written: WrittenFiles) -> Result<WrittenFiles, FileError> {
        if self.folder.is_none() {
            return Ok(written);
        }
        if !written.left_out.is_empty() {
            return Err(FileFault::Lossy(written.left_out).of(self.target.path()));
        }
        let moved = |path: &Path| {
            let name = path.file_name().unwrap_or_default();
            self.target.folder().join(name)
        };
        for path in &mut written.absent {
            *path = moved(path);
        }
        staged::remove(&written.absent)?;
        // The requested file is the last to get its name.
        for path in written.files.iter_mut().rev() {
            let to = moved(path);
            fs::rename(&*path, &to).map_err(|source| FileFault::Write(source).of(&to))?;
            *path = to;
        }
        Ok(written)
    }
}
