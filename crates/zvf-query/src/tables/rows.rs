//! Arrays of numbers with a row for each object, group or byte.

use core::ops::Range;

use bytes::Bytes;
use zvf_format::numeric::{ByteOrder, Kind};
use zvf_model::{
    fetch::{CellOf, CellSource, FetchError, Fetched, Wanted},
    key::Key,
    zarr::{Array, DataType},
};

use super::{MOST_CELLS, fill};
use crate::{
    error::{Damage, Fault},
    family::object_of,
};

/// Runs of rows of a cell that are asked for one by one. Beyond that the whole
/// stretch is, which is not much more then.
const MOST_RUNS: usize = 1 << 10;

/// An array of numbers whose cells hold whole rows, the first axis.
#[derive(Clone, Debug)]
pub(crate) struct RowArray<A> {
    array: A,
    pub(crate) kind: Kind,
    pub(crate) rows: u64,
    /// Numbers of a row.
    pub(crate) columns: u64,
    /// Rows of a cell.
    per_cell: u64,
    order: ByteOrder,
    /// One element that was never written.
    pub(crate) fill: Vec<u8>,
}

/// Rows on their way.
#[derive(Debug)]
pub(crate) struct RowRequest<A> {
    pub(crate) wanted: Vec<Wanted<A>>,
    /// What each answer will be, in ascending order.
    parts: Vec<Part>,
    /// Which rows, and in which order; `None` for all.
    rows: Option<Vec<u64>>,
}

/// Some rows of a cell, and where in the payload they start.
#[derive(Clone, Debug)]
struct Part {
    cell: u64,
    rows: Range<u64>,
    /// Bytes the answer has to have.
    size: u64,
}

/// Rows that were read, the least significant byte of each number first.
#[derive(Debug)]
pub(crate) struct RowsRead {
    pub(crate) bytes: Vec<u8>,
    /// What could not be read, by its rows. The bytes there are fill.
    pub(crate) lost: Vec<(Range<u64>, Damage)>,
}

impl<A: CellSource> RowArray<A> {
    pub(crate) fn new(array: A) -> Result<Self, Damage> {
        let metadata = array.metadata();
        let DataType::Number(kind) = metadata.data_type else {
            return Err(Damage::new(array.node(), Fault::Kind));
        };
        let (Some((&rows, row)), Some((&per_cell, tail))) = (
            metadata.shape.split_first(),
            metadata.decoded_shape().split_first(),
        ) else {
            return Err(Damage::new(array.node(), Fault::Kind));
        };
        if row != tail {
            return Err(Damage::new(array.node(), Fault::Kind));
        }
        let columns = row
            .iter()
            .try_fold(1_u64, |n, &extent| n.checked_mul(extent));
        let size = u64::try_from(kind.size()).unwrap_or(u64::MAX);
        let cell = columns.and_then(|columns| columns.checked_mul(size)?.checked_mul(per_cell));
        let (Some(columns), Some(_), ..=MOST_CELLS) =
            (columns, cell, rows.div_ceil(per_cell.max(1)))
        else {
            return Err(Damage::new(array.node(), Fault::Range));
        };
        let fill = fill::bytes(&metadata.fill_value, kind);
        let fill = fill.ok_or_else(|| Damage::new(array.node(), Fault::Fill))?;
        Ok(Self {
            order: byte_order(metadata),
            kind,
            rows,
            columns,
            per_cell: per_cell.max(1),
            fill,
            array,
        })
    }

    pub(crate) fn node(&self) -> &Key {
        self.array.node()
    }

    /// Bytes of a row.
    pub(crate) fn row(&self) -> u64 {
        let size = u64::try_from(self.kind.size()).unwrap_or(u64::MAX);
        self.columns.saturating_mul(size)
    }

    /// Whether a few rows cost less than all, and are in one cell.
    pub(crate) fn is_plain_cell(&self) -> bool {
        self.array.is_plain() && self.rows <= self.per_cell
    }

    /// Bytes that `rows` take, all when `None`.
    pub(crate) fn size(&self, rows: Option<usize>) -> u64 {
        let rows = rows.map_or(self.rows, |rows| u64::try_from(rows).unwrap_or(u64::MAX));
        rows.saturating_mul(self.row())
    }

    /// How to ask for rows, all when `None`. Those past the last are no rows and
    /// are not asked for. Cells of which parts can be read are not read further
    /// than the last row that is wanted, as the rest of an edge cell is filling.
    pub(crate) fn request(&self, rows: Option<&[u64]>) -> RowRequest<A> {
        let mut parts = Vec::new();
        match rows {
            None => {
                let cells = self.rows.div_ceil(self.per_cell);
                parts.extend((0..cells).map(|cell| self.part(cell, self.rows_of(cell))));
            }
            Some(rows) => {
                let mut rows: Vec<u64> = rows.iter().copied().collect();
                rows.retain(|row| *row < self.rows);
                rows.sort_unstable();
                rows.dedup();
                let cell_of = |row: &u64| row.checked_div(self.per_cell).unwrap_or(0);
                for rows in rows.chunk_by(|a, b| cell_of(a) == cell_of(b)) {
                    self.parts_of(rows, rows.first().map_or(0, cell_of), &mut parts);
                }
            }
        }
        let wanted = parts.iter().map(|part| self.wanted(part)).collect();
        let rows = rows.map(<[u64]>::to_vec);
        RowRequest {
            wanted,
            parts,
            rows,
        }
    }

