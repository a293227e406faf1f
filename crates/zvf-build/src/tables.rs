//! Writers of table arrays: rows of values, byte strings and blobs.

use serde_json::Value;
use zvf_format::{numeric::Kind, vlen};
use zvf_model::{
    key::Key,
    metadata::Attributes,
    zarr::{Array, Codecs, DataType},
};

use crate::{
    error::BuildError,
    metadata::{self, Encoding},
    output::Output,
    stored_column::TableColumn,
};

/// Upper bound on manifests in a chunk of the object index, as other writers have it.
pub(crate) const MANIFESTS: usize = 16_384;
/// Target size of a chunk of manifests before compression. A lookup reads and decodes one chunk, a
/// scan all of them; they compress about fifteenfold.
const CHUNK_BYTES: usize = 256 << 10;
/// The same in a sharded level, which is meant for storage where requests are slow and bytes fast.
const SHARDED_CHUNK_BYTES: usize = 1 << 20;
/// Upper bound on rows in a chunk of a table.
const ROWS: usize = 65_536;

/// Returns the number of manifests in a chunk of the index.
pub(crate) fn manifests_per_chunk(manifests: &[Vec<u8>], is_sharded: bool) -> usize {
    let bytes: usize = manifests.iter().map(|manifest| manifest.len() + 4).sum();
    manifests_per_chunk_of(manifests.len(), bytes, is_sharded)
}

/// Returns the number of manifests in a chunk of the index, of as many manifests, which have `bytes`
/// bytes with four for the length of each.
pub(crate) fn manifests_per_chunk_of(manifests: usize, bytes: usize, is_sharded: bool) -> usize {
    let target = if is_sharded {
        SHARDED_CHUNK_BYTES
    } else {
        CHUNK_BYTES
    };
    let rows = target
        .saturating_mul(manifests)
        .checked_div(bytes)
        .unwrap_or(0);
    // A power of two, so that small changes do not shift every chunk.
    let rows = (rows + 1).next_power_of_two() / 2;
    rows.clamp(64, MANIFESTS)
}

/// Writes bytes as an array of a single chunk.
pub(crate) fn blob(outputs: &mut Vec<Output>, encoding: &Encoding, key: Key, bytes: Vec<u8>) {
    let array = metadata::blob(encoding, bytes.len());
    outputs.push(Output::node(key.clone(), array));
    if !bytes.is_empty() {
        outputs.push(Output::Cell {
            array: key,
            index: vec![0],
            payload: bytes,
        });
    }
}

/// Returns the size of manifests of `runs` fragments of paths, with four bytes for the length of each
/// manifest.
pub(crate) fn framed_bytes(paths: u64, runs: u64, axes: usize) -> u64 {
    // The number of blocks; coordinates, mode and number of each.
    let block = axes as u64 * 8 + 9;
    (paths * 8).saturating_add(runs.saturating_mul(block))
}

/// Encoded rows of a table.
#[derive(Debug)]
pub(crate) struct EncodedRows<'a> {
    data_type: DataType,
    /// Size of a value in bytes.
    size: usize,
    /// Number of values in a row, if more than one.
    tail: Option<usize>,
    fill: (Value, Vec<u8>),
    /// Number of rows in a chunk, also if there are fewer rows; `None` chooses it.
    chunk: Option<usize>,
    bytes: &'a [u8],
}

impl<'a> EncodedRows<'a> {
    /// Borrows the rows of a column.
    pub(crate) fn of(column: &'a TableColumn) -> Self {
        Self {
            data_type: column.data_type(),
            size: column.size,
            tail: (column.columns > 1).then_some(column.columns),
            fill: column.fill.clone(),
            chunk: None,
            bytes: &column.bytes,
        }
    }

    /// Describes rows of numbers that are written later.
    pub(crate) fn later(kind: Kind, columns: usize, fill: (Value, Vec<u8>)) -> Self {
        Self {
            data_type: DataType::Number(kind),
            size: kind.size(),
            tail: (columns > 1).then_some(columns),
            fill,
            chunk: None,
            bytes: &[],
        }
    }

    /// Borrows rows of 64-bit floats.
    pub(crate) fn floats(columns: usize, bytes: &'a [u8]) -> Self {
        Self {
            data_type: DataType::Number(Kind::Float64),
            size: 8,
            tail: Some(columns),
            fill: (0.0.into(), vec![0; 8]),
            chunk: None,
            bytes,
        }
    }

