//! The entry of one object in the inventory.

use core::ops::Range;

use bytes::Bytes;

use crate::io::{ByteRange, FetchedRange, SealError};

/// Size of the blocks that have a checksum each, so that a part of an object can be checked without
/// reading the rest.
const BLOCK_BYTES: usize = 16 << 10;
pub(super) const BLOCK: u64 = 16 << 10;

/// The size and the checksums of an object.
///
/// The checksum is the CRC-32 of gzip. CRC-32C cannot distinguish cells: it is equal for all bytes
/// of one length that end with their own CRC-32C, as most cells do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SealEntry {
    pub(crate) size: u64,
    /// The checksum of each block.
    pub(crate) blocks: Vec<u32>,
    /// The last four bytes of an object of several blocks, 0 for others. The index of a shard ends
    /// with its checksum, and is read without the rest of its block.
    pub(crate) tail: u32,
    /// The [row table](super::RowTable) of an entry of this class, which has `size` bytes and no blocks.
    pub(crate) rows: Bytes,
}

/// The extent of a successful check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckExtent {
    /// Every requested byte equals the object of the inventory.
    Whole,
    /// The first or last requested block was not fetched whole.
    InPart,
}

impl SealEntry {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let blocks: Vec<u32> = bytes.chunks(BLOCK_BYTES).map(crc32fast::hash).collect();
        let tail = if blocks.len() > 1 { tail(bytes) } else { 0 };
        Self {
            size: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            blocks,
            tail,
            rows: Bytes::new(),
        }
    }

    /// Returns the entry of a row table.
    pub(crate) fn of_rows(rows: Bytes) -> Self {
        Self {
            size: u64::try_from(rows.len()).unwrap_or(u64::MAX),
            blocks: Vec::new(),
            tail: 0,
            rows,
        }
    }

    /// Returns the number of blocks of an object of `size` bytes.
    pub(crate) fn block_count(size: u64) -> u64 {
        size.div_ceil(BLOCK)
    }

    /// Checks fetched bytes; only the bytes in `wanted` are used.
    pub(crate) fn check(
        &self,
        fetched: &FetchedRange,
        wanted: &ByteRange,
    ) -> Result<CheckExtent, SealError> {
        if fetched.size != self.size {
            return Err(SealError::Size {
                listed: self.size,
                found: fetched.size,
            });
        }
        let length = u64::try_from(fetched.bytes.len()).unwrap_or(u64::MAX);
        let end = fetched.start.saturating_add(length);
        let mut checked: Option<Range<u64>> = None;
        let first = fetched.start.div_ceil(BLOCK);
        let skipped = usize::try_from(first).map_err(|_| SealError::Contents)?;
        // No block is checked if the fetched range starts inside the last one.
        let blocks = self.blocks.get(skipped..).unwrap_or(&[]);
        for (block, listed) in (first..).zip(blocks) {
            let start = block.saturating_mul(BLOCK);
            let stop = start.saturating_add(BLOCK).min(self.size);
            if stop > end {
                break;
            }
            let bytes = ByteRange::Bounded(start..stop);
            let bytes = fetched.slice(&bytes).ok_or(SealError::Contents)?;
            if crc32fast::hash(&bytes) != *listed {
                return Err(SealError::Contents);
            }
            checked = Some(checked.map_or(start, |range| range.start)..stop);
        }
        let wanted = self.resolve(wanted);
        let is_whole = wanted.is_empty()
            || checked.is_some_and(|range| range.start <= wanted.start && range.end >= wanted.end);
        if is_whole {
            return Ok(CheckExtent::Whole);
        }
        let is_tail = self.blocks.len() > 1 && end == self.size && length >= 4;
        if is_tail && tail(&fetched.bytes) != self.tail {
            return Err(SealError::Contents);
        }
        // An index of a shard has its own checksum, which is in the tail.
        Ok(if is_tail && wanted.end == self.size {
            CheckExtent::Whole
        } else {
            CheckExtent::InPart
        })
    }

    /// Returns the range of whole blocks that contains `range`.
    pub(crate) fn blocks_around(&self, range: &ByteRange) -> Range<u64> {
        let range = self.resolve(range);
        let start = round_down(range.start);
        start..round_up(range.end).min(self.size).max(start)
    }

    /// Returns the bytes of the object that `range` names.
    pub(crate) fn resolve(&self, range: &ByteRange) -> Range<u64> {
        match range {
            ByteRange::Full => 0..self.size,
            ByteRange::Bounded(range) => range.start..range.end.min(self.size),
            ByteRange::From(start) => *start..self.size,
            ByteRange::Suffix(bytes) => self.size.saturating_sub(*bytes)..self.size,
        }
    }
}

