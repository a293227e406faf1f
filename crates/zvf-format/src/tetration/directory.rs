//! The dataset directory: names, types and shapes.

use core::fmt;

use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    little_endian::{U32, U64},
};

use super::{MAX_RANK, MIN_RECORD_LEN};
use crate::cursor::Cursor;

#[cfg(feature = "alloc")]
mod builder;

#[cfg(feature = "alloc")]
pub use builder::{DatasetDirectoryBuilder, DatasetLimit};

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawRecord {
    name_len: U32,
    dtype: U32,
    rank: U32,
    reserved: U32,
}

const _: () = assert!(size_of::<RawRecord>() == 16);

/// Returns the number of zero bytes after a name of `len` bytes, up to a multiple of 8.
fn padding(len: usize) -> usize {
    len.wrapping_neg() % 8
}

/// The datasets of a file, borrowed from the region between superblock and
/// chunk index.
///
/// Validated by [`parse`](Self::parse). Duplicate names are not detected, because that takes memory
/// and the reference writer allows them. `zvf-validate` reports them; [`find`](Self::find) returns
/// the first, like the reference.
#[derive(Clone, Copy)]
pub struct DatasetDirectory<'a> {
    len: u32,
    region_len: u64,
    records: &'a [u8],
}

impl<'a> DatasetDirectory<'a> {
    /// The directory of a file without datasets; it takes no bytes.
    pub const EMPTY: Self = Self {
        len: 0,
        region_len: 0,
        records: &[],
    };

    /// Checks `region`, the bytes of [`Superblock::directory_span`], and
    /// borrows the `datasets` records in it. One pass, no allocation.
    ///
    /// [`Superblock::directory_span`]: super::Superblock::directory_span
    ///
    /// # Errors
    ///
    /// [`DirectoryError`] describes the first invalid part.
    pub fn parse(region: &'a [u8], datasets: u32) -> Result<Self, DirectoryError> {
        use DirectoryError as E;
        if datasets == 0 {
            return match region.len() {
                0 => Ok(Self::EMPTY),
                trailing => Err(E::TrailingBytes(trailing)),
            };
        }
        let region_len = u64::try_from(region.len()).unwrap_or(u64::MAX);
        let mut cursor = Cursor::new(region);
        let declared: &U64 = cursor.take().ok_or(E::Truncated)?;
        let records = cursor.rest();
        let found = region_len.saturating_sub(8);
        if declared.get() != found {
            return Err(E::BlobLen {
                declared: declared.get(),
                found,
            });
        }
        if u64::from(datasets) > found / MIN_RECORD_LEN {
            return Err(E::Datasets(datasets));
        }
        for dataset in 0..datasets {
            let record = DatasetRecord::take(&mut cursor);
            record.map_err(|fault| E::Dataset { dataset, fault })?;
        }
        match cursor.rest().len() {
            0 => Ok(Self {
                len: datasets,
                region_len,
                records,
            }),
            trailing => Err(E::TrailingBytes(trailing)),
        }
    }

    /// Returns the number of datasets.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns whether the file has no dataset.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes the directory takes in the file, its length field included.
    pub fn region_len(&self) -> u64 {
        self.region_len
    }

    /// Returns every dataset in order of its id.
    pub fn iter(&self) -> Datasets<'a> {
        Datasets {
            left: self.len,
            cursor: Cursor::new(self.records),
        }
    }

    /// Returns dataset `id`, or `None` past the end. Takes linear time; for many lookups, collect
    /// [`iter`](Self::iter).
    pub fn get(&self, id: u64) -> Option<DatasetRecord<'a>> {
        let id = u32::try_from(id).ok().filter(|&id| id < self.len)?;
        self.iter().nth(usize::try_from(id).ok()?)
    }

    /// Returns the first dataset of this name, with its id, by linear search.
    pub fn find(&self, name: &str) -> Option<(u32, DatasetRecord<'a>)> {
        (0..self.len)
            .zip(self.iter())
            .find(|(_, dataset)| dataset.name == name)
    }
}

impl Default for DatasetDirectory<'_> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Debug for DatasetDirectory<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Compares datasets in order, ignoring padding and reserved fields.
impl PartialEq for DatasetDirectory<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl Eq for DatasetDirectory<'_> {}

impl<'a> IntoIterator for DatasetDirectory<'a> {
    type Item = DatasetRecord<'a>;
    type IntoIter = Datasets<'a>;

    fn into_iter(self) -> Datasets<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &DatasetDirectory<'a> {
    type Item = DatasetRecord<'a>;
    type IntoIter = Datasets<'a>;

    fn into_iter(self) -> Datasets<'a> {
        self.iter()
    }
}

/// Iterator over the datasets of a directory, created by [`DatasetDirectory::iter`].
#[derive(Clone)]
pub struct Datasets<'a> {
    left: u32,
    cursor: Cursor<'a>,
}

