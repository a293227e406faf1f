//! Writers of table arrays: rows of values, byte strings and blobs.

use serde_json::{Map, Value, json};
use zvf_format::vlen;

use crate::{
    error::BuildError,
    metadata::{ArrayNode, Encoding},
    output::{Output, node},
    stored_column::TableColumn,
};

/// Upper bound on manifests in a chunk of the object index, as other writers have it.
pub(crate) const MANIFESTS: usize = 16_384;
/// Target size of a chunk of manifests before compression. A lookup reads and decodes one chunk, a
/// scan all of them; they compress about fifteenfold.
const LOOKUP: usize = 256 << 10;
/// Upper bound on rows in a chunk of a table.
const ROWS: usize = 65_536;

/// Returns the number of manifests in a chunk of the index.
pub(crate) fn at_once(manifests: &[Vec<u8>]) -> usize {
    let bytes: usize = manifests.iter().map(|manifest| manifest.len() + 4).sum();
    let rows = (LOOKUP * manifests.len()).checked_div(bytes).unwrap_or(0);
    // A power of two, so that small changes do not shift every chunk.
    let rows = (rows + 1).next_power_of_two() / 2;
    rows.clamp(64, MANIFESTS)
}

/// Writes bytes as an array of a single chunk.
pub(crate) fn blob(outputs: &mut Vec<Output>, encoding: &Encoding, path: String, bytes: Vec<u8>) {
    outputs.push(node(&path, ArrayNode::blob(encoding, bytes.len()).json()));
    if !bytes.is_empty() {
        outputs.push(Output::Cell {
            array: path,
            index: vec![0],
            payload: bytes,
        });
    }
}

pub(crate) fn shape(column: &TableColumn) -> Value {
    let rows = column.present.len();
    match column.columns {
        1 => json!([rows]),
        columns => json!([rows, columns]),
    }
}

/// Encoded rows of a table.
pub(crate) struct EncodedRows<'a> {
    data_type: Value,
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
            data_type: column.data_type.clone(),
            size: column.size,
            tail: (column.columns > 1).then_some(column.columns),
            fill: column.fill.clone(),
            chunk: None,
            bytes: &column.bytes,
        }
    }

    /// Borrows rows of 64-bit floats.
    pub(crate) fn floats(columns: usize, bytes: &'a [u8]) -> Self {
        Self {
            data_type: json!("float64"),
            size: 8,
            tail: Some(columns),
            fill: (json!(0.0), vec![0; 8]),
            chunk: None,
            bytes,
        }
    }

    /// Borrows object ids.
    pub(crate) fn ids(bytes: &'a [u8]) -> Self {
        Self {
            data_type: json!("int64"),
            size: 8,
            tail: None,
            fill: (json!(0), vec![0; 8]),
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
    codecs: Vec<Value>,
    path: &str,
    attributes: Map<String, Value>,
    values: &EncodedRows<'_>,
) {
    let row = values.size * values.tail.unwrap_or(1);
    let count = values.bytes.len() / row;
    let chunk = values.chunk.unwrap_or(count.clamp(1, ROWS));
    let tail: Vec<u64> = values.tail.iter().map(|tail| *tail as u64).collect();
    let with = |rows: usize| [&[rows as u64][..], &tail].concat();
    let node = ArrayNode {
        shape: with(count),
        data_type: values.data_type.clone(),
        chunk_shape: with(chunk),
        fill: values.fill.0.clone(),
        codecs,
        attributes,
    };
    outputs.push(crate::output::node(path, node.json()));
    for (at, part) in values.bytes.chunks(chunk * row).enumerate() {
        let mut payload = part.to_vec();
        // The last chunk is padded with the fill value.
        let missing = (chunk * row - part.len()) / values.size;
        payload.extend(values.fill.1.repeat(missing));
        let mut index = vec![at as u64];
        index.extend(tail.iter().map(|_| 0));
        outputs.push(Output::Cell {
            array: path.to_owned(),
            index,
            payload,
        });
    }
}

/// Writes byte strings as an array, framed by chunk.
pub(crate) fn strings(
    outputs: &mut Vec<Output>,
    codecs: Vec<Value>,
    path: &str,
    attributes: Map<String, Value>,
    items: &[Vec<u8>],
    max: usize,
) -> Result<(), BuildError> {
    let chunk = items.len().clamp(1, max);
    let array = ArrayNode::strings(codecs, items.len() as u64, chunk as u64, attributes);
    outputs.push(node(path, array.json()));
    for (at, part) in items.chunks(chunk).enumerate() {
        let at = at as u64;
        outputs.push(Output::Cell {
            array: path.to_owned(),
            index: vec![at],
            payload: framed(path, at, part, chunk)?,
        });
    }
    Ok(())
}

/// Frames the byte strings of a chunk, padded with empty ones to its length.
pub(crate) fn framed<B: AsRef<[u8]>>(
    path: &str,
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
            array: path.to_owned(),
            bytes: items.iter().map(|item| item.len() as u64).sum(),
        }),
    }
}
