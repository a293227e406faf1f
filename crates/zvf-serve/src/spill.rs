//! Values grouped by key in bounded memory: entries are divided among partitions, which are
//! written to temporary files when they exceed the memory, and read back one by one.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    path::PathBuf,
};

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
    scratch: TempDir,
    /// The most bytes of entries in memory.
    most: usize,
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
    /// Groups entries with temporary files in `scratch`, and `most` bytes of entries in memory.
    pub(crate) fn new(scratch: TempDir, most: usize) -> Self {
        Self {
            scratch,
            most,
            buffers: BTreeMap::new(),
            buffered: 0,
        }
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
        if self.buffered > self.most {
            self.flush()?;
        }
        Ok(())
    }

    fn file(&self, partition: PartitionId) -> PathBuf {
        let PartitionId { index, shard } = partition;
        self.scratch.path().join(format!("{index}-{shard}"))
    }

    fn flush(&mut self) -> Result<(), SpillError> {
        for (partition, buffer) in &self.buffers {
            let file = self.file(*partition);
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

/// The entries of a partition.
pub(crate) struct SpilledPartition(Vec<u8>);

impl SpilledPartition {
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
