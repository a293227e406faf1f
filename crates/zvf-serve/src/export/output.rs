//! The folder of an export: files are written into a temporary folder beside it, which takes its
//! place when everything is complete.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use tempfile::TempDir;
use zvf_precomputed::{ShardBuilder, ShardingSpec};

use super::ExportError;

/// An index with more values than this is written as shards: a file each would strain file systems
/// and buckets.
const MOST_FILES: u64 = 10_000;

/// A folder that is being written.
pub(crate) struct OutputFolder {
    target: PathBuf,
    staged: TempDir,
    files: AtomicU64,
    bytes: AtomicU64,
}

impl OutputFolder {
    /// Creates the temporary folder beside `target`, which must not exist.
    pub(crate) fn create(target: &Path) -> Result<Self, ExportError> {
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
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        })
    }

    /// Returns a folder for temporary files on the same file system.
    pub(crate) fn scratch(&self) -> Result<TempDir, ExportError> {
        let scratch = tempfile::Builder::new()
            .prefix(".scratch-")
            .tempdir_in(self.staged.path());
        scratch.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> ExportError {
        ExportError::Folder {
            folder: self.target.clone(),
            source,
        }
    }

    /// Writes a file at a relative path.
    pub(crate) fn write(&self, path: &str, bytes: &[u8]) -> Result<(), ExportError> {
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
        })?;
        self.files.fetch_add(1, Ordering::Relaxed);
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.bytes.fetch_add(size, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the number of files and of bytes written.
    pub(crate) fn written(&self) -> ExportedFiles {
        ExportedFiles {
            files: self.files.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    /// Moves the folder to its place.
    pub(crate) fn publish(self) -> Result<ExportedFiles, ExportError> {
        let written = self.written();
        let staged = self.staged.keep();
        let moved = open_to_others(&staged).and_then(|()| fs::rename(&staged, &self.target));
        match moved {
            Ok(()) => Ok(written),
            Err(source) => {
                // The error of the move says more than that of a failed clean-up.
                let _ = fs::remove_dir_all(&staged);
                Err(ExportError::Folder {
                    folder: self.target,
                    source,
                })
            }
        }
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

/// Files and bytes of an export.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExportedFiles {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

/// Returns the shards for this many values, or `None` if each is a file.
pub(crate) fn sharding(
    is_forced: bool,
    values: u64,
    spec: impl FnOnce() -> ShardingSpec,
) -> Option<ShardingSpec> {
    (is_forced || values > MOST_FILES).then(spec)
}

/// Values that arrive in the order of their shards, as files or shards of a folder.
pub(crate) struct OrderedIndex<'a> {
    output: &'a OutputFolder,
    folder: String,
    sharding: Option<ShardingSpec>,
    open: Option<(u64, ShardBuilder)>,
}

impl<'a> OrderedIndex<'a> {
    pub(crate) fn new(
        output: &'a OutputFolder,
        folder: impl Into<String>,
        sharding: Option<ShardingSpec>,
    ) -> Self {
        Self {
            output,
            folder: folder.into(),
            sharding,
            open: None,
        }
    }

    /// Adds a value. Keys of one shard must follow each other.
    pub(crate) fn push(&mut self, key: u64, value: &[u8]) -> Result<(), ExportError> {
        let Some(spec) = self.sharding else {
            return self.output.write(&format!("{}/{key}", self.folder), value);
        };
        let shard = spec.locate(key).shard;
        if self.open.as_ref().is_some_and(|(open, _)| *open != shard) {
            self.flush(&spec)?;
        }
        let (_, builder) = self
            .open
            .get_or_insert_with(|| (shard, ShardBuilder::new(spec, shard)));
        Ok(builder.push(key, value)?)
    }

    fn flush(&mut self, spec: &ShardingSpec) -> Result<(), ExportError> {
        let Some((shard, builder)) = self.open.take() else {
            return Ok(());
        };
        let path = format!("{}/{}", self.folder, spec.file_name(shard));
        self.output.write(&path, &builder.finish())
    }

    /// Writes the last shard.
    pub(crate) fn finish(mut self) -> Result<(), ExportError> {
        match self.sharding {
            Some(spec) => self.flush(&spec),
            None => Ok(()),
        }
    }
}
