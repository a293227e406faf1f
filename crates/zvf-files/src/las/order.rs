//! Records in the order of the file from which they came.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, binary_heap::PeekMut},
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
};

/// Upper bound on the records of all runs in memory.
const MERGE_BYTES: usize = 32 << 20;
/// Upper bound on the records of one run in memory.
const RUN_BYTES: usize = 1 << 18;
/// Size of a row before its record.
const ROW: usize = 8;

/// Records that are sorted by row. Batches are sorted runs in a temporary file, which are merged.
#[derive(Debug)]
pub(super) struct OrderedRecords {
    file: File,
    record: usize,
    runs: Vec<RecordRun>,
    end: u64,
}

/// A sorted run in the file. One part of it is in memory.
#[derive(Debug)]
struct RecordRun {
    /// The place of the next part.
    at: u64,
    /// Size of the parts not yet read.
    left: u64,
    bytes: Vec<u8>,
    next: usize,
}

impl OrderedRecords {
    /// Creates the temporary file in a folder, which has room for the result as well.
    pub(super) fn create(folder: &Path, record: usize) -> io::Result<Self> {
        Ok(Self {
            file: tempfile::tempfile_in(folder)?,
            record,
            runs: Vec::new(),
            end: 0,
        })
    }

    /// Adds a batch.
    pub(super) fn push(&mut self, rows: &[u64], records: &[u8]) -> io::Result<()> {
        let mut sorted: Vec<(u64, &[u8])> = rows
            .iter()
            .copied()
            .zip(records.chunks_exact(self.record.max(1)))
            .collect();
        sorted.sort_by_key(|(row, _)| *row);
        let entry = self.record.saturating_add(ROW);
        let mut bytes = Vec::with_capacity(sorted.len().saturating_mul(entry));
        for (row, record) in sorted {
            bytes.extend_from_slice(&row.to_le_bytes());
            bytes.extend_from_slice(record);
        }
        self.file.write_all(&bytes)?;
        let left = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.runs.push(RecordRun {
            at: self.end,
            left,
            bytes: Vec::new(),
            next: 0,
        });
        self.end = self.end.saturating_add(left);
        Ok(())
    }

    /// Calls `write` with all records by row, in blocks.
    pub(super) fn merge<E: From<io::Error>>(
        mut self,
        mut write: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let entry = self.record.saturating_add(ROW);
        let entries = (MERGE_BYTES / self.runs.len().max(1)).min(RUN_BYTES) / entry;
        let part = entries.max(1).saturating_mul(entry);
        let mut heads = BinaryHeap::new();
        for (number, run) in self.runs.iter_mut().enumerate() {
            if let Some(row) = run.row(&mut self.file, part, entry)? {
                heads.push(Reverse((row, number)));
            }
        }
        let mut block = Vec::new();
        while let Some(mut head) = heads.peek_mut() {
            let Reverse((_, number)) = *head;
            let Some(run) = self.runs.get_mut(number) else {
                break;
            };
            block.extend_from_slice(run.take(entry));
            match run.row(&mut self.file, part, entry)? {
                Some(row) => *head = Reverse((row, number)),
                None => {
                    PeekMut::pop(head);
                }
            }
            if block.len() >= RUN_BYTES {
                write(&block)?;
                block.clear();
            }
        }
        write(&block)
    }
}

impl RecordRun {
    /// Returns the next row, after reading the next part if it is needed; `None` at the end.
    fn row(&mut self, file: &mut File, part: usize, entry: usize) -> io::Result<Option<u64>> {
        if self.next >= self.bytes.len() {
            let size = u64::try_from(part).unwrap_or(u64::MAX).min(self.left);
            self.next = 0;
            self.bytes.resize(usize::try_from(size).unwrap_or(0), 0);
            if size == 0 {
                return Ok(None);
            }
            file.seek(SeekFrom::Start(self.at))?;
            file.read_exact(&mut self.bytes)?;
            self.at = self.at.saturating_add(size);
            self.left = self.left.saturating_sub(size);
        }
        let end = self.next.saturating_add(entry);
        let row = self
            .bytes
            .get(self.next..end)
            .and_then(|bytes| bytes.first_chunk::<ROW>());
        Ok(row.map(|row| u64::from_le_bytes(*row)))
    }

    /// Takes the record of the next row.
    fn take(&mut self, entry: usize) -> &[u8] {
        let start = self.next.saturating_add(ROW);
        self.next = self.next.saturating_add(entry);
        self.bytes.get(start..self.next).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_merged_by_row() {
        let folder = tempfile::tempdir().unwrap();
        let mut records = OrderedRecords::create(folder.path(), 2).unwrap();
        let mut rows: Vec<u64> = (0..1000).map(|row| row * 7919 % 1000).collect();
        // Rows that are there twice stay.
        rows.push(500);
        for batch in rows.chunks(37) {
            let bytes = batch.iter().flat_map(|row| {
                let row = u16::try_from(*row).unwrap();
                row.to_le_bytes()
            });
            records.push(batch, &bytes.collect::<Vec<u8>>()).unwrap();
        }
        let mut merged = Vec::new();
        records
            .merge(|block: &[u8]| {
                merged.extend_from_slice(block);
                Ok::<(), io::Error>(())
            })
            .unwrap();
        let (words, _) = merged.as_chunks::<2>();
        let found: Vec<u64> = words
            .iter()
            .map(|it| u16::from_le_bytes(*it).into())
            .collect();
        rows.sort_unstable();
        assert_eq!(found, rows);
    }
}
