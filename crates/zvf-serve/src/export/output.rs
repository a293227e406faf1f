//! The files of an export: in a temporary folder that takes its place when everything is complete, or
//! in a bucket.

mod bucket;
mod staged_folder;

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use tempfile::TempDir;
use zvf_precomputed::{ShardBuilder, ShardingSpec};

use super::{ExportError, ExportTarget};
use bucket::Bucket;
use staged_folder::StagedFolder;

/// An index with more values than this is written as shards: a file each would strain file systems
/// and buckets.
const MOST_FILES: u64 = 10_000;

/// The files of an export that is being written.
pub(crate) struct ExportOutput {
    place: Place,
    files: AtomicU64,
    bytes: AtomicU64,
}

enum Place {
    Folder(StagedFolder),
    Bucket(Bucket),
}

impl ExportOutput {
    /// Begins an export. `source` describes what is exported: the same export to a bucket continues
    /// an interrupted one.
    pub(crate) async fn create(target: &ExportTarget, source: &Value) -> Result<Self, ExportError> {
        let place = match target {
            ExportTarget::Folder(folder) => Place::Folder(StagedFolder::create(folder)?),
            ExportTarget::Bucket(address) => Place::Bucket(Bucket::open(address, source).await?),
        };
        Ok(Self {
            place,
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        })
    }

    /// Returns a folder for temporary files: that of the system if the export goes to a bucket.
    pub(crate) fn scratch(&self) -> Result<TempDir, ExportError> {
        match &self.place {
            Place::Folder(folder) => folder.scratch(),
            Place::Bucket(_) => tempfile::tempdir().map_err(|source| ExportError::Folder {
                folder: std::env::temp_dir(),
                source,
            }),
        }
    }

    /// Writes a file at a relative path.
    pub(crate) fn write(&self, path: &str, bytes: &[u8]) -> Result<(), ExportError> {
        match &self.place {
            Place::Folder(folder) => folder.write(path, bytes)?,
            Place::Bucket(bucket) => bucket.write(path, bytes)?,
        }
        self.files.fetch_add(1, Ordering::Relaxed);
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.bytes.fetch_add(size, Ordering::Relaxed);
        Ok(())
    }

    /// Makes the files visible.
    pub(crate) async fn publish(self) -> Result<ExportedFiles, ExportError> {
        match self.place {
            Place::Folder(folder) => folder.publish()?,
            Place::Bucket(bucket) => bucket.publish().await?,
        }
        Ok(ExportedFiles {
            files: self.files.into_inner(),
            bytes: self.bytes.into_inner(),
        })
    }
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
    output: &'a ExportOutput,
    folder: String,
    sharding: Option<ShardingSpec>,
    open: Option<(u64, ShardBuilder)>,
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
