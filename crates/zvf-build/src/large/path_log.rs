//! Log of paths between the passes, in input order.
//!
//! ```text
//! varint  id, minus the id before and one, zigzag
//! ...     one row of each object attribute
//! varint  number of runs
//! varint  chunk of each run, minus the chunk before, zigzag
//! ```
//!
//! A run is a fragment. Its number is the number of earlier runs in its chunk, so that it is not
//! stored.

use crate::{
    error::BuildError,
    large::{outline::Field, piece::damaged},
    stored_column::FillSearch,
};

/// Records of paths, and counts of all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PathLog {
    /// Records that were not taken.
    pub(super) bytes: Vec<u8>,
    pub(super) counts: PathCounts,
    /// The fill value of each object attribute.
    pub(super) fills: Vec<FillSearch>,
    id: i64,
    chunk: u32,
}

/// Counts of the paths of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathCounts {
    pub(super) paths: u64,
    /// Number of paths with vertices.
    pub(super) present: u64,
    pub(super) runs: u64,
    pub(super) first: i64,
    pub(super) last: i64,
    /// `true` if each id is greater than the one before.
    pub(super) ascends: bool,
}

impl Default for PathCounts {
    fn default() -> Self {
        Self {
            paths: 0,
            present: 0,
            runs: 0,
            first: 0,
            last: -1,
            ascends: true,
        }
    }
}

impl PathCounts {
    /// Returns whether the ids are all numbers from the first to the last, in order.
    pub(super) fn is_contiguous(&self) -> bool {
        let span = i128::from(self.last) - i128::from(self.first) + 1;
        self.ascends && (self.paths == 0 || span == i128::from(self.paths))
    }

    fn add(&mut self, id: i64, runs: usize) {
        if self.paths == 0 {
            self.first = id;
        } else {
            self.ascends &= id > self.last;
        }
        self.last = id;
        self.paths += 1;
        self.present += u64::from(runs > 0);
        self.runs += runs as u64;
    }
}

impl PathLog {
    /// Creates an empty log of paths with these attributes.
    pub(super) fn new(attributes: &[Field]) -> Self {
        let numbers = attributes.iter().filter_map(|field| field.numbers);
        Self {
            fills: numbers
                .map(|(kind, columns)| FillSearch::new(kind, columns))
                .collect(),
            ..Self::default()
        }
    }

    /// Returns the size of a row of attributes.
    pub(super) fn row_size(&self) -> usize {
        self.fills.iter().map(FillSearch::row_size).sum()
    }

    /// Adds a path, with its row of attributes and the chunk of each run.
    pub(super) fn push(&mut self, id: i64, row: &[u8], runs: &[u32]) {
        self.count(id, row, runs.len());
        let step = id.wrapping_sub(self.id).wrapping_sub(1);
        put(&mut self.bytes, zigzag(step));
        self.bytes.extend_from_slice(row);
        put(&mut self.bytes, runs.len() as u64);
        for chunk in runs {
            let step = i64::from(*chunk) - i64::from(self.chunk);
            put(&mut self.bytes, zigzag(step));
            self.chunk = *chunk;
        }
        self.id = id;
    }

    fn count(&mut self, id: i64, mut row: &[u8], runs: usize) {
        self.counts.add(id, runs);
        for fill in &mut self.fills {
            let (own, rest) = row.split_at(fill.row_size().min(row.len()));
            fill.exclude(own);
            row = rest;
        }
    }

    /// Takes the records since the last call.
    pub(super) fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.bytes)
    }

    /// Parses all records of a log with these attributes and `chunks` chunks.
    pub(super) fn parse(
        bytes: Vec<u8>,
        attributes: &[Field],
        chunks: usize,
    ) -> Result<Self, BuildError> {
        let mut log = Self::new(attributes);
        let mut replay = PathReplay::new(log.row_size(), chunks);
        let mut rest = bytes.as_slice();
        while let Some(path) = replay.next(&mut rest)? {
            log.count(path.id, path.row, path.runs.len());
        }
        if !rest.is_empty() {
            return Err(damaged());
        }
        (log.id, log.chunk) = (replay.id, replay.chunk);
        log.bytes = bytes;
        Ok(log)
    }
}

/// Reads records again. Counts the runs of each chunk, which number them.
#[derive(Debug)]
pub(super) struct PathReplay {
    id: i64,
    chunk: u32,
    /// Bytes of a row of attributes.
    size: usize,
    /// Number of runs of each chunk so far.
    ends: Vec<u32>,
    runs: Vec<(u32, u32)>,
}

/// A record.
pub(super) struct LoggedPath<'a> {
    pub(super) id: i64,
    pub(super) row: &'a [u8],
    /// Chunk and fragment number of each run.
    pub(super) runs: &'a [(u32, u32)],
}

impl PathReplay {
    pub(super) fn new(size: usize, chunks: usize) -> Self {
        Self {
            id: 0,
            chunk: 0,
            size,
            ends: vec![0; chunks],
            runs: Vec::new(),
        }
    }

