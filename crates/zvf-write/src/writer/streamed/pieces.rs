//! Pieces: the rows, or links, of a share that belong to one part of the store.
//!
//! There are as many pieces as shares times parts, and most of them are small. The pieces of a share
//! are therefore joined in bundles, a file of the job each, and an index tells where the pieces of
//! each part are. The index is fixed-width, so that a task reads only the entries of its own parts:
//!
//! | bytes | content |
//! |---|---|
//! | 8 (P + 1) | the number of entries before each of P parts, and of all |
//! | 32 for each entry | share, bundle, start and length, by part and share |
//!
//! All numbers are unsigned, of 8 bytes, little-endian.

use core::ops::Range;
use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read as _, Seek as _, SeekFrom, Write as _},
};

use bytes::Bytes;
use serde_json::{Value, json};
use zvf_build::large::PieceShift;
use zvf_dataset::{Failure, TaskPlanError};

use crate::{job::Job, task_runner::scratch_error};

/// Size of a number in the index.
const NUMBER: u64 = 8;
/// Size of an entry.
const ENTRY: u64 = 4 * NUMBER;

/// The pieces of one share while the share is divided, in a temporary file.
pub(super) struct PieceFile {
    file: File,
    end: usize,
    /// The ranges of each part, in the order of its rows.
    parts: BTreeMap<usize, Vec<Range<usize>>>,
}

impl PieceFile {
    pub(super) fn new() -> Result<Self, Failure> {
        Ok(Self {
            file: tempfile::tempfile().map_err(failed)?,
            end: 0,
            parts: BTreeMap::new(),
        })
    }

    /// Appends rows to the piece of a part.
    pub(super) fn append(&mut self, part: usize, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(failed)?;
        let start = self.end;
        self.end += bytes.len();
        self.parts.entry(part).or_default().push(start..self.end);
        Ok(())
    }

    /// Puts the pieces into a job, in bundles that end when they have `size` bytes. Returns the
    /// parts with their lengths, by bundle, for [`PieceIndex::add`].
    pub(super) async fn put(
        mut self,
        job: &Job,
        kind: PieceKind,
        share: usize,
        size: usize,
    ) -> Result<Value, Failure> {
        let mut bundles = Vec::new();
        let mut parts = core::mem::take(&mut self.parts).into_iter().peekable();
        while parts.peek().is_some() {
            let (mut bytes, mut lengths) = (Vec::new(), Vec::new());
            while bytes.len() < size
                && let Some((part, ranges)) = parts.next()
            {
                let before = bytes.len();
                for range in ranges {
                    let start = bytes.len();
                    bytes.resize(start + range.len(), 0);
                    let found = self.file.seek(SeekFrom::Start(range.start as u64));
                    found.map_err(failed)?;
                    self.file.read_exact(&mut bytes[start..]).map_err(failed)?;
                }
                lengths.push((part, bytes.len() - before));
            }
            let name = kind.bundle(share as u64, bundles.len() as u64);
            job.put(&name, bytes.into()).await?;
            bundles.push(lengths);
        }
        Ok(json!(bundles))
    }
}

fn failed(source: std::io::Error) -> Failure {
    scratch_error(&std::env::temp_dir(), source)
}

/// Contents of pieces.
#[derive(Clone, Copy)]
pub(super) enum PieceKind {
    Rows,
    Links,
}

impl PieceKind {
    fn bundle(self, share: u64, bundle: u64) -> String {
        format!("{}-{share}-{bundle}", self.name())
    }

    fn index(self) -> String {
        format!("{}-index", self.name())
    }

    fn name(self) -> &'static str {
        match self {
            Self::Rows => "pieces",
            Self::Links => "links",
        }
    }
}

/// The place of a piece in the files of a job.
#[derive(Clone, Copy)]
struct PieceEntry {
    share: u64,
    bundle: u64,
    start: u64,
    length: u64,
}

impl PieceEntry {
    fn numbers(self) -> [u64; 4] {
        [self.share, self.bundle, self.start, self.length]
    }

    fn parse(bytes: &[u8]) -> Vec<Self> {
        let numbers = numbers(bytes);
        let entries = numbers
            .as_chunks()
            .0
            .iter()
            .map(|[share, bundle, start, length]| Self {
                share: *share,
                bundle: *bundle,
                start: *start,
                length: *length,
            });
        entries.collect()
    }
}

/// Places of the pieces of each part, in the order of the shares.
#[derive(Default)]
pub(super) struct PieceIndex {
    parts: BTreeMap<u64, Vec<PieceEntry>>,
}

impl PieceIndex {
    /// Adds the pieces of the next share, as [`PieceFile::put`] describes them. Returns `None` if
    /// `bundles` is not such a description.
    pub(super) fn add(&mut self, share: usize, bundles: &Value) -> Option<()> {
        for (bundle, lengths) in bundles.as_array()?.iter().enumerate() {
            let mut start = 0_u64;
            for piece in lengths.as_array()? {
                let length = piece[1].as_u64()?;
                let of_part = self.parts.entry(piece[0].as_u64()?).or_default();
                of_part.push(PieceEntry {
                    share: share as u64,
                    bundle: bundle as u64,
                    start,
                    length,
                });
                start = start.checked_add(length)?;
            }
        }
        Some(())
    }

