//! Collects axes and encodes the array metalayer.

use alloc::vec::Vec;

use zerocopy::{
    IntoBytes,
    big_endian::{I32, I64, U32},
};

use super::{Marked, NdForm, VERSION, marker};

/// Collects axes and encodes them as either metalayer. There is one encoding:
/// its length follows from the number of axes, so an array can be resized in
/// place.
#[derive(Clone, Debug, Default)]
pub struct NdMetalayerBuilder {
    shape: Vec<Marked<I64>>,
    chunk_shape: Vec<Marked<I32>>,
    block_shape: Vec<Marked<I32>>,
}

/// An array that the metalayer cannot represent. The builder is left unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NdLimit {
    /// More axes than the form can have.
    #[error("{0} axes are too many")]
    Rank(usize),
    /// An extent is past the format's 63 or 31 bits.
    #[error("the extent of array, chunk or block is past the format's bits")]
    Extent,
    /// Chunk or block is empty where the array is not.
    #[error("chunk or block is empty, but the array is not")]
    Zero,
    /// The block is larger than its chunk.
    #[error("the block is larger than the chunk")]
    BlockPastChunk,
    /// The dialect is past 127.
    #[error("dtype format {0} is past 127")]
    DtypeFormat(u8),
    /// The item type takes 2^32 bytes or more.
    #[error("an item type takes at most 4294967295 bytes")]
    LongDtype,
}

impl NdMetalayerBuilder {
    /// Appends an axis: items of the array, of a chunk and of a block.
    ///
    /// # Errors
    ///
    /// [`NdLimit`] if a limit of the format is exceeded.
    pub fn push_axis(&mut self, shape: u64, chunk: u32, block: u32) -> Result<&mut Self, NdLimit> {
        let extents = (
            i64::try_from(shape),
            i32::try_from(chunk),
            i32::try_from(block),
        );
        let (Ok(extent), Ok(chunk), Ok(block)) = extents else {
            return Err(NdLimit::Extent);
        };
        if extent > 0 && (chunk == 0 || block == 0) {
            return Err(NdLimit::Zero);
        }
        if block > chunk {
            return Err(NdLimit::BlockPastChunk);
        }
        let max = usize::from(NdForm::B2nd.max_rank());
        if self.shape.len() >= max {
            return Err(NdLimit::Rank(self.shape.len().saturating_add(1)));
        }
        self.shape.push(Marked {
            marker: marker::I64,
            value: I64::new(extent),
        });
        let extent = |value| Marked {
            marker: marker::I32,
            value: I32::new(value),
        };
        self.chunk_shape.push(extent(chunk));
        self.block_shape.push(extent(block));
        Ok(self)
    }

    /// Encodes the axes as a `b2nd` metalayer with this item type.
    ///
    /// # Errors
    ///
    /// [`NdLimit`] if dialect or text does not fit.
    pub fn finish_b2nd(&self, dtype_format: u8, dtype: &str) -> Result<Vec<u8>, NdLimit> {
        if dtype_format > 0x7f {
            return Err(NdLimit::DtypeFormat(dtype_format));
        }
        let len = u32::try_from(dtype.len()).map_err(|_| NdLimit::LongDtype)?;
        let head = Marked {
            marker: marker::STR32,
            value: U32::new(len),
        };
        let mut bytes = self.axes(NdForm::B2nd)?;
        bytes.push(dtype_format);
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(dtype.as_bytes());
        Ok(bytes)
    }

    /// Encodes the axes as a `caterva` metalayer.
    ///
    /// # Errors
    ///
    /// [`NdLimit::Rank`] if there are 16 axes.
    pub fn finish_caterva(&self) -> Result<Vec<u8>, NdLimit> {
        self.axes(NdForm::Caterva)
    }

    fn axes(&self, form: NdForm) -> Result<Vec<u8>, NdLimit> {
        let rank = u8::try_from(self.shape.len()).ok();
        let rank = rank
            .filter(|&rank| rank <= form.max_rank())
            .ok_or(NdLimit::Rank(self.shape.len()))?;
        let list = [marker::FIXARRAY.wrapping_add(rank)];
        let parts = [
            &[form.head(), VERSION, rank],
            &list[..],
            self.shape.as_bytes(),
            &list,
            self.chunk_shape.as_bytes(),
            &list,
            self.block_shape.as_bytes(),
        ];
        Ok(parts.concat())
    }
}
