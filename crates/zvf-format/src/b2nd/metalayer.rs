//! The array metalayer: shape, chunk shape and block shape.

use core::fmt;

use zerocopy::{
    FromBytes, Immutable, KnownLayout, Unaligned,
    big_endian::{I32, I64, U32},
};

use super::{Blosc2Frame, FrameHeader, Marked, marker};
use crate::{cursor::Cursor, sign::Sign};

#[cfg(feature = "alloc")]
mod builder;

#[cfg(feature = "alloc")]
pub use builder::{NdLimit, NdMetalayerBuilder};

/// Dialect of the dtype text of NumPy; no other is in use.
pub const DTYPE_NUMPY: u8 = 0;

/// The only version. The reference reads others as if they were this one; nothing has ever written
/// them, so what they would mean is unknown.
const VERSION: u8 = 0;

#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawHead {
    entries: u8,
    version: u8,
    rank: u8,
}

/// The form of the metalayer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NdForm {
    /// Blosc2's own: seven entries, with an item type.
    B2nd,
    /// Caterva: five entries.
    Caterva,
}

impl NdForm {
    /// Returns the metalayer's name in the frame.
    pub fn name(self) -> &'static str {
        match self {
            Self::B2nd => "b2nd",
            Self::Caterva => "caterva",
        }
    }

    /// Maximum number of axes. Sixteen axes do not fit the short arrays of MessagePack, which
    /// Blosc2 writes regardless and Caterva does not.
    pub fn max_rank(self) -> u8 {
        match self {
            Self::B2nd => 16,
            Self::Caterva => 15,
        }
    }

    fn head(self) -> u8 {
        match self {
            Self::B2nd => marker::FIXARRAY | 7,
            Self::Caterva => marker::FIXARRAY | 5,
        }
    }
}

/// An array's shape, chunk shape, block shape and item type, borrowed from the
/// body of its metalayer.
///
/// Validated by [`parse`](Self::parse); [`check`](Self::check) compares it with the frame's header.
#[derive(Clone, Copy)]
pub struct NdMetalayer<'a> {
    shape: &'a [Marked<I64>],
    chunk_shape: &'a [Marked<I32>],
    block_shape: &'a [Marked<I32>],
    dtype: Option<(u8, &'a str)>,
}

impl<'a> NdMetalayer<'a> {
    /// Checks `bytes`, the body of the metalayer of that form, and borrows their content. One pass,
    /// no allocation.
    ///
    /// # Errors
    ///
    /// [`NdMetalayerError`] describes the first invalid part.
    pub fn parse(form: NdForm, bytes: &'a [u8]) -> Result<Self, NdMetalayerError> {
        use NdMetalayerError as E;
        let mut cursor = Cursor::new(bytes);
        let head: &RawHead = cursor.take().ok_or(E::Truncated(NdPart::Head))?;
        if head.entries != form.head() {
            return Err(E::Entries(head.entries));
        }
        if head.version != VERSION {
            return Err(E::Version(head.version));
        }
        if head.rank > form.max_rank() {
            return Err(E::Rank(head.rank));
        }
        let shape = take_list::<I64>(&mut cursor, head.rank, NdPart::Shape)?;
        let chunk_shape = take_list::<I32>(&mut cursor, head.rank, NdPart::ChunkShape)?;
        let block_shape = take_list::<I32>(&mut cursor, head.rank, NdPart::BlockShape)?;
        let dtype = match form {
            NdForm::B2nd => Some(take_dtype(&mut cursor)?),
            NdForm::Caterva => None,
        };
        if !cursor.rest().is_empty() {
            return Err(E::TrailingBytes(cursor.rest().len()));
        }
        let chunks = chunk_shape.iter().map(|extent| extent.value.get());
        let blocks = block_shape.iter().map(|extent| extent.value.get());
        let axes = shape.iter().zip(chunks.zip(blocks)).enumerate();
        for (axis, (extent, (chunk, block))) in axes {
            let extent = extent.value.get();
            if extent < 0 || chunk < 0 || block < 0 {
                return Err(E::Negative { axis });
            }
            if extent > 0 && (chunk == 0 || block == 0) {
                return Err(E::Zero { axis });
            }
            if block > chunk {
                return Err(E::BlockPastChunk { axis });
            }
        }
        Ok(Self {
            shape,
            chunk_shape,
            block_shape,
            dtype,
        })
    }

