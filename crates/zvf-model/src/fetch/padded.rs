//! Cells of padded arrays, joined from the chunks that hold their rows.

use core::{any::Any, ops::Range};
use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use zvf_format::numeric::{ByteOrder, Kind};

use super::{AnyArray, CellRef, CellRequest, CellSource, FetchError, FetchProblem, Fetched};
use crate::{
    array::Padded,
    key::Key,
    layout::GroupRole,
    metadata::{Excerpt, Fields, MetadataError, MetadataFault},
    zarr::Array,
};

/// Memory for the request of a chunk and its response, beside the bytes.
const REQUEST_BYTES: u64 = 512;

type FetchResult = Result<Option<Fetched>, FetchError>;

/// The cells of a padded array: all rows of a chunk of the grid, whichever chunks of the Zarr array
/// they are in.
#[derive(Debug)]
struct PaddedCells {
    array: AnyArray,
    /// Number of axes of the grid.
    axes: usize,
    /// Bytes of all rows of a cell.
    size: u64,
    /// Bytes of the rows in one chunk of the Zarr array.
    chunk: u64,
    /// A cell without any chunk is absent.
    is_optional: bool,
    /// An element that was never written; empty if the fill value is not of the array's type.
    fill: Vec<u8>,
}

impl CellSource for PaddedCells {
    fn node(&self) -> &Key {
        self.array.node()
    }

    fn metadata(&self) -> &Arc<Array> {
        self.array.metadata()
    }

    fn is_plain(&self) -> bool {
        self.array.is_plain()
    }
}

impl Padded {
    /// Returns the cells of the open `array`: for each chunk of the grid, all rows. The index of a cell
    /// is that of its first row.
    ///
    /// [`Port::cells`](super::Port::cells) joins a cell whose rows are in several chunks, as a writer
    /// leaves them that resizes the array, and takes the fill value for absent chunks. Cells of links
    /// without any chunk stay absent: nothing else tells that they have no rows.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if a chunk of the Zarr array has rows of several chunks of the grid, or a part
    /// of a row.
    pub fn cells(&self, array: AnyArray) -> Result<AnyArray, MetadataError> {
        let metadata = array.metadata();
        let axes = self.grid.shape().len();
        let unsupported = || {
            let found = Excerpt::of(&format!("{:?}", metadata.decoded_shape()));
            let with = "a padded array, whose chunks have whole rows of one chunk of the grid";
            let fault = MetadataFault::Disagrees { found, with };
            Fields::beside(array.node(), "chunk_grid", fault)
        };
        let (grid, row) = metadata
            .decoded_shape()
            .split_at_checked(axes)
            .unwrap_or_default();
        let rows = match row {
            [rows] => *rows,
            [rows, columns] if *columns == self.columns => *rows,
            _ => return Err(unsupported()),
        };
        if grid.iter().any(|extent| *extent != 1) {
            return Err(unsupported());
        }
        let bytes = |count: u64| {
            let number = u64::try_from(self.kind.size()).ok()?;
            count.checked_mul(self.columns)?.checked_mul(number)
        };
        let (Some(size), Some(chunk)) = (bytes(self.rows), bytes(rows)) else {
            return Err(unsupported());
        };
        let mut fill = metadata.fill_element().unwrap_or_default();
        if metadata.byte_order() == ByteOrder::Big {
            let parts = match self.kind {
                Kind::Complex64 | Kind::Complex128 => 2,
                _ => 1,
            };
            let part = fill.len().div_euclid(parts).max(1);
            fill.chunks_mut(part).for_each(<[u8]>::reverse);
        }
        let family = array.node().as_str().rsplit('/').nth(1);
        let is_optional = family == Some(GroupRole::Links.name());
        Ok(AnyArray::new(PaddedCells {
            array,
            axes,
            size,
            chunk,
            is_optional,
            fill,
        }))
    }
}

impl PaddedCells {
    fn of(array: &AnyArray) -> Option<&Self> {
        let source: &dyn Any = array.source();
        source.downcast_ref()
    }

    fn error(&self, problem: FetchProblem, source: &str) -> FetchError {
        FetchError {
            key: self.array.node().clone(),
            problem,
            source: source.into(),
        }
    }

    /// Returns the numbers of the chunks that have bytes of a part of a cell.
    fn chunks(&self, part: &Range<u64>) -> Range<u64> {
        let chunk = self.chunk.max(1);
        let first = part.start.div_euclid(chunk);
        first..if part.is_empty() {
            first
        } else {
            part.end.div_ceil(chunk)
        }
    }

    /// Returns the request for the bytes of a part of the cell at `index` that one chunk has, and their
    /// number.
    fn request(&self, index: &[u64], part: &Range<u64>, number: u64) -> (CellRequest, u64) {
        let start = number.saturating_mul(self.chunk);
        let own = part.start.saturating_sub(start)..part.end.saturating_sub(start).min(self.chunk);
        let len = own.end.saturating_sub(own.start);
        let mut element = index.to_vec();
        if let Some(row) = element.get_mut(self.axes) {
            *row = number;
        }
        let request = CellRequest {
            cell: CellRef::Element(self.array.clone(), element),
            part: (len < self.chunk).then_some(own),
        };
        (request, len)
    }
}

/// Returns the array that an implementation of [`Fetch`](super::Fetch) opened.
pub(super) fn opened(array: &AnyArray) -> &AnyArray {
    PaddedCells::of(array).map_or(array, |cells| &cells.array)
}

fn cells_of(request: &CellRequest) -> Option<(&PaddedCells, &[u64])> {
    match &request.cell {
        CellRef::Element(array, index) => Some((PaddedCells::of(array)?, index)),
        CellRef::Child(_) => None,
    }
}

