//! Where the chunks of an array are and how they are stored.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    codec::{ChunkCodecs, CodecsError},
    shard::Sharding,
};

/// An array as far as reading its cells needs it. A cell is the smallest part
/// that can be read: a chunk, or an inner chunk of a sharded array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellArray(Arc<Description>);

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Description {
    /// The array's own key, and of every object below it.
    pub(crate) node: String,
    pub(crate) rank: usize,
    pub(crate) codecs: ChunkCodecs,
    pub(crate) sharding: Option<Sharding>,
    pub(crate) items: Items,
    separator: char,
    /// Whether chunk keys start with `c`.
    marked: bool,
}

/// What a decoded cell holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Items {
    /// So many bytes.
    Fixed(u64),
    /// A frame of one byte string, which is the payload.
    Framed,
    /// A frame of so many byte strings.
    Frames,
}

/// Why metadata do not describe an array whose cells can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CellArrayError {
    /// A field of the metadata is missing, of another type, or has a value
    /// that is not supported.
    #[error("{0:?} is missing or not supported")]
    Field(&'static str),
    /// The elements of a chunk take more bytes than a number can say.
    #[error("a chunk is too large")]
    ChunkSize,
    /// The serialiser of bytes cannot hold values of the data type.
    #[error("codec does not fit the data type")]
    Serialiser,
    /// The codecs cannot be undone.
    #[error("codecs cannot be undone")]
    Codecs(#[from] CodecsError),
}

/// Zarr has no limit; numpy has 64, and nothing here has more than ten.
const MAX_RANK: usize = 32;

impl CellArray {
    /// Reads the array `node` from its `zarr.json`.
    ///
    /// # Errors
    ///
    /// [`CellArrayError`] when its cells could not be read.
    pub fn parse(node: &str, metadata: &Value) -> Result<Self, CellArrayError> {
        use CellArrayError::Field;
        let is = |key, want: &str| metadata.get(key).is_some_and(|found| found == want);
        if metadata.get("zarr_format").and_then(Value::as_u64) != Some(3) {
            return Err(Field("zarr_format"));
        }
        if !is("node_type", "array") {
            return Err(Field("node_type"));
        }
        let grid = metadata.get("chunk_grid").ok_or(Field("chunk_grid"))?;
        if grid.get("name").is_none_or(|name| name != "regular") {
            return Err(Field("chunk_grid"));
        }
        let shape = grid.get("configuration").and_then(|c| c.get("chunk_shape"));
        let shape = shape
            .and_then(Value::as_array)
            .ok_or(Field("chunk_shape"))?;
        let outer: Option<Vec<u64>> = shape.iter().map(Value::as_u64).collect();
        let outer = outer.ok_or(Field("chunk_shape"))?;
        if outer.len() > MAX_RANK || outer.contains(&0) {
            return Err(Field("chunk_shape"));
        }
        let (marked, separator) =
            key_encoding(metadata.get("chunk_key_encoding")).ok_or(Field("chunk_key_encoding"))?;
        let codecs = metadata.get("codecs").ok_or(Field("codecs"))?;
        let sharding = Sharding::parse(codecs, &outer)?;
        let codecs = match &sharding {
            Some(sharding) => sharding.codecs.clone(),
            None => ChunkCodecs::parse(codecs)?,
        };
        let inner = sharding.as_ref().map_or(&outer, |s| &s.chunk_shape);
        let data_type = metadata.get("data_type").and_then(Value::as_str);
        let items = Items::of(data_type.ok_or(Field("data_type"))?, inner)?;
        let framed = codecs.form() == crate::codec::ChunkForm::VlenFrame;
        if framed == matches!(items, Items::Fixed(_)) {
            return Err(CellArrayError::Serialiser);
        }
        Ok(Self(Arc::new(Description {
            node: node.to_owned(),
            rank: outer.len(),
            codecs,
            sharding,
            items,
            separator,
            marked,
        })))
    }

    /// The array's key.
    pub fn node(&self) -> &str {
        &self.0.node
    }

    /// Number of axes, as of a cell's index.
    pub fn rank(&self) -> usize {
        self.0.rank
    }

    /// Whether a part of a cell can be read without the rest.
    pub fn is_plain(&self) -> bool {
        self.0.codecs.is_plain()
    }

    /// Whether many cells share an object.
    pub fn is_sharded(&self) -> bool {
        self.0.sharding.is_some()
    }

    /// The codecs of a cell.
    pub fn codecs(&self) -> &ChunkCodecs {
        &self.0.codecs
    }

    pub(crate) fn description(&self) -> &Arc<Description> {
        &self.0
    }
}

impl Description {
    /// The key of a chunk or shard.
    pub(crate) fn chunk_key(&self, index: &[u64]) -> String {
        let mut parts: Vec<String> = index.iter().map(u64::to_string).collect();
        if self.marked {
            parts.insert(0, "c".to_owned());
        } else if parts.is_empty() {
            parts.push("0".to_owned());
        }
        let below = parts.join(self.separator.encode_utf8(&mut [0; 4]));
        match &*self.node {
            "" => below,
            node => format!("{node}/{below}"),
        }
    }
}

impl Items {
    fn of(data_type: &str, shape: &[u64]) -> Result<Self, CellArrayError> {
        let width = match data_type {
            "variable_length_bytes" | "bytes" | "string" => None,
            "bool" | "int8" | "uint8" => Some(1),
            "int16" | "uint16" | "float16" => Some(2),
            "int32" | "uint32" | "float32" => Some(4),
            "int64" | "uint64" | "float64" | "complex64" => Some(8),
            "complex128" => Some(16),
            _ => return Err(CellArrayError::Field("data_type")),
        };
        let size = |width: u64| {
            let extents = shape.iter();
            extents.copied().try_fold(width, u64::checked_mul)
        };
        let items = size(1).ok_or(CellArrayError::ChunkSize)?;
        match width {
            Some(width) => size(width)
                .map(Self::Fixed)
                .ok_or(CellArrayError::ChunkSize),
            None if items == 1 => Ok(Self::Framed),
            None => Ok(Self::Frames),
        }
    }
}

/// Whether keys start with `c`, and what separates their numbers.
fn key_encoding(encoding: Option<&Value>) -> Option<(bool, char)> {
    let encoding = encoding?;
    let name = encoding.get("name").or(Some(encoding))?.as_str()?;
    let separator = encoding
        .get("configuration")
        .and_then(|c| c.get("separator"));
    let separator = match separator.map(Value::as_str) {
        None => None,
        Some(Some("/")) => Some('/'),
        Some(Some(".")) => Some('.'),
        Some(_) => return None,
    };
    match name {
        "default" => Some((true, separator.unwrap_or('/'))),
        "v2" => Some((false, separator.unwrap_or('.'))),
        _ => None,
    }
}