    /// Returns the form of the metalayer.
    pub fn form(&self) -> NdForm {
        match self.dtype {
            Some(_) => NdForm::B2nd,
            None => NdForm::Caterva,
        }
    }

    /// Returns the number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Returns the number of items along each axis.
    pub fn shape(&self) -> NdShape<'a> {
        NdShape(self.shape)
    }

    /// Returns the number of items of a chunk along each axis; may exceed the shape. 0 only where
    /// the shape is.
    pub fn chunk_shape(&self) -> NdExtents<'a> {
        NdExtents(self.chunk_shape)
    }

    /// Returns the number of items of a block along each axis, at most those of a chunk. 0 only
    /// where the shape is.
    pub fn block_shape(&self) -> NdExtents<'a> {
        NdExtents(self.block_shape)
    }

    /// Returns the item type as text, in the dialect that [`dtype_format`](Self::dtype_format)
    /// returns. `None` in a Caterva array.
    pub fn dtype(&self) -> Option<&'a str> {
        self.dtype.map(|(_, text)| text)
    }

    /// Returns the dialect of [`dtype`](Self::dtype): [`DTYPE_NUMPY`] in every file seen.
    pub fn dtype_format(&self) -> Option<u8> {
        self.dtype.map(|(format, _)| format)
    }

    /// Returns the number of chunks along each axis: ⌈shape / chunk shape⌉.
    pub fn grid(&self) -> impl ExactSizeIterator<Item = u64> + Clone + use<'a> {
        let axes = self.shape().iter().zip(self.chunk_shape().iter());
        axes.map(|(extent, chunk)| cells(extent, u64::from(chunk)))
    }

    /// Returns the number of blocks of a chunk along each axis: ⌈chunk shape / block shape⌉.
    pub fn block_grid(&self) -> impl ExactSizeIterator<Item = u64> + Clone + use<'a> {
        let axes = self.chunk_shape().iter().zip(self.block_shape().iter());
        axes.map(|(chunk, block)| cells(u64::from(chunk), u64::from(block)))
    }

    /// Returns the number of chunks, 1 for an array without axes; `None` past 64 bits.
    pub fn chunk_count(&self) -> Option<u64> {
        self.grid().try_fold(1, u64::checked_mul)
    }

    /// Returns the number of blocks of a chunk; `None` past 64 bits.
    pub fn block_count(&self) -> Option<u64> {
        self.block_grid().try_fold(1, u64::checked_mul)
    }

    /// Returns the number of bytes of a decoded block with items of `typesize` bytes; `None` past
    /// 64 bits.
    pub fn block_len(&self, typesize: u32) -> Option<u64> {
        let mut extents = self.block_shape().iter().map(u64::from);
        extents.try_fold(u64::from(typesize), u64::checked_mul)
    }

    /// Returns the number of bytes of a decoded chunk, padding included; `None` past 64 bits.
    pub fn chunk_len(&self, typesize: u32) -> Option<u64> {
        self.block_len(typesize)?.checked_mul(self.block_count()?)
    }

    /// Compares the array with the header of its frame: sizes of block and chunk, and number of
    /// chunks.
    ///
    /// The length of the item type is not compared with the header's `typesize`, because this layer
    /// does not interpret dtypes.
    ///
    /// # Errors
    ///
    /// [`NdGeometryError`] names the first size that does not agree.
    pub fn check(&self, header: &FrameHeader<'_>) -> Result<(), NdGeometryError> {
        use NdGeometryError as E;
        let typesize = header.typesize();
        if self.block_len(typesize) != Some(u64::from(header.blocksize())) {
            return Err(E::Blocksize(header.blocksize()));
        }
        let chunksize = u64::from(header.chunksize());
        if self.chunk_len(typesize) != Some(chunksize) {
            return Err(E::Chunksize(header.chunksize()));
        }
        let chunks = self.chunk_count();
        let nbytes = chunks.and_then(|chunks| chunks.checked_mul(chunksize));
        if nbytes != Some(header.nbytes()) {
            return Err(E::Nbytes(header.nbytes()));
        }
        Ok(())
    }
}

