//! The files of an export: in a hidden folder that takes its place when everything is complete, or in a
//! bucket. An interrupted export is continued: complete layers are not computed again in either, and in
//! a folder neither are the complete steps of a layer.

mod bucket;
mod job;
mod journal;
mod staged_folder;

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use serde_json::Value;
use tempfile::TempDir;
use zvf_model::key::Key;
use zvf_precomputed::{ShardBuilder, ShardError, ShardingSpec};

use super::{ExportError, ExportTarget};
use bucket::{Bucket, is_document};
use staged_folder::StagedFolder;

pub(super) use job::ExportJob;

/// An index with more values than this is written as shards: a file each would strain file systems
/// and buckets.
const MAX_FILES: u64 = 10_000;

/// The files of an export that is being written.
pub(crate) struct ExportOutput {
    place: OutputTarget,
    files: AtomicU64,
    bytes: AtomicU64,
    /// Sizes of the files that a task has written, without documents.
    written: Option<Mutex<BTreeMap<String, u64>>>,
}

enum OutputTarget {
    Folder(StagedFolder),
    Bucket(Bucket),
}

impl ExportOutput {
    /// Begins an export. `source` describes what is exported: the same export continues an interrupted
    /// one.
    pub(crate) async fn create(target: &ExportTarget, source: &Value) -> Result<Self, ExportError> {
        let place = match target {
            ExportTarget::Folder(folder) => {
                OutputTarget::Folder(StagedFolder::create(folder, source)?)
            }
            ExportTarget::Bucket(address) => {
                OutputTarget::Bucket(Bucket::open(address, source).await?)
            }
        };
        Ok(Self {
            place,
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            written: None,
        })
    }

    /// Begins to write files of a task to a place that a plan reserved. Documents are not written, but
    /// kept for [`take_documents`](Self::take_documents).
    pub(crate) fn reserved(address: &str) -> Result<Self, ExportError> {
        Ok(Self {
            place: OutputTarget::Bucket(Bucket::reserved(address)?),
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            written: Some(Mutex::default()),
        })
    }

    /// Waits until all files are written, and returns the sizes of those since the last call.
    pub(crate) fn take_written(&self) -> Result<BTreeMap<String, u64>, ExportError> {
        if let OutputTarget::Bucket(bucket) = &self.place {
            bucket.wait()?;
        }
        let written = self.written.as_ref().map(|written| {
            let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
            mem::take(&mut *written)
        });
        Ok(written.unwrap_or_default())
    }

    /// Returns the documents of an output that keeps them.
    pub(crate) fn take_documents(&self) -> Vec<(Key, Bytes)> {
        match &self.place {
            OutputTarget::Bucket(bucket) => bucket.take_documents(),
            OutputTarget::Folder(_) => Vec::new(),
        }
    }

    /// Returns a folder for temporary files of a layer.
    pub(crate) fn scratch(&self, layer: &str) -> Result<ScratchFolder, ExportError> {
        match &self.place {
            OutputTarget::Folder(folder) => Ok(ScratchFolder::Kept(folder.scratch(layer))),
            OutputTarget::Bucket(_) => match tempfile::tempdir() {
                Ok(folder) => Ok(ScratchFolder::Temporary(folder)),
                Err(source) => Err(ExportError::Folder {
                    folder: std::env::temp_dir(),
                    source,
                }),
            },
        }
    }

    /// Returns whether steps of a layer are kept.
    pub(crate) fn keeps_steps(&self) -> bool {
        matches!(self.place, OutputTarget::Folder(_))
    }

    /// Returns the result of a step that an interrupted export has completed.
    pub(crate) fn step(&self, name: &str) -> Option<Value> {
        match &self.place {
            OutputTarget::Folder(folder) => folder.step(name),
            OutputTarget::Bucket(_) => None,
        }
    }

    /// Keeps the result of a step for the same export after an interruption. What the step has written is
    /// complete.
    pub(crate) fn add_step(&self, name: &str, result: Value) -> Result<(), ExportError> {
        match &self.place {
            OutputTarget::Folder(folder) => folder.add_step(name, result),
            OutputTarget::Bucket(_) => Ok(()),
        }
    }

    /// Returns the result of a layer that an interrupted export has completed.
    pub(crate) fn layer(&self, name: &str) -> Option<Value> {
        match &self.place {
            OutputTarget::Folder(folder) => folder.step(name),
            OutputTarget::Bucket(bucket) => {
                let result = bucket.layer(name)?;
                let count = |name: &str| result.get(name).and_then(Value::as_u64).unwrap_or(0);
                self.files.fetch_add(count("files"), Ordering::Relaxed);
                self.bytes.fetch_add(count("bytes"), Ordering::Relaxed);
                Some(result)
            }
        }
    }

