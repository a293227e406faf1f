//! Values grouped by key in bounded memory: entries are divided among partitions, which are
//! written to temporary files when they exceed the memory, and read back one by one.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use zvf_precomputed::SpatialLevels;

/// Key, id and length of an entry.
const HEADER: usize = 20;

/// A part of the entries that is grouped at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PartitionId {
    /// The index to which the entries belong.
    pub(crate) index: usize,
    /// The shard or bucket in the index.
    pub(crate) shard: u64,
}

/// An error of entries that are grouped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpillError {
    /// A record is too large.
    #[error("a record has more than 4 GiB")]
    Record,
    /// A temporary file cannot be written or read.
    #[error("{} cannot be written", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Entries by partition.
#[derive(Debug)]
pub(crate) struct Spill {
    folder: PathBuf,
    /// Removes the folder on drop.
    _temporary: Option<TempDir>,
    /// Checksums of what was written of each partition, with its length.
    written: BTreeMap<PartitionId, crc32fast::Hasher>,
    /// Maximum size in bytes of entries in memory.
    max_bytes: usize,
    buffers: BTreeMap<PartitionId, Vec<u8>>,
    buffered: usize,
}

/// An entry: a record of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpillEntry<'a> {
    pub(crate) key: u64,
    pub(crate) id: u64,
    pub(crate) record: &'a [u8],
}

impl Spill {
    /// Groups entries with temporary files in `scratch`, and `max_bytes` of entries in memory.
    pub(crate) fn new(scratch: TempDir, max_bytes: usize) -> Self {
        let folder = scratch.path().to_path_buf();
        Self {
            _temporary: Some(scratch),
            ..Self::in_folder(folder, max_bytes)
        }
    }

    fn in_folder(folder: PathBuf, max_bytes: usize) -> Self {
        Self {
            folder,
            _temporary: None,
            written: BTreeMap::new(),
            max_bytes,
            buffers: BTreeMap::new(),
            buffered: 0,
        }
    }