/// Returns the number of parts of `part` items that cover `whole`; 0 if either is 0.
fn cells(whole: u64, part: u64) -> u64 {
    let before_last = whole.checked_sub(1).and_then(|last| last.checked_div(part));
    // At most 2^63 − 1, the largest shape.
    before_last.map_or(0, |count| count.wrapping_add(1))
}

fn take_list<'a, T>(
    cursor: &mut Cursor<'a>,
    rank: u8,
    part: NdPart,
) -> Result<&'a [Marked<T>], NdMetalayerError>
where
    T: FromBytes + Immutable + KnownLayout + Unaligned,
{
    use NdMetalayerError as E;
    let head: &u8 = cursor.take().ok_or(E::Truncated(part))?;
    // For 16 axes this is 0xa0, a marker of another kind: see the module's tables.
    if *head != marker::FIXARRAY.wrapping_add(rank) {
        return Err(E::ListHead { part, head: *head });
    }
    let list: Option<&[Marked<T>]> = cursor.take_slice(usize::from(rank));
    let list = list.ok_or(E::Truncated(part))?;
    let marker = match part {
        NdPart::Shape => marker::I64,
        _ => marker::I32,
    };
    match list.iter().find(|entry| entry.marker != marker) {
        Some(entry) => Err(E::Marker {
            part,
            marker: entry.marker,
        }),
        None => Ok(list),
    }
}

fn take_dtype<'a>(cursor: &mut Cursor<'a>) -> Result<(u8, &'a str), NdMetalayerError> {
    use NdMetalayerError as E;
    const PART: NdPart = NdPart::Dtype;
    let format: &u8 = cursor.take().ok_or(E::Truncated(PART))?;
    if *format > 0x7f {
        return Err(E::Marker {
            part: PART,
            marker: *format,
        });
    }
    let head: &Marked<U32> = cursor.take().ok_or(E::Truncated(PART))?;
    if head.marker != marker::STR32 {
        return Err(E::Marker {
            part: PART,
            marker: head.marker,
        });
    }
    let len = usize::try_from(head.value.get()).ok();
    let text = len
        .and_then(|len| cursor.take_bytes(len))
        .ok_or(E::Truncated(PART))?;
    let text = core::str::from_utf8(text).map_err(|_| E::DtypeText)?;
    Ok((*format, text))
}

impl fmt::Debug for NdMetalayer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NdMetalayer")
            .field("form", &self.form())
            .field("shape", &self.shape())
            .field("chunk_shape", &self.chunk_shape())
            .field("block_shape", &self.block_shape())
            .field("dtype", &self.dtype())
            .finish()
    }
}

impl PartialEq for NdMetalayer<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.dtype == other.dtype
            && self.shape() == other.shape()
            && self.chunk_shape() == other.chunk_shape()
            && self.block_shape() == other.block_shape()
    }
}

impl Eq for NdMetalayer<'_> {}

/// An array's items along each axis, borrowed from the metalayer.
#[derive(Clone, Copy)]
pub struct NdShape<'a>(&'a [Marked<I64>]);

impl<'a> NdShape<'a> {
    /// Returns the number of axes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is no axis: the array is one item.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the extent of one axis.
    pub fn get(&self, axis: usize) -> Option<u64> {
        let extent = self.0.get(axis)?;
        Some(extent.value.get().unsigned())
    }

    /// Returns the extents, first axis first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u64> + Clone + use<'a> {
        self.0.iter().map(|extent| extent.value.get().unsigned())
    }
}

impl fmt::Debug for NdShape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for NdShape<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for NdShape<'_> {}

/// Items of a chunk or block along each axis, borrowed from the metalayer.
#[derive(Clone, Copy)]
pub struct NdExtents<'a>(&'a [Marked<I32>]);

impl<'a> NdExtents<'a> {
    /// Returns the number of axes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is no axis: the array is one item.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the extent of one axis.
    pub fn get(&self, axis: usize) -> Option<u32> {
        let extent = self.0.get(axis)?;
        Some(extent.value.get().unsigned())
    }