    /// Borrows object ids.
    pub(crate) fn ids(bytes: &'a [u8]) -> Self {
        Self {
            data_type: DataType::Number(Kind::Int64),
            size: 8,
            tail: None,
            fill: (0.into(), vec![0; 8]),
            chunk: None,
            bytes,
        }
    }
}

impl<'a> EncodedRows<'a> {
    /// Borrows rows of several integers.
    pub(crate) fn wide_ids(columns: usize, bytes: &'a [u8]) -> Self {
        Self {
            tail: Some(columns),
            ..Self::ids(bytes)
        }
    }

    /// Borrows rows of a dense object index.
    pub(crate) fn of_dense_index(columns: usize, bytes: &'a [u8]) -> Self {
        Self {
            chunk: Some(MANIFESTS),
            ..Self::wide_ids(columns, bytes)
        }
    }
}

/// Writes rows as an array in chunks, so that a change rewrites some of them only.
pub(crate) fn rows(
    outputs: &mut Vec<Output>,
    codecs: Codecs,
    key: &Key,
    attributes: Attributes,
    values: &EncodedRows<'_>,
) {
    let row = values.row_size();
    let count = values.bytes.len() / row;
    let chunk = values.chunk.unwrap_or(rows_at_once(count));
    let array = values.array(codecs, attributes, count, chunk);
    outputs.push(Output::node(key.clone(), array));
    for (at, part) in values.bytes.chunks(chunk * row).enumerate() {
        outputs.push(values.cell(key, at, part.to_vec(), chunk));
    }
}

/// Returns the number of rows in a chunk of a table with `count` rows.
pub(crate) fn rows_at_once(count: usize) -> usize {
    count.clamp(1, ROWS)
}

impl EncodedRows<'_> {
    /// Returns the size of a row.
    pub(crate) fn row_size(&self) -> usize {
        self.size * self.tail.unwrap_or(1)
    }

    /// Returns an array of `count` rows, with `chunk` rows in a chunk.
    pub(crate) fn array(
        &self,
        codecs: Codecs,
        attributes: Attributes,
        count: usize,
        chunk: usize,
    ) -> Array {
        let with = |rows: usize| {
            let tail = self.tail.iter().map(|tail| *tail as u64);
            [rows as u64].into_iter().chain(tail).collect()
        };
        let (data_type, fill) = (self.data_type.clone(), self.fill.0.clone());
        let array = Array::new(with(count), data_type, with(chunk), fill, codecs);
        array.with_attributes(attributes)
    }

    /// Returns the cell of a chunk of `chunk` rows. Fewer rows are padded with the fill value.
    pub(crate) fn cell(&self, array: &Key, at: usize, rows: Vec<u8>, chunk: usize) -> Output {
        let mut payload = rows;
        let missing = (chunk * self.row_size() - payload.len()) / self.size;
        payload.extend(self.fill.1.repeat(missing));
        let mut index = vec![at as u64];
        index.extend(self.tail.iter().map(|_| 0));
        Output::Cell {
            array: array.clone(),
            index,
            payload,
        }
    }
}

/// Writes byte strings as an array, framed by chunk.
pub(crate) fn strings(
    outputs: &mut Vec<Output>,
    codecs: Codecs,
    key: &Key,
    attributes: Attributes,
    items: &[Vec<u8>],
    max: usize,
) -> Result<(), BuildError> {
    let chunk = items.len().clamp(1, max);
    let array = metadata::strings(codecs, items.len() as u64, chunk as u64, attributes);
    outputs.push(Output::node(key.clone(), array));
    for (at, part) in items.chunks(chunk).enumerate() {
        let at = at as u64;
        outputs.push(Output::Cell {
            array: key.clone(),
            index: vec![at],
            payload: framed(key, at, part, chunk)?,
        });
    }
    Ok(())
}

/// Frames the byte strings of a chunk, padded with empty ones to its length.
pub(crate) fn framed<B: AsRef<[u8]>>(
    array: &Key,
    at: u64,
    items: &[B],
    chunk: usize,
) -> Result<Vec<u8>, BuildError> {
    let mut items: Vec<&[u8]> = items.iter().map(AsRef::as_ref).collect();
    items.resize(chunk, &[]);
    match items.as_slice() {
        // The codec adds the frame of a single string.
        [one] => Ok(one.to_vec()),
        items => vlen::encode(items).map_err(|_| BuildError::CellSize {
            chunk: at.to_string(),
            array: array.to_string(),
            bytes: items.iter().map(|item| item.len() as u64).sum(),
        }),
    }
}