impl<'a> Iterator for Datasets<'a> {
    type Item = DatasetRecord<'a>;

    fn next(&mut self) -> Option<DatasetRecord<'a>> {
        self.left = self.left.checked_sub(1)?;
        DatasetRecord::take(&mut self.cursor).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Datasets<'_> {}
impl core::iter::FusedIterator for Datasets<'_> {}

impl fmt::Debug for Datasets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// One dataset: name, element type, shape and tile shape.
#[derive(Clone, Copy)]
pub struct DatasetRecord<'a> {
    name: &'a str,
    dtype: TetDtype,
    reserved: u32,
    shape: &'a [U64],
    chunk_shape: &'a [U64],
}

impl<'a> DatasetRecord<'a> {
    fn take(cursor: &mut Cursor<'a>) -> Result<Self, DatasetFault> {
        use DatasetFault as E;
        let head: &RawRecord = cursor.take().ok_or(E::Truncated)?;
        let rank = usize::try_from(head.rank.get()).unwrap_or(usize::MAX);
        if !(1..=MAX_RANK).contains(&rank) {
            return Err(E::Rank(head.rank.get()));
        }
        let dtype = TetDtype::from_tag(head.dtype.get());
        let dtype = dtype.ok_or(E::Dtype(head.dtype.get()))?;
        let name_len = usize::try_from(head.name_len.get()).map_err(|_| E::Truncated)?;
        let name = cursor.take_bytes(name_len).ok_or(E::Truncated)?;
        cursor.take_bytes(padding(name_len)).ok_or(E::Truncated)?;
        let shape: &[U64] = cursor.take_slice(rank).ok_or(E::Truncated)?;
        let chunk_shape: &[U64] = cursor.take_slice(rank).ok_or(E::Truncated)?;
        let name = core::str::from_utf8(name).map_err(|_| E::Name)?;
        if let Some(axis) = shape.iter().position(|extent| extent.get() == 0) {
            return Err(E::Extent { axis });
        }
        if let Some(axis) = chunk_shape.iter().position(|extent| extent.get() == 0) {
            return Err(E::ChunkExtent { axis });
        }
        Ok(Self {
            name,
            dtype,
            reserved: head.reserved.get(),
            shape,
            chunk_shape,
        })
    }

    /// Returns the name. It may be empty, but queries of the reference do not find such a dataset;
    /// slashes are ordinary characters.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Returns the element type.
    pub fn dtype(&self) -> TetDtype {
        self.dtype
    }

    /// Returns the reserved field as stored: readers ignore it, writers leave it 0.
    pub fn reserved(&self) -> u32 {
        self.reserved
    }

    /// Returns the number of axes, 1 to 8.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Returns the number of elements along each axis, none of them 0.
    pub fn shape(&self) -> Extents<'a> {
        Extents(self.shape)
    }

    /// Elements of a whole tile along each axis, none of them 0. May exceed
    /// the shape.
    pub fn chunk_shape(&self) -> Extents<'a> {
        Extents(self.chunk_shape)
    }

    /// Returns the number of tiles along each axis: ⌈shape / chunk shape⌉.
    pub fn grid(&self) -> impl ExactSizeIterator<Item = u64> + Clone + use<'a> {
        let axes = self.shape.iter().zip(self.chunk_shape);
        axes.map(|(extent, chunk)| {
            // The extent is not 0, so neither subtraction nor increment wraps.
            let whole = extent.get().wrapping_sub(1).checked_div(chunk.get());
            whole.map_or(0, |whole| whole.wrapping_add(1))
        })
    }

    /// Returns the number of tiles, all axes together; `None` past 64 bits.
    pub fn chunk_count(&self) -> Option<u64> {
        self.grid().try_fold(1, u64::checked_mul)
    }

    /// Returns the number of bytes of the whole array; `None` past 64 bits.
    pub fn byte_len(&self) -> Option<u64> {
        self.shape()
            .iter()
            .try_fold(self.dtype.size(), u64::checked_mul)
    }

    /// Returns the number of elements along `axis` of the tiles at grid position `at`: the chunk
    /// extent, or the rest of the shape at the edge. `None` outside the grid.
    pub fn tile_extent(&self, axis: usize, at: u64) -> Option<u64> {
        let extent = self.shape.get(axis)?.get();
        let chunk = self.chunk_shape.get(axis)?.get();
        let left = extent.checked_sub(at.checked_mul(chunk)?)?;
        (left != 0).then(|| left.min(chunk))
    }

    /// Returns the number of bytes of the tile at a grid coordinate, decoded. `None` if the
    /// coordinate has another rank or is outside the grid, or the length exceeds 64 bits.
    pub fn tile_byte_len(&self, coordinate: &[u64]) -> Option<u64> {
        if coordinate.len() != self.rank() {
            return None;
        }
        let mut axes = (0..self.rank()).zip(coordinate);
        axes.try_fold(self.dtype.size(), |len, (axis, &at)| {
            len.checked_mul(self.tile_extent(axis, at)?)
        })
    }
}