    /// Returns the extents, first axis first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u32> + Clone + use<'a> {
        self.0.iter().map(|extent| extent.value.get().unsigned())
    }
}

impl fmt::Debug for NdExtents<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for NdExtents<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for NdExtents<'_> {}

/// The reason why bytes are not an array metalayer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NdMetalayerError {
    /// The bytes end inside this part.
    #[error("bytes end inside the {0}")]
    Truncated(NdPart),
    /// The first byte is not the array head of this form.
    #[error("head {0:#04x} is not that of the metalayer's entries")]
    Entries(u8),
    /// A version this crate does not read.
    #[error("version {0} is not supported, only 0 is")]
    Version(u8),
    /// More axes than this form can have.
    #[error("{0} axes are too many")]
    Rank(u8),
    /// The head of a list does not match the number of axes.
    #[error("head {head:#04x} of the {part} contradicts the number of axes")]
    ListHead {
        /// The list.
        part: NdPart,
        /// The byte before its entries.
        head: u8,
    },
    /// A value has an unexpected marker.
    #[error("marker {marker:#04x} does not belong in the {part}")]
    Marker {
        /// The part.
        part: NdPart,
        /// The marker found.
        marker: u8,
    },
    /// An extent is negative.
    #[error("an extent of axis {axis} is negative")]
    Negative {
        /// The first such axis.
        axis: usize,
    },
    /// Chunk or block is empty where the array is not.
    #[error("chunk or block is empty on axis {axis}, but the array is not")]
    Zero {
        /// The first such axis.
        axis: usize,
    },
    /// The block is larger than its chunk.
    #[error("the block is larger than the chunk on axis {axis}")]
    BlockPastChunk {
        /// The first such axis.
        axis: usize,
    },
    /// The item type is not UTF-8.
    #[error("the item type is not UTF-8")]
    DtypeText,
    /// Bytes are left after the last part.
    #[error("{0} bytes left after the last part")]
    TrailingBytes(usize),
}

/// A part of the array metalayer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NdPart {
    /// Array head, version and number of axes.
    Head,
    /// Items of the array.
    Shape,
    /// Items of a chunk.
    ChunkShape,
    /// Items of a block.
    BlockShape,
    /// The item type and its dialect.
    Dtype,
}

impl fmt::Display for NdPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head => "head",
            Self::Shape => "shape",
            Self::ChunkShape => "chunk shape",
            Self::BlockShape => "block shape",
            Self::Dtype => "item type",
        })
    }
}

/// The reason why an array does not belong to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NdGeometryError {
    /// The frame's blocks are not as long as the array's.
    #[error("frame has blocks of {0} bytes, but the array has others")]
    Blocksize(u32),
    /// The frame's chunks are not as long as the array's.
    #[error("frame has chunks of {0} bytes, but the array has others")]
    Chunksize(u32),
    /// The total length of the frame's chunks differs from the array's.
    #[error("frame has {0} bytes in all chunks, but the array has another size")]
    Nbytes(u64),
}

impl<'a> Blosc2Frame<'a> {
    /// Returns the array in the frame: `b2nd`, otherwise `caterva`, checked against the header.
    /// `None` if the frame is not an array.
    ///
    /// # Errors
    ///
    /// [`NdError`] if the metalayer is broken or belongs to another frame.
    pub fn nd(&self) -> Result<Option<NdMetalayer<'a>>, NdError> {
        let forms = [NdForm::B2nd, NdForm::Caterva];
        let mut found = forms.into_iter().filter_map(|form| {
            let body = self.metalayer(form.name())?;
            Some((form, body))
        });
        let Some((form, body)) = found.next() else {
            return Ok(None);
        };
        let array = NdMetalayer::parse(form, body)?;
        array.check(&self.header())?;
        Ok(Some(array))
    }
}

/// The reason why a frame's array is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NdError {
    /// The metalayer is invalid.
    #[error("array metalayer")]
    Metalayer(#[from] NdMetalayerError),
    /// The metalayer does not belong to the frame's header.
    #[error("array geometry")]
    Geometry(#[from] NdGeometryError),
}