/// Returns the range of whole blocks that contains `range`, of an object of unknown size.
pub(crate) fn aligned(range: &ByteRange) -> ByteRange {
    match range {
        ByteRange::Bounded(range) => {
            ByteRange::Bounded(round_down(range.start)..round_up(range.end))
        }
        ByteRange::From(start) => ByteRange::From(round_down(*start)),
        ByteRange::Full => ByteRange::Full,
        ByteRange::Suffix(bytes) => ByteRange::Suffix(*bytes),
    }
}

fn round_down(at: u64) -> u64 {
    at.saturating_sub(at.checked_rem(BLOCK).unwrap_or_default())
}

fn round_up(at: u64) -> u64 {
    at.div_ceil(BLOCK).saturating_mul(BLOCK)
}

/// Returns the last four bytes.
fn tail(bytes: &[u8]) -> u32 {
    bytes
        .last_chunk::<4>()
        .map_or(0, |tail| u32::from_le_bytes(*tail))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn as_u64(length: usize) -> u64 {
        u64::try_from(length).unwrap()
    }

    fn fetched(bytes: &[u8], range: Range<u64>) -> FetchedRange {
        let whole = FetchedRange {
            start: 0,
            size: as_u64(bytes.len()),
            bytes: Bytes::copy_from_slice(bytes),
        };
        let start = range.start;
        let bytes = whole.slice(&ByteRange::Bounded(range)).unwrap();
        FetchedRange {
            start,
            bytes,
            ..whole
        }
    }

    #[test]
    fn each_changed_byte_of_each_read_range_is_found() {
        let bytes: Vec<u8> = (0..=250).cycle().take(40_000).collect();
        let entry = SealEntry::of(&bytes);
        assert_eq!(entry.blocks.len(), 3);
        let size = as_u64(bytes.len());
        let wanted = [
            ByteRange::Full,
            ByteRange::Bounded(16_000..17_000),
            ByteRange::Bounded(39_000..40_000),
            ByteRange::From(33_000),
        ];
        for wanted in wanted {
            let range = entry.blocks_around(&wanted);
            let whole = entry.check(&fetched(&bytes, range.clone()), &wanted);
            assert_eq!(whole, Ok(CheckExtent::Whole), "{wanted}");
            for at in range.clone().step_by(97).chain([range.end - 1]) {
                let mut changed = bytes.clone();
                *changed.get_mut(usize::try_from(at).unwrap()).unwrap() ^= 4;
                let found = entry.check(&fetched(&changed, range.clone()), &wanted);
                assert_eq!(found, Err(SealError::Contents), "{wanted} {at}");
            }
        }
        let mut shorter = bytes.clone();
        shorter.pop();
        let short = entry.check(&fetched(&shorter, 0..39_999), &ByteRange::Full);
        let (listed, found) = (size, size - 1);
        assert_eq!(short, Err(SealError::Size { listed, found }));
    }

    #[test]
    fn a_suffix_is_checked_by_its_last_bytes_or_in_part() {
        let bytes = vec![7_u8; 40_000];
        let entry = SealEntry::of(&bytes);
        let wanted = ByteRange::Suffix(100);
        let suffix = fetched(&bytes, 39_900..40_000);
        assert_eq!(entry.check(&suffix, &wanted), Ok(CheckExtent::Whole));
        let mut changed = bytes;
        *changed.last_mut().unwrap() = 0;
        let suffix = fetched(&changed, 39_900..40_000);
        assert_eq!(entry.check(&suffix, &wanted), Err(SealError::Contents));
        // The only block of a small object has no checksum for its end.
        let small = vec![1_u8; 200];
        let suffix = fetched(&small, 100..200);
        assert_eq!(
            SealEntry::of(&small).check(&suffix, &wanted),
            Ok(CheckExtent::InPart)
        );
    }

    #[test]
    fn cells_that_end_with_their_own_checksum_differ() {
        let cell = |byte: u8| {
            let mut bytes = vec![byte; 64];
            let checksum = crc32c::crc32c(&bytes);
            bytes.extend(checksum.to_le_bytes());
            bytes
        };
        assert_eq!(crc32c::crc32c(&cell(1)), crc32c::crc32c(&cell(2)));
        assert_ne!(SealEntry::of(&cell(1)), SealEntry::of(&cell(2)));
    }
}