    /// Returns the parts that have pieces.
    pub(super) fn parts(&self) -> Vec<u64> {
        self.parts.keys().copied().collect()
    }

    /// Puts the index of these parts into a job.
    pub(super) async fn put(
        &self,
        job: &Job,
        kind: PieceKind,
        parts: &[u64],
    ) -> Result<(), Failure> {
        let none = Vec::new();
        let of_parts: Vec<_> = parts
            .iter()
            .map(|part| self.parts.get(part).unwrap_or(&none))
            .collect();
        let mut bytes = Vec::new();
        let mut before = 0_u64;
        bytes.extend(before.to_le_bytes());
        for entries in &of_parts {
            before += entries.len() as u64;
            bytes.extend(before.to_le_bytes());
        }
        for entry in of_parts.into_iter().flatten() {
            bytes.extend(entry.numbers().into_iter().flat_map(u64::to_le_bytes));
        }
        job.put(&kind.index(), bytes.into()).await
    }
}

/// The entries of some parts of an index.
pub(super) struct PartPieces {
    kind: PieceKind,
    parts: BTreeMap<usize, Vec<PieceEntry>>,
}

impl PartPieces {
    /// Reads the entries of some of `all` parts, which are numbered from 0.
    pub(super) async fn read(
        job: &Job,
        kind: PieceKind,
        parts: &[usize],
        all: usize,
    ) -> Result<Self, Failure> {
        let invalid = || job.problem(TaskPlanError::Invalid);
        let name = kind.index();
        let ends = parts.iter().map(|part| {
            let at = NUMBER * *part as u64;
            (name.clone(), at..at + 2 * NUMBER)
        });
        let ends = job.read(ends.collect()).await?;
        let first = NUMBER * (all as u64 + 1);
        let at = |entry: u64| entry.checked_mul(ENTRY)?.checked_add(first);
        let mut ranges = Vec::with_capacity(parts.len());
        for ends in &ends {
            let ends = numbers(ends);
            let [start, end] = ends[..] else {
                return Err(invalid());
            };
            let range = at(start).zip(at(end)).filter(|(start, end)| start <= end);
            let (start, end) = range.ok_or_else(invalid)?;
            ranges.push((name.clone(), start..end));
        }
        let found = job.read(ranges).await?;
        let entries = found.iter().map(|bytes| PieceEntry::parse(bytes));
        Ok(Self {
            kind,
            parts: parts.iter().copied().zip(entries).collect(),
        })
    }

    /// Reads the pieces of a part from all shares.
    pub(super) async fn pieces(
        &self,
        job: &Job,
        part: usize,
    ) -> Result<Vec<(usize, Bytes)>, Failure> {
        let entries = self.parts.get(&part).map_or(&[][..], Vec::as_slice);
        let mut shares = Vec::with_capacity(entries.len());
        let mut ranges = Vec::with_capacity(entries.len());
        for entry in entries {
            let share = usize::try_from(entry.share);
            shares.push(share.map_err(|_| job.problem(TaskPlanError::Invalid))?);
            let end = entry
                .start
                .checked_add(entry.length)
                .ok_or_else(|| job.problem(TaskPlanError::Invalid))?;
            ranges.push((
                self.kind.bundle(entry.share, entry.bundle),
                entry.start..end,
            ));
        }
        let pieces = job.read(ranges).await?;
        Ok(shares.into_iter().zip(pieces).collect())
    }
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    let numbers = bytes.as_chunks().0.iter();
    numbers.map(|number| u64::from_le_bytes(*number)).collect()
}

/// The changes that make the pieces of shares continue each other. Those that fit are held.
pub(super) struct PieceShifts {
    held: BTreeMap<usize, PieceShift>,
    /// Number of bytes that may still be held.
    room: usize,
}

impl PieceShifts {
    pub(super) fn new(room: usize) -> Self {
        Self {
            held: BTreeMap::new(),
            room,
        }
    }

    /// Applies the change of a share to one of its pieces.
    pub(super) async fn apply(
        &mut self,
        job: &Job,
        share: usize,
        piece: Bytes,
    ) -> Result<Vec<u8>, Failure> {
        if let Some(shift) = self.held.get(&share) {
            return Ok(shift.apply(piece.into())?);
        }
        let bytes = job.get(&shift_name(share)).await?;
        let parsed =
            serde_json::from_slice(&bytes).map_err(|_| job.problem(TaskPlanError::Invalid))?;
        let shift = PieceShift::from_json(&parsed)?;
        let shifted = shift.apply(piece.into())?;
        // A number takes at most about four times its length in JSON.
        if let Some(room) = self.room.checked_sub(4 * bytes.len()) {
            self.room = room;
            self.held.insert(share, shift);
        }
        Ok(shifted)
    }
}

/// Returns the name of the change of the pieces of a share.
pub(super) fn shift_name(share: usize) -> String {
    format!("shift-{share}")
}
