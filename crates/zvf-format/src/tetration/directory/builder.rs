//! Collects datasets and encodes their directory.

use alloc::{borrow::ToOwned, collections::BTreeSet, string::String, vec::Vec};

use zerocopy::{
    IntoBytes,
    little_endian::{U32, U64},
};

use super::{MAX_RANK, RawRecord, TetDtype, padding};

/// Collects datasets and encodes their directory: padding and reserved fields
/// are 0.
///
/// Stricter than the reference writer, which allows empty and duplicate names that its own queries
/// do not find.
#[derive(Clone, Debug, Default)]
pub struct DatasetDirectoryBuilder {
    names: BTreeSet<String>,
    len: u32,
    records: Vec<u8>,
}

/// A dataset that the directory cannot represent. The builder is left unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetLimit {
    /// The directory already holds 2^32 − 1 datasets.
    #[error("a directory holds at most 4294967295 datasets")]
    Datasets,
    /// The name is empty.
    #[error("a dataset needs a name")]
    EmptyName,
    /// The name takes 2^32 bytes or more.
    #[error("a name takes at most 4294967295 bytes")]
    LongName,
    /// A dataset of this name is already there.
    #[error("the name is already taken")]
    DuplicateName,
    /// The rank is not 1 to 8, or the two shapes differ in it.
    #[error(
        "shape of rank {shape} and chunk shape of rank {chunk_shape}; both must have the same rank, 1 to 8"
    )]
    Rank {
        /// Axes of the shape.
        shape: usize,
        /// Axes of the chunk shape.
        chunk_shape: usize,
    },
    /// A shape has a zero.
    #[error("shape or chunk shape is 0 on axis {axis}")]
    Extent {
        /// The first such axis.
        axis: usize,
    },
}

impl DatasetDirectoryBuilder {
    /// Appends a dataset. Its id is the number of datasets before it.
    ///
    /// # Errors
    ///
    /// [`DatasetLimit`] if a limit of the format is exceeded.
    pub fn push(
        &mut self,
        name: &str,
        dtype: TetDtype,
        shape: &[u64],
        chunk_shape: &[u64],
    ) -> Result<&mut Self, DatasetLimit> {
        use DatasetLimit as E;
        let (rank, chunk_rank) = (shape.len(), chunk_shape.len());
        if rank != chunk_rank || !(1..=MAX_RANK).contains(&rank) {
            return Err(E::Rank {
                shape: rank,
                chunk_shape: chunk_rank,
            });
        }
        let mut axes = shape.iter().zip(chunk_shape);
        if let Some(axis) = axes.position(|(&extent, &chunk)| extent == 0 || chunk == 0) {
            return Err(E::Extent { axis });
        }
        if name.is_empty() {
            return Err(E::EmptyName);
        }
        let name_len = u32::try_from(name.len()).map_err(|_| E::LongName)?;
        let len = self.len.checked_add(1).ok_or(E::Datasets)?;
        if !self.names.insert(name.to_owned()) {
            return Err(E::DuplicateName);
        }
        let head = RawRecord {
            name_len: U32::new(name_len),
            dtype: U32::new(dtype.tag()),
            // At most 8.
            rank: U32::new(u32::try_from(rank).unwrap_or(u32::MAX)),
            reserved: U32::ZERO,
        };
        self.len = len;
        self.records.extend_from_slice(head.as_bytes());
        self.records.extend_from_slice(name.as_bytes());
        let zeros = core::iter::repeat_n(0, padding(name.len()));
        self.records.extend(zeros);
        for &extent in shape.iter().chain(chunk_shape) {
            self.records.extend_from_slice(&extent.to_le_bytes());
        }
        Ok(self)
    }

    /// Returns the number of datasets so far.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns whether there is no dataset yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Encodes the datasets pushed so far: the length field and the records, or nothing if there is
    /// no dataset.
    pub fn finish(&self) -> Vec<u8> {
        if self.is_empty() {
            return Vec::new();
        }
        let blob_len = u64::try_from(self.records.len()).unwrap_or(u64::MAX);
        [U64::new(blob_len).as_bytes(), &self.records].concat()
    }
}
