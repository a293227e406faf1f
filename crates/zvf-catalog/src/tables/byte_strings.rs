//! One-dimensional arrays of byte strings with one row per object, group or name.

use core::iter::Take;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use zvf_format::vlen::{Items, VlenFrame};
use zvf_model::{
    fetch::{AnyArray, CellRef, CellRequest},
    key::Key,
    zarr::DataType,
};

use super::MAX_CELLS;
use super::item_offsets::ItemOffsetCache;
use crate::{
    chunked_array::object_of,
    error::{Damage, Fault},
    sync::lock,
};

pub(crate) use super::item_offsets::ItemOffsets;

/// A one-dimensional array of byte strings.
#[derive(Clone, Debug)]
pub(crate) struct ByteStringArray {
    array: AnyArray,
    pub(crate) rows: u64,
    /// Number of rows per cell.
    pub(crate) per_cell: u64,
    item_offsets: Arc<Mutex<ItemOffsetCache>>,
}

impl ByteStringArray {
    pub(crate) fn new(array: AnyArray) -> Result<Self, Damage> {
        let metadata = array.metadata();
        let strings = matches!(
            metadata.data_type,
            DataType::VariableBytes | DataType::VariableText
        );
        let (&[rows], &[per_cell], true) = (&*metadata.shape, metadata.decoded_shape(), strings)
        else {
            return Err(Damage::new(array.node(), Fault::Kind));
        };
        let per_cell = per_cell.max(1);
        if rows.div_ceil(per_cell) > MAX_CELLS {
            return Err(Damage::new(array.node(), Fault::Range));
        }
        Ok(Self {
            array,
            rows,
            per_cell,
            item_offsets: Arc::default(),
        })
    }

    pub(crate) fn node(&self) -> &Key {
        self.array.node()
    }

    pub(crate) fn array(&self) -> &AnyArray {
        &self.array
    }

    pub(crate) fn cells(&self) -> u64 {
        self.rows.div_ceil(self.per_cell)
    }

    /// Returns the cell of a row.
    pub(crate) fn cell_of(&self, row: u64) -> u64 {
        row.checked_div(self.per_cell).unwrap_or(0)
    }

    /// Returns the first row of a cell and its number of rows.
    pub(crate) fn rows_of(&self, cell: u64) -> (u64, u64) {
        let first = cell.saturating_mul(self.per_cell).min(self.rows);
        (first, self.rows.saturating_sub(first).min(self.per_cell))
    }

    pub(crate) fn cell_request(&self, cell: u64) -> CellRequest {
        CellRequest {
            cell: CellRef::Element(self.array.clone(), vec![cell]),
            part: None,
        }
    }

    /// Returns the damage for a fault in a cell.
    pub(crate) fn damage(&self, cell: u64, fault: impl Into<Fault>) -> Damage {
        let key = object_of(&self.array, &[self.rows_of(cell).0]);
        Damage::new(key.as_ref().unwrap_or(self.node()), fault)
    }

    /// Returns the items of a cell, one per row. Padding items of an edge cell are dropped.
    pub(crate) fn items<'a>(&self, cell: u64, payload: &'a [u8]) -> Result<CellItems<'a>, Damage> {
        let (_, rows) = self.rows_of(cell);
        if self.per_cell == 1 {
            return Ok(CellItems::One(Some(payload)));
        }
        let frame = VlenFrame::parse(payload).map_err(|error| self.damage(cell, error))?;
        let (found, expected) = (u64::from(frame.len()), self.per_cell);
        if found != expected {
            return Err(self.damage(cell, Fault::Count { found, expected }));
        }
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        Ok(CellItems::Many(frame.iter().take(rows)))
    }

    /// Returns the byte ranges of a cell's items, cached for recently parsed cells.
    pub(crate) fn item_offsets(&self, cell: u64, payload: &Bytes) -> Result<ItemOffsets, Damage> {
        if let Some(offsets) = lock(&self.item_offsets).get(cell, payload) {
            return Ok(offsets);
        }
        let offsets = ItemOffsets::of(payload, self.items(cell, payload)?);
        lock(&self.item_offsets).put(cell, payload.clone(), offsets.clone());
        Ok(offsets)
    }
}

/// Iterator over the items of one cell.
#[derive(Clone, Debug)]
pub(crate) enum CellItems<'a> {
    One(Option<&'a [u8]>),
    Many(Take<Items<'a>>),
}

impl<'a> Iterator for CellItems<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        match self {
            Self::One(item) => item.take(),
            Self::Many(items) => items.next(),
        }
    }
}
