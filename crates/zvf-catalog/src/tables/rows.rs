//! Arrays of fixed-size elements with one row per object, group or byte.

use core::ops::Range;

use bytes::Bytes;
use zvf_format::numeric::{ByteOrder, Dtype, Kind};
use zvf_model::{
    fetch::{AnyArray, CellRef, CellRequest, FetchError, Fetched},
    key::Key,
    zarr::DataType,
};

use super::MAX_CELLS;
use crate::{
    chunked_array::object_of,
    error::{Damage, Fault},
};

/// Maximum number of runs of rows requested separately per cell. Beyond it, one request covers the
/// range from the first to the last row, which reads little more.
const MAX_RUNS: usize = 1 << 10;

/// An array whose cells hold whole rows along the first axis.
#[derive(Clone, Debug)]
pub(crate) struct RowArray {
    array: AnyArray,
    pub(crate) element: TableElement,
    pub(crate) rows: u64,
    /// Number of elements per row, at least one.
    pub(crate) columns: u64,
    /// Number of rows per cell.
    per_cell: u64,
    /// Size of a cell in bytes.
    cell: u64,
    order: ByteOrder,
    /// The fill value as one little-endian element.
    pub(crate) fill: Vec<u8>,
}

/// The type of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableElement {
    Number(Kind),
    /// UTF-32 of this many bytes.
    Text(u64),
}

impl TableElement {
    fn size(self) -> u64 {
        match self {
            Self::Number(kind) => u64::try_from(kind.size()).unwrap_or(u64::MAX),
            Self::Text(bytes) => bytes,
        }
    }

    /// Returns the size of the unit that byte order applies to.
    fn unit(self) -> usize {
        match self {
            Self::Number(kind @ (Kind::Complex64 | Kind::Complex128)) => kind.size().div_euclid(2),
            Self::Number(kind) => kind.size(),
            Self::Text(_) => 4,
        }
    }
}

/// A request for rows.
#[derive(Debug)]
pub(crate) struct RowRequest {
    pub(crate) wanted: Vec<CellRequest>,
    /// The rows of each fetched cell, ascending.
    parts: Vec<Part>,
    /// The requested rows in order; `None` for all.
    rows: Option<Vec<u64>>,
}

/// A range of rows of a cell.
#[derive(Clone, Debug)]
struct Part {
    cell: u64,
    rows: Range<u64>,
    /// Expected size of the response in bytes.
    size: u64,
}

/// Rows with little-endian values.
#[derive(Debug)]
pub(crate) struct RowData {
    pub(crate) bytes: Vec<u8>,
    /// Damage by range of rows. The values of these rows are fill values.
    pub(crate) damaged: Vec<(Range<u64>, Damage)>,
}

impl RowArray {
    /// Opens an array by its own metadata.
    pub(crate) fn new(array: AnyArray) -> Result<Self, Damage> {
        let metadata = array.metadata();
        let fault = |fault| Damage::new(array.node(), fault);
        let element = match &metadata.data_type {
            DataType::Number(kind) => TableElement::Number(*kind),
            DataType::FixedText { bytes } => TableElement::Text(*bytes),
            _ => return Err(fault(Fault::Kind)),
        };
        let shape = metadata.shape.split_first();
        let cell = metadata.decoded_shape().split_first();
        let (Some((&rows, row)), Some((&per_cell, tail))) = (shape, cell) else {
            return Err(fault(Fault::Kind));
        };
        if row != tail {
            return Err(fault(Fault::Kind));
        }
        let mut extents = row.iter();
        let columns = extents.try_fold(1_u64, |n, &extent| n.checked_mul(extent));
        let row = columns.and_then(|columns| columns.checked_mul(element.size()));
        let cell = row.and_then(|row| row.checked_mul(per_cell));
        let (Some(columns @ 1..), Some(cell)) = (columns, cell) else {
            return Err(fault(Fault::Range));
        };
        let fill = metadata.fill_element().ok_or_else(|| fault(Fault::Fill))?;
        let order = metadata.byte_order();
        let rows = Self {
            array,
            element,
            rows,
            columns,
            per_cell,
            cell,
            order,
            fill,
        };
        rows.checked()
    }