    /// Parts for ascending rows of one cell.
    fn parts_of(&self, rows: &[u64], cell: u64, parts: &mut Vec<Part>) {
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
            return;
        };
        let whole = || self.part(cell, *first..last.saturating_add(1));
        if !self.array.is_plain() {
            parts.push(whole());
            return;
        }
        let runs = rows.chunk_by(|a, b| a.saturating_add(1) == *b);
        if runs.clone().count() > MOST_RUNS {
            parts.push(whole());
            return;
        }
        let runs = runs.filter_map(|run| Some(*run.first()?..run.last()?.saturating_add(1)));
        parts.extend(runs.map(|run| self.part(cell, run)));
    }

    /// The rows of a cell.
    fn rows_of(&self, cell: u64) -> Range<u64> {
        let start = cell.saturating_mul(self.per_cell).min(self.rows);
        start..start.saturating_add(self.per_cell).min(self.rows)
    }

    fn part(&self, cell: u64, rows: Range<u64>) -> Part {
        // What cannot be read in parts comes as a whole.
        let rows = match self.array.is_plain() {
            true => rows,
            false => self.rows_of(cell),
        };
        let len = match self.array.is_plain() {
            true => rows.end.saturating_sub(rows.start),
            false => self.per_cell,
        };
        let size = len.saturating_mul(self.row());
        Part { cell, rows, size }
    }

    fn wanted(&self, part: &Part) -> Wanted<A> {
        let mut cell = vec![part.cell];
        cell.resize(self.array.metadata().rank(), 0);
        let start = part.cell.saturating_mul(self.per_cell);
        let start = part.rows.start.saturating_sub(start);
        let start = start.saturating_mul(self.row());
        let whole = part.size == self.per_cell.saturating_mul(self.row());
        Wanted {
            cell: CellOf::Element(self.array.clone(), cell),
            part: (!whole).then(|| start..start.saturating_add(part.size)),
        }
    }

    /// What is wrong with a cell.
    fn damage(&self, cell: u64, fault: impl Into<Fault>) -> Damage {
        let mut element = vec![cell.saturating_mul(self.per_cell)];
        element.resize(self.array.metadata().rank(), 0);
        let key = object_of(&self.array, &element);
        Damage::new(key.as_ref().unwrap_or(self.node()), fault)
    }

    /// The rows out of the answers to a request, in the order asked for; fill for
    /// those that are not there and those past the last.
    pub(crate) fn finish(
        &self,
        request: &RowRequest<A>,
        answers: impl IntoIterator<Item = Result<Option<Fetched>, FetchError>>,
    ) -> RowsRead {
        let mut lost = Vec::new();
        let mut found: Vec<(Range<u64>, Option<Bytes>)> = Vec::new();
        let mut answers = answers.into_iter();
        for part in &request.parts {
            let rows = part.rows.clone();
            let bytes = match answers.next() {
                Some(Ok(Some(fetched))) => {
                    let bytes = u64::try_from(fetched.bytes.len()).unwrap_or(u64::MAX);
                    if bytes == part.size {
                        Ok(Some(fetched.bytes))
                    } else {
                        let rows = part.size.checked_div(self.row()).unwrap_or(0);
                        Err(Fault::Uneven { bytes, rows })
                    }
                }
                Some(Ok(None)) => Ok(None),
                Some(Err(error)) => Err(Fault::Fetch(error)),
                None => Err(Fault::MissingCell),
            };
            match bytes {
                Ok(bytes) => found.push((rows, bytes)),
                Err(fault) => lost.push((rows, self.damage(part.cell, fault))),
            }
        }
        let row = usize::try_from(self.row()).unwrap_or(usize::MAX);
        let columns = usize::try_from(self.columns).unwrap_or(usize::MAX);
        let fill = self.fill.repeat(columns);
        let mut bytes = Vec::new();
        let Some(wanted) = &request.rows else {
            for part in &request.parts {
                let len = part.rows.end.saturating_sub(part.rows.start);
                let len = usize::try_from(len).unwrap_or(usize::MAX);
                let place = found.binary_search_by_key(&part.rows.start, |(rows, _)| rows.start);
                let payload = place.ok().and_then(|place| found.get(place)?.1.as_ref());
                match payload.and_then(|payload| payload.get(..len.checked_mul(row)?)) {
                    Some(payload) => extend(&mut bytes, payload, self.kind, self.order),
                    None => bytes.extend(fill.iter().cycle().take(len.saturating_mul(row))),
                }
            }
            return RowsRead { bytes, lost };
        };
        for at in wanted {
            let after = found.partition_point(|(rows, _)| rows.start <= *at);
            let part = after.checked_sub(1).and_then(|part| found.get(part));
            let place = part.and_then(|(rows, bytes)| {
                let bytes = bytes.as_ref().filter(|_| rows.contains(at))?;
                let start = usize::try_from(at.checked_sub(rows.start)?).ok()?;
                let start = start.checked_mul(row)?;
                bytes.get(start..start.checked_add(row)?)
            });
            match place {
                Some(place) => extend(&mut bytes, place, self.kind, self.order),
                None => bytes.extend_from_slice(&fill),
            }
        }
        RowsRead { bytes, lost }
    }
}

/// Adds numbers, turned around where they were stored the other way.
fn extend(bytes: &mut Vec<u8>, row: &[u8], kind: Kind, order: ByteOrder) {
    if order == ByteOrder::Little {
        bytes.extend_from_slice(row);
        return;
    }
    let number = match kind {
        Kind::Complex64 | Kind::Complex128 => kind.size().div_euclid(2),
        _ => kind.size(),
    };
    for number in row.chunks(number.max(1)) {
        bytes.extend(number.iter().rev());
    }
}

/// The order of the bytes of a number once compressions are undone.
fn byte_order(array: &Array) -> ByteOrder {
    let codecs = array
        .sharding()
        .map_or(&array.codecs, |sharding| &sharding.codecs);
    let order = codecs.iter().find_map(zvf_model::zarr::Codec::byte_order);
    order.unwrap_or(ByteOrder::Little)
}