    /// Returns the numbers of files and bytes so far.
    pub(crate) fn written(&self) -> (u64, u64) {
        let now = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
        (now(&self.files), now(&self.bytes))
    }

    /// Keeps the result of a complete layer for the same export after an interruption.
    pub(crate) async fn add_layer(&self, name: &str, result: Value) -> Result<(), ExportError> {
        match &self.place {
            OutputTarget::Folder(folder) => folder.add_layer(name, result),
            OutputTarget::Bucket(bucket) => bucket.add_layer(name, result).await,
        }
    }

    /// Writes a file at a relative path.
    pub(crate) fn write(&self, path: &str, bytes: &[u8]) -> Result<(), ExportError> {
        match &self.place {
            OutputTarget::Folder(folder) => folder.write(path, bytes)?,
            OutputTarget::Bucket(bucket) => bucket.write(path, bytes)?,
        }
        self.files.fetch_add(1, Ordering::Relaxed);
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.bytes.fetch_add(size, Ordering::Relaxed);
        if let Some(written) = self.written.as_ref().filter(|_| !is_document(path)) {
            let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
            written.insert(path.to_owned(), size);
        }
        Ok(())
    }

    /// Makes the files visible.
    pub(crate) async fn publish(self) -> Result<ExportedFiles, ExportError> {
        match self.place {
            OutputTarget::Folder(folder) => {
                let (files, bytes) = folder.sizes();
                let kept = folder.kept;
                folder.publish()?;
                Ok(ExportedFiles { files, bytes, kept })
            }
            OutputTarget::Bucket(bucket) => {
                let kept = bucket.kept();
                bucket.publish().await?;
                Ok(ExportedFiles {
                    files: self.files.into_inner(),
                    bytes: self.bytes.into_inner(),
                    kept,
                })
            }
        }
    }
}

/// Files and bytes of an export.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExportedFiles {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// Files of an interrupted export.
    pub(crate) kept: u64,
}

/// A folder for temporary files.
#[derive(Debug)]
pub(crate) enum ScratchFolder {
    /// It is removed on drop.
    Temporary(TempDir),
    /// It is kept until the export is complete. It may not exist.
    Kept(PathBuf),
}

/// Returns the shards for this many values, or `None` if each is a file.
pub(crate) fn sharding(
    is_forced: bool,
    values: u64,
    spec: impl FnOnce() -> ShardingSpec,
) -> Option<ShardingSpec> {
    (is_forced || values > MAX_FILES).then(spec)
}

/// Values that arrive in the order of their shards, as files or shards of a folder.
pub(crate) struct OrderedIndex<'a> {
    output: &'a ExportOutput,
    folder: String,
    sharding: Option<ShardingSpec>,
    open: Option<(u64, ShardBuilder)>,
    /// The shards that are written.
    complete: BTreeSet<u64>,
}

impl<'a> OrderedIndex<'a> {
    pub(crate) fn new(
        output: &'a ExportOutput,
        folder: impl Into<String>,
        sharding: Option<ShardingSpec>,
    ) -> Self {
        Self {
            output,
            folder: folder.into(),
            sharding,
            open: None,
            complete: BTreeSet::new(),
        }
    }

    /// Adds a value. Keys of one shard must follow each other.
    ///
    /// # Errors
    ///
    /// [`ShardError::Complete`] if the shard was followed by another: its file would be overwritten.
    pub(crate) fn push(&mut self, key: u64, value: &[u8]) -> Result<(), ExportError> {
        let Some(spec) = self.sharding else {
            return self.output.write(&format!("{}/{key}", self.folder), value);
        };
        let shard = spec.locate(key).shard;
        if self.open.as_ref().is_some_and(|(open, _)| *open != shard) {
            self.flush(&spec)?;
        }
        if self.complete.contains(&shard) {
            return Err(ShardError::Complete { key, shard }.into());
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
        self.complete.insert(shard);
        self.output.write(&path, &builder.finish())
    }

    /// Writes the last shard.
    pub(crate) fn finish(&mut self) -> Result<(), ExportError> {
        match self.sharding {
            Some(spec) => self.flush(&spec),
            None => Ok(()),
        }
    }
}