    /// Opens an array of bytes that hold numbers, as described by its group.
    pub(crate) fn blob(array: AnyArray, dtype: Dtype, columns: u64) -> Result<Self, Damage> {
        let metadata = array.metadata();
        let fault = |fault| Damage::new(array.node(), fault);
        let bytes = DataType::Number(Kind::UInt8);
        let (&[size], &[cell], true) = (
            &*metadata.shape,
            metadata.decoded_shape(),
            metadata.data_type == bytes,
        ) else {
            return Err(fault(Fault::Kind));
        };
        let element = TableElement::Number(dtype.kind());
        let row = columns
            .checked_mul(element.size())
            .filter(|row| *row > 0)
            .ok_or_else(|| fault(Fault::Range))?;
        let (Some(rows), Some(0)) = (size.checked_div(row), size.checked_rem(row)) else {
            return Err(fault(Fault::Rows { bytes: size, row }));
        };
        let per_cell = match cell.checked_rem(row) {
            // A row must not span two cells.
            Some(1..) if cell < size => return Err(fault(Fault::Kind)),
            _ => cell.div_euclid(row),
        };
        let fill = metadata
            .fill_element()
            .ok_or_else(|| fault(Fault::Fill))?
            .repeat(dtype.kind().size());
        let rows = Self {
            array,
            element,
            rows,
            columns,
            per_cell,
            cell,
            order: dtype.order(),
            fill,
        };
        rows.checked()
    }

    /// Checks the number of cells.
    fn checked(mut self) -> Result<Self, Damage> {
        self.per_cell = self.per_cell.max(1);
        if self.rows.div_ceil(self.per_cell) > MAX_CELLS {
            return Err(Damage::new(self.node(), Fault::Range));
        }
        Ok(self)
    }

    pub(crate) fn node(&self) -> &Key {
        self.array.node()
    }

    pub(crate) fn array(&self) -> &AnyArray {
        &self.array
    }

    /// Returns the kind of the numbers; `None` for text.
    pub(crate) fn kind(&self) -> Option<Kind> {
        match self.element {
            TableElement::Number(kind) => Some(kind),
            TableElement::Text(_) => None,
        }
    }

    /// Returns the size of a row in bytes.
    pub(crate) fn row(&self) -> u64 {
        self.columns.saturating_mul(self.element.size())
    }

    /// Returns whether all rows are in one cell that supports reads of byte ranges.
    pub(crate) fn is_plain_cell(&self) -> bool {
        self.array.is_plain() && self.rows <= self.per_cell
    }

    /// Returns the size in bytes of `rows` rows, or of all rows if `None`.
    pub(crate) fn size(&self, rows: Option<usize>) -> u64 {
        let rows = rows.map_or(self.rows, |rows| u64::try_from(rows).unwrap_or(u64::MAX));
        rows.saturating_mul(self.row())
    }

    /// Returns the request for rows, or for all rows if `None`. Rows past the end are not
    /// requested. Cells that support reads of byte ranges are read up to the last requested row,
    /// because the rest of an edge cell is padding.
    pub(crate) fn request(&self, rows: Option<&[u64]>) -> RowRequest {
        let mut parts = Vec::new();
        match rows {
            None => {
                let cells = self.rows.div_ceil(self.per_cell);
                parts.extend((0..cells).map(|cell| self.part(cell, self.rows_of(cell))));
            }
            Some(rows) => {
                let mut rows: Vec<u64> = rows.to_vec();
                rows.retain(|row| *row < self.rows);
                rows.sort_unstable();
                rows.dedup();
                let cell_of = |row: &u64| row.checked_div(self.per_cell).unwrap_or(0);
                for rows in rows.chunk_by(|a, b| cell_of(a) == cell_of(b)) {
                    self.parts_of(rows, rows.first().map_or(0, cell_of), &mut parts);
                }
            }
        }
        let wanted = parts.iter().map(|part| self.cell_request(part)).collect();
        let rows = rows.map(<[u64]>::to_vec);
        RowRequest {
            wanted,
            parts,
            rows,
        }
    }