/// Requests among which are cells of padded arrays, and what they become.
pub(super) struct PaddedReads<'r> {
    wanted: &'r [CellRequest],
    /// Requests for what an implementation of [`Fetch`](super::Fetch) opened.
    pub(super) requests: Vec<CellRequest>,
    /// For each of `wanted`, the sizes of its requests; `None` for one that is passed on.
    planned: Vec<Option<Result<Vec<u64>, FetchError>>>,
    /// Bytes left for joined cells and fill values.
    left: u64,
}

impl<'r> PaddedReads<'r> {
    /// Returns `None` if no request is for a cell of a padded array.
    pub(super) fn plan(wanted: &'r [CellRequest], budget: u64) -> Option<Self> {
        wanted.iter().find_map(cells_of)?;
        let mut reads = Self {
            wanted,
            requests: Vec::with_capacity(wanted.len()),
            planned: Vec::with_capacity(wanted.len()),
            left: budget,
        };
        for request in wanted {
            let planned = cells_of(request)
                .map(|(cells, index)| reads.plan_cell(cells, index, request.part.as_ref()));
            if planned.is_none() {
                reads.requests.push(request.clone());
            }
            reads.planned.push(planned);
        }
        Some(reads)
    }

    fn plan_cell(
        &mut self,
        cells: &PaddedCells,
        index: &[u64],
        wanted: Option<&Range<u64>>,
    ) -> Result<Vec<u64>, FetchError> {
        let part = wanted.cloned().unwrap_or(0..cells.size);
        if part.start > part.end || part.end > cells.size {
            let what = "the requested part is beyond the end of the cell";
            return Err(cells.error(FetchProblem::Damaged, what));
        }
        let chunks = cells.chunks(&part);
        let count = chunks.end.saturating_sub(chunks.start);
        if count > 1 {
            // The chunks are in memory while they are joined.
            let len = part.end.saturating_sub(part.start);
            let requests = count.saturating_mul(REQUEST_BYTES);
            self.reserve(cells, len.saturating_mul(2).saturating_add(requests))?;
        }
        let mut sizes = Vec::new();
        for number in chunks {
            let (request, size) = cells.request(index, &part, number);
            self.requests.push(request);
            sizes.push(size);
        }
        Ok(sizes)
    }

    fn reserve(&mut self, cells: &PaddedCells, bytes: u64) -> Result<(), FetchError> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            let what = "a cell with all rows exceeds the rest of the budget";
            cells.error(FetchProblem::OverBudget, what)
        })?;
        Ok(())
    }

    /// Returns the responses to the original requests, given those to `requests`.
    pub(super) fn finish(mut self, results: Vec<FetchResult>) -> Vec<FetchResult> {
        let mut results = results.into_iter();
        let mut next = || results.next().unwrap_or(Ok(None));
        let mut fills = HashMap::new();
        let (wanted, planned) = (self.wanted, core::mem::take(&mut self.planned));
        let finished = wanted.iter().zip(planned).map(|(request, sizes)| {
            let (Some((cells, _)), Some(sizes)) = (cells_of(request), sizes) else {
                return next();
            };
            let parts: Vec<(FetchResult, u64)> =
                sizes?.into_iter().map(|size| (next(), size)).collect();
            self.join(cells, parts, &mut fills)
        });
        finished.collect()
    }

    /// Joins the bytes that chunks have of a cell, given with their expected sizes.
    fn join(
        &mut self,
        cells: &PaddedCells,
        parts: Vec<(FetchResult, u64)>,
        fills: &mut HashMap<(Key, u64), Bytes>,
    ) -> FetchResult {
        let is_absent = parts.iter().all(|(part, _)| matches!(part, Ok(None)));
        if cells.is_optional && is_absent && !parts.is_empty() {
            return Ok(None);
        }
        let mut found = Vec::with_capacity(parts.len());
        for (part, size) in parts {
            found.push(match part? {
                Some(part) if u64::try_from(part.bytes.len()) == Ok(size) => part.bytes,
                Some(_) => {
                    let what = "a chunk does not have the size of its rows";
                    return Err(cells.error(FetchProblem::Damaged, what));
                }
                None => self.fill(cells, size, fills)?,
            });
        }
        let bytes = match found.as_slice() {
            [whole] => whole.clone(),
            found => {
                let mut joined = Vec::with_capacity(found.iter().map(Bytes::len).sum());
                for bytes in found {
                    joined.extend_from_slice(bytes);
                }
                joined.into()
            }
        };
        let size = cells.size;
        Ok(Some(Fetched { bytes, size }))
    }

    /// Returns `size` bytes of an absent chunk. Absent chunks of the same size share memory.
    fn fill(
        &mut self,
        cells: &PaddedCells,
        size: u64,
        known: &mut HashMap<(Key, u64), Bytes>,
    ) -> Result<Bytes, FetchError> {
        let key = (cells.array.node().clone(), size);
        if let Some(bytes) = known.get(&key) {
            return Ok(bytes.clone());
        }
        let element = cells.fill.as_slice();
        if element.is_empty() {
            let what = "a chunk is absent, and fill_value does not match the data type";
            return Err(cells.error(FetchProblem::Damaged, what));
        }
        self.reserve(cells, size)?;
        let len = usize::try_from(size).unwrap_or(usize::MAX);
        let mut filled: Bytes = if element.iter().all(|byte| *byte == 0) {
            vec![0; len].into()
        } else {
            // Parts consist of rows, so they begin with an element.
            element.repeat(len.div_ceil(element.len())).into()
        };
        filled.truncate(len);
        known.insert(key, filled.clone());
        Ok(filled)
    }
}
