//! Arrays with one row per object, group or entry of another table.

use std::sync::Arc;

use bytes::Bytes;
use zvf_format::{
    numeric::{ByteOrder, Kind},
    vlen::VlenFrame,
};
use zvf_model::{
    error_chain::error_chain,
    fetch::{AnyArray, CellRef, CellRequest},
    key::Key,
    zarr::DataType,
};

use crate::{
    batch::CellPayload, chunked_part::cell_of_file, context::Context, rules::consistency as rules,
    tree::StoreTree,
};

/// Maximum number of cells of an array of rows. Readers refuse more.
const MAX_CELLS: u64 = 1 << 20;
/// Maximum number of cells in a batch.
const MAX_BATCH_CELLS: usize = 256;
/// Assumed size in bytes of a cell whose size no listing shows.
const UNKNOWN: u64 = 64 << 10;

/// An array whose first axis counts rows, read cell by cell.
#[derive(Debug)]
pub(crate) struct TableArray {
    pub(crate) key: Key,
    array: AnyArray,
    pub(crate) row: RowType,
    pub(crate) len: u64,
    /// Elements per row; 1 for items.
    pub(crate) columns: u64,
    per_cell: u64,
    rank: usize,
    /// Stored cells and their sizes in bytes, ascending. `None` for shards.
    stored: Option<Vec<(u64, u64)>>,
}

/// The element type of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowType {
    /// A byte string or text of variable length.
    Item,
    /// A number.
    Number(Kind, ByteOrder),
    /// Text of a fixed number of bytes, four for each character.
    Text(u64, ByteOrder),
}

/// The rows of a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowCell<'a> {
    /// The first row.
    pub(crate) first: u64,
    /// Number of rows. Padding follows them in the last cell.
    pub(crate) rows: u64,
    pub(crate) cell: &'a CellPayload,
}

impl TableArray {
    /// Opens the array at `key`. Returns `None` if it does not exist, or after reporting that it
    /// cannot be opened.
    pub(crate) fn open(context: &Context<'_>, tree: &StoreTree, key: &Key) -> Option<Self> {
        if !tree.exists(key) {
            return None;
        }
        let refuse = |message: &str| {
            context.report(&rules::PART_NOT_CHECKED, key, message);
            None
        };
        let Some(array) = tree.array(key) else {
            return refuse("not a readable array");
        };
        let row = match &array.data_type {
            DataType::VariableBytes | DataType::VariableText => RowType::Item,
            DataType::Number(kind) => RowType::Number(*kind, array.byte_order()),
            DataType::FixedText { bytes } => RowType::Text(*bytes, array.byte_order()),
            _ => return refuse("unknown element type"),
        };
        let shape = array.shape.split_first();
        let cell = array.decoded_shape().split_first();
        let (Some((len, tail)), Some((per_cell, rest))) = (shape, cell) else {
            return refuse("the array has no dimension");
        };
        if tail != rest || (row == RowType::Item && !tail.is_empty()) {
            return refuse("the cells do not hold whole rows");
        }
        let mut extents = tail.iter();
        let columns = extents.try_fold(1_u64, |n, extent| n.checked_mul(*extent));
        let per_cell = (*per_cell).max(1);
        let (Some(columns), true) = (columns, len.div_ceil(per_cell) <= MAX_CELLS) else {
            return refuse("more cells than any reader accepts");
        };
        let opened = match context.fetch.array(key, Arc::new(array.clone())) {
            Ok(opened) => opened,
            Err(error) => return refuse(&error_chain(&*error.source)),
        };
        let stored = array.sharding().is_none().then(|| {
            let files = tree.below(key).filter_map(|(file, size)| {
                let cell = cell_of_file(key, array, file)?;
                Some((cell.first().copied()?, size))
            });
            let mut stored: Vec<_> = files.collect();
            stored.sort_unstable();
            stored
        });
        Some(Self {
            key: key.clone(),
            array: opened,
            row,
            len: *len,
            columns,
            per_cell,
            rank: array.rank(),
            stored,
        })
    }

