//! Collects fragments and encodes them.

use alloc::vec::Vec;
use core::ops::Range;

use zerocopy::{
    IntoBytes,
    little_endian::{I64, U16, U32, U64},
};

use super::{MAGIC, RawHeader, RawRange, Rows, VERSION};
use crate::{run, sign::Sign};

/// Collects fragments and encodes them in the one canonical form.
///
/// The canonical form is that of the reference writer: a range stays a range even if it is empty, a
/// non-empty list that ascends one by one becomes a range, and any other list, including an empty
/// one, stays a list.
#[derive(Clone, Debug, Default)]
pub struct FragmentIndexBuilder {
    len: u32,
    bitmap: Vec<U64>,
    ranges: Vec<RawRange>,
    ends: Vec<U32>,
    rows: Vec<I64>,
}

/// A fragment that the format cannot represent. The builder is left unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FragmentIndexLimit {
    /// The index already holds 2^32 − 1 fragments.
    #[error("an index holds at most 4294967295 fragments")]
    Fragments,
    /// The lists would hold 2^32 rows or more.
    #[error("the lists of an index hold at most 4294967295 rows")]
    ListRows,
    /// A row is not below 2^63.
    #[error("row {0} is past the format's 63 bits")]
    Row(u64),
    /// A range ends before it starts.
    #[error("range {start}..{end} ends before it starts")]
    Inverted {
        /// Its first row.
        start: u64,
        /// One past its last row.
        end: u64,
    },
}

impl FragmentIndexBuilder {
    /// Appends a contiguous fragment; it may be empty.
    ///
    /// # Errors
    ///
    /// [`FragmentIndexLimit`] if a limit of the format is exceeded.
    pub fn push_range(&mut self, rows: Range<u64>) -> Result<&mut Self, FragmentIndexLimit> {
        let Range { start, end } = rows;
        let count = end
            .checked_sub(start)
            .ok_or(FragmentIndexLimit::Inverted { start, end })?;
        let last = i64::try_from(end).map_err(|_| FragmentIndexLimit::Row(end))?;
        let range = RawRange {
            start: I64::new(start.signed()),
            count: I64::new(count.signed()),
        };
        debug_assert!(last >= 0 && range.sign() >= 0);
        self.push_kind(true)?;
        self.ranges.push(range);
        Ok(self)
    }

    /// Appends a fragment that lists its rows, in the order given.
    ///
    /// # Errors
    ///
    /// [`FragmentIndexLimit`] if a limit of the format is exceeded.
    pub fn push_list(&mut self, rows: &[u64]) -> Result<&mut Self, FragmentIndexLimit> {
        self.push_list_of(rows.iter().copied())
    }

    /// Appends a fragment taken from another index.
    ///
    /// # Errors
    ///
    /// [`FragmentIndexLimit`] if a limit of the format is exceeded.
    pub fn push(&mut self, rows: &Rows<'_>) -> Result<&mut Self, FragmentIndexLimit> {
        match rows {
            Rows::Range(rows) => self.push_range(rows.clone()),
            Rows::List(rows) => self.push_list_of(rows.iter()),
        }
    }

    fn push_list_of(
        &mut self,
        rows: impl ExactSizeIterator<Item = u64> + Clone,
    ) -> Result<&mut Self, FragmentIndexLimit> {
        if let Some(run) = run::ascending(rows.clone()) {
            return self.push_range(run);
        }
        if let Some(row) = rows.clone().find(|&row| i64::try_from(row).is_err()) {
            return Err(FragmentIndexLimit::Row(row));
        }
        let end = self.rows.len().checked_add(rows.len());
        let end = end
            .and_then(|end| u32::try_from(end).ok())
            .ok_or(FragmentIndexLimit::ListRows)?;
        self.push_kind(false)?;
        self.ends.push(U32::new(end));
        self.rows.extend(rows.map(|row| I64::new(row.signed())));
        Ok(self)
    }

    fn push_kind(&mut self, is_range: bool) -> Result<(), FragmentIndexLimit> {
        let len = self
            .len
            .checked_add(1)
            .ok_or(FragmentIndexLimit::Fragments)?;
        if self.len % 64 == 0 {
            self.bitmap.push(U64::ZERO);
        }
        if let Some(word) = self.bitmap.last_mut() {
            let bit = u64::from(is_range).wrapping_shl(self.len % 64);
            word.set(word.get() | bit);
        }
        self.len = len;
        Ok(())
    }

    /// Encodes the fragments pushed so far.
    pub fn finish(&self) -> Vec<u8> {
        let header = RawHeader {
            magic: MAGIC,
            version: U16::new(VERSION),
            flags: U16::ZERO,
            fragments: U32::new(self.len),
            // At most `len` of them.
            ranges: U32::new(u32::try_from(self.ranges.len()).unwrap_or(u32::MAX)),
        };
        let first: &[u8] = match self.len {
            0 => &[],
            _ => &[0; 4],
        };
        [
            header.as_bytes(),
            self.bitmap.as_bytes(),
            self.ranges.as_bytes(),
            first,
            self.ends.as_bytes(),
            self.rows.as_bytes(),
        ]
        .concat()
    }
}
