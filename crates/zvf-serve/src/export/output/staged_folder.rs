//! A folder that is written beside its place.

use std::{
    collections::HashSet,
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;

use super::{
    bucket::MARKER,
    journal::{FileRecord, JOURNAL, Journal},
};
use crate::export::ExportError;

/// The file that a running export locks.
const LOCK: &str = ".zvf-export.lock";
/// The folder of temporary files.
const SCRATCH: &str = ".zvf-export.scratch";

/// A hidden folder that takes the place of the target when it is complete. After an interruption, the
/// same export continues in it.
pub(super) struct StagedFolder {
    target: PathBuf,
    staged: PathBuf,
    journal: Mutex<Journal>,
    /// Holds the lock.
    lock: Option<File>,
    /// Files of an interrupted export.
    pub(super) kept: u64,
    is_published: bool,
}

impl StagedFolder {
    /// Creates the folder beside `target`, which must not exist, or continues in that of an interrupted
    /// export of the same source. One of another source is begun again.
    pub(super) fn create(target: &Path, source: &Value) -> Result<Self, ExportError> {
        let failed = |source| ExportError::Folder {
            folder: target.to_path_buf(),
            source,
        };
        if fs::symlink_metadata(target).is_ok() {
            return Err(ExportError::Exists(target.to_path_buf()));
        }
        let staged = hidden_folder(target).map_err(failed)?;
        let is_new = match fs::read_dir(&staged) {
            Ok(mut files) => files.next().is_none(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(failed(error)),
        };
        if staged.join(MARKER).is_file() {
            return Err(ExportError::Planned(staged.display().to_string()));
        }
        if !is_new && !staged.join(LOCK).is_file() {
            return Err(ExportError::NoExport(staged));
        }
        fs::create_dir_all(&staged).map_err(failed)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(staged.join(LOCK))
            .map_err(failed)?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return Err(ExportError::Running(target.to_path_buf()));
            }
            // Without locks, as in some network file systems, the user must not run it twice.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let journal = match Journal::open(&staged, source) {
            Ok(journal) => journal,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        let journal = match journal {
            Some(journal) => journal,
            None => {
                let lock = HashSet::from([staged.join(LOCK)]);
                remove_others(&staged, &lock).map_err(failed)?;
                Journal::create(&staged, source).map_err(failed)?
            }
        };
        // Incomplete files are written again.
        let own = [LOCK, JOURNAL, SCRATCH].map(|own| staged.join(own));
        let mut known = HashSet::from(own);
        known.extend(journal.files.keys().map(|file| staged.join(file)));
        remove_others(&staged, &known).map_err(failed)?;
        Ok(Self {
            target: target.to_path_buf(),
            staged,
            kept: u64::try_from(journal.files.len()).unwrap_or(u64::MAX),
            journal: Mutex::new(journal),
            lock: Some(lock),
            is_published: false,
        })
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, source: io::Error) -> ExportError {
        ExportError::Folder {
            folder: self.target.clone(),
            source,
        }
    }

    /// Returns a folder for temporary files, which an interrupted export keeps. It may not exist.
    pub(super) fn scratch(&self, name: &str) -> PathBuf {
        self.staged.join(SCRATCH).join(name)
    }

    /// Writes a file at a relative path, unless an interrupted export has written it.
    pub(super) fn write(&self, path: &str, bytes: &[u8]) -> Result<(), ExportError> {
        let record = FileRecord::of(bytes);
        if self.journal().files.get(path) == Some(&record) {
            return Ok(());
        }
        let file = self.staged.join(path);
        let written = match fs::write(&file, bytes) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => file
                .parent()
                .map_or(Ok(()), fs::create_dir_all)
                .and_then(|()| fs::write(&file, bytes)),
            written => written,
        };
        let noted = written.and_then(|()| self.journal().add_file(path, record));
        noted.map_err(|source| ExportError::File {
            file: self.target.join(path),
            source,
        })
    }

    /// Returns the result of a step that an interrupted export has completed.
    pub(super) fn step(&self, name: &str) -> Option<Value> {
        self.journal().steps.get(name).cloned()
    }

    /// Notes a complete step.
    pub(super) fn add_step(&self, name: &str, result: Value) -> Result<(), ExportError> {
        let added = self.journal().add_step(name, result);
        added.map_err(|source| self.failed(source))
    }

    /// Notes a complete layer, and removes its temporary files.
    pub(super) fn add_layer(&self, name: &str, result: Value) -> Result<(), ExportError> {
        self.add_step(name, result)?;
        match fs::remove_dir_all(self.scratch(name)) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(self.failed(source)),
            _ => Ok(()),
        }
    }

    /// Returns the number of files and their bytes.
    pub(super) fn sizes(&self) -> (u64, u64) {
        let journal = self.journal();
        let bytes = journal.files.values().map(|file| file.size);
        let files = u64::try_from(journal.files.len()).unwrap_or(u64::MAX);
        (files, bytes.fold(0, u64::saturating_add))
    }

    /// Moves the folder to its place.
    pub(super) fn publish(mut self) -> Result<(), ExportError> {
        let scratch = match fs::remove_dir_all(self.staged.join(SCRATCH)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        // Windows does not move a folder with open files.
        self.journal().close();
        self.lock = None;
        let moved = scratch.and_then(|()| fs::rename(&self.staged, &self.target));
        moved.map_err(|source| self.failed(source))?;
        self.is_published = true;
        for own in [JOURNAL, LOCK] {
            // The export is complete, whether these remain or not.
            let _ = fs::remove_file(self.target.join(own));
        }
        Ok(())
    }
}

impl Drop for StagedFolder {
    /// Removes a folder that has nothing to continue with.
    fn drop(&mut self) {
        if !self.is_published && self.journal().files.is_empty() {
            let _ = fs::remove_dir_all(&self.staged);
        }
    }
}

/// Returns the hidden folder beside a folder that is exported to.
pub(super) fn hidden_folder(target: &Path) -> io::Result<PathBuf> {
    let name = target.file_name().ok_or_else(|| {
        let kind = io::ErrorKind::InvalidInput;
        io::Error::new(kind, "the path does not end with a name")
    })?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(".zvf-export");
    Ok(target.with_file_name(hidden))
}

/// Removes the files below a folder that are not known, and folders that become empty. Keeps known
/// folders as they are.
pub(super) fn remove_others(folder: &Path, known: &HashSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if known.contains(&path) {
            continue;
        }
        if !entry.file_type()?.is_dir() {
            fs::remove_file(&path)?;
            continue;
        }
        remove_others(&path, known)?;
        if fs::read_dir(&path)?.next().is_none() {
            fs::remove_dir(&path)?;
        }
    }
    Ok(())
}
