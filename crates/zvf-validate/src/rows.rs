//! Arrays with a row for each object, group or number of another table.

use std::sync::Arc;

use bytes::Bytes;
use zvf_format::{
    numeric::{ByteOrder, Kind},
    vlen::VlenFrame,
};
use zvf_model::{
    fetch::{AnyArray, CellOf, Wanted},
    key::Key,
    zarr::{Array, Codec, DataType},
};

use crate::{
    batch::Cell, cells::cell_of_file, context::Context, rules::consistency as rules, tree::Tree,
};

/// More cells than any array of rows has. Readers refuse more.
const MOST_CELLS: u64 = 1 << 20;
/// Cells read at once, at most.
const MOST_AT_ONCE: usize = 256;
/// What a cell is taken to have whose size no listing tells.
const UNKNOWN: u64 = 64 << 10;

/// An array whose first axis counts rows, read cell by cell.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) key: Key,
    array: AnyArray,
    pub(crate) row: Row,
    pub(crate) len: u64,
    /// Elements of a row: 1 of items.
    pub(crate) columns: u64,
    per_cell: u64,
    rank: usize,
    /// Cells that have an object, and how many bytes it takes; `None` in shards.
    stored: Option<Vec<(u64, u64)>>,
}

/// What an element of a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    /// A byte string or text of any length.
    Item,
    /// A number.
    Number(Kind, ByteOrder),
    /// Text of so many bytes.
    Text(u64),
}

/// Rows of a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowCell<'a> {
    /// The first.
    pub(crate) first: u64,
    /// How many there are; what is behind them in the cell is filling.
    pub(crate) rows: u64,
    pub(crate) cell: &'a Cell,
}

