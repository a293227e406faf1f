//! Cross-chunk record table of generations 0.6 and 0.7.

use core::fmt;

use zerocopy::{FromBytes, little_endian::I64};

use super::LinkWidth;
use crate::{int64s::Int64s, sign::Sign};

/// The blob `cross_chunk_links/<delta>/data` of generations 0.6 and 0.7.
///
/// Each record is L endpoints in input order; each endpoint is `sid_ndim`
/// chunk coordinates and a vertex row in that chunk, i64 each.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CrossChunkTable<'a> {
    width: LinkWidth,
    endpoint: usize,
    record: usize,
    values: &'a [I64],
}

impl<'a> CrossChunkTable<'a> {
    /// Checks `bytes` and borrows the records in them.
    ///
    /// The count is not stored here but in the family's `num_links`; compare it with
    /// [`len`](Self::len).
    ///
    /// # Errors
    ///
    /// [`CrossChunkTableError`] if the bytes are not a whole number of records or a vertex row is
    /// negative.
    pub fn parse(
        bytes: &'a [u8],
        width: LinkWidth,
        sid_ndim: usize,
    ) -> Result<Self, CrossChunkTableError> {
        let length = CrossChunkTableError::Length(bytes.len());
        let values = <[I64]>::ref_from_bytes(bytes).map_err(|_| length)?;
        let endpoint = sid_ndim.checked_add(1).ok_or(length)?;
        let record = endpoint.checked_mul(width.get()).ok_or(length)?;
        let table = Self {
            width,
            endpoint,
            record,
            values,
        };
        if !values.chunks_exact(record.max(1)).remainder().is_empty() {
            return Err(length);
        }
        let negative = |record: TableRecord<'_>| {
            let mut endpoints = record.values.chunks_exact(endpoint.max(1));
            endpoints.any(|endpoint| endpoint.last().is_some_and(|vertex| vertex.get() < 0))
        };
        match table.iter().position(negative) {
            Some(record) => Err(CrossChunkTableError::Vertex { record }),
            None => Ok(table),
        }
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.values.chunks_exact(self.record.max(1)).len()
    }

    /// Returns whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns record `at`, or `None` past the end.
    pub fn get(&self, at: usize) -> Option<TableRecord<'a>> {
        let start = at.checked_mul(self.record)?;
        let values = self.values.get(start..start.checked_add(self.record)?)?;
        Some(TableRecord {
            endpoint: self.endpoint,
            values,
        })
    }

    /// Returns the records in stored order, which is the input order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = TableRecord<'a>> + Clone + use<'a> {
        let endpoint = self.endpoint;
        let records = self.values.chunks_exact(self.record.max(1));
        records.map(move |values| TableRecord { endpoint, values })
    }

    /// Returns the number of endpoints of every record.
    pub fn width(&self) -> LinkWidth {
        self.width
    }
}

impl fmt::Debug for CrossChunkTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// One record of a [`CrossChunkTable`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TableRecord<'a> {
    endpoint: usize,
    values: &'a [I64],
}

impl<'a> TableRecord<'a> {
    /// Returns the endpoints in input order.
    pub fn endpoints(&self) -> impl ExactSizeIterator<Item = Endpoint<'a>> + Clone + use<'a> {
        let endpoints = self.values.chunks_exact(self.endpoint.max(1));
        endpoints.map(|values| match values {
            [chunk @ .., vertex] => Endpoint {
                chunk: Int64s::new(chunk),
                vertex: vertex.get().unsigned(),
            },
            [] => Endpoint {
                chunk: Int64s::new(&[]),
                vertex: 0,
            },
        })
    }
}

impl fmt::Debug for TableRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.endpoints()).finish()
    }
}

/// A vertex that a link names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint<'a> {
    /// Coordinates of its chunk.
    pub chunk: Int64s<'a>,
    /// Its row in that chunk.
    pub vertex: u64,
}

/// The reason why bytes are not a cross-chunk record table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CrossChunkTableError {
    /// This number of bytes is not a whole number of records.
    #[error("{0} bytes are not a whole number of cross-chunk records")]
    Length(usize),
    /// A vertex row is negative.
    #[error("record {record} refers to a negative vertex row")]
    Vertex {
        /// The record at fault.
        record: usize,
    },
}
