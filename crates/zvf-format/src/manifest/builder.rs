//! Collects blocks and encodes them.

use alloc::vec::Vec;
use core::ops::Range;

use super::{Block, FragmentRef, LIST, RANGE, SINGLE, fragment_run};

/// Collects the blocks of one object and encodes them.
///
/// The canonical form is that of the reference writer: one number stays mode 0, a range stays mode
/// 1 even if it is empty or has one fragment, and a list that ascends one by one, including a
/// single entry, becomes a range. Any other list, including an empty one, is mode 2.
#[derive(Clone, Debug)]
pub struct ObjectManifestBuilder {
    sid_ndim: usize,
    blocks: u32,
    body: Vec<u8>,
}

/// A block that the format cannot represent. The builder is left unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestLimit {
    /// The number of coordinates of the chunk differs from the manifest's.
    #[error("a chunk of {found} coordinates in a manifest of {expected}")]
    Coordinates {
        /// The manifest's `sid_ndim`.
        expected: usize,
        /// Coordinates given.
        found: usize,
    },
    /// The manifest already holds 2^32 − 1 blocks.
    #[error("a manifest holds at most 4294967295 blocks")]
    Blocks,
    /// The list has 2^32 entries or more.
    #[error("a block lists at most 4294967295 fragments")]
    List,
    /// The range ends before it starts.
    #[error("range {start}..{end} ends before it starts")]
    Inverted {
        /// Its first fragment.
        start: u32,
        /// One past its last fragment.
        end: u32,
    },
}

impl ObjectManifestBuilder {
    /// Creates a builder without blocks, for chunk keys of `sid_ndim` numbers.
    pub fn new(sid_ndim: usize) -> Self {
        Self {
            sid_ndim,
            blocks: 0,
            body: Vec::new(),
        }
    }

    /// Appends one fragment of `chunk`.
    ///
    /// # Errors
    ///
    /// [`ManifestLimit`] if the format cannot represent it.
    pub fn push_single(
        &mut self,
        chunk: &[i64],
        fragment: u32,
    ) -> Result<&mut Self, ManifestLimit> {
        self.begin(chunk.iter().copied(), SINGLE)?;
        self.put(fragment);
        Ok(self)
    }

    /// Appends consecutive fragments of `chunk`.
    ///
    /// # Errors
    ///
    /// [`ManifestLimit`] if the format cannot represent it.
    pub fn push_range(
        &mut self,
        chunk: &[i64],
        fragments: Range<u32>,
    ) -> Result<&mut Self, ManifestLimit> {
        self.range(chunk.iter().copied(), fragments)
    }

    /// Appends fragments of `chunk` in the order given.
    ///
    /// # Errors
    ///
    /// [`ManifestLimit`] if the format cannot represent it.
    pub fn push_list(
        &mut self,
        chunk: &[i64],
        fragments: &[u32],
    ) -> Result<&mut Self, ManifestLimit> {
        self.list(chunk.iter().copied(), fragments.iter().copied())
    }

    /// Appends a block taken from another manifest.
    ///
    /// # Errors
    ///
    /// [`ManifestLimit`] if the format cannot represent it.
    pub fn push(&mut self, block: &Block<'_>) -> Result<&mut Self, ManifestLimit> {
        let chunk = block.chunk.iter();
        match &block.fragments {
            FragmentRef::Single(fragment) => {
                self.begin(chunk, SINGLE)?;
                self.put(*fragment);
                Ok(self)
            }
            FragmentRef::Range(fragments) => self.range(chunk, fragments.clone()),
            FragmentRef::List(fragments) => self.list(chunk, fragments.iter()),
        }
    }

    /// Encodes the blocks pushed so far.
    pub fn finish(&self) -> Vec<u8> {
        [&self.blocks.to_le_bytes(), self.body.as_slice()].concat()
    }

    fn range(
        &mut self,
        chunk: impl ExactSizeIterator<Item = i64>,
        fragments: Range<u32>,
    ) -> Result<&mut Self, ManifestLimit> {
        let Range { start, end } = fragments;
        let count = end
            .checked_sub(start)
            .ok_or(ManifestLimit::Inverted { start, end })?;
        self.begin(chunk, RANGE)?;
        self.put(start);
        self.put(count);
        Ok(self)
    }

    fn list(
        &mut self,
        chunk: impl ExactSizeIterator<Item = i64>,
        fragments: impl ExactSizeIterator<Item = u32> + Clone,
    ) -> Result<&mut Self, ManifestLimit> {
        if let Some(run) = fragment_run(fragments.clone()) {
            return self.range(chunk, run);
        }
        let count = u32::try_from(fragments.len()).map_err(|_| ManifestLimit::List)?;
        self.begin(chunk, LIST)?;
        self.body.extend_from_slice(&count.to_le_bytes());
        for fragment in fragments {
            self.put(fragment);
        }
        Ok(self)
    }

    fn begin(
        &mut self,
        chunk: impl ExactSizeIterator<Item = i64>,
        mode: u8,
    ) -> Result<(), ManifestLimit> {
        let (expected, found) = (self.sid_ndim, chunk.len());
        if found != expected {
            return Err(ManifestLimit::Coordinates { expected, found });
        }
        let blocks = self.blocks.checked_add(1).ok_or(ManifestLimit::Blocks)?;
        for coordinate in chunk {
            self.body.extend_from_slice(&coordinate.to_le_bytes());
        }
        self.body.push(mode);
        self.blocks = blocks;
        Ok(())
    }

    fn put(&mut self, number: u32) {
        let number = i64::from(number);
        self.body.extend_from_slice(&number.to_le_bytes());
    }
}
