//! The index of chunks.

use zerocopy::{FromBytes, little_endian::U64};

use super::B2ndError;
use crate::blosc::{
    BloscChunk, BloscCodec, BloscFilter, ChunkEncoder, ChunkError, Decoder, SpecialKind, Split,
};

/// Length of an entry in bytes.
const ENTRY: u32 = 8;
/// The flag of an entry whose chunk is not stored.
const SPECIAL: u64 = 1 << 63;

/// The decoded index.
#[derive(Clone, Debug)]
pub(super) enum Index {
    /// One entry for all chunks, as in an array without data.
    Same(u64),
    /// One entry per chunk.
    Each(Vec<u64>),
}

/// The index entry of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// Offset of the chunk from the end of the header; in a sparse directory, the number of its
    /// file.
    At(u64),
    /// A special chunk that is not stored.
    Special(SpecialKind),
}

impl Index {
    /// Parses the index chunk of an array with this number of chunks.
    ///
    /// # Errors
    ///
    /// If the index is damaged, or needs more than `budget` bytes.
    pub(super) fn parse(bytes: &[u8], chunks: u64, budget: u64) -> Result<Self, IndexError> {
        use B2ndError as E;
        if chunks == 0 {
            return Ok(Self::Each(Vec::new()));
        }
        let chunk = BloscChunk::parse(bytes).map_err(E::Index)?;
        let nbytes = chunk.header().nbytes();
        if chunks.checked_mul(u64::from(ENTRY)) != Some(u64::from(nbytes)) {
            let found = nbytes;
            return Err(E::IndexLen { found, chunks }.into());
        }
        let mut decoder = Decoder::default();
        if chunk.header().special().is_some() {
            let mut entry = [0; 8];
            let filled = chunk.fill(ENTRY, &mut entry);
            filled.map_err(E::Index)?;
            return Ok(Self::Same(u64::from_le_bytes(entry)));
        }
        if u64::from(nbytes) > budget {
            return Err(IndexError::Budget(u64::from(nbytes)));
        }
        let len = usize::try_from(nbytes).map_err(|_| IndexError::Budget(nbytes.into()))?;
        let mut table = vec![0; len];
        let decoded = chunk.decode(ENTRY, &mut decoder, &mut table);
        decoded.map_err(E::Index)?;
        let entries =
            <[U64]>::ref_from_bytes(&table).map_err(|_| E::Index(ChunkError::Truncated))?;
        Ok(Self::Each(
            entries.iter().map(|entry| entry.get()).collect(),
        ))
    }

    /// Returns the entry of a chunk.
    ///
    /// # Errors
    ///
    /// [`B2ndError::Entry`] if the entry is neither an offset nor a known kind.
    pub(super) fn get(&self, chunk: u64) -> Result<Entry, B2ndError> {
        let entry = match self {
            Self::Same(entry) => *entry,
            Self::Each(entries) => {
                let at = usize::try_from(chunk).ok();
                let entry = at.and_then(|at| entries.get(at));
                *entry.unwrap_or(&u64::MAX)
            }
        };
        if entry & SPECIAL == 0 {
            return Ok(Entry::At(entry));
        }
        match entry.to_be_bytes() {
            [0x81, ..] => Ok(Entry::Special(SpecialKind::Zeros)),
            [0x82, ..] => Ok(Entry::Special(SpecialKind::Nan)),
            [0x84, ..] => Ok(Entry::Special(SpecialKind::Uninit)),
            _ => Err(B2ndError::Entry { chunk, entry }),
        }
    }
}

/// An error in reading the index.
#[derive(Debug)]
pub(super) enum IndexError {
    /// The index is damaged.
    Frame(B2ndError),
    /// The index needs this many bytes, which exceeds the budget.
    Budget(u64),
}

impl From<B2ndError> for IndexError {
    fn from(error: B2ndError) -> Self {
        Self::Frame(error)
    }
}

/// The entry of a chunk of zeros.
pub(super) const ZEROS: u64 = 0x81 << 56;

/// Length of a block of the index chunk in bytes.
const BLOCK: usize = 16 << 10;

/// Encodes entries as an index chunk; empty if there are no entries.
pub(super) fn encode(entries: &[u64]) -> Result<Vec<u8>, B2ndError> {
    let bytes: Vec<u8> = entries
        .iter()
        .flat_map(|entry| entry.to_le_bytes())
        .collect();
    if bytes.is_empty() {
        return Ok(bytes);
    }
    let block = u32::try_from(bytes.len().min(BLOCK)).unwrap_or(u32::MAX);
    let encoder = ChunkEncoder::new(BloscCodec::Lz4, ENTRY, block)
        .with_split(Split::Never)
        .with_filters(&[BloscFilter::Shuffle])?;
    Ok(encoder.encode(&bytes)?)
}