    /// Groups entries with files in a folder that is kept. What [`checkpoint`](Self::checkpoint) returned
    /// restores the entries; other files are removed. Returns `None` if the files are not as they were
    /// written.
    pub(crate) fn restore(
        folder: PathBuf,
        max_bytes: usize,
        from: Option<&Value>,
    ) -> io::Result<Option<Self>> {
        let mut spill = Self::in_folder(folder, max_bytes);
        fs::create_dir_all(&spill.folder)?;
        let kept = from.and_then(Value::as_array);
        for partition in kept.into_iter().flatten() {
            let numbers: Option<Vec<u64>> = partition
                .as_array()
                .map(|numbers| numbers.iter().filter_map(Value::as_u64).collect());
            let Some([index, shard, length, crc32]) = numbers.as_deref() else {
                return Ok(None);
            };
            let id = PartitionId {
                index: usize::try_from(*index).unwrap_or(usize::MAX),
                shard: *shard,
            };
            let bytes = match fs::read(spill.file(id)) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            };
            let length = usize::try_from(*length).unwrap_or(usize::MAX);
            let mut hasher = crc32fast::Hasher::new();
            hasher.update(bytes.get(..length).unwrap_or_default());
            if bytes.len() < length || u64::from(hasher.clone().finalize()) != *crc32 {
                return Ok(None);
            }
            // Entries after the checkpoint come again.
            let file = File::options().write(true).open(spill.file(id))?;
            file.set_len(u64::try_from(length).unwrap_or(0))?;
            spill.written.insert(id, hasher);
            spill.buffers.insert(id, Vec::new());
        }
        let known: Vec<PathBuf> = spill.written.keys().map(|id| spill.file(*id)).collect();
        for entry in fs::read_dir(&spill.folder)? {
            let path = entry?.path();
            if !known.contains(&path) {
                fs::remove_file(path)?;
            }
        }
        Ok(Some(spill))
    }

    /// Writes all entries, and returns what restores them.
    pub(crate) fn checkpoint(&mut self) -> Result<Value, SpillError> {
        self.flush()?;
        let mut partitions = Vec::new();
        for (id, hasher) in &self.written {
            let file = self.file(*id);
            let length = fs::metadata(&file)
                .map(|file| file.len())
                .map_err(|source| SpillError::File { file, source })?;
            let crc32 = hasher.clone().finalize();
            partitions.push(json!([id.index, id.shard, length, crc32]));
        }
        Ok(partitions.into())
    }

    /// Adds an entry.
    pub(crate) fn push(
        &mut self,
        partition: PartitionId,
        entry: SpillEntry<'_>,
    ) -> Result<(), SpillError> {
        let length = u32::try_from(entry.record.len()).map_err(|_| SpillError::Record)?;
        let buffer = self.buffers.entry(partition).or_default();
        buffer.extend_from_slice(&entry.key.to_le_bytes());
        buffer.extend_from_slice(&entry.id.to_le_bytes());
        buffer.extend_from_slice(&length.to_le_bytes());
        buffer.extend_from_slice(entry.record);
        let size = HEADER.saturating_add(entry.record.len());
        self.buffered = self.buffered.saturating_add(size);
        if self.buffered > self.max_bytes {
            self.flush()?;
        }
        Ok(())
    }

    fn file(&self, partition: PartitionId) -> PathBuf {
        file_of(&self.folder, partition)
    }

    fn flush(&mut self) -> Result<(), SpillError> {
        for (partition, buffer) in &self.buffers {
            if buffer.is_empty() {
                continue;
            }
            let hasher = self.written.entry(*partition).or_default();
            hasher.update(buffer);
            let file = file_of(&self.folder, *partition);
            let written = File::options()
                .create(true)
                .append(true)
                .open(&file)
                .and_then(|mut open| open.write_all(buffer));
            written.map_err(|source| SpillError::File { file, source })?;
        }
        for buffer in self.buffers.values_mut() {
            *buffer = Vec::new();
        }
        self.buffered = 0;
        Ok(())
    }

    /// Returns the partitions that have entries.
    pub(crate) fn partitions(&self) -> Vec<PartitionId> {
        self.buffers.keys().copied().collect()
    }

    /// Reads the entries of a partition.
    pub(crate) fn read(&self, partition: PartitionId) -> Result<SpilledPartition, SpillError> {
        let file = self.file(partition);
        let mut bytes = match fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(SpillError::File { file, source }),
        };
        if let Some(buffer) = self.buffers.get(&partition) {
            bytes.extend_from_slice(buffer);
        }
        Ok(SpilledPartition(bytes))
    }
}

fn file_of(folder: &Path, partition: PartitionId) -> PathBuf {
    let PartitionId { index, shard } = partition;
    folder.join(format!("{index}-{shard}"))
}

/// The entries of a partition.
pub(crate) struct SpilledPartition(Vec<u8>);

impl SpilledPartition {
    /// Takes the [bytes](Self::bytes) of a partition.
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns the entries as bytes, in the order in which they were added.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the entries by key, those of a key in random order, which is that of a hash of
    /// their ids.
    pub(crate) fn entries(&self) -> Vec<SpillEntry<'_>> {
        let mut entries = Vec::new();
        let mut rest = self.0.as_slice();
        while let Some((entry, after)) = first(rest) {
            entries.push(entry);
            rest = after;
        }
        entries.sort_unstable_by(|a, b| {
            let rank = |entry: &SpillEntry<'_>| SpatialLevels::rank(entry.id);
            let by_rank = || rank(a).total_cmp(&rank(b));
            a.key.cmp(&b.key).then_with(by_rank).then(a.id.cmp(&b.id))
        });
        entries
    }
}

fn first(bytes: &[u8]) -> Option<(SpillEntry<'_>, &[u8])> {
    let (key, rest) = bytes.split_first_chunk::<8>()?;
    let (id, rest) = rest.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (record, rest) = rest.split_at_checked(length)?;
    let entry = SpillEntry {
        key: u64::from_le_bytes(*key),
        id: u64::from_le_bytes(*id),
        record,
    };
    Some((entry, rest))
}