    /// Adds requests for ascending rows of one cell.
    fn parts_of(&self, rows: &[u64], cell: u64, parts: &mut Vec<Part>) {
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
            return;
        };
        let runs = rows.chunk_by(|a, b| a.saturating_add(1) == *b);
        if !self.array.is_plain() || runs.clone().count() > MAX_RUNS {
            parts.push(self.part(cell, *first..last.saturating_add(1)));
            return;
        }
        let runs = runs.filter_map(|run| Some(*run.first()?..run.last()?.saturating_add(1)));
        parts.extend(runs.map(|run| self.part(cell, run)));
    }

    /// Returns the rows of a cell.
    fn rows_of(&self, cell: u64) -> Range<u64> {
        let start = cell.saturating_mul(self.per_cell).min(self.rows);
        start..start.saturating_add(self.per_cell).min(self.rows)
    }

    /// Returns the request for rows of a cell, or for the whole cell if it does not support reads
    /// of byte ranges.
    fn part(&self, cell: u64, rows: Range<u64>) -> Part {
        let (rows, size) = if self.array.is_plain() {
            let count = rows.end.saturating_sub(rows.start);
            (rows, count.saturating_mul(self.row()))
        } else {
            (self.rows_of(cell), self.cell)
        };
        Part { cell, rows, size }
    }

    fn cell_request(&self, part: &Part) -> CellRequest {
        let mut cell = vec![part.cell];
        cell.resize(self.array.metadata().rank(), 0);
        let start = part.cell.saturating_mul(self.per_cell);
        let start = part
            .rows
            .start
            .saturating_sub(start)
            .saturating_mul(self.row());
        CellRequest {
            cell: CellRef::Element(self.array.clone(), cell),
            part: (part.size != self.cell).then(|| start..start.saturating_add(part.size)),
        }
    }

    /// Returns the damage for a fault in a cell.
    fn damage(&self, cell: u64, fault: impl Into<Fault>) -> Damage {
        let extent = self.array.metadata().decoded_shape().first();
        let mut element = vec![cell.saturating_mul(extent.copied().unwrap_or(1))];
        element.resize(self.array.metadata().rank(), 0);
        let key = object_of(&self.array, &element);
        Damage::new(key.as_ref().unwrap_or(self.node()), fault)
    }

    /// Decodes the cells of a request into rows, in the requested order. Absent rows and rows
    /// past the end have the fill value.
    pub(crate) fn finish(
        &self,
        request: &RowRequest,
        results: impl IntoIterator<Item = Result<Option<Fetched>, FetchError>>,
    ) -> RowData {
        let mut damaged = Vec::new();
        let mut found: Vec<(Range<u64>, Option<Bytes>)> = Vec::new();
        let mut results = results.into_iter();
        for part in &request.parts {
            let rows = part.rows.clone();
            match self.payload(part, results.next()) {
                Ok(bytes) => found.push((rows, bytes)),
                Err(fault) => {
                    damaged.push((rows.clone(), self.damage(part.cell, fault)));
                    found.push((rows, None));
                }
            }
        }
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let row = size(self.row());
        let fill = self.fill.repeat(size(self.columns));
        let mut bytes = Vec::new();
        let Some(wanted) = &request.rows else {
            for (rows, payload) in &found {
                let len = size(rows.end.saturating_sub(rows.start)).saturating_mul(row);
                match payload.as_ref().and_then(|payload| payload.get(..len)) {
                    Some(payload) => self.extend(&mut bytes, payload),
                    None => bytes.extend(fill.iter().cycle().take(len)),
                }
            }
            return RowData { bytes, damaged };
        };
        for at in wanted {
            let after = found.partition_point(|(rows, _)| rows.start <= *at);
            let part = after.checked_sub(1).and_then(|part| found.get(part));
            let index = part.and_then(|(rows, bytes)| {
                let bytes = bytes.as_ref().filter(|_| rows.contains(at))?;
                let start = usize::try_from(at.checked_sub(rows.start)?)
                    .ok()?
                    .checked_mul(row)?;
                bytes.get(start..start.checked_add(row)?)
            });
            match index {
                Some(index) => self.extend(&mut bytes, index),
                None => bytes.extend_from_slice(&fill),
            }
        }
        RowData { bytes, damaged }
    }

    /// Returns the bytes of a fetched cell; `None` if the cell was never written.
    fn payload(
        &self,
        part: &Part,
        result: Option<Result<Option<Fetched>, FetchError>>,
    ) -> Result<Option<Bytes>, Fault> {
        let fetched = result.ok_or(Fault::MissingCell)?.map_err(Fault::Fetch)?;
        let Some(fetched) = fetched else {
            return Ok(None);
        };
        let bytes = u64::try_from(fetched.bytes.len()).unwrap_or(u64::MAX);
        if bytes == part.size {
            return Ok(Some(fetched.bytes));
        }
        let rows = part.size.checked_div(self.row()).unwrap_or(0);
        Err(Fault::Uneven { bytes, rows })
    }

    /// Appends elements, converted to little-endian.
    fn extend(&self, bytes: &mut Vec<u8>, row: &[u8]) {
        if self.order == ByteOrder::Little {
            bytes.extend_from_slice(row);
            return;
        }
        for number in row.chunks(self.element.unit().max(1)) {
            bytes.extend(number.iter().rev());
        }
    }
}