    /// Reads the next record of `bytes`; `None` if `bytes` ends inside it, and then leaves `bytes`
    /// unchanged.
    pub(super) fn next<'a, 'b: 'a>(
        &'a mut self,
        bytes: &mut &'b [u8],
    ) -> Result<Option<LoggedPath<'a>>, BuildError> {
        let mut rest = *bytes;
        let Some(step) = varint(&mut rest)? else {
            return Ok(None);
        };
        let Some((row, after)) = rest.split_at_checked(self.size) else {
            return Ok(None);
        };
        rest = after;
        let Some(count) = varint(&mut rest)? else {
            return Ok(None);
        };
        self.runs.clear();
        let mut chunk = self.chunk;
        for _ in 0..count {
            let Some(step) = varint(&mut rest)? else {
                return Ok(None);
            };
            let next = i64::from(chunk).checked_add(unzigzag(step));
            let next = next.and_then(|next| u32::try_from(next).ok());
            chunk = next
                .filter(|next| (*next as usize) < self.ends.len())
                .ok_or_else(damaged)?;
            self.runs.push((chunk, 0));
        }
        for (chunk, number) in &mut self.runs {
            let end = &mut self.ends[*chunk as usize];
            *number = *end;
            *end = end.checked_add(1).ok_or_else(damaged)?;
        }
        self.chunk = chunk;
        self.id = self.id.wrapping_add(1).wrapping_add(unzigzag(step));
        *bytes = rest;
        Ok(Some(LoggedPath {
            id: self.id,
            row,
            runs: &self.runs,
        }))
    }

    /// Returns the number of runs of each chunk in the records so far.
    pub(super) fn ends(&self) -> &[u32] {
        &self.ends
    }
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Appends seven bits at a time, the lowest first.
fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads a number; `None` if the bytes end inside it.
fn varint(bytes: &mut &[u8]) -> Result<Option<u64>, BuildError> {
    let mut number = 0u64;
    for (at, byte) in bytes.iter().enumerate() {
        let bits = u64::from(byte & 0x7f);
        let shift = at as u32 * 7;
        if shift > 63 || (shift == 63 && bits > 1) {
            return Err(damaged());
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            *bytes = &bytes[at + 1..];
            return Ok(Some(number));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<(i64, [u8; 2], Vec<u32>)> {
        vec![
            (0, [1, 2], vec![0, 3, 0]),
            (1, [3, 4], vec![]),
            (i64::MAX, [5, 6], vec![2]),
            (i64::MIN, [7, 8], (0..4).cycle().take(300).collect()),
        ]
    }

    fn attributes() -> [Field; 1] {
        [Field {
            name: "a".to_owned(),
            numbers: Some((zvf_format::numeric::Kind::UInt8, 2)),
            words: Vec::new(),
            missing: false,
        }]
    }

    fn log() -> PathLog {
        let mut log = PathLog::new(&attributes());
        for (id, row, runs) in records() {
            log.push(id, &row, &runs);
        }
        log
    }

    #[test]
    fn paths_are_read_again_in_blocks_of_any_size() {
        let log = log();
        for block in [1, 2, 7, 1000] {
            let mut replay = PathReplay::new(2, 4);
            let (mut ends, mut found, mut left) = ([0u32; 4], Vec::new(), Vec::new());
            for bytes in log.bytes.chunks(block) {
                left.extend_from_slice(bytes);
                let mut rest = left.as_slice();
                while let Some(path) = replay.next(&mut rest).unwrap() {
                    let runs = path
                        .runs
                        .iter()
                        .map(|(chunk, number)| {
                            assert_eq!(*number, ends[*chunk as usize]);
                            ends[*chunk as usize] += 1;
                            *chunk
                        })
                        .collect();
                    found.push((path.id, [path.row[0], path.row[1]], runs));
                }
                left = rest.to_vec();
            }
            assert_eq!(found, records());
            assert_eq!(replay.ends(), ends);
        }
    }

    #[test]
    fn paths_are_counted_and_cut_logs_are_rejected() {
        let log = log();
        let counts = log.counts;
        assert_eq!((counts.paths, counts.present, counts.runs), (4, 3, 304));
        assert!(!counts.ascends && !counts.is_contiguous());
        assert_eq!(
            PathLog::parse(log.bytes.clone(), &attributes(), 4).unwrap(),
            log
        );
        let fails = |bytes: Vec<u8>, chunks| PathLog::parse(bytes, &attributes(), chunks).is_err();
        assert!(fails(log.bytes.clone(), 3));
        assert!(fails(log.bytes[..log.bytes.len() - 1].to_vec(), 4));
        assert!(fails(vec![0xff; 11], 4));
        let mut few = PathLog::default();
        for id in 5..8 {
            few.push(id, &[], &[0]);
        }
        assert!(few.counts.is_contiguous());
        // An id, a number of runs and a run: one byte each, but for the first id.
        assert_eq!(few.take().len(), 9);
    }
}
