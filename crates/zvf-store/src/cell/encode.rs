//! Encoding of cells and shards into objects.

use std::borrow::Cow;

use bytes::Bytes;
use zvf_format::vlen::{self, VlenFrame};
use zvf_model::{key::Key, zarr::IndexError};

use super::array::{CellArray, CellContents};
use zvf_codecs::{EncodeError, ShardLayout};

impl CellArray {
    /// Returns the key of the object that holds the cell at `index` and, in a sharded array, the
    /// number of the cell in it, for [`encode_shard`](Self::encode_shard).
    ///
    /// ```
    /// # use zvf_model::{key::Key, zarr::Node};
    /// # use zvf_store::CellArray;
    /// # let json = br#"{"zarr_format": 3, "node_type": "array", "shape": [9, 9],
    /// #   "data_type": "uint8", "fill_value": 0, "codecs": [{"name": "bytes"}],
    /// #   "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 3]}},
    /// #   "chunk_key_encoding": {"name": "default"}}"#;
    /// # let node = Node::parse(&Key::parse("a/zarr.json")?, json)?;
    /// let array = CellArray::new(Key::parse("a")?, node.as_array().ok_or("a group")?.clone())?;
    /// let (key, number) = array.locate(&[4, 2])?;
    /// assert_eq!((key.as_str(), number), ("a/c/4/2", None));
    /// assert_eq!(array.encode(b"abc")?, "abc");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`IndexError`] when the array has no such cell.
    pub fn locate(&self, index: &[u64]) -> Result<(Key, Option<u64>), IndexError> {
        self.description().locate(index)
    }

    /// Returns the number of cells in a shard, or `None` if the array is not sharded.
    pub fn cells_per_shard(&self) -> Option<u64> {
        let sharding = self.description().sharding.as_ref();
        sharding.map(ShardLayout::count)
    }

    /// Encodes a cell.
    ///
    /// `payload` has the form in which [`CellReader`](crate::CellReader) returns it: the byte string
    /// of a cell of one, the frame of several, and otherwise the elements in the byte order of the
    /// array.
    ///
    /// # Errors
    ///
    /// [`EncodeError`]; also for a payload that could not be read back: elements of another size, a
    /// frame with another number of byte strings, a byte string of 4 GiB or more.
    pub fn encode(&self, payload: &[u8]) -> Result<Bytes, EncodeError> {
        let array = self.description();
        let bytes = match array.items {
            CellContents::Fixed(expected) => {
                let found = u64::try_from(payload.len()).unwrap_or(u64::MAX);
                if found != expected {
                    return Err(EncodeError::Size { expected, found });
                }
                Cow::Borrowed(payload)
            }
            CellContents::Framed => Cow::Owned(vlen::encode(&[payload])?),
            CellContents::Frames => {
                let found = VlenFrame::parse(payload)?.len();
                let extents = self.metadata().decoded_shape().iter();
                let expected = extents.copied().fold(1, u64::saturating_mul);
                if u64::from(found) != expected {
                    return Err(EncodeError::ItemCount { expected, found });
                }
                Cow::Borrowed(payload)
            }
        };
        array.codecs.encode_cow(bytes)
    }

    /// Encodes a shard from the numbers and payloads of its cells, in any order. Cells that are left
    /// out are absent.
    ///
    /// Cells are stored in the order of zarr-python (Morton order, first axis fastest) and without
    /// gaps, so equal cells give equal shards.
    ///
    /// # Errors
    ///
    /// [`EncodeError`]; [`EncodeError::NotSharded`] for an array without shards.
    pub fn encode_shard(&self, cells: &[(u64, Bytes)]) -> Result<Bytes, EncodeError> {
        let sharding = self
            .description()
            .sharding
            .as_ref()
            .ok_or(EncodeError::NotSharded)?;
        let cells = cells.iter().map(|(number, payload)| {
            let cell = self.encode(payload)?;
            Ok((*number, cell))
        });
        sharding.encode(cells.collect::<Result<_, EncodeError>>()?)
    }
}