    /// Reads all cells in row order, in batches, and calls `each` for every cell, including absent
    /// ones. Reports unreadable cells.
    pub(crate) async fn each_cell(
        &self,
        context: &Context<'_>,
        mut each: impl FnMut(RowCell<'_>) + Send,
    ) {
        let cells = self.len.div_ceil(self.per_cell);
        let mut next = 0_u64;
        while next < cells {
            let mut wanted = Vec::new();
            let mut requested = Vec::new();
            let mut bytes = 0_u64;
            for cell in next..cells {
                let size = self.size(cell);
                bytes = bytes.saturating_add(size.unwrap_or_default());
                let full = wanted.len() >= MAX_BATCH_CELLS || bytes > context.options.batch_bytes;
                if full && !wanted.is_empty() {
                    break;
                }
                requested.push((cell, size.is_some()));
                if size.is_some() {
                    let mut element = vec![cell];
                    element.resize(self.rank, 0);
                    wanted.push(CellRequest {
                        cell: CellRef::Element(self.array.clone(), element),
                        part: None,
                    });
                }
            }
            let mut results = context.fetch.cells(&wanted).await.into_iter();
            for (cell, was_asked) in requested {
                next = cell.saturating_add(1);
                let first = cell.saturating_mul(self.per_cell).min(self.len);
                let rows = self.len.saturating_sub(first).min(self.per_cell);
                let result = if was_asked {
                    results.next()
                } else {
                    Some(Ok(None))
                };
                let place = || format!("rows {first} to {}", first.saturating_add(rows));
                let cell = match result {
                    Some(Ok(None)) => CellPayload::Absent,
                    Some(Ok(Some(found))) => {
                        context.checked(found.bytes.len());
                        self.checked_cell(context, place, found.bytes)
                    }
                    Some(Err(error)) => {
                        let rule = crate::batch::rule_of(&error);
                        let message = error_chain(&*error.source);
                        context.report_at(rule, &self.key, place(), message);
                        CellPayload::Unreadable
                    }
                    None => CellPayload::Unreadable,
                };
                each(RowCell {
                    first,
                    rows,
                    cell: &cell,
                });
            }
        }
    }

    /// Returns the stored size of a cell in bytes, or `None` if the listing shows no such cell.
    fn size(&self, cell: u64) -> Option<u64> {
        let Some(stored) = &self.stored else {
            return Some(UNKNOWN);
        };
        let at = stored.binary_search_by_key(&cell, |(cell, _)| *cell).ok()?;
        stored.get(at).map(|(_, size)| *size)
    }

    /// Checks the size of a payload, and reports a wrong one.
    fn checked_cell(
        &self,
        context: &Context<'_>,
        place: impl Fn() -> String,
        bytes: Bytes,
    ) -> CellPayload {
        let wrong = match self.row {
            RowType::Item if self.per_cell == 1 => None,
            RowType::Item => match VlenFrame::parse(&bytes) {
                Ok(frame) if u64::from(frame.len()) == self.per_cell => None,
                Ok(frame) => Some(format!(
                    "{} items in a cell of {}",
                    frame.len(),
                    self.per_cell
                )),
                Err(error) => Some(error.to_string()),
            },
            RowType::Number(..) | RowType::Text(..) => {
                let size = self.row_size().saturating_mul(self.per_cell);
                let found = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                (found != size).then(|| format!("{found} bytes in a cell of {size}"))
            }
        };
        match wrong {
            None => CellPayload::Bytes(bytes),
            Some(message) => {
                context.report_at(&rules::CELL_UNREADABLE, &self.key, place(), message);
                CellPayload::Unreadable
            }
        }
    }

    /// Returns the bytes per row; 0 for items.
    pub(crate) fn row_size(&self) -> u64 {
        let element = match self.row {
            RowType::Item => 0,
            RowType::Number(kind, _) => u64::try_from(kind.size()).unwrap_or(u64::MAX),
            RowType::Text(bytes, _) => bytes,
        };
        element.saturating_mul(self.columns)
    }

    /// Returns the items of a readable cell.
    pub(crate) fn items<'a>(&self, cell: &RowCell<'a>) -> Option<Vec<&'a [u8]>> {
        let bytes = cell.cell.bytes()?;
        if self.per_cell == 1 {
            return Some(vec![bytes]);
        }
        let frame = VlenFrame::parse(bytes).ok()?;
        let rows = usize::try_from(cell.rows).unwrap_or(usize::MAX);
        Some(frame.iter().take(rows).collect())
    }

    /// Returns the bytes of the rows of a readable cell, without padding.
    pub(crate) fn numbers<'a>(&self, cell: &RowCell<'a>) -> Option<&'a [u8]> {
        let bytes = cell.cell.bytes()?;
        let size = self.row_size().saturating_mul(cell.rows);
        bytes.get(..usize::try_from(size).ok()?)
    }

    /// Returns the first row of a cell that is not valid text, and the number of such rows; `None`
    /// if there is none. Items are UTF-8, and text of a fixed number of bytes is UTF-32.
    pub(crate) fn wrong_text(&self, cell: &RowCell<'_>) -> Option<(u64, u64)> {
        match self.row {
            RowType::Item => {
                let items = self.items(cell)?.into_iter();
                wrong_rows(cell, items, |item| core::str::from_utf8(item).is_ok())
            }
            RowType::Text(_, order) => {
                let row = usize::try_from(self.row_size()).ok()?;
                let rows = self.numbers(cell)?.chunks_exact(row.max(1));
                let is_letter = |letter: &[u8; 4]| {
                    let code = match order {
                        ByteOrder::Little => u32::from_le_bytes(*letter),
                        ByteOrder::Big => u32::from_be_bytes(*letter),
                    };
                    char::from_u32(code).is_some()
                };
                wrong_rows(cell, rows, |row| row.as_chunks().0.iter().all(is_letter))
            }
            RowType::Number(..) => None,
        }
    }

    /// Returns all bytes of an array of bytes. Returns `None` after reporting an unreadable cell,
    /// or an array above the memory budget.
    pub(crate) async fn all_bytes(&self, context: &Context<'_>) -> Option<Vec<u8>> {
        let size = self.row_size().saturating_mul(self.len);
        let budget = context.fetch.budget();
        if size > budget {
            let message = format!("{size} bytes exceed the memory budget of {budget}");
            context.report(&rules::CELL_NOT_CHECKED, &self.key, message);
            return None;
        }
        let mut all = Some(Vec::new());
        self.each_cell(context, |cell| {
            let size = self.row_size().saturating_mul(cell.rows);
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            match (&mut all, self.numbers(&cell), cell.cell) {
                (Some(all), Some(bytes), _) => all.extend_from_slice(bytes),
                // Absent cells of arrays of bytes and ids are zero.
                (Some(all), None, CellPayload::Absent) => {
                    all.resize(all.len().saturating_add(size), 0);
                }
                _ => all = None,
            }
        })
        .await;
        all
    }
}

/// Returns the first row that is not valid, and the number of such rows.
fn wrong_rows<'a>(
    cell: &RowCell<'_>,
    rows: impl Iterator<Item = &'a [u8]>,
    is_valid: impl Fn(&[u8]) -> bool,
) -> Option<(u64, u64)> {
    let mut wrong = (cell.first..).zip(rows).filter(|(_, row)| !is_valid(row));
    let (first, _) = wrong.next()?;
    let more = u64::try_from(wrong.count()).unwrap_or(u64::MAX);
    Some((first, more.saturating_add(1)))
}
