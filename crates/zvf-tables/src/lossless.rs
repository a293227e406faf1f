//! Files that are published only if nothing is left out.

use std::{fs, path::Path};

use tempfile::TempDir;

use crate::table::{OutputFile, ResultWriteError, WrittenFiles, staged};

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
    /// [`ResultWriteError`] if the folder cannot be created.
    pub fn new(target: &OutputFile, is_strict: bool) -> Result<Self, ResultWriteError> {
        let mut made = Self {
            folder: None,
            file: target.clone(),
            target: target.clone(),
        };
        if is_strict {
            let folder = tempfile::Builder::new()
                .prefix(".zvf-")
                .tempdir_in(target.folder())
                .map_err(|source| file_error(target.path(), source))?;
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
    /// [`ResultWriteError::Lossy`] if something is left out; no file has changed then.
    pub fn publish(self, mut written: WrittenFiles) -> Result<WrittenFiles, ResultWriteError> {
        if self.folder.is_none() {
            return Ok(written);
        }
        if !written.left_out.is_empty() {
            return Err(ResultWriteError::Lossy {
                path: self.target.path().to_path_buf(),
                left_out: written.left_out,
            });
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
            fs::rename(&*path, &to).map_err(|source| file_error(&to, source))?;
            *path = to;
        }
        Ok(written)
    }
}

fn file_error(path: &Path, source: std::io::Error) -> ResultWriteError {
    ResultWriteError::File {
        path: path.to_path_buf(),
        source,
    }
}