impl fmt::Debug for DatasetRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatasetRecord")
            .field("name", &self.name)
            .field("dtype", &self.dtype)
            .field("shape", &self.shape())
            .field("chunk_shape", &self.chunk_shape())
            .finish()
    }
}

/// Compares name, type and shapes, ignoring the reserved field.
impl PartialEq for DatasetRecord<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.name, self.dtype) == (other.name, other.dtype)
            && self.shape == other.shape
            && self.chunk_shape == other.chunk_shape
    }
}

impl Eq for DatasetRecord<'_> {}

/// One number for each axis, borrowed from a record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Extents<'a>(&'a [U64]);

impl<'a> Extents<'a> {
    /// Returns the number of axes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is no axis, which never holds for a parsed record.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the extent of one axis.
    pub fn get(&self, axis: usize) -> Option<u64> {
        self.0.get(axis).map(|extent| extent.get())
    }

    /// Returns the extents, first axis first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u64> + Clone + use<'a> {
        self.0.iter().map(|extent| extent.get())
    }
}

impl fmt::Debug for Extents<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// An element type; payloads hold its little-endian bytes.
///
/// The format has only these ten types: no bool, i8, complex or string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TetDtype {
    /// IEEE binary32, tag 1.
    F32,
    /// IEEE binary64, tag 2.
    F64,
    /// Signed 32 bits, tag 3.
    I32,
    /// Signed 64 bits, tag 4.
    I64,
    /// Unsigned 8 bits, tag 5.
    U8,
    /// Unsigned 16 bits, tag 6.
    U16,
    /// Signed 16 bits, tag 7.
    I16,
    /// Unsigned 32 bits, tag 8.
    U32,
    /// IEEE binary16, tag 9.
    F16,
    /// Unsigned 64 bits, tag 10.
    U64,
}

impl TetDtype {
    /// All types in order of their tags.
    pub const ALL: [Self; 10] = [
        Self::F32,
        Self::F64,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::I16,
        Self::U32,
        Self::F16,
        Self::U64,
    ];

    /// Returns the type a tag stands for.
    pub fn from_tag(tag: u32) -> Option<Self> {
        let at = usize::try_from(tag.checked_sub(1)?).ok()?;
        Self::ALL.get(at).copied()
    }

    /// Returns the tag in a record.
    pub fn tag(self) -> u32 {
        match self {
            Self::F32 => 1,
            Self::F64 => 2,
            Self::I32 => 3,
            Self::I64 => 4,
            Self::U8 => 5,
            Self::U16 => 6,
            Self::I16 => 7,
            Self::U32 => 8,
            Self::F16 => 9,
            Self::U64 => 10,
        }
    }

    /// Returns the number of bytes of one element.
    pub fn size(self) -> u64 {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
        }
    }

    /// Returns the name the format's own tools print.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::F16 => "f16",
            Self::U64 => "u64",
        }
    }
}

impl fmt::Display for TetDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The reason why bytes are not a dataset directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// The bytes end inside the blob length.
    #[error("bytes end inside the directory's length")]
    Truncated,
    /// The blob length is not that of the bytes up to the chunk index.
    #[error("directory declares {declared} bytes of records, but {found} are present")]
    BlobLen {
        /// The value of the length field.
        declared: u64,
        /// Bytes after the length field.
        found: u64,
    },
    /// The declared number of records does not fit; checked before any is read.
    #[error("{0} datasets do not fit in the directory")]
    Datasets(u32),
    /// A record is invalid.
    #[error("dataset {dataset}")]
    Dataset {
        /// Its position.
        dataset: u32,
        /// Its fault.
        #[source]
        fault: DatasetFault,
    },
    /// Bytes are left after the last record.
    #[error("{0} bytes left after the last dataset")]
    TrailingBytes(usize),
}

/// Fault of a dataset record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetFault {
    /// The directory ends inside the record.
    #[error("the directory ends inside the record")]
    Truncated,
    /// The rank is not 1 to 8.
    #[error("rank {0} is not 1 to 8")]
    Rank(u32),
    /// The tag stands for no element type.
    #[error("dtype tag {0} is unknown")]
    Dtype(u32),
    /// The name is not UTF-8.
    #[error("the name is not UTF-8")]
    Name,
    /// The shape has a zero.
    #[error("the extent of axis {axis} is 0")]
    Extent {
        /// The first such axis.
        axis: usize,
    },
    /// The chunk shape has a zero.
    #[error("the chunk extent of axis {axis} is 0")]
    ChunkExtent {
        /// The first such axis.
        axis: usize,
    },
}