impl Rows {
    /// Opens the array at `key`. `None` when there is none, or when it cannot be
    /// opened, which is found then.
    pub(crate) fn open(context: &Context<'_>, tree: &Tree, key: &Key) -> Option<Self> {
        if !tree.exists(key) {
            return None;
        }
        let refuse = |message: &str| {
            context.find(&rules::PART_NOT_CHECKED, key, message);
            None
        };
        let Some(array) = tree.array(key) else {
            return refuse("it is no array that can be read");
        };
        let row = match &array.data_type {
            DataType::VariableBytes | DataType::VariableText => Row::Item,
            DataType::Number(kind) => Row::Number(*kind, byte_order(array)),
            DataType::FixedText { bytes } => Row::Text(*bytes),
            _ => return refuse("its elements are of an unknown type"),
        };
        let shape = array.shape.split_first();
        let cell = array.decoded_shape().split_first();
        let (Some((len, tail)), Some((per_cell, rest))) = (shape, cell) else {
            return refuse("it has no dimension");
        };
        if tail != rest || (row == Row::Item && !tail.is_empty()) {
            return refuse("its cells do not hold whole rows");
        }
        let mut extents = tail.iter();
        let columns = extents.try_fold(1_u64, |n, extent| n.checked_mul(*extent));
        let per_cell = (*per_cell).max(1);
        let (Some(columns), true) = (columns, len.div_ceil(per_cell) <= MOST_CELLS) else {
            return refuse("it has more cells than any reader takes");
        };
        let opened = match context.fetch.array(key, Arc::new(array.clone())) {
            Ok(opened) => opened,
            Err(error) => return refuse(&crate::message(&*error.source)),
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

    /// Reads all cells in order of their rows, some at a time. What cannot be read
    /// is found here. Cells without an object are told too.
    pub(crate) async fn each_cell(
        &self,
        context: &Context<'_>,
        mut each: impl FnMut(RowCell<'_>) + Send,
    ) {
        let cells = self.len.div_ceil(self.per_cell);
        let mut next = 0_u64;
        while next < cells {
            let mut wanted = Vec::new();
            let mut asked = Vec::new();
            let mut bytes = 0_u64;
            for cell in next..cells {
                let size = self.size(cell);
                bytes = bytes.saturating_add(size.unwrap_or_default());
                let full = wanted.len() >= MOST_AT_ONCE || bytes > context.options.batch_bytes;
                if full && !wanted.is_empty() {
                    break;
                }
                asked.push((cell, size.is_some()));
                if size.is_some() {
                    let mut element = vec![cell];
                    element.resize(self.rank, 0);
                    wanted.push(Wanted {
                        cell: CellOf::Element(self.array.clone(), element),
                        part: None,
                    });
                }
            }
            let mut answers = context.fetch.cells(&wanted).await.into_iter();
            for (cell, was_asked) in asked {
                next = cell.saturating_add(1);
                let first = cell.saturating_mul(self.per_cell).min(self.len);
                let rows = self.len.saturating_sub(first).min(self.per_cell);
                let answer = match was_asked {
                    true => answers.next(),
                    false => Some(Ok(None)),
                };
                let place = || format!("rows {first} to {}", first.saturating_add(rows));
                let cell = match answer {
                    Some(Ok(None)) => Cell::None,
                    Some(Ok(Some(found))) => {
                        context.checked(found.bytes.len());
                        self.checked_cell(context, place, found.bytes)
                    }
                    Some(Err(error)) => {
                        let rule = crate::batch::rule_of(&error);
                        let message = crate::message(&*error.source);
                        context.find_at(rule, &self.key, place(), message);
                        Cell::Lost
                    }
                    None => Cell::Lost,
                };
                each(RowCell {
                    first,
                    rows,
                    cell: &cell,
                });
            }
        }
    }

    /// Bytes of a cell as stored, if there is one as far as a listing tells.
    fn size(&self, cell: u64) -> Option<u64> {
        let Some(stored) = &self.stored else {
            return Some(UNKNOWN);
        };
        let at = stored.binary_search_by_key(&cell, |(cell, _)| *cell).ok()?;
        stored.get(at).map(|(_, size)| *size)
    }

    /// A cell that has the size it must have.
    fn checked_cell(
        &self,
        context: &Context<'_>,
        place: impl Fn() -> String,
        bytes: Bytes,
    ) -> Cell {
        let wrong = match self.row {
            Row::Item if self.per_cell == 1 => None,
            Row::Item => match VlenFrame::parse(&bytes) {
                Ok(frame) if u64::from(frame.len()) == self.per_cell => None,
                Ok(frame) => Some(format!(
                    "{} items in a cell of {}",
                    frame.len(),
                    self.per_cell
                )),
                Err(error) => Some(error.to_string()),
            },
            Row::Number(..) | Row::Text(_) => {
                let size = self.row_size().saturating_mul(self.per_cell);
                let found = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                (found != size).then(|| format!("{found} bytes in a cell of {size}"))
            }
        };
        match wrong {
            None => Cell::Bytes(bytes),
            Some(message) => {
                context.find_at(&rules::CELL_UNREADABLE, &self.key, place(), message);
                Cell::Lost
            }
        }
    }

    /// Bytes of a row; 0 of items.
    pub(crate) fn row_size(&self) -> u64 {
        let element = match self.row {
            Row::Item => 0,
            Row::Number(kind, _) => u64::try_from(kind.size()).unwrap_or(u64::MAX),
            Row::Text(bytes) => bytes,
        };
        element.saturating_mul(self.columns)
    }

    /// The items of a cell that was read.
    pub(crate) fn items<'a>(&self, cell: &RowCell<'a>) -> Option<Vec<&'a [u8]>> {
        let bytes = cell.cell.bytes()?;
        if self.per_cell == 1 {
            return Some(vec![bytes]);
        }
        let frame = VlenFrame::parse(bytes).ok()?;
        let rows = usize::try_from(cell.rows).unwrap_or(usize::MAX);
        Some(frame.iter().take(rows).collect())
    }

    /// The bytes of the rows of a cell that was read, without filling.
    pub(crate) fn numbers<'a>(&self, cell: &RowCell<'a>) -> Option<&'a [u8]> {
        let bytes = cell.cell.bytes()?;
        let size = self.row_size().saturating_mul(cell.rows);
        bytes.get(..usize::try_from(size).ok()?)
    }

    /// All bytes of an array of bytes; `None` when some cannot be read, which is
    /// found then, or when they are more than may be held.
    pub(crate) async fn all_bytes(&self, context: &Context<'_>) -> Option<Vec<u8>> {
        let size = self.row_size().saturating_mul(self.len);
        let budget = context.fetch.budget();
        if size > budget {
            let message = format!("{size} bytes, and only {budget} may be held");
            context.find(&rules::CELL_NOT_CHECKED, &self.key, message);
            return None;
        }
        let mut all = Some(Vec::new());
        self.each_cell(context, |cell| {
            let size = self.row_size().saturating_mul(cell.rows);
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            match (&mut all, self.numbers(&cell), cell.cell) {
                (Some(all), Some(bytes), _) => all.extend_from_slice(bytes),
                // What was never written is zero in arrays of bytes and ids.
                (Some(all), None, Cell::None) => all.resize(all.len().saturating_add(size), 0),
                _ => all = None,
            }
        })
        .await;
        all
    }
}

/// The order of the bytes of a number once compressions are undone.
pub(crate) fn byte_order(array: &Array) -> ByteOrder {
    let codecs = match array.sharding() {
        Some(sharding) => &sharding.codecs,
        None => &array.codecs,
    };
    let order = codecs.iter().find_map(Codec::byte_order);
    order.unwrap_or(ByteOrder::Little)
}
